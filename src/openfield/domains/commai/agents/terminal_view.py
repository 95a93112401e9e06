"""A conversation on a terminal: teacher, learner and rewards as three streams, printed or on the whole screen.

The human agent passes every step to a view, and reads a line from it when it is the person's turn. `WatchedLearner` is
the original's ConsoleView and `--time-delay` for learners that are programs.
"""

from __future__ import annotations

import curses
import shutil
import sys
import time
from collections import deque
from typing import Any, TextIO

from openfield.core import Agent, AgentFactory, Ask, Reply, Spec, Turn
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
