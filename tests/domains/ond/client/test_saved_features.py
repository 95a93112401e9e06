"""Features and attributes are saved as they were; pickles are read only if allowed, and run nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from openfield.domains.ond.client.saved_features import AttributeStore, merge_features, read_features, write_features
from openfield.errors import AgentProtocol, InvalidInput


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

    bomb = b"\x80\x04K\x01r\xff\xff\xff\x3f."  # a memo with a place for 2^30 values
    named = pickle.dumps({"features_dict": Evil()})
    for content in (named, b"cposix\nsystem\n(S'touch x'\ntR.", b"junk", b"", bomb):
        path.write_bytes(content)
        with pytest.raises(InvalidInput, match="cannot be read as a pickle"):
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
