"""Where tests find what users find in the repository."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
MAZE = str(ROOT / "examples" / "maze.py")
