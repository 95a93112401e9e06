from __future__ import annotations

import random
import signal
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

import openfield as of
from openfield import registry
from openfield.api import resume
from openfield.errors import Cancelled, InvalidInput, MissingExtra, ReplayMismatch, RunBusy, UnknownName
from openfield.journal.reader import Run
from openfield.journal.writer import Journal
from openfield.record import AttemptEnd, EpisodeEnd
from openfield.runner.plan import make_cells
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
    of.run({"Crasher": copycat}, trials, path, retry=True)
    assert outcomes(path) == [("Crasher", "done", 3)]
    with Run(path) as run:
        assert len(list(run.steps(run.cells()[0].id, 1))) == 10


def test_a_failing_world_is_tried_four_times_and_others_go_on(path: Path) -> None:
    of.run([copycat], [*tiny_trials(1, broken_at=3), *tiny_trials(1)], path)
    assert [outcome for _, outcome, _ in attempts(path)] == ["world_error"] * 4 + ["done"]
    note = attempts(path)[0][2]
    assert note == "Turn 3: the world raised ArithmeticError: the world fell apart"


def test_a_limit_makes_the_outcome_truncated_and_the_cell_is_finished(path: Path) -> None:
    for _ in range(2):
        of.run([copycat], tiny_trials(1, Limits(episode_turns=4)), path)
    with Run(path) as run:
        (cell,) = run.cells()
    assert (cell.outcome, cell.attempt, cell.steps) == ("truncated", 1, 5)
    assert [(e.turns, e.ended) for e in cell.episodes] == [(4, "truncated")]


# stopping and going on


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


def test_a_fickle_agent_starts_again_and_the_old_attempt_is_kept(path: Path) -> None:
    trials = tiny_trials(1, padding=9_000)
    with pytest.raises(Cancelled):
        of.run([Fickle], trials, path, watch=press_ctrl_c_after(4))
    of.run([Fickle], trials, path)
    (first, superseded, note), (second, done, _) = attempts(path)
    assert (first, superseded, second, done) == (1, "superseded", 2, "done")
    assert "the agent answers Reply(" in note
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
    ("options", "words"), [({"workers": -1}, "-1 workers"), ({"count": 0}, "at least one trial, not 0")]
)
def test_numbers_that_make_no_sense_are_refused(path: Path, options: dict[str, int], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        of.run("random", of.trials(worlds.TINY, options.pop("count", 1), unchanged=0), path, **options)  # type: ignore[arg-type]


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


def test_cells_that_another_process_holds_are_left_to_it(path: Path) -> None:
    trials = tiny_trials(3)
    first, *_ = cells = make_cells(["copycat"], trials)
    with Journal(path) as other:
        other.enter(cells, {}, {})
        other.lease(first.id)
        with pytest.raises(RunBusy, match="Another process is working on 1 cells"):
            of.run([copycat], trials, path)
        assert [outcome for _, outcome, _ in outcomes(path)] == [None, "done", "done"]
    of.run([copycat], trials, path)
    assert [outcome for _, outcome, _ in outcomes(path)] == ["done"] * 3


def test_a_cell_waits_for_one_that_another_process_holds(path: Path) -> None:
    first, second = tiny_trials(2)
    trials = [first, msgspec.structs.replace(second, after=first.id)]
    cells = make_cells(["copycat"], trials)
    with Journal(path) as other:
        other.enter(cells, {}, {})
        other.lease(cells[0].id)
        with pytest.raises(RunBusy, match="2 cells"):
            of.run([copycat], trials, path)
    assert attempts(path) == []


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
