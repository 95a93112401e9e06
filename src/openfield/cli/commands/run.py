"""`openfield run`: evaluate agents, or go on where an earlier run of the same command stopped."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from openfield.cli.shared.domain_options import DomainOptions, DomainTarget, Target, find_target, prepare_changes
from openfield.cli.shared.parameters import NO_ISOLATION, NUMBERS, NumberOptions, check_cluster
from openfield.cli.shared.results import fail_if_nothing_scored, play_plan, print_plan, print_result, print_seed
from openfield.cli.shared.viewer import viewing, wait_for_readers
from openfield.console import print_json
from openfield.isolation import IsolationOptions
from openfield.options import MORE, CommandChanges
from openfield.runner.experiment import Experiment, LimitOptions, naming_file

if TYPE_CHECKING:
    from openfield.runner.plan import Plan

EXPERIMENT = Experiment()
LIMITS = LimitOptions()


def run(
    domain: str,
    /,
    options: DomainOptions = None,
    target: DomainTarget = None,
    *,
    experiment: Experiment = EXPERIMENT,
    isolation: IsolationOptions = NO_ISOLATION,
    limits: LimitOptions = LIMITS,
    view: bool = False,
    dry_run: Annotated[bool, Parameter(group=MORE)] = False,
    json: bool = False,
    numbers: Annotated[NumberOptions, Parameter(name="*", group=MORE)] = NUMBERS,
) -> None:
    """Evaluate agents. The same command again resumes.

    Args:
        domain: A domain's name, `module:attribute`, `file.py`, or an experiment file (`*.toml`). Its options:
            openfield run DOMAIN --help
        options: Options of the domain.
        target: What the first word names.
        experiment: The trials and how they are played.
        isolation: Whether agents are isolated.
        limits: The limits of an agent.
        view: Show the run in the browser, also when it is over.
        dry_run: Print what would be played, about how long it takes, what language models would be asked, and the
            fingerprint of the plan, to publish it beforehand; play nothing.
        json: Print the numbers as JSON.
        numbers: How numbers are computed.

    Example:
        openfield run birds -a planner -a mine.py:Agent --novelty gravity
    """
    from openfield.errors import InvalidInput
    from openfield.runner.run import with_options

    if domain.endswith(".sqlite"):
        raise InvalidInput(f"{domain} is a run, not a domain. To go on with it: openfield resume {quote(domain)}")
    target = target or find_target("run", domain, experiment)
    start = target.experiment
    changes = prepare_changes(target.domain, "run", options) if len(target.domains) == 1 else CommandChanges()
    own = {**experiment.given, "limits": limits.given}
    changes = changes.for_others() if "agents" in own else changes
    if changes.instead is not None:
        chosen = start.change(changes.experiment, own)
        agents = {"agents": chosen.read_agents()} if "agents" in chosen.given else {}
        print_json(changes.instead({**chosen.given, **agents}))
        return
    own["isolate"] = isolation.add_to(start.given.get("isolate", False))
    chosen = start.change(changes.experiment, own)
    check_cluster(experiment, chosen)
    path = chosen.find_path(target.name)
    changed = changes.experiment or own.keys() & {"agents", "novelty", "settings"}  # then the fault is not in the file
    with nullcontext() if target.file is None or changed else naming_file(target.file):
        plan = _make_plan(chosen, target, path, changes)
    plan = with_options(plan, chosen, target.file)
    if dry_run:
        if chosen.sealed and chosen.secret is None and not path.exists():
            raise InvalidInput("A dry run keeps no sealed seed. Share it with the run: --secret FILE.")
        print_plan(plan, path, json)
        return
    _play(plan, path, changes, view, json, numbers)


def _play(plan: Plan, path: Path, changes: CommandChanges, view: bool, json: bool, numbers: NumberOptions) -> None:
    """Play a plan, print the numbers and where they are, and fail if nothing was scored.

    Args:
        plan: The plan.
        path: The run file.
        changes: What the domain does with the result.
        view: Whether the run is shown in the browser.
        json: Whether the numbers are printed as JSON.
        numbers: How they are computed.
    """
    with viewing(path) if view else nullcontext() as viewer:
        result = play_plan(plan, path, as_json=json, says_reach=True)
        print_result(result, json, numbers=numbers)
        for finish in changes.finish:
            finish(result)
        if not json:
            print_seed(plan.facts)
            print(f"\nRecorded in {path}. See it: openfield report {quote(str(path))}")
        if viewer is not None:
            wait_for_readers(viewer)
    fail_if_nothing_scored(result, plan.cells)


def _make_plan(chosen: Experiment, target: Target, path: Path, changes: CommandChanges) -> Plan:
    """Return the plan of an experiment.

    Args:
        chosen: The experiment, with what the options change in it.
        target: Its domains.
        path: The run file.
        changes: What the options of the domain change beside the experiment.
    """
    from openfield.errors import InvalidInput
    from openfield.runner.campaign import Part, plan_parts

    if chosen.share and chosen.sealed and chosen.secret is None:
        raise InvalidInput("The shares of a plan need the same sealed seed. Share it: --secret FILE.")
    parts = zip(chosen.split(), target.domains, strict=True)
    return plan_parts([Part(*pair, changes.agents or None) for pair in parts], path)
