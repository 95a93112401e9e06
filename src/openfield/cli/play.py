"""`openfield play`: a person takes the agent's place, and is recorded like one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from openfield.cli.common import Words, print_result, take_flags


def play(
    domain: str,
    /,
    *words: Words,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    trials: int | None = None,
    seed: int = 0,
    novelty: str | None = None,
    set_: Annotated[list[str] | None, Parameter(name="--set", consume_multiple=False)] = None,
    redlight: Annotated[bool, Parameter(name=["--redlight", "--given-detection"])] = False,
    agent_name: str = "human",
) -> None:
    """Play a domain yourself.

    Domains have options of their own: openfield list flags DOMAIN.

    Parameters
    ----------
    domain
        A domain's name, `module:attribute` or `file.py`.
    words
        Options of the domain.
    output
        The run file [runs/DOMAIN-played.sqlite].
    trials
        How many trials to play [1].
    seed
        The root of all seeds.
    novelty
        `NAME[:difficulty]`, `a+b` for both at once, or `none`.
    set_
        `key=value`, a setting of the domain; give it again for further settings.
    redlight
        Be told when the world has changed.
    agent_name
        What you are called in the record.
    """
    from openfield.campaign import run
    from openfield.errors import Cancelled
    from openfield.experiment import limit, make_trials, parse_settings
    from openfield.registry import find_domain

    known = find_domain(domain)
    launch = take_flags(known, "play", words)
    settings = {**(launch.settings or {}), **parse_settings(set_ or [])}
    made = make_trials(known, trials or launch.trials or 1, seed, novelty or launch.novelty, redlight, settings)
    unhurried = limit(made, {**(launch.limits or {}), "reply_seconds": None})
    path = output or Path(f"runs/{known.name}-played.sqlite")
    try:
        result = run({agent_name: launch.view or known.view()}, unhurried, path)
    except Cancelled:
        raise Cancelled(f"Stopped; what you played is in {path}. The same command goes on.") from None
    print_result(result, as_json=False)
    for finish in launch.finish:
        finish(result)
