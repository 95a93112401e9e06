"""A small run of every domain is read, verified, replayed and reported as when it was made; see data/make_kept.py."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest

import openfield as of
from openfield.cli import run_command
from openfield.journal.reader import Run
from openfield.journal.schema import SCHEMA_VERSION
from openfield.journal.verification import find_false_turns
from openfield.registry import find_domain, find_entry_points
from support.places import MAZE, ROOT

KEPT = ROOT / "tests" / "data" / "kept"
TOLD: dict[str, Any] = json.loads((KEPT / "numbers.json").read_text())
SOURCES = {"maze": MAZE, "gym-CartPole-v1": "gym:CartPole-v1"}
"""Domains that are not found by their name."""


def test_every_domain_has_a_file_and_every_file_its_numbers() -> None:
    assert (
        {path.stem for path in KEPT.glob("*.sqlite")}
        == TOLD.keys()
        == {*find_entry_points("openfield.domains"), *SOURCES}
    )
    assert all(path.stat().st_size < 100_000 for path in KEPT.glob("*.sqlite"))


def test_the_page_on_the_format_has_its_number_and_every_table_and_column() -> None:
    page = (ROOT / "docs" / "record.md").read_text()
    assert f"the number of the\nformat: {SCHEMA_VERSION}." in page
    rows = {found[1]: found[2] for found in re.finditer(r"^\| `(\w+)` \| [^|]* \| (.*) \|$", page, re.MULTILINE)}
    with closing(sqlite3.connect(KEPT / "maze.sqlite")) as db:
        for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            columns = {name for _, name, *_ in db.execute(f"PRAGMA table_info({table})")}
            assert columns <= set(re.findall(r"`(\w+)`", rows.get(table, ""))), table


@pytest.mark.parametrize("name", TOLD)
def test_ids_and_chains_are_what_the_page_says(name: str) -> None:
    """Read it as a program in another language would."""
    with closing(sqlite3.connect(KEPT / f"{name}.sqlite")) as db:
        for key, content in db.execute("SELECT id, content FROM trials"):
            trial = json.loads(content)
            unused = {each for each in ("scenario", "window", "reference_for", "imported") if trial[each] is None}
            for phase in trial["phases"]:
                if not phase["steps"]:
                    del phase["steps"]
            assert key == short_hash({each: trial[each] for each in trial if each not in unused})
        for key, *parts in db.execute("SELECT id, agent, trial, repeat FROM cells"):
            assert key == short_hash(parts)
        before: dict[tuple[str, int], bytes] = {}
        chunks = "SELECT cell, attempt, crc, data, chain FROM chunks ORDER BY first"
        for cell, attempt, crc, data, chain in db.execute(chunks):
            link = hashlib.sha256(zlib.decompress(data)).digest()
            before[cell, attempt] = hashlib.sha256(before.get((cell, attempt), b"") + link).digest()
            assert (zlib.crc32(data), before[cell, attempt]) == (crc, chain)


def short_hash(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@pytest.mark.parametrize("name", TOLD)
def test_it_is_as_it_was_written(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["verify", str(KEPT / f"{name}.sqlite")]) == 0
    assert "is as it was written" in capsys.readouterr().out
    with Run(KEPT / f"{name}.sqlite") as run:
        assert {cell.id for cell in run.cells()} == {*TOLD[name]["cells"]}
        assert run.fingerprint() == TOLD[name]["fingerprint"]


@pytest.mark.parametrize("name", TOLD)
def test_the_same_words_still_make_the_same_trials(name: str) -> None:
    """A novelty without a process is what it was: the ids of its trials have not changed."""
    with Run(KEPT / f"{name}.sqlite") as run:
        kept = {trial.id for trial in run.trials()}
    runs = run_path(str(KEPT.parent / "make_kept.py"))["RUNS"]
    _, novelty, settings = runs.get(name) or runs[{"maze": "maze:MAZE"}.get(name, f"gym:{name[4:]}")]
    domain = find_domain(SOURCES.get(name, name))
    assert {trial.id for trial in domain.trials(1, novelty=novelty, **settings)} == kept


@pytest.mark.parametrize("name", TOLD)
def test_todays_world_shows_the_recorded_turns_and_truths(name: str) -> None:
    domain = find_domain(SOURCES.get(name, name))
    with Run(KEPT / f"{name}.sqlite") as run:
        for attempt in run.attempts():
            steps = run.raw_steps(attempt.cell, attempt.number)
            assert list(find_false_turns(attempt, domain.world, steps)) == []


@pytest.mark.parametrize("name", TOLD)
def test_its_report_has_the_numbers_that_it_had(name: str, tmp_path: Path) -> None:
    result = of.Result([KEPT / f"{name}.sqlite"])
    for group, means in zip(result.summary().groups, TOLD[name]["means"], strict=True):
        found = {number: group.estimates[number].mean for number in means}
        assert found == pytest.approx(means)
    assert run_command(["report", str(KEPT / f"{name}.sqlite"), "--json", "-o", str(tmp_path / "page.html")]) == 0
    assert (tmp_path / "page.html").exists()
