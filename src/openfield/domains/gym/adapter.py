"""Map Gymnasium's spaces to those of openfield, observations to what the record takes, and replies to actions."""

from __future__ import annotations

import string
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces as gym_spaces
from gymnasium.vector.utils import concatenate, create_empty_array, iterate

from openfield.domains.gym.environment import one_line
from openfield.errors import AgentProtocol, InvalidInput
from openfield.spaces import Box, Discrete, Fields, Sequence, Space, Text, Tuple

GymSpace = gymnasium.Space[Any]
MAX_TEXT = 10_000
"""Characters of a text whose space does not say how long it may be."""


def to_space(space: GymSpace) -> Space:
    """Return the space of openfield that holds the same values.

    Raises:
        InvalidInput: No space fits, as for graphs.
    """
    match space:
        case gym_spaces.Discrete():
            return Discrete(int(space.n), int(space.start))
        case gym_spaces.MultiBinary():
            return Box(0, 1, tuple(space.shape), "int8")
        case gym_spaces.MultiDiscrete():
            first = np.broadcast_to(space.start, space.nvec.shape)
            last = first + space.nvec - 1
            return Box(_bounds(first), _bounds(last), tuple(space.shape), str(space.dtype))
        case gym_spaces.Box():
            return Box(_bounds(space.low), _bounds(space.high), tuple(space.shape), str(space.dtype))
        case gym_spaces.Text():
            return Text("".join(sorted(space.character_set)), space.max_length, space.min_length)
        case gym_spaces.Dict() if all(isinstance(name, str) for name in space):
            return Fields({name: to_space(part) for name, part in space.items()})
        case gym_spaces.Tuple():
            return Tuple(tuple(to_space(part) for part in space))
        case gym_spaces.Sequence():
            return Sequence(to_space(space.feature_space))
    if space.dtype is not None and space.dtype.kind == "U":  # a space of another package: the missions of MiniGrid
        return Text(string.printable, MAX_TEXT)
    raise InvalidInput(
        f"The space {one_line(space):.80} cannot be used. "
        "Known are Box, Discrete, MultiDiscrete, MultiBinary, Text, Dict with text as keys, Tuple and Sequence."
    )


def _bounds(bounds: Any) -> float | tuple[float, ...]:
    """Return one bound where all are equal, and else one of each."""
    flat = np.ravel(bounds).tolist()
    return flat[0] if len(set(flat)) == 1 else tuple(flat)


def to_plain(value: Any) -> Any:
    """Return an observation as the record takes it. Arrays are copied, as the agent may write into them."""
    match value:
        case np.ndarray():
            return value.copy()
        case np.generic():
            return value.item()
        case dict():
            return {name: to_plain(part) for name, part in value.items()}
        case tuple() | list():
            return [to_plain(part) for part in value]
    if hasattr(value, "__array__"):  # an array of JAX or another package
        return to_plain(np.asarray(value)[()])
    return value


def reader_of(space: GymSpace) -> Callable[[Any], Any]:
    """Return what turns observations of a space into what the record takes."""
    return partial(_unstack, space) if _has_stack(space) else to_plain


def _has_stack(space: GymSpace) -> bool:
    match space:
        case gym_spaces.Dict():
            return any(map(_has_stack, space.values()))
        case gym_spaces.Tuple():
            return any(map(_has_stack, space))
        case gym_spaces.Sequence():
            return bool(space.stack) or _has_stack(space.feature_space)
    return False


def _unstack(space: GymSpace, value: Any) -> Any:
    """Return an observation in which stacked sequences, whose parts lie in common arrays, are lists."""
    match space:
        case gym_spaces.Dict():
            return {name: _unstack(part, value[name]) for name, part in space.items()}
        case gym_spaces.Tuple():
            return [_unstack(part, each) for part, each in zip(space, value, strict=True)]
        case gym_spaces.Sequence():
            parts = iterate(space.stacked_feature_space, value) if space.stack else value
            return [_unstack(space.feature_space, each) for each in parts]
    return to_plain(value)


def to_env_action(space: GymSpace, declared: Space, value: Any) -> Any:
    """Return the action that a reply means, in the form that the environment takes.

    Raises:
        AgentProtocol: The action space does not hold it.
    """
    if type(value) is int and isinstance(declared, Discrete):  # most actions are, and most steps are short
        ready = 0 <= value - declared.start < declared.n
    else:
        ready = _is_array_of(space, value)
    if ready:
        return value
    plain = _bare(value)
    if not declared.contains(plain):
        raise AgentProtocol(f"{one_line(repr(value)):.80} is not an action of {one_line(space):.120}")
    return _convert(space, plain)


def _is_array_of(space: GymSpace, value: Any) -> bool:
    """Return whether a value is an array of a box already, in type and shape too."""
    if not isinstance(value, np.ndarray) or not isinstance(space, gym_spaces.Box):
        return False
    fits = value.dtype == space.dtype and value.shape == space.shape
    return fits and bool(((value >= space.low) & (value <= space.high)).all())


def _bare(value: Any) -> Any:
    """Return a value in which arrays without dimensions are numbers: networks return such arrays."""
    match value:
        case np.ndarray() if value.ndim == 0:
            return value[()]
        case dict():
            return {name: _bare(part) for name, part in value.items()}
        case tuple():
            return [_bare(part) for part in value]
    return value


def _convert(space: GymSpace, value: Any) -> Any:
    match space:
        case gym_spaces.Discrete():
            return int(value)
        case gym_spaces.Dict():
            return {name: _convert(part, value[name]) for name, part in space.items()}
        case gym_spaces.Tuple():
            return tuple(_convert(part, each) for part, each in zip(space, value, strict=True))
        case gym_spaces.Sequence(stack=True):
            items = [_convert(space.feature_space, each) for each in value]
            empty: Any = create_empty_array(space.feature_space, len(items), fn=np.zeros)
            return concatenate(space.feature_space, items, empty) if items else empty
        case gym_spaces.Sequence():
            return tuple(_convert(space.feature_space, each) for each in value)
        case gym_spaces.Text():
            return value
    return np.asarray(value, dtype=space.dtype)
