"""The problem as prices and bars: truncations below the chords of g, and cuts.

Notation. Below its chords between some *knots* x_1 < ... < x_J = w(b), the g of a block b is
a linear part and truncations, each Σ_e ρ_e (P_e - λ)₊ + κλ with a *width* λ >= 0 of its own; a cut
is c |P_e - P_e'| = 2c (P_e - P_e')₊ - c P_e + c P_e'. With x >= 0 the plan P and all widths,

    min  <c, x> + Σ_e ω_e (P_e log(P_e / r_e) - P_e + r_e) + Σ_t ρ_t (x_head(t) - x_tail(t))₊
    subject to  P in U(a, b),                                  ω = reg d >= 0,

bounds the problem from below, and is the problem itself once the sets {P > λ} that the optimal plan
makes end at knots. Each ρ (x - x')₊ is a *bar* between two entries of x, and its subgradient k in
[0, ρ] the *tension* of the bar.
"""

from __future__ import annotations

from operator import itemgetter
from typing import NamedTuple, cast

import numpy as np
from scipy.sparse import coo_array

from structot._typing import Array
from structot.blocks.function import Blocks
from structot.concave import Step as Jump
from structot.problem import Problem
from structot.submodular.cuts import CutLayer

# Knots of a smooth function at first: each this many times the last.
_RATIO = 64.0
# New knots explain this share of the difference between g and its chords, and so many of them
# stand between two old ones.
_EXPLAINED, _NEW = 0.98, 3


class Pairs:
    """The pairs that can carry mass."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        live = (problem.independent > 0) & problem.function._allowed()
        self.row, self.col = np.nonzero(live)
        self.size = self.row.size
        self.number = np.full(problem.shape, -1)
        self.number[live] = np.arange(self.size)
        self.blocks = [cast(Blocks, layer) for layer in problem.layers if layer.kind == "blocks"]
        self.cuts = [layer for layer in problem.layers if isinstance(layer, CutLayer)]
        self.r = problem.independent[live]
        self.omega = problem.reg * np.broadcast_to(problem.metric, problem.shape)[live]
        self.marginals = np.concatenate([problem.a, problem.b])
        n, m = problem.shape
        ends = np.concatenate([self.row, n + self.col])
        places = ends, np.tile(np.arange(self.size), 2)
        self.A = coo_array((np.ones(2 * self.size), places), shape=(n + m, self.size)).tocsr()
        # The equations of points without mass say nothing.
        self.used = np.flatnonzero(self.marginals > 0)

    def plan(self, x: Array) -> Array:
        full = np.zeros(self.problem.shape)
        full[self.row, self.col] = x[: self.size]
        return full


def first_knots(layer: Blocks) -> list[Array]:
    """Per block, from its smallest weight to its total; those of g itself if it has corners."""
    knots: list[Array] = []
    table = layer.table
    for b, g in enumerate(table.functions):
        w, total = layer.w[layer.start[b] : layer.start[b + 1]], layer.totals[b]
        least = float(w.min())
        if table.outer[b] == 0.0 or w.size == 1:
            inside: Array = np.empty(0)
        elif isinstance(g, Jump):
            inside = np.array([least])
        elif g.is_piecewise_linear:
            inside = g.truncations()[2] / table.inner[b]
        else:
            count = int(np.ceil(np.log(total / least) / np.log(_RATIO)))
            inside = least * _RATIO ** np.arange(count)
        inside = inside[(inside > 0) & (inside < total * (1.0 - 1e-12))]
        knots.append(np.append(np.unique(inside), total))
    return knots


class _Truncations(NamedTuple):
    """Those of one layer below the chords between its knots."""

    linear: Array  # (edges of the layer,) price outside of all truncations
    edge: Array  # (N,) position in the layer
    rate: Array  # (N,) ρ
    number: Array  # (N,) of the truncation
    cap: Array  # (T,) κ


def _truncations(layer: Blocks, knots: list[Array]) -> _Truncations:
    """A chord that is steeper than the next by d up to x is min(d w(S), d x) more."""
    linear = np.zeros(layer.w.size)
    edges, rates = [np.empty(0, int)], [np.empty(0)]
    numbers, caps = [np.empty(0, int)], [np.empty(0)]
    before = 0
    for b, x in enumerate(knots):
        if layer.table.outer[b] == 0.0:
            continue
        first, last = layer.start[b], layer.start[b + 1]
        w = layer.w[first:last]
        left = np.concatenate([[0.0], x[:-1]])
        slope = np.asarray(layer.table.secant(b, left, x - left), float)
        linear[first:last] = slope[-1] * w
        drop = slope[:-1] - slope[1:]
        used = np.flatnonzero(drop > 0.0)
        edges.append(np.tile(np.arange(first, last), used.size))
        # A pair alone never pays more than the cap.
        rates.append((drop[used, None] * np.minimum(w, x[used, None])).ravel())
        numbers.append(before + np.repeat(np.arange(used.size), w.size))
        caps.append(drop[used] * x[used])
        before += used.size
    flat = (np.concatenate(arrays) for arrays in (edges, rates, numbers, caps))
    return _Truncations(linear, *flat)


def _chord_errors(layer: Blocks, b: int, x: Array, knots: Array) -> tuple[Array, Array]:
    """W_k and what the chords miss there, (x_k - x_(k+1)) (g - chord)(W_k), x falling."""
    first, last = layer.start[b], layer.start[b + 1]
    if layer.table.outer[b] == 0.0 or last - first == 1:
        return np.empty(0), np.empty(0)
    x = x[first:last]
    order = np.argsort(-x, kind="stable")
    W = np.cumsum(layer.w[first:last][order])
    drop = x[order] - np.append(x[order][1:], 0.0)
    values = np.append(0.0, layer.table.value(b, knots))
    missed = layer.table.value(b, W) - np.interp(W, np.append(0.0, knots), values)
    return W, drop * np.maximum(missed, 0.0)


def refined(layer: Blocks, knots: list[Array], x: Array) -> list[Array]:
    """More knots, some between two old ones, where the chords miss most at the plan x."""
    found: list[tuple[float, int, Array]] = []
    for b, own in enumerate(knots):
        W, error = _chord_errors(layer, b, x, own)
        place = np.searchsorted(own, W)
        for interval in np.unique(place[error > 0.0]):
            inside = np.flatnonzero((place == interval) & (error > 0.0))
            worst = inside[np.argsort(-error[inside])[:_NEW]]
            found.append((float(error[inside].sum()), b, W[worst]))
    found.sort(key=itemgetter(0), reverse=True)
    total = sum(missed for missed, _, _ in found)
    new = [list(own) for own in knots]
    seen = 0.0
    for missed, b, places in found:
        if seen >= _EXPLAINED * total:
            break
        seen += missed
        new[b].extend(places)
    return [np.unique(own) for own in new]


class Program:
    """The problem below the chords: prices c and ω of the entries of x, and the bars."""

    def __init__(self, pairs: Pairs, knots: list[list[Array]]) -> None:
        problem = pairs.problem
        self.pairs, self.knots = pairs, knots
        self.parts = [
            _truncations(layer, own) for layer, own in zip(pairs.blocks, knots, strict=True)
        ]
        price = np.zeros(problem.shape) if problem.linear is None else problem.linear.copy()
        head, tail, rate, cap = [np.empty(0, int)], [np.empty(0, int)], [np.empty(0)], [np.empty(0)]
        self.entries: list[Array] = []  # per layer of blocks, those that are bars
        width = pairs.size  # where the next width stands in x
        for layer, part in zip(pairs.blocks, self.parts, strict=True):
            price[layer.row, layer.col] += part.linear
            target = pairs.number[layer.row, layer.col][part.edge]
            self.entries.append(np.flatnonzero(target >= 0))
            head.append(target[self.entries[-1]])
            tail.append(width + part.number[self.entries[-1]])
            rate.append(part.rate[self.entries[-1]])
            cap.append(part.cap)
            width += part.cap.size
        self.neighbors: list[tuple[Array, Array, Array, Array]] = []  # and which are bars
        number = pairs.number.ravel()
        for cut in pairs.cuts:
            e, f, c = cut.neighbors
            np.add.at(price.ravel(), e, np.where(number[f] < 0, c, -c))
            np.add.at(price.ravel(), f, c)
            both = (number[e] >= 0) & (number[f] >= 0)
            self.neighbors.append((e, f, c, both))
            head.append(number[e[both]])
            tail.append(number[f[both]])
            rate.append(2.0 * c[both])
        self.head, self.tail, self.rate = map(np.concatenate, (head, tail, rate))
        self.c = np.concatenate([price[pairs.row, pairs.col], *cap])
        self.size = width
        self.omega = np.append(pairs.omega, np.zeros(width - pairs.size))
        bars = np.arange(self.rate.size)
        places = np.tile(bars, 2), np.concatenate([self.head, self.tail])
        signs = np.repeat([1.0, -1.0], bars.size)
        self.B = coo_array((signs, places), shape=(bars.size, width)).tocsr()

    def chord_error(self, plan: Array) -> float:
        """What the chords miss at a plan."""
        return sum(
            float(_chord_errors(layer, b, layer.gather(plan), knots)[1].sum())
            for layer, own in zip(self.pairs.blocks, self.knots, strict=True)
            for b, knots in enumerate(own)
        )

    def missed(self, x: Array) -> float:
        """The share of the mass that is not where it should be."""
        pairs = self.pairs
        rest = pairs.marginals - pairs.A @ x[: pairs.size]
        return float(np.abs(rest).sum()) / pairs.problem.total

    def tensions(self, x: Array, mu: float) -> tuple[Array, Array]:
        """k and ρ - k with μ / (ρ - k) - μ / k = x_head - x_tail."""
        scaled = (x[self.head] - x[self.tail]) * self.rate / (2.0 * mu)
        # (1 ± s / (1 + h)) / 2 with h² = 1 + s² and h - s = 1 / (h + s), so that nothing cancels.
        s, h = np.abs(scaled), np.hypot(1.0, scaled)
        larger, smaller = 0.5 * (1.0 + s / (1.0 + h)), 0.5 * (1.0 + 1.0 / (h + s)) / (1.0 + h)
        up = scaled >= 0.0
        return np.where(up, larger, smaller) * self.rate, np.where(up, smaller, larger) * self.rate

    def worst_cost(self, k: Array) -> Array:
        """The point of B(F) that the tensions of the bars make."""
        problem = self.pairs.problem
        K = problem.function._blank_cost()
        if problem.linear is not None:
            K += problem.linear
        position = 0
        for layer, part, entry in zip(self.pairs.blocks, self.parts, self.entries, strict=True):
            own = k[position : position + entry.size]
            position += entry.size
            inside = np.bincount(part.edge[entry], weights=own, minlength=layer.w.size)
            # The projection of a point of the polyhedron dominates it.
            K += layer.cost_of_edges(layer.project_edges(part.linear + inside, "cost"))
        for e, f, c, both in self.neighbors:
            s = np.where(self.pairs.number.ravel()[f] < 0, c, -c)
            count = int(both.sum())
            s[both] += k[position : position + count]
            position += count
            s = np.clip(s, -c, c)
            np.add.at(K.ravel(), e, s)
            np.subtract.at(K.ravel(), f, s)
        return K
