"""Keys for environments whose actions are forces."""

import pytest

import openfield as of
from openfield.agents.key_page import KeyPage
from openfield.domains.gym.play_page import bind_forces


def test_forces_have_keys_that_push_to_their_ends() -> None:
    one = bind_forces(of.spaces.Box(-2.0, 2.0, (1,)))
    assert {each.keys[0]: each.action for each in one} == {
        "ArrowLeft": [-2.0],
        "ArrowRight": [2.0],
        "a": [-1.0],
        "d": [1.0],
    }
    assert [each.label for each in one] == ["−2", "+2", "−1", "+1"]
    car = bind_forces(of.spaces.Box((-1.0, 0.0, 0.0), (1.0, 1.0, 1.0), (3,)))
    assert {each.label: each.action for each in car}["2: +1"] == [0.0, 1.0, 0.0]
    assert len(car) == 4


OTHERS = [
    of.spaces.Box(-1.0, 1.0, (6,)),
    of.spaces.Box(1.0, 2.0, (1,)),
    of.spaces.Box(None, 1.0, (1,)),
    of.spaces.Box(0, 9),
]


@pytest.mark.parametrize("space", OTHERS)
def test_other_numbers_are_typed(space: of.spaces.Box) -> None:
    assert bind_forces(space) == []


def test_a_pendulum_is_pushed_in_time() -> None:
    domain = of.registry.find_domain("gym:Pendulum-v1")
    (trial,) = domain.trials(count=1, unchanged=0)
    page = domain.play_page(trial)  # type: ignore[attr-defined]
    assert isinstance(page, KeyPage)
    assert page.idle == [0.0]
    assert page.milliseconds
