"""Birds on the command line: generating, exporting, and mistakes in one line."""

from importlib.resources import files

import pytest
from PIL import Image

import openfield as of
from openfield.cli import run_command
from openfield.domains.birds import DOMAIN
from openfield.view import Run


@pytest.fixture
def say(capsys):
    def give(*words):
        status = run_command([str(word) for word in words])
        said = capsys.readouterr()
        return status, said.out + said.err

    return give


def test_trials_are_generated_to_a_file_or_printed(tmp_path, say):
    source = files("openfield.domains.birds").joinpath("samples", "sequence", "configMeta.xml")
    status, said = say("generate", "birds", source, "-o", tmp_path / "config.xml", "--seed", 3)
    assert (status, said) == (0, f"1 trials in {tmp_path / 'config.xml'}\n")
    assert say("generate", "birds", source, "--seed", 3) == (0, (tmp_path / "config.xml").read_text())
    assert [len(trial.files) for trial in DOMAIN.trials(config=str(tmp_path / "config.xml"))] == [1]


def test_runs_are_exported_in_the_forms_of_birds(tmp_path, say):
    path = tmp_path / "run.sqlite"
    of.run({"naive": "naive"}, DOMAIN.trials(1, before=1, after=1), path, workers=0)
    assert "2 levels and 0 reports" in say("export", path, "-f", "logs", "-o", tmp_path / "logs")[1]
    assert "1 rows" in say("export", path, "-f", "measures")[1]
    assert "Known: csv, jsonl, logs, measures, parquet" in say("export", path, "-f", "film")[1]


def test_a_recorded_level_becomes_a_film(tmp_path, say):
    path, film = tmp_path / "run.sqlite", tmp_path / "level.gif"
    of.run({"naive": "naive"}, DOMAIN.trials(1, before=1, after=1), path, workers=0)
    with Run(path) as run:
        cell = run.cells()[0].id
    status, said = say("show", path, "--cell", cell, "--episode", 1, "--gif", film)
    assert status == 0
    with Image.open(film) as opened:
        assert said.endswith(f" pictures of episode 1 in {film}\n")
        assert 20 < opened.n_frames <= int(said.split()[0])  # what looks alike becomes one, shown longer
        opened.seek(0)
        start = opened.convert("RGB").tobytes()
        opened.seek(opened.n_frames - 1)
        assert opened.convert("RGB").tobytes() != start
    assert say("show", path, "--cell", cell, "--episode", 9, "--gif", film) == (
        2,
        f"openfield: Cell {cell} has episodes 0 to 1; 9 is none of them.\n",
    )
    assert say("show", path, "--gif", film)[1] == "openfield: --gif needs --cell.\n"
    assert say("show", path, "--cell", cell, "--episode", 1)[1] == "openfield: --episode needs --gif.\n"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("run", "birds", "--config", "no/such.xml"), "no/such.xml cannot be read"),
        (("run", "birds", "--levels", "no/levels"), "no folder of levels at no/levels"),
        (("generate", "birds", "no/such.xml"), "no/such.xml cannot be read"),
        (("run", "birds", "--set", "scenario=flying"), "Setting 'scenario' cannot be 'flying'"),
        (("run", "birds", "--novelty", "gravty"), "Did you mean 'gravity'"),
    ],
)
def test_mistakes_are_one_line(say, words, reason):
    status, said = say(*words)
    assert status == 2
    assert reason in said
    assert said.count("\n") == 1
