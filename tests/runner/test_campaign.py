"""Campaigns: an experiment file that names several domains, and agents in several versions."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from openfield.errors import InvalidInput
from openfield.journal.reader import Run
from openfield.registry import find_domain
from openfield.result import Result
from openfield.runner.campaign import Part, plan_parts
from openfield.runner.experiment import Experiment, make_experiment, read_experiment
from openfield.runner.plan import Plan
from openfield.runner.run import run_plan
from support.places import MAZE

SHORT = {"training": 0, "before": 1, "after": 1, "unchanged": 0}


@pytest.fixture
def cellar(tmp_path: Path) -> str:
    """A second domain: the maze under another name."""
    path = tmp_path / "cellar.py"
    path.write_text(Path(MAZE).read_text().replace('= "maze",', '= "cellar",'))
    return str(path)


def make(cellar: str, **keys: Any) -> Experiment:
    first = {"domain": MAZE, "novelty": ["swapped", "slip"], "trials": 3, "agents": {"compass": "compass"}}
    second = {"domain": cellar, "settings": {"size": 7}}
    usual = {"trials": 2, "settings": SHORT, "agents": ["random"], "domains": [first, second]}
    return make_experiment({**usual, **keys})


def plan(experiment: Experiment, run: Path = Path("x.sqlite")) -> Plan:
    return plan_parts([Part(each, find_domain(each.domain)) for each in experiment.split()], run)


def count(made: Plan) -> Counter[tuple[str, tuple[str, ...], str]]:
    return Counter((cell.trial.domain, cell.trial.novelty, cell.agent) for cell in made.cells)


def test_each_domain_has_its_own_keys_beside_those_of_the_whole(cellar: str) -> None:
    made = plan(make(cellar))
    assert count(made) == {
        **{("maze", (novelty,), agent): 3 for novelty in ("swapped", "slip:easy") for agent in ("random", "compass")},
        ("cellar", ("swapped",), "random"): 2,
    }
    sizes = {cell.trial.domain: cell.trial.settings.get("size") for cell in made.cells}
    assert sizes == {"maze": None, "cellar": 7}
    assert all(cell.trial.settings["before"] == 1 for cell in made.cells)
    assert made.sources == {"random": "random", "compass": "compass"}


def test_what_the_command_line_changes_wins_in_every_domain(cellar: str) -> None:
    made = plan(make(cellar).change({"trials": 1, "agents": ["compass"], "settings": {"size": 9}}))
    assert set(count(made).values()) == {1}
    assert set(made.agents) == {"compass"}
    assert {(cell.trial.settings["size"], cell.trial.settings["before"]) for cell in made.cells} == {(9, 1)}
    assert {cell.trial.novelty for cell in made.cells if cell.trial.domain == "maze"} == {("swapped",), ("slip:easy",)}


def test_an_experiment_of_one_domain_is_its_own_only_part() -> None:
    experiment = make_experiment({"domain": MAZE, "trials": 1})
    assert experiment.split() == [experiment]


def test_all_domains_of_a_sealed_run_share_one_seed(cellar: str, tmp_path: Path) -> None:
    path = tmp_path / "sealed.sqlite"
    made = plan(make(cellar, sealed=True), path)
    assert {key for key in made.facts if "seed" in key} == {"sealed seed"}
    run_plan(made, path, workers=0)
    again = plan(make(cellar, sealed=True), path)
    assert [cell.id for cell in again.cells] == [cell.id for cell in made.cells]
    assert plan(make(cellar, sealed=True), tmp_path / "other.sqlite").facts != made.facts


def test_a_campaign_is_played_into_one_file(cellar: str, tmp_path: Path) -> None:
    run_plan(plan(make(cellar)), path := tmp_path / "x.sqlite", workers=0)
    with Run(path) as run:
        assert {cell.outcome for cell in run.cells()} == {"done"}
        assert {trial.domain for trial in run.trials()} == {"maze", "cellar"}
    groups = {(group.scenario.domain, group.agent) for group in Result([path]).summary().groups}
    assert groups == {("maze", "random"), ("maze", "compass"), ("cellar", "random")}


def test_versions_of_an_agent_play_as_agents_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "agents.toml").write_text(f"""
        domain = "{MAZE}"
        [agents.net]
        agent = "my.py:Net"
        parameters = {{depth = 2}}
        resources = {{num_gpus = 1}}
        [agents.net.versions]
        v1 = {{rate = 0.1}}
        v2 = {{rate = 0.5, depth = 3}}
        old = "old.py:Net"
    """)
    experiment = read_experiment(tmp_path / "agents.toml")
    assert {name: agent.text for name, agent in experiment.read_agents().items()} == {
        "net-v1": "my.py:Net(depth=2, rate=0.1)",
        "net-v2": "my.py:Net(depth=3, rate=0.5)",
        "net-old": "old.py:Net(depth=2)",
    }
    assert experiment.needs == {key: {"num_gpus": 1} for key in experiment.read_agents()}


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"domains": [{"novelty": "swapped"}]}, "table 1 of domains: missing required field `domain`"),
        ({"domains": [{"domain": MAZE}, {"domain": MAZE, "workers": 1}]}, "table 2 of domains: Unknown key 'workers'"),
        (
            {"domains": [{"domain": MAZE, "trials": 0}]},
            "table 1 of domains: 'trials' must be a whole number, 1 or more",
        ),
        ({"domains": "maze"}, "'domains' must be a list, not text"),
    ],
)
def test_a_mistake_in_a_table_is_said_with_its_number(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make_experiment(keys).split()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("trials = 1", "missing required field `domain`"),
        ('domain = "a.py"\ndomains = [{domain = "b.py"}]', "names one domain and `domains` several"),
        ('domain = "a.py"\n[agents.net]\nversions = {a = {}}', r"agents\.net: missing required field `agent`"),
        ('domain = "a.py"\n[agents]\nnet-a = "random"\nnet = {versions = {a = "b.py:B"}}', "Two agents are called"),
    ],
)
def test_a_mistake_in_the_file_names_the_file(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "e.toml").write_text(text)
    with pytest.raises(InvalidInput, match=message):
        read_experiment(tmp_path / "e.toml").read_agents()


def test_one_name_stands_for_one_agent_and_one_domain(cellar: str, tmp_path: Path) -> None:
    copy = tmp_path / "cellar_too.py"  # not copy.py: from now on Python looks for modules beside it
    copy.write_text(Path(MAZE).read_text())
    tables = [{"domain": MAZE}, {"domain": str(copy)}]
    with pytest.raises(InvalidInput, match="are both called 'maze'"):
        plan(make(cellar, domains=tables))
    find_domain(MAZE)  # the copy had taken its name
    tables = [{"domain": MAZE, "agents": {"mine": "random"}}, {"domain": cellar, "agents": {"mine": "compass"}}]
    with pytest.raises(InvalidInput, match="Two agents are called 'mine': random and compass"):
        plan(make(cellar, domains=tables))
