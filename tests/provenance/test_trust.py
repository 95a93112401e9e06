"""The key of a user, and what it signs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from openfield.errors import DamagedRun, InvalidInput, UnknownName
from openfield.journal.reader import Run
from openfield.journal.writer import Journal
from openfield.provenance.trust import admit_code, key_path, sign_code, trusted_domain
from openfield.runner.plan import make_cells
from support.places import MAZE
from support.worlds import tiny_trials

CODE = "process:./player --fast"


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


def write(path: Path, **facts: str) -> Run:
    with Journal(path) as record:
        said = {key.replace("_", " "): text for key, text in facts.items()}
        record.enter(make_cells(["ada"], tiny_trials()), {"ada": CODE}, said)
    return Run(path)


def test_the_key_is_made_once_and_only_for_code() -> None:
    assert sign_code(["random", None, "compass"]) == {}
    assert not key_path().exists()
    signed = sign_code([CODE, "random"])
    assert (len(signed), key_path().stat().st_mode & 0o777) == (1, 0o600)
    assert sign_code([CODE]) == signed
    assert [file.name for file in key_path().parent.iterdir()] == ["key"]


def test_code_runs_if_this_user_signed_it(path: Path, monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    with write(path, **sign_code([CODE])) as run:
        admit_code(run, [CODE])
        with pytest.raises(InvalidInput, match=r"has changed or moved since: other\.py:Agent\. If you trust it"):
            admit_code(run, [CODE, "other.py:Agent"])
        admit_code(run, ["other.py:Agent"], trust=True)
        monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "another"))
        for _ in range(2):  # without a key, and with another one
            with pytest.raises(InvalidInput, match="or moved since: process:"):
                admit_code(run, [CODE])
            sign_code([CODE])


def test_code_that_changed_or_moved_is_not_signed(path: Path, monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """Whatever it is named by: a file, a module of the working folder, a command, or a command that hides its file."""
    code = [str(home / "one" / "mine.py"), "mine:Agent", "process:python mine.py", "process:sh -c 'exec ./mine.py'"]
    for name in ("one", "two"):
        (home / name).mkdir()
        (home / name / "mine.py").write_text("import beside")
        (home / name / "beside.py").write_text("pass")
    monkeypatch.chdir(home / "one")
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    with write(path, **sign_code(code)) as run:
        admit_code(run, code)
        (home / "one" / "beside.py").write_text("changed")
        assert refused(run, code) == code[:3]  # what a shell starts is not seen
        (home / "one" / "beside.py").write_text("pass")
        admit_code(run, code)
        monkeypatch.chdir(home / "two")
        assert refused(run, code) == code[1:]
        (home / "one" / "mine.py").unlink()  # now the file of this name in the working folder would run
        assert refused(run, code) == code
        admit_code(run, code, trust=True)


def refused(run: Run, code: list[str]) -> list[str]:
    with pytest.raises(InvalidInput, match=r"or moved since: .* If you trust it, add --trust\.") as caught:
        admit_code(run, code)
    return str(caught.value).partition("since: ")[2].partition(". If you")[0].split(", ")


def test_a_forged_signature_does_not_count(path: Path) -> None:
    ((name, text),) = sign_code([CODE]).items()
    forged = text[:-1] + ("0" if text[-1] != "0" else "1")
    with write(path, **{name: forged}) as run, pytest.raises(InvalidInput, match="you did not sign"):
        admit_code(run, [CODE])


def test_a_key_that_others_can_read_is_refused() -> None:
    sign_code([CODE])
    key_path().chmod(0o644)
    with pytest.raises(InvalidInput, match=r"Others can read .*key and sign code for you. Remove it"):
        sign_code([CODE])


def test_without_a_place_for_a_key_nothing_is_signed(home: Path) -> None:
    (home / "config").write_text("a file where the folder should be")
    assert sign_code([CODE]) == {}


def test_a_domain_is_not_taken_for_another(path: Path) -> None:
    with write(path, domain_tiny="elsewhere.py") as run:
        with pytest.raises(InvalidInput, match="you did not sign"):
            trusted_domain(run, "tiny")
        with pytest.raises(UnknownName):
            trusted_domain(run, "elsewhere.py")
    other = path.with_name("other.sqlite")
    with write(other, domain_tiny=MAZE) as run, pytest.raises(DamagedRun, match="is the domain 'maze', not 'tiny'"):
        trusted_domain(run, "tiny", trust=True)
