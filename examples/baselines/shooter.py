"""A shooter of Birds that learned which shots kill pigs.

    openfield run birds --agent 'examples/baselines/shooter.py:Shooter(network=examples/baselines/networks/shooter.onnx)'

It proposes shots at everything and at many angles, looks at what stands around the place that each would hit first, and
takes the one that its network prefers. `train_shooter.py` trains the network. It needs the extras birds and onnx.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from openfield.core import Spec
from openfield.domains.birds.agents.observed_level import GRAVITY, SPEED, ObservedLevel, Point
from openfield.domains.birds.agents.shooters import PIGS
from openfield.domains.birds.agents.shooters import Shooter as ScriptedShooter
from openfield.lazy import import_extra

Rows = NDArray[np.float32]
KINDS = {"pig": 0, "novel": 0, "wood": 1, "ice": 2, "stone": 3, "tnt": 4, "platform": 5}
"""The layer on which an object is drawn."""
BIRDS = ("bird_red", "bird_blue", "bird_yellow", "bird_black", "bird_white")
CELLS, SIZES = 12, (0.4, 1.4)
"""Squares along a side of the two drawings around a place, and how wide one is in world units."""
RADIUS, FLIGHT = 0.25, 3.6
"""Of a bird, and the seconds of its flight that are looked at."""
TARGETS = 12


class Shooter(ScriptedShooter):
    """Takes the shot that its network prefers."""

    def __init__(self, spec: Spec, seed: int, network: str) -> None:
        super().__init__(spec, seed)
        runtime = import_extra("onnxruntime", "onnx", "The learned shooter")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._network = runtime.InferenceSession(network, options)

    def choose(self, level: ObservedLevel) -> tuple[Point, float]:
        """Choose among the proposed shots."""
        shots = propose_shots(level)
        (worth,) = self._network.run(None, {"shots": np.stack([describe_shot(level, launch) for launch, _ in shots])})
        launch, target = shots[int(np.argmax(worth))]
        return launch, level.tap_time(launch, target)


def propose_shots(level: ObservedLevel) -> list[tuple[Point, Point]]:
    """Return launches and what they aim at: both arcs to pigs and blocks, and angles between."""
    pigs, blocks = level.of(*PIGS), level.of("wood", "ice", "stone", "tnt")
    blocks.sort(key=lambda block: min((math.dist(block.centre, pig.centre) for pig in pigs), default=0.0))
    targets = [each.centre for each in (pigs + blocks)[:TARGETS]]
    shots = [(launch, aim) for aim in targets for high in (False, True) if (launch := level.aim(aim, high)) is not None]
    middle = targets[0] if targets else (level.rest[0] + 200, level.rest[1])
    side = 1 if middle[0] >= level.rest[0] else -1
    angles = (math.radians(degrees) for degrees in range(-15, 79, 3))
    return shots + [((side * math.cos(angle), math.sin(angle)), middle) for angle in angles]


def describe_shot(level: ObservedLevel, launch: Point) -> Rows:
    """Return the numbers of a shot: what stands around the place that it hits first, how it arrives, and the bird."""
    boxes, kinds = find_boxes(level)
    place, speed, time = fly(level, launch, boxes)
    drawn = [draw(boxes, kinds, place, launch[0], size) for size in SIZES]
    bird = [float(level.bird is not None and level.bird.look == look) for look in BIRDS]
    arrival = [abs(speed[0]) / SPEED, speed[1] / SPEED, time / FLIGHT, place[1] / 10, len(level.of(*PIGS)) / 4]
    return np.concatenate([*drawn, np.array(arrival + bird, np.float32)])


def find_boxes(level: ObservedLevel) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return left, bottom, right and top of what stands there, in world units from the slingshot, and its kind."""
    seen = [each for each in level.objects if each.look in KINDS]
    corners = np.array([each.box for each in seen], float).reshape(-1, 4)[:, [0, 3, 2, 1]]
    corners = (corners - np.tile(level.rest, 2)) * np.array([1, -1, 1, -1]) / level.scale
    return corners, np.array([KINDS[each.look] for each in seen], int)


def fly(level: ObservedLevel, launch: Point, boxes: NDArray[np.float64]) -> tuple[Point, Point, float]:
    """Return where a bird touches something first, how fast it is there, and after how many seconds."""
    times = np.arange(0, FLIGHT, 0.02)
    xs = -launch[0] + SPEED * launch[0] * times  # it starts where it was pulled to
    ys = -launch[1] + SPEED * launch[1] * times - GRAVITY * times**2 / 2
    floor = (level.rest[1] - level.ground) / level.scale
    near = (xs[:, None] > boxes[:, 0] - RADIUS) & (xs[:, None] < boxes[:, 2] + RADIUS)
    near &= (ys[:, None] > boxes[:, 1] - RADIUS) & (ys[:, None] < boxes[:, 3] + RADIUS)
    hits = np.flatnonzero(near.any(1) | (ys < floor + RADIUS))
    at = int(hits[0]) if len(hits) else len(times) - 1
    speed = SPEED * launch[0], SPEED * launch[1] - GRAVITY * float(times[at])
    return (float(xs[at]), float(ys[at])), speed, float(times[at])


def draw(
    boxes: NDArray[np.float64], kinds: NDArray[np.int64], place: Point, side: float, size: float
) -> NDArray[np.float32]:
    """Draw what stands around a place, a layer for each kind, mirrored if the bird comes from the right."""
    layers = np.zeros((max(KINDS.values()) + 1, CELLS, CELLS), np.float32)
    cells = (boxes - np.tile(place, 2)) / size + CELLS / 2
    lows, highs = np.floor(cells[:, :2]).astype(int), np.ceil(cells[:, 2:]).astype(int)
    for kind, low, high in zip(kinds, np.clip(lows, 0, CELLS), np.clip(highs, 0, CELLS), strict=True):
        layers[kind, low[1] : high[1], low[0] : high[0]] = 1
    return (layers if side >= 0 else layers[..., ::-1]).ravel()
