"""The answers of an agent to a test so far, sample by sample, and the feedback it has bought.

The state inside a world: results and purchases go in, vectors over all samples come out. Scores are reduced to what the
metrics need, so that a round costs the same however long the test is.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from openfield.domains.ond.actions import Carry, Told
from openfield.domains.ond.testset.results import ResultTable
from openfield.domains.ond.testset.test import Test
from openfield.metrics.openset.compat import NEVER, rank_labels

VECTORS = {
    "detection": ("p_world", "p_second"),
    "classification": ("ranks", "predicted", "p_unknown", "best_known", "confidence"),
    "labels": ("ranks",),
}
"""Type of results -> the vectors of `AgentAnswers` that keep them."""
WHOLE = ("ranks", "predicted", "best_known")
UNSAID = -1
"""The value of a sample without an answer."""


class AgentAnswers:
    """All answers to one test in one attempt."""

    def __init__(
        self,
        test: Test,
        threshold: float = 0.5,
        red_light: bool = False,
        cap: int = -1,
        binding: bool = False,
        returning: bool = False,
    ) -> None:
        """Begin without answers.

        Args:
            test: The test to answer.
            threshold: The belief above which a change is declared.
            red_light: Whether the agent is told when the world has changed.
            cap: Another budget than the test's own; -1: no budget.
            binding: Whether beliefs no longer count once feedback has revealed the change.
            returning: Whether the world may be normal again after a change, in trials of this kind.
        """
        count = len(test.ids)
        self.binding, self._returning = binding and not red_light, returning
        self.bound: float | None = None
        """The belief that counts from now on: feedback on a changed world was given after it."""
        self.floor: float | None = None
        """The least that counts from now on: feedback on a world that had not changed was given after it."""
        self.test, self.threshold, self.red_light, self.cap = test, threshold, red_light, cap
        self.p_world, self.p_second = np.full(count, np.nan), np.full(count, np.nan)
        self.ranks = np.full(count, UNSAID, np.int64)
        self.predicted = np.full(count, UNSAID, np.int64)
        """The best column of the scores."""
        self.p_unknown, self.confidence = np.full(count, np.nan), np.full(count, np.nan)
        self.best_known = np.full(count, UNSAID, np.int64)
        """The best column but the unknown one; `confidence` is its score."""
        self.cluster = np.full(count, UNSAID, np.int64)
        self.texts: dict[str, dict[int, list[str]]] = {}
        self.columns: dict[str, int] = {}
        self.posted: dict[str, set[int]] = {}
        """Type -> rounds it was posted for."""
        self.latest: dict[str, NDArray[np.int64]] = {}
        """Type -> samples of its last posted round."""
        self.last_round = self.shown = UNSAID
        self.rounds: dict[str, int] = {}
        """Type -> its last posted round."""
        self.declared = False
        self.used: dict[str, int] = {}
        """`ROUND TYPE` -> the used part of a posted round's budget; `of ROUND TYPE` -> and of that of its samples."""
        self.score = 0.0
        self.scored: set[int] = set()
        """Rounds whose writers were scored already (text tests)."""
        self.told = np.full(count, UNSAID, np.int8)
        """Samples covered by a score: 1 if the answer was right then, 0 if not, whatever is answered later."""
        self.locked = LockedAnswers()
        self.informed: set[int] = set()
        """Rounds on which feedback was given."""

    def copy(self) -> AgentAnswers:
        """Return a copy about the same test, to try something on."""
        return copy.deepcopy(self, {id(self.test): self.test})

    def post(self, number: int, tables: Mapping[str, ResultTable]) -> None:
        """Take the results of a round."""
        for kind, table in tables.items():
            again = self.posted.setdefault(kind, set())
            known = self.latest.get(kind) if number == self.last_round and number in again else None
            self.latest[kind] = table.positions if known is None else np.union1d(known, table.positions)
            self.rounds[kind] = number
            again.add(number)
            self._keep(kind, table)
        self.last_round = number

    def budget(self, kind: str) -> int | None:
        """Return how much feedback of a kind may be bought in a round; None is any number."""
        offer = self.test.kind.feedback[kind]
        if not offer.budget or (offer.budget == "detection" and self.red_light):
            return None
        most = self.test.count("feedback_max_ids") or 0
        most = most if self.cap < 0 else self.cap
        own = self.test.count("max_detection_feedback_ids") if offer.budget == "detection" else None
        return most if own is None else own

    @property
    def next_round(self) -> int:
        """The first round that lacks results of a type the test has results of, for a client that goes on."""
        named = tuple(kind for kind in ("classification", "labels") if kind in self.posted)
        kinds: tuple[str, ...] = named or ("characterization",)  # of CONDDA, where it comes round by round
        posted = [self.posted[kind] for kind in ("detection", *kinds) if kind in self.posted]
        done = set.intersection(*posted) if posted else set()
        if done == {0} == self.posted.get("detection") and len(posted) == 1:
            return 0  # detections come first: what belongs to these has not come yet
        return next(number for number in range(len(done) + 1) if number not in done)

    def left(self, kind: str) -> int | None:
        """Return the rest of a budget in the last posted round."""
        most = self.budget(kind)
        return None if most is None else max(most - self.used.get(self.account(kind), 0), 0)

    def account(self, kind: str) -> str:
        """Return the account of a budget: that of the last posted round of what the feedback is about."""
        return f"{self.rounds.get(self.test.kind.feedback[kind].reads, self.rounds['detection'])} {kind}"

    def allow(self, kind: str, positions: Sequence[int]) -> list[int]:
        """Return those of some samples on which feedback may still be bought: no round has more than its budget."""
        most, sold, allowed = self.budget(kind), dict[str, int](), list[int]()
        for at in positions:
            own = self.sample_account(kind, at)
            sold[own] = sold.get(own, self.used.get(own, 0)) + 1
            if most is None or sold[own] <= most:
                allowed.append(at)
        return allowed

    def sample_account(self, kind: str, position: int) -> str:
        """Return the account of the budget of a sample's own round."""
        return f"of {position // (self.test.round_size or len(self.test.ids))} {kind}"

    def is_answered(self) -> bool:
        """Return whether the last posted round has its beliefs and its scores, or what stands for scores."""
        named = [self.rounds.get(kind, UNSAID) for kind in ("classification", "labels", "transcription")]
        current = max(self.rounds.get("detection", UNSAID), *named)
        return self.rounds.get("detection") == current and current in (*named, self.rounds.get("characterization"))

    def bind(self) -> None:
        """Note that feedback was given: it must not make beliefs better.

        If the world has changed by now, the belief so far counts from now on. If it has not, later beliefs are not
        lower: an agent that never looks could lower its belief as long as feedback says that nothing has changed. Where
        the world may be normal again, the belief so far counts in either case, as feedback tells when to expect what.
        """
        self.informed.add(self.last_round)
        said = np.flatnonzero(~np.isnan(self.p_world))
        if not self.binding or self.bound is not None or not len(said):
            return
        span = self.test.span(int(said[-1]) // (self.test.round_size or len(self.test.ids)))
        belief = float(np.nanmax(self.p_world[span.start : span.stop]))
        if self._returning or self.test.novel[: said[-1] + 1].any():
            self.bound = belief
        else:
            self.floor = belief

    @property
    def is_held(self) -> bool:
        """Whether beliefs are held to what was stated before feedback was given."""
        return self.bound is not None or self.floor is not None

    def carry(self) -> Carry:
        """Return what the next attempt takes over. Beliefs are bound to those of the first attempt.

        Else a client could look at all rounds, start again, and state beliefs with hindsight.
        """
        if self.binding:
            seen = max([self.shown, *(number for rounds in self.posted.values() for number in rounds)])
            stated = ~np.isnan(self.p_world)
            stated[: self.test.span(max(seen, 0)).start] = True  # also that nothing was stated before the next round
            self.locked.lock(self, "detection", np.flatnonzero(stated).tolist())
        signs = "".join(map("01-".__getitem__, self.told.tolist())) if (self.told >= 0).any() else ""
        return Carry(
            dict(self.used), self.score, sorted(self.scored), signs, self.locked.carry(), self.bound, self.floor
        )

    def take_over(self, carry: Carry) -> None:
        """Take over the legacy of an earlier attempt."""
        self.used, self.score, self.scored = dict(carry.used), carry.score, set(carry.scored)
        self.bound, self.floor = carry.bound, carry.floor
        if len(carry.told) == len(self.told):
            self.told = np.array(["01".find(sign) for sign in carry.told], np.int8)
        self.locked.take_over(carry.answers, len(self.told))

    def told_hits(self) -> NDArray[np.int8]:
        """Return for each sample whether its answer counts as right in a score: 1, 0, or -1 without an answer.

        Of a sample that a score has covered, the answer at that time counts: an agent that posts a sample again,
        also after starting the test again, cannot find its label by trying. Only samples of this attempt count.
        """
        first = np.where(self.told >= 0, self.told, self.ranks == 0)
        return np.where(self.ranks >= 0, first, UNSAID).astype(np.int8)

    def tell_score(self) -> None:
        """Remember which answers a score has covered."""
        self.told = np.where(self.told >= 0, self.told, self.told_hits())

    def answered(self, kind: str) -> set[int]:
        """Return the samples that results of a type were posted for, in any round."""
        if kind in self.texts:
            return set(self.texts[kind])
        said = {"detection": ~np.isnan(self.p_world), "classification": self.ranks >= 0}
        return set(np.flatnonzero(said[kind]).tolist()) if kind in said else set()

    def _keep(self, kind: str, table: ResultTable) -> None:
        at = table.positions
        if table.texts is not None:
            self.texts.setdefault(kind, {}).update(zip(at.tolist(), table.texts, strict=True))
            if kind == "labels" and self.test.area == "nlt":
                self._keep_writers(at, table.texts)
        if table.numbers is not None:
            self._keep_numbers(kind, at, table.numbers)
        self.locked.restore(self, kind, at)

    def _keep_numbers(self, kind: str, at: NDArray[np.int64], numbers: NDArray[np.float64]) -> None:
        self.columns[kind] = numbers.shape[1]
        if kind == "detection":
            stated = np.maximum(numbers[:, 0], self.floor or 0.0)
            self.p_world[at] = stated if self.bound is None else self.bound
            self.p_second[at] = numbers[:, 1] if numbers.shape[1] > 1 else np.nan
            lit = self.red_light and self.test.index.get(self.test.red_light) in at
            self.declared = self.declared or lit or bool((numbers[:, 0] > self.threshold).any())
        elif kind == "classification":
            self._keep_classes(at, numbers)
        else:
            self.cluster[at] = numbers.argmax(axis=1)

    def _keep_writers(self, at: NDArray[np.int64], texts: Sequence[Sequence[str]]) -> None:
        """Keep whether named writers are right; there is no second guess."""
        real = (self.test.rows[position][self.test.kind.label].strip() for position in at)
        right = [len(said) > 1 and said[1].strip() == writer for said, writer in zip(texts, real, strict=True)]
        self.ranks[at] = np.where(right, 0, NEVER)

    def _keep_classes(self, at: NDArray[np.int64], scores: NDArray[np.float64]) -> None:
        self.ranks[at] = rank_labels(scores, self.test.labels[at])
        self.predicted[at] = scores.argmax(axis=1)
        unknown = self.test.unknown_index
        if 0 <= unknown < scores.shape[1] > 1:
            self.p_unknown[at] = scores[:, unknown]
            scores = scores.copy()
            scores[:, unknown] = -1
        self.best_known[at] = scores.argmax(axis=1)
        self.confidence[at] = scores.max(axis=1)


class LockedAnswers:
    """The answers to samples whose truth was revealed, by the type of results it was revealed for.

    Without them, labels bought in one attempt could be posted as answers in the next.
    """

    def __init__(self) -> None:
        self._answers: dict[str, dict[int, Told]] = {}

    def lock(self, answers: AgentAnswers, kind: str, positions: Iterable[int]) -> None:
        """Lock the present answers to some samples; answers that are locked already stay."""
        if kind not in VECTORS:
            return
        held, texts = self._answers.setdefault(kind, {}), answers.texts.get(kind, {})
        for at in positions:
            if at not in held:
                values = [getattr(answers, name)[at].item() for name in VECTORS[kind]]
                plain = tuple(None if value != value else value for value in values)  # a record can keep no NaN
                held[at] = Told(at, plain, texts.get(at))

    def restore(self, answers: AgentAnswers, kind: str, positions: NDArray[np.int64]) -> None:
        """Put locked answers in the place of those that were just posted."""
        if kind not in self._answers:
            return
        held = self._answers[kind]
        for answer in (held[at] for at in positions.tolist() if at in held):
            for name, value in zip(VECTORS[kind], answer.values, strict=True):
                getattr(answers, name)[answer.at] = math.nan if value is None else value
            if answer.words is not None:
                answers.texts.setdefault(kind, {})[answer.at] = answer.words

    def carry(self) -> dict[str, list[Told]]:
        """Return what the next attempt takes over."""
        return {kind: list(held.values()) for kind, held in self._answers.items() if held}

    def take_over(self, answers: Mapping[str, Sequence[Told]], count: int) -> None:
        """Take over the answers that an earlier attempt locked, but not those that do not fit `count` samples."""
        for kind, known in answers.items():
            fits = {one.at: one for one in known if 0 <= one.at < count and _fits(kind, one)}
            self._answers[kind] = self._answers.get(kind, {}) | fits


def _fits(kind: str, answer: Told) -> bool:
    """Return whether a locked answer has valid values; it may come from a file."""
    names = VECTORS.get(kind, ())
    return 0 < len(names) == len(answer.values) and all(
        isinstance(value, int)
        if name in WHOLE
        else value is None or (isinstance(value, int | float) and 0 <= value <= 1)
        for name, value in zip(names, answer.values, strict=True)
    )
