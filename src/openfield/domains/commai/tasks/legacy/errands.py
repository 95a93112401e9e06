"""What the navigation tasks are made of: errands in a tidy world, and the commands that lead to a place.

navigation.py and giving.py build their tasks on these.
"""

from __future__ import annotations

from openfield.domains.commai.environment.draws import pick
from openfield.domains.commai.environment.grid import NAMES, GridWorld, Place, Thing
from openfield.domains.commai.tasks.legacy.dialogue import Dialogue
from openfield.domains.commai.tasks.legacy.phrasebook import phrasebook


class Errand(Dialogue):
    """A dialogue in a tidy world: what earlier tasks left lying about is gone."""

    __slots__ = ()

    def begin(self) -> None:
        """Lays out the scene and says what to do."""
        self.world.things.clear()
        self.world.wanted.clear()
        self.say(self.instruct())

    def instruct(self) -> str:
        """Lays out the scene and words the errand."""
        raise NotImplementedError

    def done(self) -> bool:
        """Whether the errand is done."""
        raise NotImplementedError

    def read(self, sentence: str) -> None:
        """Looks whether the errand is done."""
        if self.done():
            self.win()

    def any_thing(self) -> str:
        """Something that can be carried."""
        return pick(self.rng, phrasebook().portable)


class Fetching(Errand):
    """Pick up a thing. Subclasses say where it lies."""

    __slots__ = ("_had", "_name", "_place")

    def place(self, place: Place) -> str:
        """Puts a thing somewhere and gives its name."""
        self._name, self._place = self.any_thing(), place
        self._had = self.world.inventory[self._name]
        self.world.put(place, Thing(self._name))
        return self._name

    def done(self) -> bool:
        """Whether the learner has it."""
        return self.world.inventory[self._name] > self._had

    def hint(self) -> str:
        """The next command on the way to it."""
        return fetch(self.world, self._place, self._name)


def turned(facing: str, quarters: int) -> str:
    """The direction after some quarter turns to the right."""
    return NAMES[(NAMES.index(facing) + quarters) % 4]


def face(world: GridWorld, direction: str) -> str:
    """The command that turns towards a direction; empty if there is nothing to do."""
    quarters = (NAMES.index(direction) - NAMES.index(world.facing)) % 4
    return ("", "I turn right.", "I turn right.", "I turn left.")[quarters]


def walk(world: GridWorld, goal: Place) -> str:
    """The next command on the way to a cell; empty on it."""
    direction = _heading(world.position, goal)
    return face(world, direction) or "I move forward." if direction else ""


def fetch(world: GridWorld, place: Place, name: str) -> str:
    """The next command on the way to a thing: walk until it lies ahead, then take it."""
    if world.ahead == place:
        return f"I pick up the {name}."
    return walk(world, place)


def _heading(place: Place, goal: Place) -> str:
    """The direction to go first."""
    east, south = goal[0] - place[0], goal[1] - place[1]
    if east:
        return "east" if east > 0 else "west"
    if south:
        return "south" if south > 0 else "north"
    return ""
