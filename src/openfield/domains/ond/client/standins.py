"""Stand-ins for the modules agents of the original client import, registered when the real package is missing.

Only names and behaviour that agents rely on: base classes that dispatch steps, a checkpointer, the errors.
"""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from typing import Any

PACKAGE = "sail_on_client"


class StepAgent:
    """Dispatches `execute(toolset, step)` to a method of the step's name in lower case."""

    def __init__(self, **config: Any) -> None:
        self.config = config

    @classmethod
    def from_config(cls, config: dict[str, Any], **_: Any) -> StepAgent:
        """An agent from its configuration."""
        return cls(**config)

    def get_config(self) -> dict[str, Any]:
        """The configuration it was made from."""
        return getattr(self, "config", {})

    def execute(self, toolset: dict[str, Any], step: str) -> Any:
        """Does a step."""
        words = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in step).lstrip("_")
        method = getattr(self, words, None) or getattr(self, step, None)
        if method is None and step in ("Initialize", "NoveltyCharacterization"):
            return None
        if method is None:
            raise NotImplementedError(f"There is no step {step}.")
        return method(toolset)


class Checkpointer:
    """Keeps nothing; the host keeps features and attributes (`keeping.py`), from outside."""

    def __init__(self, toolset: dict[str, Any] | None = None, *_: Any, **__: Any) -> None:
        self.toolset = toolset or {}

    def save_attributes(self, step: str) -> None:
        """Nothing: the host looks after each step."""

    def restore_attributes(self, step: str) -> None:
        """Nothing: the host sees to it before each step."""


class ServerError(Exception):
    """The server refused a request."""

    def __init__(self, reason: str = "", msg: str = "", stack_trace: str = "") -> None:
        super().__init__(msg)
        self.reason, self.msg, self.stack_trace = reason, msg, stack_trace


class ApiError(ServerError):
    """The request was wrong."""


class RoundError(ServerError):
    """There is no further round."""


MODULES: dict[str, dict[str, Any]] = {
    "agent.ond_agent": {"ONDAgent": StepAgent},
    "agent.condda_agent": {"CONDDAAgent": StepAgent},
    "agent.ond_reaction_agent": {"ONDReactionAgent": StepAgent},
    "agent.visual_agent": {"VisualAgent": StepAgent},
    "checkpointer": {"Checkpointer": Checkpointer},
    "errors": {"ApiError": ApiError, "RoundError": RoundError, "ServerError": ServerError},
    "errors.errors": {"ApiError": ApiError, "RoundError": RoundError, "ServerError": ServerError},
}


def register_standins() -> bool:
    """Registers the stand-ins; leaves everything alone if the real package is installed."""
    if PACKAGE in sys.modules or importlib.util.find_spec(PACKAGE) is not None:
        return False
    for path, names in {"": {}, "agent": {}, **MODULES}.items():
        full = f"{PACKAGE}.{path}" if path else PACKAGE
        module = ModuleType(full, "A stand-in of openfield.")
        module.__path__ = []
        vars(module).update(names)
        sys.modules[full] = module
        parent, _, leaf = full.rpartition(".")
        if parent:
            setattr(sys.modules[parent], leaf, module)
    return True
