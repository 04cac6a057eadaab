"""Whether a result is what it claims to be, by an evaluation that shares nothing with the solvers.

Notation. F the set function, through its values on sets of pairs only; f its Lovász extension; K
the worst cost, (u, v) the potentials; r = a bᵀ / T the independent plan, d the metric of the
entropy. Sums that cancel are exact (rational numbers), the rest has forms without cancellation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from brute_force import members, tabulate
from fuzz import lanes
from fuzz.generate import Case

import structot as sot
from structot.structures import Modular

Array = np.ndarray

EPS = float(np.finfo(float).eps)
# Claims are compared with this relative error: far above rounding, far below any tolerance.
_SLACK = 1e-10
# Up to so many allowed pairs, every set of them is looked at.
ENUMERATED = 9

INVALID, FALSE, VERIFY = "invalid answer", "false certificate", "verify fails"


@dataclass(frozen=True)
class Fault:
    """Something that must hold and does not."""

    kind: str
    text: str


class Judge:
    """One problem, evaluated independently; `faults` examines a result for it."""

    def __init__(self, case: Case) -> None:
        self.case = case
        n, m = case.M.shape
        self.a = np.full(n, 1.0 / n) if case.a is None else np.asarray(case.a, float)
        b = np.full(m, 1.0 / m) if case.b is None else np.asarray(case.b, float)
        self.total = math.fsum(self.a)
        self.b = b * (self.total / math.fsum(b))
        structure = Modular() if case.structure is None else case.structure
        self.F = structure.bind(case.M, self.a, self.b)
        allowed = self.F.allowed
        self.allowed = np.isfinite(case.M) if allowed is None else allowed & np.isfinite(case.M)

    @cached_property
    def metric(self) -> Array:
        """d, part of the definition of the problem; on forbidden pairs it means nothing."""
        case = self.case
        problem = sot.Problem.of(case.M, case.a, case.b, structure=case.structure, reg=case.reg)
        d = np.broadcast_to(np.asarray(problem.metric, float), case.M.shape)
        return np.where(self.allowed, d, 1.0)

    @cached_property
    def values(self) -> Array | None:
        """F of every set of allowed pairs, or None if there are too many."""
        if self.case.convex or self.case.routes or self.allowed.sum() > ENUMERATED:
            return None
        return tabulate(self.F.value, self.allowed).values

    def faults(self, result: sot.Result) -> list[Fault]:
        """Everything that is wrong with this result."""
        broken = list(_unreadable(self.case, result))
        if broken:
            return [Fault(INVALID, text) for text in broken]
        found = [Fault(INVALID, text) for text in (*self._plan(result), *self._value(result))]
        found += [Fault(INVALID, text) for text in _flags(self.case, result)]
        found += [Fault(FALSE, text) for text in self._bound(result)]
        check = sot.certificate.verify(
            self.case.M,
            self.case.a,
            self.case.b,
            self.case.structure,
            result,
            reg=self.case.reg,
        )
        if not check.holds():
            found.append(Fault(VERIFY, f"{check}"))
        return found

    def _plan(self, result: sot.Result) -> list[str]:
        """P >= 0, P1 = a, Pᵀ1 = b, nothing on forbidden pairs."""
        P, said = result.plan, []
        if (P < 0).any():
            said.append(f"the plan has an entry of {P.min()}")
        if (P[~self.allowed] != 0).any():
            said.append("the plan uses a forbidden pair")
        for name, sums, weights in (("row", P, self.a), ("column", P.T, self.b)):
            errors = [abs(math.fsum(x) - w) for x, w in zip(sums, weights, strict=True)]
            worst = int(np.argmax(errors))
            if errors[worst] > 1e-12 * self.total:
                said.append(f"{name} {worst} misses its weight by {errors[worst] / self.total} T")
        return said

    def _value(self, result: sot.Result) -> list[str]:
        """value = f(P) + entropy, value_structured = f(P), value_linear = <P, M>."""
        P = np.where(self.allowed, result.plan, 0.0)
        structured = self.extension(P)
        entropy, rounding = self.entropy(P)
        used = P > 0
        claims = {
            "value_structured": (structured, 0.0),
            "value": (structured + entropy, rounding),
            "value_linear": (math.fsum(P[used] * self.case.M[used]), 0.0),
        }
        return [
            f"{name} is {getattr(result, name)!r}, the plan has {true!r}"
            for name, (true, error) in claims.items()
            if abs(getattr(result, name) - true) > _SLACK * abs(true) + result.atol + error
        ]

    def extension(self, P: Array) -> float:
        """f(P) = Σ_k (P_(k) - P_(k+1)) F(S_k), S_k the k largest entries: nothing cancels."""
        if self.case.convex:
            return self.F.extension(P)
        if self.case.routes:
            return lanes.price_of(self.F, P)
        levels = np.unique(P[P > 0])
        steps = np.diff(levels, prepend=0.0)
        return math.fsum(
            float(step) * self.F.value(level <= P)
            for step, level in zip(steps, levels, strict=True)
        )

    def entropy(self, P: Array) -> tuple[float, float]:
        """reg Σ d r φ(P/r) with φ(x) = x log x - x + 1 >= 0, and what rounding r may change in it.

        φ is a series where x is near 1, so that nothing cancels there.
        """
        if self.case.reg == 0:
            return 0.0, 0.0
        on = self.allowed & (np.multiply.outer(self.a, self.b) > 0)
        r, x = self._independent()[on], P[on].astype(np.longdouble)
        t = (x - r) / r
        near = np.abs(t) < 1e-4
        small = np.where(near, t, 0)
        series = small**2 * (0.5 - small / 6 + small**2 / 12 - small**3 / 20 + small**4 / 30)
        ratio = np.where(x > 0, x / r, 1)
        grown = ratio * np.log(ratio)
        phi = np.where(near, series, np.where(x > 0, grown - ratio + 1, 1))
        weight = self.case.reg * self.metric[on] * r
        # The relative error e of r moves φ by about x log x · e + e²/2.
        e = 8 * EPS
        return float(np.sum(weight * phi)), float(np.sum(weight * (np.abs(grown) * e + e**2)))

    def _independent(self) -> Array:
        a, b = (x.astype(np.longdouble) for x in (self.a, self.b))
        return np.multiply.outer(a, b) / np.longdouble(self.total)

    def _bound(self, result: sot.Result) -> list[str]:
        """What the potentials and the worst cost prove is not less than the claimed bound."""
        proved = self._proved(result)
        K = result.worst_cost
        if self.case.reg == 0:
            # All that the bound needs is u ⊕ v in P(F); where K is far above it, on pairs that cost
            # too much, the rounding of K would drown the rest. (`verify` tests K itself.)
            K = np.where(self.allowed, np.minimum(K, np.add.outer(*result.potentials)), K)
        if self.case.routes:
            outside, where = lanes.overpaid(self.F, K), "its routes"
            proved -= outside
        else:
            outside, where = self._outside(K)
            # <P, K> <= f(P) + max P · outside, and no entry of a plan exceeds its weights.
            proved -= outside * float(min(self.a.max(), self.b.max()))
        slack = result.atol + _SLACK * abs(result.value)
        said = []
        if result.lower_bound > proved + slack:
            said.append(
                f"the bound is {result.lower_bound!r}, but its proof gives {proved!r}"
                + (f"; the worst cost exceeds F by {outside:.3g} on {where}" if outside else "")
            )
        if result.lower_bound > result.value + result.atol:
            said.append(f"the bound {result.lower_bound!r} is above the value {result.value!r}")
        return said

    def _proved(self, result: sot.Result) -> float:
        """The dual value of the potentials, less what u ⊕ v > K on some pairs can cost."""
        u, v = result.potentials
        K = np.where(self.allowed, result.worst_cost, np.inf)
        dual = _exact_sum(self.a, u) + _exact_sum(self.b, v)
        if self.case.reg > 0:
            d = self.metric.astype(np.longdouble)
            over = np.add.outer(u.astype(np.longdouble), v.astype(np.longdouble)) - K
            with np.errstate(over="ignore"):
                growth = np.expm1(over / (self.case.reg * d))
            lost = np.where(self.allowed, d * self._independent() * growth, 0)
            return float(np.longdouble(float(dual)) - self.case.reg * lost.sum())
        # Rounded differences tell where u ⊕ v is above K; there the excess is made exact.
        size = np.abs(np.add.outer(np.abs(u), np.abs(v)))
        rise = np.zeros(K.shape)
        near = self.allowed & (np.add.outer(u, v) - np.where(self.allowed, K, 0) > -4 * EPS * size)
        for i, j in np.argwhere(near):
            excess = Fraction(float(u[i])) + Fraction(float(v[j])) - Fraction(float(K[i, j]))
            rise[i, j] = max(0.0, float(excess))
        lost = min(math.fsum(self.a * rise.max(axis=1)), math.fsum(self.b * rise.max(axis=0)))
        return float(dual) - lost

    def _outside(self, K: Array) -> tuple[float, str]:
        """max_A K(A) - F(A) beyond rounding, over all sets or some likely ones; and which set.

        K(all) < F(all) is no fault: a bound from a smaller K holds as well.
        """
        if self.case.convex:
            return 0.0, ""
        edges = np.flatnonzero(self.allowed)
        k = K.ravel()[edges]
        if self.values is not None:
            inside, values = members(edges.size), self.values
        else:
            inside = _likely_sets(k, self.case.M.ravel()[edges])
            masks = np.zeros((len(inside), K.size), bool)
            masks[:, edges] = inside
            values = np.array([self.F.value(mask) for mask in masks.reshape(-1, *K.shape)])
        # Sums over N pairs, here and in F: their errors grow like the root of N.
        few = 8 + np.sqrt(inside.sum(axis=1))
        rounding = few * EPS * (np.abs(values) + inside @ np.abs(k))
        excess = inside @ k - values - rounding
        worst = int(np.argmax(excess))
        pairs = edges[inside[worst]]
        shown = f"{pairs[:8].tolist()}{' and more' if pairs.size > 8 else ''}"
        return max(0.0, float(excess[worst])), f"the pairs {shown}"


def _likely_sets(k: Array, cost: Array) -> Array:
    """Sets where K may exceed F: of the largest entries, absolutely or beside the ground cost."""
    rows = [np.ones(k.size, bool)]
    price = k / np.where(cost > 0, cost, 1.0)
    for order in (np.argsort(-k, kind="stable"), np.argsort(-price, kind="stable")):
        for size in np.unique(np.linspace(1, k.size, 25).astype(int)):
            row = np.zeros(k.size, bool)
            row[order[:size]] = True
            rows.append(row)
    return np.array(rows)


def _exact_sum(weights: Array, x: Array) -> Fraction:
    """Σ weights · x without rounding."""
    terms = zip(weights.tolist(), x.tolist(), strict=True)
    return sum((Fraction(w) * Fraction(p) for w, p in terms), Fraction(0))


def _unreadable(case: Case, result: sot.Result) -> list[str]:
    """Wrong shapes, wrong types, NaN: nothing further can be examined then."""
    n, m = case.M.shape
    u, v = result.potentials
    arrays = {"plan": result.plan, "worst_cost": result.worst_cost, "u": u, "v": v}
    shapes = {"plan": (n, m), "worst_cost": (n, m), "u": (n,), "v": (m,)}
    names = ("value", "value_structured", "value_linear", "lower_bound", "atol")
    said = [f"{x} has shape {arrays[x].shape}" for x in arrays if arrays[x].shape != shapes[x]]
    if not isinstance(result.status, sot.Status):
        said.append(f"the status is {result.status!r}")
    for name, x in arrays.items():
        finite = np.isfinite(x) | (x == np.inf if name == "worst_cost" else False)
        if not finite.all():
            said.append(f"{name} holds {x[~finite].ravel()[0]}")
    said += [f"{x} is {getattr(result, x)}" for x in names if not np.isfinite(getattr(result, x))]
    if math.isnan(result.gap):
        said.append("the gap is NaN")
    return said


def true_gap(result: sot.Result) -> float:
    """max(0, value - lower_bound) / |value|, where 0/0 is 0 and x/0 infinite."""
    rest = max(0.0, result.value - result.lower_bound)
    if rest == 0:
        return 0.0
    return rest / abs(result.value) if result.value else math.inf


def _flags(case: Case, result: sot.Result) -> list[str]:
    """The gap is that of value and bound; converged says that the rule holds, and only then."""
    said = []
    gap, rest = true_gap(result), result.value - result.lower_bound
    if result.gap != gap and not abs(result.gap - gap) <= 1e-12 + 1e-6 * gap:
        said.append(f"the gap reads {result.gap!r}; value and bound make it {gap!r}")
    limit = float(case.tol * abs(result.value) + result.atol)
    if result.converged != (result.status is sot.Status.CONVERGED):
        said.append(f"converged is {result.converged}, the status {result.status.name}")
    # At the very limit rounding decides, so that both answers are right.
    if result.converged and rest > limit * (1 + 1e-9):
        said.append(f"converged, but value - bound is {rest!r} and the limit {limit!r}")
    if not result.converged and rest < limit * (1 - 1e-9):
        said.append(f"{result.status.name}, but value - bound is {rest!r} and the limit {limit!r}")
    return said
