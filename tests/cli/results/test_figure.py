"""`openfield figure`, and what `openfield report` says to the names of other files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


def test_a_figure_is_written_beside_the_run(openfield: Any, run: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra 'figures' is not installed")
    said = openfield("figure", "maze.sqlite", "--data")
    assert (said.status, said.err) == (0, "")
    first, second = said.out.splitlines()
    assert first.startswith("maze-curves.pdf: Performance around the onset (dashed line): mean of 5 trials, ")
    assert second == "Its points: maze-curves.csv"
    assert run.with_name("maze-curves.pdf").read_bytes().startswith(b"%PDF-")
    assert run.with_name("maze-curves.csv").read_text().startswith("panel,agent,line,place,value,low,high,trials\n")
    assert openfield("figure", "maze.sqlite", "--kind", "intervals", "--numbers", "after", "-o", "a.svg").status == 0
    text = run.with_name("a.svg").read_text()
    assert "Performance after the onset" in text
    assert "Concordance" not in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-o", "x.html"), "A figure is written as pdf, svg, png: name it x.pdf, for instance."),
        (("--width", "3"), "A width is a number with in, cm, mm or pt, such as 3.3in"),
        (("--agent", "compas"), "Unknown agent 'compas'. Did you mean 'compass'? In this run: compass, random."),
        (("--kind", "learning"), "There is no learning to draw: no agent plays a curriculum."),
        (("--kind", "curve"), "Did you mean 'curves'?"),
    ],
)
def test_what_cannot_be_drawn_is_said_in_a_line(openfield: Any, run: Path, words: list[str], message: str) -> None:
    said = openfield("figure", run, *words)
    assert (said.status, said.out, said.err.count("\n")) == (2, "", 1)
    assert message in said.err


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("x.pdf", "For a figure of a paper: openfield figure maze.sqlite -o x.pdf"),
        ("x.svg", "openfield figure maze.sqlite -o x.svg"),
        ("x.tex", "For a table in LaTeX: openfield export maze.sqlite --format latex -o x.tex"),
        ("x.md", "openfield export maze.sqlite --format markdown -o x.md"),
    ],
)
def test_a_report_that_is_no_page_is_refused_with_the_right_command(
    openfield: Any, run: Path, name: str, command: str
) -> None:
    said = openfield("report", run.name, "-o", name)
    assert (said.status, said.out) == (2, "")
    assert command in said.err
    assert not run.with_name(name).exists()
