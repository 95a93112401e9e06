"""Play with a network in an ONNX file: `onnx:policy.onnx`, or `onnx:policy.onnx(stack=4, scale=0.00392)`.

Which input takes the observation and which output gives the action is found by their shapes: before the first turn the
network is run once on an observation of zeros or lower bounds. Three names have a meaning: an input `NAME` that has an
output `next_NAME` is memory, which is zero when an episode begins; the input `reward` takes the reward of a turn, and
the output `belief` is the probability that the world has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from openfield.agents.policy import Array, Frames, Policy, PurePolicy, flatten, summarise_space
from openfield.core import Belief, Reply, Spec, Turn
from openfield.errors import AgentProtocol, InvalidInput, OpenfieldError
from openfield.lazy import import_extra
from openfield.spaces import Box, Choice, Discrete, Space

KINDS = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(float16)": "float16",
    "tensor(int64)": "int64",
    "tensor(int32)": "int32",
    "tensor(uint8)": "uint8",
    "tensor(bool)": "bool",
}
"""What numbers a network takes are called in NumPy."""
Reads = Literal["auto", "scores", "action"]
Shaper = Callable[[Array], Array]


class Input(NamedTuple):
    """An input of a network, and the values it receives."""

    name: str
    dtype: str
    part: str | None
    """The field of the observation that it takes; None takes all of it."""
    shaper: Shaper


class OnnxFactory:
    """Makes agents that share a network."""

    def __init__(self, path: Path, frames: Frames, scale: float, output: str, reads: Reads) -> None:
        self._path, self._frames, self._scale = path, frames, scale
        self._output, self._reads = output, reads
        self._session = _open_session(path)

    def __call__(self, spec: Spec, seed: int) -> Policy:
        """Make the agent."""
        network = self.check_spec(spec)
        if network.has_memory or network.states_beliefs:
            return RecurrentPolicy(network, self._frames, spec)
        return PurePolicy(network, self._frames, spec)

    def check_spec(self, spec: Spec) -> Network:
        """Return the network, fitted to the observations and actions of a trial.

        Raises:
            InvalidInput: It does not fit them.
        """
        if spec.observations is None or spec.actions is None:
            raise InvalidInput(
                f"{self._path.name} cannot play {spec.domain}: it does not declare its spaces. Look for a setting with "
                f"which it does, such as observe or observation: openfield list settings {spec.domain}"
            )
        try:
            network = Network(self._session, self._frames.show_example(spec.observations), self._scale)
            network.choose(spec.actions, self._output, self._reads)
            return network
        except InvalidInput as error:
            raise InvalidInput(f"{self._path.name} cannot play {spec.domain}: {error}") from None


class RecurrentPolicy(Policy):
    """A policy whose network remembers earlier turns or states beliefs."""

    def __init__(self, network: Network, frames: Frames, spec: Spec) -> None:
        super().__init__(network, frames, spec)
        self._network = network

    def __call__(self, turn: Turn) -> Reply:
        """Answer a turn, with the belief of the network if it has one."""
        self._network.reward = float(turn.reward or 0.0)
        reply = super().__call__(turn)
        if not self._network.states_beliefs:
            return reply
        return Reply(reply.action, Belief(self._network.belief))


class Network:
    """A network that was fitted to observations and actions."""

    reward = 0.0
    """The reward of the turn."""
    belief = 0.0
    """What it believed when it was asked last."""

    def __init__(self, session: Any, example: Any, scale: float) -> None:
        self._session, self._scale = session, scale
        self._names = [each.name for each in session.get_outputs()]
        remembered = [each for each in session.get_inputs() if f"next_{each.name}" in self._names]
        self._blank = {each.name: _make_zeros(each) for each in remembered}
        self._memory = self._blank
        self.has_memory, self.states_beliefs = bool(remembered), "belief" in self._names
        own = {each.name for each in remembered}
        if not (isinstance(example, Mapping) and "reward" in example):
            own |= {each.name for each in session.get_inputs() if each.name == "reward"}
        self._takes_reward = "reward" in own
        self._inputs = _match_inputs([each for each in session.get_inputs() if each.name not in own], example)
        try:
            self._example: Sequence[Any] = session.run(None, self._feed(example))
        except Exception as error:
            reason = str(error).partition("\n")[0]
            raise InvalidInput(f"it cannot be run on an observation: {reason[:200]}") from None

    def choose(self, actions: Space, output: str, reads: Reads) -> None:
        """Find the output that gives the action.

        Args:
            actions: The action space.
            output: Its name; empty finds it by its shape.
            reads: Whether it is a score for each action or the action; `auto` finds out.

        Raises:
            InvalidInput: No output fits, or several do.
        """
        if output and output not in self._names:
            raise InvalidInput(f"it has no output '{output}'; there are {', '.join(self._names)}.")
        pairs = zip(self._names, self._example, strict=True)
        besides = {"belief", *(f"next_{name}" for name in self._blank)} - {output}
        named = {name: value for name, value in pairs if output in ("", name) and name not in besides}
        count = _count_options(actions)
        size = int(np.prod(actions.shape)) if isinstance(actions, Box) else 1
        as_action = [name for name, value in named.items() if _gives_action(value, size, count is not None)]
        as_scores = [name for name, value in named.items() if count is not None and _gives_scores(value, count)]
        found = as_scores if reads == "scores" else as_action or (as_scores if reads == "auto" else [])
        if len(found) != 1:
            shapes = ", ".join(f"{name} {list(np.shape(value))}" for name, value in named.items())
            many = f"several outputs fit, choose one with output={found[0]}" if found else "no output gives the action"
            raise InvalidInput(f"{many}: the action is {summarise_space(actions)}, the outputs are {shapes}.")
        self._chosen, self._argmax = found[0], found is as_scores
        self._wanted = [self._chosen, *(name for name in self._names if name in besides and name != self._chosen)]
        self._bounds = (*actions.bounds, actions.shape) if isinstance(actions, Box) else None
        self._start = actions.start if isinstance(actions, Discrete) else 0

    def begin(self) -> None:
        """Forget the episode before."""
        self._memory = self._blank

    def __call__(self, shown: Any) -> Any:
        """Return the action for what the network is shown."""
        outputs = dict(zip(self._wanted, self._session.run(self._wanted, self._feed(shown)), strict=True))
        self._memory = {name: outputs[f"next_{name}"] for name in self._blank}
        if self.states_beliefs:
            self.belief = min(1.0, max(0.0, float(np.asarray(outputs["belief"]).reshape(()))))
        given = np.asarray(outputs[self._chosen])
        if not np.all(np.isfinite(given)):
            raise AgentProtocol(f"The output {self._chosen} is not a finite number.")
        if self._bounds is not None:
            low, high, shape = self._bounds
            return np.clip(given.ravel(), low, high).reshape(shape)
        return self._start + int(np.argmax(given)) if self._argmax else given.reshape(()).item()

    def _feed(self, shown: Any) -> dict[str, Array]:
        given: dict[str, Array] = {
            name: shaper(self._scaled(flatten(shown) if part is None and _has_parts(shown) else shown, part, dtype))
            for name, dtype, part, shaper in self._inputs
        }
        if self._takes_reward:
            given["reward"] = np.array([self.reward], np.float32)
        return given | self._memory

    def _scaled(self, shown: Any, part: str | None, dtype: str) -> Array:
        value = np.asarray(shown if part is None else shown[part])
        return (value if self._scale == 1.0 else value * self._scale).astype(dtype)


def onnx_agent(
    path: str,
    *,
    stack: int = 1,
    stack_axis: int | None = None,
    pad: Literal["first", "zeros"] = "first",
    scale: float = 1.0,
    output: str = "",
    reads: Reads = "auto",
) -> OnnxFactory:
    """Return the factory of agents that play with a network in an ONNX file.

    Args:
        path: The file.
        stack: How many observations it is shown at once.
        stack_axis: The axis along which they are joined; None puts them along a new first axis.
        pad: What stands for observations before the first one of an episode: this one again, or zeros.
        scale: What every number of an observation is multiplied by.
        output: The name of the output that gives the action, where several fit.
        reads: `scores` takes the action with the highest logit, probability or Q-value, `action` the output itself.

    Raises:
        InvalidInput: There is no such file, or it holds no network.
        MissingExtra: onnxruntime is not installed.
    """
    if isinstance(scale, bool) or not isinstance(scale, int | float) or not np.isfinite(scale):
        raise InvalidInput(f"'scale' is a number, not {scale!r}.")
    if reads not in ("auto", "scores", "action"):
        raise InvalidInput(f"'reads' is 'auto', 'scores' or 'action', not {reads!r}.")
    return OnnxFactory(Path(path), Frames(stack, stack_axis, pad), float(scale), str(output), reads)


def _open_session(path: Path) -> Any:
    """Open a network for one thread, so that it answers the same in every process and workers share the machine."""
    runtime = import_extra("onnxruntime", "onnx", "An agent in an ONNX file")
    if not path.is_file():
        raise InvalidInput(f"There is no ONNX file {path}.")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        return runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except OpenfieldError:
        raise
    except Exception as error:
        reason = str(error).partition("\n")[0]
        raise InvalidInput(f"{path} cannot be read as an ONNX file: {reason[:200]}") from None


def _make_zeros(given: Any) -> Array:
    """Return what a network remembers when an episode begins.

    Raises:
        InvalidInput: The size or type of the input is not known.
    """
    dtype = KINDS.get(given.type)
    if dtype is None or not all(isinstance(size, int) for size in given.shape):
        raise InvalidInput(f"its memory is {_describe(given)}, and must have a fixed size.")
    return np.zeros(given.shape, dtype)


def _match_inputs(inputs: Sequence[Any], example: Any) -> list[Input]:
    """Find what each input takes: the only one the whole observation, several the fields, by name or by shape."""
    if len(inputs) == 1:
        return [_fit(inputs[0], None, flatten(example) if _has_parts(example) else np.asarray(example))]
    if not isinstance(example, Mapping):
        names = ", ".join(each.name for each in inputs)
        raise InvalidInput(f"it has {len(inputs)} inputs ({names}), and an observation has no named fields.")
    return [_find_part(each, example) for each in inputs]


def _find_part(given: Any, example: Mapping[str, Any]) -> Input:
    if given.name in example:
        return _fit(given, given.name, np.asarray(example[given.name]))
    fitting = [name for name, part in example.items() if _find_shaper(given.shape, np.shape(part)) is not None]
    if len(fitting) != 1:
        problem = f"{len(fitting)} fields of the observation fit" if fitting else "no field of the observation fits"
        raise InvalidInput(f"{problem} its input {_describe(given)}.")
    return _fit(given, fitting[0], np.asarray(example[fitting[0]]))


def _fit(given: Any, part: str | None, example: Array) -> Input:
    shaper, dtype = _find_shaper(given.shape, example.shape), KINDS.get(given.type)
    if shaper is None:
        raise InvalidInput(f"its input is {_describe(given)}, and it is shown numbers of shape {list(example.shape)}.")
    if dtype is None:
        raise InvalidInput(f"its input {given.name} takes {given.type}.")
    return Input(given.name, dtype, part, shaper)


def _find_shaper(wanted: Sequence[Any], shown: tuple[int, ...]) -> Shaper | None:
    """Return what turns an array of one shape into that of an input; None if nothing does.

    Tried in this order: as it is in a batch of one, as it is, with channels first in a batch of one, all numbers in a
    row. Sizes of an input that are not numbers fit any size.
    """
    turned = (shown[2], *shown[:2]) if len(shown) == 3 else None
    row = (int(np.prod(shown)),)
    if _is_like(wanted, (1, *shown)):
        return lambda array: array[None]
    if _is_like(wanted, shown):
        return lambda array: array
    if turned is not None and _is_like(wanted, (1, *turned)):
        return lambda array: np.ascontiguousarray(np.moveaxis(array, 2, 0))[None]
    if _is_like(wanted, (1, *row)):
        return lambda array: array.reshape(1, -1)
    return (lambda array: array.reshape(-1)) if _is_like(wanted, row) else None


def _is_like(wanted: Sequence[Any], shape: tuple[int, ...]) -> bool:
    sizes = zip(wanted, shape, strict=False)
    return len(wanted) == len(shape) and all(not isinstance(size, int) or size == own for size, own in sizes)


def _gives_action(value: Any, size: int, whole: bool) -> bool:
    """Return whether an output is an action: as many numbers as it has, whole ones if it is one of some."""
    array = np.asarray(value)
    return array.size == size and array.dtype.kind in ("iu" if whole else "f")


def _gives_scores(value: Any, count: int) -> bool:
    array = np.asarray(value)
    return array.dtype.kind == "f" and array.size == count and array.shape[-1:] == (count,)


def _count_options(actions: Space) -> int | None:
    match actions:
        case Discrete(n):
            return n
        case Choice(options):
            return len(options)
        case _:
            return None


def _has_parts(shown: Any) -> bool:
    return isinstance(shown, Mapping | tuple)


def _describe(given: Any) -> str:
    sizes = ", ".join(str(size) if isinstance(size, int) else "any" for size in given.shape)
    return f"{given.name} [{sizes}]"
