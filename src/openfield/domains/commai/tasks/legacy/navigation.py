"""competition/navigation: fourteen tasks of walking, looking, taking and giving in the grid world.

The world obeys the learner's commands before a task reads the sentence, so every task just looks at the world's state.
"""

from __future__ import annotations

from collections.abc import Callable

from openfield.domains.commai.environment.draws import between, pick
from openfield.domains.commai.environment.grid import DIRECTIONS, NAMES, GridWorld, Place, Thing, step, with_article
from openfield.domains.commai.environment.task import Stage, Task
from openfield.domains.commai.tasks.legacy.dialogue import Dialogue, DialogueTask
from openfield.domains.commai.tasks.legacy.errands import Errand, Fetching, turned, walk
from openfield.domains.commai.tasks.legacy.giving import (
    CountingInventory,
    CountingInventoryGiving,
    Giving,
    PickUpAroundAndGive,
)
from openfield.domains.commai.tasks.legacy.phrasebook import number_word

_RELATIVE = {"forward": 0, "right": 1, "back": 2, "left": 3}


class Turning(Errand):
    """Turn left or right."""

    __slots__ = ("_goal", "_way")

    def instruct(self) -> str:
        """Names the way."""
        self._way = pick(self.rng, ("left", "right"))
        self._goal = turned(self.world.facing, 1 if self._way == "right" else 3)
        return f"Turn {self._way}."

    def done(self) -> bool:
        """Whether the learner faces the right way."""
        return self.world.facing == self._goal

    def hint(self) -> str:
        """The command."""
        return f"I turn {self._way}."


class Going(Errand):
    """Go to a cell. Subclasses say which."""

    __slots__ = ("_goal",)
    _goal: Place

    def done(self) -> bool:
        """Whether the learner stands there."""
        return self.world.position == self._goal

    def hint(self) -> str:
        """The next command on the way."""
        return walk(self.world, self._goal)


class Moving(Going):
    """Move forward."""

    __slots__ = ()

    def instruct(self) -> str:
        """The cell ahead."""
        self._goal = self.world.ahead
        return "Move forward."


class MovingRelative(Going):
    """Move to the left or right."""

    __slots__ = ()

    def instruct(self) -> str:
        """The cell on one side."""
        way = pick(self.rng, ("left", "right"))
        self._goal = step(self.world.position, turned(self.world.facing, _RELATIVE[way]))
        return f"Move {way}."


class MovingAbsolute(Going):
    """Move one cell to the north, east, south or west."""

    __slots__ = ()

    def instruct(self) -> str:
        """The cell in some direction."""
        direction = pick(self.rng, NAMES)
        self._goal = step(self.world.position, direction)
        return f"You are facing {self.world.facing}, move {direction}."


class PickUp(Fetching):
    """Pick up the thing in front."""

    __slots__ = ()

    def instruct(self) -> str:
        """A thing ahead."""
        name = self.place(self.world.ahead)
        return f"There is {with_article(name)} in front of you. Pick up the {name}."


class PickUpAround(Fetching):
    """Pick up a thing on a neighbouring cell whose direction is told."""

    __slots__ = ()

    def instruct(self) -> str:
        """A thing in some direction."""
        direction = pick(self.rng, NAMES)
        name = self.place(step(self.world.position, direction))
        return f"There is {with_article(name)} {direction} from you, you face {self.world.facing}. Pick up the {name}."


class PickUpInFront(Fetching):
    """Pick up a thing some steps ahead."""

    __slots__ = ()

    def instruct(self) -> str:
        """A thing one to ten steps ahead."""
        steps, place = between(self.rng, 1, 10), self.world.position
        for _ in range(steps):
            place = step(place, self.world.facing)
        name = self.place(place)
        plural = "step" if steps == 1 else "steps"
        return f"There is {with_article(name)} {number_word(steps)} {plural} forward. Pick up the {name}."


class FindObjectAround(Fetching):
    """Find a thing that lies on one of the neighbouring cells, and pick it up."""

    __slots__ = ()

    def instruct(self) -> str:
        """A thing somewhere around."""
        name = self.place(step(self.world.position, pick(self.rng, NAMES)))
        return f"There is {with_article(name)} around you. Find the {name} and pick it up."


class Look(Errand):
    """Look at the cell ahead."""

    __slots__ = ("_looked",)

    def instruct(self) -> str:
        """Puts something there to see."""
        self.world.put(self.world.ahead, Thing(self.any_thing()))
        self._looked = False
        return "Look."

    def read(self, sentence: str) -> None:
        """Waits for the command."""
        self._looked = sentence.endswith(self.hint())
        super().read(sentence)

    def done(self) -> bool:
        """Whether the learner looked."""
        return self._looked

    def hint(self) -> str:
        """The command."""
        return "I look."


class LookAround(Errand):
    """Look in all four directions without moving."""

    __slots__ = ("_seen", "_start")

    def instruct(self) -> str:
        """Nothing but the request."""
        self._seen: set[str] = set()
        self._start = self.world.position
        return "Look around."

    def read(self, sentence: str) -> None:
        """Notes each direction; moving fails."""
        if self.world.position != self._start:
            self.lose()
            return
        if sentence.endswith("I look."):
            self._seen.add(self.world.facing)
        super().read(sentence)

    def done(self) -> bool:
        """Whether all directions were seen."""
        return len(self._seen) == len(DIRECTIONS)

    def hint(self) -> str:
        """Look, turn, look."""
        return "I turn right." if self.world.facing in self._seen else "I look."


_KINDS: dict[str, tuple[Callable[[Stage, Task], Dialogue], int]] = {
    "Turning": (Turning, 576),
    "Moving": (Moving, 600),
    "MovingRelative": (MovingRelative, 784),
    "MovingAbsolute": (MovingAbsolute, 2336),
    "PickUp": (PickUp, 1328),
    "PickUpAround": (PickUpAround, 2896),
    "PickUpInFront": (PickUpInFront, 3328),
    "Giving": (Giving, 1280),
    "PickUpAroundAndGive": (PickUpAroundAndGive, 5584),
    "CountingInventory": (CountingInventory, 800),
    "CountingInventoryGiving": (CountingInventoryGiving, 8000),
    "Look": (Look, 1000),
    "LookAround": (LookAround, 5000),
    "FindObjectAround": (FindObjectAround, 10_000),
}


def in_grid(kind: Callable[[Stage, Task], Dialogue], max_time: int) -> Callable[[str], Task]:
    """A factory of tasks set in a grid world; each has its own unless it is given one to share."""
    return lambda name: DialogueTask(name, kind, max_time, GridWorld())


NAVIGATION: dict[str, Callable[[str], Task]] = {name: in_grid(*kind) for name, kind in _KINDS.items()}
