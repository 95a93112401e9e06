"""What the learning agent knows: small tables of what moves do, which shots hit and what being near walls costs.

Below `learner`, which looks things up here and has every tick entered. All tables forget slowly, so that a world that
changed is learnt as fast as a new one.
"""

from __future__ import annotations

import math

import msgspec

from openfield.domains.doom.agents.expert_policy import AIM, MOVES

RATE = 0.3
"""How much of its old estimate an effect loses with every new observation."""
SHOT_RATE = 0.1
HARM_STEP = 0.5
"""Health by which an estimate of harm moves at most, so that it is what a tick usually costs: bullets are rare."""
OFFSET = 3.0
"""Width of the steps in which shots are told apart by how far off the line of fire their target was."""
WORSE = 0.5
"""Below this share of the best hit rate a shot is not worth its bullet."""
CLEARANCE = 8.0
"""Width of the steps in which places are told apart by how near the next wall is."""
OPEN = 8
"""From this step on a place is in the open."""


class Learnt(msgspec.Struct):
    """The tables; what is kept between episodes and saved with the agent."""

    effects: dict[str, tuple[float, float]]
    """Where each move leads: forward and to the left, in units."""
    hits: list[float]
    """Share of shots that hit, by how far off the line of fire the target was."""
    harm: list[float] = msgspec.field(default_factory=lambda: [0.0] * (OPEN + 1))
    """Health usually lost per tick, by how near the next wall or pillar is."""
    surprise: float = 0.0

    @property
    def aim(self) -> float:
        """How far off the line of fire a shot is still worth its bullet; at half a step aside it cannot be bettered."""
        least = WORSE * max(self.hits)
        worth = next((step for step, rate in enumerate(self.hits) if rate < least), len(self.hits))
        return max(OFFSET * worth, math.hypot(*self.effects["left"]) / 2)

    def enter_effect(self, move: str, seen: tuple[float, float]) -> float:
        """Takes in where a move led; returns how far that is from what was expected."""
        old = self.effects[move]
        self.effects[move] = (old[0] + RATE * (seen[0] - old[0]), old[1] + RATE * (seen[1] - old[1]))
        return math.dist(old, seen)

    def enter_shot(self, offset: float, hit: bool) -> None:
        """Takes in whether a shot hit."""
        step = int(offset / OFFSET)
        if step < len(self.hits):
            self.hits[step] += SHOT_RATE * (hit - self.hits[step])

    def enter_harm(self, clearance: float, lost: float) -> None:
        """Takes in what a tick at a place cost."""
        step = _step(clearance)
        self.harm[step] += min(max(lost - self.harm[step], -HARM_STEP), HARM_STEP)

    def harm_at(self, clearance: float) -> float:
        """What a tick at a place costs beyond a tick in the open; nearer to a wall is never held better."""
        return max(0.0, max(self.harm[_step(clearance) :]) - self.harm[OPEN])


def untaught(task: str) -> Learnt:
    """What an agent of a task starts with: moves that lead where they say, and shots that hit."""
    straight = {move: (math.cos(math.radians(turn)), math.sin(math.radians(turn))) for move, turn in MOVES.items()}
    steps = math.ceil(AIM[task] / OFFSET)
    return Learnt({move: (8 * x, 8 * y) for move, (x, y) in straight.items()}, [1.0] * steps)


def _step(clearance: float) -> int:
    return int(min(clearance / CLEARANCE, OPEN))
