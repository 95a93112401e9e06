"""Results of the original game and published tables stand beside runs of our own."""

import csv
import json
from pathlib import Path

import pytest

import openfield as of
from openfield.cli.main import run_command
from openfield.domains.birds import DOMAIN
from openfield.domains.birds.files.results import read_results
from openfield.domains.birds.novelty import describe_folders
from openfield.errors import InvalidInput
from openfield.files.csv_files import read_csv, write_csv
from openfield.journal.reader import Run
from openfield.result import Result
from openfield.runner.importing import import_trials

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


def test_reports_of_a_level_that_never_ended_are_left_out(tmp_path):
    told = [report(number, number // 2, 0.2 + number / 10, (NORMAL, NOVEL)[number // 2]) for number in range(4)]
    (tmp_path / "EvaluationData.csv").write_text(LEVELS + level(0, "Pass", NORMAL))
    (tmp_path / "NoveltyLikelihoodData.csv").write_text(REPORTS + "".join(told))
    with pytest.warns(UserWarning, match="line 4: its level never ended"):
        (found,) = read_results([tmp_path], "me", DOMAIN.version)
    assert [each.belief.novel for each in found.episodes] == [pytest.approx(0.3)]


def test_an_execution_begins_where_the_index_does(tmp_path):
    path = tmp_path / "EvaluationData.csv"
    path.write_text(LEVELS + (level(0, "Pass", NORMAL) + level(1, "Fail", NOVEL)) * 2)
    assert [len(each.episodes) for each in read_results([path], None, DOMAIN.version)] == [2, 2]


def test_trials_of_several_players_stay_apart_under_one_name(tmp_path):
    rows = [f"{who},0,{name},1,{int(name == NOVEL)}\n" for who in ("anna", "ben") for name in (NORMAL, NOVEL)]
    (tmp_path / "people.csv").write_text("player,trial,level name,passed,detected\n" + "".join(rows))
    for player, status in (("p1", "Pass"), ("p2", "Fail")):
        (tmp_path / player).mkdir()
        (tmp_path / player / "EvaluationData.csv").write_text(LEVELS + level(0, status, NORMAL))
        (tmp_path / player / "NoveltyLikelihoodData.csv").write_text(REPORTS + report(0, 0, 0.2, NORMAL))
    for source, played in ((tmp_path / "people.csv", [2, 2]), (tmp_path, [2, 2, 1, 1])):
        found = read_results([source], "human", DOMAIN.version)
        assert {each.agent for each in found} == {"human"}
        assert sorted((len(each.episodes) for each in found), reverse=True) == played
        assert len({each.trial.id for each in found}) == len(played), "no repeats of one trial"
    (alone,) = read_results([tmp_path / "p2"], "human", DOMAIN.version)
    together = read_results([tmp_path / "p1", tmp_path / "p2"], "human", DOMAIN.version)
    assert alone.trial.id == together[1].trial.id, "not imported twice"
    (again,) = read_results([tmp_path / "p2", *sorted((tmp_path / "p2").iterdir())], "human", DOMAIN.version)
    assert len(again.episodes) == 1, "a file is read once"
    assert len({each.trial.id for each in read_results([tmp_path / "people.csv"], None, DOMAIN.version)}) == 1
    apart = [tmp_path / "p1" / "EvaluationData.csv", tmp_path / "p2" / "NoveltyLikelihoodData.csv"]
    assert len(read_results(apart, "human", DOMAIN.version)) == 1


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
    assert found["human"].trial.settings == {"scenario": "single"}, "in one table with the others"
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
    for again in (found.values(), read_results([logs / "anna" / "EvaluationData.csv"], None, DOMAIN.version)):
        assert not any("score" in each.episodes[0].detail for each in again), "no score is made up"


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


@pytest.mark.parametrize(("agent", "step"), [("naive", 2), ("detector", 0), ("detector", 2)])
def test_what_is_exported_is_imported_to_the_same_numbers_in_the_same_table(tmp_path, capsys, agent, step):
    own, back, logs = tmp_path / "own.sqlite", tmp_path / "back.sqlite", tmp_path / "logs"
    settings = {"scenario": "single", "novelty": "gravity", "report_step": step, "before": 3, "after": 3}
    of.run({agent: agent}, DOMAIN.trials(2, **settings), own, workers=0)
    assert run_command(["export", str(own), "--format", "logs", "-o", str(logs)]) == 0
    assert run_command(["birds", "import", str(logs), "-o", str(back), "--agent-name", agent]) == 0
    capsys.readouterr()
    assert run_command(["report", str(own), str(back), "--json"]) == 0
    played, imported = json.loads(capsys.readouterr().out)["groups"]
    assert (played["agent"], imported["agent"]) == (agent, f"{agent} (imported)")
    assert played["scenario"] == imported["scenario"], "one table"
    assert (played["trials"], played["unchanged"]) == (imported["trials"], imported["unchanged"])
    assert {"effect", "concordance"} <= played["estimates"].keys()
    for name in played["estimates"]:
        assert played["estimates"][name] == imported["estimates"][name], name


@pytest.mark.parametrize("tests", [0, 2])
def test_the_sets_of_a_configured_trial_are_exported_and_imported_to_the_same_numbers(tmp_path, tests):
    levels = "<game_levels novelty_level='{}' type='010601' start='0' end='1'/>"
    test = f"<game_level_set mode='test' attempt_limit_per_level='1'>{levels.format(6)}</game_level_set>"
    (tmp_path / "config.xml").write_text(
        "<evaluation><trials><trial checkpoint_interaction_limit='3'>"
        "<game_level_set mode='training' attempt_limit_per_level='2'>"
        f"{levels.format(0)}{levels.format(6)}</game_level_set>{test * tests}</trial></trials></evaluation>"
    )
    own, back, logs = tmp_path / "own.sqlite", tmp_path / "back.sqlite", tmp_path / "logs"
    of.run({"naive": "naive"}, DOMAIN.trials(config=str(tmp_path / "config.xml"), unchanged=0), own, workers=0)
    assert run_command(["export", str(own), "--format", "logs", "-o", str(logs)]) == 0
    with pytest.warns(UserWarning, match="no results"):
        found = read_results([logs], "naive", DOMAIN.version)
    import_trials(DOMAIN, found, back)
    played, imported = Result([own, back]).summary().groups
    assert played.scenario == imported.scenario
    assert played.estimates["after"].n == played.estimates["set_training"].n == 1
    assert ("set_2" in played.estimates) is bool(tests)
    assert played.estimates == imported.estimates


def test_a_configured_run_and_a_log_of_the_same_levels_share_a_table(logs, tmp_path, capsys):
    levels = "<game_levels novelty_level='{}' type='010601' start='0' end='0'/>"
    (tmp_path / "config.xml").write_text(
        "<evaluation><trials><trial><game_level_set mode='training' attempt_limit_per_level='1'>"
        f"{levels.format(0)}{levels.format(6)}</game_level_set></trial></trials></evaluation>"
    )
    own, run = tmp_path / "own.sqlite", tmp_path / "imported.sqlite"
    of.run({"naive": "naive"}, DOMAIN.trials(config=str(tmp_path / "config.xml"), unchanged=0), own, workers=0)
    assert run_command(["birds", "import", str(logs), "-o", str(run)]) == 0
    scenarios = {group.scenario for group in Result([run, own]).summary().groups}
    assert len(scenarios) == 1


def test_agents_of_exported_logs_keep_their_names(tmp_path):
    own, logs = tmp_path / "own.sqlite", tmp_path / "logs"
    trials = DOMAIN.trials(1, before=1, after=1, scenario="single", unchanged=0)
    of.run({"one": "random", "a/b": "random"}, trials, own, workers=0)
    assert run_command(["export", str(own), "--format", "logs", "-o", str(logs)]) == 0
    with pytest.warns(UserWarning, match="no results"):
        assert {each.agent for each in read_results([logs], None, DOMAIN.version)} == {"one", "a/b"}


def test_ids_are_exported_as_they_are(tmp_path):
    write_csv(tmp_path / "ids.csv", ["ids", "text"], [["-1 3 4", "-1+cmd"]])
    assert (tmp_path / "ids.csv").read_text().splitlines() == ["ids,text", "-1 3 4,'-1+cmd"]


@pytest.mark.parametrize("agent", [None, "human"])
def test_reports_of_somebody_who_played_no_level_do_not_refuse_the_folder(logs, agent):
    nobody = logs.parent / "nobody"
    nobody.mkdir()
    (nobody / "EvaluationData.csv").write_text(LEVELS)
    (nobody / "NoveltyLikelihoodData.csv").write_text(REPORTS + report(0, 0, 0.2, NORMAL))
    with pytest.warns(UserWarning, match="left out") as told:
        (found,) = read_results([logs.parent], agent, DOMAIN.version)
    assert f"The reports of {agent or 'nobody'} in trial 0 have no levels in" in str(told[1].message)
    assert [each.belief.novel for each in found.episodes] == [0.1, 0.2, 0.9, 0.75]


@pytest.mark.parametrize("text", ["two\nlines", "two\r\nlines", "a\u2028b", "a\x0bb\x85c", '"a" b', "-1 + 2"])
def test_words_of_agents_do_not_break_an_exported_log(tmp_path, text):
    write_csv(tmp_path / "log.csv", ["id", "text", "n"], [["-1 3 4", text, 7], ["", "", 8]])
    rows = read_csv(tmp_path / "log.csv")[1:]
    assert [(row[0], row[1].lstrip("'"), row[2]) for _, row in rows] == [("-1 3 4", text, "7"), ("", "", "8")]


def test_a_file_without_results_is_named_and_skipped(logs):
    (logs / "nobody.csv").write_text(LEVELS)
    (logs / "empty.csv").write_text("")
    (logs / "unplayed.csv").write_text(LEVELS + level(0, "", NORMAL, trial=9))
    with pytest.warns(UserWarning, match="left out") as told:
        found = read_results([logs], None, DOMAIN.version)
    assert sorted(Path(str(each.message).split(" ")[0]).name for each in told) == [
        "empty.csv",
        "nobody.csv",
        "unplayed.csv",
    ]
    assert [len(each.episodes) for each in found] == [4]


def test_phyq_logs_have_no_novelty(tmp_path):
    path = tmp_path / "EvaluationData.csv"
    path.write_text(LEVELS + level(0, "Pass", "2_01_06_0.xml").replace("basic", "novel"))
    (found,) = read_results([path], None, DOMAIN.version)
    assert (found.trial.novelty, found.episodes[0].novel, found.trial.settings) == ((), False, {"scenario": "rolling"})
    assert describe_folders(["novelty_level_0/type1"]) == ["novelty level 0, type 1"]


def test_tables_of_detectors_are_imported_and_a_total_over_all_scenarios_is_reported(tmp_path, capsys):
    (tmp_path / "detectors.csv").write_text(
        "agent,novelty_level,scenario,detector,window,parameter,%CDT,%WDT,delay\n"
        "Datalab,1,single,pre-assumed moving average,10,1.5,44.8,3.3,7.5\n"
        "Datalab,2,single,pre-assumed moving average,10,1.5,50.8,1.3,\n"
    )
    people = "player,trial,level name,passed,detected\n"
    for trial in range(45):  # 43 of 45 trials are detected: the published share of people
        scenario = trial % 5 + 1
        for novel, name in enumerate(("0", "6")):
            said = int(novel and trial > 1)
            people += f"anna,{trial},00001_0_{scenario}_01060{scenario}_{name}_{scenario}.xml,1,{said}\n"
    (tmp_path / "people.csv").write_text(people)
    run = tmp_path / "all.sqlite"
    assert run_command(["birds", "import", str(tmp_path), "-o", str(run)]) == 0
    capsys.readouterr()
    assert run_command(["report", str(run), "--json", "-o", str(tmp_path / "page.html")]) == 0
    told = json.loads(capsys.readouterr().out)
    numbers = {each["agent"]: each["estimates"] for each in told["totals"]}
    assert numbers["anna"]["correct"]["mean"] == pytest.approx(43 / 45, abs=1e-3)
    detector = numbers["Datalab (pre-assumed moving average, 10, 1.5)"]
    assert (detector["correct"]["mean"], detector["delay"]["mean"]) == (pytest.approx(0.478), 6.5)
    assert "All scenarios together" in (tmp_path / "page.html").read_text()
    assert run_command(["report", str(run)]) == 0
    assert "All scenarios together" in capsys.readouterr().out


def test_published_rates_have_a_total_over_all_scenarios(tmp_path, capsys):
    rates = {"1_01": 0.96, "1_02": 0.99, "2_01": 0.85, "3_06": 0.98, "3_09": 0.87}
    rows = "".join(f"{n},{kind},{rate},Human,{n},\n" for n, (kind, rate) in enumerate(rates.items()))
    (tmp_path / "all_agents.csv").write_text(",category,pass_rate,name,event,description\n" + rows)
    run = tmp_path / "all.sqlite"
    assert run_command(["birds", "import", str(tmp_path), "-o", str(run)]) == 0
    capsys.readouterr()
    assert run_command(["report", str(run), "--numbers", "before"]) == 0
    total = capsys.readouterr().out.partition("All scenarios together")[2]
    assert "Performance in the test │ 0.93" in total
    page = (tmp_path / "all.html").read_text()
    assert "Performance in the test" in page.partition("All scenarios together")[2]


def test_published_means_have_no_interval_and_ours_are_read_back(tmp_path):
    rows = "".join(f"Datalab,gravity,single,band,10,{n},{40 + n},3,{n + 1}\n" for n in range(8))
    (tmp_path / "measures.csv").write_text(
        "agent,novelty,scenario,trials,CDT%,WDT%,delay,normal,novel,set\nme,gravity,single,5,60,20,2.5,0.8,0.4,all\n"
        "me,gravity,single,5,,,,,,test set 1\n"
    )
    (tmp_path / "same.csv").write_text("agent,novelty,scenario,detector,window,sd,CDT,WDT,delay\n" + rows)
    run = tmp_path / "all.sqlite"
    with pytest.warns(UserWarning, match="1 of 2 rows of .*measures.csv have no result"):
        found = read_results([tmp_path], None, DOMAIN.version)
    import_trials(DOMAIN, [each._replace(agent=each.agent.split(" ")[0]) for each in found], run)
    numbers = {group.agent: group.estimates for group in Result([run]).summary().groups}
    assert (numbers["Datalab"]["correct"].n, numbers["Datalab"]["correct"].low) == (8, None)
    assert numbers["Datalab"]["correct"].mean == pytest.approx(0.435)
    own = {name: numbers["me"][name].mean for name in ("correct", "alarmed", "delay", "before", "after")}
    assert own == {"correct": 0.6, "alarmed": 0.2, "delay": 1.5, "before": 0.8, "after": 0.4}


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
        ("a,b\n1,2\n", "is not a table of results"),
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
