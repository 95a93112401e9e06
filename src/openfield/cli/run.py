"""`openfield run`: evaluates agents, or goes on where an earlier run of the same command stopped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from openfield.cli.shared.common import (
    Whole,
    Words,
    agents_aside,
    fail_if_nothing_scored,
    print_result,
    take_flags,
)
from openfield.console import print_json

if TYPE_CHECKING:
    from openfield.cell import Cell
    from openfield.options import Launch
    from openfield.result import Result
    from openfield.runner.experiment import Experiment
    from openfield.runner.plan import Plan


def run(
    domain: str,
    /,
    *words: Words,
    agent: Annotated[list[str] | None, Parameter(name=["--agent", "-a"], consume_multiple=False)] = None,
    novelty: Annotated[list[str] | None, Parameter(consume_multiple=False)] = None,
    trials: Whole | None = None,
    repeats: Whole | None = None,
    seed: Whole | None = None,
    workers: Whole | None = None,
    redlight: Annotated[bool | None, Parameter(name=["--redlight", "--given-detection"])] = None,
    set_: Annotated[list[str] | None, Parameter(name="--set", consume_multiple=False)] = None,
    output: Annotated[str | None, Parameter(name=["--output", "-o"])] = None,
    reply_seconds: float | None = None,
    retry: bool = False,
    json: bool = False,
) -> None:
    """Evaluate agents. The same command again resumes.

    Parameters
    ----------
    domain
        A domain's name, `module:attribute`, `file.py`, or an experiment file (`*.toml`).
    words
        Options of the domain.
    agent
        A name, `module:Class`, `process:COMMAND` or `wire:COMMAND`, each also as `NAME=...` to give it another name;
        give it again for further agents.
    novelty
        `NAME[:difficulty]`, `a+b` for both at once, or `none`; give it again for further trials.
    trials
        Trials per novelty [5].
    repeats
        How often each agent plays each trial [1].
    seed
        The root of all seeds [0].
    workers
        Processes that play [2]; 0 plays in this one.
    redlight
        Tell the agents when the world has changed.
    set_
        `key=value`, a setting of the domain; give it again for further settings.
    output
        The run file [runs/DOMAIN.sqlite].
    reply_seconds
        How long a reply may take [60].
    retry
        Try cells again that an agent failed.
    json
        Print the numbers as JSON.
    """
    from openfield.runner.experiment import parse_agents, parse_settings

    changes = {
        "agents": parse_agents(agent) if agent else None,
        "novelty": novelty,
        "trials": trials,
        "repeats": repeats,
        "seed": seed,
        "workers": workers,
        "redlight": redlight,
        "output": output,
        "settings": parse_settings(set_) if set_ else None,
        "limits": {"reply_seconds": reply_seconds} if reply_seconds is not None else None,
    }
    run_experiment(domain, {key: value for key, value in changes.items() if value is not None}, words, retry, json)


def run_experiment(
    domain: str, changes: dict[str, Any], words: Sequence[str], retry: bool = False, as_json: bool = False
) -> None:
    """Runs an experiment given by options, or by a file that options may change; the words are flags of the domain."""
    from contextlib import nullcontext

    import msgspec

    from openfield.errors import InvalidInput
    from openfield.registry import find_domain
    from openfield.runner.experiment import make_experiment, naming, read_experiment
    from openfield.runner.plan import make_plan

    if domain.endswith(".sqlite"):
        raise InvalidInput(f"{domain} is a run, not a domain. To go on with it: openfield resume {quote(domain)}")
    file = Path(domain) if domain.endswith(".toml") else None
    start = {"domain": domain} if file is None else msgspec.to_builtins(read_experiment(file))
    launch = take_flags(find_domain(start["domain"]), "run", words)
    if launch.visit is not None:
        print_json(launch.visit(launch, changes))
        return
    experiment = make_experiment(_merge(start, launch, changes))
    changed = changes.keys() & {"novelty", "settings"} or words
    with nullcontext() if file is None or changed else naming(file):  # what is wrong need not be the file's fault
        agents = launch.agents if launch.agents and "agents" not in changes else experiment.agents
        plan = make_plan(agents, experiment.make_trials(), experiment.repeats)
    result = _play(plan, experiment, retry, as_json)
    _conclude(result, plan.cells, launch, as_json)


def _play(plan: Plan, experiment: Experiment, retry: bool, as_json: bool) -> Result:
    """Play what is left of a plan, and show how far it is."""
    from openfield.cli.shared.progress import showing_progress
    from openfield.result import Result
    from openfield.runner.run import run_plan

    with showing_progress(plan, experiment.path) as watch, agents_aside(as_json):
        run_plan(plan, experiment.path, experiment.workers, retry, watch)
    return Result([experiment.path])


def _conclude(result: Result, cells: Iterable[Cell], launch: Launch, as_json: bool) -> None:
    """Prints what came of it, does what flags of the domain asked for then, and says where it is kept."""
    print_result(result, as_json)
    for finish in launch.finish:
        finish(result)
    if not as_json:
        (path,) = result.paths
        print(f"\nRecorded in {path}. See it: openfield report {quote(str(path))}")
    fail_if_nothing_scored(result, cells)


def _merge(start: dict[str, Any], launch: Launch, changes: dict[str, Any]) -> dict[str, Any]:
    """An experiment file, changed by flags of the domain, changed by options; settings and limits are merged."""
    flagged = {key: getattr(launch, key) for key in ("novelty", "trials", "workers", "settings", "limits")}
    merged = {**start, **{key: value for key, value in flagged.items() if value is not None}, **changes}
    for key in ("settings", "limits"):
        merged[key] = {**start.get(key, {}), **(flagged[key] or {}), **changes.get(key, {})}
    return merged
