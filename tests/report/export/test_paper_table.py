"""Tables for papers: what stands in them, which signs are escaped, and where an agent is bold."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import openfield as of
from openfield.errors import InvalidInput, UnknownName
from openfield.journal.reader import CellRecord
from openfield.metrics import BUILT_IN, summarise
from openfield.metrics.summary import Summary
from openfield.report.export.paper_table import escape_markdown, list_tables, write_tables
from support.records import make_cell, make_run, make_trial

AGENTS = ["a_b|c", "100%&{x}", "plain"]
HIGH, LOW = [0.9, 0.8, 0.9, 0.7, 0.8, 0.9, 0.8, 0.9], [0.1, 0.2, 0.0, 0.3, 0.1, 0.2, 0.1, 0.0]


def play(agent: str, afters: list[float], novelty: str = "swap", **fields: Any) -> list[CellRecord]:
    return [
        make_cell([], [0.5], [after], agent=agent, trial=trial, id=f"{agent} {trial.id}")
        for seed, after in enumerate(afters)
        for trial in [make_trial(seed, (novelty,), **fields)]
    ]


def write(summary: Summary, form: str, folder: Path, **options: Any) -> str:
    write_tables(folder / "t", summary, {}, form, **options)
    return (folder / "t").read_text()


def test_the_numbers_of_a_scenario_are_those_of_the_summary_and_names_are_escaped(tmp_path: Path) -> None:
    played = make_run(AGENTS, trials=6)
    played[0] = replace(played[0], outcome="agent_error", version="earlier", attempt=1)
    summary = summarise(played, BUILT_IN)
    text = write(summary, "markdown", tmp_path)
    head, _, *rows = [line for line in text.splitlines() if line.startswith("|")]
    assert r" a\_b\|c | a\_b\|c, completed trials | " in head
    assert len({row.replace(r"\|", "").count("|") for row in (head, *rows)}) == 1
    titles = [row.split("|")[1].strip() for row in rows]
    assert titles == ["Before", "After", "Correct", "Delay", "False alarm"]
    for group in summary.groups:
        assert escape_markdown(str(group.estimates["after"])) in rows[1].replace("**", "")
    assert "Version of a\\_b\\|c: earlier in 1 of 1 cells." in text


def test_two_agents_stand_below_each_other() -> None:
    (table,) = list_tables(replace(summarise(make_run(["a", "b"]), BUILT_IN), shown=("after", "correct")), {})
    assert (table.columns, [name for name, _ in table.rows]) == (["After", "Correct"], ["a", "b"])


def test_latex_has_a_caption_of_two_sentences_and_a_label(tmp_path: Path) -> None:
    text = write(summarise(make_run(AGENTS, trials=5), BUILT_IN), "latex", tmp_path)
    assert r"100\%\&\{x\}" in text
    assert r"a\_b|c" in text
    rows = [line for line in text.splitlines() if line.endswith(r" \\")]
    assert {row.replace(r"\&", "").count("&") for row in rows} == {len(AGENTS)}
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 1
    assert r"\label{tab-maze-swap}" in text
    caption = re.search(r"\\caption\{(.*)\}", text)
    assert caption is not None
    assert caption[1] == (
        r"maze: swap; 5 trials, conservative 95 \% intervals. "
        r"No agent performs better than every other one (p \textless{} 0.05, corrected by Holm's rule)."
    )
    assert all(line.startswith("% ") for line in text.partition(r"\begin")[0].splitlines())


def test_several_novelties_have_a_table_for_each_number(tmp_path: Path) -> None:
    cells = [*play("ada", HIGH), *play("bob", LOW), *play("ada", LOW, "slip:hard"), *play("bob", LOW, "slip:hard")]
    tables = list_tables(summarise(cells, BUILT_IN), {})
    assert [table.label for table in tables] == ["tab-before-novelties", "tab-after-novelties"]
    table = tables[1]
    assert table.caption.startswith("Performance after the onset in each novelty of maze; 8 trials, conservative 95 %")
    assert table.columns == ["slip:hard", "swap"]
    assert [(name, [cell.best for cell in row]) for name, row in table.rows] == [
        ("ada", [False, True]),
        ("bob", [False, False]),
    ]
    text = write(summarise(cells, BUILT_IN), "latex", tmp_path)
    assert text.count(r"\textbf{0.84} {\scriptsize [") == text.count(r"\textbf") == 1
    assert write(summarise(cells, BUILT_IN), "markdown", tmp_path).count("**0.84** ") == 1
    assert write(summarise(cells, BUILT_IN), "html", tmp_path).count("<b>0.84</b> ") == 1


def test_a_campaign_has_domains_across_and_their_mean() -> None:
    cells = [*play("ada", HIGH), *play("bob", LOW), *play("ada", LOW, domain="two")]
    summary = summarise(cells, BUILT_IN)
    table = list_tables(summary, {})[1]
    assert (table.label, table.columns) == ("tab-after-domains", ["maze", "two", "mean"])
    assert [(name, row[2].value) for name, row in table.rows] == [("ada", "0.48"), ("bob", "–")]
    assert table.rows[1][1][1].value == "–"
    assert table.notes[0].startswith("Order: the mean over the domains")
    assert [each.label for each in list_tables(summary, {}, "numbers")] == ["tab-maze-swap", "tab-two-swap"]
    with pytest.raises(UnknownName, match="Unknown kind of columns 'agents'"):
        list_tables(summary, {}, "agents")  # type: ignore[arg-type]


def test_what_is_too_wide_is_turned_if_that_is_narrower(tmp_path: Path) -> None:
    many = [cell for at in range(9) for agent in ("ada", "bob") for cell in play(agent, LOW, f"novelty-{at}")]
    table = list_tables(summarise(many, BUILT_IN), {})[1]
    assert (table.columns, len(table.rows)) == (["ada", "bob"], 9)
    wide = [cell for at in range(9) for name in "abcdefghij" for cell in play(name, LOW, f"novelty-{at}")]
    table = list_tables(summarise(wide, BUILT_IN), {})[1]
    assert (len(table.columns), len(table.rows)) == (9, 10)
    assert r"\centering\footnotesize" in write(summarise(wide, BUILT_IN), "latex", tmp_path)


def test_a_note_is_told_once() -> None:
    tables = list_tables(summarise([*play("ada", HIGH), *play("ada", LOW, "slip")], BUILT_IN), {})
    notes = [note for table in tables for note in table.notes]
    assert len(notes) == len(set(notes))
    assert tables[-1].notes[-1].startswith("Numbers are over trials")


def test_bare_agents_are_not_compared() -> None:
    (table,) = list_tables(summarise(play("ada", HIGH), BUILT_IN), {})
    assert table.caption == "maze: swap; 8 trials, conservative 95 % intervals."


def test_tasks_of_a_curriculum_stand_below_each_other_and_agents_across(path: Path) -> None:
    trials = of.trials("commai", 1, novelty="none", tasks=("micro2", "micro4"), task_budget=300, max_steps=600)
    summary = of.run(["oracle", "silent"], trials, path, workers=0).summary()
    solved, success, steps = list_tables(summary, {}, "tasks")
    assert solved.columns == success.columns == steps.columns == ["oracle", "silent"]
    assert [(name, [cell.value for cell in cells]) for name, cells in solved.rows] == [
        ("micro2", ["1.00", "0.00"]),
        ("micro4", ["1.00", "0.00"]),
    ]
    assert [cell.value for cell in steps.rows[0][1]] == ["50.00", "300"]
    assert success.caption.startswith("Share of instances solved; commai: no novelty; 1 trial")
    assert not solved.notes
    assert steps.notes, "told once, below the last table"


def test_tables_of_tasks_need_a_curriculum() -> None:
    with pytest.raises(InvalidInput, match="no curriculum of several tasks"):
        list_tables(summarise(play("ada", HIGH), BUILT_IN), {}, "tasks")
