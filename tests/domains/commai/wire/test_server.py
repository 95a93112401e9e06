"""The wire: its codec, learners of every version of ZeroMQ's protocol, and real ones in other processes."""

import asyncio
import gc
import resource
import socket
import struct
import sys
import threading
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import openfield as of
from openfield.core import Reply, Turn
from openfield.domains.commai import DOMAIN
from openfield.domains.commai.options import CommaiServeOptions
from openfield.domains.commai.wire import line, ports
from openfield.domains.commai.wire import server as wire
from openfield.domains.commai.wire.line import Handshake
from openfield.domains.commai.wire.ports import SharedPort, SinglePort
from openfield.domains.commai.wire.server import Codec, PairWire, hello_token, is_hello
from openfield.domains.commai.world import CommaiWorld
from openfield.errors import AgentProtocol, InvalidInput
from openfield.journal.reader import Run
from openfield.journal.writer import Journal
from openfield.rollout import Rollout
from openfield.runner.experiment import change_limits
from openfield.serving.dispatch import TrialDispatcher, serve_domain
from openfield.serving.remote import RemoteRollout
from openfield.serving.wire import Serving
from support.commai.zmtp import GREETING, SIGNATURE, RawPeer, connect, frame, old_frame, ready
from support.places import SUPPORT

PEER = SUPPORT / "commai" / "peer.py"
BYTES = of.Spec(domain="commai", task="", actions=of.spaces.Discrete(256))
BITS = of.Spec(domain="commai", task="", actions=of.spaces.Discrete(2))


@pytest.mark.parametrize(("reward", "text"), [(0.0, b"0"), (1.0, b"1"), (-1.0, b"-1")])
def test_a_turn_is_two_messages(reward, text):
    assert Codec(BYTES).encode(Turn(observation=97, reward=reward)) == (text, b"a")
    assert Codec(BITS).encode(Turn(observation=1, reward=reward)) == (text, b"1")


def test_bytes_beyond_ascii_take_two_octets():
    assert Codec(BYTES).encode(Turn(observation=233)) == (b"0", b"\xc3\xa9")
    assert Codec(BYTES).read(["é".encode()]) == Reply(233)


@given(st.integers(0, 255))
def test_what_is_shown_can_be_answered_with_itself(code):
    codec = Codec(BYTES)
    assert codec.read(codec.encode(Turn(observation=code))[1:]) == Reply(code)


@pytest.mark.parametrize("message", [[b"ab"], [b""], [b"\xff"], ["ā".encode()], [b"a", b"b"]])
def test_a_malformed_frame_is_named(message):
    with pytest.raises(AgentProtocol, match="; a symbol is one character"):
        Codec(BYTES).read(message)


def test_a_hello_may_carry_a_token():
    assert Codec(BYTES).read([b"hello"]) is None
    assert is_hello([b"hello secret"])
    assert hello_token([b"hello secret"]) == "secret"
    assert hello_token([b"hello"]) is None


def run_peer(tmp_path, fault="", **settings):
    command = f"wire:{sys.executable} {PEER} {{port}} {fault}"
    trials = of.trials("commai", 1, tasks="micro4,micro5.3", max_steps=400, **settings, unchanged=0)
    result = of.run({"peer": command, "echo": "echo"}, trials, tmp_path / "run.sqlite")
    return {cell.agent: cell for cell in result.cells}


def steps_of(tmp_path, cell):
    with Run(tmp_path / "run.sqlite") as run:
        return [(step.turn, step.truth) for step in run.steps(cell.id, cell.attempt)]


def test_a_learner_in_another_process_plays_like_one_at_home(tmp_path):
    cells = run_peer(tmp_path)
    assert cells["peer"].outcome == "done"
    assert steps_of(tmp_path, cells["peer"]) == steps_of(tmp_path, cells["echo"])


@pytest.mark.slow
def test_a_learner_may_talk_in_bits(tmp_path):
    cells = run_peer(tmp_path, bit_mode=True)
    assert steps_of(tmp_path, cells["peer"]) == steps_of(tmp_path, cells["echo"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "outcome", "says"),
    [
        ("dies", "agent_gone", "status 3"),
        ("babbles", "agent_protocol", "b'word'"),
        ("shouts", "agent_protocol", "a symbol is one character"),
        ("greets", "agent_protocol", "b'hallo' first; it must send b'hello'"),
    ],
)
def test_what_goes_wrong_has_an_outcome_and_what_was_recorded_stays(tmp_path, fault, outcome, says):
    cell = run_peer(tmp_path, fault)["peer"]
    assert cell.outcome == outcome
    assert says in cell.note
    assert cell.steps >= 50 or fault == "greets"


def test_a_second_hello_on_the_same_line_shows_the_turn_again(tmp_path):
    cells = run_peer(tmp_path, "repeats")
    assert steps_of(tmp_path, cells["peer"]) == steps_of(tmp_path, cells["echo"])


@pytest.mark.slow
def test_a_learner_that_hangs_is_given_up(tmp_path):
    trials = change_limits(of.trials("commai", 1, tasks="micro5.3", max_steps=400, unchanged=0), {"reply_seconds": 0.3})
    result = of.run([f"wire:{sys.executable} {PEER} {{port}} hangs"], trials, tmp_path / "run.sqlite")
    assert result.cells[0].outcome == "agent_timeout"


def test_a_new_hello_goes_on_with_the_trial_and_the_next_one_starts_the_next(tmp_path):
    path, port = tmp_path / "served.sqlite", []
    opened = threading.Event()

    def ready(number):
        port.append(number)
        opened.set()

    class ReportingWire(PairWire):
        async def _play(self, *args):
            left = await super()._play(*args)
            played.put_nowait(left)
            return left

    played = asyncio.Queue()

    async def serve():
        with Journal(path) as journal:
            dispatcher = TrialDispatcher(
                journal, DOMAIN, of.trials("commai", 2, tasks="micro4", max_steps=300, unchanged=0), "remote", None
            )
            server = asyncio.create_task(serve_domain(ReportingWire(), dispatcher, "127.0.0.1", 0, ready))
            await asyncio.to_thread(opened.wait)
            for fault in ("dies", "-", "-"):
                program = await asyncio.create_subprocess_exec(sys.executable, str(PEER), str(port[0]), fault)
                await played.get()
                with suppress(ProcessLookupError):
                    program.kill()
                await program.wait()
            server.cancel()
            await asyncio.gather(server, return_exceptions=True)

    asyncio.run(asyncio.wait_for(serve(), 300))
    with Run(path) as run:
        assert [cell.outcome for cell in run.cells()] == ["done", "done"]
        assert {cell.attempt for cell in run.cells()} == {1}


def play_raw(tmp_path, script, max_steps=60, **limits):
    """Plays a trial, waiting for whoever comes, with a peer of our own making; returns the cell."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    trials = change_limits(of.trials("commai", 1, tasks="micro4", max_steps=max_steps, unchanged=0), limits)
    peer = threading.Thread(target=script, args=(port,))
    peer.start()
    result = of.run([f"wire:@127.0.0.1:{port}"], trials, tmp_path / "run.sqlite")
    peer.join()
    return result.cells[0]


def hello(port, *said):
    """A peer of version 3 that has said hello, and then this."""
    return RawPeer(port, said=b"".join(map(frame, (b"hello", *said))))


def hear_all(peer):
    while peer.hear() is not None:
        pass
    peer.close()


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("shared", [False, True])
def test_learners_of_every_version_of_zeromq_play(tmp_path, version, shared):
    path, turns = tmp_path / "run.sqlite", []
    with serving(path, *([] if shared else ["1"])) as port:
        peer = RawPeer(port, version)
        peer.say(b"hello")
        while (turn := peer.hear_turn()) is not None:
            turns.append(turn)
            peer.say(turn[1])
        peer.close()
    assert outcomes(path) == [("remote", "done")]
    assert len(turns) == 41
    assert turns[0][0] == b"0"
    assert {reward for reward, _ in turns[1:]} == {b"1"}


def test_what_comes_with_the_hello_is_heard(tmp_path):
    cell = play_raw(tmp_path, lambda port: hear_all(hello(port, *[b"x"] * 61)))
    assert (cell.outcome, cell.steps) == ("done", 62)
    with Run(tmp_path / "run.sqlite") as run:
        replies = [step.reply.action for step in run.steps(cell.id, cell.attempt) if step.reply]
    assert replies[:-1] == [ord("x")] * 60


def test_a_message_of_two_frames_is_no_symbol(tmp_path):
    def script(port):
        peer = hello(port)
        peer.hear_turn()
        peer.socket.sendall(frame(b"a", more=True) + frame(b"b"))
        hear_all(peer)

    cell = play_raw(tmp_path, script)
    assert cell.outcome == "agent_protocol"
    assert "b'a | b'" in cell.note


def test_a_belated_answer_to_another_conversation_is_let_pass(tmp_path):
    said = b"".join(map(frame, [b"y", b"hello", *[b"x"] * 61]))
    assert play_raw(tmp_path, lambda port: hear_all(RawPeer(port, said=said))).outcome == "done"


@pytest.mark.parametrize(
    ("begins", "says"),
    [
        (SIGNATURE + b"\x03\x00" + b"CURVE".ljust(20, b"\0") + bytes(32), "ZeroMQ refuses the peer (zmtp mechanism"),
        (GREETING + ready(b"REQ"), "the peer is not a PAIR socket"),
        (b"GET / HTTP/1.1\r\n\r\n", "the peer does not speak ZeroMQ"),
        (b"hello\n", "the peer does not speak ZeroMQ"),
        (old_frame(b"") + old_frame(b"hallo"), "the learner sent b'hallo' first"),
    ],
    ids=["with security", "another kind", "HTTP", "text", "another word"],
)
def test_a_peer_that_cannot_be_understood_is_named_at_once(tmp_path, begins, says):
    def script(port):
        with connect(port) as peer, suppress(ConnectionError):
            peer.sendall(begins)
            while peer.recv(4096):
                pass

    cell = play_raw(tmp_path, script, reply_seconds=600)
    assert cell.outcome == "agent_protocol"
    assert says in cell.note
    assert ("a learner connects with a ZeroMQ PAIR socket without security" in cell.note) == ("hallo" not in says)
    assert "\n" not in cell.note


@pytest.mark.parametrize("version", [1, 2])
def test_a_learner_may_take_its_time_between_greeting_and_hello(version, monkeypatch):
    def look(number):
        found = known(number)
        looked.set()
        return found

    known, looked, handshakes = line._is_unreadable, threading.Event(), []
    monkeypatch.setattr(line, "_is_unreadable", look)
    monkeypatch.setattr(line, "STRANGER_SECONDS", 3_600.0)
    listener = SinglePort("127.0.0.1", 0)
    waiting = threading.Thread(target=lambda: handshakes.append(listener.wait_for_handshake()))
    waiting.start()
    peer = RawPeer(listener.port, version)
    peer.read_greeting()
    monkeypatch.setattr(line, "STRANGER_SECONDS", 0.0)
    looked.wait()
    peer.say(b"hello")
    waiting.join()
    assert [(handshake.first, handshake.problem) for handshake in handshakes] == [([b"hello"], "")]
    peer.close()
    listener.close()


@pytest.mark.parametrize("kind", [SinglePort, SharedPort])
def test_a_learner_of_version_1_may_have_an_identity(kind):
    listener = kind("127.0.0.1", 0)
    with connect(listener.port) as peer:
        peer.sendall(old_frame(b"mine") + old_frame(b"hello"))
        handshake = listener.wait_for_handshake()
        assert (handshake.first, handshake.problem) == ([b"hello"], "")
    listener.close()


@pytest.mark.parametrize("begins", [b"GET / HTTP/1.1\r\n\r\n", GREETING + ready(b"REQ")])
@pytest.mark.parametrize("shared", [False, True])
def test_a_server_names_strangers_and_serves_on(tmp_path, begins, shared, caplog):
    path = tmp_path / "run.sqlite"
    with serving(path, *([] if shared else ["1"])) as port:
        with connect(port) as stranger, suppress(ConnectionError):
            stranger.sendall(begins)
            while stranger.recv(4096):
                pass
        assert play_out(Echo(port)) == 41
    assert outcomes(path) == [("remote", "done")]
    [told] = [record.getMessage() for record in caplog.records]
    assert told.startswith("A program")
    assert "\n" not in told


def test_a_server_names_why_a_learner_is_refused(tmp_path, caplog):
    path = tmp_path / "run.sqlite"
    with serving(path) as port:
        assert [play_out(Echo(port)) for _ in range(2)] == [41, 0]
    assert [record.getMessage() for record in caplog.records] == [
        "A learner was refused: There is no trial left for 'remote'."
    ]


def test_without_the_extra_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "zmq", None)
    with pytest.raises(of.errors.MissingExtra, match=r"The protocol of remote learners needs .*zmq"):
        DOMAIN.wire()


def test_a_learner_that_leaves_and_stays_away_is_gone(tmp_path):
    def script(port):
        peer = hello(port)
        peer.socket.shutdown(socket.SHUT_WR)  # leaves with its hello: there is no moment at which it could be late
        hear_all(peer)

    cell = play_raw(tmp_path, script, reply_seconds=0.3)
    assert cell.outcome == "agent_gone"
    assert "did not come back within 0.3 s" in cell.note


@pytest.mark.slow
def test_a_learner_that_never_reads_is_given_up(tmp_path, monkeypatch):
    def listen(*place):
        listener = known(*place)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        return listener

    def script(port):
        peer = hello(port)
        peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        with peer.socket, suppress(ConnectionError):
            while True:
                peer.socket.sendall(frame(b"x") * 100)

    known = ports.listen
    monkeypatch.setattr(ports, "listen", listen)
    monkeypatch.setattr(line, "UNREAD_SECONDS", 0.2)
    cell = play_raw(tmp_path, script, max_steps=1_000_000)
    assert (cell.outcome, cell.note) == ("agent_timeout", "the learner has read nothing for 0.2 s")


@pytest.fixture(params=[SinglePort, SharedPort])
def listener(request):
    opened = request.param("127.0.0.1", 0)
    yield opened
    opened.close()


def test_who_breaks_off_at_once_does_not_end_the_server(listener):
    with socket.create_connection(("127.0.0.1", listener.port)) as rude:
        rude.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # leaves with a reset
    with hello(listener.port).socket:
        assert listener.wait_for_handshake().first == [b"hello"]


def test_of_those_who_wait_in_silence_the_first_is_hung_up_on(monkeypatch):
    monkeypatch.setattr(ports, "MAX_PEERS", 2)
    listener = SharedPort("127.0.0.1", 0)
    silent = [socket.create_connection(("127.0.0.1", listener.port)) for _ in range(4)]
    with hello(listener.port).socket:
        assert listener.wait_for_handshake().first == [b"hello"]
    for peer in silent[:2]:
        assert peer.recv(4096) == b""
    for peer in silent:
        peer.close()
    listener.close()


def test_of_those_who_never_say_hello_the_first_is_hung_up_on(monkeypatch):
    monkeypatch.setattr(ports, "MAX_PEERS", 2)
    listener = SharedPort("127.0.0.1", 0)
    silent = [RawPeer(listener.port) for _ in range(4)]
    with hello(listener.port).socket:
        assert listener.wait_for_handshake().first == [b"hello"]
    assert [peer.hear() for peer in silent[:2]] == [None, None]
    for peer in silent:
        peer.close()
    listener.close()


def test_a_server_with_a_thousand_files_open_hears_its_callers():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(2_000, hard), hard))
    with ExitStack() as opened:
        for _ in range(1_100):
            opened.enter_context(Path(__file__).open())
        listener = SharedPort("127.0.0.1", 0)
        opened.callback(listener.close)
        with hello(listener.port).socket:
            assert listener.wait_for_handshake().first == [b"hello"]
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_cannot_listen_twice(listener):
    with pytest.raises(InvalidInput, match=r"Cannot listen on .* Another port: --port 0"):
        type(listener)("127.0.0.1", listener.port)


def test_a_closed_port_can_be_opened_again_at_once(listener):
    with hello(listener.port).socket:
        assert listener.wait_for_handshake().first == [b"hello"]
        listener.close()
        again = type(listener)("127.0.0.1", listener.port)
    again.close()


class Echo:
    """A learner that answers each symbol with itself, a step at a time."""

    def __init__(self, port, token=b""):
        self._peer = RawPeer(port)
        self._peer.say(b"hello" + token)
        self.steps = 0

    def step(self):
        """Answers a turn once it is shown; returns whether there was one."""
        with suppress(OSError):
            if (turn := self._peer.hear_turn()) is not None:
                self._peer.say(turn[1])
                self.steps += 1
                return True
        self.close()
        return False

    def hear(self):
        return self._peer.hear()

    def close(self):
        self._peer.close()


def step_all(learners):
    return [learner.step() for learner in learners]


@contextmanager
def serving(path, *options, count=1):
    """Serves CommAI as the command does; gives the port."""
    changes = CommaiServeOptions(learners=int(options[0]) if options else None).prepare()
    trials = of.trials("commai", count, tasks="micro4", max_steps=40, unchanged=0)
    opened, ended = Future(), Future()

    async def serve():
        with Journal(path) as journal:
            pair, dispatcher = DOMAIN.open_dispatcher(journal, trials, Serving("remote", None, changes.serving))
            server = asyncio.create_task(serve_domain(pair, dispatcher, "127.0.0.1", 0, opened.set_result))
            await asyncio.wrap_future(ended)
            server.cancel()
            await asyncio.gather(server, return_exceptions=True)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        yield opened.result(60)
    finally:
        ended.set_result(None)
        thread.join()


def outcomes(path):
    with Run(path) as run:
        return sorted((cell.agent, cell.outcome) for cell in run.cells())


def test_many_learners_play_at_once_on_one_port(tmp_path):
    path = tmp_path / "run.sqlite"
    with serving(path) as port:
        learners = []
        for _ in range(12):
            learners.append(Echo(port))
            assert learners[-1].step(), "it plays while the others wait for their next symbol"
        while any(step_all(learners)):
            pass
        assert {learner.steps for learner in learners} == {41}
    names = ["remote", *(f"remote.{place}" for place in range(2, 13))]
    assert outcomes(path) == sorted((name, "done") for name in names)


def test_learners_with_a_port_each_are_told_apart_by_it(tmp_path):
    path = tmp_path / "run.sqlite"
    with serving(path, "3", count=2) as port:
        for _ in range(2):
            learners = [Echo(port + place) for place in (2, 0, 1)]
            while any(step_all(learners)):
                pass
    assert outcomes(path) == [
        (name, "done") for name in ("remote", "remote", "remote.2", "remote.2", "remote.3", "remote.3")
    ]


def test_a_learner_that_comes_back_goes_on_while_others_play(tmp_path):
    path = tmp_path / "run.sqlite"
    with serving(path) as port:
        first, second = Echo(port), Echo(port)
        for _ in range(5):
            assert first.step()
            assert second.step()
        first.close()
        again = Echo(port)
        while again.step():
            pass
        assert again.steps == 36
        while second.step():
            pass
    assert outcomes(path) == [("remote", "done"), ("remote.2", "done")]
    with Run(path) as run:
        assert {cell.attempt for cell in run.cells()} == {1}


def play_out(learner):
    while learner.step():
        pass
    return learner.steps


@pytest.mark.parametrize("shared", [False, True])
def test_a_task_that_fails_is_recorded_and_the_server_says_nothing_else(tmp_path, monkeypatch, caplog, shared):
    def fail(world, reply):
        raise ValueError("a task of a user")

    path = tmp_path / "run.sqlite"
    monkeypatch.setattr(CommaiWorld, "step", fail)
    with serving(path, *([] if shared else ["1"])) as port:
        assert play_out(Echo(port)) == 1
    gc.collect()  # errors that nobody has asked for are told now
    assert outcomes(path) == [("remote", "world_error")]
    assert caplog.records == []


class LeavingLine:
    """A line whose learner repeats each symbol, and leaves at a turn."""

    closing = False

    def __init__(self, leaves_at):
        self.using, self.shown, self._leaves_at = threading.Lock(), [], leaves_at

    def send(self, reward, symbol):
        if len(self.shown) == self._leaves_at:
            raise EOFError
        self.shown.append(symbol)

    def receive(self):
        return [self.shown[-1]]


@pytest.mark.parametrize(("leaves_at", "is_over"), [(40, True), (39, False)])
def test_who_leaves_without_reading_the_last_turn_has_finished_the_trial(leaves_at, is_over):
    trial = of.trials("commai", 1, tasks="micro4", max_steps=40, unchanged=0)[0]
    remote = RemoteRollout(Rollout(DOMAIN.world(trial)), BYTES, 1)
    assert wire.converse(Handshake(LeavingLine(leaves_at), [b"hello"]), remote)
    assert remote.rollout.over == is_over
    if not is_over:
        assert not wire.converse(Handshake(again := LeavingLine(99), [b"hello"]), remote)
        assert len(again.shown) == 2, "the turn it has not read, and the last one"


def test_a_learner_that_has_trials_left_gets_them_though_another_has_none(tmp_path):
    path = tmp_path / "run.sqlite"
    with serving(path, count=2) as port:
        first, second = Echo(port), Echo(port)
        assert all(step_all([first, second]))
        assert play_out(first) == 41
        assert play_out(Echo(port)) == 41, "the second trial of the first learner"
        assert play_out(second) == 41
        assert play_out(Echo(port)) == 41, "the second trial of the second learner"
        assert play_out(Echo(port)) == 0, "all trials are played"
    assert outcomes(path) == [("remote", "done")] * 2 + [("remote.2", "done")] * 2


def test_a_learner_that_says_nothing_for_an_hour_is_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr(wire, "FORGET_SECONDS", 0.3)
    path = tmp_path / "run.sqlite"
    trials = change_limits(of.trials("commai", 1, tasks="micro4", max_steps=40, unchanged=0), {"reply_seconds": None})
    monkeypatch.setattr(of, "trials", lambda *_, **__: trials)
    with serving(path) as port:
        silent = Echo(port)
        assert silent.step()
        while silent.hear():
            pass
        silent.close()
        monkeypatch.setattr(wire, "FORGET_SECONDS", 3_600.0)
        again = connect_again(port)
        while again.step():
            pass
        assert again.steps == 40
    assert outcomes(path) == [("remote", "done")]


def connect_again(port):
    """Connect a learner as libzmq does: anew as long as the port still closes an earlier connection."""
    while True:
        with suppress(ConnectionError):
            return Echo(port)


def test_a_message_larger_than_any_learners_is_refused(listener):
    with hello(listener.port).socket as peer:
        assert listener.wait_for_handshake().first == [b"hello"]
        with suppress(ConnectionError):
            peer.sendall(frame(b"x" * 70_000))
            while peer.recv(4096):
                pass
