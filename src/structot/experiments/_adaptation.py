"""Domain adaptation compared fairly: the methods, their grids, tuning, tables and pictures.

Every method is treated alike: its parameters are those of its grid with the best mean accuracy on
the tuning seeds, where samples and scores come from the training images only; the reported seeds
and the test images are touched once, with the parameters fixed. `digits` and `small_digits` supply
the images.

Notation
--------
Xs, ys, Xt      a source sample with labels and a target sample, 100 unit vectors each
domain          a named set of images in two parts, "train" to draw from and "test" to report on
"""

from __future__ import annotations

import hashlib
import itertools
import json
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from structot._typing import Array
from structot.experiments._runner import Records, Task
from structot.solvers.solve import solve
from structot.structures import Coverage, Modular

Parameters = dict[str, Any]

SAMPLE = 100  # points per domain
HELD_OUT = 2000  # training images of the target on which the tuning seeds are scored
TUNING_SEEDS = range(100, 105)
SAMPLINGS = ("balanced", "random")


@dataclass(frozen=True, eq=False)
class Domain:
    """Unit vectors (count, pixels) and labels, in two parts."""

    x_train: Array
    y_train: Array
    x_test: Array
    y_test: Array


@dataclass(frozen=True)
class Setting:
    """One column of the table: a direction, a way of sampling, a blur of the images in pixels,
    and how many target points per class come with their label."""

    source: str
    target: str
    sampling: str = "balanced"
    blur: float = 0.0
    known: int = 0

    @property
    def name(self) -> str:
        blurred = f"-blur{self.blur:g}" if self.blur else ""
        labelled = f"-known{self.known}" if self.known else ""
        return f"{self.source}-{self.target}-{self.sampling}{blurred}{labelled}"


class Identity:
    """No adaptation, with the methods of the others."""

    def fit(self, Xs: Array, ys: Array, Xt: Array, yt: Any = None) -> Identity:
        """Nothing to learn."""
        return self

    def transform(self, Xs: Array) -> Array:
        """The points as they are."""
        return Xs


@dataclass(frozen=True)
class Method:
    """A row of the table: how to make the estimator, and the grid its parameters come from."""

    key: str
    title: str
    make: Callable[..., Any]
    grid: tuple[Parameters, ...] = ({},)


def grid_of(**values: Iterable[Any]) -> tuple[Parameters, ...]:
    """Every combination of the values."""
    return tuple(dict(zip(values, point)) for point in itertools.product(*values.values()))


def _pot(kind: str, renamed: dict[str, str], **fixed: Any) -> Callable[..., Any]:
    """What makes an estimator of POT from parameters that have other names there."""

    def make(**parameters: Any) -> Any:
        import ot

        chosen = {renamed[name]: value for name, value in parameters.items()}
        return getattr(ot.da, kind)(metric="euclidean", norm="max", **fixed, **chosen)

    return make


def _paper(alpha: float) -> Any:
    from structot.adaptation import StructuredTransport
    from structot.concave import ThresholdSqrt

    return StructuredTransport(
        "groups", concave=ThresholdSqrt(alpha), metric="euclidean", cost_scale="mean"
    )


def _structured(**parameters: Any) -> Any:
    from structot.adaptation import StructuredTransport

    return StructuredTransport(**parameters)


class FirstDefaults:
    """`StructuredTransport()` as it was in 0.1: costs and prices in units of the mean cost."""

    def fit(self, Xs: Array, ys: Array, Xt: Array) -> FirstDefaults:
        """The plan, from the library's own verb."""
        M = cdist(Xs, Xt)
        structure = Modular() + Coverage(ys, None, 0.02, units="block")
        self.result_ = solve(M / M.mean(), structure=structure, reg=0.05, tol=1e-3)
        self.coupling_, self.target = self.result_.plan, Xt
        return self

    def transform(self, Xs: Array) -> Array:
        """Barycentric images of the points of `fit`."""
        return self.result_.barycentric_map(self.target)


class Selected:
    """Structured transport whose parameters are chosen on the samples alone, as a user would."""

    def fit(self, Xs: Array, ys: Array, Xt: Array) -> Any:
        """The candidate that `select` finds best, fitted."""
        from structot.adaptation import select

        grid = grid_of(charge=(0.1, 0.2, 0.3), reg=(0.2, 0.4))
        found = select([_structured(**point) for point in grid], Xs, ys, Xt)
        return found.best.fit(Xs=Xs, ys=ys, Xt=Xt)


_CHARGES, _REGS = (0.1, 0.15, 0.2, 0.3, 0.5), (0.2, 0.3, 0.4, 0.6)
_LASSO = {"reg": "reg_e", "weight": "reg_cl"}
OURS = "structured"
METHODS = (
    Method("none", "no adaptation", Identity),
    Method("emd", "EMD", _pot("EMDTransport", {})),
    Method(
        "entropic",
        "entropic",
        _pot("SinkhornTransport", {"reg": "reg_e"}, tol=1e-6),
        grid_of(reg=(0.02, 0.03, 0.04, 0.05, 0.07, 0.1, 0.14)),
    ),
    Method(
        "laplace",
        "Laplace",
        # 20 steps of conditional gradient in place of POT's 100, for its price.
        _pot(
            "EMDLaplaceTransport",
            {"weight": "reg_lap", "neighbors": "similarity_param"},
            reg_src=0.5,
            max_iter=20,
        ),
        grid_of(weight=(3.0, 10.0, 30.0, 100.0, 300.0), neighbors=(3, 7)),
    ),
    Method(
        "lasso",
        "group lasso ℓp-ℓ1",
        _pot("SinkhornLpl1Transport", _LASSO),
        grid_of(reg=(0.05, 0.08, 0.12, 0.18, 0.27), weight=(0.02, 0.035, 0.06, 0.1)),
    ),
    Method(
        "lasso_l2",
        "group lasso ℓ1-ℓ2",
        _pot("SinkhornL1l2Transport", _LASSO, max_iter=10, max_inner_iter=100),
        grid_of(reg=(0.01, 0.02, 0.035, 0.05, 0.07), weight=(0.25, 0.5, 1.0, 2.0)),
    ),
    Method(
        "paper",
        "structured, exact, the paper's model",
        _paper,
        grid_of(alpha=(0.01, 0.1, 1.0, 10.0)),
    ),
    Method(
        OURS, "structured, fixed charge + entropy", _structured, grid_of(charge=_CHARGES, reg=_REGS)
    ),
    Method(
        "ward",
        "structured, Ward target groups",
        _structured,
        grid_of(target_groups=("clusters",), charge=_CHARGES, reg=_REGS),
    ),
    Method("default", "structured, defaults, untuned", _structured),
    Method("first", "structured, defaults of 0.1", FirstDefaults),
    Method("selected", "structured, chosen without labels", Selected),
)
BY_KEY = {method.key: method for method in METHODS}
FIGURE_METHODS = ("none", "emd", "entropic", "lasso", "paper", OURS)


def sample(domain: Domain, sampling: str, rng: np.random.Generator, size: int = SAMPLE) -> Array:
    """Indices of training images, sorted by class: equally many per class, or simply at random."""
    labels = domain.y_train
    if sampling == "random":
        chosen = rng.choice(len(labels), size, replace=False)
        return chosen[np.argsort(labels[chosen], kind="stable")]
    per_class = size // 10
    return np.concatenate(
        [rng.choice(np.flatnonzero(labels == c), per_class, replace=False) for c in range(10)]
    )


def nearest_label(X: Array, labels: Array, queries: Array) -> Array:
    """1-NN: the label of the nearest row of X, by one matrix product."""
    squared = (X * X).sum(axis=1)[:, None] - 2.0 * (X @ queries.T)  # (n, queries), less |query|²
    return np.asarray(labels[squared.argmin(axis=0)])


def evaluate(
    load: Callable[..., dict[str, Domain]],
    options: dict[str, Any],
    setting: Setting,
    method: str,
    grid: list[Parameters],
    seed: int,
    tuning: bool,
    keep: bool = False,
) -> dict[str, Any]:
    """The accuracy of one method on one pair of samples, for each of some parameters."""
    domains = load(**options, blur=setting.blur)
    source, target = domains[setting.source], domains[setting.target]
    # One stream per seed: every method sees the same samples, so that differences are paired.
    rng = np.random.default_rng(seed)
    i, j = (sample(domain, setting.sampling, rng) for domain in (source, target))
    Xs, ys, Xt = source.x_train[i], source.y_train[i].astype(np.int64), target.x_train[j]
    yt = _known_labels(target.y_train[j].astype(np.int64), setting.known)
    queries, truth = target.x_test, target.y_test
    if tuning:
        rest = np.setdiff1d(np.arange(len(target.y_train)), j)
        rest = rng.permutation(rest)[:HELD_OUT]
        queries, truth = target.x_train[rest], target.y_train[rest]
    record: dict[str, Any] = {"accuracy": [], "gap": [], "plan_mass": []}
    for parameters in grid:
        estimator = BY_KEY[method].make(**parameters)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimator = _fitted(estimator, Xs, ys, Xt, yt)
            moved = estimator.transform(Xs=Xs)
        # Target points whose labels are known are training points too, for every method.
        points, labels = np.vstack([moved, Xt[~yt.mask]]), np.append(ys, yt.compressed())
        finite = bool(np.isfinite(points).all())
        found = nearest_label(points, labels, queries) if finite else np.full(len(truth), -1)
        record["accuracy"].append(100.0 * float(np.mean(found == truth)))
        result, plan = (getattr(estimator, name, None) for name in ("result_", "coupling_"))
        record["gap"].append(None if result is None else float(result.gap))
        record["plan_mass"].append(None if plan is None else _kept_mass(plan))
        if keep:
            record["moved"] = np.asarray(moved, np.float32)
            record["source_labels"], record["target_labels"] = ys, target.y_train[j]
            record["plan"] = np.zeros(0) if plan is None else np.asarray(plan, np.float32)
    return record


def _known_labels(labels: Array, known: int) -> np.ma.MaskedArray:
    """The labels with all but the first ``known`` of each class masked."""
    mask = np.ones(len(labels), bool)
    for label in np.unique(labels):
        mask[np.flatnonzero(labels == label)[:known]] = False
    return np.ma.masked_array(labels, mask=mask)


def _fitted(estimator: Any, Xs: Array, ys: Array, Xt: Array, yt: np.ma.MaskedArray) -> Any:
    """The estimator fitted, with known target labels in its own convention; POT's is -1."""
    if yt.mask.all():
        return estimator.fit(Xs=Xs, ys=ys, Xt=Xt)
    ours = type(estimator).__module__.startswith("structot")
    return estimator.fit(Xs=Xs, ys=ys, Xt=Xt, yt=yt if ours else yt.filled(-1))


def _kept_mass(plan: Array) -> float:
    """1 less the larger total marginal error: 1 for a true plan of uniform points."""
    errors = [
        float(np.abs(plan.sum(axis=axis) - 1.0 / plan.shape[1 - axis]).sum()) for axis in (0, 1)
    ]
    return 1.0 - max(errors)


@dataclass(frozen=True)
class Comparison:
    """Which settings, methods and seeds are compared on which images."""

    load: Callable[..., dict[str, Domain]]
    options: dict[str, Any]
    settings: tuple[Setting, ...]
    methods: tuple[str, ...]
    seeds: int
    tuning_seeds: tuple[int, ...] = tuple(TUNING_SEEDS)
    thin: int = 1  # every how many-th point of a grid is tried; odd, to vary both parameters
    figures: str = ""  # name of the setting whose plans of seed 0 are kept

    def grid(self, method: str) -> list[Parameters]:
        """The candidates of a method, the middle one among them."""
        grid = BY_KEY[method].grid
        return list(grid[(len(grid) // 2) % self.thin :: self.thin])

    def tasks(self, done: Records) -> list[Task]:
        """First the tuning; once it is done, the reported runs with what it chose."""
        first = [
            self._task(setting, method, self.grid(method), seed, True)
            for setting in self.settings
            for method in self._tuned()
            for seed in self.tuning_seeds
        ]
        if any(task.key not in done for task in first):
            return first
        chosen = self.chosen(done)
        return first + [
            self._task(setting, method, [chosen[setting.name][method]], seed, False)
            for setting in self.settings
            for seed in range(self.seeds)
            for method in self.methods
        ]

    def chosen(self, done: Records) -> dict[str, dict[str, Parameters]]:
        """The best parameters by setting and method, from the tuning seeds alone."""
        table: dict[str, dict[str, Parameters]] = {}
        for setting in self.settings:
            row = {method: BY_KEY[method].grid[0] for method in self.methods}
            for method in self._tuned():
                grid = self.grid(method)
                runs = [
                    done[self._task(setting, method, grid, seed, True).key]["accuracy"]
                    for seed in self.tuning_seeds
                ]
                row[method] = grid[int(np.mean(runs, axis=0).argmax())]
            table[setting.name] = row
        return table

    def runs(self, done: Records, setting: Setting, method: str) -> list[dict[str, Any]]:
        """The reported records of one cell of the table, one per seed."""
        parameters = [self.chosen(done)[setting.name][method]]
        keys = [
            self._task(setting, method, parameters, seed, False).key for seed in range(self.seeds)
        ]
        return [done[key] for key in keys]

    def _tuned(self) -> list[str]:
        return [method for method in self.methods if len(BY_KEY[method].grid) > 1]

    def _task(
        self, setting: Setting, method: str, grid: list[Parameters], seed: int, tuning: bool
    ) -> Task:
        drawn = setting.name == self.figures and method in FIGURE_METHODS
        keep = drawn and seed == 0 and not tuning
        text = json.dumps([SAMPLE, HELD_OUT, keep, grid], sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:10]
        stage = "tune" if tuning else "report"
        arguments = {
            "load": self.load,
            "options": self.options,
            "setting": setting,
            "method": method,
            "grid": grid,
            "seed": seed,
            "tuning": tuning,
            "keep": keep,
        }
        return Task(f"{stage}-{setting.name}-{method}-{seed}-{digest}", evaluate, arguments)
