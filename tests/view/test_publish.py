from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import msgspec
import pytest

import openfield as of
from openfield.errors import InvalidInput
from openfield.report.addresses import name_scenario
from openfield.result import Result
from openfield.view.publish import publish
from support.places import MAZE, SUPPORT


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two runs of the same agents with other seeds; a name is hostile."""
    folder = tmp_path_factory.mktemp("published")
    runs = [folder / "one.sqlite", folder / "b <i>.sqlite"]
    for seed, run in enumerate(runs):
        trials = of.trials(MAZE, count=2, seed=seed, training=1, before=2, after=2, unchanged=0)
        of.run(agents=["random", "compass"], trials=trials, journal=run)
    return runs


def test_every_link_leads_to_a_file_and_names_are_escaped(played: list[Path], tmp_path: Path) -> None:
    publish(played, tmp_path)
    index = (tmp_path / "index.html").read_text()
    links = re.findall(r'href="([^"]+)"', index)
    assert f"runs/one.html#{name_scenario(Result(played).summary().groups[0].scenario)}" in links
    for link in links:
        file, _, part = link.partition("#")
        text = (tmp_path / (unquote(file) or "index.html")).read_text()
        assert not part or re.search(rf'id="?{part}\b', text), link
    assert "<i>" not in index


def test_pages_of_runs_lead_back_to_the_site(tmp_path: Path) -> None:
    path, site = tmp_path / "film & maze.sqlite", tmp_path / "site"
    domain = f"{SUPPORT / 'filmed_maze.py'}:domain"
    of.run(["random"], of.trials(domain, count=1, training=0, before=1, after=1, unchanged=0, patience=5), path)
    publish([path], site)
    page = site / "runs" / "film & maze.html"
    links = re.findall(r'href="([^"#]+)"', page.read_text().split("This site")[1].split("</nav>")[0])
    assert [link.rpartition(".")[2] for link in links] == ["html", "json", "webp"]
    for link in links:
        assert (page.parent / unquote(link)).is_file(), link


def test_the_leaderboard_has_the_numbers_of_all_runs_read_as_one(played: list[Path], tmp_path: Path) -> None:
    publish(played, tmp_path)
    data = msgspec.json.decode((tmp_path / "leaderboard.json").read_bytes())
    (board,) = data["boards"]
    groups = {group.agent: group for group in Result(played).summary().groups}
    assert [row["agent"] for row in board["rows"]] == ["compass", "random"]
    for row in board["rows"]:
        assert row["trials"] == groups[row["agent"]].trials
        assert row["numbers"]["after"]["mean"] == pytest.approx(groups[row["agent"]].estimates["after"].mean)
        assert row["runs"] == ["one", "b <i>"]
        assert row["versions"] == ""
    assert board["note"] == "the onset is fixed or published, so agents can detect the change by counting"
    assert f"; {board['note']}.</p>" in (tmp_path / "index.html").read_text()


def test_the_same_runs_give_the_same_bytes(played: list[Path], tmp_path: Path) -> None:
    publish(played, tmp_path / "a")
    publish(played, tmp_path / "b")
    first, second = (
        {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*.*")}
        for root in (tmp_path / "a", tmp_path / "b")
    )
    assert first == second
    assert len(first) == 6


def test_runs_that_a_site_no_longer_has_are_removed_and_nothing_else(played: list[Path], tmp_path: Path) -> None:
    publish(played, tmp_path)
    data = msgspec.json.decode((tmp_path / "leaderboard.json").read_bytes())
    data["runs"][0]["films"] = {"maze": "../mine.txt"}  # anyone may have written there
    (tmp_path / "leaderboard.json").write_bytes(msgspec.json.encode(data))
    mine = [tmp_path / "mine.txt", tmp_path / "runs" / "mine.txt", tmp_path.parent / "mine.txt"]
    for path in mine:
        path.touch()
    publish(played[1:], tmp_path)
    found = {path.name for path in (tmp_path / "runs").iterdir()}
    assert found == {"b <i>.html", "b <i>.json", "mine.txt"}
    assert all(path.exists() for path in mine)


def test_nothing_to_publish_is_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="There is no run file to publish"):
        publish([], tmp_path)
