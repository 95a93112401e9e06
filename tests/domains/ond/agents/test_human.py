"""A person who plays ond by typing a label for each sample."""

import io
import re

import numpy as np
import pytest

from openfield.agents.human import LineHuman
from openfield.agents.turn_writer import draw_as_text, draw_beside
from openfield.domains.ond import DOMAIN
from openfield.domains.ond.agents.ond_writer import OndWriter
from openfield.errors import Cancelled
from openfield.rollout import Rollout, drive

(TRIAL,) = DOMAIN.trials(1, novelty="none", unchanged=0, before=2, after=0, round_size=3, training=30, budget=1)


def play(typed: str) -> tuple[str, Rollout, list[object]]:
    """What is printed where this is typed, the rollout, and the replies."""
    shown, replies, rollout = io.StringIO(), [], Rollout(DOMAIN.world(TRIAL))
    human = LineHuman(OndWriter(DOMAIN.spec(TRIAL)), io.StringIO(typed), shown)

    def agent(turn: object) -> object:
        replies.append(human(turn))  # type: ignore[arg-type]
        return replies[-1]

    agent.may_leave = True  # type: ignore[attr-defined]
    assert drive(rollout, agent) == "done"  # type: ignore[arg-type]
    return shown.getvalue(), rollout, replies


def test_a_person_types_one_label_for_each_sample() -> None:
    said, _, replies = play("?\n1\n7\n2\n? 0.8\n0\n\n\n3 4, 5\nyes\n0.9\n2\n9\n\n")
    scores = [reply.action.p for reply in replies if hasattr(reply.action, "p")]
    assert [np.argmax(batch, axis=1).tolist() for batch in scores] == [[1, 2, 0], [3, 4, 5]]
    assert [reply.belief.novel for reply in replies if hasattr(reply.action, "p")] == [0.8, 0.9]
    assert len(re.findall(r"Class 1 +Class 2", said)) == 1
    assert "Sample 3 of 3:" in said
    assert said.count("Type one label for each sample") == 2  # at the start, and for ?
    assert "Class 1 to 6, or 0 for unknown: " in said
    assert "Type a number from 0 to 6" in said  # there is no class 7
    assert "Sample 2 has class" in said  # which was bought
    assert "Samples are numbered from 1 to 3." in said
    assert "array" not in said
    assert "{" not in said


def test_the_known_classes_are_drawn_side_by_side_and_again_on_demand() -> None:
    said, _, _ = play("classes\n1 1 1\n\n\n1 1 1\n\n\n")
    assert said.count("The known classes:") == 2
    assert max(map(len, said.split("The known classes:")[1].split("Batch 1")[0].splitlines())) <= 80
    assert "buy their labels: " in said
    assert draw_beside({"a": "xx\nx", "b": "y"}) == "a     b\nxx    y\nx"


def test_a_person_may_leave_in_the_middle_of_a_batch() -> None:
    with pytest.raises(Cancelled):
        play("1\nQUIT\n")


def test_pictures_of_every_shape_are_drawn() -> None:
    assert draw_as_text(np.array([[0.0, 1.0], [0.5, 0.0]])) == "  @@\n=="
    assert len(draw_as_text(np.ones((100, 80, 3))).split("\n")) == 25
    assert draw_as_text(np.array([1.0, 2.5])) == "1 2.5"
