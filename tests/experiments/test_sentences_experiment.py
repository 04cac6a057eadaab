"""The experiment on sentences, run whole on a tiny corpus with an order that matters."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from structot.datasets import sick as sick_function
from structot.experiments import _sentence_numbers as numbers
from structot.experiments import _sentence_order as moved
from structot.experiments import _sentence_report as report
from structot.experiments import _sentence_speed as speed
from structot.experiments import _sentence_tasks as work
from structot.experiments._runner import Settings, run
from structot.experiments.sentences import EXPERIMENT
from structot.text import Parsed, WordMover

WORDS = [f"w{k}" for k in range(60)]


def write_corpus(folder, pairs_per_split=70):
    """Pairs that differ in as many words as their score says."""
    rng = np.random.default_rng(0)
    header = "split\tpair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"
    lines, parses = [header], []
    for split in ("train", "test"):
        for number in range(pairs_per_split):
            A = [WORDS[k] for k in rng.integers(0, 60, rng.integers(4, 8))]
            changed = int(rng.integers(0, 4))
            B = list(A)
            for place in rng.choice(len(A), changed, replace=False):
                B[place] = WORDS[rng.integers(0, 60)]
            row = (split, number, " ".join(A), " ".join(B), 5.0 - changed, "NEUTRAL")
            lines.append("\t".join(map(str, row)))
            entry = {"split": split, "pair_ID": number}
            for name, tokens in (("A", A), ("B", B)):
                # Subject, verb, object, and what hangs on it.
                relations = ["nsubj", "root", "dobj", *["dep"] * (len(tokens) - 3)]
                heads = [2, 0, 2, *range(3, len(tokens))]
                entry[name] = {"tokens": tokens, "heads": heads, "rels": relations}
            parses.append(json.dumps(entry))
    for name, text in (("sick.tsv.gz", lines), ("sick_parses.jsonl.gz", parses)):
        with gzip.open(folder / name, "wt", encoding="utf-8") as file:
            file.write("\n".join(text) + "\n")
    vectors = rng.normal(size=(60, 5)).astype(np.float32)
    np.savez(folder / "glove840b_300d_sick.npz", words=np.array(WORDS), vectors=vectors)
    appendix = sorted({w.lower() for text in work.APPENDIX.values() for w in text.split()})
    vectors = rng.normal(size=(len(appendix), 5)).astype(np.float32)
    np.savez(folder / "word_vectors.npz", words=np.array(appendix), vectors=vectors)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_corpus(tmp_path)
    module = __import__(sick_function.__module__, fromlist=["check_sha256"])
    monkeypatch.setattr(module, "check_sha256", lambda path, expected: path)
    work.load.cache_clear()
    yield tmp_path
    work.load.cache_clear()


def test_the_whole_experiment_on_a_tiny_corpus(folder, monkeypatch):
    monkeypatch.setattr(numbers, "RESAMPLES", 20)
    settings = Settings(data=folder, quick=True, seeds=2)
    result = run(EXPERIMENT, folder / "out", settings, progress=False).results
    order = result["order"]
    for kind in ("shuffled", "reversed", "roles"):
        assert order["wmd"][kind]["mean"] == 0.5  # order is invisible to it
        assert order["ngrams"][kind]["mean"] > 0.8
        assert order["dependency"][kind]["mean"] > 0.8
    assert order["sets"]["reversed"]["mean"] == 0.5  # the same windows
    assert order["wmd"]["roles, same voice"]["pairs"] == order["wmd"]["roles"]["pairs"]
    for entry in result["heard"].values():
        assert all(entry[kind]["heard"] == 1.0 for kind in moved.CHANGES)
        assert entry["themselves"] == entry["asymmetry"] == 0.0
    plain = result["whole"]["plain WMD, as in gensim"]
    assert plain["spearman"] > 0.8  # the score is the number of changes
    search = result["speed"]["search"]
    assert search["same"] == search["compared"] == search["queries"]
    assert len(result["draws"]["charge"]["mse"]["values"]) == 2
    assert (folder / "out" / "sentences" / "report.md").read_text().count("|") > 50
    for stem in ("scatter", "order", "alignment"):
        assert (folder / "out" / "sentences" / f"sentences_{stem}.png").stat().st_size > 5000
    page = report.markdown(result, "../figures")
    assert "![Alignments](../figures/sentences_alignment.png)" in page
    # Nothing is left to do, and the report is made from the files alone.
    assert run(EXPERIMENT, folder / "out", settings, progress=False).results == result


def test_kernel_regression_interpolates_and_leaves_out():
    d = np.array([0.0, 1.0, 2.0, 10.0])
    y = np.array([1.0, 2.0, 3.0, 7.0])
    np.testing.assert_allclose(work.smooth(d, y, d, 0.05), y)
    left_out = work.smooth(d, y, d, 0.05, leave_out=True)
    assert left_out.tolist() == [2.0, 1.0, 2.0, 3.0]  # the nearest other point
    assert work.smooth(d, np.full(4, 3.0), np.array([5.0]), 1.0) == pytest.approx(3.0)


def test_spearman_and_its_difference():
    rng = np.random.default_rng(0)
    y = rng.normal(size=200)
    d = -y + 0.1 * rng.normal(size=200)
    assert numbers.spearman(-d, y) > 0.95
    found = numbers.difference(d, rng.normal(size=200), y)
    assert 0.5 < found["low"] <= found["mean"] <= found["high"]
    same = numbers.difference(d, d, y)
    assert (same["low"], same["mean"], same["high"]) == (0.0, 0.0, 0.0)


def test_shuffled_windows_cover_every_word_equally_and_repeat_themselves():
    words = WORDS[:7]
    windows = work.windows_of_shuffled(words, 3)
    assert (np.bincount(np.concatenate(windows)) == 3).all()
    again = work.windows_of_shuffled(list(words), 3)
    assert all((x == y).all() for x, y in zip(windows, again))


def test_the_positional_baseline_is_plain_wmd_at_price_zero():
    vectors = (WORDS, np.random.default_rng(1).normal(size=(60, 4)))
    left = [Parsed(WORDS[:4], [0, 1, 2, 3])]
    right = [Parsed(WORDS[3:9], [0, 1, 2, 3, 4, 5])]
    _, d = moved.positional(0.0, vectors, left, right)
    assert d[0] == pytest.approx(WordMover(vectors, groups=None).distance(left[0], right[0]))


def test_the_preset_of_the_experiment_is_that_of_the_library():
    vectors = (WORDS, np.random.default_rng(1).normal(size=(60, 4)))
    pairs = [("w5 w2 w3", "w3 w5 w4 w2"), ("the w6 a w2", "w2")]
    known = (["the", "a", *WORDS[2:]], vectors[1])
    ours = WordMover(known, on_empty="nan")
    assert work.mover(work.preset(), known).distances(pairs).tolist() == pytest.approx(
        ours.distances(pairs).tolist(), rel=1e-12
    )


def test_copies_have_the_same_words_in_other_places():
    relations = ["det", "nsubj", "root", "prep", "det", "pobj"]
    dog = Parsed(["the", "dog", "sits", "on", "the", "mat"], [2, 3, 0, 3, 6, 4], relations)
    assert moved.roles_swapped(dog).tokens == ("the", "mat", "sits", "on", "the", "dog")
    assert moved.backwards(dog).tokens == tuple(reversed(dog.tokens))
    assert sorted(moved.shuffled(dog, np.random.default_rng(0)).tokens) == sorted(dog.tokens)
    # A word within the subject is no object.
    group = Parsed(["group", "of", "men", "sings"], [4, 1, 2, 0], ["nsubj", "prep", "pobj", "root"])
    assert moved.roles_swapped(group) is None
    alike = Parsed(["dog", "sees", "dog"], [2, 0, 2], ["nsubj", "root", "dobj"])
    assert moved.roles_swapped(alike) is None
    assert moved.backwards(alike) is None
    assert moved.shuffled(Parsed(["ha", "ha"], [0, 1]), np.random.default_rng(0)) is None


def test_a_crowd_has_different_sentences():
    from structot.datasets.sick import Sick

    sentences = [Parsed([w, "is", f"{w}ing"], [2, 0, 2]) for w in ("a", "b", "c")]
    empty = np.empty(0)
    corpus = Sick(tuple(sentences), (), empty, empty, empty, empty)
    found = speed.crowd(corpus, 7)
    assert len(found) == 7 == len({tuple(words) for words in found})
    assert all(words[1] == "is" and words[2].endswith("ing") for words in found)


def test_the_page_is_what_was_measured():
    """docs/experiments/sentences.md is written from the results beside it, by no hand."""
    folder = Path(__file__).resolve().parents[2] / "docs" / "experiments"
    results = json.loads((folder / "sentences.json").read_text(encoding="utf-8"))
    page = (folder / "sentences.md").read_text(encoding="utf-8")
    assert page == report.markdown(results, "../figures")
    for name in ("order", "scatter", "alignment"):
        assert (folder.parent / "figures" / f"sentences_{name}.png").exists()
    assert results["candidates"]["best"] == work.preset().name  # the library does what was chosen
