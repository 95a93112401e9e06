"""Protocol 0.8 through a real RabbitMQ: all modes, several agents, and everything that can break."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import sqlite3
import subprocess
import sys
import textwrap
import threading
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import openfield as of
from openfield.core import Reply, Turn
from openfield.domains.doom import DUEL
from openfield.domains.doom.wire.amqp import AmqpWire
from openfield.domains.doom.wire.client import AmqpClient
from openfield.domains.doom.wire.messages import REGISTRATION_QUEUE
from openfield.domains.doom.wire.private_broker import PrivateBroker
from openfield.domains.doom.wire.rpc import Rpc, load_aio_pika
from openfield.domains.doom.wire.server import PrivateQueue
from openfield.domains.doom.world import DoomWorld
from openfield.errors import AgentFault, DiskFull, InvalidInput, WorldFault
from openfield.journal.writer import Journal
from support.doom.serving import SMALL, agent, cells, run, serving
from support.stories import wait_until

pytestmark = [pytest.mark.broker, pytest.mark.engine]


@pytest.fixture
def resets(monkeypatch: pytest.MonkeyPatch) -> list[PrivateQueue]:
    """Every time a server counted an agent's silence anew, in order."""
    counted: list[PrivateQueue] = []
    reset = PrivateQueue.reset_silence

    def note(queue: PrivateQueue) -> None:
        counted.append(queue)
        reset(queue)

    monkeypatch.setattr(PrivateQueue, "reset_silence", note)
    return counted


def test_the_four_modes(broker: PrivateBroker, tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"

    async def work() -> None:
        async with serving(broker.url, path, count=3), Rpc(broker.url) as rpc:
            full = AmqpClient(rpc, agent(), "full")
            await full.play()
            assert len(full.performances) == 2 + 3 * 3
        async with serving(broker.url, path, count=3), Rpc(broker.url) as rpc:
            first = AmqpClient(rpc, agent(), "parts")
            await first.play(no_testing=True)
            assert len(first.performances) == 2
            one = AmqpClient(rpc, agent(), "parts")
            await one.play(first.secret, just_one_trial=True)
            assert len(one.performances) == 3
        async with serving(broker.url, path, count=3), Rpc(broker.url) as rpc:  # a server that knows only the record
            rest = AmqpClient(rpc, agent(), "parts")
            await rest.play(first.secret)
            assert len(rest.performances) == 2 * 3
            again = AmqpClient(rpc, agent(), "parts")
            with pytest.raises(AgentFault, match="no trial left: all its 3 trials are played or in progress"):
                await again.play(first.secret)

    run(work)
    found = cells(path)
    assert {cell.agent.rpartition("-")[0] for cell in found} == {"full", "parts"}
    assert {cell.outcome for cell in found} == {"done"}
    full, parts = ([c for c in found if c.agent.startswith(name)] for name in ("full", "parts"))
    assert [c.episodes for c in full] == [c.episodes for c in parts]
    assert all(e.belief is not None and e.belief.detail["threshold"] == 0.5 for c in found for e in c.episodes)


@pytest.mark.smoke
def test_over_the_wire_as_in_process(broker: PrivateBroker, tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"

    async def work() -> None:
        async with serving(broker.url, path, count=1), Rpc(broker.url) as rpc:
            await AmqpClient(rpc, agent(), "same").play()

    run(work)
    of.run(
        {"same": "reference"}, DUEL.trials(1, novelty="moving:easy", **SMALL, unchanged=0), tmp_path / "local.sqlite"
    )
    scores = [[e.performance for c in cells(p) for e in c.episodes] for p in (path, tmp_path / "local.sqlite")]
    assert scores[0] == scores[1]


def test_an_agent_has_the_seeds_it_asks_for(broker: PrivateBroker, tmp_path: Path) -> None:
    seen: dict[str, list[Any]] = {}

    async def look(rpc: Rpc, name: str, **seeds: int) -> None:
        client = AmqpClient(rpc, agent(), name)
        await client.register(**seeds)
        for _ in range(3):
            await client._ask({"obj_type": "request_state"})
        shown = await client._ask(
            {"obj_type": "request_training_data", "secret": client.secret, "model_experiment_id": None}
        )
        seen[name] = [shown["feature_vector"]["player"], shown["feature_vector"]["enemy"]]

    async def work() -> None:
        async with serving(broker.url, tmp_path / "run.sqlite", count=1), Rpc(broker.url) as rpc:
            for name in ("any", "any again"):
                await look(rpc, name)
            for name, seed in (("one", 1), ("one again", 1), ("two", 2)):
                await look(rpc, name, seed=seed)
            for name in ("forced", "forced again"):
                await look(rpc, name, episode_seed=77)

    run(work)
    assert seen["any"] == seen["any again"]
    assert seen["one"] == seen["one again"]
    assert seen["forced"] == seen["forced again"]
    assert len({repr(seen[name]) for name in ("any", "one", "two", "forced")}) == 4


def test_an_experiment_has_one_number(broker: PrivateBroker, tmp_path: Path) -> None:
    """In all its sessions, also after a restart; another experiment has another."""
    numbers: list[int] = []

    async def work() -> None:
        for _ in range(2):
            async with serving(broker.url, tmp_path / "run.sqlite", count=3), Rpc(broker.url) as rpc:
                if not numbers:
                    first = AmqpClient(rpc, agent(), "one")
                    await first.play(no_testing=True)
                    numbers.append(first._id)
                again = AmqpClient(rpc, agent(), "one")
                await again.play(first.secret, just_one_trial=True)
                other = AmqpClient(rpc, agent(), "other")
                await other.play(no_testing=True)
                numbers.extend((again._id, other._id))

    run(work)
    assert numbers[0] == numbers[1] == numbers[3]
    assert len(set(numbers)) == 3
    names = {cell.agent for cell in cells(tmp_path / "run.sqlite")}
    assert all(any(f"-{number:07x}" in name for name in names) for number in numbers)


def test_several_agents_at_once(broker: PrivateBroker, tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"

    async def one(name: str) -> None:
        async with Rpc(broker.url) as rpc:
            await AmqpClient(rpc, agent(), name).play()

    async def work() -> None:
        async with serving(broker.url, path, count=1):
            await asyncio.gather(*(one(f"agent{number}") for number in range(3)))

    run(work)
    assert [cell.outcome for cell in cells(path)] == ["done"] * 6


def test_mistakes_get_the_envelope_and_the_server_lives_on(broker: PrivateBroker, tmp_path: Path) -> None:
    async def refused(rpc: Rpc, queue: str, content: dict[str, Any]) -> str:
        reply = await rpc.call(queue, content)
        assert reply["action"] == "casas_response"
        assert reply["status"] == "error"
        assert reply["error_list"][0]["data"]["message"] == reply["error_message"]
        return str(reply["error_message"])

    async def work() -> None:
        async with serving(broker.url, tmp_path / "run.sqlite", count=1), Rpc(broker.url) as rpc:
            assert "not a message" in await refused(rpc, REGISTRATION_QUEUE, {"obj_type": "request_experiment"})
            assert "is not a registration" in await refused(rpc, REGISTRATION_QUEUE, {"obj_type": "request_state"})
            client = AmqpClient(rpc, agent(), "clumsy")
            for name in (None, "", "n" * 201):
                with pytest.raises(AgentFault, match="model_name"):
                    await AmqpClient(rpc, agent(), name).play()  # type: ignore[arg-type]
            with pytest.raises(AgentFault, match="no experiment with this secret"):
                await client.play("0" * 32)
            for seed in (-4, 2**40, "many", 1.5):
                with pytest.raises(AgentFault, match="episode_seed"):
                    await client.play(episode_seed=seed)  # type: ignore[arg-type]
            await client.register()
            queue, ids = client._server, {"model_experiment_id": client._id, "secret": client.secret}
            data = {"obj_type": "request_training_data", **ids}
            assert "state is experiment_start" in await refused(rpc, queue, data)
            assert "right after" in await refused(rpc, queue, _opinion("training"))
            assert "belongs into training" in await refused(rpc, queue, {"obj_type": "training_end_early"})
            for expected in ("experiment_start", "training_start", "training_episode_start", "training_episode_active"):
                assert (await rpc.call(queue, {"obj_type": "request_state"}))["obj_type"] == expected
            for request in (data, {"obj_type": "end_experiment", **ids}, _prediction("training", "left")):
                assert "secret is wrong" in await refused(rpc, queue, {**request, "secret": "wrong"})
                assert "secret is missing" in await refused(rpc, queue, {**request, "secret": None})
            for request in (data, {"obj_type": "end_experiment", **ids}):
                assert "not 99" in await refused(rpc, queue, {**request, "model_experiment_id": 99})
            assert "unknown action 'fly'" in await refused(rpc, queue, _prediction("training", "fly", client.secret))
            assert "not a message" in await refused(rpc, queue, {"obj_type": "training_data_prediction"})
            left = _prediction("training", "left", client.secret)
            while (await rpc.call(queue, left))["obj_type"] != "training_episode_end":
                pass
            for wrong in ({"novelty": 2**70}, {"novelty_probability": 2}):
                assert "not " in await refused(rpc, queue, {**_opinion("training"), **wrong})
            unknown = await rpc.call(queue, {**_opinion("training"), "novelty": -1})
            assert unknown["obj_type"] == "training_episode_novelty_ack"
            for expected in ("training_episode_start", "training_episode_active"):
                assert (await rpc.call(queue, {"obj_type": "request_state"}))["obj_type"] == expected
            reply = await rpc.call(queue, data)
            assert reply["feature_label"]["action"] in DUEL.task.actions
            assert set(reply["feature_vector"]) == {"time_stamp", "player", "enemy", "projectiles", "enemies"}
            await AmqpClient(rpc, agent(), "next").play()

    run(work)
    done = [cell for cell in cells(tmp_path / "run.sqlite") if cell.agent.startswith("next")]
    assert [cell.outcome for cell in done] == ["done", "done"]


def _prediction(kind: str, action: str, secret: str | None = None, end_early: bool = False) -> dict[str, Any]:
    return {
        "obj_type": f"{kind}_data_prediction",
        "secret": secret,
        "utc_remote_epoch_received": 0.0,
        "utc_remote_epoch_sent": 0.0,
        "label_prediction": {"action": action},
        "end_early": end_early,
    }


def _opinion(kind: str) -> dict[str, Any]:
    return {
        "obj_type": f"{kind}_episode_novelty",
        "novelty_probability": 0.5,
        "novelty_threshold": 0.5,
        "novelty": 0,
        "novelty_characterization": {},
    }


def test_ending_early(broker: PrivateBroker, tmp_path: Path) -> None:
    """In training no further episode follows, in a trial the trial ends."""

    async def play_one(client: AmqpClient, kind: str) -> None:
        reply: dict[str, Any] = {"obj_type": ""}
        while not reply["obj_type"].endswith("_episode_end"):
            reply = await client._ask(_prediction(kind, "nothing", client.secret, end_early=True))

    async def work() -> None:
        async with serving(broker.url, tmp_path / "run.sqlite", count=1), Rpc(broker.url) as rpc:
            client = AmqpClient(rpc, agent(), "hasty")
            await client.register()
            states = []
            while states[-1:] != ["experiment_end"]:
                states.append((await client._ask({"obj_type": "request_state"}))["obj_type"])
                if states[-1].endswith("_episode_start"):
                    await play_one(client, states[-1].partition("_")[0])
            assert states == [
                "experiment_start",
                "training_start",
                "training_episode_start",
                "training_end",
                "training_model_end",
                "trial_start",
                "testing_start",
                "testing_episode_start",
                "testing_end",
                "trial_end",
                "experiment_end",
            ]

    run(work)
    assert [cell.outcome for cell in cells(tmp_path / "run.sqlite")] == ["truncated", "truncated"]


@pytest.mark.parametrize("when", ["before any", "episode ended", "opinion given"])
def test_no_further_training_between_two_episodes(broker: PrivateBroker, tmp_path: Path, when: str) -> None:
    async def ask(client: AmqpClient, name: str) -> str:
        return str((await client._ask({"obj_type": name}))["obj_type"])

    async def play_one(client: AmqpClient) -> None:
        assert await ask(client, "request_state") == "training_episode_start"
        while (await client._ask(_prediction("training", "nothing", client.secret)))["obj_type"] == "training_data_ack":
            pass
        if when == "opinion given":
            await client._ask(_opinion("training"))

    async def work() -> None:
        async with serving(broker.url, tmp_path / "run.sqlite", count=1), Rpc(broker.url) as rpc:
            client = AmqpClient(rpc, agent(), "hasty")
            await client.register()
            assert [await ask(client, "request_state") for _ in range(2)] == ["experiment_start", "training_start"]
            if when != "before any":
                await play_one(client)
            assert await ask(client, "training_end_early") == "training_end"
            if when == "episode ended":
                assert (await client._ask(_opinion("training")))["obj_type"] == "training_episode_novelty_ack"
            following = [await ask(client, "request_state") for _ in range(3)]
            assert following == ["training_end", "training_model_end", "trial_start"]

    run(work)
    training = cells(tmp_path / "run.sqlite")[0]
    assert training.outcome == "truncated"
    assert [episode.belief is not None for episode in training.episodes] == {
        "before any": [],
        "episode ended": [True],
        "opinion given": [True],
    }[when]


def test_a_trial_whose_agent_died_is_offered_again(
    broker: PrivateBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire = AmqpWire(broker.url)

    class Mortal:
        """Dies in the middle of its third episode."""

        def __init__(self) -> None:
            self.episodes, self.inner = 0, agent()

        def __call__(self, turn: Turn) -> Reply:
            self.episodes += turn.first
            if self.episodes > 2 and not turn.first:
                raise KeyError("dead")
            return self.inner(turn)

    async def work() -> None:
        async with serving(broker.url, tmp_path / "run.sqlite", count=1, wire=wire):
            async with Rpc(broker.url) as rpc:
                mortal = AmqpClient(rpc, Mortal(), "phoenix")
                with pytest.raises(KeyError):
                    await mortal.play()
            dead = wire._server._queues[mortal._server]
            monkeypatch.setattr(PrivateQueue, "silence", lambda queue: 1e9 if queue is dead else 0.0)
            async with Rpc(broker.url) as rpc:
                heir = AmqpClient(rpc, agent(), "phoenix")
                while not heir.performances:
                    with suppress(AgentFault):  # until the server finds out, the trial is in progress
                        await heir.play(mortal.secret)
                assert len(heir.performances) == 3

    run(work)
    training, trial = cells(tmp_path / "run.sqlite")
    assert (training.outcome, trial.outcome, trial.attempt) == ("done", "done", 2)


def test_stale_registrations_are_dropped(broker: PrivateBroker, tmp_path: Path) -> None:
    """An agent that registered and went away before anybody served it costs nothing."""

    async def work() -> None:
        async with Rpc(broker.url) as rpc:
            ghost = asyncio.create_task(AmqpClient(rpc, agent(), "ghost").play())
            waiting = 0
            while not waiting:
                queue = await rpc._channel.declare_queue(REGISTRATION_QUEUE, passive=True)
                waiting = queue.declaration_result.message_count
            ghost.cancel()
            await asyncio.wait([ghost])
        async with serving(broker.url, tmp_path / "run.sqlite", count=1), Rpc(broker.url) as rpc:
            await AmqpClient(rpc, agent(), "living").play()

    run(work)
    assert {cell.agent.rpartition("-")[0] for cell in cells(tmp_path / "run.sqlite")} == {"living"}


def test_a_broker_that_comes_back_costs_no_turn(tmp_path: Path, resets: list[PrivateQueue]) -> None:
    own = PrivateBroker()
    path, wire = tmp_path / "run.sqlite", AmqpWire(own.url)

    class Unlucky:
        """Has the broker restarted in the middle of an episode."""

        def __init__(self) -> None:
            self.turns, self.inner, self.worried = 0, agent(), asyncio.Event()

        def __call__(self, turn: Turn) -> Reply:
            self.turns += 1
            if self.turns == 12:
                self.worried.set()
            return self.inner(turn)

    async def restart(player: Unlucky) -> None:
        """Keeps the broker away for longer than an agent may be silent: the server counts that anew, twice."""
        await player.worried.wait()
        await asyncio.to_thread(own.stop)
        wire.lease, before = 0.1, len(resets)
        await asyncio.to_thread(wait_until, lambda: len(resets) >= before + 2)
        wire.lease = 1200.0
        await asyncio.to_thread(own.start)

    async def work() -> None:
        player = Unlucky()
        async with serving(own.url, path, count=1, wire=wire), Rpc(own.url) as rpc:
            await asyncio.gather(AmqpClient(rpc, player, "patient").play(), restart(player))

    try:
        run(work)
    finally:
        own.close()
    found = cells(path)
    assert [cell.outcome for cell in found] == ["done", "done"]
    of.run(
        {"patient": "reference"}, DUEL.trials(1, novelty="moving:easy", **SMALL, unchanged=0), tmp_path / "local.sqlite"
    )
    assert [c.steps for c in found] == [c.steps for c in cells(tmp_path / "local.sqlite")]


@pytest.mark.parametrize("how", ["killed", "ended"])
def test_a_private_broker_does_not_outlive_its_owner(tmp_path: Path, how: str) -> None:
    """Nor do its name server and its folder, in a process that leaves as workers do."""
    script = "import os, sys; from multiprocessing import util; "
    script += "from openfield.domains.doom.wire.private_broker import own_broker; "
    script += "print(own_broker().port, flush=True); sys.stdin.read(); util._exit_function(); os._exit(0)"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as owner:
        assert owner.stdout is not None
        port = int(owner.stdout.readline())
        assert name_servers(tmp_path)
        owner.kill() if how == "killed" else owner.communicate()
    wait_until(lambda: not is_listening(port))
    wait_until(lambda: not name_servers(tmp_path))
    wait_until(lambda: not folders(tmp_path))


def folders(home: Path) -> list[Path]:
    return list(home.glob("openfield-rabbit-*"))


def name_servers(home: Path) -> list[str]:
    """The processes that serve names to brokers whose folder is in another."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if b"epmd" in (place / "cmdline").read_bytes() and str(home).encode() in (place / "environ").read_bytes():
                found.append(place.name)
    return found


def test_a_queue_of_another_kind_is_one_clear_error(broker: PrivateBroker, tmp_path: Path) -> None:
    async def work() -> None:
        pika = load_aio_pika()
        async with await pika.connect(broker.url) as connection:
            channel = await connection.channel()
            await channel.queue_delete(REGISTRATION_QUEUE)
            await channel.declare_queue(REGISTRATION_QUEUE, durable=False)
            try:
                with pytest.raises(InvalidInput, match=f"rabbitmqctl delete_queue {REGISTRATION_QUEUE}"):
                    async with serving(broker.url, tmp_path / "run.sqlite"):
                        pass
            finally:
                await channel.queue_delete(REGISTRATION_QUEUE)

    run(work)


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_no_broker_is_one_clear_error(tmp_path: Path) -> None:
    async def work() -> None:
        async with serving("amqp://guest:guest@127.0.0.1:1/", tmp_path / "run.sqlite"):
            pass

    with pytest.raises(InvalidInput, match=r"no broker at amqp://\.\.\.@127\.0\.0\.1:1/"):
        run(work)


PROGRAM = """
    import asyncio, sys
    from pathlib import Path
    from openfield.domains.doom import DUEL
    from openfield.domains.doom.agents.reference import ReferenceAgent
    from openfield.domains.doom.wire.client import AmqpClient
    from openfield.domains.doom.wire.rpc import Rpc
    from openfield.domains.doom.wire.ini import read_client

    async def main(path):
        config = read_client(path)
        agent = ReferenceAgent(DUEL.spec(DUEL.trials(1)[0]), 0)
        async with Rpc(config.amqp) as rpc:
            client = AmqpClient(rpc, agent, config.model_name)
            await client.play(config.experiment_secret, config.no_testing, config.just_one_trial)

    asyncio.run(main(Path(sys.argv[1].removeprefix("--config="))))
"""


def test_a_program_of_the_old_family_as_an_agent(
    broker: PrivateBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENFIELD_AMQP", broker.url)
    (tmp_path / "TA2.py").write_text(textwrap.dedent(PROGRAM))
    (tmp_path / "ta2.config").write_text("[aiq-sail-on]\nmodel_name = old\n[sail-on]\n[amqp]\nhost = elsewhere\n")
    command = f"wire:{sys.executable} {tmp_path}/TA2.py --config={tmp_path}/ta2.config"
    trials = DUEL.trials(1, novelty="moving:easy", **SMALL, unchanged=0)
    of.run({"old": command, "new": "reference"}, trials, tmp_path / "run.sqlite")
    found = cells(tmp_path / "run.sqlite")
    assert [(cell.agent, cell.outcome, cell.note) for cell in found] == [("old", "done", ""), ("new", "done", "")] * 2
    assert "elsewhere" in (tmp_path / "ta2.config").read_text()
    assert os.path.exists(tmp_path / "run.sqlite")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--config=nofile.ini", "nofile.ini cannot be read"),
        ("--config nofile.ini --debug", "nofile.ini cannot be read"),
        ("--config", "does not say which file"),
        ("--config=", "does not say which file"),
        ("--config={folder}/TA2.py", "is not an INI file"),
    ],
)
def test_a_program_without_its_file_is_refused_before_it_plays(tmp_path: Path, words: str, said: str) -> None:
    (tmp_path / "TA2.py").write_text("print(1)")
    command = f"wire:{sys.executable} {tmp_path}/TA2.py {words.format(folder=tmp_path)}"
    with pytest.raises(InvalidInput, match=said):
        of.run({"old": command}, DUEL.trials(1, **SMALL, unchanged=0), tmp_path / "run.sqlite")
    assert not (tmp_path / "run.sqlite").exists()


def test_an_agent_that_comes_back_too_late_is_told(broker: PrivateBroker, tmp_path: Path) -> None:
    """Also after the server's channel was closed, and its queues with it; of its world nothing is kept for that."""
    wire = AmqpWire(broker.url)

    async def work() -> None:
        async with serving(broker.url, tmp_path / "run.sqlite", count=1, wire=wire), Rpc(broker.url) as rpc:
            client = AmqpClient(rpc, agent(), "sleepy")
            await client.register()
            for _ in range(4):
                state = await client._ask({"obj_type": "request_state"})
            assert state["obj_type"] == "training_episode_active"
            (queue,) = wire._server._queues.values()
            world, wire.lease = weakref.ref(queue.session.remote.rollout.world), 0.01
            await asyncio.to_thread(wait_until, lambda: queue.dropped)
            with pytest.raises(AgentFault, match="said nothing for"):
                await client._ask({"obj_type": "request_state"})
            gc.collect()
            assert world() is None
            await (await wire._server._channel.get_underlay_channel()).close()
            with pytest.raises(AgentFault, match="said nothing for"):
                await client._ask(_prediction("training", "left", client.secret))
            with pytest.raises(AgentFault, match="training of this experiment is not done"):
                await AmqpClient(rpc, agent(), "sleepy").play(client.secret)

    run(work)


def test_whoever_waits_for_the_server_is_not_silent(
    broker: PrivateBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resets: list[PrivateQueue]
) -> None:
    """An engine may take longer to start than an agent may be silent: the server counts that anew, twice."""
    wire, reset = AmqpWire(broker.url), DoomWorld.reset

    def dawdle(world: DoomWorld) -> Turn:
        wire.lease, before = 0.1, len(resets)
        wait_until(lambda: len(resets) >= before + 2)
        wire.lease = 1200.0
        return reset(world)

    async def work() -> None:
        async with serving(broker.url, tmp_path / "run.sqlite", count=1, wire=wire), Rpc(broker.url) as rpc:
            client = AmqpClient(rpc, agent(), "waiting")
            await client.play()
            assert len(client.performances) == 2 + 3

    monkeypatch.setattr(DoomWorld, "reset", dawdle)
    run(work)
    assert [cell.outcome for cell in cells(tmp_path / "run.sqlite")] == ["done", "done"]


def test_a_reply_waits_for_the_broker(broker: PrivateBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where only the server's connection broke, an agent that never asks twice must still hear."""
    wire, reset, opening, broken = AmqpWire(broker.url), DoomWorld.reset, threading.Event(), threading.Event()

    def hold(world: DoomWorld) -> Turn:
        opening.set()
        assert broken.wait(60)
        return reset(world)

    async def break_off() -> None:
        await asyncio.to_thread(opening.wait, 60)
        await (await wire._server._channel.get_underlay_channel()).connection.close(ConnectionError("broken"))
        broken.set()

    async def work() -> None:
        async with serving(broker.url, tmp_path / "run.sqlite", count=1, wire=wire), Rpc(broker.url) as rpc:
            client = AmqpClient(rpc, agent(), "patient")
            await client.register()
            task = asyncio.create_task(break_off())
            for expected in ("experiment_start", "training_start", "training_episode_start"):
                assert (await client._ask({"obj_type": "request_state"}))["obj_type"] == expected
            await task

    monkeypatch.setattr(DoomWorld, "reset", hold)
    monkeypatch.setattr("openfield.domains.doom.wire.rpc.RESEND_SECONDS", 60.0)
    run(work)


def test_the_secret_alone_finds_an_experiment(broker: PrivateBroker, tmp_path: Path) -> None:
    async def work() -> None:
        async with serving(broker.url, tmp_path / "run.sqlite", count=1), Rpc(broker.url) as rpc:
            first = AmqpClient(rpc, agent(), "before")
            await first.play(no_testing=True)
            renamed = AmqpClient(rpc, agent(), "after")
            await renamed.play(first.secret)
            assert len(renamed.performances) == 3

    run(work)
    assert {cell.agent.partition("-")[0] for cell in cells(tmp_path / "run.sqlite")} == {"before"}


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"amqp": "foo"}, "'foo' is not a broker's address"),
        ({"amqp": ""}, "'' is not a broker's address"),
        ({"amqp": "amqp://field:field@127.0.0.1:abc/"}, "abc/' is not a broker's address"),
        ({"amqp": "amqp://field:field@127.0.0.1:70000/"}, "70000/' is not a broker's address"),
        ({"amqp": "amqp://[::1/"}, "is not a broker's address"),
        ({"lease": 0.0}, "above 0, not 0"),
        ({"lease": float("nan")}, "above 0, not nan"),
        ({"lease": float("inf")}, "above 0, not inf"),
    ],
)
def test_what_serve_is_told_is_looked_at(told: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        AmqpWire(**told)


@pytest.mark.parametrize(("path", "said"), [("nowhere", "virtual host"), ("", "user or password")])
def test_a_broker_that_refuses_is_one_clear_error(broker: PrivateBroker, tmp_path: Path, path: str, said: str) -> None:
    user = "field:field" if path else "field:wrong"

    async def work() -> None:
        async with serving(f"amqp://{user}@127.0.0.1:{broker.port}/{path}", tmp_path / "run.sqlite"):
            pass

    with pytest.raises(InvalidInput, match=said):
        run(work)


def test_trials_that_cannot_be_opened_are_not_passed_over(
    broker: PrivateBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(world: DoomWorld) -> Turn:
        raise WorldFault("no engine today")

    async def work() -> None:
        async with serving(broker.url, tmp_path / "run.sqlite", count=1), Rpc(broker.url) as rpc:
            first = AmqpClient(rpc, agent(), "unlucky")
            await first.play(no_testing=True)
            with monkeypatch.context() as broken:
                broken.setattr(DoomWorld, "reset", fail)
                with pytest.raises(AgentFault, match="cannot be opened"):
                    await AmqpClient(rpc, agent(), "unlucky").play(first.secret)
            again = AmqpClient(rpc, agent(), "unlucky")
            await again.play(first.secret)
            assert len(again.performances) == 3

    run(work)
    assert [cell.outcome for cell in cells(tmp_path / "run.sqlite")] == ["done", "done"]


def test_a_full_disk_is_told_and_gone_on_from(
    broker: PrivateBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(db: sqlite3.Connection) -> None:
        raise DiskFull("No room left.")

    def refuse(path: Path, durable: str) -> Journal:
        raise DiskFull("No room left.")

    async def work() -> None:
        async with serving(broker.url, tmp_path / "run.sqlite", count=1) as journal, Rpc(broker.url) as rpc:
            first = AmqpClient(rpc, agent(), "first")
            await first.register()
            for _ in range(4):
                await rpc.call(first._server, {"obj_type": "request_state"})
            with pytest.raises(DiskFull):
                journal._ask(fill).result()
            with pytest.raises(AgentFault, match="No room left"):
                await first._episode("training")
            with monkeypatch.context() as patch:
                patch.setattr("openfield.serving.dispatch.Journal", refuse)
                with pytest.raises(AgentFault, match="No room left"):
                    await AmqpClient(rpc, agent(), "hasty").play()
            second = AmqpClient(rpc, agent(), "second")
            await second.play()
            assert len(second.performances) == 2 + 3

    run(work)
    found = {cell.agent.partition("-")[0]: cell.outcome for cell in cells(tmp_path / "run.sqlite")}
    assert found == {"first": None, "second": "done"}
