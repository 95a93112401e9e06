"""Descriptions of string sets: the checker against a slow one, and the strings drawn for the mini tasks."""

import itertools
import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openfield.domains.commai.original.tasks.challenge_mini import build_automaton
from openfield.domains.commai.tasks.catalogue import make_task
from openfield.domains.commai.tasks.mini import Description, draw_member, draw_nonmember

ngrams = st.lists(st.text("AB", min_size=1, max_size=3), max_size=3, unique=True).map(tuple)


def slowly_accepts(description, text):
    """By definition: mark every letter that an occurrence of a required n-gram covers."""
    if any(ngram in text for ngram in description.banned):
        return False
    if description.operator == "and" and any(ngram not in text for ngram in description.required):
        return False
    covered = set()
    for ngram in description.required:
        for start in range(len(text) - len(ngram) + 1):
            if text.startswith(ngram, start):
                covered.update(range(start, start + len(ngram)))
    return description.anything or len(covered) == len(text)


@given(ngrams, ngrams, st.booleans(), st.sampled_from(["and", "or"]))
def test_the_checker_agrees_with_the_definition(required, banned, anything, operator):
    description = Description(required, banned, anything, operator)
    for size in range(7):
        for letters in itertools.product("AB", repeat=size):
            text = "".join(letters)
            assert description.accepts(text) == slowly_accepts(description, text)


@pytest.mark.parametrize(
    ("description", "text", "accepted"),
    [
        (Description(("XX",)), "XXX", True),
        (Description(("X",)), "", False),
        (Description(("X",), operator="or"), "", True),
        (Description(("AB", "C"), operator="or"), "ABCCAB", True),
        (Description(("AB",)), "ABA", False),
        (Description(("UB", "R"), anything=True), "XWUBUBVNRSGKYW", True),
        (Description(("LKR",), ("DDN",), anything=True), "QERQERDQERIHQX", False),
    ],
)
def test_examples(description, text, accepted):
    assert description.accepts(text) is accepted


@pytest.mark.parametrize("name", ["mini0", "mini1", "mini2", "mini3", "mini4", "mini5"])
def test_drawn_strings_are_what_the_answer_says(name):
    task, rng = make_task(name), Random(3)
    for number in range(1500):
        belongs = bool(number % 2)
        description, text = task.draw(rng, belongs)
        if text or belongs:
            assert description.accepts(text) is belongs
        else:
            assert description == Description((), anything=True, operator="or")


MEASURED = {  # shortest, mean, longest string of 3000 draws of the original
    "mini1": (2, 7.5, 13),
    "mini2": (0, 7.3, 15),
    "mini3": (2, 17.1, 35),
    "mini4": (2, 17.9, 37),
    "mini5": (0, 12.5, 37),
}


@pytest.mark.parametrize("name", MEASURED)
def test_lengths_are_close_to_the_original(name):
    task, rng = make_task(name), Random(1)
    shortest, mean, longest = MEASURED[name]
    lengths = [len(task.draw(rng, rng.random() < 0.5)[1]) for _ in range(3000)]
    assert min(lengths) <= shortest + 1
    assert sum(lengths) / len(lengths) == pytest.approx(mean, abs=1.3)
    assert longest - 5 <= max(lengths) <= longest + 8


def test_mini0_stays_with_a_letter_for_ten_instances_and_takes_pairs_after_a_thousand():
    task, rng = make_task("mini0"), Random(1)
    shown = [task.draw(rng, True)[0].required[0] for _ in range(1100)]
    assert len(set(shown[:10])) == 1
    assert {len(ngram) for ngram in shown[:1010]} == {1}
    assert {len(ngram) for ngram in shown[1010:]} == {2}


def test_descriptions_have_their_form():
    task, rng = make_task("mini4"), Random(2)
    for _ in range(300):
        question = task.ask(rng).question
        found = re.fullmatch(r"description: (.+); verify: ([A-Z]+)\.", question)
        groups = found[1].split(" and ")
        assert all(re.fullmatch(r"anything|(not )?[A-Z]{1,3}", group) for group in groups)
        assert "anything" in groups or not any(group.startswith("not") for group in groups)


@given(st.integers(0, 10_000), st.integers(1, 12))
def test_members_and_strangers_of_one_ngram(seed, length):
    rng, description = Random(seed), Description(("AAB",))
    assert description.accepts(draw_member(description, length, rng))
    assert not description.accepts(draw_nonmember(description, length, rng))


@pytest.mark.parametrize(
    ("name", "least", "mean", "most"),
    [
        ("mini0", 1, 3.5, 7),
        ("mini1", 2, 7.5, 14),
        ("mini2", 0, 7.3, 16),
        ("mini3", 2, 17.1, 38),
        ("mini4", 2, 17.9, 40),
    ],
)
def test_strings_are_as_long_as_those_of_the_original(name, least, mean, most):
    rng, task = Random(3), make_task(name)
    lengths = [len(task.ask(rng).question.rpartition(": ")[2]) - 1 for _ in range(3000)]
    assert least <= min(lengths)
    assert max(lengths) <= most
    assert abs(sum(lengths) / 3000 - mean) < 0.6


def test_n_grams_of_one_text_are_separated_by_blanks():
    either = build_automaton("AB CD", "or")
    assert [either.is_string_correct(text) for text in ("AB", "CD", "ABCD", "ABD", "AB CD")] == [True] * 3 + [False] * 2
    both = build_automaton("AB and CD and anything", "and")
    assert [both.is_string_correct(text) for text in ("ABXCD", "AB")] == [True, False]
    without = build_automaton("anything not AB", "and")
    assert [without.is_string_correct(text) for text in ("XYZ", "XABZ")] == [True, False]
    assert build_automaton(["AB", "CD"], "or").is_string_correct("CDAB")
