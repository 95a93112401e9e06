from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec
import pytest

import openfield as of
from openfield.errors import InvalidInput
from openfield.metrics.selection import pick_numbers
from openfield.report.addresses import name_scenario
from openfield.result import Result
from openfield.view.publish import write_site
from support.places import MAZE, SUPPORT

if TYPE_CHECKING:
    from playwright.sync_api import Browser


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
    write_site(played, tmp_path)
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
    write_site([path], site)
    page = site / "runs" / "film & maze.html"
    links = re.findall(r'href="([^"#]+)"', page.read_text().split("This site")[1].split("</nav>")[0])
    assert [link.rpartition(".")[2] for link in links] == ["html", "json", "webp"]
    for link in links:
        assert (page.parent / unquote(link)).is_file(), link


def test_the_leaderboard_has_the_numbers_of_all_runs_read_as_one(played: list[Path], tmp_path: Path) -> None:
    write_site(played, tmp_path)
    data = msgspec.json.decode((tmp_path / "leaderboard.json").read_bytes())
    (board,) = data["boards"]
    groups = {group.agent: group for group in Result(played).summary().groups}
    assert [row["agent"] for row in board["rows"]] == ["compass", "random"]
    for row in board["rows"]:
        assert row["trials"] == groups[row["agent"]].trials
        assert row["numbers"]["after"]["mean"] == pytest.approx(groups[row["agent"]].estimates["after"].mean)
        assert row["runs"] == ["one", "b <i>"]
        assert row["versions"] == ""
    summary = Result(played).summary()
    assert {*board["shown"]} == {number.name for number in pick_numbers(summary, summary.groups)}
    assert board["note"] == "the onset is fixed or published, so agents can detect the change by counting"
    assert f"; {board['note']}.</p>" in (tmp_path / "index.html").read_text()


def test_the_order_follows_the_first_number_and_equal_ones_share_a_rank(tmp_path: Path) -> None:
    trials = of.trials(MAZE, count=6, training=0, before=1, after=2, unchanged=0)
    agents = {"zed": "compass", "ada": "compass", "mid": "random"}
    of.run(agents=agents, trials=trials, journal=tmp_path / "run.sqlite")
    write_site([tmp_path / "run.sqlite"], tmp_path / "site")
    (board,) = msgspec.json.decode((tmp_path / "site" / "leaderboard.json").read_bytes())["boards"]
    first = board["shown"][0]
    values = [round(row["numbers"][first]["mean"], 2) for row in board["rows"]]
    assert values == sorted(values, reverse=True)
    assert [row["rank"] for row in board["rows"]] == [values.index(value) + 1 for value in values]
    index = (tmp_path / "site" / "index.html").read_text()
    assert "Order: Performance after the onset; agents with the same number share a rank." in index
    assert 'id="all"' not in index  # one scenario


@pytest.mark.browser
@pytest.mark.parametrize("width", [400, 1400])
def test_a_campaign_has_one_table_that_is_not_cut_off(browser: Browser, tmp_path: Path, width: int) -> None:
    (tmp_path / "cellar.py").write_text(Path(MAZE).read_text().replace('= "maze",', '= "cellar",'))
    keys: dict[str, Any] = {"training": 0, "before": 1, "after": 1, "unchanged": 0}
    trials = [
        trial
        for domain in (MAZE, str(tmp_path / "cellar.py"))
        for novelty in ("swapped", "slip", "slip:hard")
        for trial in of.trials(domain, count=1, novelty=novelty, **keys)
    ]
    agents = {f"agent-{number}-with-a-long-name": "random" for number in range(8)}
    of.run(agents=agents, trials=trials, journal=tmp_path / "run.sqlite")
    write_site([tmp_path / "run.sqlite"], tmp_path / "site", films=False)
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto((tmp_path / "site" / "index.html").as_uri())
    assert page.locator("#all tbody tr").count() == 8
    assert page.locator("#all thead").is_visible() is (width > 1000)  # a narrow page names every number itself
    clipped = "tables => tables.filter(each => each.scrollWidth > each.clientWidth + 1).map(each => each.innerText)"
    assert page.locator(".wide:has(.board)").evaluate_all(clipped) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


def test_the_same_runs_give_the_same_bytes(played: list[Path], tmp_path: Path) -> None:
    write_site(played, tmp_path / "a")
    write_site(played, tmp_path / "b")
    first, second = (
        {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*.*")}
        for root in (tmp_path / "a", tmp_path / "b")
    )
    assert first == second
    assert len(first) == 6


def test_runs_that_a_site_no_longer_has_are_removed_and_nothing_else(played: list[Path], tmp_path: Path) -> None:
    write_site(played, tmp_path)
    data = msgspec.json.decode((tmp_path / "leaderboard.json").read_bytes())
    data["runs"][0]["films"] = {"maze": "../mine.txt"}  # anyone may have written there
    (tmp_path / "leaderboard.json").write_bytes(msgspec.json.encode(data))
    mine = [tmp_path / "mine.txt", tmp_path / "runs" / "mine.txt", tmp_path.parent / "mine.txt"]
    for path in mine:
        path.touch()
    write_site(played[1:], tmp_path)
    found = {path.name for path in (tmp_path / "runs").iterdir()}
    assert found == {"b <i>.html", "b <i>.json", "mine.txt"}
    assert all(path.exists() for path in mine)


def test_nothing_to_publish_is_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="There is no run file to publish"):
        write_site([], tmp_path)
