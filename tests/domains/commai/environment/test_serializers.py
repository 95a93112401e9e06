"""Bits and made-up words: nothing is lost on the way."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openfield.domains.commai import CommaiSettings, LearnerSession, Oracle, make_environment
from openfield.domains.commai.environment.serializers import (
    SPACE_BITS,
    BitReader,
    Scrambler,
    next_character,
    strip_spaces,
    to_bits,
)


@given(st.text())
def test_a_reader_finds_every_character_at_its_last_bit(text):
    reader = BitReader()
    assert [found for bit in to_bits(text) if (found := reader.feed(bit))] == list(text)


@given(st.binary(max_size=12), st.text("abc", min_size=1))
def test_a_reader_recovers_from_broken_bytes(noise, text):
    reader = BitReader()
    bits = "".join(f"{byte:08b}" for byte in noise) + to_bits(text)
    assert "".join(found for bit in bits if (found := reader.feed(bit))).endswith(text)


def test_space_is_00100000():
    assert to_bits(" ") == SPACE_BITS == "00100000"


@given(st.text(max_size=8), st.integers(0, 80))
def test_the_next_character_starts_where_a_prefix_ends(text, at):
    bits = to_bits(text)
    starts = {len(to_bits(text[:size])) for size in range(len(text) + 1)}
    at = min(at, len(bits))
    assert next_character(bits, at) == min(start for start in starts if start >= at)


@given(st.text(" ab"))
def test_spaces_at_the_end_do_not_count(text):
    assert strip_spaces(to_bits(text)) == 8 * len(text.rstrip(" "))


@given(st.lists(st.text("abcdefgHIJ .,:;?'\"", max_size=20), max_size=10), st.booleans(), st.integers(0, 99))
def test_scrambling_is_its_own_inverse(texts, readable, seed):
    scrambler = Scrambler(Random(seed), readable)
    for text in texts:
        scrambled = scrambler.encode(text)
        assert scrambler.decode(scrambled) == text
        assert len(scrambled) == len(text)
        assert [sign.isupper() for sign in scrambled] == [sign.isupper() for sign in text]
        assert [sign for sign in scrambled if not sign.isalpha()] == [sign for sign in text if not sign.isalpha()]


def test_every_letter_of_the_alphabet_has_one_partner():
    scrambler = Scrambler(Random(1))
    letters = [chr(code) for code in range(97, 123)]
    assert sorted(map(scrambler.encode, letters)) == letters


def test_digits_and_mixed_words_pass():
    assert Scrambler(Random(1)).encode("random_map: 12.") == "random_map: 12."


def test_byte_mode_speaks_made_up_words():
    heard = []
    for kind in ("", "readable"):
        environment = make_environment(CommaiSettings(tasks=("micro14",), scramble=kind), seed=4)
        heard.append("".join(environment.next(" ")[0] for _ in range(19)))
    assert heard[0].startswith("after ")
    assert heard[1] != heard[0]
    assert [len(word) for word in heard[1].split()] == [len(word) for word in heard[0].split()]


@pytest.mark.parametrize("scramble", ["readable", "unreadable"])
@pytest.mark.parametrize(
    ("tasks", "count", "bit_mode"), [("repetition", 12, False), ("repetition", 12, True), ("navigation", 14, False)]
)
def test_whoever_speaks_the_made_up_language_is_understood(bit_mode, scramble, tasks, count):
    settings = CommaiSettings(tasks=(tasks,), scramble=scramble, bit_mode=bit_mode, success_threshold=2)
    environment = make_environment(settings, seed=1)
    LearnerSession(environment, Oracle(environment)).run(200_000)
    assert environment.over
    assert environment.finished == 2 * count
