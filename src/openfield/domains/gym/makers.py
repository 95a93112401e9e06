"""Find what makes an environment: by id, module, file or callable, with the package that registers it.

Whatever is missing becomes one line that says how to get it.
"""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from importlib import import_module

import gymnasium
from gymnasium.envs.registration import namespace

from openfield.domains.gym.environment import MakeEnv, makes_by_id
from openfield.domains.gym.suites.suite import find_suite
from openfield.errors import InvalidInput, MissingExtra
from openfield.registry import PluginWarning, installed_points, load

PLUGINS = "gymnasium.envs"
"""The group of entry points with which packages offer environments."""


def find_maker(text: str) -> MakeEnv:
    """Return what makes the environment that a text names: `ID`, `module:ID`, `file.py:NAME` or `module:NAME`.

    Raises:
        InvalidInput: There is no such environment.
        MissingExtra: It needs an optional part that is not installed.
    """
    if makes_by_id(text):
        register_environments(text)
        return lambda **arguments: gymnasium.make(text, disable_env_checker=True, **arguments)
    found = load(text)
    if not callable(found):
        raise InvalidInput(f"'{text}' makes no environment: it is a {type(found).__name__}.")
    return found  # type: ignore[no-any-return]


def name_maker(text: str) -> str:
    """Return a short name of what makes an environment, `envs.make` for `labs/envs.py:make`; empty for an id."""
    if makes_by_id(text):
        return ""
    place, _, name = text.rpartition(":")
    module = place.removesuffix(".py").replace("/", ".").rpartition(".")[2].removeprefix("openfield_file_")
    return ".".join(filter(None, (module, name.rpartition(".")[2].strip("<>"))))


def register_environments(text: str) -> None:
    """Import the packages that register an id, if Gymnasium does not know it yet."""
    if ":" in text or text in gymnasium.registry:
        return
    suite = find_suite(text)
    for module in () if suite is None else suite.modules:
        try:
            import_module(module)
        except (ImportError, MissingExtra):
            raise MissingExtra(suite.extra if suite else "gym", f"gym:{text}") from None
    if text not in gymnasium.registry:
        _load_plugins()


def _load_plugins() -> None:
    for point in installed_points(PLUGINS):
        try:
            with nullcontext() if point.name == "__root__" else namespace(point.name):
                found = point.load()
                if callable(found):
                    found()
        except Exception as error:
            text = f"The environments of {point.value} cannot be used: {type(error).__name__}: {error}"
            warnings.warn(text, PluginWarning, stacklevel=2)
