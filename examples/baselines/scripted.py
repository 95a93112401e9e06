"""The scripted agents as one: a pole balanced by a formula, a lander that follows a line, and those that domains bring.

Try it: openfield run gym:LunarLander-v3 --agent examples/baselines/scripted.py:make

The campaign examples/baselines.toml plays it in every domain, beside the learned ones.
"""

from pathlib import Path

import openfield as of

NOTHING, LEFT, MAIN, RIGHT = range(4)
EXAMPLES = Path(__file__).parent.parent
SCRIPTED = {
    "gym-MiniGrid-DoorKey-5x5-v0": f"{EXAMPLES}/door.py:Planner",
    "gym-ALE-Breakout-v5": f"{EXAMPLES}/breakout.py:FOLLOWER",
    "doom": "reference",
    "birds": "naive",
    "ond": "knn",
    "commai": "mapper",
}


def make(spec: of.Spec, seed: int) -> of.Agent:
    """Make the agent that plays in a domain."""
    if spec.domain in SCRIPTED:
        return of.registry.find_agent(SCRIPTED[spec.domain], of.registry.find_domain(spec.domain))(spec, seed)
    return land if "LunarLander" in spec.domain else balance


def balance(turn: of.Turn) -> of.Reply:
    """Push the cart to the side to which the pole falls, a little against its own drift."""
    place, speed, angle, turning = turn.observation
    return of.Reply(int(angle + 0.3 * turning + 0.02 * place + 0.05 * speed > 0))


def land(turn: of.Turn) -> of.Reply:
    """Turn towards the pad, fire the main engine where it falls faster than its height allows, and stop on the ground."""
    x, y, speed, fall, angle, turning, left, right = turn.observation
    if left or right:
        return of.Reply(MAIN if fall < -0.1 else NOTHING)
    wanted = max(-0.4, min(0.4, 0.5 * x + speed))
    turn_by = 0.5 * (wanted - angle) - turning
    lift = 0.5 * (0.55 * abs(x) - y) - 0.5 * fall
    if lift > abs(turn_by) and lift > 0.05:
        return of.Reply(MAIN)
    return of.Reply(RIGHT if turn_by < -0.05 else LEFT if turn_by > 0.05 else NOTHING)
