"""A person as a learner, asked at every pause, at every dot, or at every step, and the terminal they look at.

`openfield play commai` and the human learners of the original use it. What the person types is said symbol by symbol
and recorded like any learner's answers. A view shows teacher, learner and rewards as three streams, printed or on the
whole screen. `WatchedLearner` is the original's ConsoleView and `--time-delay` for learners that are programs.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections import deque
from typing import Any, TextIO

from openfield.agents.human import BELIEF_RANGE, read_line
from openfield.agents.turn_writer import BELIEF_QUESTION, asks_belief, read_probability
from openfield.core import Agent, AgentFactory, Ask, AskMoment, Belief, Reply, Spec, Turn
from openfield.domains.commai.agents.listener import Listener, Mode, Streams, find_foreign
from openfield.domains.commai.environment.serializers import speaks_bits
from openfield.domains.commai.world import SKIP
from openfield.errors import Cancelled, InvalidInput
from openfield.registry import AgentSource, find_agent, find_domain

HELP = "Type what to say; an empty line is silence. SKIP gives up this exercise, QUIT leaves (and can be resumed)."


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
        line = read_line(self._source, self._target)
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
        self._curses = _load_curses()
        self._screen: Any = self._curses.initscr()
        self._curses.noecho()
        self._curses.cbreak()
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
            if key in (self._curses.KEY_ENTER, 10, 13):
                return typed
            if key in (-1, 4):  # the end of the input, or Ctrl-D
                return None
            if key in (self._curses.KEY_BACKSPACE, 8, 127):
                typed = typed[:-1]
            elif 32 <= key < 256:
                typed += chr(key)

    def close(self) -> None:
        """Restore the terminal."""
        self._screen.keypad(False)
        self._curses.nocbreak()
        self._curses.echo()
        self._curses.endwin()

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


def _load_curses() -> Any:
    try:
        import curses
    except ImportError:  # Windows
        raise InvalidInput("--curses needs Python's module curses, which this system lacks. Leave it out.") from None
    return curses


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

    return for_terminal(make) if shown or screen else make


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


def make_human(mode: Mode = "line", screen: bool = False, delay: float = 0.0) -> AgentFactory:
    """Return a factory for the person at this terminal.

    Args:
        mode: When the person is asked.
        screen: Whether to use the whole screen.
        delay: Seconds to wait after each step.
    """

    def make(spec: Spec, seed: int) -> Agent:
        view = ScreenView(delay) if screen else LineView(delay)
        return Human(view, mode, bits=speaks_bits(spec), ask=spec.ask)

    return for_terminal(make)


def for_terminal(make: Any) -> AgentFactory:
    """Mark a factory: its agents have the terminal, so that nothing else may be drawn there."""
    make.has_terminal = True
    factory: AgentFactory = make
    return factory


class Human:
    """Says a person's words, one symbol a step, and is silent while nothing is typed.

    Args:
        view: Where the person looks and types.
        mode: When the person is asked.
        bits: Whether symbols are bits. They are joined to characters for the person.
        ask: When the person is asked for a belief.
    """

    may_leave = True

    def __init__(
        self, view: LineView | ScreenView, mode: Mode = "line", bits: bool = False, ask: AskMoment = "episode"
    ) -> None:
        self._view, self._listener, self._moment = view, Listener(mode, bits), ask
        self._belief: Belief | None = None

    def __call__(self, turn: Turn) -> Reply:
        """Show a turn, and ask the person when it is time."""
        listener, belief = self._listener, None
        asked = listener.hear(turn)
        asks = asks_belief(turn, self._moment)
        if turn.ask is Ask.NONE:
            return Reply(None, self._ask_belief() if asks else None)
        if asked:
            line = self._ask()
            if line is None or line == "QUIT":
                raise Cancelled("The player left.")
            if line == SKIP:
                return Reply(SKIP)
            listener.say(line)
            belief = self._ask_belief() if asks else None
        elif listener.heard:
            self._view.show(listener.streams)
        reply = listener.reply()
        return reply if belief is None else Reply(reply.action, belief)

    def remember(self, turn: Turn, reply: Reply) -> None:
        """Take note of a turn that was played before, so that its question is shown again."""
        self._listener.recall(turn, reply.action)
        self._belief = reply.belief or self._belief

    def close(self) -> None:
        """Restore the terminal."""
        self._view.close()

    def _ask_belief(self) -> Belief | None:
        """Ask for the belief; an empty line, or the end of the input, means the same as before."""
        note = BELIEF_QUESTION
        while True:
            line = self._view.ask(self._listener.streams, note) or ""
            if line == "QUIT":
                raise Cancelled("The player left.")
            if not line.strip("? "):
                return self._belief
            try:
                self._belief = Belief(read_probability(line.strip("? ")))
            except ValueError:
                note = f"{BELIEF_RANGE} {BELIEF_QUESTION}"
            else:
                return self._belief

    def _ask(self) -> str | None:
        """Read a line, and ask again if it has a character that is not a symbol."""
        streams = self._listener.streams
        line = self._view.ask(streams, self._listener.note)
        while line is not None and (foreign := find_foreign(line)):
            line = self._view.ask(streams, f"'{foreign}' is not a symbol: its code is above 255. Try again.")
        return line
