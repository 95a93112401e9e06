"""A person who plays birds by typing."""

import io

import pytest

from openfield.agents.human import LineHuman
from openfield.core import Ask, Turn
from openfield.domains.birds import DOMAIN
from openfield.domains.birds.agents.birds_writer import BirdsWriter, announce
from openfield.errors import Cancelled
from openfield.rollout import Rollout, drive

(TRIAL,) = DOMAIN.trials(1, before=2, after=0, novelty="none", scenario="single", family=1, unchanged=0)


def test_a_person_is_told_distances_and_shoots_by_angle():
    shown = io.StringIO()
    human = LineHuman(BirdsWriter(DOMAIN.spec(TRIAL)), io.StringIO("\n\n\n100 0.5\n\n\n-90 1 2\n0.2\n"), shown)
    assert drive(Rollout(DOMAIN.world(TRIAL)), human) == "done"
    said = shown.getvalue()
    assert "A test set begins: 2 levels in order, attempts: 1 each.\n" in said
    assert "2 of 2 levels can be played.\n" in said
    assert "Level 1. Score 0.\nObjects:\n- pig: +" in said
    assert "- bird red: +0.0 +0.0\n" in said
    assert "Level 2. Score 0.\n" in said
    assert said.count("You lost the level.\n") == 2
    assert said.count("The last bird flew until ") == 2
    assert "{" not in said  # words, no data


def test_a_person_may_choose_levels_and_is_told_of_limits():
    facts = {"begins": "training set", "levels": 3, "seconds": 90, "interactions": 8, "attempts": 0, "selection": True}
    assert announce(facts) == (
        "A training set begins: 3 levels in any order, attempts: as many as you like, "
        "at most 90 seconds and 8 shots and loads."
    )
    menu = {"begins": "level", "level": 1, "available": [1, 3], "scores": [0] * 3, "selection": True}
    assert announce(menu) == "2 of 3 levels can be played: 1, 3."
    asked = BirdsWriter(DOMAIN.spec(TRIAL)).prompt(Turn(ask=Ask.READY, observation=menu))
    assert asked == "Ready? Press Enter, or choose a level with 'load N': "


@pytest.mark.parametrize(
    ("typed", "action"),
    [
        ("0", [1.0, 0.0, 0.0]),
        ("90 0.5 2.5", [pytest.approx(0.0), 0.5, 0.5]),
        ("load 3", {"do": "load", "level": 3}),
        ('{"x": 20, "y": 300}', {"x": 20, "y": 300}),
        ("42 2", None),
        ("nan", None),
        ("42 1 9", None),
        ("1 2 3 4", None),
        ("up", None),
        ("", None),
    ],
)
def test_what_is_typed_becomes_an_action_or_is_none(typed, action):
    writer = BirdsWriter(DOMAIN.spec(TRIAL))
    if action is None:
        with pytest.raises(ValueError, match="a shot is its angle"):
            writer.read_line(typed)
    else:
        assert writer.read_line(typed) == action


def test_mistakes_are_told_how_to_shoot():
    shown = io.StringIO()
    human = LineHuman(BirdsWriter(DOMAIN.spec(TRIAL)), io.StringIO("\n\n\n?\nup\n"), shown)
    with pytest.raises(Cancelled):
        drive(Rollout(DOMAIN.world(TRIAL)), human)
    refused = "A shot is its angle, its pull (0 to 1) and its tap (0 to 5 seconds), not 'up'. Type ? for help."
    assert refused in shown.getvalue()
    assert shown.getvalue().count("Type the angle of a shot") == 2  # at the start, and for ?
