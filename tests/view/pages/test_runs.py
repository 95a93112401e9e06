"""The list of runs: scores come in, columns are chosen, tags and notes are changed."""

from __future__ import annotations

import shutil
from pathlib import Path

import httpx
import pytest

from openfield.journal.reader import Run
from openfield.provenance.remarks import EditedRemarks, read_remarks
from openfield.report.addresses import name_run, run_address
from openfield.result import Result
from openfield.view.analysis import score_run
from support.browsers import open_viewer
from view.conftest import Visits


@pytest.fixture
def maze(runs: Path, tmp_path: Path) -> Path:
    """A run that a test may write beside."""
    return Path(shutil.copy(runs / "maze.sqlite", tmp_path))


def test_scores_are_those_of_the_tables(maze: Path) -> None:
    result = Result([maze])
    found = score_run("", result)
    after = {group.agent: group.estimates["after"].mean for group in result.summary().groups}
    best = sorted(after, key=lambda agent: -(after[agent] or 0))
    assert found.title == "Performance after the onset"
    assert [each.agent for each in found.scores["score"]] == best == ["compass", "random"]
    assert {each.agent: each.value for each in found.scores["after"]} == after


def test_scores_are_given_with_the_list_once_they_are_there(maze: Path) -> None:
    with open_viewer(maze) as server, httpx.Client(base_url=server.origin, follow_redirects=True) as client:
        client.get(server.address())
        key = name_run(maze)
        found = client.get("/runs.json?column=after&column=domain").json()
        assert found["columns"] == ["domain", "after"]
        scores = server.app.state.scores.get(key, None)
        row = client.get("/runs.json").json()["runs"][0]
        assert row["scores"]["scores"]["score"][0] == {"agent": "compass", "value": scores.scores["score"][0].value}
        page = client.get("/").text
        assert "pending" not in page
        assert 'class="score"' in page


@pytest.mark.browser
def test_columns_tags_and_notes_are_chosen_in_the_page(visit: Visits, maze: Path) -> None:
    before = maze.read_bytes()
    with open_viewer(maze) as server:
        shown = visit(server)
        page = shown.go("/")
        page.locator("td.score a", has_text="compass").wait_for()
        page.get_by_text("Columns", exact=True).first.click()
        page.get_by_role("checkbox", name="Concordance").check()
        page.get_by_role("columnheader", name="Concordance").wait_for()
        assert "column=concordance" in page.url
        page = shown.go("/")  # what was chosen last stays
        page.get_by_role("columnheader", name="Concordance").wait_for()
        page.get_by_role("link", name="Change the tags and the note of maze").click()
        page.get_by_label("Tags", exact=True).fill("pilot, paper")
        page.get_by_label("Note", exact=True).fill("<b>kept</b>")
        page.get_by_role("button", name="Keep").click()
        page.locator("h1 ~ .tag", has_text="paper").wait_for()
        page.locator("p.note", has_text="<b>kept</b>").wait_for()
        page.get_by_label("Tags", exact=True).fill("what/ever")
        page.get_by_role("button", name="Keep").click()
        page.get_by_text("A tag is a word of letters").wait_for()
        page = shown.go(run_address(name_run(maze)))
        shown.errors.clear()  # the browser complains of the refusal
        page = shown.go("/?search=paper")
        page.get_by_text("1 run", exact=True).wait_for()
    assert read_remarks(maze) == EditedRemarks(("pilot", "paper"), "<b>kept</b>")
    assert maze.read_bytes() == before
    with Run(maze) as run:
        assert run.verify() == []
