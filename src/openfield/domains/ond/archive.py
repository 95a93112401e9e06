"""A session as a zip file in the layout that clients of the protocol know.

Journal -> archive: everything is read from recorded steps.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from typing import Any

import msgspec

from openfield.groups import Group


def pack(group: Group, tests: Mapping[str, list[Any]]) -> bytes:
    """The zip: the session, each test's doings, and all posted rows."""
    content = io.BytesIO()
    folder = f"{group.facts['protocol']}/{group.facts['domain']}"
    with zipfile.ZipFile(content, "w", zipfile.ZIP_BZIP2) as file:
        file.writestr(f"{group.id}.json", _json(_session(group)))
        for test, steps in tests.items():
            posts = [step.reply.action for step in steps if step.reply is not None and _is(step.reply.action, "post")]
            doings = _doings(group, test, posts, folder) | _feedback(steps)
            file.writestr(f"{group.id}.{test}.json", _json(doings))
            for kind, text in _gather(posts).items():
                file.writestr(f"{folder}/{group.id}.{test}_{kind}.csv", text)
    return content.getvalue()


def _session(group: Group) -> dict[str, Any]:
    facts = group.facts
    kept = ("protocol", "domain", "detection_threshold", "hints", "devmode")
    created = {"time": [facts["created"]], "detector": group.agent} | {key: facts[key] for key in kept if key in facts}
    done = [key.removeprefix("test ") for key in facts if key.startswith("test ")]
    ended = {"termination": {"time": [facts["ended"]]}} if "ended" in facts else {}
    return {"created": created, "tests": {"completed_tests": done}} | ended


def _feedback(steps: list[Any]) -> dict[str, Any]:
    """What was bought with which round, type by type; what an earlier attempt had used is among it."""
    rounds: dict[str, dict[str, int]] = {}
    last, at = "0", ""
    for step in steps:
        action: Any = step.reply.action if step.reply is not None else None
        if _is(action, "post"):
            last, at = str(action["round"]), action["at"]
        elif _is(action, "carry"):
            for account, count in action["used"].items():
                number, _, kind = account.partition(" ")
                if number != "of":
                    rounds.setdefault(number, {})[kind] = count
        elif _is(action, "buy") and step.turn is not None and step.turn.feedback:
            bought = rounds.setdefault(last, {})
            bought[action["type"]] = bought.get(action["type"], 0) + len(step.turn.feedback.get("lines", ()))
    return {"get_feedback": {"time": [at], "rounds": rounds}} if rounds else {}


def _doings(group: Group, test: str, posts: list[dict[str, Any]], folder: str) -> dict[str, Any]:
    rounds: dict[str, dict[str, list[str]]] = {}
    for post in posts:
        entry = rounds.setdefault(str(post["round"]), {"time": [], "types": []})
        entry["time"].append(post["at"])
        entry["types"] += list(post["results"])
    found: dict[str, Any] = {}
    if posts:
        last = str(posts[-1]["round"])
        paths = {f"{kind} file path": f"{folder}/{group.id}.{test}_{kind}.csv" for kind in _gather(posts)}
        found["post_results"] = {"time": [post["at"] for post in posts], "last round": last, "rounds": rounds} | paths
    done = group.facts.get(f"test {test}")
    return found | ({"completion": {"time": [done["completed"]]}} if done else {})


def _gather(posts: list[dict[str, Any]]) -> dict[str, str]:
    """The rows of each type in the order they came, every row on a line of its own."""
    found: dict[str, str] = {}
    for post in posts:
        for kind, text in post["results"].items():
            found[kind] = found.get(kind, "") + (text if text.endswith("\n") else f"{text}\n")
    return found


def _is(action: Any, kind: str) -> bool:
    return isinstance(action, dict) and action.get("do") == kind


def _json(value: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value))
