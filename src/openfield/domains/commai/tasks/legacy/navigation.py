"""competition/navigation: fourteen tasks of walking, looking, taking, giving and counting in the grid world.

The world obeys the learner's commands before a task reads the sentence, so a task only looks at the world's state.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from openfield.domains.commai.environment.grid_world import NAMES, GridObject, GridWorld, Place, step, with_article
from openfield.domains.commai.environment.task import Stage, Task
from openfield.domains.commai.tasks.draws import between, load_phrasebook, number_word, pick
from openfield.domains.commai.tasks.legacy.dialogue import Dialogue, DialogueTask

ChooseCell = Callable[[GridWorld, Random], tuple[Place, dict[str, str]]]
"""Draws a cell and the words for it in the instruction."""
TEXTS = load_phrasebook().instructions
_RELATIVE = {"right": 1, "left": 3}


class GridDialogue(Dialogue):
    """A dialogue in the grid world. It begins by removing what earlier tasks left there."""

    def begin(self) -> None:
        """Prepare the world and say what to do."""
        self.world.things.clear()
        self.world.wanted.clear()
        self.say(self.instruct())

    def instruct(self) -> str:
        """Prepare the world and return the instruction."""
        raise NotImplementedError

    def done(self) -> bool:
        """Return whether the learner has done it."""
        raise NotImplementedError

    def read(self, sentence: str) -> None:
        """End with success once the learner has done it."""
        if self.done():
            self.win()

    def any_thing(self) -> str:
        """Draw an object that can be carried."""
        return pick(self.rng, load_phrasebook().portable)


class Turning(GridDialogue):
    """Turn left or right: to the side given, or to either."""

    def __init__(self, stage: Stage, task: Task, side: str = "") -> None:
        self._side = side
        super().__init__(stage, task)

    def instruct(self) -> str:
        """Name the side."""
        self._side = self._side or pick(self.rng, ("left", "right"))
        self._goal = self.world.facing_after(_RELATIVE[self._side])
        return f"Turn {self._side}."

    def done(self) -> bool:
        """Return whether the learner faces the right direction."""
        return self.world.facing == self._goal

    def hint(self) -> str:
        """Return the command."""
        return f"I turn {self._side}."


class Going(GridDialogue):
    """Go to a cell. `choose` draws it, and `text` is the instruction."""

    def __init__(self, stage: Stage, task: Task, choose: ChooseCell, text: str) -> None:
        self._choose, self._text = choose, text
        super().__init__(stage, task)

    def instruct(self) -> str:
        """Choose the cell."""
        self._goal, words = self._choose(self.world, self.rng)
        return self._text.format(**words, **self.place())

    def place(self) -> dict[str, str]:
        """Put on the cell what belongs there, and return the words for it."""
        return {}

    def done(self) -> bool:
        """Return whether the learner stands there."""
        return self.world.position == self._goal

    def hint(self) -> str:
        """Return the next command on the way."""
        return walk(self.world, self._goal)


class Fetching(Going):
    """Pick up an object. `choose` draws where it lies."""

    def place(self) -> dict[str, str]:
        """Put an object on the cell."""
        name = self._name = self.any_thing()
        self._had = self.world.inventory[name]
        self.world.things[self._goal] = GridObject(name)
        return {"thing": with_article(name), "name": name}

    def done(self) -> bool:
        """Return whether the learner has it."""
        return self.world.inventory[self._name] > self._had

    def hint(self) -> str:
        """Return the next command: walk until the object lies ahead, then take it."""
        return f"I pick up the {self._name}." if self.world.ahead == self._goal else super().hint()


class FetchingAndGiving(Fetching):
    """Pick up an object and give it to the teacher."""

    def instruct(self) -> str:
        """Put an object on the cell and ask for it."""
        text = super().instruct()
        self._given = len(self.world.given)
        self.world.wanted[self._name] = 1
        return f"{text.removesuffix('.')} and give it to me."

    def done(self) -> bool:
        """Return whether the teacher has it."""
        return len(self.world.given) > self._given

    def hint(self) -> str:
        """Return the command to fetch it, then to give it."""
        return f"I give you {with_article(self._name)}." if super().done() else super().hint()


def ahead(world: GridWorld, rng: Random) -> tuple[Place, dict[str, str]]:
    """Choose the cell ahead."""
    return world.ahead, {}


def aside(world: GridWorld, rng: Random) -> tuple[Place, dict[str, str]]:
    """Choose the cell to the left or right."""
    side = pick(rng, ("left", "right"))
    return step(world.position, world.facing_after(_RELATIVE[side])), {"side": side}


def around(world: GridWorld, rng: Random) -> tuple[Place, dict[str, str]]:
    """Choose a neighbouring cell in some direction."""
    direction = pick(rng, NAMES)
    return step(world.position, direction), {"direction": direction, "facing": world.facing}


def in_front(world: GridWorld, rng: Random) -> tuple[Place, dict[str, str]]:
    """Choose a cell one to ten steps ahead."""
    steps, place = between(rng, 1, 10), world.position
    for _ in range(steps):
        place = step(place, world.facing)
    return place, {"steps": f"{number_word(steps)} {'step' if steps == 1 else 'steps'}"}


class Looking(GridDialogue):
    """Look at the cell ahead."""

    def instruct(self) -> str:
        """Put an object there to see."""
        self.world.things[self.world.ahead] = GridObject(self.any_thing())
        return "Look."

    def read(self, sentence: str) -> None:
        """Wait for the command."""
        if sentence.endswith("I look."):
            self.win()

    def hint(self) -> str:
        """Return the command."""
        return "I look."


class LookAround(GridDialogue):
    """Look in all four directions without moving."""

    def instruct(self) -> str:
        """Ask for it."""
        self._seen: set[str] = set()
        self._start = self.world.position
        return "Look around."

    def read(self, sentence: str) -> None:
        """Note each direction until all were seen; moving fails."""
        if self.world.position != self._start:
            self.lose()
            return
        if sentence.endswith("I look."):
            self._seen.add(self.world.facing)
        if len(self._seen) == len(NAMES):
            self.win()

    def hint(self) -> str:
        """Return the command to look, or to turn if this direction was seen."""
        return "I turn right." if self.world.facing in self._seen else "I look."


class Giving(GridDialogue):
    """Give an object back to the teacher."""

    def instruct(self) -> str:
        """Hand an object over and ask for it."""
        self._name, self._given = self.any_thing(), len(self.world.given)
        self.world.inventory[self._name] += 1
        self.world.wanted[self._name] = 1
        return (
            f"I gave you {with_article(self._name)}. Give it back to me: say 'I give you {with_article(self._name)}'."
        )

    def done(self) -> bool:
        """Return whether the teacher has it."""
        return len(self.world.given) > self._given

    def hint(self) -> str:
        """Return the command."""
        return f"I give you {with_article(self._name)}."


class CountingInventory(Dialogue):
    """Say how many objects of a kind the learner has."""

    def begin(self) -> None:
        """Choose a kind of object and ask."""
        self._name = pick(self.rng, load_phrasebook().portable)
        self.say(f"How many {self._name}s do you have?")

    def read(self, sentence: str) -> None:
        """Judge the number."""
        if sentence.endswith(self.hint()):
            self.win()
        else:
            self.lose()

    def hint(self) -> str:
        """Return the number in letters."""
        return f"{number_word(min(self.world.inventory[self._name], 10))}."


class CountingInventoryGiving(CountingInventory):
    """Count, get one more, count, give one away, count: four stages and a last question."""

    def begin(self) -> None:
        """Ask the first time, with few enough objects that the number has a word."""
        super().begin()
        self._stage_number = 0
        self.world.inventory[self._name] = min(self.world.inventory[self._name], 8)
        self.world.wanted.clear()

    def read(self, sentence: str) -> None:
        """Go from stage to stage; a wrong number ends it."""
        if self._stage_number == 2:
            if self.world.wanted[self._name] == 0:
                self._advance()
        elif sentence.endswith(self.hint()):
            self._advance()
        else:
            self.lose()

    def hint(self) -> str:
        """Return the number, or the command to give."""
        if self._stage_number == 2:
            return f"I give you {with_article(self._name)}."
        return super().hint()

    def _advance(self) -> None:
        self._stage_number += 1
        if self._stage_number == 1:
            self.world.inventory[self._name] += 1
            self.say(f"Good. I gave you {with_article(self._name)}. How many {self._name}s do you have now?")
        elif self._stage_number == 2:
            self.world.wanted[self._name] = 1
            self.say(f"Good. Now give me {with_article(self._name)}.")
        elif self._stage_number == 3:
            self.say(f" How many {self._name}s do you have now?")
        else:
            self.win()


def in_grid(kind: Callable[..., Dialogue], max_time: int, **options: Any) -> Callable[[str], Task]:
    """Return a factory of tasks in a grid world; each task has its own unless it is given one to share."""
    return lambda name: DialogueTask(name, partial(kind, **options), max_time, GridWorld())


NAVIGATION: dict[str, Callable[[str], Task]] = {
    "Turning": in_grid(Turning, 576),
    "Moving": in_grid(Going, 600, choose=ahead, text=TEXTS["forward"]),
    "MovingRelative": in_grid(Going, 784, choose=aside, text=TEXTS["aside"]),
    "MovingAbsolute": in_grid(Going, 2336, choose=around, text=TEXTS["compass"]),
    "PickUp": in_grid(Fetching, 1328, choose=ahead, text=TEXTS["take_ahead"]),
    "PickUpAround": in_grid(Fetching, 2896, choose=around, text=TEXTS["take_around"]),
    "PickUpInFront": in_grid(Fetching, 3328, choose=in_front, text=TEXTS["take_in_front"]),
    "Giving": in_grid(Giving, 1280),
    "PickUpAroundAndGive": in_grid(FetchingAndGiving, 5584, choose=around, text=TEXTS["take_around"]),
    "CountingInventory": in_grid(CountingInventory, 800),
    "CountingInventoryGiving": in_grid(CountingInventoryGiving, 8000),
    "Look": in_grid(Looking, 1000),
    "LookAround": in_grid(LookAround, 5000),
    "FindObjectAround": in_grid(Fetching, 10_000, choose=around, text=TEXTS["find"]),
}


def walk(world: GridWorld, goal: Place) -> str:
    """Return the next command on the way to a cell, first east or west; empty on it."""
    east, south = goal[0] - world.position[0], goal[1] - world.position[1]
    if not east and not south:
        return ""
    direction = ("east" if east > 0 else "west") if east else ("south" if south > 0 else "north")
    quarters = (NAMES.index(direction) - NAMES.index(world.facing)) % 4
    return ("I move forward.", "I turn right.", "I turn right.", "I turn left.")[quarters]
