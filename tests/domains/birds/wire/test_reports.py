"""What agents say of levels is on record as what they said of that level, also of the last one of a trial."""

import contextlib
import re
import subprocess
import sys

import pytest

import openfield as of
from openfield.domains.birds import DOMAIN
from openfield.domains.birds.exports import write_logs
from openfield.journal.reader import Run
from support.birds.legacy_agent import AWAY, LOST, OVER, TRAINING, TRIAL, WON, LegacyAgent, go_to
from support.birds.serving import NORMAL, short_server, write_short


def test_a_report_after_a_level_is_one_of_that_level_and_a_description_is_none(tmp_path):
    with short_server(tmp_path, NORMAL.format(last=2)) as port, LegacyAgent(port, team=1) as agent:
        go_to(agent, LOST)
        assert agent.report(0.8, 0.2) == 1
        assert agent.describe("I was wrong") == 1
        assert (agent.byte(34), agent.shoot(*AWAY), len(agent.watch(5, 1))) == (0, 0, 1)
        assert (agent.byte(52), agent.byte(51, "I", 1), agent.ready()[2]) == (0, 0, 3), "refused, or nothing new"
        assert agent.report(0.3, 0.7) == 1
        assert agent.state() == LOST
        assert agent.word(53) == 2
        assert agent.describe("nothing but words") == 1
        assert agent.shoot(*AWAY) == 1
        assert agent.word(53) == 3
        assert agent.report(0.9, 0.1) == 1
    with Run(tmp_path / "run.sqlite") as run:
        (cell,) = run.cells()
        said = [step.reply.action for step in run.steps(cell.id, cell.attempt) if step.reply is not None]
    assert [episode.belief and episode.belief.novel for episode in cell.episodes] == [0.3, None]
    assert {"do": "stay", "text": "nothing but words"} in said
    assert {"do": "stay", "text": "I was wrong"} in said
    write_logs(tmp_path / "run.sqlite", tmp_path / "logs")
    reports = (tmp_path / "logs" / "NoveltyLikelihoodData.csv").read_text().splitlines()[1:]
    rows = [["0", "2", "0.8", "0.2"], ["0", "2", "0.3", "0.7"], ["2", "5", "0.9", "0.1"]]
    assert [row.split(",")[1:5] for row in reports] == rows


def test_what_is_said_after_the_last_level_of_a_trial_is_said_of_that_level(tmp_path):
    with short_server(tmp_path, NORMAL.format(last=0), executions=3) as port, LegacyAgent(port, team=1) as agent:
        go_to(agent, WON)
        assert (agent.report(0.7, 0.3), agent.state(), agent.report(0.9, 0.1)) == (1, TRIAL, 1)
        assert agent.describe("something was different") == 1
        assert (agent.byte(52), agent.byte(51, "I", 1), agent.shoot(*AWAY)) == (0, 0, 0)
        assert agent.report(0.8, 0.2) == 1, "what was refused is no reason to go on"
        assert agent.ready()[2] == 1
        assert agent.state() == TRAINING, "one is ready for it once, as ever"
        agent.ready()
        assert agent.word(53) == 1
        agent.shoot(*AWAY)
        assert (agent.word(53), agent.state(), agent.report(0.6, 0.4)) == (0, TRIAL, 1), "it has gone on"
        go_to(agent, WON)
        assert (agent.report(0.5, 0.5), agent.state(), agent.report(0.4, 0.6)) == (1, OVER, 1), (
            "nothing counts after 13"
        )
    with Run(tmp_path / "run.sqlite") as run:
        cells = run.cells()
    beliefs = [episode.belief and episode.belief.novel for cell in cells for episode in cell.episodes]
    assert ([cell.outcome for cell in cells], beliefs) == (["done"] * 3, [0.8, None, 0.5])
    write_logs(tmp_path / "run.sqlite", tmp_path / "logs")
    reports = (tmp_path / "logs" / "NoveltyLikelihoodData.csv").read_text().splitlines()[1:]
    assert [row.split(",")[3] for row in reports] == ["0.7", "0.9", "0.8", "0.5"]


def test_who_leaves_after_the_last_level_without_a_word_has_played_it(tmp_path):
    with short_server(tmp_path, NORMAL.format(last=0), executions=2) as port:
        for _ in range(2):
            with LegacyAgent(port, team=1) as agent:
                go_to(agent, WON)
        with LegacyAgent(port, team=1) as agent:
            assert agent.state() == OVER
    with Run(tmp_path / "run.sqlite") as run:
        assert [cell.outcome for cell in run.cells()] == ["done", "done"]


def test_a_server_that_was_killed_after_the_last_level_goes_on_there(tmp_path):
    write_short(tmp_path, NORMAL.format(last=0), executions=2)
    with program(tmp_path) as (server, port), LegacyAgent(port, team=1) as agent:
        go_to(agent, WON)
        assert agent.report(0.7, 0.3) == 1
        server.kill()
    with program(tmp_path) as (server, port), LegacyAgent(port, team=1) as agent:
        assert (agent.report(0.9, 0.1), agent.state()) == (1, TRIAL)
        go_to(agent, WON)
        assert agent.state() == OVER
    with Run(tmp_path / "run.sqlite") as run:
        cells = run.cells()
    assert [(cell.outcome, len(cell.episodes)) for cell in cells] == [("done", 1), ("done", 1)]
    assert cells[0].episodes[0].belief.novel == 0.9


@contextlib.contextmanager
def program(folder):
    """A server of its own process."""
    words = ("serve", "birds", "--config", "config.xml", "--port", "0", "-o", "run.sqlite")
    command = [sys.executable, "-m", "openfield", *words]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        try:
            yield server, int(re.search(r"127\.0\.0\.1:(\d+)", server.stdout.readline())[1])
        finally:
            server.terminate()


PROGRAM = """
import sys
from openfield.domains.birds import BirdsClient
with BirdsClient(port=int(sys.argv[1])) as client:
    client.configure(1)
    client.ready(), client.ready()
    for number in range(3):
        client.load_next()
        client.shoot(600, 100)
        client.report(number / 10)
    if sys.argv[2] == "asks":
        client.state()
        client.report(0.9)
"""


@pytest.mark.slow
@pytest.mark.parametrize("farewell", ["asks", "leaves"])
def test_a_program_of_one_trial_is_heard_after_its_last_level_and_done_when_it_knows_or_leaves(tmp_path, farewell):
    (tmp_path / "program.py").write_text(PROGRAM)
    trials = DOMAIN.trials(1, before=3, after=0, family=1, scenario="single", unchanged=0)
    command = f"wire:{sys.executable} {tmp_path / 'program.py'} {{port}} {farewell}"
    (cell,) = of.run({"program": command}, trials, tmp_path / "run.sqlite", workers=0).cells
    assert (cell.outcome, [episode.belief.novel for episode in cell.episodes]) == ("done", [0.0, 0.1, 0.2])
