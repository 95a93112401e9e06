"""`openfield serve`: let agents in other programs play over the wire they already speak."""

from __future__ import annotations

import gc
import signal
import sys
import threading
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter

from openfield.cli.shared.domain_options import DomainOptions, DomainTarget, find_target, prepare_changes
from openfield.cli.shared.parameters import SERVED_TRIALS, Output
from openfield.cli.shared.results import print_seed
from openfield.console import say_count
from openfield.options import MORE, Port
from openfield.runner.experiment import RecordChoice, ServedTrials

if TYPE_CHECKING:
    from openfield.domain import Domain
    from openfield.journal.reader import CellRecord
    from openfield.serving.wire import Serving
    from openfield.trial import Trial


@Parameter(name="*", group=Group("Connection", sort_key=3))
@dataclass(frozen=True)
class ListenOptions:
    """Where agents connect, and how they are let in."""

    host: Annotated[str | None, Parameter(metavar="ADDRESS")] = None
    """The address to listen on [127.0.0.1]. Other machines are let in only with a token."""
    port: Port | None = None
    """The port to listen on [the one the domain's agents expect]; 0 takes a free one."""
    token: Annotated[str | None, Parameter(metavar="SECRET")] = None
    """A secret that agents must show."""
    durable: Annotated[Literal["episode", "turn"], Parameter(group=MORE)] = "episode"
    """Wait for the disk at the end of every episode, or with every turn. A killed process loses no turn either way; a
    power cut loses the turns since the last wait."""


LOCAL = ListenOptions()


def serve(
    domain: str,
    /,
    options: DomainOptions = None,
    target: DomainTarget = None,
    *,
    trial_options: ServedTrials = SERVED_TRIALS,
    listen: ListenOptions = LOCAL,
    output: Output = None,
    agent_name: Annotated[str, Parameter(metavar="NAME")] = "remote",
    record: RecordChoice = None,
) -> None:
    """Serve trials to agents in other programs until Ctrl-C or a request to terminate.

    Args:
        domain: A domain's name, `module:attribute` or `file.py`. Its options: openfield serve DOMAIN --help
        options: Options of the domain.
        target: What the first word names.
        trial_options: Which trials.
        listen: Where agents connect.
        output: The run file [runs/DOMAIN-served.sqlite].
        agent_name: The name of agents that do not say theirs [remote].
        record: Record digests of pictures and other large arrays, or keep them in full [as begun, or digests].

    Example:
        openfield serve birds --trials 10 -o runs/served.sqlite
    """
    from openfield.errors import Cancelled, InvalidInput
    from openfield.result import Result
    from openfield.serving.listen import check_exposure
    from openfield.serving.wire import Serving

    known = (target or find_target("serve", domain, trial_options)).domain
    changes = prepare_changes(known, "serve", options)
    host = listen.host or changes.host or "127.0.0.1"
    port = changes.port if listen.port is None else listen.port
    if listen.token and changes.needs_token:
        raise InvalidInput(f"Other options of {known.name} already say which tokens let clients in. Leave out --token.")
    check_exposure(host, bool(listen.token) or changes.needs_token)
    if changes.trials_from and trial_options.given:
        others = "--trials, --seed, --sealed, --secret, --trials-of, --novelty, --set and --redlight"
        raise InvalidInput(f"{changes.trials_from} lists the trials to serve. Leave out {others}.")
    path = output or Path(f"runs/{known.name}-served.sqlite")
    trials, facts = trial_options.make(known, changes, path, 5)
    try:
        serving = Serving(agent_name, listen.token, changes.serving, listen.durable, record)
        _serve_trials(known, trials, facts, path, host, port, serving)
    except KeyboardInterrupt:  # how it is meant to end: nothing to complain of
        if _is_read():
            print_seed(facts)
            _sum_up(path)
        raise SystemExit(Cancelled.exit_status) from None
    finally:
        for finish in changes.finish if path.exists() else ():
            finish(Result([path]))


def _serve_trials(
    domain: Domain[Any],
    trials: list[Trial],
    facts: dict[str, str],
    path: Path,
    host: str,
    port: int | None,
    serving: Serving,
) -> None:
    """Serve trials and record them in a run file until the command is interrupted."""
    import asyncio

    from openfield.journal.leases import holding
    from openfield.journal.writer import Journal
    from openfield.provenance.provenance import RunOrigin
    from openfield.record import RECORD_FACT
    from openfield.runner.sealing import SEED_FACT
    from openfield.serving.dispatch import TrialDispatcher, open_dispatcher, serve_domain
    from openfield.serving.listen import allow_connections, fastest_loop, refusing_place

    def ready(opened: int) -> None:
        usual = f"{say_count(len(trials), 'trial')} of {domain.name} on {host}:{opened}"
        sealed = " Its trials are drawn from a sealed seed, which is said when it stops." if SEED_FACT in facts else ""
        _say(f"Serving {getattr(wire, 'offer', usual)}, recorded in {path}.{sealed} Ctrl-C stops.")
        begun()

    allow_connections()
    with _collecting_rarely(), _ending_on_request(), holding(path) as begun, Journal(path, serving.durable) as journal:
        origin = RunOrigin({}, [domain])
        kept = {} if serving.record is None else {RECORD_FACT: serving.record}
        journal.enter((), {}, {**facts, **kept, **origin.facts()}, origin.sources())
        if facts:
            begun()  # a domain may make files from a sealed seed: it must not be lost, even if the port is taken
        wire, dispatcher = open_dispatcher(domain, journal, trials, serving)
        if isinstance(dispatcher, TrialDispatcher):
            dispatcher.notice = _say
        with asyncio.Runner(loop_factory=fastest_loop()) as runner, refusing_place(host, port):
            runner.run(serve_domain(wire, dispatcher, host, port, ready))


def _say(text: str) -> None:
    """Print a line at once. If its reader has gone, as after `| head -1`, or reads no more, agents play on."""
    with suppress(BrokenPipeError):
        if _is_read():
            print(text, flush=True)


def _is_read() -> bool:
    """Return whether what is printed finds room: a launcher that only reads the port lets the pipe fill up."""
    import select

    try:
        return bool(select.select([], [sys.stdout.fileno()], [], 0)[1])
    except (OSError, ValueError, AttributeError):  # no file, or a system that can tell it of sockets only
        return True


def _sum_up(path: Path) -> None:
    """Print what each agent has played."""
    from collections import Counter

    from openfield.journal.reader import SCORED, Run

    with Run(path) as run:
        records = run.cells(with_episodes=False)
    played, finished = (Counter(record.agent for record in some) for some in (records, _among(records, SCORED)))
    for agent, count in sorted(played.items()):
        print(f"{agent}: {finished[agent]} of {say_count(count, 'trial')} finished.")
    if played:
        print(f"Read more: openfield report {path}")


def _among(records: Iterable[CellRecord], outcomes: Container[str | None]) -> list[CellRecord]:
    return [record for record in records if record.outcome in outcomes]


@contextmanager
def _collecting_rarely() -> Iterator[None]:
    """Look rarely for garbage in cycles: rollouts have none, and with a thousand of them it took a tenth of a turn."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


@contextmanager
def _ending_on_request() -> Iterator[None]:
    """Treat a request to terminate, as containers and service managers send it, like Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second request must not interrupt the booking
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGTERM, end)
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN  # as shells do for `&` in scripts
    if ignored:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is end:
            signal.signal(signal.SIGTERM, before)
        if ignored:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
