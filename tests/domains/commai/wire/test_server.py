"""The wire: its codec, and real ZeroMQ learners in other processes, good and bad."""

import asyncio
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
from openfield.domains.commai.wire import server as wire
from openfield.domains.commai.wire.server import Codec, PairWire, hello_token, is_hello
from openfield.domains.commai.wire.zmtp import GREETING, encode_command, encode_frame
from openfield.errors import AgentProtocol
from openfield.journal.reader import Run
from openfield.journal.writer import Journal
from openfield.runner.experiment import limit
from openfield.serving.dispatch import TrialDispatcher, serve_domain
from openfield.serving.wire import Serving
from support.places import SUPPORT

PEER = SUPPORT / "commai" / "peer.py"
BYTES = of.Spec(domain="commai", task="", actions=of.Discrete(256))
BITS = of.Spec(domain="commai", task="", actions=of.Discrete(2))
READY = encode_command(b"READY", b"\x0bSocket-Type\0\0\0\4PAIR\x08Identity\0\0\0\0")


@pytest.mark.parametrize(("reward", "text"), [(0.0, b"0"), (1.0, b"1"), (-1.0, b"-1")])
def test_a_turn_is_two_messages(reward, text):
    assert Codec(BYTES).encode(Turn(observation=97, reward=reward)) == encode_frame(text) + b"\x00\x01a"
    assert Codec(BITS).encode(Turn(observation=1, reward=reward)) == encode_frame(text) + b"\x00\x011"


def test_bytes_beyond_ascii_take_two_octets():
    assert Codec(BYTES).encode(Turn(observation=233)) == b"\x00\x010" + b"\x00\x02\xc3\xa9"
    assert Codec(BYTES).read(["é".encode()]) == Reply(233)


@given(st.integers(0, 255))
def test_what_is_shown_can_be_answered_with_itself(code):
    codec = Codec(BYTES)
    assert codec.plain[codec.encode(Turn(observation=code))[3:]] == Reply(code)


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
    pytest.importorskip("zmq", reason="pyzmq is not installed")
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
    pytest.importorskip("zmq", reason="pyzmq is not installed")
    trials = limit(of.trials("commai", 1, tasks="micro5.3", max_steps=400, unchanged=0), {"reply_seconds": 0.3})
    result = of.run([f"wire:{sys.executable} {PEER} {{port}} hangs"], trials, tmp_path / "run.sqlite")
    assert result.cells[0].outcome == "agent_timeout"


def test_a_new_hello_goes_on_with_the_trial_and_the_next_one_starts_the_next(tmp_path):
    pytest.importorskip("zmq", reason="pyzmq is not installed")
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
    trials = limit(of.trials("commai", 1, tasks="micro4", max_steps=max_steps, unchanged=0), limits)
    peer = threading.Thread(target=script, args=(port,))
    peer.start()
    result = of.run([f"wire:@127.0.0.1:{port}"], trials, tmp_path / "run.sqlite")
    peer.join()
    return result.cells[0]


def call(port, *frames):
    """A connection of ZeroMQ's protocol, as soon as somebody listens, that has said this."""
    while True:
        try:
            peer = socket.create_connection(("127.0.0.1", port))
        except ConnectionRefusedError:
            continue
        peer.sendall(GREETING + READY + b"".join(frames))
        return peer


def see_turn(peer):
    """Waits until the first turn was shown: a reward of 0, and a symbol."""
    seen = b""
    while b"\x00\x010\x00\x01" not in seen:
        seen += peer.recv(4096)
    return peer


def hang_up_when_dropped(peer):
    with peer, suppress(ConnectionError):
        while peer.recv(4096):
            pass


def test_what_comes_with_the_hello_is_heard(tmp_path):
    said = encode_frame(b"x") * 61
    cell = play_raw(tmp_path, lambda port: hang_up_when_dropped(call(port, encode_frame(b"hello"), said)))
    assert (cell.outcome, cell.steps) == ("done", 62)
    with Run(tmp_path / "run.sqlite") as run:
        replies = [step.reply.action for step in run.steps(cell.id, cell.attempt) if step.reply]
    assert replies[:-1] == [ord("x")] * 60


def test_a_message_of_two_frames_is_no_symbol_however_it_arrives(tmp_path, monkeypatch):
    arrived, known = threading.Event(), wire.PairListener._receive

    def receive(listener, *args):
        data = known(listener, *args)
        arrived.set()
        return data

    def script(port):
        peer = see_turn(call(port, encode_frame(b"hello")))
        peer.sendall(encode_frame(b"a", more=True))
        arrived.wait()
        peer.sendall(encode_frame(b"b"))
        hang_up_when_dropped(peer)

    monkeypatch.setattr(wire.PairListener, "_receive", receive)
    cell = play_raw(tmp_path, script)
    assert cell.outcome == "agent_protocol"
    assert "b'a | b'" in cell.note


def test_a_belated_answer_to_another_conversation_is_let_pass(tmp_path):
    said = encode_frame(b"y") + encode_frame(b"hello") + encode_frame(b"x") * 61
    assert play_raw(tmp_path, lambda port: hang_up_when_dropped(call(port, said))).outcome == "done"


def test_a_learner_that_leaves_and_stays_away_is_gone(tmp_path):
    def script(port):
        peer = call(port, encode_frame(b"hello"))
        peer.shutdown(socket.SHUT_WR)  # leaves with its hello: there is no moment at which it could be late instead
        hang_up_when_dropped(peer)

    cell = play_raw(tmp_path, script, reply_seconds=0.3)
    assert cell.outcome == "agent_gone"
    assert "did not come back within 0.3 s" in cell.note


@pytest.mark.slow
def test_a_learner_that_never_reads_is_given_up(tmp_path, monkeypatch):
    def listen(listener, *place):
        known(listener, *place)
        listener._listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)

    def script(port):
        peer = call(port, encode_frame(b"hello"))
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        with peer, suppress(ConnectionError):
            while True:
                peer.sendall(encode_frame(b"x") * 100)

    known = wire.PairListener.__init__
    monkeypatch.setattr(wire.PairListener, "__init__", listen)
    monkeypatch.setattr(wire, "UNREAD_SECONDS", 0.2)
    cell = play_raw(tmp_path, script, max_steps=1_000_000)
    assert (cell.outcome, cell.note) == ("agent_timeout", "the learner has read nothing for 0.2 s")


@pytest.fixture
def listener():
    opened = wire.PairListener("127.0.0.1", 0)
    yield opened
    opened.close()


def test_who_breaks_off_at_once_does_not_end_the_server(listener):
    with socket.create_connection(("127.0.0.1", listener.port)) as rude:
        rude.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # leaves with a reset
    with call(listener.port, encode_frame(b"hello")):
        assert listener.wait_for_handshake().first == [b"hello"]


def test_of_those_who_wait_in_silence_the_first_is_hung_up_on(listener, monkeypatch):
    monkeypatch.setattr(wire, "MAX_PEERS", 2)
    silent = [socket.create_connection(("127.0.0.1", listener.port)) for _ in range(4)]
    with call(listener.port, encode_frame(b"hello")):
        assert listener.wait_for_handshake().first == [b"hello"]
    for peer in silent[:2]:
        assert b"".join(iter(lambda peer=peer: peer.recv(4096), b"")) == GREETING
    for peer in silent:
        peer.close()


def test_a_server_with_a_thousand_files_open_hears_its_callers():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(2_000, hard), hard))
    with ExitStack() as opened:
        for _ in range(1_100):
            opened.enter_context(Path(__file__).open())
        listener = wire.PairListener("127.0.0.1", 0)
        opened.callback(listener.close)
        with call(listener.port, encode_frame(b"hello")):
            assert listener.wait_for_handshake().first == [b"hello"]
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_cannot_listen_twice(tmp_path):
    from openfield.domains.commai.wire.server import PairListener
    from openfield.errors import InvalidInput

    listener = PairListener("127.0.0.1", 0)
    with pytest.raises(InvalidInput, match=r"Cannot listen on .* Another port: --port 0"):
        PairListener("127.0.0.1", listener.port)
    listener.close()


class Echo:
    """A learner that answers each symbol with itself, a step at a time."""

    def __init__(self, port, token=b""):
        self._peer = call(port, encode_frame(b"hello" + token))
        self._connection, self._heard = wire.Connection(), []
        self.steps = 0

    def step(self):
        """Answers a turn once it is shown; returns whether there was one."""
        with suppress(ConnectionError):
            while len(self._heard) < 2 and (data := self.hear()):
                self._heard += self._connection.feed(data)
            if len(self._heard) >= 2:
                (_, [symbol]), self._heard = self._heard[:2], self._heard[2:]
                self._peer.sendall(encode_frame(symbol))
                self.steps += 1
                return True
        self.close()
        return False

    def hear(self):
        return b"" if self._peer.fileno() < 0 else self._peer.recv(4096)

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
    monkeypatch.setattr(wire, "POLL_SECONDS", 0.1)
    path = tmp_path / "run.sqlite"
    trials = limit(of.trials("commai", 1, tasks="micro4", max_steps=40, unchanged=0), {"reply_seconds": None})
    monkeypatch.setattr(of, "trials", lambda *_, **__: trials)
    with serving(path) as port:
        silent = Echo(port)
        assert silent.step()
        while silent.hear():
            pass
        silent.close()
        again = Echo(port)
        while again.step():
            pass
        assert again.steps == 40
    assert outcomes(path) == [("remote", "done")]


def test_a_message_larger_than_any_learners_is_refused():
    frames = b"".join(encode_frame(b"x" * 60_000, more=True) for _ in range(2))
    with pytest.raises(AgentProtocol, match="a message of more than 65536 bytes"):
        list(wire.Connection().feed(GREETING + READY + frames))
