"""What a cell takes up of a machine: processors, graphics cards and resources of other names.

The driver keeps account of every machine by itself, because one foreman there holds all of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from openfield.errors import DamagedRun, InvalidInput

CPUS, GPUS = "num_cpus", "num_gpus"
RESOURCES = "resources"
"""The fact of a run file that says what its agents need."""
NO_GPUS: tuple[int, ...] = ()
OTHER_WORDS = {"cpu": CPUS, "cpus": CPUS, "gpu": GPUS, "gpus": GPUS}
KEPT_BY_RAY = ("memory", "object_store_memory")
"""Ray gives these out by itself, in bytes."""


@dataclass(frozen=True)
class Needs:
    """What a cell of an agent takes up while it is played."""

    cpus: float = 1.0
    gpus: float = 0.0
    """Below 1 it is a share of one card, else a number of whole cards."""
    others: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_usual(self) -> bool:
        """Whether it is one processor and nothing else: then a cell may wait on the machine that will play it."""
        return self.cpus == 1.0 and not self.gpus and not self.others

    def __str__(self) -> str:
        named = {CPUS: self.cpus, GPUS: self.gpus, **self.others}
        return ", ".join(f"{name}={amount:g}" for name, amount in named.items() if amount)


def read_needs(agent: str, resources: Mapping[str, float]) -> Needs:
    """Return what a user says that an agent needs.

    Raises:
        InvalidInput: An amount is not a number above 0, or no whole number of cards, or the name is one of Ray's own.
    """
    for name, amount in resources.items():
        if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 <= amount < math.inf:
            raise InvalidInput(f"The agent '{agent}' needs {name}={amount}; it must be a number, 0 or more.")
        if right := OTHER_WORDS.get(name.lower()):
            raise InvalidInput(f"The agent '{agent}' needs {name}={amount:g}; write {right}={amount:g}.")
        if name in KEPT_BY_RAY:
            raise InvalidInput(
                f"The agent '{agent}' needs {name}={amount:g}; Ray gives out no {name} here. Start machines that have "
                "enough with a resource of your own, such as highmem=1."
            )
    cpus, gpus = float(resources.get(CPUS, 1)), float(resources.get(GPUS, 0))
    if gpus > 1 and gpus != int(gpus):
        raise InvalidInput(f"The agent '{agent}' needs {GPUS}={gpus:g}; above 1 it must be a whole number.")
    if not cpus:
        raise InvalidInput(f"The agent '{agent}' needs {CPUS}=0; a cell takes up a part of a processor at least.")
    return Needs(cpus, gpus, {name: amount for name, amount in resources.items() if name not in (CPUS, GPUS)})


def parse_resources(words: Iterable[str]) -> dict[str, dict[str, float]]:
    """Return what the words of `--resources` say, by the names of agents; "" stands for all of them.

    Raises:
        InvalidInput: A word is not of the form `num_gpus=1,num_cpus=2` or `AGENT:num_gpus=1`.
    """
    found: dict[str, dict[str, float]] = {}
    for word in words:
        agent, _, amounts = word.rpartition(":")  # names of agents may have colons
        for pair in amounts.split(","):
            name, sign, amount = pair.partition("=")
            try:
                found.setdefault(agent, {})[name.strip()] = float(amount)
            except ValueError:
                sign = ""
            if not sign or not name.strip():
                raise InvalidInput(
                    f"--resources takes num_gpus=1,num_cpus=2 or AGENT:num_gpus=1, not '{word}'."
                ) from None
    return found


def assign_resources(agents: Iterable[str], *given: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Return what each agent needs, later words before earlier ones.

    Args:
        agents: The agents that play.
        given: What users said, by the names of agents; "" stands for all of them.

    Raises:
        InvalidInput: An agent does not play, or needs what cannot be given.
    """
    names, found = list(agents), dict[str, dict[str, float]]()
    for resources in given:
        for name in resources.keys() - {"", *names}:
            raise InvalidInput(f"Resources are given for an agent '{name}', which does not play.")
        for agent in names:
            needs = {**found.get(agent, {}), **resources.get("", {}), **resources.get(agent, {})}
            read_needs(agent, needs)
            if needs:
                found[agent] = needs
    return found


def read_kept_resources(facts: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """Return what a run file says that agents need."""
    try:
        return msgspec.json.decode(facts.get(RESOURCES, "{}"), type=dict[str, dict[str, float]])
    except msgspec.DecodeError as error:
        raise DamagedRun(f"The run file is damaged: what it says of resources cannot be read: {error}.") from None


class Account:
    """What is free on a machine."""

    def __init__(self, cpus: float, gpus: int = 0, others: Mapping[str, float] | None = None) -> None:
        self._all = cpus, gpus, dict(others or {})
        self.cpus = cpus
        self._gpus = [1.0] * gpus  # what is left of each card
        self._others = dict(others or {})

    def could_hold(self, needs: Needs) -> bool:
        """Return whether the machine would do if nothing else was on it."""
        cpus, gpus, others = self._all
        enough = all(others.get(name, 0) >= amount for name, amount in needs.others.items())
        return enough and needs.cpus <= cpus and needs.gpus <= gpus

    def take(self, needs: Needs) -> tuple[int, ...] | None:
        """Take what a cell needs, and return the numbers of its cards; None if that is not free."""
        cards = self._find_cards(needs.gpus)
        enough = all(self._others.get(name, 0) >= amount for name, amount in needs.others.items())
        if cards is None or not enough or needs.cpus > self.cpus:
            return None
        self._change(needs, cards, -1)
        return cards

    def give_back(self, needs: Needs, cards: tuple[int, ...]) -> None:
        """Free what a cell had taken."""
        self._change(needs, cards, 1)

    def _find_cards(self, gpus: float) -> tuple[int, ...] | None:
        share = min(gpus, 1.0)
        fit = [number for number, left in enumerate(self._gpus) if left >= share]
        fit.sort(key=lambda number: self._gpus[number])  # cards that are shared already come first
        count = math.ceil(gpus)
        return tuple(fit[:count]) if len(fit) >= count else None

    def _change(self, needs: Needs, cards: tuple[int, ...], sign: int) -> None:
        self.cpus = round(self.cpus + sign * needs.cpus, 6)
        for card in cards:
            self._gpus[card] = round(self._gpus[card] + sign * min(needs.gpus, 1.0), 6)
        for name, amount in needs.others.items():
            self._others[name] = round(self._others[name] + sign * amount, 6)
