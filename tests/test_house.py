"""The rules of the house that a machine can hold: layers, cycles, folders, names and the voice of docstrings."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

from support.places import ROOT
from support.voice import find_offences

SOURCE = ROOT / "src" / "openfield"
MODULES = sorted(SOURCE.rglob("*.py"))
MAX_MODULES = 15


def test_no_module_imports_itself_in_a_circle() -> None:
    """Imports inside functions count; those for type checkers do not."""
    graph = grimp.build_graph("openfield", exclude_type_checking_imports=True, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        pytest.fail(f"These import each other in a circle: {' -> '.join(error.args[1])}")


def test_folders_can_be_taken_in_at_a_glance() -> None:
    sizes = Counter(path.parent for path in MODULES if path.name != "__init__.py" and path.parent != SOURCE)
    assert {str(folder): size for folder, size in sizes.items() if size > MAX_MODULES} == {}


def test_system_programs_are_looked_up_in_one_place() -> None:
    """Else OPENFIELD_BARE=1 would not make a machine bare. Programs that a user names are looked up as they are."""
    theirs = {"installation.py", "versions.py", "view.py"}
    assert {path.name for path in MODULES if "shutil.which" in path.read_text()} == theirs
    assert [path for path in (ROOT / "tests" / "support").rglob("*.py") if "shutil.which" in path.read_text()] == []


def test_every_folder_says_what_is_in_it() -> None:
    names = {path.name for path in MODULES} | {"file.py"}
    for path in MODULES:
        if path.name == "__init__.py":
            text = ast.get_docstring(ast.parse(path.read_text())) or ""
            assert len(text) > 60, f"{path.parent} does not say what is in it and where to begin"
            gone = [name for name in re.findall(r"`(\w+\.py)`", text) if name not in names]
            assert gone == [], f"{path.parent} tells of modules that are not there"


def test_a_public_class_name_means_one_thing() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in MODULES:
        if "original" in path.parts:  # classes there have the names that code written for the original imports
            continue
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(SOURCE)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_a_public_function_name_means_one_thing() -> None:
    """A program begins in `main`, two functions are also commands, and domains name the same part alike."""
    places: dict[str, set[str]] = defaultdict(set)
    for path in MODULES:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
                places[node.name].add(str(path.relative_to(SOURCE)))
    alike = {"main", "run", "resume", "make_human"}
    shared = {name for name, found in places.items() if len(found) > 1 and name not in alike}
    assert {name for name in shared if not all(place.startswith("domains/") for place in places[name])} == set()


@pytest.mark.parametrize("folder", sorted({path.relative_to(SOURCE).parts[0] for path in MODULES}))
def test_docstrings_begin_with_a_verb(folder: str) -> None:
    """And constants have the field's prefixes, and no text says `somebody`, `so many` or `is no agent`."""
    files = [path for path in MODULES if path.relative_to(SOURCE).parts[0] == folder]
    assert [line for path in files for line in find_offences(path)] == []


def test_tests_stand_where_their_modules_stand() -> None:
    """Every folder of tests is a folder of the package, but for what tests share."""
    folders = {path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")}
    assert sorted(str(folder) for folder in folders if not (SOURCE / folder).is_dir()) == []
    known = ("test_", "conftest", "__init__")
    assert not [path for path in Path(ROOT / "tests").glob("*.py") if not path.name.startswith(known)]
