"""Every number of the viewer leads to what it was made of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest

import openfield as of
from openfield.journal.reader import Run
from openfield.report.addresses import (
    agent_address,
    compare_address,
    episode_address,
    figures_address,
    name_run,
    novelty_address,
    objectives_address,
    run_address,
    trial_address,
    trials_address,
    turn_address,
)
from support.browsers import open_viewer
from support.places import MAZE

NUMBER = re.compile(r"(?<![\w.])\d")
NOT_MADE = re.compile(r"\d+ \w+ \d{4}, \d\d:\d\d|95 %")
"""A moment, and the level of all intervals: numbers that were not made of trials."""
SHOWS_NUMBERS = ("td", "dd", "figcaption", "p.finding", "circle")
"""What holds the numbers of a page. Texts that explain, axes of plots and the names of things hold none."""
EXPLAINS = ("dl.pairs", "table.differing", "text.t", "code", "head", "script")
EMPTY = ("meta", "link", "input", "img", "br")


class NumberFinder(HTMLParser):
    """Finds the numbers of a page: those in links with their addresses, and those that lead nowhere."""

    def __init__(self, text: str) -> None:
        """Read a page."""
        super().__init__()
        self.bare: list[str] = []
        self.linked: set[str] = set()
        self._open: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take the beginning of an element."""
        given = dict(attrs)
        if tag not in EMPTY:
            name = f"{tag}.{(given.get('class') or '').partition(' ')[0]}".rstrip(".")
            self._open.append((name, given.get("href") or ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Pass by an element without content."""

    def handle_endtag(self, tag: str) -> None:
        """Take the end of an element."""
        at = max((at for at, (name, _) in enumerate(self._open) if name.partition(".")[0] == tag), default=None)
        del self._open[at:]

    def handle_data(self, data: str) -> None:
        """Take a text."""
        names = [part for name, _ in self._open for part in (name, name.partition(".")[0])]
        shows = any(name in SHOWS_NUMBERS for name in names) and not any(name in EXPLAINS for name in names)
        if not shows or not NUMBER.search(NOT_MADE.sub("", data)):
            return
        places = {place for _, place in self._open if place}
        self.linked |= places
        if not places:
            self.bare.append(data.strip())


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with runs of three kinds: with controls, of samples, and of a curriculum."""
    folder = tmp_path_factory.mktemp("many")
    maze = of.trials(MAZE, count=5, training=1, before=2, after=2, unchanged=0)
    of.run(agents=["compass", "random", "counter", "quitter"], trials=maze, journal=folder / "maze.sqlite")
    samples = of.trials("ond", 2, unchanged=0)
    of.run(agents=["knn", "openmax"], trials=samples, journal=folder / "ond.sqlite", repeats=2)
    tasks = of.trials("commai", 2, design="gradual", tasks="micro4,micro2", task_budget=200)
    of.run(agents=["mapper", "echo"], trials=tasks, journal=folder / "tasks.sqlite")
    return folder


@pytest.fixture(scope="module")
def asked(many: Path) -> Iterator[httpx.Client]:
    """A viewer of these runs, to ask for pages; those that are computed in the background are ready."""
    with open_viewer(many) as server, httpx.Client(base_url=server.origin, timeout=60) as client:
        client.get(server.address())
        for path in many.glob("*.sqlite"):
            for place in (run_address, figures_address, objectives_address):
                assert client.get(f"{place(name_run(path))}.json").status_code == 200
        yield client


def list_pages(many: Path) -> Iterator[str]:
    """Yield an address of every kind of page of each run."""
    yield "/"
    for path in sorted(many.glob("*.sqlite")):
        key = name_run(path)
        with Run(path) as run:
            cells = list(run.cells())
        first = cells[0]
        yield run_address(key)
        yield from (agent_address(key, agent) for agent in sorted({cell.agent for cell in cells}))
        yield novelty_address(key, first.trial.domain, first.trial.novelty)
        yield from (trials_address(key), objectives_address(key), compare_address([key]))
        if first.trial.domain != "maze":  # it has no further figures
            yield figures_address(key)
        yield from (trial_address(key, first.id), episode_address(key, first.id, 0), turn_address(key, first.id, 1))


def test_numbers_that_lead_nowhere_are_found() -> None:
    found = NumberFinder('<p>1 of 2</p><table><tr><td>0.5<td><a href="/a">0.7</a><td>17 Nov 2026, 18:22</table>')
    assert (found.bare, found.linked) == (["0.5"], {"/a"})


@pytest.mark.slow
def test_every_number_leads_to_what_it_was_made_of(asked: httpx.Client, many: Path) -> None:
    linked: set[str] = set()
    for page in list_pages(many):
        found = NumberFinder(asked.get(page).text)
        assert found.bare == [], page
        assert found.linked or "/episodes/" in page or "/turns/" in page, page  # scripts fill these
        linked |= {place.partition("#")[0] for place in found.linked}
    for place in sorted(linked - {""}):
        assert asked.get(place).status_code == 200, place


def test_numbers_of_samples_lead_to_their_agent_and_their_trial(asked: httpx.Client, many: Path) -> None:
    path = many / "ond.sqlite"
    key = name_run(path)
    text = asked.get(figures_address(key)).text
    (scenario,) = asked.get(f"{figures_address(key)}.json").json()["scenarios"]
    own = trials_address(key, agent="knn", scenario=scenario["id"])
    assert scenario["samples"]["agents"][0]["address"] == own
    shown = text.split("<h4>knn</h4>")[1].split("<h4>")[0].replace("&amp;", "&")
    assert set(re.findall(r'href="([^"]*)"', shown)) == {own}
    assert shown.count('class="plot"') == shown.count("<svg") > 3
    tests = text.split("<b>knn</b>, test by test")[1].split("</details>")[0]
    with Run(path) as run:
        cells = [cell for cell in run.cells() if cell.agent == "knn"]
    found = dict.fromkeys(re.findall(r'href="([^"]*)"', tests))
    assert sorted(found) == sorted(trial_address(key, cell.id) for cell in cells)
    for row in re.findall(r"<tr>(.*?)</tr>", tests.partition("<tbody>")[2]):  # all numbers of a test lead to it
        assert len(set(re.findall(r'href="([^"]*)"', row))) == 1
    programme = text.split("measures</h4>")[1].split("<details>")[0].replace("&amp;", "&")
    for agent in ("knn", "openmax"):  # also those of M3 to M6, which are relative to the other
        row = programme.split(f'<th scope="row">{agent}</th>')[1].split("</tr>")[0]
        assert set(re.findall(r'href="([^"]*)"', row)) == {trials_address(key, agent=agent, scenario=scenario["id"])}
    assert asked.get(f"{own.replace('/trials?', '/trials.json?')}").json()["found"] == len(cells)


def test_numbers_of_tasks_lead_to_the_trials_of_the_curriculum_or_of_single_tasks(
    asked: httpx.Client, many: Path
) -> None:
    path = many / "tasks.sqlite"
    key = name_run(path)
    (scenario,) = asked.get(f"{figures_address(key)}.json").json()["scenarios"]
    text = asked.get(figures_address(key)).text
    table = text.split("<h3>Tasks: mapper</h3>")[1].split("</table>")[0].replace("&amp;", "&")
    row = re.findall(r'<tr>(<th scope="row">micro2.*?)</tr>', table)[0]
    solved, steps, alone, transfer = (re.findall(r'href="([^"]*)"', each)[0] for each in row.split("</td>")[:4])
    own = trials_address(key, agent="mapper", scenario=scenario["id"])
    assert (solved, steps, transfer) == (own, own, trials_address(key, agent="mapper"))
    listed = asked.get(alone.replace("/trials?", "/trials.json?")).json()["trials"]
    with Run(path) as run:
        cells = {cell.id: cell for cell in run.cells()}
    assert len(listed) == 2
    for trial in listed:
        cell = cells[trial["cell"]]
        assert (cell.agent, cell.trial.settings["tasks"]) == ("mapper", ["micro2"])
        assert cell.trial.reference_for is not None


def test_the_line_of_each_trial_in_a_curriculum_leads_to_it(asked: httpx.Client, many: Path) -> None:
    path = many / "tasks.sqlite"
    key = name_run(path)
    text = asked.get(figures_address(key)).text
    pictures, curves = text.split("<h3>Learning curves</h3>")
    with Run(path) as run:
        cells = [cell for cell in run.cells() if cell.trial.reference_for is None]
    for agent in ("mapper", "echo"):
        picture = pictures.split(f"<figcaption>{agent} <small>")[1].split("</figure>")[0]
        lines = re.findall(r'<a href="([^"]*)" class="trial" tabindex="-1" aria-label="trial \w+"><path', picture)
        assert sorted(lines) == sorted(trial_address(key, cell.id) for cell in cells if cell.agent == agent)
        assert "2 trials</a>" in picture
    curves = curves.split("<h3>")[0]
    assert curves.count('class="plot"') == curves.count("<figure>") == 4


def test_objectives_lead_to_the_trials_of_their_agent(asked: httpx.Client, many: Path) -> None:
    key = name_run(many / "maze.sqlite")
    text = asked.get(objectives_address(key)).text.replace("&amp;", "&")
    (scenario,) = asked.get(f"{objectives_address(key)}.json").json()["scenarios"]
    assert [each["agent"] for each in scenario["agents"]][:2] == ["compass", "random"]  # as on the page of the run
    for each in scenario["agents"]:
        table = text.split(f"<b>{each['agent']}</b>, stage by stage")[1].split("</table>")[0]
        assert set(re.findall(r'href="([^"]*)"', table)) == {each["address"]}
        listed = asked.get(each["address"].replace("/trials?", "/trials.json?")).json()
        assert {trial["agent"] for trial in listed["trials"]} == {each["agent"]}
    drawn = re.findall(r'<svg class="curves".*?</svg>', text)
    assert drawn
    for plot in drawn:  # controls are in the tables only
        assert set(re.findall(r'href="([^"]*)"', plot)) == {each["address"] for each in scenario["agents"][:2]}
