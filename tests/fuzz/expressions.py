"""Random structures, written as the Python expressions a user would type.

An expression rather than an object, so that a failure is reported as a line that can be pasted.

Notation. M the ground cost, ``unit`` a typical cost of one pair: prices and thresholds are drawn in
this unit, so that a problem means the same at every scale of the cost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from structot import concave

Array = np.ndarray


@dataclass(frozen=True)
class Scene:
    """What a structure is drawn for."""

    rng: np.random.Generator
    M: Array
    unit: float

    @property
    def shape(self) -> tuple[int, int]:
        return self.M.shape

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def pick(self, *options: object) -> object:
        return options[int(self.rng.integers(len(options)))]

    def size(self, low: float, high: float) -> float:
        """A positive number, uniform in the logarithm between 10^low and 10^high."""
        return float(10.0 ** self.rng.uniform(low, high))

    def price(self, low: float, high: float) -> float:
        return self.unit * self.size(low, high)


def number(x: float) -> str:
    """A literal that reads back as the same float; ``inf`` is a name in the namespace."""
    return repr(float(x))


def array(x: Array) -> str:
    """An array as an expression that rebuilds it exactly."""
    return f"np.array({np.asarray(x).tolist()!r})"


# ---------------------------------------------------------------- concave functions


def concave_function(scene: Scene, units: str) -> str:
    """One function of `structot.concave`, its thresholds in the units its argument has."""
    block = units == "block"
    length = scene.size(-2, 0.3) if block else scene.price(-1.5, 2)
    name = scene.pick(
        *("Discount", "ThresholdSqrt", "Sqrt", "Power", "Log", "Truncation", "Linear"),
        *("PiecewiseLinear", "Truncation", "extreme", "custom"),
    )
    if name == "Discount" and not hasattr(concave, "Discount"):
        name = "Log"
    if name == "PiecewiseLinear":
        return _piecewise(scene, length)
    if name == "extreme":
        ends = ("Truncation(0.0)", "Truncation(inf)", "ThresholdSqrt(0.0)", "Power(1.0)")
        return f"sot.concave.{scene.pick(*ends)}"
    if name == "custom" and scene.chance(0.3):
        return f"lambda x: x / (1.0 + x / {number(length)})"
    arguments = {
        "Discount": number(scene.pick(0.0, 0.5, 0.75, 0.99)),
        "ThresholdSqrt": f"{number(length)}, {number(length * scene.size(-1, 1))}",
        "Power": number(scene.pick(0.1, 0.5, 0.7, 0.95)),
        "Log": number(length),
        "Truncation": number(length),
        "Sqrt": "",
        "Linear": "",
    }
    name = name if name in arguments else "Sqrt"
    return f"sot.concave.{name}({arguments[name]})"


def _piecewise(scene: Scene, length: float) -> str:
    count = int(scene.rng.integers(0, 4))
    breaks = np.cumsum(length * scene.rng.uniform(0.1, 1.0, count))
    slopes = np.sort(scene.rng.uniform(0.0, 2.0, count + 1))[::-1]
    if scene.chance(0.3):
        slopes[-1] = 0.0
    return f"sot.concave.PiecewiseLinear({breaks.tolist()}, {slopes.tolist()})"


# ---------------------------------------------------------------- groups of points


def labels(scene: Scene, size: int, missing: bool = True) -> list:
    """One label per point: numbers or names, some of them missing now and then."""
    count = int(scene.rng.integers(1, max(2, min(size, 5)) + 1))
    drawn = scene.rng.integers(0, count, size).tolist()
    if scene.chance(0.3):
        drawn = ["abcdefgh"[k] for k in drawn]
    if missing and scene.chance(0.15):
        drawn = [None if scene.chance(0.3) else label for label in drawn]
    return drawn


def index_lists(scene: Scene, size: int) -> list[list[int]]:
    """Groups of points that may overlap: sliding windows, or any sets."""
    if scene.chance(0.5):
        width = int(scene.rng.integers(1, min(size, 3) + 1))
        return [list(range(i, i + width)) for i in range(size - width + 1)]
    count = int(scene.rng.integers(1, 4))
    sizes = scene.rng.integers(1, size + 1, count).tolist()
    drawn = [tuple(sorted(scene.rng.permutation(size)[:k].tolist())) for k in sizes]
    # Each once: one list per point with repetitions looks like one-hot rows, and is refused.
    return [list(group) for group in dict.fromkeys(drawn)]


def _sides(scene: Scene, overlapping: bool) -> tuple[str, str]:
    """Groups of both sides; the target's may be None, every point its own group."""
    sides = []
    for k, size in enumerate(scene.shape):
        if k == 1 and scene.chance(0.3):
            sides.append("None")
        elif overlapping and scene.chance(0.8):
            sides.append(repr(index_lists(scene, size)))
        else:
            sides.append(repr(labels(scene, size)))
    return sides[0], sides[1]


# ---------------------------------------------------------------- structures


def groups(scene: Scene, overlapping: bool = False) -> str:
    source, target = _sides(scene, overlapping)
    units = str(scene.pick("cost", "block"))
    g = concave_function(scene, units)
    if scene.chance(0.1):
        g = f"lambda k, l: ({g}, {concave_function(scene, units)})[(k + l) % 2]"
    equal = ", equal_coverage=True" if scene.chance(0.5 if overlapping else 0.1) else ""
    return f"sot.Groups({source}, {target}, {g}, units={units!r}{equal})"


def overlapping_groups(scene: Scene) -> str:
    return groups(scene, overlapping=True)


def hierarchy(scene: Scene) -> str:
    levels = []
    for size in scene.shape:
        fine = scene.rng.integers(0, max(1, min(size, 6)), size)
        side = [fine.tolist(), (fine // 2).tolist(), (fine // 4).tolist()]
        levels.append(side)
    depth = int(scene.rng.integers(1, 4))
    source, target = (repr(side[:depth]) for side in levels)
    target = "None" if scene.chance(0.3) else target
    units = str(scene.pick("cost", "block"))
    g = concave_function(scene, units)
    if scene.chance(0.5):
        g = "[" + ", ".join(concave_function(scene, units) for _ in range(depth)) + "]"
    weights = scene.rng.uniform(0.0, 2.0, depth).tolist() if scene.chance(0.4) else None
    return f"sot.Hierarchy({source}, {target}, {g}, {weights}, units={units!r})"


def modular(scene: Scene) -> str:
    if scene.chance(0.4):
        return "sot.Modular()"
    return f"sot.Modular({array(scene.unit * scene.rng.random(scene.shape))})"


def coverage(scene: Scene) -> str:
    units = str(scene.pick("cost", "block"))
    price = scene.size(-3, 0.5) if units == "block" else scene.price(-2, 1.5)
    source, target = _sides(scene, overlapping=scene.chance(0.3))
    if scene.chance(0.1):
        price = 0.0
    plain = f"sot.Coverage({source}, {target}, {number(price)}, units={units!r})"
    if scene.chance(0.6):
        return _with_cost(scene, plain)
    sides = [labels(scene, size, missing=False) for size in scene.shape]
    prices = price * scene.rng.random([len(set(side)) for side in sides])
    prices[scene.rng.random(prices.shape) < 0.2] = 0.0
    code = f"sot.Coverage({sides[0]!r}, {sides[1]!r}, {array(prices)}, units={units!r})"
    return _with_cost(scene, code)


def set_coverage(scene: Scene) -> str:
    count = int(scene.rng.integers(1, 7))
    masks = scene.rng.random((count, *scene.shape)) < scene.rng.uniform(0.1, 0.8)
    prices = scene.price(-2, 1.5) * scene.rng.random(count)
    return _with_cost(scene, f"sot.Coverage.of_sets({array(masks)}, {array(prices)})")


def _features(scene: Scene, size: int) -> str:
    width = int(scene.rng.integers(1, 4))
    if scene.chance(0.5):
        return repr(scene.rng.integers(0, 3, (size, width)).astype(float).tolist())
    return repr(scene.rng.normal(size=(size, width)).round(3).tolist())


def rank(scene: Scene) -> str:
    source, target = (_features(scene, size) for size in scene.shape)
    target = "None" if scene.chance(0.4) else target
    return _with_cost(scene, f"{number(scene.price(-2, 1))} * sot.Rank({source}, {target})")


def log_det(scene: Scene) -> str:
    source, target = (_features(scene, size) for size in scene.shape)
    target = "None" if scene.chance(0.4) else target
    code = f"sot.LogDet({source}, {target}, sigma={number(scene.size(-2, 2))})"
    return _with_cost(scene, f"{number(scene.price(-2, 1))} * {code}")


def chain(scene: Scene) -> str:
    along = scene.pick("both", "rows", "columns")
    code = f"sot.ChainCut({number(scene.price(-2, 1))}, along={along!r})"
    return _with_cost(scene, code)


def graph(scene: Scene) -> str:
    sides = [_graph(scene, size) for size in scene.shape]
    neighbors = "one"
    if scene.chance(0.4):
        neighbors = "both"
    elif scene.chance(0.4):
        sides[1] = "None"
    price = number(scene.price(-2, 1))
    return _with_cost(
        scene, f"sot.GraphCut({sides[0]}, {sides[1]}, {price}, neighbors={neighbors!r})"
    )


def _graph(scene: Scene, size: int) -> str:
    """A random graph on the points, as a list of pairs or a matrix of weights."""
    joined = np.triu(scene.rng.random((size, size)) < min(1.0, 2.5 / size), 1)
    if scene.chance(0.5):
        return repr([(int(i), int(k)) for i, k in np.argwhere(joined)])
    weights = np.where(joined, scene.rng.random((size, size)), 0.0)
    return array(weights + weights.T)


def set_function(scene: Scene) -> str:
    price = number(scene.price(-2, 1))
    weights = array(scene.rng.random(scene.shape).round(3))
    bodies = (
        f"{price} * float(S.any(axis=1).sum()) ** 0.5",
        f"{price} * float(min(S.sum(), 3))",
        f"{price} * float((S * {weights}).sum()) ** 0.7",
        f"{price} * float(S.any(axis=0).sum() + S.any(axis=1).sum())",
        f"{price} * float(S.sum() * (S.size - S.sum()))",
    )
    code = f"sot.SetFunction(lambda S: {scene.pick(*bodies)})"
    if scene.chance(0.2):
        support = scene.rng.random(scene.shape) < 0.6
        code = f"{code[:-1]}, support={array(support)})"
    return _with_cost(scene, code)


def convex(scene: Scene) -> str:
    c = number(scene.price(-1, 1))
    return f"sot.Modular() + sot.ConvexCost(lambda P: {c} * (P**2).sum(), lambda P: 2 * {c} * P)"


def routes(scene: Scene) -> str:
    sides = [labels(scene, size, missing=scene.chance(0.2)) for size in scene.shape]
    shown = [repr(side) if scene.chance(0.9) else "None" for side in sides]
    units = str(scene.pick("mean", "cost"))
    charge = scene.size(-3, 1.5) if units == "mean" else scene.price(-3, 1)
    price = number(0.0 if scene.chance(0.05) else charge)
    if "None" not in " ".join(shown) and scene.chance(0.3):
        prices = charge * scene.rng.random([len(set(side)) for side in sides])
        prices[scene.rng.random(prices.shape) < 0.2] = 0.0
        price = array(prices)
    code = f"sot.Routes({shown[0]}, {shown[1]}, {price}, units={units!r})"
    return f"{number(scene.size(-1, 1))} * {code} + {modular(scene)}" if scene.chance(0.2) else code


def _with_cost(scene: Scene, code: str) -> str:
    """Usually beside the ground cost, which such a structure does not see by itself."""
    return f"sot.Modular() + {code}" if scene.chance(0.85) else code


def combination(scene: Scene) -> str:
    """A sum of two or three structures with fast layers, each with a factor now and then."""
    parts = (groups, groups, overlapping_groups, hierarchy, modular, coverage, chain, graph)
    codes = []
    for _ in range(int(scene.rng.integers(2, 4))):
        part = scene.pick(*parts)
        factor = scene.pick(0.0, 1.0, 1.0, 0.5, 2.0, 0.01)
        body = part(scene)  # type: ignore[operator]
        codes.append(body if factor == 1.0 else f"{factor} * ({body})")
    return " + ".join(codes)


def plain(scene: Scene) -> str:
    return "None"


FAMILIES: dict[str, tuple[Callable[[Scene], str], float]] = {
    "none": (plain, 5),
    "modular": (modular, 3),
    "groups": (groups, 28),
    "overlapping groups": (overlapping_groups, 10),
    "hierarchy": (hierarchy, 7),
    "coverage": (coverage, 14),
    "coverage of sets": (set_coverage, 7),
    "rank": (rank, 3),
    "log det": (log_det, 3),
    "chain cut": (chain, 5),
    "graph cut": (graph, 5),
    "set function": (set_function, 3),
    "convex": (convex, 0.5),
    "routes": (routes, 10),
    "sum": (combination, 10),
}
# Families known by values only: projections are min-norm points, and large problems take minutes.
GENERIC = ("rank", "log det", "set function")
