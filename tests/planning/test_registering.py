from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import openfield as of
from openfield.api import resume
from openfield.errors import InvalidInput, UnknownName
from openfield.metrics.selection import pick_numbers
from openfield.provenance.registration import read_registration_file
from openfield.report import words
from openfield.result import Result
from support.players import copycat
from support.worlds import TINY

ASKED = {"register": "asked.json", "question": "Does copycat notice?", "registered": "concordance,after"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def play(agents: Any = copycat, count: int = 6, run: str = "run.sqlite", **options: Any) -> Result:
    return of.run(agents, of.trials(TINY, count), run, **options)


def test_a_file_and_the_run_say_before_the_first_trial_what_is_asked_of_whom_and_when_it_stops() -> None:
    agents = {"copycat": copycat, "random": "random"}
    result = play(agents, until="decided", **ASKED)
    written = read_registration_file(Path("asked.json"))
    assert result.registration == written
    assert written.question == "Does copycat notice?"
    assert written.numbers == ["concordance", "after"]
    assert set(written.trials) == {cell.trial.id for cell in result.cells}
    assert written.stopping == "--until 'decided' (batches of 5 in tiny, 9 trials at most)"
    assert written.plan == result.records[0].plan
    assert written.agents["tiny"]["random"] in {cell.player for cell in result.cells}
    assert result.cautions[0].startswith("Registered ")


def test_a_report_separates_what_was_registered_from_what_was_found_on_the_way() -> None:
    summary = play(**ASKED).summary()
    titles = [words.name_number(number, summary.groups[0].scenario)[0] for number in summary.numbers]
    assert {title for title in titles if "not registered" not in title} == {
        "Concordance",
        "Performance after the onset",
    }
    marks = [number.registered for number in pick_numbers(summary, summary.groups)]
    assert marks == sorted(marks, reverse=True)
    assert set(marks) == {True, False}


def test_the_usual_numbers_and_those_of_the_rule_are_registered_unless_others_are_named() -> None:
    play(register="asked.json", until="copycat: training width < 0.9")
    assert read_registration_file(Path("asked.json")).numbers[-3:] == ["delay", "alarmed", "training"]


def test_agents_and_trials_that_came_later_are_named() -> None:
    play(**ASKED)
    result = of.run({"other": copycat}, of.trials(TINY, 7), "run.sqlite")
    assert "other was not registered: what is said of it was found on the way." in result.cautions
    assert "1 of its trials was not registered." in result.cautions


def test_the_same_command_goes_on_and_another_question_is_refused() -> None:
    before = play(**ASKED).registration
    assert play(**ASKED).registration == before
    for change, said in (
        ({"question": "Another?"}, "with another question"),
        ({"registered": "after"}, "with other numbers"),
    ):
        with pytest.raises(InvalidInput, match=said):
            play(**ASKED | change)
    with pytest.raises(InvalidInput, match="was written with other trials"):
        play(count=7, run="other.sqlite", **ASKED)
    with pytest.raises(InvalidInput, match="registered before its first trial"):
        resume("run.sqlite", register="x.json")  # type: ignore[call-arg]


def test_a_run_that_was_begun_is_not_registered_afterwards() -> None:
    play()
    with pytest.raises(InvalidInput, match="was begun without being registered"):
        play(**ASKED)
    assert not Path("asked.json").exists()


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"question": "Why?"}, InvalidInput, "add --register FILE"),
        (ASKED | {"registered": "nothing"}, UnknownName, "Unknown number 'nothing'"),
        (ASKED | {"question": "a\nb"}, InvalidInput, "all of which can be printed"),
        (ASKED | {"share": "0/2"}, InvalidInput, "leave out --share"),
        ({"register": "run.sqlite"}, InvalidInput, "run.sqlite is the run file. Name another one: --register run.json"),
    ],
)
def test_mistakes_are_said_before_anything_is_written(
    folder: Path, options: dict[str, str], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        play(**options)
    assert list(folder.iterdir()) == []


def test_a_file_that_is_no_registration_or_was_changed_is_refused() -> None:
    Path("asked.json").write_text("{}")
    with pytest.raises(InvalidInput, match="is not a registration of a run"):
        play(**ASKED)
    Path("asked.json").unlink()
    play(**ASKED)
    told = json.loads(Path("asked.json").read_text())
    Path("asked.json").write_text(json.dumps(told | {"question": "Does it fail?"}))
    with pytest.raises(InvalidInput, match="was changed after it was signed"):
        read_registration_file(Path("asked.json"))
