"""The actions of an agent: shots, loads, zooms and waits, as values, as plain data, or as three numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec

from openfield.errors import AgentProtocol

Pixels = Annotated[float, msgspec.Meta(ge=-1e10, le=1e10)]
"""Any pixel: the wire accepts every four-byte number, and a far pixel is a full pull."""
MAX_FRAMES = 300
TAP_SECONDS = 5.0


class Shot(msgspec.Struct, frozen=True, tag_field="do", tag="shoot"):
    """Pull the bird to a pixel and let go."""

    x: Pixels
    y: Pixels
    tap: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """Milliseconds after release at which the bird uses its power; 0 means never."""
    fast: bool = False
    """Do not wait until everything rests."""
    every: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Record the ground truth at this interval of steps; 0 records nothing."""
    until_contact: bool = False
    """Record only up to the first contact."""


class SlingshotLaunch(msgspec.Struct, frozen=True, tag_field="do", tag="launch"):
    """Launch the bird along a vector; length 1 is full power."""

    dx: Annotated[float, msgspec.Meta(ge=-1e6, le=1e6)]
    dy: Annotated[float, msgspec.Meta(ge=-1e6, le=1e6)]
    tap: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """Milliseconds after release."""


class Load(msgspec.Struct, frozen=True, tag_field="do", tag="load"):
    """Load a level by its number, from 1 on; 0 is the next available one."""

    level: Annotated[int, msgspec.Meta(ge=0)] = 0


class Restart(msgspec.Struct, frozen=True, tag_field="do", tag="restart"):
    """Play the level again, as one more attempt."""


class Zoom(msgspec.Struct, frozen=True, tag_field="do", tag="zoom"):
    """Zoom in or out."""

    way: Literal["in", "out"]


class Wait(msgspec.Struct, frozen=True, tag_field="do", tag="wait"):
    """Let simulated time pass, at most until everything rests."""

    seconds: Annotated[float, msgspec.Meta(ge=0, le=3600)]


class Watch(msgspec.Struct, frozen=True, tag_field="do", tag="watch"):
    """Let time pass and record ground truths."""

    every: Annotated[int, msgspec.Meta(ge=1)]
    frames: Annotated[int, msgspec.Meta(ge=0, le=MAX_FRAMES)]


class Leave(msgspec.Struct, frozen=True, tag_field="do", tag="leave"):
    """Give up the level in play. It is also recorded for an agent that hangs up where it may."""


class Stay(msgspec.Struct, frozen=True, tag_field="do", tag="stay"):
    """Stay in the same state: say something between levels, or in words."""

    text: str = ""


Action = Shot | SlingshotLaunch | Load | Restart | Zoom | Wait | Watch | Leave | Stay


def read_action(action: Any) -> Action:
    """Read an action from a value, plain data, or three numbers from -1 to 1.

    Three numbers are a launch: to the right, upwards, and the tap as a share of 5 s (no tap below 0).
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
        raise AgentProtocol(f"{action!r} is not an action: {error}") from None


def _launch(numbers: Sequence[Any]) -> SlingshotLaunch:
    try:
        dx, dy, tap = (float(number) for number in numbers)
    except (TypeError, ValueError):
        raise AgentProtocol(f"{numbers!r} is not an action: a launch is three numbers") from None
    if not all(map(math.isfinite, (dx, dy, tap))) or max(abs(dx), abs(dy)) > 1:
        raise AgentProtocol(f"{numbers!r} is not an action: a launch is three numbers from -1 to 1")
    return SlingshotLaunch(dx, dy, max(0.0, min(tap, 1.0)) * TAP_SECONDS * 1000)
