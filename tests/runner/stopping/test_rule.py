from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from openfield.errors import DamagedRun, InvalidInput
from openfield.journal.schema import RULE_FACT
from openfield.runner.experiment import make_experiment
from openfield.runner.stopping.rule import Aim, StoppingRule, check_rule, join_rules, parse_aim, read_rule
from support.worlds import TINY

RULE = StoppingRule(until="decided", negligible=0.05, batches={"tiny": 5}, most=50)
FACTS = {"openfield": "0.2.0", RULE_FACT: msgspec.json.encode(RULE).decode()}


@pytest.mark.parametrize(
    ("text", "aim"),
    [
        ("planner - naive: width < 0.1", Aim("planner", "naive", "", 0.1)),
        ("mine.py:Agent(x=1) - naive:width<1e-1", Aim("mine.py:Agent(x=1)", "naive", "", 0.1)),
        ("planner: concordance width < .25", Aim("planner", "", "concordance", 0.25)),
    ],
)
def test_a_width_is_that_of_a_difference_or_of_a_number(text: str, aim: Aim) -> None:
    assert parse_aim(text) == aim


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nonsense", "takes 'decided', "),
        ("planner: width < 0.1", "takes 'decided', "),
        ("a - b - c: width < 0.1", "takes 'decided', "),
        ("a - : width < 0.1", "takes 'decided', "),
        ("a - b: width < 1.2.3", "'1.2.3' is not a number"),
        ("a - b: width < 0", "can never be met"),
        ("a - b: width < -1", "can never be met"),
        ("a - b: width < 1e999", "can never be met"),
    ],
)
def test_other_rules_are_refused_in_one_line(text: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said) as caught:
        make_experiment({"domain": "tiny", "until": text})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"negligible": 0.1}, "add --until decided or --race"),
        ({"negligible": 0.1, "until": "a - b: width < 0.1"}, "add --until decided or --race"),
        ({"negligible": 1.0, "race": True}, "at least 0 and below 1"),
        ({"negligible": float("nan"), "race": True}, "at least 0 and below 1"),
    ],
)
def test_what_is_negligible_needs_a_rule_that_asks_for_it(values: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        make_experiment({"domain": "tiny", **values})


def test_a_rule_is_kept_in_words_and_read_again() -> None:
    assert read_rule(FACTS) == RULE
    assert read_rule({}) is None
    assert RULE.words == "--until 'decided' --negligible 0.05"
    assert join_rules([RULE, msgspec.structs.replace(RULE, batches={"other": 3})]).batches == {"tiny": 5, "other": 3}
    assert join_rules([None]) is None
    with pytest.raises(DamagedRun, match="stopping rule cannot be read"):
        read_rule({RULE_FACT: "{"})


@pytest.mark.parametrize(
    ("facts", "rule", "said"),
    [
        (FACTS, None, "begun with --until 'decided' --negligible 0.05"),
        ({"openfield": "0.2.0"}, RULE, "begun without a stopping rule"),
        (FACTS, msgspec.structs.replace(RULE, negligible=0.1), "begun with --until 'decided' --negligible 0.05"),
        (FACTS, msgspec.structs.replace(RULE, most=60), "batches of 5 trials, 50 at most"),
        (FACTS, msgspec.structs.replace(RULE, batches={"tiny": 4}), "batches of 5 trials, 50 at most"),
    ],
)
def test_a_run_goes_on_with_no_other_rule(facts: dict[str, str], rule: StoppingRule | None, said: str) -> None:
    check_rule("run.sqlite", FACTS, RULE)
    with pytest.raises(InvalidInput, match=said):
        check_rule("run.sqlite", facts, rule)


class Published(type(TINY)):
    """A domain whose trials are listed in a file."""

    def lists_trials(self, settings: object) -> str:
        return "published.xml lists its trials."


def test_trials_that_were_published_are_not_added_to() -> None:
    experiment = make_experiment({"domain": "tiny", "until": "decided"})
    with pytest.raises(InvalidInput, match="--until and --race add trials: published"):
        experiment.make_trials(Published(), Path("run.sqlite"))


def test_trials_of_a_run_that_stops_are_planned_at_once_in_batches_with_their_share_of_unchanged_ones() -> None:
    values = {"domain": "tiny", "until": "decided", "trials": 5, "max_trials": 15, "settings": {"unchanged": 1}}
    trials, _ = make_experiment(values).make_trials(TINY, Path("run.sqlite"))
    assert [sum(trial.is_unchanged_twin for trial in trials[at : at + 6]) for at in (0, 6, 12)] == [1, 1, 1]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"max_trials": 9}, "add --until or --race"),
        ({"max_trials": 9, "race": True, "trials_of": "x.sqlite"}, "leave out max_trials"),
    ],
)
def test_a_number_of_trials_at_most_needs_a_rule_and_trials_to_draw(values: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        make_experiment({"domain": "tiny", **values}).make_trials(TINY, Path("run.sqlite"))
