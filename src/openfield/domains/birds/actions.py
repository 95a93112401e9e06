"""What an agent can do: shots, loads, zooms and waits, as values, as plain data, or as three numbers.

Stands between replies and the world; what is no action is refused here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec

from openfield.errors import AgentProtocol

Pixels = Annotated[float, msgspec.Meta(ge=-1e10, le=1e10)]
"""Anywhere: over the wire every number of four bytes is a pixel, and far ones are a full pull like any other."""
MAX_FRAMES = 300
TAP_SECONDS = 5.0


class Shot(msgspec.Struct, frozen=True, tag_field="do", tag="shoot"):
    """Pulls the bird to a pixel and lets go."""

    x: Pixels
    y: Pixels
    tap: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """Milliseconds after release at which the bird uses its power; 0 is never."""
    fast: bool = False
    """Does not wait until everything rests."""
    every: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Keeps the ground truth of every so many steps; 0 keeps none."""
    until_contact: bool = False
    """Keeps it only up to the first contact."""


class SlingshotLaunch(msgspec.Struct, frozen=True, tag_field="do", tag="launch"):
    """Launches the bird along a vector; length 1 is full power."""

    dx: Annotated[float, msgspec.Meta(ge=-1e6, le=1e6)]
    dy: Annotated[float, msgspec.Meta(ge=-1e6, le=1e6)]
    tap: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """Milliseconds after release."""


class Load(msgspec.Struct, frozen=True, tag_field="do", tag="load"):
    """Loads a level by its number, from 1 on; 0 is the next available one."""

    level: Annotated[int, msgspec.Meta(ge=0)] = 0


class Restart(msgspec.Struct, frozen=True, tag_field="do", tag="restart"):
    """Plays the level again, as one more attempt."""


class Zoom(msgspec.Struct, frozen=True, tag_field="do", tag="zoom"):
    """Moves the camera."""

    way: Literal["in", "out"]


class Wait(msgspec.Struct, frozen=True, tag_field="do", tag="wait"):
    """Lets simulated time pass, at most until everything rests."""

    seconds: Annotated[float, msgspec.Meta(ge=0, le=3600)]


class Watch(msgspec.Struct, frozen=True, tag_field="do", tag="watch"):
    """Lets time pass and keeps some ground truths."""

    every: Annotated[int, msgspec.Meta(ge=1)]
    frames: Annotated[int, msgspec.Meta(ge=0, le=MAX_FRAMES)]


class Stay(msgspec.Struct, frozen=True, tag_field="do", tag="stay"):
    """Stays where it is: a way to say something between levels, or in words."""

    text: str = ""


Action = Shot | SlingshotLaunch | Load | Restart | Zoom | Wait | Watch | Stay


def read_action(action: Any) -> Action:
    """An action from whatever form it came in.

    Three numbers from -1 to 1 are a launch: to the right, upwards, and the tap as a share of 5 s (none below 0).
    """
    if isinstance(action, Action):
        return action
    if isinstance(action, Sequence) and not isinstance(action, str | bytes):
        return _launch(action)
    if hasattr(action, "tolist"):
        return read_action(action.tolist())
    plain = {"do": "shoot", **action} if isinstance(action, dict) else action
    try:
        read: Action = msgspec.convert(plain, Action)
        return read
    except msgspec.ValidationError as error:
        raise AgentProtocol(f"{action!r} is no action: {error}") from None


def _launch(numbers: Sequence[Any]) -> SlingshotLaunch:
    try:
        dx, dy, tap = (float(number) for number in numbers)
    except (TypeError, ValueError):
        raise AgentProtocol(f"{numbers!r} is no action: a launch is three numbers") from None
    if not all(map(math.isfinite, (dx, dy, tap))) or max(abs(dx), abs(dy)) > 1:
        raise AgentProtocol(f"{numbers!r} is no action: a launch is three numbers from -1 to 1")
    return SlingshotLaunch(dx, dy, max(0.0, min(tap, 1.0)) * TAP_SECONDS * 1000)
