"""Foreign agents over real sockets, with a server in a process of its own that may be killed."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from conftest import Spawn
from openfield.cli import run_command
from openfield.core import Reply, Spec, Turn
from openfield.errors import AgentFault, InvalidInput
from openfield.journal import recorder, writer
from openfield.journal.reader import Run
from openfield.journal.writer import Journal
from openfield.rollout import Rollout
from openfield.serving.dispatch import TrialDispatcher
from openfield.serving.listen import check_exposure, refuse_place
from openfield.serving.remote import RemoteRollout
from support.stories import attempts, rows, story, wait_until
from support.worlds import TINY, Scripted, act, tiny_trials


class Client:
    """A foreign agent, a message at a time."""

    def __init__(self, port: int, **hello: Any) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._lines = self._socket.makefile("rw")
        self.count = 0
        self.say(type="hello", **hello)
        self.welcome = self.hear()

    def say(self, **message: Any) -> None:
        self._lines.write(json.dumps(message) + "\n")
        self._lines.flush()

    def hear(self) -> dict[str, Any]:
        line = self._lines.readline()
        return json.loads(line) if line else {"type": "gone"}

    def play(self, replies: int = 10**9) -> dict[str, Any]:
        """Answers so many turns, and returns the first message after them: all before it is acknowledged."""
        while True:
            message = self.hear()
            if message["type"] != "turn" or (message["ask"] == "act" and self.count >= replies):
                return message
            if message["ask"] == "act":
                self.count += 1
                belief = {"novel": 0.25, "level": self.count}
                self.say(type="reply", action=message["observation"]["cue"], belief=belief)

    def close(self) -> None:
        self._lines.close()
        self._socket.close()


@contextmanager
def client(port: int, **hello: Any) -> Iterator[Client]:
    made = Client(port, **hello)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def serve(spawn: Spawn, path: Path) -> Any:
    """Starts a server; returns its process and port."""

    def start(trials: int = 1, *token: str) -> tuple[Any, int]:
        program = spawn("tests/support/serve_program.py", path, str(trials), *token, stdout=-1)
        return program, int(program.stdout.readline())

    return start


def end(program: Any) -> None:
    program.send_signal(signal.SIGTERM)
    assert program.wait(60) == 0


def test_an_agent_plays_its_trials_one_after_the_other(serve: Any, path: Path) -> None:
    program, port = serve(2)
    for _ in range(2):
        with client(port, name="ada") as agent:
            assert agent.welcome["type"] == "welcome"
            assert agent.welcome["spec"]["task"] == "Answer the cue."
            assert agent.play() == {"type": "bye", "note": ""}
            assert agent.count == 48
    with client(port, name="ada") as agent:
        assert agent.welcome == {"type": "bye", "note": "There is no trial left for 'ada'."}
    with Run(path) as run:
        assert [(cell.agent, cell.outcome, cell.steps) for cell in run.cells()] == [("ada", "done", 57)] * 2
    end(program)


def test_a_server_says_who_plays_and_sums_up(spawn: Spawn, path: Path) -> None:
    maze = str(Path(__file__).parents[2] / "examples" / "maze.py")
    command = (
        "-m",
        "openfield",
        "serve",
        maze,
        "--trials",
        "1",
        "--set",
        "unchanged=0",
        "--port",
        "0",
        "-o",
        str(path),
    )
    program = spawn(*command, stdout=-1, text=True)
    port = int(program.stdout.readline().partition("127.0.0.1:")[2].split(",")[0])
    with client(port, name="ada") as agent:
        agent.hear()
        agent.say(type="reply", action="nonsense")
        while agent.hear()["type"] not in ("bye", "error", "gone"):
            pass
    program.send_signal(signal.SIGINT)
    said = program.communicate(timeout=60)[0].splitlines()
    assert said[0].startswith("ada begins trial ")
    assert re.fullmatch(r"ada ended trial \w+: agent_protocol \(.*'nonsense'.*\)\.", said[1])
    assert said[-2] == "ada: 0 of 1 trial finished."
    assert said[-1] == f"Read more: openfield report {path}"


def test_several_trials_may_follow_on_one_connection(serve: Any, path: Path) -> None:
    program, port = serve(2)
    with client(port) as agent:
        agent.play()
        agent.say(type="hello")
        assert agent.hear()["type"] == "welcome"
        assert agent.play()["type"] == "bye"
    end(program)
    assert [outcome for _, outcome, _ in attempts(path)] == ["done", "done"]
    assert rows(path, "SELECT DISTINCT agent FROM cells") == [("guest",)]


def test_several_agents_play_at_once(serve: Any, path: Path) -> None:
    program, port = serve(1)
    notes: dict[str, Any] = {}

    def play(name: str) -> None:
        with client(port, name=name) as agent:
            notes[name] = agent.play()

    threads = [threading.Thread(target=play, args=(f"agent {n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    end(program)
    assert set(map(str, notes.values())) == {str({"type": "bye", "note": ""})}
    with Run(path) as run:
        assert [cell.outcome for cell in run.cells()] == ["done"] * 6
        assert run.verify() == []
    told = {str(each[2]) for each in story(path).values()}
    assert len(told) == 1


def test_whoever_comes_back_with_the_session_goes_on(serve: Any, path: Path) -> None:
    program, port = serve()
    with client(port) as agent:
        waiting = agent.play(9)
        session = agent.welcome["session"]
    with client(port, session="made up") as stranger:
        assert stranger.welcome == {"type": "bye", "note": "There is no trial under way for this session."}
    with client(port, session=session) as agent:
        assert agent.welcome["session"] == session
        again = agent.hear()
        assert again == waiting
        agent.say(type="reply", action=0)
        assert agent.play()["type"] == "bye"
    end(program)
    assert attempts(path) == [(1, "done", "")]


def test_a_trial_that_was_left_comes_before_others(serve: Any, path: Path) -> None:
    program, port = serve()
    with client(port, name="ada") as agent:
        waiting, session = agent.play(9), agent.welcome["session"]
    while True:
        with client(port, name="ada") as agent:
            if agent.welcome["type"] == "bye":  # the server has not noticed yet that the connection is closed
                assert agent.welcome["note"] == "There is no trial left for 'ada'."
                continue
            assert agent.welcome["session"] == session
            assert agent.hear() == waiting
            agent.say(type="reply", action=0)
            assert agent.play()["type"] == "bye"
            break
    end(program)
    assert attempts(path) == [(1, "done", "")]


def test_a_connection_that_was_left_open_has_no_say_any_more(serve: Any, path: Path) -> None:
    program, port = serve()
    with client(port) as old:
        old.play(5)
        with client(port, session=old.welcome["session"]) as new:
            old.say(type="reply", action="nonsense that would end the trial")
            assert old.hear()["type"] == "gone"
            assert new.play()["type"] == "bye"
    end(program)
    assert attempts(path) == [(1, "done", "")]


def test_a_wrong_token_is_refused(serve: Any, path: Path) -> None:
    program, port = serve(1, "sesame")
    for hello in ({}, {"token": "simsim"}, {"token": ""}):
        with client(port, **hello) as agent:
            assert agent.welcome == {"type": "bye", "note": "The token is wrong."}
    with client(port, token="sesame") as agent:
        assert agent.play()["type"] == "bye"
    end(program)
    assert attempts(path) == [(1, "done", "")]


def test_a_name_nobody_could_read_is_refused(serve: Any, path: Path) -> None:
    program, port = serve(1)
    for name in ("n" * 201, "n" * 100_000, "a\nb", "\x1b[31mred"):
        with client(port, name=name) as agent:
            assert agent.welcome["type"] == "bye"
            assert agent.welcome["note"] == "An agent's name is at most 200 characters, all of which can be printed."
    with client(port, name="é" * 200) as agent:
        assert agent.play()["type"] == "bye"
    end(program)
    with Run(path) as run:
        assert [cell.agent for cell in run.cells()] == ["é" * 200]


@pytest.mark.parametrize(
    ("message", "note"),
    [
        ({"type": "reply", "action": 7}, "Turn 5: unknown action 7"),
        ({"type": "reply", "action": 1, "belief": {"novel": "x"}}, "not a message of the protocol"),
        ({"type": "loaded"}, "Turn 5: expected a reply"),
    ],
)
def test_a_fault_is_told_and_booked_at_once(serve: Any, path: Path, message: Any, note: str) -> None:
    program, port = serve()
    with client(port) as agent:
        agent.play(5)
        agent.say(**message)
        answer = agent.hear()
        assert answer["type"] == "bye"
        assert note in answer["note"]
    wait_until(lambda: attempts(path)[0][1] is not None)
    ((_, outcome, booked),) = attempts(path)
    assert outcome == "agent_protocol"
    assert note in booked
    end(program)


def test_a_finished_trial_is_booked_when_its_agent_has_left(serve: Any, path: Path) -> None:
    program, port = serve()
    with client(port) as agent:
        agent.play()
    wait_until(lambda: attempts(path)[0][1] == "done")
    os.kill(program.pid, signal.SIGKILL)


def test_a_server_that_is_ended_leaves_trials_to_be_resumed(serve: Any, path: Path) -> None:
    """And does not wait for agents that are connected and silent."""
    program, port = serve()
    with client(port) as agent:
        waiting = agent.play(9)
        end(program)
    assert attempts(path) == [(1, "cancelled", "")]
    program, port = serve()
    with client(port) as agent:
        assert agent.hear() == waiting
        agent.say(type="reply", action=1)
        agent.play()
    end(program)
    assert attempts(path) == [(1, "done", "")]


@pytest.mark.slow
@pytest.mark.parametrize("replies", [1, 6, 7, 17, 40])
def test_a_killed_server_loses_nothing_that_was_acknowledged(serve: Any, path: Path, replies: int) -> None:
    """A reply that was answered with the next turn is on disk."""
    program, port = serve()
    with client(port) as agent:
        waiting = agent.play(replies)
        os.kill(program.pid, signal.SIGKILL)
        program.wait()
    with Run(path) as run:
        (cell,) = run.cells()
        steps = list(run.steps(cell.id, 1))
    levels = [step.reply.belief.level for step in steps if step.reply and step.reply.belief]
    assert levels == list(range(1, replies + 1))
    assert steps[-1].turn is not None
    assert steps[-1].turn.observation["cue"] == waiting["observation"]["cue"]
    program, port = serve()
    with client(port) as agent:
        assert agent.hear() == waiting
        agent.say(type="reply", action=waiting["observation"]["cue"])
        assert agent.play()["type"] == "bye"
    end(program)
    with Run(path) as run:
        (cell,) = run.cells()
        assert (cell.outcome, cell.attempt, cell.steps) == ("done", 1, 57)
        assert [e.performance for e in cell.episodes] == [1.0] * 5 + [0.0] * 3


def test_garbage_and_strangers_do_not_disturb_the_others(serve: Any, path: Path) -> None:
    program, port = serve()
    with client(port) as agent:
        agent.play(3)
        for noise in (b"GET / HTTP/1.1\r\n\r\n", b"\x00\xff\n", b"", b"[" * 100_000 + b"\n"):
            with socket.create_connection(("127.0.0.1", port), timeout=60) as stranger:
                stranger.sendall(noise)
        agent.say(type="reply", action=1)
        assert agent.play()["type"] == "bye"
    end(program)
    assert attempts(path) == [(1, "done", "")]


def test_other_machines_are_let_in_only_with_a_token() -> None:
    check_exposure("127.0.0.1", False)
    check_exposure("0.0.0.0", True)
    for host in ("0.0.0.0", "192.168.1.5", "::"):
        with pytest.raises(InvalidInput, match="needs a token: --token SECRET"):
            check_exposure(host, False)


@pytest.mark.parametrize(
    ("error", "port", "said"),
    [
        (
            socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
            None,
            "Cannot listen on arena: Name or service not known. This machine: --host 127.0.0.1.",
        ),
        (
            OSError(errno.EADDRNOTAVAIL, "while attempting to bind"),
            5570,
            "Cannot listen on arena:5570: Cannot assign requested address. This machine: --host 127.0.0.1.",
        ),
        (
            OSError(errno.EADDRINUSE, "while attempting to bind"),
            5570,
            "Cannot listen on arena:5570: Address already in use. Another port: --port 0.",
        ),
    ],
)
def test_a_place_nobody_can_listen_on_is_refused_with_what_to_change(
    error: OSError, port: int | None, said: str
) -> None:
    assert str(refuse_place(error, "arena", port)) == said


def test_a_server_that_a_script_started_in_the_background_heeds_a_request_to_terminate(path: Path) -> None:
    command = f"{sys.executable} -m openfield serve examples/maze.py --port 0 -o {path} & echo $!; wait"
    with subprocess.Popen(["sh", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        assert program.stdout
        assert program.stderr
        number = int(program.stdout.readline())
        assert b"Serving" in program.stdout.readline()
        with suppress(ProcessLookupError):  # some send it to the program and to its group
            os.kill(number, signal.SIGTERM)
            os.kill(number, signal.SIGTERM)
        assert program.stderr.read() == b"", "it books what is under way and goes"
    assert not path.with_name(f"{path.name}.lock").exists()


def test_a_server_that_never_began_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        words = ["serve", "examples/maze.py", "--port", str(port), "-o", str(tmp_path / "run.sqlite")]
        assert run_command(words) == 2
    assert "Another port: --port 0." in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_run_file_that_cannot_be_written_is_what_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path, tmp_path / "file" / "run.sqlite"):
        assert run_command(["serve", "examples/maze.py", "--port", "0", "-o", str(place)]) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"openfield: {place} cannot be written: ")
        assert said.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command_books_what_is_under_way_when_told_to_end(spawn: Spawn, path: Path, number: signal.Signals) -> None:
    program = spawn("-m", "openfield", "serve", "examples/maze.py", "--port", "0", "-o", path, stdout=-1)
    port = int(program.stdout.readline().split(b",")[0].rpartition(b":")[2])
    with client(port, name="ada") as agent:
        agent.hear()
        agent.say(type="reply", action="left")
        assert agent.hear()["type"] == "turn"
        program.send_signal(number)
        assert program.wait(60) == 130
    with Run(path) as run:
        assert run.cells()[0].outcome == "cancelled"


def test_a_reply_that_fills_a_chunk_or_ends_an_episode_is_not_kept_waiting_for_company(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "FULL_SECONDS", 10_000.0)
    monkeypatch.setattr(writer, "ENDED_SECONDS", 10_000.0)
    monkeypatch.setattr(recorder, "CHUNK_BYTES", 1)

    async def play() -> None:
        with Journal(path) as journal:
            dispatcher = TrialDispatcher(journal, TINY, tiny_trials(), "ada", None)
            remote = await dispatcher.join()
            for _ in range(10):  # an episode has seven
                await remote.reply(Reply(0))
            dispatcher.close()

    asyncio.run(play())


@pytest.mark.parametrize(("durable", "waits"), [("episode", 1), ("turn", 8)])
def test_the_disk_is_waited_for_once_in_an_episode_or_with_every_turn(
    path: Path, monkeypatch: pytest.MonkeyPatch, durable: Any, waits: int
) -> None:
    """An episode of the tiny domain has six turns to act in, and a last one."""
    monkeypatch.setattr(recorder, "COSTLY_REPLY", 10**18)  # however slow this machine is
    found: list[bool] = []
    real = writer.Journal._write_all
    monkeypatch.setattr(
        writer.Journal,
        "_write_all",
        lambda self, tasks, mode: (found.append(mode.durable), real(self, tasks, mode))[1],
    )

    async def play() -> None:
        with Journal(path, durable) as journal:
            dispatcher = TrialDispatcher(journal, TINY, tiny_trials(), "ada", None)
            remote = await dispatcher.join()
            found.clear()
            while remote.rollout.turn.last is None:
                await remote.reply(Reply(0))
            await remote.reply(Reply())
            await remote.reply(Reply(0))
            assert sum(found) == waits
            assert len(found) >= remote.rollout.turns  # each was committed before it was acknowledged
            dispatcher.close()

    asyncio.run(play())


def test_a_reply_whose_wait_is_given_up_is_taken_all_the_same(path: Path) -> None:
    async def play() -> int:
        with Journal(path) as journal:
            dispatcher = TrialDispatcher(journal, TINY, tiny_trials(1), "guest", None)
            remote = await dispatcher.join("ada")
            with remote._one_at_a_time:  # as if the world still worked on something
                impatient = asyncio.create_task(remote.reply(Reply(remote.rollout.turn.observation["cue"])))
                await asyncio.sleep(0)  # now it waits
                impatient.cancel()
                await asyncio.gather(impatient, return_exceptions=True)
            assert impatient.cancelled()
            await asyncio.to_thread(wait_until, lambda: remote.rollout.turns == 1)
            await remote.reply(Reply(None))
            dispatcher.close()
            return remote.rollout.turns

    assert asyncio.run(play()) == 2
    assert attempts(path) == [(1, "cancelled", "")]
    assert rows(path, "SELECT SUM(count) FROM chunks") == [(3,)]


def test_an_agent_that_was_away_for_an_hour_is_forgotten_and_may_come_back(path: Path) -> None:
    async def play() -> None:
        with Journal(path) as journal:
            dispatcher = TrialDispatcher(journal, TINY, tiny_trials(1), "guest", None)
            remote, waiting = await dispatcher.join("ada"), await dispatcher.join("bob")
            with remote:
                for _ in range(3):
                    await remote.reply(Reply(remote.rollout.turn.observation["cue"]))
            shown = remote.rollout.turn
            with waiting:
                await dispatcher.forget(time.monotonic() - 3_600)
                assert not remote.closed, "it left a moment ago"
                await dispatcher.forget(time.monotonic() + 1)
                assert remote.closed
                assert not waiting.closed, "it is connected"
            await asyncio.to_thread(wait_until, lambda: attempts(path)[0][1] == "cancelled")
            again = await dispatcher.join("ada", None, remote.session)
            assert again.session == remote.session
            assert again.rollout.turns == 3
            assert again.rollout.turn == shown
            with again:
                await again.reply(Reply(again.rollout.turn.observation["cue"]))
            with pytest.raises(AgentFault, match="no trial under way"):
                await dispatcher.join("ada", None, "made up")
            dispatcher.close()

    asyncio.run(play())
    assert [outcome for _, outcome, _ in attempts(path)] == ["cancelled", "cancelled"]
    assert rows(path, "SELECT SUM(count) FROM chunks WHERE cell = (SELECT id FROM cells WHERE agent = 'ada')") == [(5,)]


def test_worlds_that_take_their_time_are_stepped_off_the_event_loop() -> None:
    threads: list[int] = []

    class Slow(Scripted):
        def step(self, reply: Reply) -> Turn:
            threads.append(threading.get_ident())
            time.sleep(0.003 if len(threads) < 3 else 0)
            return super().step(reply)

    class Quick(Slow):
        def step(self, reply: Reply) -> Turn:
            threads.append(threading.get_ident())
            return Scripted.step(self, reply)

    async def play(kind: type[Scripted]) -> list[bool]:
        threads.clear()
        remote = RemoteRollout(Rollout(kind([act() for _ in range(9)])), Spec(domain="tiny", task=""), 7)
        for _ in range(6):
            await remote.reply(Reply(0))
        return [thread == threading.get_ident() for thread in threads]

    assert asyncio.run(play(Slow)) == [False] * 6
    assert asyncio.run(play(Quick))[0] is False, "how fast it is shows with its first step"
