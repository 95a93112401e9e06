from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import openfield as of
from openfield.api import resume
from openfield.core import Reply, Turn
from openfield.errors import InvalidInput, UnknownName
from openfield.journal.reader import Run
from openfield.journal.schema import RULE_FACT
from openfield.record import AttemptEnd, Entry
from openfield.report.run_list import list_runs
from openfield.result import Result
from support.players import copycat
from support.worlds import TINY


def contrary(turn: Turn) -> Reply:
    """Answers the other cue: right after the change, and wrong before it."""
    return Reply(1 - turn.observation["cue"])


class Mixed:
    """Answers the other cue in a share of the turns."""

    share = 0.5

    def __init__(self, spec: of.Spec, seed: int) -> None:
        self.random = random.Random(seed)

    def __call__(self, turn: Turn) -> Reply:
        return Reply(turn.observation["cue"] ^ (self.random.random() < self.share))


class MixedAlike(Mixed):
    """Does as well as `Mixed`."""


def play(path: Path, agents: dict[str, Any], count: int = 40, **options: Any) -> Result:
    return of.run(agents, of.trials(TINY, count), path, **options)


class TestDecided:
    def test_a_run_stops_when_every_comparison_is_settled_and_its_record_says_why(self, tmp_path: Path) -> None:
        result = play(tmp_path / "run.sqlite", {"copycat": copycat, "contrary": contrary}, until="decided")
        played = [cell for cell in result.cells if cell.outcome == "done"]
        assert 0 < len(played) < 56
        assert len(played) % 14 == 0
        assert {cell.dropped for cell in result.cells if cell.outcome is None} == {True}
        (caution,) = result.cautions
        assert caution.startswith("tiny, flipped: contrary does better than copycat after ")
        (comparison,) = result.summary().comparisons
        assert comparison.valid == "anytime"
        assert comparison.difference.low > 0
        assert result.is_over
        assert result.records[0].dropped == len(result.cells) - len(played)
        assert f", {result.records[0].dropped} not needed" in result.records[0].describe()["cells"]
        assert list_runs([tmp_path])[0].planned == len(played)
        with Run(tmp_path / "run.sqlite") as run:
            assert RULE_FACT in run.facts
            assert run.verify() == []
            assert {each.planned for each in run.progress().values()} == {len(played) // 2}

    def test_agents_that_differ_by_nothing_that_matters_are_settled_too(self, tmp_path: Path) -> None:
        agents = {"one": copycat, "two": copycat}
        result = play(tmp_path / "run.sqlite", agents, until="decided", negligible=0.6)
        assert "does as well as" in result.cautions[0]
        assert any(cell.dropped for cell in result.cells)

    def test_where_nothing_is_settled_all_trials_are_played_and_intervals_stay_anytime_ones(
        self, tmp_path: Path
    ) -> None:
        result = play(tmp_path / "run.sqlite", {"one": copycat, "two": copycat}, 8, until="decided")
        assert not any(cell.dropped for cell in result.cells)
        assert result.cautions[0].endswith("--until 'decided' was not met in 12 trials.")
        assert {group.valid for group in result.summary().groups} == {"anytime"}
        assert "the run stops by itself" in result.summary().groups[0].note

    def test_a_report_counts_no_cell_that_is_not_needed(self, tmp_path: Path) -> None:
        result = play(tmp_path / "run.sqlite", {"copycat": copycat, "contrary": contrary}, until="decided")
        assert set(result.summary().outcomes) == {"done"}


class TestWidth:
    def test_a_run_stops_when_a_difference_is_known_well_enough(self, tmp_path: Path) -> None:
        agents = {"copycat": copycat, "contrary": contrary}
        result = play(tmp_path / "run.sqlite", agents, until="contrary - copycat: width < 0.6")
        assert any(cell.dropped for cell in result.cells)
        assert result.cautions[0].startswith("tiny, flipped: contrary - copycat is known to 0.")
        (found,) = result.summary().comparisons
        assert found.difference.high - found.difference.low < 0.6

    def test_a_run_stops_when_a_number_is_known_well_enough(self, tmp_path: Path) -> None:
        result = play(tmp_path / "run.sqlite", {"copycat": copycat}, until="copycat: before width < 0.4")
        assert any(cell.dropped for cell in result.cells)
        assert result.cautions[0].startswith("tiny, flipped: copycat's before is known to 0.")

    @pytest.mark.parametrize(
        ("until", "error", "said"),
        [
            ("naive - copycat: width < 0.5", UnknownName, "Unknown agent 'naive'"),
            ("copycat: nothing width < 0.5", UnknownName, "Unknown number 'nothing'"),
            ("copycat - copycat: width < 0.5", InvalidInput, "does not differ from itself"),
            ("copycat: before width < 0.01", InvalidInput, "an interval is wider than 0.1"),
            ("contrary - copycat: width < 0.01", InvalidInput, "an interval is wider than 0.2"),
        ],
    )
    def test_a_rule_that_cannot_be_met_is_refused_before_anything_is_played(
        self, tmp_path: Path, until: str, error: type[Exception], said: str
    ) -> None:
        with pytest.raises(error, match=said):
            play(tmp_path / "run.sqlite", {"copycat": copycat, "contrary": contrary}, 30, until=until)
        assert not (tmp_path / "run.sqlite").exists()


class TestRace:
    def test_an_agent_that_is_settled_against_all_others_is_played_no_further(self, tmp_path: Path) -> None:
        agents = {"copycat": copycat, "mixed": Mixed, "alike": MixedAlike}
        result = play(tmp_path / "run.sqlite", agents, 60, race=True)
        played = {name: sum(cell.outcome == "done" for cell in result.cells if cell.agent == name) for name in agents}
        assert played["copycat"] < played["mixed"] == played["alike"]
        assert any("does better than copycat after" in caution for caution in result.cautions)

    @pytest.mark.parametrize("options", [{"race": True}, {"until": "decided"}])
    def test_one_agent_is_compared_with_none(self, tmp_path: Path, options: dict[str, Any]) -> None:
        with pytest.raises(InvalidInput, match="compares agents: add a second one"):
            play(tmp_path / "run.sqlite", {"copycat": copycat}, **options)

    def test_too_few_trials_settle_nothing(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInput, match="never be met: there are 4 trials that may change"):
            play(tmp_path / "run.sqlite", {"copycat": copycat, "contrary": contrary}, 4, race=True)
        twins = [trial for trial in of.trials(TINY, 6) if trial.is_unchanged_twin]
        with pytest.raises(InvalidInput, match="there are 0 trials that may change, and an interval takes 5"):
            of.run({"copycat": copycat, "contrary": contrary}, twins, tmp_path / "run.sqlite", race=True)


class TestGoingOn:
    @pytest.mark.parametrize("cells", [3, 14, 17])
    def test_a_run_that_is_stopped_goes_on_with_its_rule_and_ends_alike(self, tmp_path: Path, cells: int) -> None:
        agents = {"mixed": Mixed, "contrary": contrary}
        whole = play(tmp_path / "whole.sqlite", agents, until="decided")
        ended = 0

        def stop(entry: Entry) -> None:
            nonlocal ended
            ended += isinstance(entry, AttemptEnd)
            if ended == cells:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            play(tmp_path / "run.sqlite", agents, until="decided", watch=stop)
        again = play(tmp_path / "run.sqlite", agents, until="decided")
        assert {cell.id: cell.outcome for cell in again.cells} == {cell.id: cell.outcome for cell in whole.cells}
        assert again.cautions == whole.cautions

    def test_the_file_alone_knows_the_rule(self, tmp_path: Path) -> None:
        agents = {"copycat": copycat, "contrary": contrary}
        result = play(tmp_path / "run.sqlite", agents, until="decided")
        again = resume(tmp_path / "run.sqlite")
        assert [cell.outcome for cell in again.cells] == [cell.outcome for cell in result.cells]
        with pytest.raises(InvalidInput, match="goes on with the rule it was begun with"):
            resume(tmp_path / "run.sqlite", until="decided")  # type: ignore[call-arg]

    def test_another_rule_is_refused(self, tmp_path: Path) -> None:
        agents = {"copycat": copycat, "contrary": contrary}
        play(tmp_path / "run.sqlite", agents, until="decided")
        for options in ({}, {"until": "decided", "race": True}, {"until": "contrary - copycat: width < 0.9"}):
            with pytest.raises(InvalidInput, match="was begun with --until 'decided'"):
                play(tmp_path / "run.sqlite", agents, **options)
