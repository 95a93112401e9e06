"""Parameters that several commands have: output files, metrics, isolation, and trials that are served."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from openfield.errors import InvalidInput
from openfield.isolation import IsolationOptions
from openfield.options import MORE
from openfield.runner.cluster import Cluster
from openfield.runner.experiment import RunOptions, ServedTrials

if TYPE_CHECKING:
    from openfield.result import NumberChoice, SelectionChoice, VersionChoice

Output = Annotated[Path | None, Parameter(name=["--output", "-o"], metavar="FILE")]
"""The file to write."""
Metrics = Annotated[list[str] | None, Parameter(name="--metric", consume_multiple=False, metavar="NAME")]
"""Metrics, one with each `--metric`."""
Trust = Annotated[bool, Parameter(group=MORE)]
"""Whether code that a run file names may run although this user did not sign it."""

Numbers = Annotated[str | None, Parameter(metavar="NAMES")]
"""Which numbers a table shows: `all`, or names with commas between them."""

KindOfIntervals = Literal["conservative", "usual", "anytime"]
"""The rule of the intervals."""
KindOfFailures = Literal["count", "exclude"]
"""What becomes of trials that an agent failed."""


@Parameter(name="*")
@dataclass(frozen=True)
class NumberOptions:
    """Which numbers are shown, and how they are computed."""

    numbers: Numbers = None
    """The numbers to show: `all`, or names such as before,after,oscr [the six that matter most, and returns where there
    is no scale]. JSON always has all."""
    intervals: KindOfIntervals = "conservative"
    """The rule of the intervals. Usual ones are narrower and hold only for scores with a single peak; anytime ones hold
    at every look [conservative; anytime as long as trials are missing]."""
    failures: KindOfFailures = "count"
    """Count trials that an agent failed, as 0 where it failed, or exclude them [count]."""

    def choose(self, metrics: list[str] | None = None) -> NumberChoice:
        """Return the options of `Result.summary`."""
        return {"metrics": metrics, "intervals": self.intervals, "failures": self.failures, "numbers": self.numbers}


NUMBERS = NumberOptions()


@Parameter(name="*")
@dataclass(frozen=True)
class VersionOptions:
    """How versions of agents are shown."""

    rename: Annotated[tuple[str, ...], Parameter(group=MORE, metavar="AGENT=NAME", consume_multiple=False)] = ()
    """Call an agent, or a version of it, something else. Repeat it for further ones."""
    superseded: Annotated[bool, Parameter(group=MORE)] = False
    """Also show what earlier versions of agents had played to the end."""

    def choose(self) -> VersionChoice:
        """Return the options of `Result`."""
        names: dict[str, str] = {}
        for text in self.rename:
            old, sign, new = text.rpartition("=")
            if not sign or not old or not new:
                raise InvalidInput(f"--rename takes AGENT=NAME, not '{text}'.")
            names[old] = new
        return {"rename": names, "superseded": self.superseded}


AS_PLAYED = VersionOptions()


@Parameter(name="*")
@dataclass(frozen=True)
class SelectionOptions:
    """What of a run a figure or a table shows."""

    agent: Annotated[list[str] | None, Parameter(consume_multiple=False, metavar="NAME")] = None
    """Show only this agent. Repeat it for further ones."""
    novelty: Annotated[list[str] | None, Parameter(consume_multiple=False, metavar="NAME")] = None
    """Show only this novelty. Repeat it for further ones."""
    domain: Annotated[list[str] | None, Parameter(group=MORE, consume_multiple=False, metavar="NAME")] = None
    """Show only this domain. Repeat it for further ones."""

    def choose(self) -> SelectionChoice:
        """Return the options of `Result.figure`."""
        return {"agents": self.agent or (), "novelties": self.novelty or (), "domains": self.domain or ()}


ALL_OF_RUN = SelectionOptions()


NO_ISOLATION = IsolationOptions()


def check_cluster(given: RunOptions, options: RunOptions) -> None:
    """Refuse requirements of agents where nothing can meet them."""
    if given.resources and not isinstance(options.players, Cluster):
        raise InvalidInput("--resources is about machines of a cluster. Add --executor ray.")


SERVED_TRIALS = ServedTrials()
