from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

import openfield as of
from openfield.domains.gym.formula import read_formula
from openfield.domains.gym.suites.suite import SUITES, check_suite, open_suite, read_suite
from openfield.provenance.trust import is_domain_code
from openfield.registry import find_domain, list_trial_code

LAB = """
name = "lab"
description = "Poles of our laboratory."

[[environments]]
ids = ["CartPole-v1"]
reference = [10.0, 110.0]
source = "our paper"

[[environments.novelties]]
name = "heavy"
difficulty = "hard"
change = "masscart*=5+actions-sticky:hard"
description = "the cart is heavy and old"
level = 1
kind = "objects"

[[environments.novelties]]
name = "wrapped"
change = "wrap.py:Reversed"
description = "left is right"
level = 3
kind = "actions"
"""
WRAPPER = """
import gymnasium

class Reversed(gymnasium.ActionWrapper):
    def action(self, action):
        return 1 - action
"""
SHORT: dict[str, Any] = {"before": 1, "after": 2, "max_steps": 30}


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    (tmp_path / "wrap.py").write_text(WRAPPER)
    path = tmp_path / "lab.toml"
    path.write_text(LAB)
    return path


@pytest.mark.parametrize("name", SUITES)
def test_suites_of_the_package_can_be_used(name: str) -> None:
    check_suite(msgspec.structs.replace(read_suite(name), modules=(), extra=""))


def test_a_suite_of_ones_own_brings_novelties_and_a_scale(lab: Path, tmp_path: Path) -> None:
    domain = find_domain(f"gym:{lab}:CartPole-v1")
    assert domain.name == "gym-lab-CartPole-v1"
    assert [novelty.id for novelty in domain.novelties][:3] == ["heavy:hard", "wrapped", "actions-permuted"]
    assert find_domain(f"gym:{lab}").name == domain.name
    (trial,) = domain.trials(count=1, unchanged=0, **SHORT)
    assert trial.novelty == ("heavy:hard",)
    assert trial.settings["return"] == [10.0, 110.0]
    assert "our paper" in domain.remark(trial)  # type: ignore[attr-defined]
    changed = domain.settings_in(trial, trial.phases[-1])
    assert (changed.attributes, changed.sticky_actions) == (("masscart*=5",), 0.5)
    of.run("random", [trial], path := tmp_path / "run.sqlite")
    lab.write_text(LAB.replace("masscart*=5", "masscart*=6"))
    assert of.resume(path).cells[0].outcome == "done"


def test_wrappers_of_a_suite_lie_beside_it_and_are_code_of_the_trial(lab: Path) -> None:
    domain = find_domain(f"gym:{lab}:CartPole-v1")
    (trial,) = domain.trials(count=1, unchanged=0, novelty="wrapped", **SHORT)
    assert list_trial_code([trial]) == [f"{lab.parent / 'wrap.py'}:Reversed"]
    assert trial.files.keys() == {"wrap.py"}
    world = domain.world(trial)
    assert world.reset().last is None
    world.close()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "lab"', "", "missing required field `name`"),
        ('name = "lab"', 'name = "l/b"', "cannot be called 'l/b'"),
        ('name = "lab"', "name = ", "is not TOML"),
        ('name = "lab"', 'name = "lab"\nmodules = ["os"]', "Only suites of the package"),
        ('kind = "objects"', 'kind = "things"', "Unknown kind of novelty 'things'"),
        ('change = "masscart*=5+', 'change = "masscart', "describes no change"),
        ('difficulty = "hard"', 'difficulty = "cruel"', "has no usable name"),
        ("[10.0, 110.0]", "[10.0, 1.0]", "is not a scale"),
        ("level = 1", "levels = 1", "unknown field `levels`"),
        ('source = "our paper"', 'derived = {total_mass = "__import__(1)"}', "is not a formula"),
        ('ids = ["CartPole-v1"]', 'ids = ["Cart*"]', "Which environment"),
    ],
)
def test_a_suite_that_cannot_be_used_is_one_line(lab: Path, old: str, new: str, message: str) -> None:
    path = lab.with_name("broken.toml")
    path.write_text(LAB.replace(old, new, 1))
    with pytest.raises(of.errors.OpenfieldError, match=message) as caught:
        find_domain(f"gym:{path}")
    assert "\n" not in str(caught.value)


def test_a_suite_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(of.errors.InvalidInput, match=r"none\.toml"):
        open_suite(tmp_path / "none.toml")


def test_derived_attributes_follow() -> None:
    domain = find_domain("gym:CartPole-v1")
    (trial,) = domain.trials(count=1, unchanged=0, novelty="heavy-cart", **SHORT)
    env = domain.make_env(domain.settings_in(trial, trial.phases[-1])).unwrapped  # type: ignore[attr-defined]
    assert (env.masscart, env.total_mass) == (5.0, 5.1)
    (trial,) = domain.trials(count=1, unchanged=0, novelty="masspole=1+length=2", **SHORT)
    env = domain.make_env(domain.settings_in(trial, trial.phases[-1])).unwrapped  # type: ignore[attr-defined]
    assert (env.total_mass, env.polemass_length) == (2.0, 2.0)


def test_formulas_are_read_and_not_run() -> None:
    assert read_formula("(a + b) * 2 - a / b").compute({"a": 1.0, "b": 2.0}) == 5.5
    for text in ("a.b", "f(a)", "a ** 9", "'a'", "a if b else c", "", "a" * 500, "(" * 150 + "a" + ")" * 150 + "+"):
        with pytest.raises(of.errors.InvalidInput, match="is not a formula"):
            read_formula(text)
    with pytest.raises(of.errors.InvalidInput, match="cannot be computed"):
        read_formula("a / b").compute({"a": 1.0, "b": 0.0})


@pytest.mark.parametrize(
    ("source", "novelty", "message"),
    [
        ("gym:FrozenLake-v1", "observations-mirrored", r"it is for pictures, not Discrete\(16\)"),
        ("gym:FrozenLake-v1", "observations-noisy:hard", "has no arrays of numbers"),
        ("gym:FrozenLake-v1", "rewards-sparse", "only with the end of an episode"),
        ("gym:CartPole-v1", "actions-mirrored", "have no opposites"),
        ("gym:CartPole-v1", "actuators-broken:hard", "too few actuators"),
        ("gym:Blackjack-v1", "time-limit", "nothing says after how many steps"),
        ("gym:CartPole-v1", "gym:MountainCar-v0", "changes the action space"),
        ("gym:CartPole-v1", "gym:CartPol-v1", "Did you mean 'gym:CartPole-v1'"),
    ],
)
def test_a_novelty_that_fits_no_space_is_one_line(source: str, novelty: str, message: str) -> None:
    with pytest.raises(of.errors.OpenfieldError, match=message) as caught:
        find_domain(source).trials(novelty=novelty)
    assert "\n" not in str(caught.value)


def test_another_environment_with_the_same_spaces_takes_its_place() -> None:
    domain = find_domain("gym:CliffWalking-v1")
    (trial,) = domain.trials(count=1, unchanged=0, novelty="gym:CliffWalkingSlippery-v1", **SHORT)
    env = domain.make_env(domain.settings_in(trial, trial.phases[-1]))  # type: ignore[attr-defined]
    assert env.spec.id == "CliffWalkingSlippery-v1"
    assert list_trial_code([trial]) == []


@pytest.mark.parametrize(
    "forged",
    [{"suite": {"x": "force_mag=2+evil.py:Env"}}, {"instead": "evil.py:Env"}, {"novel_wrappers": ["evil.py:Env"]}],
)
def test_code_that_a_trial_names_is_found_wherever_it_stands(forged: dict[str, Any]) -> None:
    (trial,) = find_domain("gym:CartPole-v1").trials(count=1, novelty="none", **SHORT)
    changed = msgspec.structs.replace(trial, settings={**trial.settings, **forged})
    assert list_trial_code([changed]) == ["evil.py:Env"]
    assert not is_domain_code("gym:lab.toml:CartPole-v1")
    assert is_domain_code("gym:lab.toml:evil.py:Env")
