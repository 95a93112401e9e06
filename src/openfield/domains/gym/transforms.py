"""Values of spaces changed: in other places, mirrored, inverted, or without some of their parts.

Each transform has a `can_` or `is_` beside it that says which spaces it fits: one that cannot be noticed does not count
as a change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeGuard

import numpy as np
from gymnasium import spaces as gym_spaces

from openfield.domains.gym.adapter import GymSpace

MIN_PICTURE_SIDE = 16
"""Points on the shorter side of a picture. Smaller arrays of bytes are codes, such as those of MiniGrid."""
MAX_CHANNELS = 4
"""Colours of a point; a longer last axis is not one of colours."""
BROKEN_SEED = 7
"""Which sensors and actuators are broken is the same in every episode."""
MAX_RANGE = 1e6
"""Numbers with a larger range count as unbounded: their noise is in shares of 1."""


def has_part(space: GymSpace, fits: Callable[[GymSpace], bool]) -> bool:
    """Return whether a space, or a part of it, is one that a transform fits."""
    match space:
        case gym_spaces.Dict():
            return any(has_part(part, fits) for part in space.values())
        case gym_spaces.Tuple():
            return any(has_part(part, fits) for part in space)
    return fits(space)


def change_parts(space: GymSpace, value: Any, change: Callable[[GymSpace, Any], Any]) -> Any:
    """Return a value with each part changed. Parts come back in the form and the order they had.

    In the order of the space they would tell an agent that something was changed.
    """
    match space:
        case gym_spaces.Dict():
            changed = {name: change_parts(part, value[name], change) for name, part in space.items()}
            return {name: changed.get(name, each) for name, each in value.items()}
        case gym_spaces.Tuple():
            parts = [change_parts(part, each, change) for part, each in zip(space, value, strict=True)]
            return parts if isinstance(value, list) else tuple(parts)
    return change(space, value)


def is_array(space: GymSpace) -> TypeGuard[gym_spaces.Box]:
    """Return whether values are arrays of numbers, which noise and blanks fit."""
    return isinstance(space, gym_spaces.Box)


def can_permute(space: GymSpace) -> bool:
    """Return whether values, or their numbers, can change places so that something moves."""
    match space:
        case gym_spaces.Discrete():
            return bool(space.n > 1)
        case gym_spaces.Box() | gym_spaces.MultiBinary() | gym_spaces.MultiDiscrete():
            return _place_axis(space.shape) is not None
    return False


def permute(space: GymSpace, value: Any) -> Any:
    """Return a value with its place taken by the next one. What does not fit there is moved into the bounds."""
    if not can_permute(space):
        return value
    match space:
        case gym_spaces.Discrete():
            return int(space.start + (value - space.start + 1) % space.n)
        case gym_spaces.MultiDiscrete():
            return np.minimum(np.roll(value - space.start, 1), space.nvec - 1) + space.start
    rolled = np.roll(value, 1, _place_axis(np.shape(value)))
    if isinstance(space, gym_spaces.Box):
        return np.clip(rolled, space.low, space.high).astype(rolled.dtype)
    return rolled


def can_mirror(space: GymSpace) -> bool:
    """Return whether actions can mean their opposites, and this is more than a permutation of two."""
    match space:
        case gym_spaces.Discrete():
            return bool(space.n > 2)
        case gym_spaces.MultiDiscrete():
            return bool((space.nvec > 1).any())
    return isinstance(space, gym_spaces.Box | gym_spaces.MultiBinary)


def mirror(space: GymSpace, value: Any) -> Any:
    """Return the action at the same distance from the other end; the opposite number where there is no end."""
    match space:
        case gym_spaces.Discrete() if space.n > 2:
            return int(2 * space.start + space.n - 1 - value)
        case gym_spaces.MultiDiscrete():
            return np.asarray(2 * space.start + space.nvec - 1 - value, space.dtype)
        case gym_spaces.MultiBinary():
            return np.asarray(1 - value, space.dtype)
        case gym_spaces.Box():
            return _reflect(space, value)
    return value


def is_picture_space(space: GymSpace) -> bool:
    """Return whether values are pictures: bytes from 0 to 255 on two axes of some length, with or without colours."""
    if not isinstance(space, gym_spaces.Box) or space.dtype != np.uint8 or len(space.shape) < 2:
        return False
    sides = [space.shape[axis] for axis in picture_axes(space.shape)]
    return min(sides) >= MIN_PICTURE_SIDE and bool((space.low == 0).all() and (space.high == 255).all())


def picture_axes(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return the axes of rows and columns; colours come last or first, and so do pictures of several moments."""
    last = len(shape) - 1
    return (last - 2, last - 1) if last >= 2 and shape[-1] <= MAX_CHANNELS else (last - 1, last)


def flip_picture(space: GymSpace, value: Any) -> Any:
    """Return a picture with left and right exchanged; other values as they are."""
    return np.flip(value, picture_axes(space.shape)[1]).copy() if is_picture_space(space) else value  # type: ignore[arg-type]


def invert_picture(space: GymSpace, value: Any) -> Any:
    """Return a picture with opposite colours; other values as they are."""
    return 255 - value if is_picture_space(space) else value


def can_break(space: GymSpace) -> bool:
    """Return whether some actuators can break so that others are left."""
    match space:
        case gym_spaces.Discrete():
            return bool(space.n > 1)
        case gym_spaces.Box() | gym_spaces.MultiBinary() | gym_spaces.MultiDiscrete():
            return int(np.prod(space.shape)) > 1
    return False


def can_break_more(space: GymSpace) -> bool:
    """Return whether half of the actuators or sensors are more than a quarter of them."""
    count = _count_parts(space)
    return can_break(space) and bool(pick_broken(count, 0.5).sum() > pick_broken(count, 0.25).sum())


def _count_parts(space: GymSpace) -> int:
    return int(space.n) - 1 if isinstance(space, gym_spaces.Discrete) else int(np.prod(space.shape or ()))


def break_actuators(space: GymSpace, value: Any, share: float) -> Any:
    """Return an action in which broken actuators rest. Of single actions broken ones do what the first does."""
    if not can_break(space):
        return value
    if isinstance(space, gym_spaces.Discrete):
        broken = pick_broken(_count_parts(space), share)
        return int(space.start) if value > space.start and broken[value - space.start - 1] else value
    broken = pick_broken(_count_parts(space), share, keep=1).reshape(np.shape(value))
    return np.where(broken, rest(space), value).astype(space.dtype)


def pick_broken(count: int, share: float, keep: int = 0) -> Any:
    """Return which of some things are broken: a share of them, at least one, always the same.

    Args:
        count: How many things there are.
        share: The share that is broken.
        keep: How many must be left.
    """
    broken = min(max(1, round(share * count)), count - keep)
    return np.random.default_rng(BROKEN_SEED).permutation(count) < broken


def rest(space: GymSpace) -> Any:
    """Return the action that stands for none: the first, or 0 where the bounds allow it."""
    match space:
        case gym_spaces.Discrete():
            return int(space.start)
        case gym_spaces.Dict():
            return {name: rest(part) for name, part in space.items()}
        case gym_spaces.Tuple():
            return tuple(rest(part) for part in space)
        case gym_spaces.Text():
            return next(iter(sorted(space.character_set))) * space.min_length
        case gym_spaces.Box():
            return np.clip(np.zeros(space.shape, space.dtype), space.low, space.high)
        case gym_spaces.MultiDiscrete():
            return np.array(np.broadcast_to(space.start, space.nvec.shape), space.dtype)
        case gym_spaces.Sequence():
            return ()
    return np.zeros(space.shape or (), space.dtype)


def blank(space: gym_spaces.Box, value: Any, draw: Callable[[int], Any]) -> Any:
    """Return numbers of which some are 0, or the bound next to it; of a picture, whole points.

    Args:
        space: Their space.
        value: The numbers.
        draw: Returns which values are blank, given their number.
    """
    if not is_picture_space(space):
        hidden = draw(value.size).reshape(value.shape)
    else:
        rows, columns = picture_axes(value.shape)
        sides = [side if axis in (rows, columns) else 1 for axis, side in enumerate(value.shape)]
        hidden = draw(value.shape[rows] * value.shape[columns]).reshape(sides)
    return np.clip(np.where(hidden, 0, value), space.low, space.high).astype(value.dtype)


def add_noise(space: gym_spaces.Box, value: Any, drawn: Any) -> Any:
    """Return numbers with noise in shares of their range. They stay in their bounds, and whole numbers whole."""
    with np.errstate(over="ignore", invalid="ignore"):
        width = np.asarray(space.high, float) - np.asarray(space.low, float)
    noise = drawn * np.where(width < MAX_RANGE, width, 1.0)
    noisy = value + (noise if value.dtype.kind == "f" else np.rint(noise))
    return np.clip(noisy, space.low, space.high).astype(value.dtype)


def _place_axis(shape: tuple[int, ...] | None) -> int | None:
    """Return the axis along which numbers change places: that of a vector, or that of colours."""
    if not shape or shape[-1] < 2:
        return None
    return len(shape) - 1 if len(shape) == 1 or shape[-1] <= MAX_CHANNELS else None


def _reflect(space: gym_spaces.Box, value: Any) -> Any:
    low, high = np.asarray(space.low, float), np.asarray(space.high, float)
    with np.errstate(over="ignore", invalid="ignore"):
        ends = np.where(np.isfinite(low + high) & np.isfinite(high - low), low + high, 0.0)
    return np.clip(ends - value + 0.0, space.low, space.high).astype(space.dtype)
