"""Say where the cells of a run are played: here, side by side or not, in worker processes, or on a cluster.

And which resources of a cluster they need: processors, graphics cards and resources of other names.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from openfield.errors import DamagedRun, InvalidInput

PROCESSES, RAY = "processes", "ray"
MAX_CONCURRENCY = 1_000
"""Cells at a time in one process; each has a thread."""
CPUS, GPUS = "num_cpus", "num_gpus"
RESOURCES = "resources"
"""The fact of a run file about the resources of its agents."""
OTHER_WORDS = {"cpu": CPUS, "cpus": CPUS, "gpu": GPUS, "gpus": GPUS}
KEPT_BY_RAY = ("memory", "object_store_memory")
"""Ray gives these out by itself, in bytes."""


@dataclass(frozen=True)
class Cluster:
    """A Ray cluster."""

    address: str | None = None
    """Where its head is, as HOST:PORT or `auto`; None starts one on this machine and stops it in the end."""


@dataclass(frozen=True)
class SideBySide:
    """Cells that are played at the same time in this process, for agents that wait."""

    cells: int


Players = int | Cluster | SideBySide
"""What plays cells: a number of processes (0 is this one, a cell after the other), a cluster, or threads."""


def choose_workers(workers: int, executor: str = PROCESSES, concurrency: int | None = None) -> Players:
    """Return what plays the cells.

    Args:
        workers: How many processes play here; a cluster plays as many cells as it has processors.
        executor: `processes`, `ray`, or `ray=ADDRESS`.
        concurrency: How many cells are played at the same time in this process; then no worker plays.

    Raises:
        InvalidInput: There is no such executor.
    """
    if concurrency is not None:
        if executor != PROCESSES:
            raise InvalidInput(f"Cells are played either in this process (--concurrency) or by --executor {executor}.")
        if not 1 <= concurrency <= MAX_CONCURRENCY:
            raise InvalidInput(f"From 1 to {MAX_CONCURRENCY} cells can be played at once here, not {concurrency}.")
        return SideBySide(concurrency)
    kind, sign, address = executor.partition("=")
    if kind == RAY and bool(sign) == bool(address):
        if address.startswith("ray://"):
            raise InvalidInput(
                f"{address} is an address of Ray's client. Start openfield on a machine of the cluster, with the "
                "address of its head: --executor ray=HOST:6379"
            )
        return Cluster(address or None)
    if executor != PROCESSES:
        raise InvalidInput(f"There is no executor '{executor}'. Use processes, ray, or ray=HOST:PORT.")
    return workers


@dataclass(frozen=True)
class Needs:
    """The resources of a cell of an agent while it is played."""

    cpus: float = 1.0
    gpus: float = 0.0
    """Below 1 it is a share of one card, else a number of whole cards."""
    others: Mapping[str, float] = field(default_factory=dict)

    @property
    def options(self) -> dict[str, Any]:
        """The options of a Ray actor with the resources of a cell."""
        return {CPUS: self.cpus, GPUS: self.gpus, "resources": dict(self.others)}

    def fit(self, node: Mapping[str, float]) -> bool:
        """Return whether a machine with these resources would do if nothing else was on it."""
        wanted = {"CPU": self.cpus, "GPU": self.gpus, **self.others}
        return all(node.get(name, 0) >= amount for name, amount in wanted.items())

    def __str__(self) -> str:
        named = {CPUS: self.cpus, GPUS: self.gpus, **self.others}
        return ", ".join(f"{name}={amount:g}" for name, amount in named.items() if amount)


def read_needs(agent: str, resources: Mapping[str, float]) -> Needs:
    """Return the resources that a user gives an agent.

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
            if needs := {**found.get(agent, {}), **resources.get("", {}), **resources.get(agent, {})}:
                read_needs(agent, needs)
                found[agent] = needs
    return found


def read_kept_resources(facts: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """Return the recorded resources of agents."""
    try:
        return msgspec.json.decode(facts.get(RESOURCES, "{}"), type=dict[str, dict[str, float]])
    except msgspec.DecodeError as error:
        raise DamagedRun(f"The run file is damaged: its resources cannot be read: {error}.") from None
