"""`openfield run`: evaluate agents, or go on where an earlier run of the same command stopped."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, NamedTuple

from cyclopts import Parameter

from openfield.cli.shared.domain_options import DomainOptions, prepare
from openfield.cli.shared.parameters import (
    AGENTS,
    ALL,
    HERE,
    NO_ISOLATION,
    NO_OPTIONS,
    NO_REMARKS,
    USUAL,
    ClusterOptions,
    Concurrency,
    ExperimentOptions,
    IsolationOptions,
    NumberOptions,
    PaceOptions,
    RecordOptions,
)
from openfield.cli.shared.results import fail_if_nothing_scored, play_plan, print_plan, print_result, print_seed
from openfield.cli.shared.viewer import viewing, wait_for_readers
from openfield.console import print_json
from openfield.options import MORE, CommandChanges, Whole


def run(
    domain: str,
    /,
    options: DomainOptions = None,
    *,
    agent: Annotated[
        list[str] | None, Parameter(name=["--agent", "-a"], consume_multiple=False, metavar="AGENT", group=AGENTS)
    ] = None,
    isolation: IsolationOptions = NO_ISOLATION,
    experiment: ExperimentOptions = NO_OPTIONS,
    output: Annotated[str | None, Parameter(name=["--output", "-o"], metavar="FILE")] = None,
    workers: Whole | None = None,
    cluster: ClusterOptions = HERE,
    concurrency: Concurrency = None,
    view: bool = False,
    retry: Annotated[bool, Parameter(group=MORE)] = False,
    record: RecordOptions = NO_REMARKS,
    pace: PaceOptions = ALL,
    dry_run: Annotated[bool, Parameter(group=MORE)] = False,
    json: bool = False,
    numbers: Annotated[NumberOptions, Parameter(name="*", group=MORE)] = USUAL,
) -> None:
    """Evaluate agents. The same command again resumes.

    Args:
        domain: A domain's name, `module:attribute`, `file.py`, or an experiment file (`*.toml`). Its options:
            openfield run DOMAIN --help
        options: Options of the domain.
        agent: A name, `module:Class`, `file.py:Class(KEY=VALUE)`, `process:COMMAND`, `wire:COMMAND`, or `NAME=AGENT`
            [random].
        isolation: Whether agents are isolated.
        experiment: What is played.
        output: The run file [runs/DOMAIN.sqlite].
        workers: Processes that play [2]; 0 plays in this one.
        cluster: Where cells are played.
        concurrency: Play so many cells at once in this process, for agents that wait, such as language models.
        view: Show the run in the browser, also when it is over.
        retry: Play the cells again that an agent failed.
        record: What is kept and noted.
        pace: How much is played.
        dry_run: Print what would be played and the fingerprint of the plan, to publish it beforehand; play nothing.
        json: Print the numbers as JSON.
        numbers: How numbers are computed.

    Example:
        openfield run birds -a planner -a mine.py:Agent --novelty gravity
    """
    from openfield.runner.experiment import parse_agents

    played = {"agents": parse_agents(agent) if agent else None, "workers": workers, "output": output}
    played |= {"executor": cluster.executor, "concurrency": concurrency}
    own = experiment.keys | {key: value for key, value in played.items() if value is not None}
    _run_experiment(
        domain, own, options, isolation, Playing(retry, dry_run, json, numbers, record, pace, cluster, view)
    )


class Playing(NamedTuple):
    """How an experiment is played and printed."""

    retry: bool = False
    """Play cells again that an agent failed."""
    dry: bool = False
    """Print the plan and play nothing."""
    as_json: bool = False
    """Print JSON."""
    numbers: NumberOptions = USUAL
    """How numbers are computed."""
    record: RecordOptions = NO_REMARKS
    """What becomes of earlier cells, and what the record says about the command."""
    pace: PaceOptions = ALL
    """How much is played."""
    cluster: ClusterOptions = HERE
    """What agents need where cells are played."""
    view: bool = False
    """Show the run in the browser."""


def _run_experiment(
    domain: str, own: dict[str, Any], options: Any, isolation: IsolationOptions, playing: Playing
) -> None:
    """Run an experiment and print what came of it.

    Args:
        domain: A domain, or an experiment file.
        own: Options of the command, as keys of an experiment.
        options: Options of the domain.
        isolation: Whether agents are isolated.
        playing: How it is played.
    """
    import msgspec

    from openfield.errors import InvalidInput
    from openfield.isolation import Isolation, isolate
    from openfield.registry import find_domain
    from openfield.runner.experiment import make_experiment, names_experiment, naming, read_experiment
    from openfield.runner.plan import Agents, add_controls, make_plan

    if domain.endswith(".sqlite"):
        raise InvalidInput(f"{domain} is a run, not a domain. To go on with it: openfield resume {quote(domain)}")
    file = Path(domain) if names_experiment(domain) else None
    remarks = playing.record.remarks(file)
    start: dict[str, Any] = {"domain": domain} if file is None else msgspec.to_builtins(read_experiment(file))
    changes = prepare(find_domain(start["domain"]), "run", options)
    if changes.instead is not None:
        print_json(changes.instead(_merge(_read_sources(start), changes, own)))
        return
    own["isolate"] = isolation.add_to(start.get("isolate", False))
    experiment = make_experiment(_merge(start, changes, own))
    if playing.pace.share and experiment.sealed and experiment.secret is None:
        raise InvalidInput("The shares of a plan need the same sealed seed. Share it: --secret FILE.")
    changed = changes.experiment or own.keys() & {"agents", "novelty", "settings"}  # then the file is not what is wrong
    with nullcontext() if file is None or changed else naming(file):
        named = changes.agents if changes.agents and "agents" not in own else experiment.sources
        agents: Agents = add_controls(named) if experiment.controls else named
        if isinstance(experiment.isolate, Isolation):
            agents = isolate(agents, **msgspec.to_builtins(experiment.isolate))
        trials, facts = experiment.make_trials()
        made = make_plan(agents, trials, experiment.repeats)
        made = replace(made, facts=facts, resources=experiment.resources, record=experiment.record)
    plan = playing.cluster.apply(playing.pace.apply(playing.record.change(made)))
    path, players = experiment.path, playing.cluster.check(experiment.players)
    if playing.dry:
        if experiment.sealed and experiment.secret is None and not path.exists():
            raise InvalidInput("A dry run keeps no sealed seed. Share it with the run: --secret FILE.")
        print_plan(plan, path, playing.as_json)
        return
    with viewing(path) if playing.view else nullcontext() as viewer:
        result = play_plan(plan, path, players, playing.retry, playing.as_json, playing.record.keep, remarks)
        print_result(result, playing.as_json, numbers=playing.numbers)
        for finish in changes.finish:
            finish(result)
        if not playing.as_json:
            print_seed(facts)
            print(f"\nRecorded in {path}. See it: openfield report {quote(str(path))}")
        if viewer is not None:
            wait_for_readers(viewer)
    fail_if_nothing_scored(result, plan.cells)


def _read_sources(start: dict[str, Any]) -> dict[str, Any]:
    """Return the keys of an experiment file that were given, its agents as text with their parameters."""
    from openfield.runner.experiment import make_experiment

    agents = {"agents": make_experiment(start).sources} if "agents" in start else {}
    return {key: value for key, value in start.items() if value is not None} | agents


def _merge(start: dict[str, Any], changes: CommandChanges, own: dict[str, Any]) -> dict[str, Any]:
    """Return an experiment file changed by options of the domain, then by the command's own."""
    merged = {**start, **changes.experiment, **own}
    for key in ("settings", "limits"):
        merged[key] = {**start.get(key, {}), **changes.experiment.get(key, {}), **own.get(key, {})}
    return merged
