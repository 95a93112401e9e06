"""A result shows itself: in a few lines where it is printed, as tables in a notebook."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import openfield as of
from support.players import Crasher, copycat
from support.worlds import tiny_trials


def test_a_printed_result_says_what_was_played_and_how_it_went(path: Path, maze: of.Domain[Any]) -> None:
    result = of.run(["compass", "random"], maze.trials(2, unchanged=1), path)
    title, scenario, head, first, second, more = repr(result).splitlines()
    assert title == f"Result of {path}: 2 agents, 3 trials, cells: 6 done"
    assert scenario == "A small maze in which left and right may be swapped: left and right are swapped"
    assert re.split(r"  +", head.strip()) == ["Performance after the onset", "Concordance"]
    assert first.startswith("  compass  ")
    assert second.startswith("  random   ")
    for line, group in zip((first, second), result.summary().groups, strict=True):
        assert str(group.estimates["after"]) in line
    assert ".to_pandas()" in more


def test_failures_are_counted_in_the_first_line(path: Path) -> None:
    result = of.run({"bad": Crasher, "good": copycat}, tiny_trials(2), path)
    assert repr(result).splitlines()[0].endswith("2 agents, 2 trials, cells: 2 done, 2 agent_error")


def test_a_result_that_has_no_summary_says_why(path: Path) -> None:
    of.run([copycat], tiny_trials(1), path)
    assert "Unknown agent 'nobody'" in repr(of.Result([path], baseline="nobody"))


def test_names_have_no_effect_on_a_terminal_or_a_page(path: Path) -> None:
    result = of.run({"\x1b[31m<b>": copycat}, tiny_trials(1), path)
    assert "\\x1b[31m<b>" in repr(result)
    assert "\x1b" not in repr(result)
    assert "&lt;b&gt;" in result._repr_html_()
    assert "<b>:" not in result._repr_html_().replace("</b>", "")


def test_many_agents_and_scenarios_are_counted(path: Path) -> None:
    trials = [trial for seed in range(6) for trial in tiny_trials(1, padding=seed + 1)]
    said = repr(of.run({f"agent{number}": copycat for number in range(10)}, trials, path))
    assert said.count("  and 2 more agents\n") == 4
    assert "\nand 2 more scenarios\n" in said


def test_a_notebook_shows_a_table_for_each_scenario(path: Path, maze: of.Domain[Any]) -> None:
    result = of.run(["compass", "random"], maze.trials(2), path)
    shown = result._repr_html_()
    assert shown.count("<table>") == shown.count("</table>") == 1
    assert '<th scope="col">compass</th>' in shown
    assert str(result.summary().groups[0].estimates["after"]) in shown
    assert not any(word in shown for word in ("<script", "<style", "src=", "href="))
    assert "<b>maze: " not in shown
    both = of.run(["compass", "random"], [*maze.trials(2), *maze.trials(2, novelty="slip:hard")], path)
    assert both._repr_html_().count("<b>maze: ") == 2
