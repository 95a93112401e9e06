"""Public is what a package's `__init__` exports with `__all__`; the reference and the docstrings go with it."""

from __future__ import annotations

import importlib
import inspect
import pydoc
import re
import subprocess
import sys

import pytest

import openfield as of
from openfield.lazy import _find_homes
from support.packages import public_packages, read_names
from support.places import ROOT

NOUNS = ("Turn", "Reply", "Belief", "World", "Agent", "Domain", "Trial")
THEMES = (
    "rollout.Rollout",
    "journal.Journal",
    "metrics.Metric",
    "spaces.Discrete",
    "errors.InvalidInput",
    "record.Step",
)
PACKAGES = (
    "openfield",
    "openfield.agents",
    "openfield.capabilities",
    "openfield.core",
    "openfield.episodic",
    "openfield.errors",
    "openfield.journal",
    "openfield.metrics",
    "openfield.objectives",
    "openfield.options",
    "openfield.record",
    "openfield.registry",
    "openfield.report",
    "openfield.rollout",
    "openfield.runner",
    "openfield.serving",
    "openfield.spaces",
    "openfield.testing",
)

REFERENCE = re.findall(
    r"^::: ([\w.]+)$",
    "\n".join(page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs" / "reference").glob("*.md"))),
    re.MULTILINE,
)
"""What the pages of the reference are made of."""


def test_the_version_is_the_same_everywhere() -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    latest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert re.findall(r"^version: (.*)", citation, re.MULTILINE) == [of.__version__]
    assert latest is not None
    assert latest[1] == of.__version__


def test_what_most_programs_need_is_in_the_package_itself() -> None:
    assert set(NOUNS) <= set(of.__all__)
    assert len(of.__all__) <= 25


@pytest.mark.parametrize("path", THEMES)
def test_other_names_are_in_their_theme(path: str) -> None:
    theme, name = path.split(".")
    code = f"import openfield as of; print(of.{path}.__name__)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.split() == [
        name.encode()
    ]
    with pytest.raises(
        AttributeError, match=rf"^module 'openfield' has no attribute '{name}': write openfield\.{path}$"
    ):
        getattr(of, name)
    assert theme in dir(of)


def test_asking_for_an_unknown_name_imports_nothing() -> None:
    """`pickle` asks every module for a name while it reads the list of modules, which must not change."""
    code = "import sys, openfield; n = len(sys.modules); getattr(openfield, 'UNSET', None); print(len(sys.modules) - n)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.split() == [b"0"]


def test_all_errors_are_public() -> None:
    errors = importlib.import_module("openfield.errors")
    declared = {
        name for name, kind in vars(errors).items() if inspect.isclass(kind) and kind.__module__ == errors.__name__
    }
    assert declared == set(errors.__all__)


@pytest.mark.parametrize("package", PACKAGES)
def test_public_names_are_listed_once_there_and_documented(package: str) -> None:
    module = importlib.import_module(package)
    assert len(set(module.__all__)) == len(module.__all__)
    assert set(module.__all__) <= set(dir(module))
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isclass(value) or inspect.isroutine(value):
            assert inspect.getdoc(value), f"{package}.{name} has no docstring"
            assert pydoc.render_doc(value)


@pytest.mark.parametrize("package", public_packages())
def test_every_package_says_what_is_in_it(package: str) -> None:
    module = importlib.import_module(package)
    assert module.__doc__
    assert all(hasattr(module, name) for name in module.__all__)


def test_type_checkers_see_the_same_names() -> None:
    names = {name for name, home in _find_homes("openfield").items() if home != "openfield"}
    assert names == set(of.__all__)


def test_the_reference_has_every_public_name_under_a_theme_and_every_package() -> None:
    listed = [name.removeprefix("openfield.") for name in REFERENCE if name.removeprefix("openfield.") in of.__all__]
    assert sorted(listed) == sorted(of.__all__)
    assert set(public_packages()) <= set(REFERENCE), "name the package on a page of docs/reference"


def test_pages_and_examples_import_public_names_only() -> None:
    pages = [page for page in sorted((ROOT / "docs").glob("*.md")) if not page.name.startswith("objectives")]
    for file in [ROOT / "README.md", *pages, *sorted((ROOT / "examples").glob("*.py"))]:
        text = file.read_text(encoding="utf-8")
        for module, names in re.findall(r"^from (openfield[\w.]*) import (\([^)]*\)|[^\n]*)$", text, re.MULTILINE):
            private = set(re.findall(r"\w+", names)) - set(read_names(module))
            assert not private, f"{file.name} imports {private} from {module}"


def test_other_names_are_refused() -> None:
    with pytest.raises(AttributeError, match=r"^module 'openfield' has no attribute 'rum'$"):
        _ = of.rum


def test_the_package_itself_imports_nothing_heavy() -> None:
    code = "import sys, openfield; print(sorted({'numpy', 'msgspec', 'rich', 'sqlite3', 'asyncio'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.strip() == b"[]"
