"""Who did what to whom: what the ordered charge hears, and what it proves about itself."""

import functools
import itertools

import numpy as np
import ot
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

import structot as sot
from structot.text import Parsed, WordMover

WORDS = ["the", "a", "dog", "cat", "man", "boy", "chases", "sees", "quickly", "old", "red", "not"]
MATRIX = np.random.default_rng(7).normal(size=(len(WORDS), 6))
VECTORS = (WORDS, MATRIX)
OPTIONS = [
    {},
    {"weights": "count"},
    {"ngram": 3},
    {"charge": 1.5},
    {"stop_words": "english"},
    {"normalize": False, "charge": 0.05},
]
sentences = st.lists(st.sampled_from(WORDS[2:]), min_size=1, max_size=7)


def heard(mover, s, t):
    """Whether two sentences are told apart, whatever the certified errors are."""
    lower, upper = mover.bounds([(s, t)])
    return bool(lower[0] > 0.0 and lower[0] > upper[0] - lower[0])


@pytest.mark.parametrize("options", OPTIONS)
def test_a_verb_b_is_not_b_verb_a(options):
    mover = WordMover(VECTORS, **options)
    for s, t in (
        ("dog chases cat", "cat chases dog"),
        ("the dog chases the cat", "the cat chases the dog"),
        ("man not dog", "dog not man"),
    ):
        assert heard(mover, s, t)
        plain = WordMover(VECTORS, like="gensim").distance(s, t)
        assert plain == pytest.approx(0.0, abs=1e-12)


def test_the_reversal_opens_six_blocks_instead_of_four():
    """Three words, each weight 1/3, price β/2 per block: (6 - 4)/3 · β/2."""
    mover = WordMover(VECTORS, weights="count", charge=0.3)
    found = mover.distance("dog chases cat", "cat chases dog", tol=1e-8)
    assert found == pytest.approx(2 / 3 * 0.15 * mover.unit, rel=1e-6)


@pytest.mark.parametrize("options", OPTIONS)
def test_every_other_order_of_different_words_is_heard(options):
    mover = WordMover(VECTORS, **options)
    words = ["dog", "chases", "old", "cat"]
    for order in itertools.permutations(words):
        if list(order) != words:
            assert heard(mover, words, list(order))
    longer = ["dog", "chases", "the", "old", "cat", "quickly", "not", "the", "boy"]
    assert heard(mover, longer, longer[::-1])


@pytest.mark.parametrize("options", OPTIONS)
@settings(max_examples=25)
@given(s=sentences, t=sentences)
def test_never_nearer_than_plain_and_zero_only_for_itself(options, s, t):
    """d >= WMD + |f(s,s) - f(t,t)|/2, by the argument in `SentenceCost.keeps_order`."""
    mover = WordMover(VECTORS, **options)
    left, right = mover.prepare(s), mover.prepare(t)
    x, y = mover.rows(left.rows), mover.rows(right.rows)
    plain = ot.emd2(left.weights, right.weights, cdist(x, y))
    own = mover.self_terms([left, right], 1e-3)[0]
    least = plain + abs(own[0] - own[1]) / 2
    assert mover.distance(s, t) >= least - 1e-9
    assert mover.distance(s, t) == mover.distance(t, s)
    lower, upper = mover.bounds([(s, t)])
    assert lower[0] <= mover.distance(s, t) == upper[0]
    assert mover.distance(s, list(s)) == 0.0
    if sorted(s) != sorted(t):
        assert mover.distance(s, t) > 0


@pytest.mark.parametrize("options", OPTIONS)
@settings(max_examples=15)
@given(s=sentences)
def test_staying_put_is_the_least_charge_of_a_sentence(options, s):
    """The closed form of f(s, s) is the optimum that the solver finds."""
    mover = WordMover(VECTORS, **options)
    prepared = mover.prepare(s)
    expected = mover.self_terms([prepared], 1e-3)[0, 0]
    found = mover.answers([prepared], np.zeros((1, 2), int), tol=1e-7)
    assert found.value[0] == pytest.approx(expected, rel=2e-7)
    assert found.lower_bound[0] <= expected * (1 + 1e-12)


RELATIONS = ["nsubj", "root", "obj"]


def test_parsed_roles_are_heard_and_the_voice_is_not():
    mover = WordMover(VECTORS, groups="dependency")
    active = Parsed(["dog", "chases", "cat"], [2, 0, 2], RELATIONS)
    swapped = Parsed(["cat", "chases", "dog"], [2, 0, 2], RELATIONS)
    relations = ["nsubjpass", "root", "prep", "pobj"]
    passive = Parsed(["cat", "chases", "by", "dog"], [2, 0, 2, 3], relations)
    by = WordMover((["by", *WORDS], np.vstack([MATRIX[:1], MATRIX])), groups="dependency")
    assert heard(mover, active, swapped)
    assert by.distance(active, passive) < by.distance(swapped, passive)
    assert mover.distance(active, Parsed(active.tokens, active.heads, RELATIONS)) == 0.0
    # The order of the words does not count if the parse is the same.
    verb_first = Parsed(["chases", "cat", "dog"], [0, 1, 1], ["root", "obj", "nsubj"])
    assert mover.distance(active, verb_first) == pytest.approx(0.0, abs=1e-3 * mover.unit)


def test_without_relations_the_side_of_the_head_counts():
    mover = WordMover(VECTORS, groups="dependency")
    active = Parsed(["dog", "chases", "cat"], [2, 0, 2])
    assert heard(mover, active, Parsed(["cat", "chases", "dog"], [2, 0, 2]))


def test_a_function_decides_what_keeps_order():
    halves = functools.partial(lambda words, n: [range(n), range(n, len(words))], n=2)
    mover = WordMover(VECTORS, groups=halves, weights="count")
    assert heard(mover, "dog chases old cat", "chases dog old cat")
    # The two halves are phrases of their own: as a whole they may change places.
    moved = mover.distance("dog chases old cat", "old cat dog chases", tol=1e-6)
    assert moved == pytest.approx(0.0, abs=1e-5 * mover.unit)
    as_sets = WordMover(VECTORS, groups=halves, weights="count", order=False)
    apart = as_sets.distance("dog chases old cat", "chases dog old cat", tol=1e-6)
    assert apart == pytest.approx(0.0, abs=1e-5 * as_sets.unit)


def test_order_is_for_the_charge():
    with pytest.raises(ValueError, match="order=True is for the fixed charge"):
        WordMover(VECTORS, concave=sot.concave.Sqrt(), order=True)
    assert not WordMover(VECTORS, concave=sot.concave.Sqrt()).order
    assert WordMover(VECTORS).order


def test_light_words_are_light_and_learned():
    mover = WordMover(VECTORS)
    weights = dict(zip(["the", "dog", "sees"], mover.prepare("the dog sees").weights))
    assert weights["the"] < 0.1 * weights["dog"]
    assert weights["dog"] == weights["sees"]
    mover.fit(["the dog"] * 500 + ["sees"])  # here dogs are as frequent as articles
    learned = dict(zip(["the", "dog", "sees"], mover.prepare("the dog sees").weights))
    assert learned["the"] == learned["dog"] < 0.5 * learned["sees"]
