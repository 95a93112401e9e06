"""The grid world: an endless plane with objects, in which the learner walks, looks, takes and gives.

Navigation tasks are set in it. It hears every symbol before the task does, and obeys commands that end in a dot.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from openfield.domains.commai.environment.task import Stage

Place = tuple[int, int]

DIRECTIONS: dict[str, Place] = {"north": (0, -1), "east": (1, 0), "south": (0, 1), "west": (-1, 0)}
"""The offset of a step in each direction; y grows southward."""
NAMES = tuple(DIRECTIONS)
VIEW = 2
"""The map shows this many cells in each direction."""
_MAX_COMMAND = 80
_ARROWS = dict(zip(NAMES, "^>v<", strict=True))


class GridObject(msgspec.Struct, frozen=True):
    """An object that lies on a cell."""

    name: str
    pickable: bool = True
    traversable: bool = False


class GridWorld:
    """The state of the world and its answers to commands. It starts again when a task of another world was played."""

    def __init__(self) -> None:
        self._stage: Stage | None = None
        self.clear()

    def clear(self) -> None:
        """Clear the world and put the learner at its origin, facing north."""
        self._heard, self.facing = "", "north"
        self.position: Place = (0, 0)
        self.things: dict[Place, GridObject] = {}
        self.inventory: Counter[str] = Counter()
        self.wanted: Counter[str] = Counter()
        """Objects the teacher has asked for and will accept."""
        self.given: list[str] = []
        """Objects given to the teacher, in order."""

    def start(self, stage: Stage) -> None:
        """Clear the world and answer through this stage from now on."""
        self._stage = stage
        self.clear()

    def listen(self, then: Callable[[str], int], talking: bool) -> Callable[[str], int]:
        """Return a listener that lets the world hear each symbol before the task does."""
        self._heard = ""
        attend = self.overhear if talking else self.hear

        def listen(symbol: str) -> int:
            attend(symbol)
            return then(symbol)

        return listen

    def hear(self, symbol: str) -> None:
        """Take a symbol, and obey the command that a dot completes."""
        self._heard = (self._heard + symbol)[-_MAX_COMMAND:]
        if symbol == "." and self._stage is not None:
            sentence, self._heard = self._heard, ""
            serializer = self._stage.serializer
            self._obey(sentence if serializer is None else serializer.decode(sentence), self._stage)

    def overhear(self, symbol: str) -> None:
        """Forget words said while the teacher talked."""
        self._heard = ""

    @property
    def ahead(self) -> Place:
        """The cell in front of the learner."""
        return step(self.position, self.facing)

    def map(self) -> str:
        """Return the cells around the learner as five lines of five characters."""
        return draw_map(self.position, self.facing, {place: thing.name for place, thing in self.things.items()})

    def facing_after(self, quarters: int) -> str:
        """Return the direction after some quarter turns to the right."""
        return NAMES[(NAMES.index(self.facing) + quarters) % 4]

    def turn(self, quarters: int) -> str:
        """Turn left (-1) or right (1)."""
        self.facing = self.facing_after(quarters)
        return f"You turned {'left' if quarters < 0 else 'right'}, you are now facing {self.facing}."

    def move(self) -> str:
        """Step forward unless an object is in the way."""
        thing = self.things.get(self.ahead)
        if thing is not None and not thing.traversable:
            return "You can't move."
        self.position = self.ahead
        return "You moved."

    def look(self) -> str:
        """Say what lies on the cell ahead."""
        thing = self.things.get(self.ahead)
        return f"There is {with_article(thing.name)}." if thing else "There is nothing here."

    def pick_up(self, name: str) -> str:
        """Take the object ahead if it has this name and can be taken."""
        thing = self.things.get(self.ahead)
        if thing is None or thing.name != name:
            return f"There is no {name} here."
        if not thing.pickable:
            return f"You can't pick up the {name}."
        del self.things[self.ahead]
        self.inventory[name] += 1
        return f"You picked up the {name}."

    def give(self, name: str) -> str:
        """Hand an object to the teacher, who takes only what was asked for and what the learner has."""
        if self.wanted[name] <= 0:
            return f"I haven't asked you for {with_article(name)}."
        if self.inventory[name] <= 0:
            return f"You don't have {with_article(name)}."
        self.wanted[name] -= 1
        self.inventory[name] -= 1
        self.given.append(name)
        return f"You gave me {with_article(name)}."

    def _obey(self, sentence: str, stage: Stage) -> None:
        for pattern, command in _COMMANDS:
            if found := pattern.search(sentence):
                stage.say(command(self, found), priority=0)
                return


def draw_map(position: Place, facing: str, things: Mapping[Place, str]) -> str:
    """Return the cells around a learner as five lines of five characters, given the names of things."""
    x, y = position
    reach = range(-VIEW, VIEW + 1)
    signs = {place: name[0].upper() for place, name in things.items()}
    signs[x, y] = _ARROWS[facing]
    return "\n".join("".join(signs.get((x + east, y + south), ".") for east in reach) for south in reach)


def step(place: Place, direction: str) -> Place:
    """Return the neighbouring cell in a direction."""
    x, y = DIRECTIONS[direction]
    return place[0] + x, place[1] + y


def with_article(name: str) -> str:
    """Return the name with `a` or `an` before it."""
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


_COMMANDS: tuple[tuple[re.Pattern[str], Callable[[GridWorld, re.Match[str]], str]], ...] = (
    (re.compile(r"I turn left\.$"), lambda world, found: world.turn(-1)),
    (re.compile(r"I turn right\.$"), lambda world, found: world.turn(1)),
    (re.compile(r"I move forward\.$"), lambda world, found: world.move()),
    (re.compile(r"I look\.$"), lambda world, found: world.look()),
    (re.compile(r"I pick up the (\w+)\.$"), lambda world, found: world.pick_up(found[1])),
    (re.compile(r"I give you an? (\w+)\.$"), lambda world, found: world.give(found[1])),
)
