"""The page and the terminal show a curriculum: which task when, learning curves, and each task's numbers."""

import io
import re

import msgspec
import pytest
from rich.console import Console

import openfield as of
from openfield.metrics.scenario import group_cells
from openfield.report.figures import TrialLinks
from openfield.report.figures.curriculum import average_marks, trace_tasks
from openfield.report.render import Detail

TASKS = "micro4,micro2,micro1"


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    trials = of.trials("commai", 5, design="gradual", tasks=TASKS, task_budget=300)
    return of.run(["echo"], trials, tmp_path_factory.mktemp("run") / "run.sqlite")


@pytest.fixture(scope="module")
def page(result, tmp_path_factory):
    return result.page(tmp_path_factory.mktemp("page") / "page.html").read_text()


def say(result):
    file = io.StringIO()
    Console(file=file, width=160).print(result.table())
    return file.getvalue()


def test_the_picture_shows_each_trial_and_where_tasks_were_solved(page):
    picture = page[page.index("The curriculum over time") : page.index("Learning curves")]
    lines = re.findall(r'<path class="w" d="(M[^h"]+)"/>', picture)
    assert len(lines) == len(re.findall(r'<path class="w v" d="M[^h"]+V', picture)) == 5
    assert {len(set(re.findall(r"V(\d+)", line))) for line in lines} == {3}  # a row for each task
    dots = [path.count("h0") for path in re.findall(r'<path class="w q" d="(M[^"]+)"', picture)][1:]
    assert len(dots) == 5  # an echo solves micro4 at once, and again in the retest
    assert min(dots) >= 2
    assert all(f">{name}</text>" in picture for name in TASKS.split(","))


def test_each_task_has_a_learning_curve_in_the_curriculum_and_alone(page):
    curves = page[page.index("Learning curves") : page.index("<h3>Tasks: echo")]
    assert curves.count("<figure>") == 3
    assert curves.count('<path class="p"') == curves.count('<path class="b"') == 4  # one of each is the key's


def test_the_table_has_a_row_for_each_task(page):
    table = page[page.index("<h3>Tasks: echo") : page.index("All numbers and")]
    heads = re.findall(r'<th scope="(?:col|row)">([^<]+)<', table)
    assert heads == ["Task", "Solved", "Steps", "Alone", "Transfer", "Retention", *TASKS.split(","), "all tasks"]
    assert "budget of 300 steps" in table


class NamedCells(TrialLinks):
    """Takes the cells themselves for their address."""

    def find(self, cells):
        return sorted(cell.id for cell in cells)


def test_every_number_and_line_is_linked_to_the_cells_it_was_made_of(result):
    cells, (numbers,) = result.counted(), result.summary().curricula
    members = group_cells(cells)
    found = trace_tasks(numbers, members, cells, NamedCells("", []))
    own = sorted(cell.id for cell in members[numbers.scenario, "echo"])
    assert sorted(id for course in found.courses for id in course.address) == own == found.address
    alone = {
        task: sorted(cell.id for cell in cells if cell.trial.reference_for and cell.trial.settings["tasks"] == [task])
        for task in TASKS.split(",")
    }
    for task, curve in zip(alone, found.curves, strict=True):
        assert (curve.address, curve.plot.address) == (own, sorted([*own, *alone[task]]))
        both = sorted([*own, *alone[task]])
        assert [number.address for number in found.rows[task]] == [own, own, alone[task], both, own]
    everything = sorted([*own, *alone["micro4"], *alone["micro2"], *alone["micro1"]])
    assert found.rows["all tasks"][found.columns.index("transfer")].address == everything


def test_the_terminal_shows_tasks_that_have_steps_of_their_own(result):
    said = say(result)
    assert "Tasks of echo, 300 steps each" in said
    assert re.search(
        r"micro4 .*1.00 \[0.48, 1.00\] .*50.00 \(all 5 equal\) .*1.00 \(all 5 equal\) .*1.00 \(all 5 equal\)", said
    )


def test_controls_have_numbers_of_tasks_and_no_row_is_about_a_change(tmp_path):
    trials = of.trials("commai", 2, tasks=TASKS, max_steps=200)
    said = say(of.run(["echo", "sleeper"], trials, tmp_path / "run.sqlite"))
    assert "Effect of the change" not in said
    assert re.search(r"Controls\s.*Tasks solved.*sleeper", said, re.DOTALL)


def test_without_budgets_times_and_transfer_are_left_out(tmp_path):
    trials = of.trials("commai", 5, tasks=TASKS, max_steps=400)
    shared = of.run(["echo"], trials, tmp_path / "run.sqlite")
    page = shared.page(tmp_path / "page.html").read_text()
    table = page[page.index("<h3>Tasks: echo") : page.index("All numbers and")]
    assert "times cannot be compared" in table
    assert re.findall(r'<th scope="col">([^<]+)<', table) == ["Task", "Solved"]
    assert "Tasks of echo" not in say(shared)
    (numbers,) = shared.summary().curricula
    assert {task.steps for task in numbers.tasks} == {None}


def test_names_are_escaped_and_failed_trials_are_not_drawn(result, tmp_path):
    odd = of.Result([result.paths[0]])
    cells = [msgspec.structs.replace(cell, agent="<b>&", outcome="agent_error", note="x") for cell in odd.cells]
    odd.cells = [msgspec.structs.replace(cell, agent="<b>&") for cell in odd.cells[:-8]] + cells[-8:]
    page = odd.page(tmp_path / "page.html").read_text()
    assert "<b>&<" not in page
    assert "Tasks: &lt;b&gt;&amp;" in page
    picture = page[page.index("The curriculum over time") : page.index("Learning curves")]
    assert "3 trials" in picture


def test_a_curve_ends_where_fewer_than_half_of_the_trials_go_on():
    assert average_marks(["+-+-", "++", "+"], 1) == [(0, 1.0), (1, 0.5)]
    assert average_marks(["+-+-", "++"], 2) == [(1, 0.75), (3, 0.5)]
    assert average_marks([], 1) == []


@pytest.mark.parametrize(
    ("detail", "lacks"),
    [
        (Detail(4, 0, figures=False), "the pictures of tasks"),
        (Detail(0, 0, charts=False, figures=False), "the curves and the tasks one by one"),
    ],
)
def test_a_small_page_says_what_of_the_tasks_is_left_out(result, tmp_path, monkeypatch, detail, lacks):
    monkeypatch.setattr("openfield.report.page.DETAILS", (detail,))
    page = result.page(tmp_path / "page.html").read_text()
    assert f"Left out to keep this page small: {lacks}" in page
    assert ("Tasks: echo" in page) is detail.charts
