"""Marks that are drawn of data: where they stand, that they are whole, and that names in them are escaped."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import pytest
from msgspec import structs

from openfield.metrics.stats import Estimate
from openfield.report.drawing import (
    RADIUS,
    draw_agent,
    draw_estimate,
    draw_overlay,
    draw_spark,
    share_range,
)
from openfield.report.figures.curves import COLOURS, AgentCurves, Point, choose_colours, trace_agent, trace_all
from support.records import make_cell, make_run


def trace(agent: str, run: str = "") -> AgentCurves:
    found = trace_agent(agent, agent, make_run([agent], trials=5), run)
    assert found is not None
    return found


def test_an_estimate_is_a_bar_and_a_dot_on_the_range_of_its_number() -> None:
    drawn = ElementTree.fromstring(draw_estimate(Estimate(0.0, -0.5, 0.5, 9), (-1.0, 1.0)))
    assert [path.get("d") for path in drawn] == ["M54 1v12", "M29 7h50", "M54 7h0"]
    assert draw_estimate(Estimate(None, None, None, 0), (0, 1)) == ""
    assert draw_estimate(Estimate(3.0, None, None, 3), None) == ""


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_dots_at_the_ends_of_a_range_are_whole(value: float) -> None:
    drawn = str(draw_estimate(Estimate(value, None, None, 3), (0, 1)))
    width = float(re.findall(r'viewBox="0 0 (\d+)', drawn)[0])
    x = float(re.findall(r'd="M([\d.]+) 7h0"', drawn)[-1])
    assert RADIUS <= x <= width - RADIUS


def test_a_page_that_stands_alone_has_lines_without_links_and_without_values_for_scripts() -> None:
    for run, linked in (("", 0), ("key", 3)):
        curves = trace("a <b>", run)
        panel = str(draw_agent(curves, share_range([curves]), 3, "a <b>"))
        assert ElementTree.fromstring(panel).get("aria-label") == "a <b>"
        assert panel.count('class="f"') == 3
        assert (panel.count("<a "), "data-curves" in panel) == (linked, bool(linked))


def test_the_strength_of_a_change_lies_under_the_curves() -> None:
    plain = trace("ada")
    points = [structs.replace(point, strength=max(0.0, min(1.0, point.at / 4))) for point in plain.mean]
    ramp = structs.replace(plain, mean=tuple(points))
    for curves, steps in ((plain, 1), (ramp, len(points))):
        for drawn in (draw_agent(curves, share_range([curves]), 3, "x"), draw_overlay([curves], "x", {"ada": ""})):
            (area, *_) = [
                path.get("d") or "" for path in ElementTree.fromstring(drawn).iter() if path.get("class") == "a"
            ]
            assert area.count("V") == steps + (steps > 1)
    assert 'class="a"' not in draw_spark(plain.mean, changes=True)
    assert 'class="a"' in draw_spark(ramp.mean, changes=True)


def test_agents_are_drawn_together_with_their_names() -> None:
    names = ["ada", "bob", "a name that is longer than all"]
    drawn = str(draw_overlay([trace(name) for name in names], "all", dict.fromkeys(names, "/trials")))
    assert ">a name that is longer t…</text>" in drawn
    assert drawn.count('class="agent own ') == 2 * len(names)  # of performance and of belief
    assert drawn.count('<a href="/trials">') == 2 * len(names)


def test_false_alarms_are_hollow_and_the_first_detection_is_filled() -> None:
    (curve,) = trace_all([make_cell([], [0.5] * 2, [0.5] * 3, [0.9, 0.9, 0.1, 0.9, 0.9])])
    kinds = [path.get("class") for path in ElementTree.fromstring(draw_spark(curve, changes=True))]
    assert kinds == ["o", "b", "p", "d h", "d h", "d"]


def test_labels_of_curves_that_end_low_stay_inside_and_apart() -> None:
    low = tuple(Point(at, 0.0, 0.01) for at in range(3))
    curves = [AgentCurves(name, name, False, 1, low, [], True) for name in ("a", "b")]
    drawn = str(draw_overlay(curves, "x", {"a": "", "b": ""}))
    places = [
        float(y) for y in re.findall(r'<text class="t name p own \w+" data-agent="\w" x="\d+" y="([\d.]+)">', drawn)
    ]
    assert len(places) == 2
    assert max(places) <= 180  # the panel has 178 units, and the next one begins with room
    assert abs(places[0] - places[1]) >= 13


def test_the_axis_of_agents_without_beliefs_stands_below_their_curves() -> None:
    silent = [AgentCurves("a", "a", False, 1, tuple(Point(at, 0.0, None) for at in range(3)), [], True)]
    drawn = str(draw_overlay(silent, "x", {"a": ""}))
    floor = max(float(y) for y in re.findall(r'<path class="g" d="M\d+ ([\d.]+)H', drawn))
    ticks = [float(y) for y in re.findall(r'<text class="t m" x="\d+" y="([\d.]+)">\+?\d', drawn)]
    assert min(ticks) >= floor + 12
    height = float(re.findall(r'viewBox="0 0 \d+ (\d+)', drawn)[0])
    assert max(ticks) < height


def test_an_agent_keeps_its_colour_on_all_pages_and_no_two_share_one() -> None:
    names = [f"agent-{number}" for number in range(COLOURS)]
    colours = choose_colours(names)
    assert sorted(colours.values()) == list(range(COLOURS))
    assert choose_colours(reversed(names)) == colours
    assert choose_colours(names[:1])[names[0]] == colours[names[0]]
    assert set(choose_colours(f"agent-{number}" for number in range(30)).values()) <= set(range(COLOURS))


def test_lines_and_names_of_ten_agents_have_their_colours() -> None:
    names = [f"agent-{number}" for number in range(10)]
    curves = [structs.replace(trace(name), colour=number % COLOURS) for number, name in enumerate(names)]
    drawn = str(draw_overlay(curves, "all", dict.fromkeys(names, "/trials")))
    for number, name in enumerate(names):
        assert f'<g class="agent own c{number % COLOURS}" data-agent="{name}"' in drawn
        assert re.search(rf'<text class="t name p own c{number % COLOURS}" data-agent="{name}"', drawn)
