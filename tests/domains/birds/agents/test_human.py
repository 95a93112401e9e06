"""A person who plays birds by typing."""

import io
import re

import pytest

from openfield.domains.birds import DOMAIN
from openfield.domains.birds.agents.human import BirdsHuman
from openfield.errors import Cancelled
from openfield.rollout import Rollout, drive

(TRIAL,) = DOMAIN.trials(1, before=2, after=0, novelty="none", scenario="single", family=1, unchanged=0)


def test_a_person_is_told_distances_and_shoots_by_angle():
    shown = io.StringIO()
    human = BirdsHuman(DOMAIN.spec(TRIAL), 0, io.StringIO("\n\n\n100 0.5\n\n-90 1 2\n"), shown)
    assert drive(Rollout(DOMAIN.world(TRIAL)), human) == "done"
    said = shown.getvalue()
    assert "A red bird is on the slingshot." in said
    assert re.search(r"1 pig: \d+\.\d right \d+\.\d (up|down)", said)
    assert re.search(r"1 platform: .* right .* \(\d\.\d wide, \d\.\d high\)", said)
    assert said.count("-- You have lost the level. --") == 2
    assert "{" not in said


@pytest.mark.parametrize(
    ("typed", "action"),
    [
        ("0", [1.0, 0.0, 0.0]),
        ("90 0.5 2.5", [pytest.approx(0.0), 0.5, 0.5]),
        ("load 3", {"do": "load", "level": 3}),
        ('{"x": 20, "y": 300}', {"x": 20, "y": 300}),
        ("xy 60 330", {"x": 60, "y": 330}),
        ("xy 60 up", None),
        ("42 2", None),
        ("nan", None),
        ("42 1 9", None),
        ("1 2 3 4", None),
        ("up", None),
        ("", None),
    ],
)
def test_what_is_typed_becomes_an_action_or_is_none(typed, action):
    human = BirdsHuman(DOMAIN.spec(TRIAL), 0, io.StringIO(), io.StringIO())
    assert human.parse(typed) == action


def test_a_question_mark_shows_the_help_again():
    shown = io.StringIO()
    with pytest.raises(Cancelled):
        drive(Rollout(DOMAIN.world(TRIAL)), BirdsHuman(DOMAIN.spec(TRIAL), 0, io.StringIO("\n\n\n?\nQUIT\n"), shown))
    assert shown.getvalue().count("'35 0.8' shoots 35 degrees upwards") == 2


def test_mistakes_are_told_how_to_shoot():
    shown = io.StringIO()
    with pytest.raises(Cancelled):
        drive(Rollout(DOMAIN.world(TRIAL)), BirdsHuman(DOMAIN.spec(TRIAL), 0, io.StringIO("\n\n\nup\n"), shown))
    assert "'up' is not an action here." in shown.getvalue()
