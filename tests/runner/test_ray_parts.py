"""What travels to machines, what agents need there, and the folder that slots share: without a cluster."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import Any

import pytest

import openfield as of
from openfield.errors import DamagedRun, InvalidInput
from openfield.runner.cluster import (
    Cluster,
    Needs,
    assign_resources,
    choose_workers,
    parse_resources,
    read_kept_resources,
    read_needs,
)
from openfield.runner.plan import make_plan
from openfield.runner.ray import connection
from openfield.runner.ray.shipment import Shipment, find_path, is_everywhere, pack_shipment, write_agent
from openfield.runner.ray.slot import MachineFolder
from openfield.runner.run import read_plan
from openfield.trial import with_places
from support.worlds import tiny_trials


def test_what_cannot_travel_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"The agent 'mine' .* cannot be sent to other machines"):
        write_agent("mine", lambda turn: None)


def test_a_refused_agent_leaves_no_run_file(path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be sent to other machines"):
        of.run([lambda turn: None], tiny_trials(1), path, executor="ray=127.0.0.1:1")
    assert not path.exists()


def test_a_cluster_on_the_loopback_address_is_looked_for_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless it also listens where other machines look for it: then Ray finds it there."""
    assert not connection.is_only_on_loopback("10.0.0.5:6379")
    assert not connection.is_only_on_loopback("auto")
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        monkeypatch.setattr(connection, "_find_own_address", lambda: "127.0.0.2")
        assert connection.is_only_on_loopback(address)
        monkeypatch.setattr(connection, "_find_own_address", lambda: "127.0.0.1")
        assert not connection.is_only_on_loopback(address)


def test_executors_are_chosen_by_name() -> None:
    assert choose_workers(3) == 3
    assert choose_workers(3, "ray") == Cluster()
    assert choose_workers(3, "ray=10.0.0.1:6379") == Cluster("10.0.0.1:6379")
    for wrong in ("ray=", "rays", "ray://10.0.0.1", "ray=ray://10.0.0.1:10001"):
        with pytest.raises(InvalidInput):
            choose_workers(3, wrong)


def test_needs_are_options_of_ray_and_fit_some_machines() -> None:
    needs = read_needs("a", {"num_gpus": 0.5, "arm": 1})
    assert needs.options == {"num_cpus": 1.0, "num_gpus": 0.5, "resources": {"arm": 1}}
    assert needs.fit({"CPU": 1.0, "GPU": 1.0, "arm": 2.0})
    assert not needs.fit({"CPU": 1.0, "GPU": 1.0})
    assert not Needs(cpus=2).fit({"CPU": 1.0})


@pytest.mark.parametrize("resources", [{"num_gpus": 1.5}, {"num_cpus": 0}, {"arm": -1}, {"arm": float("inf")}])
def test_amounts_that_are_none_are_refused(resources: dict[str, float]) -> None:
    with pytest.raises(InvalidInput, match="The agent 'a' needs"):
        read_needs("a", resources)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("memory", "Ray gives out no memory here"),
        ("object_store_memory", "Ray gives out no object_store_memory here"),
        ("GPU", "write num_gpus=1"),
        ("cpus", "write num_cpus=1"),
    ],
)
def test_names_of_ray_are_no_resources_of_an_agent(name: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=f"The agent 'a' needs {name}=1; {said}"):
        read_needs("a", {name: 1})


def test_files_of_python_and_openfield_do_not_travel() -> None:
    """A part of the standard library on a machine would hide the rest of it."""
    import xml.dom

    assert is_everywhere(Path(xml.dom.__file__).resolve())
    assert is_everywhere(Path(of.__file__).resolve())
    assert not is_everywhere(Path(__file__).resolve())
    plan = make_plan("random", of.trials("birds", 1, training=1, before=1, after=1))
    assert pack_shipment(plan, ["openfield.domains.birds:DOMAIN"]).files == {}


def test_files_keep_their_places_below_the_folder_of_a_machine(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    shipment = Shipment({"/home/me/a.py": b"1", "/home/me/w.pt": b"2"}, "/home/me", ("/home/me",))
    shipment.unpack(tmp_path)
    shipment.enter(tmp_path)
    assert (tmp_path / "home/me/a.py").read_bytes() == b"1"
    assert Path.cwd() == tmp_path / "home/me"
    assert str(tmp_path / "home/me") in sys.path
    moved = shipment.move("/home/me/a.py:Net(nested=[/home/me/w.pt, other.pt], size=3)", tmp_path)
    assert moved == f"{tmp_path}/home/me/a.py:Net(nested=[{tmp_path}/home/me/w.pt, other.pt], size=3)"
    assert shipment.move("process:python /home/me/a.py", tmp_path) == f"process:python {tmp_path}/home/me/a.py"
    assert shipment.move("random", tmp_path) == "random"
    assert shipment.move("control:counter", tmp_path) == "control:counter"


def test_settings_name_the_places_of_files_on_a_machine(tmp_path: Path) -> None:
    shipment = Shipment({"/data/levels/1.xml": b"", "/data/wrap.py": b""}, "/data", ())
    settings = {"levels": "/data/levels", "wrappers": ["/data/wrap.py:Dim"], "other": "/data/none", "count": 3}
    trial = of.Trial(domain="tiny", version=1, seed=0, phases=(), settings=settings)
    places = shipment.find_places(trial, tmp_path)
    assert places == {"/data/levels": f"{tmp_path}/data/levels", "/data/wrap.py:Dim": f"{tmp_path}/data/wrap.py:Dim"}
    moved = with_places(trial, places)
    assert moved.id == trial.id
    assert moved.settings["levels"] == places["/data/levels"]
    assert moved.settings["wrappers"] == [f"{tmp_path}/data/wrap.py:Dim"]
    assert with_places(trial, {}) is trial


def test_a_setting_names_a_path_only_if_it_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "beside.txt").write_text("")
    monkeypatch.chdir(work)
    assert find_path("../beside.txt") == find_path(f"{tmp_path}/beside.txt") == tmp_path / "beside.txt"
    for text in ("", ".", "..", "/", str(tmp_path), "digits", "a\0b"):
        assert find_path(text) is None


def test_words_say_what_agents_need() -> None:
    assert parse_resources(["num_gpus=1,arm=2", "mine.py:Net:num_cpus=0.5"]) == {
        "": {"num_gpus": 1.0, "arm": 2.0},
        "mine.py:Net": {"num_cpus": 0.5},
    }
    assert assign_resources(["a", "b"], {"a": {"num_gpus": 1}}, {"": {"num_cpus": 2}, "b": {"num_cpus": 3}}) == {
        "a": {"num_gpus": 1, "num_cpus": 2},
        "b": {"num_cpus": 3},
    }
    for wrong in ("num_gpus", "num_gpus=", "=1", "a:", "num_gpus=many"):
        with pytest.raises(InvalidInput, match="--resources takes"):
            parse_resources([wrong])
    with pytest.raises(InvalidInput, match="an agent 'c', which does not play"):
        assign_resources(["a"], {"c": {"num_cpus": 1}})
    with pytest.raises(DamagedRun, match="resources"):
        read_kept_resources({"resources": "[]"})


def test_a_run_file_keeps_what_agents_need(path: Path) -> None:
    of.run(["random"], tiny_trials(1), path, resources={"random": {"num_gpus": 1}})
    assert read_plan(path).resources == {"random": {"num_gpus": 1.0}}


def test_the_last_slot_that_leaves_a_machine_removes_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one fills it; what that found is known to the others."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folders, filled = [MachineFolder("run") for _ in range(3)], list[int]()
    assert [each.fill(lambda: filled.append(1) or "missing") for each in folders] == ["missing"] * 3  # type: ignore[func-returns-value]
    assert filled == [1]
    for folder in folders[:2]:
        folder.leave()
        assert folders[2].path.exists()
    folders[2].leave()
    assert not list(tmp_path.iterdir())
