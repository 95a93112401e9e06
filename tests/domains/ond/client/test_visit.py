"""Agents of the original client play tests of a server, unchanged, with its package installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from openfield.cli import run_command
from openfield.domains.ond.client.original_client import register_stubs
from openfield.domains.ond.client.rest_client import RestClient
from support.ond.protocol import OTHER, TEST, Client, write_test
from support.places import SUPPORT

PACKAGE = SUPPORT / "ond" / "original_package"


NAMES = ("sail_on_client", "step_agents")


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The original's package is installed, and there is a module of agents that import it."""
    before = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] in NAMES}
    monkeypatch.syspath_prepend(str(PACKAGE))
    monkeypatch.chdir(tmp_path)
    for name in (TEST, OTHER):
        write_test(tmp_path / "data", name)
    assert not register_stubs()
    import step_agents

    step_agents.CALLS.clear()
    yield step_agents.CALLS
    for name in [name for name in sys.modules if name.split(".")[0] in NAMES]:
        del sys.modules[name]
    sys.modules.update(before)


def run(*words: str) -> int:
    return run_command(["run", "ond", "--server", "here", "-o", "run.sqlite", "--set", "data=data", *words])


def numbers(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    return msgspec.json.decode(capsys.readouterr().out)


def test_the_command_plays_on_a_server(served: RestClient, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from sail_on_client.agent.ond_agent import ONDAgent\n"
        "from support.ond.original_agents import Executor\n"
        "class Mine(Executor, ONDAgent):\n"
        "    def __init__(self, **config):\n"
        "        super().__init__(config)\n"
    )
    words = ["run", "ond", "--server", str(served._http.base_url), "-a", f"{tmp_path}/mine.py:Mine", "--trials", "1"]
    assert run_command(words) == 0
    assert "m_acc" in capsys.readouterr().out
    assert run_command(["run", "ond", "--server", "http://127.0.0.1:9", "-a", "knn"]) == 2


def test_agents_with_the_originals_base_classes_are_told_against_a_reaction_baseline(calls, capsys) -> None:
    agents = [
        "-a",
        "step_agents:Learner",
        "-a",
        "step_agents:Reaction",
        "--set",
        "baseline=Reaction",
        "--set",
        "save=scores",
    ]
    assert run(*agents) == 0
    found = numbers(capsys)
    assert set(found) == {"Learner"}
    assert found["Learner"][TEST]["m_nrp"]["M_nrp_post_top1"] == pytest.approx(100 * 0.28571 / 0.25)
    assert calls.count("Learner.adapt") == 6
    assert calls.count("Reaction.initialize") == 2
    saved = msgspec.json.decode(Path(f"scores/{TEST}_Learner.json").read_bytes())
    assert len(saved["m_acc_round_wise"]) == 6


def test_a_baseline_alone_is_told_by_its_session(calls, capsys) -> None:
    assert run("-a", "step_agents:Reaction", "--set", "baseline=Reaction", "--set", "save=scores") == 0
    alone = numbers(capsys)["Reaction"]
    assert set(alone) == {TEST, OTHER}
    assert "not scored itself" in alone[TEST]["note"]
    assert not Path("scores").exists()
    assert run("-a", "step_agents:Learner") == 0
    capsys.readouterr()
    client = Client(Path("data"), Path("run.sqlite"))
    session = next(group.id for group in client.dispatcher.groups.values() if group.agent.startswith("Learner"))
    asked = {"session_id": session, "test_id": TEST, "baseline_session_id": alone[TEST]["baseline_session_id"]}
    found = client.ask("GET", "/session/evaluations", params=asked).json()
    assert found["m_nrp"]["M_nrp_post_top1"] == pytest.approx(100 * 0.28571 / 0.25)
    client.close()


def test_an_older_agent_adapts_by_its_own_spelling(calls, capsys) -> None:
    assert run("-a", "step_agents:Silent", "--set", f"tests={TEST}") == 0
    assert calls.count("Silent.adapt") == 3


@pytest.mark.parametrize("stated", ["CONDDA", "OND", None])
def test_clusters_are_posted_in_every_round_and_scored(calls, capsys, tmp_path: Path, stated: str | None) -> None:
    write_test(tmp_path / "data", "CONDDA.1.0.0", protocol=stated)
    (tmp_path / "data/CONDDA").mkdir()
    folder = (tmp_path / "data/OND/image_classification").rename(tmp_path / "data/CONDDA/image_classification")
    assert run("-a", "step_agents:Clusterer", "--set", "protocol=CONDDA", "--set", "tests=CONDDA.1.0.0") == 0
    assert folder.is_dir()
    found = numbers(capsys)["Clusterer"]["CONDDA.1.0.0"]
    assert "m_acc" not in found  # it classifies nothing
    assert found["m_num_stats"]["P_indx_0.5"] == 1
    assert found["m_clusters"] == {
        "nmi": 1,
        "ari": 1,
        "purity": 1,
        "accuracy": 1,
    }  # one cluster, of the one novel class


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        ("Greedy", "NoveltyAdaptation: the agent raised ValueError: Feedback on 9 samples asked for; the budget is 3"),
        ("Lost", "classification results cannot be read"),
        ("Failing", "round 1, FeatureExtraction: the agent raised ServerError: no picture"),
    ],
)
def test_what_goes_wrong_in_an_agent_is_told_and_the_session_can_be_resumed(calls, capsys, agent, said: str) -> None:
    assert run("-a", f"step_agents:{agent}", "--set", f"tests={TEST}") != 0
    told = capsys.readouterr().err
    assert said in told
    assert "Traceback" not in told
    session = told.rpartition(f"resume={agent}:")[2].strip(" .\n")
    assert (
        run("-a", f"{agent}=step_agents:Learner", "--set", f"tests={TEST}", "--set", f"resume={agent}:{session}") == 0
    )
    assert "m_acc" in numbers(capsys)[agent][TEST]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--set", "nonsense=1"], "cannot be made from the parameters given (nonsense)"),
        (["--set", "skip=WorldDetektion"], "Did you mean 'WorldDetection'"),
        (["--set", "baseline=Larner"], "Did you mean 'Learner'"),
        (["--set", "attributes=kept", "--set", "keep=WorldDetection.nothing"], "no attribute 'nothing'"),
        (["--set", "attributes=kept", "--set", "keep=WorldDetection.seen", "--set", "use_attributes=true"], "no attri"),
    ],
)
def test_settings_that_mean_nothing_are_told(calls, capsys, words: list[str], said: str) -> None:
    assert run("-a", "step_agents:Learner", *words) != 0
    told = capsys.readouterr().err
    assert said in told
    assert "Traceback" not in told


def test_a_run_file_is_for_the_server_here(calls, capsys) -> None:
    assert (
        run_command(["run", "ond", "--server", "http://127.0.0.1:9", "-a", "step_agents:Learner", "-o", "x.sqlite"])
        == 2
    )
    assert "only with the server `here`" in capsys.readouterr().err


def test_features_are_extracted_once_and_kept_for_all_tests(calls, capsys) -> None:
    keep = ["-a", "step_agents:Learner", "--set", "features=kept", "--set", "consolidated=true"]
    assert run(*keep) == 0
    assert calls.count("Learner.features") == 6
    assert [path.name for path in Path("kept").iterdir()] == ["Learner_features.npz"]
    assert run(*keep) == 0
    assert calls.count("Learner.features") == 6
    assert run("-a", "step_agents:Learner", "--set", "features=only", "--set", "extract_only=true") == 0
    assert len(list(Path("only").iterdir())) == 2


def test_attributes_are_kept_and_given_back_round_by_round(calls, capsys) -> None:
    import step_agents

    keep = ["--set", "attributes=kept", "--set", "keep=WorldDetection.seen+WorldDetection.trace+Initialize.scale"]
    assert run("-a", "step_agents:Learner", "--set", f"tests={TEST}", *keep) == 0
    made: list[Any] = []
    step_agents.Learner.from_config = classmethod(lambda cls, config: made.append(cls(**config)) or made[-1])
    assert run("-a", "step_agents:Learner", "--set", f"tests={TEST}", *keep, "--set", "use_attributes=true") == 0
    rounds = made[0].restored
    assert [sorted(seen) for seen, _ in rounds] == [
        sorted(f"{TEST}-{at}.png" for at in range(number * 10, number * 10 + 10)) for number in range(3)
    ]
    assert [trace for _, trace in rounds] == [[0] * 10, [1] * 10, [2] * 10]


def test_features_of_any_shape_are_kept_and_what_cannot_be_is_told(calls, capsys, caplog) -> None:
    import step_agents

    def ragged(self: Any, toolset: dict[str, Any]) -> Any:
        calls.append("ragged")
        ids = Path(toolset["dataset"]).read_text().split()
        return {key: np.ones((at % 3 + 1, 2)) for at, key in enumerate(ids)}, {}

    step_agents.Learner.feature_extraction = ragged
    keep = ["-a", "step_agents:Learner", "--set", f"tests={TEST}", "--set", "features=kept"]
    assert run(*keep) == run(*keep) == 0
    assert calls.count("ragged") == 3
    step_agents.Learner.feature_extraction = lambda self, toolset: (
        {key: object() for key in Path(toolset["dataset"]).read_text().split()},
        {},
    )
    assert run("-a", "step_agents:Learner", "--set", f"tests={TEST}", "--set", "features=other") == 0
    assert "not everything was saved: the features hold a value of type object" in caplog.text


def test_visit_is_a_command_of_the_domain(calls, capsys) -> None:
    settings = ["--set", "data=data", "--set", f"tests={TEST}"]
    assert run("-a", "step_agents:Learner", "--set", f"tests={TEST}") == 0
    wanted = numbers(capsys)
    assert run_command(["ond", "visit", "here", "-a", "step_agents:Learner", "-o", "other.sqlite", *settings]) == 0
    assert numbers(capsys) == wanted
    assert run_command(["ond", "visit", "http://127.0.0.1:9", "-a", "step_agents:Learner", "-o", "x.sqlite"]) == 2
    assert "only with the server `here`" in capsys.readouterr().err
