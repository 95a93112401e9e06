"""`openfield serve`: foreign agents play over the wire they already speak."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def serve(
    domain: str,
    /,
    *,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    trials: int = 5,
    seed: int = 0,
    novelty: str | None = None,
    set_: Annotated[list[str] | None, Parameter(name="--set", consume_multiple=False)] = None,
    redlight: Annotated[bool, Parameter(name=["--redlight", "--given-detection"])] = False,
    agent_name: str = "remote",
    host: str = "127.0.0.1",
    port: int | None = None,
    token: str | None = None,
) -> None:
    """Serve trials to agents in other programs until Ctrl-C.

    Parameters
    ----------
    domain
        A domain's name, `module:attribute` or `file.py`.
    output
        The run file [runs/DOMAIN-served.sqlite].
    trials
        Trials for each agent.
    seed
        The root of all seeds.
    novelty
        `NAME[:difficulty]`, `a+b` for both at once, or `none`.
    set_
        `key=value`, a setting of the domain; give it again for further settings.
    redlight
        Tell the agents when the world has changed.
    agent_name
        What agents are called that do not say so themselves.
    host
        Where to listen; other machines are let in only with a token.
    port
        Where to listen [the port the domain's agents expect]; 0 takes any free one.
    token
        What agents must show to be let in.
    """
    import asyncio

    from openfield.experiment import parse_settings
    from openfield.journal import Journal
    from openfield.registry import find_domain
    from openfield.serve import TrialDesk, check_exposure, serve_domain

    check_exposure(host, token)
    known = find_domain(domain)
    made = known.trials(trials, seed, novelty, redlight, **parse_settings(set_ or []))
    path = output or Path(f"runs/{known.name}-served.sqlite")

    def ready(number: int) -> None:
        print(
            f"Serving {len(made)} trials of {known.name} on {host}:{number}, recorded in {path}. Ctrl-C stops.",
            flush=True,
        )

    with Journal(path) as journal:
        desk = TrialDesk(journal, known, made, agent_name, token)
        asyncio.run(serve_domain(known.wire(), desk, host, port, ready))
