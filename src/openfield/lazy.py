"""Import late: public names when they are first used, and optional parts when they are needed.

A package that exports many names would import all of its modules at once, and the command line would answer late.
"""

from __future__ import annotations

import ast
import pkgutil
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from openfield.errors import MissingExtra


def attach(
    package: str, before: Callable[[], None] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a package whose public names are imported late.

    The names are those the package imports from its own modules under `if TYPE_CHECKING:`, where type checkers find
    them as well. Modules of the package that it imports there are imported late too; an unknown name that one of them
    exports is refused with its place.

    Args:
        package: The package's `__name__`.
        before: Called before the first import of each name.
    """
    modules = _find_homes(package)

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module '{package}' has no attribute '{name}'{_find_place(package, modules, name)}")
        if before is not None:
            before()
        inside = modules[name] == package
        value = import_module(f"{package}.{name}") if inside else getattr(import_module(modules[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    return get, names


def _find_homes(package: str) -> dict[str, str]:
    """Return the modules of the names that a package imports under `if TYPE_CHECKING:`."""
    source = pkgutil.get_data(package, "__init__.py") or b""
    guarded = [node for node in ast.parse(source).body if isinstance(node, ast.If)]
    imports = [node for each in guarded for node in each.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def _find_place(package: str, modules: dict[str, str], name: str) -> str:
    """Return what to write for a name that a module of the package exports, else an empty text.

    Python asks for a module of the package as well before it imports it: then there is nothing to look for.
    """
    if name.startswith("_") or find_spec(f"{package}.{name}") is not None:
        return ""
    inside = [f"{package}.{module}" for module, home in modules.items() if home == package]
    places = [module for module in inside if name in _list_exports(module)]
    return f": write {places[0]}.{name}" if places else ""


def _list_exports(module: str) -> list[str]:
    """Return the `__all__` of a module, and do not import it: `pickle` asks modules for names as it lists them."""
    spec = find_spec(module)
    source = Path(spec.origin).read_text("utf-8") if spec is not None and spec.origin else ""
    assignments = [node for node in ast.parse(source).body if isinstance(node, ast.Assign | ast.AugAssign)]
    lists = [node.value for node in assignments if "__all__" in ast.unparse(node).split("=")[0]]
    return [name for each in lists for name in ast.literal_eval(each)]


def import_extra(module: str, extra: str, need: str) -> Any:
    """Import and return a module of an optional part; `need` says what needs it.

    Raises:
        MissingExtra: The part is not installed.
    """
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtra(extra, need) from None
