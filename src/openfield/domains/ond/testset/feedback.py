"""Feedback that an agent may buy on samples it has answered, and its price.

Between `agent_answers.py` and the world, so that remote and local agents buy by the same rules.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from openfield.domains.ond.errors import Refusal
from openfield.domains.ond.testset.agent_answers import UNSAID, AgentAnswers
from openfield.domains.ond.testset.results import quote_id
from openfield.domains.ond.testset.test import FeedbackOffer

TRUTHS = ("label", "columns")
"""Kinds of feedback that reveal the truth about a sample; the answer to it is locked then."""
SCORES = ("accuracy", "writers")
"""Kinds of feedback that tell how many answers are right; they count as a scoring of the test."""


class Purchase(msgspec.Struct, frozen=True):
    """Bought lines, their price, and the samples they are about."""

    lines: list[str]
    cost: int = 0
    positions: tuple[int, ...] = ()


def buy_feedback(answers: AgentAnswers, kind: str, ids: Sequence[str] | None) -> Purchase:
    """Buy feedback and return it."""
    bought = preview_feedback(answers, kind, ids)
    if bought.lines:
        answers.bind()
    if bought.cost:
        account = answers.account(kind)
        answers.used[account] = answers.used.get(account, 0) + bought.cost
        for own in (answers.sample_account(kind, at) for at in bought.positions):
            answers.used[own] = answers.used.get(own, 0) + 1
    offer = answers.test.kind.feedback[kind]
    if offer.content in TRUTHS:
        answers.locked.lock(answers, offer.reads, bought.positions)
    if offer.content == "writers" and bought.lines:
        answers.score += _writers(answers)
        answers.scored.add(answers.rounds.get("labels", UNSAID))
    elif offer.content == "accuracy" and bought.lines:
        answers.tell_score()
    elif answers.test.area == "nlt" and kind == "labels":
        answers.score -= len(bought.lines)
    return bought


def preview_feedback(answers: AgentAnswers, kind: str, ids: Sequence[str] | None) -> Purchase:
    """Return the answer to a request, without buying it.

    Refused are a kind that is not offered, any kind before results are posted, and one whose budget is used up.
    """
    offer = answers.test.kind.feedback.get(kind)
    if offer is None:
        area, offered = answers.test.area, ", ".join(answers.test.kind.feedback)
        raise Refusal("InvalidFeedbackType", f"'{kind[:40]}' is not offered for {area}; offered: {offered}.")
    if "detection" not in answers.posted:
        raise Refusal("DetectionPostRequired", "Post detection results before asking for feedback.")
    if not answers.declared and not offer.early:
        return Purchase([])
    if answers.binding and not answers.is_answered():
        raise Refusal("DetectionPostRequired", "Post beliefs and scores of the round before asking for its feedback.")
    if offer.reads not in answers.posted:  # labels are for agents that have answered
        raise Refusal("DetectionPostRequired", f"Post {offer.reads} results before asking for {kind} feedback.")
    if offer.content == "accuracy":
        return Purchase([f"accuracy,{_accuracy(answers)!r}"])
    left = answers.left(kind)
    if left == 0:
        raise Refusal("FeedbackBudgetExceeded", f"The budget for {kind} feedback of this round is used up.")
    if offer.content == "writers":
        return Purchase([f"current_score,{int(answers.score) + _writers(answers)}"], 1)
    positions = _choose(answers, kind, offer, ids)
    chosen = positions if left is None else answers.allow(kind, positions)[:left]
    lines = [_line(answers, offer, at) for at in chosen]
    return Purchase(lines, 0 if left is None else len(chosen), tuple(chosen))


def edit_distance(first: str, second: str) -> int:
    """Return Levenshtein's distance of two transcriptions after the same clean-up."""
    a, b = _clean(first), _clean(second)
    row = list(range(len(b) + 1))
    for number, left in enumerate(a, 1):
        before, row[0] = row[0], number
        for place, right in enumerate(b, 1):
            before, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, before + (left != right))
    return row[-1]


def _choose(answers: AgentAnswers, kind: str, offer: FeedbackOffer, ids: Sequence[str] | None) -> list[int]:
    """Return the samples that a request is about, in the order of the test."""
    recent = answers.latest[offer.reads]
    if ids is not None:
        open_to = set(recent.tolist()) if answers.test.constrained else answers.answered(offer.reads)
        return sorted({at for key in ids if (at := answers.test.index.get(key, -1)) in open_to})
    asked = sorted(set(recent.tolist()))
    if offer.wrong:
        return [at for at in asked if _is_wrong(answers, kind, offer, at)]
    if offer.content == "label":
        return asked[: answers.budget(kind)]
    return asked


def _is_wrong(answers: AgentAnswers, kind: str, offer: FeedbackOffer, at: int) -> bool:
    if kind == "detection":
        threshold = 0.5 if answers.test.threshold is None else answers.test.threshold
        return bool(answers.p_second[at] > threshold) != (_truth(answers, offer, at) not in ("0", "0.0"))
    if answers.test.area == "nlt":
        said = answers.texts.get(offer.reads, {}).get(at, [])
        return len(said) < 2 or said[1].strip() != _truth(answers, offer, at)
    return bool(answers.predicted[at] != answers.test.labels[at])


def _line(answers: AgentAnswers, offer: FeedbackOffer, at: int) -> str:
    key = answers.test.ids[at]
    if offer.content == "label":
        return f"{quote_id(key)},{min(int(answers.test.labels[at]), answers.test.known)}"
    if offer.content == "distance":
        said = answers.texts.get(offer.reads, {}).get(at, [""])
        return f"{quote_id(key)},{edit_distance(_truth(answers, offer, at), said[0] if said else '')}"
    row = answers.test.rows[at]
    return ",".join([quote_id(key), *(row[column].strip() if column < len(row) else "" for column in offer.columns)])


def _truth(answers: AgentAnswers, offer: FeedbackOffer, at: int) -> str:
    return answers.test.rows[at][offer.columns[0]].strip()


def _accuracy(answers: AgentAnswers) -> float:
    """Return the share of right answers; of samples that an earlier score covered, the answer of that time counts."""
    hits = answers.told_hits()
    if not (hits >= 0).any():
        raise Refusal("DetectionPostRequired", "Post classification results before asking for a score.")
    return float((hits == 1).sum() / (hits >= 0).sum())


def _writers(answers: AgentAnswers) -> int:
    """Return the score of the last round's statements about writers; a round counts once."""
    if answers.rounds.get("labels", UNSAID) in answers.scored:
        return 0
    said = answers.texts.get("labels", {})
    return sum(_writer_score(answers, at, said[at]) for at in answers.latest.get("labels", []) if at in said)


def _writer_score(answers: AgentAnswers, at: int, said: Sequence[str]) -> int:
    reported, real = (answers.test.rows[at][column].strip() for column in (2, 3))
    if len(said) < 2 or said[0].strip() not in ("0", "1"):
        raise Refusal("InvalidTuple", "A row of labels must say 0 (other writer) or 1 (same), then the writer.")
    return int((said[0].strip() == "1") == (reported == real)) + int(said[1].strip() == real)


def _clean(text: str) -> str:
    for sign in ';"|':
        text = text.replace(sign, "")
    pieces = (piece.strip() for piece in re.split(r"(\W+)", text.replace("  ", " ")))
    return " ".join(pieces)
