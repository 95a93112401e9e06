"""Every value of a run file that is forged is named, or the run's fingerprint is another one."""

from __future__ import annotations

import hashlib
import re
import shutil
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

import openfield as of
from openfield.journal.reader import Run
from openfield.journal.schema import SCHEMA, SourceText
from openfield.journal.verification import find_bound_agents, find_false_episodes, find_false_turns
from openfield.journal.writer import Journal
from openfield.limit_guard import CUT_OFF
from openfield.provenance.provenance import find_false_players
from openfield.provenance.rules import DomainRules
from openfield.result import Result
from openfield.run_files import check_verdicts
from openfield.runner.plan import make_plan
from openfield.trial import with_limits
from support.places import ROOT
from support.players import Fickle, Learner
from support.stories import rows
from support.worlds import Tiny


class Wary(Tiny):
    """A domain whose detections are not by the common rule."""

    name = "wary"

    def detected(self, belief: of.Belief) -> bool:
        return belief.highest >= 0.3


WARY = Wary()
LEASES = {("cells", "holder"), ("cells", "held_until")}
"""What only those that play look at."""

EPISODE = ("phase", "novel", "turns", "performance", "belief", "ended", "detail")
PROVEN = {
    "facts": ("value",),
    "trials": ("id", "content"),
    "cells": ("id", "agent", "trial", "repeat"),
    "agents": ("name",),
    "attempts": ("cell", "number", "outcome"),
    "episodes": ("cell", "attempt", "number", *EPISODE),
    "chunks": ("cell", "attempt", "first", "count", "crc", "data", "chain"),
    "states": ("cell", "attempt"),
    "players": ("cell", "attempt", "fingerprint"),
    "verdicts": ("cell", "attempt", "number", "detected"),
    "strengths": ("cell", "attempt", "number", "strength", "change"),
    "sources": ("digest", "text"),
}
"""What is computed again. The fingerprint covers the rest."""


def columns() -> Iterator[tuple[str, str]]:
    """Yield every column of every table that a finished run has rows in."""
    with closing(sqlite3.connect(":memory:")) as db:
        for statement in SCHEMA:
            db.execute(statement)
        for (table,) in db.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name != 'tails'"
        ).fetchall():
            yield from ((table, name) for _, name, *_ in db.execute(f"PRAGMA table_info({table})"))


def make_run(path: Path) -> Path:
    """Make a run of two cells: with a saved agent, known players, their text, and an attempt that was replaced."""
    trials = of.trials(WARY, 1, novelty="flipped every 2 for 1", unchanged=0)
    text = SourceText(hashlib.sha256(b"pass").hexdigest(), "learner.py", "pass")
    plan = make_plan([Learner, doubting], trials)
    with Journal(path) as record:
        record.enter(plan.cells, {}, {"note": "a test"}, [text])
        for cell in (plan.cells[0], *plan.cells):
            record.begin(cell.id, plan.fingerprints["wary", cell.agent])
    of.run([Learner, doubting], trials, path)
    return path


def doubting(turn: of.Turn) -> of.Reply:
    return of.Reply(0, of.Belief(0.4))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("finished") / "run.sqlite")


@pytest.fixture
def forged(finished: Path, path: Path) -> Path:
    return Path(shutil.copy(finished, path))


def find_faults(path: Path) -> list[str]:
    with Run(path) as run:
        return run.verify() or [*check_verdicts(run), *find_false_players(run)]


def fingerprint(path: Path) -> str:
    with Run(path) as run:
        return run.fingerprint()


def forge(path: Path, table: str, column: str, change: Callable[[Any], Any]) -> None:
    """Change a value in the last row that has one, or the last row if none has."""
    with closing(sqlite3.connect(path)) as db, db:
        row, value = db.execute(
            f"SELECT rowid, {column} FROM {table} ORDER BY {column} IS NOT NULL DESC, rowid DESC LIMIT 1"
        ).fetchone()
        db.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (change(value), row))


def alter(value: Any) -> Any:
    match value:
        case int():
            return 1 - value if value in (0, 1) else value + 1
        case float():
            return value + 0.125
        case str():
            return value.replace('"seed":', '"seed":1') if '"seed":' in value else f"{value}x"
        case bytes():
            return msgspec.msgpack.encode(of.Belief(0.123)) if b"novel" in value else value + b"\xc0"
    return msgspec.msgpack.encode("made up")  # a detail


def test_a_run_as_it_was_written_has_no_faults(finished: Path) -> None:
    assert find_faults(finished) == []
    assert all(rows(finished, f"SELECT count(*) FROM {table}") > [(0,)] for table, _ in columns())


@pytest.mark.parametrize(("table", "column"), [each for each in columns() if each not in LEASES])
def test_every_forged_value_is_found(finished: Path, forged: Path, table: str, column: str) -> None:
    forge(forged, table, column, alter)
    faults = find_faults(forged)
    assert bool(faults) == (column in PROVEN.get(table, ()))
    assert faults or fingerprint(forged) != fingerprint(finished)


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("belief", msgspec.msgpack.encode(of.Belief(0.987)), r"belief is recorded as Belief\(novel=0\.987"),
        ("novel", 1, "novel is recorded as True; its turns say False"),
        ("phase", "training", "phase is recorded as training; its turns say test"),
        ("ended", "truncated", "ended is recorded as truncated; its turns say terminated"),
        ("detail", msgspec.msgpack.encode({"score": 1}), r"detail is recorded as \{'score': 1\}; its turns say None"),
    ],
)
def test_a_forged_episode_is_named_with_both_values(forged: Path, column: str, value: Any, words: str) -> None:
    forge(forged, "episodes", column, lambda _: value)
    (fault,) = (fault for fault in find_faults(forged) if "detected" not in fault)
    assert re.match(rf"Cell [0-9a-f]{{12}}, attempt \d, episode \d: {words}", fault)


def test_an_outcome_that_turns_do_not_bear_out_is_named(forged: Path) -> None:
    forge(forged, "attempts", "outcome", lambda _: "truncated")
    assert "the outcome is recorded as truncated; its turns say done." in find_faults(forged)[0]


@pytest.mark.parametrize("outcome", ["harness_error", "world_error", "cancelled", "superseded", None])
def test_a_trial_that_is_over_has_no_other_outcome(forged: Path, outcome: str | None) -> None:
    forge(forged, "attempts", "outcome", lambda _: outcome)
    (fault,) = find_faults(forged)
    assert f"the outcome is recorded as {outcome or 'open'}; its turns say done." in fault
    assert ("resume it" in fault) == (outcome in ("cancelled", None))


def test_an_agent_may_fail_after_its_last_turn_with_a_note_and_in_known_ways_only(forged: Path) -> None:
    forge(forged, "attempts", "outcome", lambda _: "agent_error")
    (fault,) = find_faults(forged)
    assert fault.endswith("as agent_error; its turns say done, and no note says what failed after them.")
    forge(forged, "attempts", "outcome", lambda _: "agent_\x1b[31mfoo")
    assert find_faults(forged)[0].endswith("foo is not an outcome.")


def test_an_agent_that_cannot_be_saved_in_the_end_or_hesitates_too_long_is_no_fault_of_the_file(path: Path) -> None:
    class Unsaved(Learner):
        def save(self) -> bytes:
            raise OSError("no room")

    class Hesitant:
        def __init__(self, spec: of.Spec, seed: int) -> None: ...

        def __call__(self, turn: of.Turn) -> of.Reply:
            return of.Reply(None)

    of.run({"unsaved": Unsaved, "hesitant": Hesitant}, of.trials(WARY, 1, unchanged=0), path)
    failed = rows(path, "SELECT outcome, note FROM attempts")
    assert sorted(outcome for outcome, _ in failed) == ["agent_error", "agent_protocol"]
    assert all(re.match(r"Turn \d+: (save\(\) raised|1000 replies in a row)", note) for _, note in failed)
    assert find_faults(path) == []


FAILING = """
import openfield as of

class Plays:
    def __init__(self, spec, seed):
        self.begun = 0
    def __call__(self, turn):
        self.begun += turn.first
        return of.Reply(0, of.Belief(0.4))

class QuitsBetween(Plays):
    def __call__(self, turn):
        if self.begun == 3 and turn.first:
            raise RuntimeError("enough")
        return super().__call__(turn)

class QuitsWithin(Plays):
    def __call__(self, turn):
        if self.begun == 3 and not turn.first:
            raise RuntimeError("enough")
        return super().__call__(turn)
"""


def make_failed_run(path: Path) -> Path:
    """Make a run of agents that quit, of one that plays on, and of one that a limit cuts off."""
    file = path.with_name("failing.py")
    file.write_text(FAILING)
    agents = [f"{file}:{name}" for name in ("Plays", "QuitsBetween", "QuitsWithin")]
    trials = of.trials(WARY, 1, novelty="flipped every 2 for 1", unchanged=0)
    of.run(agents, trials, path)
    of.run(agents[0], with_limits(trials, lambda _: of.Limits(trial_seconds=1e-9)), path)
    return path


LATER = (
    "INSERT INTO attempts (cell, number, outcome, note) SELECT cell, 2, 'harness_error', 'Its worker process died.' "
    "FROM attempts WHERE outcome = 'superseded'",
    "INSERT INTO players SELECT cell, 2, fingerprint FROM players JOIN attempts USING (cell) WHERE number = 2",
    "UPDATE facts SET value = (SELECT count(*) FROM attempts) WHERE key = 'attempts'",
)
"""Add an attempt after each that is recorded as superseded."""
OUTCOME_FORGERIES = {
    "quitters left": (
        "truncated, but no limit is noted, and its agent could not leave|episode 2 is missing",
        "UPDATE attempts SET outcome = 'truncated', note = '' WHERE outcome = 'agent_error'",
    ),
    "no limit": (
        "episode 0 is missing, although its turns are recorded",
        "UPDATE attempts SET note = '' WHERE outcome = 'truncated'",
        "DELETE FROM episodes WHERE ended = 'truncated'",
    ),
    "failed for nothing": (
        "no note says what failed after them",
        "UPDATE attempts SET outcome = 'agent_error' WHERE outcome = 'done'",
    ),
    **{
        f"quitters as {outcome}": (
            "its note says what its agent did|it has a note: Turn|there is no later attempt",
            f"UPDATE attempts SET outcome = {outcome} WHERE outcome = 'agent_error'",
        )
        for outcome in ("'world_error'", "'harness_error'", "'cancelled'", "'superseded'", "NULL")
    },
    "quitters without a note": (
        "its note does not say what failed: it is empty",
        "UPDATE attempts SET outcome = 'harness_error', note = '' WHERE outcome = 'agent_error'",
    ),
    "a limit as an error of ours": (
        "its note does not say what failed: Cut off",
        "UPDATE attempts SET outcome = 'harness_error' WHERE outcome = 'truncated'",
    ),
    "a world blamed": (
        "the reply at which the world failed is missing",
        "UPDATE attempts SET outcome = 'world_error', note = replace(note, 'the agent raised', 'the world raised') "
        "WHERE outcome = 'agent_error'",
    ),
    "replaced by itself": (
        "its turns say done, and no other version of its agent played it again",
        "UPDATE attempts SET outcome = 'superseded' WHERE outcome = 'done'",
        *LATER,
    ),
    "a limit replaced": (
        "a limit had ended it, and no other version of its agent played it again",
        "UPDATE attempts SET outcome = 'superseded' WHERE outcome = 'truncated'",
        *LATER,
    ),
    "an error of ours replaced": (
        "its turns say done, and no note says what failed after them",
        "UPDATE attempts SET outcome = 'superseded' WHERE outcome = 'done'",
        *LATER,
        "UPDATE attempts SET outcome = 'harness_error' WHERE outcome = 'superseded'",
    ),
}
"""Outcomes that the turns and notes of a failed run contradict: what `verify` says of each, and how it is forged."""


def forge_outcomes(path: Path, name: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        for statement in OUTCOME_FORGERIES[name][1:]:
            assert db.execute(statement).rowcount


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_failed_run(tmp_path_factory.mktemp("failed") / "run.sqlite")


def test_a_failed_run_has_no_faults(failed: Path) -> None:
    outcomes = rows(failed, "SELECT outcome FROM attempts ORDER BY outcome")
    assert outcomes == [("agent_error",), ("agent_error",), ("done",), ("truncated",)]
    assert find_faults(failed) == []


@pytest.mark.parametrize("name", OUTCOME_FORGERIES)
def test_an_outcome_that_turns_and_notes_contradict_is_named(failed: Path, path: Path, name: str) -> None:
    shutil.copy(failed, path)
    before = dict(rows(path, "SELECT cell, outcome FROM attempts"))
    forge_outcomes(path, name)
    after = dict(rows(path, "SELECT cell, outcome FROM attempts WHERE number = 1"))
    faults = find_faults(path)
    cells = {cell for cell, outcome in after.items() if outcome != before[cell]} or {
        cell for cell, outcome in after.items() if outcome == "truncated"
    }
    assert {fault[5:17] for fault in faults} == cells
    assert all(re.search(OUTCOME_FORGERIES[name][0], fault) for fault in faults)


def test_another_version_of_an_agent_may_replace_what_a_limit_cut_off(failed: Path, path: Path) -> None:
    """The truth of a file that a limit cut off, and that was played again, is not doubted."""
    shutil.copy(failed, path)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE attempts SET outcome = 'superseded' WHERE outcome IN ('done', 'truncated')")
        for statement in LATER:
            db.execute(statement)
        db.execute("UPDATE players SET fingerprint = 'feedfeedfeedfeed' WHERE attempt = 2")
    with Run(path) as run:
        assert run.verify() == []


@pytest.mark.parametrize("outcome", ["agent_error", "harness_error", None])
def test_a_limit_may_have_cut_off_what_then_failed_or_was_killed(failed: Path, path: Path, outcome: str | None) -> None:
    shutil.copy(failed, path)
    note = None if outcome is None else "Turn 1: save() raised OSError: no room"
    note = "Its worker process died (killed by SIGKILL)." if outcome == "harness_error" else note
    with closing(sqlite3.connect(path)) as db, db:
        change = "UPDATE attempts SET outcome = ?, note = ? WHERE outcome = 'truncated'"
        db.execute(change, (outcome, note or ""))
    assert find_faults(path) == []


def test_a_program_may_leave_where_it_is_asked_for_no_action(failed: Path) -> None:
    """Agents whose source is not known, or that speak a protocol, are not bound to stay."""
    with Run(failed) as run:
        facts, agents = run.facts, run.agents
        bound = {name for _, name, _ in find_bound_agents(facts, agents)}
        assert bound == set(agents)
        assert not find_bound_agents(facts, dict.fromkeys(agents))
        assert not find_bound_agents(facts, dict.fromkeys(agents, "wire:./program"))
        told = {}
        for attempt in run.attempts():
            if attempt.outcome == "agent_error":
                steps = list(run.steps(attempt.cell, attempt.number))
                left = attempt._replace(outcome="truncated", note="", bound=False)
                within = len(steps) - 1 > sum(episode.turns for episode in attempt.episodes)
                told[within] = list(find_false_episodes(left, iter(steps)))
                steps[-1] = msgspec.structs.replace(
                    steps[-1], turn=msgspec.structs.replace(steps[-1].turn, ask=of.Ask.READY)
                )
                assert list(find_false_episodes(left, iter(steps))) == []
        assert told[False] == []
        assert "is missing" in told[True][0]


@pytest.mark.parametrize(
    ("limits", "note", "words"),
    [
        (of.Limits(episode_turns=2), "", "a limit on the agent cut it off, but its note does not say so."),
        (of.Limits(episode_turns=2), "It left.", "no limit can have led to its note: It left."),
        (of.Limits(episode_turns=2), f"{CUT_OFF} trial_seconds is 3.0.", "no limit can have led to its note"),
        (of.Limits(trial_seconds=1e-9), "", "a limit on the agent cut it off, but its note does not say so."),
        (of.Limits(trial_seconds=1e-9), f"{CUT_OFF} episode_turns is 2.", "no limit can have led to its note"),
    ],
)
def test_a_forged_note_on_a_limit_is_named(path: Path, limits: of.Limits, note: str, words: str) -> None:
    """Whether an agent failed in a truncated trial rests on its note."""
    of.run([doubting], with_limits(of.trials(WARY, 1, unchanged=0), lambda _: limits), path)
    assert rows(path, "SELECT DISTINCT outcome FROM attempts") == [("truncated",)]
    assert find_faults(path) == []
    forge(path, "attempts", "note", lambda _: note)
    assert words in find_faults(path)[0]


@pytest.mark.parametrize(
    ("forgery", "words"),
    [
        ('{"name":"wary","title":"Wary","threshold":0.9}', "threshold is recorded as 0.9; the domain says None."),
        ('{"name":"wary"', "The recorded rules of the domain 'wary' cannot be read"),
    ],
)
def test_forged_rules_of_a_domain_are_named(forged: Path, forgery: str, words: str) -> None:
    with closing(sqlite3.connect(forged)) as db, db:
        db.execute("UPDATE facts SET value = ? WHERE key = 'rules wary'", (forgery,))
    (fault,) = find_faults(forged)
    assert words in fault


def refit(path: Path, change: Callable[[bytes], bytes]) -> None:
    """Change the steps of the last attempt as a careful forger would: with checksums and chain made anew."""
    with closing(sqlite3.connect(path)) as db, db:
        (cell,) = db.execute("SELECT cell FROM chunks ORDER BY rowid DESC").fetchone()
        chain = b""
        query = "SELECT rowid, data FROM chunks WHERE cell = ? ORDER BY first"
        for row, data in db.execute(query, (cell,)).fetchall():
            steps = change(zlib.decompress(data))
            made = zlib.compress(steps)
            chain = hashlib.sha256(chain + hashlib.sha256(steps).digest()).digest()
            values = (made, zlib.crc32(made), chain, row)
            db.execute("UPDATE chunks SET data = ?, crc = ?, chain = ? WHERE rowid = ?", values)


def test_changed_steps_do_not_fit_their_chain(finished: Path, forged: Path) -> None:
    refit(forged, raise_performances)
    with closing(sqlite3.connect(forged)) as db, db:
        for (chain,), (row,) in zip(
            rows(finished, "SELECT chain FROM chunks"), rows(finished, "SELECT rowid FROM chunks"), strict=True
        ):
            db.execute("UPDATE chunks SET chain = ? WHERE rowid = ?", (chain, row))
    assert re.search(r"attempt 1: turns \d+ to \d+ do not fit their chain", find_faults(forged)[0])


def raise_performances(steps: bytes) -> bytes:
    """Set all performances in some steps to 1."""
    better = b"\xa1q" + msgspec.msgpack.encode(1.0)
    return re.sub(rb"\xa1q\xcb.{8}", lambda _: better, steps, flags=re.DOTALL)


def test_forged_truths_that_fit_everything_else_are_found_by_replay_and_fingerprint(
    finished: Path, forged: Path
) -> None:
    """All performances of an attempt are set to the same value, in its turns and in its episodes."""
    refit(forged, raise_performances)
    cell = rows(forged, "SELECT cell FROM chunks ORDER BY rowid DESC")[0]
    with closing(sqlite3.connect(forged)) as db, db:
        db.execute("UPDATE episodes SET performance = 1.0 WHERE cell = ?", cell)
    assert find_faults(forged) == []
    assert fingerprint(forged) != fingerprint(finished)
    assert any(re.search(r"The truth of turn \d+ differs", fault) for fault in replay(forged))
    assert replay(finished) == []


def replay(path: Path) -> list[str]:
    with Run(path) as run:
        return [
            fault
            for attempt in run.attempts()
            for fault in find_false_turns(attempt, WARY.world, run.raw_steps(attempt.cell, attempt.number))
        ]


def test_replay_names_a_world_that_shows_other_turns(finished: Path) -> None:
    with Run(finished) as run:
        attempt = list(run.attempts())[-1]
        trial = msgspec.structs.replace(attempt.trial, seed=attempt.trial.seed + 1)
        (fault,) = find_false_turns(
            attempt._replace(trial=trial), WARY.world, run.raw_steps(attempt.cell, attempt.number)
        )
    assert re.match(r"Cell [0-9a-f]{12}, attempt \d: Turn 0 differs from the recorded one", fault)


def test_attempts_that_failed_or_were_cut_short_are_proven_too(path: Path) -> None:
    def dies(turn: of.Turn) -> of.Reply:
        if turn.phase == "test":
            raise ValueError("enough")
        return of.Reply(0)

    def wrong(turn: of.Turn) -> of.Reply:
        return of.Reply("neither" if turn.phase == "test" else 0)

    limits = [of.Limits(), of.Limits(episode_turns=4), of.Limits(trial_seconds=1e-9)]
    trials = [
        trial for limit in limits for trial in with_limits(of.trials(WARY, 1, unchanged=0), lambda _, new=limit: new)
    ]
    of.run({"dies": dies, "wrong": wrong, "fickle": Fickle}, trials, path)
    outcomes = {outcome for (outcome,) in rows(path, "SELECT outcome FROM attempts")}
    assert outcomes == {"agent_error", "agent_protocol", "truncated", "done"}
    assert find_faults(path) == []
    assert replay(path) == []


def test_the_fingerprint_survives_a_copy(path: Path) -> None:
    shutil.copy(ROOT / "tests" / "data" / "kept" / "birds.sqlite", path)
    before = fingerprint(path)
    Journal(path).close()
    assert fingerprint(path) == before
    with closing(sqlite3.connect(path)) as db:
        db.execute("VACUUM")
    assert fingerprint(path) == before


def test_compressing_otherwise_changes_neither_chain_nor_fingerprint(finished: Path, forged: Path) -> None:
    refit(forged, lambda steps: steps)
    assert rows(forged, "SELECT data FROM chunks") != rows(finished, "SELECT data FROM chunks")
    assert rows(forged, "SELECT chain FROM chunks") == rows(finished, "SELECT chain FROM chunks")
    assert fingerprint(forged) == fingerprint(finished)


def test_verdicts_are_read_without_the_domain(finished: Path, forged: Path) -> None:
    with closing(sqlite3.connect(forged)) as db, db:
        db.execute("UPDATE facts SET value = 'gone.py' WHERE key = 'domain wary'")
    one, other = Result([finished]), Result([forged])
    assert isinstance(other.domains["wary"], DomainRules)
    assert one.cells == other.cells
    beliefs = [episode for cell in other.cells for episode in cell.episodes if episode.belief]
    assert any(episode.detected != (episode.belief.highest >= 0.5) for episode in beliefs)
