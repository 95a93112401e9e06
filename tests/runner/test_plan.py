from __future__ import annotations

import pickle
import subprocess
import sys

import msgspec
import pytest

from openfield.cell import Cell, cell_id
from openfield.errors import InvalidInput
from openfield.parameters import read_agent
from openfield.runner.plan import make_cells, name_agents, settle_agent
from openfield.trial import derive
from support.players import Learner, Redriven, copycat
from support.worlds import tiny_trials


def test_cells_go_trial_by_trial() -> None:
    trials = tiny_trials(2)
    cells = make_cells(["ada", "bob"], trials, repeats=2)
    assert [(cell.agent, cell.trial, cell.repeat) for cell in cells] == [
        (agent, trial, repeat) for trial in trials for repeat in range(2) for agent in ("ada", "bob")
    ]
    assert len({cell.id for cell in cells}) == 8
    assert len({cell.seed for cell in cells}) == 8


def test_the_same_trial_twice_is_one_cell() -> None:
    assert len(make_cells(["ada"], tiny_trials(1) * 2)) == 1


def test_ids_and_seeds_are_the_same_in_every_form_and_process() -> None:
    (cell,) = make_cells(["ada"], tiny_trials(1, seed=3, length=4))
    copies = [pickle.loads(pickle.dumps(cell)), msgspec.json.decode(msgspec.json.encode(cell), type=Cell)]
    read = "import msgspec, sys; from openfield.cell import Cell"
    read += "; c = msgspec.json.decode(sys.stdin.read(), type=Cell)"
    code = f"{read}; print(c.id, c.trial.id, c.seed)"
    words = [sys.executable, "-I", "-c", code]
    output = subprocess.run(words, input=msgspec.json.encode(cell), capture_output=True, check=True).stdout
    assert output.decode().split() == [cell.id, cell.trial.id, str(cell.seed)]
    for copy in copies:
        assert (copy.id, copy.trial.id, copy.seed) == (cell.id, cell.trial.id, cell.seed)


def test_ids_stay_what_they_were() -> None:
    """Run files hold them: whoever changes how they are made must say so in the file's format."""
    assert cell_id("ada", "0123456789ab", 0) == "978642076636"
    assert derive(0, "agent", "ada", 0) == 3461777386823331899


def test_a_cell_after_another_has_the_same_agent_and_repeat() -> None:
    first, second = tiny_trials(2)
    later = msgspec.structs.replace(second, after=first.id)
    cells = {cell.id: cell for cell in make_cells(["ada", "bob"], [later, first], repeats=2)}
    for cell in cells.values():
        if cell.after is not None:
            assert (cells[cell.after].agent, cells[cell.after].repeat) == (cell.agent, cell.repeat)
    with pytest.raises(InvalidInput, match="which is not in the plan"):
        make_cells(["ada"], [later])


def test_agents_are_named_after_what_they_are() -> None:
    instance = Redriven(None, 0)
    named = name_agents(["random", Learner, copycat, instance])
    assert named == {"random": read_agent("random"), "Learner": Learner, "copycat": copycat, "Redriven": instance}
    assert name_agents({"one": copycat, "two": copycat}) == {"one": copycat, "two": copycat}
    with pytest.raises(InvalidInput, match="Two agents are called '<lambda>'"):
        name_agents([lambda turn: None, lambda turn: None])
    with pytest.raises(InvalidInput, match="no agent to evaluate"):
        name_agents([])


def test_only_what_another_process_can_import_has_a_text() -> None:
    instance = Learner(None, 0)
    assert str(settle_agent(read_agent("process:cat"))) == "process:cat"
    assert str(settle_agent(Learner)) == "support.players:Learner"
    assert str(settle_agent(copycat)) == "support.players:copycat"
    for nameless in (lambda turn: None, instance, instance.__call__, instance.load):
        assert settle_agent(nameless) is None
