"""``structot colors``: images in, an image out."""

import numpy as np
import pytest
from command import here, refused, structot

io = pytest.importorskip("skimage.io")
data = pytest.importorskip("skimage.data")

SMALL = ("--samples", 60, "--n-segments", 10)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("colors")
    io.imsave(path / "source.png", data.astronaut()[::8, ::8])
    io.imsave(path / "target.png", data.coffee()[::8, ::8])
    seen = np.full((64, 64, 1), 255, np.uint8)
    seen[:5] = 0
    io.imsave(path / "alpha.png", np.concatenate([data.astronaut()[::8, ::8], seen], axis=2))
    io.imsave(path / "deep.tif", data.astronaut()[::8, ::8].astype(np.uint16) * 257)
    (path / "text.png").write_text("no picture")
    return path


def test_a_recoloured_image_and_a_comparison(folder):
    words = ("colors", "source.png", "target.png", "out.png", "--compare", *SMALL)
    answer = structot(*words, cwd=folder)
    assert answer.returncode == 0, answer.stderr
    assert "gap" in answer.stdout
    assert "wrote out.png and out-compare.png" in answer.stdout
    image = io.imread(folder / "out.png")
    source, target = io.imread(folder / "source.png"), io.imread(folder / "target.png")
    assert image.shape == source.shape
    # The mean colour has moved from the source's to the target's.
    distance = [np.abs(image.mean((0, 1)) - x.mean((0, 1))).sum() for x in (source, target)]
    assert distance[1] < 0.3 * distance[0]
    assert io.imread(folder / "out-compare.png").shape[1] > 1000
    assert refused(here(*words, cwd=folder), "out.png", "--force")
    assert not [entry for entry in folder.iterdir() if "part" in entry.name]


def test_transparency_is_kept_or_refused(folder):
    words = ("colors", "alpha.png", "target.png")
    assert refused(here(*words, "out.jpg", *SMALL, cwd=folder), "alpha channel")
    answer = here(*words, "kept.png", *SMALL, "--method", "emd", cwd=folder)
    assert answer.returncode == 0, answer.stderr
    kept, source = io.imread(folder / "kept.png"), io.imread(folder / "alpha.png")
    np.testing.assert_array_equal(kept[..., 3], source[..., 3])
    np.testing.assert_array_equal(kept[:5], source[:5])


def test_grey_images_are_compared_as_they_are(folder):
    """Their contrast is not stretched: what is shown is no lighter than the lightest pixel."""
    grey = np.tile(np.arange(60, 124, dtype=np.uint8), (64, 1))
    seen = np.full_like(grey, 255)
    io.imsave(folder / "veiled.png", np.stack([grey, seen], axis=2), check_contrast=False)
    io.imsave(folder / "grey16.png", grey.astype(np.uint16) * 257, check_contrast=False)
    words = ("colors", "veiled.png", "grey16.png", "grey.png", "--compare", "--method", "emd")
    answer = here(*words, *SMALL, cwd=folder)
    assert answer.returncode == 0, answer.stderr
    shown = io.imread(folder / "grey-compare.png")[..., 0]
    middle = shown[shown.shape[0] // 2]
    assert 120 <= middle[middle < 250].max() <= 126
    assert io.imread(folder / "grey.png").shape == (64, 64, 2)
    # Source, target, entropic, EMD: the answer itself is not called structured.
    assert shown.shape[1] == round(4 * 3.2 * 130)


def test_a_missed_gap_is_exit_code_one(folder):
    words = ("colors", "source.png", "target.png", "rough.png", *SMALL, "--tol", "1e-12")
    answer = here(*words, "--time-limit", "0.01", cwd=folder)
    assert answer.returncode == 1, answer.stderr
    assert (folder / "rough.png").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("absent.png", "target.png", "new.png"), ["absent.png does not exist"]),
        (("text.png", "target.png", "new.png"), ["text.png", "cannot be read as an image"]),
        (("source.png", "target.png", "new.gif"), ["unknown kind of image"]),
        (("deep.tif", "target.png", "new.png"), ["16 bits", ".tif"]),
        (("source.png", "target.png", "new.png", "--segments", "grid"), ["segments"]),
        (("source.png", "target.png", "new.png", "--alpha", "2"), ["--alpha", "1"]),
        (
            ("source.png", "target.png", "new.png", "--alpha", "0.3", "--method", "emd"),
            ["--alpha has no effect"],
        ),
    ],
)
def test_bad_input_is_one_line(folder, words, said):
    assert refused(here("colors", *words, cwd=folder), *said)
    assert not (folder / words[2]).exists()


def test_ctrl_c_says_what_is_true(folder, monkeypatch):
    """Nothing is written before all of it is computed."""
    from structot.image import PLAIN_METHODS, ColorTransfer

    of = ColorTransfer.of

    def interrupting(*images, method, **options):
        if method in PLAIN_METHODS:
            raise KeyboardInterrupt
        return of(*images, method=method, **options)

    monkeypatch.setattr(ColorTransfer, "of", interrupting)
    words = ("colors", "source.png", "target.png", "stopped.png", "--compare", *SMALL)
    answer = here(*words, cwd=folder)
    assert answer.returncode == 130
    assert answer.stderr.strip() == "structot: interrupted; nothing was kept."
    assert not (folder / "stopped.png").exists()
