"""``structot colors``: one image in the colours of another."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from structot._extras import optional
from structot._files import refuse_existing, whole_file
from structot._pixels import Pixels
from structot._typing import Array
from structot.cli._common import DONE, NO_GAP, Debug, Force, console, existing_file

if TYPE_CHECKING:
    from structot.image import ColorTransfer

__all__ = ["colors"]

_SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp")
_PLAIN = (".jpg", ".jpeg", ".bmp")  # 8 bits, no transparency


def colors(
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="Image to recolour.")],
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="Image whose colours to take.")],
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help=f"Where to write: {', '.join(_SUFFIXES)}.")
    ],
    alpha: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=1.0,
            help="From 0 (a region moves as one) to 1 (plain transport); 0.3 by default.",
        ),
    ] = None,
    compare: Annotated[
        bool,
        typer.Option("--compare", help="Also draw EMD and entropic transport, beside OUT."),
    ] = False,
    method: Annotated[str, typer.Option(help="auto, routes, emd, entropic, splitting.")] = "auto",
    segments: Annotated[str, typer.Option(help="felzenszwalb or slic.")] = "felzenszwalb",
    n_segments: Annotated[int, typer.Option(help="About how many regions.")] = 50,
    samples: Annotated[int, typer.Option(help="Sampled pixels of each image.")] = 1000,
    space: Annotated[str, typer.Option(help="rgb or lab.")] = "rgb",
    tol: Annotated[float, typer.Option(help="Certified relative gap at which to stop.")] = 5e-2,
    time_limit: Annotated[float | None, typer.Option(help="Seconds.")] = None,
    seed: Annotated[int, typer.Option(help="Of the sample.")] = 0,
    force: Force = False,
    debug: Debug = False,
) -> None:
    """Recolour an image, its regions moving together.

    Examples:

    - `structot colors photo.png palette.jpg recoloured.png`

    - `structot colors photo.png palette.jpg recoloured.png --alpha 0.1 --compare`

    - `structot colors photo.png palette.jpg plain.png --method emd`
    """
    from structot.image import PLAIN_METHODS, ROUTES, ColorTransfer
    from structot.solvers.solve import ConvergenceWarning

    beside = _beside(out) if compare else None
    if out.suffix.lower() not in _SUFFIXES:
        raise ValueError(f"{out}: unknown kind of image; pass {', '.join(_SUFFIXES)}.")
    refuse_existing(out, force)
    refuse_existing(beside, force)
    images = read_image(source), read_image(target)
    _refuse_loss(out, *images)
    if alpha is not None and method in (*PLAIN_METHODS, ROUTES):
        raise ValueError(f"--alpha has no effect with --method {method}; leave it out.")
    options: dict[str, Any] = {} if alpha is None else {"alpha": alpha}
    options |= {"n_samples": samples, "n_segments": n_segments}
    options |= {"space": space, "time_limit": time_limit, "random_state": seed}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # said below
        answer = ColorTransfer.of(*images, segments=segments, method=method, tol=tol, **options)
        shown = {} if beside is None else _compared(images, method, options, answer)
    # Written when all is computed: after Ctrl-C there is nothing, not one of two.
    _write_image(out, answer.image)
    if beside is not None:
        _draw(beside, shown)
    result = answer.result
    console().print(
        f"{answer.source_segments.max() + 1} and {answer.target_segments.max() + 1} regions, "
        f"gap {result.gap:.1e} (asked for {tol:.1e}), {result.time:.1f} s by {result.method}"
    )
    console().print(f"wrote {out}" + (f" and {beside}" if beside else ""), markup=False)
    raise typer.Exit(DONE if result.converged else NO_GAP)


def _beside(out: Path) -> Path:
    """Where the comparison goes, if it can be drawn: to be told before the work, not after it."""
    optional("matplotlib", "--compare")
    return out.with_name(f"{out.stem}-compare.png")


def _compared(
    images: tuple[Array, Array], method: str, options: dict[str, Any], answer: ColorTransfer
) -> dict[str, Array]:
    """The pictures of the comparison by name, with the same regions; the answer comes last."""
    from structot.image import PLAIN_METHODS, ColorTransfer

    segments = answer.source_segments, answer.target_segments
    shown = {"source": images[0], "colours from": images[1]}
    for name in PLAIN_METHODS:
        if name != method:
            of = ColorTransfer.of(*images, method=name, segments=segments, **options)
            shown[name] = of.image
    shown[method if method in PLAIN_METHODS else "structured"] = answer.image
    return shown


def read_image(path: Path) -> Array:
    """The pixels of an image file."""
    existing_file(path)
    io = optional("skimage.io", "reading images")
    try:
        image = np.asarray(io.imread(path))
    except Exception as error:  # every reader has errors of its own
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"{path} cannot be read as an image: {reason}") from None
    if path.suffix.lower() in (".jpg", ".jpeg") and image.shape[2:] == (4,):
        raise ValueError(f"{path} holds CMYK colours; convert it to RGB.")  # it has no alpha
    return image[0] if image.ndim == 4 and len(image) == 1 else image  # a film of one picture


def _refuse_loss(out: Path, source: Array, target: Array) -> None:
    """Some formats have no place for transparency or 16 bits; leaving them out needs a word."""
    suffix = out.suffix.lower()
    grey = all(image.ndim == 2 for image in (source, target))
    if suffix == ".png" and source.dtype == np.uint16 and not grey:
        raise ValueError(f"{out}: colour with 16 bits needs a .tif here.")
    if suffix in _PLAIN and source.ndim == 3 and source.shape[2] in (2, 4):
        raise ValueError(f"{out}: {suffix} has no alpha channel; write a .png or .tif.")
    if suffix in _PLAIN and source.dtype != np.uint8:
        raise ValueError(f"{out}: {suffix} holds 8 bits, the source is {source.dtype}.")


def _write_image(path: Path, image: Array) -> None:
    from skimage import io

    if image.dtype.kind == "f" and path.suffix.lower() not in (".tif", ".tiff"):
        image = np.rint(255 * image).astype(np.uint8)
    with whole_file(path) as aside:
        io.imsave(aside, image, check_contrast=False)


def _draw(path: Path, shown: dict[str, Array]) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1, len(shown), figsize=(3.2 * len(shown), 3.6), layout="constrained"
    )
    for ax, (title, image) in zip(axes, shown.items(), strict=True):
        # As RGB: grey values are not stretched, any depth is shown; the transparent stays white.
        pixels = Pixels.of(title, image)
        ax.imshow(np.where(pixels.visible[..., None], pixels.rgb, 1.0))
        ax.set_title("EMD" if title == "emd" else title, fontsize=10)
        ax.set_axis_off()
    with whole_file(path) as aside:
        figure.savefig(aside, dpi=130)
    plt.close(figure)
