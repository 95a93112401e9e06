from __future__ import annotations

import asyncio
import itertools
import os
import re
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import openfield as of
from openfield.agents import legacy as wire
from openfield.errors import Cancelled, InvalidInput
from openfield.journal.reader import Run
from openfield.limit_guard import LimitGuard
from openfield.processes.program import Guard
from openfield.runner.scheduler import RunWarning
from openfield.serving.dispatch import SingleDispatcher
from openfield.serving.jsonlines import JsonLinesWire, LineConnection
from openfield.trial import Limits
from support.stories import attempts, press_ctrl_c_after, story, wait_until
from support.worlds import tiny_trials

CLIENT = r"""
import json, os, socket, sys, time
def connect():
    global lines
    lines = socket.create_connection((sys.argv[1], int(sys.argv[2]))).makefile("rw")
def say(**message):
    lines.write(json.dumps(message) + "\n"); lines.flush()
def hear():
    return json.loads(lines.readline() or '{"type": "bye"}')
def play(most=10**9):
    count = 0
    while count < most:
        message = hear()
        if message["type"] == "bye":
            return
        if message["type"] == "turn" and message["ask"] == "act":
            count += 1
            say(type="reply", action=message["observation"]["cue"], belief={"novel": 0.25, "level": count})
connect()
say(type="hello")
"""


@pytest.fixture(autouse=True)
def _short_farewell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "FAREWELL_SECONDS", 0.5)


@pytest.fixture
def client(tmp_path: Path) -> Any:
    """Writes a TCP program and gives the agent that starts it."""

    def write(code: str, head: str = CLIENT) -> dict[str, str]:
        file = tmp_path / "client.py"
        file.write_text(head + code)
        return {"client": f"wire:{sys.executable} -S {file} {{host}} {{port}}"}

    return write


def outcome(path: Path) -> tuple[str | None, str, int]:
    with Run(path) as run:
        (cell,) = run.cells()
        assert run.verify() == []
        return cell.outcome, cell.note, cell.steps


@pytest.mark.parametrize("workers", [0, 1])
def test_a_program_plays_a_cell_over_the_wire(path: Path, client: Any, workers: int) -> None:
    of.run(client("play()"), tiny_trials(2), path, workers=workers)
    with Run(path) as run:
        cells = run.cells()
    assert [(cell.outcome, cell.note, cell.steps) for cell in cells] == [("done", "", 57)] * 2
    assert [e.performance for e in cells[0].episodes] == [1.0] * 5 + [0.0] * 3
    assert cells[0].episodes[-1].belief == of.Belief(0.25, 48)


def test_a_server_is_told_to_end_once_and_waited_for(path: Path, client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that is told again while it ends may never do so."""
    serve, ended = JsonLinesWire.serve, []

    async def serve_and_end_slowly(self: JsonLinesWire, *arguments: Any) -> None:
        try:
            await serve(self, *arguments)
        finally:
            await asyncio.sleep(0.5)  # longer than the program takes to leave
            ended.append(self)

    monkeypatch.setattr(JsonLinesWire, "serve", serve_and_end_slowly)
    of.run(client("play()"), tiny_trials(1), path, workers=0)
    assert len(ended) == 1


def test_a_program_need_not_be_told_how_an_episode_ended(
    path: Path, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have left: then its connection refuses what is written."""
    write = LineConnection.write

    def refuse_endings(self: LineConnection, message: bytes) -> None:
        if b'"ask":"none"' in message:
            raise ConnectionError("the agent has hung up")
        write(self, message)

    monkeypatch.setattr(LineConnection, "write", refuse_endings)
    of.run(client("play(48); os._exit(0)"), tiny_trials(1), path)
    assert outcome(path) == ("done", "", 57)


def test_a_program_may_leave_with_its_last_words(path: Path, client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "FAREWELL_SECONDS", 60.0)
    for seed in range(3):
        run = path.with_name(f"{seed}.sqlite")
        of.run(client("play(48); os._exit(0)"), tiny_trials(1, seed=seed), run)
        assert outcome(run) == ("done", "", 57)


@pytest.mark.parametrize(
    ("code", "wanted", "words", "steps"),
    [
        ("play(5); sys.exit(3)", "agent_gone", "The program ended (status 3) before the trial was over.", 6),
        pytest.param(
            "play(5); hear(); time.sleep(60)", "agent_timeout", "for 10 s|within 10 s", 6, marks=pytest.mark.slow
        ),
        ("play(5); say(type='reply', action='left'); time.sleep(60)", "agent_protocol", "unknown action 'left'", 7),
        ("play(5); say(type='hello'); time.sleep(60)", "agent_protocol", "Turn 5: expected a reply", 6),
        ("play(5); lines.write('garbage\\n'); lines.flush(); time.sleep(60)", "agent_protocol", "not a message", 6),
    ],
)
def test_outcomes(path: Path, client: Any, code: str, wanted: str, words: str, steps: int) -> None:
    patience = 10.0 if wanted == "agent_timeout" else 60.0  # time enough to start the program
    of.run(client(code), tiny_trials(1, Limits(reply_seconds=patience)), path)
    found, note, recorded = outcome(path)
    assert (found, recorded) == (wanted, steps)
    assert any(each in note for each in words.split("|"))  # the wire or the watchdog is first


@pytest.mark.slow
@pytest.mark.parametrize(
    ("head", "wanted", "words"),
    [
        ("import time; time.sleep(60)", "agent_timeout", "The program did nothing for 2 s."),
        ("raise SystemExit(4)", "agent_gone", "The program ended (status 4)"),
    ],
)
def test_a_program_that_never_connects(path: Path, client: Any, head: str, wanted: str, words: str) -> None:
    patience = 2.0 if wanted == "agent_timeout" else 60.0
    of.run(client("", head), tiny_trials(1, Limits(reply_seconds=patience)), path)
    found, note, _ = outcome(path)
    assert found == wanted
    assert words in note


@pytest.mark.slow
@pytest.mark.parametrize("code", ["", "connect(); say(type='hello'); play(5); "])
def test_a_program_that_hangs_does_not_outlive_its_worker(path: Path, client: Any, code: str) -> None:
    head = CLIENT.removesuffix('connect()\nsay(type="hello")\n')
    of.run(client(f"{code}time.sleep(60)", head), tiny_trials(1, Limits(reply_seconds=0.5)), path, workers=1)
    assert outcome(path)[0] == "agent_timeout"
    wait_until(lambda: not is_running(path.parent / "client.py"))


def is_running(program: Path) -> bool:
    """Return whether a process was started with this file, whether or not it has come to run it."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if str(program).encode() in file.read_bytes():
                return True
    return False


def test_a_program_that_ends_because_the_run_is_stopped_did_not_fail() -> None:
    async def work() -> None:
        program = await asyncio.create_subprocess_exec("false")
        await program.wait()
        rollout = SimpleNamespace(over=False, guard=SimpleNamespace(stopping=True), turns=5)
        limits = SimpleNamespace(reply_seconds=None)
        remote = SimpleNamespace(rollout=rollout, fault=None, taken=False, left=asyncio.Event(), spec=limits)
        guard = Guard()
        try:
            await wire._watch(SingleDispatcher(remote), program, guard)  # type: ignore[arg-type]
        finally:
            guard.end()

    with pytest.raises(Cancelled):
        asyncio.run(work())


def test_waiting_for_the_wire_is_not_the_agents_time(path: Path, client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    serve, excuse, excused = JsonLinesWire.serve, LimitGuard.excuse, list[int]()

    async def wait_and_serve(self: JsonLinesWire, *arguments: Any) -> None:
        await asyncio.sleep(0.5)  # as a broker that starts, or a port that another cell has
        await serve(self, *arguments)

    def note(self: LimitGuard, nanoseconds: int) -> None:
        excused.append(nanoseconds)
        excuse(self, nanoseconds)

    monkeypatch.setattr(JsonLinesWire, "serve", wait_and_serve)
    monkeypatch.setattr(LimitGuard, "excuse", note)
    of.run(client("play()"), tiny_trials(1), path)
    assert outcome(path) == ("done", "", 57)
    assert excused[0] >= 500_000_000


def test_cells_have_a_port_one_after_the_other(path: Path, client: Any) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        (port,) = probe.getsockname()[1:]
    command = client("play()")["client"].removeprefix("wire:")
    of.run({"client": f"wire:@127.0.0.1:{port} {command}"}, tiny_trials(2), path, workers=2)
    with Run(path) as run:
        assert [cell.outcome for cell in run.cells()] == ["done"] * 2


def test_a_port_is_left_to_the_cell_that_has_it() -> None:
    async def work() -> list[str]:
        order, taken = list[str](), asyncio.Event()

        async def hold() -> None:
            async with wire._port_alone(port):
                taken.set()
                await asyncio.sleep(2 * wire.PORT_SECONDS)
                order.append("first")

        async def wait() -> None:
            await taken.wait()
            async with wire._port_alone(port):
                order.append("second")

        await asyncio.gather(hold(), wait())
        return order

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        (port,) = probe.getsockname()[1:]
    assert asyncio.run(work()) == ["first", "second"]


def test_a_missing_program_is_named(path: Path) -> None:
    of.run(["wire:no-such-program {port}"], tiny_trials(1), path)
    assert outcome(path)[:2] == ("agent_gone", "'no-such-program' cannot be started: No such file or directory.")


@pytest.mark.parametrize(
    ("place", "complaint"),
    [("@here", "does not say where to listen"), ("@:70000", "is a number from 0 to 65,535"), ("", "needs a command")],
)
def test_a_place_nobody_can_listen_at_is_refused_before_anything_starts(path: Path, place: str, complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        of.run({"client": f"wire:{place}"}, tiny_trials(1), path)
    assert not path.exists()


def test_a_program_may_connect_again_within_its_trial(path: Path, client: Any) -> None:
    code = "play(5); lines.close(); connect(); say(type='hello'); play()"
    of.run(client(code), tiny_trials(1), path)
    assert outcome(path) == ("done", "", 57)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_stopped_run_is_rehearsed_with_a_fresh_program(path: Path, client: Any, workers: int) -> None:
    """The program waits in the middle until Ctrl-C was pressed."""
    pressed, seen = path.with_name("pressed"), itertools.count(1)
    wait = f"while count == 30 and not os.path.exists({str(pressed)!r}): time.sleep(0.01)"
    agents = client("play()", CLIENT.replace("count += 1\n", f"count += 1\n            {wait}\n"))
    trials, whole = tiny_trials(1), path.with_name("whole.sqlite")

    def press_ctrl_c(_: object) -> None:
        if next(seen) == 25:
            os.kill(os.getpid(), signal.SIGINT)
            pressed.touch()

    with pytest.raises(Cancelled):
        of.run(agents, trials, path, workers=workers, watch=press_ctrl_c)
    assert outcome(path)[0] == "cancelled"
    of.run(agents, trials, path, workers=workers)
    of.run(agents, trials, whole)
    assert story(path) == story(whole)
    assert attempts(path) == [(1, "done", "")]


def test_a_program_that_answers_otherwise_starts_again(path: Path, client: Any) -> None:
    with pytest.raises(Cancelled):
        of.run(client("play()"), tiny_trials(1), path, watch=press_ctrl_c_after(25))
    with pytest.warns(RunWarning) as said:
        of.run(client("play()", CLIENT.replace("0.25", "0.75")), tiny_trials(1), path, keep=True)
    assert re.search(r"not what it did before. The trial starts again: \d+ recorded replies", str(said[-1].message))
    assert [(number, found) for number, found, _ in attempts(path)] == [(1, "superseded"), (2, "done")]
