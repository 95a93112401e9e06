from __future__ import annotations

import os
import random
import re
import signal
import sqlite3
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import msgspec
import numpy as np
import pytest

import openfield as of
from conftest import Spawn
from openfield import registry
from openfield.api import resume
from openfield.errors import Cancelled, InvalidInput, MissingExtra, ReplayMismatch, UnknownName
from openfield.journal.merge import merge_runs
from openfield.journal.reader import Run
from openfield.journal.writer import Journal
from openfield.provenance.provenance import find_false_players
from openfield.record import AttemptEnd, EpisodeEnd
from openfield.report.words import describe_basis
from openfield.result import Result
from openfield.runner.plan import make_cells
from openfield.runner.scheduler import RunWarning
from openfield.trial import Limits
from support import worlds
from support.places import MAZE
from support.players import Crasher, Fickle, Learner, Redriven, Stateless, copycat
from support.stories import attempts, press_ctrl_c_after, rows, story
from support.worlds import Scripted, tiny_trials


def outcomes(path: Path) -> list[tuple[str, str | None, int]]:
    with Run(path) as run:
        return [(cell.agent, cell.outcome, cell.attempt) for cell in run.cells()]


def test_a_run_gives_a_result_and_the_same_call_does_nothing_more(path: Path) -> None:
    result = of.run([Learner, "random"], tiny_trials(2), path)
    assert [(cell.agent, cell.outcome) for cell in result.cells] == [("Learner", "done"), ("random", "done")] * 2
    before, seen = path.read_bytes(), list[Any]()
    of.run([Learner, "random"], tiny_trials(2), path, watch=seen.append)
    assert seen == []
    assert story(path) == story(path)
    assert len(attempts(path)) == 4
    assert len(before) == path.stat().st_size


def test_a_run_may_grow_by_agents_trials_and_repeats(path: Path) -> None:
    of.run([copycat], tiny_trials(1), path)
    of.run([copycat, Learner], tiny_trials(2), path, repeats=2)
    assert len(outcomes(path)) == 8
    assert all(found == (found[0], "done", 1) for found in outcomes(path))


def test_watchers_hear_every_entry(path: Path) -> None:
    seen: list[Any] = []
    of.run([copycat], tiny_trials(2), path, watch=seen.append)
    assert sum(isinstance(entry, EpisodeEnd) for entry in seen) == 16
    assert [entry.outcome for entry in seen if isinstance(entry, AttemptEnd)] == ["done", "done"]


@pytest.mark.parametrize("given", ["randon", "support.players:Lerner", "no.such.module:Agent", "process:"])
def test_what_cannot_be_found_is_refused_before_anything_is_written(path: Path, given: str) -> None:
    with pytest.raises((UnknownName, InvalidInput)):
        of.run([given], tiny_trials(1), path)
    assert not path.exists()


def test_empty_plans_are_refused(path: Path) -> None:
    with pytest.raises(InvalidInput, match="no trial to run"):
        of.run([copycat], [], path)
    with pytest.raises(InvalidInput, match="no agent"):
        of.run([], tiny_trials(1), path)


# failures


def test_an_agents_failure_is_not_tried_again_unless_asked(path: Path) -> None:
    trials = tiny_trials(1)
    for _ in range(2):
        of.run([Crasher], trials, path)
        assert [(number, outcome) for number, outcome, _ in attempts(path)] == [(1, "agent_error")]
    of.run([Crasher], trials, path, retry=True)
    assert [(number, outcome) for number, outcome, _ in attempts(path)] == [(1, "superseded"), (2, "agent_error")]
    with pytest.warns(
        RunWarning, match=r"An earlier version of Crasher played 1 cell \(its class or function changed\)"
    ):
        of.run({"Crasher": copycat}, trials, path, retry=True)
    assert outcomes(path) == [("Crasher", "done", 3)]
    with Run(path) as run:
        assert len(list(run.steps(run.cells()[0].id, 1))) == 10


def test_a_failing_world_is_tried_four_times_and_others_go_on(path: Path) -> None:
    of.run([copycat], [*tiny_trials(1, broken_at=3), *tiny_trials(1)], path)
    tried = attempts(path)
    assert sorted(str(outcome) for _, outcome, _ in tried) == ["done", *["world_error"] * 4]
    (note,) = {note for _, outcome, note in tried if outcome == "world_error"}
    assert note == "Turn 3: the world raised ArithmeticError: the world fell apart"


def test_a_limit_makes_the_outcome_truncated_and_the_cell_is_finished(path: Path) -> None:
    for _ in range(2):
        of.run([copycat], tiny_trials(1, Limits(episode_turns=4)), path)
    with Run(path) as run:
        (cell,) = run.cells()
    assert (cell.outcome, cell.attempt, cell.steps) == ("truncated", 1, 5)
    assert [(e.turns, e.ended) for e in cell.episodes] == [(4, "truncated")]


# stopping and going on


class Deserter:
    """Raises what stops a run, as only people may do."""

    def __init__(self, spec: Any, seed: int) -> None:
        pass

    def __call__(self, turn: Any) -> Any:
        raise Cancelled("I leave.")


def test_an_agent_that_is_no_person_cannot_stop_a_run(path: Path) -> None:
    def unmade(spec: Any, seed: int) -> Any:
        raise Cancelled("I do not come.")

    of.run({"deserter": Deserter, "unmade": unmade, "other": Learner}, tiny_trials(1), path)
    assert sorted((outcome, note) for _, outcome, note in attempts(path)) == [
        ("agent_error", "The agent could not be made: Cancelled: I do not come."),
        ("agent_error", "Turn 0: the agent raised Cancelled: I leave."),
        ("done", ""),
    ]


@pytest.mark.parametrize("agent", [Learner, Redriven, Stateless])
@pytest.mark.parametrize("entries", [1, 2, 5, 9])
def test_ctrl_c_stops_after_the_turn_and_the_same_call_goes_on(path: Path, agent: Any, entries: int) -> None:
    trials, whole = tiny_trials(2, padding=9_000), path.with_name("whole.sqlite")
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(Cancelled, match=f"To go on: openfield resume {path}") as stopped:
        of.run([agent], trials, path, watch=press_ctrl_c_after(entries))
    assert stopped.value.exit_status == 130
    assert signal.getsignal(signal.SIGINT) is before
    assert attempts(path) == [(1, "cancelled", "")]
    of.run([agent], trials, path)
    of.run([agent], trials, whole)
    assert story(path) == story(whole)
    assert [attempt for _, _, attempt in outcomes(path)] == [1, 1]


def test_what_resume_cannot_start_is_started_again_by_its_own_program(path: Path) -> None:
    with pytest.raises(Cancelled, match=r"To go on, start the same command or program again\.$"):
        of.run({"mine": lambda spec, seed: Learner(spec, seed)}, tiny_trials(1), path, watch=press_ctrl_c_after(1))
    with pytest.raises(InvalidInput, match="'mine' is not one openfield starts"):
        of.resume(path)


def test_a_fickle_agent_starts_again_and_the_old_attempt_is_kept(path: Path) -> None:
    trials = tiny_trials(1, padding=9_000)
    with pytest.raises(Cancelled):
        of.run([Fickle], trials, path, watch=press_ctrl_c_after(4))
    with pytest.warns(RunWarning, match=r"Fickle, cell \w+: Turn \d+: the agent answers Reply\("):
        of.run([Fickle], trials, path)
    (first, superseded, note), (second, done, _) = attempts(path)
    assert (first, superseded, second, done) == (1, "superseded", 2, "done")
    lost = rows(path, "SELECT sum(count) - 1 FROM chunks WHERE attempt = 1")[0][0]
    assert note.endswith(
        f"The trial starts again: {lost} recorded replies are thrown away. "
        "To keep them next time, give the agent save() and load(), or remember(turn, reply)."
    )
    with Run(path) as run:
        (cell,) = run.cells()
        assert len(list(run.steps(cell.id, 1))) > 7
        assert len(cell.episodes) == 8


def test_a_changed_world_is_named_and_its_cells_played_anew_only_on_request(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trials = tiny_trials(1, padding=9_000)
    with pytest.raises(Cancelled):
        of.run([Learner], trials, path, watch=press_ctrl_c_after(4))
    see = worlds.TinyPlay._see
    monkeypatch.setattr(worlds.TinyPlay, "_see", lambda play: {**see(play), "new": play.moves == 3})
    said = r"Cell \w+: Turn 0 differs from the recorded one: the world or its data changed\. .* --retry"
    with pytest.raises(ReplayMismatch, match=said):
        of.run([Learner], trials, path)
    ((_, outcome, _),) = attempts(path)
    assert outcome == "cancelled"
    with monkeypatch.context() as restored:
        restored.setattr(worlds.TinyPlay, "_see", see)
        with pytest.raises(Cancelled):
            of.run([Learner], trials, path, watch=press_ctrl_c_after(1))
    of.run([Learner], trials, path, retry=True)
    (_, before, _), (_, later, _) = attempts(path)
    assert (before, later) == ("superseded", "done")


def test_resume_needs_nothing_but_the_file(path: Path) -> None:
    whole = path.with_name("whole.sqlite")
    trials = tiny_trials(2, padding=9_000)
    with pytest.raises(Cancelled):
        of.run([Learner, "random"], trials, path, watch=press_ctrl_c_after(5))
    resume(path)
    of.run([Learner, "random"], trials, whole)
    assert story(path) == story(whole)


def test_resume_needs_only_agents_that_have_something_left(path: Path) -> None:
    of.run({"mine": lambda turn: of.Reply(0)}, tiny_trials(1), path)
    with pytest.raises(Cancelled):
        of.run(["random"], tiny_trials(2), path, watch=press_ctrl_c_after(2))
    assert {cell.outcome for cell in resume(path).cells} == {"done"}


def test_resume_finds_files_from_another_folder(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = path.parent / "home"
    home.mkdir()
    (home / "my_maze.py").write_text(Path(MAZE).read_text())
    (home / "my_agent.py").write_text("import openfield as of\ndef left(turn): return of.Reply('left')")
    monkeypatch.chdir(home)
    trials = of.trials("my_maze.py", count=2, training=1, before=1, after=1, unchanged=0)
    with pytest.raises(Cancelled):
        of.run(["my_agent.py:left"], trials, path, watch=press_ctrl_c_after(2))
    monkeypatch.chdir(path.parent)
    monkeypatch.setattr(registry, "_domains", {})
    assert {cell.outcome for cell in of.resume(path).cells} == {"done"}


@pytest.mark.parametrize("workers", [0, 1])
def test_a_run_whose_folder_is_removed_goes_on(path: Path, monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    gone = path.parent / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)

    def remove(_: Any) -> None:
        if gone.exists():
            gone.rmdir()

    result = of.run(["random"], tiny_trials(3), path, workers=workers, watch=remove)
    assert not gone.exists()
    assert {cell.outcome for cell in result.cells} == {"done"}


def test_a_missing_extra_is_one_line_before_anything_is_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trials = tiny_trials(1)
    monkeypatch.setattr(worlds.Tiny, "extra", "tiny", raising=False)
    monkeypatch.setattr(worlds.Tiny, "modules", ("no_such_engine",), raising=False)
    with pytest.raises(MissingExtra, match=r"The domain 'tiny' needs .* install .*\[tiny\]'"):
        of.run([copycat], trials, path)
    assert not path.exists()


def test_one_agent_and_one_trial_need_no_list(path: Path) -> None:
    (trial,) = tiny_trials(1)
    assert [cell.outcome for cell in of.run("random", trial, path).cells] == ["done"]
    assert [cell.outcome for cell in of.run(copycat, trial, path.with_name("2.sqlite")).cells] == ["done"]


@pytest.mark.parametrize(
    ("options", "words"),
    [({"workers": -1}, "'workers' must be a whole number, 0 or more"), ({"count": 0}, "at least one trial, not 0")],
)
def test_numbers_that_make_no_sense_are_refused(path: Path, options: dict[str, int], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        of.run("random", of.trials(worlds.TINY, options.pop("count", 1), unchanged=0), path, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"executor": None}, "'executor' must be text, not nothing."),
        ({"executor": 3}, "'executor' must be text, not a whole number."),
        ({"resources": "x"}, "'resources' must be a table of keys, not text."),
        ({"resources": {"copycat": "x"}}, "'resources[...]' must be a table of keys, not text."),
        ({"concurrency": True}, "'concurrency' must be a whole number or nothing, not true or false."),
        ({"workers": 1.5}, "'workers' must be a whole number, not a number."),
        ({"tags": "word"}, "'tags' must be a list, not text."),
        (
            {"worker": 2},
            "Unknown option 'worker'. Did you mean 'workers'? Known: ask_above, budget, concurrency, executor, keep,",
        ),
    ],
)
def test_options_of_the_wrong_kind_are_refused_before_anything_is_written(
    path: Path, options: dict[str, Any], words: str
) -> None:
    with pytest.raises((InvalidInput, UnknownName), match=f"^{re.escape(words)}"):
        of.run(copycat, tiny_trials(1), path, **options)
    assert not path.exists()


def test_numbers_of_numpy_are_options_as_well(path: Path) -> None:
    of.run(copycat, tiny_trials(1), path, workers=np.int64(0), repeats=np.int64(2), save_seconds=np.float32(5))  # type: ignore[arg-type]
    with Run(path) as run:
        assert [cell.outcome for cell in run.cells()] == ["done", "done"]


def test_resume_says_which_agent_only_a_program_has(path: Path) -> None:
    with pytest.raises(Cancelled):
        of.run({"mine": lambda turn: of.Reply(0)}, tiny_trials(1), path, watch=press_ctrl_c_after(2))
    with pytest.raises(InvalidInput, match="The agent 'mine' is not one openfield starts"):
        resume(path)


def test_a_run_outside_the_main_thread_leaves_signals_alone(path: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=of.run, args=([copycat], tiny_trials(1), path))
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGINT) is before
    assert outcomes(path) == [("copycat", "done", 1)]


# several processes


def test_cells_that_another_process_plays_are_waited_for(path: Path) -> None:
    trials = tiny_trials(3)
    first, second, _ = cells = make_cells(["copycat"], trials)
    with Journal(path) as other:
        other.enter(cells, {}, {})
        for cell in (first, second):
            other.lease(cell.id)
            other.begin(cell.id)
        seen: list[Any] = []

        def watch(entry: Any) -> None:
            """Finish one cell and leave the other once the third is played here."""
            seen.append((entry.cell, entry.outcome) if isinstance(entry, AttemptEnd) else None)
            if isinstance(entry, AttemptEnd) and entry.cell not in (first.id, second.id):
                ends = AttemptEnd(first.id, 1, "truncated", "", 1.0), AttemptEnd(second.id, 1, "cancelled", "", 1.0)
                other.add(*ends).result(timeout=60)

        of.run([copycat], trials, path, watch=watch)
    assert [outcome for _, outcome, _ in outcomes(path)] == ["truncated", "done", "done"]
    assert (first.id, "truncated") in seen  # progress counts what others played


def test_a_runner_that_waits_says_so_and_can_be_stopped(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tiny_trials(2)
    trials = [first, msgspec.structs.replace(second, after=first.id)]
    cells = make_cells(["copycat"], trials)
    clock = SimpleNamespace(monotonic=time.monotonic, sleep=press_ctrl_c_after(1))
    monkeypatch.setattr("openfield.runner.scheduler.time", clock)
    with Journal(path) as other:
        other.enter(cells, {}, {})
        other.lease(cells[0].id)
        waiting = pytest.warns(RunWarning, match="Waiting for 1 cell that another process plays")
        with waiting, pytest.raises(Cancelled):
            of.run([copycat], trials, path)
    assert attempts(path) == []


def test_a_lease_that_no_process_can_have_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trials = tiny_trials(1)
    cells = make_cells(["copycat"], trials)
    clock = SimpleNamespace(monotonic=time.monotonic, sleep=press_ctrl_c_after(1))
    monkeypatch.setattr("openfield.runner.scheduler.time", clock)
    with Journal(path) as other:
        other.enter(cells, {}, {})
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE cells SET holder = 'faraway:7:1:x', held_until = 4000000000.0")
    named = f"Cell {cells[0].id} is held by a process on faraway until 2096-10-02 07:06 UTC, but a lease lasts 60 s"
    with pytest.warns(RunWarning, match=named), pytest.raises(Cancelled):
        of.run([copycat], trials, path)
    merge_runs([path], path.with_name("free.sqlite"))
    of.run([copycat], trials, path.with_name("free.sqlite"))
    assert attempts(path.with_name("free.sqlite")) == [(1, "done", "")]


def test_a_control_guesses_anew_in_every_trial_after_one_training(path: Path) -> None:
    first, *rest = tiny_trials(4)
    of.run(["doubter"], [first, *(msgspec.structs.replace(trial, after=first.id) for trial in rest)], path)
    with Run(path) as run:
        said = [[episode.belief and episode.belief.novel for episode in cell.episodes] for cell in run.cells()[1:]]
    assert len({tuple(beliefs) for beliefs in said}) > 1


@pytest.mark.slow
def test_several_runners_on_one_file_all_succeed(path: Path, spawn: Spawn) -> None:
    runners = [spawn("tests/support/run_program.py", path, "Learner", str(workers)) for workers in (0, 1, 2)]
    assert [runner.wait(120) for runner in runners] == [0, 0, 0]
    assert attempts(path) == [(1, "done", "")] * 3


# versions of an agent

EDITED = """
import openfield as of
{more}
class Agent:
    def __init__(self, spec, seed): ...

    def __call__(self, turn):
        return of.Reply(turn.observation["cue"]){fault}
"""


@pytest.fixture
def edit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes a version of an agent, which no process has imported yet."""
    monkeypatch.chdir(tmp_path)

    def write(more: str = "", fault: str = "") -> str:
        sys.modules.pop("openfield_file_mine", None)
        (tmp_path / "mine.py").write_text(EDITED.format(more=more, fault=fault))
        return "mine.py:Agent"

    return write


@pytest.mark.parametrize("again", ["run", "resume"])
def test_an_edited_agent_plays_its_cells_again(path: Path, edit: Any, again: str) -> None:
    trials = tiny_trials(2)
    of.run({"mine": edit(), "other": "random"}, trials, path)
    edit("# better")
    said = r"An earlier version of mine played 2 cells \(mine.py changed\). They are played again; --keep keeps them."
    with pytest.warns(RunWarning, match=said):
        result = of.run({"mine": "mine.py:Agent"}, trials, path) if again == "run" else of.resume(path, trust=True)
    assert sorted(outcomes(path)) == [("mine", "done", 2)] * 2 + [("other", "done", 1)] * 2
    assert rows(path, "SELECT count(*) FROM attempts WHERE outcome = 'superseded'") == [(2,)]
    assert len(rows(path, "SELECT DISTINCT fingerprint FROM players WHERE cell = ?", result.cells[0].id)) == 2
    assert {group.versions for group in result.summary().groups} == {""}


@pytest.mark.parametrize("again", ["run", "resume"])
def test_cells_of_an_earlier_version_can_be_kept_and_are_marked(path: Path, edit: Any, again: str) -> None:
    trials = tiny_trials(2)
    of.run({"mine": edit(), "other": "random"}, trials[:1], path)
    edit("# better")
    agents = {"mine": "mine.py:Agent", "other": "random"}
    with pytest.warns(RunWarning, match=r"played 1 cell \(mine.py changed\). They are kept and marked."):
        result = of.run(agents, trials, path, keep=True) if again == "run" else of.resume(path, keep=True, trust=True)
    assert all(found == (found[0], "done", 1) for found in outcomes(path))
    marks = {group.agent: group.versions for group in result.summary().groups}
    before = f"mine (version {result.cells[0].player[:8]})" if again == "run" else "mine"  # type: ignore[index]
    words = "earlier in 1 of 1 cells"
    assert marks == {before: words, "other": "", **({"mine": ""} if again == "run" else {})}  # no number is of two
    (pair,) = (one for one in result.summary().comparisons if {one.first, one.second} == {before, "other"})
    assert pair.versions == f"version of {before} {words}"
    assert describe_basis(pair).endswith(f"; version of {before} {words}")


def test_a_cell_that_an_edited_agent_had_begun_starts_again_unless_it_is_kept(path: Path, edit: Any) -> None:
    trials = tiny_trials(1, padding=9_000)
    for keep in (True, False):
        with pytest.raises(Cancelled):
            of.run({"mine": edit()}, trials, path, watch=press_ctrl_c_after(4))
        edit("# better")
        with pytest.warns(RunWarning, match="kept" if keep else "played again"):
            of.resume(path, keep=keep, trust=True)
        assert [outcome for _, outcome, _ in attempts(path)] == ["done"] if keep else ["superseded", "done"]
        path.unlink()


def test_a_repaired_agent_needs_no_retry(path: Path, edit: Any) -> None:
    of.run({"mine": edit(fault=" + 1")}, tiny_trials(1), path)
    with pytest.warns(RunWarning, match="earlier version"):
        of.run({"mine": edit()}, tiny_trials(1), path)
    assert [outcome for _, outcome, _ in attempts(path)] == ["superseded", "done"]


def test_versions_in_several_files_are_not_pooled_in_silence(path: Path, edit: Any) -> None:
    other = path.with_name("other.sqlite")
    of.run({"mine": edit()}, tiny_trials(1), path)
    of.run({"mine": edit("# better")}, tiny_trials(1, seed=5), other)
    latest, earlier = Result([path, other]).summary().groups
    assert (latest.agent, latest.versions, earlier.versions) == ("mine", "", "earlier in 1 of 1 cells")
    assert earlier.agent.startswith("mine (version ")


# edited while a run goes on

PLAYED = """
import os, pathlib, signal
pathlib.Path({pid!r}).write_text(str(os.getpid()))
turns = 0

def go_on():
    global turns
    turns += 1
    unedited = "# edit" "ed" not in pathlib.Path(__file__).read_text()  # in two parts, so that it is not in here
    if turns == 70 and unedited:  # of 56 in a cell: in the second one
        signal.pause()  # until it is killed
    return True
"""
PROGRAM = """
import json, sys
print(json.dumps({"type": "hello"}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "turn" and message["ask"] != "none":
        print(json.dumps({"type": "reply", "action": message["observation"]["cue"]}), flush=True)
"""


def edit_at_the_end(file: Path) -> Any:
    """Return what changes a file as soon as a first cell has ended."""

    def watch(entry: Any) -> None:
        if isinstance(entry, AttemptEnd) and "# edited" not in file.read_text():
            file.write_text(f"{file.read_text()}# edited")

    return watch


def check_two_versions(path: Path, cells: int) -> None:
    """The cells after the edit are another agent's, and the file is not as any command would have written it."""
    groups = Result([path]).summary().groups
    assert sorted(group.trials for group in groups) == [1, cells - 1]
    assert [group.versions for group in groups if group.agent != "mine"] == [
        f"edited during the run in {cells - 1} of {cells - 1} cells"
    ]
    with Run(path) as run:
        assert len(set(run.players().values())) == 2
        assert len(list(find_false_players(run))) == cells - 1


def test_an_edit_while_a_program_plays_is_recorded(path: Path, tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    source = f"process:{sys.executable} -S {file}"
    with pytest.warns(RunWarning, match="mine was edited while it plays"):
        of.run({"mine": source}, tiny_trials(3), path, watch=edit_at_the_end(file))
    check_two_versions(path, 3)


READER = """
from pathlib import Path
from openfield import Reply

class Agent:
    def __init__(self, spec, seed, weights):
        self.says = Path(weights).read_text()

    def __call__(self, turn):
        return Reply(turn.observation["cue"], note=self.says)
"""


@pytest.mark.parametrize("workers", [0, 1])
def test_data_that_change_while_an_agent_plays_are_another_version(path: Path, tmp_path: Path, workers: int) -> None:
    """A worker loads code once, but every agent reads its weights anew."""
    (tmp_path / "reader.py").write_text(READER)
    (tmp_path / "weights").write_text("1")
    source = f"{tmp_path / 'reader.py'}:Agent(weights={tmp_path / 'weights'})"
    with pytest.warns(RunWarning, match="mine was edited while it plays"):
        of.run({"mine": source}, tiny_trials(3), path, workers=workers, watch=edit_at_the_end(tmp_path / "weights"))
    check_two_versions(path, 3)


NOTER = """
from pathlib import Path
from openfield import Reply

class Agent:
    def __init__(self, spec, seed, notes):
        Path(notes, str(seed)).write_text("")

    def __call__(self, turn):
        return Reply(turn.observation["cue"])
"""


@pytest.mark.parametrize("workers", [0, 1])
def test_an_agent_may_keep_notes_in_a_folder(path: Path, tmp_path: Path, workers: int) -> None:
    """It is not another agent after each trial."""
    (tmp_path / "noter.py").write_text(NOTER)
    (tmp_path / "notes").mkdir()
    source = f"{tmp_path / 'noter.py'}:Agent(notes={tmp_path / 'notes'})"
    result = of.run({"mine": source}, tiny_trials(3), path, workers=workers)
    assert [(cell.outcome, cell.version) for cell in result.cells] == [("done", "")] * 3
    assert len(list((tmp_path / "notes").iterdir())) == 3


@pytest.mark.sandbox
def test_an_edit_while_an_isolated_agent_plays_is_recorded(path: Path, edit: Any) -> None:
    agents = of.isolate({"mine": edit()})
    with pytest.warns(RunWarning, match="mine was edited while it plays"):
        of.run(agents, tiny_trials(3), path, watch=edit_at_the_end(Path("mine.py")))
    check_two_versions(path, 3)


@pytest.mark.slow
def test_an_edit_before_a_lost_worker_is_replaced_is_recorded(path: Path, tmp_path: Path, edit: Any) -> None:
    pid = tmp_path / "pid"
    source = edit(PLAYED.format(pid=str(pid)), fault=" if go_on() else None")

    def watch(entry: Any) -> None:
        if isinstance(entry, EpisodeEnd) and len(ends) == 1 and not killed:
            edit_at_the_end(Path("mine.py"))(ends[0])
            killed.append(pid.read_text())
            os.kill(int(killed[0]), signal.SIGKILL)
        if isinstance(entry, AttemptEnd):
            ends.append(entry)

    ends, killed = list[AttemptEnd](), list[str]()
    begun = pytest.warns(RunWarning, match="The agent was edited. The trial starts again")
    with begun, pytest.warns(RunWarning, match="mine was edited while it plays"):
        of.run({"mine": source}, tiny_trials(3, padding=3_000), path, workers=1, watch=watch)
    check_two_versions(path, 3)
    assert pid.read_text() != killed[0]


def test_cells_without_a_fingerprint_are_kept_and_marked(path: Path, edit: Any) -> None:
    of.run({"mine": edit()}, tiny_trials(1), path)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM players")
    (group,) = of.run({"mine": edit("# better")}, tiny_trials(1), path).summary().groups
    assert group.versions == "unknown in 1 of 1 cells"
    assert attempts(path) == [(1, "done", "")]
    with Run(path) as run:
        (said,) = find_false_players(run)
    assert said.endswith("which version of its agent played it is not recorded.")


def test_resume_keeps_the_cells_of_an_agent_that_is_gone(path: Path, edit: Any) -> None:
    of.run({"mine": edit()}, tiny_trials(1), path)
    Path("mine.py").unlink()
    assert [cell.outcome for cell in of.resume(path, trust=True).cells] == ["done"]


# a past that is told


class Remembering(Fickle):
    """Never answers the same twice, and is told what it said."""

    asked: ClassVar[list[of.Turn]] = []
    told: ClassVar[list[tuple[of.Turn, of.Reply]]] = []

    def __call__(self, turn: of.Turn) -> of.Reply:
        self.asked.append(turn)
        return super().__call__(turn)

    def remember(self, turn: of.Turn, reply: of.Reply) -> None:
        self.told.append((turn, reply))


class RememberingSaver(Remembering):
    loaded = 0

    def save(self) -> bytes:
        return b"state"

    def load(self, state: bytes) -> None:
        type(self).loaded += 1


@pytest.mark.parametrize("agent", [Remembering, RememberingSaver])
def test_an_agent_that_remembers_is_not_asked_again(path: Path, agent: type[Remembering]) -> None:
    trials = tiny_trials(1, padding=9_000)
    agent.asked.clear()
    agent.told.clear()
    with pytest.raises(Cancelled):
        of.run([agent], trials, path, watch=press_ctrl_c_after(4))
    with Run(path) as run:
        (cell,) = run.cells()
        recorded, saved = list(run.steps(cell.id, 1)), run.state(cell.id, 1)
    of.run([agent], trials, path)
    assert attempts(path) == [(1, "done", "")]
    past = recorded if agent is Remembering else recorded[saved[0] - 1 if saved else 0 :]
    assert [reply for _, reply in agent.told] == [step.reply for step in past[1:]]
    assert [turn for turn, _ in agent.told] == [step.turn for step in past[:-1]]
    assert len(agent.asked) == 8 * 7  # every turn once


CHAT = """
import openfield as of


class Chat:
    def __init__(self, spec, seed):
        self.history = []

    def __call__(self, turn):
        return of.Reply(0, of.Belief(0.5)) if turn.ask is of.Ask.BELIEF else of.Reply(0)

    def ask(self):
"""


@pytest.mark.parametrize("remembers", [False, True])
@pytest.mark.parametrize(
    ("line", "asks"),
    [
        ("import openai", "imports openai"),
        ("urllib.request.urlopen(f'{self.url}/v1/chat/completions')", "asks a model"),
    ],
)
def test_a_chat_agent_that_cannot_remember_is_told_once_what_resuming_costs(
    path: Path, tmp_path: Path, recwarn: pytest.WarningsRecorder, line: str, asks: str, remembers: bool
) -> None:
    file = tmp_path / "chat.py"
    file.write_text(
        f"{CHAT}        {line}\n" + ("    def remember(self, turn, reply):\n        pass\n" if remembers else "")
    )
    for count in (3, 4):
        of.run({"ada": f"{file}:Chat"}, tiny_trials(count), path, concurrency=2)
    told = [str(warning.message) for warning in recwarn]
    if remembers:
        assert told == []
        return
    (once,) = told
    assert once.startswith(f"ada {asks} and has no remember(). If the run is stopped, ")
    assert "up to 2 of 3, are made and paid for again" in once
    lines = once.splitlines()
    assert len(lines) == 4
    assert lines[1].strip() == "def remember(self, turn, reply):"


class SavingCounter:
    """Answers by how many turns it has seen, and tells how often it was asked, saved and loaded."""

    asked: ClassVar[list[int]] = []
    saved: ClassVar[list[int]] = []
    loaded: ClassVar[list[int]] = []

    def __init__(self, spec: of.Spec, seed: int) -> None:
        self.seen = 0

    def __call__(self, turn: of.Turn) -> of.Reply:
        self.asked.append(self.seen)
        self.seen += 1
        return of.Reply(self.seen // 3 % 2, of.Belief(0.5)) if turn.ask is of.Ask.BELIEF else of.Reply(self.seen % 2)

    def save(self) -> bytes:
        self.saved.append(self.seen)
        return b"%d" % self.seen

    def load(self, state: bytes) -> None:
        self.seen = int(state)
        self.loaded.append(self.seen)


@pytest.fixture
def counter() -> type[SavingCounter]:
    for known in (SavingCounter.asked, SavingCounter.saved, SavingCounter.loaded):
        known.clear()
    return SavingCounter


@pytest.mark.parametrize(("seconds", "states"), [(0.0, 8), (1e6, 1)])
def test_an_agent_is_saved_at_most_so_often_and_always_at_the_end(
    path: Path, counter: type[SavingCounter], seconds: float, states: int
) -> None:
    of.run([counter], tiny_trials(1), path, save_seconds=seconds)
    assert len(counter.saved) == states
    assert counter.saved[-1] == counter.asked[-1] + 1
    with Run(path) as run:
        assert run.state(run.cells()[0].id, 1) is not None


def test_a_resumed_agent_goes_on_from_its_last_state_and_is_shown_the_turns_after_it(
    path: Path, counter: type[SavingCounter]
) -> None:
    trials = tiny_trials(1, padding=9_000)
    with pytest.raises(Cancelled):
        of.run([counter], trials, path, watch=press_ctrl_c_after(4), save_seconds=0.0)
    state = counter.saved[-1]
    with pytest.raises(Cancelled):
        of.run([counter], trials, path, watch=press_ctrl_c_after(4), save_seconds=1e6)
    assert counter.saved[-1] == state
    with Run(path) as run:
        before = list(run.steps(run.cells()[0].id, 1))
    counter.asked.clear()
    of.run([counter], trials, path, save_seconds=1e6)
    assert counter.loaded[-1] == state
    assert counter.asked == [*range(state, counter.asked[-1] + 1)]
    assert attempts(path) == [(1, "done", "")]
    with Run(path) as run:
        after = list(run.steps(run.cells()[0].id, 1))
    assert after[: len(before)] == before


def test_a_negative_time_between_states_is_refused(path: Path) -> None:
    with pytest.raises(InvalidInput, match="save_seconds must be a number of at least 0, not -1"):
        of.run([SavingCounter], tiny_trials(1), path, save_seconds=-1)


def test_an_agent_that_remembers_may_come_after_another_trial(path: Path) -> None:
    Remembering.told.clear()
    of.run([Remembering], after(*tiny_trials(2)), path)
    assert {outcome for _, outcome, _ in outcomes(path)} == {"done"}
    assert len(Remembering.told) == 8 * 7


class Forgetful(Remembering):
    def remember(self, turn: of.Turn, reply: of.Reply) -> None:
        raise LookupError("who said that")


def test_a_fault_while_remembering_is_the_agents(path: Path) -> None:
    trials = tiny_trials(1, padding=9_000)
    with pytest.raises(Cancelled):
        of.run([Forgetful], trials, path, watch=press_ctrl_c_after(4))
    of.run([Forgetful], trials, path)
    assert attempts(path) == [(1, "agent_error", "remember() raised LookupError: who said that")]


# one trial after another


def after(first: of.Trial, second: of.Trial) -> list[of.Trial]:
    return [msgspec.structs.replace(second, after=first.id), first]


class Counter:
    """Counts all the turns it ever answered, and says so in its beliefs."""

    def __init__(self, spec: of.Spec, seed: int) -> None:
        self.count = 0

    def __call__(self, turn: of.Turn) -> of.Reply:
        self.count += 1
        return of.Reply(turn.observation["cue"], of.Belief(0.0, self.count))


class SavedCounter(Counter):
    made = 0

    def __init__(self, spec: of.Spec, seed: int) -> None:
        super().__init__(spec, seed)
        SavedCounter.made += 1

    def save(self) -> bytes:
        return str(self.count).encode()

    def load(self, state: bytes) -> None:
        self.count = int(state)


@pytest.mark.parametrize("agent", [Counter, SavedCounter])
@pytest.mark.parametrize("workers", [0, 2])
def test_a_trial_starts_with_the_agent_another_left(path: Path, agent: Any, workers: int) -> None:
    of.run([agent], after(*tiny_trials(2)), path, workers=workers)
    with Run(path) as run:
        later, earlier = run.cells()
        assert [e.belief.level for e in earlier.episodes if e.belief] == [7 * n for n in range(1, 9)]
        assert [e.belief.level for e in later.episodes if e.belief] == [56 + 7 * n for n in range(1, 9)]


class Seeded:
    """Draws what it does by its seed, and has no `save`."""

    def __init__(self, spec: of.Spec, seed: int) -> None:
        self.rng = random.Random(seed)

    def __call__(self, turn: of.Turn) -> of.Reply:
        return of.Reply(turn.observation["cue"], of.Belief(self.rng.random()))


@pytest.mark.parametrize("workers", [0, 2])
def test_an_agent_whose_randomness_comes_from_its_seed_may_come_after_another_trial(path: Path, workers: int) -> None:
    trials = after(*tiny_trials(2))
    with pytest.raises(Cancelled):
        of.run([Seeded], trials, path, watch=press_ctrl_c_after(30))
    of.run([Seeded], trials, path, workers=workers)
    assert [outcome for _, outcome, _ in outcomes(path)] == ["done", "done"]
    with Run(path) as run:
        steps = [step for cell in run.cells()[::-1] for step in run.steps(cell.id, cell.attempt)]
    said = [step.reply.belief.novel for step in steps if step.reply is not None and step.reply.belief is not None]
    drawn = random.Random(make_cells(["Seeded"], trials)[1].seed)
    assert said == [drawn.random() for _ in said]
    assert len(said) == 2 * 56


@pytest.mark.parametrize("agent", [Counter, SavedCounter])
def test_a_later_trial_is_resumed_with_what_came_before_it(path: Path, agent: Any) -> None:
    trials = after(*tiny_trials(2, padding=9_000))
    with pytest.raises(Cancelled):
        of.run([agent], trials, path, watch=press_ctrl_c_after(30))
    of.run([agent], trials, path)
    with Run(path) as run:
        later, _ = run.cells()
    assert [e.belief.level for e in later.episodes if e.belief] == [56 + 7 * n for n in range(1, 9)]
    assert len(attempts(path)) == 2


def test_an_agent_lives_through_a_truncated_trial_only_as_far_as_it_went(path: Path) -> None:
    first, second = tiny_trials(2)
    short = msgspec.structs.replace(first, limits=Limits(episode_turns=4))
    of.run([Counter], after(short, second), path)
    with Run(path) as run:
        later, _ = run.cells()
    assert later.episodes[0].belief == of.Belief(0.0, 4 + 7)


def test_a_fickle_agent_cannot_come_after_another_trial(path: Path) -> None:
    of.run([Fickle], after(*tiny_trials(2)), path)
    assert [(agent, outcome) for agent, outcome, _ in outcomes(path)] == [("Fickle", "agent_error"), ("Fickle", "done")]
    assert "has no save() and replied differently when trial" in attempts(path)[-1][2]
    assert len(attempts(path)) == 2


def test_what_comes_after_a_failure_fails_with_it(path: Path) -> None:
    of.run([Crasher], after(*tiny_trials(2)), path)
    assert [outcome for _, outcome, _ in outcomes(path)] == ["agent_error", "agent_error"]
    first, _, second = attempts(path)[0][2], *attempts(path)[-1][1:]
    assert second == f"The trial it comes after ended as agent_error: {first}"


def test_a_world_is_closed_whatever_happens(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Scripted] = []

    def make(self: Any, trial: of.Trial) -> Scripted:
        made.append(Scripted([worlds.act({"cue": 0}), ArithmeticError("apart")]))
        return made[-1]

    monkeypatch.setattr(worlds.Tiny, "world", make)
    of.run([copycat], tiny_trials(1), path)
    assert [world.closed for world in made] == [True] * 4
    assert rows(path, "SELECT holder FROM cells") == [(None,)]
