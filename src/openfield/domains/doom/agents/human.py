"""The human player of Doom: says in words what is ahead, left, right and behind, and takes one letter per action.

`openfield play doom` uses it. What is typed is recorded like any agent's answers.
"""

from __future__ import annotations

import math
import re
from typing import Any, TextIO

from openfield.agents.belief_question import asks_belief
from openfield.agents.human import LineHuman, read_line
from openfield.core import Ask, Reply, Spec, Turn
from openfield.domains.doom.agents.reference import task_of
from openfield.domains.doom.engine.game_state import Entity, GameState
from openfield.domains.doom.features import read_features, read_walls
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


class DoomHuman(LineHuman):
    """Asks on one stream and reads from another."""

    def __init__(self, spec: Spec, seed: int, source: TextIO | None = None, target: TextIO | None = None) -> None:
        task_of(spec)  # refuses arrays and pictures
        known = spec.actions.options if isinstance(spec.actions, Choice) else tuple(LETTERS.values())
        self._letters = {letter: name for letter, name in LETTERS.items() if name in known}
        letters = ", ".join(f"{letter} {name.replace('_', ' ')}" for letter, name in self._letters.items())
        self.help = HELP.format(letters=letters)
        self._walls: list[Wall] = []
        self._episode = 0
        self._last, self._left, self._health = "", 0, 0.0
        super().__init__(spec, seed, source, target)

    def __call__(self, turn: Turn) -> Reply:
        """Show a turn and wait for an answer, or go on with what is to be done several times."""
        if turn.first:
            self._episode += 1
            self._walls, self._left = read_walls(turn.observation), 0
        health = turn.observation["player"]["health"]
        unhurt, self._health = health >= self._health or turn.first, health
        if self._left and unhurt and turn.ask is Ask.ACT and not asks_belief(turn, self._spec.ask):
            self._left -= 1
            return Reply(self._last)
        self._left = 0
        return super().__call__(turn)

    def describe(self, observation: Any) -> str:
        """Return what is around the player, side by side, the nearest first."""
        return describe_surroundings(observation, self._walls)

    def _show(self, turn: Turn) -> None:
        player, feedback = turn.observation["player"], turn.feedback or {}
        parts = [f"Episode {self._episode} ({turn.phase}).", f"Health {player['health']:.0f}."]
        parts += [f"Bullets {player['ammo']:.0f}."] if "ammo" in player else []
        parts += [f"Time left {feedback['performance']:.1%}."] if "performance" in feedback else []
        parts += ["RED LIGHT: the world has changed."] if turn.red_light else []
        if turn.last is not None:
            left = len(turn.observation["enemies"])
            ended = "You won." if not left else "You died." if player["health"] <= 0 else "The episode is over."
            self._say(f"{' '.join(parts)}\n{ended} Score {feedback.get('performance', 0.0):.3f}.\n")
            return
        hints = [hint for hint in turn.observation.get("hint") or () if any(hint.values())]
        parts += [f"Hint: {', '.join(str(word) for word in hint.values() if word)}." for hint in hints]
        parts += [f"The teacher's choice: {feedback['label']['action']}."] if "label" in feedback else []
        self._say(f"{' '.join(parts)}\n{self.describe(turn.observation)}")

    def _prompt(self, turn: Turn) -> str:
        return f"{''.join(self._letters)} or ? for help: "

    def _read(self, prompt: str) -> Reply | None:
        """Read a line and return the reply it stands for; None if it stands for none."""
        self._target.write(prompt)
        self._target.flush()
        line = read_line(self._source, self._target)
        text = line.strip().lower()
        if not line or text in ("q", "quit"):
            raise Cancelled("The player left.")
        if text.startswith("?"):
            if text.strip("? "):
                return self._belief(text.lstrip("? "))
            self._say(self.help)
            return None
        action = self.parse(text)
        if action is None:
            self._say(f"'{line.strip()}' is not an action here. {self.help}")
            return None
        return Reply(action)

    def parse(self, text: str) -> Any:
        """Return the action that was typed, and note how often it is to be done; None if it is no action."""
        if not text and self._last:
            return self._last
        found = re.fullmatch(r"([a-z_]+?)\s*(\d{0,3})", text)
        if found is None:
            return None
        name, count = self._letters.get(found[1], found[1]), int(found[2] or 1)
        if name not in self._letters.values() or not 1 <= count <= MAX_REPEATS:
            return None
        self._last, self._left = name, count - 1
        return name


def describe_surroundings(observation: Any, walls: list[Wall]) -> str:
    """Return what is around the player, side by side, the nearest first."""
    state = read_features(observation)
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
