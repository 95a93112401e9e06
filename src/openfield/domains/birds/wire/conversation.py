"""What each request of an agent means, without any input or output.

Stands between protocol and wire: a request becomes things to do and to look at, and in the end the bytes of the reply.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from typing import Any, NamedTuple

import msgspec

from openfield.core import Ask, Belief, Turn
from openfield.domains.birds.actions import MAX_FRAMES, Load, Restart, Shot, Stay, Wait, Watch, Zoom
from openfield.domains.birds.evaluation.harness import SET_STATES, HarnessState
from openfield.domains.birds.wire import messages as protocol
from openfield.domains.birds.wire.messages import Request

MAX_SPEED, MIN_SPEED = 50.0, 1e-5
MIN_WAIT = 0.5
"""Simulated seconds; what passes at least between two looks at moving things, unless the agent slows them down."""
MAX_WAIT = 30.0
MIN_STEP = 0.1
"""Simulated seconds; the level goes on in steps of this length."""
OBSERVER_CODES = (1, 11, 61, 62, 63, 64)


class Command(NamedTuple):
    """An action to take, a belief to say, or both; answered with what came of it."""

    action: Any = None
    belief: Belief | None = None


class CommandResult(NamedTuple):
    """What came of it."""

    result: int = 0
    """1 or 0, or the number of the level that was loaded."""
    frames: list[Any] = []
    """The ground truths that were kept meanwhile."""


class Query(NamedTuple):
    """Something to look at; answered with what is seen."""

    query: str


Answering = Generator[Command | Query, Any, bytes]


class Conversation:
    """What an agent says, and what it is told."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        """What the world shows now; whoever drives the conversation keeps it fresh."""
        self._speed = 1.0
        self._unspent = 0.0  # simulated seconds that passed on the agent's side and not yet in the level

    def answer(self, request: Request, elapsed: float = 0.0, silent: float = 0.0) -> Answering:
        """Answers a request.

        Args:
            request: What the agent says.
            elapsed: How long ago, in seconds, its last request was.
            silent: How long ago it last did something; looking is not doing, but takes its time.
        """
        if self.turn.ask is not Ask.BELIEF and silent >= (yield Query("seconds left")):
            yield Command() if self.turn.ask is Ask.NONE else Command(msgspec.to_builtins(Stay()))
        if self.turn.ask is Ask.NONE and (yield from self._goes_on(request)):
            yield Command()
        self._unspent += elapsed * self._speed
        if request.code not in _QUIET:
            yield from self._pass_time(MIN_WAIT * min(1.0, self._speed))
        return (yield from _ANSWERS[request.code](self, *request.fields))

    def observe(self, request: Request) -> Answering:
        """Answers an observer, for whom no time passes and nothing is done: the time is the agent's own."""
        return _ANSWERS[request.code](self, *request.fields)

    def configure(self, team: int, mode: int) -> Answering:
        """1: three bytes, not four as some documents say."""
        levels = yield Query("levels")
        facts = yield Query("set")
        minutes = max(0, facts["seconds"]) // 60
        return bytes((0, 0, 0)) if mode == 1 else bytes((0, min(minutes, 255), min(levels, 255)))

    def set_speed(self, speed: int) -> Answering:
        """2: how fast simulated time passes after a fast shot; all else is as fast as can be."""
        self._speed = min(float(speed), MAX_SPEED) or MIN_SPEED
        return protocol.flag(True)
        yield  # which makes it a generator, as all answers are

    def picture(self) -> Answering:
        """11: a screenshot."""
        return protocol.image((yield Query("screenshot")))

    def state(self) -> Answering:
        """12: the state."""
        return bytes(((yield Query("state")),))

    def scores(self) -> Answering:
        """13, 23: the best score of each level."""
        return protocol.numbers((yield Query("scores")))

    def level(self) -> Answering:
        """14: the current level, from 1 on."""
        return protocol.number((yield Query("level")))

    def levels(self) -> Answering:
        """15: how many there are in the set."""
        return protocol.number((yield Query("levels")))

    def shoot(self, x: int, y: int, _: int, tap: int, fast: bool = False) -> Answering:
        """31, 41: pull to a pixel and let go."""
        return protocol.flag((yield from self._command(Shot(x, y, max(0, tap), fast))).result)

    def shoot_polar(self, theta: int, radius: int, _: int, tap: int, fast: bool = False) -> Answering:
        """32, 42: degrees above the horizon, and pixels of pull."""
        x, y = yield Query("rest")
        angle = math.radians(theta)
        shot = Shot(x - radius * math.cos(angle), y + radius * math.sin(angle), max(0, tap), fast)
        return protocol.flag((yield from self._command(shot)).result)

    def shoot_sequence(self, *shots: tuple[int, ...], fast: bool = False) -> Answering:
        """33, 43: several shots, a bird each; their numbers are a focus, an offset from it, and two times."""
        replies = b""
        for kind, fx, fy, dx, dy, t1, t2 in shots:
            while replies and self.turn.ask is Ask.ACT and not (yield Query("bird ready")) and (yield Query("moving")):
                yield Command(msgspec.to_builtins(Wait(MIN_WAIT)))
            if kind in (31, 41):
                replies += yield from self.shoot(fx + dx, fy + dy, t1, t2, fast)
            else:
                replies += yield from self.shoot_polar(dx, dy, t1, t2, fast)
        return replies

    def shoot_and_watch(self, x: int, y: int, _: int, tap: int, every: int, option: int = 0) -> Answering:
        """38: a shot, and the ground truth of every so many steps of it."""
        done = yield from self._command(Shot(x, y, max(0, tap), False, max(1, every), option == 1))
        return protocol.ground_truths(done.frames if done.result else [])

    def zoom(self, way: str) -> Answering:
        """34, 35: the camera."""
        return protocol.flag((yield from self._command(Zoom("in" if way == "in" else "out"))).result)

    def click(self) -> Answering:
        """36: nothing is there to be clicked."""
        return protocol.flag(True)
        yield  # which makes it a generator, as all answers are

    def load(self, level: int) -> Answering:
        """51: a level by its number."""
        return protocol.flag(level > 0 and (yield from self._command(Load(level))).result)

    def load_next(self) -> Answering:
        """53: the next available level; its number, or 0."""
        return protocol.number((yield from self._command(Load())).result)

    def restart(self) -> Answering:
        """52: the level again."""
        return protocol.flag((yield from self._command(Restart())).result)

    def ground_truth(self, query: str, picture: bool) -> Answering:
        """61 to 64: what is where, with or without a screenshot."""
        block = protocol.ground_truth((yield Query(query)))
        return block + protocol.image((yield Query("screenshot"))) if picture else block

    def score(self) -> Answering:
        """65: the score of the level."""
        return protocol.number((yield Query("score")))

    def report(self, novel: float, normal: float, objects: tuple[int, ...], level: int, text: str) -> Answering:
        """66: what the agent thinks; this answers the question of state 12, and is welcome at any time."""
        if self.turn.ask is Ask.READY and self.turn.observation["begins"] == "trial":
            return (yield from self.describe(text))  # the trial before is over, of this one nothing is known yet
        detail = {"not_novel": _plain(normal), "objects": list(objects), "text": text}
        waits = self.turn.ask in (Ask.READY, Ask.NONE)  # what is said of a level that has ended is part of it
        belief = Belief(min(1.0, max(0.0, _plain(novel))), level, detail)
        yield Command(msgspec.to_builtins(Stay()) if waits else None, belief)
        return protocol.flag(True)

    def describe(self, text: str) -> Answering:
        """67: what the agent has to say beyond that; it is on record, and says nothing of how likely anything is."""
        if self.turn.ask is Ask.BELIEF:
            return protocol.flag(False)
        yield Command(msgspec.to_builtins(Stay(text)))
        return protocol.flag(True)

    def ready(self) -> Answering:
        """68: on with what was announced; in any other state only what is on is told."""
        if self._announces_set:
            yield Command()
        return protocol.set_facts((yield Query("set")))

    def novelty_info(self) -> Answering:
        """69: -1 if it may not be told, else whether the level is novel."""
        info: int = yield Query("novelty info")
        return info.to_bytes(4, "big", signed=True)

    def watch(self, every: int, frames: int) -> Answering:
        """70: some ground truths while time passes."""
        if self.turn.ask is not Ask.ACT:
            return protocol.ground_truths([])
        done: CommandResult = yield Command(msgspec.to_builtins(Watch(max(1, every), max(0, min(frames, MAX_FRAMES)))))
        return protocol.ground_truths(done.frames)

    def initial_picture(self) -> Answering:
        """71: the level as it was loaded."""
        return protocol.image((yield Query("initial screenshot")))

    def hint(self, level: int) -> Answering:
        """72: what is novel, in words, where the agent may be told; else an empty object."""
        hint = yield Query("hint")
        return protocol.text(msgspec.json.encode({"level": level, "hint": hint} if hint else {}))

    def _goes_on(self, request: Request) -> Generator[Command | Query, Any, bool]:
        """Whether a request leaves a level that has ended: one that is refused does not."""
        if request.code == 51:
            return request.fields[0] in (yield Query("open levels"))
        if request.code == 68:
            return (yield Query("state")) in (HarnessState.NEW_TRIAL, *SET_STATES)
        return request.code == 53 or (request.code == 52 and (yield Query("may restart")))

    def _pass_time(self, least: float = 0.0) -> Generator[Command | Query, Any, None]:
        """Lets pass in the level what has passed on the agent's side, where anything moves there."""
        if self.turn.ask is not Ask.ACT or not (yield Query("moving")):
            self._unspent = 0.0
        elif (wait := max(least, self._unspent)) >= MIN_STEP:
            self._unspent = 0.0
            yield Command(msgspec.to_builtins(Wait(min(MAX_WAIT, wait))))

    @property
    def _announces_set(self) -> bool:
        return self.turn.ask is Ask.READY and self.turn.observation["begins"] != "level"

    def _command(self, action: Any) -> Generator[Command | Query, Any, CommandResult]:
        """Does something where it can be done, and says what came of it; nothing where it cannot."""
        chooses = isinstance(action, Load | Restart)
        between = self.turn.ask is Ask.READY and not self._announces_set
        if not (self.turn.ask is Ask.ACT or (chooses and between)):
            return CommandResult()
        if isinstance(action, Shot) and not (yield Query("bird ready")):
            yield from self._pass_time()
            if not (yield Query("bird ready")):
                return CommandResult()
        self._unspent = 0.0
        done: CommandResult = yield Command(msgspec.to_builtins(action))
        return done


def _plain(share: float) -> float:
    """The number an agent meant: 0.3 comes as 0.30000001192092896, which is all that four bytes can hold."""
    return float(f"{share:.7g}") if math.isfinite(share) else 0.0


_QUIET = (1, 2, 31, 32, 33, 36, 38, 41, 42, 43, 66, 67, 68, 70, 71, 72)
"""Requests that are no look at the level, so that no time has to pass before them."""
_ANSWERS: dict[int, Callable[..., Answering]] = {
    1: Conversation.configure,
    2: Conversation.set_speed,
    11: Conversation.picture,
    12: Conversation.state,
    13: Conversation.scores,
    14: Conversation.level,
    15: Conversation.levels,
    23: Conversation.scores,
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
    61: lambda conversation: conversation.ground_truth("ground truth", True),
    62: lambda conversation: conversation.ground_truth("ground truth", False),
    63: lambda conversation: conversation.ground_truth("noisy ground truth", True),
    64: lambda conversation: conversation.ground_truth("noisy ground truth", False),
    65: Conversation.score,
    66: Conversation.report,
    67: Conversation.describe,
    68: Conversation.ready,
    69: Conversation.novelty_info,
    70: Conversation.watch,
    71: Conversation.initial_picture,
    72: Conversation.hint,
}
