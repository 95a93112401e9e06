"""Write tests/data/messages.md: what commands say about bad input, and every message in the source.

The page is a snapshot: a change of a message shows in the diff. `make docs` writes it anew.

Commands are run in a folder of their own. The source is read, not imported: `{path}` stands for a value.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).parents[1]
SOURCE = TESTS.parent / "src" / "openfield"
PAGE = TESTS / "data" / "messages.md"
AREAS = {
    "Everywhere": ("*.py",),
    "The command line": ("cli/**/*.py",),
    "Run files": ("journal/**/*.py", "provenance/**/*.py"),
    "Running": ("runner/**/*.py", "processes/**/*.py", "agents/**/*.py"),
    "Serving": ("serving/**/*.py",),
    "Metrics and reports": ("metrics/**/*.py", "report/**/*.py", "view/**/*.py"),
    "The conformance kit": ("testing/**/*.py",),
    "Objectives": ("objectives/**/*.py",),
    "Birds": ("domains/birds/**/*.py",),
    "CommAI": ("domains/commai/**/*.py",),
    "Doom": ("domains/doom/**/*.py",),
    "OND": ("domains/ond/**/*.py",),
}
HEAD = """# Messages

What openfield says about bad input. A message says what is wrong, where, and what would be right. Commands print it as
one line on standard error and exit with status 2; other statuses are in docs/cli.md.
"""
REASONS = {"strerror": "reason", "error": "reason", "say_mismatch": "reason", "__name__": "type"}
CALLS = {"len": "number", "join": "names", "sum": "number", "count": "number", "round": "number", "say_count": "number"}


def render_messages() -> str:
    """Return the page: what commands say, then every message in the source."""
    return "\n".join([HEAD, *_render_commands(), *_render_source()]).rstrip() + "\n"


def _render_commands() -> Iterator[str]:
    """Yield what commands print about the mistakes of a table, by group."""
    sys.path.insert(0, str(TESTS))
    from support.mistakes import MISTAKES, complain, write_files

    yield "## What commands say\n"
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder))
        for title, cases in MISTAKES.items():
            yield f"### {title}\n\n```text"
            for line, _ in cases:
                yield f"$ openfield {line}\n{complain(Path(folder), line)}"
            yield "```\n"


def _render_source() -> Iterator[str]:
    """Yield the messages in the source, by area, module and line."""
    yield (
        "## Every message\n\n"
        "As they are in the source; `{path}` stands for a value. Messages to agents and clients are among them.\n"
    )
    kinds = find_kinds()
    for title, patterns in AREAS.items():
        yield f"### {title}\n"
        for path in sorted({path for pattern in patterns for path in SOURCE.glob(pattern)}):
            found = list(dict.fromkeys(find_messages(path, kinds)))
            if found:
                yield f"`{path.relative_to(SOURCE)}`\n"
                yield from (f"- {_escape(message)}" for message in found)
                yield ""


def find_kinds() -> set[str]:
    """Return the names of all error classes of the package."""
    bases = {name: parents for path in SOURCE.rglob("*.py") for name, parents in _read(path).classes.items()}
    kinds = {"OpenfieldError"}
    while more := {name for name, parents in bases.items() if parents & kinds} - kinds:
        kinds |= more
    return kinds


def find_raised() -> set[str]:
    """Return the names of the error classes that the source makes errors of."""
    return {call.name for path in SOURCE.rglob("*.py") for call in _read(path).calls} & find_kinds()


class Made(NamedTuple):
    """A call that may make an error, with the function around it."""

    name: str
    call: ast.Call
    function: ast.AST | None


class Module(NamedTuple):
    """What a module has of classes and of errors."""

    classes: dict[str, set[str]]
    """The names of its classes, with those of their bases."""
    calls: list[Made]


@functools.cache
def _read(path: Path) -> Module:
    """Return what is asked of a module. Its tree is walked once and not kept: all of them are a million nodes."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    classes = {node.name: {_name(base) for base in node.bases} for node in nodes if isinstance(node, ast.ClassDef)}
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    calls = []
    for call in (node for node in nodes if isinstance(node, ast.Call)):
        name = _name(call.func)
        if name[:1].isupper() or name == "import_extra":  # a class, which may be an error
            around = [each for each in functions if each.lineno <= call.lineno <= (each.end_lineno or 0)]
            calls.append(Made(name, call, around[-1] if around else None))
    return Module(classes, calls)


def find_messages(path: Path, kinds: set[str]) -> Iterator[str]:
    """Yield the messages of the errors that a module raises or makes, in the order of their lines."""
    for name, call, function in sorted(_read(path).calls, key=lambda made: made.call.lineno):
        if name in kinds or name == "import_extra":
            yield from _messages_of(call, function)


def _messages_of(call: ast.Call, function: ast.AST | None) -> Iterator[str]:
    kind = _name(call.func)
    if kind == "UnknownName" and len(call.args) >= 3:
        labels = [*call.args[3:], *(keyword.value for keyword in call.keywords if keyword.arg == "label")]
        label = next(_texts(labels[0], function), "Installed") if labels else "Installed"
        what = next(_texts(call.args[0], function), "{kind}")
        yield f"Unknown {what} '{{name}}'. Did you mean '{{other}}'? {label}: {{names}}."
    elif kind in ("MissingExtra", "import_extra"):
        extra, need = (next(_texts(part, function), _place(part)) for part in call.args[-2:])
        yield f"{need} needs an optional part of openfield. Install it: pip install 'openfield[{extra}]'"
    else:
        found = [text for argument in call.args for text in _texts(argument, function) if " " in text]
        yield from found


def _texts(node: ast.expr, function: ast.AST | None) -> Iterator[str]:
    """Yield the texts an expression can be: both of a condition, all that a variable is given."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr():
            yield "".join(_piece(part) for part in node.values)
        case ast.IfExp():
            yield from _texts(node.body, function)
            yield from _texts(node.orelse, function)
        case ast.BinOp(op=ast.Add()):
            for left in _texts(node.left, function):
                yield from (left + right for right in _texts(node.right, function))
        case ast.Name() if function is not None:
            for each in ast.walk(function):
                if isinstance(each, ast.Assign) and node.id in {_name(target) for target in each.targets}:
                    yield from _texts(each.value, None)


def _piece(part: ast.expr) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    return _place(part.value) if isinstance(part, ast.FormattedValue) else _place(part)


def _place(node: ast.expr) -> str:
    """Return what stands for a value: the last name in its expression, in braces."""
    match node:
        case ast.IfExp(body=ast.Constant(value=str(one)), orelse=ast.Constant(value=str(other))):
            return f"{one}|{other}" if one and other else ""
        case ast.IfExp():
            return _place(node.body)
        case ast.BoolOp():
            return _place(node.values[0])
        case ast.Call(func=ast.Name(id=name)) if name in ("str", "quote", "repr", "sorted", "list", "max", "min"):
            return _place(node.args[0]) if node.args else "{value}"
        case ast.Call():
            name = CALLS.get(_name(node.func), _name(node.func))
        case ast.Subscript():
            return _place(node.value)
        case ast.BinOp():
            return _place(node.left)
        case ast.Constant():
            return str(node.value)
        case _:
            name = _name(node)
    name = REASONS.get(name, name).lstrip("_") or "value"
    return f"{{{name}}}"


def _name(node: ast.expr) -> str:
    """Return the last name of a dotted expression."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _escape(text: str) -> str:
    return re.sub(r"([*_<|\[\]])", r"\\\1", " ".join(text.split()))


if __name__ == "__main__":
    if "--print" in sys.argv:
        sys.stdout.write(render_messages())
    else:
        PAGE.write_text(render_messages(), encoding="utf-8")
