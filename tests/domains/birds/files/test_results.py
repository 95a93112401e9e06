"""Results of the original game and published tables stand beside runs of our own."""

import csv
import json
from pathlib import Path

import pytest

import openfield as of
from openfield.cli.main import run_command
from openfield.domains.birds import DOMAIN
from openfield.domains.birds.files.results import read_results
from openfield.errors import InvalidInput
from openfield.journal.reader import Run
from openfield.result import Result

LEVELS = """EvaluationIndex,LevelIndex,Score,LevelStatus,birdsRemaining,pigsRemaining,birdsAtStart,pigsAtStart,trial,\
levelName,playStatus,informed,novelty
"""
REPORTS = """EvaluationIndex,LevelIndex,InteractionIndex,HasNoveltyLikelihood,NoNoveltyLikelihood,novel object IDs,\
novelty level,novelty description,true novel IDs,complete true novel IDs,trial,levelName,playStatus,informed,novelty
"""
NORMAL, NOVEL = "00001_0_1_010601_0_1.xml", "00002_0_1_010601_6_1.xml"


def level(number, status, name, trial=0, attempt=0):
    novelty = "novel" if name == NOVEL else "basic"
    return f"{number},{number - attempt},5000,{status},0,0,1,1,{trial},{name},training,uninformed,{novelty}\n"


def report(number, index, likelihood, name, trial=0):
    place = f"{trial},{name},training,uninformed,basic"
    return f"{number},{index},{number + 1},{likelihood},{1 - likelihood:g},-1012 -1018,6,,,,{place}\n"


@pytest.fixture
def logs(tmp_path):
    """Both logs of a published kind of trial, all in one training set: two normal levels, then two novel ones."""
    folder = tmp_path / "datalab"
    folder.mkdir()
    played = [(0, "Pass", NORMAL), (1, "Fail", NORMAL), (2, "Playing", NOVEL), (3, "Pass", NOVEL)]
    (folder / "EvaluationData.csv").write_text(LEVELS + "".join(level(*row) for row in played))
    told = [(0, 0, 0.1, NORMAL), (1, 1, 0.2, NORMAL), (2, 2, 0.9, NOVEL), (3, 3, 0.75, NOVEL)]
    (folder / "NoveltyLikelihoodData.csv").write_text(REPORTS + "".join(report(*row) for row in told))
    return folder


def test_both_logs_make_a_trial(logs):
    (found,) = read_results([logs], None, DOMAIN.version)
    assert (found.agent, found.trial.novelty, found.trial.settings) == (
        "datalab",
        ("gravity",),
        {"family": 6, "scenario": "single"},  # as a trial of ours: run birds --novelty gravity --set scenario=single
    )
    assert [(phase.name, phase.episodes, phase.novelty) for phase in found.trial.phases] == [
        ("test", 2, ()),
        ("test", 2, ("gravity",)),
    ]
    assert [(each.performance, each.novel, each.belief.novel) for each in found.episodes] == [
        (1.0, False, 0.1),
        (0.0, False, 0.2),
        (0.0, True, 0.9),
        (1.0, True, 0.75),
    ]
    assert found.episodes[2].detail["status"] == "Playing"
    assert found.episodes[3].belief.detail["objects"] == [-1012, -1018]


def test_training_stays_training_beside_a_test(logs):
    path = logs / "EvaluationData.csv"
    path.write_text(path.read_text().replace(f"{NOVEL},training", f"{NOVEL},test"))
    (found,) = read_results([path], None, DOMAIN.version)
    assert [phase.name for phase in found.trial.phases] == ["training", "test"]


def test_attempts_at_a_level_share_its_reports_in_order(tmp_path):
    (tmp_path / "a.csv").write_text(LEVELS + level(0, "Fail", NORMAL) + level(1, "Pass", NORMAL, attempt=1))
    (tmp_path / "b.csv").write_text(REPORTS + report(0, 0, 0.2, NORMAL) + report(1, 0, 0.6, NORMAL))
    (found,) = read_results([tmp_path], "me", DOMAIN.version)
    assert [each.belief.novel for each in found.episodes] == [0.2, 0.6]


def test_an_execution_begins_where_the_index_does(tmp_path):
    path = tmp_path / "EvaluationData.csv"
    path.write_text(LEVELS + (level(0, "Pass", NORMAL) + level(1, "Fail", NOVEL)) * 2)
    assert [len(each.episodes) for each in read_results([path], None, DOMAIN.version)] == [2, 2]


def test_published_tables_are_read_by_their_columns(tmp_path):
    (tmp_path / "people.csv").write_text(
        f"player,trial,level name,passed,detected\nanna,1,{NORMAL},1,0\nben,1,{NOVEL},0,1\n"
    )
    (tmp_path / "rates.csv").write_text(
        ",category,pass_rate,name,event,description\n0,1_01,0.96,Human,1,Single force\n"
    )
    (tmp_path / "rates_human.csv").write_text("category,fail_rate,sd_human_pass_rate\n1_1,0.25,0.1\n")
    found = {each.agent: each for each in read_results([tmp_path], None, DOMAIN.version)}
    assert found["ben"].episodes[0].belief == of.Belief(1.0)
    assert found["ben"].trial.novelty == ("gravity",)
    assert found["anna"].episodes[0].performance == 1.0
    assert (found["Human"].episodes[0].performance, found["Human"].trial.settings) == (0.96, {"scenario": "single"})
    assert found["human"].episodes[0].performance == 0.75
    run, measures, logs = tmp_path / "all.sqlite", tmp_path / "measures.csv", tmp_path / "logs"
    assert run_command(["birds", "import", str(tmp_path), "-o", str(run)]) == 0
    assert run_command(["export", str(run), "--format", "measures", "-o", str(measures)]) == 0
    rows = {row["agent"]: row for row in csv.DictReader(measures.read_text().splitlines())}
    assert {name: (row["levels"], row["pass rate"]) for name, row in rows.items()} == {
        "anna": ("1.0", "1.0"),
        "ben": ("1.0", "0.0"),
        "Human": ("", "0.96"),  # a rate over an unknown number of levels
        "human": ("", "0.75"),
    }
    assert run_command(["export", str(run), "--format", "logs", "-o", str(logs)]) == 0
    assert len((logs / "anna" / "EvaluationData.csv").read_text().splitlines()) == 2


def test_imported_and_played_trials_stand_in_one_table(logs, tmp_path, capsys):
    own, run = tmp_path / "own.sqlite", tmp_path / "imported.sqlite"
    settings = {"scenario": "single", "novelty": "gravity", "onset": "1-2", "unchanged": 0}
    of.run({"naive": "naive"}, DOMAIN.trials(1, **settings), own, workers=0)
    assert run_command(["birds", "import", str(logs), "-o", str(run)]) == 0
    assert "1 trial with 4 episodes of datalab" in capsys.readouterr().out
    assert run_command(["birds", "import", str(logs), "-o", str(run)]) == 0
    assert "1 were there before" in capsys.readouterr().out
    assert run_command(["verify", str(run)]) == 0
    assert "1 of its cells were imported" in capsys.readouterr().out
    cell = Result([run]).cells[0]
    assert [episode.performance for episode in cell.episodes] == [1.0, 0.0, 0.0, 1.0]
    assert [episode.detected for episode in cell.episodes] == [False, False, True, True]
    assert run_command(["report", str(run), str(own), "--json"]) == 0
    groups = json.loads(capsys.readouterr().out)["groups"]
    assert {group["agent"] for group in groups} == {"datalab", "naive"}
    assert "imported from EvaluationData.csv" in str(groups)


@pytest.mark.parametrize("words", [["verify", "--replay"], ["show", "--film", "x.webp", "--cell"]])
def test_what_was_imported_is_not_replayed(logs, tmp_path, capsys, words):
    run = tmp_path / "imported.sqlite"
    run_command(["birds", "import", str(logs), "-o", str(run)])
    with Run(run) as opened:
        cell = opened.cells()[0].id
    command, *rest = words
    assert run_command([command, str(run), *rest, *([cell] if "--cell" in rest else [])]) == 2
    said = capsys.readouterr().err
    assert said.endswith("it has results, but nothing to replay or resume.\n")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n", "is no table of results"),
        ("", "is no table of results"),
        (LEVELS + level(0, "Maybe", NORMAL), "line 2: 'maybe' says neither"),
        (LEVELS + level(0, "Pass", NORMAL).replace("5000", "many"), "line 2: 'many' is not a number"),
        (REPORTS + report(0, 0, 0.2, NORMAL), "give the evaluation log as well"),
        ("category,pass_rate\n1_1,7\n", "7 is not a rate"),
        ('LevelStatus\n"' + "x" * 200_000, "field larger than field limit"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path, text, said):
    (tmp_path / "EvaluationData.csv").write_text(text)
    with pytest.raises(InvalidInput, match=said):
        read_results([tmp_path], None, DOMAIN.version)


def test_reports_must_fit_their_levels(logs):
    path = logs / "NoveltyLikelihoodData.csv"
    path.write_text(path.read_text().replace(NOVEL, "another.xml"))
    with pytest.raises(InvalidInput, match=r"line 4: the evaluation log has no level another.xml"):
        read_results([logs], None, DOMAIN.version)
    with pytest.raises(InvalidInput, match="cannot be read: No such file"):
        read_results([Path("nothing.csv")], None, DOMAIN.version)
