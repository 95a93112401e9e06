from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from openfield.metrics import BUILT_IN, summarise
from openfield.report.export.paper import write_tables
from support.records import make_run

AGENTS = ["a_b|c", "100%&{x}", "plain"]


def test_markdown_has_a_column_for_each_agent_and_escapes_names(tmp_path: Path) -> None:
    played = make_run(AGENTS, trials=6)
    played[0] = replace(played[0], outcome="agent_error", version="earlier", attempt=1)
    summary = summarise(played, BUILT_IN)
    assert write_tables(tmp_path / "t.md", summary, {}, "markdown") == 1
    lines = (tmp_path / "t.md").read_text().splitlines()
    head = next(line for line in lines if "plain" in line)
    assert r"a\_b\|c" in head
    rows = [line for line in lines if line.startswith("|")]
    assert len({row.replace(r"\|", "").count("|") for row in rows}) == 1
    after = next(line for line in rows if line.startswith("| Performance after the onset"))
    for group in summary.groups:
        assert str(group.estimates["after"]).replace("[", r"\[").replace("]", r"\]") in after
    assert any(line.startswith("| Version |") and "earlier in 1 of 1 cells" in line for line in rows)
    assert any(line.startswith("| Performance after the onset, completed trials |") for line in rows)
    delay = next(line for line in rows if line.startswith("| Delay of detection |"))
    assert delay.count(" n=") + delay.count(" trials") == len(AGENTS)


def test_latex_has_a_row_for_each_number_and_escapes_names(tmp_path: Path) -> None:
    summary = summarise(make_run(AGENTS, trials=5), BUILT_IN)
    write_tables(tmp_path / "t.tex", summary, {}, "latex")
    text = (tmp_path / "t.tex").read_text()
    assert r"100\%\&\{x\}" in text
    assert r"a\_b|c" in text
    rows = [line for line in text.splitlines() if line.endswith(r" \\")]
    assert all(row.replace(r"\&", "").count("&") == len(AGENTS) for row in rows)
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 1
