"""`openfield play`: a person takes the agent's place, and is recorded like one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from openfield.cli.shared.common import Words, print_result, take_flags
from openfield.cli.shared.trial_options import DEFAULT, TrialOptions


def play(
    domain: str,
    /,
    *words: Words,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    options: TrialOptions = DEFAULT,
    agent_name: str = "human",
) -> None:
    """Play a domain yourself.

    Parameters
    ----------
    domain
        A domain's name, `module:attribute` or `file.py`.
    words
        Options of the domain.
    output
        The run file [runs/DOMAIN-played.sqlite].
    options
        Which trials.
    agent_name
        What you are called in the record.
    """
    from openfield.agents.human import LineHuman
    from openfield.api import run
    from openfield.capabilities import HasHuman
    from openfield.errors import Cancelled
    from openfield.registry import find_domain

    known = find_domain(domain)
    launch = take_flags(known, "play", words)
    unhurried = options.make(known, launch, 1, reply_seconds=None)
    path = output or Path(f"runs/{known.name}-played.sqlite")
    usual = known.view() if isinstance(known, HasHuman) else LineHuman
    try:
        result = run({agent_name: launch.view or usual}, unhurried, path)
    except Cancelled:
        raise Cancelled(f"Stopped; what you played is in {path}. The same command goes on.") from None
    print_result(result, as_json=False)
    for finish in launch.finish:
        finish(result)
