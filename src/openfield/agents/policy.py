"""Play with a trained policy: anything that answers an observation with an action.

`policy` takes the policy and how it sees observations; `Policy` is the agent it becomes in a cell. A policy is shown
values as the Gymnasium environments of openfield show them: arrays, and a choice as the number of its option.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, Literal, Protocol

import numpy as np

from openfield.core import Ask, Belief, Reply, Spec, Turn
from openfield.errors import AgentProtocol, InvalidInput, describe_error, shorten
from openfield.spaces import Box, Choice, Discrete, Fields, Sequence, Space, Text, Tuple, from_numpy, to_numpy

MAX_STACK = 1_000
"""Frames that may be stacked."""
Array = np.ndarray[Any, np.dtype[Any]]


class Frames:
    """The input of a policy: observations are prepared one by one, and then the last few are stacked."""

    def __init__(
        self,
        stack: int = 1,
        stack_axis: int | None = None,
        pad: Literal["first", "zeros"] = "first",
        preprocess: Callable[[Any], Any] | None = None,
    ) -> None:
        """Declare the input of a policy; `policy` explains the arguments.

        Raises:
            InvalidInput: An argument is wrong.
        """
        if isinstance(stack, bool) or not isinstance(stack, int) or not 1 <= stack <= MAX_STACK:
            raise InvalidInput(f"'stack' is a whole number from 1 to {MAX_STACK:,}, not {stack!r}.")
        if stack_axis is not None and (isinstance(stack_axis, bool) or not isinstance(stack_axis, int)):
            raise InvalidInput(f"'stack_axis' is the number of an axis, not {stack_axis!r}.")
        if pad not in ("first", "zeros"):
            raise InvalidInput(f"'pad' is 'first' or 'zeros', not {pad!r}.")
        if preprocess is not None and not callable(preprocess):
            raise InvalidInput(f"'preprocess' is a function of an observation, not {shorten(preprocess)}.")
        self.stack, self.stack_axis, self.pad, self.preprocess = stack, stack_axis, pad, preprocess

    def prepare(self, observation: Any) -> Any:
        """Return one observation as it is stacked."""
        return observation if self.preprocess is None else self.preprocess(observation)

    def start(self, frame: Any) -> deque[Any]:
        """Return the frames of an episode of which only the first was seen."""
        before = np.zeros_like(frame) if self.pad == "zeros" and self.stack > 1 else frame
        return deque([*[before] * (self.stack - 1), frame], self.stack)

    def join(self, frames: deque[Any]) -> Any:
        """Return what the policy is shown: the only frame, or all of them in one array, the newest last."""
        if self.stack == 1:
            return frames[-1]
        return np.stack(frames) if self.stack_axis is None else np.concatenate(frames, self.stack_axis)

    def show_example(self, space: Space) -> Any:
        """Return the input of a policy where all numbers are at their lower bounds, to see its form.

        Raises:
            InvalidInput: Observations of this space cannot be prepared and stacked so.
        """
        try:
            frame = self.prepare(make_example(space))
            if self.stack > 1 and not isinstance(frame, np.ndarray | np.generic):
                raise TypeError("frames are stacked as arrays; let 'preprocess' return one")
            return self.join(self.start(frame))
        except Exception as error:
            raise InvalidInput(
                f"The observations cannot be prepared for the policy: {describe_error(error)}"
            ) from error


class Answering(Protocol):
    """What answers observations with actions."""

    def begin(self) -> None:
        """Forget the episode before."""
        ...

    def __call__(self, shown: Any, /) -> Any:
        """Return the action for an input."""
        ...


class Policy:
    """The agent that a policy becomes. It states no belief of its own.

    On resume it is asked the same questions again, and must answer as it did.
    """

    def __init__(self, answer: Answering, frames: Frames, spec: Spec) -> None:
        self._answer, self._frames, self._spec = answer, frames, spec
        self._begins, self._seen = True, deque[Any]()

    def __call__(self, turn: Turn) -> Reply:
        """Answer a turn."""
        shown = self._look(turn)
        if turn.ask is Ask.ACT:
            return Reply(self._act(shown))
        return Reply(None, Belief(0.0) if turn.ask is Ask.BELIEF else None)

    def _look(self, turn: Turn) -> Any:
        """Take note of a turn, and return what the policy is shown if it must act."""
        self._begins = self._begins or turn.first
        if turn.ask is not Ask.ACT:
            self._begins = self._begins or turn.last is not None
            return None
        space = self._spec.observations
        frame = self._frames.prepare(turn.observation if space is None else to_numpy(space, turn.observation))
        if self._begins:
            self._seen = self._frames.start(frame)
            self._answer.begin()
        else:
            self._seen.append(frame)
        self._begins = turn.last is not None
        return self._frames.join(self._seen)

    def _act(self, shown: Any) -> Any:
        given = self._answer(shown)
        try:
            return to_action(self._spec.actions, given)
        except (IndexError, KeyError, TypeError, ValueError):
            wanted = "plain data" if self._spec.actions is None else summarise_space(self._spec.actions)
            raise AgentProtocol(f"The policy answered {shorten(given)}, where the action is {wanted}.") from None


class PurePolicy(Policy):
    """A policy whose answers depend only on its input: on resume it gets its past and is not asked again."""

    def remember(self, turn: Turn, reply: Reply) -> None:
        """Take note of a turn that it was shown."""
        self._look(turn)


class Model:
    """Asks a policy, whatever kind it is, and keeps the state that it returns until the episode is over."""

    def __init__(self, model: Any, rows: bool, actions: Space | None) -> None:
        self._ask: Callable[..., Any] = getattr(model, "predict", model)
        self._rows, self._actions = rows, actions
        taken = _list_parameters(self._ask)
        self._takes_state, self._takes_start = "state" in taken, "episode_start" in taken
        self._fixed = {"deterministic": True} if "deterministic" in taken else {}
        self._state, self._first = None, True

    def begin(self) -> None:
        """Forget the episode before."""
        self._state, self._first = None, True

    def __call__(self, shown: Any) -> Any:
        """Return the action for what the policy is shown."""
        extra: dict[str, Any] = dict(self._fixed)
        if self._takes_state:
            extra["state"] = self._state
        if self._takes_start:
            extra["episode_start"] = np.array([self._first])
        given = self._ask(flatten(shown)[None] if self._rows else shown, **extra)
        self._first = False
        if isinstance(given, tuple) and len(given) == 2 and not _is_pair(given, self._actions):
            given, self._state = given
        return np.asarray(given)[0] if self._rows else given


class PolicyFactory:
    """Makes the agent of a policy. `policy` returns one."""

    def __init__(self, model: Any, frames: Frames, rows: bool) -> None:
        self.model, self.frames, self.rows = model, frames, rows
        self.preprocess = frames.preprocess  # at hand for the fingerprint, which takes its file from here
        self.__name__ = str(getattr(model, "__name__", type(model).__name__))

    def __call__(self, spec: Spec, seed: int) -> Policy:
        """Make the agent."""
        self.check_spec(spec)
        kind = PurePolicy if self.rows else Policy
        return kind(Model(_copy(self.model), self.rows, spec.actions), self.frames, spec)

    def check_spec(self, spec: Spec) -> None:
        """Check that the policy was made for the observations and actions of a trial, as far as it can be known.

        Raises:
            InvalidInput: It was made for others.
        """
        check_spaces(self.model, self.frames, self.rows, spec)


def policy(
    model: Any,
    *,
    stack: int = 1,
    stack_axis: int | None = None,
    pad: Literal["first", "zeros"] = "first",
    preprocess: Callable[[Any], Any] | None = None,
    rows: bool | None = None,
) -> PolicyFactory:
    """Return an agent that plays with a trained policy: `of.run(of.policy(model, stack=4), "maze")`.

    Every cell has a copy of its own of an object that can be copied.

    Args:
        model: A function of an observation that returns an action, or an object with `predict(observation)`, which may
            return `(action, state)` and take `state`, `episode_start` and `deterministic` as in stable-baselines3.
        stack: How many observations it is shown at once.
        stack_axis: The axis along which they are joined. None puts them along a new first axis, as Gymnasium does.
        pad: What stands for observations before the first one of an episode: this one again, or zeros.
        preprocess: A function that changes each observation before it is stacked. It keeps no state.
        rows: Whether it takes a table of one row and returns one answer per row, as in scikit-learn; None finds out.

    Raises:
        InvalidInput: It is not a policy, or an argument is wrong.
    """
    if inspect.isclass(model):
        raise InvalidInput(f"A policy is an object or a function, not the class {model.__name__}: make it first.")
    if not hasattr(model, "predict") and any(kind.__module__.startswith("torch.nn.") for kind in type(model).__mro__):
        raise InvalidInput(
            "A module of torch takes tensors, and its answer is not an action. Write its input and its choice: "
            "of.policy(lambda seen: int(module(torch.as_tensor(seen)[None]).argmax()))"
        )
    if not callable(getattr(model, "predict", model)):
        raise InvalidInput(f"A policy is a function, or has predict(observation); {shorten(model)} is neither.")
    found = hasattr(model, "n_features_in_") or hasattr(model, "get_params")
    return PolicyFactory(model, Frames(stack, stack_axis, pad, preprocess), found if rows is None else rows)


def check_spaces(model: Any, frames: Frames, rows: bool, spec: Spec) -> None:
    """Check that a policy was made for the observations and actions of a trial, as far as it can be known.

    Raises:
        InvalidInput: It was made for others.
    """
    said = f"The policy cannot play {spec.domain}: it was made for"
    if spec.observations is not None:
        shape = np.shape(_measure(frames.show_example(spec.observations), rows))
        size = getattr(model, "n_features_in_", None) if rows else None
        if size is not None and shape != (size,):
            raise InvalidInput(f"{said} {size} numbers, and is shown {shape[0]}.")
        wanted = getattr(getattr(model, "observation_space", None), "shape", None)
        if (
            wanted is not None
            and not isinstance(spec.observations, Fields | Tuple | Text)
            and not _is_shape(shape, tuple(wanted))
        ):
            raise InvalidInput(f"{said} observations of shape {tuple(wanted)}, and is shown {shape}.")
    if spec.actions is not None and not _fits_actions(model, spec.actions):
        own = getattr(model, "action_space", None) or f"the actions {list(model.classes_)}"
        raise InvalidInput(f"{said} {shorten(own)}, where the action is {summarise_space(spec.actions)}.")


def _fits_actions(model: Any, actions: Space) -> bool:
    """Return whether the actions that a policy says it gives are those of a space; true if it says nothing."""
    known = getattr(model, "action_space", None)
    count, shape = getattr(known, "n", None), getattr(known, "shape", None)
    match actions:
        case Discrete() | Choice():
            size = actions.n if isinstance(actions, Discrete) else len(actions.options)
            if known is not None:
                return bool(count == size)
            return all(_is_action(actions, each) for each in np.ravel(getattr(model, "classes_", ())))
        case Box():
            return known is None or (count is None and shape is not None and tuple(shape) == actions.shape)
        case _:
            return True


def _is_action(space: Space, given: Any) -> bool:
    try:
        return space.contains(to_action(space, given))
    except (IndexError, KeyError, TypeError, ValueError):
        return False


def to_action(space: Space | None, given: Any) -> Any:
    """Return a policy's answer as an action of a space: arrays of one number count as the number.

    Raises:
        IndexError, KeyError, TypeError, ValueError: It has no such form.
    """
    match space:
        case Choice() if isinstance(given, str) and given in space.options:
            return str(given)
        case Discrete() | Choice():
            return from_numpy(space, np.asarray(given).reshape(()).item())
        case Box(shape=shape, dtype=dtype):
            return from_numpy(space, np.asarray(given, dtype).reshape(shape))
        case Fields(parts) if isinstance(given, Mapping):
            return {name: to_action(part, given[name]) for name, part in parts.items()}
        case Tuple(parts=items):
            return [to_action(part, each) for part, each in zip(items, given, strict=True)]
        case Sequence(part):
            return [to_action(part, each) for each in given]
        case Text():
            return from_numpy(space, given)
        case None:
            return given.tolist() if isinstance(given, np.ndarray | np.generic) else given
        case _:
            raise TypeError("not a mapping")


def flatten(shown: Any) -> Array:
    """Return all numbers of an observation in a row, those of a mapping or tuple in the order of its parts."""
    if isinstance(shown, Mapping | tuple):
        parts = shown.values() if isinstance(shown, Mapping) else shown
        return np.concatenate([flatten(part) for part in parts]) if shown else np.zeros(0)
    return np.ravel(np.asarray(shown))


def make_example(space: Space) -> Any:
    """Return a value of a space in NumPy's form, with all numbers at their lower bounds, or zero without a bound."""
    match space:
        case Box(shape=shape, dtype=dtype):
            lows = space.bounds[0]
            return np.where(np.isfinite(lows), lows, 0).reshape(shape).astype(dtype)
        case Fields(parts):
            return {name: make_example(part) for name, part in parts.items()}
        case Tuple(parts=items):
            return tuple(map(make_example, items))
        case Sequence():
            return ()
        case Text(characters, min_length=length):
            return characters[:1] * length
        case Choice():
            return np.int64(0)
        case Discrete(start=start):
            return np.int64(start)


def summarise_space(space: Space) -> str:
    """Return what belongs to a space in a few words, for messages; `turn_writer.describe_space` says all of it."""
    match space:
        case Discrete(n, start):
            return f"a whole number from {start} to {start + n - 1}"
        case Choice(options):
            return f"one of {len(options)} options"
        case Box(shape=shape):
            return f"numbers of shape {shape}"
        case Fields(parts):
            return f"a mapping with {', '.join(parts)}"
        case Tuple(parts=items):
            return f"{len(items)} parts"
        case Sequence():
            return "any number of parts"
        case Text():
            return "a text"


def _measure(shown: Any, rows: bool) -> Any:
    return flatten(shown) if rows or isinstance(shown, Mapping | tuple) else shown


def _is_shape(shown: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Return whether a shape is the wanted one; a policy for pictures may turn channels to the front by itself."""
    return shown == wanted or (len(shown) == 3 and (shown[2], *shown[:2]) == wanted)


def _is_pair(given: tuple[Any, Any], actions: Space | None) -> bool:
    """Return whether a pair is an action of two numbers or parts, and not an action with a state."""
    if isinstance(actions, Tuple):
        return _is_action(actions, given)
    return isinstance(actions, Box) and actions.shape == (2,) and np.ndim(given[0]) == 0


def _list_parameters(function: Callable[..., Any]) -> set[str]:
    try:
        return set(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return set()


def _copy(model: Any) -> Any:
    try:
        return deepcopy(model)
    except Exception:  # an object that cannot be copied, such as one that holds a session, is shared
        return model
