"""`openfield serve`: foreign agents play over the wire they already speak."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from openfield.cli.shared.common import Whole, Words, take_flags
from openfield.cli.shared.trial_options import DEFAULT, TrialOptions


def serve(
    domain: str,
    /,
    *words: Words,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    options: TrialOptions = DEFAULT,
    agent_name: str = "remote",
    host: str | None = None,
    port: Whole | None = None,
    token: str | None = None,
) -> None:
    """Serve trials to agents in other programs until Ctrl-C or a request to terminate.

    Parameters
    ----------
    domain
        A domain's name, `module:attribute` or `file.py`.
    words
        Options of the domain.
    output
        The run file [runs/DOMAIN-served.sqlite].
    options
        Which trials.
    agent_name
        What agents are called that do not say so themselves.
    host
        Where to listen [127.0.0.1]; other machines are let in only with a token.
    port
        Where to listen [the port the domain's agents expect]; 0 takes any free one.
    token
        What agents must show to be let in.
    """
    import asyncio

    from openfield.errors import Cancelled, InvalidInput
    from openfield.journal.lock import holding
    from openfield.journal.writer import Journal
    from openfield.registry import find_domain
    from openfield.result import Result
    from openfield.serving.dispatch import open_dispatcher, serve_domain
    from openfield.serving.listen import check_exposure, check_port, fastest_loop, refusing_place
    from openfield.serving.wire import Serving

    known = find_domain(domain)
    launch = take_flags(known, "serve", words)
    place, number = host or launch.host or "127.0.0.1", launch.port if port is None else port
    check_port(number, "--port")
    check_exposure(place, token)
    if launch.settled and options != DEFAULT:
        others = "--trials, --seed, --novelty, --set and --redlight"
        raise InvalidInput(f"{launch.settled} says which trials are served; {others} have no say in it.")
    made = options.make(known, launch, 5)
    path = output or Path(f"runs/{known.name}-served.sqlite")

    def ready(opened: int) -> None:
        print(
            f"Serving {_offer(launch.wire or wire, f'{len(made)} trials of {known.name} on {place}:{opened}')}, "
            f"recorded in {path}. Ctrl-C stops.",
            flush=True,
        )
        begun()

    try:
        with _ending_when_told(), holding(path) as begun, Journal(path) as journal:
            wire, dispatcher = open_dispatcher(known, journal, made, Serving(agent_name, token, launch.notes or {}))
            with asyncio.Runner(loop_factory=fastest_loop()) as runner, refusing_place(place, number):
                runner.run(serve_domain(launch.wire or wire, dispatcher, place, number, ready))
    except KeyboardInterrupt:  # how it is meant to end: nothing to complain of
        raise SystemExit(Cancelled.exit_status) from None
    finally:
        for finish in launch.finish if path.exists() else ():
            finish(Result([path]))


@contextmanager
def _ending_when_told() -> Iterator[None]:
    """A request to terminate, as containers and service managers send it, is heeded like Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # whoever says it twice must not break off what is being booked
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGTERM, end)
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN  # as shells have it for what a script starts with `&`
    if ignored:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is end:
            signal.signal(signal.SIGTERM, before)
        if ignored:
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def _offer(wire: Any, usual: str) -> str:
    """What agents get, and where: a wire with trials of its own, or at a place of its own, says so itself."""
    return str(getattr(wire, "offer", usual))
