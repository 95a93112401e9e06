"""Keys for actions: how a person plays a domain whose actions are words or numbers in a browser.

A domain that says nothing gets keys that are derived from the names of its actions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from openfield.agents.turn_writer import TurnWriter, shorten_text, write_plain
from openfield.core import Reply, Spec, Turn, World
from openfield.errors import AgentProtocol
from openfield.spaces import Box, Choice, Discrete, Fields, Space

MAX_KEYS = 60
"""Actions of a domain that still get a key or a button each; with more of them an action is typed."""
ARROWS = {"left": "ArrowLeft", "right": "ArrowRight", "up": "ArrowUp", "down": "ArrowDown"}
DEFAULT_KEYS = {
    **ARROWS,
    "forward": "ArrowUp",
    "backward": "ArrowDown",
    "back": "ArrowDown",
    "turn left": "ArrowLeft",
    "turn right": "ArrowRight",
    "fire": "Space",
    "shoot": "Space",
    "jump": "Space",
    "north": "ArrowUp",
    "south": "ArrowDown",
    "east": "ArrowRight",
    "west": "ArrowLeft",
    "pickup": "p",
    "pick up": "p",
    "drop": "d",
    "drop off": "d",
    "toggle": "Space",
    "done": "Enter",
    "noop": ".",
    "nothing": ".",
}
"""Keys that players expect, by the words for an action."""
IDLE = ("noop", "nothing")
_NUMBERED = re.compile(r"((?:pick |drop |at )?[\w-]+) \((\d{1,3})\)")
_CHORD = re.compile(r"(?:UP|DOWN|LEFT|RIGHT|FIRE)+")
"""Actions of Atari games: several words written together, which mean several keys held together."""
SQUARE = 28
"""Pixels of a square."""
MAX_SQUARES = 40
"""Squares along a side; larger grids are not drawn."""
FLOOR, LINE = (238, 236, 230), (222, 219, 211)
COLOURS = ((0, 101, 163), (43, 138, 80), (184, 79, 0), (120, 80, 160))
"""Of the places, in their order: the first is usually the player's."""


class KeyAction(msgspec.Struct, frozen=True):
    """An action, what it is called, and the keys that mean it if they are held together."""

    action: Any
    label: str
    keys: tuple[str, ...]
    ticks: int = 1
    """Where time runs: the number of ticks after which a held key acts again."""


class KeyPage:
    """Plays with keys: a key is an action."""

    kind = "keys"

    def __init__(
        self,
        actions: Sequence[KeyAction],
        idle: Any = None,
        milliseconds: float | None = None,
        describe: Callable[[Turn], Mapping[str, str]] | None = None,
    ) -> None:
        """Bind keys.

        Args:
            actions: The actions and their keys.
            idle: What happens while no key is held, in a world whose time runs.
            milliseconds: How long a turn lasts where time runs; None waits for a key.
            describe: Returns the values that a turn shows, by their names. The usual ones if not given.
        """
        self.actions, self.idle, self.milliseconds = list(actions), idle, milliseconds
        self.grid: GridMap | None = None
        """Draws observations, where the world draws nothing."""
        self._describe = describe or describe_turn

    def describe(self) -> dict[str, Any]:
        """Return the keys, with a label for each."""
        keys = [{"label": each.label, "keys": each.keys} for each in self.actions]
        return {"actions": keys, "milliseconds": self.milliseconds}

    def show(self, turn: Turn, world: World) -> dict[str, Any]:
        """Return a picture if the world draws, and the values of the turn."""
        try:
            picture = world.look("picture")
        except Exception:  # not every world can be looked at, and each says so in its own way
            picture = None if self.grid is None else self.grid.draw(turn.observation)
        shown = {"picture": picture} if getattr(picture, "ndim", 0) in (2, 3) else {}
        return {**shown, "values": dict(self._describe(turn))}

    def act(self, act: Any, turn: Turn) -> Generator[Reply, Turn, None]:
        """Yield the action of a number in the list of actions."""
        if not isinstance(act, int) or isinstance(act, bool) or not 0 <= act < len(self.actions):
            raise AgentProtocol("There is no such key here.")
        yield Reply(self.actions[act].action)


class LinePage:
    """Plays with typed actions, where they have no keys: as JSON, or as the writer of the domain reads them."""

    kind = "line"

    def __init__(self, writer: TurnWriter) -> None:
        self._writer = writer
        self._shown = KeyPage((), describe=_find_words(writer))

    def describe(self) -> dict[str, Any]:
        """Return what may be typed."""
        return {"hint": "Type an action.", "space": f"An action is {self._writer.action}."}

    def show(self, turn: Turn, world: World) -> dict[str, Any]:
        """Return the values of the turn, and a picture if the world draws."""
        return self._shown.show(turn, world)

    def act(self, act: Any, turn: Turn) -> Generator[Reply, Turn, None]:
        """Yield the action that was typed."""
        try:
            action = self._writer.read_line(act if isinstance(act, str) else "")
        except ValueError as error:
            raise AgentProtocol(f"This cannot be done: {error}.") from None
        if action is not None:
            yield Reply(action)


def make_page(spec: Spec, writer: TurnWriter | None = None) -> KeyPage | LinePage:
    """Return the page of a domain that brings none: keys if its actions are few words or numbers, else a line.

    Args:
        spec: What agents know of the trial.
        writer: What says its turns in words; by default that of any `Spec`.
    """
    writer = writer or TurnWriter(spec)
    match spec.actions:
        case Choice(options) if len(options) <= MAX_KEYS:
            page = KeyPage(bind_keys(options, options), describe=_find_words(writer))
        case Discrete(count, start) if count <= MAX_KEYS:
            numbers = range(start, start + count)
            page = KeyPage(bind_keys(read_names(spec.task, numbers), numbers), describe=_find_words(writer))
        case _:
            return LinePage(writer)
    page.grid = find_grid(spec.observations)
    return page


def read_names(task: str, numbers: Sequence[int]) -> list[str]:
    """Return the names of numbered actions in a task, as in `left (0) or right (1)`; the numbers if some lack one."""
    named = {int(found[2]): found[1] for found in _NUMBERED.finditer(task)}
    all_named = all(number in named for number in numbers)
    return [named[number] if all_named else str(number) for number in numbers]


def bind_keys(names: Sequence[str], actions: Sequence[Any]) -> list[KeyAction]:
    """Return a key for every action, derived from its name: what players expect, else its first free letter.

    Args:
        names: What the actions are called.
        actions: The actions, in the same order.
    """
    taken: set[tuple[str, ...]] = set()
    bound: list[tuple[str, ...]] = []
    for name in names:
        keys = _usual_keys(name)
        bound.append(keys if keys and keys not in taken else ())
        taken.add(bound[-1])
    for number, name in enumerate(names):
        if not bound[number]:
            free = [letter for letter in (*name.lower(), *"1234567890qwertyuiopasdfghjklzxcvbnm") if letter.isalnum()]
            bound[number] = next(((letter,) for letter in free if (letter,) not in taken), ())
            taken.add(bound[number])
    labels = [name.replace("_", " ").lower() for name in names]
    return [KeyAction(*each) for each in zip(actions, labels, bound, strict=True)]


def _usual_keys(name: str) -> tuple[str, ...]:
    """Return the keys that players expect for a name; none if there is no usual one."""
    if _CHORD.fullmatch(name):
        return tuple(DEFAULT_KEYS[word.lower()] for word in re.findall("UP|DOWN|LEFT|RIGHT|FIRE", name))
    words = name.lower().replace("_", " ").removeprefix("move ").removeprefix("go ")
    key = DEFAULT_KEYS.get(words)
    return () if key is None else (key,)


def describe_turn(turn: Turn) -> dict[str, str]:
    """Return the values of a turn by their names: of its observation unless that is a picture, and of its feedback."""
    found: dict[str, Any] = {}
    for part in (turn.observation, turn.feedback):
        if isinstance(part, dict):
            found |= part
    if not isinstance(turn.observation, dict) and getattr(turn.observation, "ndim", 0) < 2:
        found["you see"] = turn.observation
    if turn.reward:
        found["reward"] = turn.reward
    shown = {str(name): value for name, value in found.items() if getattr(value, "ndim", 0) < 2}
    return {name: shorten_text(write_plain(value, [])) for name, value in shown.items()}


def _find_words(writer: TurnWriter) -> Callable[[Turn], Mapping[str, str]]:
    """Return a turn as a page shows it: in the words of the domain's own writer, else as named values."""
    if type(writer) is TurnWriter:
        return describe_turn

    def describe(turn: Turn) -> dict[str, str]:
        feedback = "" if turn.feedback is None else writer.describe_feedback(turn.feedback)
        seen = "\n".join(part for part in (feedback, writer.describe_observation(turn.observation).text) if part)
        return {"you see": seen} | ({"reward": f"{turn.reward:g}"} if turn.reward else {})

    return describe


class GridMap:
    """The places of observations in a space: whole numbers for column and row, all with the same bounds.

    It is for domains that draw nothing themselves, such as a small maze.
    """

    def __init__(self, size: int, names: list[str]) -> None:
        self.size, self.names = size, names

    def draw(self, observation: Any) -> NDArray[np.uint8]:
        """Return a picture of the places in an observation."""
        picture = np.full((self.size * SQUARE, self.size * SQUARE, 3), FLOOR, np.uint8)
        picture[::SQUARE] = picture[:, ::SQUARE] = LINE
        for name, colour in reversed(list(zip(self.names, COLOURS, strict=False))):
            x, y = (int(number) * SQUARE for number in observation[name])
            picture[y + 3 : y + SQUARE - 2, x + 3 : x + SQUARE - 2] = colour
        return picture


def find_grid(space: Space | None) -> GridMap | None:
    """Return the map of a space of observations; None if they have no places on a grid."""
    parts = space.parts if isinstance(space, Fields) else {}
    names = [name for name, part in parts.items() if isinstance(part, Box) and _is_place(part)]
    sizes = {part.high for name in names if isinstance(part := parts[name], Box)}
    if len(sizes) != 1 or not isinstance(high := sizes.pop(), int) or not 1 <= high < MAX_SQUARES:
        return None
    return GridMap(high + 1, names)


def _is_place(part: Box) -> bool:
    return part.shape == (2,) and part.low == 0 and np.issubdtype(part.dtype, np.integer)
