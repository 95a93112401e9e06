"""The legacy sets: every task can be solved, in bytes and in bits, and the repaired ones are judged rightly."""

from random import Random

import pytest

from openfield.domains.commai import (
    CommaiSettings,
    LearnerSession,
    Oracle,
    SequentialScheduler,
    SilentLearner,
    make_environment,
    make_task,
)
from openfield.domains.commai.tasks.draws import load_phrasebook
from openfield.domains.commai.tasks.legacy import LEGACY
from openfield.domains.commai.tasks.legacy.properties import list_enumerations, lists_exactly
from openfield.domains.commai.tasks.legacy.repetition import choose_phrase, combine_phrases

NAMES = [f"{group}.{name}" for group, tasks in LEGACY.items() for name in tasks]


def test_all_sets_are_complete():
    assert {group: len(tasks) for group, tasks in LEGACY.items()} == {
        "repetition": 12,
        "counting": 1,
        "objects_properties": 13,
        "navigation": 14,
        "small": 3,
        "sample": 11,
    }


@pytest.mark.parametrize("bit_mode", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_an_oracle_solves_every_instance(name, bit_mode):
    environment = make_environment(CommaiSettings(tasks=(name,), success_threshold=8, bit_mode=bit_mode), seed=3)
    oracle = Oracle(environment)
    session = LearnerSession(environment, oracle)
    session.run(200_000)
    tally = session.tallies()[name]
    assert environment.over
    assert tally.solved == tally.instances == tally.reward == 8


@pytest.mark.parametrize("name", NAMES)
def test_silence_fails_by_timeout_except_where_it_is_asked_for(name):
    environment = make_environment(CommaiSettings(tasks=(name,), cyclic=True), seed=1)
    session = LearnerSession(environment, SilentLearner())
    session.run(25_000)
    tally = session.tallies()[name]
    assert environment.finished
    assert tally.solved == (environment.finished if "BeSilent" in name else 0)


def test_either_of_two_phrases_is_accepted():
    drawn = choose_phrase(Random(1))
    first, second = drawn.question.partition(" ")[2].rstrip(".").split(" or ")
    assert [drawn.accepts(f"{said}.") for said in (first, second, "neither")] == [True, True, False]


def test_negated_phrases_must_not_be_said_and_the_others_must():
    for seed in range(50):
        drawn = combine_phrases(Random(seed))
        parts = drawn.question.partition(" ")[2].rstrip(".").split(" and ")
        banned = [part.removeprefix("not ") for part in parts if part.startswith("not ")]
        wanted = [part for part in parts if not part.startswith("not ")]
        assert wanted
        assert drawn.accepts(" and ".join(reversed(wanted)) + ".")
        for phrase in banned:
            assert not drawn.accepts(" and ".join([phrase, *wanted]) + ".")


@pytest.mark.parametrize("text", ["red round", "red, round", "round and red", "yes round red"])
def test_lists_come_in_any_order_and_punctuation(text):
    assert lists_exactly(f"{text}.", ["red", "round"])


def test_lists_must_be_complete_and_nothing_else():
    assert not lists_exactly("red.", ["red", "round"])
    assert not lists_exactly("red, round, old.", ["red", "round"])
    assert "a, b, and c" in list_enumerations(["a", "b", "c"])
    long = list("abcdefg")
    assert lists_exactly("g, f, e, d, c, b and a.", long)
    assert not lists_exactly("g, f, e, d, c and b.", long)


def test_the_baskets_have_the_shape_the_tasks_need():
    baskets = load_phrasebook().baskets
    assert [len(things) for things in baskets.values()] == [11, 11]
    assert all(2 <= len(set(qualities)) <= 9 for things in baskets.values() for qualities in things.values())


def test_a_shared_world_keeps_its_state_until_another_comes_between():
    turn, other = make_task("navigation.Turning"), make_task("repetition.Verb")
    world = turn.world
    environment = make_environment(scheduler=SequentialScheduler([turn, turn, other]), seed=1)
    session, facings = LearnerSession(environment, Oracle(environment)), []
    while environment.finished < 3:
        before = environment.finished
        session.run(1)
        if environment.finished > before:
            facings.append(world.facing)
    assert facings[0] in ("east", "west")
    while environment.instance is None or environment.task is not turn:
        session.run(1)
    assert world.facing == "north"
