"""What a person sees of a conversation: three streams under each other, on paper or on the whole screen.

The human agent (human.py) feeds a view step by step and asks it for a line when it is the person's turn.
"""

from __future__ import annotations

import curses
import shutil
import sys
import time
from collections import deque
from typing import Any, Protocol, TextIO

HELP = "Type what to say; an empty line is silence. SKIP gives up this exercise, QUIT leaves (and can be resumed)."
_KEPT = 500
_REWARD_SIGNS = {1: "+", -1: "-"}


class Streams:
    """The last symbols of teacher and learner and the rewards between them."""

    def __init__(self) -> None:
        self.teacher: deque[str] = deque(maxlen=_KEPT)
        self.learner: deque[str] = deque(maxlen=_KEPT)
        self.rewards: deque[str] = deque(maxlen=_KEPT)
        self.total = self.steps = 0
        self.map = ""

    def hear(self, symbol: str, reward: int, world_map: str) -> None:
        """Takes what the teacher says, with the reward that comes with it."""
        self.teacher.append(symbol if symbol.isprintable() else "?")
        self.rewards.append(_REWARD_SIGNS.get(reward, " "))
        self.total += reward
        self.steps += 1
        self.map = world_map

    def say(self, symbol: str) -> None:
        """Takes what the learner says."""
        self.learner.append(symbol if symbol.isprintable() else "?")

    def rows(self, width: int) -> list[str]:
        """The streams, step under step, the newest at the right; silence is a low line."""
        said = [*self.learner, " "] if len(self.learner) < len(self.teacher) else list(self.learner)
        streams = (("teacher", self.teacher), ("you", said), ("reward", self.rewards))
        return [f"{name:>8} {_last(symbols, width - 9, name != 'reward')}" for name, symbols in streams]

    @property
    def status(self) -> str:
        """Reward and time so far."""
        return f"reward {self.total}, step {self.steps}"


class View(Protocol):
    """Shows streams to a person and reads what they type."""

    def show(self, streams: Streams) -> None:
        """Shows a step that needs no answer."""
        ...

    def ask(self, streams: Streams, note: str = "") -> str | None:
        """Reads a line; None if there is nobody any more. A note says why it asks."""
        ...

    def close(self) -> None:
        """Gives the terminal back."""
        ...


class LineView:
    """Prints the streams whenever it asks; works on a terminal, a pipe and a file.

    Args:
        delay: Seconds to wait after each step.
        source: Where lines come from.
        target: Where streams go.
    """

    def __init__(self, delay: float = 0.0, source: TextIO | None = None, target: TextIO | None = None) -> None:
        self._delay, self._helped = delay, False
        self._source, self._target = source or sys.stdin, target or sys.stdout

    def show(self, streams: Streams) -> None:
        """Waits, if it shall."""
        if self._delay:
            time.sleep(self._delay)

    def ask(self, streams: Streams, note: str = "") -> str | None:
        """Prints where the conversation stands and reads a line."""
        if not self._helped:
            self._target.write(f"{HELP}\n")
            self._helped = True
        self.print(streams)
        self._target.write(f"{note}\n> " if note else "> ")
        self._target.flush()
        line = self._source.readline()
        return line.rstrip("\r\n") if line else None

    def print(self, streams: Streams) -> None:
        """Prints where the conversation stands."""
        width = shutil.get_terminal_size((80, 24)).columns
        parts = ["-" * width, *streams.rows(width), *streams.map.splitlines(), f"({streams.status})", ""]
        self._target.write("\n".join(parts))

    def close(self) -> None:
        """Ends the line."""
        self._target.write("\n")


class ScreenView:
    """Shows the streams as they go, on the whole screen; `+` and `-` change the pace, `0` resets it, Enter speaks.

    Args:
        delay: Seconds to wait after each step.
    """

    def __init__(self, delay: float = 0.0) -> None:
        self._delay = self._usual = delay
        self._ahead: deque[int] = deque()  # keys typed before anybody asked
        self._screen: Any = curses.initscr()
        curses.noecho()
        curses.cbreak()
        self._screen.keypad(True)

    def show(self, streams: Streams) -> None:
        """Draws a step and waits for the pace."""
        self._draw(streams, "+ and - change the pace")
        self._screen.timeout(max(int(self._delay * 1000), 0))
        self._pace(self._screen.getch())

    def ask(self, streams: Streams, note: str = "") -> str | None:
        """Reads a line at the bottom of the screen."""
        typed = ""
        self._screen.timeout(-1)
        while True:
            self._draw(streams, f"{note} > {typed}".lstrip())
            key = self._ahead.popleft() if self._ahead else self._screen.getch()
            if key in (curses.KEY_ENTER, 10, 13):
                return typed
            if key in (-1, 4):  # nobody any more, or Ctrl-D
                return None
            if key in (curses.KEY_BACKSPACE, 8, 127):
                typed = typed[:-1]
            elif 32 <= key < 256:
                typed += chr(key)

    def close(self) -> None:
        """Gives the terminal back."""
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


def _last(symbols: Any, width: int, padded: bool) -> str:
    text = "".join(symbols)[-width:]
    return text.replace(" ", "_").rjust(width, "_") if padded else text.rjust(width)
