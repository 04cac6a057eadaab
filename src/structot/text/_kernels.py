"""Compiled loops over many sentence pairs: solve each, or bound each from below.

Notation. Sentences s, t; M the distances between their words, a and b the weights of the words, K
in B(F) a cost that the adversary may play; copies and blocks as in `solvers.batch.layers`, a block
for every pair of phrases.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from structot.concave.base import LINEAR, STEP
from structot.solvers.batch.layers import Array, Copies, Ints, add_center, make_copies
from structot.solvers.batch.proofs import Goal, Proof, make_proof, transport_bound
from structot.solvers.batch.splitting import solve_small
from structot.transport.kernels import c_transform_kernel

_FREE = 1e-2  # metric of a pair of words that costs nothing, relative to the mean cost

_jit = njit(cache=True, nogil=True, error_model="numpy")


class Model(NamedTuple):
    """F of a pair of phrases: price · 1[S ≠ ∅] if the kind is STEP, else unit · g(w(S) / unit).

    LINEAR is plain transport.
    """

    kind: int
    params: Array
    unit: float
    price: float


class Corpus(NamedTuple):
    """Sentences one after the other: words (rows of the vectors), weights, phrases.

    Sentence s has the words offset[s]:offset[s+1]. Its phrases are the runs of
    member[member_offset[s]:member_offset[s+1]], which are positions within the sentence, between
    the cuts begin[begin_offset[s]:begin_offset[s+1]]; role runs along with member.
    """

    word: Ints
    weight: Array
    offset: Ints
    member: Ints
    role: Ints
    member_offset: Ints
    begin: Ints
    begin_offset: Ints


class Side(NamedTuple):
    """The phrases of one sentence: phrase k is member[start[k]:start[k+1]], with their roles."""

    member: Ints
    role: Ints
    start: Ints


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _squared_distance(x: Array, y: Array) -> float:
    # Reassociation only: vectorised, and equal vectors are at 0 exactly.
    total = 0.0
    for k in range(x.size):
        total += (x[k] - y[k]) * (x[k] - y[k])
    return total


@_jit
def distances(rows: Array, word: Ints, vectors: Array) -> Array:
    """|x_i - y_j| of the words of one sentence and all vectors."""
    D = np.empty((word.size, len(vectors)))
    for i in range(word.size):
        x = rows[word[i]]
        for j in range(len(vectors)):
            D[i, j] = math.sqrt(_squared_distance(x, vectors[j]))
    return D


@_jit
def costs(vectors: Array, source: Ints, target: Ints) -> Array:
    """M_ij = |x_i - y_j|."""
    M = np.empty((source.size, target.size))
    for i in range(source.size):
        x = vectors[source[i]]
        for j in range(target.size):
            M[i, j] = math.sqrt(_squared_distance(x, vectors[target[j]]))
    return M


@_jit
def _coverage(side: Side, size: int) -> Ints:
    """In how many phrases each word is."""
    number = np.zeros(size, np.int64)
    for i in side.member:
        number[i] += 1
    return number


@_jit
def _block_edges(
    M: Array, every: bool, source: Side, target: Side
) -> tuple[Ints, Ints, Array, bool]:
    """The edges of all blocks, where each block starts, how many hold each edge; none is empty.

    A block is what two phrases have in common: the pairs of words of the same role. An edge in
    fewer blocks than its words have phrases is a block of its own for the rest. Unless ``every``
    edge is wanted, those that cost nothing are no part of all this but one last block; the last
    answer is whether there is one.
    """
    n, m = M.shape
    rows, columns = _coverage(source, n), _coverage(target, m)
    most = max(rows.max(), columns.max())
    edge = np.empty(source.member.size * target.member.size + (most + 1) * n * m, np.int64)
    start = np.zeros(source.start.size * target.start.size + most * n * m + 2, np.int64)
    count = np.zeros(n * m)
    c, blocks = 0, 0
    for k in range(source.start.size - 1):
        for l in range(target.start.size - 1):
            for x in range(source.start[k], source.start[k + 1]):
                for y in range(target.start[l], target.start[l + 1]):
                    if source.role[x] == target.role[y]:
                        i, j = source.member[x], target.member[y]
                        if every or M[i, j] > 0.0:
                            edge[c] = i * m + j
                            count[i * m + j] += 1.0
                            c += 1
            if c > start[blocks]:
                blocks += 1
                start[blocks] = c
    free = False
    for i in range(n):
        for j in range(m):
            e = i * m + j
            if every or M[i, j] > 0.0:
                while count[e] < max(rows[i], columns[j]):
                    edge[c] = e
                    count[e] += 1.0
                    c += 1
                    blocks += 1
                    start[blocks] = c
            else:
                free = True
    if free:
        for e in range(n * m):
            if count[e] == 0.0:
                edge[c] = e
                count[e] = 1.0
                c += 1
        blocks += 1
        start[blocks] = c
    return edge[:c], start[: blocks + 1], count, free


@_jit
def phrase_copies(M: Array, model: Model, source: Side, target: Side) -> Copies:
    """The blocks of two sentences: every edge divides its weight equally among its copies.

    The price of a block is the charge over the mean number of blocks of an edge.
    """
    fixed = model.kind == STEP
    edge, start, count, free = _block_edges(M, fixed, source, target)
    cost, w = M.ravel(), np.empty(edge.size)
    nothing = _FREE * cost.mean() if cost.max() > 0.0 else 1.0
    for c in range(edge.size):
        e = edge[c]
        w[c] = (1.0 if fixed else cost[e] if cost[e] > 0.0 else nothing) / count[e]
    blocks, size = start.size - 1, model.params.size
    price = model.price * M.size / edge.size if fixed else model.unit
    outer, inner = np.full(blocks, price), np.full(blocks, 1.0 / model.unit)
    if free:
        outer[-1] = 0.0
    kind, params = np.full(blocks, model.kind), np.empty(blocks * size)
    for b in range(blocks):
        params[b * size : (b + 1) * size] = model.params
    layer, offset = np.array([0, blocks]), np.arange(blocks + 1) * size
    return make_copies(edge, start, w, layer, kind, offset, params, outer, inner)


@_jit
def _no_copies() -> Copies:
    """The blocks of plain transport."""
    nothing, number = np.empty(0), np.empty(0, np.int64)
    one = np.zeros(1, np.int64)
    return make_copies(number, one, nothing, one, number, one, nothing, nothing, nothing)


@_jit
def _side(corpus: Corpus, s: int) -> Side:
    """The phrases of a sentence."""
    first, last = corpus.member_offset[s], corpus.member_offset[s + 1]
    start = corpus.begin[corpus.begin_offset[s] : corpus.begin_offset[s + 1]]
    return Side(corpus.member[first:last], corpus.role[first:last], start)


@_jit
def _linear_and_blocks(M: Array, model: Model, source: Side, target: Side) -> tuple[Array, Copies]:
    """The linear cost and the blocks of a pair of sentences."""
    if model.kind == LINEAR:
        return M, _no_copies()
    copies = phrase_copies(M, model, source, target)
    return M if model.kind == STEP else np.zeros(M.shape), copies


@_jit
def solve_pairs(
    first: int,
    last: int,
    pairs: Ints,
    corpus: Corpus,
    vectors: Array,
    model: Model,
    goal: Goal,
    answer: Array,
) -> None:
    """Rows first:last of ``answer``: value, lower bound, iterations, code of each pair."""
    word, weight, offset = corpus.word, corpus.weight, corpus.offset
    for k in range(first, last):
        s, t = pairs[k]
        source, target = slice(offset[s], offset[s + 1]), slice(offset[t], offset[t + 1])
        M, a, b = costs(vectors, word[source], word[target]), weight[source], weight[target]
        C, copies = _linear_and_blocks(M, model, _side(corpus, s), _side(corpus, t))
        P, proof = np.empty(C.shape), make_proof(*C.shape)
        value, _, bound, _, n_iter, code = solve_small(C, a, b, copies, goal, P, proof)
        answer[k, 0], answer[k, 1], answer[k, 2], answer[k, 3] = value, bound, n_iter, code


@_jit
def _relaxed(K: Array, a: Array, b: Array) -> float:
    """Each column takes its least cost, the rest goes to the rows: a·u + b·v with u ⊕ v <= K."""
    proof = Proof(K, np.zeros(a.size), np.zeros(b.size))
    c_transform_kernel(K, proof.u, proof.v)
    return transport_bound(proof, a, b)


@_jit
def bound_sentences(
    first: int,
    last: int,
    query: Corpus,
    distances: Array,
    corpus: Corpus,
    model: Model,
    bound: Array,
) -> None:
    """Relaxed transport of a query with a cost K in B(F), both ways round: no iterations.

    ``distances`` are those of the words of the query, and of all vectors of the corpus.
    """
    a, source, n = query.weight, _side(query, 0), query.word.size
    for t in range(first, last):
        words = corpus.word[corpus.offset[t] : corpus.offset[t + 1]]
        b = corpus.weight[corpus.offset[t] : corpus.offset[t + 1]]
        M = np.empty((n, words.size))
        for i in range(n):
            for j in range(words.size):
                M[i, j] = distances[i, words[j]]
        K, copies = _linear_and_blocks(M, model, source, _side(corpus, t))
        add_center(K.ravel(), copies)
        bound[t] = max(_relaxed(K, a, b), _relaxed(np.ascontiguousarray(K.T), b, a))
