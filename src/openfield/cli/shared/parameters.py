"""Parameters that several commands have: output files, metrics, isolation, and trials that are served."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from openfield.errors import InvalidInput
from openfield.options import MORE, given
from openfield.runner.cluster import Cluster
from openfield.runner.experiment import AGENTS, RunOptions, ServedTrials

Output = Annotated[Path | None, Parameter(name=["--output", "-o"], metavar="FILE")]
"""The file to write."""
Metrics = Annotated[list[str] | None, Parameter(name="--metric", consume_multiple=False, metavar="NAME")]
"""Metrics, one with each `--metric`."""
Trust = Annotated[bool, Parameter(group=MORE)]
"""Whether code that a run file names may run although this user did not sign it."""

KindOfIntervals = Literal["usual", "conservative"]
"""The rule of the intervals."""
KindOfFailures = Literal["count", "exclude"]
"""What becomes of trials that an agent failed."""


@Parameter(name="*")
@dataclass(frozen=True)
class NumberOptions:
    """How numbers are computed."""

    intervals: KindOfIntervals = "usual"
    """The rule of the intervals. Conservative ones are wider and also hold for all-or-nothing scores [usual]."""
    failures: KindOfFailures = "count"
    """Count trials that an agent failed, as 0 where it failed, or exclude them [count]."""


NUMBERS = NumberOptions()


@Parameter(name="*")
@dataclass(frozen=True)
class IsolationOptions:
    """Whether agents are isolated, and what they may see and use then."""

    isolate: Annotated[bool, Parameter(group=AGENTS)] = False
    """Play every agent in a closed process of its own."""
    memory: Annotated[str | None, Parameter(group=MORE, metavar="SIZE")] = None
    """Memory of an isolated agent with all its processes [2GB]."""
    grant: Annotated[list[str] | None, Parameter(group=MORE, consume_multiple=False, metavar="PATH")] = None
    """A file or folder that isolated agents may read; `PATH:rw` may be written. Repeat it for further ones."""
    env: Annotated[list[str] | None, Parameter(group=MORE, consume_multiple=False, metavar="NAME")] = None
    """An environment variable that isolated agents are given. Repeat it for further ones."""
    gpu: Annotated[bool, Parameter(group=MORE)] = False
    """Let isolated agents use the graphics cards."""
    network: Annotated[bool, Parameter(group=MORE)] = False
    """Let isolated agents use the network."""

    def add_to(self, before: bool | Mapping[str, Any]) -> bool | dict[str, Any]:
        """Return the key `isolate` of an experiment with these options."""
        told = {name: value for name, value in given(self).items() if name != "isolate"}
        if before is False and not self.isolate:
            if told:
                raise InvalidInput(f"--{next(iter(told))} is for isolated agents. Add --isolate.")
            return False
        return {**({} if isinstance(before, bool) else before), **told}


NO_ISOLATION = IsolationOptions()


def check_cluster(given: RunOptions, options: RunOptions) -> None:
    """Refuse to be told what agents need where that means nothing."""
    if given.resources and not isinstance(options.players, Cluster):
        raise InvalidInput("--resources is about machines of a cluster. Add --executor ray.")


SERVED_TRIALS = ServedTrials()
