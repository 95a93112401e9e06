"""Imports results of the original server: its JSON and CSV files become sessions and rollouts of the journal.

`openfield serve ond --import-legacy DIR`; the posts are repeated, with their original times.
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
from openfield.domains.ond.actions import Buy, Carry, Complete, Post
from openfield.domains.ond.errors import Refusal
from openfield.domains.ond.server.archive import LABELS, TOLD
from openfield.domains.ond.server.session_service import HINT_LIMITS, wait_for_disk, world_of
from openfield.domains.ond.testset.data_directory import DataDirectory
from openfield.domains.ond.testset.results import quote_id, read_text, split_rows
from openfield.domains.ond.testset.test import Test
from openfield.domains.ond.trials import session_trial
from openfield.domains.ond.world import TestWorld
from openfield.errors import InvalidInput, OpenfieldError
from openfield.rollout import Rollout
from openfield.runner.plan import MAX_NAME
from openfield.serving.sessions import Session, SessionDispatcher

LOG = logging.getLogger("openfield.ond")


def import_sessions(
    folder: Path, directory: DataDirectory, dispatcher: SessionDispatcher, version: int, compat: bool = False
) -> list[str]:
    """Import every session of a results directory that is not known yet, and return their ids.

    With `compat`, later posts are accepted as old clients send them. Those in the files always are.
    """
    if not folder.is_dir():
        raise InvalidInput(f"There is no directory {folder}.")
    taken = []
    for path in sorted(folder.glob("*.json")):
        session = path.stem
        if "." in session or session in dispatcher.groups:
            continue  # a file with a dot is the state of one test
        try:
            asyncio.run(_Import(folder, directory, dispatcher, version, compat).run(session, _read(path)))
            taken.append(session)
        except (OpenfieldError, ValueError, TypeError, LookupError, AttributeError, OSError) as error:
            LOG.warning("%s is left out: %s", path.name, error)
    return taken


class _TestHistory(msgspec.Struct, frozen=True):
    """What happened in a test, as its files have it."""

    test: Test
    digests: dict[str, str]
    state: dict[str, Any]
    posts: list[Post]
    used: Carry | None
    listed: bool
    """Whether the session lists it as completed."""


class _Import:
    """Imports one session."""

    def __init__(
        self, folder: Path, directory: DataDirectory, dispatcher: SessionDispatcher, version: int, compat: bool
    ) -> None:
        self._folder, self._directory, self._dispatcher, self._version = folder, directory, dispatcher, version
        self._compat = compat

    async def run(self, session_id: str, facts: dict[str, Any]) -> None:
        """Import a session; all its files are read before anything is entered, so that no half of it is left."""
        said = _read_opening(facts)
        histories = self._read_tests(session_id, facts, said)
        rest = self._directory.root, said, self._version, self._compat
        trials = {one.test.name: session_trial(one.test, one.digests, *rest) for one in histories}
        detector = str(facts.get("created", {}).get("detector", "legacy"))[:MAX_NAME]
        session = await self._dispatcher.open(session_id, detector, trials, said | {"compat": True})
        done = list(facts.get("tests", {}).get("completed_tests", []))
        order = {name: at for at, name in enumerate(done)}
        for history in sorted(histories, key=lambda history: order.get(history.test.name, len(done))):
            if history.state or history.posts or history.listed:
                await self._play(session, history)
        if "termination" in facts:
            await self._dispatcher.note(session, "ended", _time(facts["termination"]))

    def _read_tests(self, session_id: str, facts: dict[str, Any], said: dict[str, Any]) -> list[_TestHistory]:
        """Read the tests of a session. The original keeps no list: any test can be played while the session is open."""
        place, tests = (said["protocol"], said["domain"]), facts.get("tests", {})
        begun = sorted(path.stem.removeprefix(f"{session_id}.") for path in self._folder.glob(f"{session_id}.*.json"))
        done = list(tests.get("completed_tests", []))
        others = () if "termination" in facts else self._directory.names(*place)
        names = tests.get("test_ids") or dict.fromkeys([*begun, *done, *others])
        known = [name for name in names if self._directory.has(*place, name)]
        found = [self._read_test(session_id, said, name, name in done) for name in known]
        if not found:
            raise InvalidInput(f"none of its tests is among those of {', '.join(place)}.")
        return found

    def _read_test(self, session_id: str, said: dict[str, Any], name: str, listed: bool) -> _TestHistory:
        test, digests = self._directory.load(said["protocol"], said["domain"], name)
        path = self._folder / f"{session_id}.{name}.json"
        state = _read(path) if path.is_file() else {}
        posted = state.get("post_results", {})
        files = self._files(f"{session_id}.{name}_", said, posted)
        posts = list(_make_posts(files, test, posted, said["protocol"] == "CONDDA"))
        return _TestHistory(test, digests, state, posts, _used_feedback(state), listed)

    async def _play(self, session: Session, history: _TestHistory) -> None:
        """Repeat the posts. A test is closed if its own file says so, and scored if the session lists it."""
        name, state = history.test.name, history.state
        asked = state.get("data_request")
        if isinstance(asked, dict) and isinstance(asked.get("rounds", {}), dict):
            await self._dispatcher.note(session, f"asked {name}", asked)
        remote = await self._dispatcher.take(session, name)
        world, rollout = world_of(remote), remote.rollout
        if history.used:
            rollout.reply(Reply(history.used))
        for post in history.posts:
            _post(rollout, world, post, f"{session.id}, {name}")
        offer = history.test.kind.feedback.get("score")
        has_score = history.used and any(account.endswith(" score") for account in history.used.used)
        if has_score and TOLD not in state and offer is not None and offer.content == "accuracy":
            rollout.reply(Reply(Buy("score")))  # the score stays about the answers of that time
        at = _time(state.get("completion", {})) or _time(state.get("post_results", {})) or "N/A"
        if "completion" in state:
            rollout.reply(Reply(Complete(at)))
            while not rollout.over:
                rollout.reply(Reply(None, world.look("beliefs")))
            await wait_for_disk(rollout.commit())
            self._dispatcher.finish(session, name, remote)
        else:
            await wait_for_disk(rollout.commit())
        if history.listed:  # a test that is listed and not closed can be scored and gone on with
            key = "test" if "completion" in state else "listed"
            await self._dispatcher.note(session, f"{key} {name}", {"first": world.first_post, "completed": at})

    def _files(self, own: str, said: dict[str, Any], posted: dict[str, Any]) -> dict[str, Path]:
        """Return the file of each type, detections first; a file of another session only where the state names it."""
        folder = self._folder / said["protocol"] / said["domain"]
        paths = {path.stem.removeprefix(own): path for path in sorted(folder.glob(f"{glob.escape(own)}*.csv"))}
        linked = folder / Path(str(posted.get("detection file path", "none"))).name
        if "detection" not in paths and linked.is_file():
            paths["detection"] = linked
        return dict(sorted(paths.items(), key=lambda item: item[0] != "detection"))


def _read_opening(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the facts of a session's opening, under the names that our sessions have."""
    created = facts.get("created", {})
    return {
        "created": _time(created),
        "protocol": str(created.get("protocol")),
        "domain": str(created.get("domain", "image_classification")),
        "hints": [str(hint) for hint in created.get("hints") or []],
        **_read_limits(created),
        "detection_threshold": float(created.get("detection_threshold", 0.5)),
        **{key: place[key] for key, place in (("devmode", created), (LABELS, facts)) if key in place},
    }


def _read_limits(created: dict[str, Any]) -> dict[str, dict[str, int]]:
    """Return what hints could change in a session that had some; the files of other servers do not say it."""
    if not any("=" in str(hint) for hint in created.get("hints") or []):
        return {}
    try:
        return {"hint_limits": msgspec.convert(created.get("hint_limits", HINT_LIMITS), dict[str, int])}
    except msgspec.ValidationError:
        return {"hint_limits": HINT_LIMITS}


def _make_posts(files: dict[str, Path], test: Test, posted: dict[str, Any], condda: bool) -> Iterator[Post]:
    """Yield the posts, round by round; clusters of OND come once, at the end, with round 0."""
    found: list[tuple[int, str, str]] = []
    for kind, path in files.items():
        try:
            parts = split_by_round(read_text(path.read_bytes()), test, _stated_rounds(posted, kind))
        except (OSError, UnicodeDecodeError, Refusal) as error:
            LOG.warning("%s is left out: %s", path.name, error)
            continue
        late = kind == "characterization" and not condda
        found += [(test.rounds, kind, "".join(parts.values()))] if late else [(at, kind, parts[at]) for at in parts]
    together: dict[tuple[int, str], dict[str, str]] = {}
    for number, kind, rows in found:
        together.setdefault((number, _post_time(posted, number % test.rounds, kind)), {})[kind] = rows
    for (number, at), results in sorted(together.items(), key=lambda item: item[0]):
        yield Post(number % test.rounds, results, at, old=True)


def _post(rollout: Rollout, world: TestWorld, post: Post, where: str) -> None:
    """Post the results that can be used."""
    try:
        world.prepare(post, world.read(post))
    except Refusal as error:
        if len(post.results) == 1:
            LOG.warning("%s: results are left out: %s", where, error)
            return
        for kind, rows in post.results.items():
            _post(rollout, world, Post(post.round, {kind: rows}, post.at, old=True), where)
        return
    rollout.reply(Reply(post))


def split_by_round(content: str, test: Test, stated: set[int]) -> dict[int, str]:
    """Return the rows of a file by the rounds they were posted with.

    Files do not name rounds, but each sample belongs to one. Where the state says otherwise, as after a client that
    posted a whole test as round 0, all rows belong to the last round it names.
    """
    size, found = test.round_size or len(test.ids), dict[int, str]()
    for key, rest in zip(*split_rows(content, test), strict=True):
        number = test.index.get(key, 0) // size  # a row of no sample is refused with the round it comes with
        row = f"{quote_id(key)},{rest}" if rest else quote_id(key)
        found[number] = found.get(number, "") + f"{row}\n"
    if stated and stated != set(found):
        return {max(stated): "".join(found.values())}
    return found


def _stated_rounds(posted: dict[str, Any], kind: str) -> set[int]:
    """Return the rounds that a state names for a type; a round that names no types is about all."""
    rounds = posted.get("rounds", {})
    return {int(number) for number, entry in rounds.items() if kind in _types(entry, kind) and number.isdigit()}


def _types(entry: Any, default: str) -> list[str]:
    return list(entry.get("types", [default])) if isinstance(entry, dict) else [default]


def _post_time(posted: dict[str, Any], number: int, kind: str) -> str:
    """Return when results came: the time of their type where there is one for each, else the first there is."""
    entry = posted.get("rounds", {}).get(str(number), {})
    types, times = _types(entry, kind), entry.get("time", []) if isinstance(entry, dict) else []
    if isinstance(times, list) and len(times) == len(types) and kind in types:
        return str(times[types.index(kind)])
    return _time(entry) or _time(posted) or "N/A"


def _used_feedback(state: dict[str, Any]) -> Carry | None:
    """Return the purchases, which are not refunded, and the score so far (text tests)."""
    used: dict[str, int] = {}
    for number, bought in state.get("get_feedback", {}).get("rounds", {}).items():
        for kind, count in bought.items():
            if kind not in ("time", "feedback_budget"):
                spent = len(count) if isinstance(count, list) else int(count)
                used[f"{number} {kind}"] = used[f"of {number} {kind}"] = spent
    score = float(state.get("current_score", {}).get("score", 0.0))
    scored = sorted(int(account.split()[0]) for account in used if account.endswith(" score") and account[0].isdigit())
    locked = state.get(TOLD, {})
    recorded = {"told": locked.get("score", ""), "answers": locked.get("answers", {})}
    found = msgspec.convert({"do": "carry", "used": used, "score": score, "scored": scored} | recorded, Carry)
    return found if used or score or found.told or found.answers else None


def _read(path: Path) -> dict[str, Any]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"{path.name} cannot be read: {error}.") from None


def _time(part: Any) -> str:
    """Return a time, which is a text or the first of a list."""
    found = part.get("time", "") if isinstance(part, dict) else ""
    return str(found[0] if isinstance(found, list) and found else found or "")
