"""competition/counting and competition/objects_properties: what people have, and what it is like.

Each function draws one question from the baskets of the phrasebook. The tables at the end name the tasks.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from random import Random

from openfield.domains.commai.environment.grid_world import with_article
from openfield.domains.commai.environment.task import Round, Task
from openfield.domains.commai.tasks.draws import between, blame, load_phrasebook, number_word, pick
from openfield.domains.commai.tasks.legacy.dialogue import exercise

_FAKE_CHANCE = 0.2
_LIST_LIMIT = 5
"""Longer enumerations are checked as sets; all orders of five are 120 texts."""


def count_objects(rng: Random) -> Round:
    """Draw a question: how many of one kind are in a list of one to ten."""
    kinds = load_phrasebook().countable
    owned = [pick(rng, kinds) for _ in range(between(rng, 1, 10))]
    asked = pick(rng, kinds)
    listed = ", ".join(with_article(name) for name in owned)
    return _told(rng, f"I have {listed}. How many {asked}s do I have?", number_word(owned.count(asked)))


def object_exists(yes: str, no: str) -> Callable[[Random], Round]:
    """Return a function that draws a question: whether a person has an object."""

    def make(rng: Random) -> Round:
        owner, things = _basket(rng)
        thing = pick(rng, [*things, *load_phrasebook().countable])
        return Round(f"does {owner} have {with_article(thing)} in the basket?", yes if thing in things else no)

    return make


def associate_property(rng: Random) -> Round:
    """Draw a question: the property that was just stated."""
    owner, thing, properties = _thing(rng)
    stated = pick(rng, properties)
    return _told(rng, f"{thing} of {owner} is {stated}. how is {thing} of {owner}?", stated)


def verify_property(rng: Random) -> Round:
    """Draw a question: whether an object has a property."""
    owner, thing, properties = _thing(rng)
    asked = pick(rng, properties) if rng.random() < 0.5 else pick(rng, _all_properties())
    return _told(rng, f"is {thing} {asked} in {owner}'s basket?", "yes" if asked in properties else "no")


def list_properties(rng: Random) -> Round:
    """Draw a question: all properties of an object."""
    owner, thing, properties = _thing(rng)
    return _listing(rng, f"which properties does {thing} have in {owner}'s basket?", properties)


def name_property(rng: Random) -> Round:
    """Draw a question: any property of an object."""
    owner, thing, properties = _thing(rng)
    return _one_of(rng, f"can you tell me a property of {thing} in {owner}'s basket?", properties)


def count_properties(rng: Random) -> Round:
    """Draw a question: how many properties an object has."""
    owner, thing, properties = _thing(rng)
    return _told(rng, f"how many properties does {thing} have in {owner}'s basket?", number_word(len(properties)))


def list_objects(rng: Random) -> Round:
    """Draw a question: all objects with a property."""
    owner, things = _basket(rng)
    asked = pick(rng, [quality for qualities in things.values() for quality in qualities])
    return _listing(rng, f"which objects are {asked} in {owner}'s basket?", _having(things, asked))


def name_object(rng: Random) -> Round:
    """Draw a question: any object with a property."""
    owner, things = _basket(rng)
    asked = pick(rng, [quality for qualities in things.values() for quality in qualities])
    return _one_of(rng, f"can you tell me an object that is {asked} in {owner}'s basket?", _having(things, asked))


def count_objects_with(rng: Random) -> Round:
    """Draw a question: how many objects have a property; sometimes none has."""
    owner, things = _basket(rng)
    fake = rng.random() < _FAKE_CHANCE
    asked = "ticklish" if fake else pick(rng, _all_properties())
    return _told(rng, f"how many objects are {asked} in {owner}'s basket?", number_word(len(_having(things, asked))))


def who_has(rng: Random) -> Round:
    """Draw a question: whose object has a property."""
    _, thing, _ = _thing(rng)
    asked = pick(rng, _all_properties())
    owners = [owner for owner, things in load_phrasebook().baskets.items() if asked in things.get(thing, ())]
    return _listing(rng, f"who has {with_article(asked)} {thing} in the basket?", owners or ["nobody"])


def properties_of_one(rng: Random) -> Round:
    """Draw a question: the properties an object has in one basket only."""
    owner, thing, properties = _thing(rng)
    baskets = [things for name, things in load_phrasebook().baskets.items() if name != owner]
    only = [quality for quality in properties if not any(quality in things.get(thing, ()) for things in baskets)]
    return _listing(rng, f"which properties does {thing} have in {owner}'s basket only?", only or ["none"])


def properties_of_all(rng: Random) -> Round:
    """Draw a question: the properties an object has in all baskets."""
    _, thing, properties = _thing(rng)
    baskets = load_phrasebook().baskets.values()
    common = [quality for quality in properties if all(quality in things.get(thing, ()) for things in baskets)]
    return _listing(rng, f"which properties does {thing} have in all baskets?", common or ["none"])


def list_enumerations(items: Sequence[str]) -> set[str]:
    """Return all lists of the items: in any order, with blanks, commas, `and`, or commas and a final `and`."""
    texts: set[str] = set()
    for order in itertools.permutations(items):
        head, last = order[:-1], order[-1]
        texts.update((" ".join(order), ", ".join(order), " and ".join(order)))
        if head:
            texts.update((f"{', '.join(head)} and {last}", f"{', '.join(head)}, and {last}"))
    return texts


def lists_exactly(said: str, items: Sequence[str]) -> bool:
    """Return whether a text lists exactly these items, in any order and form of `list_enumerations`."""
    if len(items) <= _LIST_LIMIT:
        return any(_ends_with(said, text) for text in list_enumerations(items))
    words = said.rstrip(".").replace(", and ", " ").replace(" and ", " ").replace(", ", " ").split()
    return sorted(words[-len(items) :]) == sorted(items)


def _ends_with(said: str, text: str) -> bool:
    """Return whether the sentence is the text, or ends with it after a blank."""
    return f" {said}".endswith(f" {text}.")


def _listing(rng: Random, question: str, items: Sequence[str]) -> Round:
    answer = f"{', '.join(items)}."
    return Round(question, answer, wrong=_telling(rng, answer), accepts=lambda said: lists_exactly(said, items))


def _one_of(rng: Random, question: str, items: Sequence[str]) -> Round:
    answer = f"{items[0]}."
    accepts: Callable[[str], bool] = lambda said: any(_ends_with(said, item) for item in items)  # noqa: E731
    return Round(question, answer, wrong=_telling(rng, answer), accepts=accepts)


def _told(rng: Random, question: str, answer: str) -> Round:
    return Round(question, f"{answer}.", wrong=_telling(rng, f"{answer}."))


def _telling(rng: Random, answer: str) -> str:
    return f"{blame(rng)} the right answer is: {answer}"


def _basket(rng: Random) -> tuple[str, dict[str, tuple[str, ...]]]:
    return pick(rng, list(load_phrasebook().baskets.items()))


def _thing(rng: Random) -> tuple[str, str, tuple[str, ...]]:
    owner, things = _basket(rng)
    thing, properties = pick(rng, list(things.items()))
    return owner, thing, properties


def _all_properties() -> list[str]:
    """Return every property, sorted."""
    baskets = load_phrasebook().baskets.values()
    return sorted({quality for things in baskets for qualities in things.values() for quality in qualities})


def _having(things: dict[str, tuple[str, ...]], asked: str) -> list[str]:
    return [thing for thing, properties in things.items() if asked in properties]


COUNTING: dict[str, Callable[[str], Task]] = {"SimpleCounting": exercise(count_objects, 3000, retries=False)}
PROPERTIES: dict[str, Callable[[str], Task]] = {
    "ObjectExistence1": exercise(object_exists("yes.", "no."), 3000),
    "ObjectExistence2": exercise(object_exists("Yes.", "No."), 3000, retries=False),
    "AssociateObjectWithProperty": exercise(associate_property, 3000, retries=False),
    "VerifyThatObjectHasProperty": exercise(verify_property, 3000, retries=False),
    "ListPropertiesOfAnObject": exercise(list_properties, 3500, retries=False),
    "NameAPropertyOfAnObject": exercise(name_property, 3000, retries=False),
    "HowManyPropertiesDoesAnObjectHave": exercise(count_properties, 3000, retries=False),
    "ListObjectsWithACertainProperty": exercise(list_objects, 3500, retries=False),
    "NameAnObjectWithAProperty": exercise(name_object, 3000, retries=False),
    "HowManyObjectsHaveACertainProperty": exercise(count_objects_with, 3000, retries=False),
    "WhoHasACertainObjectWithACertainProperty": exercise(who_has, 3000, retries=False),
    "ListThePropertiesThatAnObjectHasInABasketOnly": exercise(properties_of_one, 3500, retries=False),
    "ListThePropertiesThatAnObjectHasInAllBaskets": exercise(properties_of_all, 3500, retries=False),
}
