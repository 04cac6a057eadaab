"""Passives read as actives: who is moved where, what is left alone, and what `WordMover` hears."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structot.text import Parsed, WordMover
from structot.text.voice import is_participle, reading_order

WORDS = [
    *("the", "a", "dog", "cat", "man", "boy", "chases", "chased", "bites", "bitten"),
    *("is", "was", "are", "being", "been", "by", "in", "park", "not", "up", "old", "quickly"),
]
VECTORS = (WORDS, np.random.default_rng(3).normal(size=(len(WORDS), 8)))


def read(text):
    words = text.split()
    return " ".join(words[k] for k in reading_order(words))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the cat is chased by the dog", "is by the dog chased the cat"),
        ("the cat is being chased by the dog", "being by the dog is chased the cat"),
        ("The cat will not be chased by dogs", "be by dogs will not chased The cat"),
        ("the mouse has been eaten by a cat", "been by a cat has eaten the mouse"),
        ("the piano isn't played by him", "isn't by him played the piano"),
        ("the piano isn’t played by him", "isn’t by him played the piano"),
        ("A piano is n't being played by a man", "being by a man is n't played A piano"),
        ("the man got bitten by a dog", "got by a dog bitten the man"),
        ("a letter was quickly rewritten by her", "was by her quickly rewritten a letter"),
        ("a boy is picked up by his father", "is by his father picked up a boy"),
        ("a soda is being opened and drunk by her", "being by her is opened and drunk a soda"),
        ("nuts were eaten by squirrels and birds", "were by squirrels and birds eaten nuts"),
        # What stands between verb and agent, and behind the agent.
        ("it is being held over his head by a man", "being by a man is held it over his head"),
        ("it is being caught by a dog in mid air", "being by a dog is caught it in mid air"),
        ("songs are being sung by a group of men", "being by a group of men are sung songs"),
        ("a hat is being worn by a boy who runs", "being by a boy is worn a hat who runs"),
        # Where the clause begins.
        ("he sleeps while the cat is fed by her", "he sleeps while is by her fed the cat"),
        ("he thinks that the cat was bitten by it", "he thinks that was by it bitten the cat"),
        ("he is ill and the cat is fed by her", "he is ill and is by her fed the cat"),
        ("the cat and the mouse are fed by her", "are by her fed the cat and the mouse"),
        ("a boy , who is ill , is held by her", "is by her held a boy , who is ill ,"),
        ("a cart that is being pulled by a horse", "a cart that being by a horse is pulled"),
        ("the ball that was thrown by him is red", "the ball that was by him thrown is red"),
        ("there is no cat being chased by a dog", "there is being by a dog chased no cat"),
        ("he sees the cat in a box being fed by us", "he sees being by us fed the cat in a box"),
        ("he is watching cats being fed by her", "he is watching being by her fed cats"),
        ("it 's been eaten by the man 's dog", "been by the man 's dog 's eaten it"),
        # Two in one sentence.
        ("it was lost by us and it was found by you", "was by us lost it and was by you found it"),
    ],
)  # fmt: skip
def test_a_passive_is_read_from_agent_to_patient(text, expected):
    assert read(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "the dog chases the cat",
        "the cat is chased",  # nobody is named
        "the cat is chased up a tree",
        "a man is sitting by the river",  # no participle
        "the house is red by the river",
        "the sled is by the shed",
        "the man is seated by the river",  # there one rests
        "two cars are parked by the gate",
        "the dog is covered in leaves by the road",  # a state: more likely a place
        "a man is wearing a jacket covered by snow",  # no "be" of its own
        "the woman surrounded by men is singing",
        "he is tired by running",  # how
        "the book was printed by hand",
        "he was hit by accident",
        "the cake was eaten by itself",
        "the work must be finished by the end of the week",  # when
        "it was sold by noon",
        "the deal was done by Monday",
        "prices were raised by 10 percent",  # how much
        "the cat was chased by",
        "being chased by dogs",  # nobody suffers
        "a child is laughing and getting hit by boys",
        "by by by is by",
        "by",
        "",
    ],
)
def test_all_else_stays_as_it_is(text):
    assert read(text) == text


def test_participles():
    yes = "chased picked eaten cut overtaken rewritten withheld agreed unread"
    no = "red bed sled speed seed chases chasing running is man hundred"
    assert all(map(is_participle, yes.split()))
    assert not any(map(is_participle, no.split()))


@settings(max_examples=1000)
@given(
    words=st.lists(st.sampled_from(["is", "being", "bitten", "by", "a", "us", ",", "and", "that"]))
)
def test_any_words_are_read_once_each(words):
    assert sorted(reading_order(words)) == list(range(len(words)))


ACTIVE, PASSIVE = "the dog chased the cat", "the cat was chased by the dog"
OTHER, OTHER_PASSIVE = "the cat chased the dog", "the dog was chased by the cat"


@pytest.mark.parametrize("options", [{}, {"ngram": 3}, {"weights": "count"}, {"charge": 0.1}])
@pytest.mark.parametrize("stop_words", [None, "english"])
def test_a_passive_is_nearer_to_its_active_voice(options, stop_words):
    mover = WordMover(VECTORS, stop_words=stop_words, **options)
    d = mover.pairwise([ACTIVE, OTHER], [PASSIVE, OTHER_PASSIVE], tol=1e-5)
    assert d[0, 0] < d[0, 1]
    assert d[1, 1] < d[1, 0]
    np.testing.assert_allclose(
        d, mover.pairwise([PASSIVE, OTHER_PASSIVE], [ACTIVE, OTHER], tol=1e-5).T
    )
    written = WordMover(VECTORS, stop_words=stop_words, active_voice=False, **options)
    d = written.pairwise([ACTIVE, OTHER], [PASSIVE, OTHER_PASSIVE], tol=1e-5)
    assert d[0, 0] >= d[0, 1]
    assert d[1, 1] >= d[1, 0]


def test_words_weights_and_distances_to_itself_stay():
    mover, written = WordMover(VECTORS), WordMover(VECTORS, active_voice=False)
    ours, theirs = mover.prepare(PASSIVE), written.prepare(PASSIVE)
    assert ours.words == theirs.words
    assert (ours.weights == theirs.weights).all()
    assert (ours.coverage == 2).all()
    assert mover.distance(PASSIVE, PASSIVE) == 0.0
    assert mover.distance(PASSIVE, OTHER_PASSIVE) > 0.0
    # Words that have no vector, or are dropped, still tell the voice.
    deaf = WordMover((WORDS[2:8], VECTORS[1][2:8]))
    with pytest.warns(UserWarning, match="no vector"):
        assert deaf.distance(ACTIVE, PASSIVE) == 0.0


def test_the_voice_is_for_phrases_in_order():
    passive = Parsed(PASSIVE.split(), [2, 4, 4, 0, 4, 7, 5])  # no relations: the side of the head
    for options in ({"order": False}, {"groups": "dependency"}, {"like": "gensim"}):
        a = WordMover(VECTORS, **options).prepare(passive).phrases
        b = WordMover(VECTORS, active_voice=False, **options).prepare(passive).phrases
        assert [p.members.tolist() for p in a] == [p.members.tolist() for p in b]
    asked = []
    WordMover(VECTORS, groups=lambda words: asked.append(words) or []).prepare(PASSIVE)
    assert asked == [PASSIVE.split()]  # a function reads what is written


def test_the_voice_of_parsed_sentences_can_be_left_as_written():
    relations = ["det", "nsubjpass", "auxpass", "root", "prep", "det", "pobj"]
    parsed = Parsed(PASSIVE.split(), [2, 4, 4, 0, 4, 7, 5], relations)
    trees = [
        WordMover(VECTORS, groups="dependency", active_voice=voice).tokens(parsed)[1]
        for voice in (True, False)
    ]
    assert [tree.relations[1] for tree in trees] == ["obj", "nsubjpass"]


def test_an_explanation_names_phrases_as_they_are_read():
    why = WordMover(VECTORS).explain(PASSIVE, ACTIVE)
    assert why.source == tuple(PASSIVE.split())
    assert [" ".join(fate.words) for fate in why.fates if fate.side == "source"] == [
        "was by", "by the", "the dog", "dog chased", "chased the", "the cat"
    ]  # fmt: skip
    assert ("dog", "chased") in {fate.words for fate in why.kept()}


def test_a_stop_word_is_the_same_with_a_capital():
    cased = (["The", "the", "I", "i", "Dog", "dog"], np.eye(6))
    mover = WordMover(cased)
    assert mover.prepare("The Dog I").rows.tolist() == [1, 4, 2]
    assert WordMover(cased, like="gensim").prepare("The Dog").rows.tolist() == [0, 4]
    assert WordMover((["The"], [[1.0]])).prepare("The").rows.tolist() == [0]
