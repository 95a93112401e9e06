"""The functions of `import openfield as of`: make trials, run agents on them, go on with a run.

`run` is the whole of plan -> rollout -> journal; the `Result` it returns leads on to metrics and report.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Unpack

import msgspec

from openfield.console import is_watched
from openfield.domain import Domain
from openfield.errors import InvalidInput, UnknownName
from openfield.provenance.provenance import Remarks
from openfield.record import Entry, check_record_kind
from openfield.registry import find_domain, use_domain
from openfield.result import Result
from openfield.runner.cluster import PROCESSES, Players, assign_resources, choose_workers
from openfield.runner.executors import refuse_unguarded
from openfield.runner.experiment import say_mismatch
from openfield.runner.plan import Agents, Plan, make_plan
from openfield.runner.run import RunOptions, read_plan, run_plan
from openfield.runner.scheduler import Watch
from openfield.trial import Trial


def trials(domain: str | Domain[Any], count: int = 5, **options: Any) -> list[Trial]:
    """Make trials of a domain, given by name or as an object; see `Domain.trials` for the options."""
    if count < 1:
        raise InvalidInput(f"A run needs at least one trial, not {count}.")
    known = find_domain(domain) if isinstance(domain, str) else use_domain(domain)
    return known.trials(count=count, **options)


def run(
    agents: Agents,
    trials: Trial | Iterable[Trial],
    journal: str | Path,
    workers: int = 0,
    repeats: int = 1,
    retry: bool = False,
    watch: Watch | None = None,
    **options: Unpack[RunOptions],
) -> Result:
    """Evaluate agents on trials and return the result; calling it again resumes.

    Args:
        agents: Functions, classes, factories, names or commands; a mapping gives them names of your choice, and
            `isolate` plays them in isolated processes.
        trials: What they are evaluated on.
        journal: The run file. What it already holds is not done again.
        workers: How many processes play cells; 0 plays them here, one after the other.
        repeats: How often each agent plays each trial, each time with another seed of its own.
        retry: Play cells again that an agent failed.
        watch: Called with every entry of the record.
        options: Further ones, such as `concurrency`, `executor`, `keep` and `progress`, see `RunOptions`.
    """
    refuse_unguarded()
    _check_options({"workers": workers, "repeats": repeats, "retry": retry, **options})
    plan = _with_options(make_plan(agents, trials, repeats), options)
    return _play(plan, Path(journal), _players(int(workers), options), retry, watch, options)


def resume(
    journal: str | Path,
    workers: int = 0,
    retry: bool = False,
    watch: Watch | None = None,
    **options: Unpack[RunOptions],
) -> Result:
    """Go on with a run file and return the result. The file is all it needs.

    Args:
        journal: The run file.
        workers: How many processes play cells; 0 plays them here, one after the other.
        retry: Play cells again that an agent failed.
        watch: Called with every entry of the record.
        options: Further ones, such as `concurrency`, `executor`, `progress` and `trust`, see `RunOptions`.
    """
    _check_options({"workers": workers, "retry": retry, **options})
    keep = options.get("keep", False)
    plan = _with_options(read_plan(journal, retry, trust=options.get("trust", False), keep=keep), options)
    return _play(plan, Path(journal), _players(int(workers), options), retry, watch, options)


class _AllOptions(RunOptions, total=False):
    """The options, and the parameters beside them that are plain values."""

    workers: int
    repeats: int
    retry: bool


def _check_options(options: Mapping[str, Any]) -> None:
    """Check names and types: deep inside a run a wrong one would raise what no caller understands."""
    for name in options.keys() - _AllOptions.__annotations__.keys():
        raise UnknownName("option", name, _AllOptions.__annotations__, label="Known")
    check_record_kind(options.get("record"))
    try:
        msgspec.convert({name: _as_plain(value) for name, value in options.items()}, _AllOptions)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{say_mismatch(error)}.") from None


def _as_plain(value: Any) -> Any:
    """Return numbers of NumPy as those of Python: they are as good."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    return float(value) if isinstance(value, Real) and not isinstance(value, bool) else value


def _with_options(plan: Plan, options: RunOptions) -> Plan:
    """Return a plan with how often agents are saved, what is kept of large arrays, and what is used."""
    seconds, tokens = options.get("save_seconds", plan.save_seconds), options.get("run_token_limit")
    if not seconds >= 0:
        raise InvalidInput(f"save_seconds must be a number of at least 0, not {seconds!r}.")
    if tokens is not None and tokens < 1:
        raise InvalidInput(f"run_token_limit must be a whole number of at least 1, not {tokens!r}.")
    resources = assign_resources(plan.agents, plan.resources, options.get("resources", {}))
    return replace(plan, save_seconds=seconds, tokens=tokens, record=options.get("record"), resources=resources)


def _play(plan: Plan, journal: Path, players: Players, retry: bool, watch: Watch | None, options: RunOptions) -> Result:
    """Play what is left of a plan, behind progress bars if a person is there to see them, and return the result."""
    with _watching(plan, journal, watch, options) as tell:
        run_plan(plan, journal, players, retry, tell, options.get("keep", False), _remarks(options))
    return Result([journal])


@contextmanager
def _watching(plan: Plan, journal: Path, watch: Watch | None, options: RunOptions) -> Iterator[Watch | None]:
    """Yield what is called with every entry: what the caller gave, the progress bars, or both."""
    wanted = options.get("progress")
    if not (is_watched() if wanted is None else wanted):
        yield watch
        return
    from openfield.report.progress import showing_progress

    with showing_progress(plan, journal, options.get("keep", False)) as show:

        def tell(entry: Entry) -> None:
            show(entry)
            if watch is not None:
                watch(entry)

        yield tell


def _players(workers: int, options: RunOptions) -> Players:
    return choose_workers(workers, options.get("executor", PROCESSES), options.get("concurrency"))


def _remarks(options: RunOptions) -> Remarks:
    return Remarks(options.get("note", ""), tuple(options.get("tags", ())))
