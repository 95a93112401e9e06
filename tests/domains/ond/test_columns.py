"""Agents of ours have the unknown class first; tests that have it last are answered as they want it all the same."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from openfield.cli import run_command
from openfield.core import Belief, Reply, Turn
from openfield.domains.ond import DOMAIN
from openfield.domains.ond.actions import Buy, NextBatch, Scores
from openfield.domains.ond.agents.builtin import AdaptingAgent, NearestAgent
from openfield.domains.ond.settings import OndSettings
from openfield.domains.ond.testset.builder import write_tests
from openfield.domains.ond.testset.evaluation import evaluate
from openfield.domains.ond.testset.sheet import Shelf
from openfield.domains.ond.testset.unknown_column import number_from_one, put_unknown_last
from openfield.result import Result
from openfield.rollout import Rollout, drive

KNOWN = 6


@pytest.fixture
def videos(tmp_path: Path) -> tuple[Path, str]:
    return write_videos(tmp_path, OndSettings(training=200, round_size=20, before=3, after=4, known=KNOWN), 5)


def write_videos(tmp_path: Path, settings: OndSettings, seed: int) -> tuple[Path, str]:
    """A test of digits, and the same samples as an activity test: classes 0 to 5, and 6 is the unknown one."""
    for area in ("image_classification", "activity_recognition"):
        before = msgspec.structs.replace(settings, area=area)
        (name,) = write_tests(tmp_path, before, msgspec.structs.replace(before, new_classes=True), [seed])
    return tmp_path, name


def test_numbers_do_not_depend_on_where_the_unknown_class_stands(videos, capsys, tmp_path: Path) -> None:
    data, name = videos
    found = {}
    for area in ("image_classification", "activity_recognition"):
        words = ["run", "ond", "--server", "here", "-a", "knn", "--set", f"data={data}", "--set", f"area={area}"]
        assert run_command([*words, "-o", str(tmp_path / f"{area}.sqlite")]) == 0
        found[area] = msgspec.json.decode(capsys.readouterr().out)["knn"][name]
        (trial,) = DOMAIN.trials(data=str(data), test=name, area=area, training=1)
        world = DOMAIN.world(trial)
        drive(Rollout(world), NearestAgent(DOMAIN.spec(trial), 0))
        here = msgspec.json.decode(msgspec.json.encode(evaluate(world.ledger)))
        assert here["m_acc"]["full_top1"] == pytest.approx(found[area]["m_acc"]["full_top1"], abs=0.1)
    first, last = found.values()
    assert first["m_acc"] == last["m_acc"]
    assert first["m_acc"]["full_top1"] > 0.7
    assert first["m_ndp_unknown"] == last["m_ndp_unknown"]


def test_scores_and_bought_labels_are_turned_round() -> None:
    assert put_unknown_last([[0.5, 0.3, 0.2]]).tolist() == [[0.3, 0.2, 0.5]]
    lines = ["a,0", "|b,c|,1", "d,2", "e,9", "f,-1", "g,run,jump,sit,eat,sleep"]
    assert number_from_one(lines, 2) == ["a,1", "|b,c|,2", "d,0", "e,0", "f,0", lines[-1]]


def test_the_adapting_agent_buys_what_tells_classes(capsys, tmp_path: Path) -> None:
    data, name = write_videos(tmp_path, OndSettings(before=5, after=8, known=KNOWN), 1)
    words = ["run", "ond", "--server", "here", "--set", f"data={data}", "--set", "area=activity_recognition"]
    assert run_command([*words, "-a", "knn", "-a", "adapting", "-o", str(tmp_path / "r.sqlite")]) == 0
    scores = msgspec.json.decode(capsys.readouterr().out)
    knn, adapting = (scores[agent][name]["m_accuracy_on_novel"] for agent in ("knn", "adapting"))
    assert adapting["top1_acc_novel_only"] > knn["top1_acc_novel_only"] + 0.05


def test_an_agent_that_is_told_no_classes_stops_asking() -> None:
    (trial,) = DOMAIN.trials(1, 1)
    agent = AdaptingAgent(DOMAIN.spec(trial), 1)
    agent._ids, agent._features, agent._rarities = ["a"], np.ones((1, 3)), np.ones(1)
    agent._highest, agent._threshold = 1.0, 1.0
    asked, seen = [], {"round": 0, "answered": True}
    answer = None
    while isinstance(action := agent.after_batch(Turn(observation=seen, feedback=answer)).action, Buy):
        asked.append(action.type)
        answer = {"type": action.type, "lines": ["a,run,jump,sit,eat,sleep"]}
    assert asked == ["classification", "labels"]
    assert agent.after_batch(Turn(observation=seen)).action == NextBatch()


@pytest.mark.parametrize("renamed", [True, False], ids=["as nonnovel_classes", "not stated"])
def test_agents_know_how_many_classes_there_are_where_metadata_do_not_say(videos, capsys, renamed: bool) -> None:
    data, name = videos
    for area in ("image_classification", "activity_recognition"):
        path = data / f"OND/{area}/{name}_metadata.json"
        facts = msgspec.json.decode(path.read_bytes())
        count = facts.pop("known_classes")
        facts |= {"known_classes": None, "feedback_max_ids": None, "pre_novelty_batches": None}
        facts |= {"nonnovel_classes": count} if renamed else {"unknown_index": 0 if area[0] == "i" else count}
        path.write_bytes(msgspec.json.encode(facts))
        words = ["run", "ond", "--server", "here", "-a", "knn", "--set", f"data={data}", "--set", f"area={area}"]
        assert run_command([*words, "-o", str(data / f"{area}.sqlite")]) == 0
        assert msgspec.json.decode(capsys.readouterr().out)["knn"][name]["m_acc"]["full_top1"] > 0.7
        shown = Shelf(data).load("OND", area, name)[0].shown(red_light=False)
        assert None not in shown.values()
        assert shown.get("known_classes") == (count if renamed else None)


def test_a_test_that_departs_from_the_custom_of_its_area_says_so_and_is_answered_so(videos, capsys) -> None:
    data, name = videos
    usual = Shelf(data).load("OND", "image_classification", name)[0]
    assert "unknown_index" not in usual.shown(red_light=False)  # clients know
    folder = data / "OND/image_classification"
    rows = [f"{row[0]},{row[1]},{int(row[2]) - 1 if row[2] != '0' else KNOWN}\n" for row in usual.rows]
    (folder / f"{name}_single_df.csv").write_text("id,novel,class\n" + "".join(rows))
    (folder / f"{name}_metadata.json").write_bytes(msgspec.json.encode(usual.metadata | {"unknown_index": KNOWN}))
    assert Shelf(data).load("OND", "image_classification", name)[0].shown(False)["unknown_index"] == KNOWN
    for way in (["--server", "here"], ["--set", f"test={name}", "--set", "training=1"]):
        words = ["run", "ond", *way, "-a", "knn", "--set", f"data={data}", "--json"]
        assert run_command([*words, "-o", str(data / f"{len(way)}.sqlite")]) == 0
    told = capsys.readouterr().out
    assert msgspec.json.decode(told[: told.index("}\n{") + 1])["knn"][name]["m_acc"]["full_top1"] > 0.7
    (cell,) = Result([data / "4.sqlite"]).cells
    assert np.mean([episode.performance for episode in cell.episodes if episode.phase == "test"]) > 0.7


def test_a_local_agent_buys_labels_as_it_numbers_them(videos) -> None:
    data, name = videos
    (trial,) = DOMAIN.trials(data=str(data), test=name, area="activity_recognition", training=1)
    world = DOMAIN.world(trial)
    rollout = Rollout(world)
    rollout.reply(Reply())
    rollout.reply(Reply(Scores(np.eye(KNOWN + 1)[[0] * 20].tolist()), Belief(0.9)))  # all are called unknown
    lines = rollout.reply(Reply(Buy("labels", world.test.ids[:3]))).feedback["lines"]
    assert lines == [f"{world.test.ids[at]},{world.test.labels[at] + 1}" for at in range(3)]
