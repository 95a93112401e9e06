"""The server against a client it shares nothing with: all modes, the training gap, the INI files of both sides."""

from __future__ import annotations

import asyncio
import json
import sys
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import openfield as of
from openfield.core import Reply, Turn
from openfield.domains.doom import ARENA, DUEL
from openfield.domains.doom.domain import DoomDomain
from openfield.domains.doom.wire.amqp import AmqpWire
from openfield.domains.doom.wire.client import play_file
from openfield.domains.doom.wire.ini import read_client
from openfield.domains.doom.wire.private_broker import PrivateBroker
from openfield.journal.reader import Run
from openfield.testing import check_wire
from support.doom.serving import SMALL, cells, run, serving
from support.places import SUPPORT

pytestmark = [pytest.mark.broker, pytest.mark.engine]
PROGRAM = SUPPORT / "doom" / "legacy_agent.py"
CLIENT = """
[aiq-sail-on]
experiment_type = SAIL-ON
organization = field
model_name = old
username = somebody
secret = 11111111-2222-3333-4444-555555555555
seed = 7

[sail-on]
domain = vizdoom

[amqp]
user = field
pass = field
host = 127.0.0.1
vhost = /
port = {port}
ssl = False
"""


def write_client(folder: Path, broker: PrivateBroker) -> Path:
    path = folder / "client.config"
    path.write_text(CLIENT.format(port=broker.port))
    return path


async def walk(config: Path, *flags: str, status: int = 0) -> list[dict[str, Any]]:
    """Runs the program in the configuration's folder; returns its transcript."""
    log = config.parent / "log"
    words = [str(PROGRAM), f"--config={config}", "--log", str(log), *flags]
    process = await asyncio.create_subprocess_exec(sys.executable, *words, cwd=config.parent)
    try:
        assert await process.wait() == status
    finally:
        if process.returncode is None:
            process.kill()
    return [json.loads(line) for line in log.read_text().splitlines()]


def states(transcript: list[dict[str, Any]]) -> list[str]:
    return [entry["obj_type"] for entry in transcript if entry["sent"] == "request_state"]


TRAINING = ["training_start", *["training_episode_start", "training_episode_active"] * 2, "training_end"]
TRIAL = [
    "trial_start",
    "testing_start",
    *["testing_episode_start", "testing_episode_active"] * 3,
    "testing_end",
    "trial_end",
]


def test_the_four_modes(broker: PrivateBroker, tmp_path: Path) -> None:
    path, config = tmp_path / "run.sqlite", write_client(tmp_path, broker)

    async def work() -> None:
        async with serving(broker.url, path, count=3):
            full = await walk(config)
            assert states(full) == [
                "experiment_start",
                *TRAINING,
                "training_model_end",
                *TRIAL * 3,
                "experiment_end",
            ]
            first = await walk(config, "--no-testing", "--ignore-secret")
            assert states(first) == ["experiment_start", *TRAINING, "training_model_end", "experiment_end"]
            one = await walk(config, "--just-one-trial")
            assert states(one) == ["experiment_start", *TRIAL, "experiment_end"]
            rest = await walk(config)
            assert states(rest) == ["experiment_start", *TRIAL * 2, "experiment_end"]
            (none,) = await walk(config, status=3)
            assert "no trial left" in none["error_message"]
        _check_counts(full)

    run(work)
    found = cells(path)
    assert [(cell.outcome, cell.agent.rpartition("-")[0]) for cell in found] == [("done", "old")] * 8
    assert [cell.episodes for cell in found[:4]] == [cell.episodes for cell in found[4:]]
    beliefs = [episode.belief for cell in found for episode in cell.episodes]
    assert {belief.detail["characterization"]["entity"] for belief in beliefs if belief} == {"enemy"}


def _check_counts(transcript: list[dict[str, Any]]) -> None:
    """Two requests per tick; per episode a number from 0 on and no total; every trial announced by its number."""
    sent = Counter(entry["sent"] for entry in transcript)
    assert sent["request_testing_data"] == sent["testing_data_prediction"]
    assert sent["testing_episode_novelty"] == 9
    starts = [entry for entry in transcript if entry["obj_type"] == "testing_episode_start"]
    assert [(entry["episode_number"], entry["total_episodes"]) for entry in starts] == [(0, 0), (1, 0), (2, 0)] * 3
    trials = [entry for entry in transcript if entry["obj_type"] == "trial_start"]
    assert [(entry["trial_number"], entry["total_trials"]) for entry in trials] == [(0, 3), (1, 3), (2, 3)]
    assert {entry["novelty_indicator"] for entry in transcript if entry["obj_type"] == "testing_data"} == {None}


def test_a_benchmark_first_if_the_server_wants_one(broker: PrivateBroker, tmp_path: Path) -> None:
    path, config = tmp_path / "run.sqlite", write_client(tmp_path, broker)

    async def work() -> None:
        async with serving(broker.url, path, count=1, wire=AmqpWire(broker.url, benchmark=True)):
            assert states(await walk(config))[:2] == ["benchmark_request", "experiment_start"]

    run(work)
    with Run(path) as opened:
        (machine,) = [value for key, value in opened.facts.items() if key.startswith("machine of old-")]
    assert json.loads(machine)["num_logical_cpu"] == 2


def test_who_registered_is_put_on_record_without_the_users_secret(broker: PrivateBroker, tmp_path: Path) -> None:
    path, config = tmp_path / "run.sqlite", write_client(tmp_path, broker)

    async def work() -> None:
        async with serving(broker.url, path, count=1):
            await walk(config, "--no-testing")

    run(work)
    with Run(path) as opened:
        (said,) = [value for key, value in opened.facts.items() if key.startswith("registration of old-")]
    model = {"model_name": "old", "organization": "field", "description": "", "aiq_username": "somebody"}
    assert json.loads(said) == {**model, "experiment": "walk", "git_version": "x", "seed": 7}


SERVER = """
[amqp]
user = field
pass = field
host = 127.0.0.1
vhost = /
port = {port}
ssl = False

[sail-on]
trials = 1
novelty = 200,203
difficulty = hard
novelty_visibility = 0,1
hint_level = -1,1
normal_timeout_seconds = 60
testing_novelty_p2 = 1.0
phase = 3

[vizdoom]
training_episodes = 1
testing_episodes = 2
pre_novel_episodes = 1

[options]
shortdemo = True
"""


def test_an_experiment_from_the_servers_file(broker: PrivateBroker, tmp_path: Path) -> None:
    path, config, server = tmp_path / "run.sqlite", write_client(tmp_path, broker), tmp_path / "server.ini"
    server.write_text(SERVER.format(port=broker.port))

    async def work() -> None:
        async with serving("", path, wire=AmqpWire(config=str(server))):
            transcript = await walk(config)
        assert states(transcript).count("trial_start") == 2 + 3
        seen = [entry for entry in transcript if entry["obj_type"] == "testing_data"]
        firsts = [entry for entry in seen if "hint" in entry["feature_vector"]]
        told = [(entry["novelty_indicator"], [tuple(h.values()) for h in _hints(entry)]) for entry in firsts]
        nothing, something = [(None,) * 4], [(3, "enemy", None, None)]
        assert told == [
            *[(None, nothing)] * 4,
            *[(False, nothing)] * 2,
            (False, nothing),
            (True, nothing),
            (False, nothing),
            (True, something),
        ]
        assert all(entry["feature_vector"]["walls"] for entry in firsts)

    run(work)
    assert [cell.outcome for cell in cells(path)] == ["done"] * 6


def _hints(entry: dict[str, Any]) -> list[dict[str, Any]]:
    keys = ("level", "entity", "attribute", "change")
    return [{key: hint[key] for key in keys} for hint in entry["feature_vector"]["hint"]]


def test_our_client_plays_what_such_a_file_says(broker: PrivateBroker, tmp_path: Path) -> None:
    """The secret is written into it, and the model is found by a process that plays the trials later."""
    path, config = tmp_path / "run.sqlite", write_client(tmp_path, broker)

    class Taught:
        def __init__(self, state: bytes) -> None:
            self.state = state

        def __call__(self, turn: Turn) -> Reply:
            return Reply("shoot")

        def save(self) -> bytes:
            return self.state

        def load(self, state: bytes) -> None:
            self.state = state

    async def work() -> None:
        async with serving(broker.url, path, count=2):
            config.write_text(config.read_text().replace("domain = vizdoom", "domain = vizdoom\nno_testing = True"))
            first = await play_file(config, Taught(b"trained"))
            assert len(first.performances) == 2
            assert read_client(config).experiment_secret == first.secret
            later = Taught(b"")
            rest = await play_file(config, later)
            assert (rest.secret, len(rest.performances), later.state) == (first.secret, 2 * 3, b"trained")
            assert (await play_file(config, Taught(b"new"), ignore_secret=True)).secret != first.secret

    run(work)
    assert {cell.outcome for cell in cells(path)} == {"done", None}


def test_as_an_agent_of_a_run(broker: PrivateBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each agent finds the model it trained; several cells may want the broker at once."""
    monkeypatch.setenv("OPENFIELD_AMQP", broker.url)
    monkeypatch.chdir(tmp_path)
    config = write_client(tmp_path, broker)
    command = f"wire:{sys.executable} {PROGRAM} --config={config.name}"
    agents = {"ada": command, "bob": command}
    result = of.run(
        agents, DUEL.trials(2, novelty="moving:easy", **SMALL, unchanged=0), tmp_path / "run.sqlite", workers=2
    )
    assert [(cell.outcome, cell.note) for cell in result.cells] == [("done", "")] * 6
    assert config.read_text() == CLIENT.format(port=broker.port)
    assert len(list((tmp_path / "model").iterdir())) == 2


BESIDE = """
    import asyncio, sys
    from pathlib import Path
    from openfield.core import Reply
    from openfield.domains.doom.wire.client import play_file

    class Taught:
        state = b"untrained"

        def __call__(self, turn):
            assert turn.phase == "training" or self.state == b"taught"
            return Reply(None if turn.last else "shoot")

        def save(self):
            return b"taught"

        def load(self, state):
            self.state = state

    asyncio.run(play_file(Path(sys.argv[1].removeprefix("--config=")), Taught()))
"""


def test_a_model_kept_beside_the_file_is_found_again(
    broker: PrivateBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `play_file` keeps it; every cell has a copy of the file in a folder of its own."""
    monkeypatch.setenv("OPENFIELD_AMQP", broker.url)
    config, program = write_client(tmp_path, broker), tmp_path / "agent.py"
    program.write_text(textwrap.dedent(BESIDE))
    command = f"wire:{sys.executable} {program} --config={config}"
    trials = DUEL.trials(1, novelty="moving:easy", **SMALL, unchanged=0)
    result = of.run({"ada": command}, trials, tmp_path / "run.sqlite", workers=0)
    assert [(cell.outcome, cell.note) for cell in result.cells] == [("done", "")] * 2


@pytest.mark.parametrize("domain", [DUEL, ARENA], ids=lambda domain: domain.name)
def test_the_conformance_kit_judges_the_wire(
    broker: PrivateBroker, monkeypatch: pytest.MonkeyPatch, domain: DoomDomain
) -> None:
    monkeypatch.setenv("OPENFIELD_AMQP", broker.url)
    findings = check_wire(domain).findings
    assert [(found.check, found.passed, found.detail) for found in findings] == [
        ("plays", True, ""),
        ("equal_record", True, ""),
    ]
