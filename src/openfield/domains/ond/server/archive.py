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

from openfield.core import Reply
from openfield.domains.ond.actions import Carry
from openfield.domains.ond.areas import Area, FeedbackOffer, find_area
from openfield.domains.ond.server.status import finished_tests
from openfield.record import Step
from openfield.serving.sessions import Session

TOLD = "told_answers"
"""The key of a test's state under which locked answers are kept."""
LABELS = "psuedo_labels"
"""A key of the original server, spelled so. It is passed on; nothing here writes it."""


def pack(
    session: Session, tests: Mapping[str, Iterable[Step]], told: Mapping[str, Carry], stopped: threading.Event
) -> bytes:
    """Return the zip file of a session: its state, the state of each test, and all posted rows.

    Args:
        session: The session.
        tests: The recorded steps of each test. They are read several times, so that only one post is in memory at a
            time: the posts of a large test are half a gigabyte.
        told: The locked answers of tests about which feedback was given.
        stopped: Set when the zip is no longer wanted; packing ends early then.
    """
    content = io.BytesIO()
    folder = f"{session.facts['protocol']}/{session.facts['domain']}"
    with zipfile.ZipFile(content, "w", zipfile.ZIP_BZIP2) as file:
        file.writestr(f"{session.id}.json", _json(_describe_session(session)))
        for test, steps in tests.items():
            place = f"{folder}/{session.id}.{test}"
            slim = [_without_rows(step) for step in _until(stopped, steps)]
            state = _describe_test(session, test, slim, place) | _told(told.get(test))
            file.writestr(f"{session.id}.{test}.json", _json(state))
            for kind in _kinds(_posts(slim)):
                _write_rows(file, f"{place}_{kind}.csv", kind, _until(stopped, steps))
    return content.getvalue()


def _until(stopped: threading.Event, steps: Iterable[Step]) -> Iterator[Step]:
    return takewhile(lambda _: not stopped.is_set(), steps)


def _without_rows(step: Step) -> Step:
    """Return a step without the rows of its post."""
    if step.reply is None or not _is(step.reply.action, "post"):
        return step
    action = step.reply.action | {"results": dict.fromkeys(step.reply.action["results"], "")}
    return msgspec.structs.replace(step, reply=Reply(action))


def _write_rows(file: zipfile.ZipFile, name: str, kind: str, steps: Iterable[Step]) -> None:
    """Write the rows of a type in the order they came, each on a line of its own."""
    entry = zipfile.ZipInfo(name, time.localtime()[:6])
    entry.compress_type = file.compression
    with file.open(entry, "w", force_zip64=True) as member:  # its size is not known yet
        for step in steps:
            if step.reply is not None and _is(step.reply.action, "post"):
                text = step.reply.action["results"].get(kind, "")
                member.write((text if text.endswith("\n") or not text else f"{text}\n").encode())


def _describe_session(session: Session) -> dict[str, Any]:
    facts = session.facts
    kept = ("protocol", "domain", "detection_threshold", "hints", "devmode")
    created = {"time": [facts["created"]], "detector": session.agent} | {
        key: facts[key] for key in kept if key in facts
    }
    ended = {"termination": {"time": [facts["ended"]]}} if "ended" in facts else {}
    labels = {LABELS: facts[LABELS]} if LABELS in facts else {}
    tests = {"completed_tests": list(finished_tests(session)), "test_ids": list(session.trials)}
    return {"created": created, "tests": tests} | ended | labels


def _describe_test(session: Session, test: str, steps: list[Any], place: str) -> dict[str, Any]:
    """Return the state of a test: what was asked for, posted, bought and completed."""
    posts, area = _posts(steps), find_area(session.facts["domain"])
    rounds: dict[str, dict[str, list[str]]] = {}
    for post in posts:
        entry = rounds.setdefault(str(post["round"]), {"time": [], "types": []})
        entry["time"] += [post["at"]] * len(post["results"])  # a time for each type, as they are taken over
        entry["types"] += list(post["results"])
    found = _requests(rounds, session.facts.get(f"asked {test}", {}))
    if posts:
        times, last = [post["at"] for post in posts], str(posts[-1]["round"])
        paths = {f"{kind} file path": f"{place}_{kind}.csv" for kind in _kinds(posts)}
        found["post_results"] = {"time": times, "last round": last, "rounds": rounds} | paths
    done = [action["at"] for action in _actions(steps, "complete")]
    return found | _feedback(steps, area) | ({"completion": {"time": done[:1]}} if done else {})


def _requests(posted: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rounds that were asked for. Requests are not recorded, but a round is shown before it is posted.

    Args:
        posted: Rounds and when their results came.
        before: The requests that an original server noted, if the session was imported.
    """
    shown = {number: {"time": entry["time"][:1]} for number, entry in posted.items()} | before.get("rounds", {})
    if not shown:
        return {"data_request": dict(before)} if before else {}
    first = before.get("time") or next(entry["time"][:1] for entry in posted.values())
    last = max((int(number) for number in shown if number.isdigit()), default=0)
    return {"data_request": {"time": first, "rounds": shown, "last round": str(last)}}


def _feedback(steps: list[Any], area: Area) -> dict[str, Any]:
    """Return what was bought with which round, type by type, earlier attempts included."""
    rounds: dict[str, dict[str, int]] = {}
    last: dict[str, int] = {}
    at, score = "", 0.0
    for step in steps:
        action: Any = step.reply.action if step.reply is not None else None
        if _is(action, "post"):
            at, last = action["at"], last | dict.fromkeys(action["results"], action["round"])
        elif _is(action, "carry"):
            score = action.get("score", 0.0)
            for account, count in action["used"].items():
                number, _, kind = account.partition(" ")
                if number != "of":
                    rounds.setdefault(number, {})[kind] = count
        elif _is(action, "buy") and step.turn is not None and (lines := (step.turn.feedback or {}).get("lines")):
            kind = action["type"]
            bought = rounds.setdefault(str(last.get(area.feedback[kind].reads, last["detection"])), {})
            offer = area.feedback[kind]
            bought[kind] = 1 if offer.content == "accuracy" else bought.get(kind, 0) + len(lines)
            score = _score(offer, lines, score)
    told = {"get_feedback": {"time": [at], "rounds": rounds}} if rounds else {}
    return told | ({"current_score": {"score": score}} if score else {})


def _score(offer: FeedbackOffer, lines: list[str], score: float) -> float:
    """Return the score of a text test after a purchase: as it was told, or less the cost of labels."""
    if offer.content == "writers":
        return float(lines[-1].partition(",")[2])
    return score - len(lines) if offer.reads == "labels" else score


def has_purchases(steps: Iterable[Step]) -> bool:
    """Return whether feedback was given on a test, in this attempt or before."""
    return any(
        step.reply is not None and (_is(step.reply.action, "buy") or _is(step.reply.action, "carry")) for step in steps
    )


def _told(carry: Carry | None) -> dict[str, Any]:
    """Return the locked answers of a test; other servers do not know this key and ignore it."""
    return {TOLD: {"score": carry.told, "answers": carry.answers}} if carry and (carry.told or carry.answers) else {}


def _kinds(posts: list[dict[str, Any]]) -> list[str]:
    """Return the types of results that were posted, in the order they first came."""
    return list(dict.fromkeys(kind for post in posts for kind in post["results"]))


def _posts(steps: list[Any]) -> list[dict[str, Any]]:
    return _actions(steps, "post")


def _actions(steps: list[Any], kind: str) -> list[dict[str, Any]]:
    return [step.reply.action for step in steps if step.reply is not None and _is(step.reply.action, kind)]


def _is(action: Any, kind: str) -> bool:
    return isinstance(action, dict) and action.get("do") == kind


def _json(value: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value))
