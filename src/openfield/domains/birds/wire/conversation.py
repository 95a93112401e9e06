"""The meaning of every request, without input or output.

A request becomes commands to the world and queries of it, and in the end the bytes of the reply. The server executes
the commands and queries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from typing import Any, NamedTuple

import msgspec

from openfield.core import Ask, Belief, Turn
from openfield.domains.birds.actions import MAX_FRAMES, Load, Restart, Shot, Stay, Wait, Watch, Zoom
from openfield.domains.birds.harness import SET_STATES, HarnessState
from openfield.domains.birds.wire import messages as protocol
from openfield.domains.birds.wire.messages import Request

MAX_SPEED, MIN_SPEED = 50.0, 1e-5
MIN_WAIT = 0.5
"""Simulated seconds that pass at least between two looks at moving bodies, unless the agent slows the game down."""
MAX_WAIT = 30.0
MIN_STEP = 0.1
"""Simulated seconds; less time is saved up and not simulated yet."""


class WireCommand(NamedTuple):
    """An action, a belief, or both; the server answers with a `CommandResult`."""

    action: Any = None
    belief: Belief | None = None


class CommandResult(NamedTuple):
    """The result of a command."""

    result: int = 0
    """1 or 0, or the number of the level that was loaded."""
    frames: list[Any] = []
    """The ground truths recorded meanwhile."""


Answering = Generator[WireCommand | str, Any, bytes]
"""Yields commands and the names of queries, is sent the result of each, and returns the bytes of the reply."""


class Conversation:
    """Answers the requests of one agent."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        """The current turn; the server updates it after every command."""
        self._speed = 1.0
        self._unspent = 0.0  # simulated seconds that passed for the agent but not yet in the level

    def answer(self, request: Request, elapsed: float = 0.0, silent: float = 0.0) -> Answering:
        """Answer a request that came some seconds after the last request of the agent, and after its last action.

        Looking is not an action, but takes the agent's time.
        """
        if self.turn.ask is not Ask.BELIEF and silent >= (yield "seconds left"):
            yield WireCommand() if self.turn.ask is Ask.NONE else WireCommand(msgspec.to_builtins(Stay()))
        if self.turn.ask is Ask.NONE and (yield from self._goes_on(request)):
            yield WireCommand()
        self._unspent += elapsed * self._speed
        if request.code not in _WITHOUT_TIME:
            yield from self._pass_time(MIN_WAIT * min(1.0, self._speed))
        return (yield from _ANSWERS[request.code](self, *request.fields))

    def observe(self, request: Request) -> Answering:
        """Answer an observer; no time passes, because the time is the agent's own."""
        return _ANSWERS[request.code](self, *request.fields)

    def configure(self, team: int, mode: int) -> Answering:
        """Answer 1 with three bytes; some documents say four."""
        levels = yield "levels"
        facts = yield "set"
        minutes = max(0, facts["seconds"]) // 60
        return bytes((0, 0, 0)) if mode == 1 else bytes((0, min(minutes, 255), min(levels, 255)))

    def set_speed(self, speed: int) -> Answering:
        """Answer 2: set how fast simulated time passes after a fast shot. Everything else runs as fast as possible."""
        self._speed = min(float(speed), MAX_SPEED) or MIN_SPEED
        return protocol.flag(True)
        yield  # makes it a generator, as all answers are

    def shoot(self, x: int, y: int, _: int, tap: int, fast: bool = False) -> Answering:
        """Answer 31 and 41: pull the bird to a pixel and let go."""
        return protocol.flag((yield from self._command(Shot(x, y, max(0, tap), fast))).result)

    def shoot_polar(self, theta: int, radius: int, _: int, tap: int, fast: bool = False) -> Answering:
        """Answer 32 and 42: shoot by degrees above the horizon and pixels of pull."""
        x, y = yield "rest"
        angle = math.radians(theta)
        shot = Shot(x - radius * math.cos(angle), y + radius * math.sin(angle), max(0, tap), fast)
        return protocol.flag((yield from self._command(shot)).result)

    def shoot_sequence(self, *shots: tuple[int, ...], fast: bool = False) -> Answering:
        """Answer 33 and 43: shoot several birds. Each shot has a focus, an offset from it, and two times."""
        replies = b""
        for kind, fx, fy, dx, dy, t1, t2 in shots:
            while replies and self.turn.ask is Ask.ACT and not (yield "bird ready") and (yield "moving"):
                yield WireCommand(msgspec.to_builtins(Wait(MIN_WAIT)))
            if kind in (31, 41):
                replies += yield from self.shoot(fx + dx, fy + dy, t1, t2, fast)
            else:
                replies += yield from self.shoot_polar(dx, dy, t1, t2, fast)
        return replies

    def shoot_and_watch(self, x: int, y: int, _: int, tap: int, every: int, option: int = 0) -> Answering:
        """Answer 38: shoot, and return the ground truth at an interval of steps."""
        done = yield from self._command(Shot(x, y, max(0, tap), False, max(1, every), option == 1))
        return protocol.ground_truths(done.frames if done.result else [])

    def zoom(self, way: str) -> Answering:
        """Answer 34 and 35: zoom."""
        return protocol.flag((yield from self._command(Zoom("in" if way == "in" else "out"))).result)

    def click(self) -> Answering:
        """Answer 36: there is nothing to click."""
        return protocol.flag(True)
        yield  # makes it a generator, as all answers are

    def load(self, level: int) -> Answering:
        """Answer 51: load a level by its number."""
        return protocol.flag(level > 0 and (yield from self._command(Load(level))).result)

    def load_next(self) -> Answering:
        """Answer 53: load the next available level and return its number, or 0."""
        return protocol.number((yield from self._command(Load())).result)

    def restart(self) -> Answering:
        """Answer 52: load the level again."""
        return protocol.flag((yield from self._command(Restart())).result)

    def ground_truth_and_picture(self, query: str) -> Answering:
        """Answer 61 and 63 with a ground truth and a screenshot."""
        truth = protocol.encode_ground_truth((yield query))
        return truth + protocol.image((yield "screenshot"))

    def report(self, novel: float, normal: float, objects: tuple[int, ...], level: int, text: str) -> Answering:
        """Answer 66: take the belief of the agent. It answers state 12 and may come at any time."""
        if self.turn.ask is Ask.READY and self.turn.observation["begins"] == "trial":
            # the last trial is over, and of this one the agent knows nothing yet
            return (yield from self.describe(text))
        detail = {"not_novel": _plain(normal), "objects": list(objects), "text": text}
        waits = self.turn.ask in (Ask.READY, Ask.NONE)  # a report after the end of a level belongs to that level
        belief = Belief(min(1.0, max(0.0, _plain(novel))), level, detail)
        yield WireCommand(msgspec.to_builtins(Stay()) if waits else None, belief)
        return protocol.flag(True)

    def describe(self, text: str) -> Answering:
        """Answer 67: record the agent's words; they are not a belief."""
        if self.turn.ask is Ask.BELIEF:
            return protocol.flag(False)
        yield WireCommand(msgspec.to_builtins(Stay(text)))
        return protocol.flag(True)

    def ready(self) -> Answering:
        """Answer 68: begin the announced set; in any other state only return the facts of the current set."""
        if self._announces_set:
            yield WireCommand()
        return protocol.set_facts((yield "set"))

    def watch(self, every: int, frames: int) -> Answering:
        """Answer 70: let time pass and return some ground truths; outside a level one of the last level, as it is."""
        count = max(0, min(frames, MAX_FRAMES))
        if self.turn.ask is not Ask.ACT:
            return protocol.ground_truths((yield "batch")[:count])
        action = Watch(max(1, every), count)
        done: CommandResult = yield WireCommand(msgspec.to_builtins(action))
        return protocol.ground_truths(done.frames)

    def hint(self, level: int) -> Answering:
        """Answer 72: return a hint on the novelty if the trial grants it; else an empty object."""
        hint = yield "hint"
        return protocol.text(msgspec.json.encode({"level": level, "hint": hint} if hint else {}))

    def _goes_on(self, request: Request) -> Generator[WireCommand | str, Any, bool]:
        """Return whether a request leaves a level that has ended; a refused request does not."""
        if request.code == 51:
            return request.fields[0] in (yield "open levels")
        if request.code == 68:
            return (yield "state") in (HarnessState.NEW_TRIAL, *SET_STATES)
        return request.code == 53 or (request.code == 52 and (yield "may restart"))

    def _pass_time(self, least: float = 0.0) -> Generator[WireCommand | str, Any, None]:
        """Let the agent's time pass in the level, if anything moves there."""
        if self.turn.ask is not Ask.ACT or not (yield "moving"):
            self._unspent = 0.0
        elif (wait := max(least, self._unspent)) >= MIN_STEP:
            self._unspent = 0.0
            yield WireCommand(msgspec.to_builtins(Wait(min(MAX_WAIT, wait))))

    @property
    def _announces_set(self) -> bool:
        return self.turn.ask is Ask.READY and self.turn.observation["begins"] != "level"

    def _command(self, action: Any) -> Generator[WireCommand | str, Any, CommandResult]:
        """Send an action where it is possible, and return its result; an empty result where it is not."""
        chooses = isinstance(action, Load | Restart)
        between = self.turn.ask is Ask.READY and not self._announces_set
        if not (self.turn.ask is Ask.ACT or (chooses and between)):
            return CommandResult()
        if isinstance(action, Shot) and not (yield "bird ready"):
            yield from self._pass_time()
            if not (yield "bird ready"):
                return CommandResult()
        self._unspent = 0.0
        done: CommandResult = yield WireCommand(msgspec.to_builtins(action))
        return done


def _plain(share: float) -> float:
    """Return the number that an agent meant: 0.3 arrives as 0.30000001192092896, because it is sent in four bytes."""
    return float(f"{share:.7g}") if math.isfinite(share) else 0.0


def _read(query: str, encode: Callable[[Any], bytes]) -> Callable[[Conversation], Answering]:
    """Return a function that answers with one query."""

    def answer(_: Conversation) -> Answering:
        return encode((yield query))

    return answer


_WITHOUT_TIME = (1, 2, 31, 32, 33, 36, 38, 41, 42, 43, 66, 67, 68, 70, 71, 72)
"""Requests that do not look at the level as it is now, so no time has to pass before them."""
_ANSWERS: dict[int, Callable[..., Answering]] = {
    1: Conversation.configure,
    2: Conversation.set_speed,
    11: _read("screenshot", protocol.image),
    12: _read("state", lambda state: bytes((state,))),
    13: _read("scores", protocol.numbers),
    14: _read("level", protocol.number),
    15: _read("levels", protocol.number),
    23: _read("scores", protocol.numbers),
    31: Conversation.shoot,
    32: Conversation.shoot_polar,
    33: Conversation.shoot_sequence,
    34: lambda conversation: conversation.zoom("out"),
    35: lambda conversation: conversation.zoom("in"),
    36: Conversation.click,
    38: Conversation.shoot_and_watch,
    41: lambda conversation, *fields: conversation.shoot(*fields, fast=True),
    42: lambda conversation, *fields: conversation.shoot_polar(*fields, fast=True),
    43: lambda conversation, *fields: conversation.shoot_sequence(*fields, fast=True),
    51: Conversation.load,
    52: Conversation.restart,
    53: Conversation.load_next,
    61: lambda conversation: conversation.ground_truth_and_picture("ground truth"),
    62: _read("ground truth", protocol.encode_ground_truth),
    63: lambda conversation: conversation.ground_truth_and_picture("noisy ground truth"),
    64: _read("noisy ground truth", protocol.encode_ground_truth),
    65: _read("score", protocol.number),
    66: Conversation.report,
    67: Conversation.describe,
    68: Conversation.ready,
    69: _read("novelty info", lambda info: info.to_bytes(4, "big", signed=True)),
    70: Conversation.watch,
    71: _read("initial screenshot", protocol.image),
    72: Conversation.hint,
}
