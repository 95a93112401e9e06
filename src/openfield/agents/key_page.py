"""Keys for actions: how a person plays a domain whose actions are words or numbers in a browser.

A domain that says nothing gets keys that are derived from the names of its actions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import msgspec

from openfield.agents.grid_map import GridMap, find_grid
from openfield.core import Reply, Spec, Turn, World
from openfield.errors import AgentProtocol
from openfield.spaces import Choice, Discrete

MAX_KEYS = 60
"""Actions of a domain that still get a key or a button each; with more of them an action is typed."""
MAX_SHOWN = 4_000
"""Characters of an observation that a page shows as text."""
ARROWS = {"left": "ArrowLeft", "right": "ArrowRight", "up": "ArrowUp", "down": "ArrowDown"}
USUAL_KEYS = {
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


class KeyAction(msgspec.Struct, frozen=True):
    """An action, what it is called, and the keys that mean it if they are held together."""

    action: Any
    label: str
    keys: tuple[str, ...]
    ticks: int = 1
    """Where time runs: after so many ticks a held key acts again."""


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
    """Plays with typed actions, where they have no keys: as JSON."""

    kind = "line"

    def __init__(self, spec: Spec) -> None:
        self._space = spec.actions

    def describe(self) -> dict[str, Any]:
        """Return what may be typed."""
        return {"hint": "Type an action as JSON.", "space": str(self._space)}

    def show(self, turn: Turn, world: World) -> dict[str, Any]:
        """Return the values of the turn, and a picture if the world draws."""
        return KeyPage(()).show(turn, world)

    def act(self, act: Any, turn: Turn) -> Generator[Reply, Turn, None]:
        """Yield the action that was typed."""
        try:
            action = json.loads(act) if isinstance(act, str) else None
        except ValueError:
            action = None
        if action is None or (self._space is not None and not self._space.contains(action)):
            raise AgentProtocol(f"This is not an action here. Actions are {self._space}.")
        yield Reply(action)


def make_page(spec: Spec) -> KeyPage | LinePage:
    """Return the page of a domain that brings none: keys if its actions are few words or numbers, else a line."""
    match spec.actions:
        case Choice(options) if len(options) <= MAX_KEYS:
            page = KeyPage(bind_keys(options, options))
        case Discrete(count, start) if count <= MAX_KEYS:
            numbers = range(start, start + count)
            page = KeyPage(bind_keys(read_names(spec.task, numbers), numbers))
        case _:
            return LinePage(spec)
    page.grid = find_grid(spec.observations)
    return page


def read_names(task: str, numbers: Sequence[int]) -> list[str]:
    """Return what a task calls numbered actions, as in `left (0) or right (1)`; the numbers if it names not all."""
    named = {int(found[2]): found[1] for found in _NUMBERED.finditer(task)}
    told = all(number in named for number in numbers)
    return [named[number] if told else str(number) for number in numbers]


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
        return tuple(USUAL_KEYS[word.lower()] for word in re.findall("UP|DOWN|LEFT|RIGHT|FIRE", name))
    words = name.lower().replace("_", " ").removeprefix("move ").removeprefix("go ")
    key = USUAL_KEYS.get(words)
    return () if key is None else (key,)


def describe_turn(turn: Turn) -> dict[str, str]:
    """Return the values of a turn in words: of its observation unless that is a picture, and of its feedback."""
    found: dict[str, Any] = {}
    for part in (turn.observation, turn.feedback):
        if isinstance(part, dict):
            found |= part
    if not isinstance(turn.observation, dict) and getattr(turn.observation, "ndim", 0) < 2:
        found["you see"] = turn.observation
    if turn.reward:
        found["reward"] = turn.reward
    return {str(name): _write(value) for name, value in found.items() if getattr(value, "ndim", 0) < 2}


def _write(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(_round(value), enc_hook=_plain).decode()
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]} ..."


def _round(value: Any) -> Any:
    """Return numbers as a person reads them."""
    plain = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(plain, list | tuple):
        return [_round(each) for each in plain]
    return round(plain, 3) if isinstance(plain, float) else plain


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)
