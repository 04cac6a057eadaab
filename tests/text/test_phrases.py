"""Phrases: every word in equally many, chains give windows, trees contract."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structot.groups import ngrams
from structot.text import Parsed, subtrees
from structot.text.phrases import contract, phrases_of


@st.composite
def trees(draw):
    """Heads of a random forest: every word hangs on an earlier one of a random order, or on 0."""
    size = draw(st.integers(1, 9))
    order = draw(st.permutations(range(size)))
    heads = [0] * size
    for k in range(1, size):
        parent = draw(st.integers(-1, k - 1))
        heads[order[k]] = 0 if parent < 0 else order[parent] + 1
    return heads


@given(heads=trees(), n=st.integers(1, 5))
def test_every_word_is_in_exactly_n_subtrees(heads, n):
    count = np.bincount(np.concatenate(subtrees(heads, n)), minlength=len(heads))
    assert (count == n).all()


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_a_chain_gives_the_padded_windows(n):
    chain = list(range(6))  # each word hangs on the one before it
    found = sorted(tuple(p.tolist()) for p in subtrees(chain, n))
    assert found == sorted(tuple(p.tolist()) for p in ngrams(6, n, padded=True))


@given(heads=trees(), data=st.data())
def test_contraction_keeps_ancestors(heads, data):
    kept = [i for i in range(len(heads)) if data.draw(st.booleans())]
    new = contract(heads, kept)
    for k, word in enumerate(kept):
        above = heads[word]
        while above and above - 1 not in kept:
            above = heads[above - 1]
        assert new[k] == (kept.index(above - 1) + 1 if above else 0)
    Parsed(["w"] * len(kept), new)  # no cycle, all in range


def test_bad_trees_are_refused():
    with pytest.raises(ValueError, match="cycle"):
        Parsed(["a", "b"], [2, 1])
    with pytest.raises(ValueError, match="3 entries for 2 tokens"):
        Parsed(["a", "b"], [0, 1, 1])
    with pytest.raises(ValueError, match="from 1 to 2"):
        Parsed(["a", "b"], [0, 3])
    with pytest.raises(ValueError, match="Parsed"):
        phrases_of("dependency", 2, ("a", "b"), None)


def test_a_function_may_leave_words_out_and_must_stay_inside():
    found = phrases_of(lambda words: [[0, 1], []], 2, ("a", "b", "c"), None)
    assert [p.tolist() for p in found] == [[0, 1], [2]]
    with pytest.raises(ValueError, match="from 0 to 2"):
        phrases_of(lambda words: [[0, 3]], 2, ("a", "b", "c"), None)
    nonsense = (
        None,
        3,
        [0, 1],
        ["ab"],
        ["01"],
        [[0.5, 1]],
        [[True, False]],
        [[[0, 1]]],
        [[10**30]],
    )
    for found in nonsense:
        with pytest.raises(ValueError, match="lists of positions"):
            phrases_of(lambda words, found=found: found, 2, ("a", "b"), None)
