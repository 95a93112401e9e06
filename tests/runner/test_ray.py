"""Two machines of a Ray cluster on this one, with agents that hang, lost machines and a killed driver."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import openfield as of
from conftest import Spawn
from openfield.cell import Cell
from openfield.errors import InvalidInput
from openfield.journal.reader import Run
from openfield.record import EpisodeEnd
from openfield.runner.cluster import Cluster, choose_workers
from openfield.runner.plan import make_plan
from openfield.runner.ray.needs import Account, Needs, read_needs
from openfield.runner.ray.shipment import Shipment, is_everywhere, pack, write_agent
from openfield.runner.scheduler import CellScheduler
from openfield.trial import Limits
from support.players import FATAL_CALL, Learner, Looper, Redriven, SlowLearner, copycat
from support.stories import attempts, rows, story, wait_until
from support.worlds import tiny_trials

os.environ |= {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}  # loopback, no statistics
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what Ray imports
    pytest.importorskip("ray", reason="the extra `ray` is not installed")

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*(subprocess|unclosed).*:ResourceWarning"),  # files and processes of Ray's own
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
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


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two machines with one processor each."""
    from ray.cluster_utils import Cluster as LocalCluster

    made = LocalCluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    made.add_node(num_cpus=1)
    yield made
    made.shutdown()


@pytest.fixture
def agent(tmp_path: Path) -> str:
    """An agent in a file, with a file that it imports and one that its parameter names."""
    (tmp_path / "walker.py").write_text(FILE_AGENT)
    (tmp_path / "helper.py").write_text("STRIDE = 3\n")
    (tmp_path / "moves.txt").write_text("up down left right up right")
    return f"{tmp_path}/walker.py:Walker(step=2, table={tmp_path}/moves.txt)"


def on(cluster: Any) -> dict[str, Any]:
    return {"executor": f"ray={cluster.address}"}


def test_records_equal_those_of_one_worker(cluster: Any, tmp_path: Path, agent: str, maze: of.Domain[Any]) -> None:
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


def test_a_hanging_agent_is_ended_and_its_turns_are_kept(cluster: Any, path: Path) -> None:
    of.run([Looper, copycat], tiny_trials(1, Limits(reply_seconds=1.0)), path, **on(cluster))
    with Run(path) as run:
        found = {cell.agent: (cell.outcome, cell.steps) for cell in run.cells()}
        assert found["Looper"] == ("agent_timeout", FATAL_CALL)
        assert found["copycat"][0] == "done"
        assert run.verify() == []


@pytest.mark.filterwarnings("ignore:No machine has what the agent")  # until the next one joins
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


def test_a_killed_driver_is_resumed_where_it_was(cluster: Any, tmp_path: Path, spawn: Spawn, maze: Any) -> None:
    trials = of.trials(maze, 3, before=20, after=20)
    of.run(["random"], trials, tmp_path / "one.sqlite", workers=1)
    path = tmp_path / "ray.sqlite"
    script = tmp_path / "drive.py"
    script.write_text(
        "import openfield as of, sys\n"
        "from openfield.registry import find_domain\n"
        "trials = of.trials(find_domain('examples/maze.py'), 3, before=20, after=20)\n"
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
        pytest.raises(InvalidInput, match=r"Machine \S+ is the last .* No module named 'onlyhere'$"),
        pytest.warns(UserWarning, match=r"Machine \S+ is left out: it cannot play: .* No module named 'onlyhere'$"),
    ):
        of.run({"needy": f"{tmp_path}/needy.py:play"}, tiny_trials(1), tmp_path / "run.sqlite", **on(cluster))


def test_what_cannot_travel_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"The agent 'mine' .* cannot be sent to other machines"):
        write_agent("mine", lambda turn: None)


def test_an_address_where_nothing_listens_is_named(path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"Ray does not answer at 127\.0\.0\.1:1: "):
        of.run(["random"], tiny_trials(1), path, executor="ray=127.0.0.1:1")


def test_executors_are_chosen_by_name() -> None:
    assert choose_workers(3) == 3
    assert choose_workers(3, "ray") == Cluster()
    assert choose_workers(3, "ray=10.0.0.1:6379") == Cluster("10.0.0.1:6379")
    for wrong in ("ray=", "rays", "ray://10.0.0.1", "ray=ray://10.0.0.1:10001"):
        with pytest.raises(InvalidInput):
            choose_workers(3, wrong)


def test_an_account_gives_out_cards_and_shares_of_them() -> None:
    account = Account(4.0, 2, {"arm": 1})
    half, whole = read_needs("a", {"num_gpus": 0.5}), read_needs("b", {"num_gpus": 2})
    assert account.could_hold(whole)
    assert not account.could_hold(Needs(gpus=3))
    first = account.take(half)
    assert first is not None
    assert account.take(whole) is None
    assert account.take(half) == first  # the card that is shared already
    assert account.take(half) not in (None, first)
    account.give_back(half, first)
    assert account.cpus == 2.0
    arm = read_needs("c", {"arm": 1, "num_cpus": 0.5})
    assert account.take(arm) == ()
    assert account.take(arm) is None
    assert not arm.is_usual


@pytest.mark.parametrize("resources", [{"num_gpus": 1.5}, {"num_cpus": 0}, {"arm": -1}, {"arm": float("inf")}])
def test_amounts_that_are_none_are_refused(resources: dict[str, float]) -> None:
    with pytest.raises(InvalidInput, match="The agent 'a' needs"):
        read_needs("a", resources)


def test_files_of_python_and_openfield_do_not_travel() -> None:
    """A part of the standard library on a machine would hide the rest of it."""
    import xml.dom

    assert is_everywhere(Path(xml.dom.__file__).resolve())
    assert is_everywhere(Path(of.__file__).resolve())
    assert not is_everywhere(Path(__file__).resolve())
    plan = make_plan("random", of.trials("birds", 1, training=1, before=1, after=1))
    assert pack(plan, ["openfield.domains.birds:DOMAIN"]).files == {}


def test_files_keep_their_places_below_the_folder_of_a_machine(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    shipment = Shipment({"/home/me/a.py": b"1", "/home/me/w.pt": b"2"}, "/home/me", ("/home/me",))
    shipment.unpack(tmp_path)
    assert (tmp_path / "home/me/a.py").read_bytes() == b"1"
    assert Path.cwd() == tmp_path / "home/me"
    assert str(tmp_path / "home/me") in sys.path
    moved = shipment.move("/home/me/a.py:Net(nested=[/home/me/w.pt, other.pt], size=3)", tmp_path)
    assert moved == f"{tmp_path}/home/me/a.py:Net(nested=[{tmp_path}/home/me/w.pt, other.pt], size=3)"
    assert shipment.move("process:python /home/me/a.py", tmp_path) == f"process:python {tmp_path}/home/me/a.py"
    assert shipment.move("random", tmp_path) == "random"
    assert shipment.move("control:counter", tmp_path) == "control:counter"
