"""`openfield serve`: foreign programs, recorded like any agent."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from openfield.cli import run_command
from openfield.errors import InvalidInput
from openfield.journal import writer
from openfield.journal.reader import Run
from openfield.provenance.provenance import read_provenance
from openfield.runner.sealing import DIGEST_FACT, SEED_FACT
from support.places import MAZE

SMALL = ("--set", "training=0", "--set", "before=1", "--set", "after=1", "--set", "patience=3", "--set", "unchanged=0")


@contextmanager
def serving(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A real server of small trials."""
    command = [sys.executable, "-m", "openfield", "serve", MAZE, *SMALL, "--port", "0", "-o", "x.sqlite", *words]
    with started(folder, *command) as found:
        yield found


@contextmanager
def started(folder: Path, *command: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A server that a command starts, and the port it says it listens on."""
    server = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert server.stdout
    assert server.stderr
    try:
        line = server.stdout.readline()
        assert re.match(r"Serving (1 trial|\d+ trials) of maze on 127\.0\.0\.1:", line), line
        yield server, int(line.split("127.0.0.1:")[1].split(",")[0])
    finally:
        server.kill()
        server.communicate()


class Client:
    """An agent at the other end of a connection, going right all the time."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.stream = self.socket.makefile("rw")

    def send(self, **message: Any) -> dict[str, Any]:
        self.stream.write(json.dumps(message) + "\n")
        self.stream.flush()
        return self.read()

    def read(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self.stream.readline())
        return message

    def play(self, turns: int | None = None) -> dict[str, Any]:
        """Answers turns until `bye`, or so many."""
        message, answered = self.read(), 0
        while message["type"] == "turn" and answered != turns:
            asks = message["ask"] != "none"
            message = self.send(type="reply", action="right") if asks else self.read()
            answered += asks
        return message

    def close(self) -> None:
        self.stream.close()
        self.socket.close()


def test_a_client_plays_leaves_and_comes_back(tmp_path: Path) -> None:
    with serving(tmp_path, "--trials", "1", "--token", "sesame") as (server, port):
        stranger = Client(port)
        assert "token" in stranger.send(type="hello")["note"]
        stranger.close()
        client = Client(port)
        welcome = client.send(type="hello", name="ada", token="sesame")
        assert welcome["spec"]["task"] == "Reach the goal."
        open_turn = client.play(turns=2)
        client.close()
        client = Client(port)
        assert client.send(type="hello", token="sesame", session=welcome["session"])["session"] == welcome["session"]
        assert client.read() == open_turn
        assert client.send(type="reply", action="right")["type"] == "turn"
        assert client.play()["type"] == "bye"
        assert "no trial left for 'ada'" in client.send(type="hello", name="ada", token="sesame")["note"]
        client.close()
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 130
    with Run(tmp_path / "x.sqlite") as run:
        (cell,) = run.cells()
        (made,) = read_provenance(run.facts, run.path)
        assert [source.name for source in run.sources()] == ["maze.py"]
    assert (cell.agent, cell.outcome, len(cell.episodes)) == ("ada", "done", 2)
    assert made.command.startswith("openfield serve ")
    assert "sesame" not in made.command


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_server_that_is_told_to_end_keeps_what_was_played(tmp_path: Path, number: signal.Signals) -> None:
    with serving(tmp_path, "--trials", "1") as (server, port):
        client = Client(port)
        client.send(type="hello", name="ada")
        client.play(turns=2)
        server.send_signal(number)
        assert server.wait(60) == 130
        client.close()
    with Run(tmp_path / "x.sqlite") as run:
        (cell,) = run.cells()
        assert cell.outcome == "cancelled"
        assert len(list(run.raw_steps(cell.id, 1))) >= 3


def test_agents_play_on_when_nobody_reads_what_the_server_prints(tmp_path: Path) -> None:
    """As after `openfield serve maze.py | head -1`, and with launchers that read the port and no more."""
    with serving(tmp_path, "--trials", "2") as (server, port):
        assert server.stdout
        server.stdout.close()
        server.stdout = None
        for _ in range(2):
            client = Client(port)
            client.send(type="hello", name="ada")
            assert client.play()["type"] == "bye"
            client.close()
        server.send_signal(signal.SIGINT)
        server.wait(60)
        assert server.stderr
        assert "Cannot listen" not in server.stderr.read()
    with Run(tmp_path / "x.sqlite") as run:
        assert [cell.outcome for cell in run.cells()] == ["done", "done"]


def test_agents_play_on_when_what_the_server_prints_is_left_unread(tmp_path: Path) -> None:
    with serving(tmp_path, "--trials", "60") as (server, port):
        assert server.stdout
        with suppress(ImportError, AttributeError):  # where a pipe cannot be made small, this says less
            import fcntl

            fcntl.fcntl(server.stdout, fcntl.F_SETPIPE_SZ, 4096)
        client = Client(port)
        for _ in range(60):
            client.send(type="hello", name="a" * 60)
            assert client.play()["type"] == "bye"
        client.close()
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 130
        said = server.stdout.read()
    assert "begins trial" in said
    with Run(tmp_path / "x.sqlite") as run:
        assert {cell.outcome for cell in run.cells()} == {"done"}


def serve_to(name: str, folder: Path, *words: str) -> str:
    """Serve one trial to an agent, and return what the server said in the end."""
    with serving(folder, "--trials", "1", *words) as (server, port):
        client = Client(port)
        client.send(type="hello", name=name)
        client.play()
        client.close()
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 130
        assert server.stdout
        return server.stdout.read()


def test_a_sealed_server_keeps_its_seed_and_says_it_in_the_end(tmp_path: Path) -> None:
    said = serve_to("ada", tmp_path, "--sealed")
    with Run(tmp_path / "x.sqlite") as run:
        seed, (trial,) = run.facts[SEED_FACT], run.trials()
    assert int(seed, 16) >> 96  # with a chance of 2^-32 this fails
    assert f"The trials were sealed; their root seed was 0x{seed}." in said
    serve_to("bob", tmp_path, "--sealed")
    with Run(tmp_path / "x.sqlite") as run:
        assert [trial.id for trial in run.trials()] == [trial.id], "the same command goes on"


def test_the_trials_of_a_run_are_served_again(tmp_path: Path) -> None:
    said = serve_to("ada", tmp_path, "--secret", "secret")
    assert "root seed" not in said
    with Run(tmp_path / "x.sqlite") as run:
        assert DIGEST_FACT in run.facts
        trials = [trial.id for trial in run.trials()]
    command = [sys.executable, "-m", "openfield", "serve", MAZE, "--port", "0", "-o", "y.sqlite"]
    with started(tmp_path, *command, "--trials-of", "x.sqlite") as (_, port):
        client = Client(port)
        client.send(type="hello", name="bob")
        client.play()
        client.close()
    with Run(tmp_path / "y.sqlite") as run:
        assert [trial.id for trial in run.trials()] == trials
        assert run.facts["trials of"] == "x.sqlite"


@pytest.mark.parametrize("command", ["serve", "play"])
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--sealed", "--seed", "0"], "either --seed, or --sealed or --secret"),
        (["--trials-of", "x.sqlite", "--trials", "1"], "leave out trials"),
        (["--trials-of", "x.sqlite", "--sealed"], "leave out sealed"),
    ],
)
def test_contradicting_sources_of_trials_are_refused(
    openfield: Any, command: str, words: list[str], message: str
) -> None:
    said = openfield(command, MAZE, *words)
    assert said.status == 2
    assert said.err.count("\n") == 1
    assert message in said.err


def test_a_taken_port_is_named(openfield: Any) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        said = openfield("serve", MAZE, "--port", str(taken.getsockname()[1]))
    assert said.status == 2
    assert "Address already in use" in said.err


def test_durable_says_how_often_the_disk_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_: Path, durable: str) -> None:
        raise InvalidInput(f"The record would wait for every {durable}.")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(writer, "Journal", refuse)
    for words, expected in (([], "episode"), (["--durable", "turn"], "turn")):
        assert run_command(["serve", MAZE, *SMALL, "--port", "0", *words]) == 2
        assert f"The record would wait for every {expected}." in capsys.readouterr().err
    assert run_command(["serve", MAZE, "--durable", "never"]) == 2
    assert "turn" in capsys.readouterr().err
