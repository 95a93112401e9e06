"""Write the help texts in docs/cli*.md: a block that begins with `$ openfield ...` shows what that command prints."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from cyclopts import App

from openfield.cli import run_command
from openfield.cli.app import COMMANDS, make_command_line
from openfield.registry import installed_domains

PAGES = sorted(Path(__file__).parent.glob("cli*.md"))
BLOCK = re.compile(r"^```text\n\$ openfield ([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def list_commands() -> Iterator[tuple[list[str], App]]:
    """Yield every command by its words: those of the command line, those inside them, and those of domains."""
    for name in COMMANDS:
        yield from _walk([name], make_command_line([])[name])
    for domain in installed_domains():
        if domain.commands:
            yield from _walk([domain.name], make_command_line([domain.name])[domain.name])


def _walk(words: list[str], app: App) -> Iterator[tuple[list[str], App]]:
    yield words, app
    for name in app:
        if not name.startswith("-"):
            yield from _walk([*words, name], app[name])


def print_text(*words: str, columns: int = 80) -> str:
    """Return what a command prints on a terminal of this width, without blanks at the ends of lines."""
    printed = io.StringIO()
    with mock.patch.dict(os.environ, {"COLUMNS": str(columns)}), contextlib.redirect_stdout(printed):
        status = run_command(list(words))
    if status:
        raise ValueError(f"openfield {shlex.join(words)} exits with {status}")
    return "".join(f"{line.rstrip()}\n" for line in printed.getvalue().splitlines())


def render_help(page: str) -> str:
    """Return the page with every block as it is printed now."""
    return BLOCK.sub(lambda block: f"```text\n$ openfield {block[1]}\n{print_text(*shlex.split(block[1]))}```", page)


if __name__ == "__main__":
    for each in PAGES:
        each.write_text(render_help(each.read_text(encoding="utf-8")), encoding="utf-8")
