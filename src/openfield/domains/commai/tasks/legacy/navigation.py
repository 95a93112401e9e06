"""competition/navigation: fourteen tasks of walking, looking, taking, giving and counting in the grid world.

The world obeys the learner's commands before a task reads the sentence, so a task only looks at the world's state.
"""

from __future__ import annotations

from collections.abc import Callable

from openfield.domains.commai.environment.grid_world import (
    DIRECTIONS,
    NAMES,
    GridObject,
    GridWorld,
    Place,
    step,
    with_article,
)
from openfield.domains.commai.environment.stage import Stage
from openfield.domains.commai.environment.task import Task
from openfield.domains.commai.tasks.draws import between, pick
from openfield.domains.commai.tasks.legacy.dialogue import Dialogue, DialogueTask
from openfield.domains.commai.tasks.legacy.phrasebook import load_phrasebook, number_word

_RELATIVE = {"forward": 0, "right": 1, "back": 2, "left": 3}


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


class Fetching(GridDialogue):
    """Pick up an object. Subclasses say where it lies."""

    def place(self, place: Place) -> str:
        """Put an object on a cell and return its name."""
        self._name, self._place = self.any_thing(), place
        self._had = self.world.inventory[self._name]
        self.world.put(place, GridObject(self._name))
        return self._name

    def done(self) -> bool:
        """Return whether the learner has it."""
        return self.world.inventory[self._name] > self._had

    def hint(self) -> str:
        """Return the next command on the way to it."""
        return fetch(self.world, self._place, self._name)


class Turning(GridDialogue):
    """Turn left or right. A subclass may fix the side."""

    side = ""

    def instruct(self) -> str:
        """Name the side."""
        self._side = self.side or pick(self.rng, ("left", "right"))
        self._goal = turn_by(self.world.facing, 1 if self._side == "right" else 3)
        return f"Turn {self._side}."

    def done(self) -> bool:
        """Return whether the learner faces the right direction."""
        return self.world.facing == self._goal

    def hint(self) -> str:
        """Return the command."""
        return f"I turn {self._side}."


class Going(GridDialogue):
    """Go to a cell. Subclasses say which."""

    _goal: Place

    def done(self) -> bool:
        """Return whether the learner stands there."""
        return self.world.position == self._goal

    def hint(self) -> str:
        """Return the next command on the way."""
        return walk(self.world, self._goal)


class Moving(Going):
    """Move forward."""

    def instruct(self) -> str:
        """Choose the cell ahead."""
        self._goal = self.world.ahead
        return "Move forward."


class MovingRelative(Going):
    """Move to the left or right."""

    def instruct(self) -> str:
        """Choose the cell on one side."""
        side = pick(self.rng, ("left", "right"))
        self._goal = step(self.world.position, turn_by(self.world.facing, _RELATIVE[side]))
        return f"Move {side}."


class MovingAbsolute(Going):
    """Move one cell to the north, east, south or west."""

    def instruct(self) -> str:
        """Choose the cell in some direction."""
        direction = pick(self.rng, NAMES)
        self._goal = step(self.world.position, direction)
        return f"You are facing {self.world.facing}, move {direction}."


class PickUp(Fetching):
    """Pick up the object ahead."""

    def instruct(self) -> str:
        """Put an object ahead."""
        name = self.place(self.world.ahead)
        return f"There is {with_article(name)} in front of you. Pick up the {name}."


class PickUpAround(Fetching):
    """Pick up an object on a neighbouring cell whose direction is told."""

    def instruct(self) -> str:
        """Put an object in some direction."""
        direction = pick(self.rng, NAMES)
        name = self.place(step(self.world.position, direction))
        return f"There is {with_article(name)} {direction} from you, you face {self.world.facing}. Pick up the {name}."


class PickUpInFront(Fetching):
    """Pick up an object some steps ahead."""

    def instruct(self) -> str:
        """Put an object one to ten steps ahead."""
        steps, place = between(self.rng, 1, 10), self.world.position
        for _ in range(steps):
            place = step(place, self.world.facing)
        name = self.place(place)
        plural = "step" if steps == 1 else "steps"
        return f"There is {with_article(name)} {number_word(steps)} {plural} forward. Pick up the {name}."


class FindObjectAround(Fetching):
    """Find an object that lies on one of the neighbouring cells, and pick it up."""

    def instruct(self) -> str:
        """Put an object on a neighbouring cell."""
        name = self.place(step(self.world.position, pick(self.rng, NAMES)))
        return f"There is {with_article(name)} around you. Find the {name} and pick it up."


class Looking(GridDialogue):
    """Look at the cell ahead."""

    def instruct(self) -> str:
        """Put an object there to see."""
        self.world.put(self.world.ahead, GridObject(self.any_thing()))
        self._looked = False
        return "Look."

    def read(self, sentence: str) -> None:
        """Wait for the command."""
        self._looked = sentence.endswith(self.hint())
        super().read(sentence)

    def done(self) -> bool:
        """Return whether the learner looked."""
        return self._looked

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
        """Note each direction; moving fails."""
        if self.world.position != self._start:
            self.lose()
            return
        if sentence.endswith("I look."):
            self._seen.add(self.world.facing)
        super().read(sentence)

    def done(self) -> bool:
        """Return whether all directions were seen."""
        return len(self._seen) == len(DIRECTIONS)

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


class PickUpAroundAndGive(Fetching):
    """Pick up an object on a neighbouring cell and give it to the teacher."""

    def instruct(self) -> str:
        """Put an object in some direction and ask for it."""
        direction = pick(self.rng, NAMES)
        name = self.place(step(self.world.position, direction))
        self._given = len(self.world.given)
        self.world.wanted[name] = 1
        return (
            f"There is {with_article(name)} {direction} from you, you face {self.world.facing}. "
            f"Pick up the {name} and give it to me."
        )

    def done(self) -> bool:
        """Return whether the teacher has it."""
        return len(self.world.given) > self._given

    def hint(self) -> str:
        """Return the command to fetch it, then to give it."""
        if self.world.inventory[self._name] > self._had:
            return f"I give you {with_article(self._name)}."
        return super().hint()


class CountingInventory(Dialogue):
    """Say how many objects of a kind the learner has."""

    def begin(self) -> None:
        """Choose a kind of object and ask."""
        self._name = pick(self.rng, load_phrasebook().portable)
        self.ask()

    def ask(self) -> None:
        """Ask for the number."""
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
        self._stage_number = 0
        self._name = pick(self.rng, load_phrasebook().portable)
        self.world.inventory[self._name] = min(self.world.inventory[self._name], 8)
        self.world.wanted.clear()
        self.ask()

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
    "Look": (Looking, 1000),
    "LookAround": (LookAround, 5000),
    "FindObjectAround": (FindObjectAround, 10_000),
}


def in_grid(kind: Callable[[Stage, Task], Dialogue], max_time: int) -> Callable[[str], Task]:
    """Return a factory of tasks in a grid world; each task has its own unless it is given one to share."""
    return lambda name: DialogueTask(name, kind, max_time, GridWorld())


NAVIGATION: dict[str, Callable[[str], Task]] = {name: in_grid(*kind) for name, kind in _KINDS.items()}


def turn_by(facing: str, quarters: int) -> str:
    """Return the direction after some quarter turns to the right."""
    return NAMES[(NAMES.index(facing) + quarters) % 4]


def face(world: GridWorld, direction: str) -> str:
    """Return the command that turns towards a direction; empty if none is needed."""
    quarters = (NAMES.index(direction) - NAMES.index(world.facing)) % 4
    return ("", "I turn right.", "I turn right.", "I turn left.")[quarters]


def walk(world: GridWorld, goal: Place) -> str:
    """Return the next command on the way to a cell; empty on it."""
    direction = _heading(world.position, goal)
    return face(world, direction) or "I move forward." if direction else ""


def fetch(world: GridWorld, place: Place, name: str) -> str:
    """Return the next command on the way to an object: walk until it lies ahead, then take it."""
    if world.ahead == place:
        return f"I pick up the {name}."
    return walk(world, place)


def _heading(place: Place, goal: Place) -> str:
    """Return the direction to go first."""
    east, south = goal[0] - place[0], goal[1] - place[1]
    if east:
        return "east" if east > 0 else "west"
    if south:
        return "south" if south > 0 else "north"
    return ""
