"""Figures as files: their size, their fonts, their text, and the table beside them."""

from __future__ import annotations

import csv
import struct
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from openfield.errors import InvalidInput, MissingExtra
from openfield.metrics import BUILT_IN, summarise
from openfield.report.export.paper_figure import COLUMNS, MARK_HEIGHT, PaperFigure, parse_width
from openfield.report.figures.paper import KINDS, FigureKind, FigureSource, list_rows, trace_figure
from support.records import make_run

needs_matplotlib = pytest.mark.skipif("not __import__('importlib.util').util.find_spec('matplotlib')")


def make(kind: FigureKind = "curves", width: str = "3.3in", agents: int = 3) -> PaperFigure:
    cells = [
        cell
        for novelty in ("swap", "a_novelty-with-a-long-name:hard")
        for cell in make_run([f"agent {number}" for number in range(agents)], trials=6, novelty=(novelty,))
    ]
    return PaperFigure(trace_figure(kind, FigureSource(cells, summarise(cells, BUILT_IN), {})), width)


@pytest.mark.parametrize(("text", "inches"), [("3.3in", 3.3), ("8.4cm", 3.307), ("84 mm", 3.307), ("240pt", 3.321)])
def test_widths_are_read(text: str, inches: float) -> None:
    assert parse_width(text) == pytest.approx(inches, abs=0.001)


@pytest.mark.parametrize("text", ["3.3", "in", "0.1in", "1e3in", "9000mm", "-3in"])
def test_other_widths_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"such as 3\.3in"):
        parse_width(text)


@needs_matplotlib
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "learning"])
def test_a_pdf_has_the_width_and_its_fonts_inside(kind: FigureKind, tmp_path: Path) -> None:
    content = make(kind, "8.4cm").save(tmp_path / "fig.pdf").read_bytes()
    width = content.partition(b"/MediaBox [ 0 0 ")[2].split()[0]
    assert float(width) == pytest.approx(8.4 / 2.54 * 72, abs=0.01)
    assert b"/FontFile2" in content
    assert b"/Subtype /Type3" not in content


@needs_matplotlib
def test_an_svg_has_its_text_as_text(tmp_path: Path) -> None:
    root = ElementTree.fromstring(make().save(tmp_path / "fig.svg").read_text())
    assert root.attrib["width"] == f"{3.3 * 72:g}pt"
    texts = {"".join(each.itertext()).strip() for each in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"swap", "agent 0", "agent 1", "agent 2", "episodes from the onset", "performance"} <= texts


@needs_matplotlib
def test_a_png_has_300_dots_an_inch(tmp_path: Path) -> None:
    content = make().save(tmp_path / "fig.png").read_bytes()
    assert struct.unpack(">I", content[16:20]) == (990,)
    assert make()._repr_png_()[:4] == content[:4]


@needs_matplotlib
@pytest.mark.parametrize("suffix", ["pdf", "svg", "png"])
def test_the_same_data_give_the_same_bytes(suffix: str, tmp_path: Path) -> None:
    first, second = (make().save(tmp_path / f"{name}.{suffix}").read_bytes() for name in "ab")
    assert first == second


@needs_matplotlib
def test_what_is_drawn_is_the_data() -> None:
    figure = make(agents=2)
    axes = figure.drawn.axes
    assert len(axes) == len(figure.data.panels) == 2
    for axis, panel in zip(axes, figure.data.panels, strict=True):
        drawn = [line for line in axis.lines if len(line.get_xdata()) > 2]
        assert [list(map(tuple, line.get_xydata())) for line in drawn] == [line.points for line in panel.lines]
        assert len({line.get_color() for line in drawn}) == len({line.get_linestyle() for line in drawn}) == 2
        assert len(axis.collections) == 2  # a band for each


@needs_matplotlib
@pytest.mark.parametrize("agents", [1, 9])
def test_names_are_in_a_key_unless_there_is_one(agents: int) -> None:
    drawn = make("intervals", agents=agents).drawn
    names = [text.get_text() for legend in drawn.legends for text in legend.get_texts()]
    assert names == ([f"agent {number}" for number in range(agents)] if agents > 1 else [])


@needs_matplotlib
@pytest.mark.parametrize("suffix", ["pdf", "svg"])
def test_names_are_text_and_no_formulas(suffix: str, tmp_path: Path) -> None:
    """matplotlib reads what stands between two dollars as mathematics, and stops where it is none."""
    cells = make_run([r"Net(cost=$\frac$)", "_b%&#{^"], trials=6, novelty=("5$ for 9$",))
    data = trace_figure("intervals", FigureSource(cells, summarise(cells, BUILT_IN), {}))
    content = PaperFigure(data).save(tmp_path / f"fig.{suffix}").read_bytes()
    assert suffix == "pdf" or rb"Net(cost=$\frac$)" in content


@needs_matplotlib
def test_agents_that_share_a_colour_differ_and_take_room_only_where_they_played() -> None:
    lines = [line for line in make(agents=9).drawn.axes[0].lines if len(line.get_xdata()) > 2]
    assert len({(line.get_color(), str(line.get_linestyle()), str(line._dash_pattern)) for line in lines}) == 9
    apart = [
        cell
        for number in range(4)
        for cell in make_run([f"agent {number}", f"agent {number + 4}"], trials=6, novelty=(f"novelty {number}",))
    ]
    figure = PaperFigure(trace_figure("intervals", FigureSource(apart, summarise(apart, BUILT_IN), {})))
    shared = PaperFigure(trace_figure("intervals", FigureSource(apart[:12], summarise(apart[:12], BUILT_IN), {})))
    rows = 4 * 2 * MARK_HEIGHT * len(figure.drawn.axes) / 2  # four novelties, two agents in each, two panels beside
    assert figure.drawn.get_size_inches()[1] < rows + shared.drawn.get_size_inches()[1]


@needs_matplotlib
def test_nothing_is_drawn_outside_the_file() -> None:
    for kind in ("curves", "intervals", "profile"):
        drawn = make(kind, agents=7).drawn
        drawn.draw_without_rendering()
        box, (width, height) = drawn.get_tightbbox(), drawn.get_size_inches()
        assert min(box.x0, box.y0) > -0.02
        assert (box.x1, box.y1) < (width + 0.02, height + 0.02)


def test_the_table_has_every_point(tmp_path: Path) -> None:
    figure = make()
    with figure.save_data(tmp_path / "fig.csv").open() as file:
        head, *rows = csv.reader(file)
    assert tuple(head) == COLUMNS
    assert rows == [["" if value is None else str(value) for value in row] for row in list_rows(figure.data)]


def test_other_formats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"written as pdf, svg, png: name it .*fig\.pdf"):
        make().save(tmp_path / "fig.docx")


def test_without_matplotlib_a_line_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"A figure for a paper needs .*\[figures\]"):
        make().save(tmp_path / "fig.pdf")
    assert not list(tmp_path.iterdir())
