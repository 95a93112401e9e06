"""Find docstrings of public functions that do not begin with a verb, and constants with unusual prefixes.

`python tests/support/voice.py FOLDER...` prints them, one line each.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

VERBS = frozenset(Path(__file__).with_name("verbs.txt").read_text().split())
PREFIX = re.compile(r"_?(MOST|LEAST|LONGEST|SHORTEST|LARGEST|SMALLEST|FEWEST|HIGHEST|LOWEST)_")
NAMELESS = re.compile(
    r"\b(somebody|someone|whoever|nobody|whom|what is (none|told)|so many|(?<!there )(is|are) no (?!longer)\w+)\b", re.I
)
PROPERTY = {"property", "cached_property", "functools.cached_property", "setter"}
Function = ast.FunctionDef | ast.AsyncFunctionDef


def find_offences(file: Path) -> Iterator[str]:
    """Yield what is wrong in a file, as `path:line name: reason`."""
    tree = ast.parse(file.read_text())
    for node, public in _walk(tree, True):
        if isinstance(node, Function):
            text = ast.get_docstring(node) or ""
            if reason := _judge(node, text, public):
                yield f"{file}:{node.lineno} {node.name}: {reason}"
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name) and PREFIX.match(target.id):
                    yield f"{file}:{node.lineno} {target.id}: use MAX_ or MIN_"
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | Function) and (found := NAMELESS.search(_doc(node))):
            yield f"{file}:{getattr(node, 'lineno', 1)} {getattr(node, 'name', 'module')}: says '{found[0]}'"


def _walk(tree: ast.Module | ast.ClassDef, public: bool) -> Iterator[tuple[ast.stmt, bool]]:
    for node in tree.body:
        yield node, public and not getattr(node, "name", "_").startswith("_")
        if isinstance(node, ast.ClassDef):
            yield from _walk(node, public and not node.name.startswith("_"))


def _judge(node: Function, text: str, public: bool) -> str:
    """Return what is wrong with a function's docstring; properties may be nouns, and so may private helpers."""
    if not public or any(ast.unparse(each).rpartition(".")[2] in PROPERTY for each in node.decorator_list):
        return ""
    if not text:
        return (
            ""
            if any(ast.unparse(each).rpartition(".")[2] in ("override", "overload") for each in node.decorator_list)
            else "no docstring"
        )
    first = re.split(r"\W", text.lstrip("`*"), maxsplit=1)[0]
    return "" if first.lower() in VERBS and first[0].isupper() else f"begins with '{first}'"


def _doc(node: ast.Module | ast.ClassDef | Function) -> str:
    return ast.get_docstring(node) or ""


def main() -> None:
    """Print the offences of all files below the folders named on the command line."""
    for folder in sys.argv[1:]:
        for file in sorted(Path(folder).rglob("*.py")):
            for line in find_offences(file):
                print(line)  # noqa: T201


if __name__ == "__main__":
    main()
