"""Words of any script, in the spelling that the vocabulary knows."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from structot.text import WordMover
from structot.text.tokens import forms, known_parts, split_words

KNOWN = {"do", "n't", "not", "woman", "'s", "can", "will", "well", "trained", "l'", "homme", "rock",
         "o'clock", "mother-in-law"}  # fmt: skip


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("don't", ["do", "n't"]),
        ("can't", ["can", "n't"]),
        ("won't", ["will", "n't"]),
        ("woman's", ["woman", "'s"]),
        ("l'homme", ["l'", "homme"]),
        ("well-trained", ["well", "trained"]),
        ("o'clock", ["o'clock"]),
        ("mother-in-law", ["mother-in-law"]),
        ("zebra's", ["zebra", "'s"]),
        ("rock-n-roll", ["rock", "n", "roll"]),
        ("zebra-emu", ["zebra-emu"]),
        ("zebra", ["zebra"]),
    ],
)
def test_a_word_is_split_as_the_vocabulary_knows_it(word, parts):
    assert known_parts(word, KNOWN.__contains__) == parts


def test_negation_survives_without_a_clitic():
    assert known_parts("don't", {"do", "not"}.__contains__) == ["do", "not"]
    assert known_parts("woman's", {"woman"}.__contains__) == ["woman"]


def test_curly_apostrophes_and_decomposed_accents_are_the_same_words():
    mover = WordMover({"don't": [1.0, 0.0], "café": [0.0, 1.0], "naïve": [1.0, 1.0]})
    plain = mover.prepare("don't café naïve")
    for text in ("don’t café naïve", "donʼt cafe\u0301 nai\u0308ve", "Don‘t CAFÉ Nai\u0308ve"):
        found = mover.prepare(text)
        assert found.rows.tolist() == plain.rows.tolist()
    # Lists of words are looked up in all spellings as well.
    assert mover.prepare(["don’t", "cafe\u0301", "naïve"]).rows.tolist() == plain.rows.tolist()
    curly = WordMover({"don’t": [1.0], "cafe\u0301": [2.0]})
    assert curly.prepare("don't café").rows.tolist() == [0, 1]
    assert not mover.unknown


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("हिन्दी में पढ़ो", ["हिन्दी", "में", "पढ़ो"]),  # vowel signs are marks, not letters
        ("Ελλάδα, Россия!", ["Ελλάδα", "Россия"]),
        ("می\u200cخواهم بروم", ["می\u200cخواهم", "بروم"]),
        ("co\u00adoperate", ["cooperate"]),
        ("'quoted' -- and - dashed–out", ["quoted", "and", "dashed", "out"]),
        ("", []),
    ],
)
def test_scripts(text, words):
    assert split_words(text) == [unicodedata.normalize("NFC", word) for word in words]


def test_scripts_without_spaces_ask_for_a_tokenizer():
    vectors = {"猫": [1.0, 0.0], "狗": [0.0, 1.0]}
    with pytest.warns(UserWarning, match="need a tokenizer="):
        WordMover(vectors, on_empty="nan").distance("猫狗", "狗")
    assert WordMover(vectors, tokenizer=list).distance("猫狗", "狗猫") > 0


@given(text=st.text(max_size=40))
def test_words_are_composed_and_made_of_the_text(text):
    found = split_words(text)
    assert all(word == unicodedata.normalize("NFC", word) for word in found)
    assert split_words(" ".join(found)) == found
    assert split_words(unicodedata.normalize("NFD", text)) == found


@given(word=st.text(min_size=1, max_size=8))
def test_a_word_is_first_looked_up_as_it_stands(word):
    assert next(forms(word)) == word
    assert word.lower() in forms(word)
