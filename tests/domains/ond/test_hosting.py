"""Agents written for the original client, with its package beside ours: hosted unchanged, resumed, kept, told apart."""

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
from openfield.domains.ond.client.saved_features import AttributeStore, merge_features, read_features, write_features
from openfield.errors import AgentProtocol, InvalidInput
from support.ond.protocol import OTHER, TEST, Client, write_test
from support.places import SUPPORT

BESIDE = SUPPORT / "ond" / "beside"


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The original's package is installed, and there is a module of agents that import it."""
    before = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] in NAMES}
    monkeypatch.syspath_prepend(str(BESIDE))
    monkeypatch.chdir(tmp_path)
    for name in (TEST, OTHER):
        write_test(tmp_path / "data", name)
    assert not register_stubs()
    import guests

    guests.CALLS.clear()
    yield guests.CALLS
    for name in [name for name in sys.modules if name.split(".")[0] in NAMES]:
        del sys.modules[name]
    sys.modules.update(before)


NAMES = ("sail_on_client", "guests")


def run(*words: str) -> int:
    return run_command(["run", "ond", "--server", "here", "-o", "run.sqlite", "--set", "data=data", *words])


def numbers(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    return msgspec.json.decode(capsys.readouterr().out)


def test_agents_with_the_originals_base_classes_are_told_against_a_reaction_baseline(calls, capsys) -> None:
    agents = ["-a", "guests:Learner", "-a", "guests:Reaction", "--set", "baseline=Reaction", "--set", "save=scores"]
    assert run(*agents) == 0
    found = numbers(capsys)
    assert set(found) == {"Learner"}
    assert found["Learner"][TEST]["m_nrp"]["M_nrp_post_top1"] == pytest.approx(100 * 0.28571 / 0.25)
    assert calls.count("Learner.adapt") == 6
    assert calls.count("Reaction.initialize") == 2
    saved = msgspec.json.decode(Path(f"scores/{TEST}_Learner.json").read_bytes())
    assert len(saved["m_acc_round_wise"]) == 6


def test_a_baseline_alone_is_told_by_its_session(calls, capsys) -> None:
    assert run("-a", "guests:Reaction", "--set", "baseline=Reaction", "--set", "save=scores") == 0
    alone = numbers(capsys)["Reaction"]
    assert set(alone) == {TEST, OTHER}
    assert "not scored itself" in alone[TEST]["note"]
    assert not Path("scores").exists()
    assert run("-a", "guests:Learner") == 0
    capsys.readouterr()
    client = Client(Path("data"), Path("run.sqlite"))
    session = next(group.id for group in client.dispatcher.groups.values() if group.agent.startswith("Learner"))
    asked = {"session_id": session, "test_id": TEST, "baseline_session_id": alone[TEST]["baseline_session_id"]}
    found = client.ask("GET", "/session/evaluations", params=asked).json()
    assert found["m_nrp"]["M_nrp_post_top1"] == pytest.approx(100 * 0.28571 / 0.25)
    client.close()


def test_files_of_features_are_joined(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_features(Path("a.npz"), ({"x": np.zeros(2), "y": np.zeros(2)}, {"x": np.zeros(1), "y": np.zeros(1)}))
    write_features(Path("b.npz"), ({"y": np.ones(2)}, {"y": np.ones(1)}))
    assert run_command(["merge", "a.npz", "b.npz", "-o", "c.npz"]) == 0
    assert capsys.readouterr().out == "2 samples in c.npz\n"
    features, logits = read_features(Path("c.npz"))
    assert (features["x"].tolist(), features["y"].tolist(), logits["y"].tolist()) == ([0, 0], [1, 1], [1])
    Path("d.npz").write_bytes(b"junk")
    Path("e.pkl").write_bytes(b"junk")
    for wrong in (["a.npz", "missing.npz"], ["d.npz"], ["e.pkl"], ["e.pkl", "--pickles"]):
        assert run_command(["merge", *wrong, "-o", "f.npz"]) == 2
        assert "Traceback" not in capsys.readouterr().err
    assert run_command(["merge", "a.npz", "-o", "a.npz/under"]) == 2
    assert not Path("f.npz").exists()


def test_an_older_agent_adapts_by_its_own_spelling(calls, capsys) -> None:
    assert run("-a", "guests:Silent", "--set", f"tests={TEST}") == 0
    assert calls.count("Silent.adapt") == 3


@pytest.mark.parametrize("stated", ["CONDDA", "OND", None])
def test_clusters_are_posted_in_every_round_and_scored(calls, capsys, tmp_path: Path, stated: str | None) -> None:
    write_test(tmp_path / "data", "CONDDA.1.0.0", protocol=stated)
    (tmp_path / "data/CONDDA").mkdir()
    folder = (tmp_path / "data/OND/image_classification").rename(tmp_path / "data/CONDDA/image_classification")
    assert run("-a", "guests:Clusterer", "--set", "protocol=CONDDA", "--set", "tests=CONDDA.1.0.0") == 0
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
    assert run("-a", f"guests:{agent}", "--set", f"tests={TEST}") != 0
    told = capsys.readouterr().err
    assert said in told
    assert "Traceback" not in told
    session = told.rpartition(f"resume={agent}:")[2].strip(" .\n")
    assert run("-a", f"{agent}=guests:Learner", "--set", f"tests={TEST}", "--set", f"resume={agent}:{session}") == 0
    assert "m_acc" in numbers(capsys)[agent][TEST]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--set", "nonsense=1"], "cannot be made from the settings given (nonsense)"),
        (["--set", "skip=WorldDetektion"], "Did you mean 'WorldDetection'"),
        (["--set", "baseline=Larner"], "Did you mean 'Learner'"),
        (["--set", "attributes=kept", "--set", "keep=WorldDetection.nothing"], "no attribute 'nothing'"),
        (["--set", "attributes=kept", "--set", "keep=WorldDetection.seen", "--set", "use_attributes=true"], "no attri"),
    ],
)
def test_settings_that_mean_nothing_are_told(calls, capsys, words: list[str], said: str) -> None:
    assert run("-a", "guests:Learner", *words) != 0
    told = capsys.readouterr().err
    assert said in told
    assert "Traceback" not in told


def test_a_run_file_is_for_the_server_here(calls, capsys) -> None:
    assert run_command(["run", "ond", "--server", "http://127.0.0.1:9", "-a", "guests:Learner", "-o", "x.sqlite"]) == 2
    assert "--server here" in capsys.readouterr().err


def test_features_are_extracted_once_and_kept_for_all_tests(calls, capsys) -> None:
    keep = ["-a", "guests:Learner", "--set", "features=kept", "--set", "consolidated=true"]
    assert run(*keep) == 0
    assert calls.count("Learner.features") == 6
    assert [path.name for path in Path("kept").iterdir()] == ["Learner_features.npz"]
    assert run(*keep) == 0
    assert calls.count("Learner.features") == 6
    assert run("-a", "guests:Learner", "--set", "features=only", "--set", "extract_only=true") == 0
    assert len(list(Path("only").iterdir())) == 2


def test_attributes_are_kept_and_given_back_round_by_round(calls, capsys) -> None:
    import guests

    keep = ["--set", "attributes=kept", "--set", "keep=WorldDetection.seen+WorldDetection.trace+Initialize.scale"]
    assert run("-a", "guests:Learner", "--set", f"tests={TEST}", *keep) == 0
    made: list[Any] = []
    guests.Learner.from_config = classmethod(lambda cls, config: made.append(cls(**config)) or made[-1])
    assert run("-a", "guests:Learner", "--set", f"tests={TEST}", *keep, "--set", "use_attributes=true") == 0
    rounds = made[0].restored
    assert [sorted(seen) for seen, _ in rounds] == [
        sorted(f"{TEST}-{at}.png" for at in range(number * 10, number * 10 + 10)) for number in range(3)
    ]
    assert [trace for _, trace in rounds] == [[0] * 10, [1] * 10, [2] * 10]


def test_attributes_grow_by_their_kind(tmp_path: Path) -> None:
    agent = type("Agent", (), {})()
    store = AttributeStore(tmp_path, {"S": ("d", "l", "t", "a", "x")})
    for number in range(2):
        agent.d, agent.l, agent.t = {f"k{number}": 1}, [number], (number,)
        agent.a, agent.x = np.full((2, 2), number), f"last {number}"
        store.collect(agent, "S")
    store.write("test")
    again = AttributeStore(tmp_path, {"S": ("d", "l", "t", "a", "x")})
    again.read("test")
    again.restore(agent, "S", 1, ["k1"])
    assert (agent.d, agent.l, agent.t, agent.x) == ({"k1": 1}, [1], (1,), "last 1")
    assert agent.a.tolist() == [[0, 0]]  # one row, as a round of one sample has
    again.restore(agent, "S", 1, ["k0", "k1"])  # a round's samples begin where those before it ended
    assert (agent.l, agent.a.tolist()) == ([1], [[0, 0], [1, 1]])
    agent.d = {"k": object()}
    store.collect(agent, "S")
    with pytest.raises(AgentProtocol, match="object"):
        store.write("test")
    with pytest.raises(InvalidInput, match="no attributes"):
        again.read("another")


def test_old_pickles_are_read_only_when_allowed_and_run_nothing(tmp_path: Path) -> None:
    import pickle

    path, ran = tmp_path / "T_a_features.pkl", tmp_path / "ran"
    kept = {"features_dict": {"x": np.arange(3.0)}, "logit_dict": {"x": np.float32(2), "y": [1, 2]}}
    for protocol in (2, 4, 5):
        path.write_bytes(pickle.dumps(kept, protocol))
        features, logits = read_features(path, pickles=True)
        assert features["x"].tolist() == [0, 1, 2]
        assert (logits["x"], logits["y"]) == (2, [1, 2])
    with pytest.raises(InvalidInput, match="pickles=true"):
        read_features(path)

    class Evil:
        def __reduce__(self):
            return (Path.touch, (ran,))

    for content in (pickle.dumps({"features_dict": Evil()}), b"cposix\nsystem\n(S'touch x'\ntR.", b"junk", b""):
        path.write_bytes(content)
        with pytest.raises(InvalidInput, match=r"is not read|cannot be read"):
            read_features(path, pickles=True)
    assert not ran.exists()


def test_files_of_features_are_merged_the_later_one_winning(tmp_path: Path) -> None:
    parts = []
    for number in range(2):
        parts.append(tmp_path / f"{number}.npz")
        write_features(parts[-1], ({f"id{number}": np.ones(2), "both": np.full(2, number)}, {"both": np.zeros(3)}))
    assert merge_features(parts, tmp_path / "all.npz") == 3
    features, logits = read_features(tmp_path / "all.npz")
    assert features["both"].tolist() == [1, 1]
    assert sorted(features) == ["both", "id0", "id1"]
    assert list(logits) == ["both"]
    (tmp_path / "junk.npz").write_bytes(b"PK junk")
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_features(tmp_path / "junk.npz")


def test_features_of_any_shape_are_kept_and_what_cannot_be_is_told(calls, capsys, caplog) -> None:
    import guests

    def ragged(self: Any, toolset: dict[str, Any]) -> Any:
        calls.append("ragged")
        ids = Path(toolset["dataset"]).read_text().split()
        return {key: np.ones((at % 3 + 1, 2)) for at, key in enumerate(ids)}, {}

    guests.Learner.feature_extraction = ragged
    keep = ["-a", "guests:Learner", "--set", f"tests={TEST}", "--set", "features=kept"]
    assert run(*keep) == run(*keep) == 0
    assert calls.count("ragged") == 3
    guests.Learner.feature_extraction = lambda self, toolset: (
        {key: object() for key in Path(toolset["dataset"]).read_text().split()},
        {},
    )
    assert run("-a", "guests:Learner", "--set", f"tests={TEST}", "--set", "features=other") == 0
    assert "not everything was saved: the features hold a value of type object" in caplog.text
