"""`openfield run`: evaluate agents, or go on where an earlier run of the same command stopped."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from openfield.cli.shared.domain_options import DomainOptions, prepare
from openfield.cli.shared.parameters import NO_ISOLATION, NUMBERS, IsolationOptions, NumberOptions, check_cluster
from openfield.cli.shared.results import fail_if_nothing_scored, play_plan, print_plan, print_result, print_seed
from openfield.cli.shared.viewer import viewing, wait_for_readers
from openfield.console import print_json
from openfield.options import MORE, CommandChanges, Whole
from openfield.runner.experiment import Experiment

if TYPE_CHECKING:
    from openfield.domain import Domain
    from openfield.runner.plan import Plan

EXPERIMENT = Experiment()


def run(
    domain: str,
    /,
    options: DomainOptions = None,
    *,
    experiment: Experiment = EXPERIMENT,
    isolation: IsolationOptions = NO_ISOLATION,
    reply_seconds: Annotated[float | None, Parameter(group=MORE, metavar="SECONDS")] = None,
    token_limit: Annotated[Whole | None, Parameter(group=MORE, metavar="TOKENS")] = None,
    view: bool = False,
    retry: Annotated[bool, Parameter(group=MORE)] = False,
    dry_run: Annotated[bool, Parameter(group=MORE)] = False,
    json: bool = False,
    numbers: Annotated[NumberOptions, Parameter(name="*", group=MORE)] = NUMBERS,
) -> None:
    """Evaluate agents. The same command again resumes.

    Args:
        domain: A domain's name, `module:attribute`, `file.py`, or an experiment file (`*.toml`). Its options:
            openfield run DOMAIN --help
        options: Options of the domain.
        experiment: What is played, and how.
        isolation: Whether agents are isolated.
        reply_seconds: How long a reply may take [60].
        token_limit: Tokens that a language model may use in a cell; then the trial ends as truncated.
        view: Show the run in the browser, also when it is over.
        retry: Play the cells again that an agent failed.
        dry_run: Print what would be played and the fingerprint of the plan, to publish it beforehand; play nothing.
        json: Print the numbers as JSON.
        numbers: How numbers are computed.

    Example:
        openfield run birds -a planner -a mine.py:Agent --novelty gravity
    """
    from openfield.errors import InvalidInput
    from openfield.registry import find_domain
    from openfield.runner.experiment import make_experiment, names_experiment, read_experiment

    if domain.endswith(".sqlite"):
        raise InvalidInput(f"{domain} is a run, not a domain. To go on with it: openfield resume {quote(domain)}")
    file = Path(domain) if names_experiment(domain) else None
    start = make_experiment({"domain": domain}) if file is None else read_experiment(file)
    known = find_domain(start.domain)
    changes = prepare(known, "run", options)
    limits = {"reply_seconds": reply_seconds, "tokens": token_limit}
    own = {**experiment.given, "limits": {key: value for key, value in limits.items() if value is not None}}
    if changes.instead is not None:
        agents = {"agents": start.sources} if "agents" in start.given else {}
        print_json(changes.instead(start.change(agents, changes.experiment, own).given))
        return
    own["isolate"] = isolation.add_to(start.given.get("isolate", False))
    chosen = start.change(changes.experiment, own)
    check_cluster(experiment, chosen)
    path = chosen.find_path(known)
    plan = _make_plan(chosen, known, path, file, changes, own)
    if dry_run:
        if chosen.sealed and chosen.secret is None and not path.exists():
            raise InvalidInput("A dry run keeps no sealed seed. Share it with the run: --secret FILE.")
        print_plan(plan, path, json)
        return
    with viewing(path) if view else nullcontext() as viewer:
        result = play_plan(plan, path, retry=retry, as_json=json)
        print_result(result, json, numbers=numbers)
        for finish in changes.finish:
            finish(result)
        if not json:
            print_seed(plan.facts)
            print(f"\nRecorded in {path}. See it: openfield report {quote(str(path))}")
        if viewer is not None:
            wait_for_readers(viewer)
    fail_if_nothing_scored(result, plan.cells)


def _make_plan(
    experiment: Experiment,
    domain: Domain[Any],
    path: Path,
    file: Path | None,
    changes: CommandChanges,
    own: dict[str, Any],
) -> Plan:
    """Return the plan of an experiment.

    Args:
        experiment: The experiment.
        domain: Its domain.
        path: The run file.
        file: The experiment file, which messages name if nothing else can be wrong.
        changes: What options of the domain changed in it.
        own: What options of the command changed in it.
    """
    from msgspec import to_builtins

    from openfield.errors import InvalidInput
    from openfield.isolation import Isolation, isolate
    from openfield.runner.experiment import naming
    from openfield.runner.plan import Agents, add_controls, make_plan
    from openfield.runner.run import with_options

    if experiment.share and experiment.sealed and experiment.secret is None:
        raise InvalidInput("The shares of a plan need the same sealed seed. Share it: --secret FILE.")
    changed = changes.experiment or own.keys() & {"agents", "novelty", "settings"}  # then the file is not what is wrong
    with nullcontext() if file is None or changed else naming(file):
        named = changes.agents if changes.agents and "agents" not in own else experiment.sources
        agents: Agents = add_controls(named) if experiment.controls else named
        if isinstance(experiment.isolate, Isolation):
            agents = isolate(agents, **to_builtins(experiment.isolate))
        trials, facts = experiment.make_trials(domain, path)
        made = make_plan(agents, trials, experiment.repeats)
        made = replace(made, facts=facts, resources=experiment.needs)
    return with_options(made, experiment, file)
