"""A test as a world: batches are shown and answered, and labels of answered samples may be bought.

An episode is a batch. A local agent goes batch by batch (`Scores`, `Buy`, `NextBatch`). A client of the protocol posts
in any order (`Post`, `Buy`) until it declares the test complete (`Complete`); then its batches are recorded one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from openfield.core import Ask, Belief, PhaseName, Reply, Truth, Turn
from openfield.course import Moment
from openfield.domains.ond.actions import Action, Buy, Carry, Clusters, Complete, NextBatch, Post, Scores, read_action
from openfield.domains.ond.errors import Refusal
from openfield.domains.ond.settings import OndSettings
from openfield.domains.ond.testset.agent_answers import AgentAnswers
from openfield.domains.ond.testset.builder import Built
from openfield.domains.ond.testset.evaluation import describe_round
from openfield.domains.ond.testset.feedback import Purchase, buy_feedback, preview_feedback
from openfield.domains.ond.testset.results import (
    ResultTable,
    check_columns,
    number_from_one,
    put_unknown_last,
    read_beliefs,
    read_posted_rows,
    read_table,
)
from openfield.errors import AgentProtocol, OpenfieldError
from openfield.trial import RedLight, show_light

ANY_ORDER = "Servers started with --compat take rounds in any order."
IN_ORDER = ("detection", "classification", "labels")
"""The results that are taken round by round, in order."""


class TestWorld:
    """One test, played once."""

    __test__ = False

    def __init__(self, built: Built, settings: OndSettings, red_light: RedLight) -> None:
        self.test, self._built, self._settings = built.test, built, settings
        self.red_light = red_light
        self.first_post = self.completed = ""
        self._tables: tuple[Post, dict[str, ResultTable]] | None = None
        self.reset()

    @property
    def over(self) -> bool:
        """Whether the last batch is recorded."""
        return self._number + 1 >= self.test.rounds

    @property
    def compat(self) -> bool:
        """Whether old clients are served, by the original's rules."""
        return self._settings.level == "compat"

    def reset(self) -> Turn:
        """Show the training samples and the metadata of the test."""
        settings, strict = self._settings, self._settings.level == "strict"
        self.answers = AgentAnswers(
            self.test, settings.threshold, bool(self.red_light), settings.cap, strict, bool(self._built.moments)
        )
        self._number, self._answered, self._closing, self._told = -1, False, False, False
        metadata = self.test.shown(bool(self.red_light))
        metadata.pop("unknown_index", None)  # which is always the first here
        seen: dict[str, Any] = {"metadata": metadata}
        trains = bool(len(self._built.labels))
        if trains:
            seen |= {"images": self._built.images, "labels": self._built.labels}
        phase: PhaseName = "training" if trains else "test"
        self.truth = Truth(episode_over=trains)
        return Turn(ask=Ask.READY, observation=seen, phase=phase, first=True)

    def step(self, reply: Reply) -> Turn:
        """Take an answer, a purchase, the end of a batch, or a request of the protocol."""
        if self._number < 0 and not _is_remote(reply.action):
            return self._show_batch()
        if self.truth.episode_over and self._number >= 0:
            return self._record_batch() if self._closing else self._show_batch()
        action = read_action(reply.action)
        return self._serve(action) if self._number < 0 else self._answer(action, reply.belief)

    def look(self, query: str) -> Any:
        """Return the answer to the query `beliefs`: the beliefs about the batch that is being recorded."""
        if query != "beliefs":
            raise OpenfieldError("In ond there is only `beliefs` to look at.")
        said = self.answers.p_world[self.test.span(self._number)]
        return Belief(tuple(float(value) for value in np.nan_to_num(said)))

    def close(self) -> None:
        """Do nothing: there is nothing to free."""

    def read(self, post: Post) -> dict[str, ResultTable]:
        """Read posted results and refuse those that do not fit the test; earlier answers are not looked at."""
        compat = post.old or self._settings.level == "compat"
        return {
            kind: read_posted_rows(kind, text, self.test, post.round, compat) for kind, text in post.results.items()
        }

    def show(self, number: int) -> None:
        """Note that a client is shown a round; refuse one before the results of the round before it."""
        if number > self.current and not (number == self.current + 1 and (number == 0 or self._has_results)):
            text = f"Round {number} is shown when results of round {max(self.current, 0)} are posted."
            raise Refusal("RoundOutOfOrder", f"{text} {ANY_ORDER}")
        self.answers.shown = max(self.answers.shown, number)

    def check_order(self, number: int) -> None:
        """Refuse results of a round that is not the current one, or that has had its feedback."""
        begins = number == self.current + 1 and (number == 0 or self._has_results)
        if number != self.current and not begins:
            raise Refusal("RoundOutOfOrder", f"Results come round by round, now of {self.current}. {ANY_ORDER}")
        if number in self.answers.informed:
            raise Refusal("RoundOutOfOrder", f"Results of round {number} come before its feedback. {ANY_ORDER}")

    @property
    def current(self) -> int:
        """The round that a client plays: the last one that it was shown or posted."""
        return max([self.answers.shown, *(number for kind in IN_ORDER for number in self.answers.posted.get(kind, ()))])

    @property
    def _has_results(self) -> bool:
        """Whether results of the current round are posted."""
        return any(self.current in self.answers.posted.get(kind, ()) for kind in (*IN_ORDER, "characterization"))

    def has_passed(self, number: int) -> bool:
        """Return whether labels of a round and of those before tell a client nothing that still counts."""
        return self.current > number or number in self.answers.informed

    def prepare(self, post: Post, tables: dict[str, ResultTable], then: Sequence[Buy] = ()) -> dict[str, Purchase]:
        """Refuse results that differ in their columns from earlier ones, or after which a purchase would be refused.

        So a bad post leaves no trace. `tables` are the results as they were read. Returned is what would be bought.
        """
        if not post.old:
            self._check_widths(tables)
        bought: dict[str, Purchase] = {}
        if then:
            after = self.answers.copy()
            after.post(post.round, tables)
            bought = {wish.type: preview_feedback(after, wish.type, wish.ids) for wish in then}
        self._tables = post, tables
        return bought

    def _check_widths(self, tables: dict[str, ResultTable]) -> None:
        """Check that rows have as many values as the test wants and earlier rounds had; old clients are not checked."""
        if self._settings.level == "compat":
            return
        for kind, table in tables.items():
            if table.numbers is None:
                continue
            width, before = table.numbers.shape[1], self.answers.columns.get(kind)
            check_columns(kind, width, self.test, self._settings.protocol)
            if before is not None and width != before:
                problem = f"The {kind} rows had {before} values in an earlier round, not {width}."
                raise Refusal("InvalidResults", problem)

    def _serve(self, action: Action) -> Turn:
        """Carry out a request of the protocol."""
        feedback = None
        match action:
            case Post():
                prepared, self._tables = self._tables, None
                fits = prepared is not None and prepared[0] is action
                self.answers.post(action.round, prepared[1] if prepared and fits else self._read_checked(action))
                self.first_post = self.first_post or action.at
            case Carry():
                self.answers.take_over(action)
            case Complete():
                self._closing, self.completed = True, action.at
                return self._record_batch()
            case Buy():
                feedback = self._sell(action)
            case _:
                raise AgentProtocol("this is nothing a client of the protocol sends")
        self.truth = Truth()
        return Turn(observation={"posted": self.answers.last_round}, feedback=feedback)

    def _read_checked(self, post: Post) -> dict[str, ResultTable]:
        try:
            tables = self.read(post)
            if not post.old:
                self._check_widths(tables)
        except Refusal as error:
            raise AgentProtocol(str(error)) from None
        return tables

    def _answer(self, action: Any, belief: Belief | None) -> Turn:
        """Carry out a local agent's action on the batch it was shown."""
        feedback: Any = None
        match action:
            case Scores() if not self._answered:
                self._take_scores(action.p, belief)
                self._answered = True
                feedback = self._round_scores()
            case Buy() if self._answered:
                feedback = self._sell(action)
            case Clusters() if self._answered:
                at = np.arange(len(self.test.ids))
                self._take(0, {"characterization": ResultTable(at, read_table(action.p, len(at)))})
            case NextBatch() | Scores() if self._answered:  # a bare table again: from an agent that knows nothing else
                return self._end_batch()
            case _:
                wanted = "Buy, Clusters or NextBatch" if self._answered else "Scores"
                raise AgentProtocol(f"batch {self._number} waits for {wanted}, not for {type(action).__name__}")
        return self._turn({"round": self._number, "answered": True}, feedback)

    def _take_scores(self, p: list[list[float]], belief: Belief | None) -> None:
        at = np.array(self.test.span(self._number))
        scores = read_table(p, len(at))
        kind = "characterization" if self._settings.protocol == "CONDDA" else "classification"
        if kind == "classification" and self.test.unknown_index:
            scores = put_unknown_last(scores)
        worlds = read_beliefs(belief, len(at))
        self._take(self._number, {"detection": ResultTable(at, worlds[:, None]), kind: ResultTable(at, scores)})

    def _take(self, number: int, tables: dict[str, ResultTable]) -> None:
        """Take the answers of a local agent if they have as many columns as the test wants."""
        try:
            self._check_widths(tables)
        except Refusal as error:
            raise AgentProtocol(str(error)) from None
        self.answers.post(number, tables)

    def _sell(self, action: Buy) -> dict[str, Any]:
        """Sell feedback, to a local agent with classes as it numbers them."""
        try:
            lines = buy_feedback(self.answers, action.type, action.ids).lines
        except Refusal as error:
            return {"type": action.type, "refused": error.reason, "message": str(error)}
        self._told = self._told or bool(lines)
        if self._number >= 0 and self.test.unknown_index:
            lines = number_from_one(action.type, lines, self.test.known)
        return {"type": action.type, "lines": lines}

    def _round_scores(self) -> dict[str, float] | None:
        if not self._settings.scores:
            return None
        self._told = True
        self.answers.bind()
        ranks = self.answers.ranks[self.test.span(self._number)]
        return {f"top{k}": float(((ranks >= 0) & (ranks < k)).mean()) for k in (1, 3)}

    def _show_batch(self) -> Turn:
        first = self._number >= 0 or bool(len(self._built.labels))
        self._number += 1
        self._answered = self._told = False
        span = self.test.span(self._number)
        seen: dict[str, Any] = {"round": self._number, "ids": self.test.ids[span.start : span.stop]}
        if self.test.images is not None:
            seen["images"] = self.test.images[span.start : span.stop]
        return self._turn(seen, first=first)

    def _turn(self, seen: Any, feedback: Any = None, first: bool = False) -> Turn:
        self.truth = self._true()
        return Turn(observation=seen, feedback=feedback, first=first, red_light=self._light())

    def _record_batch(self) -> Turn:
        self._number += 1
        return self._end_batch()

    def _end_batch(self) -> Turn:
        performance, detail = describe_round(self.answers, self._number)
        held = self.answers.binding and (self._told or self.answers.is_held)
        belief = self.look("beliefs") if held else None
        self.truth = self._true(episode_over=True, performance=performance, detail=detail, belief=belief)
        return Turn(ask=Ask.NONE, last="terminated", red_light=self._light())

    def _true(self, **more: Any) -> Truth:
        """Return what is true of this batch."""
        moment = self._moment
        strength, change = (None, "") if moment is None else (moment.strength, moment.change)
        return Truth(novel=self._is_novel(), strength=strength, change=change, **more)

    @property
    def _moment(self) -> Moment[OndSettings] | None:
        """What is true of this batch where changes come gradually or several times; None elsewhere."""
        moments = self._built.moments
        return moments[self._number] if 0 <= self._number < len(moments) else None

    def _is_novel(self) -> bool:
        """Return whether the onset lies in this batch or before it; where changes come and go, whether it differs."""
        if self._moment is not None:
            return self._moment.novel
        return bool(self.test.novel[: self.test.span(self._number).stop].any())

    def _light(self) -> bool | float | None:
        return show_light(self.red_light, self._is_novel(), None if self._moment is None else self._moment.strength)


def _is_remote(action: Any) -> bool:
    """Return whether an action comes from a client of the protocol, which is shown no batches."""
    served = ("post", "carry", "complete", "buy")
    return isinstance(action, Post | Carry | Complete | Buy) or (
        isinstance(action, dict) and action.get("do") in served
    )
