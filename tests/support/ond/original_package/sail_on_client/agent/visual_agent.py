"""What all agents have: a configuration they are made from, and one way to be told what to do."""

from __future__ import annotations

import abc
from typing import Any


class VisualAgent(abc.ABC):
    @classmethod
    def from_config(cls, config_dict: dict[str, Any], merge_default: bool = True) -> VisualAgent:
        return cls(**config_dict)

    @abc.abstractmethod
    def get_config(self) -> dict[str, Any]: ...

    @abc.abstractmethod
    def execute(self, toolset: dict[str, Any], step_descriptor: str) -> Any: ...
