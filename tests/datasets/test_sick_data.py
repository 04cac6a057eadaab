"""The loader of SICK on small files of the same form."""

import gzip
import json

import numpy as np
import pytest

from structot.datasets.sick import glove, sick
from structot.text import WordMover

HEADER = "split\tpair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
ROWS = [
    ("train", 1, 'A "dog" runs', "A cat runs", 4.5, "NEUTRAL"),
    ("test", 1, "A dog runs", "Nobody runs", 2.25, "CONTRADICTION"),
]


@pytest.fixture
def folder(tmp_path):
    with gzip.open(tmp_path / "sick.tsv.gz", "wt", encoding="utf-8") as file:
        file.write(HEADER)
        file.writelines("\t".join(map(str, row)) + "\n" for row in ROWS)
    with gzip.open(tmp_path / "sick_parses.jsonl.gz", "wt", encoding="utf-8") as file:
        for split, number, A, B, _, _ in reversed(ROWS):
            entry = {"split": split, "pair_ID": number}
            for name, text in (("A", A), ("B", B)):
                tokens = text.split()
                entry[name] = {"tokens": tokens, "heads": [*range(2, len(tokens) + 1), 0]}
            file.write(json.dumps(entry) + "\n")
    words = np.array(["a", "dog", "cat", "runs", "Nobody"])
    vectors = np.arange(10, dtype=np.float32).reshape(5, 2)
    np.savez(tmp_path / "glove840b_300d_sick.npz", words=words, vectors=vectors)
    return tmp_path


def test_pairs_are_joined_with_their_parses(folder):
    data = sick(folder, check=False)
    assert len(data) == 2
    assert data.score.tolist() == [4.5, 2.25]
    train = data.part("train")
    assert train.source[0].tokens == ("A", '"dog"', "runs")
    assert train.source[0].heads == (2, 3, 0)
    assert data.part("test").target[0].tokens == ("Nobody", "runs")
    assert data.part("test").judgment.tolist() == ["CONTRADICTION"]
    assert len(data.part("trial")) == 0
    with pytest.raises(ValueError, match="split"):
        data.part("dev")


def test_vectors_go_into_word_mover(folder):
    test = sick(folder, check=False).part("test")
    mover = WordMover(glove(data=folder, check=False), groups="dependency")
    assert mover.distance(test.source[0], test.target[0]) > 0


def test_damaged_and_missing_files_are_named(folder):
    with pytest.raises(ValueError, match=r"sick\.tsv\.gz.*sha256"):
        sick(folder)
    with pytest.raises(FileNotFoundError, match=r"word_vectors\.npz"):
        glove("6b", folder)
    with pytest.raises(ValueError, match="name"):
        glove("42b", folder)
    with gzip.open(folder / "sick_parses.jsonl.gz", "wt") as file:
        file.write("")
    with pytest.raises(ValueError, match="no parse of pair"):
        sick(folder, check=False)
