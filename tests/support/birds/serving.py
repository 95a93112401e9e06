"""Birds over its wire: a server in a thread for tests that talk to a real socket, and requests without one."""

import asyncio
import contextlib
import socket
import threading
import types

from openfield.core import Ask, Reply
from openfield.domains.birds import DOMAIN
from openfield.domains.birds.wire.conversation import CommandResult, WireCommand
from openfield.domains.birds.wire.server import BirdsWire
from openfield.journal.writer import Journal
from openfield.serving.dispatch import TrialDispatcher, serve_domain

NORMAL = "novelty_level='0' type='010101' start='0' end='{last}'"


class Clock:
    """A clock of the server that stands still unless a test moves it."""

    seconds = 1000.0

    def __init__(self, monkeypatch):
        clock = types.SimpleNamespace(
            monotonic=lambda: self.seconds, monotonic_ns=lambda: int(self.seconds * 1_000_000_000)
        )
        for module in ("domains.birds.wire.server", "serving.remote", "clock", "limit_guard"):
            monkeypatch.setattr(f"openfield.{module}.time", clock)


@contextlib.contextmanager
def serving(path, trials, **options):
    """Serves trials; gives the port."""
    opened, ports = threading.Event(), []
    stop = []

    def ready(port):
        ports.append(port)
        opened.set()

    def run():
        with Journal(path) as journal:
            dispatcher = TrialDispatcher(journal, DOMAIN, trials, "remote", None)
            loop = asyncio.new_event_loop()
            task = loop.create_task(serve_domain(BirdsWire(**options), dispatcher, "127.0.0.1", 0, ready))
            stop.append(lambda: loop.call_soon_threadsafe(task.cancel))
            with contextlib.suppress(asyncio.CancelledError):
                loop.run_until_complete(task)
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    assert opened.wait(60)
    try:
        yield ports[0]
    finally:
        stop[0]()
        thread.join(60)
        assert not thread.is_alive()


def say(rollout, conversation, request, elapsed=0.1):
    """Has a request answered, as the wire does."""
    talk, answer = conversation.answer(request, elapsed), None
    while True:
        try:
            step = talk.send(answer)
        except StopIteration as end:
            return end.value
        if not isinstance(step, WireCommand):
            answer = rollout.world.look(step)
            continue
        if not rollout.over:
            rollout.reply(Reply(step.action, step.belief))
        while rollout.turn.ask is Ask.NONE and not rollout.over:
            rollout.reply(Reply())
        conversation.turn = rollout.turn
        answer = CommandResult(rollout.world.look("result"), rollout.world.look("frames"))


@contextlib.contextmanager
def short_server(tmp_path, levels, executions=1):
    """Serves trials of nothing but training, each level once."""
    write_short(tmp_path, levels, executions)
    with serving(tmp_path / "run.sqlite", DOMAIN.trials(config=str(tmp_path / "config.xml"), unchanged=0)) as port:
        yield port


def write_short(tmp_path, levels, executions, attempts=1):
    (tmp_path / "config.xml").write_text(
        f"<evaluation><trials><trial number_of_executions='{executions}'><game_level_set mode='training' "
        f"attempt_limit_per_level='{attempts}'><game_levels {levels}/></game_level_set></trial></trials></evaluation>"
    )


@contextlib.contextmanager
def free_port():
    """A port that was free a moment ago; as long as it is held nobody else gets it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        yield probe.getsockname()[1]
