"""Birds on the command line: generating, exporting, and mistakes in one line."""

from importlib.resources import files

import pytest

import openfield as of
from openfield.cli import run_command
from openfield.domains.birds import DOMAIN


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
    assert "pictures of level" in say("export", path, "-f", "gif", "--episode", 1)[1]
    assert (tmp_path / "run.gif").read_bytes()[:3] == b"GIF"
    status, said = say("export", path, "-f", "gif", "--episode", 9)
    assert status == 2
    assert "has episodes 0 to 1, not 9" in said
    assert "Known: csv, gif, jsonl, logs, measures, parquet" in say("export", path, "-f", "film")[1]


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
