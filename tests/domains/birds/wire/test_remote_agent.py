"""Agents of this package as programs on the wire."""

import sys
from statistics import mean

import pytest

import openfield as of
from openfield.domains.birds import DOMAIN
from openfield.domains.birds.wire import remote_agent as remote
from support.birds.configurations import CONFIG
from support.birds.serving import NORMAL, free_port, write_short


def test_a_program_plays_cells_over_the_wire(tmp_path):
    command = f"wire:{sys.executable} -m openfield.domains.birds.wire.remote_agent naive --port {{port}}"
    trials = DOMAIN.trials(1, before=1, after=1, unchanged=0)
    result = of.run({"program": command, "here": "naive"}, trials, tmp_path / "run.sqlite", workers=0)
    assert {cell.agent: (cell.outcome, len(cell.episodes)) for cell in result.cells} == {
        "program": ("done", 2),
        "here": ("done", 2),
    }


def test_a_lost_level_with_points_is_lost_in_our_rows_and_the_published_score_stands_beside_it(tmp_path):
    command = f"wire:{sys.executable} -m openfield.domains.birds.wire.remote_agent naive --port {{port}}"
    trials = DOMAIN.trials(1, family=1, scenario="multiple", before=8, after=2, unchanged=0)
    result = of.run({"program": command}, trials, tmp_path / "run.sqlite", workers=0)
    (cell,) = result.cells
    lost = [episode for episode in cell.episodes if episode.detail["status"] != "Pass"]
    assert any(episode.detail["score"] >= 5000 for episode in lost), "a pig of two was killed"
    assert {episode.performance for episode in lost} == {0.0}
    (group,) = result.summary().groups
    for period, episodes in (("before", cell.episodes[:8]), ("after", cell.episodes[8:])):
        won = mean(episode.detail["status"] == "Pass" for episode in episodes)
        assert group.estimates[period].mean == group.estimates[f"won_{period}"].mean == pytest.approx(won)
        points = mean(episode.detail["score"] for episode in episodes)
        assert group.estimates[f"score_{period}"].mean == pytest.approx(points)


def test_agents_go_from_level_to_level_where_they_may_choose_although_attempts_have_no_limit(tmp_path):
    text = CONFIG.replace('_limit="0" attempt_limit_per_level="1"', '_limit="8" attempt_limit_per_level="0"', 1)
    text = text.replace('allow_level_selection="False"', 'allow_level_selection="True"').replace('step="2"', 'step="0"')
    (tmp_path / "config.xml").write_text(text.replace('interaction_limit="2"', 'interaction_limit="0"'))
    command = f"wire:{sys.executable} -m openfield.domains.birds.wire.remote_agent naive --port {{port}}"
    trials = DOMAIN.trials(config=str(tmp_path / "config.xml"), unchanged=0)
    result = of.run({"program": command, "here": "naive"}, trials, tmp_path / "run.sqlite", workers=0)
    for cell in result.cells:
        played = [episode.detail["index"] for episode in cell.episodes if episode.phase == "training"]
        assert (cell.outcome, played) == ("done", [0, 1, 0, 1])


STOPPING = """
import sys
from openfield.domains.birds import BirdsClient
with BirdsClient(port=int(sys.argv[1])) as client:
    client.configure(1)
    client.ready()
    client.ready()
    client.load_next()
raise SystemExit(int(sys.argv[2]))
"""


@pytest.mark.parametrize(
    ("status", "attempts", "wanted"), [(0, 0, "truncated"), (3, 0, "agent_gone"), (0, 1, "agent_gone")]
)
def test_a_program_may_stop_only_in_a_set_without_a_limit_of_attempts(tmp_path, status, attempts, wanted):
    write_short(tmp_path, NORMAL.format(last=1), executions=1, attempts=attempts)
    (tmp_path / "program.py").write_text(STOPPING)
    trials = DOMAIN.trials(config=str(tmp_path / "config.xml"), unchanged=0)
    command = f"wire:{sys.executable} {tmp_path / 'program.py'} {{port}} {status}"
    (cell,) = of.run({"program": command}, trials, tmp_path / "run.sqlite", workers=0).cells
    assert (cell.outcome, len(cell.episodes)) == (wanted, 1 if wanted == "truncated" else 0)


@pytest.mark.slow
def test_programs_that_know_only_one_port_take_turns(tmp_path):
    with free_port() as port:
        pass
    command = (
        f"wire:@127.0.0.1:{port} {sys.executable} -m openfield.domains.birds.wire.remote_agent naive --port {port}"
    )
    result = of.run(
        {"program": command}, DOMAIN.trials(3, before=1, after=0, unchanged=0), tmp_path / "run.sqlite", workers=3
    )
    assert [(cell.outcome, cell.note) for cell in result.cells] == [("done", "")] * 3


def test_a_port_that_another_program_keeps_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("openfield.agents.legacy.PORT_TRIES", 1)
    with free_port() as port:
        command = (
            f"wire:@127.0.0.1:{port} {sys.executable} -m openfield.domains.birds.wire.remote_agent naive --port {port}"
        )
        trials = DOMAIN.trials(1, before=1, after=0, unchanged=0)
        (cell,) = of.run({"program": command}, trials, tmp_path / "run.sqlite", workers=0).cells
    assert (cell.outcome, cell.episodes) == ("harness_error", ())
    assert f"Port {port}" in cell.note


def test_a_program_without_a_game_says_so(capsys):
    with free_port() as port, pytest.raises(SystemExit):
        remote.main(["naive", "--port", str(port)])
    assert capsys.readouterr().err == f"No game on 127.0.0.1:{port}: Connection refused\n"
