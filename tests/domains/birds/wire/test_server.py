"""Agents on a real socket: a whole trial, reconnecting, several at once, and nonsense."""

import asyncio
import socket
import struct
import threading

import pytest

from openfield.domains.birds import DOMAIN, BirdsClient
from openfield.domains.birds.agents.observed_level import observe_level
from openfield.domains.birds.harness import HarnessState
from openfield.domains.birds.wire.server import BirdsServer, BirdsWire, read_token
from openfield.errors import InvalidInput
from openfield.journal.reader import Run
from openfield.result import Result
from support.birds.configurations import CONFIG
from support.birds.serving import NORMAL, Clock, free_port, serving, write_short


@pytest.fixture
def trials(tmp_path):
    path = tmp_path / "config.xml"
    path.write_text(CONFIG)
    return DOMAIN.trials(config=str(path), unchanged=0)


def shoot_a_pig(client):
    sight = observe_level(client.ground_truth())
    launch = sight.aim(sight.of("pig", "novel")[0].centre)
    return client.shoot(*sight.release(launch))


def test_a_trial_with_a_checkpoint_a_resume_and_a_report(tmp_path, trials):
    path, seen = tmp_path / "run.sqlite", []
    with serving(path, trials) as port, BirdsClient(port=port) as client:
        assert client.configure(3, 1) == (0, 0, 0)

        def note():
            seen.append(client.state())
            return seen[-1]

        assert note() is HarnessState.NEW_TRIAL
        client.ready()
        assert note() is HarnessState.NEW_TRAINING_SET
        facts = client.ready()
        assert (facts.levels, facts.attempts, facts.testing, facts.selection) == (2, 1, False, False)
        assert note() is HarnessState.MAIN_MENU
        assert client.shoot(1, 1) is False, "no level is loaded"
        assert client.load(2) is False, "a sequence gives no choice"
        assert client.load_next() == 1
        assert note() is HarnessState.PLAYING
        assert shoot_a_pig(client)
        assert note() is HarnessState.REQUEST_BELIEF, "a load and a shot are two interactions"
        assert client.load_next() == 0
        assert client.report(0.25, level=1, objects=(-4, 7), text="nothing, really")
        assert note() is HarnessState.NEW_TEST_SET, "the checkpoint came with the end of the level"
        assert client.ready().testing
        assert client.load(1)
        shoot_a_pig(client)
        assert note() is HarnessState.RESUME_TRAINING
        client.ready()
        assert client.level() == 1
        assert client.load_next() == 2
        shoot_a_pig(client)
        assert note() is HarnessState.REQUEST_BELIEF
        assert client.report(0.75)
        assert note() is HarnessState.NEW_TEST_SET, "the final test, although the checkpoint took the only set"
        client.ready()
        assert client.load(1)
        shoot_a_pig(client)
        assert note() is HarnessState.TERMINATED
    with Run(path) as run:
        (cell,) = run.cells()
    assert (cell.agent, cell.outcome) == ("team-3", "done")
    assert [(episode.phase, episode.novel) for episode in cell.episodes] == [
        ("training", False),
        ("test", True),
        ("training", False),
        ("test", True),
    ]
    assert cell.episodes[0].belief.detail["objects"] == [-4, 7]
    assert cell.episodes[2].belief.novel == 0.75, "asked for with the last shot of training"


def test_a_team_that_comes_back_goes_on_where_it_was(tmp_path, trials):
    path = tmp_path / "run.sqlite"
    with serving(path, trials) as port:
        with BirdsClient(port=port) as client:
            client.configure(1)
            client.ready()
            client.ready()
            client.load_next()
            before = client.ground_truth()
        with BirdsClient(port=port) as client:
            client.configure(1)
            assert client.state() is HarnessState.PLAYING
            assert client.ground_truth() == before
    with serving(path, trials) as port, BirdsClient(port=port) as client:
        client.configure(1)
        assert client.state() is HarnessState.PLAYING, "also after the server was started again"


@pytest.mark.parametrize("in_level", [False, True])
def test_an_agent_that_hangs_up_in_a_set_without_a_limit_of_attempts_is_scored(tmp_path, in_level):
    write_short(tmp_path, NORMAL.format(last=1), executions=1, attempts=0)
    path, trials = tmp_path / "run.sqlite", DOMAIN.trials(config=str(tmp_path / "config.xml"), unchanged=0)
    with serving(path, trials) as port, BirdsClient(port=port) as client:
        client.configure(1)
        client.ready()
        client.ready()
        client.load_next()
        assert shoot_a_pig(client)
        assert client.state() is HarnessState.WON
        if in_level:
            assert client.load_next() == 1
    with Run(path) as run:
        (cell,) = run.cells()
        assert list(run.verify()) == []
    assert (cell.outcome, cell.note) == ("truncated", "")
    assert [episode.detail["status"] for episode in cell.episodes] == ["Pass", "Playing"][: 1 + in_level]
    (group,) = Result([path]).summary().groups
    assert group.estimates["before"].mean == (0.5 if in_level else 1.0)
    with serving(path, trials) as port, BirdsClient(port=port) as client:
        client.configure(1)
        assert client.state() is HarnessState.TERMINATED, "it has stopped for good"


def test_an_agent_that_is_connected_when_the_server_ends_has_not_stopped(tmp_path):
    write_short(tmp_path, NORMAL.format(last=1), executions=1, attempts=0)
    path, trials = tmp_path / "run.sqlite", DOMAIN.trials(config=str(tmp_path / "config.xml"), unchanged=0)
    with serving(path, trials) as port:
        client = BirdsClient(port=port)
        client.configure(1)
        client.ready()
        client.ready()
        client.load_next()
    client.close()
    with Run(path) as run:
        assert [cell.outcome for cell in run.cells()] == ["cancelled"]


def test_reads_of_every_kind(tmp_path, trials):
    with serving(tmp_path / "run.sqlite", trials) as port, BirdsClient(port=port) as client:
        client.configure(1)
        assert client.screenshot().shape == (480, 640, 3), "also before a level is loaded"
        client.ready()
        client.ready()
        client.load_next()
        assert client.screenshot().max() > client.screenshot().min()
        assert (client.screenshot(initial=True) == client.screenshot()).all()
        assert (client.level(), client.levels(), client.scores(), client.score()) == (1, 2, [0, 0], 0)
        assert client.novelty_info() == -1
        assert client.set_speed(100)
        wide = observe_level(client.ground_truth()).scale
        assert client.zoom("in")
        assert observe_level(client.ground_truth()).scale > 1.2 * wide
        assert len(client.watch(20000, 1)) == 1
        assert client.describe("pigs, as ever")
        frames = client.shoot_and_watch(10, 300, every=5, short=True)
        assert 1 < len(frames) < 300


def test_a_fast_shot_returns_at_once_and_time_passes_while_the_agent_looks(tmp_path, trials, monkeypatch):
    Clock(monkeypatch)
    with serving(tmp_path / "run.sqlite", trials) as port, BirdsClient(port=port) as client:
        client.configure(1)
        client.ready()
        client.ready()
        client.load_next()
        assert client.shoot(0, 250, fast=True)
        assert client.report(0.0)
        states = {client.state() for _ in range(80)}
        assert HarnessState.PLAYING in states
        assert HarnessState.NEW_TEST_SET in states


def test_several_agents_play_games_of_their_own(tmp_path, trials):
    states = {}

    def play(port, team):
        with BirdsClient(port=port) as client:
            client.configure(team)
            for _ in range(team):
                client.ready()
            states[team] = client.state()

    with serving(tmp_path / "run.sqlite", trials) as port:
        threads = [threading.Thread(target=play, args=(port, team)) for team in (1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert states == {1: HarnessState.NEW_TRAINING_SET, 2: HarnessState.MAIN_MENU}


@pytest.mark.parametrize(
    "nonsense",
    [
        b"\x42" + struct.pack(">ffi", 0.5, 0.5, -7),
        b"\x42" + struct.pack(">ffi", 0.5, 0.5, 2_000_000_000),
        b"\x43" + struct.pack(">I", 0xFFFFFFFF),
        b"\x21\xff",
        b"\x1f\x00",
    ],
    ids=["negative count", "absurd count", "absurd length", "too many shots", "half a shot"],
)
def test_nonsense_ends_a_session_and_nothing_else(tmp_path, trials, nonsense):
    with serving(tmp_path / "run.sqlite", trials) as port, BirdsClient(port=port) as other:
        other.configure(1)
        with socket.create_connection(("127.0.0.1", port), 120) as bad:
            bad.sendall(b"\x01\x00\x00\x00\x02\x00" + nonsense)
            bad.shutdown(socket.SHUT_WR)
            assert read(bad, 3) == bytes((0, 0, 2))
            while bad.recv(100):
                pass
        assert other.state() is HarnessState.NEW_TRIAL


def test_zeros_and_unknown_codes_are_passed_over(tmp_path, trials):
    with serving(tmp_path / "run.sqlite", trials) as port, socket.create_connection(("127.0.0.1", port), 120) as agent:
        agent.sendall(b"\x01\x00\x00\x00\x02\x00" + bytes(4) + b"\xfe\x0c")
        assert read(agent, 4) == bytes((0, 0, 2, HarnessState.NEW_TRIAL))


def read(connection, size):
    data = b""
    while len(data) < size:
        data += connection.recv(size - len(data))
    return data


def test_who_hangs_up_while_a_reply_is_made_leaves_no_trace(tmp_path, trials, capfd):
    with free_port() as observers:
        pass
    with serving(tmp_path / "run.sqlite", trials, observer_port=observers) as port:
        for opened in (port, observers) * 3:
            with socket.create_connection(("127.0.0.1", opened), 120) as agent:
                agent.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                agent.sendall(b"\x01\x00\x00\x00\x02\x00" + b"\x0b" * 5)
                read(agent, 3)
        with BirdsClient(port=port) as client:
            assert client.configure(2) == (0, 0, 2)
    assert capfd.readouterr().err == ""


def test_observers_see_the_game_and_touch_nothing(tmp_path, trials):
    with free_port() as observers:
        pass
    with (
        serving(tmp_path / "run.sqlite", trials, observer_port=observers) as port,
        BirdsClient(port=port) as agent,
        BirdsClient(port=observers) as observer,
    ):
        agent.configure(5)
        agent.ready()
        agent.ready()
        agent.load_next()
        assert observer.configure(5, 1) == (0, 0, 0)
        assert observer.ground_truth() == agent.ground_truth()
        assert (observer.screenshot() == agent.screenshot()).all()
        observer._send(53)  # not for observers: no answer, and nothing happens
        assert observer.ground_truth() == agent.ground_truth()
        assert agent.level() == 1


def test_only_teams_whose_number_is_known_are_let_in(tmp_path, trials):
    with free_port() as observers:
        pass
    with serving(tmp_path / "run.sqlite", trials, token="8472913, 5503127", observer_port=observers) as port:
        for opened, team in ((port, None), (port, 8472914), (observers, None), (observers, 1)):
            with BirdsClient(port=opened) as stranger, pytest.raises(ConnectionError):
                stranger.ground_truth() if team is None else stranger.configure(team)
        with BirdsClient(port=port) as first, BirdsClient(port=port) as second, BirdsClient(port=observers) as observer:
            assert first.configure(8472913) == second.configure(5503127) == observer.configure(8472913) == (0, 0, 2)
            first.ready()
            assert observer.screenshot().shape == (480, 640, 3)
    with Run(tmp_path / "run.sqlite") as run:
        assert {cell.agent for cell in run.cells()} == {"team-1", "team-2"}, "a secret is in no record"


@pytest.mark.parametrize("token", ["", "sesame", "12", "8472913,", "4294967296"])
def test_a_token_is_the_number_of_a_team(token):
    with pytest.raises(InvalidInput, match="the number of their team as their token: --token 8472913"):
        read_token(token)


def test_the_time_an_agent_is_away_is_not_its_own(tmp_path, monkeypatch):
    (tmp_path / "config.xml").write_text(CONFIG.replace('time_limit="0"', 'time_limit="600"'))
    trials, gone = DOMAIN.trials(config=str(tmp_path / "config.xml"), unchanged=0), threading.Event()
    leave = BirdsServer._leave

    async def note(server, session, writer):
        await leave(server, session, writer)
        if session is not None:
            gone.set()

    monkeypatch.setattr(BirdsServer, "_leave", note)
    clock = Clock(monkeypatch)
    with serving(tmp_path / "run.sqlite", trials) as port:
        with BirdsClient(port=port) as client:
            client.configure(1)
            client.ready()
            client.ready()
            assert client.load_next() == 1
            clock.seconds += 100.0  # it thinks, connected: this is its own
            client.zoom("in")
        assert gone.wait(60)
        clock.seconds += 4000.0
        with BirdsClient(port=port) as client:
            client.configure(1)
            assert client.state() is HarnessState.PLAYING
            assert client.zoom("out"), "the limits know nothing of the hour it was away"
            assert client.state() is HarnessState.PLAYING
    with Run(tmp_path / "run.sqlite") as run:
        (cell,) = run.cells()
        spent = sum(step.took for step in run.steps(cell.id, cell.attempt)) / 1e9
    assert spent == pytest.approx(100, abs=1e-3)


def test_a_wrong_number_of_numbers_is_refused(tmp_path, trials):
    wire = BirdsWire(gtshoot_ints=4)
    with pytest.raises(InvalidInput, match="5 or 6"):
        asyncio.run(wire.serve(None, "127.0.0.1", 0, print))
    with pytest.raises(InvalidInput, match=r"--observer-port is a number from 0 to 65,535, not 99999\."):
        asyncio.run(BirdsWire(observer_port=99999).serve(None, "127.0.0.1", 0, print))
