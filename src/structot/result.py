"""The answer of `solve`: a plan, what it costs, and the proof of how good it is."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from structot import _checks
from structot._files import whole_file
from structot._typing import Array
from structot.certificate import Verification, verify
from structot.outcome import Status, Trace
from structot.structures.base import Structure
from structot.submodular.lanes import route_shares

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from structot.structures._grouping import Grouping


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """A plan with its certificate: lower_bound <= optimum <= value.

    Attributes
    ----------
    plan
        P, shape (n, m), in U(a, b) to rounding, or with the relaxed marginals asked for.
    value
        The objective at the plan: f(P), plus the entropy term when reg > 0, plus the price of the
        marginals when they are relaxed.
    value_structured, value_linear
        f(P) and <P, M>.
    lower_bound
        Proved by the potentials and the worst cost, less the rounding error of evaluating it.
    potentials
        (u, v). For reg = 0: u ⊕ v <= worst_cost, and the bound is a·u + b·v, for reg > 0 the dual
        function a·u + b·v - reg Σ d r (exp((u ⊕ v - K)/(reg d)) - 1), less rounding in both cases.
        With relaxed marginals the dual terms of `structot.marginals` stand for a·u + b·v.
    worst_cost
        K in B(F), +inf on forbidden pairs: what the adversary plays. With `Routes` the ground cost
        and tariffs on lanes; for a `ConvexCost` the linear function of plans below f that proves
        the bound.
    ground_cost
        M as it was given.
    gap
        max(0, value - lower_bound) / |value|, and 0 where both are 0.
    atol
        The absolute error of the value that counts as nothing: its rounding error (at most a tenth
        of what ``tol`` allows, unless the value is no more than that error), or what was asked for.
    structure, weights, reg, unbalanced, unbalanced_type, mass
        The problem: the structure (None for plain transport, and in a loaded result), a and b as
        they were solved, the weight of the entropy, how the marginals are relaxed: the prices of
        both sides (None for one that must hold) or the mass to be moved (None for all).
    status, converged, method, n_iter, time, trace
        How the solve went.
    unknown
        The kind of structure that a loaded result was solved for, and does not hold.

    Examples
    --------
    >>> import structot as sot
    >>> result = sot.solve([[0.0, 1.0], [1.0, 0.0]])
    >>> result.plan
    array([[0.5, 0. ],
           [0. , 0.5]])
    >>> result.converged, result.value, result.partners
    (True, 0.0, array([1., 1.]))
    """

    plan: Array
    value: float
    value_structured: float
    value_linear: float
    lower_bound: float
    gap: float
    atol: float
    potentials: tuple[Array, Array]
    worst_cost: Array
    ground_cost: Array = field(repr=False)
    structure: Structure | None
    weights: tuple[Array, Array]
    reg: float
    status: Status
    method: str
    n_iter: int
    time: float
    trace: Trace = field(repr=False)
    unbalanced: tuple[float | None, float | None] | None = None
    unbalanced_type: str = "KL"
    mass: float | None = None
    unknown: str = field(default="", repr=False)

    @property
    def converged(self) -> bool:
        """Whether the certified gap was reached."""
        return self.status is Status.CONVERGED

    def numpy(self) -> Result:
        """The same as arrays: itself, where it is not made of tensors."""
        return self

    def sparse_plan(self) -> csr_array:
        """The plan as a sparse array of its positive entries."""
        from scipy.sparse import csr_array

        return csr_array(self.plan)

    def verify(self, structure: Structure | None = None) -> Verification:
        """Check plan, value, worst cost and bound from scratch; see `certificate.verify`.

        A loaded result does not know its structure: pass it. Without it, it is refused.

        Examples
        --------
        >>> import structot as sot
        >>> sot.solve([[1.0, 2.0], [3.0, 1.0]]).verify().holds()
        True
        """
        structure = self.structure if structure is None else structure
        if structure is None and self.unknown:
            raise ValueError(
                f"this result was solved for a structure ({self.unknown}), which its file does not "
                "hold; pass it: result.verify(structure)."
            )
        return verify(
            *(self.ground_cost, *self.weights, structure, self),
            reg=self.reg,
            unbalanced=self.unbalanced,
            unbalanced_type=self.unbalanced_type,
            mass=self.mass,
        )

    @property
    def marginals(self) -> tuple[Array, Array]:
        """P1 and Pᵀ1: what each point sent and received."""
        return self.plan.sum(axis=1), self.plan.sum(axis=0)

    @property
    def left(self) -> tuple[Array, Array]:
        """a - P1 and b - Pᵀ1: what each point kept or did not get; negative where mass was made.

        Rounding errors apart 0 where the marginals are not relaxed.
        """
        (a, b), (sent, received) = self.weights, self.marginals
        return a - sent, b - received

    def barycentric_map(self, Y: object) -> Array:
        """Σ_j P_ij Y_j / Σ_j P_ij: where each source point goes on average, shape (n, features).

        NaN for a point that sent nothing.

        Examples
        --------
        >>> import structot as sot
        >>> sot.solve([[0.0, 1.0], [1.0, 0.0]]).barycentric_map([[5.0], [7.0]])
        array([[5.],
               [7.]])
        """
        Y = _checks.as_points("Y", Y)
        if len(Y) != self.plan.shape[1]:
            raise ValueError(f"Y must have one point per column of the plan, {self.plan.shape[1]}.")
        with np.errstate(invalid="ignore"):
            return self.plan @ Y / self.plan.sum(axis=1)[:, None]

    @property
    def partners(self) -> Array:
        """The effective number of partners of each source point, exp of the entropy of its row.

        1 for a point that goes to one target; m for one that spreads evenly over all. A plan that
        is constant on its blocks, where every point goes to the mean of its class, shows here. 0
        for a point that sent nothing.
        """
        mass = self.plan.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = self.plan / mass[:, None]
            entropy = -np.sum(np.where(share > 0, share * np.log(share), 0.0), axis=1)
        return np.where(mass > 0, np.exp(entropy), 0.0)

    def block_mass(self) -> BlockMass:
        """The mass that goes from each source group to each target group, with their labels.

        Of groups that overlap every one counts the whole mass of its points.
        """
        groups = self._groups()
        if groups is None:
            raise ValueError(
                "block_mass needs a structure with groups, such as Groups, Coverage or Routes; "
                f"this result has {self.structure!r}."
            )
        rows, cols = groups
        source, target = (side.membership().toarray() for side in groups)
        mass = source @ self.plan @ target.T
        return BlockMass(mass, rows.names, cols.names)

    @property
    def concentration(self) -> float:
        """Σ_k max_l P(U_k, V_l) / T: how much of each source group goes to one target group.

        1 where groups travel as a whole; NaN without a structure with disjoint groups.
        """
        groups = self._groups()
        if groups is None or not all(side.is_disjoint for side in groups):
            return float("nan")
        moved, together = float(self.plan.sum()), self.block_mass().mass.max(axis=1).sum()
        return float(together) / moved if moved > 0 else float("nan")

    @property
    def routes(self) -> Array:
        """t_kl = max( max_{i in U_k} P(i, V_l)/a_i , max_{j in V_l} P(U_k, j)/b_j ).

        The largest share of a point's mass on the route between two groups, which `Routes` charges
        for: 0 where the route is closed, 1 where some point takes it entirely. Shape (source
        groups, target groups), in the order of `block_mass`.
        """
        groups = self._groups()
        if groups is None or not all(side.is_disjoint for side in groups):
            raise ValueError(
                "routes needs a structure with groups that do not overlap, such as Routes; this "
                f"result has {self.structure!r}."
            )
        rows, cols = (side.layers[0].group[side.layers[0].number] for side in groups)
        return route_shares(self.plan, rows, cols, *self.weights)

    def _groups(self) -> tuple[Grouping, Grouping] | None:
        return None if self.structure is None else self.structure.groupings(self.plan.shape)

    def save(self, path: str | os.PathLike) -> None:
        """Write everything to one npz file, aside first, so that no half file is left behind."""
        with whole_file(_with_suffix(path)) as aside:
            np.savez_compressed(
                aside,
                plan=self.plan,
                worst_cost=self.worst_cost,
                ground_cost=self.ground_cost,
                u=self.potentials[0],
                v=self.potentials[1],
                a=self.weights[0],
                b=self.weights[1],
                numbers=np.array([getattr(self, name) for name in _NUMBERS]),
                n_iter=self.n_iter,
                text=np.array([self.status.name, self.method, self.unbalanced_type]),
                structure=self.unknown if self.structure is None else type(self.structure).__name__,
                relaxed=np.array(_numbers_of((*(self.unbalanced or (None, None)), self.mass))),
                **{f"trace_{name}": getattr(self.trace, name) for name in _TRACE},
            )

    @classmethod
    def load(cls, path: str | os.PathLike) -> Result:
        """Read what `save` wrote; the structure is not part of it (``structure`` is None)."""
        path = _with_suffix(path)
        with open(path, "rb") as opened:
            if opened.read(2) != b"PK":
                raise ValueError(f"{path} is no npz file; pass a file written by Result.save.")
        with np.load(path, allow_pickle=False) as file:
            missing = {"plan", "worst_cost", "ground_cost", "numbers", "text"} - set(file.files)
            if missing:
                raise ValueError(
                    f"{path} is no saved Result (no {', '.join(sorted(missing))}); "
                    "pass a file written by Result.save."
                )
            if file["numbers"].size != len(_NUMBERS) or "relaxed" not in file.files:
                raise ValueError(f"{path} was saved by another version of structot; solve again.")
            numbers = dict(zip(_NUMBERS, file["numbers"].tolist(), strict=True))
            status, method, kind = file["text"].tolist()
            *prices, mass = (None if np.isnan(x) else x for x in file["relaxed"].tolist())
            return cls(
                plan=file["plan"],
                worst_cost=file["worst_cost"],
                ground_cost=file["ground_cost"],
                potentials=(file["u"], file["v"]),
                weights=(file["a"], file["b"]),
                structure=None,
                status=Status[status],
                method=method,
                n_iter=int(file["n_iter"]),
                trace=Trace(**{name: file[f"trace_{name}"] for name in _TRACE}),
                unbalanced=None if prices == [None, None] else (prices[0], prices[1]),
                unbalanced_type=kind,
                mass=mass,
                unknown=str(file["structure"]) if "structure" in file.files else "",
                **numbers,
            )

    def __repr__(self) -> str:
        n, m = self.plan.shape
        return (
            f"Result({n}×{m} plan by {self.method!r})\n"
            f"  value        {self.value:.8g}\n"
            f"  lower bound  {self.lower_bound:.8g}\n"
            f"  gap          {self.gap:.1e}\n"
            f"{self._show_mass()}"
            f"{self._show_groups()}"
            f"  status       {self.status}\n"
            f"  effort       {self.n_iter} iterations, {self.time:.3g} s"
        )

    def _show_mass(self) -> str:
        """How much was moved, where that is not all, and what was left on either side."""
        if self.unbalanced is None and self.mass is None:
            return ""
        moved = float(self.plan.sum())
        lines = [f"  mass moved   {moved:.6g}"]
        for name, weights, rest in zip(("source", "target"), self.weights, self.left, strict=True):
            total, kept = float(weights.sum()), float(np.maximum(rest, 0.0).sum())
            made = kept - float(rest.sum())
            extra = f", {made:.3g} made" if made > 1e-6 * total else ""
            lines.append(f"  {name}       {kept:.3g} of {total:.6g} left{extra}")
        return "\n".join(lines) + "\n"

    def _show_groups(self) -> str:
        """How the plan looks, in two lines, where there are groups to look at."""
        if np.isnan(self.concentration):
            return ""
        mean = float(np.average(self.partners, weights=self.plan.sum(axis=1)))
        one = "point" if set(self.block_mass().target) == {None} else "group"
        return (
            f"  together     {self.concentration:.0%} of the mass of a group goes to one {one}\n"
            f"  partners     {mean:.3g} of {self.plan.shape[1]} per source point, effectively\n"
        )


class BlockMass(NamedTuple):
    """Mass per pair of groups, (source groups, target groups), and the labels of both.

    The label of a group given by indices is its place in the list, that of a point on its own None.
    """

    mass: Array
    source: tuple
    target: tuple


def _numbers_of(values: tuple[float | None, ...]) -> list[float]:
    """NaN for None."""
    return [float("nan") if x is None else x for x in values]


def _with_suffix(path: str | os.PathLike) -> Path:
    name = os.fspath(path)
    return Path(name if name.endswith(".npz") else name + ".npz")


_NUMBERS = (
    *("value", "value_structured", "value_linear", "lower_bound"),
    *("gap", "atol", "reg", "time"),
)
_TRACE = ("iteration", "time", "value", "lower_bound")
