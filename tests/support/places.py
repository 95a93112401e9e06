"""Where tests find what users find in the repository."""

from __future__ import annotations

from pathlib import Path

SUPPORT = Path(__file__).parent
ROOT = SUPPORT.parents[1]
MAZE = str(ROOT / "examples" / "maze.py")
