"""An agent that keeps learning what its actions do, when its shots hit and where it is hurt.

A baseline for adaptation: it has small tables (`Experience`) instead of fixed knowledge. They forget slowly, so that it
learns a changed world as fast as a new one.
"""

from __future__ import annotations

import math
import random

import msgspec

from openfield.agents.random import GeneratorState
from openfield.core import Ask, Belief, Reply, Spec, Turn
from openfield.domains.doom.agents.reference import AIM, MOVES, RADIUS, ReferencePolicy, task_of
from openfield.domains.doom.engine.game_state import Entity, GameState
from openfield.domains.doom.features import decode_features, read_walls

SURPRISE = 4.0
"""Units between expected and seen movement from which on the world seems to have changed."""
MISSES = 3
"""After this many shots in a row without effect the line of fire is drawn narrower, until one hits."""
NARROWER = 0.7
CAUTION = 1.0
"""Steps of detour that one health is worth."""
MIN_PROGRESS = 0.1
"""The share of a step. If no move is known to lead that far, any is tried: else the right one is never found."""
RATE = 0.3
"""The weight of a new observation of an effect."""
SHOT_RATE = 0.1
HARM_STEP = 0.5
"""The most by which one tick changes an estimate of harm, so that it is the usual cost of a tick: bullets are rare."""
OFFSET = 3.0
"""The width of the classes of shots by how far off the line of fire their target was."""
WORSE = 0.5
"""Below this share of the best hit rate a shot is not worth its bullet."""
CLEARANCE = 8.0
"""The width of the classes of places by how near the next wall is."""
OPEN = 8
"""The class of places in the open."""


class LearningAgent:
    """Chooses goals as the reference policy does, and the actions that reach them by its own experience."""

    def __init__(self, spec: Spec, seed: int) -> None:
        self._task = task_of(spec)
        self._rng = random.Random(seed)
        self._experience = untrained(self._task)
        self._policy = ReferencePolicy(self._task, (), self._rng)
        self._before: tuple[GameState, str] | None = None
        self._misses = 0

    def __call__(self, turn: Turn) -> Reply:
        """Answer a turn."""
        if turn.first:
            self._policy = ReferencePolicy(self._task, read_walls(turn.observation), self._rng)
            self._before, self._misses = None, 0
        state = decode_features(turn.observation)
        if self._before is not None:
            self._learn(*self._before, state)
        belief = self._believe(turn.phase == "training")
        if turn.ask is not Ask.ACT:
            return Reply(None, belief)
        action = self._choose(state)
        self._before = state, action
        return Reply(action, belief)

    def save(self) -> bytes:
        """Return the experience and the state of the generator."""
        return msgspec.json.encode((self._experience, self._rng.getstate()))

    def load(self, state: bytes) -> None:
        """Restore a saved agent."""
        self._experience, generator = msgspec.json.decode(state, type=tuple[Experience, GeneratorState])
        self._rng.setstate(generator)

    def _choose(self, state: GameState) -> str:
        """Choose the move that best leads where the policy wants and hurts least; a shot is worth being hurt."""
        self._policy.aim = self._experience.aim * NARROWER ** (self._misses // MISSES)
        wanted, player = self._policy.choose(state), state.player
        hurts = self._experience.harm_at(self._policy.clearance(player.x, player.y))
        if wanted == "shoot" or (wanted not in MOVES and not hurts):
            return wanted
        if wanted in MOVES and max(self._progress(move, wanted) for move in MOVES) < MIN_PROGRESS:
            return self._rng.choice(list(MOVES))
        harm = {move: self._experience.harm_at(self._clearance_after(move, player)) for move in MOVES}
        return max(MOVES, key=lambda move: self._progress(move, wanted) - CAUTION * harm[move])

    def _progress(self, move: str, wanted: str) -> float:
        """Return how much of a step a move goes in the direction of the wanted move; 0 if none is wanted."""
        if wanted not in MOVES:
            return 0.0
        effect, way = self._experience.effects[move], math.radians(MOVES[wanted])
        return (effect[0] * math.cos(way) + effect[1] * math.sin(way)) / max(math.hypot(*effect), 1.0)

    def _clearance_after(self, move: str, player: Entity) -> float:
        (ahead, left), turned = self._experience.effects[move], math.radians(player.angle)
        x = player.x + ahead * math.cos(turned) - left * math.sin(turned)
        y = player.y + ahead * math.sin(turned) + left * math.cos(turned)
        return self._policy.clearance(x, y)

    def _learn(self, before: GameState, action: str, state: GameState) -> None:
        if action == "shoot":
            self._learn_shot(before, state)
        elif action in MOVES:
            self._learn_effect(before, action, state)
        if len(state.items["trap"]) == len(before.items["trap"]):
            lost = max(before.player.health - state.player.health, 0.0)
            self._experience.enter_harm(self._policy.clearance(before.player.x, before.player.y), lost)

    def _learn_effect(self, before: GameState, action: str, state: GameState) -> None:
        """Learn where a move led, in the player's own frame; a move against a wall teaches nothing."""
        dx, dy = state.player.x - before.player.x, state.player.y - before.player.y
        if math.hypot(dx, dy) < 0.5 or self._clearance_after(action, before.player) < RADIUS:
            return
        ahead, left = _own_frame(before.player, dx, dy)
        self._experience.surprise += self._experience.enter_effect(action, (ahead, left)) > SURPRISE

    def _learn_shot(self, before: GameState, state: GameState) -> None:
        """Learn whether a shot hit the enemy nearest to its line."""
        player = before.player
        frames = [_own_frame(player, enemy.x - player.x, enemy.y - player.y) for enemy in before.enemies]
        hurt = sum(entity.health for entity in state.enemies) < sum(entity.health for entity in before.enemies)
        offset = min((abs(left) for ahead, left in frames if ahead > 0), default=math.inf)
        if math.isfinite(offset):
            self._experience.enter_shot(offset, hurt)
        self._misses = 0 if hurt else self._misses + 1

    def _believe(self, training: bool) -> Belief:
        if training:
            self._experience.surprise = 0.0
        novel = 1 - math.exp(-self._experience.surprise / 3)
        return Belief(round(novel, 6), int(novel >= 0.5))


def _own_frame(player: Entity, dx: float, dy: float) -> tuple[float, float]:
    """Return a difference of positions as the player sees it: ahead, and to the left."""
    turned = math.radians(player.angle)
    return dx * math.cos(turned) + dy * math.sin(turned), dy * math.cos(turned) - dx * math.sin(turned)


class Experience(msgspec.Struct):
    """The tables that are kept between episodes and saved with the agent. They forget slowly."""

    effects: dict[str, tuple[float, float]]
    """Where each move leads: forward and to the left, in units."""
    hits: list[float]
    """Share of shots that hit, by how far off the line of fire the target was."""
    harm: list[float] = msgspec.field(default_factory=lambda: [0.0] * (OPEN + 1))
    """Health usually lost per tick, by how near the next wall or pillar is."""
    surprise: float = 0.0

    @property
    def aim(self) -> float:
        """How far off the line of fire a shot is still worth its bullet: at least half a step aside."""
        least = WORSE * max(self.hits)
        worth = next((step for step, rate in enumerate(self.hits) if rate < least), len(self.hits))
        return max(OFFSET * worth, math.hypot(*self.effects["left"]) / 2)

    def enter_effect(self, move: str, seen: tuple[float, float]) -> float:
        """Enter where a move led; return how far that is from the expectation."""
        old = self.effects[move]
        self.effects[move] = (old[0] + RATE * (seen[0] - old[0]), old[1] + RATE * (seen[1] - old[1]))
        return math.dist(old, seen)

    def enter_shot(self, offset: float, hit: bool) -> None:
        """Enter whether a shot hit."""
        step = int(offset / OFFSET)
        if step < len(self.hits):
            self.hits[step] += SHOT_RATE * (hit - self.hits[step])

    def enter_harm(self, clearance: float, lost: float) -> None:
        """Enter the cost of a tick at a place."""
        step = _step(clearance)
        self.harm[step] += min(max(lost - self.harm[step], -HARM_STEP), HARM_STEP)

    def harm_at(self, clearance: float) -> float:
        """Return the cost of a tick at a place beyond one in the open; nearer to a wall is never rated better."""
        return max(0.0, max(self.harm[_step(clearance) :]) - self.harm[OPEN])


def untrained(task: str) -> Experience:
    """Return the experience an agent starts with: moves lead where they say, and shots hit."""
    ways = {move: math.radians(turn) for move, turn in MOVES.items()}
    effects = {move: (8 * math.cos(way), 8 * math.sin(way)) for move, way in ways.items()}
    return Experience(effects, [1.0] * math.ceil(AIM[task] / OFFSET))


def _step(clearance: float) -> int:
    return int(min(clearance / CLEARANCE, OPEN))
