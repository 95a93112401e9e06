"""A person plays Doom: what is around is said in words, one letter acts."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

from openfield.agents.human import LineHuman
from openfield.core import Ask, Belief, Reply, Turn
from openfield.domains.doom import ARENA, DUEL
from openfield.domains.doom.agents.doom_writer import DoomWriter
from openfield.domains.doom.domain import DoomDomain
from openfield.errors import Cancelled


def player(domain: DoomDomain, typed: str = "", **settings: Any) -> tuple[LineHuman, io.StringIO]:
    trial = domain.trials(1, novelty="none", training=0, unchanged=0, **settings)[0]
    told = io.StringIO()
    return LineHuman(DoomWriter(domain.spec(trial)), io.StringIO(typed), told), told


def body(x: float, y: float, **more: Any) -> dict[str, Any]:
    return {"id": 1, "x_position": x, "y_position": y, "z_position": 0.0, "angle": 0.0, **more}


def arena(health: float = 90.0, first: bool = True, **more: Any) -> Turn:
    """The player is in the middle of a room and looks along y."""
    shown = {
        "player": {**body(0, 0, health=health, ammo=7.0), "angle": 90.0},
        "enemies": [body(5, 200, health=15.0, name="ZombieMan"), body(-100, -300, health=5.0, name="ZombieMan")],
        "items": {"health": [body(-80, 10)], "ammo": [], "trap": [body(60, 0)], "obstacle": [body(40, 90)]},
        "walls": [{"x1": -500, "x2": 500, "y1": y, "y2": y} for y in (-400, 400)],
    }
    return Turn(observation=shown | more, feedback={"performance": 0.995}, first=first)


def test_what_is_ahead_left_right_and_behind_is_said_in_words() -> None:
    human, told = player(ARENA, "s\n")
    assert human(arena()) == Reply("shoot")
    lines = told.getvalue().splitlines()
    assert lines[3:6] == ["[test] A new episode begins.", "Time left 99.5%.", "Health 90. Bullets 7."]
    assert lines[6:10] == [
        "  Ahead:  a pillar 98 away, 40 to the right; an enemy (health 15) 200 away, in your line of fire; "
        "a wall 400 away.",
        "  Left:   a health pack 81 away.",
        "  Behind: an enemy (health 5) 316 away; a wall 400 away.",
        "  Right:  a trap 60 away.",
    ]
    assert lines[10] == "fblradsng or ? for help: "


def test_one_letter_acts_and_a_number_repeats_it_until_health_is_lost() -> None:
    human, told = player(ARENA, "f3\nturn_left\na5\n\nq\n")
    assert [human(arena(first=number == 0)).action for number in range(3)] == ["forward"] * 3
    assert human(arena(first=False)).action == "turn_left"
    assert human(arena(first=False)).action == "turn_left"
    prompts = told.getvalue().count("? for help")
    assert human(arena(80.0, first=False)).action == "turn_left"  # asked again, because health was lost
    assert told.getvalue().count("? for help") == prompts + 1
    with pytest.raises(Cancelled):
        human(arena(70.0, first=False))


def test_who_goes_on_later_knows_the_walls() -> None:
    human, told = player(ARENA, "s\n")
    human.remember(arena(), Reply("shoot"))
    human(arena(first=False))
    assert told.getvalue().count("a wall 400 away") == 2


def test_help_beliefs_and_mistakes() -> None:
    human, told = player(DUEL, "?\nx\nf0\na\n? 2\n? 0.7\n")
    shown = {"player": body(0, 0, health=10.0), "enemies": [body(300, -90, health=1.0)]}
    assert human(Turn(observation=shown, first=True)) == Reply(None, Belief(0.7))
    said = told.getvalue()
    assert said.count("One letter acts: f forward, b backward, l left, r right, s shoot, n nothing.") == 1 + 1
    assert said.count("is not an action here. Type ? for help.") == 3
    assert "'x' is not an action here." in said
    assert "A belief is a number from 0 to 1." in said
    assert "an enemy (health 1) 313 away, 90 to the right." in said


@pytest.mark.parametrize(
    ("enemies", "health", "last", "said"),
    [
        (0, 5, "terminated", "You won."),
        (1, 0, "terminated", "You died."),
        (1, 5, "terminated", "You lost."),
        (1, 5, "truncated", "Time is up: you lost."),
    ],
)
def test_how_an_episode_ended_is_said(enemies: int, health: float, last: Any, said: str) -> None:
    human, told = player(DUEL)
    shown = {"player": body(0, 0, health=health), "enemies": [body(300, 0, health=1.0)] * enemies}
    turn = Turn(ask=Ask.NONE, observation=shown, feedback={"performance": 0.5}, last=last)
    assert human(turn) == Reply()
    assert f"{said} Score 0.500." in told.getvalue()


def test_a_person_plays_with_pixels_too() -> None:
    human, told = player(DUEL, "f\n", observation="pixels")
    assert human(Turn(observation=np.arange(64, dtype=np.uint8).reshape(8, 8))) == Reply("forward")
    assert "picture 1, 8 x 8 pixels" in told.getvalue()
    assert "@@" in told.getvalue()
