"""Worker processes, with agents that hang, die and cannot be sent."""

from __future__ import annotations

import os
import resource
import signal
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

import openfield as of
from conftest import Spawn
from openfield.errors import Cancelled, InvalidInput
from openfield.journal.reader import MAX_RETRIES, Run
from openfield.record import AttemptEnd, Entry, EpisodeEnd
from openfield.runner import executors
from openfield.trial import Limits
from support.players import (
    FATAL_CALL,
    Bad,
    Crasher,
    ForkingLooper,
    Learner,
    Lingerer,
    Looper,
    Redriven,
    Sleeper,
    Stateless,
    Suicide,
    Swallower,
    Wanderer,
    copycat,
    numpy_believer,
)
from support.stories import attempts, press_ctrl_c_after, rows, story, wait_until
from support.worlds import tiny_trials

IMPATIENT = Limits(reply_seconds=1.0)


def test_results_do_not_depend_on_the_number_of_workers(tmp_path: Path) -> None:
    agents = [Learner, Redriven, Stateless, copycat, numpy_believer]
    stories = []
    for workers in (0, 1, 2):
        of.run(agents, tiny_trials(2, padding=3_000), tmp_path / f"{workers}.sqlite", workers=workers, repeats=2)
        stories.append(story(tmp_path / f"{workers}.sqlite"))
    assert len(stories[0]) == 20
    assert stories[0] == stories[1] == stories[2]


@pytest.mark.slow
@pytest.mark.parametrize("agent", [Looper, Sleeper])
def test_a_hanging_agent_is_ended_and_its_turns_are_kept(path: Path, agent: Any) -> None:
    of.run([agent, copycat], tiny_trials(2, IMPATIENT), path, workers=1)
    with Run(path) as run:
        hung = [cell for cell in run.cells() if cell.agent == agent.__name__]
        fine = [cell for cell in run.cells() if cell.agent == "copycat"]
        assert [(cell.outcome, cell.steps, len(cell.episodes)) for cell in hung] == [
            ("agent_timeout", FATAL_CALL, 1)
        ] * 2
        assert [cell.outcome for cell in fine] == ["done", "done"]
        assert run.verify() == []
    assert len(attempts(path)) == 4


def test_an_agent_that_will_not_be_interrupted_is_ended_with_its_worker(path: Path) -> None:
    of.run([Swallower, copycat], tiny_trials(1, IMPATIENT), path, workers=1)
    with Run(path) as run:
        hung, fine = run.cells()
    assert (hung.outcome, hung.note) == ("agent_timeout", "No answer in time; its worker was ended.")
    assert len(hung.episodes) == 1
    assert fine.outcome == "done"


@pytest.mark.slow
def test_a_failed_agent_does_not_make_the_next_one_late(path: Path) -> None:
    """The worker's clock of the first agent must not run on while the second is slowly being made."""
    of.run([Crasher, SlowlyMade], tiny_trials(1, IMPATIENT), path, workers=1)
    with Run(path) as run:
        assert [cell.outcome for cell in run.cells()] == ["agent_error", "done"]


class SlowlyMade:
    def __init__(self, spec: of.Spec, seed: int) -> None:
        time.sleep(1.5 * (IMPATIENT.reply_seconds or 0))

    def __call__(self, turn: of.Turn) -> of.Reply:
        return copycat(turn)


def test_a_worker_that_is_killed_is_our_failure_and_its_cell_goes_on_where_it_was(path: Path) -> None:
    seen: list[Entry] = []
    of.run([Suicide, copycat], tiny_trials(1), path, workers=2, watch=seen.append)
    with Run(path) as run:
        dead, fine = run.cells()
    note = "Its worker process died (signal SIGKILL), each of 4 times while the agent was asked."
    assert (dead.outcome, dead.note) == ("agent_error", note)  # else it would get rid of its bad trials
    assert fine.outcome == "done"
    assert sum(isinstance(entry, AttemptEnd) and entry.torn for entry in seen) == MAX_RETRIES
    assert (dead.attempt, len(dead.episodes)) == (1, 1)
    assert sum(isinstance(entry, EpisodeEnd) and entry.cell == dead.id for entry in seen) == 1


def test_a_worker_that_dies_between_two_cells_costs_no_attempt(path: Path) -> None:
    def watch(entry: Entry) -> None:
        """Kill the worker that has just ended a cell."""
        if isinstance(entry, AttemptEnd):
            (worker,) = (pid for pid in children(os.getpid()) if b"spawn_main" in command_line(pid))
            os.kill(worker, signal.SIGKILL)
            wait_until(lambda: not alive(worker))

    of.run([copycat], tiny_trials(3), path, workers=1, watch=watch)
    assert attempts(path) == [(1, "done", "")] * 3


def command_line(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


class Spoiler:
    """Leaves a process in which nothing can be opened any more."""

    def __init__(self, spec: of.Spec, seed: int) -> None:
        pass

    def __call__(self, turn: of.Turn) -> of.Reply:
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        return copycat(turn)


def test_a_process_that_an_agent_spoiled_fails_no_other_agent(path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ends: list[Entry] = []
    of.run([Spoiler, copycat], tiny_trials(1), path, workers=1, watch=ends.append)
    with Run(path) as run:
        assert [(cell.agent, cell.outcome) for cell in run.cells()] == [("Spoiler", "done"), ("copycat", "done")]
    assert {end.outcome for end in ends if isinstance(end, AttemptEnd)} == {"done"}  # a fresh cell opens no file
    assert "Traceback" not in capfd.readouterr().err


class Closer(Bad):
    def fail(self) -> None:
        os.closerange(3, 1_000)


class Terminator(Bad):
    def fail(self) -> None:
        os.kill(os.getppid(), signal.SIGTERM)


class GroupTerminator(Bad):
    def fail(self) -> None:
        os.killpg(0, signal.SIGTERM)


class SelfTerminator(Bad):
    def fail(self) -> None:
        os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "note"),
    [
        (Terminator, "Turn 9: the agent raised PermissionError: an agent may not send signals to the process that"),
        (GroupTerminator, "Turn 9: the agent raised PermissionError: an agent may not send signals to the process"),
        (SelfTerminator, "It was asked to stop, but not by openfield, each of 4 times while the agent was asked."),
    ],
)
def test_an_agent_that_sends_signals_stops_no_run(path: Path, agent: type[Bad], note: str) -> None:
    of.run([agent, copycat], tiny_trials(1), path, workers=1)
    with Run(path) as run:
        bad, fine = run.cells()
    assert (bad.outcome, fine.outcome) == ("agent_error", "done")
    assert bad.note.startswith(note)


class Forker(Bad):
    """Leaves processes behind: a child, and a child's child in a session of its own."""

    def fail(self) -> None:
        for _ in range(3):
            if not os.fork():
                os.setsid()
                if os.fork():
                    os._exit(0)
                with Path("forks").open("a") as file:
                    file.write(f"{os.getpid()}\n")
                time.sleep(600)
        if not os.fork():
            time.sleep(600)
        wait_until(lambda: len(Path("forks").read_text().split()) == 3)


class HastyForker(Bad):
    """Forks twice in every turn, and its trial is over before the second is known of."""

    def __call__(self, turn: of.Turn) -> of.Reply:
        if not os.fork():
            os.setsid()
            if not os.fork():
                time.sleep(600)
            os._exit(0)
        return copycat(turn)


class ForkingSuicide(Bad):
    """Ends its process, and a fork holds what leads to the parent."""

    def fail(self) -> None:
        if not os.fork():
            time.sleep(600)
        os._exit(3)


class HandlelessForker(Bad):
    """Leaves a fork where no file can be opened any more."""

    def fail(self) -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
        if not os.fork():
            time.sleep(600)


class HandleEater(Bad):
    """Leaves its process too few files for another cell."""

    def fail(self) -> None:
        used = len(os.listdir("/proc/self/fd"))
        resource.setrlimit(resource.RLIMIT_NOFILE, (used + 2, used + 2))


class FileOpener(Bad):
    """Opens a few files, as anyone may."""

    def fail(self) -> None:
        with ExitStack() as stack:
            for _ in range(8):
                stack.enter_context(Path(__file__).open())


class ForkerReturns(Bad):
    """Comes back twice."""

    def fail(self) -> None:
        os.fork()


def test_what_an_agent_forks_ends_with_its_cell(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    Path("forks").touch()
    of.run([Forker], tiny_trials(1), path, workers=1)
    forked = [int(pid) for pid in Path("forks").read_text().split()]
    assert len(forked) == 3
    wait_until(lambda: not any(alive(pid) for pid in forked))
    with Run(path) as run:
        assert [cell.outcome for cell in run.cells()] == ["done"]


def test_what_an_agent_forks_in_its_last_moment_ends_with_its_cell(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    of.run([HastyForker], tiny_trials(3), path, workers=1)
    wait_until(lambda: work_in(path.parent) == [os.getpid()])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "outcome"),
    [(ForkingLooper, "agent_timeout"), (ForkingSuicide, "agent_error"), (HandlelessForker, "done")],
)
def test_what_an_agent_forked_ends_with_its_worker(
    path: Path, monkeypatch: pytest.MonkeyPatch, agent: type[Bad], outcome: str
) -> None:
    monkeypatch.chdir(path.parent)
    limits = IMPATIENT if agent is ForkingLooper else Limits()
    of.run([agent, copycat], tiny_trials(1, limits), path, workers=1)
    with Run(path) as run:
        assert [cell.outcome for cell in run.cells()] == [outcome, "done"]
    wait_until(lambda: work_in(path.parent) == [os.getpid()])


def test_a_worker_that_is_left_without_files_plays_no_other_cell(path: Path) -> None:
    of.run([HandleEater, FileOpener], tiny_trials(1), path, workers=1)
    with Run(path) as run:
        assert [(cell.outcome, cell.attempt) for cell in run.cells()] == [("done", 1), ("done", 1)]


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_fork_that_comes_back_writes_nothing(path: Path, spawn: Spawn, workers: str) -> None:
    code = f"""
import openfield as of
from runner.test_executors import ForkerReturns
from support.worlds import tiny_trials
if __name__ == "__main__":
    of.run([ForkerReturns], tiny_trials(1), {str(path)!r}, workers={workers})
"""
    script = path.with_suffix(".py")
    script.write_text(code)
    assert spawn(script).wait(60) == 0
    with Run(path) as run:
        assert run.verify() == []
        assert [(cell.outcome, len(cell.episodes)) for cell in run.cells()] == [("done", 8)]


@pytest.mark.slow
def test_too_few_files_for_workers_are_explained(path: Path, spawn: Spawn) -> None:
    limits = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))"
    command = f"{limits}; from openfield.cli.main import main; main()"
    words = ["run", "commai", "--trials", "4", "--set", "max_steps=5", "--set", "unchanged=0", "-o", path]
    few = spawn("-c", command, *words, "--workers", "8", stderr=-1, stdout=-1)
    said = few.communicate(timeout=120)[1].decode()
    assert few.returncode == 2
    assert said.splitlines()[-1].startswith("openfield: Only 20 files may be open at once here")
    assert "Traceback" not in said
    assert spawn("-c", command, *words, "--workers", "1", stdout=-1).wait(120) == 0
    with Run(path) as run:
        assert [cell.outcome for cell in run.cells()] == ["done"] * 4


def test_an_agent_that_closes_everything_ends_its_worker_without_a_traceback(
    path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    of.run([Closer, copycat], tiny_trials(1), path, workers=1)
    with Run(path) as run:
        closer, fine = run.cells()
    assert (closer.outcome, fine.outcome) == ("agent_error", "done")
    assert closer.note == "The agent closed the files of the process it ran in."
    assert "Traceback" not in capfd.readouterr().err


class Quitter(Bad):
    def fail(self) -> None:
        os._exit(3)


class Unraisable(Bad):
    def fail(self) -> None:
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("agent", "outcome", "note"),
    [
        (Quitter, "agent_error", "The agent ended the process it ran in (exit status 3)."),
        (Unraisable, "agent_error", f"Turn {FATAL_CALL - 1}: the agent raised KeyboardInterrupt: "),
        (Wanderer, "done", ""),
    ],
)
def test_what_an_agent_does_to_its_process_is_its_own_doing(
    path: Path, monkeypatch: pytest.MonkeyPatch, agent: type[Bad], outcome: str, note: str
) -> None:
    monkeypatch.chdir(path.parent)
    of.run([agent, copycat], tiny_trials(2), path.name, workers=1)
    with Run(path) as run:
        cells = run.cells()
    assert {(cell.outcome, cell.note) for cell in cells if cell.agent == agent.__name__} == {(outcome, note)}
    assert {cell.outcome for cell in cells if cell.agent == "copycat"} == {"done"}


class Hangs:
    def __init__(self, spec: of.Spec, seed: int) -> None:
        self.hang("making")

    def __call__(self, turn: of.Turn) -> of.Reply:
        return copycat(turn)

    def save(self) -> bytes:
        self.hang("saving")
        return b""

    def load(self, state: bytes) -> None: ...

    def close(self) -> None:
        self.hang("closing")

    def hang(self, where: str) -> None:
        if where in type(self).__name__.lower():
            time.sleep(600)


class HangsMaking(Hangs): ...


class HangsSaving(Hangs): ...


class HangsClosing(Hangs): ...


@pytest.mark.slow
def test_an_agent_may_not_hang_elsewhere_either(path: Path) -> None:
    of.run([HangsMaking, HangsSaving, HangsClosing], tiny_trials(1, IMPATIENT), path, workers=3)
    with Run(path) as run:
        found = {cell.agent: (cell.outcome, len(cell.episodes)) for cell in run.cells()}
    assert found == {
        "HangsMaking": ("agent_timeout", 0),
        "HangsSaving": ("agent_timeout", 8),  # it is asked at the end of the trial
        "HangsClosing": ("done", 8),
    }


class Exits(Hangs):
    """Ends its process once the trial is over."""

    def close(self) -> None:
        os._exit(5)


class FailsAndExits(Exits):
    def __call__(self, turn: of.Turn) -> of.Reply:
        raise ValueError("what was wrong")


class Stubborn(Hangs):
    """Cannot be interrupted while it closes."""

    def close(self) -> None:
        while True:
            with suppress(Exception):
                time.sleep(600)


class SlowCloser(Hangs):
    """Takes longer to close than an idle worker has to end."""

    def close(self) -> None:
        time.sleep(2.5 * executors.GRACE_SECONDS)
        Path("closed").touch()


@pytest.mark.slow
@pytest.mark.parametrize("agent", [Exits, Stubborn])
def test_how_a_trial_ended_is_known_before_its_agent_is_closed(path: Path, agent: type[Hangs]) -> None:
    of.run([agent, copycat], tiny_trials(1, IMPATIENT), path, workers=1)
    with Run(path) as run:
        found = [(cell.outcome, cell.note, cell.attempt, len(cell.episodes)) for cell in run.cells()]
    assert found == [("done", "", 1, 8)] * 2


def test_a_failed_agent_that_ends_its_process_in_the_end_is_blamed_for_its_failure(path: Path) -> None:
    of.run([FailsAndExits, copycat], tiny_trials(2), path, workers=1)
    with Run(path) as run:
        found = {(cell.agent, cell.outcome, cell.note) for cell in run.cells()}
    fault = "Turn 0: the agent raised ValueError: what was wrong"
    assert found == {("FailsAndExits", "agent_error", fault), ("copycat", "done", "")}


def test_an_agent_has_time_to_close_before_a_run_is_over(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    of.run([SlowCloser], tiny_trials(1), path, workers=1)
    assert path.with_name("closed").exists()


def test_a_thread_an_agent_leaves_behind_does_not_keep_the_run(path: Path) -> None:
    started = time.monotonic()
    of.run([Lingerer], tiny_trials(1), path, workers=1)
    assert time.monotonic() - started < 30
    with Run(path) as run:
        assert [cell.outcome for cell in run.cells()] == ["done"]


SCRIPT = """
import openfield as of
from openfield.errors import InvalidInput
from support.worlds import tiny_trials

def mine(turn):
    return of.Reply(1)

print("imported\\n", end="")  # in one piece: workers print at once
try:
    result = of.run([AGENT], tiny_trials(2), PATH, workers=2)
    print({cell.outcome for cell in result.cells})
except InvalidInput as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        ("'random'", "imported\n{'done'}\n"),
        (
            "mine",
            "imported\nWorkers import the script that defines an agent. Put what the script does under",
        ),
    ],
)
def test_a_script_is_run_once_whatever_its_workers_import(path: Path, spawn: Spawn, agent: str, said: str) -> None:
    script = path.with_suffix(".py")
    script.write_text(SCRIPT.replace("AGENT", agent).replace("PATH", repr(str(path))))
    out, err = spawn(script, stdout=-1, stderr=-1).communicate(timeout=60)
    assert said in out.decode()
    assert out.count(b"imported") == 1 or agent == "mine"
    assert b"Traceback" not in err


def test_an_agent_that_cannot_be_sent_is_refused_with_advice(path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"'<lambda>' cannot be sent to a worker process .* or use workers=0"):
        of.run([lambda turn: of.Reply(1)], tiny_trials(), path, workers=1)
    with pytest.raises(InvalidInput, match="cannot be sent"):
        of.run({"local": type("Local", (Learner,), {})}, tiny_trials(), path, workers=1)


def test_an_error_of_who_watches_is_not_taken_for_a_dead_worker(path: Path) -> None:
    def watch(entry: Any) -> None:
        raise BrokenPipeError("nobody is looking")

    with pytest.raises(BrokenPipeError):
        of.run([copycat], tiny_trials(), path, workers=1, watch=watch)
    of.run([copycat], tiny_trials(), path, workers=1)
    with Run(path) as run:
        assert [(cell.outcome, cell.attempt) for cell in run.cells()] == [("done", 1)]


def test_no_worker_outlives_its_parent(path: Path, spawn: Spawn) -> None:
    """Even one whose agent hangs: the watchdog died with the parent."""
    parent = spawn("tests/support/run_program.py", path, "Looper", "1")
    wait_until(lambda: len(children(parent.pid)) >= 2)  # the worker and multiprocessing's own helper
    workers = children(parent.pid)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    wait_until(lambda: not any(alive(pid) for pid in workers))


def test_no_fork_outlives_a_killed_run(path: Path, spawn: Spawn) -> None:
    parent = spawn("tests/support/run_program.py", path, "ForkingLooper", "1")
    wait_until(lambda: bool(find_orphans(parent.pid)))
    (orphan,) = find_orphans(parent.pid)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    wait_until(lambda: not alive(orphan))


def find_orphans(run: int) -> list[int]:
    """Return the processes that were forked off the workers of a run and whose parent has ended."""
    marks = {read_environment(pid) for pid in children(run)} - {b""}
    family = {pid for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))) if read_environment(pid) in marks}
    kept = {child for pid in family for child in children(pid)}
    return sorted(family - kept - set(children(run)))


def read_environment(pid: int) -> bytes:
    """Return the environment of a worker or of what was forked off it; empty for other processes."""
    with suppress(OSError):
        environment = Path(f"/proc/{pid}/environ").read_bytes()
        return environment if b"OPENFIELD_WORKER=" in environment else b""
    return b""


def work_in(folder: Path) -> list[int]:
    """Return the processes that work in a folder."""
    found = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        with suppress(OSError):  # it has ended, or belongs to another user
            if link.readlink() == folder.resolve() and alive(int(link.parent.name)):
                found.append(int(link.parent.name))
    return found


def children(pid: int) -> list[int]:
    with suppress(OSError):  # it has ended
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def alive(pid: int) -> bool:
    """Return whether a process runs, or a thread of it that may still hold its files open."""
    try:
        ended = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
        return not ended or len(list(Path(f"/proc/{pid}/task").iterdir())) > 1
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_stopping_a_worker_while_it_starts_keeps_its_cell_resumable(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finished episodes of an earlier start are not played again."""
    trials = tiny_trials(1)
    with pytest.raises(Cancelled):
        of.run([Learner], trials, path, watch=press_ctrl_c_after(4))
    before = rows(path, "SELECT count(*) FROM episodes")
    start = executors.Processes.start

    def start_and_stop(processes: Any, job: Any) -> None:
        start(processes, job)
        os.kill(os.getpid(), signal.SIGINT)  # its interpreter takes a tenth of a second to start

    monkeypatch.setattr(executors.Processes, "start", start_and_stop)
    with pytest.raises(Cancelled):
        of.run([Learner], trials, path, workers=1)
    monkeypatch.undo()
    assert attempts(path) == [(1, "cancelled", "")]
    assert rows(path, "SELECT count(*) FROM episodes") == before
    of.run([Learner], trials, path, workers=1)
    assert attempts(path) == [(1, "done", "")]
