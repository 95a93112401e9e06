"""Questions and feedback in other words: synonyms of keywords; praise and blame swapped, replaced or withheld.

micro19 and micro20 use the synonyms. Novelties apply the rest to every task.
"""

from __future__ import annotations

import re
from random import Random

from openfield.domains.commai.environment.rounds import Round, RoundSource
from openfield.domains.commai.environment.task import Stage
from openfield.domains.commai.tasks.draws import load_phrasebook, pick

SYNONYMS = load_phrasebook().synonyms
KEYWORD = re.compile(rf"(?<!\w)({'|'.join(SYNONYMS)})(?=\W)")
_OTHER_WORDS = load_phrasebook().feedback
_VERDICT = re.compile("|".join(rf"^{word}(?=[!.])" for word in _OTHER_WORDS))


def reword_all(rounds: RoundSource, stage: Stage) -> RoundSource:
    """Return the same rounds in other words. The questions of a fixed set stay, because they are counted."""
    keys = rounds.keys
    return RoundSource(lambda: reword(rounds.draw(), stage, free=not keys), keys)


def reword(drawn: Round, stage: Stage, free: bool = True) -> Round:
    """Return a round in the words of the settings; its question changes only if it is `free` to."""
    settings = stage.settings
    if settings.synonyms and free:
        drawn = ask_otherwise(drawn, with_synonyms(drawn.question, stage.rng))
    if not settings.feedback:
        return drawn
    right, wrong = _feedback(settings.feedback, drawn.right, drawn.wrong)
    return Round(drawn.question, drawn.answer, right, wrong, drawn.accepts)


def with_synonyms(question: str, rng: Random) -> str:
    """Return the question with each keyword replaced by one of its synonyms."""
    chosen = {keyword: pick(rng, synonyms) for keyword, synonyms in SYNONYMS.items()}
    return KEYWORD.sub(lambda match: chosen[match[1]], question)


def ask_otherwise(drawn: Round, question: str) -> Round:
    """Return the same round with another question."""
    return Round(question, drawn.answer, drawn.right, drawn.wrong, drawn.accepts)


def _feedback(kind: str, right: str, wrong: str) -> tuple[str, str]:
    if kind == "swapped":
        return wrong, right
    if kind == "withheld":
        return "", ""
    return _rename(right), _rename(wrong)


def _rename(feedback: str) -> str:
    return _VERDICT.sub(lambda match: _OTHER_WORDS[match[0]], feedback)
