"""The grid world: commands, answers, the map, and how it stands beside a task."""

import pytest

from openfield.domains.commai import (
    CommaiSettings,
    Round,
    RoundScript,
    SequentialScheduler,
    make_environment,
    make_task,
)
from openfield.domains.commai.environment.grid_world import GridObject, GridWorld, with_article


class Listener:
    serializer = None

    def __init__(self):
        self.said = []

    def say(self, text, priority=1):
        self.said.append((text, priority))


@pytest.fixture
def world():
    world = GridWorld()
    world.start(Listener())
    return world


def tell(world, text):
    for symbol in text:
        world.hear(symbol)
    return [text for text, _ in world._stage.said]


def test_turning_goes_round(world):
    assert tell(world, "I turn left.I turn right.I turn right.") == [
        "You turned left, you are now facing west.",
        "You turned right, you are now facing north.",
        "You turned right, you are now facing east.",
    ]


def test_moving_is_blocked_by_what_cannot_be_crossed(world):
    world.things[(0, -1)] = GridObject("rug", traversable=True)
    world.things[(0, -2)] = GridObject("wall", pickable=False)
    assert tell(world, "I move forward.I move forward.") == ["You moved.", "You can't move."]
    assert world.position == (0, -1)


def test_looking_and_picking_up(world):
    world.things[(0, -1)] = GridObject("apple")
    assert tell(world, "I look.I pick up the pear.I pick up the apple.I look.") == [
        "There is an apple.",
        "There is no pear here.",
        "You picked up the apple.",
        "There is nothing here.",
    ]
    assert world.inventory["apple"] == 1


def test_what_is_fixed_stays(world):
    world.things[(0, -1)] = GridObject("wall", pickable=False)
    assert tell(world, "I pick up the wall.") == ["You can't pick up the wall."]


def test_the_teacher_takes_only_what_was_asked_for_and_what_is_there(world):
    assert tell(world, "I give you an apple.") == ["I haven't asked you for an apple."]
    world.wanted["apple"] = 2
    world.inventory["apple"] = 1
    assert tell(world, "I give you an apple.I give you an apple.")[1:] == [
        "You gave me an apple.",
        "You don't have an apple.",
    ]
    assert world.inventory["apple"] == 0


def test_text_before_a_command_does_no_harm_but_after_it_does(world):
    assert tell(world, "well, I look. I look, please.") == ["There is nothing here."]


def test_what_is_said_while_the_teacher_talks_is_lost(world):
    tell(world, "I lo")
    world.overhear("o")
    assert tell(world, "k.") == []


def test_the_map_shows_five_by_five_cells(world):
    world.things[(1, -2)] = GridObject("apple")
    world.things[(-2, 2)] = GridObject("pear")
    world.things[(3, 0)] = GridObject("far")
    assert world.map() == "...A.\n.....\n..^..\n.....\nP...."


def test_articles():
    assert [with_article("egg"), with_article("pear")] == ["an egg", "a pear"]


def test_a_command_in_a_mini_task_is_obeyed_and_fails_it():
    """As with the original's configuration: the world answers first, then the dot decides."""
    task = make_task("mini1")
    task.world = GridWorld()
    task.script = RoundScript([[Round("v.", "true.", "bravo.", "Wrong.")]] * 2)
    environment = make_environment(CommaiSettings(), scheduler=SequentialScheduler([task]))
    heard, said = None, []
    for symbol in " I look." + " " * 31:
        said.append(environment.next(heard)[0])
        heard = symbol
    assert "".join(said) == "v.      There is nothing here.Wrong. v."
    assert environment.result is False
