"""Make environments of Gymnasium, wrap them, and set attributes of theirs.

Whatever is wrong with an environment becomes one line.
"""

from __future__ import annotations

import copy
import inspect
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import ModuleType, SimpleNamespace
from typing import Any, Protocol

import numpy as np

from openfield.domains.gym.formula import Formula, read_formula
from openfield.errors import InvalidInput, MissingExtra, OpenfieldError, UnknownName, describe_error, find_near
from openfield.registry import load
from openfield.settings import read_plain

try:
    import gymnasium
    from gymnasium.error import DependencyNotInstalled, UnregisteredEnv
except ImportError:
    raise MissingExtra("gym", "A domain gym:ID") from None

Env = gymnasium.Env[Any, Any]
MakeEnv = Callable[..., Env]
"""Makes an environment from the arguments of its constructor."""

AttributeChange = str | tuple[str, Any]
"""A change of an attribute: a text such as `length*=2`, or its path and its value where that moves."""
PICTURES = "rgb_array"
"""The render mode of Gymnasium that returns pictures."""
DEFAULT_FPS = 30.0

_ID = re.compile(r".+-v\d+")
_CHANGE = re.compile(r"(?P<path>[A-Za-z]\w*(?:\.[A-Za-z]\w*)*)(?P<sign>=|\*=|/=|-=)(?P<value>.+)", re.DOTALL)


class Holder(Protocol):
    """What has attributes that a text can change: an environment, or a stand-in for one."""

    @property
    def unwrapped(self) -> Any:
        """What has them."""
        ...


class ReturnMeter(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Sums the rewards below the wrappers of novelties, which may change rewards but not scores."""

    total = 0.0

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step and add its reward."""
        result = self.env.step(action)
        self.total += float(result[1])
        return result


def wrap_env(env: Env, wrappers: Sequence[str], text: str) -> Env:
    """Return an environment within wrappers, the first one innermost. If one fails, the environment is closed."""
    for source in wrappers:
        try:
            wrapped = load(source)(env)
        except OpenfieldError:
            env.close()
            raise
        except Exception as error:
            env.close()
            raise InvalidInput(f"{source} cannot wrap {text}: {one_line(describe_error(error))}") from error
        if not isinstance(wrapped, gymnasium.Env):
            env.close()
            raise InvalidInput(f"{source} is not a wrapper: it makes a {type(wrapped).__name__} of {text}.")
        env = PlainState(wrapped) if _is_of_ns_gym(wrapped) else wrapped
    return env


class PlainState(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Shows and pays what the environment does, without what NS-Gym says of its change: a trial decides that."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        space = env.observation_space
        if isinstance(space, gymnasium.spaces.Dict) and "state" in space.spaces:
            self.observation_space = space["state"]

    def observation(self, observation: Any) -> Any:
        """Return the state within an observation of NS-Gym."""
        return observation["state"] if isinstance(observation, dict) and "state" in observation else observation

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step, and return the number within a reward of NS-Gym."""
        seen, reward, *ends = super().step(action)
        return seen, getattr(reward, "reward", reward), *ends


def _is_of_ns_gym(env: Env) -> bool:
    return any(kind.__module__.partition(".")[0] == "ns_gym" for kind in type(env).__mro__)


def find_meter(env: Env) -> ReturnMeter | None:
    """Return the meter among the wrappers of an environment, if there is one."""
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, ReturnMeter):
            return env
        env = env.env
    return None


def make_env(
    text: str,
    maker: MakeEnv,
    arguments: dict[str, Any],
    attributes: Sequence[AttributeChange] = (),
    derived: Mapping[str, str] | None = None,
) -> Env:
    """Make an environment and change attributes of it.

    Args:
        text: What the user called it, for messages.
        maker: Makes it.
        arguments: The arguments of its constructor.
        attributes: Changes such as `gravity=19.6`.
        derived: Formulas of attributes that are computed from others.

    Raises:
        InvalidInput: It cannot be made, or an attribute cannot be changed like this.
        UnknownName: It has no such attribute.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Gymnasium warns of old versions; the user named this one
        env = _make(text, maker, arguments)
    try:
        for change in attributes:
            set_attribute(env, change, text)
        if attributes and derived:
            derive_attributes(env, attributes, derived, text)
    except OpenfieldError:
        env.close()
        raise
    return env


def _make(text: str, maker: MakeEnv, arguments: dict[str, Any]) -> Env:
    try:
        env = maker(**arguments)
    except OpenfieldError:
        raise
    except UnregisteredEnv as error:
        near = _suggest(text)
        said = one_line(error).partition(" Did you mean")[0] if near else one_line(error)
        if makes_by_id(text):
            raise InvalidInput(f"Gymnasium knows no '{text}': {said}{near}") from None
        raise InvalidInput(f"{text} asks for an environment that Gymnasium does not know: {one_line(error)}") from None
    except DependencyNotInstalled as error:
        raise InvalidInput(f"{text} needs a package that is not installed. Gymnasium says: {one_line(error)}") from None
    except Exception as error:
        raise InvalidInput(f"The environment {text} cannot be made: {one_line(describe_error(error))}") from error
    if not isinstance(env, gymnasium.Env):
        raise InvalidInput(f"'{text}' makes a {type(env).__name__}, not an environment of Gymnasium.")
    return env


def makes_by_id(text: str) -> bool:
    """Return whether a text is an id of Gymnasium, and not a file's or a module's function."""
    return ":" not in text or bool(_ID.fullmatch(text) and not text.partition(":")[0].endswith(".py"))


def takes_arguments(maker: MakeEnv) -> bool:
    """Return whether what makes an environment has arguments of its own, with which it may make another one."""
    with suppress(TypeError, ValueError):
        return any(each.kind is not each.VAR_KEYWORD for each in inspect.signature(maker).parameters.values())
    return False


def _suggest(text: str) -> str:
    """Return a question after the nearest id that is registered; empty if none is near."""
    near = find_near(text, gymnasium.registry)
    return f" Did you mean 'gym:{near}'?" if near else ""


def read_fps(env: Env) -> float | None:
    """Return how many pictures a second an environment draws; None if it draws none."""
    if PICTURES not in (env.metadata.get("render_modes") or ()):
        return None
    fps = env.metadata.get("render_fps")
    return float(fps) if isinstance(fps, int | float) and fps > 0 else DEFAULT_FPS


def render_picture(env: Env) -> Any:
    """Return a picture of an environment: an array of height, width and three colours."""
    try:
        picture: Any = env.render()
    except DependencyNotInstalled as error:
        raise InvalidInput(
            f"To draw needs a package that is not installed. Gymnasium says: {one_line(error)}"
        ) from None
    if not (isinstance(picture, np.ndarray) and picture.dtype == np.uint8 and picture.shape[2:] == (3,)):
        raise InvalidInput(
            f"The environment draws no picture of bytes in three colours, but a {type(picture).__name__}."
        )
    return picture


def one_line(message: object) -> str:
    """Return a message of another package as one line."""
    return " ".join(str(message).split())


def split_change(change: AttributeChange) -> tuple[str, str, Any] | None:
    """Return the attribute, the sign and the value of a change such as `length*=2`; None if it is not a change."""
    if isinstance(change, tuple):
        return change[0], "=", change[1]
    found = _CHANGE.fullmatch(change)
    return None if found is None else (found["path"], found["sign"], read_plain(found["value"]))


def set_attribute(env: Holder, change: AttributeChange, text: str) -> None:
    """Carry out a change of an attribute of the unwrapped environment."""
    holder, name, _ = _find_attribute(env, change, text)
    value = _changed_value(getattr(holder, name), change)
    try:
        setattr(holder, name, value)
    except (AttributeError, TypeError) as error:
        raise InvalidInput(f"'{_write_change(change)}' cannot be set in {text}: {one_line(error)}") from None


def derive_attributes(
    env: Holder, attributes: Sequence[AttributeChange], derived: Mapping[str, str], text: str
) -> bool:
    """Compute anew what follows from changed attributes, unless it was changed itself. Return whether anything does."""
    found = list(_list_derived(attributes, derived))
    for name, formula in found:
        values = {each: read_attribute(env, f"{each}=0", text) for each in formula.names}
        set_attribute(env, f"{name}={formula.compute(values)}", text)
    return bool(found)


def list_needed(attributes: Sequence[AttributeChange], derived: Mapping[str, str]) -> list[str]:
    """Return the attributes that changes are about, and those which follow from them."""
    paths = [parsed[0] for parsed in map(split_change, attributes) if parsed is not None]
    found = [[name, *formula.names] for name, formula in _list_derived(attributes, derived)]
    return list(dict.fromkeys([*paths, *(name for names in found for name in names)]))


def make_stand_in(values: Mapping[str, Any]) -> Holder:
    """Return an object with attributes as an environment has them, by their paths. It is changed in its place."""
    top = SimpleNamespace()
    for path, value in values.items():
        *parents, name = path.split(".")
        holder = top
        for parent in parents:
            if not hasattr(holder, parent):
                setattr(holder, parent, SimpleNamespace())
            holder = getattr(holder, parent)
        setattr(holder, name, copy.deepcopy(value))
    return SimpleNamespace(unwrapped=top)


def read_defaults(env: Env) -> dict[str, Any]:
    """Return the numbers that arguments of a constructor are where none is given."""
    with suppress(TypeError, ValueError):
        parameters = inspect.signature(type(env.unwrapped)).parameters
        defaults = {name: parameter.default for name, parameter in parameters.items()}
        return {name: value for name, value in defaults.items() if isinstance(value, int | float)}
    return {}


def _list_derived(attributes: Sequence[AttributeChange], derived: Mapping[str, str]) -> Iterator[tuple[str, Formula]]:
    """Yield the attributes to be computed anew, in order, each with its formula."""
    changed = {parsed[0] for parsed in map(split_change, attributes) if parsed is not None}
    given = set(changed)
    for name, formula in derived.items():
        parsed = read_formula(formula)
        if name not in given and changed.intersection(parsed.names):
            yield name, parsed
            changed.add(name)


def read_attribute(env: Holder, change: str, text: str) -> Any:
    """Return the attribute that a change is about."""
    holder, name, _ = _find_attribute(env, change, text)
    return getattr(holder, name)


def list_attributes(holder: Any) -> list[str]:
    """Return the attributes of an object that a text can change."""
    own = {name: None for kind in type(holder).__mro__ for name in vars(kind)} | dict.fromkeys(
        getattr(holder, "__dict__", ())
    )
    return sorted(name for name in own if name[0] != "_" and _has_value(holder, name))


def _has_value(holder: Any, name: str) -> bool:
    try:
        return isinstance(getattr(holder, name, None), bool | int | float | str | np.ndarray | np.generic)
    except Exception:  # some are computed, and cannot be before an episode begins
        return False


def _find_attribute(env: Holder, change: AttributeChange, text: str) -> tuple[Any, str, str]:
    parsed = split_change(change)
    if parsed is None:
        raise InvalidInput(
            f"'{change}' changes no attribute. Write NAME=VALUE, NAME*=VALUE, NAME/=VALUE or NAME-=VALUE."
        )
    *parents, name = parsed[0].split(".")
    holder: Any = env.unwrapped
    for parent in parents:
        below = getattr(holder, parent, None)
        if (
            below is None or isinstance(below, ModuleType | type) or callable(below)
        ):  # they are not the environment's own
            raise UnknownName("attribute", parsed[0], list_attributes(holder), label=f"{text} has")
        holder = below
    if not hasattr(holder, name):
        raise UnknownName("attribute", parsed[0], list_attributes(holder), label=f"{text} has")
    return holder, name, parsed[1]


def _write_change(change: AttributeChange) -> str:
    return change if isinstance(change, str) else f"{change[0]}={change[1]}"


def _changed_value(old: Any, given: AttributeChange) -> Any:
    """Return the new value of an attribute, which is of the old one's kind."""
    (path, sign, value), change = split_change(given) or ("", "", 0), _write_change(given)
    if isinstance(old, np.ndarray):
        return _changed_array(old, change, sign, value)
    kinds: tuple[type, ...] = (bool,) if isinstance(old, bool) else (int, float)
    if isinstance(old, str):
        kinds = (str,)
        value = value if isinstance(value, str) else change.partition(sign)[2]
    elif not isinstance(old, bool | int | float | np.number) and old is not None:
        raise InvalidInput(
            f"'{change}' cannot be set: {path} is a {type(old).__name__}, no number, text or truth value."
        )
    fits = old is None or (isinstance(value, kinds) and (isinstance(old, bool) or not isinstance(value, bool)))
    if not fits or (sign != "=" and not isinstance(old, int | float | np.number)):
        raise InvalidInput(f"'{change}' cannot be set: {path} is {old!r}.")
    if sign == "=":
        return float(value) if isinstance(old, float) else value
    return _calculate(old, change, sign, value)


def _changed_array(old: Any, change: str, sign: str, value: Any) -> Any:
    try:
        given = np.asarray(value, old.dtype)
        new = given if sign == "=" else np.asarray(_calculate(old, change, sign, given), old.dtype)
        return np.broadcast_to(new, old.shape).copy()
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"'{change}' cannot be set: {one_line(error)}") from None


def _calculate(old: Any, change: str, sign: str, value: Any) -> Any:
    if sign == "/=" and not np.all(value):
        raise InvalidInput(f"'{change}' divides by 0.")
    return old * value if sign == "*=" else old / value if sign == "/=" else old - value
