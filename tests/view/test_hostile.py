"""Run files of strangers: whatever they hold is text on a page, and what cannot be read is said in a sentence."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from openfield.cell import cell_id
from openfield.report.addresses import agent_address, compare_address, name_run, run_address
from openfield.view import ViewServer
from support.browsers import open_viewer
from view.conftest import Visits

ATTACK = """<script>window.hit = 1</script><img src=x onerror="window.hit = 1">'">{{ 7 * 7 }}"""
NAMES = (ATTACK, "../../etc/passwd", "a/b?c#d%2e", "x.json", ".", "\u202eleft", "\x1b[31mred", "n" * 3000)


@pytest.fixture
def folder(runs: Path, tmp_path: Path) -> Path:
    """A folder with hostile run files."""
    for index, name in enumerate(NAMES):
        write_hostile(runs, tmp_path / f"hostile{index}.sqlite", name)
    whole = (runs / "maze.sqlite").read_bytes()
    (tmp_path / "cut.sqlite").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "zeroes.sqlite").write_bytes(whole[:4096] + bytes(len(whole) - 4096))
    (tmp_path / f"{'<b>' * 5}.sqlite").write_bytes(whole)
    (tmp_path / "empty.sqlite").touch()
    return tmp_path


def write_hostile(runs: Path, path: Path, name: str) -> None:
    """Write a copy of a run whose agent, notes, tags, novelties and settings have a hostile name."""
    shutil.copy(runs / "maze.sqlite", path)
    with sqlite3.connect(path) as db:
        db.execute("UPDATE agents SET name = ? WHERE name = 'compass'", (name,))
        for cell, trial, repeat in db.execute("SELECT id, trial, repeat FROM cells WHERE agent = 'compass'").fetchall():
            new = cell_id(name, trial, repeat)
            db.execute("UPDATE cells SET id = ?, agent = ? WHERE id = ?", (new, name, cell))
            for table in ("attempts", "episodes", "chunks", "states", "players", "verdicts"):
                db.execute(f"UPDATE {table} SET cell = ? WHERE cell = ?", (new, cell))
        db.execute("UPDATE attempts SET outcome = 'agent_error', note = ? WHERE rowid % 3 = 0", (name,))
        for key, content in db.execute("SELECT id, content FROM trials").fetchall():
            trial = json.loads(content)
            trial["settings"] = {name: name}
            trial["phases"][-1]["novelty"] = [name]
            db.execute("UPDATE trials SET content = ? WHERE id = ?", (json.dumps(trial), key))
        told = json.dumps({"started": name, "command": name, "note": name, "tags": [name], "versions": {name: name}})
        db.execute("INSERT INTO facts VALUES (?, ?)", ("command 2030", told))
        db.execute("INSERT INTO facts VALUES (?, ?)", (f"caution {name}", name))
    db.close()


def test_numbers_out_of_all_bounds_are_drawn_or_refused(runs: Path, tmp_path: Path) -> None:
    for name, column in {
        "performance": "9e999",
        "low": "-1e300",
        "belief": "x'81a56e6f76656ccb7ff8000000000000'",
    }.items():
        path = Path(shutil.copy(runs / "maze.sqlite", tmp_path / f"{name}.sqlite"))
        with sqlite3.connect(path) as db:
            db.execute(
                f"UPDATE episodes SET {'belief' if name == 'belief' else 'performance'} = {column}, turns = 1 << 62"
            )
        db.close()
    with open_viewer(tmp_path) as server, httpx.Client(base_url=server.origin, timeout=60) as client:
        client.get(server.address())
        for name in ("performance", "low", "belief"):
            address = run_address(name_run(tmp_path / f"{name}.sqlite"))
            found = [client.get(f"{address}{twin}").status_code for twin in (".json", "")]
            assert set(found) <= {200, 400, 422}, name


@pytest.fixture
def hostile(folder: Path) -> Iterator[ViewServer]:
    with open_viewer(folder) as server:
        yield server


def test_names_and_texts_are_shown_as_they_are(visit: Visits, hostile: ViewServer, folder: Path) -> None:
    visitor = visit(hostile)
    key = name_run(folder / "hostile0.sqlite")
    for path in (
        "/",
        run_address(key),
        agent_address(key, ATTACK),
        compare_address([key]),
        f"/?search={quote(ATTACK)}",
    ):
        page = visitor.go(path)
        page.locator(".pending").first.wait_for(state="detached")
        assert page.evaluate("window.hit") is None, path
        assert page.locator("main script, main img").count() == 0, path
        assert "{{ 7 * 7 }}" in page.content(), path
    assert visitor.go(agent_address(key, ATTACK)).get_by_role("heading", level=1).inner_text() == ATTACK
    visitor.page.close()


def test_every_page_of_every_hostile_file_answers(hostile: ViewServer, folder: Path) -> None:
    with httpx.Client(base_url=hostile.origin, timeout=60) as client:
        client.get(hostile.address())
        listed = client.get("/runs.json").json()["runs"]
        assert len(listed) == len(NAMES) + 3  # all but the empty one, which is no run
        problems = {
            row["run"]["summary"]["run"].rpartition("/")[2] for row in listed if row["run"]["summary"]["problem"]
        }
        assert problems == {"cut.sqlite", "zeroes.sqlite"}
        for index, name in enumerate(NAMES):
            key = name_run(folder / f"hostile{index}.sqlite")
            found = client.get(f"{run_address(key)}.json")
            assert found.status_code == 200, found.text
            assert client.get(run_address(key)).status_code == 200
            assert client.get(agent_address(key, name)).status_code == 200, name
            assert client.get(f"{agent_address(key, name)}.json").json()["agent"] == name
        for name in ("cut", "zeroes"):
            answer = client.get(f"{run_address(name_run(folder / f'{name}.sqlite'))}.json")
            assert answer.status_code == 422
            assert "damaged" in answer.json()["error"]


@pytest.mark.parametrize(
    "path",
    [
        "/static/../access.py",
        "/static/%2e%2e/access.py",
        "/runs/..%2f..%2fetc%2fpasswd",
        f"/runs/{'a' * 20_000}",
        "/runs/x/agents/~ff",
        "/compare?run=nothing",
        f"/compare?{'run=a&' * 100}",
        "/runs/%00",
        "/%ff",
    ],
)
def test_addresses_lead_nowhere_else(viewer: ViewServer, path: str) -> None:
    with httpx.Client(base_url=viewer.origin) as client:
        client.get(viewer.address())
        assert client.get(path).status_code in (400, 404)
