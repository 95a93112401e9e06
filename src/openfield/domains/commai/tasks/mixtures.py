"""micro16, micro19 and micro20: earlier questions mixed, in other words, and in made-up code.

They draw their rounds from phrases.py and change the wording of the question only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from openfield.domains.commai.environment.draws import pick, sample
from openfield.domains.commai.environment.rewording import KEYWORD, SYNONYMS, ask_otherwise, with_synonyms
from openfield.domains.commai.environment.rounds import Deal, Round
from openfield.domains.commai.environment.task import Stage
from openfield.domains.commai.environment.vocabulary import words_without
from openfield.domains.commai.tasks.micro import Asking, MicroTask
from openfield.domains.commai.tasks.phrases import Maker, Pen, plain_pen

_ALL_SYNONYMS = tuple(synonym for synonyms in SYNONYMS.values() for synonym in synonyms)
_CODE_WORDS = slice(200, 400)


class MixedTask(MicroTask):
    """micro16: each instance is one of several tasks."""

    def __init__(self, name: str, makers: Sequence[Maker]) -> None:
        super().__init__(name)
        self._makers = makers

    def deal(self, stage: Stage) -> Deal:
        """The rounds of one of the tasks."""
        make, pen = pick(stage.rng, self._makers), plain_pen(stage)
        return Asking(lambda stage: make(pen), stage)


class ReworkedTask(MicroTask):
    """What micro19 and micro20 share: every task comes once before any comes again."""

    failed_task_tolerance = 2.0

    def __init__(self, name: str, makers: Sequence[Maker]) -> None:
        super().__init__(name)
        self._makers = makers
        self._left: list[Maker] = []

    def deal(self, stage: Stage) -> Deal:
        """The reworded rounds of one of the tasks."""
        if not self._left:
            self._left = sample(stage.rng, self._makers, len(self._makers))
        make = self._left.pop()
        rework, pen = self.rework(stage)
        return Asking(lambda stage: rework(make(pen)), stage)

    def rework(self, stage: Stage) -> tuple[Callable[[Round], Round], Pen]:
        """How the questions of a new instance are reworded, and the words it may use."""
        raise NotImplementedError


class SynonymTask(ReworkedTask):
    """micro19: keywords become synonyms."""

    def rework(self, stage: Stage) -> tuple[Callable[[Round], Round], Pen]:
        """Each keyword of a question is replaced by one of its synonyms."""
        rng, pool = stage.rng, words_without(_ALL_SYNONYMS, stage.settings.vocabulary)

        def rework(drawn: Round) -> Round:
            return ask_otherwise(drawn, with_synonyms(drawn.question, rng))

        return rework, Pen(rng, lambda: pick(rng, pool))


class CodeTask(ReworkedTask):
    """micro20: one keyword becomes a code word that the question introduces."""

    def rework(self, stage: Stage) -> tuple[Callable[[Round], Round], Pen]:
        """Six code words are assigned to the keywords; a question uses one of them."""
        rng, pool = stage.rng, words_without(_ALL_SYNONYMS, stage.settings.vocabulary)
        codes = dict(zip(SYNONYMS, sample(rng, pool[_CODE_WORDS], len(SYNONYMS)), strict=True))

        def rework(drawn: Round) -> Round:
            key = pick(rng, sorted(set(KEYWORD.findall(drawn.question))))
            coded = KEYWORD.sub(lambda match: codes[key] if match[1] == key else match[1], drawn.question)
            return ask_otherwise(drawn, f"{codes[key]} is as {key} - {coded}")

        def word() -> str:
            while any(code in (drawn := pick(rng, pool)) for code in codes.values()):
                continue
            return drawn

        return rework, Pen(rng, word)
