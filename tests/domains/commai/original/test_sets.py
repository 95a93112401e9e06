"""The older sets by their rules: what silence, a right, a wrong answer, both, and a dot in mid-question lead to."""

import random
import re
from collections import Counter
from dataclasses import dataclass, field

import pytest

from openfield.domains.commai import CommaiSettings, LearnerSession, Oracle, make_environment
from openfield.domains.commai.original.configuration import class_of
from openfield.domains.commai.original.grid_world import GridWorld
from openfield.domains.commai.original.tasks import messages
from openfield.domains.commai.original.tasks import objects_properties as properties
from openfield.domains.commai.original.tasks.repetition import RepeatWhatISayConjunctionNegation
from openfield.domains.commai.tasks.legacy import LEGACY
from support.commai_streams import make

NAMES = [f"{group}.{name}" for group, tasks in LEGACY.items() for name in tasks]
REPEATING = "repetition.RepeatWhatISay"
MANY = f"{REPEATING}MultipleTimes"
OBJECTS = "objects_properties."
ENDS, SILENT, RETOLD, SPEAKS = "ends with 0", "nothing happens", "the question comes again", "the teacher speaks"
# name: limit, what the end of the time leads to (verdict, whether there is a text), after a wrong answer, after a dot
RULES = {
    "repetition.BeSilent": (None, (1, True), ENDS, ENDS),
    "repetition.RepeatCharacter": (1000, (0, True), ENDS, ENDS),
    REPEATING: (1000, (0, True), ENDS, ENDS),
    f"{REPEATING}2": (1000, (0, True), ENDS, ENDS),
    MANY: (10_000, (0, True), ENDS, ENDS),
    f"{MANY}2": (10_000, (0, True), ENDS, ENDS),
    f"{MANY}SeparatedByComma": (10_000, (0, True), ENDS, ENDS),
    f"{MANY}SeparatedByAnd": (10_000, (0, True), ENDS, ENDS),
    f"{MANY}SeparatedByCA": (10_000, (0, True), ENDS, ENDS),
    f"{REPEATING}Disjunction": (3000, (0, True), ENDS, ENDS),
    f"{REPEATING}ConjunctionNegation": (3000, (0, True), ENDS, ENDS),
    "repetition.Verb": (896, (0, True), ENDS, ENDS),
    "counting.SimpleCounting": (3000, (0, True), ENDS, ENDS),
    f"{OBJECTS}ObjectExistence1": (3000, (0, True), RETOLD, SILENT),
    f"{OBJECTS}ObjectExistence2": (3000, (0, True), ENDS, ENDS),
    f"{OBJECTS}AssociateObjectWithProperty": (3000, (None, True), SILENT, SILENT),
    f"{OBJECTS}VerifyThatObjectHasProperty": (3000, (None, True), SILENT, SILENT),
    f"{OBJECTS}ListPropertiesOfAnObject": (3500, (None, True), SILENT, SILENT),
    f"{OBJECTS}NameAPropertyOfAnObject": (3000, (None, True), SILENT, SILENT),
    f"{OBJECTS}HowManyPropertiesDoesAnObjectHave": (3000, (None, True), SILENT, SILENT),
    f"{OBJECTS}ListObjectsWithACertainProperty": (3500, (None, True), RETOLD, RETOLD),
    f"{OBJECTS}NameAnObjectWithAProperty": (3000, (None, True), RETOLD, RETOLD),
    f"{OBJECTS}HowManyObjectsHaveACertainProperty": (3000, (None, True), RETOLD, RETOLD),
    f"{OBJECTS}WhoHasACertainObjectWithACertainProperty": (3500, (None, True), RETOLD, RETOLD),
    f"{OBJECTS}ListThePropertiesThatAnObjectHasInABasketOnly": (3500, (None, True), RETOLD, RETOLD),
    f"{OBJECTS}ListThePropertiesThatAnObjectHasInAllBaskets": (3500, (None, True), RETOLD, RETOLD),
    "navigation.Turning": (576, (None, True), SILENT, SILENT),
    "navigation.Moving": (600, (None, True), SILENT, SILENT),
    "navigation.MovingRelative": (784, (None, True), SILENT, SILENT),
    "navigation.MovingAbsolute": (2336, (None, True), SILENT, SILENT),
    "navigation.PickUp": (1328, (None, True), SILENT, SILENT),
    "navigation.PickUpAround": (2896, (None, True), SILENT, SILENT),
    "navigation.PickUpInFront": (3328, (None, True), SILENT, SILENT),
    "navigation.Giving": (1280, (None, True), SILENT, SILENT),
    "navigation.PickUpAroundAndGive": (5584, (None, True), SILENT, SILENT),
    "navigation.CountingInventory": (800, (None, True), SPEAKS, SILENT),
    "navigation.CountingInventoryGiving": (8000, (None, True), RETOLD, SILENT),
    "navigation.Look": (1000, (None, False), SILENT, SILENT),
    "navigation.LookAround": (5000, (None, False), SILENT, SILENT),
    "navigation.FindObjectAround": (10_000, (None, False), SILENT, SILENT),
    "small.Repeat1V1L": (112, (0, True), ENDS, ENDS),
    "small.Repeat3V1L": (112, (0, True), ENDS, ENDS),
    "small.Repeat3V2L": (136, (0, True), ENDS, ENDS),
    "sample.RepeatingChar": (100, (None, False), ENDS, ENDS),
    "sample.YesNo": (1000, (None, False), ENDS, SILENT),
    "sample.BeSilent": (1000, (1, False), SILENT, SILENT),
    "sample.RepeatingPhrase": (1000, (None, True), SILENT, SILENT),
    "sample.ConflictingMessages": (1000, (None, False), SILENT, SILENT),
    "sample.Moving": (1000, (None, False), SILENT, SILENT),
    "sample.TurnLeft": (1000, (None, False), SILENT, SILENT),
    "sample.TurnRight": (1000, (None, False), SILENT, SILENT),
    "sample.LookAround": (1000, (None, False), SILENT, SILENT),
    "sample.PickAnApple": (10_000, (None, False), SILENT, SILENT),
    "sample.Unicode": (1000, (None, False), SILENT, SILENT),
}
WRONG = {
    f"{OBJECTS}ObjectExistence1": lambda task: "no." if task.hint() == "yes." else "yes.",
    f"{OBJECTS}VerifyThatObjectHasProperty": lambda task: "no." if task.hint() == "yes." else "yes.",
    "sample.YesNo": lambda task: "no" if task.hint() == "yes" else "yes",
    "navigation.CountingInventory": lambda task: "99.",
}


@dataclass
class Game:
    """One instance, as it was played."""

    results: list = field(default_factory=list)
    spoken: str = ""
    asked: str = ""
    reward: int = 0
    steps: int = 0
    """Steps of the instance; 0 if it goes on."""


def drive(name, plan, steps=400, seed=3, compat="", bits=False):
    """Play one instance: when the teacher is silent, say the next part of the plan (`right` until it is over)."""
    kind = class_of(name)
    task = kind(GridWorld())
    environment, game, parts, queue = make(task, compat=compat), Game(), [*plan], ""
    environment.rng = random.Random(seed)
    environment._task_scheduler.reward = game.results.append
    starts = []
    environment.task_updated.register(starts.append)
    heard = None
    for step in range(steps):
        symbol, reward = environment.next(heard)
        game.reward += reward
        if len(starts) == 2:
            game.steps = step
            break
        game.spoken += symbol
        if parts[:1] == ["dot"]:
            parts.pop(0)
            heard = "."
            game.asked = game.spoken + environment._output_channel.unsaid
            continue
        if not queue and environment.is_silent() and not task.has_ended():
            game.asked = game.asked or game.spoken
            part = parts[0] if parts else ""
            queue = task.hint() if part == "right" else WRONG.get(name, lambda task: "zq.")(task) if part else ""
            if part == "wrong":
                parts.pop(0)
        heard, queue = (queue[0], queue[1:]) if queue else (" ", "")
    return game


def test_all_sets_are_complete():
    assert [*RULES] == NAMES
    assert Counter(name.partition(".")[0] for name in NAMES) == {
        "repetition": 12,
        "counting": 1,
        "objects_properties": 13,
        "navigation": 14,
        "small": 3,
        "sample": 11,
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_silence_to_the_limit(name):
    limit, (verdict, speaks), _, _ = RULES[name]
    game = drive(name, [], steps=11_000)
    task_limit = limit or class_of(name)(GridWorld())._max_time
    assert game.results == ([] if verdict is None else [verdict])
    assert game.reward == (verdict or 0)
    text = game.spoken[len(game.asked) :].strip()
    assert bool(text) == speaks
    if limit is None:
        assert 100 <= game.steps - len(text) - 1 <= 1000 <= task_limit
    else:
        assert game.steps == limit + (len(text) + 1 if text else 0)


@pytest.mark.parametrize("name", NAMES)
def test_a_right_answer(name):
    game = drive(name, ["right"], steps=3000)
    assert (game.results, game.reward) == ([1], 1)


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_answer(name):
    rule, game = RULES[name][2], drive(name, ["wrong"])
    after = game.spoken[len(game.asked) :].strip()
    if rule == ENDS:
        assert (game.results, game.reward, bool(game.steps)) == ([0], 0, True)
        return
    assert (game.results, game.steps) == ([], 0)
    assert bool(after) == (rule != SILENT)
    assert (game.asked.strip() in after) == (rule == RETOLD)


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_answer_and_then_the_right_one(name):
    rule, game = RULES[name][2], drive(name, ["wrong", "right"], steps=3000)
    expected = 0 if rule == ENDS or name == "navigation.CountingInventoryGiving" else 1
    assert (game.results, game.reward) == ([expected], expected)


@pytest.mark.parametrize("name", NAMES)
def test_a_dot_in_mid_question(name):
    rule, game = RULES[name][3], drive(name, ["dot"], steps=300)
    after = game.spoken[len(game.asked) :].strip()
    if rule == ENDS:
        assert game.results == [0]
        assert game.steps <= len(game.asked) + len(after) + 2
    else:
        assert game.results == []
        assert bool(after) == (rule != SILENT)
        assert (game.asked.strip() in after) == (rule == RETOLD)


@pytest.mark.parametrize("bit_mode", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_an_oracle_solves_every_instance(name, bit_mode):
    if bit_mode and name in ("sample.BeSilent", "navigation.Look"):
        return  # a space has a bit of 1; and two turns with their replies take more than the limit
    environment = make_environment(CommaiSettings(tasks=(name,), success_threshold=3, bit_mode=bit_mode), seed=3)
    session = LearnerSession(environment, Oracle(environment))
    session.run(60_000)
    tally = session.tallies()[name]
    assert environment.over
    assert tally.solved == tally.instances == tally.reward == 3


# Single rules


@pytest.mark.parametrize(
    ("said", "passes"),
    [
        ("red, sour.", True),
        ("sour and red.", True),
        ("red, and sour.", True),
        ("red sour.", True),
        ("xx red, sour.", True),
        ("xred, sour.", False),
        ("red,sour.", False),
        ("red  sour.", False),
        ("red.", False),
        ("red, red.", False),
        ("red, sour, big.", False),
        ("Xred, sour.", True),
    ],
)
def test_lists_come_in_any_order_and_with_any_separators(said, passes):
    assert properties.lists_exactly(said, ["red", "sour"]) == passes


def test_three_items_mix_their_separators():
    assert properties.lists_exactly("a, b and c.", ["c", "b", "a"])
    assert properties.lists_exactly("a b, and c.", ["c", "b", "a"])


def test_the_table_has_the_shape_of_the_original():
    baskets = properties.global_properties
    assert [len(things) for things in baskets.values()] == [11, 11]
    assert (len(properties.global_objects), len(properties.shared_objects)) == (13, 9)
    assert len(properties.all_properties) == 35
    assert all(2 <= len(set(own)) <= 9 for things in baskets.values() for own in things.values())
    assert all(re.fullmatch("[a-z]+", word) for word in (*baskets, *properties.all_properties))
    assert [len(part) for part in (messages.congratulations, messages.failed, messages.timeout)] == [5, 4, 3]
    assert (len(messages.BOOK.countable), len(messages.BOOK.phrases), len(messages.BOOK.verbs)) == (11, 4, 6)


@pytest.mark.parametrize("said", ["digits", "word"])
def test_numbers_of_properties_pass_in_digits_and_in_words_and_counting_takes_words_only(said):
    for name, digits_pass in (
        (f"{OBJECTS}HowManyPropertiesDoesAnObjectHave", True),
        ("counting.SimpleCounting", False),
    ):
        task = class_of(name)()
        environment, results = make(task), []
        environment.rng = random.Random(4)
        environment._task_scheduler.reward = results.append
        environment.next(None)
        number = messages.string_to_number(task.hint()[:-1])
        answer = f"{number}." if said == "digits" else f"{messages.numbers_in_words[number]}."
        for symbol in " " * 400 + answer + " " * 40:
            environment.next(symbol)
        assert results == ([1] if digits_pass or said == "word" else [0])


@pytest.mark.parametrize(
    ("negated", "round1", "answers"),
    [
        ((False, False), ("a and b", "b and a"), ("a", "b")),
        ((True, False), ("b",), ("a", "b")),
        ((False, True), ("a",), ("a", "b")),
        ((True, True), ("a",), ("a", "b")),
        ((False, False), ("a",), ("a", "a")),
        ((True, False), ("a",), ("a", "a")),
    ],
)
def test_answers_to_conjunctions_and_negations(negated, round1, answers):
    assert RepeatWhatISayConjunctionNegation().accept(*answers, *negated) == round1


def test_conjunctions_are_sensible_unless_round_1_is_wanted():
    task = RepeatWhatISayConjunctionNegation()
    for compat, found in (("", False), ("round1", True)):
        environment = make(task, compat=compat)
        environment.rng = random.Random(1)
        environment.next(None)
        drawn = [task.make()[1] for _ in range(200)]
        phrases = [re.findall("kettle|lantern|thunder|green tea", " ".join(answers)) for answers in drawn]
        equal = any(len(answers) == 1 and count == 1 for answers, count in zip(drawn, map(len, phrases), strict=True))
        both = any(len(set(found)) == 1 and len(answers) == 2 for answers, found in zip(drawn, phrases, strict=True))
        assert equal  # one phrase is forbidden
        assert not both
        negations = [task.make()[0] for _ in range(200)]
        assert any(len(re.findall("never|do not", question)) == 2 for question in negations) == found


def test_a_disjunction_is_exact_and_round_1_pronounces_failure_first():
    game = drive(f"{REPEATING}Disjunction", ["right"], seed=5)
    assert game.results == [1]
    for seed in range(20):
        task = class_of(f"{REPEATING}Disjunction")()
        environment = make(task, compat="round1")
        environment.rng, results = random.Random(seed), []
        environment._task_scheduler.reward = results.append
        environment.next(None)
        first, second = task.state.answers
        if first == second:
            continue
        spoken = "".join(environment.next(symbol)[0] for symbol in " " * 60 + second + "." + " " * 40)
        assert results == [1]
        assert sum(spoken.count(word) for word in messages.failed) >= 1
        return


def test_things_stay_in_the_world_and_acceptance_ends_where_it_should():
    world, results = GridWorld(), []
    task = class_of("navigation.PickUpAroundAndGive")(world)
    environment = make(task)
    environment._task_scheduler.reward = results.append
    environment.next(None)
    thing = task.state.thing
    for symbol in " " * 120 + f"I give you {messages.indef_article(thing)}." + " " * 60:
        environment.next(symbol)
    assert (results, world.state.learner_inventory.get(thing, 0)) == ([], 0)  # nobody gives what it has not
    for _ in range(6000):
        environment.next(" ")
    assert thing not in world.state.teacher_accepts or task.state.thing == thing


def test_moving_loses_the_task_of_looking_around():
    task = class_of("navigation.LookAround")(GridWorld())
    environment, results = make(task), []
    environment._task_scheduler.reward = results.append
    said = "".join(environment.next(symbol)[0] for symbol in " " * 50 + "I move forward." + " " * 40)
    assert results == [0]
    assert "You must not move." in said


def test_the_apple_and_the_block_lie_near_and_are_cleared():
    for seed in range(30):
        world = GridWorld()
        task = class_of("sample.PickAnApple")(world)
        environment = make(task)
        environment.rng = random.Random(seed)
        environment.next(None)
        state, here = task.state, world.state.learner_pos
        assert state.apple != state.block
        assert max(abs(state.apple.x - here.x), abs(state.apple.y - here.y)) <= 2
        assert world.get_entity(state.block) == ("block", False, False)
        environment._retire(task)
        assert world.state.entities == {}


def test_silence_that_is_broken_is_blamed_once_in_round_1_too():
    for compat in ("", "round1"):
        environment = make(class_of("repetition.BeSilent")(), compat=compat)
        heard, said = None, ""
        for step in range(60):
            said += environment.next(heard)[0]
            heard = "x" if 30 <= step < 36 else " "
        blamed = [text for text in messages.failed if text in said]
        assert len(blamed) == 1
        assert said.count(blamed[0]) == 1


def test_a_bare_dot_is_no_number():
    task = class_of("navigation.CountingInventoryGiving")(GridWorld())
    environment = make(task)
    heard = None
    for _ in range(120):
        environment.next(heard)
        heard = "." if environment.is_silent() else " "
    assert task.state.stage == 0
    for character in "zero. ":
        environment.next(character)
    assert task.state.stage == 1
