"""Sessions and tests as clients of the protocol know them: opened, asked for, posted to, completed, ended.

Stands between the wire and the dispatcher: checks who may do what when, and turns it into replies of a rollout.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from openfield.core import Reply
from openfield.domains.ond.actions import Buy, Carry, Complete, Post
from openfield.domains.ond.server.archive import has_purchases, pack
from openfield.domains.ond.server.errors import Refusal
from openfield.domains.ond.server.listing import choose_sessions, done_tests, finished_tests, session_line, test_lines
from openfield.domains.ond.server.remote import find_ledger, find_remote, wait_for_disk, world_of
from openfield.domains.ond.server.results import TYPES
from openfield.domains.ond.server.scores import Grades
from openfield.domains.ond.testset.feedback import quote
from openfield.domains.ond.testset.sheet import Shelf, Test
from openfield.domains.ond.trials import budget_hint, session_trial
from openfield.domains.ond.world import TestWorld
from openfield.errors import OpenfieldError
from openfield.journal.receipt import Receipt
from openfield.runner.plan import MAX_NAME
from openfield.serving.remote import RemoteRollout
from openfield.serving.sessions import Session, SessionDispatcher

LOG = logging.getLogger("openfield.ond")
LARGE_POST = 4 << 20
"""Characters of results that are read beside the event loop; less takes a tenth of a second."""


def local_time() -> str:
    """Now, as the protocol writes it."""
    return datetime.now().isoformat(" ", "microseconds")


class Office:
    """Does what requests ask for."""

    def __init__(
        self,
        dispatcher: SessionDispatcher,
        shelf: Shelf,
        version: int,
        compat: bool = False,
        clock: Callable[[], str] = local_time,
    ) -> None:
        self._dispatcher, self._shelf, self._version, self._compat, self._clock = (
            dispatcher,
            shelf,
            version,
            compat,
            clock,
        )
        self._closing: set[tuple[str, str]] = set()
        self.grades = Grades(dispatcher)

    async def recover(self) -> None:
        """Goes on after a full disk, if there is room again."""
        await self._dispatcher.recover()

    def test_list(self, protocol: str, area: str) -> bytes:
        """The list of tests, as published or as found."""
        if not self._shelf.has_area(protocol, area):
            raise Refusal("BadDomain", "There are no tests of this protocol and domain.")
        published = self._shelf.list_file(protocol, area)
        return "\n".join(self._shelf.names(protocol, area)).encode() if published is None else published

    async def open(self, asked: Mapping[str, Any], tests: Sequence[str]) -> str:
        """Opens a session; returns its id."""
        protocol, area = str(asked["protocol"]), str(asked.get("domain") or "image_classification")
        threshold = _threshold(asked.get("detection_threshold", 0.5 if self._compat else None))
        if not self._shelf.has_area(protocol, area):
            raise Refusal("BadDomain", "There are no tests of this protocol and domain.")
        hints = asked.get("hints") or []
        if not isinstance(hints, list) or not all(isinstance(hint, str) for hint in hints):
            raise Refusal("BadRequest", "hints must be a list of texts.")
        facts = {"protocol": protocol, "domain": area, "detection_threshold": threshold, "hints": hints}
        trials = {}
        for name in tests:
            test, digests = await asyncio.to_thread(self._load, protocol, area, name)
            trials[name] = session_trial(test, digests, self._shelf.root, facts, self._version, self._compat)
        session = str(uuid.uuid4())
        detector = _one_word(str(asked["novelty_detector_version"])[:MAX_NAME])
        await self._dispatcher.open(session, detector, trials, {"created": self._clock(), **facts})
        return session

    def metadata(self, session: str, test: str) -> dict[str, Any]:
        """What a client may know of a test."""
        group = self._group(session, test)
        place = group.facts["protocol"], group.facts["domain"], test
        if not self._shelf.has_metadata(*place):
            raise Refusal("metadata_not_found", "The test has no metadata.", 500)
        return self._load(*place)[0].shown("red_light" in group.facts["hints"], self._hinted(group, test))

    async def dataset(self, session: str, test: str, number: int, resume: bool = False) -> bytes | None:
        """The ids of a round, or None past the end. Round 0 of a test with results starts it again, or resumes it."""
        group = self._group(session, test)
        self._check_open(group, test)
        known = self._load(group.facts["protocol"], group.facts["domain"], test)[0]
        if known.round_size is None:
            raise Refusal("no_defined_rounds", "The test's metadata define no rounds.")
        ledger = await find_ledger(self._dispatcher, group, test)  # which fails if these are no longer the files it had
        self._check_open(group, test)
        if number == 0 and not resume and ledger.posted:
            await self._dispatcher.restart(group, test, lambda remote: self._carry(group, test, remote))
        span = known.span(number)
        if not span:
            return None
        if known.area == "nlt":
            return _text_rows(known, span)
        return ("\n".join(known.ids[span.start : span.stop]) + "\n").encode()

    async def post(
        self, session: str, test: str, number: int, results: dict[str, str], then: Sequence[Buy] = ()
    ) -> None:
        """Takes the results of a round: all of them, or none, as when what is to be bought then would be refused."""
        for kind in results:
            if kind not in TYPES and not kind.startswith("x_"):
                raise Refusal("InvalidResults", f"'{kind[:40]}' is no type of result; further types begin with x_.")
        remote = await self._open_seat(session, test)
        self._check_new(world_of(remote), number, results)
        action = Post(number, results, self._clock())
        if sum(map(len, results.values())) < LARGE_POST:
            sheets = world_of(remote).read(action)
        else:  # seconds, in which others are served, and may have changed everything
            sheets = await asyncio.to_thread(world_of(remote).read, action)
            remote = await self._open_seat(session, test)
            self._check_new(world_of(remote), number, results)
        world_of(remote).prepare(action, sheets, then)
        _, written = remote.take(Reply(action))
        await wait_for_disk(written)

    async def feedback(self, session: str, test: str, kinds: list[str], ids: list[str] | None) -> list[bytes]:
        """What was asked about answered samples; refused as a whole or not at all."""
        remote = await self._open_seat(session, test)
        for kind in kinds:
            quote(world_of(remote).ledger, kind, ids)
        taken = [remote.take(Reply(Buy(kind, ids))) for kind in kinds]
        for _, written in taken:
            await wait_for_disk(written)
        return ["".join(f"{line}\n" for line in turn.feedback["lines"]).encode() for turn, _ in taken]

    async def complete(self, session: str, test: str) -> None:
        """Closes a test: its rounds are booked one by one. A completion that a crash cut short is taken up again."""
        group, key = self._group(session, test), (session, test)
        if f"test {test}" in group.facts or key in self._closing:
            raise Refusal("TestCompleted", "The test is completed.")
        self._closing.add(key)
        try:
            remote = await find_remote(self._dispatcher, group, test)
            await wait_for_disk(await asyncio.to_thread(self._close, remote))  # a second for 1,000 rounds
            self._dispatcher.finish(group, test, remote)
            world = world_of(remote)
            await self._dispatcher.note(
                group, f"test {test}", {"first": world.first_post, "completed": world.completed}
            )
        finally:
            self._closing.discard(key)

    async def end(self, session: str) -> None:
        """Ends a session, whatever its tests are."""
        group = self._group(session)
        group.facts["ended"] = at = self._clock()
        await self._dispatcher.note(group, "ended", at)
        await self._dispatcher.leave(group)

    async def status(self, wanted: Mapping[str, str], with_tests: bool, tests: Sequence[str] | None) -> list[str]:
        """A line for each session, or for each of its tests."""
        chosen = choose_sessions(self._dispatcher.groups.values(), wanted)
        if not with_tests:
            return [session_line(group) for group in chosen]
        lines: list[str] = []
        for group in chosen:
            lines += test_lines(group, tests, await self._first_posts(group, tests or ()))
        return lines

    async def latest(self, session: str) -> dict[str, Any]:
        """The finished tests in order, and where the others stand."""
        group = self._group(session)
        under_way = [test for test in await self._dispatcher.begun(group) if test not in finished_tests(group)]
        rounds = {}
        for test in under_way:
            with suppress(Refusal):  # a test whose files are gone stops none of the others
                rounds[test] = (await find_ledger(self._dispatcher, group, test)).next_round
        return {"finished_tests": list(finished_tests(group)), "next_rounds": rounds}

    async def zip(self, session: str, tests: Sequence[str] | None) -> bytes:
        """All that was posted in a session, in the layout clients know."""
        group = self._dispatcher.groups.get(session)
        if group is None:
            raise Refusal("session_id_invalid", "There is no such session.")
        chosen = [test for test in group.trials if tests is None or test in tests]
        steps = {test: self._dispatcher.steps(group, test) for test in chosen}
        told: dict[str, Carry] = {}
        stopped = threading.Event()
        try:
            sold = await asyncio.to_thread(lambda: [test for test, its in steps.items() if has_purchases(its)])
            for test in sold:
                with suppress(Refusal):  # a test whose files are gone has none
                    told[test] = (await find_ledger(self._dispatcher, group, test)).carry()
            return await asyncio.to_thread(pack, group, steps, told, stopped)
        finally:  # also where the server is told to end, which waits for its threads
            stopped.set()

    async def _first_posts(self, group: Session, tests: Sequence[str]) -> dict[str, str]:
        """When results of these tests were first posted, those under way included."""
        under_way = set(await self._dispatcher.begun(group)) & set(tests) if tests else set()
        found = {}
        for test in under_way - {*finished_tests(group)}:
            with suppress(Refusal):
                found[test] = world_of(await find_remote(self._dispatcher, group, test)).first_post
        return found | {test: value["first"] for test, value in done_tests(group).items()}

    def _group(self, session: str, test: str | None = None) -> Session:
        """A session that has not ended, and has this test."""
        group = self._dispatcher.groups.get(session)
        if group is None:
            raise Refusal("session_id_invalid", "There is no such session.")
        if "ended" in group.facts:
            raise Refusal("SessionEnded", "The session has ended.")
        if test is not None and test not in group.trials:
            there = self._shelf.has(group.facts["protocol"], group.facts["domain"], test)
            raise Refusal("test_id_invalid", "The session has no such test.", 400 if there else 500)
        return group

    async def _open_seat(self, session: str, test: str) -> RemoteRollout:
        """The remote of a test that can be played on, also after it was waited for."""
        group = self._group(session, test)
        self._check_open(group, test)
        remote = self._dispatcher.at_hand(group, test)
        if remote is None:
            remote = await find_remote(self._dispatcher, group, test)
            self._check_open(self._group(session, test), test)
        return remote

    def _check_new(self, world: TestWorld, number: int, results: Mapping[str, str]) -> None:
        """Whether results are of a round there is, and were not posted before."""
        if number >= world.test.rounds:
            raise Refusal("InvalidResults", f"The test has {world.test.rounds} rounds; there is no round {number}.")
        for kind in results:
            if number in world.ledger.posted.get(kind, ()) and (kind == "detection" or not self._compat):
                reason = "DetectionRepost" if kind == "detection" else "ResultsRepost"
                raise Refusal(reason, f"{kind} results of round {number} were posted before.")

    def _carry(self, group: Session, test: str, remote: RemoteRollout) -> Reply:
        """What a new attempt takes over, unless the old one was completed while it was waited for."""
        self._check_open(group, test)
        return Reply(world_of(remote).ledger.carry())

    def _check_open(self, group: Session, test: str) -> None:
        remote = self._dispatcher.at_hand(group, test)
        closing = (group.id, test) in self._closing
        if closing or f"test {test}" in group.facts or (remote is not None and world_of(remote).completed):
            raise Refusal("TestCompleted", "The test is completed.")

    def _load(self, protocol: str, area: str, test: str) -> tuple[Test, dict[str, str]]:
        try:
            return self._shelf.load(protocol, area, test)
        except (OpenfieldError, OSError, UnicodeError) as error:
            if self._shelf.has(protocol, area, test):  # whoever keeps the files should know
                LOG.warning("%s", error)
            raise Refusal("test_id_invalid", "There is no such test, or it cannot be read.", 500) from None

    def _hinted(self, group: Session, test: str) -> dict[str, int]:
        known = self._load(group.facts["protocol"], group.facts["domain"], test)[0]
        found = budget_hint(group.facts["hints"], known)
        return {"feedback_max_ids": found["cap"]} if found else {}

    def _close(self, remote: RemoteRollout) -> Receipt[None] | None:
        """Everything from the declaration to the last booked round, in one go."""
        rollout = remote.rollout
        if not world_of(remote).completed:
            rollout.reply(Reply(Complete(self._clock())))
        while not rollout.over:
            rollout.reply(Reply(None, world_of(remote).look("beliefs")))
        return rollout.commit()


def _one_word(name: str) -> str:
    """A name that cannot be taken for several columns or lines."""
    return "".join(sign if sign.isprintable() and sign != "," else "_" for sign in name)


def _threshold(value: Any) -> float:
    if value is None:
        raise Refusal("MissingParamsError", "Missing: detection_threshold.")
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = -1.0
    if not 0 <= found <= 1:
        raise Refusal("BadRequest", "detection_threshold must be a number from 0 to 1.")
    return found


def _text_rows(test: Test, span: range) -> bytes:
    """Rows of a text test, without what is to be found out, in utf-16."""
    rows = (test.rows[at] for at in span)
    lines = (f"{row[0]},{row[2]},|{row[1].replace('|', '||')}|,{row[4]},{row[5]}\n" for row in rows)
    return "".join(lines).encode("utf-16")
