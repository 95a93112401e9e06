"""The figures of trials about samples."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

import openfield as of
from openfield.domains.ond import DOMAIN
from openfield.domains.ond.actions import NextBatch, Scores
from openfield.journal.reader import CellRecord
from openfield.metrics import BUILT_IN, summarise
from openfield.metrics.openset.cells import measure_openset, read_sample_answers
from openfield.report.figures import TrialLinks
from openfield.report.figures.openset import make_test_facts, trace_samples
from openfield.report.page import render_page
from support.ond.protocol import Client, answers, known, write_test

SMALL = {"training": 120, "round_size": 10, "before": 3, "after": 4}


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory):
    path = tmp_path_factory.mktemp("openset") / "r.sqlite"
    return of.run(["knn", "random"], DOMAIN.trials(5, **SMALL, unchanged=0), path, workers=0)


class Balanced(HTMLParser):
    """Counts what is open; raises at what closes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        """Closed already."""


def test_every_figure_is_drawn_for_every_agent(result, tmp_path: Path) -> None:
    page = result.page(tmp_path / "page.html").read_text()
    drawn = page[page.index("<h3>Sample by sample</h3>") : page.index("All numbers and comparisons")]
    for words in ("P(world changed)", "ROC of unknown samples", "OSCR", "unknown dashed", "True classes in rows"):
        assert drawn.count(words) == 2
    assert drawn.count("test by test") == 2
    assert "relative to knn;" in drawn
    parser = Balanced()
    parser.feed(page[page.index("<body>") : page.index("</html>")])
    assert not parser.open


class NamedCells(TrialLinks):
    """Takes the cells themselves for their address."""

    def find(self, cells: Sequence[CellRecord]) -> str:
        return " ".join(cell.id for cell in cells)


def test_every_number_is_linked_to_the_cells_it_was_made_of(result) -> None:
    played = {name: [cell for cell in result.cells if cell.agent == name] for name in ("knn", "random")}
    found = trace_samples(played, NamedCells("", []))
    assert found is not None
    for agent in found.agents:
        ids = [cell.id for cell in played[agent.agent]]
        assert agent.address == " ".join(ids)
        assert [plot.address for _, _, plot in agent.plots] == [agent.address] * 4
        assert [test.address for test in agent.tests] == ids


def test_the_programme_is_relative_to_the_agent_that_is_named(result, tmp_path: Path) -> None:
    chosen = of.Result(result.paths, "random").page(tmp_path / "page.html").read_text()
    assert "relative to random;" in chosen
    assert "relative to knn;" in result.page(tmp_path / "page.html").read_text()


def test_the_page_has_them_and_stays_small(result, tmp_path: Path) -> None:
    page = result.page(tmp_path / "page.html").read_text()
    assert "Sample by sample" in page
    assert len(page) < 300_000


def test_names_are_escaped_and_other_domains_have_none(result) -> None:
    cells = [msgspec.structs.replace(cell, agent="<script>") for cell in result.cells if cell.agent == "knn"]
    page = render_page("x", cells, {}, summarise(cells, BUILT_IN))
    assert "Sample by sample" in page
    assert "<script>" not in page
    assert trace_samples({"x": []}, TrialLinks("", [])) is None


def test_make_test_facts_a_test_are_those_recorded(result) -> None:
    cell = next(cell for cell in result.cells if cell.agent == "knn")
    facts = make_test_facts(read_sample_answers(cell), read_sample_answers(cell))
    assert facts.onset == 30
    assert facts.after == facts.baseline_after


def test_a_change_counts_as_declared_from_the_trials_own_threshold_on(tmp_path: Path) -> None:
    def agent(turn: of.Turn) -> of.Reply:
        if turn.ask is not of.Ask.ACT or turn.observation.get("answered"):
            return of.Reply(NextBatch() if turn.ask is of.Ask.ACT else None)
        ids, number = turn.observation["ids"], turn.observation["round"]
        return of.Reply(Scores([[1.0] + [0.0] * 6] * len(ids)), of.Belief(0.6 if number < 5 else 0.8))

    for threshold, declared in ((0.5, 0), (0.8, 50), (0.9, None)):
        trials = DOMAIN.trials(1, threshold=threshold, **SMALL, unchanged=0)
        played = of.run({"slow": agent}, trials, tmp_path / f"{threshold}.sqlite", workers=0)
        (cell,) = played.cells
        assert make_test_facts(read_sample_answers(cell)).detection == declared
        first = next((episode.number for episode in cell.episodes if episode.detected), None)
        assert first == (None if declared is None else declared // 10 + 1)  # after the training
        delay = measure_openset(cell)["sample_delay"]
        assert delay == (20 if declared == 50 else None)  # the onset is at 30
        found = trace_samples({"slow": [cell]}, TrialLinks("", []))
        assert found is not None
        assert found.agents[0].plots[0][2].thresholds == [threshold]


def served(data: Path, run: Path, *sessions: tuple[str, float, int]) -> None:
    """Sessions of agents with thresholds, who answer this many of the first rounds of six tests."""
    names = [f"OND.1.{number:04d}.7" for number in range(6)]
    for name in names:
        write_test(data, name)
    client = Client(data, run)
    for agent, threshold, rounds in sessions:
        session = client.open(*names, novelty_detector_version=agent, detection_threshold=threshold)
        for name in names:
            test = known(client, name)
            for number in range(rounds):
                ids = test.ids[number * 10 : number * 10 + 10]
                assert client.post(session, number, name, **answers(test, ids, 0.6)).text == "OK"
            assert client.complete(session, name).text == "OK"
    client.close()


def test_sessions_with_other_thresholds_are_told_apart_and_say_theirs(tmp_path: Path) -> None:
    served(tmp_path / "data", tmp_path / "r.sqlite", ("ada", 0.5, 3), ("ada", 0.7, 3), ("ben", 0.7, 3))
    found = of.Result([tmp_path / "r.sqlite"])
    page = found.page(tmp_path / "page.html").read_text()
    low, high = (part for part in re.split(r'<section class="scenario"', page)[1:])
    assert ("threshold=0.5" in low, "threshold=0.7" in low) == (True, False)
    assert ("threshold=0.5" in high, "threshold=0.7" in high) == (False, True)
    detected = {
        (group.agent, "threshold=0.7" in group.scenario.settings): group.estimates["detected"].mean
        for group in found.summary().groups
    }
    assert detected == {("ada", False): 1, ("ada", True): 0, ("ben", True): 0}


def test_samples_left_unanswered_are_told_and_count_for_nobody(tmp_path: Path) -> None:
    served(tmp_path / "data", tmp_path / "r.sqlite", ("whole", 0.5, 3), ("half", 0.5, 2))
    page = of.Result([tmp_path / "r.sqlite"]).page(tmp_path / "page.html").read_text()
    assert "Samples left unanswered, which are not counted: 60 of 180 by half." in page
    lines = page.split("<b>half</b>, test by test")[1].split("</details>")[0]
    assert re.findall(r'<td class="num">([^<]*)</td>', lines)[:5] == ["15", "15", "1.000", "1.000", "10"]
