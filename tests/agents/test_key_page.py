"""Keys that are derived from the names of actions."""

from typing import Any

import pytest

import openfield as of
from openfield.agents import TurnText, TurnWriter
from openfield.agents.key_page import (
    COLOURS,
    SQUARE,
    KeyPage,
    LinePage,
    bind_keys,
    describe_turn,
    find_grid,
    make_page,
    read_names,
)

ATARI = ("NOOP", "FIRE", "RIGHT", "LEFT", "RIGHTFIRE", "LEFTFIRE")


def test_players_find_the_keys_they_expect() -> None:
    assert [each.keys for each in bind_keys(("left", "move_up", "turn_right", "shoot"), range(4))] == [
        ("ArrowLeft",),
        ("ArrowUp",),
        ("ArrowRight",),
        ("Space",),
    ]
    assert [each.keys for each in bind_keys(ATARI, range(6))][4:] == [("ArrowRight", "Space"), ("ArrowLeft", "Space")]


def test_every_action_gets_a_key_of_its_own() -> None:
    names = ["left", "left", "jump", "just", "0", "1", *(f"place_{number}" for number in range(12))]
    keys = [each.keys for each in bind_keys(names, range(len(names)))]
    assert all(keys)
    assert len(set(keys)) == len(keys)


def test_numbers_are_named_by_the_task() -> None:
    assert read_names("Push it to the left (0) or to the right (1).", range(2)) == ["left", "right"]
    assert read_names("north (0), pick up (1)", range(2)) == ["north", "pick up"]
    assert read_names("left (0)", range(2)) == ["0", "1"]


def test_actions_without_keys_are_typed() -> None:
    page = make_page(of.Spec(domain="x", task="", actions=of.spaces.Box(-1, 1, (2,))))
    assert isinstance(page, LinePage)
    assert next(page.act("[0.5, 1]", of.Turn())) == of.Reply([0.5, 1])
    for wrong in ("[2, 0]", "left", "null", None, "", 7):
        with pytest.raises(of.errors.AgentProtocol):
            next(page.act(wrong, of.Turn()))


def test_a_key_that_is_not_there_is_refused() -> None:
    page = make_page(of.Spec(domain="x", task="", actions=of.spaces.Discrete(2, start=3)))
    assert isinstance(page, KeyPage)
    assert next(page.act(1, of.Turn())) == of.Reply(4)
    for wrong in (2, -1, True, "1", None):
        with pytest.raises(of.errors.AgentProtocol):
            next(page.act(wrong, of.Turn()))


def test_values_are_written_for_people() -> None:
    turn = of.Turn(observation={"at": [1, 2], "speed": 0.123456}, feedback={"score": 3}, reward=1.0)
    assert describe_turn(turn) == {"at": "[1, 2]", "speed": "0.12346", "score": "3", "reward": "1"}


def test_a_page_says_a_turn_in_the_words_of_the_domain() -> None:
    class Places(TurnWriter):
        def describe_observation(self, observation: Any) -> TurnText:
            return TurnText(f"You are at {observation}.")

    spec = of.Spec(domain="x", task="", actions=of.spaces.Discrete(2))
    page, turn = make_page(spec, Places(spec)), of.Turn(observation=7, feedback="well done", reward=0.5)
    told = {"you see": "Feedback: well done\nYou are at 7.", "reward": "0.5"}
    assert page.show(turn, None)["values"] == told  # type: ignore[arg-type]


def test_places_are_drawn_where_the_observation_says() -> None:
    place = of.spaces.Box(0, 4, (2,), "int64")
    grid = find_grid(of.spaces.Fields({"at": place, "goal": place, "open": of.spaces.Box(0, 1, (4,), "int64")}))
    assert grid is not None
    picture = grid.draw({"at": [1, 3], "goal": [4, 0], "open": [1, 1, 0, 0]})
    assert picture.shape == (5 * SQUARE, 5 * SQUARE, 3)
    middle = SQUARE // 2
    assert tuple(picture[3 * SQUARE + middle, SQUARE + middle]) == COLOURS[0]
    assert tuple(picture[middle, 4 * SQUARE + middle]) == COLOURS[1]


def test_other_observations_have_no_map() -> None:
    assert find_grid(None) is None
    assert find_grid(of.spaces.Discrete(4)) is None
    assert find_grid(of.spaces.Fields({"at": of.spaces.Box(0, 1, (2,))})) is None
    assert find_grid(of.spaces.Fields({"at": of.spaces.Box(0, 1_000, (2,), "int64")})) is None
