"""Packs a session as a zip file in the layout that clients of the protocol know.

From the journal: everything is read from recorded steps.
"""

from __future__ import annotations

import io
import threading
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from typing import Any

import msgspec

from openfield.core import Turn
from openfield.domains.ond.actions import Action, Buy, Carry, Complete, Post, read_action
from openfield.domains.ond.testset.results import format_rows
from openfield.domains.ond.testset.test import Area, FeedbackOffer, find_area
from openfield.record import Step
from openfield.serving.sessions import Session

TOLD = "told_answers"
"""The key of a test's state under which locked answers are kept."""
LABELS = "psuedo_labels"
"""A key of the original server, spelled so. It is passed on; nothing here writes it."""
Done = tuple[Action, Turn | None]


def pack_session(
    session: Session, tests: Mapping[str, Iterable[Step]], carried: Mapping[str, Carry], stopped: threading.Event
) -> bytes:
    """Return the zip file of a session: its state, the state and locked answers of each test, and all posted rows.

    The recorded steps of the tests are read several times, so that only one post is in memory at a time: the posts of a
    large test are half a gigabyte. Packing ends early when it is stopped.
    """
    content = io.BytesIO()
    folder = f"{session.facts['protocol']}/{session.facts['domain']}"
    with zipfile.ZipFile(content, "w", zipfile.ZIP_BZIP2) as file:
        file.writestr(f"{session.id}.json", _json(_describe_session(session)))
        for test, steps in tests.items():
            place = f"{folder}/{session.id}.{test}"
            slim = [(_without_rows(action), turn) for action, turn in _read_actions(steps, stopped)]
            state = _describe_test(session, test, slim, place) | _describe_carried(carried.get(test))
            file.writestr(f"{session.id}.{test}.json", _json(state))
            for kind in _kinds(slim):
                _write_rows(file, f"{place}_{kind}.csv", kind, _read_actions(steps, stopped))
    return content.getvalue()


def _read_actions(steps: Iterable[Step], stopped: threading.Event) -> Iterator[Done]:
    """Yield the actions in recorded steps, each with the turn it led to, until told to stop."""
    for step in takewhile(lambda _: not stopped.is_set(), steps):
        if step.reply is not None and step.reply.action is not None:
            yield read_action(step.reply.action), step.turn


def _without_rows(action: Action) -> Action:
    if not isinstance(action, Post):
        return action
    return msgspec.structs.replace(action, results=dict.fromkeys(action.results, ""))


def _write_rows(file: zipfile.ZipFile, name: str, kind: str, actions: Iterable[Done]) -> None:
    """Write the rows of a type in the order they came, each on a line of its own."""
    entry = zipfile.ZipInfo(name, time.localtime()[:6])
    entry.compress_type = file.compression
    with file.open(entry, "w", force_zip64=True) as member:  # its size is not known yet
        for action, _ in actions:
            if isinstance(action, Post):
                member.write(format_rows(action.results.get(kind, "")).encode())


def detector_of(session: Session) -> str:
    """Return what the client called its detector. The agent's name has the team before it, if there is one."""
    return str(session.facts.get("detector", session.agent))


def _describe_session(session: Session) -> dict[str, Any]:
    facts = session.facts
    kept = ("protocol", "domain", "detection_threshold", "hints", "hint_limits", "devmode")
    created = {"time": [facts["created"]], "detector": detector_of(session)}
    created |= {key: facts[key] for key in kept if key in facts}
    ended = {"termination": {"time": [facts["ended"]]}} if "ended" in facts else {}
    labels = {LABELS: facts[LABELS]} if LABELS in facts else {}
    tests = {"completed_tests": list(finished_tests(session)), "test_ids": list(session.trials)}
    return {"created": created, "tests": tests} | ended | labels


def _describe_test(session: Session, test: str, actions: list[Done], place: str) -> dict[str, Any]:
    """Return the state of a test: rounds asked for, posts, purchases, completion."""
    posts = [action for action, _ in actions if isinstance(action, Post)]
    rounds: dict[str, dict[str, list[str]]] = {}
    for post in posts:
        entry = rounds.setdefault(str(post.round), {"time": [], "types": []})
        entry["time"] += [post.at] * len(post.results)  # a time for each type, as they are taken over
        entry["types"] += list(post.results)
    found = _requests(rounds, session.facts.get(f"asked {test}", {}))
    if posts:
        paths = {f"{kind} file path": f"{place}_{kind}.csv" for kind in _kinds(actions)}
        found["post_results"] = {"time": [post.at for post in posts], "last round": str(posts[-1].round)}
        found["post_results"] |= {"rounds": rounds} | paths
    done = [action.at for action, _ in actions if isinstance(action, Complete)]
    bought = _feedback(actions, find_area(session.facts["domain"]))
    return found | bought | ({"completion": {"time": done[:1]}} if done else {})


def _requests(posted: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rounds that were asked for: those that an original server noted (`before`) and those with results.

    Requests are not recorded, but a round is shown before it is posted.
    """
    shown = {number: {"time": entry["time"][:1]} for number, entry in posted.items()} | before.get("rounds", {})
    if not shown:
        return {"data_request": dict(before)} if before else {}
    first = before.get("time") or next(entry["time"][:1] for entry in posted.values())
    last = max((int(number) for number in shown if number.isdigit()), default=0)
    return {"data_request": {"time": first, "rounds": shown, "last round": str(last)}}


def _feedback(actions: list[Done], area: Area) -> dict[str, Any]:
    """Return the purchases of each round, type by type, earlier attempts included."""
    rounds: dict[str, dict[str, int]] = {}
    last: dict[str, int] = {}
    at, score = "", 0.0
    for action, turn in actions:
        match action:
            case Post():
                at, last = action.at, last | dict.fromkeys(action.results, action.round)
            case Carry():
                score = action.score
                for account, count in action.used.items():
                    number, _, kind = account.partition(" ")
                    if number != "of":
                        rounds.setdefault(number, {})[kind] = count
            case Buy() if turn is not None and (lines := (turn.feedback or {}).get("lines")):
                offer = area.feedback[action.type]
                bought = rounds.setdefault(str(last.get(offer.reads, last["detection"])), {})
                bought[action.type] = 1 if offer.content == "accuracy" else bought.get(action.type, 0) + len(lines)
                score = _score(offer, lines, score)
    state = {"get_feedback": {"time": [at], "rounds": rounds}} if rounds else {}
    return state | ({"current_score": {"score": int(score)}} if score else {})


def _score(offer: FeedbackOffer, lines: list[str], score: float) -> float:
    """Return the score of a text test after a purchase: as it was given, or less the cost of labels."""
    if offer.content == "writers":
        return float(lines[-1].partition(",")[2])
    return score - len(lines) if offer.reads == "labels" else score


def has_purchases(steps: Iterable[Step]) -> bool:
    """Return whether feedback was given on a test, in this attempt or before."""
    return any(isinstance(action, Buy | Carry) for action, _ in _read_actions(steps, threading.Event()))


def _describe_carried(carry: Carry | None) -> dict[str, Any]:
    """Return the locked answers of a test; other servers do not know this key and ignore it."""
    return {TOLD: {"score": carry.told, "answers": carry.answers}} if carry and (carry.told or carry.answers) else {}


def _kinds(actions: list[Done]) -> list[str]:
    """Return the types of results that were posted, in the order they first came."""
    posts = (action for action, _ in actions if isinstance(action, Post))
    return list(dict.fromkeys(kind for post in posts for kind in post.results))


def _json(value: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value))


def done_tests(session: Session) -> dict[str, dict[str, str]]:
    """Return the completed tests, and those that an original server listed as such."""
    facts = ((key.partition(" "), value) for key, value in session.facts.items())
    return {test: value for (kind, _, test), value in facts if kind in ("test", "listed")}


def finished_tests(session: Session) -> dict[str, str]:
    """Return the completed tests and their times, in the order of their completion, whatever the clock said."""
    return {test: value["completed"] for test, value in done_tests(session).items()}
