"""competition/navigation, the tasks of taking and giving: things change hands, and somebody counts them.

Listed with all others in navigation.py.
"""

from __future__ import annotations

from openfield.domains.commai.environment.draws import pick
from openfield.domains.commai.environment.grid import NAMES, step, with_article
from openfield.domains.commai.tasks.legacy.dialogue import Dialogue
from openfield.domains.commai.tasks.legacy.errands import Errand, Fetching
from openfield.domains.commai.tasks.legacy.phrasebook import number_word, phrasebook


class Giving(Errand):
    """Give back what the teacher gave."""

    __slots__ = ("_given", "_name")

    def instruct(self) -> str:
        """Hands a thing over and asks for it."""
        self._name, self._given = self.any_thing(), len(self.world.given)
        self.world.inventory[self._name] += 1
        self.world.wanted[self._name] = 1
        return (
            f"I gave you {with_article(self._name)}. Give it back to me: say 'I give you {with_article(self._name)}'."
        )

    def done(self) -> bool:
        """Whether the teacher has it."""
        return len(self.world.given) > self._given

    def hint(self) -> str:
        """The command."""
        return f"I give you {with_article(self._name)}."


class PickUpAroundAndGive(Fetching):
    """Pick up a thing on a neighbouring cell and give it to the teacher."""

    __slots__ = ("_given",)

    def instruct(self) -> str:
        """A thing in some direction, wanted."""
        direction = pick(self.rng, NAMES)
        name = self.place(step(self.world.position, direction))
        self._given = len(self.world.given)
        self.world.wanted[name] = 1
        return (
            f"There is {with_article(name)} {direction} from you, you face {self.world.facing}. "
            f"Pick up the {name} and give it to me."
        )

    def done(self) -> bool:
        """Whether the teacher has it."""
        return len(self.world.given) > self._given

    def hint(self) -> str:
        """Fetch, then give."""
        if self.world.inventory[self._name] > self._had:
            return f"I give you {with_article(self._name)}."
        return super().hint()


class CountingInventory(Dialogue):
    """Say how many of something one has."""

    __slots__ = ("_name",)

    def begin(self) -> None:
        """Asks."""
        self._name = pick(self.rng, phrasebook().portable)
        self.ask()

    def ask(self) -> None:
        """Asks for the number."""
        self.say(f"How many {self._name}s do you have?")

    def read(self, sentence: str) -> None:
        """Judges the number."""
        if sentence.endswith(self.hint()):
            self.win()
        else:
            self.lose()

    def hint(self) -> str:
        """The number in letters."""
        return f"{number_word(min(self.world.inventory[self._name], 10))}."


class CountingInventoryGiving(CountingInventory):
    """Count, get one more, count, give one away, count: four stages and a last question."""

    __slots__ = ("_stage_number",)

    def begin(self) -> None:
        """Asks the first time, with few enough things that the number has a word."""
        self._stage_number = 0
        self._name = pick(self.rng, phrasebook().portable)
        self.world.inventory[self._name] = min(self.world.inventory[self._name], 8)
        self.world.wanted.clear()
        self.ask()

    def read(self, sentence: str) -> None:
        """Goes from stage to stage; a wrong number ends it."""
        if self._stage_number == 2:
            if self.world.wanted[self._name] == 0:
                self._advance()
        elif sentence.endswith(self.hint()):
            self._advance()
        else:
            self.lose()

    def hint(self) -> str:
        """The number, or the gift."""
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
