"""WordMover: plain WMD is POT's, structure sees order, and odd input has an answer."""

import functools
import warnings

import numpy as np
import ot
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

import structot as sot
from structot.text import Parsed
from structot.text import WordMover as Preset
from structot.text import pairs as many_pairs
from structot.text.vectors import Vocabulary
from structot.text.weights import Frequencies

# Plain weights and vectors as they are, for identities; the preset has tests of its own.
WordMover = functools.partial(Preset, weights="count", normalize=False)

WORDS = [
    "the",
    "a",
    "dog",
    "cat",
    "man",
    "boy",
    "chases",
    "sees",
    "quickly",
    "old",
    "red",
    "house",
    "runs",
    "not",
]
rng = np.random.default_rng(7)
MATRIX = rng.normal(size=(len(WORDS), 6))
VECTORS = (WORDS, MATRIX)
sentences = st.lists(st.sampled_from(WORDS), min_size=1, max_size=7)


def plain_wmd(s, t):
    x, y = (MATRIX[[WORDS.index(w) for w in words]] for words in (s, t))
    a, b = np.full(len(s), 1 / len(s)), np.full(len(t), 1 / len(t))
    return ot.emd2(a, b, cdist(x, y))


@pytest.mark.parametrize(
    "options",
    [
        {"groups": None},
        {"charge": 0.0},
        {"charge": 0.0, "ngram": 3},
        {"concave": sot.concave.Linear()},
        {"concave": sot.concave.ThresholdSqrt(float("inf")), "ngram": 3},
    ],
)
@settings(max_examples=30)
@given(s=sentences, t=sentences)
def test_without_structure_it_is_plain_wmd(options, s, t):
    assert WordMover(VECTORS, **options).distance(s, t) == pytest.approx(plain_wmd(s, t), abs=1e-9)


def test_the_limit_of_a_small_charge_is_plain_wmd():
    s, t = ["the", "old", "dog", "chases", "a", "cat"], ["a", "boy", "sees", "the", "red", "house"]
    mover = WordMover(VECTORS, charge=1e-7, debias=False)
    assert mover.distance(s, t, tol=1e-8) == pytest.approx(plain_wmd(s, t), abs=1e-5)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"ngram": 3, "charge": 1.0},
        {"weights": "sif", "normalize": True},
        {"order": False},
        {"concave": sot.concave.Sqrt()},
        {"weights": "uniform"},
    ],
)
@settings(max_examples=30)
@given(s=sentences, t=sentences)
def test_symmetric_and_zero_for_equal_sentences(options, s, t):
    mover = WordMover(VECTORS, **options)
    assert mover.distance(s, t) == mover.distance(t, s)
    assert mover.distance(s, list(s)) == 0.0
    assert np.isfinite(mover.distance(s, t))


def test_the_charge_sees_order_and_plain_wmd_does_not():
    s = "the old dog chases a red cat"
    near, shuffled = "the old dog sees a red cat", "red the a dog sees cat old"
    mover, plain = WordMover(VECTORS), WordMover(VECTORS, groups=None)
    assert plain.distance(s, near) == pytest.approx(plain.distance(s, shuffled), abs=1e-12)
    assert mover.distance(s, near) < mover.distance(s, shuffled) - 0.1


def test_phrases_of_one_word_add_a_constant():
    s, t = ["the", "old", "dog", "runs"], ["a", "boy", "sees", "the", "house"]
    mover = WordMover(VECTORS, ngram=1, charge=0.7, debias=False)
    expected = plain_wmd(s, t) + 0.7 * mover.unit
    assert mover.distance(s, t, tol=1e-8) == pytest.approx(expected, rel=1e-7)
    assert WordMover(VECTORS, ngram=1).distance(s, t) == pytest.approx(plain_wmd(s, t), rel=5e-3)


def test_a_sentence_read_backwards_has_the_same_windows_as_sets():
    s = ["the", "old", "dog", "chases", "a", "red", "cat"]
    mover = WordMover(VECTORS, order=False)
    # Debiased: a difference of values of the size of the charge, each right to tol.
    found = mover.distance(s, s[::-1], tol=1e-6)
    assert found == pytest.approx(0.0, abs=2e-6 * 10 * mover.unit)


def test_against_the_general_solver():
    s, t = (
        ["the", "old", "dog", "chases", "a", "cat"],
        ["the", "boy", "sees", "an", "old", "red", "house"],
    )
    mover = WordMover(VECTORS, ngram=2, charge=0.7, debias=False, oov="skip")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        left, right = mover.prepare(s), mover.prepare(t)
        value = mover.distance(s, t, tol=1e-5)
    windows = [sot.groups.ngrams(len(x.words), 2, padded=True) for x in (left, right)]
    sets = sot.groups.diagonals(len(left.words), len(right.words), 2)
    structures = {
        True: sot.Coverage.of_sets(sets, 0.7 * mover.unit / 2),
        False: sot.Coverage(*windows, 0.7 * mover.unit / 4),
    }
    M = mover.cost(left, right)
    for order, coverage in structures.items():
        own = WordMover(VECTORS, charge=0.7, debias=False, order=order)
        structure = sot.Modular() + coverage
        result = sot.solve(M, left.weights, right.weights, structure=structure, tol=1e-5)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert own.distance(s, t, tol=1e-5) == pytest.approx(result.value, rel=3e-5)
    debiased = WordMover(VECTORS, charge=0.7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own = [mover.distance(x, x, tol=1e-5) for x in (s, t)]
        assert debiased.distance(s, t, tol=1e-5) == pytest.approx(value - sum(own) / 2, abs=2e-4)


def test_scale_of_the_vectors_is_the_scale_of_the_distance():
    s, t = "the old dog chases a cat", "a boy sees the red house"
    for options in ({}, {"concave": sot.concave.Sqrt()}):
        one = WordMover(VECTORS, **options).distance(s, t, tol=1e-6)
        ten = WordMover((WORDS, 10 * MATRIX), **options).distance(s, t, tol=1e-6)
        assert ten == pytest.approx(10 * one, rel=1e-5)
        for scale in (1e-100, 1e100):  # squares still fit
            other = WordMover((WORDS, scale * MATRIX), **options).distance(s, t, tol=1e-6)
            assert other == pytest.approx(scale * one, rel=1e-5)
        for scale in (1e-200, 1e200):
            with pytest.raises(ValueError, match="multiply all vectors"):
                WordMover((WORDS, scale * MATRIX), unit=1.0, **options).distance(s, t)
    # Far from the origin the unit keeps its digits.
    assert WordMover((WORDS, MATRIX + 1e7)).unit == pytest.approx(WordMover(VECTORS).unit, 1e-6)


def test_another_charge_after_the_first_distance_is_not_debiased_by_the_old_one():
    s, t = "the old dog chases a cat", "a boy sees the red house"
    mover = WordMover(VECTORS)
    mover.distance(s, t)
    mover.charge = 2.0
    assert mover.distance(s, t) == WordMover(VECTORS, charge=2.0).distance(s, t)


def test_pairwise_and_distances_are_the_single_distances():
    X = ["the dog runs", "a cat runs", "not the old man", "the dog runs", "dog"]
    mover = WordMover(VECTORS)
    D = mover.pairwise(X)
    assert (D == D.T).all()
    assert (D == mover.pairwise(X, X)).all()
    assert D[1, 2] == mover.distance(X[1], X[2])
    assert D[0, 3] == 0.0
    pairs = [(X[0], X[1]), (X[4], X[2])]
    assert mover.distances(pairs).tolist() == [D[0, 1], D[4, 2]]
    assert mover.distances([]).shape == (0,)
    assert mover.pairwise(X[:2], X[1:]).shape == (2, 4)


def test_repeated_words_and_words_with_equal_vectors():
    vectors = (["a", "b", "c"], np.array([[0.0, 1.0], [0.0, 1.0], [2.0, 0.0]]))
    for options in ({}, {"groups": None}, {"concave": sot.concave.Sqrt()}):
        mover = WordMover(vectors, **options)
        assert mover.distance("a a a", "a a a") == 0.0
        assert mover.distance("a c", "b c") == pytest.approx(0.0, abs=1e-12)
        assert np.isfinite(mover.distance("a a b", "b c c c"))
    assert WordMover(vectors, groups=None).distance("a a", "b") == 0.0
    alike = WordMover({"a": [1.0], "b": [1.0]})  # all words alike: no mean distance either
    assert alike.distance("a b", "b a b") == pytest.approx(
        alike.distance("a a", "b b b"), abs=1e-12
    )


def test_weights():
    def value(s, t, **options):
        return WordMover(VECTORS, groups=None, **options).distance(s, t)

    assert value("dog dog cat", "dog cat", weights="uniform") == pytest.approx(0.0, abs=1e-12)
    assert value("dog dog cat", "dog cat") > 0.1
    tripled = value("dog cat", "dog man", weights={"cat": 3.0, "man": 3.0})
    assert tripled == pytest.approx(3 / 2 * value("dog cat", "dog man"))
    assert value("dog cat", "dog", weights={"cat": 0}) == 0.0
    with pytest.raises(ValueError, match="call fit"):
        value("dog", "cat", weights="idf")
    mover = WordMover(VECTORS, weights="idf").fit(["the dog", "the cat", "the man"])
    prepared = mover.prepare("the dog runs")
    learned = Frequencies.of([["the", "dog"], ["the", "cat"], ["the", "man"]])
    expected = np.array([learned.idf["the"], learned.idf["dog"], learned.unseen])
    np.testing.assert_allclose(prepared.weights, expected / expected.sum())
    for bad in (-1.0, np.inf, "x"):
        with pytest.raises(ValueError, match=r"weights\['dog'\] must be"):
            value("dog", "cat", weights={"dog": bad})
    huge = value("dog cat", "dog man", weights=dict.fromkeys(WORDS, 1e308))
    assert huge == pytest.approx(value("dog cat", "dog man"))
    for bad in ("tfidf", np.ones(3)):
        with pytest.raises(ValueError, match="weights must be"):
            WordMover(VECTORS, weights=bad)


def test_stop_words_tokenizer_and_case():
    mover = WordMover(VECTORS, stop_words="english", tokenizer=str.split)
    assert mover.prepare("The Dog runs not").words == ("Dog", "runs", "not")
    assert mover.distance("the DOG runs", "a dog runs") == 0.0
    own = WordMover(VECTORS, stop_words=["Dog"])
    assert own.prepare("the dog, runs!").words == ("the", "runs")
    with pytest.raises(ValueError, match="stop_words"):
        WordMover(VECTORS, stop_words="french")
    with pytest.raises(ValueError, match="tokenizer"):
        WordMover(VECTORS, tokenizer=3)


def test_unknown_words_are_counted_and_reported_once():
    mover = WordMover(VECTORS)
    with pytest.warns(UserWarning, match=r"3 words have no vector .2 different: 'zebra'"):
        mover.distance("the zebra dog zebra", "quux dog")
    with pytest.warns(UserWarning, match="no vector") as caught:
        WordMover(VECTORS).pairwise(["the zebra", "dog"])
    assert caught[0].filename == __file__  # the line of the user
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mover.distance("the zebra", "dog")
    assert mover.unknown == {"zebra": 3, "quux": 1}
    with pytest.warns(UserWarning, match=r"^1 word has no vector .1 different: 'emu'"):
        mover.distance("the zebra emu", "dog")
    report = mover.coverage(["the zebra dog zebra", "quux", "the dog", []])
    assert report.unknown == {"zebra": 2, "quux": 1}
    assert (report.n_texts, report.n_words, report.empty) == (4, 7, (1, 3))
    assert report.share == pytest.approx(4 / 7)
    assert "57.14 % of 7 words in 4 texts" in repr(report)
    assert WordMover(VECTORS, stop_words=["the"]).coverage(["the zebra"]).n_words == 1
    with pytest.raises(ValueError, match=r"'zebra' of 'the zebra' has no vector"):
        WordMover(VECTORS, oov="raise").distance("the zebra", "dog")


@pytest.mark.parametrize("empty", ["", [], "zebra quux"])
@pytest.mark.filterwarnings("ignore:.*no vector")
def test_empty_sentences_raise_by_name_or_give_what_was_asked_for(empty):
    with pytest.raises(ValueError, match="no word of the sentence"):
        WordMover(VECTORS).distance("the dog", empty)
    for on_empty, is_so in (("nan", np.isnan), ("inf", np.isposinf)):
        mover = WordMover(VECTORS, on_empty=on_empty)
        assert is_so(mover.distance("the dog", empty))
        D = mover.pairwise(["dog", empty, "cat"])
        assert is_so(D[1]).all()
        assert np.isfinite(D[[0, 0, 2], [0, 2, 2]]).all()


def test_bad_arguments_name_the_repair():
    for sentence in (3, ["dog", 3], b"dog", None):
        with pytest.raises(ValueError, match="a sentence must be"):
            WordMover(VECTORS).distance(sentence, "dog")
    for pairs in ([("dog", "cat", "man")], ["ab"]):
        with pytest.raises(ValueError, match="two sentences each"):
            WordMover(VECTORS).distances(pairs)
    mover = WordMover(VECTORS)
    calls = {
        "X": lambda text: mover.pairwise(text),
        "Y": lambda text: mover.pairwise(["dog"], text),
        "corpus must": lambda text: mover.nearest("dog", text),
        "corpus": lambda text: mover.fit(text),
    }
    for name, call in calls.items():
        with pytest.raises(ValueError, match=f"{name}.*list of sentences; got the string 'a dog'"):
            call("a dog")
    with pytest.raises(ValueError, match="groups"):
        WordMover(VECTORS, groups="trees")
    with pytest.raises(ValueError, match="groups must be"):
        WordMover(VECTORS, groups=3)
    with pytest.raises(ValueError, match="charge"):
        WordMover(VECTORS, charge=-1)
    with pytest.raises(ValueError, match="vectors must be gensim"):
        WordMover(3)
    with pytest.raises(ValueError, match="14 words, but 3 rows"):
        WordMover((WORDS, MATRIX[:3]))
    with pytest.raises(ValueError, match="twice"):
        WordMover((["a", "a"], np.ones((2, 1))))
    with pytest.raises(ValueError, match="empty mapping"):
        WordMover({})
    for vectors in ((["a"], ["b"]), {"a": [1.0], "b": [1.0, 2.0]}):
        with pytest.raises(ValueError, match="one row of numbers"):
            WordMover(vectors)
    bad = WordMover({"a": [1.0], "b": [np.nan]}, unit=1.0)
    with pytest.raises(ValueError, match="'b' has NaN"):
        bad.distance("a", "b")


def test_dependency_groups_and_functions():
    s = Parsed(["the", "dog", "chases", "a", "cat"], [2, 3, 0, 5, 3])
    t = Parsed(["a", "cat", "sees", "the", "dog"], [2, 3, 0, 5, 3])
    mover = WordMover(VECTORS, groups="dependency")
    assert mover.distance(s, s) == 0.0
    assert mover.distance(s, t) > 0
    # A chain is a row of windows, ordered or not.
    chain = Parsed(["the", "dog", "runs"], [0, 1, 2])
    other = Parsed(["a", "cat", "runs", "quickly"], [0, 1, 2, 3])
    windows = WordMover(VECTORS)
    assert mover.distance(chain, other, tol=1e-6) == pytest.approx(
        windows.distance(chain, other, tol=1e-6), rel=1e-5
    )
    halves = WordMover(VECTORS, groups=lambda words: [range(len(words) // 2 + 1)], charge=1.0)
    assert np.isfinite(halves.distance("the dog runs", "a cat runs quickly"))
    # Leaving words out contracts the tree.
    fewer = WordMover(VECTORS, groups="dependency", stop_words=["dog"])
    found = [p.members.tolist() for p in fewer.prepare(s).phrases]
    assert found == [[1], [0], [0, 1, 3], [2], [2, 3]]


def test_a_python_function_as_concave_agrees_with_the_compiled_one():
    s, t = "the dog runs", "a cat runs"
    compiled = WordMover(VECTORS, concave=sot.concave.Log(1.0)).distance(s, t, tol=1e-5)
    custom = WordMover(VECTORS, concave=lambda x: np.log1p(x)).distance(s, t, tol=1e-5)
    assert custom == pytest.approx(compiled, rel=3e-5)


def test_a_missed_gap_warns_and_the_best_is_returned(monkeypatch):
    s, t = "the old dog chases a cat quickly", "a boy sees the red house not"
    mover = WordMover(VECTORS, concave=sot.concave.Sqrt(), debias=False)
    expected = mover.distance(s, t, tol=1e-6)
    monkeypatch.setattr(many_pairs, "MAX_ITER", 20)
    with pytest.warns(sot.ConvergenceWarning, match="1 of 1 pairs missed the gap 1e-14"):
        value = mover.distance(s, t, tol=1e-14)
    assert expected <= value * (1 + 1e-6)


def test_vocabulary_unit_and_normalize():
    words = Vocabulary.of({"a": [0.0, 0.0], "b": [3.0, 4.0], "c": [0.0, 0.0]})
    assert words.mean_distance() == pytest.approx(10 / 3)
    unit = Vocabulary.of({"a": [0.0, 2.0], "b": [3.0, 0.0], "c": [0.0, 0.0]}, normalize=True)
    np.testing.assert_allclose(unit.rows(np.arange(3)), [[0, 1], [1, 0], [0, 0]])
    assert WordMover(VECTORS, unit=2.5).unit == 2.5
    many = ([str(k) for k in range(1500)], rng.normal(size=(1500, 3)))
    assert WordMover(many).unit == WordMover(many).unit


def test_gensim_is_one_keyword_away():
    gensim = pytest.importorskip("gensim.models")
    vectors = gensim.KeyedVectors(vector_size=6)
    vectors.add_vectors(WORDS, MATRIX)
    mover = Preset(vectors, like="gensim")
    pairs = [
        (
            ["the", "old", "dog", "chases", "the", "cat"],
            ["a", "boy", "sees", "the", "red", "house"],
        ),
        (["The", "dog", "zebra"], ["the", "dog", "runs", "runs"]),  # its words are as they stand
        (["dog"], ["dog"]),
        (["zebra"], ["dog"]),
        ([], []),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for s, t in pairs:
            assert mover.wmdistance(s, t) == pytest.approx(vectors.wmdistance(s, t), abs=1e-6)
    s, t = pairs[0]
    assert Preset(vectors).distance(s, t) == pytest.approx(
        Preset((WORDS, MATRIX.astype(np.float32))).distance(s, t)
    )
    # What is said beside it counts.
    assert Preset(VECTORS, like="gensim", groups="ngrams", charge=0.3).charge == 0.3
    assert np.isnan(Preset(VECTORS, like="gensim", on_empty="nan").distance("dog", []))
    with pytest.raises(ValueError, match="like"):
        Preset(VECTORS, like="spacy")


class KeyedVectors:
    """What gensim's class looks like from outside."""

    def __init__(self):
        self.key_to_index = {word: row for row, word in enumerate(WORDS)}
        self.vectors = MATRIX


def test_anything_like_keyed_vectors_will_do():
    class Model:
        wv = KeyedVectors()

    s, t = "the dog runs", "a cat runs"
    expected = WordMover(VECTORS).distance(s, t)
    assert WordMover(KeyedVectors()).distance(s, t) == expected
    assert WordMover(Model()).distance(s, t) == expected
