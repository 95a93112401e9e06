"""Where tests find what users find in the repository."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

SUPPORT = Path(__file__).parent
ROOT = SUPPORT.parents[1]
MAZE = str(ROOT / "examples" / "maze.py")


def load_generator(name: str) -> ModuleType:
    """Return the module that writes a page of the documentation: `docs/generate_NAME.py`."""
    spec = importlib.util.spec_from_file_location(f"generate_{name}", ROOT / "docs" / f"generate_{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
