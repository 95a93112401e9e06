"""A study over the network: its links open play pages and nothing else, and take no harm from hostile messages."""

from __future__ import annotations

import csv
import json
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

import openfield as of
from openfield.journal.reader import Run
from openfield.view.play.messages import MAX_MESSAGE
from openfield.view.play.play_server import PlayServer
from support.browsers import NARROW
from support.places import MAZE
from support.play import PlayVisit, open_study, read_played

Plays = Any
PEOPLE = Path(MAZE).with_name("people.toml")


@pytest.fixture
def maze_study(tmp_path: Path) -> Iterator[PlayServer]:
    """A study of two people in one small trial each."""
    maze = of.registry.find_domain(MAZE)
    trials = maze.trials(count=2, unchanged=0, training=0, before=2, after=1, patience=4)
    with open_study(tmp_path / "run.sqlite", maze, trials, secrets=("first-link", "second-link")) as server:
        yield server


def test_a_link_opens_its_page_and_nothing_else(maze_study: PlayServer) -> None:
    link = maze_study.links[0]
    origin = link.partition("/play")[0]
    page = httpx.get(link)
    assert page.status_code == 200
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert page.headers["referrer-policy"] == "no-referrer"
    assert "maze" not in page.text
    for path in ("/", "/runs", "/runs.json", "/events", "/play", "/play/"):
        assert httpx.get(origin + path).status_code in (403, 404)
    for wrong in ("/play/third-link", "/play/first-link.json", "/play/first-link/truth", "/play/first-link/../second"):
        assert httpx.get(origin + wrong).status_code in (403, 404)
    assert httpx.get(link, headers={"host": "evil.example"}).status_code == 421
    assert httpx.post(link).status_code == 405


def test_foreign_pages_and_wrong_links_get_no_connection(maze_study: PlayServer) -> None:
    address = maze_study.links[0].replace("http", "ws", 1)
    for place, origin in (
        (f"{address}/socket", "http://evil.example"),
        (f"{address}/socket", None),
        (f"{address}x/socket", maze_study.links[0].partition("/play")[0]),
    ):
        with pytest.raises((InvalidStatus, ConnectionClosed)), connect(place, origin=origin) as socket:  # type: ignore[arg-type]
            socket.recv()


def open_socket(server: PlayServer, person: int = 0) -> ClientConnection:
    link = server.links[person]
    return connect(link.replace("http", "ws", 1) + "/socket", origin=link.partition("/play")[0])  # type: ignore[arg-type]


def receive(socket: ClientConnection, show: str) -> dict[str, Any]:
    """Return the next message that shows something of a kind."""
    while True:
        data = socket.recv()
        if isinstance(data, str) and (told := json.loads(data))["show"] == show:
            return dict(told)


HOSTILE = (
    *("", "[]", "7", '"go"', "{", '{"do": "dance"}', '{"do": "act"}', '{"do": "act", "act": 9}'),
    *('{"do": "act", "act": -1}', '{"do": "act", "act": true}', '{"do": "act", "act": {"a": [1]}}'),
    *('{"do": "act", "act": 0, "truth": 1}', '{"do": "believe", "novel": 1.5}', '{"do": "believe", "novel": "high"}'),
    *('{"do": "preview", "act": {"dx": 1}}', '{"do": "answers", "answers": {}}', '{"do": "hold", "act": 0}'),
    *('{"do": "go"}', b"\xff\x00", "[" * 5_000),
)


def test_hostile_messages_change_nothing(maze_study: PlayServer, tmp_path: Path) -> None:
    with open_socket(maze_study) as socket:
        shown = receive(socket, "turn")
        for number, message in enumerate(HOSTILE[:-1]):
            socket.send(message)
            assert receive(socket, "refused")["text"], (number, message)
        socket.send('{"do": "act", "act": 0}')
        assert receive(socket, "turn")["turn"] == shown["turn"] + 1
        socket.send(HOSTILE[-1])  # one too many
        with pytest.raises(ConnectionClosed) as closed:
            receive(socket, "never")
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1008
    with open_socket(maze_study, 1) as socket:
        socket.send("x" * (MAX_MESSAGE + 1))
        with pytest.raises(ConnectionClosed) as closed:
            receive(socket, "never")
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1009
    with open_socket(maze_study) as socket:
        assert receive(socket, "turn")["turn"] == shown["turn"] + 1
    first = next(steps for cell, steps in read_played(tmp_path / "run.sqlite") if cell.repeat == 0)
    assert [step.reply.action for step in first if step.reply] == ["left"]


def test_nothing_that_is_sent_tells_the_truth(maze_study: PlayServer) -> None:
    with open_socket(maze_study) as socket:
        told = [receive(socket, "trial"), receive(socket, "turn")]
        for _ in range(4):
            socket.send('{"do": "act", "act": 0}')
            told.append(receive(socket, "turn"))
    keys = {key for each in told for key in each}
    assert not keys & {"truth", "novel", "performance", "novelty", "seed", "cell", "trial"}
    assert {each["red_light"] for each in told[1:]} == {None}
    assert "swapped" not in json.dumps(told)


@pytest.mark.browser
def test_a_tab_that_is_opened_again_goes_on_and_the_older_one_ends(maze_study: PlayServer, play: Plays) -> None:
    first = play(maze_study.links[0])
    page = first.open()
    first.reach(0)
    page.keyboard.press("ArrowLeft")
    first.reach(1)
    second = play(maze_study.links[0])
    second.open()
    assert second.reach(1)["values"] == first.turns()[-1]["values"]
    page.get_by_role("heading", name="You play in another window").wait_for()
    page.reload()
    first.reach(1)


def pass_texts(person: PlayVisit) -> None:
    """Go through consent, instructions and practice."""
    page = person.page
    page.get_by_role("button", name="I agree").click()
    page.get_by_text("Walk from the blue square").wait_for()
    page.get_by_role("button", name="Go on").click()
    page.get_by_text("Practice").wait_for()
    walk(person)
    page.get_by_role("button", name="Go on").click()


def walk(person: PlayVisit, turn: int = 0) -> int:
    """Play an episode from a turn to its end, say something about it if that is asked for, and return the next turn."""
    while (told := person.reach(turn))["ask"] == "act":
        assert not told["asks"]
        person.page.keyboard.press(("ArrowLeft", "ArrowDown", "ArrowUp", "ArrowRight")[turn % 4])
        turn += 1
    if told["asks"]:
        person.believe(7)
    else:
        person.page.get_by_role("button", name="Go on").click()
    return turn + 1


@contextmanager
def serving(words: list[str]) -> Iterator[subprocess.Popen[str]]:
    """Run `openfield play` as long as the block goes on."""
    command = [sys.executable, "-m", "openfield", "play", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as served:
        try:
            yield served
        finally:
            served.kill()


def read_line(served: subprocess.Popen[str]) -> str:
    assert served.stdout is not None
    return served.stdout.readline()


@pytest.mark.browser
def test_two_people_take_part_in_the_study_of_the_documentation(tmp_path: Path, play: Plays) -> None:
    run, file = tmp_path / "runs" / "people.sqlite", tmp_path / "people.toml"  # there is no such folder yet
    file.write_text(PEOPLE.read_text().replace('"examples/maze.py"', f'"{MAZE}"'))
    options = ["--people", "2", "--no-browser", "--port", "0", "-o", str(run)]
    with serving([str(file), *options]) as served:
        links = [re.findall(r"http://\S+", read_line(served))[0] for _ in range(2)]
        assert "2 links" in read_line(served)
        first, second = play(links[0], color_scheme="dark"), play(links[1], viewport=NARROW, has_touch=True)
        first.open()
        pass_texts(first)
        turn = 0
        for _ in range(5):
            turn = walk(first, turn)
        first.page.locator("textarea").fill("I compared <b>moves</b> and places.")
        first.page.get_by_label("sometimes").check()
        first.page.get_by_role("button", name="Send").click()
        first.page.get_by_text("MAZE-42").wait_for()
        second.open()
        pass_texts(second)
        walk(second)
        second.page.close()
        served.send_signal(signal.SIGINT)
        assert "The same command goes on." in served.communicate()[0]
    assert served.returncode == 130
    assert stat.S_IMODE(run.with_suffix(".links").stat().st_mode) == 0o600
    played = {cell.repeat: cell for cell, _ in read_played(run)}
    assert {number: (cell.agent, cell.outcome) for number, cell in played.items()} == {
        0: ("human", "done"),
        1: ("human", "cancelled"),
    }
    with Run(run) as opened:
        said = json.loads(opened.facts["person human 0 answers"])["value"]
    assert said == {"strategy": "I compared <b>moves</b> and places.", "games": "sometimes"}
    assert subprocess.run([sys.executable, "-m", "openfield", "export", str(run)], check=False).returncode == 0
    with run.with_suffix(".csv").open(newline="") as file:
        rows = [(row["person"], row["episode"], float(row["response_seconds"]) > 0) for row in csv.DictReader(file)]
    assert rows == [("p01", str(number), True) for number in range(5)] + [("p02", "0", True)]


FRAGILE = """
import ctypes, threading
import maze

class Fragile(maze.Maze):
    name = "fragile"
    def world(self, trial):
        return FragileWorld(super().world(trial))

class FragileWorld:
    def __init__(self, world):
        self._world = world
    def step(self, reply):
        if reply.action == "up":
            ctypes.string_at(0)
        if reply.action == "down":
            threading.Event().wait()
        return self._world.step(reply)
    def __getattr__(self, name):
        return getattr(self._world, name)

domain = Fragile()
"""


@pytest.mark.slow
def test_a_world_that_crashes_or_hangs_ends_its_process_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openfield.view.play.play_process.STEP_SECONDS", 3.0)
    monkeypatch.syspath_prepend(str(Path(MAZE).parent))
    (tmp_path / "fragile.py").write_text(FRAGILE)
    fragile = of.registry.find_domain(str(tmp_path / "fragile.py"))
    trials = fragile.trials(count=1, unchanged=0, training=0, before=2, after=1, patience=4)
    left, up, down = ({"do": "act", "act": number} for number in (0, 2, 3))
    with (
        open_study(tmp_path / "run.sqlite", fragile, trials, secrets=("first-link", "second-link")) as server,
        open_socket(server) as socket,
        open_socket(server, 1) as other,
    ):
        receive(other, "turn")
        receive(socket, "turn")
        for turn, act in enumerate((up, down), 1):
            socket.send(json.dumps(left))
            assert receive(socket, "turn")["turn"] == turn
            socket.send(json.dumps(act))
            assert receive(socket, "between")["title"] == "The game stopped."
            socket.send('{"do": "go"}')
            assert receive(socket, "turn")["turn"] == turn
        other.send(json.dumps(left))
        assert receive(other, "turn")["turn"] == 1
    played = {cell.repeat: (cell.outcome, cell.attempt, steps) for cell, steps in read_played(tmp_path / "run.sqlite")}
    assert {number: found[:2] for number, found in played.items()} == {0: ("cancelled", 1), 1: ("cancelled", 1)}
    assert [step.reply.action for step in played[0][2] if step.reply] == ["left", "left"]
