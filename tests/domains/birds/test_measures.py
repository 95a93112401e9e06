"""The measures are the published ones: pass and fail as the papers count them give the numbers the papers print."""

import csv
import math
import re

import msgspec
import pytest

import openfield as of
from openfield.cli import run_command
from openfield.domains.birds import DOMAIN
from openfield.domains.birds.exports import published, write_detectors, write_measures
from openfield.journal.reader import Run
from openfield.metrics.detection import PUBLISHED
from openfield.metrics.performance import count_as_test
from support.records import make_cell

NORMAL, NOVEL = 40, 60
"""Levels of a trial here: enough for three digits; the published rates do not say how many there were."""


PEOPLE = {
    "objects": (61, 0.840, 0.902, 0.918, 61, 2),
    "agents": (60, 0.744, 0.704, 0.833, 57, 3),
    "actions": (60, 0.696, 0.604, 0.767, 54, 10),
    "interactions": (59, 0.809, 0.534, 0.678, 56, 8),
    "relations": (59, 0.938, 0.919, 0.958, 59, 1),
    "environments": (60, 0.862, 0.838, 0.900, 58, 0),
    "goals": (61, 0.683, 0.533, 0.754, 56, 7),
    "events": (60, 0.893, 0.642, 0.750, 58, 1),
}
"""Trials, normal, novel and asymptotic pass rates, correct detections, and levels by which these were late.

480 trials of 48 people; the counts are the only ones that give all published shares of a novelty at once.
"""


TABLE = {
    "objects": (1.000, 1.03),
    "agents": (0.950, 1.05),
    "actions": (0.900, 1.19),
    "interactions": (0.949, 1.14),
    "relations": (1.000, 1.02),
    "environments": (0.967, 1.00),
    "goals": (0.918, 1.13),
    "events": (0.967, 1.02),
}
"""Correct detections and delay counted from 1, as printed."""


WRONG = 16
"""Trials with a detection before the onset: 3.3 % of all."""


SCENARIOS = {
    "single force": (0.899, 0.688, 0.776),
    "multiple forces": (0.870, 0.768, 0.854),
    "rolling": (0.786, 0.721, 0.865),
    "falling": (0.740, 0.656, 0.771),
    "sliding": (0.744, 0.714, 0.833),
}


def spread(share, trials, levels):
    """Passes and failures of some trials that have this share of passes together, dealt out evenly."""
    passes = round(share * trials * levels)
    counts = [passes // trials + (number < passes % trials) for number in range(trials)]
    return [[1.0] * count + [0.0] * (levels - count) for count in counts]


def play(trials, normal, novel, asymptotic, detections):
    """Trials with these rates; each has what it says it detected: the level, from 0 at the onset on, or None."""
    end = math.ceil(NOVEL / 3)
    before = spread(normal, trials, NORMAL)
    late = spread(asymptotic, trials, end)
    early = spread((novel * NOVEL - asymptotic * end) / (NOVEL - end), trials, NOVEL - end)
    for number, found in enumerate(detections):
        beliefs = [0.0] * (NORMAL + NOVEL)
        if found is not None:
            beliefs[NORMAL + found] = 1.0
        yield make_cell([], before[number], early[number] + late[number], beliefs)


def people(novelty, wrong=0):
    trials, normal, novel, asymptotic, correct, delayed = PEOPLE[novelty]
    late = [2] * min(1, delayed // 2) + [1] * (delayed - 2 * min(1, delayed // 2))
    right = late + [0] * (correct - len(late))
    detections = [*right, *[-1] * wrong, *[None] * (trials - correct - wrong)]
    return list(play(trials, normal, novel, asymptotic, detections))


@pytest.mark.parametrize("novelty", PEOPLE)
def test_the_table_of_people_by_novelty(novelty):
    cdt, _, delay, *_, before, after, end, _ = published(people(novelty))
    assert [before, after, end] == pytest.approx(PEOPLE[novelty][1:4], abs=0.0005)
    assert round(cdt / 100, 3) == TABLE[novelty][0]
    assert delay == pytest.approx(TABLE[novelty][1], abs=0.0051)


def test_the_table_of_people_as_a_whole():
    missed = {name: trials - correct for name, (trials, *_, correct, _) in PEOPLE.items()}
    assert sum(missed.values()) == 21
    wrong = dict.fromkeys(PEOPLE, 0)
    while sum(wrong.values()) < WRONG:
        name = max(missed, key=lambda name: missed[name] - wrong[name])
        wrong[name] += 1
    everything = [cell for name in PEOPLE for cell in people(name, wrong[name])]
    cdt, wdt, delay, *_, before, after, end, _ = published(everything)
    assert len(everything) == 480
    assert [round(value, 3) for value in (before, after, end)] == [0.808, 0.709, 0.820]
    assert (round(cdt / 100, 3), round(wdt / 100, 3), round(delay, 2)) == (0.956, 0.033, 1.07)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_table_of_people_by_scenario(scenario):
    *_, before, after, end, _ = published(list(play(96, *SCENARIOS[scenario], [0] * 96)))
    assert [before, after, end] == pytest.approx(SCENARIOS[scenario], abs=0.0005)


def test_measures_and_detectors_of_a_run_are_written_by_agent_novelty_and_scenario(tmp_path):
    run, trials = tmp_path / "run.sqlite", []
    for scenario in ("single", "sliding"):
        trials += DOMAIN.trials(1, novelty="storm", before=6, after=6, scenario=scenario, unchanged=1)
    of.run({"random": "random"}, trials, run, workers=0)
    assert "2 rows" in write_measures(run, tmp_path / "measures.csv")
    rows = read(tmp_path / "measures.csv")
    assert [(row["agent"], row["novelty"], row["scenario"], row["trials"]) for row in rows] == [
        ("random", "storm", "single", "1"),
        ("random", "storm", "sliding", "1"),
    ]
    assert {(row["CDT%"], row["WDT%"], row["passive CDT%"]) for row in rows} == {("", "", "0.0")}, "it never reports"
    assert f"{2 * len(PUBLISHED)} rows" in write_detectors(run, tmp_path / "detectors.csv")
    rows = read(tmp_path / "detectors.csv")
    assert [(row["detector"], row["window"], row["parameter"]) for row in rows[:2]] == [
        ("moving average", "5", "0.2"),
        ("moving average", "5", "0.3"),
    ]
    assert {row["WDT%"] for row in rows} <= {"0.0", "100.0"}


def test_a_trial_of_nothing_but_training_is_measured_as_the_published_ones_are(tmp_path):
    run, config, said = tmp_path / "run.sqlite", tmp_path / "config.xml", []
    config.write_text(
        "<evaluation><novelty_detection_measurement step='1' measure_in_training='True'/><trials><trial>"
        "<game_level_set mode='training' attempt_limit_per_level='1'>"
        "<game_levels novelty_level='0' type='010601' start='0' end='2'/>"
        "<game_levels novelty_level='6' type='010601' start='0' end='3'/>"
        "</game_level_set></trial></trials></evaluation>"
    )

    def late(turn):
        said.extend([0] * turn.first)
        return of.Reply({"x": 400, "y": 200}, of.Belief(float(len(said) > 4)))

    result = of.run({"late": lambda spec, seed: late}, DOMAIN.trials(config=str(config), unchanged=0), run, workers=0)
    passed = [episode.performance for episode in result.cells[0].episodes]
    assert [episode.phase for episode in result.cells[0].episodes] == ["test"] * 7
    with Run(run) as opened:
        assert {episode.phase for episode in opened.cells()[0].episodes} == {"training"}, "on record it is what it was"
    numbers = {name: each.mean for name, each in result.summary().groups[0].estimates.items()}
    assert [numbers[name] for name in ("correct", "alarmed", "delay")] == [1.0, 0.0, 1.0]
    assert [numbers[name] for name in ("before", "after")] == [sum(passed[:3]) / 3, sum(passed[3:]) / 4]
    write_measures(run, tmp_path / "measures.csv")
    row, training = read(tmp_path / "measures.csv")
    assert [(each["set"], each["levels"], each["attempts"]) for each in (row, training)] == [
        ("all", "7.0", "7.0"),
        ("training set", "7.0", "7.0"),
    ]
    assert (row["CDT%"], row["WDT%"], row["delay"]) == ("100.0", "0.0", "2.0")
    assert [float(row[name]) for name in ("normal", "novel")] == [sum(passed[:3]) / 3, sum(passed[3:]) / 4]
    write_detectors(run, tmp_path / "detectors.csv")
    assert {row["WDT%"] for row in read(tmp_path / "detectors.csv")} == {"0.0"}, "three levels fill no window"


SETS = """<evaluation><trials><trial>
<game_level_set mode="training" attempt_limit_per_level="2">
<game_levels novelty_level="0" type="010101" start="0" end="0"/>
</game_level_set>
<game_level_set mode="test" attempt_limit_per_level="1">
<game_levels novelty_level="0" type="010101" start="1" end="2"/>
</game_level_set>
<game_level_set mode="test" attempt_limit_per_level="1">
<game_levels novelty_level="1" type="6" start="0" end="0"/>
</game_level_set>
</trial></trials></evaluation>"""


def test_a_single_configured_trial_has_its_pass_rates_by_set_in_measures_and_in_the_report(tmp_path, capsys):
    run, config = tmp_path / "run.sqlite", tmp_path / "config.xml"
    config.write_text(SETS)
    (result,) = of.run({"naive": "naive"}, DOMAIN.trials(config=str(config), unchanged=0), run, workers=0).cells
    passed = [episode.performance for episode in result.episodes]
    assert "4 rows" in write_measures(run, tmp_path / "measures.csv")
    rows = [
        (row["set"], row["levels"], row["attempts"], float(row["pass rate"])) for row in read(tmp_path / "measures.csv")
    ]
    assert rows == [
        ("all", "4.0", "5.0", sum(passed) / 5),
        ("training set", "1.0", "2.0", sum(passed[:2]) / 2),
        ("test set 1", "2.0", "2.0", sum(passed[2:4]) / 2),
        ("test set 2", "1.0", "1.0", passed[4]),
    ]
    assert run_command(["report", str(run), "--numbers", "all", "-o", str(tmp_path / "page.html")]) == 0
    said = capsys.readouterr().out
    for title, value in (
        ("Levels played", "4.00"),
        ("Attempts", "5.00"),
        ("Pass rate, test set 2", f"{passed[4]:.2f}"),
    ):
        assert re.search(rf"{title} +│ +{value}, 1 trial", said), title


def test_training_is_not_measured_where_a_test_is_novel_also_if_that_was_never_reached():
    cell = make_cell([1.0, 0.0], [1.0], [0.0])
    assert count_as_test(cell) is cell
    unreached = msgspec.structs.replace(cell, episodes=cell.episodes[:2])
    assert count_as_test(unreached) is unreached


def read(path):
    with path.open() as file:
        return list(csv.DictReader(file))
