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
from openfield.domains.ond.actions import Buy, Carry, Complete, Post, Told
from openfield.domains.ond.errors import Refusal
from openfield.domains.ond.server.archive import LABELS, TOLD
from openfield.domains.ond.server.session_service import wait_for_disk, world_of
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


def import_results(
    folder: Path, directory: DataDirectory, dispatcher: SessionDispatcher, version: int, compat: bool = False
) -> list[str]:
    """Takes over every session of a results directory that is not known yet; returns their ids.

    What is in the files is taken as it is; what comes later goes by the server's own rules (`compat`).
    """
    if not folder.is_dir():
        raise InvalidInput(f"There is no directory {folder}.")
    taken = []
    for path in sorted(folder.glob("*.json")):
        session = path.stem
        if "." in session or session in dispatcher.groups:
            continue  # a file with a dot is the state of one test
        try:
            asyncio.run(_Import(folder, directory, dispatcher, version, compat).take(session, _read(path)))
            taken.append(session)
        except (OpenfieldError, ValueError, TypeError, LookupError, AttributeError, OSError) as error:
            LOG.warning("%s is left out: %s", path.name, error)
    return taken


class _Story(msgspec.Struct, frozen=True):
    """What happened in a test, as its files tell it."""

    test: Test
    digests: dict[str, str]
    state: dict[str, Any]
    posts: list[Post]
    used: Carry | None
    listed: bool
    """Whether the session counts it among the completed ones."""


class _Told(msgspec.Struct, frozen=True):
    """Answers that go on to count, as a server of ours packs them."""

    score: str = ""
    answers: dict[str, list[Told]] = {}


class _Import:
    """One session on its way into the journal."""

    def __init__(
        self, folder: Path, directory: DataDirectory, dispatcher: SessionDispatcher, version: int, compat: bool
    ) -> None:
        self._folder, self._directory, self._dispatcher, self._version = folder, directory, dispatcher, version
        self._compat = compat

    async def take(self, session: str, facts: dict[str, Any]) -> None:
        """Everything is read before anything is entered: what cannot be read leaves no half of a session."""
        said = _read_opening(facts)
        stories = self._read_stories(session, facts, said)
        root, version, compat = self._directory.root, self._version, self._compat
        trials = {
            story.test.name: session_trial(story.test, story.digests, root, said, version, compat) for story in stories
        }
        detector = str(facts.get("created", {}).get("detector", "legacy"))[:MAX_NAME]
        group = await self._dispatcher.open(session, detector, trials, said)
        done = list(facts.get("tests", {}).get("completed_tests", []))
        for story in sorted(stories, key=lambda story: done.index(story.test.name) if story.listed else len(done)):
            if story.state or story.posts or story.listed:
                await self._play(group, story)
        if "termination" in facts:
            await self._dispatcher.note(group, "ended", _time(facts["termination"]))

    def _read_stories(self, session: str, facts: dict[str, Any], said: dict[str, Any]) -> list[_Story]:
        """The tests of a session; the original keeps no list, and while it is open any test can be played."""
        place, told = (said["protocol"], said["domain"]), facts.get("tests", {})
        done, begun = list(told.get("completed_tests", [])), self._begun(session)
        others = () if "termination" in facts else self._directory.names(*place)
        names = told.get("test_ids") or dict.fromkeys([*begun, *done, *others])
        found = [
            self._read_story(session, said, name, name in done) for name in names if self._directory.has(*place, name)
        ]
        if not found:
            raise InvalidInput(f"none of its tests is among those of {', '.join(place)}.")
        return found

    def _read_story(self, session: str, said: dict[str, Any], name: str, listed: bool) -> _Story:
        test, digests = self._directory.load(said["protocol"], said["domain"], name)
        path = self._folder / f"{session}.{name}.json"
        state = _read(path) if path.is_file() else {}
        posted = state.get("post_results", {})
        files = self._files(f"{session}.{name}_", said, posted)
        posts = list(_make_posts(files, test, posted, said["protocol"] == "CONDDA"))
        return _Story(test, digests, state, posts, _used_feedback(state), listed)

    async def _play(self, group: Session, story: _Story) -> None:
        """Posts what was posted; a test is closed if its own file says so, and scored if the session lists it."""
        name, state = story.test.name, story.state
        asked = state.get("data_request")
        if isinstance(asked, dict) and isinstance(asked.get("rounds", {}), dict):
            await self._dispatcher.note(group, f"asked {name}", asked)
        remote = await self._dispatcher.take(group, name)
        world, rollout = world_of(remote), remote.rollout
        if story.used:
            rollout.reply(Reply(story.used))
        for post in story.posts:
            _post(rollout, world, post, f"{group.id}, {name}")
        if story.used and TOLD not in state and _was_told(story.used, story.test):
            rollout.reply(Reply(Buy("score")))  # what was answered then stays what the score is about
        at = _time(state.get("completion", {})) or _time(state.get("post_results", {})) or "N/A"
        if "completion" in state:
            rollout.reply(Reply(Complete(at)))
            while not rollout.over:
                rollout.reply(Reply(None, world.look("beliefs")))
            await wait_for_disk(rollout.commit())
            self._dispatcher.finish(group, name, remote)
        else:
            await wait_for_disk(rollout.commit())
        if story.listed:  # a test that is listed and not closed can be scored and gone on with
            key = "test" if "completion" in state else "listed"
            await self._dispatcher.note(group, f"{key} {name}", {"first": world.first_post, "completed": at})

    def _files(self, own: str, said: dict[str, Any], posted: dict[str, Any]) -> dict[str, Path]:
        """The file of each type, detections first; that of another session only where the state names it."""
        folder = self._folder / said["protocol"] / said["domain"]
        paths = {path.stem.removeprefix(own): path for path in sorted(folder.glob(f"{glob.escape(own)}*.csv"))}
        linked = folder / Path(str(posted.get("detection file path", "none"))).name
        if "detection" not in paths and linked.is_file():
            paths["detection"] = linked
        return dict(sorted(paths.items(), key=lambda item: item[0] != "detection"))

    def _begun(self, session: str) -> list[str]:
        """The tests a session has files of."""
        return sorted(path.stem.removeprefix(f"{session}.") for path in self._folder.glob(f"{session}.*.json"))


def _read_opening(facts: dict[str, Any]) -> dict[str, Any]:
    """What was said when a session was opened, under the names it has with us."""
    created = facts.get("created", {})
    return {
        "created": _time(created),
        "protocol": str(created.get("protocol")),
        "domain": str(created.get("domain", "image_classification")),
        "hints": [str(hint) for hint in created.get("hints") or []],
        "detection_threshold": float(created.get("detection_threshold", 0.5)),
        **{key: place[key] for key, place in (("devmode", created), (LABELS, facts)) if key in place},
    }


def _make_posts(files: dict[str, Path], test: Test, posted: dict[str, Any], condda: bool) -> Iterator[Post]:
    """What was posted, type by type, the rounds in their order; clusters of OND come once, at the end, with round 0."""
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
    """Posts what can be used of a post."""
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
    """The rows of a file by the rounds they were posted with.

    Files do not say it, but samples have rounds. Where the state says otherwise, as after a client that posted a whole
    test as round 0, all rows belong to the last round it names.

    Raises:
        Refusal: There are no rows.
    """
    size, found = test.round_size or len(test.ids), dict[int, str]()
    for key, rest in zip(*split_rows(content, test), strict=True):
        number = test.index.get(key, 0) // size  # a stranger's row is refused with the round it comes with
        row = f"{quote_id(key)},{rest}" if rest else quote_id(key)
        found[number] = found.get(number, "") + f"{row}\n"
    if stated and stated != set(found):
        return {max(stated): "".join(found.values())}
    return found


def _stated_rounds(posted: dict[str, Any], kind: str) -> set[int]:
    """The rounds a state names for a type; those that name no types are about all."""
    rounds = posted.get("rounds", {})
    return {int(number) for number, entry in rounds.items() if kind in _types(entry, kind) and number.isdigit()}


def _types(entry: Any, default: str) -> list[str]:
    return list(entry.get("types", [default])) if isinstance(entry, dict) else [default]


def _post_time(posted: dict[str, Any], number: int, kind: str) -> str:
    """When results came: with a time for each type of a round that of this one, else the first there is."""
    entry = posted.get("rounds", {}).get(str(number), {})
    types, times = _types(entry, kind), entry.get("time", []) if isinstance(entry, dict) else []
    if isinstance(times, list) and len(times) == len(types) and kind in types:
        return str(times[types.index(kind)])
    return _time(entry) or _time(posted) or "N/A"


def _was_told(used: Carry, test: Test) -> bool:
    """Whether the share of right answers was told."""
    offer = test.kind.feedback.get("score")
    told = any(account.endswith(" score") for account in used.used)
    return told and offer is not None and offer.content == "accuracy"


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
    scored = sorted(int(account.split()[0]) for account in used if account.endswith(" score") and account[0].isdigit())
    told = msgspec.convert(state.get(TOLD, {}), _Told)
    found = Carry(used, score, scored, told.score, told.answers)
    return found if used or score or told.score or told.answers else None


def _read(path: Path) -> dict[str, Any]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path.name} cannot be read: {error}.") from None


def _time(part: Any) -> str:
    """A time, which is a text or the first of a list."""
    found = part.get("time", "") if isinstance(part, dict) else ""
    return str(found[0] if isinstance(found, list) and found else found or "")
