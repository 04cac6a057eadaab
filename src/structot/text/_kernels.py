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
    the cuts begin[begin_offset[s]:begin_offset[s+1]].
    """

    word: Ints
    weight: Array
    offset: Ints
    member: Ints
    member_offset: Ints
    begin: Ints
    begin_offset: Ints


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _squared_distance(x: Array, y: Array) -> float:
    # Reassociation only: vectorised, and equal vectors are at 0 exactly.
    total = 0.0
    for k in range(x.size):
        total += (x[k] - y[k]) * (x[k] - y[k])
    return total


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
def _block_edges(
    M: Array, every: bool, source: Ints, source_start: Ints, target: Ints, target_start: Ints
) -> tuple[Ints, Ints, bool]:
    """The edges of all pairs of phrases, and where each block starts; no block is empty.

    Unless ``every`` edge is wanted, those that cost nothing are no part of it but one last block;
    the last answer is whether there is one.
    """
    n, m = M.shape
    edge = np.empty(source.size * target.size + n * m, np.int64)
    start = np.zeros(source_start.size * target_start.size + 1, np.int64)
    c, blocks = 0, 0
    for k in range(source_start.size - 1):
        for l in range(target_start.size - 1):
            for i in source[source_start[k] : source_start[k + 1]]:
                for j in target[target_start[l] : target_start[l + 1]]:
                    if every or M[i, j] > 0.0:
                        edge[c] = i * m + j
                        c += 1
            if c > start[blocks]:
                blocks += 1
                start[blocks] = c
    for i in range(n):
        for j in range(m):
            if M[i, j] == 0.0 and not every:
                edge[c] = i * m + j
                c += 1
    free = c > start[blocks]
    if free:
        blocks += 1
        start[blocks] = c
    return edge[:c], start[: blocks + 1], free


@_jit
def phrase_copies(
    M: Array, model: Model, source: Ints, source_start: Ints, target: Ints, target_start: Ints
) -> Copies:
    """The blocks of two sentences: every edge divides its weight equally among its copies.

    The price of a block is the charge over the mean number of blocks of an edge.
    """
    fixed = model.kind == STEP
    edge, start, free = _block_edges(M, fixed, source, source_start, target, target_start)
    count = np.zeros(M.size)
    for e in edge:
        count[e] += 1.0
    cost, w = M.ravel(), np.empty(edge.size)
    nothing = _FREE * cost.mean() if cost.max() > 0.0 else 1.0
    for c in range(edge.size):
        e = edge[c]
        w[c] = (1.0 if fixed else cost[e] if cost[e] > 0.0 else nothing) / count[e]
    blocks, size = start.size - 1, model.params.size
    price = model.price * M.size / (source.size * target.size) if fixed else model.unit
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
def _problem(
    corpus: Corpus, s: int, t: int, vectors: Array, model: Model
) -> tuple[Array, Array, Array, Copies]:
    """The linear cost, both weights and the blocks of a pair of sentences."""
    word, weight, offset = corpus.word, corpus.weight, corpus.offset
    source, target = slice(offset[s], offset[s + 1]), slice(offset[t], offset[t + 1])
    M = costs(vectors, word[source], word[target])
    if model.kind == LINEAR:
        return M, weight[source], weight[target], _no_copies()
    member, at, begin, cut = corpus.member, corpus.member_offset, corpus.begin, corpus.begin_offset
    copies = phrase_copies(
        *(M, model),
        *(member[at[s] : at[s + 1]], begin[cut[s] : cut[s + 1]]),
        *(member[at[t] : at[t + 1]], begin[cut[t] : cut[t + 1]]),
    )
    C = M if model.kind == STEP else np.zeros(M.shape)
    return C, weight[source], weight[target], copies


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
    for k in range(first, last):
        C, a, b, copies = _problem(corpus, pairs[k, 0], pairs[k, 1], vectors, model)
        P, proof = np.empty(C.shape), make_proof(*C.shape)
        value, _, bound, _, n_iter, code = solve_small(C, a, b, copies, goal, P, proof)
        answer[k, 0], answer[k, 1], answer[k, 2], answer[k, 3] = value, bound, n_iter, code


@_jit
def _relaxed(K: Array, a: Array, b: Array) -> float:
    """Each column takes its least cost, the rest goes to the rows: a·u + b·v with u ⊕ v <= K."""
    proof = Proof(K, np.zeros(a.size), np.zeros(b.size))
    c_transform_kernel(K, proof.u, proof.v)
    return transport_bound(proof, a, b, 0.0)


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
    for k in range(first, last):
        K, a, b, copies = _problem(corpus, pairs[k, 0], pairs[k, 1], vectors, model)
        add_center(K.ravel(), copies)
        bound[k] = max(_relaxed(K, a, b), _relaxed(np.ascontiguousarray(K.T), b, a))
