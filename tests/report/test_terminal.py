from __future__ import annotations

import io

from msgspec.structs import replace
from rich.console import Console

from openfield.journal.reader import CellRecord
from openfield.metrics import BUILT_IN, summarise
from openfield.report.terminal import render_summary
from openfield.trial import Phase
from support.records import make_cell, make_run, make_trial


def render(cells: list[CellRecord]) -> str:
    console = Console(width=140, file=io.StringIO())
    with console.capture() as captured:
        console.print(render_summary(summarise(cells, BUILT_IN), {}))
    return captured.get()


def test_shows_intervals_and_comparisons() -> None:
    text = render([make_cell([], [0.9], [a], trial=make_trial(s)) for s, a in enumerate([0.1, 0.2, 0.3, 0.4, 0.6])])
    assert "0.32 [0." in text
    assert "P(first is better)" not in text
    assert "P(first is better)" in render(make_run())


def test_failures_come_first_and_only_when_there_are_any() -> None:
    assert "Not every cell could be scored" not in render(make_run())
    text = render([*make_run(), make_cell(outcome="world_error", id="bad")])
    assert text.index("world_error") < text.index("Performance after the onset")


def test_what_failed_cells_said_is_under_their_count() -> None:
    bad = [make_cell(outcome="agent_error", note=f"[x]\n{'lo' * 200}", id=f"bad{number}") for number in range(2)]
    text = " ".join(render([*make_run(), *bad, make_cell(outcome="world_error", id="mute")]).split())
    assert "ada, agent_error, the first of 2: [x] lolo" in text
    assert "l…" in text
    assert "ada, world_error" not in text


def test_few_trials_have_values_without_intervals() -> None:
    text = render(make_run(trials=3))
    assert ", 3 trials" in text
    assert " [0." not in text
    assert "p=" not in text


def test_comparisons_say_what_their_intervals_and_p_values_are() -> None:
    text = " ".join(render(make_run(["a", "b", "c"])).split())
    assert "Each interval is for its pair alone; p-values are corrected (Holm over 3 comparisons)." in text
    assert "p<0.001" in text or "p=0." in text


def test_the_delay_always_shows_its_number_of_trials() -> None:
    cells = [make_cell([], [0.5], [0.5], [0.0, 0.9], trial=make_trial(s), id=str(s)) for s in range(6)]
    (row,) = [line for line in render(cells).splitlines() if "Delay of detection" in line]
    assert "0.00 [0.00, 1.84] n=6" in row


def test_a_silent_agent_has_dashes_for_detection_where_others_have_values() -> None:
    silent = [make_cell([], [0.5], [0.5], trial=make_trial(s), id=str(s)) for s in range(6)]
    assert "Correct detection" not in render(silent)
    telling = [make_cell([], [0.5], [0.5], [0.0, 0.9], agent="bob", trial=make_trial(s), id=f"b{s}") for s in range(6)]
    (row,) = [line for line in render([*silent, *telling]).splitlines() if "Correct detection  " in line]
    assert row.split("│")[2].strip() == "–"
    assert row.split("│")[3].strip().startswith("1.00")


def test_names_are_no_markup() -> None:
    assert "[bold]x[/bold]" in render(make_run(["[bold]x[/bold]"]))


def test_many_agents_are_compared_with_the_best() -> None:
    text = render(make_run([f"a{number}" for number in range(7)], trials=5))
    assert "Of 21 pairs only those with a0 are shown, the agent that wins most often." in text


def test_without_novelty_there_is_only_a_test() -> None:
    text = render([make_cell([], [0.9], [], trial=make_trial(s, novelty=())) for s in range(5)])
    assert "Performance in the test" in text
    assert "before the onset" not in text


COUNTABLE = "the onset is fixed or published, so agents can detect the change by counting"


def test_a_line_says_where_counting_finds_the_change() -> None:
    assert f"\nagents are not told when the world changes\n{COUNTABLE}\n" in "\n".join(
        map(str.rstrip, render(make_run()).splitlines())
    )
    assert COUNTABLE not in render(make_run(window=(1, 3)))
    assert COUNTABLE not in render(make_run(red_light=True))
    assert COUNTABLE not in render(make_run(novelty=()))
    blind, known = make_run(["ada"], window=(1, 3)), make_run(["bob"])
    assert f"{COUNTABLE} (bob)" in render([*blind, *known])


def test_unchanged_trials_are_no_reason_for_that_line_nor_against_it() -> None:
    twins = make_run(phases=(Phase("test", 6),), scenario=("swap",))
    assert COUNTABLE in render([*make_run(), *twins])
    assert COUNTABLE not in render([*make_run(window=(1, 3)), *twins])


def print_at(width: int, names: list[str]) -> list[str]:
    console = Console(width=width, file=io.StringIO())
    with console.capture() as captured:
        console.print(render_summary(summarise(make_run(names, trials=5), BUILT_IN), {}))
    lines = captured.get().splitlines()
    assert all(len(line) <= width for line in lines)
    return lines


def test_many_agents_stand_in_one_table_with_a_row_each() -> None:
    names = [f"agent{number}" for number in range(7)]
    printed = print_at(80, names)
    border = next(number for number, line in enumerate(printed) if line.split()[:2] == ["first", "second"])
    lines, compared = printed[:border], printed[border:]
    rows = [line.split()[0] for line in lines if line.startswith("  agent")]
    assert sorted(rows) == sorted([*names, *names])  # two tables: no number is left out
    words = " ".join(lines[next(at for at, line in enumerate(lines) if "before" in line) :]).split()
    assert [words.count(title) for title in ("before", "after", "Correct", "Delay", "alarm")] == [1] * 5
    below = [lines[number + 1] for number, line in enumerate(lines) if line.startswith("  agent")]
    assert all("7 done" in line or "5 done" in line for line in below)
    pairs = [number for number, line in enumerate(compared) if line.startswith("  agent")]
    assert [len(compared[number].split()) for number in pairs] == [5] * 6
    assert all(compared[number + 1].count("[") == 2 for number in pairs)  # two lines each
    assert all(compared[number + 1].endswith("5 shared trials  ") for number in pairs)


def test_the_best_agent_comes_first_and_short_names_are_explained() -> None:
    names = ["zero", "my/agents.py:Net(rate=0.5)", "my/agents.py:Net(rate=0.7)"]
    lines = print_at(200, names)
    (head,) = [line for line in lines if line.startswith("┃") and "zero" in line and "first" not in line]
    assert "Net(rate=0.5)" in head
    assert "my/agents.py" not in head
    assert any("Net(rate=0.5) is my/agents.py:Net(rate=0.5)" in line for line in lines)


def test_controls_stand_in_a_table_below() -> None:
    controls = [replace(cell, agent=f"control {cell.agent}", control=True) for cell in make_run()]
    text = render([*make_run(), *controls])
    above, below = text.split("Controls", 1)
    assert "control ada" not in above
    assert "P(first is better)" in above
    assert "control ada" in below
    assert "are in no comparison" in " ".join(below.split())


def test_controls_may_be_alone() -> None:
    assert "ada" in render([replace(cell, control=True) for cell in make_run()])


def test_a_campaign_ends_with_one_table_of_agents_and_domains() -> None:
    text = render([*make_run(), *make_run(["ada"], domain="two")])
    table = text[text.index("All domains: Performance after the onset") :]
    assert text.count("All domains") == 1
    head, *rows = [line for line in table.splitlines() if "┃" in line or "│" in line]
    assert [word.strip() for word in head.strip("┃").split("┃")] == ["rank", "", "maze", "two", "mean"]
    assert [row.split("│")[2].strip() for row in rows] == ["ada", "bob"]
    assert "*" in rows[0].split("│")[3]
    assert "All domains" not in render(make_run())
