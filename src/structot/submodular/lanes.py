"""A price for routes between groups, by the largest share of a point's mass that takes them.

Notation. Rows are divided into groups U_k, columns into groups V_l. A *lane* joins a point and a
group: (i, l) carries P(i, V_l), which is the share P(i, V_l)/a_i of what i has, and (k, j) carries
P(U_k, j). With prices w_kl,

    f(P) = Σ_kl w_kl t_kl,   t_kl = max(max_{i in U_k} P(i, V_l)/a_i, max_{j in V_l} P(U_k, j)/b_j)

is a Lovász extension over lanes (of the function that pays w_kl once for all lanes of a route) of
shares that are linear in P. It is the maximum of <K, P> over the *tariffs*

    K_ij = α_il + β_kj,   α, β >= 0,   Σ_{i in U_k} a_i α_il + Σ_{j in V_l} b_j β_kj <= w_kl.

Over pairs it is no Lovász extension: there is no base polytope, and tariffs take its place. Points
without weight have no share and no lanes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from structot._checks import as_mask, as_matrix
from structot._deadline import check_time
from structot._typing import Array
from structot.submodular.base import Kind, Layer
from structot.transport import emd

# A price of pairs is prohibitive, as good as a ban, above so many octaves without any price: a
# factor of a million. Methods for routes leave such pairs out first.
PROHIBITIVE_OCTAVES = 20


@dataclass(frozen=True, eq=False, repr=False)
class Lanes(Layer):
    """f(P) = Σ_kl w_kl t_kl, the price of the routes between groups.

    Parameters
    ----------
    rows, cols
        The number of the group of every source and target point, (n,) and (m,); no group is empty.
    a, b
        The weights of the points.
    price
        w, finite, shape (source groups, target groups).
    allowed
        The pairs that are edges, (n, m); None for all.
    """

    rows: Array
    cols: Array
    a: Array
    b: Array
    price: Array
    allowed: Array | None = None
    kind: ClassVar[Kind] = "lanes"
    monotone: ClassVar[bool] = True  # type: ignore[misc]

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        return self.rows.size, self.cols.size

    @property
    def modular_cost(self) -> Array | None:
        """w_ij / min(a_i, b_j) where every point is its own group: each pair is a route."""
        if self.price.shape != self.shape:
            return None
        weight = np.minimum.outer(
            np.where(self.a > 0, self.a, np.inf), np.where(self.b > 0, self.b, np.inf)
        )
        rate = self.price[self.rows][:, self.cols] / weight
        return rate if self.allowed is None else np.where(self.allowed, rate, np.inf)

    def value(self, mask: Array) -> float:
        """Σ w_kl over the routes that this set of pairs opens; +inf with a forbidden pair.

        The price of a plan that sends all of some point along every route it uses, as an assignment
        does. A plan that sends less of every point pays less.
        """
        mask = as_mask("mask", mask, self.shape)
        if self.allowed is not None and mask[~self.allowed].any():
            return np.inf
        used = self._by_route(mask.astype(float)) > 0
        return float(self.price[used].sum())

    def extension(self, P: Array) -> float:
        P = as_matrix("P", P, self.shape)
        if self.allowed is not None and np.any(P[~self.allowed] > 0):
            return np.inf
        return float(np.sum(self.price * self.shares(P)))

    def magnitude(self, P: Array) -> float:
        return self.extension(P)

    def shares(self, P: Array) -> Array:
        """t, shape (source groups, target groups)."""
        return route_shares(P, self.rows, self.cols, self.a, self.b)

    def greedy(self, P: Array) -> Array:
        """The tariffs that are worst for P: a route is paid by the lanes with the largest share."""
        P = as_matrix("P", P, self.shape)
        source, target = lane_shares(P, self.rows, self.cols, self.a, self.b)
        top = _largest(source, target, self.rows, self.cols)
        # Lanes of one share bear the price together. Those of no weight are never among them.
        alpha = ((source == top[self.rows]) & (self.a > 0)[:, None]).astype(float)
        beta = ((target == top[:, self.cols]) & (self.b > 0)).astype(float)
        paid = self.paid(alpha, beta)
        rate = np.divide(self.price, paid, out=np.zeros_like(paid), where=paid > 0)
        return self.surcharge(alpha * rate[self.rows], beta * rate[:, self.cols])

    def paid(self, alpha: Array, beta: Array) -> Array:
        """Σ_{i in U_k} a_i α_il + Σ_{j in V_l} b_j β_kj, what these tariffs take of each route."""
        by_source = group_sums(self.a[:, None] * alpha, self.rows, axis=0)
        return by_source + group_sums(self.b * beta, self.cols, axis=1)

    def surcharge(self, alpha: Array, beta: Array) -> Array:
        """α_il + β_kj for every pair, +inf on forbidden ones; α (n, L) and β (K, m)."""
        K = alpha[:, self.cols]
        K += beta[self.rows]
        if self.allowed is not None:
            K[~self.allowed] = np.inf
        return K

    def within_budget(self, alpha: Array, beta: Array) -> tuple[Array, Array]:
        """Tariffs made smaller, route by route, until no route pays more than its price."""
        paid = self.paid(alpha, beta)
        rate = np.divide(self.price, paid, out=np.ones_like(paid), where=paid > self.price)
        return alpha * rate[self.rows], beta * rate[:, self.cols]

    def cheapest_tariffs(self, D: Array) -> tuple[Array, Array]:
        """α (n, L), β (K, m) >= 0 with α_il + β_kj >= D_ij that take the least of every route.

        Surcharges D are below tariffs within their budgets exactly if these are. The least is, by
        linear duality, max <D, X> over X >= 0 on the block with X1 <= a, Xᵀ1 <= b: exact transport
        with a point more on each side for what is not sent, and its potentials are the tariffs.
        """
        alpha = np.zeros((self.a.size, self.price.shape[1]))
        beta = np.zeros((self.price.shape[0], self.b.size))
        for k, l in np.ndindex(self.price.shape):
            check_time()
            i, j = np.flatnonzero(self.rows == k), np.flatnonzero(self.cols == l)
            i, j = i[self.a[i] > 0], j[self.b[j] > 0]
            gain = np.maximum(D[np.ix_(i, j)], 0.0)
            if not gain.any():
                continue
            cost = np.zeros((i.size + 1, j.size + 1))
            cost[:-1, :-1] = -gain
            a = np.append(self.a[i], self.b[j].sum())
            b = np.append(self.b[j], self.a[i].sum())
            u, v = emd(cost, a, b).potentials
            alpha[i, l] = np.maximum(-u[:-1] - v[-1], 0.0)
            beta[k, j] = np.maximum(v[-1] - v[:-1], 0.0)
        return alpha, beta

    def scaled(self, factor: float) -> Lanes:
        return replace(self, price=factor * self.price)

    def in_units(self, cost: float, mass: float) -> Lanes:
        price = self.price / cost / mass
        return replace(self, a=self.a / mass, b=self.b / mass, price=price)

    def _by_route(self, P: Array) -> Array:
        return group_sums(group_sums(P, self.cols, axis=1), self.rows, axis=0)


def group_sums(X: Array, number: Array, axis: int) -> Array:
    """Sums of the rows (axis 0) or columns (axis 1) of every group; no group is empty."""
    order = np.argsort(number, kind="stable")
    first = np.searchsorted(number[order], np.arange(int(number.max()) + 1))
    return np.add.reduceat(np.take(X, order, axis), first, axis)


def lane_shares(P: Array, rows: Array, cols: Array, a: Array, b: Array) -> tuple[Array, Array]:
    """P(i, V_l)/a_i and P(U_k, j)/b_j, shapes (n, L) and (K, m); 0 for points without weight."""
    source, target = group_sums(P, cols, axis=1), group_sums(P, rows, axis=0)
    weight = a[:, None]
    source = np.divide(source, weight, out=np.zeros_like(source), where=weight > 0)
    return source, np.divide(target, b, out=np.zeros_like(target), where=b > 0)


def route_shares(P: Array, rows: Array, cols: Array, a: Array, b: Array) -> Array:
    """t_kl, the largest share of a point's mass on the route from U_k to V_l.

    Examples
    --------
    >>> P = np.array([[0.5, 0.0], [0.125, 0.375]])
    >>> one = np.zeros(2, int)
    >>> route_shares(P, one, np.arange(2), np.array([0.5, 0.5]), np.array([0.625, 0.375]))
    array([[1., 1.]])
    """
    return _largest(*lane_shares(P, rows, cols, a, b), rows, cols)


def _largest(source: Array, target: Array, rows: Array, cols: Array) -> Array:
    order, column = np.argsort(rows, kind="stable"), np.argsort(cols, kind="stable")
    first = np.searchsorted(rows[order], np.arange(int(rows.max()) + 1))
    begin = np.searchsorted(cols[column], np.arange(int(cols.max()) + 1))
    return np.maximum(
        np.maximum.reduceat(source[order], first, axis=0),
        np.maximum.reduceat(target[:, column], begin, axis=1),
    )
