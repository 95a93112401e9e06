"""Who comes next: each rule, fed with verdicts."""

from collections import Counter
from random import Random

import pytest

from openfield.domains.commai import (
    CommaiSettings,
    ConsecutiveScheduler,
    DependenciesScheduler,
    IncrementalScheduler,
    RandomScheduler,
    SequentialScheduler,
    make_task,
)
from openfield.domains.commai.curriculum import make_scheduler
from openfield.domains.commai.environment.schedulers import IntrudedScheduler
from openfield.errors import InvalidInput, UnknownName


@pytest.fixture
def tasks():
    return [make_task(name) for name in ("micro1", "micro2", "micro3")]


def follow(scheduler, results):
    """The tasks chosen before each verdict and after the last."""
    rng, chosen = Random(1), []
    for result in [*results, None]:
        task = scheduler.next_task(rng)
        chosen.append(task.name[-1] if task else "-")
        if result is not None:
            scheduler.record(result)
    return "".join(chosen)


def test_random_is_uniform(tasks):
    scheduler, rng = RandomScheduler(tasks), Random(1)
    counts = Counter(scheduler.next_task(rng).name for _ in range(3000))
    assert all(900 < count < 1100 for count in counts.values())


def test_sequential_gives_each_one_instance(tasks):
    assert follow(SequentialScheduler(tasks), [0, 1, 0, 1]) == "12312"


def test_incremental_forgives_failures_and_goes_round(tasks):
    assert follow(IncrementalScheduler(tasks), [1, 0, 1, 0, 1, 1, 1, 1]) == "111222331"


def test_consecutive_wants_successes_in_a_row_and_ends(tasks):
    assert follow(ConsecutiveScheduler(tasks), [1, 0, 1, 1, 1, 1, 1, 1]) == "11112233-"


def test_consecutive_counts_from_a_negative_result(tasks):
    assert follow(ConsecutiveScheduler(tasks), [-1, True, True, True]) == "11112"


def test_consecutive_can_go_round(tasks):
    assert follow(ConsecutiveScheduler(tasks, 1, cyclic=True), [1, 1, 1, 1]) == "12312"


def test_an_intruder_comes_every_other_time_and_its_verdicts_do_not_count(tasks):
    intruded = IntrudedScheduler(IncrementalScheduler(tasks), make_task("micro4"))
    assert follow(intruded, [1, 0, 1, 0, 1, 1, 1, 1, 1]) == "4141414142"


def test_dependencies_unlock_tasks(tasks):
    scheduler = DependenciesScheduler(tasks, [(tasks[0], tasks[1]), (tasks[1], tasks[2])], unlock_threshold=2)
    chosen = follow(scheduler, [1] * 60)
    assert chosen.startswith("11")
    assert chosen.index("2") < chosen.index("3")
    assert chosen[: chosen.index("3")].count("2") >= 2


def test_a_task_counts_as_solved_after_ten_successes_unless_told_otherwise(tasks):
    assert follow(DependenciesScheduler(tasks[:2], [tasks[:2]]), [1] * 10) == "1" * 10 + "2"


def test_dependencies_without_success_stay_at_the_start(tasks):
    assert set(follow(DependenciesScheduler(tasks, [tasks[:2]]), [0] * 50)) == {"1", "3"}


def test_circles_and_strangers_are_refused(tasks):
    with pytest.raises(InvalidInput, match=r"circle: .*micro1.*micro2"):
        DependenciesScheduler(tasks, [tasks[:2], tasks[1::-1]])
    with pytest.raises(UnknownName, match="task in tasks_dependencies 'micro4'"):
        DependenciesScheduler(tasks, [(tasks[0], make_task("micro4"))])


def test_no_tasks_is_an_error():
    with pytest.raises(InvalidInput, match="at least one task"):
        RandomScheduler([])


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("random", RandomScheduler),
        ("sequential", SequentialScheduler),
        ("incremental", IncrementalScheduler),
        ("consecutive", ConsecutiveScheduler),
        ("dependencies", DependenciesScheduler),
    ],
)
def test_settings_choose_the_scheduler(name, kind):
    assert type(make_scheduler(CommaiSettings(scheduler=name, tasks=("micro1", "micro2")))) is kind


def test_dependencies_come_from_settings():
    settings = CommaiSettings(scheduler="dependencies", tasks=("micro1", "micro2"), dependencies=("micro1>micro2",))
    assert set(follow(make_scheduler(settings), [0] * 20)) == {"1"}


@pytest.mark.parametrize(("entry", "complaint"), [("micro1", "Write 'a>b'"), ("micro1>mini1", "'mini1'")])
def test_bad_dependencies_are_named(entry, complaint):
    settings = CommaiSettings(scheduler="dependencies", tasks=("micro1", "micro2"), dependencies=(entry,))
    with pytest.raises((InvalidInput, UnknownName), match=complaint):
        make_scheduler(settings)


def test_a_strict_curriculum_asks_for_twenty_mini_instances():
    scheduler = make_scheduler(CommaiSettings(tasks=("mini1",), strict=True))
    assert follow(scheduler, [1] * 19)[-1] == "1"
    assert follow(make_scheduler(CommaiSettings(tasks=("mini1",), strict=True)), [1] * 20)[-1] == "-"
