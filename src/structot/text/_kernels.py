"""Compiled loops over many sentence pairs: solve each, or bound each from below.

Notation. Sentences s, t; M the cost of a pair, a and b the weights of its words, K in B(F) a cost
that the adversary may play; the model of F as in `_blocks`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from structot.concave.base import LINEAR
from structot.text._blocks import Array, Ints, Model, add_center, block_edges
from structot.text._plans import costs, dot
from structot.text._splitting import make_pair, solve_pair
from structot.transport.kernels import c_transform_kernel

_jit = njit(cache=True, nogil=True, error_model="numpy")


class Corpus(NamedTuple):
    """Sentences one after the other: words (rows of the vectors), weights, phrases.

    Sentence s has the words offset[s]:offset[s+1]. Its phrases are the runs of
    member[member_offset[s]:member_offset[s+1]], which are positions within the sentence, between
    the cuts begin[begin_offset[s]:begin_offset[s+1]].
    """

    word: Ints
    weight: Array
    offset: Ints
    member: Ints
    member_offset: Ints
    begin: Ints
    begin_offset: Ints


@_jit
def _pair_edges(corpus: Corpus, s: int, t: int, m: int) -> tuple[Ints, Ints]:
    """The blocks of sentences s and t."""
    member, at, begin, cut = corpus.member, corpus.member_offset, corpus.begin, corpus.begin_offset
    return block_edges(
        member[at[s] : at[s + 1]],
        begin[cut[s] : cut[s + 1]],
        member[at[t] : at[t + 1]],
        begin[cut[t] : cut[t + 1]],
        m,
    )


@_jit
def _priced(model: Model, corpus: Corpus, s: int, t: int) -> Model:
    """The price of a block of this pair: the charge over the mean number of blocks of an edge."""
    words = (corpus.offset[s + 1] - corpus.offset[s]) * (corpus.offset[t + 1] - corpus.offset[t])
    at = corpus.member_offset
    copies = (at[s + 1] - at[s]) * (at[t + 1] - at[t])
    price = model.price * words / copies if copies > 0 else 0.0
    return Model(model.kind, model.params, model.unit, price)


@_jit
def solve_pairs(
    first: int,
    last: int,
    pairs: Ints,
    corpus: Corpus,
    vectors: Array,
    model: Model,
    tol: float,
    max_iter: int,
    answer: Array,
) -> None:
    """Rows first:last of ``answer``: value, lower bound, iterations, code of each pair."""
    word, weight, offset = corpus.word, corpus.weight, corpus.offset
    for k in range(first, last):
        s, t = pairs[k, 0], pairs[k, 1]
        source, target = slice(offset[s], offset[s + 1]), slice(offset[t], offset[t + 1])
        M = costs(vectors, word[source], word[target])
        edge, start = _pair_edges(corpus, s, t, M.shape[1])
        P = np.empty(M.shape)
        F = _priced(model, corpus, s, t)
        value, bound, n_iter, code = solve_pair(
            M, weight[source], weight[target], edge, start, F, tol, max_iter, P
        )
        answer[k, 0], answer[k, 1], answer[k, 2], answer[k, 3] = value, bound, n_iter, code


@_jit
def _relaxed(K: Array, a: Array, b: Array) -> float:
    """Each column takes its least cost, the rest goes to the rows: a·u + b·v with u ⊕ v <= K."""
    u, v = np.zeros(a.size), np.zeros(b.size)
    c_transform_kernel(K, u, v)
    return dot(a, u) + dot(b, v)


@_jit
def bound_pairs(
    first: int,
    last: int,
    pairs: Ints,
    corpus: Corpus,
    vectors: Array,
    model: Model,
    bound: Array,
) -> None:
    """Relaxed transport with a cost K in B(F), both ways round: bounds without iterations."""
    word, weight, offset = corpus.word, corpus.weight, corpus.offset
    for k in range(first, last):
        s, t = pairs[k, 0], pairs[k, 1]
        source, target = slice(offset[s], offset[s + 1]), slice(offset[t], offset[t + 1])
        M = costs(vectors, word[source], word[target])
        K = M
        if model.kind != LINEAR:
            edge, start = _pair_edges(corpus, s, t, M.shape[1])
            F = _priced(model, corpus, s, t)
            pair = make_pair(M, weight[source], weight[target], edge, start, F)
            K = pair.C
            add_center(K.ravel(), pair.copies, F)
        back = np.ascontiguousarray(K.T)
        bound[k] = max(
            _relaxed(K, weight[source], weight[target]),
            _relaxed(back, weight[target], weight[source]),
        )
