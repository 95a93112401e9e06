"""Both notebooks run from beginning to end, and show what their text speaks of."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from conftest import ROOT

NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


@pytest.fixture
def execute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a notebook in an empty folder, and returns the outputs of its cells that have some."""
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")

    def run(name: str) -> list[list[Any]]:
        notebook = nbformat.read(ROOT / "examples" / "notebooks" / f"{name}.ipynb", as_version=4)
        place = {"metadata": {"path": str(tmp_path)}}
        NotebookClient(notebook, timeout=None, kernel_name="python3", resources=place).execute()
        outputs = [cell.outputs for cell in notebook.cells if cell.cell_type == "code" and cell.outputs]
        assert not [each for found in outputs for each in found if each.get("name") == "stderr"]
        return outputs

    return run


def texts(outputs: list[Any], kind: str) -> str:
    """Return what the outputs of a cell show in one form."""
    return "\n".join(str(output.data.get(kind, "")) for output in outputs if "data" in output)


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[\d;]*m", "", text)


@pytest.mark.notebook
def test_a_policy_is_blind_and_a_detector_sees(execute: Any, tmp_path: Path) -> None:
    counts, played, numbers, frame, episodes = execute("notice_change")
    assert texts(counts, "text/plain") == "(9, 3)"
    assert re.findall(r"(\w+/\w+) episodes", plain(texts(played, "text/plain"))) == ["540/540"] * 3
    assert "<table>" in texts(played, "text/html")
    assert '<th scope="col">with surprise</th>' in texts(played, "text/html")
    assert 'class="dataframe"' in texts(numbers, "text/html")
    assert 'src="runs/cartpole.html"' in texts(frame, "text/html")
    assert (tmp_path / "runs" / "cartpole.html").read_text().count("<svg") > 4
    told = [line.split() for line in texts(episodes, "text/plain").splitlines()[1:]]
    assert {(novel, detected) for _, _, novel, _, _, detected in told} == {("False", "False"), ("True", "True")}


@pytest.mark.notebook
def test_actions_matter_less_on_slippery_ice(execute: Any, tmp_path: Path) -> None:
    played, table, frame, reasons = execute("without_reward")
    assert "<p>walker scores 0." in texts(played, "text/html")
    shown = plain(texts(table, "text/plain")).splitlines()
    agents = {line.split()[0]: list(map(float, line.split()[1:])) for line in shown[-3:]}
    before, after = agents["random"][-2:]
    assert after < before / 2
    assert agents["walker"][-2:] == agents["stubborn"][-2:] == [0, 0]
    assert agents["stubborn"][1] > 5 * agents["stubborn"][0]
    assert 'src="runs/lake.html"' in texts(frame, "text/html")
    assert "Objectives without reward" in (tmp_path / "runs" / "lake.html").read_text()
    assert "only one action was taken" in texts(reasons, "text/plain")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_kept_without_outputs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count or cell.metadata for cell in code)
    assert notebook.cells[0].source.startswith("# ")
