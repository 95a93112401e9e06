from __future__ import annotations

import re
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from openfield.errors import InvalidInput, UnknownName
from openfield.metrics import BUILT_IN, summarise
from openfield.provenance.provenance import Provenance
from openfield.report.page import MAX_BYTES, ReportOptions, render_page, write_page
from openfield.report.words import Domains
from support.browsers import CHROMIUM
from support.records import make_cell, make_run, make_trial


class Maze:
    title, metrics = "A small maze", ("performance",)

    def describe(self, names: Sequence[str]) -> str:
        if names != ("swap",):
            raise UnknownName("novelty", "+".join(names), ["swap"])
        return "left and right change places"


MAZE = cast(Domains, {"maze": Maze()})


def render(cells: list[Any], domains: Domains = MAZE) -> str:
    return render_page("A test", cells, domains, summarise(cells, BUILT_IN), ReportOptions(facts={"run": "x.sqlite"}))


def scenarios(page: str) -> list[str]:
    """Return the sections of the scenarios of a page."""
    return page.split('<section class="scenario"')[1:]


class TestContent:
    def test_describes_the_novelty_in_words(self) -> None:
        page = render(make_run())
        assert "A small maze" in page
        assert "Left and right change places." in page

    def test_says_where_detection_can_be_had_by_counting(self) -> None:
        onset = "The onset is fixed or published, so agents can detect the change by counting."
        said = f"Agents are not told when the world changes. {onset}"
        assert f'<p class="soft">{said} </p>' in render(make_run())
        assert "by counting" not in render(make_run(window=(1, 3)))

    def test_names_what_no_domain_can_describe(self) -> None:
        assert "Swap." in render(make_run(), {})
        assert "Fog." in render(make_run(novelty=("fog",)))

    def test_shows_estimates_with_intervals(self) -> None:
        page = render([make_cell([], [0.9], [a], trial=make_trial(s)) for s, a in enumerate([0.1, 0.2, 0.3, 0.4, 0.6])])
        assert re.search(r"<b>0\.32</b><span class=\"ci\">0\.\d\d – 0\.\d\d</span><svg class=\"estimate p\"", page)

    def test_few_trials_have_values_without_intervals(self) -> None:
        page = render(make_run(trials=3))
        figures = re.findall(r'<b>[^<]*</b><span class="ci">([^<]*)</span>', page)
        assert figures
        assert set(figures) <= {"2 trials", "3 trials"}
        assert not re.search(
            r'<svg class="estimate[^>]*><path[^>]*/><path d="[^"]*7h(?!0")', page
        )  # no bar of an interval

    def test_controls_stand_below_everything_else(self) -> None:
        controls = [replace(cell, agent=f"control {cell.agent}", control=True) for cell in make_run()]
        (section,) = scenarios(render([*make_run(), *controls]))
        above, below = section.split("<h3>Controls</h3>")
        assert "Agents compared" in above
        for part in (above[: above.index("Controls, which must fail")], above[above.index("All numbers and") :]):
            assert "control ada" not in part
        assert "Controls are agents that must fail" in below
        assert "control ada" in below
        assert "<h3>Controls</h3>" not in render(make_run())

    def test_an_overview_links_to_every_scenario(self) -> None:
        page = render([*make_run(["ada", "bob"]), *make_run(["ada"], novelty=("fog",))])
        contents, glance = page[page.index("<nav") : page.index("</nav>")], page[page.index('id="matrix"') :]
        rows = glance[glance.index("<tbody>") : glance.index("</tbody>")].split("<tr>")[1:]
        assert len(rows) == 2
        for row, name, words in zip(rows, ("fog", "swap"), ("fog", "left and right change places"), strict=True):
            (section,) = re.findall(r'<a href="#(\w+)">A small maze</a>', row)
            assert f'<a href="#{section}"><b>maze</b> {words}</a>' in contents
            assert f'<section class="scenario" id="{section}"' in page
            assert f"<small>{name}</small>" in row
        kinds = [
            (row.count('class="estimate p"'), row.count('class="estimate b"'), row.count("–</span>")) for row in rows
        ]
        assert [kind[:2] for kind in kinds] == [(1, 1), (2, 2)]  # bob did not play in fog
        assert '<span class="none">–</span>' in rows[0]

    def test_agents_are_drawn_together(self) -> None:
        (section,) = scenarios(render(make_run(["ada", "bob", "cyd"])))
        assert 'aria-label="Performance and belief of ada, bob, cyd, episode by episode"' in section
        assert section.count('class="agent own ') == 6
        assert 'class="overlaid"' not in render(make_run(["ada"]))
        assert "The best 10 of 12 agents" not in section
        assert "The best 10 of 12 agents" in render(make_run([f"agent {number}" for number in range(12)]))

    def test_failures_come_first(self) -> None:
        page = render([*make_run(), make_cell(outcome="agent_error", note="it broke", id="bad")])
        assert "1 cell not played to the end" in page
        assert page.index("not played to the end") < page.index('class="leaders stacked"') < page.index("All numbers")
        assert "<code>bad</code>, agent_error: it broke" in page

    def test_without_failures_there_is_no_alarm(self) -> None:
        assert 'class="alert"' not in render(make_run())

    def test_marks_the_onset_and_the_belief(self) -> None:
        page = render(make_run())
        assert page.count(">onset</text>") == 3  # a panel of each agent, and one with all of them
        assert page.count(">belief</text>") == 1
        assert "first detection after the onset" in page

    def test_without_novelty_there_is_no_onset_in_the_curves(self) -> None:
        cells = [make_cell([0.4, 0.5], [0.5, 0.6], [], trial=make_trial(s, novelty=())) for s in range(5)]
        page = render(cells)
        assert ">onset</text>" not in page
        assert "onset, from which episodes are counted" not in page
        assert "first detection after the onset" not in page
        assert ">−2</text>" in page  # counted from the start of the test, with a minus as everywhere
        assert ">-2</text>" not in page

    def test_without_novelty_no_number_is_called_after_an_onset_that_never_comes(self) -> None:
        cells = [make_cell([0.4], [0.5, 0.6], [], trial=make_trial(s, novelty=())) for s in range(5)]
        assert "Performance in the test" in render(cells)
        assert "before the onset" not in render(cells)
        assert "Performance before the onset" in render(make_run())
        assert "onset, from which episodes are counted" in render(make_run())

    def test_trials_that_never_reached_the_onset_are_counted_beside_the_panel(self) -> None:
        early = make_cell([], [0.5, 0.5], [], outcome="truncated", trial=make_trial(99), id="early")
        assert "10 trials; 1 more ended before the onset" in render([*make_run(["ada"]), early])

    def test_single_trials_are_told_in_words(self) -> None:
        beliefs = {"one": [0.9, 0.1, 0.9], "two": [0.9, 0.9, 0.1]}
        cells = [make_cell([], [0.5, 0.5], [0.25], said, agent=agent, id=agent) for agent, said in beliefs.items()]
        page = render(cells)
        for agent, noticed, alarms in (("one", "0", "1"), ("two", "–", "2")):
            row = page[page.index(f'id="trial-{agent}"') :].partition("</tr>")[0]
            assert re.findall(r'<td class="num">([^<]*)</td>', row)[:5] == ["0.50", "0.25", "2", noticed, alarms]

    def test_says_whether_all_single_trials_are_shown(self) -> None:
        assert "from the worst to the best: all 24<" in render(make_run(["ada"], trials=24))
        assert "from the worst to the best: 24 of 25, evenly picked<" in render(make_run(["ada"], trials=25))

    def test_curves_of_one_episode_and_of_none(self) -> None:
        page = render([make_cell([], [], [0.5]), make_cell(agent="bob"), make_cell([], [None], [None], agent="cyd")])
        assert "NaN" not in page.replace("nan", "NaN").split("</style>")[1]

    def test_an_empty_run_says_so(self) -> None:
        assert "There are no cells yet." in render([])

    def test_everything_from_outside_is_escaped(self) -> None:
        evil = '"><script>alert(1)</script>'
        cells = [
            make_cell([0.1], [0.2], [0.3], agent=evil, id=evil, outcome=outcome, note=evil, trial=trial)
            for trial in (make_trial(), make_trial(novelty=(evil,), settings={evil: evil}, domain=evil))
            for outcome in ("done", "agent_error", evil)
        ]
        told = Provenance(command=evil, started=evil, note=evil, tags=[evil], machine=evil)
        options = ReportOptions(facts={evil: evil}, cautions=[evil], provenance=[told], links={evil: evil})
        page = render_page(evil, cells, {}, summarise(cells, BUILT_IN), options)
        assert "<script" not in page
        assert page.count("&lt;script&gt;") > 10


class TestForm:
    def test_is_well_formed(self) -> None:
        page = render([*make_run(), make_cell(outcome="agent_error", note="a & b", id="bad")])
        body = page[page.index("<body>") : page.index("</html>")]
        body = body.replace("<details open>", '<details open="">').replace("&nbsp;", " ")
        body = body.replace('class="told" open>', 'class="told" open="">')
        assert ElementTree.fromstring(body).tag == "body"

    def test_needs_no_network_and_no_script(self) -> None:
        page = render(make_run())
        assert "default-src 'none'" in page
        assert not re.search(r"https?:|//|<script|<link|<img|@import|url\(|src=| style=", page)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("agents", "novelties", "trials", "episodes"),
        [(2, 1, 1000, 40), (4, 10, 50, 40), (8, 40, 5, 12), (2, 1, 5, 4000)],
    )
    def test_stays_small(self, agents: int, novelties: int, trials: int, episodes: int) -> None:
        names = [f"agent {number}" for number in range(agents)]
        cells = [
            cell for n in range(novelties) for cell in make_run(names, trials, episodes, novelty=(f"novelty-{n}",))
        ]
        page = render(cells)
        assert len(page.encode()) < MAX_BYTES
        if trials == 1000:
            assert "1,000 trials, 24 of them drawn" in page
            assert "24 of 1000, evenly picked" in page
        if novelties == 40:
            assert "Left out to keep this page small: the curves" in page


class TestFile:
    def test_appears_whole(self, tmp_path: Path) -> None:
        path = tmp_path / "new" / "page.html"
        write_page(path, render(make_run()))
        assert path.read_text(encoding="utf-8").endswith("</html>\n")
        assert [file.name for file in path.parent.iterdir()] == ["page.html"]

    def test_says_where_it_could_not_be_written(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(InvalidInput, match=r"Cannot write .*page\.html"):
            write_page(tmp_path / "file" / "page.html", "a page")


@pytest.mark.browser
def test_a_browser_renders_it_without_a_network(tmp_path: Path) -> None:
    write_page(tmp_path / "page.html", render(make_run()))
    offline = ["--proxy-server=127.0.0.1:9", "--disable-background-networking", "--disable-component-update"]
    quiet = [
        "--disable-sync",
        "--no-first-run",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={tmp_path / 'profile'}",
    ]
    logging = ["--enable-logging=stderr", "--v=0"]
    command = [str(CHROMIUM), "--headless", *offline, *quiet, *logging, "--dump-dom", (tmp_path / "page.html").as_uri()]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "Left and right change places." in result.stdout
    assert result.stdout.count("<figure>") == 2
    assert "Content Security Policy" not in result.stderr
    assert "CONSOLE" not in result.stderr
