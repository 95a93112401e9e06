"""Run files of 0.1.0 are read, verified, reported, shown, exported, replayed and resumed; see data/v0.1.0/README.md."""

import csv
import json
import shutil
from contextlib import nullcontext
from pathlib import Path

import httpx
import msgspec
import pytest

from openfield.cli import run_command
from openfield.errors import InvalidInput
from openfield.journal.reader import Run
from openfield.metrics import BUILT_IN
from openfield.registry import find_domain
from openfield.testing.transcript import replay
from openfield.trial import with_changes
from support.places import ROOT
from support.served import OVER, Team, Visitor, serving

DATA = Path(__file__).parent / "data" / "v0.1.0"
NAMES = sorted(path.stem for path in DATA.glob("*.sqlite"))
PLAYED_HERE = [name for name in NAMES if not name.endswith("-served")]
METRICS = {
    "birds": ("performance", "detection", "adaptation", "passive"),
    "commai": ("performance", "gradual", "detection", "adaptation"),
    "doom": ("performance", "detection", "adaptation", "programme", "characterisation"),
    "doom-arena": ("performance", "detection", "adaptation", "programme", "characterisation"),
    "maze": ("performance", "detection", "adaptation"),
    "ond": ("performance", "detection", "adaptation", "openset"),
}
WITHHELD = {number.name for metric in BUILT_IN for number in metric.numbers if number.belief}
"""Numbers that an agent without beliefs does not have any more."""
ANEW = {"steps_to_solve", "tasks_solved_strictly"}
"""Numbers that are defined anew since."""
GROUP, PAIR = ("agent", "scenario", "trials", "outcomes"), ("scenario", "first", "second")
FILMED = ("birds", "birds-served", "doom", "doom-arena")


@pytest.fixture(autouse=True)
def _home(monkeypatch, tmp_path):
    """Stand where 0.1.0 stood: the maze was found as `maze:MAZE`, and the tests it served beside the run file."""
    monkeypatch.syspath_prepend(ROOT / "examples")
    shutil.copytree(DATA / "ond-served.data", tmp_path / "ond-served.data")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def copied(tmp_path):
    """Copy a run file to where it may be written to."""
    return lambda name: Path(shutil.copy(DATA / f"{name}.sqlite", tmp_path))


@pytest.fixture
def say(capsys):
    """Give a command that must succeed, and return what it printed."""

    def give(*words):
        capsys.readouterr()
        assert run_command([str(word) for word in words]) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    return give


def kept(name):
    return json.loads((DATA / f"{name}.json").read_text())


def test_every_domain_has_a_file():
    assert set(NAMES) == {*METRICS, "birds-served", "ond-served"}


@pytest.mark.filterwarnings("ignore:.*maze.sqlite. beliefs of 0.5 and more")  # it may not be imported to be asked
@pytest.mark.parametrize("name", NAMES)
def test_is_read_and_reported_as_before(name, copied, say, tmp_path):
    path = copied(name)
    assert "is as it was written" in say("verify", path)
    report = json.loads(say("report", path, "--json", "-o", tmp_path / "page.html"))
    versions = {group.pop("versions", "")[:10] for group in report["groups"]}
    assert versions == ({"unknown in"} if name in PLAYED_HERE else {""})  # 0.1.0 did not record which one played
    assert (report.pop("runs")[0]["run"], report.pop("provenance")) == (path.name, [])
    hold_reports_equal(report, kept(name)["report"])
    assert json.loads(say("show", path, "--json")) == kept(name)["show"]
    say("export", path, "-o", tmp_path / "episodes.csv")
    exported = rows(tmp_path / "episodes.csv")
    assert {row.pop("agent_version") for row in exported} == ({"unknown"} if name in PLAYED_HERE else {""})
    assert {row.pop("person") for row in exported} == {""}
    assert exported == rows(DATA / f"{name}.episodes.csv")
    chosen = [word for metric in METRICS[name.removesuffix("-served")] for word in ("--metric", metric)]
    say("export", path, *chosen, "-o", tmp_path / "cells.csv")
    for new, old in zip(rows(tmp_path / "cells.csv"), rows(DATA / f"{name}.cells.csv"), strict=True):
        same = [key for key in old if key not in ANEW and (new[key] or key not in WITHHELD)]
        assert {key: new[key] for key in same} == {key: old[key] for key in same}


def hold_reports_equal(new, old):
    """Every value and interval of 0.1.0 is reported again, but for numbers that are withheld or defined anew since."""
    assert (new["outcomes"], new.get("failures")) == (old["outcomes"], old.get("failures"))
    assert {number["name"] for number in old["numbers"]} <= {number["name"] for number in new["numbers"]}
    for group, before in zip(new["groups"], old["groups"], strict=True):
        assert [group[key] for key in GROUP] == [before[key] for key in GROUP]
        for name, estimate in before["estimates"].items():
            hold_estimates_equal(name, group["estimates"][name], estimate)
    for comparison, before in zip(new["comparisons"], old["comparisons"], strict=True):
        assert [comparison[key] for key in PAIR] == [before[key] for key in PAIR]
        hold_estimates_equal("difference", comparison["difference"], before["difference"])
        assert before["improvement"]["mean"] in (None, comparison["improvement"]["mean"])


def hold_estimates_equal(name, new, old):
    if name in ("delay", *ANEW) or (name in WITHHELD and new["mean"] is None):
        return
    assert new["n"] == old["n"]
    if old["mean"] is not None:
        assert new == old


@pytest.mark.parametrize("name", NAMES)
def test_ids_are_as_before(name):
    with Run(DATA / f"{name}.sqlite") as run:
        ids = [(cell.cell.id, cell.trial.id) for cell in run.cells(with_episodes=False)]
    assert ids == [(cell["cell"], cell["trial"]) for cell in kept(name)["ids"]]


@pytest.mark.parametrize("name", PLAYED_HERE)
def test_trials_are_made_as_before(name):
    """The trials of the file come out of the domain again, with the ids they had, but for the domain's version."""
    plan, version = kept(name)["plan"], versions(name)
    place = {"onset": 0} if plan["domain"].startswith("doom") else {}  # where a test of three episodes changed then
    trials = find_domain(plan["domain"]).trials(
        count=plan["count"], novelty=plan["novelty"], unchanged=0, **place, **plan["settings"]
    )
    made = with_changes(trials, lambda trial: msgspec.structs.replace(trial, version=version))
    assert {trial.id for trial in made} == {cell["trial"] for cell in kept(name)["ids"]}


def versions(name):
    """Return the version of the domain that the trials of a file are of."""
    with Run(DATA / f"{name}.sqlite") as run:
        (version,) = {trial.version for trial in run.trials()}
    return version


def plays_on(name):
    """Return whether the domain still has the rules that the trials of a file were made for."""
    with Run(DATA / f"{name}.sqlite") as run:
        (known,) = {trial.domain for trial in run.trials()}
        domain = find_domain(run.facts.get(f"domain {known}", known))
    return versions(name) in (domain.version, *domain.older_versions)


@pytest.mark.parametrize("name", NAMES)
def test_is_replayed_or_refused(name):
    with Run(DATA / f"{name}.sqlite") as run:
        for cell in run.cells():
            domain = find_domain(run.facts.get(f"domain {cell.trial.domain}", cell.trial.domain))
            with nullcontext() if plays_on(name) else pytest.raises(InvalidInput, match="not replayed or resumed"):
                _, fault = replay(domain, cell.trial, run.raw_steps(cell.id, cell.attempt))
                assert fault is None


@pytest.mark.parametrize("name", NAMES)
def test_turns_are_shown(name, copied, say, tmp_path, monkeypatch):
    monkeypatch.setattr("openfield.domains.birds.picture.film.FPS", 2)  # thirty pictures a second take their time
    path = copied(name)
    cell = kept(name)["ids"][0]["cell"]
    assert json.loads(say("show", path, "--cell", cell, "--json"))
    assert json.loads(say("show", path, "--cell", cell, "--turn", "1", "--json"))
    if name in FILMED and plays_on(name):
        say("show", path, "--cell", cell, "--gif", tmp_path / "film.gif")
        assert (tmp_path / "film.gif").read_bytes().startswith(b"GIF8")


@pytest.mark.parametrize("name", PLAYED_HERE)
def test_is_resumed_to_the_end_or_refused(name, copied, say, tmp_path, capsys):
    path = copied(name)
    if not plays_on(name):
        assert run_command(["resume", str(path), "--workers", "0"]) == 2
        assert "not replayed or resumed" in capsys.readouterr().err
        return
    trust = ("--trust",) if name == "maze" else ()  # its domain is a file, and 0.1.0 signed nothing
    say("resume", path, "--workers", "0", *trust)
    say("export", path, "-o", tmp_path / "episodes.csv")
    exported = rows(tmp_path / "episodes.csv")
    assert {row.pop("agent_version") for row in exported} <= {"unknown", ""}
    assert {row.pop("person") for row in exported} == {""}
    assert exported == rows(DATA / f"{name}.resumed.csv")
    assert {cell["outcome"] for cell in json.loads(say("show", path, "--json"))} <= {"done", "truncated"}
    say("verify", path)


def test_a_served_session_goes_on(copied, say):
    copied("ond-served")
    path, left = Path("ond-served.sqlite"), json.loads((DATA / "ond-served.visit.json").read_text())
    settings = ("known=3", "unknown=2", "training=30", "round_size=5", "before=1", "after=2")
    options = [word for each in settings for word in ("--set", each)]
    with (
        serving(path, "ond", "--trials", "2", *options) as port,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=600) as http,
    ):
        visitor = Visitor(http, left["session"])
        latest = visitor.latest()
        assert latest["next_rounds"] == {left["test"]: 1}
        visitor.play(left["test"], first=1)
        assert left["test"] in visitor.latest()["finished_tests"]
    assert [cell["outcome"] for cell in json.loads(say("show", path, "--json"))] == ["done", "done"]


def test_a_served_team_goes_on(copied, say):
    path = copied("birds-served")
    with serving(path, "birds", "--trials-of", str(path), "--observer-port", "0") as port, Team(port, 28888) as team:
        team.play(until=OVER)
    (cell,) = json.loads(say("show", path, "--json"))
    assert (cell["outcome"], cell["episodes"]) == ("done", 2)


def rows(path):
    """Return the rows of a table, less the times that nobody can repeat."""
    with path.open(newline="") as file:
        return [{key: value for key, value in row.items() if "seconds" not in key} for row in csv.DictReader(file)]
