from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

import openfield as of
from openfield.cell import Cell
from openfield.errors import AgentTimeout, Cancelled, OpenfieldError, ReplayMismatch, WorldFault
from openfield.journal.writer import Journal
from openfield.record import AttemptEnd, Chunk, EpisodeEnd
from openfield.registry import AgentSource
from openfield.runner.plan import make_cells
from openfield.runner.player import Job, Player, explain_failure, open_rollout
from support import worlds
from support.players import BadCloser, BadSaver, Crasher, Learner, Leaver, Wanderer, copycat
from support.stories import Kept
from support.worlds import TINY, Scripted, tiny_trials

FLOOD = "x" * (64 << 20)


class Wordless(Exception):
    def __str__(self) -> str:
        raise MemoryError


class Unprintable:
    def __rtruediv__(self, other: object) -> object:
        raise Wordless

    def __repr__(self) -> str:
        raise Wordless


@pytest.fixture
def cell(path: Path) -> Cell:
    with Journal(path) as record:
        cells = make_cells(["ada"], tiny_trials())
        record.enter(cells, {}, {})
        record.begin(cells[0].id)
    return cells[0]


def play(cell: Cell, path: Path, agent: AgentSource, **fields: Any) -> tuple[AttemptEnd, Kept]:
    kept = Kept()
    Player(kept).play(Job(cell, 1, agent, "support.worlds:TINY", path, **{"save_seconds": 0.0, **fields}))
    assert isinstance(kept.entries[-1], AttemptEnd)
    return kept.entries[-1], kept


def test_a_cell_is_played_to_its_end(cell: Cell, path: Path) -> None:
    ended, kept = play(cell, path, Learner)
    assert (ended.cell, ended.attempt, ended.outcome, ended.note) == (cell.id, 1, "done", "")
    assert len(kept.of(EpisodeEnd)) == 8
    assert ended.seconds > 0


@pytest.mark.parametrize(
    ("agent", "outcome", "note"),
    [
        (Crasher, "agent_error", "Turn 9: the agent raised ZeroDivisionError: no way out"),
        (Leaver, "agent_error", "Turn 9: the agent raised SystemExit: 3"),
        (BadSaver, "agent_error", "Turn 7: save() raised MemoryError: too much to remember"),
        (lambda turn: of.Reply("left"), "agent_protocol", "Turn 0: unknown action 'left'; known are 0 and 1"),
        (lambda turn: 0, "agent_protocol", "Turn 0: the agent answered 0 (int); it must return a Reply."),
        (lambda spec, seed: 1 / 0, "agent_error", "The agent could not be made: ZeroDivisionError: division by zero"),
        ("nonsense", "harness_error", "Unknown agent 'nonsense'. For tiny: random."),
        ("process:no-such-program", "agent_gone", "'no-such-program' cannot be started: No such file or directory."),
    ],
)
def test_whoever_fails_is_named(cell: Cell, path: Path, agent: AgentSource, outcome: str, note: str) -> None:
    ended, _ = play(cell, path, agent)
    assert (ended.outcome, ended.note) == (outcome, note)


@pytest.mark.parametrize(
    ("agent", "outcome", "note"),
    [
        (lambda turn: 1 / Unprintable(), "agent_error", "the agent raised Wordless: its text raised MemoryError"),
        (lambda turn: Unprintable(), "agent_protocol", "the agent answered what raises Wordless when it is printed"),
        (lambda turn: of.Reply(1, of.Belief(0.5, detail=FLOOD)), "agent_protocol", "the reply has 64 MB; 64 MB"),
    ],
)
def test_no_reply_and_no_error_of_an_agent_is_too_much(
    cell: Cell, path: Path, agent: AgentSource, outcome: str, note: str
) -> None:
    ended, kept = play(cell, path, agent)
    assert ended.outcome == outcome
    assert ended.note.startswith(f"Turn 0: {note}")
    assert sum(len(chunk.data) for chunk in kept.of(Chunk)) < 1_000


def test_what_close_raises_is_a_warning_and_no_outcome(cell: Cell, path: Path) -> None:
    with pytest.warns(RuntimeWarning, match="close\\(\\) raised OSError: cannot close"):
        ended, _ = play(cell, path, BadCloser)
    assert ended.outcome == "done"


def test_an_agent_is_closed_where_it_was_and_after_its_outcome_is_written(
    cell: Cell, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    kept, closed = Kept(), []

    class Closes(Wanderer):
        def close(self) -> None:
            closed.append((Path.cwd(), [entry.outcome for entry in kept.of(AttemptEnd)]))

    Player(kept).play(Job(cell, 1, Closes, "support.worlds:TINY", path))
    assert closed == [(Path("/"), ["done"])]
    assert Path.cwd() == path.parent


def test_a_folder_that_is_gone_is_not_returned_to(cell: Cell, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (gone := path.parent / "gone").mkdir()
    monkeypatch.chdir(gone)

    class Removes(Wanderer):
        def fail(self) -> None:
            super().fail()
            gone.rmdir()

    ended, _ = play(cell, path, Removes)
    assert (ended.outcome, Path.cwd()) == ("done", Path("/"))


def test_a_world_that_cannot_be_made_or_started_is_a_world_error(
    cell: Cell, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Scripted([ArithmeticError("apart")])
    monkeypatch.setattr(worlds.Tiny, "world", lambda self, trial: broken)
    ended, _ = play(cell, path, copycat)
    assert (ended.outcome, ended.note) == ("world_error", "The world could not start: ArithmeticError: apart")
    assert broken.closed
    monkeypatch.setattr(worlds.Tiny, "world", lambda self, trial: 1 / 0)
    ended, _ = play(cell, path, copycat)
    assert (ended.outcome, ended.note) == (
        "world_error",
        "The world could not be made: ZeroDivisionError: division by zero",
    )


def test_a_stop_before_the_first_turn_is_heard(cell: Cell, path: Path) -> None:
    kept = Kept()
    player = Player(kept)

    def make(spec: of.Spec, seed: int) -> Any:
        player.stop()
        return copycat

    player.play(Job(cell, 1, make, "support.worlds:TINY", path))
    assert [entry.outcome for entry in kept.of(AttemptEnd)] == ["cancelled"]
    assert len(kept.steps()) == 2


def test_an_interruption_counts_only_while_the_agent_is_asked_and_once_a_turn() -> None:
    pulse = [0]
    player = Player(Kept(), pulse)
    player.interrupt()
    pulse[0] = 5
    with pytest.raises(AgentTimeout):
        player.interrupt()
    player.interrupt()
    assert pulse[0] == 5
    pulse[0] = 6
    with pytest.raises(AgentTimeout):
        player.interrupt()


@pytest.mark.parametrize("agent", [Crasher, lambda turn: "no reply", Learner])
def test_after_a_cell_no_agent_is_being_asked(cell: Cell, path: Path, agent: AgentSource) -> None:
    pulse = [0]
    Player(Kept(), pulse).play(Job(cell, 1, agent, "support.worlds:TINY", path))
    assert pulse == [0]


def test_a_world_whose_rollout_cannot_be_opened_is_closed(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Kept()
    rollout = open_rollout(TINY, cell, kept.recorder(), [])
    rollout.close()
    broken = Scripted([worlds.act("other")])
    monkeypatch.setattr(worlds.Tiny, "world", lambda self, trial: broken)
    past = [msgspec.structs.replace(step) for step in _raw(kept)]
    with pytest.raises(ReplayMismatch):
        open_rollout(TINY, cell, None, past)
    assert broken.closed


def _raw(kept: Kept) -> list[Any]:
    from openfield.journal.recorder import read_raw_chunk
    from openfield.record import Chunk

    return [step for chunk in kept.of(Chunk) for step in read_raw_chunk(chunk)]


def test_errors_lead_to_outcomes() -> None:
    assert explain_failure(WorldFault("w")) == ("world_error", "w")
    assert explain_failure(Cancelled("c")) == ("cancelled", "")
    assert explain_failure(OpenfieldError("o")) == ("harness_error", "o")
    assert explain_failure(KeyError("k")) == ("harness_error", "KeyError: 'k'")
