"""Birds on the command line: generating, exporting, and mistakes in one line."""

import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest
from PIL import Image

import openfield as of
from openfield.cli import run_command
from openfield.domains.birds import DOMAIN, BirdsClient
from openfield.journal.reader import Run
from support.birds.serving import free_port


@pytest.fixture
def say(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def give(*words):
        status = run_command([str(word) for word in words])
        said = capsys.readouterr()
        return status, said.out + said.err

    return give


def test_trials_are_generated_to_a_file_or_printed(tmp_path, say):
    source = files("openfield.domains.birds").joinpath("data", "samples", "sequence", "configMeta.xml")
    status, said = say("birds", "generate", source, "-o", tmp_path / "config.xml", "--seed", 3)
    assert (status, said) == (0, f"1 trial in {tmp_path / 'config.xml'}\n")
    assert say("birds", "generate", source, "--seed", 3) == (0, (tmp_path / "config.xml").read_text())
    assert [len(trial.files) for trial in DOMAIN.trials(config=str(tmp_path / "config.xml"), unchanged=0)] == [1]


def test_more_levels_are_made_and_played(tmp_path, say, monkeypatch):
    monkeypatch.setattr(
        "openfield.domains.birds.files.templates.solve", lambda *_: [(1.0, 0.0)]
    )  # it takes half a minute
    pool = tmp_path / "Levels"
    assert say("birds", "generate", "--pool", pool, "--count", 2, "--seed", 9) == (0, f"206 levels in {pool}\n")
    assert len(list(pool.glob("novelty_level_0/type*"))) == 42
    assert DOMAIN.trials(1, levels=str(pool), unchanged=0)[0].files != DOMAIN.trials(1, unchanged=0)[0].files
    for words in (("--pool", pool, "--count", 0), (), ("--count", 3), ("configMeta.xml", "--pool", pool)):
        assert say("birds", "generate", *words)[0] == 2


def test_runs_are_exported_in_the_forms_of_birds(tmp_path, say):
    path = tmp_path / "run.sqlite"
    of.run({"naive": "naive"}, DOMAIN.trials(1, before=1, after=1, unchanged=0), path, workers=0)
    assert "2 levels and 0 reports" in say("export", path, "-f", "logs", "-o", tmp_path / "logs")[1]
    assert "1 rows" in say("export", path, "-f", "measures")[1]
    assert "18 rows" in say("export", path, "-f", "detectors", "-o", tmp_path / "detectors.csv")[1]
    assert (
        "Known: csv, detectors, html, jsonl, latex, logs, markdown, measures, parquet"
        in say("export", path, "-f", "film")[1]
    )


def test_a_recorded_level_becomes_a_film(tmp_path, say, monkeypatch):
    monkeypatch.setattr("openfield.domains.birds.picture.film.FPS", 4)  # thirty pictures a second take their time
    path, film = tmp_path / "run.sqlite", tmp_path / "level.gif"
    of.run({"naive": "naive"}, DOMAIN.trials(1, before=1, after=1, unchanged=0), path, workers=0)
    with Run(path) as run:
        cell = run.cells()[0].id
    status, said = say("show", path, "--cell", cell, "--episode", 1, "--gif", film)
    assert status == 0
    with Image.open(film) as opened:
        assert said.endswith(f" pictures of episode 1 in {film}\n")
        assert 10 < opened.n_frames <= int(said.split()[0])  # what looks alike becomes one, shown longer
        opened.seek(0)
        start = opened.convert("RGB").tobytes()
        opened.seek(opened.n_frames - 1)
        assert opened.convert("RGB").tobytes() != start
    assert say("show", path, "--cell", cell, "--episode", 9, "--gif", film) == (
        2,
        f"openfield: Cell {cell} has no episode 9; it has episodes 0 to 1.\n",
    )
    assert say("show", path, "--gif", film)[1] == "openfield: --film needs --cell.\n"
    assert say("show", path, "--cell", cell, "--episode", 1)[1] == "openfield: --episode needs --film.\n"


def test_trials_are_chosen_as_on_the_original_command_line(tmp_path, say, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = files("openfield.domains.birds").joinpath("data", "samples", "unordered", "configMeta.xml").read_text()
    small = source.replace("amount='100'", "amount='1'").replace("amount='10'", "amount='1'")
    (tmp_path / "configMeta.xml").write_text(small)
    (tmp_path / "trial_list.txt").write_text("0\n")
    run = ("run", "birds", "--config-path", "configMeta.xml", "--workers", 0, "--agent", "random", "--headless")
    for number, words in enumerate((("--trial", "0-3"), ("--load-trial-list",), ("--uninformed-only",))):
        status, said = say(*run, *words, "-o", f"{number}.sqlite")
        assert status == 0, said
    assert "--trial 99 is beyond the last trial, 0" in say(*run, "--trial", "99")[1]
    assert "choose none of the 1 trials" in say(*run, "--informed-only")[1]
    assert "other.txt cannot be read" in say(*run, "--trial-list-path", "other.txt", "--load-trial-list")[1]


CONFIG = """<evaluation><trials><trial notify_novelty="{informed}">
  <game_level_set mode="training" {limits}><game_levels novelty_level="0" type="010101" start="0" end="1" />
  </game_level_set>
  <game_level_set mode="test" attempt_limit_per_level="1">
    <game_levels novelty_level="2" type="010201" start="0" end="0" />
    <game_levels novelty_level="2" type="010204" start="0" end="0" /></game_level_set>
</trial></trials></evaluation>"""


def configure(informed="False", **limits):
    given = " ".join(f"{name}='{value}'" for name, value in limits.items())
    Path("config.xml").write_text(CONFIG.format(informed=informed, limits=given))


@pytest.mark.parametrize("informed", ["True", "False"])
def test_a_configured_run_is_headed_by_what_its_levels_are(say, informed):
    configure(informed, attempt_limit_per_level=1)
    run = ("run", "birds", "--config", "config.xml", "--workers", 0, "--agent", "random", "-o", "run.sqlite")
    status, said = say(*run)
    assert status == 0
    heading = said[: said.index("┏")]
    told = "agents are told" if informed == "True" else "agents are not told"
    assert "a fan behind the first pig pushes birds back" in heading
    assert told in heading
    assert "config=config.xml" in heading
    assert "no novelty" not in said
    assert "--trial 0-4" in say(*run, "--trials", 3)[1]


def test_a_trial_that_nothing_ends_is_refused_and_one_with_any_limit_ends(say):
    run = ("run", "birds", "--config", "config.xml", "--workers", 0, "--agent", "random")
    configure(attempt_limit_per_level=0)
    status, said = say(*run)
    assert (status, said.count("\n")) == (2, 1)
    assert "Trial 0 of config.xml never ends: its training set has no limit" in said
    assert "attempts=0 never end" in say("run", "birds", "--set", "attempts=0")[1]
    assert len(DOMAIN.trials(config="config.xml", unchanged=0)) == 1, "whoever comes over the wire may play it"
    for number, limits in enumerate(({"total_interaction_limit": 9}, {"time_limit": 30})):
        configure(attempt_limit_per_level=0, **limits)
        status, said = say(*run, "-o", f"{number}.sqlite")
        assert status == 0, said
        with Run(Path(f"{number}.sqlite")) as opened:
            (cell,) = opened.cells()
        played = [episode.detail["index"] for episode in cell.episodes if episode.phase == "training"]
        assert (cell.outcome, set(played)) == ("done", {0}), "the first level again and again"


@pytest.mark.parametrize("place", ["no/such.xml", ".", "x" * 300])
@pytest.mark.parametrize("command", ["run", "serve"])
def test_a_configuration_that_is_not_there_is_an_error(say, command, place):
    status, said = say(command, "birds", "--config", place)
    assert (status, said.count("\n")) == (2, 1)
    assert said.startswith(f"openfield: There is no configuration at {place}. --config takes a config.xml")


def test_a_server_that_is_told_to_end_has_no_complaint_of_agents_and_observers_that_are_connected(tmp_path):
    with free_port() as observers:
        pass
    command = [sys.executable, "-m", "openfield", "serve", "birds", "--port", "0", "--observer-port", str(observers)]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        port = int(server.stdout.readline().split(",")[0].rpartition(":")[2])
        with BirdsClient(port=port) as agent, BirdsClient(port=observers) as observer:
            assert agent.configure(3) == observer.configure(3)
            server.terminate()
            _, errors = server.communicate(timeout=60)
    assert errors == ""


@pytest.mark.parametrize("command", ["run", "play", "serve"])
def test_help_shows_the_flags_of_the_domain(say, command):
    status, said = say(command, "birds", "--help-all")
    assert status == 0
    assert "Options of birds" in said
    for option in ("--config, --config-path FILE", "--trial NUMBERS", "--informed-only", "--headless", "--dev"):
        assert option in said
    assert ("--observer-port PORT" in said) is ("--gtshoot-ints" in said) is (command == "serve")
    assert "Options of birds" not in say(command, "--help")[1]
    assert f"openfield {command} DOMAIN --help" in " ".join(say(command, "--help")[1].split())
    assert "Did you mean 'birds'" in say(command, "bird", "-h")[1]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("serve", "birds", "--port", "99999"), "--port cannot be 99999. Must be <= 65535."),
        (("serve", "birds", "--token", "secret"), "--token 8472913"),
        (("serve", "birds", "--host", "0.0.0.0"), "needs a token"),
        (("run", "birds", "--levels", "no/levels"), "no folder of levels at no/levels"),
        (("birds", "generate", "no/such.xml"), "no/such.xml cannot be read"),
        (("run", "birds", "--set", "scenario=flying"), "Setting 'scenario' cannot be 'flying'"),
        (("run", "birds", "--novelty", "gravty"), "Did you mean 'gravity'"),
    ],
)
def test_mistakes_are_one_line(say, words, reason):
    status, said = say(*words)
    assert status == 2
    assert reason in said
    assert said.count("\n") == 1
