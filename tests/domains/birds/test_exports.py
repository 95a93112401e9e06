"""The CSV logs of the original evaluation, and the samples from end to end."""

import csv
from importlib.resources import files

import pytest

import openfield as of
from openfield.domains.birds import DOMAIN
from openfield.domains.birds.exports import write_logs, write_measures


@pytest.mark.parametrize("sample", ["unordered", "sequence"])
def test_the_sample_configurations_run_from_end_to_end_and_leave_logs_and_measures(tmp_path, sample):
    source = files("openfield.domains.birds").joinpath("data", "samples", sample, "configMeta.xml")
    (tmp_path / "configMeta.xml").write_bytes(source.read_bytes())
    trials = DOMAIN.trials(config=str(tmp_path), unchanged=0)
    result = of.run({"random": "random"}, trials, tmp_path / "run.sqlite", workers=0)
    (cell,) = result.cells
    assert cell.outcome == "done"
    assert [len([e for e in cell.episodes if e.phase == phase]) for phase in ("training", "test")] == [
        100,
        10 if sample == "unordered" else 20,
    ]
    write_logs(tmp_path / "run.sqlite", tmp_path / "logs")
    with (tmp_path / "logs" / "EvaluationData.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(cell.episodes)
    assert {row["LevelStatus"] for row in rows} <= {"Pass", "Fail"}
    assert {row["playStatus"] for row in rows} == {"training", "test"}
    with (tmp_path / "logs" / "NoveltyLikelihoodData.csv").open() as file:
        reports = list(csv.DictReader(file))
    assert {row["playStatus"] for row in reports} == {"test"}
    assert all(int(row["InteractionIndex"]) % 5 == 0 for row in reports)
    assert f"{3 if sample == 'unordered' else 4} rows" in write_measures(
        tmp_path / "run.sqlite", tmp_path / "measures.csv"
    )


def test_executions_of_a_configured_trial_have_its_number_in_the_logs(tmp_path):
    trial = (
        "<trial number_of_executions='2'><game_level_set mode='training' attempt_limit_per_level='1'>"
        "<game_levels novelty_level='0' type='010101' start='0' end='0'/></game_level_set></trial>"
    )
    (tmp_path / "config.xml").write_text(f"<evaluation><trials>{trial * 3}</trials></evaluation>")
    trials = DOMAIN.trials(config=str(tmp_path / "config.xml"), trial="1-2", unchanged=0)
    of.run({"random": "random"}, trials, tmp_path / "run.sqlite", workers=0)
    write_logs(tmp_path / "run.sqlite", tmp_path / "logs")
    with (tmp_path / "logs" / "EvaluationData.csv").open() as file:
        assert sorted(row["trial"] for row in csv.DictReader(file)) == ["1", "1", "2", "2"]


def test_logs_of_several_agents_are_kept_apart_and_number_the_trials(tmp_path):
    trials = DOMAIN.trials(2, before=1, after=1, scenario="single", family=1, unchanged=0)
    result = of.run({"one": "random", "a/b": "random"}, trials, tmp_path / "run.sqlite", workers=0)
    write_logs(tmp_path / "run.sqlite", tmp_path / "logs")
    for folder in ("one", "a%2Fb"):
        with (tmp_path / "logs" / folder / "EvaluationData.csv").open() as file:
            assert [row["trial"] for row in csv.DictReader(file)] == ["0", "0", "1", "1"]
    write_logs(tmp_path / "run.sqlite", tmp_path / "last", result.cells[-1].id)
    with (tmp_path / "last" / "EvaluationData.csv").open() as file:
        assert [row["trial"] for row in csv.DictReader(file)] == ["1", "1"]


@pytest.mark.parametrize(
    ("novelty", "left", "all_"), [("fan", 1, 1), ("colour", 0, 1), ("wind", 1, 1), ("gravity", 0, 0)]
)
def test_reports_are_logged_with_the_ids_of_what_is_novel(tmp_path, novelty, left, all_):
    trials = DOMAIN.trials(
        1, novelty=novelty, before=1, after=1, scenario="single", family=1, report_step=2, unchanged=0
    )
    of.run({"planner": "planner"}, trials, tmp_path / "run.sqlite", workers=0)
    write_logs(tmp_path / "run.sqlite", tmp_path / "logs")
    with (tmp_path / "logs" / "NoveltyLikelihoodData.csv").open() as file:
        basic, novel = csv.DictReader(file)
    assert (basic["true novel IDs"], basic["complete true novel IDs"], basic["novelty"]) == ("", "", "basic")
    assert novel["novelty"] == "novel"
    assert len(novel["complete true novel IDs"].split()) == all_
    assert len(novel["true novel IDs"].split()) == left, "after the shot"
    assert set(novel["true novel IDs"].split()) <= set(novel["complete true novel IDs"].split())
