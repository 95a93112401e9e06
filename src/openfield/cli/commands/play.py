"""`openfield play`: let a person take the agent's place, recorded like one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from openfield.cli.shared.domain_options import DomainOptions, prepare
from openfield.cli.shared.parameters import DEFAULT, Output, TrialOptions
from openfield.cli.shared.results import print_result, print_seed


def play(
    domain: str,
    /,
    options: DomainOptions = None,
    *,
    trial_options: TrialOptions = DEFAULT,
    output: Output = None,
    agent_name: Annotated[str, Parameter(metavar="NAME")] = "human",
) -> None:
    """Play a domain yourself.

    Args:
        domain: A domain's name, `module:attribute` or `file.py`. Its options: openfield play DOMAIN --help
        options: Options of the domain.
        trial_options: Which trials.
        output: The run file [runs/DOMAIN-played.sqlite].
        agent_name: Your name in the record [human].

    Example:
        openfield play commai --set tasks=micro1
    """
    from openfield.agents.human import LineHuman
    from openfield.capabilities import HasHuman
    from openfield.errors import Cancelled
    from openfield.registry import find_domain
    from openfield.result import Result
    from openfield.runner.plan import make_plan
    from openfield.runner.run import run_plan

    known = find_domain(domain)
    changes = prepare(known, "play", options)
    path = output or Path(f"runs/{known.name}-played.sqlite")
    unhurried, facts = trial_options.make(domain, changes, path, 1, reply_seconds=None)
    usual = known.view() if isinstance(known, HasHuman) else LineHuman
    person = next(iter(changes.agents.values()), usual)
    try:
        run_plan(replace(make_plan({agent_name: person}, unhurried), facts=facts), path)
    except Cancelled:
        raise Cancelled(f"Stopped; what you played is in {path}. The same command goes on.") from None
    result = Result([path])
    print_result(result, as_json=False)
    print_seed(facts)
    for finish in changes.finish:
        finish(result)
