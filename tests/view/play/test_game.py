"""The game of `openfield play DOMAIN`: which trials are dealt, and what is told about one that was played."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect

from openfield.cell import Cell
from openfield.errors import InvalidInput
from openfield.journal.reader import Run
from openfield.registry import find_domain, installed_domains
from openfield.runner.plan import make_plan
from openfield.runner.run import run_plan
from openfield.trial import Trial
from openfield.view.play.game import deal_game, make_reveals, name_agents_file, play_agents, reveal_trial
from support.places import MAZE
from support.play import open_study

SMALL = {"size": 4, "patience": 3, "training": 0}


def deal(run: Path, agent: str, count: int) -> list[Trial]:
    """Let an agent take the part of a player, and return the trials that it was dealt."""
    maze, dealt = find_domain(MAZE), []
    for _ in range(count):
        dealt += deal_game(maze, "human", run, SMALL)
        run_plan(make_plan({"human": agent}, dealt), run, 0)
    return dealt


@pytest.mark.parametrize("domain", installed_domains(), ids=lambda domain: domain.name)
def test_worlds_of_every_domain_change_or_not(domain: Any, tmp_path: Path) -> None:
    from openfield.view.play.game import _make_trials

    made = [_make_trials(domain, number, {}) for number in range(8)]
    trials = [each[-1] for each in made]
    assert [each[0].id for each in made if len(each) > 1] == [each[-1].after for each in made if each[-1].after]
    assert {trial.is_changed for trial in trials} == {True, False}
    assert len({trial.id for trial in trials}) == 8
    assert deal_game(domain, "human", tmp_path / "none.sqlite", {}) == made[0]
    assert make_plan({"human": "sleeper"}, made[0]).cells


def test_a_player_is_dealt_the_next_trial_and_another_player_the_same_ones(tmp_path: Path) -> None:
    run = tmp_path / "played.sqlite"
    first, second = deal(run, "random", 2)
    assert first.id != second.id
    assert deal_game(find_domain(MAZE), "ada", run, SMALL) == [first]


def test_a_domain_with_few_trials_runs_out_of_them(tmp_path: Path) -> None:
    """Its trials may be the same for every seed, without twins, or nothing may change in it."""
    maze = find_domain(MAZE)

    class Fixed(type(maze)):  # type: ignore[misc]
        def trials(self, *_: Any, **options: Any) -> list[Trial]:
            return [trial for trial in super().trials(1, 1, "swapped", **options) if trial.is_changed]

    class Calm(type(maze)):  # type: ignore[misc]
        novelties = ()

    run = tmp_path / "run.sqlite"
    dealt = deal_game(Fixed(), "random", run, SMALL)
    run_plan(make_plan("random", dealt, 1, Fixed()), run)
    with pytest.raises(InvalidInput, match="maze has no further trials for random"):
        deal_game(Fixed(), "random", run, SMALL)
    with pytest.raises(InvalidInput, match="Nothing changes in maze, so there is nothing to notice"):
        deal_game(Calm(), "random", run, SMALL)


def test_the_truth_is_told_about_changed_and_unchanged_worlds(tmp_path: Path) -> None:
    run, maze = tmp_path / "played.sqlite", find_domain(MAZE)
    for trial in deal(run, "alarmist", 6):
        with Run(run) as reader:
            (cell,) = [each for each in reader.cells() if each.trial.id == trial.id]
        told = reveal_trial(maze, cell.cell, run)
        assert [novel for novel, _ in told.episodes] == [each.novel for each in cell.episodes]
        assert [belief for _, belief in told.episodes] == [1.0] * len(cell.episodes)
        (you,) = told.players
        if trial.is_changed:
            onset = 1 + [novel for novel, _ in told.episodes].index(True)
            assert told.title.startswith(f"Your world changed before episode {onset} of {len(cell.episodes)}: ")
            assert you.noticed == "at once, false alarm in episode 1"
        else:
            assert told.title == "Your world never changed."
            assert told.text == "You saw one: false alarm in episode 1."


def test_agents_and_earlier_players_are_told_beside(tmp_path: Path) -> None:
    run, maze = tmp_path / "played.sqlite", find_domain(MAZE)
    (trial,) = deal(run, "random", 1)
    run_plan(make_plan({"ada": "alarmist"}, [trial]), run, 0)
    play_agents(maze, [trial], name_agents_file(run))
    told = reveal_trial(maze, Cell("human", trial), run)
    assert [each.name for each in told.players] == ["you", "ada", *maze.demo_agents]
    assert told.text == ("You did not notice." if trial.is_changed else "You were right not to see a change.")
    assert told.as_lines()[0] == f"{told.title} {told.text}"
    with Run(run) as reader:
        assert {each.agent for each in reader.cells()} == {"human", "ada"}  # agents play in a file of their own


def test_the_page_tells_the_truth_at_once_and_then_about_agents(tmp_path: Path) -> None:
    run, maze = tmp_path / "played.sqlite", find_domain(MAZE)
    trials = deal_game(maze, "human", run, SMALL)
    with open_study(run, maze, trials) as server:
        server.study.reveal = make_reveals(maze, trials, run)
        address = server.links[0].replace("http", "ws", 1) + "/socket"
        told: list[dict[str, Any]] = []
        with connect(address, origin=server.links[0].partition("/play")[0]) as socket:  # type: ignore[arg-type]
            while not told or told[-1]["waiting"]:
                data = socket.recv()
                shown = json.loads(data) if isinstance(data, str) else {"show": "picture"}
                if shown["show"] == "turn" and shown["ask"] == "act":
                    socket.send('{"do": "act", "act": 0}')
                elif shown["show"] == "turn" and shown["ask"] == "none":
                    socket.send('{"do": "believe", "novel": 0.25}')
                elif shown["show"] == "reveal":
                    told.append(shown)
    first, *_, whole = told
    assert len(told) == 2 + trials[-1].is_changed
    assert whole["waiting"] == ""
    assert [each["name"] for each in first["players"]] == ["you"]
    assert not first["films"]
    assert [each["name"] for each in whole["players"]] == ["you", *maze.demo_agents]
    assert {belief for _, belief in whole["episodes"]} == {0.25}
