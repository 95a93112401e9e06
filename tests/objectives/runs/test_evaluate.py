"""The objectives of recorded runs: the same numbers as tables made by hand from what the agents did."""

from __future__ import annotations

import json
import math
import shutil
import sqlite3
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.support.objectives.episodes import compare_episodes

import openfield as of
from openfield.agents.random import RandomAgent
from openfield.core import Ask
from openfield.errors import InvalidInput, UnknownName
from openfield.journal.writer import Journal
from openfield.objectives import compare, evaluate
from openfield.objectives.runs.evaluate import evaluate_runs
from openfield.objectives.runs.recordings import Reading, cut_episodes, read_human, read_recordings
from openfield.objectives.tables.table import as_table
from openfield.record import Step

SIZES = {"training": 2, "before": 6, "after": 7}
STAGES = tuple(SIZES)
NAMES = ["input_entropy", "info_gain_dirichlet", "info_gain_sqrt_counts", "info_gain_log_counts", "empowerment"]


class Walker:
    """Follows the walls: takes the first open way after the one it took last, and believes aloud now and then."""

    def __init__(self, spec: of.Spec, seed: int) -> None:
        self.turn, self.asked = seed % 4, False

    def __call__(self, turn: of.Turn) -> of.Reply:
        self.asked = not self.asked
        if self.asked and turn.ask is Ask.ACT:
            return of.Reply(None, of.Belief(0.25))
        is_open = turn.observation["open"]
        self.turn = next((way for way in (self.turn, *range(4)) if is_open[way]), 0)
        return of.Reply(("left", "right", "up", "down")[self.turn])


class Witness:
    """An agent that writes down, by episode, what it saw and did; what the record says must be the same."""

    def __init__(self, agent: Any, book: list[list[tuple[str, Any]]]) -> None:
        self.agent, self.book = agent, book

    def __call__(self, turn: of.Turn) -> of.Reply:
        reply: of.Reply = self.agent(turn)
        if turn.last or reply.action is not None:
            if turn.first or not self.book or self.book[-1][-1][1] is None:
                self.book.append([])
            self.book[-1].append((repr(turn.observation), None if turn.last else reply.action))
        return reply


@pytest.fixture
def played(maze: of.Domain[Any], path: Path) -> tuple[Path, dict[str, list[Any]]]:
    """A run of two agents in two trials, and what each of them saw and did."""
    books: dict[str, list[Any]] = {"walker": [], "compass": []}
    compass: Any = maze.agents["compass"]
    of.run(
        {
            "walker": lambda spec, seed: Witness(Walker(spec, seed), books["walker"]),
            "compass": lambda spec, seed: Witness(compass(spec, seed), books["compass"]),
        },
        maze.trials(2, size=4, patience=12, **SIZES, unchanged=0),
        path,
    )
    return path, books


def by_stage(book: list[Any]) -> dict[str, list[Any]]:
    order = [stage for _ in range(2) for stage, size in SIZES.items() for _ in range(size)]
    return {stage: [episode for episode, at in zip(book, order, strict=True) if at == stage] for stage in STAGES}


def tables(books: list[list[Any]]) -> list[tuple[dict[Any, int], dict[int, int]]]:
    """A table with a code book for each list of episodes, by hand; codes are shared."""
    codes: dict[str, int] = {}
    actions: dict[str, int] = {}
    made = []
    for episodes in books:
        counts: Counter[tuple[int, int, int]] = Counter()
        for episode in episodes:
            for (seen, action), (then, _) in pairwise(episode):
                numbers = [codes.setdefault(key, len(codes)) for key in (seen, then)]
                counts[numbers[0], actions.setdefault(action, len(actions)), numbers[1]] += 1
        made.append(dict(counts))
    return [(table, {code: code for code in codes.values()}) for table in made]


def test_values_are_those_of_tables_made_by_hand(played: Any) -> None:
    path, books = played
    found = evaluate_runs(read_recordings([path]))
    assert [(one.group.agent, one.group.stage) for one in found] == [
        (agent, stage) for agent in ("compass", "walker") for stage in STAGES
    ]
    assert {(one.group.domain, one.group.novelty) for one in found} == {("maze", "swapped")}
    hand = tables([by_stage(books[one.group.agent])[one.group.stage] for one in found])
    num_obs = len(hand[0][1])
    for one, (table, _) in zip(found, hand, strict=True):
        assert {name: interval.value for name, interval in one.values.items()} == evaluate(
            table, num_obs=num_obs
        ).values
        assert (one.episodes, one.transitions) == (2 * SIZES[one.group.stage], sum(table.values()))


def test_intervals_need_five_episodes(played: Any) -> None:
    for one in evaluate_runs(read_recordings([played[0]])):
        entropy = one.values["input_entropy"]
        if one.group.stage == "training":
            assert (entropy.low, entropy.note) == (None, "fewer than 5 episodes")
        elif entropy.low is None:
            assert "of what would be met was seen" in entropy.note
        else:
            assert entropy.low < entropy.value < entropy.high


def test_human_similarity_is_that_of_tables_with_code_books(played: Any) -> None:
    path, books = played
    human = read_human(path, Reading(agent="walker"))
    for one in evaluate_runs(read_recordings([path]), human=human):
        stage = one.group.stage
        first, second = tables([by_stage(books["walker"])[stage], by_stage(books[one.group.agent])[stage]])
        expected = compare(as_table(first), as_table(second))
        assert one.values["jaccard"].value == expected.jaccard
        assert one.values["jsd_nats"].value == pytest.approx(expected.jsd_nats, abs=1e-12)
        if one.group.agent == "walker":
            assert (one.values["jaccard"].value, one.values["jsd_nats"].value) == (1, 0)


def test_a_human_is_compared_at_the_same_stage_and_novelty(maze: of.Domain[Any], played: Any, tmp_path: Path) -> None:
    other = tmp_path / "played.sqlite"
    of.run({"ada": Walker}, maze.trials(1, novelty="slip:hard", size=4, patience=12, **SIZES, unchanged=0), other)
    for one in evaluate_runs(read_recordings([played[0]]), human=read_human(other)):
        likeness = one.values["jaccard"]
        if one.group.stage == "after":
            assert (likeness.value, likeness.note) == (None, "no episodes of the human at this stage")
        else:
            assert 0 < likeness.value < 1


def test_who_the_human_is_must_be_clear(played: Any) -> None:
    with pytest.raises(InvalidInput, match=r"compass.* is the human"):
        read_human(played[0])
    with pytest.raises(UnknownName, match="walker"):
        read_human(played[0], Reading(agent="walkre"))


def test_similarity_of_episodes() -> None:
    mine = [[(number % 3, 0), (number % 5, 0), (9, None)] for number in range(12)]
    yours = [[(number % 2, 0), (7, 0), (9, None)] for number in range(8)]
    found = compare_episodes(mine, yours)
    assert found["jaccard"].value == 2 / 6
    assert 0 < found["jsd_nats"].value < math.log(2)
    assert found == compare_episodes(mine, yours)


def test_stages_and_random_are_compared_at_equal_numbers(maze: of.Domain[Any], path: Path) -> None:
    agents = {"compass": maze.agents["compass"], "random": RandomAgent}
    of.run(agents, maze.trials(2, size=3, patience=12, **SIZES, unchanged=0), path)
    found = evaluate_runs(read_recordings([path]))
    for one in found:
        rival = next(o for o in found if (o.group.agent, o.group.stage) == ("random", one.group.stage))
        assert one.equal is not None
        assert one.equal.transitions == min(other.transitions for other in found)
        assert set(one.equal.values) == set(NAMES) - {"empowerment"}
        assert one.equal.random is not None
        if rival.transitions == one.equal.transitions:
            assert one.equal.random["input_entropy"] == rival.values["input_entropy"].value
        else:
            assert one.equal.random["info_gain_dirichlet"] < rival.values["info_gain_dirichlet"].value


def test_an_episode_that_ends_unseen_ends_with_the_first_turn_of_the_next() -> None:
    steps = [Step(None, 0, of.Turn(observation=0), of.Truth())]
    truths = [of.Truth(), of.Truth(novel=True, episode_over=True), of.Truth(novel=True), of.Truth(novel=True)]
    for number, truth in enumerate(truths, 1):
        steps.append(Step(of.Reply(f"a{number}"), 0, of.Turn(observation=number), truth))
    assert list(cut_episodes(steps)) == [
        ("before", [(0, "a1"), (1, "a2"), (2, None)]),
        ("after", [(2, "a3"), (3, "a4"), (4, None)]),
    ]


def test_turns_that_ask_for_no_action_are_passed_over() -> None:
    turns = [
        of.Turn(observation="hello", ask=Ask.READY, phase="training"),
        of.Turn(observation=1, phase="training"),
        of.Turn(observation="well?", ask=Ask.BELIEF, phase="training"),
        of.Turn(observation=2, phase="training"),
        of.Turn(observation=3, ask=Ask.NONE, last="terminated", phase="training"),
    ]
    replies = [None, of.Reply(), of.Reply("left"), of.Reply(None, of.Belief(0.5)), of.Reply("up")]
    steps = [Step(reply, 0, turn, of.Truth()) for reply, turn in zip(replies, turns, strict=True)]
    steps.append(Step(of.Reply(), 0, None, of.Truth()))
    assert list(cut_episodes(steps)) == [("training", [(1, "left"), (2, "up"), (3, None)])]


def test_the_command_prints_json(run: Any, played: Any) -> None:
    path, _ = played
    options = ["--human", path, "--human-agent", "walker", "--json"]
    status, output, errors = run(path, *options)
    record = json.loads(output)
    assert (status, errors) == (0, "")
    assert record["runs"] == [{"run": str(path), "episodes": 60, "distinct_pictures": 0}]
    assert record["human"] == str(path)
    assert len(record["groups"]) == 6
    last = record["groups"][-1]
    assert (last["agent"], last["stage"], last["episodes"]) == ("walker", "after", 14)
    assert list(last["values"]) == [*NAMES, "jaccard", "jsd_nats"]
    assert record["groups"][0]["reasons"]["input_entropy"] == "fewer than 5 episodes"
    known = last["empowerment"]
    assert known["plug_in"] == last["values"]["empowerment"]
    assert (known["identifiable"], known["excess"]) == (False, None)
    assert known["null_band"][0] <= known["null_mean"] <= known["null_band"][1]
    bits = json.loads(run(path, "--json", "--unit", "bits", "--only", "empowerment")[1])["groups"][-1]
    assert bits["values"] == {"empowerment": last["values"]["empowerment"] / math.log(2)}
    assert bits["empowerment"]["null_mean"] == pytest.approx(known["null_mean"] / math.log(2))


def test_the_command_shows_stages_side_by_side(run: Any, played: Any) -> None:
    lines = run(played[0], "--only", "input_entropy")[1].splitlines()
    title, stages, episodes, _, *sizes, entropy, at, equal = lines[:11]
    gap, second, *_ = lines[11:]
    assert title.startswith("compass, maze, swapped, after=7")
    assert stages.split() == list(STAGES)
    assert episodes.split() == ["episodes", "4", "12", "14"]
    assert entropy.startswith("input_entropy (nats)")
    assert [size.split()[1] for size in sizes] == ["inputs", "actions", "pairs", "transitions"]
    assert at.startswith("at ")
    assert equal.split()[0] == "input_entropy"
    assert gap == ""
    assert second.startswith("walker, ")


def test_several_runs_are_read_as_one(maze: of.Domain[Any], played: Any, tmp_path: Path) -> None:
    other = tmp_path / "other.sqlite"
    of.run({"ada": Walker}, maze.trials(2, size=4, patience=12, **SIZES, unchanged=0), other)
    groups = read_recordings([played[0], other])
    assert {group.agent for run in groups for group in run.groups} == {"ada", "walker", "compass"}
    with pytest.raises(InvalidInput, match="distinct inputs were seen"):
        evaluate_runs(groups, num_obs=3)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--compat"], "for tables"),
        (["--inputs", "all"], "for tables"),
        (["--human-agent", "ada"], "--human"),
        (["--human", "nobody.sqlite"], "nobody.sqlite"),
    ],
)
def test_options_that_do_not_fit_are_refused(run: Any, played: Any, options: list[str], says: str) -> None:
    status, output, errors = run(played[0], *options)
    assert (status, output) == (2, "")
    assert says in errors


def test_bad_files_are_refused_in_a_line(run: Any, played: Any, tmp_path: Path) -> None:
    foreign, empty, text = tmp_path / "foreign.sqlite", tmp_path / "empty.sqlite", tmp_path / "text.sqlite"
    db = sqlite3.connect(foreign)
    db.execute("CREATE TABLE mine (x)")
    db.close()
    Journal(empty).close()
    cut = tmp_path / "cut.sqlite"
    cut.write_bytes(played[0].read_bytes()[:5000])
    text.write_text("no run")
    broken = tmp_path / "broken.sqlite"
    broken.write_bytes(played[0].read_bytes())
    with sqlite3.connect(broken) as db:
        db.execute("UPDATE chunks SET data = x'00ff'")
    db.close()
    for bad in (foreign, empty, cut, text, broken):
        status, _, errors = run(bad)
        assert status == 2
        assert bad.name in errors
        assert len(errors.strip().splitlines()) == 1
    assert "is not a run" in run(played[0], text)[2]


def test_a_run_that_is_given_twice_counts_once(run: Any, played: Any, tmp_path: Path) -> None:
    path = played[0]
    copy = shutil.copy(path, tmp_path / "copy.sqlite")
    once = json.loads(run(path, "--json")[1])
    for again in (path, copy):
        status, printed, said = run(path, again, "--json")
        assert status == 2
        assert f"{again}: the same run as {path}; its episodes count once." in said
        assert json.loads(printed)["groups"] == once["groups"]
