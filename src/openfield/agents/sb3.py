"""Play with a model that stable-baselines3 saved: `sb3:PPO:model.zip`, or `sb3:PPO:model.zip(normalize=vec.pkl)`.

Such files hold pickled objects, which run code when they are read: play with those that you trust.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from openfield.agents.policy import PolicyFactory, policy
from openfield.errors import InvalidInput, UnknownName, describe_error

PACKAGES = ("stable_baselines3", "sb3_contrib")
"""Where algorithms are looked for."""


def sb3_agent(
    source: str,
    *,
    normalize: str | None = None,
    stack: int = 1,
    stack_axis: int | None = -1,
    pad: Literal["first", "zeros"] = "zeros",
) -> PolicyFactory:
    """Return the factory of agents that play with a saved model. Frames are stacked as `VecFrameStack` does.

    Args:
        source: The algorithm and the file, `PPO:model.zip`.
        normalize: The file in which `VecNormalize` was saved. Observations are normalised before they are stacked.
        stack: How many observations the model is shown at once.
        stack_axis: The axis along which they are joined; None puts them along a new first axis.
        pad: What stands for observations before the first one of an episode: this one again, or zeros.

    Raises:
        InvalidInput: stable-baselines3 is not installed, or a file is missing or cannot be read.
        UnknownName: There is no such algorithm.
    """
    name, _, file = source.partition(":")
    if not file:
        raise InvalidInput(f"Name the algorithm and the file: sb3:PPO:model.zip, not sb3:{source}.")
    algorithm = _find_algorithm(name)
    model = _read(file, lambda path: algorithm.load(path, device="cpu"))
    normalizer = None if normalize is None else _read(str(normalize), _load_pickle)
    prepare = None if normalizer is None else normalizer.normalize_obs
    return policy(model, stack=stack, stack_axis=stack_axis, pad=pad, preprocess=prepare, rows=False)


def _find_algorithm(name: str) -> Any:
    known: dict[str, Any] = {}
    for package in PACKAGES:
        with suppress(ImportError):
            module = importlib.import_module(package)
            found = {each: value for each, value in vars(module).items() if hasattr(value, "load")}
            known = {**found, **known}
    if not known:
        raise InvalidInput("Agents 'sb3:' need stable-baselines3: pip install stable-baselines3")
    if name not in known:
        raise UnknownName("algorithm", name, sorted(known))
    return known[name]


def _load_pickle(path: str) -> Any:
    return importlib.import_module("stable_baselines3.common.save_util").load_from_pkl(path)


def _read(file: str, load: Callable[[str], Any]) -> Any:
    if not Path(file).is_file():
        raise InvalidInput(f"There is no file {file}.")
    try:
        return load(file)
    except Exception as error:
        raise InvalidInput(f"{file} cannot be read by stable-baselines3: {describe_error(error)}") from error
