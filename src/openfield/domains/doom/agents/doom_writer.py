"""Doom in words: health, bullets, and the things ahead, to the left, behind and to the right. One letter acts."""

from __future__ import annotations

import math
import re
from typing import Any

from openfield.agents.turn_writer import TurnText, TurnWriter
from openfield.core import Ask, Reply, Spec, Turn
from openfield.domains.doom.engine.game_state import Entity, GameState
from openfield.domains.doom.features import decode_features, read_walls
from openfield.domains.doom.maps.scenario import Wall
from openfield.errors import Cancelled
from openfield.spaces import Choice

LETTERS = {
    "f": "forward",
    "b": "backward",
    "l": "left",
    "r": "right",
    "a": "turn_left",
    "d": "turn_right",
    "s": "shoot",
    "n": "nothing",
    "g": "give_up",
}
HELP = (
    "One letter acts: {letters}. f5 does it five times, unless you lose health. An empty line does the last again. "
    "'? 0.7' says how sure you are that the world has changed. ? shows this, q stops (and can be resumed)."
)
SIDES = ("Ahead", "Left", "Behind", "Right")
KINDS = {"health": "a health pack", "ammo": "bullets", "trap": "a trap", "obstacle": "a pillar"}
LINE_OF_FIRE = 16.0
"""Units to the side within which a bullet hits an enemy of the usual width."""
MAX_NAMED = 4
"""Things that are named on each side."""
MAX_REPEATS = 500


class DoomWriter(TurnWriter):
    """Describes the surroundings of the player. Arrays and pictures are shown as in any domain."""

    rules = (
        "You see distances in units; you walk some units with every action and turn by some degrees. Shoot when an "
        "enemy is in your line of fire. Less time is a better score."
    )

    def __init__(self, spec: Spec) -> None:
        super().__init__(spec)
        known = spec.actions.options if isinstance(spec.actions, Choice) else tuple(LETTERS.values())
        self._letters = {letter: name for letter, name in LETTERS.items() if name in known}
        named = ", ".join(f"{letter} {name.replace('_', ' ')}" for letter, name in self._letters.items())
        self.help = HELP.format(letters=named)
        self._walls: list[Wall] = []
        self._typed, self._left, self._health = "", 0, 0.0  # the last typed action, and how often it is still done

    def describe(self, turn: Turn) -> TurnText:
        """Return a turn in words; walls are described at the start of an episode."""
        features = find_features(turn.observation)
        if features is not None:
            self._walls = read_walls(features) if turn.first else self._walls
            health, before = features["player"]["health"], self._health
            self._left, self._health = self._left if health >= before else 0, health
        self._left = 0 if turn.first else self._left
        return super().describe(turn)

    def describe_observation(self, observation: Any) -> TurnText:
        """Describe the surroundings."""
        features = find_features(observation)
        if features is None:
            return super().describe_observation(observation)
        hints = [hint for hint in features.get("hint") or () if any(hint.values())]
        parts = [f"{name.capitalize()} {value}." for name, value in list_values(observation).items()]
        parts += [f"Hint: {', '.join(str(word) for word in hint.values() if word)}." for hint in hints]
        beside = {key: value for key, value in observation.items() if key == "image"}
        pictures = super().describe_observation(beside).images if beside else ()
        return TurnText(f"{' '.join(parts)}\n{describe_surroundings(features, self._walls)}", pictures)

    def describe_feedback(self, feedback: Any) -> str:
        """Return the time left, and the teacher's choice."""
        details = feedback if isinstance(feedback, dict) else {}
        parts = [f"Time left {details['performance']:.1%}."] if "performance" in details else []
        parts += [f"The teacher's choice: {details['label']['action']}."] if "label" in details else []
        return " ".join(parts) or super().describe_feedback(feedback)

    def describe_end(self, turn: Turn) -> str:
        """Return who won, and the score."""
        features, feedback = find_features(turn.observation), turn.feedback or {}
        if features is None or "performance" not in feedback:
            return super().describe_end(turn)
        won, died = not features["enemies"], features["player"]["health"] <= 0
        lost = "You died." if died else "Time is up: you lost." if turn.last == "truncated" else "You lost."
        return f"{'You won.' if won else lost} Score {feedback['performance']:.3f}."

    def pass_over(self, turn: Turn) -> Reply | None:
        """Return an action that was typed to be done several times, as long as no health is lost."""
        if not self._repeats(turn):
            return super().pass_over(turn)
        self._left -= 1
        return Reply(self._typed)

    def prompt(self, turn: Turn) -> str:
        """Ask for a letter, unless an action is repeated."""
        if turn.ask is not Ask.ACT:
            return super().prompt(turn)
        return "" if self._repeats(turn) else f"{''.join(self._letters)} or ? for help: "

    def read_line(self, line: str) -> str:
        """Return the action that was typed, and note how often it is to be done."""
        text = line.strip().lower()
        if text in ("q", "quit"):
            raise Cancelled("The player left.")
        found = re.fullmatch(r"([a-z_]+?)\s*(\d{0,3})", text or self._typed)
        name = "" if found is None else self._letters.get(found[1], found[1])
        count = 0 if found is None else int(found[2] or 1)
        if name not in self._letters.values() or not 1 <= count <= MAX_REPEATS:
            raise ValueError(f"'{line}' is not an action here")
        self._typed, self._left = name, count - 1
        return name

    def _repeats(self, turn: Turn) -> bool:
        return self._left > 0 and turn.ask is Ask.ACT and not self.asks_belief(turn)


def list_values(observation: Any) -> dict[str, str]:
    """Return the numbers that the game shows on its screen."""
    player = (find_features(observation) or {}).get("player", {})
    named = {"health": "health", "ammo": "bullets"}
    return {name: f"{player[key]:.0f}" for key, name in named.items() if key in player}


def describe_surroundings(observation: Any, walls: list[Wall]) -> str:
    """Return the things around the player, side by side, the nearest first."""
    state = decode_features(observation)
    found: dict[str, list[tuple[float, str]]] = {side: [] for side in SIDES}
    for entity, name in _name_entities(state):
        side, distance, text = _place(state.player, entity, name)
        found[side].append((distance, text))
    for number, side in enumerate(SIDES):
        distance = _wall_distance(state.player, state.player.angle + 90 * number, walls)
        if math.isfinite(distance):
            found[side].append((distance, f"a wall {distance:.0f} away"))
    return "\n".join(f"  {side + ':':8}{_list_things(sorted(things))}." for side, things in found.items())


def _list_things(things: list[tuple[float, str]]) -> str:
    """Return the nearest things in words, and how many more there are."""
    named = "; ".join(text for _, text in things[:MAX_NAMED]) or "nothing"
    return f"{named}; {len(things) - MAX_NAMED} more" if len(things) > MAX_NAMED else named


def _name_entities(state: GameState) -> list[tuple[Entity, str]]:
    named = [(enemy, f"an enemy (health {enemy.health:.0f})") for enemy in state.enemies]
    named += [(bolt, "a projectile") for bolt in state.bolts]
    return named + [(item, KINDS[kind]) for kind, items in state.items.items() for item in items]


def _place(player: Entity, entity: Entity, name: str) -> tuple[str, float, str]:
    """Return on which side of the player an entity is, how far away, and that in words."""
    distance = math.hypot(entity.x - player.x, entity.y - player.y)
    turned = math.radians(math.degrees(math.atan2(entity.y - player.y, entity.x - player.x)) - player.angle)
    side = SIDES[round(math.degrees(turned) / 90) % 4]
    text = f"{name} {distance:.0f} away"
    if side == "Ahead":
        aside = distance * math.sin(turned)
        shown = f"{abs(aside):.0f} to the {'left' if aside > 0 else 'right'}"
        straight = "in your line of fire" if name.startswith("an enemy") else "straight ahead"
        text += f", {straight if abs(aside) < LINE_OF_FIRE else shown}"
    return side, distance, text


def _wall_distance(player: Entity, angle: float, walls: list[Wall]) -> float:
    """Return how far the nearest wall is in a direction; walls run along the axes."""
    dx, dy = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    found = math.inf
    for wall in walls:
        along, offset = (dx, wall.x1 - player.x) if wall.x1 == wall.x2 else (dy, wall.y1 - player.y)
        if abs(along) < 1e-9 or offset / along <= 0:
            continue
        reach = offset / along
        x, y = player.x + reach * dx, player.y + reach * dy
        low_x, high_x = sorted((wall.x1, wall.x2))
        low_y, high_y = sorted((wall.y1, wall.y2))
        if low_x - 1e-6 <= x <= high_x + 1e-6 and low_y - 1e-6 <= y <= high_y + 1e-6:
            found = min(found, reach)
    return found


def find_features(observation: Any) -> dict[str, Any] | None:
    """Return the features of an observation, which may have an image beside them; None if it has none."""
    found = observation.get("features", observation) if isinstance(observation, dict) else None
    return found if isinstance(found, dict) and "player" in found else None
