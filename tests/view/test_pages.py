"""Every page in the browser: light and dark, wide and narrow, by keys alone, and with links that lead somewhere."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import httpx
import msgspec
import pytest
from axe_core_python.sync_playwright import Axe

import openfield as of
from openfield import registry
from openfield.journal.reader import Run
from openfield.journal.writer import Journal
from openfield.provenance.people import person_fact
from openfield.provenance.rules import describe_domain, read_rules
from openfield.report.addresses import (
    agent_address,
    compare_address,
    figures_address,
    name_run,
    novelty_address,
    objectives_address,
    run_address,
    trial_address,
    trials_address,
)
from openfield.report.words import explain_reading
from openfield.view import ViewServer
from openfield.view.publish import write_site
from support.browsers import NARROW, WIDE, open_viewer
from support.places import MAZE
from view.conftest import Visits

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

MAX_OF_A_KIND = 4
"""How many links that differ only in numbers are followed."""


def list_pages(runs: Path) -> list[str]:
    """Return an address of every kind of page."""
    key, other = name_run(runs / "maze.sqlite"), name_run(runs / "again.sqlite")
    return [
        "/",
        run_address(key),
        f"{agent_address(key, 'compass')}?number=after",
        novelty_address(key, "maze", ["swapped"]),
        f"{trials_address(key, agent='compass', sort='-after')}&noticed=noticed",
        compare_address([key, other]),
        objectives_address(key),
        figures_address(key),
    ]


def find_complaints(page: Page) -> list[str]:
    """Return the serious findings of an accessibility audit."""
    found = Axe().run(page)["violations"]
    return [
        f"{each['id']}: {node['html']}"
        for each in found
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_show_themselves_without_errors(visit: Visits, runs: Path, scheme: str, size: dict[str, int]) -> None:
    visitor = visit(color_scheme=scheme, viewport=size)
    for path in list_pages(runs):
        page = visitor.go(path)
        page.locator(".pending").first.wait_for(state="detached")
        assert page.get_by_role("heading", level=1).count() == 1, path
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
        if (size is NARROW) == (scheme == "dark"):
            assert find_complaints(page) == [], path


@pytest.mark.parametrize(("scheme", "size"), [("light", WIDE), ("dark", NARROW)])
def test_pages_that_stand_alone_show_themselves_without_errors(
    browser: Browser, runs: Path, tmp_path: Path, scheme: Literal["light", "dark"], size: dict[str, int]
) -> None:
    result = of.Result([runs / "maze.sqlite"])
    result.page(tmp_path / "report.html", objectives=result.objectives())
    write_site([runs / "maze.sqlite", runs / "again.sqlite"], tmp_path / "site")
    said: list[str] = []
    for place in ("report.html", "site/index.html", "site/runs/again.html"):
        for audited in (False, True):  # the audit is a script, which the policy of these pages forbids
            context = browser.new_context(color_scheme=scheme, viewport=size, offline=True, bypass_csp=audited)
            page = context.new_page()
            page.on("console", lambda message: said.append(message.text))
            page.goto((tmp_path / place).as_uri())
            assert page.get_by_role("heading", level=1).count() == 1, place
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), place
            page.locator("details:not([open]) > summary").evaluate_all("all => all.forEach(each => each.click())")
            assert not audited or find_complaints(page) == [], place
            context.close()
    assert said == []


def test_single_persons_are_a_click_away(tmp_path: Path) -> None:
    path = tmp_path / "people.sqlite"
    trials = of.trials(MAZE, count=2, training=0, before=1, after=1, unchanged=0, patience=5)
    of.run(agents={"human": "random"}, trials=trials, journal=path, repeats=2, workers=0)
    said = msgspec.json.encode({"at": 1.0, "value": {"games": "<b>often</b>"}}).decode()
    names = {person_fact("human", number): f"p0{number + 1}" for number in range(2)}
    with Journal(path) as journal:
        journal.enter([], {}, {**names, f"{person_fact('human', 1)} answers": said})
    address = agent_address(name_run(path), "human")
    with open_viewer(path) as server, httpx.Client(base_url=server.origin, follow_redirects=True) as client:
        everyone = client.get(server.address(address))
        assert "2 people" in everyone.text
        assert f'{address}?person=p02">p02</a>' in everyone.text
        one = client.get(f"{address}?person=p02")
        assert "&lt;b&gt;often&lt;/b&gt;" in one.text
        told = client.get(f"{address}.json?person=p02").json()
        assert {trial["person"] for each in told["scenarios"] for trial in each["trials"]} == {"p02"}
        cell = told["scenarios"][0]["trials"][0]["cell"]
        assert f'{address}?person=p02">p02</a>' in client.get(trial_address(name_run(path), cell)).text
        assert client.get(f"{address}?person=p03").status_code == 404


@pytest.mark.slow
def test_all_links_lead_somewhere(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it is not known whether the domain draws, because another one of its name is in use."""
    monkeypatch.setitem(registry._domains, "maze", (of.registry.find_domain(MAZE), "elsewhere/maze.py:domain"))
    with open_viewer(runs) as viewer, httpx.Client(base_url=viewer.origin) as client:
        client.get(viewer.address())
        waiting, seen, kinds = ["/"], {"/"}, Counter[str]()
        while waiting:
            answer = client.get(path := waiting.pop())
            assert answer.status_code == 200, path
            if "text/html" in answer.headers["content-type"]:
                links = {link.replace("&amp;", "&") for link in re.findall(r'(?:href|src)="(/[^"#]*)', answer.text)}
                for link in sorted(links - seen):
                    seen.add(link)
                    kinds[re.sub(r"[^/=?&]*\d[^/=?&]*", "*", link)] += 1
                    if kinds[re.sub(r"[^/=?&]*\d[^/=?&]*", "*", link)] <= MAX_OF_A_KIND:
                        waiting.append(link)
    assert {"/runs.json", "/compare?run=*", "/runs/*", "/runs/*/agents/compass", "/runs/*/trials/*"} <= set(kinds)


def test_numbers_lead_to_what_they_were_made_of(viewer: ViewServer, runs: Path) -> None:
    with httpx.Client(base_url=viewer.origin, follow_redirects=True) as client:
        client.get(viewer.address())
        place = run_address(name_run(runs / "maze.sqlite"))
        (scenario,) = client.get(f"{place}.json").json()["analysis"]["scenarios"]
        for agent, numbers in scenario["sources"].items():
            assert (
                numbers.keys()
                >= next(each for each in scenario["groups"] if each["agent"] == agent)["estimates"].keys()
            )
        text = client.get(place).text
        assert text.count('<span class="figure"><a href=') == text.count('<span class="figure">') > 0
        anchored = sorted(set(re.findall(r'href="(/runs/[^"]*)#([^"]*)"', text)))
        assert anchored
        for path, name in anchored:
            assert f'id="{name}"' in client.get(path.replace("&amp;", "&")).text


def test_every_page_has_its_data_as_json(viewer: ViewServer, runs: Path) -> None:
    with httpx.Client(base_url=viewer.origin) as client:
        client.get(viewer.address())
        for path in list_pages(runs):
            twin = re.search(r'<a href="([^"]*json[^"]*)"', client.get(path).text)
            assert twin, path
            answer = client.get(twin[1].replace("&amp;", "&"))
            assert answer.headers["content-type"] == "application/json"
            assert answer.json(), path
        shown = client.get(list_pages(runs)[1]).text
        assert all(text in shown for text in (">Concordance", "p=0.", ">n="))
        missing = client.get("/runs/nothing.json")
        assert (missing.status_code, missing.json()["status"]) == (404, 404)
        assert client.get("/nowhere").status_code == 404


@pytest.mark.smoke
def test_everything_can_be_reached_by_keys(visit: Visits) -> None:
    page = visit().go("/")
    page.keyboard.press("/")
    page.keyboard.type("again")
    page.get_by_text("1 of 2 runs").wait_for()
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    page.get_by_text("2 runs", exact=True).wait_for()
    page.keyboard.press("Tab")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("?")
    page.get_by_role("dialog", name="Keys").wait_for()
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for(state="hidden")
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.keyboard.press("j")
    page.keyboard.press("x")
    assert page.locator("#picked input:checked").count() == 2
    page.keyboard.press("c")
    page.wait_for_url("**/compare?*")
    assert page.get_by_role("heading", name="Paired differences").count() == 1


def test_curves_tell_their_values(visit: Visits, runs: Path) -> None:
    page = visit().go(run_address(name_run(runs / "maze.sqlite")))
    page.locator(".curves").first.focus()
    page.keyboard.press("ArrowRight")
    assert "at the onset" in page.locator(".tip").inner_text()
    page.keyboard.press("ArrowRight")
    tip = page.locator(".tip").inner_text()
    assert "1 episode after the onset" in tip
    assert "compass" in tip
    assert page.locator(".side").first.is_hidden()
    page.keyboard.press("o")
    page.locator(".side figure").first.wait_for()
    page.locator(".side .curves").first.hover()
    assert "onset" in page.locator(".tip").inner_text()
    page.locator(".side .curves").first.focus()
    page.keyboard.press("ArrowDown")
    wanted = page.locator(".single.at").get_attribute("href")
    page.keyboard.press("Enter")  # a single trial behind the means leads to the trial
    page.wait_for_url(f"**{wanted}")


def test_a_curve_that_ends_early_has_no_values_after_its_end(visit: Visits, runs: Path) -> None:
    page = visit().go(run_address(name_run(runs / "maze.sqlite")))
    curves = page.locator(".curves").first
    curves.evaluate(
        """svg => {
          const data = JSON.parse(svg.dataset.curves);
          data.agents[0].points = data.agents[0].points.filter(([at]) => at <= 0);
          svg.dataset.curves = JSON.stringify(data);
        }"""
    )
    cells = page.locator(".tip tr:first-child td")
    curves.focus()
    page.keyboard.press("ArrowRight")
    assert "–" not in cells.all_inner_texts()
    page.keyboard.press("ArrowRight")
    assert "1 episode after the onset" in page.locator(".tip").inner_text()
    assert cells.all_inner_texts()[1:] == ["–", "–"]
    assert "–" not in page.locator(".tip tr:last-child td").all_inner_texts()


def test_the_theme_is_kept(visit: Visits) -> None:
    page = visit(color_scheme="light").go("/")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.keyboard.press("t")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.reload()
    assert light != dark == page.evaluate("getComputedStyle(document.body).backgroundColor")


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_the_first_numbers_of_a_run_need_no_scrolling(visit: Visits, runs: Path, size: dict[str, int]) -> None:
    page = visit(viewport=size).go(run_address(name_run(runs / "maze.sqlite")))
    page.locator(".leaders .figure").first.wait_for()
    fits = "each => each.parentElement.scrollWidth <= each.parentElement.clientWidth"
    assert all(each.evaluate(fits) for each in page.locator(".leaders").all())


@pytest.mark.parametrize("width", [1400, 1280, 1100, 1024])
def test_tables_of_a_run_and_of_an_agent_are_not_clipped(visit: Visits, runs: Path, width: int) -> None:
    visitor, key = visit(viewport={"width": width, "height": 900}), name_run(runs / "maze.sqlite")
    for path in (run_address(key), agent_address(key, "compass"), trials_address(key)):
        page = visitor.go(path)
        page.locator(".pending").first.wait_for(state="detached")
        clipped = "all => all.filter(each => each.scrollWidth > each.clientWidth).map(each => each.innerText)"
        assert page.locator(".wide").evaluate_all(clipped) == [], path


def test_trials_of_several_novelties_are_told_apart(tmp_path: Path) -> None:
    path, terms = tmp_path / "run.sqlite", {"count": 2, "training": 1, "before": 2, "after": 2}
    swapped = of.trials(MAZE, novelty="swapped", unchanged=1, **terms)
    of.run(["random"], [*swapped, *of.trials(MAZE, novelty="slip:hard", unchanged=0, **terms)], path)
    of.run(["random"], swapped, tmp_path / "one.sqlite")
    with open_viewer(tmp_path) as server, httpx.Client(base_url=server.origin) as client:
        client.get(server.address())
        text = client.get(trials_address(name_run(path))).text
        alone = client.get(trials_address(name_run(tmp_path / "one.sqlite"))).text
    assert '<th scope="col">Novelty</th>' in text
    assert text.count('<td class="text">slip:hard</td>') == 2
    assert '<th scope="col">Novelty</th>' not in alone
    for row in re.findall(r'<tr id="trial-.*?</tr>', text, re.DOTALL):  # only what changes has an onset
        assert ('class="o"' in row) == ("unchanged</span>" not in row)


def test_runs_without_novelty_and_controls_are_listed(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    of.run(["random", "counter"], of.trials(MAZE, 1, novelty="none", training=1, before=1, after=1), path)
    with open_viewer(path) as server, httpx.Client(base_url=server.origin) as client:
        client.get(server.address())
        (found,) = client.get("/runs.json").json()["runs"]
        assert found["run"]["summary"]["novelties"] == ["none"]
        assert novelty_address(name_run(path), "maze", ["none"]) not in client.get("/").text
        assert found["run"]["summary"]["controls"] == ["counter"]
        assert client.get("/runs.json", params={"search": "counter"}).json()["found"] == 1
        assert client.get("/runs.json", params={"search": "nothing-like-it"}).json()["found"] == 0


@pytest.mark.parametrize(("domain", "letters"), [("commai", True), ("gym:FrozenLake-v1", False)])
def test_only_letters_are_shown_as_text(visit: Visits, tmp_path: Path, domain: str, letters: bool) -> None:
    path = tmp_path / "run.sqlite"
    of.run(["random"], of.trials(domain, 1, unchanged=0), path, workers=0)
    with Run(path) as run:
        (cell,) = run.cells()
    with open_viewer(path) as server:
        page = visit(server).go(f"{trial_address(name_run(path), cell.id)}/turns/3")
        page.get_by_role("heading", name="Answered").wait_for()
        assert page.get_by_text("So far, symbol by symbol").is_visible() == letters
        turn = page.request.get(f"{page.url}.json").json()["sides"][0]["turn"]
        seen, said = turn["observation"], turn["reply"]["action"]
        shown = page.locator(".panel.saw:last-child .leaf"), page.locator(".panel.answered .leaf")
        for panel, code in zip(shown, (seen, said), strict=True):
            assert panel.inner_text() == (_say_letter(code) if letters else str(code))
            assert panel.locator("xpath=ancestor::section").get_by_text(f"code {code}").count() == (
                letters and 32 <= code < 127
            )


def _say_letter(code: int) -> str:
    return "␣" if code == 32 else chr(code) if 32 < code < 127 else str(code)


def test_a_domain_says_itself_that_it_exchanges_letters(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    of.run(["echo"], of.trials("commai", 1, max_steps=50, unchanged=0), path, workers=0)
    with Run(path) as run:
        assert read_rules(run.facts, "commai").letters  # also where the domain is not installed
        (cell,) = run.cells()
        steps = list(run.steps(cell.id, 1))
    assert not describe_domain(of.registry.find_domain(MAZE)).letters
    number, letter = next(
        (at - 1, chr(step.reply.action))
        for at, step in enumerate(steps)
        if step.reply is not None and 64 < step.reply.action < 127
    )
    with open_viewer(path) as server, httpx.Client(base_url=server.origin) as client:
        client.get(server.address())
        place = trial_address(name_run(path), cell.id)
        text = client.get(f"{place}/turns?from={number}").text
        assert f"<pre>{letter} ({ord(letter)})</pre>" in text
        found = client.get(f"{place}/search.json", params={"action": letter}).json()["found"]
    assert number in [each["number"] for each in found]


def test_the_onset_has_one_number_everywhere(viewer: ViewServer, runs: Path) -> None:
    key = name_run(runs / "maze.sqlite")
    with httpx.Client(base_url=viewer.origin, follow_redirects=True) as client:
        client.get(viewer.address())
        trials = client.get(f"{trials_address(key)}.json").json()["trials"]
        listed = client.get(trials_address(key)).text
        (scenario,) = client.get(f"{novelty_address(key, 'maze', ['swapped'])}.json").json()["scenarios"]
        onsets = {row["trial"]: row["onset"] for row in scenario["trials"]}
        for trial in trials:
            head = client.get(f"{trial['address']}.json").json()["sides"][0]["head"]
            assert head["onset"] == trial["onset"] == onsets[trial["trial"]] == 4  # one of training, three before
            place = f"{trial['address']}/episodes/{trial['onset']}"
            assert f'href="{place}">{trial["onset"]}</a>' in listed
            turn = client.get(f"{place}.json").json()["sides"][0]["turn"]
            assert (turn["episode"], turn["truth"]["novel"]) == (4, True)


def test_what_is_said_of_numbers_over_people_names_people(tmp_path: Path) -> None:
    trials = of.trials(MAZE, count=2, training=0, before=1, after=1, unchanged=0, patience=5)
    told = {}
    for name, agents in {"people": ["human"], "both": ["human", "random"]}.items():
        path = tmp_path / f"{name}.sqlite"
        of.run(agents=dict.fromkeys(agents, "random"), trials=trials, journal=path, repeats=2, workers=0)
        with Journal(path) as journal:
            journal.enter([], {}, {person_fact("human", number): f"p0{number}" for number in range(2)})
        with open_viewer(path) as server, httpx.Client(base_url=server.origin) as client:
            client.get(server.address())
            told[name] = client.get(f"{run_address(name_run(path))}.json").json()["analysis"]["reading"]
    assert told["people"].startswith("Numbers are over people, with")
    assert "below 5 people there is no interval. Repeats of a trial, and all trials of a person, are" in told["people"]
    assert told["both"].startswith("Numbers are over trials, those of people over people, with")
    assert "below 5 of either there is" in told["both"]
    assert told == {name: explain_reading(of.Result([tmp_path / f"{name}.sqlite"]).summary()) for name in told}


def test_the_list_of_runs_has_its_data_at_two_addresses(viewer: ViewServer) -> None:
    with httpx.Client(base_url=viewer.origin, follow_redirects=True) as client:
        client.get(viewer.address())
        assert 'href="/runs.json?search=again"' in client.get("/?search=again").text
        for path in ("/runs.json?search=again", "/.json?search=again"):
            answer = client.get(path)
            assert (answer.status_code, answer.json()["found"]) == (200, 1)


def test_a_comparison_without_runs_offers_all(visit: Visits) -> None:
    page = visit().go("/compare")
    page.get_by_label("again").check()
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url("**/compare?run=again-*")


def test_agents_of_files_have_short_names(tmp_path: Path) -> None:
    path, agent = tmp_path / "run.sqlite", "labs/nets/net.py:Net(rate=0.5)"
    of.run({agent: "random", "random": "random"}, of.trials(MAZE, 5, before=2, after=2, unchanged=0), path)
    with open_viewer(path) as server, httpx.Client(base_url=server.origin) as client:
        client.get(server.address())
        found = client.get(f"{run_address(name_run(path))}.json").json()["analysis"]["scenarios"][0]
    assert found["names"] == {agent: "Net", "random": "random"}
    assert {curve["agent"]: curve["name"] for curve in found["curves"]} == found["names"]
    assert agent not in " ".join(found["findings"])
    assert found["findings"][0].startswith("No agent is clearly best after the change: Net scores ")
