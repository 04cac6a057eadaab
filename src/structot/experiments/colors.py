"""The paper's Figure 2: colour transfer between two photographs by three kinds of transport.

The photographs ship inside scikit-image.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from structot._extras import optional
from structot._typing import Array
from structot.experiments._runner import Experiment, Records, Report, Settings, Task
from structot.experiments._tables import certificate, reached, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT", "compute", "photograph"]

PAIRS = (("astronaut", "coffee"), ("chelsea", "coffee"), ("coffee", "rocket"))
ALPHAS = (0.1, 0.3, 0.5)
REGS = (0.02, 0.1, 0.3)  # of the mean cost
SHOWN = ("emd", "entropic-0.1", "alpha-0.3")
TOL = 2e-2


def photograph(name: str, step: int = 1) -> Array:
    """A photograph of scikit-image, every ``step``-th pixel of it."""
    return getattr(optional("skimage.data", "a photograph"), name)()[::step, ::step]


def compute(source: str, target: str, step: int, n_samples: int, **options: Any) -> dict[str, Any]:
    """One recoloured photograph and the two measures, in the regions of the source."""
    from structot.image import ColorTransfer, sharpness, spread

    images = photograph(source, step), photograph(target, step)
    answer = ColorTransfer.of(
        *images, n_samples=n_samples, tol=TOL, time_limit=120.0, random_state=0, **options
    )
    return {
        **certificate(answer.result, TOL),
        "image": answer.image,
        "spread": spread(answer.image, answer.source_segments),
        "sharpness": sharpness(answer.image, answer.source_segments),
        "source_spread": spread(images[0], answer.source_segments),
        "source_sharpness": sharpness(images[0], answer.source_segments),
        "segments": [int(answer.source_segments.max()) + 1, int(answer.target_segments.max()) + 1],
    }


def _variants() -> dict[str, dict[str, Any]]:
    return {
        "emd": {"method": "emd"},
        **{f"entropic-{reg:g}": {"method": "entropic", "reg": reg} for reg in REGS},
        **{f"alpha-{alpha:g}": {"alpha": alpha} for alpha in ALPHAS},
    }


def _key(pair: tuple[str, str], variant: str, settings: Settings) -> str:
    return "-".join((*pair, variant, "quick" if settings.quick else "full"))


def _words(variant: str) -> str:
    kind, _, number = variant.partition("-")
    return {
        "emd": "EMD",
        "entropic": f"entropic, reg {number} mean(M)",
        "alpha": f"structured, α = {number}",
    }[kind]


def _pairs(settings: Settings) -> tuple[tuple[str, str], ...]:
    return PAIRS[:1] if settings.quick else PAIRS


def tasks(settings: Settings, done: Records) -> list[Task]:
    """One picture each; ``quick`` takes half the resolution and fewer samples."""
    size = {"step": 2, "n_samples": 400} if settings.quick else {"step": 1, "n_samples": 1000}
    return [
        Task(
            _key(pair, variant, settings),
            compute,
            {"source": pair[0], "target": pair[1], **size, **options},
        )
        for pair in _pairs(settings)
        for variant, options in _variants().items()
    ]


def report(settings: Settings, done: Records) -> Report:
    """Spread and sharpness by pair and method, and whether the paper's claim holds."""
    results: dict[str, Any] = {"pairs": {}}
    parts = [
        "Spread: root mean square distance of a pixel's colour from the mean of its region "
        "(smaller is more uniform). Sharpness: mean colour step between neighbouring pixels "
        "of different regions (larger is sharper). Both in the regions of the source."
    ]
    for pair in _pairs(settings):
        records = {v: done[_key(pair, v, settings)] for v in _variants()}
        verdict = _verdict(records)
        fields = ("spread", "sharpness", "gap", "seconds")
        results["pairs"][" to ".join(pair)] = {
            **{v: {name: r[name] for name in fields} for v, r in records.items()},
            **verdict,
        }
        first = records["emd"]
        rows = [["source itself", first["source_spread"], first["source_sharpness"], "", ""]]
        rows += [[_words(v), *(r[name] for name in fields)] for v, r in records.items()]
        head = ["transport", "spread", "sharpness", "gap", "seconds of the solve"]
        held = f"{verdict['holds']} of {verdict['comparisons']}"
        parts.append(
            f"**{pair[0]} in the colours of {pair[1]}.** More uniform than EMD and sharper "
            f"than entropic, over all α and reg: {held} comparisons.\n\n" + table(head, rows)
        )
    results["gaps_reached"] = reached(done.values())
    figures = {
        "-".join(pair): partial(draw_pair, pair, settings, done) for pair in _pairs(settings)
    }
    captions = {
        "-".join(pair): f"{pair[0].capitalize()} in the colours of {pair[1]}. Below, plain, "
        "entropic and structured transport: look at the noise inside regions and at the edges. "
        "Upper right: both measures, better to the left and upwards."
        for pair in _pairs(settings)
    }
    return Report(results, "\n\n".join(parts), figures, captions)


def _verdict(records: Records) -> dict[str, int]:
    """How many of the paper's comparisons hold: spread below EMD's, step above entropic ones'."""
    structured = [record for name, record in records.items() if name.startswith("alpha")]
    entropic = [record for name, record in records.items() if name.startswith("entropic")]
    uniform = [r["spread"] < records["emd"]["spread"] for r in structured]
    sharper = [r["sharpness"] > e["sharpness"] for r in structured for e in entropic]
    return {"holds": sum(uniform) + sum(sharper), "comparisons": len(uniform) + len(sharper)}


def draw_pair(pair: tuple[str, str], settings: Settings, done: Records) -> Figure:
    """Source, target and three transfers, and where each lies by both measures."""
    import matplotlib.pyplot as plt
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    from structot.plot import COLORS

    step = 2 if settings.quick else 1
    layout = ConstrainedLayoutEngine(hspace=0.08)  # a title stands below the label of an axis
    figure, axes = plt.subplots(2, 3, figsize=(10.5, 6.4), layout=layout)
    shown = {"source": photograph(pair[0], step), "colours from": photograph(pair[1], step)}
    shown |= {_words(v): done[_key(pair, v, settings)]["image"] for v in SHOWN}
    places = (axes[0, 0], axes[0, 1], axes[1, 0], axes[1, 1], axes[1, 2])
    for ax, (title, image) in zip(places, shown.items(), strict=True):
        ax.imshow(image)
        ax.set_axis_off()
        ax.set_title(title, fontsize=10)
    ax = axes[0, 2]
    marks = {"emd": ("s", COLORS[5]), "entropic": ("^", COLORS[2]), "alpha": ("o", COLORS[0])}
    for kind, (marker, color) in marks.items():
        points = [
            (done[key]["spread"], done[key]["sharpness"])
            for key in (_key(pair, v, settings) for v in _variants() if v.startswith(kind))
        ]
        label = {"emd": "EMD", "alpha": "structured"}.get(kind, kind)
        x, y = zip(*points, strict=True)
        ax.plot(x, y, marker=marker, color=color, linestyle="-", linewidth=0.8, label=label)
    ax.set(xlabel="spread within regions (← more uniform)", ylabel="sharpness (↑ sharper)")
    ax.legend(frameon=False, fontsize=9)
    ax.set_box_aspect(0.8)
    return figure


EXPERIMENT = Experiment(
    "colors",
    "Colour transfer between photographs (Figure 2)",
    tasks,
    report,
    "Colours move region by region: compare the noise inside regions, and the edges.",
)
