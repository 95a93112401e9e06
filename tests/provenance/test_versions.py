"""Which changes make another version of an agent, and which do not."""

from __future__ import annotations

import os
import py_compile
import shutil
import sys
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

import openfield as of
from openfield import __version__
from openfield.core import Reply
from openfield.journal.fingerprint import CodeVersion
from openfield.provenance import versions
from openfield.provenance.versions import identify_agent, identify_object
from support.players import Learner, copycat
from support.worlds import TINY, tiny_trials

FILES = {
    "mine.py": "raise SystemExit('nobody runs this')\nimport model, numpy\nfrom parts import wheel\nclass Agent: ...",
    "model.py": "def load():\n    import deep",
    "deep.py": "x = 1",
    "parts/__init__.py": "from . import axle",
    "parts/axle.py": "",
    "parts/wheel.py": "def broken(:",
    "other.py": "not imported",
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an agent and its neighbours, which is the working folder."""
    folder = tmp_path / "home"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return folder


def version(source: Any) -> CodeVersion:
    code = identify_agent(source, TINY)
    assert code is not None
    return code.version


def test_a_file_comes_with_the_neighbours_it_imports_and_no_code_is_run(home: Path) -> None:
    code = identify_agent("mine.py:Agent", TINY)
    assert code is not None
    assert sorted(code.files) == [*sorted(set(FILES) - {"other.py"})]
    assert code.imports == {"numpy"}


@pytest.mark.parametrize("source", ["mine.py:Agent", "mine:Agent"])
@pytest.mark.parametrize("name", FILES)
def test_an_edit_makes_another_version_and_says_which_file(home: Path, source: str, name: str) -> None:
    before = version(source)
    with (home / name).open("a") as file:
        file.write("\n")
    assert before.differences(version(source)) == ([] if name == "other.py" else [name])
    assert (before.fingerprint == version(source).fingerprint) is (name == "other.py")


def test_another_class_of_a_file_is_another_agent_and_another_folder_is_not(home: Path, tmp_path: Path) -> None:
    before = version("mine.py:Agent")
    assert version("mine.py:Other").differences(before) == ["its class or function"]
    moved = Path(shutil.move(home, tmp_path / "moved"))
    assert version(f"{moved}/mine.py:Agent").fingerprint == before.fingerprint


def test_a_module_in_folders_without_init_files_is_found(home: Path) -> None:
    (home / "plain" / "inner").mkdir(parents=True)
    (home / "plain" / "inner" / "player.py").write_text("class Agent: ...")
    before = version("plain.inner.player:Agent")
    assert [part for part in before.parts if part.startswith("file")] == ["file plain/inner/player.py"]


@pytest.mark.parametrize("command", ["{python} mine.py --fast", "{python} -m mine --fast", "./run --code=mine.py"])
def test_a_command_is_its_program_its_words_and_the_files_among_them(home: Path, command: str) -> None:
    (home / "run").write_text("#!/bin/sh\n")
    (home / "run").chmod(0o755)
    source = f"process:{command.format(python=sys.executable)}"
    before = version(source)
    assert {"file mine.py", "file deep.py"} <= before.parts.keys()
    (home / "deep.py").write_text("x = 2")
    assert before.differences(version(source)) == ["deep.py"]
    assert "its command" in before.differences(version(source + " --more"))
    (home / "run").write_text("#!/bin/sh\nexit")
    assert ("run" in before.differences(version(source))) is ("./run" in command)


def test_built_in_agents_and_packages_go_by_their_version(home: Path) -> None:
    built_in = version("random")
    assert built_in.parts["package openfield"] == __version__
    assert len(built_in.parts["module openfield.agents.random"]) == 64
    assert version("counter").parts["package openfield"] == __version__
    assert version("counter") != version("alarmist")
    assert "package numpy" in version("numpy.random:Generator").parts


@pytest.mark.parametrize(
    "source", ["gone.py:Agent", "no.such:Agent", "process:no-such-program", "process:'", "nothing"]
)
def test_what_is_not_found_has_no_version(home: Path, source: str) -> None:
    assert identify_agent(source, TINY) is None


def test_an_object_is_known_by_the_file_of_its_module() -> None:
    assert "file support/players.py" in version(Learner).parts
    assert version(Learner).differences(version(copycat)) == ["its class or function"]
    assert version(Learner) == version("support.players:Learner")


def compile_agent(text: str) -> Any:
    """A function that no module has, as in a notebook."""
    space: dict[str, Any] = {"__name__": "<cell>"}
    exec(compile(text, "<cell>", "exec"), space)
    return space["play"]


def test_a_function_without_a_file_is_known_by_its_code() -> None:
    text = "def play(turn):\n    return {known!r} if turn in {{1, 2, 'x'}} else (lambda: {known!r})()"
    one, same, other = (compile_agent("\n" * number + text.format(known=known)) for number, known in enumerate("aab"))
    assert isinstance(one, FunctionType)
    assert identify_object(one).parts == identify_object(same).parts
    assert identify_object(one).version.differences(identify_object(other).version) == ["its code"]
    kind = "class play:\n    def __call__(self, turn):\n        return {}"
    assert identify_object(compile_agent(kind.format(1))).parts != identify_object(compile_agent(kind.format(2))).parts


class Tuned:
    def __init__(self, rate: float, weights: str = "", rival: object = None) -> None:
        self.rate, self.weights, self.rival = rate, weights, rival

    def __call__(self, turn: Any) -> Reply:
        return Reply(self.rate)

    def act(self, turn: Any) -> Reply:
        return Reply(self.weights)


def closure(rate: float, weights: str = "", rival: object = None) -> Any:
    return lambda turn: Reply((rate, weights, rival))


@pytest.mark.parametrize("make", [Tuned, closure, partial(partial, Tuned), lambda *args: Tuned(*args).act])
def test_parameters_and_the_files_they_name_are_part_of_an_agent(home: Path, make: Any) -> None:
    (home / "weights.bin").write_bytes(b"1")
    before = version(make(0.1, "weights.bin", object()))
    assert before == version(make(0.1, "weights.bin", object()))
    assert before != version(make(0.2, "weights.bin", object()))
    (home / "weights.bin").write_bytes(b"2")
    assert before.differences(version(make(0.1, "weights.bin", object()))) == ["weights.bin"]


def test_files_of_the_same_name_are_kept_apart(home: Path) -> None:
    for folder in ("a", "b"):
        (home / folder).mkdir()
        (home / folder / "weights.bin").write_text(folder)
    before = version(f"process:{sys.executable} mine.py a/weights.bin b/weights.bin")
    (home / "b" / "weights.bin").write_text("c")
    assert before != version(f"process:{sys.executable} mine.py a/weights.bin b/weights.bin")


def make_weights(folder: Path) -> None:
    """Write a folder of weights, and beside them what is no part of an agent."""
    for name in ("a", "deep/b", ".cache/x", "deep/.hidden", "__pycache__/c.pyc"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "deep" / "up").symlink_to("..")
    os.mkfifo(folder / "pipe")


@pytest.mark.parametrize(
    "source", ["mine.py:Agent(weights=wdir)", "mine.py:Agent(weights=[1, ./wdir])", "mine.py:Agent(weights={a=./wdir})"]
)
def test_a_folder_that_a_parameter_names_is_part_of_an_agent(home: Path, source: str) -> None:
    make_weights(home / "wdir")
    before = version(source)
    for name in ("a", "deep/b", "deep/new"):
        earlier = version(source)
        (home / "wdir" / name).write_text("edited")
        assert earlier.differences(version(source)) == ["wdir"]
    (home / "wdir" / "a").rename(home / "wdir" / "z")
    assert version(source) not in (before, earlier)


def test_what_is_no_data_in_a_folder_makes_no_other_version(home: Path) -> None:
    make_weights(home / "wdir")
    before = version("mine.py:Agent(weights=wdir)")
    for name in (".cache/x", "deep/.hidden", "__pycache__/c.pyc"):
        (home / "wdir" / name).write_text("edited")
    of.run("random", tiny_trials(1), home / "wdir" / "deep" / "run.db")
    (home / "elsewhere").mkdir()
    shutil.move(home / "wdir" / "deep" / "run.db", home / "elsewhere" / "moved.db")
    (home / "wdir" / "linked").symlink_to(home / "elsewhere" / "moved.db")
    shutil.copy(home / "elsewhere" / "moved.db", home / "wdir" / "copied.dat")
    (home / "wdir" / "copied.dat-wal").touch()
    os.utime(home / "wdir" / "a", (1, 1))
    assert version("mine.py:Agent(weights=wdir)") == before


def test_a_folder_in_another_place_is_the_same_and_another_link_is_not(home: Path, tmp_path: Path) -> None:
    make_weights(home / "wdir")
    before = version("mine.py:Agent(weights=wdir)")
    moved = Path(shutil.move(home / "wdir", tmp_path / "wdir"))
    assert version(f"mine.py:Agent(weights={moved})") == before
    (moved / "deep" / "up").unlink()
    (moved / "deep" / "up").symlink_to(".")
    assert version(f"mine.py:Agent(weights={moved})") != before


def test_folders_of_the_same_name_are_kept_apart(home: Path) -> None:
    for name in ("one/data", "two/data"):
        (home / name).mkdir(parents=True)
        (home / name / "w").write_text(name)
    source = "mine.py:Agent(a=one/data, b=two/data)"
    before = version(source)
    (home / "two" / "data" / "w").write_text("edited")
    assert version(source) != before


@pytest.mark.parametrize("limit", ["MAX_FOLDER_FILES", "MAX_FOLDER_BYTES"])
def test_a_large_folder_goes_by_names_sizes_and_times(home: Path, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(versions, limit, 1)
    make_weights(home / "wdir")
    before = version("mine.py:Agent(weights=wdir)")
    assert version("mine.py:Agent(weights=wdir)") == before
    os.utime(home / "wdir" / "a", (1, 1))
    assert version("mine.py:Agent(weights=wdir)").differences(before) == ["wdir"]


@pytest.mark.parametrize("place", [".", "..", "/", "/proc/self"])
def test_a_folder_that_is_no_data_is_a_word(home: Path, place: str) -> None:
    source = f"mine.py:Agent(weights={place})"
    before = version(source)
    (home / "new").write_text("new")
    assert version(source) == before
    assert not [name for name in before.parts if name.startswith("folder")]


def test_a_compiled_module_without_its_source_is_code_too(home: Path) -> None:
    (home / "compiled.py").write_text("import sealed\n\nclass Agent: ...\n")
    found = []
    for value in (1, 2):
        (home / "draft.py").write_text(f"P = {value}\n")
        py_compile.compile(str(home / "draft.py"), cfile=str(home / "sealed.pyc"), doraise=True)
        found.append(version("compiled.py:Agent"))
    assert found[0].differences(found[1]) == ["sealed.pyc"]
