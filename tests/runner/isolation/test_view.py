"""What isolated programs are shown of the file system."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from openfield.errors import InvalidInput
from openfield.isolation import Isolation
from openfield.journal.schema import open_to_write
from openfield.runner.isolation import bubblewrap, view
from openfield.runner.isolation.view import OWN_PACKAGE, View, view_of_command, view_of_python


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


def test_the_file_that_makes_an_environment_is_shown_with_its_neighbours_and_its_suite(tmp_path: Path) -> None:
    for name in ("code/envs.py", "code/neighbour.py", "other/lab.toml", "other/truth.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    place = f"{tmp_path}/code/envs.py:make(name=CartPole-v1)"
    for source, files in ((f"gym:{place}", set()), (f"gym:{tmp_path}/other/lab.toml:{place}", {"other/lab.toml"})):
        seen = {path for path in shown(view_of_python("random", source).mounts()) if path.startswith(str(tmp_path))}
        assert seen == {f"{tmp_path}/{name}" for name in {"code/envs.py", "code/neighbour.py", *files}}


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


def test_small_folders_are_shown_entry_by_entry_and_large_ones_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is made in a folder that is bound as a whole is seen at once; each entry of the others is a mount."""
    monkeypatch.setattr(view, "MAX_FIXED", 10)
    for name in ("runs/none", "small/a", "large/1", "large/2", "large/3", "large/4", "large/deep/b"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "runs" / "none").unlink()
    words = View((tmp_path,)).mounts()
    made = {words[at + 1] for at, word in enumerate(words) if word == "--tmpfs"}
    assert made == {str(tmp_path / name) for name in ("", "runs", "small", "large/deep")}
    assert str(tmp_path / "large") in shown(words)
    assert str(tmp_path / "large" / "1") not in shown(words)


def test_the_folders_of_openfield_take_no_mounts_of_their_own() -> None:
    package = Path(view.__file__).parents[2]
    assert len(View((package.parent,)).mounts()) < 200


def test_a_granted_folder_is_shown_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a").touch()
    for writable in (False, True):
        words = View(files=((tmp_path, writable),)).mounts()
        assert words == ["--bind-try" if writable else "--ro-bind-try", str(tmp_path), str(tmp_path)]


def test_no_lock_of_this_process_is_lost_on_the_way(tmp_path: Path) -> None:
    """To close a file drops all locks that a process has on it, and a run may be written by this one."""
    path = tmp_path / "run.db"
    with contextlib.closing(open_to_write(path)) as db:
        db.execute("PRAGMA journal_mode = DELETE")  # its locks are on the file itself
        db.execute("BEGIN EXCLUSIVE")
        assert str(path) not in shown(View((tmp_path,)).mounts())
        script = f"import sqlite3; sqlite3.connect({str(path)!r}, timeout=0).execute('BEGIN IMMEDIATE')"
        other = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        assert "database is locked" in other.stderr


def test_a_pipe_and_a_file_that_cannot_be_read_are_no_run_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "secret").chmod(0)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    assert {str(tmp_path / "pipe"), str(tmp_path / "secret")} <= shown(View((tmp_path,)).mounts())


def test_a_run_file_hides_only_what_belongs_to_it(tmp_path: Path) -> None:
    for name in ("m", "m-wal", "m.lock", "maze.py", "m.py"):
        (tmp_path / name).touch()
    words = View((tmp_path,), run=tmp_path / "m").mounts()
    assert shown(words) == {str(tmp_path / "maze.py"), str(tmp_path / "m.py")}


def test_labels_of_packaged_samples_are_not_seen() -> None:
    """The attack `lookup`: an isolated agent finds the samples of a test, with their labels, in the package."""
    words = view_of_python("random").mounts()
    truth = OWN_PACKAGE / "domains/ond/truth"
    assert any(truth.iterdir())
    assert ("--tmpfs", str(truth)) in pairwise(words)
    last = max(at for at, word in enumerate(words) if word == str(truth))
    assert words[last - 1] == "--remount-ro"
