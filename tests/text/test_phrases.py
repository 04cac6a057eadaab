"""Phrases: every word in equally many, chains give windows, trees contract, roles differ."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structot.groups import diagonals, ngrams
from structot.text import Parsed
from structot.text.phrases import Tree, blocks_between, phrases_of, subtrees, windows


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
def test_every_word_is_in_exactly_n_subtrees_with_n_roles(heads, n):
    phrases = subtrees(Tree(heads), n)
    members = np.concatenate([p.members for p in phrases])
    roles = np.concatenate([p.roles for p in phrases])
    assert (np.bincount(members, minlength=len(heads)) == n).all()
    for word in range(len(heads)):
        assert len(set(roles[members == word].tolist())) == n
    for phrase in phrases:
        assert len(set(phrase.roles.tolist())) == phrase.roles.size


def as_sets(blocks):
    return sorted(sorted(map(tuple, block.tolist())) for block in blocks)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_a_chain_gives_the_padded_windows(n):
    chain = Tree(list(range(6)))  # each word hangs on the one before it
    found = sorted(tuple(p.members.tolist()) for p in subtrees(chain, n))
    assert found == sorted(tuple(p.tolist()) for p in ngrams(6, n, padded=True))
    shorter = Tree(list(range(4)))
    blocks = blocks_between(subtrees(chain, n), subtrees(shorter, n), (6, 4))
    assert as_sets(blocks) == as_sets(blocks_between(windows(6, n), windows(4, n), (6, 4)))


@given(sizes=st.tuples(st.integers(1, 7), st.integers(1, 7)), n=st.integers(1, 4))
def test_blocks_of_windows_are_the_diagonals(sizes, n):
    blocks = blocks_between(windows(sizes[0], n), windows(sizes[1], n), sizes)
    assert as_sets(blocks) == as_sets(diagonals(*sizes, n))
    held = np.zeros(sizes, int)
    for block in blocks:
        held[tuple(block.T)] += 1
        assert (np.diff(block, axis=0) == 1).all()
    assert (held == n).all()


@given(heads=trees(), others=trees(), n=st.integers(1, 3), data=st.data())
def test_every_pair_is_in_n_blocks_of_two_trees(heads, others, n, data):
    names = st.sampled_from(["nsubj", "obj"])
    sides, shape = [], (len(heads), len(others))
    for tree in (heads, others):
        relations = [data.draw(names) for _ in tree] if data.draw(st.booleans()) else None
        sides.append(subtrees(Tree(tree, relations), n))
    held = np.zeros(shape, int)
    for block in blocks_between(*sides, shape):
        held[tuple(block.T)] += 1
        assert len(set(block[:, 0].tolist())) == len(set(block[:, 1].tolist())) == len(block)
    assert (held == n).all()


def test_relations_tell_the_subject_from_the_object():
    """dog <- chases -> cat: the pair of subjects shares a block with the verbs, a mixed one not."""
    tree = Tree([2, 0, 2], ["nsubj", "root", "obj"])
    blocks = as_sets(blocks_between(subtrees(tree, 2), subtrees(tree, 2), (3, 3)))
    assert [(0, 0), (1, 1), (2, 2)] in blocks
    assert not any((0, 2) in block and len(block) > 1 for block in blocks)
    bare = Tree([3, 3, 0, 3])  # two on the left: from the head outwards
    assert bare.labels() == [("left", 1), ("left", 0), ("right", 0), ("right", 0)]


@pytest.mark.parametrize(
    ("heads", "relations"),
    [
        ([3, 3, 0, 3, 4], ["nsubjpass", "auxpass", "root", "prep", "pobj"]),
        ([3, 3, 0, 3, 4], ["nsubj:pass", "aux:pass", "root", "agent", "pobj"]),
        ([3, 3, 0, 5, 3], ["nsubj:pass", "aux:pass", "root", "case", "obl"]),
        ([3, 3, 0, 5, 3], ["nsubj:pass", "aux:pass", "root", "case", "obl:agent"]),
    ],
)
def test_a_passive_sentence_has_the_roles_of_the_active_one(heads, relations):
    words = ["eggs", "are", "eaten", "by", "men"]
    Parsed(words, heads, relations)
    found = Tree(heads, relations).in_active_voice(words)
    assert (found.heads[0], found.relations[0]) == (3, "obj")
    assert (found.heads[4], found.relations[4]) == (3, "nsubj")
    Parsed(words, found.heads, found.relations)  # still a tree
    assert Tree(heads).in_active_voice(words) == Tree(heads)


@given(heads=trees(), data=st.data())
def test_the_active_voice_is_a_tree_again(heads, data):
    names = st.sampled_from(["nsubjpass", "auxpass", "case", "pobj", "obl", "dobj"])
    words = [data.draw(st.sampled_from(["by", "men"])) for _ in heads]
    found = Tree(heads, [data.draw(names) for _ in heads]).in_active_voice(words)
    Parsed(words, found.heads, found.relations)  # no cycle, all in range


def test_standing_by_something_is_no_agent():
    words, heads = ["men", "stand", "by", "trees"], [2, 0, 2, 3]
    tree = Tree(heads, ["nsubj", "root", "prep", "pobj"])
    assert tree.in_active_voice(words) == tree


@given(heads=trees(), data=st.data())
def test_contraction_keeps_ancestors(heads, data):
    kept = [i for i in range(len(heads)) if data.draw(st.booleans())]
    new = Tree(heads).contract(kept).heads
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
    with pytest.raises(ValueError, match="1 entries for 2 tokens"):
        Parsed(["a", "b"], [0, 1], ["root"])
    with pytest.raises(ValueError, match="Parsed"):
        phrases_of("dependency", 2, ("a", "b"), None)


def test_a_function_may_leave_words_out_and_must_stay_inside():
    found = phrases_of(lambda words: [[0, 1], []], 2, ("a", "b", "c"), None)
    assert [p.members.tolist() for p in found] == [[0, 1], [2]]
    listed = phrases_of(lambda words: [[2, 0, 2]], 2, ("a", "b", "c"), None)
    assert [p.members.tolist() for p in listed] == [[2, 0], [1]]  # in the order of the list
    assert listed[0].roles.tolist() == [0, 1]
    as_set = phrases_of(lambda words: [[2, 0]], 2, ("a", "b", "c"), None, order=False)
    assert as_set[0].roles.tolist() == [0, 0]
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
