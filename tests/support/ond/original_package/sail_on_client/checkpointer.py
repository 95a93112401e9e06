"""Keeps attributes of an adapter's detector; the adapter has `detector` and `toolset`."""

from __future__ import annotations

from typing import Any


class Checkpointer:
    def __init__(self, toolset: dict[str, Any]) -> None:
        self.toolset = toolset
