"""The figures of a paper, as data: what their lines, intervals and captions are."""

from __future__ import annotations

from typing import Any

import pytest

from openfield.errors import InvalidInput, UnknownName
from openfield.journal.reader import CellRecord
from openfield.metrics import BUILT_IN, summarise
from openfield.metrics.selection import select_groups
from openfield.metrics.stats import bound_mean, estimate_mean
from openfield.report.figures import IntervalPlot, Plot
from openfield.report.figures.paper import Figure, FigureSource, list_rows, trace_figure
from openfield.trial import Phase
from support.records import make_cell, make_run, make_trial


def play(agent: str, afters: list[float], befores: list[float] | None = None, **fields: Any) -> list[CellRecord]:
    """One cell for each performance after the onset, with a belief of 1 from there on."""
    return [
        make_cell([0.3], befores or [0.9], [after] * 2, [0, *[0] * len(befores or [0.9]), 1, 1], agent=agent,
                  trial=make_trial(seed, **fields), id=f"{agent} {seed} {fields}")
        for seed, after in enumerate(afters)
    ]  # fmt: skip


def draw(
    kind: Any, cells: list[CellRecord], across: Any = None, intervals: Any = "conservative", **chosen: Any
) -> Figure:
    summary = select_groups(summarise(cells, BUILT_IN, intervals), **chosen)
    return trace_figure(kind, FigureSource(cells, summary, {}, across))


AFTERS = [0.1, 0.2, 0.3, 0.4, 0.6]


def test_curves_are_means_over_trials_with_intervals() -> None:
    figure = draw("curves", [*play("ada", AFTERS), *play("bob", [0.5])])
    (panel,) = figure.panels
    assert isinstance(panel, Plot)
    assert (panel.title, panel.onset, panel.first, panel.last) == ("swap", 0, -1, 1)
    ada, bob = panel.lines
    found = bound_mean(AFTERS, (0, 1))
    assert (ada.agent, ada.points) == ("ada", [(-1, 0.9), (0, found.mean), (1, found.mean)])  # no training
    assert ada.spreads[1:] == [(found.low, found.high, 5)] * 2
    assert bob.spreads == [(None, None, 1)] * 3
    assert (figure.across, figure.values) == ("episodes from the onset", "performance")
    assert "around the onset (dashed line): mean of 1 to 5 trials, with conservative 95 % intervals" in figure.caption


def test_tests_that_count_steps_are_drawn_over_steps() -> None:
    phases = (Phase("test", steps=60), Phase("test", steps=60, novelty=("swap",)))
    trials = [make_trial(seed, phases=phases) for seed in range(5)]
    cells = [make_cell([], [0.9], [0.5], agent="ada", trial=trial, id=trial.id) for trial in trials]
    figure = draw("curves", cells)
    assert figure.across == "steps from the onset"
    assert "episode" not in figure.caption
    both = draw("curves", [*cells, *play("ada", AFTERS, novelty=("slip:hard",))])
    assert both.across == "episodes or steps from the onset"


def test_the_usual_intervals_are_used_where_they_are_asked_for() -> None:
    (panel,) = draw("curves", play("ada", AFTERS), intervals="usual").panels
    assert isinstance(panel, Plot)
    found = estimate_mean(AFTERS, (0, 1))
    assert panel.lines[0].spreads[1] == (found.low, found.high, 5)


def test_repeats_of_a_trial_are_averaged_first() -> None:
    again = [make_cell([], [0.9], [0.5] * 2, agent="ada", trial=make_trial(0), id="again", repeat=1)]
    (panel,) = draw("curves", [*play("ada", AFTERS), *again]).panels
    assert isinstance(panel, Plot)
    assert panel.lines[0].points[-1][1] == pytest.approx((sum(AFTERS) + 0.2) / 5)  # 0.1 and 0.5 are one trial of 0.3
    assert panel.lines[0].spreads[-1][2] == 5


def test_curves_end_where_fewer_than_half_of_the_trials_go_on() -> None:
    cells = [*play("ada", AFTERS), *play("ada", [0.5], [0.9] * 4, version=2)]
    (panel,) = draw("curves", cells).panels
    assert isinstance(panel, Plot)
    assert [at for at, _ in panel.lines[0].points] == [-1, 0, 1]


def test_each_novelty_has_a_panel_and_colours_stay_the_same() -> None:
    cells = [*play("ada", AFTERS), *play("bob", AFTERS), *play("bob", AFTERS, novelty=("slip:hard",))]
    figure = draw("curves", cells)
    assert [panel.title for panel in figure.panels] == ["slip:hard", "swap"]
    assert [*figure.agents] == ["ada", "bob"]
    assert [*draw("curves", cells, novelties=["slip"]).agents] == ["bob"]
    silent = [make_cell([], [0.9], [0.5], agent="aaa", trial=make_trial(seed), id=f"s{seed}") for seed in range(5)]
    figure = draw("belief", [*cells, *silent])
    assert ([*figure.agents], figure.drawn) == (["aaa", "ada", "bob"], {"ada", "bob"})


def test_beliefs_are_drawn_like_performances() -> None:
    (panel,) = draw("belief", play("ada", AFTERS)).panels
    assert isinstance(panel, Plot)
    assert panel.lines[0].points == [(-1, 0), (0, 1), (1, 1)]


def test_numbers_have_the_estimates_of_the_summary() -> None:
    cells = [*play("ada", AFTERS), *play("bob", AFTERS, novelty=("slip",))]
    figure = draw("intervals", cells)
    panels = [panel for panel in figure.panels if isinstance(panel, IntervalPlot)]
    assert [panel.title for panel in panels[:2]] == ["Performance before the onset", "Performance after the onset"]
    assert {tuple(panel.places) for panel in panels} == {("slip", "swap")}  # the same rows in every panel
    found = bound_mean(AFTERS, (0, 1))
    (mark,) = [mark for mark in panels[1].marks if mark.agent == "ada"]
    assert (mark.place, mark.value, mark.interval, mark.trials) == ("swap", found.mean, (found.low, found.high), 5)
    assert panels[1].bounds == (0, 1)
    (panel, *_) = draw("intervals", [*cells, *play("ada", AFTERS, domain="two")], "domains").panels
    assert isinstance(panel, IntervalPlot)
    assert panel.places == ["maze", "two"]


def test_a_profile_is_the_share_of_trials_that_reach_each_performance() -> None:
    (panel,) = draw("profile", play("ada", [0.25, 0.5, 0.5, 0.75, 1.0])).panels
    assert isinstance(panel, Plot)
    shares = dict(panel.lines[0].points)
    assert [shares[level] for level in (0.0, 0.2, 0.5, 0.6, 1.0)] == [1.0, 1.0, 0.8, 0.4, 0.2]
    found = bound_mean([0.0, 1.0, 1.0, 1.0, 1.0], (0, 1))
    assert panel.lines[0].spreads[25] == (found.low, found.high, 5)


@pytest.mark.parametrize(
    ("kind", "message"),
    [("curves", "no episode has a performance"), ("belief", "no agent states one"), ("learning", "plays a curriculum")],
)
def test_nothing_to_draw_is_said(kind: str, message: str) -> None:
    cells = [make_cell([], [None], [None], trial=make_trial(seed), id=str(seed)) for seed in range(5)]
    with pytest.raises(InvalidInput, match=message):
        draw(kind, cells)
    with pytest.raises(InvalidInput, match="no agent but controls has played yet"):
        draw(kind, [])


def test_unknown_names_are_refused_with_those_that_there_are() -> None:
    cells = [*make_run(["ada", "bob"], trials=5), *play("eve", AFTERS, novelty=("slip:hard",))]
    for chosen, message in (
        ({"agents": ["adda"]}, "Unknown agent 'adda'. Did you mean 'ada'"),
        ({"novelties": ["fog"]}, "In this run: slip, slip:hard, swap"),
        ({"domains": ["doom"]}, "In this run: maze"),
    ):
        with pytest.raises(UnknownName, match=message):
            select_groups(summarise(cells, BUILT_IN), **chosen)
    with pytest.raises(UnknownName, match="Known: belief, curves, intervals, learning, profile"):
        draw("curve", cells)


def test_controls_are_left_out() -> None:
    control = [
        make_cell([], [0.9], [0.5], agent="eve", trial=make_trial(s), id=f"c{s}", control=True) for s in range(5)
    ]
    assert [*draw("curves", [*play("ada", AFTERS), *control]).agents] == ["ada"]


def test_rows_are_the_points_of_all_panels() -> None:
    figure = draw("curves", play("ada", AFTERS))
    rows = list(list_rows(figure))
    found = bound_mean(AFTERS, (0, 1))
    assert len(rows) == 3
    assert rows[-1] == ("swap", "ada", "", 1, found.mean, found.low, found.high, 5)
    assert ("Performance after the onset", "ada", "", "swap", found.mean, found.low, found.high, 5) in list(
        list_rows(draw("intervals", play("ada", AFTERS)))
    )
