"""`tasks.competition.counting` and `.objects_properties` of the original: things and their properties.

Two owners have a basket each. The rules are the original's; table and words are ours.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from typing import Any

from openfield.domains.commai.original.core.task import World, on_message, on_start, on_timeout
from openfield.domains.commai.original.tasks import messages
from openfield.domains.commai.original.tasks.base import BaseTask

global_properties: dict[str, dict[str, list[str]]] = {
    owner: {thing: [*properties] for thing, properties in things.items()}
    for owner, things in messages.BOOK.baskets.items()
}
rev_global_properties: dict[str, dict[str, list[str]]] = {
    owner: {
        quality: [thing for thing, qualities in things.items() if quality in qualities]
        for quality in dict.fromkeys(quality for qualities in things.values() for quality in qualities)
    }
    for owner, things in global_properties.items()
}
global_objects: list[str] = sorted({thing for things in global_properties.values() for thing in things})
all_properties: list[str] = sorted({quality for table in rev_global_properties.values() for quality in table})
shared_objects: list[str] = [thing for thing in global_objects if all(thing in t for t in global_properties.values())]
MADE_UP = 6
"""A property that nothing has is asked for as often as this many of a basket's own."""
_BETWEEN = r"(?:, and |, | and | )"


def enumeration(items: Sequence[str]) -> re.Pattern[str]:
    """Return an expression for a number of words at the end of a text, however they are joined."""
    return re.compile(rf"(?<![a-z])[a-z]+(?:{_BETWEEN}[a-z]+){{{len(items) - 1}}}\.$")


def lists_exactly(text: str, items: Sequence[str]) -> bool:
    """Return whether a text ends with a list of exactly these words, in any order."""
    found = enumeration(items).search(text)
    return found is not None and set(re.split(_BETWEEN, found[0][:-1])) == set(items)


def join(items: Sequence[str]) -> str:
    """Return a list as the teacher says it."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


class SimpleCountingTask(BaseTask):
    """Count the things of one kind in a list. The number is said in words."""

    def __init__(self, world: World | None = None) -> None:
        super().__init__(max_time=3000, world=world)

    @on_start()
    def ask(self, event: Any) -> None:
        """List the things and ask."""
        kinds = messages.BOOK.countable[1:]  # the original never uses the first
        things = [self.draw(kinds) for _ in range(self._env.rng.randint(1, 10))]
        asked = self.draw(kinds)
        self.state.answer = f"{messages.numbers_in_words[things.count(asked)]}."
        listed = messages.enumerate_with_articles(things)
        self.set_message(f"I have {listed}. How many {asked}s do I have?")

    @on_message(r"\.")
    def check_response(self, event: Any) -> None:
        """Judge the number."""
        if event.is_message(self.state.answer[:-1], "."):
            self.set_result(1, self.praise())
        else:
            self.fail(event)

    @on_timeout()
    def fail(self, event: Any) -> None:
        """Fail and tell the answer."""
        self.set_result(0, f"{self.blame()} the right answer is: {self.state.answer}")


class QuestionTask(BaseTask):
    """A question about the baskets. A wrong answer changes nothing, unless a subclass says otherwise."""

    limit = 3000

    def __init__(self, world: World | None = None) -> None:
        super().__init__(max_time=self.limit, world=world)

    def make(self) -> tuple[str, Sequence[str]]:
        """Draw a question and its right answers."""
        raise NotImplementedError

    def accept(self, event: Any) -> bool:
        """Return whether the words end with one of the right answers."""
        return any(event.is_message(answer, ".") for answer in self.state.answers)

    def tell(self) -> str:
        """Return the answer as the teacher tells it; by default one of the right ones."""
        return str(self.draw(self.state.answers))

    @on_start()
    def ask(self, event: Any) -> None:
        """Ask the question."""
        question, answers = self.make()
        self.state.question, self.state.answers = question, [*answers]
        self.state.answer = self.perfect()
        self.set_message(question)

    def perfect(self) -> str:
        """Return what a perfect learner says."""
        return f"{self.state.answers[0]}."

    @on_message(r"\.")
    def check_response(self, event: Any) -> None:
        """Judge the answer."""
        if self.accept(event):
            self.set_result(1, self.praise())
        else:
            self.correct()

    def correct(self) -> None:
        """React to a wrong answer: by default not at all."""

    @on_timeout()
    def on_time_over(self, event: Any) -> None:
        """Tell the answer. There is no verdict."""
        self.set_message(f"{self.draw(messages.timeout)} the right answer is: {self.tell()}.")

    def thing(self) -> tuple[str, str]:
        """Draw an owner, and a thing in the owner's basket."""
        owner = self.draw([*global_properties])
        return owner, self.draw([*global_properties[owner]])

    def quality(self) -> tuple[str, str]:
        """Draw an owner, and one of the properties that occur in the owner's basket."""
        owner = self.draw([*global_properties])
        return owner, self.draw([*rev_global_properties[owner]])


class RetellingTask(QuestionTask):
    """A question that is asked again, with its answer, after a wrong one."""

    def correct(self) -> None:
        """Tell the answer and ask again."""
        self.set_message(f"{self.blame()} the right answer is: {self.tell()}. {self.state.question}")


class ListingTask(QuestionTask):
    """A question whose answer is a list in any order."""

    limit = 3500

    def accept(self, event: Any) -> bool:
        """Return whether all items and no others were said."""
        return lists_exactly(event.message, self.state.answers)

    def tell(self) -> str:
        """Return the list in a random order."""
        items = [*self.state.answers]
        self._env.rng.shuffle(items)
        return join(items)

    def perfect(self) -> str:
        """Return the whole list."""
        return f"{join(self.state.answers)}."


class RetellingListTask(RetellingTask, ListingTask):
    """A question for a list, asked again after a wrong answer."""


class ObjectExistenceTask1(QuestionTask):
    """Is there such a thing? The teacher has named one."""

    check_response = None

    def make(self) -> tuple[str, Sequence[str]]:
        """Draw the thing and the one that is asked about."""
        there, asked = self.draw(global_objects), self.draw(global_objects)
        self.state.truth = f"there is {messages.indef_article(there)} in my bag."
        question = f"{self.state.truth} is there {messages.indef_article(asked)} in my bag?"
        return question, ["yes" if there == asked else "no"]

    @on_message(r"(yes|no)\.$")
    def on_yes_or_no(self, event: Any) -> None:
        """Judge the answer; after a wrong one the learner gets the truth and is asked again."""
        if self.accept(event):
            self.set_result(1, self.praise())
        else:
            self.set_message(f"{self.blame()} {self.state.question}")

    @on_timeout()
    def on_time_over(self, event: Any) -> None:
        """Fail."""
        self.set_result(0, self.draw(messages.timeout))


class ObjectExistenceTask2(QuestionTask):
    """Is a thing in a list? The answer begins with a capital."""

    def make(self) -> tuple[str, Sequence[str]]:
        """Draw the list and the thing."""
        things = [self.draw(global_objects) for _ in range(self._env.rng.randint(1, 5))]
        asked = self.draw(global_objects)
        listed = messages.enumerate_with_articles(things)
        question = f"I have {listed} in my bag. Do I have {messages.indef_article(asked)} in my bag?"
        return question, ["Yes" if asked in things else "No"]

    def correct(self) -> None:
        """Fail and tell the truth."""
        self.set_result(0, f"{self.blame()} the right answer is: {self.state.answers[0]}.")

    @on_timeout()
    def on_time_over(self, event: Any) -> None:
        """Fail and tell the truth."""
        self.correct()


class AssociateObjectWithPropertyTask(QuestionTask):
    """Repeat the property of a thing."""

    def make(self) -> tuple[str, Sequence[str]]:
        """Draw a thing and one of its properties."""
        owner, thing = self.thing()
        quality = self.draw(global_properties[owner][thing])
        return f"the {thing} in {owner}'s basket is {quality}. how is the {thing}?", [quality]


class VerifyThatObjectHasPropertyTask(QuestionTask):
    """Does a thing have a property?"""

    def make(self) -> tuple[str, Sequence[str]]:
        """Draw a thing, and a property that it has or has not."""
        owner, thing = self.thing()
        own = global_properties[owner][thing]
        true = self.draw((True, False))
        quality = self.draw(own if true else [other for other in all_properties if other not in own])
        return f"is the {thing} {quality} in {owner}'s basket?", ["yes" if true else "no"]

    @on_message()
    def check_response(self, event: Any) -> None:
        """Judge every character."""
        super().check_response(event)


class ListPropertiesOfAnObjectTask(ListingTask):
    """List the properties of a thing."""

    check_response = None

    def make(self) -> tuple[str, Sequence[str]]:
        """Draw a thing."""
        owner, thing = self.thing()
        return f"which properties does the {thing} have in {owner}'s basket?", global_properties[owner][thing]

    @on_start()
    def begin_listening(self, event: Any) -> None:
        """Listen to lists from now on."""
        self.add_handler(on_message(r"\.$")(self.judge_list))

    def judge_list(self, event: Any) -> None:
        """Judge a list."""
        super().check_response(event)


class NameAPropertyOfAnObjectTask(QuestionTask):
    """Name any property of a thing."""

    def make(self) -> tuple[str, Sequence[str]]:
        """Draw a thing."""
        owner, thing = self.thing()
        return f"can you tell me a property of the {thing} in {owner}'s basket?", global_properties[owner][thing]


class HowManyPropertiesDoesAnObjectHaveTask(QuestionTask):
    """Count the properties of a thing."""

    def make(self) -> tuple[str, Sequence[str]]:
        """Draw a thing."""
        owner, thing = self.thing()
        number = len(global_properties[owner][thing])
        question = f"how many properties does the {thing} have in {owner}'s basket?"
        return question, messages.number_to_strings(number)


class ListObjectsWithACertainPropertyTask(RetellingListTask):
    """List the things with a property."""

    def make(self) -> tuple[str, Sequence[str]]:
        """Draw a property."""
        owner, quality = self.quality()
        return f"which objects are {quality} in {owner}'s basket?", rev_global_properties[owner][quality]


class NameAnObjectWithAPropertyTask(RetellingTask):
    """Name any thing with a property."""

    def make(self) -> tuple[str, Sequence[str]]:
        """Draw a property."""
        owner, quality = self.quality()
        question = f"can you tell me an object that is {quality} in {owner}'s basket?"
        return question, rev_global_properties[owner][quality]


class HowManyObjectsHaveACertainPropertyTask(RetellingTask):
    """Count the things with a property, which may be made up."""

    def make(self) -> tuple[str, Sequence[str]]:
        """Draw a property of a basket, or make one up."""
        owner = self.draw([*global_properties])
        table = rev_global_properties[owner]
        at = self._env.rng.randrange(len(table) + MADE_UP)
        quality = [*table][at] if at < len(table) else self._invent(table)
        numbers = messages.number_to_strings(len(table.get(quality, ())))
        return f"how many objects are {quality} in {owner}'s basket?", numbers

    def _invent(self, known: dict[str, list[str]]) -> str:
        while True:
            length = self._env.rng.randint(1, 10)
            word = "".join(self._env.rng.sample(string.ascii_lowercase, length))
            if word not in known:
                return word


class WhoHasACertainObjectWithACertainPropertyTask(RetellingListTask):
    """Name the owners of a thing with a property."""

    def make(self) -> tuple[str, Sequence[str]]:
        """Draw a thing and a property."""
        thing, quality = self.draw(global_objects), self.draw(all_properties)
        owners = [owner for owner, things in global_properties.items() if quality in things.get(thing, ())]
        return f"who has {messages.indef_article(quality)} {thing} in the basket?", owners or ["nobody"]


class ListThePropertiesThatAnObjectHasInABasketOnlyTask(RetellingListTask):
    """List the properties that a thing has in one basket only."""

    def make(self) -> tuple[str, Sequence[str]]:
        """Draw a thing of both baskets, and an owner."""
        thing, owner = self.draw(shared_objects), self.draw([*global_properties])
        others = [things[thing] for name, things in global_properties.items() if name != owner]
        only = [quality for quality in global_properties[owner][thing] if not any(quality in own for own in others)]
        return f"which properties does the {thing} have in {owner}'s basket only?", only or ["none"]


class ListThePropertiesThatAnObjectHasInAllBasketsTask(RetellingListTask):
    """List the properties that a thing has in all baskets."""

    def make(self) -> tuple[str, Sequence[str]]:
        """Draw a thing of both baskets."""
        thing = self.draw(shared_objects)
        first, *others = (things[thing] for things in global_properties.values())
        common = [quality for quality in first if all(quality in own for own in others)]
        return f"which properties does the {thing} have in all baskets?", common or ["none"]
