"""Colour transfer between two photographs of a megapixel: seconds and memory against the goals.

The photographs ship with scikit-image and are enlarged to a megapixel each.
"""

from __future__ import annotations

import time
from functools import partial

import numpy as np

from benchmarks.measure import peak_memory, quietly, say
from benchmarks.rows import Row

PAIRS = (("astronaut", "coffee"), ("coffee", "rocket"))
SECONDS, BYTES = 20.0, 1.5e9  # the goals
TOL = 5e-2


def color_transfer(quick: bool) -> list[Row]:
    """A 1-megapixel photograph in the colours of another."""
    pixels = 100_000 if quick else 1_000_000
    rows = []
    for source, target in PAIRS[:1] if quick else PAIRS:
        case = f"{pixels / 1e6:g} megapixel, {source} in the colours of {target}"
        rows += _seconds(case, source, target, pixels)
        say("    memory")
        used = peak_memory(partial(_run, source, target), pixels, warm_size=10_000)
        rows.append(
            Row(
                task="color_transfer",
                case=f"{case}, peak memory",
                against="1.5 GB",
                ratio=used / BYTES,
                limit=1.0,
                goal="≤ 1.5 GB",
                kind="share",
                note=f"{used / 1e9:.2f} GB",
            )
        )
    return rows


def _seconds(case: str, source: str, target: str, pixels: int) -> list[Row]:
    from structot.image import ColorTransfer

    _run(source, target, 10_000)  # compilation and imports are over before the clock starts
    images = _photograph(source, pixels), _photograph(target, pixels)
    start, worked = time.perf_counter(), time.process_time()
    answer = quietly(lambda: ColorTransfer.of(*images, tol=TOL))
    seconds, processor = time.perf_counter() - start, time.process_time() - worked
    say(f"    {seconds:.1f} s, of processors {processor:.1f} s")
    return [
        Row(
            task="color_transfer",
            case=case,
            against="20 s",
            ratio=seconds / SECONDS,
            limit=1.0,
            goal="≤ 20 s",
            ours=seconds,
            baseline=SECONDS,
            gap=float(answer.result.gap),
            tol=TOL,
            method=answer.result.method,
            n_iter=answer.result.n_iter,
            note=f"{processor:.1f} s of processor time",
        )
    ]


def _run(source: str, target: str, pixels: int) -> None:
    from structot.image import ColorTransfer

    ColorTransfer.of(_photograph(source, pixels), _photograph(target, pixels), tol=TOL)


def _photograph(name: str, pixels: int) -> np.ndarray:
    """A photograph of scikit-image with about so many pixels."""
    from skimage import data, transform

    picture = getattr(data, name)()
    factor = np.sqrt(pixels / (picture.shape[0] * picture.shape[1]))
    shape = [round(side * factor) for side in picture.shape[:2]]
    return np.rint(255 * transform.resize(picture, shape)).astype(np.uint8)
