"""What isolated programs are shown of the file system."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import pytest

from openfield.errors import InvalidInput
from openfield.runner.isolation import bubblewrap, view
from openfield.runner.isolation.settings import Isolation
from openfield.runner.isolation.view import View, view_of_command, view_of_python


def shown(words: list[str]) -> set[str]:
    """Return the paths that are bound."""
    return {path for word, path in pairwise(words) if "bind" in word}


@pytest.mark.parametrize("command", [["sh", "-c", "true"], ["/bin/sh"], ["python3", "-c", "pass"], [sys.executable]])
def test_a_program_of_the_system_does_not_open_the_system(command: list[str]) -> None:
    found, _ = view_of_command(command)
    assert not {"/", str(Path.home()), "/tmp", str(Path.cwd())} & shown(found.mounts())


def test_a_command_is_typed_so_that_it_works_in_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("code/agent.py", "code/neighbour.py", "other/weights.bin", "other/more.bin"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).touch()
    found, told = view_of_command(["sh", "code/agent.py", "--weights=other/weights.bin", "plain", "--port=5"])
    assert told[1:] == [f"{tmp_path}/code/agent.py", f"--weights={tmp_path}/other/weights.bin", "plain", "--port=5"]
    seen = {path for path in shown(found.mounts()) if path.startswith(str(tmp_path))}
    assert seen == {f"{tmp_path}/{name}" for name in ("code/agent.py", "code/neighbour.py", "other/weights.bin")}


def test_a_command_without_a_program_is_refused() -> None:
    with pytest.raises(FileNotFoundError):
        view_of_command(["no-such-program"])


def test_the_current_folder_is_shown_only_to_what_is_imported_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mine.py").write_text("raise SystemExit('it must not be imported here')")
    assert tmp_path not in view_of_python("random", "doom").folders
    for found in (view_of_python("mine:Agent", "doom"), view_of_command(["sh", "-m", "mine"])[0]):
        assert tmp_path in found.folders
        assert tmp_path in found.modules


def test_a_large_folder_is_shown_as_a_whole_with_run_files_covered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "MAX_ENTRIES", 3)
    for name in ("a.py", "b", "c", "d", ".env", "old.sqlite"):
        (tmp_path / name).touch()
    words = View((tmp_path,)).mounts()
    assert words[:3] == ["--ro-bind-try", str(tmp_path), str(tmp_path)]
    covered = {words[at + 2] for at, word in enumerate(words) if word == "--ro-bind"}
    assert covered == {str(tmp_path / ".env"), str(tmp_path / "old.sqlite")}


def test_a_folder_with_too_many_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "MAX_FILES", 2)
    for name in "abc":
        (tmp_path / name).touch()
    with pytest.raises(InvalidInput, match="Put an agent to be isolated into a folder of its own"):
        View((tmp_path,)).mounts()


def test_more_files_than_bubblewrap_can_hide_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        (tmp_path / f"{number}.sqlite").touch()
        (tmp_path / f"{number}.py").touch()
    few = bubblewrap.wrap(["true"], View(), Isolation(), 2)
    monkeypatch.setattr(bubblewrap, "MAX_WORDS", len(few) + 5)
    with pytest.raises(InvalidInput, match=f"too many run files .* in {tmp_path}. Put the agent into a folder"):
        bubblewrap.wrap(["true"], View((tmp_path,)), Isolation(), 2)
