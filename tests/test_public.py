from __future__ import annotations

import ast
import importlib
import subprocess
import sys

import pytest

import openfield as of
from conftest import ROOT


def test_the_public_names_are_few_listed_and_there() -> None:
    assert len(of.__all__) <= 25
    assert of.__all__ == sorted(of.__all__)
    for name in of.__all__:
        assert getattr(of, name) is not None
    listed = [name for names in of._HOMES.values() for name in names]
    assert sorted(listed) == of.__all__


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse((ROOT / "src" / "openfield" / "__init__.py").read_text())
    (guarded,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {
        (node.module, alias.name) for node in guarded.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert seen == {(f"openfield.{home}", name) for home, names in of._HOMES.items() for name in names}


def test_every_public_name_has_a_docstring() -> None:
    for home, names in of._HOMES.items():
        module = importlib.import_module(f"openfield.{home}")
        assert all(getattr(module, name).__doc__ for name in names)


def test_other_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="module 'openfield' has no attribute 'rum'"):
        _ = of.rum


def test_the_package_itself_imports_nothing_heavy() -> None:
    code = "import sys, openfield; print(sorted({'numpy', 'msgspec', 'rich', 'sqlite3', 'asyncio'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.strip() == b"[]"
