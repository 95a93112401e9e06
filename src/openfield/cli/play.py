"""`openfield play`: a person takes the agent's place, and is recorded like one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from openfield.cli.common import print_result


def play(
    domain: str,
    /,
    *,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    trials: int = 1,
    seed: int = 0,
    novelty: str | None = None,
    set_: Annotated[list[str] | None, Parameter(name="--set", consume_multiple=False)] = None,
    redlight: Annotated[bool, Parameter(name=["--redlight", "--given-detection"])] = False,
    agent_name: str = "human",
) -> None:
    """Play a domain yourself.

    Parameters
    ----------
    domain
        A domain's name, `module:attribute` or `file.py`.
    output
        The run file [runs/DOMAIN-played.sqlite].
    trials
        How many trials to play.
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
    from openfield.experiment import limit, parse_settings
    from openfield.registry import find_domain

    known = find_domain(domain)
    made = known.trials(trials, seed, novelty, redlight, **parse_settings(set_ or []))
    unhurried = [limit(trial, {"reply_seconds": None}) for trial in made]
    path = output or Path(f"runs/{known.name}-played.sqlite")
    print_result(run({agent_name: known.view()}, unhurried, path), as_json=False)
