"""Functions that draw become trees of all that they can draw."""

import pytest

from openfield.domains.commai.batched.trace import (
    Branches,
    Leaf,
    Literal,
    SlotDraw,
    SlotText,
    split_text,
    stand_for,
    stand_for_letters,
    trace,
)
from openfield.domains.commai.tasks.draws import between, pick
from openfield.errors import InvalidInput


def test_choices_are_followed_to_every_end():
    tree = trace(lambda rng: "-" if rng.random() < 0.25 else "x" * between(rng, 1, 2))
    ends = Branches([], None, [Leaf([], "x"), Leaf([], "xx")])
    assert tree == Branches([], 0.25, [Leaf([], "-"), ends])


def test_slots_are_drawn_where_they_were_filled():
    def draw(rng):
        first = rng.fill("abc", 2)
        kind = pick(rng, "pq")
        return kind, first, rng.fill("xyz")

    second = [SlotDraw("xyz", 1, 7)]
    leaves = [Leaf(second, (kind, [5, 6], [7])) for kind in "pq"]
    assert trace(draw, slot=5) == Branches([SlotDraw("abc", 2, 5)], None, leaves)


def test_texts_are_split_at_their_slots():
    word = stand_for_letters(3)
    assert split_text(f"say: {word}{stand_for(0)}.") == [Literal("say: "), SlotText(3), SlotText(0), Literal(".")]
    assert split_text("-".join(word) + " .") == [SlotText(3, "-"), Literal(" .")]
    with pytest.raises(InvalidInput, match="changed other than by marks"):
        split_text(word[::-1])
