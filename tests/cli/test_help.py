"""Help fits a screen, is grouped, ends with an example, and is what `docs/cli*.md` show."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import pytest
from cyclopts import App

from openfield.capabilities import HasOptions
from openfield.options import COMMANDS as EXTENDED
from openfield.registry import installed_domains
from support.places import MAZE, load_generator

HELP = load_generator("help")
ROWS, COLUMNS = 30, 80
COMMANDS = list(HELP.list_commands())


def find_extended() -> list[list[str]]:
    """Every command with a domain that adds options to it."""
    pairs = product(EXTENDED, (domain for domain in installed_domains() if isinstance(domain, HasOptions)))
    return [[command, domain.name] for command, domain in pairs if domain.options(command) is not None]


@pytest.mark.parametrize("words", [[], *(words for words, _ in COMMANDS), *find_extended()], ids=" ".join)
def test_help_fits_a_screen_and_ends_with_an_example(words: list[str]) -> None:
    lines = HELP.print_text(*words, "--help").splitlines()
    assert len(lines) <= ROWS, len(lines)
    assert max(map(len, lines)) <= COLUMNS
    assert lines[0].startswith("Usage: openfield")
    assert lines[-1].startswith(f"Example: openfield {words[0] if words else ''}"), lines[-1]
    assert "`" not in "".join(lines)


@pytest.mark.parametrize(("words", "command"), COMMANDS, ids=lambda value: " ".join(value)[:30])
def test_every_parameter_has_help_and_is_shown_by_help_all(words: list[str], command: App) -> None:
    shown = HELP.print_text(*words, "--help-all")
    for argument in command.assemble_argument_collection(parse_docstring=True) if command.default_command else ():
        if argument.parse and argument.show:
            assert argument.parameter.help, argument.name
            assert argument.name in shown or argument.name.lstrip("-").upper() in shown


def test_rare_options_need_help_all() -> None:
    short, long = HELP.print_text("run", "--help"), HELP.print_text("run", "--help-all")
    assert "More options: --help-all" in short
    assert "--reply-seconds" not in short
    assert "--reply-seconds SECONDS" in long
    assert 10 <= len(re.findall(r"^  -", short, re.MULTILINE)) <= 13
    assert "--gtshoot-ints" not in HELP.print_text("serve", "birds", "--help")
    assert "--gtshoot-ints" in HELP.print_text("serve", "birds", "--help-all")


def test_the_pages_have_every_command_and_show_what_is_printed() -> None:
    pages = {path.name: path.read_text(encoding="utf-8") for path in HELP.PAGES}
    shown = [block[1].removesuffix(" --help-all") for page in pages.values() for block in HELP.BLOCK.finditer(page)]
    assert set(shown) >= {" ".join(words) for words, _ in COMMANDS}
    for name, page in pages.items():
        assert page == HELP.render_help(page), f"docs/{name} is old; write it anew: make docs"


def test_help_is_also_a_word(openfield: Any) -> None:
    assert openfield("help").out == openfield("--help").out
    assert openfield("help", "run").out == openfield("run", "--help").out
    assert openfield("help", "run", MAZE).out == openfield("run", MAZE, "--help").out
    assert "Unknown command 'rnu'. Did you mean 'run'?" in openfield("help", "rnu").err
