"""The documentation is true: its snippets run, its links lead somewhere, and what it names exists."""

from __future__ import annotations

import base64
import functools
import inspect
import json
import os
import pkgutil
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple, get_args

import msgspec
import pytest

import openfield
from openfield import capabilities
from openfield.cli import run_command
from openfield.core import Turn
from openfield.domain import Domain
from openfield.journal.reader import SCORED
from openfield.metrics import BUILT_IN
from openfield.options import COMMANDS
from openfield.registry import find_domain, installed_domains
from openfield.runner.experiment import Experiment
from openfield.serving.jsonlines import FromAgent, LineDecoder, bye, load_line, save_line, turn_line, welcome
from openfield.trial import Limits
from support.places import MAZE, ROOT, load_generator
from support.voice import NAMELESS

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "recipes").glob("*.md"))]
NOTES = [ROOT / "CHANGELOG.md", *sorted((ROOT / "design").glob("*.md"))]
READMES = [ROOT / "CONTRIBUTING.md", ROOT / "bench" / "README.md", *sorted(ROOT.glob("src/openfield/**/README.md"))]
READ = [*PAGES, *NOTES, *READMES]
GUIDE = ROOT / "docs" / "domain.md"
RULES = ROOT / "docs" / "capabilities.md"
CATCH = ROOT / "examples" / "catch.py"
DOMAINS = [*installed_domains(), find_domain("gym:CartPole-v1")]
HAVE_OPTIONS = [domain for domain in DOMAINS if isinstance(domain, capabilities.HasOptions)]
COMMON = {"--help", "--help-all", "--version"}
OURS = {path.name for folder in (ROOT, ROOT / "src" / "openfield") for path in folder.iterdir() if path.is_dir()}
"""The folders whose files pages name; other paths are those of users."""


class Snippet(NamedTuple):
    """A fenced block: its language, its text, and the file or class that the line above names (`This is `NAME`:`)."""

    language: str
    text: str
    file: str
    line: int


def snippets(page: Path) -> Iterator[Snippet]:
    text = page.read_text(encoding="utf-8")
    for found in re.finditer(r"(?:`([\w./]+)`:\n\n)?^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield Snippet(found[2], found[3], found[1] or "", text.count("\n", 0, found.start(2)) + 1)


@pytest.mark.docs
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_snippets_run_in_order(
    page: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    runner = Runner(tmp_path, capsys, monkeypatch)
    for snippet in snippets(page):
        if page == GUIDE and snippet.text.startswith("    def ") and snippet.file:
            continue  # it is in the file
        if snippet.file and not (ROOT / snippet.file).exists():
            (tmp_path / snippet.file).write_text(snippet.text, encoding="utf-8")
        elif snippet.language == "console":
            for command, shown in commands(snippet.text):
                expect(shown, runner.run(command), f"{page.name}:{snippet.line}: {command}")
        elif snippet.language == "python" and page != GUIDE and not snippet.file:
            path = tmp_path / f"snippet_{snippet.line}.py"
            path.write_text(snippet.text, encoding="utf-8")
            runner.run(f"python {path.name}")


def commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """The lines after `$ `, each with the output shown below it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, *shown = part.splitlines()
        yield command, shown


class Runner:
    """Runs commands of a page in a folder, and returns what they print."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self._capsys, self._patch = folder, capsys, monkeypatch
        self.in_children = False
        """Whether commands are run as programs. In this process they are quicker, but see no edits."""
        monkeypatch.chdir(folder)
        monkeypatch.setenv("COLUMNS", "200")  # wide enough for our tables
        monkeypatch.setenv("PYTHONWARNINGS", "error")
        monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")

    def run(self, command: str) -> str:
        """Return the standard output of a command, and its standard error if it failed."""
        if self.in_children or re.search("[|<>&;]", command):
            return self._run_shell(command)
        program, *words = shlex.split(command)
        self._capsys.readouterr()
        status = {"openfield": run_command, "python": self._run_python}[program](words)
        said = self._capsys.readouterr()
        assert status in (0, 2), f"{command}\n{said.err}"
        return said.out + (said.err if status else "")

    def _run_python(self, words: list[str]) -> int:
        """Run a file of the folder, and forget the modules that it imports from there: other pages have the same."""
        known = set(sys.modules)
        with self._patch.context() as patch:
            patch.setattr(sys, "argv", words)
            patch.syspath_prepend(str(self.folder / Path(words[0]).parent))
            try:
                runpy.run_path(words[0], run_name="__main__")
            finally:
                for name in set(sys.modules) - known:
                    if str(self.folder) in str(getattr(sys.modules[name], "__file__", "")):
                        del sys.modules[name]
        return 0

    def _run_shell(self, command: str) -> str:
        # Our own documentation's commands.
        done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode in (0, 2), f"{command}\n{done.stderr}"
        return done.stdout + (done.stderr if done.returncode else "")


def expect(shown: list[str], printed: str, place: str) -> None:
    """Every line that is shown was printed, in this order, however padded; `...` stands for any lines."""
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    position = 0
    for before, line in zip(["", *shown], (" ".join(line.split()) for line in shown), strict=False):
        if line == "...":
            continue
        rest = lines[position:] if before == "..." else lines[position : position + 1]
        assert line in rest, f"{place}\nnot printed: {line}\nprinted:\n{printed}"
        position += rest.index(line) + 1
    assert not shown or shown[-1] == "..." or not any(lines[position:]), f"{place}\nmore was printed:\n{printed}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_quoted_files_are_the_files(page: Path) -> None:
    for snippet in snippets(page):
        if snippet.file and (ROOT / snippet.file).exists():
            assert snippet.text == (ROOT / snippet.file).read_text(encoding="utf-8"), snippet.file


def test_the_domain_guide_is_a_domain_in_99_lines_and_a_capability_in_ten_more() -> None:
    pieces = [snippet for snippet in snippets(GUIDE) if snippet.language == "python"]
    domain = [line for piece in pieces if not piece.file for line in piece.text.splitlines() if line]
    catch = CATCH.read_text(encoding="utf-8").splitlines()
    drawing = [line for piece in pieces if piece.file for line in piece.text.splitlines() if line]
    assert domain == [line for line in catch if line and line not in drawing]
    assert "\n".join(drawing[:6]) in "\n".join(line for line in catch if line)
    assert len(catch) - len(drawing) - 3 < 100  # without the empty lines between
    assert {piece.file for piece in pieces} == {"", "CatchEpisode", "Catch"}
    assert sum(bool(line) for piece in pieces if piece.file for line in piece.text.splitlines()) == 10


def test_every_capability_is_documented() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \| [^|]+ \|$", RULES.read_text(encoding="utf-8"), re.MULTILINE)
    documented = {name: set(re.findall(r"`(\w+)`", members)) for name, members in rows}
    assert documented == {
        name: {member for member in (*vars(kind), *inspect.get_annotations(kind)) if not member.startswith("_")}
        for name, kind in vars(capabilities).items()
        if name in capabilities.__all__ and getattr(kind, "_is_protocol", False)
    }


def test_every_attribute_of_a_domain_with_a_default_is_documented() -> None:
    page = RULES.read_text(encoding="utf-8")
    table = page[page.index("| attribute or method |") : page.index("| capability | members |")]
    given = {name for name in vars(Domain) if not name.startswith("_")} - {
        "older_versions",
        "older_defaults",
        "version",
    }
    used = {"agents", "baseline", "default_novelty", "metrics", "novelties", "phases", "spec", "trials", "world"}
    inner = {
        "novelty_names",
        "check_novelties",
        "settings_in",
        "settings_of",
        "course",
        "list_moments",
        "check_courses",
        "novelty_in",
    }
    assert set(re.findall(r"`(\w+)`", re.sub(r" \|[^|]* \|$", "", table, flags=re.MULTILINE))) == given - used - inner


@pytest.mark.parametrize("page", [*PAGES, *NOTES], ids=lambda page: page.stem)
def test_relative_links_resolve(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" not in target and not target.startswith("#"):
            assert (page.parent / target.split("#")[0]).exists(), target


def test_every_key_of_an_experiment_is_documented() -> None:
    page = (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)`", page, re.MULTILINE)) == {
        *(key.name for key in fields(Experiment) if key.init),
        *Limits.__struct_fields__,
    }


def test_every_message_and_field_of_the_protocol_is_documented() -> None:
    page = (ROOT / "docs" / "stdio.md").read_text(encoding="utf-8")
    for kind in get_args(FromAgent):
        section = re.search(rf"^### `{kind.__struct_config__.tag}`\n(.*?)^##", page, re.MULTILINE | re.DOTALL)
        assert section, kind
        assert all(f'"{field}"' in section[1] or f"`{field}`" in section[1] for field in kind.__struct_fields__), kind
    section = re.search(r"^### `turn`\n(.*?)^###", page, re.MULTILINE | re.DOTALL)
    assert section
    assert set(re.findall(r"^\| `(\w+)`", section[1], re.MULTILINE)) == set(Turn.__struct_fields__)


def test_messages_shown_are_messages_of_the_protocol() -> None:
    shown = [
        line
        for snippet in snippets(ROOT / "docs" / "stdio.md")
        if snippet.language == "json"
        for line in snippet.text.splitlines()
    ]
    ours = {message["type"]: message for message in map(json.loads, shown)}
    theirs = [line for line in shown if json.loads(line)["type"] in ("hello", "reply", "state", "loaded")]
    assert len(list(LineDecoder().feed("\n".join([*theirs, ""]).encode()))) == 4
    maze = find_domain(MAZE)
    (trial,) = maze.trials(count=1, unchanged=0)
    spec = msgspec.structs.replace(maze.spec(trial), reply_seconds=60.0)
    assert ours["welcome"] == json.loads(welcome(spec, ours["welcome"]["seed"]))
    assert ours["turn"] == json.loads(turn_line(maze.world(trial).reset()))
    assert [ours["save"], ours["bye"]] == [json.loads(save_line()), json.loads(bye())]
    assert ours["load"] == json.loads(load_line(base64.b64decode(ours["load"]["state"])))


def test_every_number_is_documented() -> None:
    page = "".join(
        (ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("numbers-list.md", "curricula.md", "change.md")
    )
    for metric in BUILT_IN:
        for number in metric.numbers:
            if not re.fullmatch(
                r"(set|noticed|delay|strength|recovery)_[2-9]", number.name
            ):  # "and so on up to `set_9`"
                assert f"| {number.title} | `{number.name}` | {number.kind} | {number.better} |" in page
    assert "and so on up to `set_9`" in page


def test_every_printed_word_is_in_the_glossary() -> None:
    from openfield.novelty import HIERARCHY
    from openfield.report.words import OUTCOMES

    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    for outcome, meaning in OUTCOMES.items():
        assert f"| `{outcome}` | {meaning} |" in page
    assert all(kind in page for kind in HIERARCHY)
    printed = {"cell", "trial", "scenario", "onset", "concordance", "belief", "delay", "red light", "episode", "turn"}
    printed |= {"phase", "attempt", "interval", "novelty", "level", "kind", "version", "basis", "difference", "n", "p"}
    titles = set(re.findall(r"^\| ([^|]+) \|", page, re.MULTILINE))
    known = {word.strip() for title in titles for word in title.split(",")}
    assert printed <= known, printed - known


def test_every_outcome_is_documented() -> None:
    from openfield.report.words import OUTCOMES

    page = (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| [^|]* \| (yes|no)\b", page, re.MULTILINE))
    assert rows.keys() == OUTCOMES.keys() - {"unfinished"}
    assert {outcome for outcome, scored in rows.items() if scored == "yes"} == {
        *SCORED,
        *(outcome for outcome in OUTCOMES if outcome.startswith("agent_")),
    }


def test_every_check_of_a_world_is_documented() -> None:
    from openfield.testing.world import CHECKS

    page = RULES.read_text(encoding="utf-8")
    table = page[page.index("| check | what it proves |") : page.index("An agent may see a novelty")]
    assert set(re.findall(r"`(\w+)`", table)) == CHECKS.keys()


def test_the_screenshot_is_small() -> None:
    assert 10_000 < (ROOT / "docs" / "images" / "report.png").stat().st_size < 150_000


def code_in(page: Path) -> Iterator[str]:
    """The code in the running text of a page, and the commands in its blocks, each in one line."""
    text = page.read_text(encoding="utf-8")
    for block in re.findall(r"^```.*?^```$", text, re.MULTILINE | re.DOTALL):
        yield from re.findall(r"^(?:\$ )?(openfield .*?)(?:  .*)?$", block, re.MULTILINE)
    for span in re.findall(r"`([^`]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)):
        yield " ".join(span.split())


@functools.cache
def known_commands() -> dict[str, set[str]]:
    """The options of every command, with those that domains add to it."""
    generator = load_generator("help")
    known = {" ".join(words): set[str]() for words, _ in generator.list_commands()}
    asked = [*([*name.split()] for name in known), *([name, one.name] for name in COMMANDS for one in HAVE_OPTIONS)]
    for words in asked:
        name = " ".join(words) if " ".join(words) in known else words[0]
        known[name] |= set(re.findall(r"--[a-z][a-z-]*", generator.print_text(*words, "--help-all")))
    return known


@pytest.mark.parametrize("page", READ, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_commands_and_options_exist(page: Path) -> None:
    known = known_commands()
    every = set[str]().union(*known.values()) | COMMON
    for code in code_in(page):
        code = re.sub(r"'[^']*'|\"[^\"]*\"| -- .*", "TEXT", code)  # commands and options of other programs
        words = code.split()
        if words[0] == "openfield" and len(words) > 1 and words[1].islower() and not words[1].startswith("-"):
            (name, *_) = [" ".join(words[1:end]) for end in (4, 3, 2) if " ".join(words[1:end]) in known] or [""]
            assert name, f"there is no command: {code}"
            assert set(re.findall(r"(?<= )--[a-z][a-z-]*", code)) <= known[name] | COMMON, code
        elif words[0].startswith("--"):
            assert set(re.findall(r"(?:^|(?<= ))--[a-z][a-z-]*", code)) <= every, code


@pytest.mark.parametrize("page", READ, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_files_and_names_exist(page: Path) -> None:
    folders = [ROOT, ROOT / "src" / "openfield", page.parent]
    for code in code_in(page):
        for name in re.findall(r"(?<![\w./])(?:[\w-]+/)+[\w-]+\.(?:py|md|toml|txt|yaml)\b", code):
            if name.split("/")[0] in OURS:
                assert any((folder / name).exists() for folder in folders), f"{page.name}: {name}"
        for name in re.findall(r"\bopenfield(?:\.\w+)+", code):
            if not name.endswith((".domains", ".families", ".agents", ".metrics")):
                pkgutil.resolve_name(name)
        for name in re.findall(r"\bof\.(\w+)", code):
            assert hasattr(openfield, name), f"{page.name}: of.{name}"


@pytest.mark.parametrize("page", READ, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_sentences_say_who_does_it(page: Path) -> None:
    assert not NAMELESS.findall(page.read_text(encoding="utf-8"))


def test_every_format_of_a_domain_is_documented() -> None:
    page = (ROOT / "docs" / "cli-results.md").read_text(encoding="utf-8")
    for domain in installed_domains():
        for name in domain.exports:
            assert re.search(rf"further formats: .*{domain.name.split('-')[0]}.* `{name}`", page), name


@pytest.mark.parametrize("page", [*PAGES, *READMES], ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_pages_are_read_in_ten_minutes(page: Path) -> None:
    assert len(page.read_text(encoding="utf-8").split()) <= 2_500, "split it"


@pytest.mark.parametrize("page", [*PAGES, *READMES], ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_no_page_claims_a_package_index(page: Path) -> None:
    assert not re.search(r"pip install ['\"]?openfield", page.read_text(encoding="utf-8"))


def test_the_front_page_is_short() -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(page.splitlines()) < 120
    assert re.findall(r"^!\[.*\]\((.*)\)$", page, re.MULTILINE) == [
        "docs/images/birds.webp",
        "docs/images/view-run.png",
    ]


def test_the_architecture_draws_every_module_and_folder_and_no_other() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    tree = page.split("src/openfield/\n")[1].split("tests/")[0]
    lines = re.findall(r"^  (\S.*)$", tree, re.MULTILINE)
    drawn = {word for line in lines for word in takewhile(lambda word: word.endswith((".py", "/")), line.split())}
    package = ROOT / "src" / "openfield"
    modules = {path.name for path in package.glob("*.py") if not path.name.startswith("__")}
    folders = {f"{path.parent.name}/" for path in package.glob("*/__init__.py")}
    assert drawn == modules | folders
