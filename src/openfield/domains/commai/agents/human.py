"""A person as a learner, asked at every pause, at every dot, or at every step, and the terminal they look at.

`openfield play commai` and the human learners of the original use it. What the person types is said symbol by symbol
and recorded like any learner's answers. A view shows teacher, learner and rewards as three streams, printed or on the
whole screen. `WatchedLearner` is the original's ConsoleView and `--time-delay` for learners that are programs.
"""

from __future__ import annotations

import curses
import re
import shutil
import sys
import time
from collections import deque
from contextlib import suppress
from typing import Any, Literal, TextIO

from openfield.agents.belief_question import BELIEF_QUESTION, asks_belief
from openfield.core import Agent, AgentFactory, Ask, AskMoment, Belief, Reply, Spec, Turn
from openfield.domains.commai.agents.learner_agent import REPLIES
from openfield.domains.commai.environment.serializers import SPACE_BITS, BitReader, speaks_bits, to_bits
from openfield.domains.commai.world import SKIP
from openfield.errors import Cancelled
from openfield.registry import AgentSource, find_agent, find_domain

HELP = "Type what to say; an empty line is silence. SKIP gives up this exercise, QUIT leaves (and can be resumed)."
_KEPT = 500
_REWARD_SIGNS = {1: "+", -1: "-"}


class Streams:
    """The last symbols of teacher and learner, and the rewards between them."""

    def __init__(self) -> None:
        self.teacher: deque[str] = deque(maxlen=_KEPT)
        self.learner: deque[str] = deque(maxlen=_KEPT)
        self.rewards: deque[str] = deque(maxlen=_KEPT)
        self.total = self.steps = 0
        self.map = ""

    def hear(self, symbol: str, reward: int, world_map: str) -> None:
        """Add the teacher's symbol and the reward that comes with it."""
        self.teacher.append(symbol if symbol.isprintable() else "?")
        self.rewards.append(_REWARD_SIGNS.get(reward, " "))
        self.total += reward
        self.steps += 1
        self.map = world_map

    def say(self, symbol: str) -> None:
        """Add the learner's symbol."""
        self.learner.append(symbol if symbol.isprintable() else "?")

    def rows(self, width: int) -> list[str]:
        """Return the streams as lines, step under step, the newest at the right. Silence is a low line."""
        said = [*self.learner, " "] if len(self.learner) < len(self.teacher) else list(self.learner)
        streams = (("teacher", self.teacher), ("you", said), ("reward", self.rewards))
        return [f"{name:>8} {_last(symbols, width - 9, name != 'reward')}" for name, symbols in streams]

    @property
    def status(self) -> str:
        """Reward and time so far."""
        return f"reward {self.total}, step {self.steps}"


class LineView:
    """Prints the streams whenever it asks. It works on a terminal, a pipe and a file.

    Args:
        delay: Seconds to wait after each step.
        source: Where lines are read; by default standard input.
        target: Where streams are printed; by default standard output.
    """

    def __init__(self, delay: float = 0.0, source: TextIO | None = None, target: TextIO | None = None) -> None:
        self._delay, self._helped = delay, False
        self._source, self._target = source or sys.stdin, target or sys.stdout

    def show(self, streams: Streams) -> None:
        """Wait for the delay."""
        if self._delay:
            time.sleep(self._delay)

    def ask(self, streams: Streams, note: str = "") -> str | None:
        """Print the streams and read a line."""
        if not self._helped:
            self._target.write(f"{HELP}\n")
            self._helped = True
        self.print(streams)
        self._target.write(f"{note}\n> " if note else "> ")
        self._target.flush()
        line = self._source.readline()
        return line.rstrip("\r\n") if line else None

    def print(self, streams: Streams) -> None:
        """Print the streams."""
        width = shutil.get_terminal_size((80, 24)).columns
        parts = ["-" * width, *streams.rows(width), *streams.map.splitlines(), f"({streams.status})", ""]
        self._target.write("\n".join(parts))

    def close(self) -> None:
        """End the line."""
        self._target.write("\n")


class ScreenView:
    """Shows every step on the whole screen. `+` and `-` change the delay, in seconds; `0` resets it."""

    def __init__(self, delay: float = 0.0) -> None:
        self._delay = self._usual = delay
        self._ahead: deque[int] = deque()  # keys typed before the person was asked
        self._screen: Any = curses.initscr()
        curses.noecho()
        curses.cbreak()
        self._screen.keypad(True)

    def show(self, streams: Streams) -> None:
        """Draw a step and wait for the delay."""
        self._draw(streams, "+ and - change the pace")
        self._screen.timeout(max(int(self._delay * 1000), 0))
        self._pace(self._screen.getch())

    def ask(self, streams: Streams, note: str = "") -> str | None:
        """Read a line at the bottom of the screen."""
        typed = ""
        self._screen.timeout(-1)
        while True:
            self._draw(streams, f"{note} > {typed}".lstrip())
            key = self._ahead.popleft() if self._ahead else self._screen.getch()
            if key in (curses.KEY_ENTER, 10, 13):
                return typed
            if key in (-1, 4):  # the end of the input, or Ctrl-D
                return None
            if key in (curses.KEY_BACKSPACE, 8, 127):
                typed = typed[:-1]
            elif 32 <= key < 256:
                typed += chr(key)

    def close(self) -> None:
        """Restore the terminal."""
        self._screen.keypad(False)
        curses.nocbreak()
        curses.echo()
        curses.endwin()

    def _pace(self, key: int) -> None:
        if key == ord("0"):
            self._delay = self._usual
        elif key in (ord("+"), ord("-")):
            self._delay = max(self._delay + (0.001 if key == ord("+") else -0.001), 0.0)
        elif key != -1:
            self._ahead.append(key)

    def _draw(self, streams: Streams, prompt: str) -> None:
        height, width = self._screen.getmaxyx()
        lines = [HELP, "", *streams.rows(width - 1), "", streams.status, "", *streams.map.splitlines()]
        self._screen.erase()
        for number, line in enumerate(lines[: height - 1]):
            self._screen.addnstr(number, 0, line, width - 1)
        self._screen.addnstr(height - 1, 0, prompt, width - 1)
        self._screen.refresh()


def make_watched(source: AgentSource, shown: bool, screen: bool, delay: float) -> AgentFactory:
    """Return a factory for a learner that is shown while it plays.

    Args:
        source: The learner, as `--agent` names it.
        shown: Whether the conversation is printed at every reward.
        screen: Whether it is shown on the whole screen instead.
        delay: Seconds to wait after each step.
    """

    def make(spec: Spec, seed: int) -> Agent:
        learner = find_agent(source, find_domain("commai"))(spec, seed)
        return WatchedLearner(learner, ScreenView(delay) if screen else None, shown, delay)

    return make


class WatchedLearner:
    """Passes turns on and shows them: on the screen at every step, in print at every reward."""

    def __init__(self, learner: Any, screen: ScreenView | None, shown: bool, delay: float) -> None:
        self._learner, self._screen = learner, screen
        self._lines = LineView() if shown and screen is None else None
        self._delay = delay
        self._streams = Streams()

    def __call__(self, turn: Turn) -> Reply:
        """Return the learner's reply."""
        reply: Reply = self._learner(turn)
        self._streams.hear(chr(turn.observation), int(turn.reward), turn.feedback or "")
        if self._screen is not None:
            self._screen.show(self._streams)
        elif self._delay:
            time.sleep(self._delay)
        if self._lines is not None and (turn.reward or turn.ask is Ask.NONE):
            self._lines.print(self._streams)
        if isinstance(reply.action, int):
            self._streams.say(chr(reply.action))
        return reply

    def close(self) -> None:
        """Restore the terminal and close the learner."""
        if self._screen is not None:
            self._screen.close()
        if hasattr(self._learner, "close"):
            self._learner.close()


def _last(symbols: Any, width: int, padded: bool) -> str:
    text = "".join(symbols)[-width:]
    return text.replace(" ", "_").rjust(width, "_") if padded else text.rjust(width)


Mode = Literal["line", "dot", "immediate"]
"""When a person is asked: at the beginning and at every pause; at a dot; at every step.

A pause is a dot or two spaces. A teacher who never pauses, as in micro1 to micro5.2, asks with every symbol: who
answers there, and earns or loses something at once, is asked again at once.
"""
_SILENCE = " "
_MAX_UNASKED = 200
"""Steps after which a person in line mode is asked even if the teacher never pauses."""
_FIRST = "The teacher has begun. Press Enter to listen on, or type an answer."
_NO_PAUSE = "The teacher does not pause here. Press Enter to listen on, or type an answer."


def make_human(mode: Mode = "line", screen: bool = False, delay: float = 0.0) -> AgentFactory:
    """Return a factory for the person at this terminal.

    Args:
        mode: When the person is asked.
        screen: Whether to use the whole screen.
        delay: Seconds to wait after each step.
    """
    return lambda spec, seed: Human(
        ScreenView(delay) if screen else LineView(delay), mode, bits=speaks_bits(spec), ask=spec.ask
    )


class Human:
    """Says what a person types, one symbol a step, and is silent while nothing is typed.

    Args:
        view: Where the person looks and types.
        mode: When the person is asked.
        bits: Whether symbols are bits. They are joined to characters for the person.
        ask: When the person is asked for a belief.
    """

    stateless = may_leave = True

    def __init__(
        self, view: LineView | ScreenView, mode: Mode = "line", bits: bool = False, ask: AskMoment = "episode"
    ) -> None:
        self._view, self._mode, self._moment = view, mode, ask
        self._belief: Belief | None = None
        self._streams = Streams()
        self._typed: deque[str] = deque()
        self._reader = BitReader() if bits else None
        self._bits = deque(SPACE_BITS)
        self._heard = ""  # the last two characters of the teacher
        self._earned = 0
        self._unasked = 0  # steps since the person was asked
        self._waits = False  # whether the person was asked at a pause, or said nothing: the next pause is awaited

    def __call__(self, turn: Turn) -> Reply:
        """Show a turn, and ask the person when it is time."""
        self._earned += int(turn.reward)
        if self._reader is None:
            return self._step(chr(turn.observation), turn)
        bit = REPLIES[int(self._bits.popleft())] if self._bits else REPLIES[0]
        heard = self._reader.feed(str(turn.observation))
        if heard is None:
            return bit
        reply = self._step(heard, turn)
        if not isinstance(reply.action, int):
            return reply
        self._bits.extend(to_bits(chr(reply.action)))
        return bit if reply.belief is None else Reply(bit.action, reply.belief)

    def close(self) -> None:
        """Restore the terminal."""
        self._view.close()

    def _step(self, symbol: str, turn: Turn) -> Reply:
        self._streams.hear(symbol, self._earned, turn.feedback or "")
        self._unasked += 1
        self._waits = self._waits or (not self._earned and not self._typed)
        self._earned = 0
        self._heard = (self._heard + symbol)[-2:]
        if turn.ask is Ask.NONE:
            return Reply(None, self._ask_belief() if asks_belief(turn, self._moment) else None)
        belief = None
        if not self._typed and self._is_time(turn.first):
            line = self._ask()
            if line is None or line == "QUIT":
                raise Cancelled("The player left.")
            if line == SKIP:
                return Reply(SKIP)
            self._typed.extend(re.sub(r"\.+", ".", line) or _SILENCE)  # a second dot would answer the next question
            belief = self._ask_belief() if asks_belief(turn, self._moment) else None
        else:
            self._view.show(self._streams)
        said = self._typed.popleft() if self._typed else _SILENCE
        if self._reader is not None and said != _SILENCE and not self._typed:
            self._heard = ""  # the last bits are still on their way: the teacher's next character cannot be an answer
        self._streams.say(said)
        return REPLIES[ord(said)] if belief is None else Reply(ord(said), belief)

    def _ask_belief(self) -> Belief | None:
        """Ask for the belief; an empty line, or the end of the input, means the same as before."""
        note = BELIEF_QUESTION
        while True:
            line = self._view.ask(self._streams, note) or ""
            if line == "QUIT":
                raise Cancelled("The player left.")
            if not line.strip("? "):
                return self._belief
            with suppress(ValueError):
                if 0 <= (novel := float(line.strip("? "))) <= 1:
                    self._belief = Belief(novel)
                    return self._belief
            note = f"A belief is a number from 0 to 1. {BELIEF_QUESTION}"

    def _ask(self) -> str | None:
        """Read a line, and ask again if it has a character that is not a symbol."""
        note = ""
        if self._mode == "line" and not self._pauses():
            note = _FIRST if self._streams.steps == 1 else _NO_PAUSE
        self._unasked, self._waits = 0, self._pauses()
        line = self._view.ask(self._streams, note)
        while line is not None and (foreign := next((symbol for symbol in line if ord(symbol) > 255), "")):
            line = self._view.ask(self._streams, f"'{foreign}' is not a symbol: its code is above 255. Try again.")
        return line

    def _is_time(self, first: bool) -> bool:
        if self._mode != "line":
            return self._mode == "immediate" or self._heard.endswith(".")
        return first or self._pauses() or not self._waits or self._unasked > _MAX_UNASKED

    def _pauses(self) -> bool:
        """Return whether the teacher has ended a sentence, or was silent twice."""
        return self._heard.endswith(".") or self._heard == _SILENCE * 2
