"""Openfield agents at a server: the scores of the local loop, wherever a test has its unknown class."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from openfield.cli import run_command
from openfield.core import Belief, Reply
from openfield.domains.ond import DOMAIN
from openfield.domains.ond.actions import Buy, Scores
from openfield.domains.ond.agents.builtin import AdaptingAgent, NearestAgent
from openfield.domains.ond.client.rest_client import RestClient
from openfield.domains.ond.client.turn_player import TurnPlayer
from openfield.domains.ond.client.workflow import SessionOptions
from openfield.domains.ond.settings import OndSettings
from openfield.domains.ond.testset.builder import write_tests
from openfield.domains.ond.testset.data_directory import DataDirectory
from openfield.domains.ond.testset.evaluation import evaluate_test
from openfield.result import Result
from openfield.rollout import Rollout, drive
from support.ond.serving import play_session, server


def in_process(root: Path, test: str, red_light: bool) -> dict[str, Any]:
    (trial,) = DOMAIN.trials(data=str(root), test=test, red_light=red_light, training=1, unchanged=0)
    world = DOMAIN.world(trial)
    drive(Rollout(world), AdaptingAgent(DOMAIN.spec(trial), 7))
    return evaluate_test(world.answers)


def test_both_workflows_score_the_same_over_a_socket_and_in_process(tmp_path: Path) -> None:
    settings = OndSettings(training=200, round_size=20, before=4, after=6)
    changed = msgspec.structs.replace(settings, new_classes=True)
    names = write_tests(tmp_path / "data", settings, changed, [5, 6])
    with server(tmp_path, "--data", str(tmp_path / "data"), "--scorings", "9") as (url, _), RestClient(url) as client:
        for hints in ((), ("red_light",)):
            player = TurnPlayer("adapting", lambda: AdaptingAgent(None, 7), str(tmp_path / "data"))
            visit = SessionOptions(hints=hints, save=str(tmp_path / "scores"))
            found = play_session(client, player, visit)
            assert list(found) == sorted(names)  # as the server lists them
            for name in names:
                wanted = msgspec.json.decode(msgspec.json.encode(in_process(tmp_path / "data", name, bool(hints))))
                assert {family: found[name][family] for family in wanted} == wanted
    assert (tmp_path / f"scores/{names[0]}_adapting.json").is_file()


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
        (trial,) = DOMAIN.trials(data=str(data), test=name, area=area, training=1, unchanged=0)
        world = DOMAIN.world(trial)
        drive(Rollout(world), NearestAgent(DOMAIN.spec(trial), 0))
        here = msgspec.json.decode(msgspec.json.encode(evaluate_test(world.answers)))
        assert here["m_acc"]["full_top1"] == pytest.approx(found[area]["m_acc"]["full_top1"], abs=0.1)
    first, last = found.values()
    assert first["m_acc"] == last["m_acc"]
    assert first["m_acc"]["full_top1"] > 0.7
    assert first["m_ndp_unknown"] == last["m_ndp_unknown"]


def test_the_adapting_agent_buys_what_tells_classes(capsys, tmp_path: Path) -> None:
    data, name = write_videos(tmp_path, OndSettings(before=5, after=8, known=KNOWN), 1)
    words = ["run", "ond", "--server", "here", "--set", f"data={data}", "--set", "area=activity_recognition"]
    assert run_command([*words, "-a", "knn", "-a", "adapting", "-o", str(tmp_path / "r.sqlite")]) == 0
    scores = msgspec.json.decode(capsys.readouterr().out)
    knn, adapting = (scores[agent][name]["m_accuracy_on_novel"] for agent in ("knn", "adapting"))
    assert adapting["top1_acc_novel_only"] > knn["top1_acc_novel_only"] + 0.05


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
        shown = DataDirectory(data).load("OND", area, name)[0].shown(red_light=False)
        assert None not in shown.values()
        assert shown.get("known_classes") == (count if renamed else None)


def test_a_test_that_departs_from_the_custom_of_its_area_says_so_and_is_answered_so(videos, capsys) -> None:
    data, name = videos
    usual = DataDirectory(data).load("OND", "image_classification", name)[0]
    assert "unknown_index" not in usual.shown(red_light=False)  # clients know
    folder = data / "OND/image_classification"
    rows = [f"{row[0]},{row[1]},{int(row[2]) - 1 if row[2] != '0' else KNOWN}\n" for row in usual.rows]
    (folder / f"{name}_single_df.csv").write_text("id,novel,class\n" + "".join(rows))
    (folder / f"{name}_metadata.json").write_bytes(msgspec.json.encode(usual.metadata | {"unknown_index": KNOWN}))
    assert DataDirectory(data).load("OND", "image_classification", name)[0].shown(False)["unknown_index"] == KNOWN
    for way in (["--server", "here"], ["--set", f"test={name}", "--set", "training=1"]):
        words = ["run", "ond", *way, "-a", "knn", "--set", f"data={data}", "--json"]
        assert run_command([*words, "-o", str(data / f"{len(way)}.sqlite")]) == 0
    told = capsys.readouterr().out
    assert msgspec.json.decode(told[: told.index("}\n{") + 1])["knn"][name]["m_acc"]["full_top1"] > 0.7
    (cell,) = Result([data / "4.sqlite"]).cells
    assert np.mean([episode.performance for episode in cell.episodes if episode.phase == "test"]) > 0.7


def test_a_local_agent_buys_labels_as_it_numbers_them(videos) -> None:
    data, name = videos
    (trial,) = DOMAIN.trials(data=str(data), test=name, area="activity_recognition", training=1, unchanged=0)
    world = DOMAIN.world(trial)
    rollout = Rollout(world)
    rollout.reply(Reply())
    rollout.reply(Reply(Scores(np.eye(KNOWN + 1)[[0] * 20].tolist()), Belief(0.9)))  # all are called unknown
    lines = rollout.reply(Reply(Buy("labels", world.test.ids[:3]))).feedback["lines"]
    assert lines == [f"{world.test.ids[at]},{world.test.labels[at] + 1}" for at in range(3)]
