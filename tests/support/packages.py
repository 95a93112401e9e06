"""Which packages export names with `__all__`, read from the source without importing it."""

from __future__ import annotations

import ast

from support.places import ROOT

SOURCE = ROOT / "src"


def public_packages() -> list[str]:
    """Return the packages below `openfield` that export names, and the modules that do."""
    files = [*sorted(SOURCE.glob("openfield/*/**/__init__.py")), *sorted(SOURCE.glob("openfield/*.py"))]
    names = [".".join(file.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__") for file in files]
    return [name for name in names if name != "openfield" and read_names(name)]


def read_names(module: str) -> list[str]:
    """Return the names in a module's `__all__`."""
    path = SOURCE.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    found = list[str]()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and target.id == "__all__" and isinstance(node, ast.Assign | ast.AugAssign):
            found += ast.literal_eval(node.value)
    return found
