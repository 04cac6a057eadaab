"""Compiled parts of the entropic Newton method: point, exponential, Hessian, worst cost, entropy.

Notation as in `blocks/kernels.py`; r = a bᵀ / T the independent plan, ``la`` and ``lb`` the
logarithms of a and b / T (-inf for a zero weight), V the point of the prox in the logarithm, X the
plan, c_B the number of edges of a pool B in each row and column. Blocks (or rows)
``first <= b < last`` only, no state, no GIL.
"""

import numpy as np
from numba import njit

from structot.concave.kernels import block_secant
from structot.transport.entropy import surplus

# Where an edge that can carry nothing stands in the order of V: behind all others.
LAST = -1e30

_jit = njit(cache=True, nogil=True, error_model="numpy")


@_jit
def log_point(first, last, start, row, col, w, C, la, lb, p, q, reg, V):
    """V = log r + (p ⊕ q - C) / (reg w) on the edges of some blocks."""
    linear = C.size > 0
    for e in range(start[first], start[last]):
        i = row[e]
        j = col[e]
        z = p[i] + q[j]
        if linear:
            z -= C[e]
        v = la[i] + lb[j] + z / (reg * w[e])
        V[e] = v if v > LAST else LAST


@_jit
def exponentials(first, last, start, row, col, w, floor, X, n, m):
    """X = exp(X) in place, 0 at the floor; row sums, column sums and Σ w X."""
    rows = np.zeros(n)
    cols = np.zeros(m)
    weighted = 0.0
    for e in range(start[first], start[last]):
        if X[e] > floor:
            x = np.exp(X[e])
            X[e] = x
            rows[row[e]] += x
            cols[col[e]] += x
            weighted += w[e] * x
        else:
            X[e] = 0.0
    return rows, cols, weighted


@_jit
def pool_costs(first, last, start, w, V, reg, table, order, end, n_pools, K):
    """K = reg w (V - X) in B(F) from the pools of an uncut prox.

    Written as the mean slope of g over the pool plus the deviation of V from its mean, so that
    nothing cancels when reg is large and the pool sums of K are those of g to rounding.
    """
    kind, offset, params, outer, inner = table
    for b in range(first, last):
        s = start[b]
        low = 0
        cumulative = 0.0
        for t in range(n_pools[b]):
            high = end[s + t]
            weight = 0.0
            base = V[s + order[s + low]]
            above = 0.0
            for k in range(low, high):
                e = s + order[s + k]
                weight += w[e]
                above += w[e] * (V[e] - base)
            slope = block_secant(kind, offset, params, outer, inner, b, cumulative, weight)
            mean = above / weight
            for k in range(low, high):
                e = s + order[s + k]
                K[e] = w[e] * (slope + reg * ((V[e] - base) - mean))
            cumulative += weight
            low = high


@_jit
def relative_entropy(first, last, start, row, col, w, a, b, x):
    """Σ w (x log(x / r) - x + r) with r = a_i b_j over the edges of some blocks."""
    total = 0.0
    for e in range(start[first], start[last]):
        total += w[e] * surplus(x[e], a[row[e]] * b[col[e]])
    return total


@_jit
def dual_loss(first, last, start, row, col, w, a, b, u, v, reg, K):
    """reg Σ w r (exp(x / (reg w)) - 1), x = u ⊕ v - K, r = a_i b_j, over the edges of some blocks.

    Also the sum of the absolute values of all that it is made of, for its rounding error.
    """
    total = 0.0
    size = 0.0
    for e in range(start[first], start[last]):
        i, j = row[e], col[e]
        r = a[i] * b[j]
        if r > 0.0:
            rate = reg * w[e]
            growth = np.expm1((u[i] + v[j] - K[i, j]) / rate)
            total += rate * r * growth
            size += r * (rate * abs(growth) + (1.0 + growth) * _sizes(u[i], v[j], K[i, j]))
    return total, size


@_jit
def _sizes(u, v, k):
    return abs(u) + abs(v) + abs(k)


@_jit
def plain_point(first, last, C, la, lb, p, q, reg, X):
    """X = exp(log r + (p ⊕ q - C) / reg) on some rows; row sums and column sums."""
    m = C.shape[1]
    rows = np.zeros(C.shape[0])
    cols = np.zeros(m)
    for i in range(first, last):
        for j in range(m):
            x = np.exp(la[i] + lb[j] + (p[i] + q[j] - C[i, j]) / reg)
            X[i, j] = x
            rows[i] += x
            cols[j] += x
    return rows, cols


@_jit
def plain_loss(first, last, K, a, b, u, v, reg):
    """reg Σ r (exp((u ⊕ v - K) / reg) - 1) over the allowed pairs of some rows; as `dual_loss`."""
    total = 0.0
    size = 0.0
    for i in range(first, last):
        for j in range(K.shape[1]):
            r = a[i] * b[j]
            if r > 0.0 and K[i, j] < np.inf:
                growth = np.expm1((u[i] + v[j] - K[i, j]) / reg)
                total += reg * r * growth
                size += r * (reg * abs(growth) + (1.0 + growth) * _sizes(u[i], v[j], K[i, j]))
    return total, size


@_jit
def scale_rows(first, last, K, d, la, lb, q, reg, yielding, p):
    """p_i with Σ_j r_ij exp((p_i + q_j - K_ij) / (reg d_ij)) = a_i, row by row, in place.

    A side relaxed by KL wants a_i exp(-yielding · p_i) instead. Newton on the logarithm of the sum,
    a convex increasing function of p_i: after one step it only comes down, to within 1e-3 of the
    mass here.
    """
    m = K.shape[1]
    for i in range(first, last):
        if la[i] == -np.inf:
            continue
        x = p[i]
        for _ in range(60):
            top = -np.inf
            for j in range(m):
                y = lb[j] + (x + q[j] - K[i, j]) / (reg * d[i, j])
                top = y if y > top else top
            if top == -np.inf:
                break
            total = 0.0
            slope = 0.0
            for j in range(m):
                y = np.exp(lb[j] + (x + q[j] - K[i, j]) / (reg * d[i, j]) - top)
                total += y
                slope += y / (reg * d[i, j])
            excess = top + np.log(total) + yielding * x
            x -= excess / (slope / total + yielding)
            if abs(excess) < 1e-3:
                break
        p[i] = x


@_jit
def coverage_point(first, last, start, row, col, C, la, lb, p, q, reg, price, level, cap, X, n, m):
    """The prox of a coverage function without a sort: log X = min(V, t), t per block.

    t solves Σ (V - t)₊ = price / reg, a convex, decreasing, piecewise linear equation: after one
    Newton step from the last t the iterates rise to the root, exactly, in finitely many steps.
    Row sums, column sums; ``level`` holds t before and after, ``cap`` its exponential.
    """
    rows = np.zeros(n)
    cols = np.zeros(m)
    longest = 0
    for b in range(first, last):
        longest = max(longest, start[b + 1] - start[b])
    V = np.empty(longest)
    linear = C.size > 0
    for b in range(first, last):
        s = start[b]
        size = start[b + 1] - s
        for k in range(size):
            e = s + k
            z = p[row[e]] + q[col[e]]
            if linear:
                z -= C[e]
            v = la[row[e]] + lb[col[e]] + z / reg
            V[k] = v if v > LAST else LAST
        level[b] = _water_level(V[:size], price[b] / reg, level[b])
        top = level[b]
        cap[b] = np.exp(top)
        for k in range(size):
            e = s + k
            x = cap[b] if V[k] >= top else np.exp(V[k])
            X[e] = x
            rows[row[e]] += x
            cols[col[e]] += x
    return rows, cols


@_jit
def _water_level(V, volume, guess):
    """t with Σ (V - t)₊ = volume; +inf for no volume."""
    if volume == 0.0:
        return np.inf
    top = V.max()
    t = guess if guess < top else top
    members = -1
    for _ in range(200):
        count = 0
        above = 0.0
        for k in range(V.size):
            if V[k] > t:
                count += 1
                above += V[k] - top
        if count == 0:  # only the largest, or rounding: the volume stands on it alone
            count = 1
            above = 0.0
        if count == members:
            break
        new = top + (above - volume) / count
        members = count if new >= t else -1
        t = new
    return t


@_jit
def pool_capped(start, X, cap, order, end, n_pools):
    """The capped edges of each block as its one pool, the others behind it one by one."""
    for b in range(cap.size):
        s = start[b]
        size = 0
        for e in range(s, start[b + 1]):
            if X[e] == cap[b]:
                order[s + size] = e - s
                size += 1
        end[s] = size
        n_pools[b] = 1 if size > 1 else 0


@_jit
def coverage_costs(first, last, start, row, col, C, la, lb, p, q, reg, price, level, K):
    """K = reg (V - t)₊ in B(F) for a coverage function, each block brought to its price exactly."""
    linear = C.size > 0
    for b in range(first, last):
        total = 0.0
        for e in range(start[b], start[b + 1]):
            z = p[row[e]] + q[col[e]]
            if linear:
                z -= C[e]
            v = la[row[e]] + lb[col[e]] + z / reg
            K[e] = max(v - level[b], 0.0)
            total += K[e]
        even = price[b] / (start[b + 1] - start[b])
        for e in range(start[b], start[b + 1]):
            K[e] = K[e] * price[b] / total if total > 0.0 else even


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def bipartite_times(theta, x, y):
    """Θ y and Θᵀ x in one reading of Θ, in one thread: products by the hundred, each a ms."""
    n, m = theta.shape
    rows = np.empty(n)
    cols = np.zeros(m)
    for i in range(n):
        total = 0.0
        z = x[i]
        for j in range(m):
            t = theta[i, j]
            total += t * y[j]
            cols[j] += t * z
        rows[i] = total
    return rows, cols


@_jit
def pool_times(indptr, indices, data, weight, x, y):
    """y += Σ_B weight_B c_B (c_B · x), in one reading of the rows c_B."""
    for t in range(weight.size):
        total = 0.0
        for k in range(indptr[t], indptr[t + 1]):
            total += data[k] * x[indices[k]]
        total *= weight[t]
        for k in range(indptr[t], indptr[t + 1]):
            y[indices[k]] += data[k] * total


@_jit
def log_sums(first, last, L, g, out):
    """log Σ_j exp(L_ij + g_j) of some rows; -inf for a row of nothing."""
    m = L.shape[1]
    for i in range(first, last):
        top = -np.inf
        for j in range(m):
            y = L[i, j] + g[j]
            top = y if y > top else top
        total = 0.0
        if top > -np.inf:
            for j in range(m):
                total += np.exp(L[i, j] + g[j] - top)
            out[i] = top + np.log(total)
        else:
            out[i] = -np.inf
