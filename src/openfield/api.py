"""The functions of `import openfield as of`: make trials, run agents on them, go on with a run.

`run` is the whole of plan -> rollout -> journal; the `Result` it returns leads on to metrics and report.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from openfield.console import is_interactive
from openfield.domain import Domain
from openfield.errors import InvalidInput
from openfield.options import RecordKind, fill
from openfield.planning import prepare_play
from openfield.record import Entry
from openfield.registry import find_domain, use_domain
from openfield.runner.executors import refuse_unguarded
from openfield.runner.experiment import RegisterOptions
from openfield.runner.plan import Agents, Plan, make_plan
from openfield.runner.run import read_plan, run_plan, with_options
from openfield.runner.scheduler import Watch
from openfield.runner.stopping.batches import in_batches
from openfield.runner.stopping.rule import BATCH
from openfield.trial import Trial

if TYPE_CHECKING:
    from openfield.result import Result


class PlayKeywords(TypedDict, total=False):
    """The options of `RunOptions` as keywords, so that type checkers know them, and `progress`."""

    executor: str
    resources: dict[str, dict[str, float]]
    concurrency: int | None
    keep: bool
    note: str
    tags: tuple[str, ...]
    save_seconds: float
    record: RecordKind | None
    share: str | None
    budget: str | None
    ask_above: int
    run_token_limit: int | None
    progress: bool | None


class RunKeywords(PlayKeywords, total=False):
    """Those of `run`: also when it stops by itself, and what is registered of it; see `Experiment`."""

    until: str
    negligible: float
    race: bool
    register: str | None
    question: str
    registered: str


class ResumeKeywords(PlayKeywords, total=False):
    """Those of `resume`."""

    trust: bool


def trials(domain: str | Domain[Any], count: int = 5, **options: Any) -> list[Trial]:
    """Make trials of a domain, given by name or as an object; see `Domain.trials` for the options."""
    if count < 1:
        raise InvalidInput(f"A run needs at least one trial, not {count}.")
    known = find_domain(domain, options) if isinstance(domain, str) else use_domain(domain)
    return known.trials(count=count, **options)


def run(
    agents: Agents,
    trials: Trial | Iterable[Trial],
    journal: str | Path,
    workers: int = 0,
    repeats: int = 1,
    retry: bool = False,
    watch: Watch | None = None,
    **options: Unpack[RunKeywords],
) -> Result:
    """Evaluate agents on trials and return the result; calling it again resumes.

    Args:
        agents: Functions, classes, factories, names or commands; a mapping gives them names of your choice, and
            `isolate` plays them in isolated processes.
        trials: The trials they are evaluated on.
        journal: The run file. Cells it already holds are not played again.
        workers: How many processes play cells; 0 plays them here, one after the other.
        repeats: How often each agent plays each trial, each time with another seed of its own.
        retry: Play cells again that an agent failed.
        watch: Called with every entry of the record.
        options: Further ones, such as `concurrency`, `executor` and `keep`, see `RunOptions`, and `progress`, which
            shows progress bars or does not; by default a person at a terminal or in a notebook sees them. `until`,
            `negligible` and `race` let the run stop by itself: it plays batches of five of the trials that change, with
            their share of unchanged ones, and at most all trials.
    """
    refuse_unguarded()
    chosen = _fill_options(workers=workers, repeats=repeats, retry=retry, **options)
    planned = _deal(trials, chosen)
    plan = make_plan(agents, planned, chosen.repeats)
    rule = chosen.make_rule(dict.fromkeys(plan.domains, BATCH), len(planned))
    return _play(with_options(replace(plan, stopping=rule), chosen), Path(journal), watch, chosen.progress)


def resume(
    journal: str | Path,
    workers: int = 0,
    retry: bool = False,
    watch: Watch | None = None,
    **options: Unpack[ResumeKeywords],
) -> Result:
    """Go on with a run file and return the result. The file is all it needs.

    Args:
        journal: The run file.
        workers: How many processes play cells; 0 plays them here, one after the other.
        retry: Play cells again that an agent failed.
        watch: Called with every entry of the record.
        options: Further ones, such as `concurrency` and `executor`, see `RunOptions`; `progress`, as for `run`; and
            `trust`, which runs code that the file names even if you did not sign it.
    """
    chosen = _fill_options(workers=workers, retry=retry, **options)
    if chosen.stops or chosen.negligible:
        raise InvalidInput("A run goes on with the rule it was begun with: leave out until, negligible and race.")
    if chosen.register is not None:
        raise InvalidInput("A run is registered before its first trial: leave out register.")
    return _play(read_plan(journal, chosen, trust=chosen.trust), Path(journal), watch, chosen.progress)


@dataclass(frozen=True, kw_only=True)
class CallOptions(RegisterOptions):
    """What `run` and `resume` take: the options of a run, and how this call of Python goes about it."""

    trust: bool = False
    """Run code that a run file names even if you did not sign it; only for `resume`."""
    progress: bool | None = None
    """Show a progress bar for each agent; by default on a terminal and in a notebook."""


def _deal(trials: Trial | Iterable[Trial], options: CallOptions) -> list[Trial]:
    """Return the trials, in batches if the run stops by itself."""
    planned = [trials] if isinstance(trials, Trial) else list(trials)
    return in_batches(planned, BATCH) if options.stops else planned


def _fill_options(**values: Any) -> CallOptions:
    """Check names and types: deep inside a run a wrong one would raise what no caller understands."""
    return fill(CallOptions, {name: _as_plain(value) for name, value in values.items()})


def _as_plain(value: Any) -> Any:
    """Return numbers of NumPy as those of Python, and paths as text."""
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    return float(value) if isinstance(value, Real) and not isinstance(value, bool) else value


def _play(plan: Plan, journal: Path, watch: Watch | None, progress: bool | None) -> Result:
    """Play what is left of a plan, behind progress bars if a person is there to see them, and return the result."""
    plan, look = prepare_play(plan, journal)
    with _watching(plan, journal, watch, progress) as tell:
        run_plan(plan, journal, watch=tell, look=look)
    from openfield.result import Result  # metrics are loaded when there is something to measure

    return Result([journal])


@contextmanager
def _watching(plan: Plan, journal: Path, watch: Watch | None, wanted: bool | None) -> Iterator[Watch | None]:
    """Yield a function to call with every entry: the caller's, that of the progress bars, or both."""
    if not (is_interactive() if wanted is None else wanted):
        yield watch
        return
    from openfield.report.progress import showing_progress

    with showing_progress(plan, journal) as show:

        def tell(entry: Entry) -> None:
            show(entry)
            if watch is not None:
                watch(entry)

        yield tell
