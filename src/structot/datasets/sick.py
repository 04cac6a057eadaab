"""SICK: pairs of English sentences with a relatedness score, their parses, and word vectors.

Files of the data folder: ``sick.tsv.gz``, ``sick_parses.jsonl.gz``, ``glove840b_300d_sick.npz``
(GloVe 840B, the words of SICK), ``word_vectors.npz`` (GloVe 6B, 33 thousand words). SICK is
CC BY-NC-SA 3.0 (Marelli et al., SemEval 2014, task 1), GloVe is PDDL 1.0; neither is shipped.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from structot._checks import one_of
from structot._parsed import Parsed
from structot._typing import Array
from structot.datasets._folder import check_sha256, find

__all__ = ["Sick", "glove", "sick"]

SPLITS = ("train", "trial", "test")
_SUMS = {
    "sick.tsv.gz": "853e5397c048d7e94f6702153cac06001135c522eef403133b03761a27294fa2",
    "sick_parses.jsonl.gz": "b33c047562ece8e89793add234e1b1c1b066410cefc322b37bc3fff07dacce0b",
    "glove840b_300d_sick.npz": "707dc505505382ff97d90cac703f626e77b5ac8a801bffbbc1039944162d19b5",
    "word_vectors.npz": "1e003eabedd9aea0d2eb9468f651d6915678d041fa9e00c0019e41d124bce82f",
}
_VECTORS = {"840b": "glove840b_300d_sick.npz", "6b": "word_vectors.npz"}


@dataclass(frozen=True, eq=False)
class Sick:
    """Pairs of parsed sentences.

    Attributes
    ----------
    source, target
        The two sentences of every pair, with tokens, heads and relations.
    score
        Relatedness from 1 to 5, shape (pairs,).
    judgment
        NEUTRAL, ENTAILMENT or CONTRADICTION, shape (pairs,).
    split
        train, trial or test, shape (pairs,).
    pair_id
        The number of the pair in the original files, shape (pairs,).

    Examples
    --------
    >>> import numpy as np
    >>> from structot._parsed import Parsed
    >>> one = Parsed(("dogs", "bark"), (2, 0))
    >>> pairs = Sick((one,), (one,), np.array([5.0]), np.array(["ENTAILMENT"]), np.array(["test"]),
    ...              np.array([1]))
    >>> len(pairs.source), pairs.score.tolist()
    (1, [5.0])
    """

    source: tuple[Parsed, ...]
    target: tuple[Parsed, ...]
    score: Array
    judgment: Array
    split: Array
    pair_id: Array

    def __len__(self) -> int:
        return len(self.source)

    def part(self, split: str) -> Sick:
        """The pairs of one split."""
        return self.take(np.flatnonzero(self.split == one_of("split", split, SPLITS)))

    def take(self, index: Array) -> Sick:
        """Some of the pairs, by position."""
        source, target = (tuple(x[i] for i in index) for x in (self.source, self.target))
        arrays = (self.score, self.judgment, self.split, self.pair_id)
        return Sick(source, target, *(array[index] for array in arrays))


def sick(data: str | os.PathLike | None = None, *, check: bool = True) -> Sick:
    """All pairs of SICK with their dependency trees.

    Parameters
    ----------
    data
        The data folder; STRUCTOT_DATA by default.
    check
        Compare the checksums of the files.

    Examples
    --------
    >>> sick("no such folder")
    Traceback (most recent call last):
    ...
    FileNotFoundError: ...
    """
    rows = {}
    with gzip.open(_file("sick.tsv.gz", data, check), "rt", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            rows[row["split"], int(row["pair_ID"])] = row
    parses = {}
    with gzip.open(_file("sick_parses.jsonl.gz", data, check), "rt", encoding="utf-8") as file:
        for line in file:
            entry = json.loads(line)
            key = entry["split"], int(entry["pair_ID"])
            parses[key] = tuple(_parsed(entry[x]) for x in ("A", "B"))
    missing = [key for key in rows if key not in parses]
    if missing:
        raise ValueError(f"sick_parses.jsonl.gz has no parse of pair {missing[0]}.")
    return Sick(
        tuple(parses[key][0] for key in rows),
        tuple(parses[key][1] for key in rows),
        np.array([float(row["relatedness_score"]) for row in rows.values()]),
        np.array([row["entailment_judgment"] for row in rows.values()]),
        np.array([split for split, _ in rows]),
        np.array([number for _, number in rows]),
    )


def glove(
    name: str = "840b", data: str | os.PathLike | None = None, *, check: bool = True
) -> tuple[Array, Array]:
    """GloVe vectors as (words, matrix), which `structot.text.WordMover` takes.

    Parameters
    ----------
    name
        ``"840b"``: 300 dimensions, cased, the words of SICK only; ``"6b"``: 100 dimensions, lower
        case, the 33 thousand most frequent words.
    data, check
        As in `sick`.

    Examples
    --------
    >>> glove("6b", "no such folder")
    Traceback (most recent call last):
    ...
    FileNotFoundError: ...
    """
    file = _file(_VECTORS[one_of("name", name, _VECTORS)], data, check)
    with np.load(file, allow_pickle=False) as arrays:
        return arrays["words"], arrays["vectors"]


def _parsed(entry: dict[str, Any]) -> Parsed:
    return Parsed(entry["tokens"], entry["heads"], entry.get("rels"))


def _file(name: str, data: str | os.PathLike | None, check: bool) -> Path:
    path = find(name, data)
    return check_sha256(path, _SUMS[name]) if check else path
