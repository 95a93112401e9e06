"""Results of the original server, taken over: its JSON and CSV files become sessions and rollouts of the journal.

`openfield serve ond --import-legacy DIR`; what was posted is posted again, with the times it had then.
"""

from __future__ import annotations

import asyncio
import glob
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from openfield.core import Reply
from openfield.domains.ond.actions import Carry, Complete, Post
from openfield.domains.ond.client import read_text
from openfield.domains.ond.refusal import Refusal
from openfield.domains.ond.sheet import Shelf, Test
from openfield.domains.ond.trials import served_trial
from openfield.domains.ond.world import TestWorld
from openfield.errors import InvalidInput, OpenfieldError
from openfield.groups import Group, GroupDesk
from openfield.plan import LONGEST_NAME

LOG = logging.getLogger("openfield.ond")


def import_results(folder: Path, shelf: Shelf, desk: GroupDesk, version: int) -> list[str]:
    """Takes over every session of a results directory that is not known yet; returns their ids."""
    if not folder.is_dir():
        raise InvalidInput(f"There is no directory {folder}.")
    taken = []
    for path in sorted(folder.glob("*.json")):
        session = path.stem
        if "." in session or session in desk.groups:
            continue  # a file with a dot is the state of one test
        try:
            asyncio.run(_Import(folder, shelf, desk, version).take(session, _read(path)))
            taken.append(session)
        except (OpenfieldError, ValueError, TypeError, LookupError, AttributeError, OSError) as error:
            LOG.warning("%s is left out: %s", path.name, error)
    return taken


class _Import:
    """One session on its way into the journal."""

    def __init__(self, folder: Path, shelf: Shelf, desk: GroupDesk, version: int) -> None:
        self._folder, self._shelf, self._desk, self._version = folder, shelf, desk, version

    async def take(self, session: str, facts: dict[str, Any]) -> None:
        created = facts.get("created", {})
        protocol, area = str(created.get("protocol")), str(created.get("domain", "image_classification"))
        done = list(facts.get("tests", {}).get("completed_tests", []))
        names = list(dict.fromkeys([*self._tests(session), *done])) or self._shelf.names(protocol, area)
        tests = {
            name: self._shelf.load(protocol, area, name) for name in names if self._shelf.has(protocol, area, name)
        }
        if not tests:
            raise InvalidInput(f"none of its tests is among those of {protocol}, {area}.")
        said = {"created": _time(created), "protocol": protocol, "domain": area, "hints": created.get("hints", [])}
        threshold = float(created.get("detection_threshold", 0.5))
        settings = {
            "data": str(self._shelf.root),
            "protocol": protocol,
            "area": area,
            "threshold": threshold,
            "level": "compat",
        }
        light = "red_light" in said["hints"]
        trials = {
            name: served_trial(test, digests, settings, self._version, light) for name, (test, digests) in tests.items()
        }
        said["detection_threshold"] = threshold
        detector = str(created.get("detector", "legacy"))[:LONGEST_NAME]
        group = await self._desk.open(session, detector, trials, said)
        for name, (test, _) in tests.items():
            await self._play(group, test, name in done)
        if "termination" in facts:
            await self._desk.note(group, "ended", _time(facts["termination"]))

    async def _play(self, group: Group, test: Test, listed: bool) -> None:
        """Posts what was posted; a test is closed if its own file says so, and scored if the session lists it."""
        path = self._folder / f"{group.id}.{test.name}.json"
        state = _read(path) if path.is_file() else {}
        seat = await self._desk.take(group, test.name)
        world, rollout = seat.rollout.world, seat.rollout
        if not isinstance(world, TestWorld):
            raise InvalidInput("not a test.")
        if used := _used_feedback(state):
            rollout.reply(Reply(used))
        for post in self._posts(group, test, state):
            try:
                world.prepare(post)
            except Refusal as error:
                LOG.warning("%s, %s: results are left out: %s", group.id, test.name, error)
                continue
            rollout.reply(Reply(post))
        at = _time(state.get("completion", {})) or _time(state.get("post_results", {})) or "N/A"
        if "completion" in state:
            rollout.reply(Reply(Complete(at)))
            while not rollout.over:
                rollout.reply(Reply(None, world.look("beliefs")))
            self._desk.finish(group, test.name, seat)
        else:
            rollout.commit()
        if listed:  # a test that is listed and not closed can be scored and gone on with
            key = "test" if "completion" in state else "listed"
            await self._desk.note(group, f"{key} {test.name}", {"first": world.first_post, "completed": at})

    def _posts(self, group: Group, test: Test, state: dict[str, Any]) -> Iterator[Post]:
        """Each type's rows, as one post: files do not say which rows came with which round."""
        posted = state.get("post_results", {})
        last = str(posted.get("last round", "0"))
        number = int(last) if last.isdigit() else 0
        folder = self._folder / str(group.facts["protocol"]) / str(group.facts["domain"])
        paths = {path.stem.removeprefix(f"{group.id}.{test.name}_"): path for path in _own_files(folder, group, test)}
        linked = folder / Path(str(posted.get("detection file path", "none"))).name  # perhaps another session's
        if "detection" not in paths and linked.is_file():
            paths["detection"] = linked
        for kind, path in sorted(paths.items()):
            try:
                yield Post(number, {kind: read_text(path.read_bytes())}, _time(posted) or "N/A")
            except (OSError, UnicodeDecodeError) as error:
                LOG.warning("%s is left out: %s", path.name, error)

    def _tests(self, session: str) -> list[str]:
        """The tests a session has files of."""
        return sorted(path.stem.removeprefix(f"{session}.") for path in self._folder.glob(f"{session}.*.json"))


def _own_files(folder: Path, group: Group, test: Test) -> list[Path]:
    return sorted(folder.glob(f"{glob.escape(f'{group.id}.{test.name}_')}*.csv"))


def _used_feedback(state: dict[str, Any]) -> Carry | None:
    """What was bought of a test, which is not refunded, and its score so far (text tests)."""
    used: dict[str, int] = {}
    for number, bought in state.get("get_feedback", {}).get("rounds", {}).items():
        for kind, count in bought.items():
            if kind not in ("time", "feedback_budget"):
                used[f"{number} {kind}"] = used[f"of {number} {kind}"] = (
                    len(count) if isinstance(count, list) else int(count)
                )
    score = float(state.get("current_score", {}).get("score", 0.0))
    return Carry(used, score) if used or score else None


def _read(path: Path) -> dict[str, Any]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise InvalidInput(f"{path.name} cannot be read: {error}.") from None


def _time(part: Any) -> str:
    """A time, which is a text or the first of a list."""
    found = part.get("time", "") if isinstance(part, dict) else ""
    return str(found[0] if isinstance(found, list) and found else found or "")
