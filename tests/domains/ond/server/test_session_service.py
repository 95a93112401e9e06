"""Whatever clients do in whatever order, sessions keep to their life: created, tests in progress, completed, ended."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from openfield.serving.sessions import Session
from support.ond.protocol import OTHER, TEST, Client, answers, write_test

tests = st.sampled_from([TEST, OTHER])
rounds = st.integers(0, 3)


class Life(RuleBasedStateMachine):
    """A model of one session beside the server, which is now and then killed and started again."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name)
        for name in (TEST, OTHER):
            write_test(self.root / "data", name)
        self.client = Client(self.root / "data", self.root / "run.sqlite")
        self.session = self.client.open(TEST, OTHER)
        self.posted: dict[str, set[int]] = {TEST: set(), OTHER: set()}
        self.used: dict[tuple[str, int], int] = {}
        self.last: dict[str, int] = {}
        self.done: list[str] = []
        self.shown = {TEST: -1, OTHER: -1}
        self.ended = False

    def expect(self, answer, reason: str) -> None:
        if reason:
            assert (answer.status_code, answer.json()["reason"]) == (400, reason)
        else:
            assert answer.status_code == 200, answer.text

    def refusal(self, test: str) -> str:
        return "SessionEnded" if self.ended else "TestCompleted" if test in self.done else ""

    @rule(test=tests, number=rounds)
    def ask_for_data(self, test: str, number: int) -> None:
        answer = self.client.dataset(self.session, number, test)
        if not self.refusal(test) and number == 3:
            assert answer.status_code == 204
            return
        ahead = number > self.current(test) and not self.is_next(test, number)
        self.expect(answer, self.refusal(test) or ("RoundOutOfOrder" if ahead else ""))
        if self.refusal(test) or ahead:
            return
        if number == 0 and self.posted[test]:  # it started again
            self.posted[test], self.shown[test] = set(), -1
        self.shown[test] = max(self.shown[test], number)

    def current(self, test: str) -> int:
        return max([self.shown[test], *self.posted[test]])

    def is_next(self, test: str, number: int) -> bool:
        current = self.current(test)
        return number == current + 1 and (number == 0 or current in self.posted[test])

    @rule(test=tests, number=st.integers(0, 2))
    def post(self, test: str, number: int) -> None:
        known = self.client.directory.load("OND", "image_classification", test)[0]
        ids = known.ids[number * 10 : number * 10 + 10]
        answer = self.client.post(self.session, number, test, **answers(known, ids))
        wanted = self.refusal(test) or ("DetectionRepost" if number in self.posted[test] else "")
        if not wanted and number != self.current(test) and not self.is_next(test, number):
            wanted = "RoundOutOfOrder"
        self.expect(answer, wanted)
        if not wanted:
            self.posted[test].add(number)
            self.last[test] = number

    @rule(test=tests)
    def buy(self, test: str) -> None:
        answer = self.client.feedback(self.session, "classification", test)
        wanted = self.refusal(test) or ("" if self.posted[test] else "DetectionPostRequired")
        place = test, self.last.get(test, 0)
        if not wanted and self.used.get(place, 0) >= 3:
            wanted = "FeedbackBudgetExceeded"
        self.expect(answer, wanted)
        if not wanted:
            self.used[place] = self.used.get(place, 0) + len(answer.text.splitlines())

    @rule(test=tests)
    def complete(self, test: str) -> None:
        self.expect(self.client.complete(self.session, test), self.refusal(test))
        if not self.refusal(test):
            self.done.append(test)

    @rule(test=tests)
    def evaluate(self, test: str) -> None:
        answer = self.client.ask("GET", "/session/evaluations", params={"session_id": self.session, "test_id": test})
        if test not in self.done:
            self.expect(answer, "TestInProcess")
        else:
            self.expect(answer, "" if len(self.posted[test]) == 3 else "ResultsIncomplete")

    @rule(kill=st.booleans())
    def restart_the_server(self, kill: bool) -> None:
        self.client.close(at_once=kill)
        self.client = Client(self.root / "data", self.root / "run.sqlite")
        self.shown = {TEST: -1, OTHER: -1}  # which is not recorded

    @rule()
    def end(self) -> None:
        answer = self.client.ask("DELETE", "/session", params={"session_id": self.session})
        self.expect(answer, "SessionEnded" if self.ended else "")
        self.ended = True

    @invariant()
    def finished_tests_are_those_completed(self) -> None:
        answer = self.client.ask("GET", "/session/latest", params={"session_id": self.session})
        if not self.ended:
            assert answer.json()["finished_tests"] == self.done

    def teardown(self) -> None:
        if hasattr(self, "client"):
            self.client.close()
            self.folder.cleanup()


TestLife = Life.TestCase
TestLife.settings = settings(
    max_examples=12, stateful_step_count=14, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)


def test_opening_a_session_costs_the_same_however_many_there_are(client: Client) -> None:
    calls: list[int] = []
    for count in (10, 10_000):
        for number in range(len(client.dispatcher.groups), count):
            client.dispatcher.groups[f"s{number}"] = Session(f"s{number}", "mock", number, {}, {"created": ""})
        client.open()  # what is done once is done
        counted = 0

        def count_call(_frame: object, event: str, _arg: object) -> None:
            nonlocal counted
            counted += event in ("call", "c_call")

        sys.setprofile(count_call)
        client.open()
        sys.setprofile(None)
        calls.append(counted)
    assert calls[1] < 1.3 * calls[0]  # waiting for the disk takes a few turns more or less
