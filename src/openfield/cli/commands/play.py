"""`openfield play`: let a person take the agent's place, recorded like one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from openfield.cli.shared.domain_options import DomainOptions, prepare
from openfield.cli.shared.parameters import DEFAULT, Output, TrialOptions
from openfield.cli.shared.results import print_result


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
    from openfield.api import run
    from openfield.capabilities import HasHuman
    from openfield.errors import Cancelled
    from openfield.registry import find_domain

    known = find_domain(domain)
    changes = prepare(known, "play", options)
    unhurried = trial_options.make(known, changes, 1, reply_seconds=None)
    path = output or Path(f"runs/{known.name}-played.sqlite")
    usual = known.view() if isinstance(known, HasHuman) else LineHuman
    person = next(iter(changes.agents.values()), usual)
    try:
        result = run({agent_name: person}, unhurried, path)
    except Cancelled:
        raise Cancelled(f"Stopped; what you played is in {path}. The same command goes on.") from None
    print_result(result, as_json=False)
    for finish in changes.finish:
        finish(result)
