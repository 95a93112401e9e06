"""Two machines of a Ray cluster on this one, with agents that hang, lost machines and a killed driver."""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sqlite3
import subprocess
import threading
import time
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import openfield as of
from conftest import Spawn
from openfield.cell import Cell
from openfield.cli import run_command
from openfield.errors import InvalidInput
from openfield.journal.reader import Run
from openfield.journal.receipt import Receipt
from openfield.objectives import evaluate_file, evaluate_shards, map_over_ray
from openfield.objectives.formats.shards import Shard, count_shard
from openfield.objectives.formats.table_builder import write_table
from openfield.objectives.tables.rows import Rows
from openfield.objectives.tables.table import make_table
from openfield.objectives.tables.transitions import sum_rows
from openfield.record import EpisodeEnd
from openfield.registry import find_domain
from openfield.runner.isolation import bubblewrap
from openfield.runner.ray import executor as ray_executor
from openfield.runner.scheduler import CellScheduler
from openfield.trial import Limits
from support.players import FATAL_CALL, Learner, Looper, Redriven, SlowLearner, copycat
from support.stories import attempts, rows, story, wait_until
from support.worlds import tiny_trials

os.environ |= {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}  # loopback, no statistics

pytestmark = [
    pytest.mark.ray,
    pytest.mark.filterwarnings(r"ignore:subprocess \d+ is still running:ResourceWarning"),  # Ray's own
    pytest.mark.filterwarnings("ignore:Nothing can be played yet"),  # a slow machine takes long to start slots
]
FILE_AGENT = """
import helper
import openfield as of

class Walker:
    def __init__(self, spec, seed, table="", step=1):
        self.moves = open(table).read().split()
        self.at, self.step = seed, step

    def __call__(self, turn):
        self.at += helper.STRIDE * self.step
        return of.Reply(self.moves[self.at % len(self.moves)])
"""

KILLED_AGENT = """
import os
import time
import openfield as of

class Marked:
    \"\"\"Says which processes play: the worker and the slot that started it.\"\"\"

    def __init__(self, spec, seed, folder=""):
        self.folder = folder

    def __call__(self, turn):
        open(f"{self.folder}/{os.getpid()}-{os.getppid()}", "w").close()
        time.sleep(0.02)
        return of.Reply(turn.observation["cue"])
"""
MEETING_AGENT = """
import os
import time
import openfield as of

class Meeting:
    \"\"\"Says which process plays, and answers when this many files are in its folder.\"\"\"

    def __init__(self, spec, seed, folder="", files=1):
        self.folder, self.files = folder, files

    def __call__(self, turn):
        open(f"{self.folder}/{os.getpid()}", "w").close()
        while len(os.listdir(self.folder)) < self.files:
            time.sleep(0.02)
        return of.Reply("up")
"""
OTHER_PROGRAM = """
import ray, sys

class Holder:
    pass

ray.init(address=sys.argv[1], log_to_driver=False)
holders = [ray.remote(Holder).options(num_cpus=1, resources={"shared": 1}).remote() for _ in range(2)]
ray.get([holder.__ray_ready__.remote() for holder in holders])
print("held", flush=True)
sys.stdin.read()
"""
COUNTING_AGENT = """
import openfield as of

class Counting:
    \"\"\"Writes a byte for every turn that it is shown.\"\"\"

    def __init__(self, spec, seed, file=""):
        self.file = open(file, "ab", buffering=0)

    def __call__(self, turn):
        self.file.write(b".")
        return of.Reply(0)

    def close(self):
        self.file.close()
"""
FILE_DOMAIN = """
import openfield as of

class Settings(of.Settings, frozen=True):
    table: str = ""

class Play:
    observation, reward, performance, ended = 0, 0.0, 1.0, None

    def __init__(self, settings, rng):
        self.observation = open(settings.table).read()

    def move(self, action):
        self.ended = "terminated"

class Domain(of.Domain):
    name, title, settings = "tabled", "Read a table", Settings

    def spec(self, trial):
        return of.Spec(domain=self.name, task="Say 0.", actions=of.spaces.Discrete(1))

    def phases(self, settings, novelty):
        return (of.Phase("test", 2),)

    def world(self, trial):
        return of.EpisodicWorld(self, trial, Play)

DOMAIN = Domain()
"""


@pytest.fixture(scope="module")
def one_machine() -> Iterator[Any]:
    """A cluster of a machine with one processor; another may have joined already. Every machine costs a run seconds."""
    from ray.cluster_utils import Cluster as LocalCluster

    soon = {"health_check_period_ms": 500, "health_check_initial_delay_ms": 0}  # a lost machine is noticed at once
    head = {"num_cpus": 1, "include_dashboard": False, "_system_config": soon}
    made = LocalCluster(initialize_head=True, head_node_args=head)
    yield made
    made.shutdown()
    gc.collect()  # what Ray left open is found here, and not in another test


@pytest.fixture(scope="module")
def cluster(one_machine: Any) -> Any:
    """Two machines with one processor each."""
    one_machine.add_node(num_cpus=1)
    return one_machine


@pytest.fixture
def agent(tmp_path: Path) -> str:
    """An agent in a file, with a file that it imports and one that its parameter names."""
    (tmp_path / "walker.py").write_text(FILE_AGENT)
    (tmp_path / "helper.py").write_text("STRIDE = 3\n")
    (tmp_path / "moves.txt").write_text("up down left right up right")
    return f"{tmp_path}/walker.py:Walker(step=2, table={tmp_path}/moves.txt)"


def on(cluster: Any) -> dict[str, Any]:
    return {"executor": f"ray={cluster.address}"}


def test_a_hanging_agent_is_ended_and_its_turns_are_kept(one_machine: Any, path: Path) -> None:
    of.run([Looper, copycat], tiny_trials(1, Limits(reply_seconds=1.0)), path, **on(one_machine))
    with Run(path) as run:
        found = {cell.agent: (cell.outcome, cell.steps) for cell in run.cells()}
        assert found["Looper"] == ("agent_timeout", FATAL_CALL)
        assert found["copycat"][0] == "done"
        assert run.verify() == []


def test_isolated_agents_play_on_machines(one_machine: Any, tmp_path: Path, agent: str, maze: of.Domain[Any]) -> None:
    trials = of.trials(maze, 1, before=1, after=1, unchanged=0)
    agents = {"walker": agent}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=bubblewrap.MISSING)  # where bubblewrap does not work
        of.run(of.isolate(agents), trials, tmp_path / "ray.sqlite", **on(one_machine))
    of.run(agents, trials, tmp_path / "one.sqlite", workers=1)
    assert story(tmp_path / "ray.sqlite") == story(tmp_path / "one.sqlite")


def test_files_that_settings_name_by_full_paths_travel(
    one_machine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine the setting names the file that was sent; the one it was is gone by then."""
    (tmp_path / "tabled.py").write_text(FILE_DOMAIN)
    (tmp_path / "table.txt").write_text("a table")
    pack = ray_executor.pack_shipment

    def pack_and_remove(*given: Any) -> Any:
        packed = pack(*given)
        (tmp_path / "table.txt").unlink()
        return packed

    monkeypatch.setattr(ray_executor, "pack_shipment", pack_and_remove)
    trials = of.trials(find_domain(f"{tmp_path}/tabled.py"), 1, table=str(tmp_path / "table.txt"))
    of.run(["random"], trials, tmp_path / "run.sqlite", **on(one_machine))
    with Run(tmp_path / "run.sqlite") as run:
        (cell,) = run.cells()
        assert (cell.outcome, cell.note) == ("done", "")
        assert next(iter(run.steps(cell.id, cell.attempt))).turn.observation == "a table"  # type: ignore[union-attr]


def test_players_wait_for_a_slow_disk(one_machine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While nothing reaches the disk, only as much is played as the queues between player and disk may hold."""
    (tmp_path / "counting.py").write_text(COUNTING_AGENT)
    count, emit, held = tmp_path / "count", CellScheduler.emit, list[tuple[Receipt[None], Receipt[None]]]()
    played, released = list[int](), threading.Event()

    def emit_slowly(self: CellScheduler, *entries: Any) -> Receipt[None]:
        real, shown = emit(self, *entries), Receipt[None]()
        if released.is_set():
            return real
        held.append((real, shown))
        return shown

    def release() -> None:
        wait_until(lambda: count.exists())
        while len(played) < 5 or len(set(played[-5:])) > 1:  # until no more is played
            time.sleep(0.2)
            played.append(count.stat().st_size)
        released.set()
        for real, shown in held:
            real.then(partial(shown.settle, None))

    monkeypatch.setattr(CellScheduler, "emit", emit_slowly)
    releasing = threading.Thread(target=release)
    releasing.start()
    turns = 6 * 250
    trials = tiny_trials(1, padding=30_000, length=turns // 6, training=0, before=3, after=3)
    path = tmp_path / "run.sqlite"
    of.run({"counting": f"{tmp_path}/counting.py:Counting(file={count})"}, trials, path, **on(one_machine))
    releasing.join()
    assert played[-1] < turns * 0.9
    with Run(path) as run:
        assert [(cell.outcome, cell.steps) for cell in run.cells()] == [("done", turns + 7)]


@pytest.mark.smoke
def test_smoke_records_equal_those_of_one_worker(
    cluster: Any, tmp_path: Path, agent: str, maze: of.Domain[Any]
) -> None:
    trials = [*of.trials(maze, 3, before=2, after=2), *of.trials("commai", 1, max_steps=400)]
    agents = {"random": "random", "walker": agent}
    of.run(agents, trials, tmp_path / "one.sqlite", workers=1)
    of.run(agents, trials, tmp_path / "ray.sqlite", **on(cluster))
    assert len(story(tmp_path / "ray.sqlite")) == 2 * len(trials)
    assert story(tmp_path / "ray.sqlite") == story(tmp_path / "one.sqlite")


def test_a_trial_goes_on_from_a_learner_that_another_machine_trained(cluster: Any, tmp_path: Path) -> None:
    """The state of one, and the recorded turns of the other, travel with the job."""
    trained = tiny_trials(1)[0]
    trials = [trained, *(of.Trial(**{**_fields(each), "after": trained.id}) for each in tiny_trials(3, seed=5))]
    of.run([Learner, Redriven], trials, tmp_path / "one.sqlite", workers=1)
    of.run([Learner, Redriven], trials, tmp_path / "ray.sqlite", **on(cluster))
    assert story(tmp_path / "ray.sqlite") == story(tmp_path / "one.sqlite")


def _fields(trial: of.Trial) -> dict[str, Any]:
    return {name: getattr(trial, name) for name in trial.__struct_fields__}


def test_a_killed_worker_and_a_killed_slot_lose_nothing(cluster: Any, tmp_path: Path) -> None:
    (tmp_path / "marked.py").write_text(KILLED_AGENT)
    marks = tmp_path / "marks"
    marks.mkdir()
    agent = {"marked": f"{tmp_path}/marked.py:Marked(folder={marks})"}
    episodes: list[str] = []

    def watch(entry: Any) -> None:
        if isinstance(entry, EpisodeEnd):
            episodes.append(entry.cell)
            if len(episodes) in (2, 6):
                latest = max(marks.iterdir(), key=lambda each: each.stat().st_mtime_ns)
                os.kill(int(latest.name.split("-")[len(episodes) == 6]), signal.SIGKILL)

    trials = tiny_trials(2, padding=3_000)
    of.run(agent, trials, tmp_path / "one.sqlite", workers=1)
    of.run(agent, trials, tmp_path / "ray.sqlite", watch=watch, **on(cluster))
    assert story(tmp_path / "ray.sqlite") == story(tmp_path / "one.sqlite")
    assert len({mark.name.split("-")[1] for mark in marks.iterdir()}) > 2  # this process, two slots or more


@pytest.mark.filterwarnings("ignore:No machine has what the agent")  # until the next one joins
@pytest.mark.filterwarnings("ignore:Machine .* is lost")
def test_cells_of_a_lost_machine_go_on_elsewhere(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cells are put back, and neither retried nor counted as failed. A machine that joins afterwards plays, too."""
    trials, nodes, put_back = tiny_trials(2, padding=3_000), [cluster.add_node(num_cpus=2, resources={"arm": 2})], []
    slow, original = {Cell("SlowLearner", trial, 0).id for trial in trials}, CellScheduler.put_back
    monkeypatch.setattr(
        CellScheduler, "put_back", lambda self, cell: (put_back.append(cell), original(self, cell), join())
    )

    def join() -> None:
        if len(nodes) == 1:
            nodes.append(cluster.add_node(num_cpus=2, resources={"arm": 2}))

    def watch(entry: Any) -> None:
        if isinstance(entry, EpisodeEnd) and entry.cell in slow and nodes[0] is not None:
            lost, nodes[0] = nodes[0], None
            cluster.remove_node(lost, allow_graceful=False)

    of.run([SlowLearner, copycat], trials, tmp_path / "one.sqlite", workers=1)
    arms = {"SlowLearner": {"arm": 1}}  # only these machines have them
    path = tmp_path / "ray.sqlite"
    of.run([SlowLearner, copycat], trials, path, watch=watch, resources=arms, **on(cluster))
    cluster.remove_node(nodes[1])
    assert put_back
    assert story(path) == story(tmp_path / "one.sqlite")
    assert {(number, outcome) for number, outcome, _ in attempts(path)} == {(1, "done")}


def test_all_free_processors_are_used_where_other_programs_hold_some(
    cluster: Any, tmp_path: Path, spawn: Spawn, maze: Any
) -> None:
    """The agents answer only when as many of them play at once as processors are free. The rest is seen as demand."""
    from ray.autoscaler.v2.sdk import get_cluster_status

    demand: list[Any] = []

    def watch(entry: Any) -> None:
        if not demand:
            demand.extend(get_cluster_status(cluster.address).resource_demands.ray_task_actor_demand)

    shared = [cluster.add_node(num_cpus=2, resources={"shared": 1}) for _ in range(2)]
    (tmp_path / "holder.py").write_text(OTHER_PROGRAM)
    (tmp_path / "meeting.py").write_text(MEETING_AGENT)
    (meeting := tmp_path / "meeting").mkdir()
    holder = spawn(tmp_path / "holder.py", cluster.address, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    planned = of.trials(maze, 6, before=1, after=1, training=0, unchanged=0)
    trials = [of.Trial(**{**_fields(each), "limits": Limits(reply_seconds=60.0)}) for each in planned]
    agent = {"meeting": f"{tmp_path}/meeting.py:Meeting(folder={meeting}, files=4)"}
    of.run(agent, trials, tmp_path / "run.sqlite", watch=watch, **on(cluster))
    holder.kill()
    for node in shared:
        cluster.remove_node(node)
    with Run(tmp_path / "run.sqlite") as run:
        assert {(cell.outcome, cell.note) for cell in run.cells()} == {("done", "")}
    assert len(list(meeting.iterdir())) == 4  # none that was taken, and no process died
    assert [(each.bundle, each.count) for each in demand[0].bundles_by_count] == [({"CPU": 1.0}, 2)]


def test_the_command_line_says_in_one_line_that_a_machine_is_lost(cluster: Any, tmp_path: Path, spawn: Spawn) -> None:
    """Ray would print some forty lines of logs."""
    import ray

    lost = cluster.add_node(num_cpus=2)
    (tmp_path / "meeting.py").write_text(MEETING_AGENT)
    (meeting := tmp_path / "meeting").mkdir()
    agent = f"{tmp_path}/meeting.py:Meeting(folder={meeting}, files=20)"
    words = ["run", "examples/maze.py", "--agent", agent, "--trials", "4", "--set", "before=1", "--set", "after=1"]
    words += ["--set", "training=0", "--output", str(tmp_path / "run.sqlite"), "--executor", f"ray={cluster.address}"]
    said = tmp_path / "said.txt"
    with said.open("w") as file:
        command = spawn("-m", "openfield", *words, stdout=file, stderr=file)
        wait_until(lambda: len(list(meeting.iterdir())) == 4)
        cluster.remove_node(lost, allow_graceful=False)
        ray.init(address=cluster.address, log_to_driver=False)
        wait_until(lambda: sum(not node["Alive"] for node in ray.nodes() if node["NodeID"] == lost.node_id))
        ray.shutdown()
        wait_until(lambda: "is lost" in said.read_text())
        for number in range(20):
            (meeting / f"go-{number}").touch()
        assert command.wait() == 0
    lines = [line for line in said.read_text().splitlines() if "lost" in line or "raylet" in line]
    assert lines == [f"openfield: Machine {socket.gethostname()} is lost. {GO_ON}"]


GO_ON = "Its cells go on elsewhere, where their record ends."


def test_a_killed_driver_is_resumed_where_it_was(cluster: Any, tmp_path: Path, spawn: Spawn, maze: Any) -> None:
    trials = of.trials(maze, 1, before=20, after=20)
    of.run(["random"], trials, tmp_path / "one.sqlite", workers=1)
    path = tmp_path / "ray.sqlite"
    script = tmp_path / "drive.py"
    script.write_text(
        "import openfield as of, sys\n"
        "from openfield.registry import find_domain\n"
        "trials = of.trials(find_domain('examples/maze.py'), 1, before=20, after=20)\n"
        f"of.run(['random'], trials, {str(path)!r}, executor={on(cluster)['executor']!r})\n"
    )
    driver = spawn(script)
    wait_until(lambda: path.exists() and _count(path, "episodes") > 10)
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    of.resume(path, **on(cluster))
    assert story(path) == story(tmp_path / "one.sqlite")
    assert {number for number, _, _ in attempts(path)} == {1}


def _count(path: Path, table: str) -> int:
    try:
        return int(rows(path, f"SELECT count(*) FROM {table}")[0][0])
    except sqlite3.OperationalError:  # its tables are being made
        return 0


def test_a_package_that_a_machine_does_not_have_is_named(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "site-packages"
    installed.mkdir()
    (installed / "onlyhere.py").write_text("STEP = 1\n")
    monkeypatch.syspath_prepend(installed)
    (tmp_path / "needy.py").write_text("import onlyhere\ndef play(turn): ...\n")
    with (
        pytest.raises(InvalidInput, match=r"Machine \S+ is the last .* No module named 'onlyhere' \(line 1\)$"),
        pytest.warns(
            UserWarning, match=r"Machine \S+ is left out: it cannot play: .* No module named 'onlyhere' \(line 1\)$"
        ),
    ):
        of.run({"needy": f"{tmp_path}/needy.py:play"}, tiny_trials(1), tmp_path / "run.sqlite", **on(cluster))


def test_an_address_where_nothing_listens_is_named(path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"Ray does not answer at 127\.0\.0\.1:1: "):
        of.run(["random"], tiny_trials(1), path, executor="ray=127.0.0.1:1")
    assert not list(path.parent.iterdir())  # no file with cells that nobody plays
    of.run(["random"], tiny_trials(1), path)
    of.run(["random"], tiny_trials(1), path, executor="ray=127.0.0.1:1")  # nothing is left to play
    with pytest.raises(InvalidInput, match="does not answer"):
        of.run(["random"], tiny_trials(2), path, executor="ray=127.0.0.1:1")
    with Run(path) as run:
        assert run.counts().planned == 1


def test_shards_of_a_table_are_counted_by_machines(
    cluster: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = sum_rows(Rows(*np.random.default_rng(0).integers(0, 30, (3, 5000)), np.ones(5000, np.int64)))
    write_table(make_table([rows], ordered=True), tmp_path / "table.parquet")
    import ray

    words = ["objectives", str(tmp_path / "table.parquet"), "--num-obs", "30", "--json"]
    said = []
    for more in ([], ["--executor", f"ray={cluster.address}"]):
        assert run_command([*words, *more]) == 0
        said.append(json.loads(capsys.readouterr().out)["values"])
    assert said[0] == said[1]
    ray.init(address=cluster.address, log_to_driver=False)
    try:
        found = evaluate_shards(tmp_path / "table.parquet", map_over_ray, num_obs=30)
        with pytest.raises(InvalidInput, match="no-such-file"):
            list(map_over_ray(count_shard, [Shard(tmp_path / "no-such-file", 0, 9)]))
    finally:
        ray.shutdown()
    assert found.values == evaluate_file(tmp_path / "table.parquet", num_obs=30).values
