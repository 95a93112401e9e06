"""Sessions and tests as clients of the protocol know them: opened, asked for, posted to, completed, scored, ended.

Between the requests in `routes.py` and the dispatcher: checks that a request is allowed, and turns it into replies of a
rollout.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

import msgspec

from openfield.console import say_count
from openfield.core import Reply
from openfield.domains.ond.actions import Buy, Carry, Complete, Post
from openfield.domains.ond.errors import Refusal
from openfield.domains.ond.server.archive import detector_of, done_tests, finished_tests, has_purchases, pack_session
from openfield.domains.ond.testset.agent_answers import AgentAnswers
from openfield.domains.ond.testset.data_directory import TABLE_SUFFIX, DataDirectory
from openfield.domains.ond.testset.evaluation import evaluate_more, evaluate_reaction, evaluate_round, evaluate_test
from openfield.domains.ond.testset.feedback import SCORES, Purchase, preview_feedback
from openfield.domains.ond.testset.results import TYPES
from openfield.domains.ond.testset.test import Test
from openfield.domains.ond.trials import grant_hints, session_trial
from openfield.domains.ond.world import IN_ORDER, TestWorld
from openfield.errors import InvalidInput, OpenfieldError
from openfield.journal.receipt import Receipt
from openfield.runner.plan import MAX_NAME
from openfield.serving.remote import RemoteRollout
from openfield.serving.sessions import Session, SessionDispatcher
from openfield.trial import Trial

LOG = logging.getLogger("openfield.ond")
HINT_LIMITS = {"feedback_max_ids": 1000}
"""The hints a server grants by default."""
SCORE_SOLD = "score sold"
"""Begins the fact that a session was given a score as feedback, before its test was completed."""
MAX_TRIALS = 10_000
"""Trials of sessions that are kept to be used again."""
LARGE_POST = 4 << 20
"""Characters of results from which on they are read in a thread; fewer take less than a tenth of a second."""


def local_time() -> str:
    """Return the present time as the protocol writes it."""
    return datetime.now().isoformat(" ", "microseconds")


async def wait_for_disk(written: Receipt[None] | None) -> None:
    """Return when a write is on disk, or at once where nothing is recorded."""
    if written is not None:
        await written


def world_of(remote: RemoteRollout) -> TestWorld:
    """Return the test that a remote agent plays."""
    world = remote.rollout.world
    if not isinstance(world, TestWorld):
        raise OpenfieldError("This remote is not about a test of ond.")
    return world


class ServiceRules(msgspec.Struct, frozen=True):
    """What clients may do."""

    compat: bool = False
    """Whether what old clients post is accepted."""
    devmode: bool = False
    """Whether scores of a test in process are shown to those who ask for them with `devmode`."""
    hint_limits: Mapping[str, int] = msgspec.field(default_factory=lambda: HINT_LIMITS)
    """The metadata that a session may change for itself by a hint `KEY=NUMBER`, and the highest number of each."""
    scorings: int | None = 1
    """How often a team gets the scores of a test; None means any number, for people who have the labels themselves."""
    teams: frozenset[str] = frozenset()
    """All teams; a test is closed when each of them has completed it."""


class SessionService:
    """Does what requests ask for."""

    def __init__(
        self,
        dispatcher: SessionDispatcher,
        directory: DataDirectory,
        version: int,
        rules: ServiceRules | None = None,
        team: str | None = None,
        clock: Callable[[], str] = local_time,
    ) -> None:
        """Serve tests to the sessions of a dispatcher.

        Args:
            dispatcher: Keeps the sessions.
            directory: Has the tests.
            version: The version of the domain whose trials new sessions get.
            rules: What clients may do.
            team: The team whose sessions are served, and no others; None for those of no team.
            clock: Returns the present time.
        """
        self.dispatcher, self.directory, self._version = dispatcher, directory, version
        self._rules, self._team, self._clock = rules or ServiceRules(), team, clock
        self._closing: set[tuple[str, str]] = set()
        self._trials: dict[bytes, Trial] = {}
        own = [session for session in dispatcher.groups.values() if self._owns(session)]
        self._informed = {self._identify(one, test) for one in own for test in one.trials if _is_informed(one, test)}
        """The tests of which sessions of the team were given feedback."""
        self._players: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        """The sessions of the team that have a test, each with its own name for it."""
        for one in own:
            self._enter_players(one)

    def test_list(self, protocol: str, area: str) -> bytes:
        """Return the list of tests, as published or as found."""
        self._check_area(protocol, area)
        published = self.directory.list_file(protocol, area)
        return "\n".join(self.directory.names(protocol, area)).encode() if published is None else published

    async def open(self, asked: Mapping[str, Any], tests: Sequence[str], original: bool = False) -> str:
        """Open a session and return its id.

        Args:
            asked: The configuration of the session.
            tests: The names of its tests.
            original: Whether the original's client asks, which is served by the original's rules.
        """
        protocol, area = str(asked["protocol"]), str(asked.get("domain") or "image_classification")
        compat = self._rules.compat or original
        threshold = _read_threshold(asked.get("detection_threshold", 0.5 if compat else None))
        self._check_area(protocol, area)
        hints = asked.get("hints") or []
        if not isinstance(hints, list) or not all(isinstance(hint, str) for hint in hints):
            raise Refusal("BadRequest", "hints must be a list of texts.")
        facts = {"protocol": protocol, "domain": area, "detection_threshold": threshold, "hints": hints}
        facts |= {"hint_limits": dict(self._rules.hint_limits)} if any("=" in hint for hint in hints) else {}
        facts |= {"compat": True} if compat else {}
        trials = {name: await self._make_trial(name, facts) for name in tests}
        if not compat:
            self._check_untold(trials, "red_light" in hints)
        session_id = str(uuid.uuid4())
        said = str(asked["novelty_detector_version"])[:MAX_NAME]
        detector = "".join(sign if sign.isprintable() and sign != "," else "_" for sign in said)  # one column of a line
        name = detector
        if self._team is not None:  # two teams may call their detectors the same
            name, facts = f"{self._team}/{detector}"[:MAX_NAME], facts | {"team": self._team, "detector": detector}
        by_rules = f"{name} played a session by the original's rules: rounds in any order, and scores at once."
        known = {"created": self._clock(), **facts}
        session = await self.dispatcher.open(session_id, name, trials, known, by_rules if compat else "")
        self._enter_players(session)
        for test in tests if self._informed else ():
            if self._identify(session, test) in self._informed:
                await self._caution_informed(session, test)
        return session_id

    async def _make_trial(self, test: str, facts: Mapping[str, Any]) -> Trial:
        """Return the trial of a test in a session; sessions that ask for the same have the same trials."""
        key = msgspec.json.encode([test, facts])
        if key not in self._trials:
            known, digests = await asyncio.to_thread(self._load, facts["protocol"], facts["domain"], test)
            if len(self._trials) >= MAX_TRIALS:
                self._trials.clear()
            self._trials[key] = session_trial(
                known, digests, self.directory.root, facts, self._version, "compat" in facts
            )
        return self._trials[key]

    def metadata(self, session_id: str, test: str) -> dict[str, Any]:
        """Return the metadata of a test that a client may see."""
        session = self._find(session_id, test)
        if not self.directory.has_metadata(*_place(session), test):
            raise Refusal("metadata_not_found", "The test has no metadata.", 500)
        known = self._load_hinted(session, test)
        return known.shown("red_light" in session.facts["hints"])

    async def dataset(self, session_id: str, test: str, number: int, resume: bool = False) -> bytes | None:
        """Return the ids of a round, or None past the end.

        Round 0 of a test that has results starts the test again, unless `resume` is true.
        """
        session = self._find(session_id, test)
        self._check_open(session, test)
        known = self._load_hinted(session, test)
        if known.round_size is None:
            raise Refusal("no_defined_rounds", "The test's metadata define no rounds.")
        answers = await self._find_answers(session, test)  # fails if the files are no longer those it was begun with
        self._check_open(session, test)
        if number == 0 and not resume and answers.posted:
            await self.dispatcher.restart(session, test, lambda remote: self._carry(session, test, remote))
            await self._caution_if_others_informed(session, test)
        span = known.span(number)
        if not span:
            return None
        if "compat" not in session.facts:
            world_of(await self._find_remote(session, test)).show(number)
        if known.area == "nlt":
            return _encode_texts(known, span)
        return ("\n".join(known.ids[span.start : span.stop]) + "\n").encode()

    async def post(
        self, session_id: str, test: str, number: int, results: dict[str, str], then: Sequence[Buy] = ()
    ) -> None:
        """Take the results of a round, as type -> rows: all of them or none.

        If the purchase that follows would be refused, so are the results.
        """
        for kind in results:
            if kind not in TYPES and not kind.startswith("x_"):
                raise Refusal("InvalidResults", f"'{kind[:40]}' is not a type of result; further types begin with x_.")
        remote = await self._open_remote(session_id, test)
        compat = "compat" in self._find(session_id).facts
        self._check_new(world_of(remote), number, results, compat)
        action = Post(number, results, self._clock())
        if sum(map(len, results.values())) < LARGE_POST:
            tables = world_of(remote).read(action)
        else:  # takes seconds, in which other requests are served and may change everything
            tables = await asyncio.to_thread(world_of(remote).read, action)
            remote = await self._open_remote(session_id, test)
            self._check_new(world_of(remote), number, results, compat)
        packed = {kind: tables[kind].packed or text for kind, text in results.items()}
        action = msgspec.structs.replace(action, results=packed)
        bought = world_of(remote).prepare(action, tables, then)
        self._check_scores(self._find(session_id), test, remote, bought)
        _, written = remote.take(Reply(action))
        await wait_for_disk(written)

    async def feedback(self, session_id: str, test: str, kinds: list[str], ids: list[str] | None) -> list[bytes]:
        """Return feedback on answered samples, one body per kind; if one kind is refused, all are."""
        remote = await self._open_remote(session_id, test)
        session = self._find(session_id)
        bought = {kind: preview_feedback(world_of(remote).answers, kind, ids) for kind in kinds}
        is_scored = self._check_scores(session, test, remote, bought)
        if is_scored:  # before it is sold, so that no other session is sold one meanwhile
            session.facts[f"{SCORE_SOLD} {test}"] = self._clock()
            self._tally(session, test)[_receiver_of(session)] += 1
        taken = [remote.take(Reply(Buy(kind, ids))) for kind in kinds]
        if is_scored:
            await self._note_sold_score(session, test)
        for _, written in taken:
            await wait_for_disk(written)
        if any(turn.feedback.get("lines") for turn, _ in taken):
            await self._note_feedback(session, test, world_of(remote).current)
        return ["".join(f"{line}\n" for line in turn.feedback["lines"]).encode() for turn, _ in taken]

    async def complete(self, session_id: str, test: str) -> None:
        """Complete a test: record its rounds one by one. A completion that a crash cut short is continued."""
        session, key = self._find(session_id, test), (session_id, test)
        if f"test {test}" in session.facts or key in self._closing:
            raise Refusal("TestCompleted", "The test is completed.")
        self._closing.add(key)
        try:
            remote = await self._find_remote(session, test)
            await wait_for_disk(await asyncio.to_thread(self._close, remote))  # a second for 1,000 rounds
            self.dispatcher.finish(session, test, remote)
            world = world_of(remote)
            facts = {"first": world.first_post, "completed": world.completed}
            await self.dispatcher.note(session, f"test {test}", facts)
        finally:
            self._closing.discard(key)

    async def end(self, session_id: str) -> None:
        """End a session, also one with unfinished tests."""
        session = self._find(session_id)
        session.facts["ended"] = at = self._clock()
        await self.dispatcher.note(session, "ended", at)
        await self.dispatcher.leave(session)

    async def evaluate(
        self, session_id: str, test: str, devmode: bool, more: bool = False, baseline_id: str = ""
    ) -> dict[str, Any]:
        """Return the scores of a completed test, with `devmode` also of one in process, which marks the session.

        With `more`, the scores of the protocol's local harness are added; with the session of a reaction baseline,
        the comparison with it.
        """
        answers = await self._completed_answers(session_id, test, devmode)
        condda = bool(self._find_any(session_id).facts["protocol"] == "CONDDA")
        found = await asyncio.to_thread(evaluate_test, answers, condda)
        if more:
            found |= await asyncio.to_thread(evaluate_more, answers, condda)
        if baseline_id:
            baseline = await self._completed_answers(baseline_id, test, devmode)
            found |= await asyncio.to_thread(evaluate_reaction, answers, baseline)
        return found

    async def evaluate_round(self, session_id: str, test: str, number: int, devmode: bool) -> dict[str, Any]:
        """Return the top-1 and top-3 accuracy of one round."""
        return evaluate_round(await self._completed_answers(session_id, test, devmode), number)

    async def status(self, wanted: Mapping[str, str], with_tests: bool, tests: Sequence[str] | None) -> list[str]:
        """Return a line for each session (id, detector, when it was opened and when it ended), or for its tests."""
        own = [session for session in self.dispatcher.groups.values() if self._owns(session)]
        chosen = _choose_sessions(own, wanted)
        if not with_tests:
            return [
                f"{session.id},{detector_of(session)},{session.facts['created']},"
                f"{session.facts.get('ended') or 'Incomplete'}"
                for session in chosen
            ]
        lines: list[str] = []
        for session in chosen:
            lines += _test_lines(session, tests, await self._first_posts(session, tests or ()))
        return lines

    async def latest(self, session_id: str, with_rounds: bool = False) -> dict[str, Any]:
        """Return the finished tests in order, and if asked for the next round of the others."""
        session = self._find(session_id)
        finished = list(finished_tests(session))
        if not with_rounds:
            return {"finished_tests": finished}
        under_way = [test for test in await self.dispatcher.begun(session) if test not in finished]
        rounds = {}
        for test in under_way:
            with suppress(Refusal):  # a test whose files are gone stops none of the others
                rounds[test] = (await self._find_answers(session, test)).next_round
        return {"finished_tests": finished, "next_rounds": rounds}

    async def zip(self, session_id: str, tests: Sequence[str] | None) -> bytes:
        """Return all that was posted in a session as a zip file."""
        session = self._find_any(session_id)
        chosen = [test for test in session.trials if tests is None or test in tests]
        steps = {test: self.dispatcher.steps(session, test) for test in chosen}
        carried: dict[str, Carry] = {}
        stopped = threading.Event()
        try:
            sold = await asyncio.to_thread(lambda: [test for test, its in steps.items() if has_purchases(its)])
            for test in sold:
                with suppress(Refusal):  # a test whose files are gone has none
                    carried[test] = (await self._find_answers(session, test)).carry()
            return await asyncio.to_thread(pack_session, session, steps, carried, stopped)
        finally:  # also where the server is told to end, which waits for its threads
            stopped.set()

    async def _first_posts(self, session: Session, tests: Sequence[str]) -> dict[str, str]:
        """Return when results of some tests were first posted, those under way included."""
        under_way = set(await self.dispatcher.begun(session)) & set(tests) if tests else set()
        found = {}
        for test in under_way - {*finished_tests(session)}:
            with suppress(Refusal):
                found[test] = world_of(await self._find_remote(session, test)).first_post
        return found | {test: value["first"] for test, value in done_tests(session).items()}

    async def _completed_answers(self, session_id: str, test: str, devmode: bool) -> AgentAnswers:
        """Return the answers to a completed test, in devmode also to one in process."""
        session = self.dispatcher.groups.get(session_id)
        if session is None or not self._owns(session) or test not in session.trials:
            raise Refusal("TestInProcess", "The test is not completed.")
        if test in done_tests(session):
            await self._tell_scores(session, test)
        else:
            if not devmode:
                raise Refusal("TestInProcess", "The test is not completed.")
            if not self._rules.devmode:
                text = "The test is not completed. The server shows scores before that only if started with --devmode."
                raise Refusal("TestInProcess", text)
            await self._mark_devmode(session, test)
        return await self._find_answers(session, test)

    def _check_untold(self, trials: Mapping[str, Trial], red_light: bool) -> None:
        """Refuse a session with tests that are no longer blind: scores reveal onset and labels, and so does the light.

        A session with the red light begins when no session plays its tests without it.
        """
        if self._rules.scorings is None or self._rules.devmode:
            return
        for test, trial in trials.items():
            tally = self.dispatcher.told[name_told(trial, test)]
            if (
                tally["original"]
                or tally[self._team or ""] >= self._rules.scorings
                or (tally["light"] and not red_light)
            ):
                text = "Its scores or its onset were revealed, so it is closed. Serve with --scorings to go on, marked."
                raise Refusal("TestClosed", f"Test {test}: {text}")
            if red_light and any(_is_playing(one, test) for one in self.dispatcher.groups.values() if not _is_lit(one)):
                text = "Sessions without the red light still play it. Complete or end them first."
                raise Refusal("TestClosed", f"Test {test}: {text}")
        for test, trial in trials.items() if red_light else ():
            self.dispatcher.told[name_told(trial, test)]["light"] += 1

    async def _tell_scores(self, session: Session, test: str) -> None:
        """Note that the scores of a completed test are given; refuse while that would reveal the onset to others."""
        fact = f"scored {test}"
        if fact in session.facts or self._rules.scorings is None or self._rules.devmode:
            return
        compat, tally = "compat" in session.facts, self._tally(session, test)
        self._check_tally(session, test)
        playing = [one for one in self.dispatcher.groups.values() if _is_playing(one, test)]
        missing = set() if compat else self._rules.teams - {one.facts.get("team") for one in self._finished(test)}
        if self._rules.scorings == 1 and (playing or missing):
            text = f"{len(playing)} sessions still play it, and {len(missing)} teams have not."
            raise Refusal("ScoresWithheld", f"Scores are given when the test is closed for everyone: {text}")
        tally[_receiver_of(session)] += not _is_scored(session, test)
        await self.dispatcher.note(session, fact, self._clock())
        count = tally.total() - tally["light"]
        if count > 1:
            text = f"The scores of test {test} were given to {session.agent}; they have been given {count} times."
            await self.dispatcher.caution(session, fact, text)

    def _check_scores(self, session: Session, test: str, remote: RemoteRollout, bought: Mapping[str, Purchase]) -> bool:
        """Return whether scores among some feedback count as a scoring of the test; refuse one too many.

        The scores of one session count once: they are about answers that stay as they were.
        """
        offers = world_of(remote).test.kind.feedback
        asked = any(each.lines and offers[kind].content in SCORES for kind, each in bought.items())
        if not asked or self._rules.scorings is None or self._rules.devmode or _is_scored(session, test):
            return False
        self._check_tally(session, test)
        return True

    def _check_tally(self, session: Session, test: str) -> None:
        """Refuse scores of a test that were given as often as the rules say, in other sessions of the team."""
        given = self._tally(session, test)[self._team or ""]
        most = self._rules.scorings
        if most is not None and given >= most and "compat" not in session.facts and not _is_scored(session, test):
            raise Refusal("ScoresWithheld", f"The scores of this test have been given {given} times already.")

    async def _note_sold_score(self, session: Session, test: str) -> None:
        """Record that a session was sold a score before its test was completed, and how often the test was scored."""
        key = f"{SCORE_SOLD} {test}"
        await self.dispatcher.note(session, key, session.facts[key])
        if "compat" in session.facts:  # its caution says so
            return
        tally = self._tally(session, test)
        text = f"{session.agent} was given a score of test {test} as feedback; the test has been scored"
        await self.dispatcher.caution(session, key, f"{text} {say_count(tally.total() - tally['light'], 'time')}.")

    def _tally(self, session: Session, test: str) -> Counter[str]:
        """Return how often scores of a test were given to each team, and how often its onset was."""
        return self.dispatcher.told[self._identify(session, test)]

    def _finished(self, test: str) -> list[Session]:
        return [one for one in self.dispatcher.groups.values() if test in done_tests(one)]

    async def _note_feedback(self, session: Session, test: str, number: int) -> None:
        """Note that feedback on a test was given, which reveals onset and labels to other sessions of the team.

        Where scores are given any number of times, the team has the labels anyway. A session that has played on by
        itself, beyond the round that the feedback may be about, learns nothing from it.
        """
        if self._rules.scorings is None:
            return
        identity = self._identify(session, test)
        self._informed.add(identity)
        if not _is_informed(session, test):
            await self.dispatcher.note(session, f"informed {test}", self._clock())
        for name, its in list(self._players[identity]):
            other = self.dispatcher.groups.get(name)
            if other is not None and other is not session and _is_playing(other, its):
                remote = self.dispatcher.peek(other, its)
                if remote is None or not world_of(remote).has_passed(number):
                    await self._caution_informed(other, its)

    async def _caution_if_others_informed(self, session: Session, test: str) -> None:
        """Record that a session starts a test again of which other sessions of its team were given feedback."""
        others = [(name, its) for name, its in self._players[self._identify(session, test)] if name != session.id]
        if any(_is_informed(self.dispatcher.groups[name], its) for name, its in others):
            await self._caution_informed(session, test)

    async def _caution_informed(self, session: Session, test: str) -> None:
        """Record that a session plays a test of which another session of its team was given feedback."""
        if f"loose {test}" in session.facts or "compat" in session.facts or _is_lit(session):
            return
        reason = "its team was given feedback on it in another session, from which onset and labels may be known."
        await self.dispatcher.note(session, f"loose {test}", self._clock())
        await self.dispatcher.loosen(session, test, reason)
        if "caution_informed" in session.facts:  # one sentence for all its tests
            return
        await self.dispatcher.note(session, "caution_informed", test)
        await self.dispatcher.caution(session, "informed", f"When {session.agent} played test {test}, {reason}")

    def _enter_players(self, session: Session) -> None:
        """Note who plays which tests, unless scores are given any number of times: then none may know too much."""
        for test in session.trials if self._rules.scorings is not None else ():
            self._players[self._identify(session, test)].append((session.id, test))

    def _identify(self, session: Session, test: str) -> str:
        return name_told(self.dispatcher.find_trial(session, test), test)

    async def _mark_devmode(self, session: Session, test: str) -> None:
        """Record that the scores of a test in process were shown."""
        if "devmode" not in session.facts:
            await self.dispatcher.note(session, "devmode", True)
        message = f"{session.agent} was shown the scores of test {test} before its last round (devmode)."
        await self.dispatcher.caution(session, test, message)

    async def _find_answers(self, session: Session, test: str) -> AgentAnswers:
        return world_of(await self._find_remote(session, test)).answers

    async def _find_remote(self, session: Session, test: str) -> RemoteRollout:
        """Return the rollout of a test; refuse if its files are gone or have changed."""
        try:
            return await self.dispatcher.take(session, test)
        except InvalidInput as error:
            LOG.warning("%s: %s", session.id, error)
            raise Refusal("test_id_invalid", f"The test cannot be played: {error}", 500) from None

    def _find_any(self, session_id: str) -> Session:
        session = self.dispatcher.groups.get(session_id)
        if session is None or not self._owns(session):
            raise Refusal("session_id_invalid", "There is no such session.")
        return session

    def _owns(self, session: Session) -> bool:
        return bool(session.facts.get("team") == self._team)

    def _find(self, session_id: str, test: str | None = None) -> Session:
        """Return a session that has not ended, and has this test."""
        session = self._find_any(session_id)
        if "ended" in session.facts:
            raise Refusal("SessionEnded", "The session has ended.")
        if test is not None and test not in session.trials:
            there = self.directory.has(*_place(session), test)
            raise Refusal("test_id_invalid", "The session has no such test.", 400 if there else 500)
        return session

    async def _open_remote(self, session_id: str, test: str) -> RemoteRollout:
        """Return the rollout of a test that is not completed, also if it took time to open it."""
        session = self._find(session_id, test)
        self._check_open(session, test)
        remote = self.dispatcher.at_hand(session, test)
        if remote is None:
            remote = await self._find_remote(session, test)
            self._check_open(self._find(session_id, test), test)
        return remote

    def _check_area(self, protocol: str, area: str) -> None:
        if not self.directory.has_area(protocol, area):
            raise Refusal("BadDomain", "There are no tests of this protocol and domain.")

    def _check_new(self, world: TestWorld, number: int, results: Mapping[str, str], compat: bool) -> None:
        """Check that the round exists, is next in order, and its results were not posted before."""
        if number >= world.test.rounds:
            raise Refusal("InvalidResults", f"The test has {world.test.rounds} rounds; there is no round {number}.")
        for kind in results:
            if number in world.answers.posted.get(kind, ()) and (kind == "detection" or not compat):
                reason = "DetectionRepost" if kind == "detection" else "ResultsRepost"
                raise Refusal(reason, f"{kind} results of round {number} were posted before.")
            if not compat and kind in IN_ORDER:
                world.check_order(number)

    def _carry(self, session: Session, test: str, remote: RemoteRollout) -> Reply:
        """Return the legacy for a new attempt, unless the old one was completed meanwhile."""
        self._check_open(session, test)
        return Reply(world_of(remote).answers.carry())

    def _check_open(self, session: Session, test: str) -> None:
        remote = self.dispatcher.at_hand(session, test)
        closing = (session.id, test) in self._closing
        if closing or f"test {test}" in session.facts or (remote is not None and world_of(remote).completed):
            raise Refusal("TestCompleted", "The test is completed.")

    def _load(self, protocol: str, area: str, test: str) -> tuple[Test, dict[str, str]]:
        try:
            return self.directory.load(protocol, area, test)
        except (OpenfieldError, OSError, UnicodeError) as error:
            if self.directory.has(protocol, area, test):  # the owner of the files should know
                LOG.warning("%s", error)
            raise Refusal("test_id_invalid", "There is no such test, or it cannot be read.", 500) from None

    def _load_hinted(self, session: Session, test: str) -> Test:
        """Return a test as the hints of a session change it."""
        known = self._load(*_place(session), test)[0]
        limits = session.facts.get("hint_limits", {})
        return known.changed(grant_hints(session.facts["hints"], limits, known))

    def _close(self, remote: RemoteRollout) -> Receipt[None] | None:
        """Declare a test complete and record all its rounds."""
        rollout = remote.rollout
        if not world_of(remote).completed:
            rollout.reply(Reply(Complete(self._clock())))
        while not rollout.over:
            rollout.reply(Reply(None, world_of(remote).look("beliefs")))
        return rollout.commit()


def name_told(trial: Trial, test: str) -> str:
    """Return the identity of a test, whatever its name: the digest of its table."""
    return trial.files.get(test + TABLE_SUFFIX, test)


def count_disclosures(dispatcher: SessionDispatcher) -> None:
    """Count how often scores and onsets were revealed before the server was started."""
    for session in dispatcher.groups.values():
        compat = "compat" in session.facts
        for test in session.trials:
            tally = dispatcher.told[name_told(dispatcher.find_trial(session, test), test)]
            tally[_receiver_of(session)] += _is_scored(session, test)
            tally["light"] += _is_lit(session) and not compat


def _receiver_of(session: Session) -> str:
    """Return who receives the scores of a session: its team, or `original` if it keeps the original's rules."""
    return "original" if "compat" in session.facts else str(session.facts.get("team") or "")


def _is_scored(session: Session, test: str) -> bool:
    """Return whether a session was given scores of a test, after it or as feedback."""
    return f"scored {test}" in session.facts or f"{SCORE_SOLD} {test}" in session.facts


def _is_informed(session: Session, test: str) -> bool:
    """Return whether a session was given feedback on a test."""
    return f"informed {test}" in session.facts


def _is_lit(session: Session) -> bool:
    return "red_light" in session.facts["hints"]


def _is_playing(session: Session, test: str) -> bool:
    """Return whether a session by our rules has a test that it may still play."""
    if "compat" in session.facts or "ended" in session.facts or test not in session.trials:
        return False
    return test not in done_tests(session)


def _place(session: Session) -> tuple[str, str]:
    """Return the protocol and the domain of a session."""
    return session.facts["protocol"], session.facts["domain"]


def _read_threshold(value: Any) -> float:
    if value is None:
        raise Refusal("MissingParamsError", "Missing: detection_threshold.")
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = -1.0
    if not 0 <= found <= 1:
        raise Refusal("BadRequest", "detection_threshold must be a number from 0 to 1.")
    return found


def _encode_texts(test: Test, span: range) -> bytes:
    """Return the rows of a text test in utf-16, without the columns that are to be found out."""
    rows = (test.rows[at] for at in span)
    lines = (f"{row[0]},{row[2]},|{row[1].replace('|', '||')}|,{row[4]},{row[5]}\n" for row in rows)
    return "".join(lines).encode("utf-16")


def _choose_sessions(sessions: Iterable[Session], wanted: Mapping[str, str]) -> list[Session]:
    """Return the sessions that a request is about, sorted by detector and id.

    `wanted` may name one session, a detector, or a time after which sessions ended.
    """
    after = _moment(wanted["after"]) if "after" in wanted else None
    return [
        session
        for session in sorted(sessions, key=lambda session: (detector_of(session), session.id))
        if wanted.get("session_id", session.id) == session.id
        and wanted.get("detector") in (None, detector_of(session))
        and (after is None or ("ended" in session.facts and _moment(session.facts["ended"]) >= after))
    ]


def _test_lines(session: Session, tests: Sequence[str] | None, firsts: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each of some tests, or of the completed ones, with the time of its first results."""
    ended = session.facts.get("ended", "Incomplete")
    for test in list(finished_tests(session)) if tests is None else tests:
        yield f"{session.id},{detector_of(session)},{test},{firsts.get(test) or 'N/A'},{ended}"
    if tests is None and not finished_tests(session):
        yield f"{session.id},{detector_of(session)}, NA,N/A,{ended}"


def _moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=None)
    except ValueError:
        raise Refusal("BadRequest", "after must be a time such as 2026-01-31 12:00:00.") from None
