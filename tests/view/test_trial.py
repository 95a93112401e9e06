"""Trials and their turns in the browser: looked at, played, searched, guessed and compared, with keys alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from axe_core_python.sync_playwright import Axe

import openfield as of
from openfield.journal.reader import CellRecord, Run
from openfield.report.addresses import name_run
from openfield.view import ViewServer
from openfield.view.frames import EpisodeOrder
from openfield.view.pages.pictures import KeptFilms
from support.browsers import NARROW, WIDE, open_viewer
from support.places import SUPPORT
from view.conftest import Visits

pytestmark = pytest.mark.browser
FILMED = f"{SUPPORT / 'filmed_maze.py'}:domain"
SCRIPT = "</script><script>document.title='taken'</script>"
HOSTILE: dict[str, Any] = {
    "transcript": [{"role": "user", "content": SCRIPT}, {"role": "assistant", "content": "<b>x"}]
}


def hostile(turn: of.Turn) -> of.Reply:
    """Answer with markup, and with more than a page can show."""
    far = turn.observation["at"][0]
    note = (
        {**HOSTILE, "tokens_in": 1200, "tokens_out": 3} if far else {"deep": [[[[SCRIPT]]]], "long": ["x" * 50] * 9_000}
    )
    return of.Reply("left", of.Belief(0.25, detail={SCRIPT: SCRIPT}), note=note)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[CellRecord]]:
    """A trial of a maze that draws, played by an agent and by one whose replies are hostile."""
    path = tmp_path_factory.mktemp("runs") / "filmed.sqlite"
    trials = of.trials(FILMED, count=1, training=1, before=2, after=2, unchanged=0, patience=8)
    of.run({SCRIPT: hostile, "compass": "compass"}, trials, path, workers=0)
    with Run(path) as run:
        return path, run.cells()


@pytest.fixture(scope="module")
def server(recorded: tuple[Path, list[CellRecord]]) -> Iterator[ViewServer]:
    """A viewer of that run."""
    with open_viewer(recorded[0]) as server:
        yield server


def place(recorded: tuple[Path, list[CellRecord]], agent: str = "compass") -> str:
    """Return the address of an agent's trial."""
    cell = next(cell for cell in recorded[1] if cell.agent == agent)
    return f"/runs/{name_run(recorded[0])}/trials/{cell.id}"


@pytest.mark.parametrize(("scheme", "size"), [("light", WIDE), ("dark", NARROW)], ids=["light-wide", "dark-narrow"])
def test_pages_of_a_trial_fit_and_can_be_read_by_all(
    visit: Visits, server: ViewServer, recorded: tuple[Path, list[CellRecord]], scheme: str, size: dict[str, int]
) -> None:
    other = place(recorded, SCRIPT).rpartition("/")[2]
    shown = visit(server, color_scheme=scheme, viewport=size)
    for path in ("", f"?with={other}", "/turns/3", f"/turns/3?with={other}", "/search?text=left", "/turns?from=2"):
        page = shown.go(place(recorded) + path)
        if "/turns/" in path:
            page.locator(".screen:not(.empty)").first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
        if "?with" not in path:
            found = [each for each in Axe().run(page)["violations"] if each["impact"] in ("serious", "critical")]
            assert [(each["id"], each["nodes"][0]["html"]) for each in found] == []


def test_turns_are_walked_through_with_keys(
    visit: Visits, server: ViewServer, recorded: tuple[Path, list[CellRecord]]
) -> None:
    cell = next(cell for cell in recorded[1] if cell.agent == "compass")
    firsts = [sum(each.turns for each in cell.episodes[:number]) for number in range(5)]
    page = visit(server).go(place(recorded))
    page.keyboard.press("Enter")
    page.locator(".screen:not(.empty)").wait_for()
    assert page.get_by_role("heading", level=2).inner_text() == "compass"
    page.keyboard.press("PageDown")
    page.wait_for_url(f"**/turns/{firsts[1]}")
    page.keyboard.press("ArrowRight")
    page.wait_for_url(f"**/turns/{firsts[1] + 1}")
    with Run(recorded[0]) as run:
        step = list(run.steps(cell.id, 1))[firsts[1] + 2]
    assert step.reply is not None
    answered = page.locator(".panel", has_text="Answered")
    answered.get_by_text(str(step.reply.action), exact=True).wait_for()
    for _ in range(2):
        page.keyboard.press("ArrowLeft")
    page.wait_for_url(f"**/turns/{firsts[1] - 1}")  # the last turn of the episode before
    page.keyboard.press("End")
    page.keyboard.press(" ")
    page.wait_for_url(f"**/turns/{cell.steps - 2}")  # it plays on to the end of the trial
    page.get_by_role("button", name="▶ Play").wait_for()
    page.keyboard.press("?")
    page.get_by_role("dialog").get_by_text("guess that the world changes here").wait_for()
    page.keyboard.press("Escape")
    page.keyboard.press("u")
    page.wait_for_url(f"**{place(recorded)}")


def test_what_matters_of_two_agents_is_seen_at_once(
    visit: Visits, server: ViewServer, recorded: tuple[Path, list[CellRecord]]
) -> None:
    other = place(recorded, SCRIPT).rpartition("/")[2]
    page = visit(server, viewport={"width": 1400, "height": 900}).go(f"{place(recorded)}/turns/3?with={other}")
    page.locator(".screen:not(.empty)").nth(1).wait_for()
    controls = page.locator(".controls").bounding_box()
    assert controls is not None
    for each in page.locator(".player").first.locator(".panel:visible").all():  # also what it saw
        box = each.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= controls["y"]
    page.keyboard.press("g")
    page.keyboard.press("/")
    page.evaluate("scrollTo(0, 0)")
    controls = page.locator(".controls").bounding_box()
    assert controls is not None
    for kind, count in {".screen": 2, ".answered": 2, ".believed .chance": 2}.items():
        for each in page.locator(kind).all():
            box = each.bounding_box()
            assert box is not None
            assert 0 <= box["y"] <= box["y"] + box["height"] <= controls["y"], kind
        assert page.locator(kind).count() == count
    for kind in (".scrub", "#search", ".guess-result"):
        box = page.locator(f".controls {kind}").bounding_box()
        assert box is not None
        assert controls["y"] <= box["y"] <= box["y"] + box["height"] <= 900, kind


def test_the_last_turn_is_the_last_one(
    visit: Visits, server: ViewServer, recorded: tuple[Path, list[CellRecord]]
) -> None:
    turns = next(cell for cell in recorded[1] if cell.agent == "compass").episodes[0].turns
    page = visit(server).go(place(recorded) + "/episodes/0")
    page.locator(".where", has_text=f"turn 0, the 1st of {turns} ").wait_for()
    page.keyboard.press("End")
    ending = {1: "st", 2: "nd", 3: "rd"}.get(turns % 10 if turns not in (11, 12, 13) else 0, "th")
    page.locator(".where", has_text=f"turn {turns - 1}, the {turns}{ending} of {turns} ").wait_for()


def test_the_truth_can_be_hidden_and_guessed(
    visit: Visits, server: ViewServer, recorded: tuple[Path, list[CellRecord]]
) -> None:
    page = visit(server).go(place(recorded))
    assert page.get_by_text("What changes:").is_visible()
    page.keyboard.press("r")
    for hidden in ("What changes:", "the world changes", "changed", "World changes"):
        assert not page.get_by_text(hidden, exact=True).first.is_visible()
    page.goto(f"{server.origin}{place(recorded)}/episodes/2")  # it stays hidden on the next page
    assert not page.locator(".panel.truth").is_visible()
    page.locator(".panel", has_text="Saw").wait_for()
    page.keyboard.press("g")
    page.keyboard.press("r")
    said = "You said that the world changes at episode 2. It changes at 3: 1 too early."
    page.get_by_text(said).wait_for()


def test_turns_are_found_and_opened(visit: Visits, server: ViewServer, recorded: tuple[Path, list[CellRecord]]) -> None:
    page = visit(server).go(place(recorded, SCRIPT))
    page.keyboard.press("/")
    page.keyboard.type("left")
    page.keyboard.press("Tab")
    page.keyboard.type("document.title")
    page.keyboard.press("Tab")
    page.keyboard.type("0.2")
    page.keyboard.press("Enter")
    page.locator("#found a").first.wait_for()
    number = page.locator("#found a").first.inner_text().removeprefix("turn ")
    page.locator("#found a").first.click()
    page.wait_for_url(f"**/turns/{number}")
    page.keyboard.press("/")  # the viewer of turns finds the next one
    page.keyboard.type("LEFT")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/turns/{int(number) + 1}")


def test_replies_of_strangers_are_shown_as_text(
    visit: Visits, server: ViewServer, recorded: tuple[Path, list[CellRecord]]
) -> None:
    page = visit(server).go(place(recorded, SCRIPT) + "/turns/0")
    page.locator(".panel", has_text="Noted").wait_for()
    page.locator(".screen:not(.empty)").wait_for()
    for _ in range(8):
        page.keyboard.press("ArrowRight")
    page.locator(".message").first.wait_for()
    assert page.locator(".message").first.inner_text().endswith(SCRIPT)
    page.get_by_text("1,200 tokens in · 3 out").wait_for()
    assert "taken" not in page.title().replace(SCRIPT, "")
    assert page.locator("script:not([src]):not([type='application/json'])").count() == 0


def test_pictures_films_and_twins_have_addresses(
    visit: Visits, server: ViewServer, recorded: tuple[Path, list[CellRecord]]
) -> None:
    shown = visit(server)
    page = shown.go(place(recorded))
    get = page.request.get

    def fetch(path: str) -> Any:
        return get(f"{server.origin}{place(recorded)}{path}")

    assert fetch("/turns/2/picture").body().startswith(b"\x89PNG")
    films = [f"/episodes/{number}/film.{kind}" for number in range(5) for kind in ("webp", "gif")]
    with httpx.Client(base_url=server.origin, timeout=None) as client, ThreadPoolExecutor(len(films)) as threads:
        client.get(server.address())
        made = list(threads.map(lambda film: client.get(place(recorded) + film), films))  # more than there are workers
    assert [each.status_code for each in made] == [200] * len(films)
    assert {each.headers["content-type"] for each in made} == {"image/webp", "image/gif"}
    assert made[1].content.startswith(b"GIF8")
    assert json.loads(fetch("/turns/2.json").body())["sides"][0]["turn"]["number"] == 2
    assert [each["number"] for each in fetch("/turns.json?from=3&count=2").json()["turns"]] == [3, 4]
    assert fetch("/search.json?belief=0.5").json()["next"] is None
    for wrong, status in {
        "/turns/99999": 400,
        "/turns/99999/picture": 400,
        "/episodes/77": 400,
        "/episodes/77/frames": 400,
        "/episodes/1/film.exe": 400,
        "/turns.json?from=-1": 400,
        "/search.json": 400,
        "/search.json?belief=7": 400,
        "?with=nobody": 404,
        "x/turns/1": 404,
    }.items():
        assert fetch(wrong).status == status, wrong


def test_a_foreign_domain_is_not_run_to_draw(
    visit: Visits, recorded: tuple[Path, list[CellRecord]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))  # another user, who signed nothing
    with open_viewer(recorded[0]) as server:
        page = visit(server).go(place(recorded) + "/turns/1")
        page.get_by_text("names code that you did not sign").wait_for()
        assert page.locator(".panel", has_text="Answered").is_visible()
        page.goto(server.origin + place(recorded))
        assert "left and right" in page.locator(".opening.truth").inner_text()  # what changes is recorded in words


def test_a_trial_that_failed_at_once_says_so(visit: Visits, tmp_path: Path) -> None:
    def fail(turn: of.Turn) -> of.Reply:
        raise ValueError("no idea")

    path = tmp_path / "run.sqlite"
    of.run({"lost": fail}, of.trials(FILMED, count=1, before=2, after=2, unchanged=0), path, workers=0)
    with Run(path) as run:
        (cell,) = run.cells()
    with open_viewer(path) as server:
        page = visit(server).go(f"/runs/{name_run(path)}/trials/{cell.id}")
        assert page.get_by_text("It ended before its first episode was over.").count() == 2
        assert page.get_by_text("episodes that the agent failed to play count as performance 0").is_visible()


def test_trials_of_an_environment_that_draws_offer_films(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    of.run(["random"], of.trials("gym:FrozenLake-v1", 1, before=1, after=1, unchanged=0), path, workers=0)
    with Run(path) as run:
        (cell,) = run.cells()
    place = f"/runs/{name_run(path)}/trials/{cell.id}"
    with open_viewer(path) as server, httpx.Client(base_url=server.origin, timeout=120) as client:
        client.get(server.address())
        links = re.findall(rf'href="({place}/episodes/\d+/film\.\w+)"', client.get(place).text)
        assert [link.rpartition(".")[2] for link in links[:2]] == ["webp", "gif"]
        assert client.get(links[0]).status_code == 200


def test_a_transcript_is_searched_and_copied(
    visit: Visits, server: ViewServer, recorded: tuple[Path, list[CellRecord]]
) -> None:
    shown = visit(server)
    shown.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = shown.go(f"{place(recorded)}/turns")
    total = page.locator(".entry").count()
    page.keyboard.press("/")
    page.keyboard.type("answered left")
    left = page.locator(".entry:visible").count()
    assert 0 < left < total
    assert page.locator("#found").inner_text() == f"{left} of {total} turns here"
    page.locator("#copy").click()
    page.locator("#found", has_text="Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.count("### turn ") == copied.count("**Answered**") == left


def test_a_search_goes_beyond_the_turns_that_are_shown(
    visit: Visits, server: ViewServer, recorded: tuple[Path, list[CellRecord]]
) -> None:
    page = visit(server).go(f"{place(recorded)}/turns?from=2")
    assert page.locator("#elsewhere").is_hidden()
    page.keyboard.press("/")
    page.keyboard.type("at")  # every observation has it
    page.locator("#elsewhere", has_text="2 turns.").wait_for()
    page.locator("#elsewhere a", has_text="turn 1").click()
    page.wait_for_url("**/turns?from=0#turn-1")
    page.locator("#turn-0").wait_for()


def wordy(turn: of.Turn) -> of.Reply:
    """Write Markdown."""
    said = "I go **left**:\n\n```\nleft\n```\n\n![x](http://evil.example/x.png) <script>document.title='taken'</script>"
    asked = {"role": "user", "content": "**where** to?"}
    return of.Reply("left", note={"transcript": [asked, {"role": "assistant", "content": said}]})


def test_markdown_of_an_agent_is_laid_out_and_copied_as_it_was_written(visit: Visits, tmp_path: Path) -> None:
    path = tmp_path / "wordy.sqlite"
    of.run({"wordy": wordy}, of.trials(FILMED, count=1, before=1, after=1, unchanged=0, patience=3), path, workers=0)
    with Run(path) as run:
        (cell,) = run.cells()
    with open_viewer(path) as server:
        shown = visit(server)
        shown.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = shown.go(f"/runs/{name_run(path)}/trials/{cell.id}/turns")
        own = page.locator("dd.own").first
        assert own.locator("strong").inner_text() == "left"
        assert own.locator("img, script, a").count() == 0
        assert page.locator("dd:not(.own)").first.inner_text() == "**where** to?"
        page.locator("#copy").click()
        page.locator("#found", has_text="Copied").wait_for()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied.count("I go **left**:") == page.locator(".entry").count()
        page.keyboard.press("m")
        assert own.locator("strong").is_hidden()
        assert own.inner_text().startswith("I go **left**:")
        assert page.title() != "taken"


def test_a_film_is_made_once(
    visit: Visits, server: ViewServer, recorded: tuple[Path, list[CellRecord]], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = visit(server).go(place(recorded))
    address = f"{server.origin}{place(recorded)}/episodes/2/film.webp"
    first = page.request.get(address)
    monkeypatch.delattr("openfield.view.frames.FramePool.open_reel")
    again = page.request.get(address)
    assert (first.status, again.status) == (200, 200)
    assert again.body() == first.body()
    assert "-2.webp" in again.headers["content-disposition"]


def test_kept_films_are_bounded() -> None:
    films = KeptFilms(most=10)
    keys = [(EpisodeOrder("run", "cell", 1, number, 0, False), "gif", ()) for number in range(3)]
    for key in keys[:2]:
        films.keep(key, b"12345")
    assert films.find(keys[0]) == b"12345"
    films.keep(keys[2], b"12345")
    assert [films.find(key) is not None for key in keys] == [True, False, True]  # the one asked for longest ago is gone
