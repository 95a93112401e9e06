"""What a study is: its table, its links, and which trials each person gets."""

from collections import Counter
from pathlib import Path

import pytest

import openfield as of
from openfield.view.play.people import deal_trials, make_links, read_people
from support.places import MAZE

TRIALS = of.registry.find_domain(MAZE).trials(count=3, unchanged=0)


def test_people_take_turns_so_that_all_trials_are_played_equally_often() -> None:
    dealt = [trial.id for person in range(6) for trial in deal_trials(TRIALS, person, 2)]
    assert set(Counter(dealt).values()) == {4}
    assert [len(deal_trials(TRIALS, person, None)) for person in range(2)] == [3, 3]


def test_a_test_comes_with_its_training() -> None:
    doom = of.registry.find_domain("doom").trials(count=2, unchanged=0, training=1, episodes=2, before=1)
    dealt = deal_trials(doom, 1, 1)
    assert [trial.is_training for trial in dealt] == [True, False]
    assert dealt[1].after == dealt[0].id


def test_links_are_secret_and_stay_the_same(tmp_path: Path) -> None:
    first = make_links(tmp_path / "links", 3)
    assert make_links(tmp_path / "links", 5)[:3] == first
    assert make_links(tmp_path / "others", 3) != first
    assert len(set(first)) == 3
    assert min(map(len, first)) >= 24


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"titel": "x"}, "Did you mean 'title'"),
        ({"trials": 0}, r"\[people\]: Expected `int` >= 1"),
        ({"questions": [{"name": "a", "text": "?"}, {"name": "a", "text": "!"}]}, "a name of its own"),
        ({"questions": [{"name": "a", "text": "?", "kind": "choice"}]}, "needs options to choose from"),
    ],
)
def test_a_wrong_table_is_refused(table: dict[str, object], message: str) -> None:
    with pytest.raises((of.errors.InvalidInput, of.errors.UnknownName), match=message):
        read_people(table)


def test_answers_must_fit_their_questions() -> None:
    questions = [
        {"name": "age", "text": "Your age?", "kind": "number"},
        {"name": "pick", "text": "Which?", "kind": "choice", "options": ["a", "b"]},
        {"name": "more", "text": "More?", "optional": True},
    ]
    age, pick, more = read_people({"questions": questions}).questions
    assert (age.check("30"), age.check("old"), age.check(" "), age.check("inf")) == (True, False, False, False)
    assert (pick.check("a"), pick.check("c"), more.check("")) == (True, False, True)
