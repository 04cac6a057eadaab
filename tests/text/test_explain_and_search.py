"""Explanations add up to the value; the nearest sentences are those of solving every pair."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import structot as sot
from structot.text import WordMover

WORDS = [f"w{k}" for k in range(40)]
rng = np.random.default_rng(5)
VECTORS = (WORDS, rng.normal(size=(40, 8)))
CASES = {
    "charge": {},
    "sets": {"order": False, "weights": "count"},
    "plain": {"groups": None},
    "sqrt": {"concave": sot.concave.Sqrt()},
    "linear": {"concave": sot.concave.PiecewiseLinear([], [2.0])},
    "trigrams": {"ngram": 3, "charge": 1.0, "debias": False},
}


def sentence(size, generator=rng):
    return [WORDS[k] for k in generator.integers(0, 40, size)]


@pytest.mark.parametrize("case", CASES)
def test_contributions_add_up_and_the_certificate_holds(case):
    generator = np.random.default_rng(1)
    s, t = sentence(5, generator), sentence(6, generator)
    mover = WordMover(VECTORS, **CASES[case])
    why = mover.explain(s, t, tol=1e-5)
    value = why.result.value
    assert why.contributions.sum() == pytest.approx(value, abs=1e-10)
    assert (why.contributions >= 0).all()
    assert why.result.lower_bound <= value
    assert why.result.converged
    assert why.distance == pytest.approx(mover.distance(s, t, tol=1e-5), rel=1e-4)
    assert why.source == tuple(s)
    np.testing.assert_allclose(why.plan.sum(1), np.full(5, 0.2), atol=1e-12)
    assert bool(why.fates) == (case in ("charge", "trigrams"))
    phrases = sum(pair.contribution for pair in why.phrases)
    if case in ("charge", "sets", "trigrams"):
        assert phrases == pytest.approx(value - (why.plan * why.cost).sum(), abs=1e-10)
    if case == "sqrt":
        assert phrases == pytest.approx(value, abs=1e-10)
    assert [p.contribution for p in why.phrases] == sorted(
        (p.contribution for p in why.phrases), reverse=True
    )


def test_the_certificate_can_be_verified_from_scratch():
    mover = WordMover(VECTORS, debias=False)
    s, t = mover.prepare(sentence(4)), mover.prepare(sentence(5))
    why = mover.explain(list(s.words), list(t.words))
    sets = sot.groups.diagonals(4, 5, 2)
    structure = sot.Modular() + sot.Coverage.of_sets(sets, mover.charge * mover.unit / 2)
    check = sot.certificate.verify(why.cost, s.weights, t.weights, structure, why.result)
    assert check.holds()


def test_kept_and_broken_phrases_are_named():
    mover = WordMover(VECTORS)
    why = mover.explain("w1 w2 w3 w4 w5", "w4 w5 w1 w2 w3")
    assert [fate.words for fate in why.kept()] == [("w1", "w2"), ("w2", "w3"), ("w4", "w5")]
    assert [fate.words for fate in why.broken()] == [("w3", "w4")]
    assert [fate.words for fate in why.broken("target")] == [("w5", "w1")]
    assert {round(fate.kept, 6) for fate in why.fates} == {0.0, 1.0}
    assert "broken of the source: w3 w4 (0%)" in repr(why)
    assert "broken of the target: w5 w1" in why.to_html()
    # A broken pair of words pays for each of them, a kept one once.
    pays = {fate.words: fate.pays for fate in why.fates if fate.side == "source"}
    assert pays["w3", "w4"] == pytest.approx(2 * pays["w1", "w2"])


def test_shown_as_text_table_and_picture():
    vectors = {"<b>": [0.0], "a": [1.0], "c": [4.0]}
    mover = WordMover(vectors, tokenizer=str.split, normalize=False, weights="count")
    why = mover.explain("<b> a c", "a c c")
    assert "&lt;b&gt;" in why.to_html()
    assert "<b>" not in why.to_html()
    assert why.to_html() == why._repr_html_()
    assert "distance" in repr(why)
    assert "->" in repr(why)
    assert sum(move[2] for move in why.moves()) == pytest.approx(1.0)
    ax = why.plot()
    assert [text.get_text() for text in ax.texts] == ["<b>", "a", "c", "a", "c", "c"]
    assert len(ax.collections[0].get_segments()) == len(why.moves())
    plt.close(ax.figure)


@pytest.mark.parametrize("case", CASES)
def test_equal_sentences_explained(case):
    mover, s = WordMover(VECTORS, **CASES[case]), sentence(6, np.random.default_rng(3))
    why = mover.explain(s, s)
    assert why.distance == pytest.approx(mover.distance(s, s), rel=2e-3)
    assert why.distance == 0.0 or not mover.debias


def test_dollars_are_no_formula():
    why = WordMover({"$\\frac$": [0.0], "a": [1.0]}, tokenizer=str.split).explain("$\\frac$", "a")
    ax = why.plot()
    ax.figure.canvas.draw()  # a formula would fail here: \frac without arguments
    assert any("frac" in text.get_text() for text in ax.texts)
    assert not any(text.get_parse_math() for text in ax.texts)
    plt.close(ax.figure)


def test_nothing_to_explain():
    mover = WordMover(VECTORS, on_empty="nan")
    with pytest.raises(ValueError, match="nothing to explain"):
        mover.explain("w1 w2", [])


@pytest.mark.parametrize("case", CASES)
def test_nearest_is_brute_force(case):
    generator = np.random.default_rng(2)
    corpus = [sentence(generator.integers(2, 8), generator) for _ in range(60)]
    query = corpus[7][:-1] + ["w3"]
    mover = WordMover(VECTORS, **CASES[case])
    found = mover.nearest(query, corpus, k=4)
    every = mover.pairwise([query], corpus)[0]
    expected = np.argsort(every, kind="stable")[:4]
    assert found.indices.tolist() == expected.tolist()
    assert found.distances.tolist() == every[expected].tolist()
    assert found.n_solved <= 60


@pytest.mark.parametrize("case", ["charge", "sets", "plain", "linear", "trigrams"])
def test_nearest_skips_sentences_that_are_far_away(case):
    """Half of the words lie a thousand units off, farther than any sentence of the others."""
    matrix = VECTORS[1] + 1000.0 * (np.arange(40) >= 20)[:, None]
    generator = np.random.default_rng(6)
    near = [[WORDS[k] for k in generator.integers(0, 20, 5)] for _ in range(6)]
    far = [[WORDS[k] for k in generator.integers(20, 40, 5)] for _ in range(30)]
    mover = WordMover((WORDS, matrix), unit=1.0, normalize=False, **CASES[case])
    found = mover.nearest(near[0][:-1] + ["w3"], near + far, k=2)
    assert set(found.indices.tolist()) <= set(range(6))
    assert found.n_solved <= 6


@pytest.mark.parametrize("scale", [1e-9, 1e9])
@pytest.mark.parametrize("options", [{}, {"groups": None}])
def test_nearest_at_any_scale_keeps_ties_and_skips_pairs(scale, options):
    """A copy in another order is at 0 for plain WMD, but its centroid is off by rounding."""
    generator = np.random.default_rng(4)
    mover = WordMover((WORDS, scale * (VECTORS[1] + 100.0)), normalize=False, **options)
    for _ in range(10):
        query = sentence(7, generator)
        corpus = [query[k:] + query[:k] for k in (3, 0, 5)]
        corpus += [sentence(5, generator) for _ in range(60)]
        found, every = mover.nearest(query, corpus, k=1), mover.pairwise([query], corpus)[0]
        assert found.indices.tolist() == [np.argmin(every)]
        assert found.n_solved < 60


def test_an_index_answers_many_queries(capfd):
    generator = np.random.default_rng(8)
    corpus = [sentence(generator.integers(2, 8), generator) for _ in range(40)]
    index = WordMover(VECTORS).index(corpus)
    many = index.nearest_many(corpus[:3], k=3, progress=True)
    assert capfd.readouterr() == ("", "")  # nobody watches a terminal
    for query, found in zip(corpus, many):
        again = index.nearest(query, k=3)
        assert found.indices.tolist() == again.indices.tolist()
        assert found.distances[0] == 0.0
    assert len(index) == 40
    with pytest.raises(ValueError, match="queries must be a list of sentences"):
        index.nearest_many("w1 w2")


@pytest.mark.parametrize("case", CASES)
def test_bounds_are_below_the_distances(case):
    from structot.text.search import _Search

    generator = np.random.default_rng(9)
    corpus = [sentence(generator.integers(1, 9), generator) for _ in range(30)]
    mover = WordMover(VECTORS, **CASES[case])
    index, query = mover.index(corpus), mover.prepare(sentence(5, generator))
    search = _Search(index, query, 1e-4)
    search.solve(np.arange(len(index.sentences)))
    assert (search.bound <= search.distance + 1e-12).all()
    assert (search.bound > search.distance - 0.8 * mover.unit).any()  # and they say something


def test_nearest_with_ties_empty_sentences_and_few_sentences():
    mover = WordMover(VECTORS, on_empty="nan")
    corpus = ["w1 w2", "", "w1 w2", "w5 w6 w7"]
    found = mover.nearest("w1 w2", corpus, k=10)
    assert found.indices.tolist() == [0, 2, 3]
    assert found.distances[0] == 0.0
    assert mover.nearest("w1", [""], k=1).indices.size == 0
    with pytest.raises(ValueError, match="query"):
        mover.nearest("", corpus)
    custom = WordMover(VECTORS, concave=lambda x: np.log1p(x))
    assert custom.nearest("w1 w2", ["w3 w4", "w1 w2"], k=1).indices.tolist() == [1]
