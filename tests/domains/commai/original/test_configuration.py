"""Configuration files: those of the original, Python ones, ours, and broken ones."""

import json
import sys

import pytest

from openfield.domains.commai import (
    ConsecutiveScheduler,
    DependenciesScheduler,
    LearnerSession,
    Oracle,
    load_configuration,
    make_environment,
    task_ids,
)
from openfield.domains.commai.original.configuration import class_of, find_task
from openfield.domains.commai.tasks.catalogue import CATALOGUE
from openfield.errors import InvalidInput
from support.places import ROOT

EXAMPLES = ROOT / "examples"
ROUND1 = "tasks.challenge.round1.challenge_micro"
ORIGINAL = {
    "worlds": {"grid_world": {"type": "worlds.grid_world.GridWorld"}},
    "tasks": {
        "first": {"type": f"{ROUND1}.Micro1Task"},
        "digits": {"type": f"{ROUND1}.Micro5Sub12Task"},
        "verify": {"type": "tasks.challenge.round1.challenge_mini.TaskSet3", "world": "grid_world"},
        "turn": {"type": "tasks.competition.navigation.TurningTask", "world": "grid_world"},
    },
    "scheduler": {
        "type": "core.scheduler.ConsecutiveTaskScheduler",
        "args": {"tasks": ["first", "digits", "verify", "turn"], "success_threshold": 2},
    },
}


def changed(**parts):
    return json.loads(json.dumps(ORIGINAL)) | parts


def test_a_file_of_the_original_runs(tmp_path):
    path = tmp_path / "tasks_config.json"
    path.write_text(json.dumps(ORIGINAL))
    scheduler, settings = load_configuration(path)
    environment = make_environment(settings, scheduler=scheduler)
    session = LearnerSession(environment, Oracle(environment))
    session.run(20_000)
    assert environment.over
    assert {name: tally.solved for name, tally in session.tallies().items()} == dict.fromkeys(ORIGINAL["tasks"], 2)
    assert scheduler.tasks[2].world is scheduler.tasks[3].world


def test_every_task_has_an_old_name():
    found = {find_task(f"{ROUND1}.{name}") for name in old_names()}
    assert found == set(task_ids(["all"]))


def old_names():
    for name in task_ids(["all"]):
        if name.startswith("mini"):
            yield f"TaskSet{name[4:]}"
        else:
            number, _, part = name[5:].partition(".")
            yield f"Micro{number}Sub{part}Task" if part else f"Micro{number}Task"


LEGACY_MODULES = {"small": "tasks.micro.repeat", "sample": "tasks.sample.sample_tasks"}


@pytest.mark.parametrize("name", [name for name in CATALOGUE if not name.startswith(("micro", "mini"))])
def test_every_task_of_the_older_sets_has_its_dotted_name_in_json_and_in_python(tmp_path, monkeypatch, name):
    group = name.partition(".")[0]
    module, short = LEGACY_MODULES.get(group, f"tasks.competition.{group}"), class_of(name).__name__
    table = {
        "worlds": {"w": {"type": "worlds.grid_world.GridWorld"}},
        "tasks": {"it": {"type": f"{module}.{short}", "world": "w"}},
        "scheduler": {"type": "core.scheduler.SequentialTaskScheduler", "args": {"tasks": ["it"]}},
    }
    scheduler, _ = load_configuration(table)
    assert scheduler.tasks[0].kind == name
    monkeypatch.chdir(tmp_path)
    (tmp_path / "setup.py").write_text(
        f"from core.scheduler import SequentialTaskScheduler as S\nfrom {module} import {short} as T\n"
        "from worlds.grid_world import GridWorld\ndef create_tasks():\n    return S([T(GridWorld())])\n"
    )
    scheduler, _ = load_configuration("setup.py")
    assert scheduler.tasks[0].kind == name


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("tasks.competition.repetition.BeSilentTask", "repetition.BeSilent"),
        ("tasks.sample.BeSilentTask", "sample.BeSilent"),
        ("tasks.competition.repetition.SeparatedByCATask", "repetition.RepeatWhatISayMultipleTimesSeparatedByCA"),
        ("tasks.competition.objects_properties.WhoHas", "objects_properties.WhoHasACertainObjectWithACertainProperty"),
        ("tasks.challenge.round1.challenge_micro.MicroTask3", "micro3"),
        ("tasks.challenge.round1.challenge_micro.Micro5Sub8", "micro5.8"),
        ("tasks.micro.repeat.Repeat3V2LTask", "small.Repeat3V2L"),
        ("tasks.competition.navigation.LookAround", "navigation.LookAround"),
        ("tasks.challenge.round1.challenge_micro.Micro17Task", None),
        ("tasks.nowhere.Nothing", None),
        ("tasks.competition.objects_properties.ObjectExistenceTask1", "objects_properties.ObjectExistence1"),
        ("tasks.sample.sample_tasks.SampleConflictingMessagesTask", "sample.ConflictingMessages"),
        ("my_tasks.MovingTask", None),
        ("a.Micro1Task", None),
    ],
)
def test_old_names_of_single_tasks(path, name):
    assert find_task(path) == name


def test_arguments_of_the_ancestor_and_plain_mappings_are_taken():
    table = changed()
    table["tasks"]["turn"] = {
        "type": "tasks.competition.navigation.TurningTask",
        "args": {"world": "grid_world", "max_time": 50},
    }
    scheduler, _ = load_configuration(table)
    assert scheduler.tasks[3].max_time == 50
    assert scheduler.tasks[3].world is scheduler.tasks[2].world


def test_pairs_of_tasks_are_resolved():
    args = {"tasks": ["first", "digits"], "tasks_dependencies": [["first", "digits"]], "unlock_threshold": 3}
    scheduler, _ = load_configuration(
        changed(scheduler={"type": "core.scheduler.DependenciesTaskScheduler", "args": args})
    )
    assert isinstance(scheduler, DependenciesScheduler)


@pytest.mark.parametrize(
    ("pairs", "complaint"),
    [
        ([["first", "digits", "first"]], "must be a list of 2 task ids"),
        (["first", "digits"], "'first' must be a list of 2 task ids"),
        ("first", "must be a list of pairs"),
        ([["first", "digits"], ["digits", "first"]], "form a circle: first"),
    ],
)
def test_bad_pairs_are_named_with_their_key(pairs, complaint):
    args = {"tasks": ["first", "digits"], "tasks_dependencies": pairs}
    table = changed(scheduler={"type": "core.scheduler.DependenciesTaskScheduler", "args": args})
    with pytest.raises(InvalidInput, match=rf"the configuration: scheduler\.args.*{complaint}"):
        load_configuration(table)


def test_a_task_of_ones_own_is_named_like_any_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "drinks.py").write_text((EXAMPLES / "commai_task.py").read_text())
    table = changed()
    table["tasks"]["mine"] = {"type": "drinks.Backwards", "args": {"failed_task_tolerance": 3}}
    table["scheduler"]["args"]["tasks"] = ["mine"]
    scheduler, _ = load_configuration(table)
    environment = make_environment(scheduler=scheduler)
    LearnerSession(environment, Oracle(environment)).run(5000)
    assert environment.tallies()["mine"].solved == 2


BROKEN = [
    (["worlds"], None, "the key 'worlds'"),
    (["worlds", "w"], {"type": "worlds.Sphere"}, r"worlds\.w\.type: Unknown class 'Sphere'"),
    (
        ["worlds", "w"],
        {"type": "worlds.round.Sphere"},
        r"worlds\.w\.type: worlds\.round\.Sphere cannot be loaded: No mod",
    ),
    (["worlds", "w"], {"type": "json.JSONDecoder"}, r"worlds\.w\.type: json\.JSONDecoder is not a world"),
    (
        ["tasks", "x"],
        {"type": "tasks.micro.nano.Task0"},
        r"tasks\.micro\.nano of the original is known, but not shipped",
    ),
    (["tasks", "x"], {"type": f"{ROUND1}.Micro99Task"}, r"Unknown class 'Micro99Task'. Did you mean 'Micro19Task'"),
    (["tasks", "x"], {"kind": 1}, r"tasks\.x: the key 'type'"),
    (
        ["tasks", "x"],
        {"type": "a.Micro99Task"},
        r"tasks\.x\.type: a\.Micro99Task cannot be loaded: No module named 'a'",
    ),
    (["tasks", "turn", "world"], "moon", r"tasks\.turn\.world: Unknown world 'moon'"),
    (["tasks", "turn", "args"], {"colour": 3}, r"tasks\.turn\.args\.colour"),
    (["tasks", "x"], {"type": "json.JSONDecoder"}, r"tasks\.x\.type: json\.JSONDecoder is not a task"),
    (["tasks", "x"], {"type": "json.Decoder"}, r"tasks\.x\.type: Unknown class 'Decoder'"),
    (["tasks", "turn", "args"], [1, 2], r"tasks\.turn\.args must be a table"),
    (["tasks", "turn", "args"], "abc", r"tasks\.turn\.args must be a table"),
    (["tasks", "turn", "args"], {"max_time": -5}, r"tasks\.turn\.args\.max_time must be a number of at least 1"),
    (
        ["tasks", "turn", "args"],
        {"name": "zzz"},
        r"tasks\.turn\.args\.name: Unknown argument 'name'.*Known: .*max_time",
    ),
    (["tasks", "turn", "world"], ["a"], r"tasks\.turn\.world: Unknown world"),
    (["scheduler", "type"], "core.scheduler.Nobody", r"scheduler\.type: Unknown scheduler .* Known: .*Consecutive"),
    (
        ["scheduler", "type"],
        "learners.base.RemoteLearner",
        r"RemoteLearner is not a scheduler: it must be a class with",
    ),
    (["scheduler", "args", "tasks"], "first", r"scheduler\.args\.tasks: 'first' must be a list of task ids"),
    (["scheduler", "args", "tasks"], {"a": 1}, r"scheduler\.args\.tasks: .* must be a list of task ids"),
    (["scheduler", "args", "tasks"], [{"a": 1}], r"scheduler\.args\.tasks: Unknown task"),
    (["scheduler", "args", "tasks"], [["first"]], r"scheduler\.args\.tasks: Unknown task"),
    (["scheduler", "args", "tasks"], [], r"scheduler\.args\.tasks: \[\] must be a list of task ids"),
    (["scheduler", "args", "success_threshold"], "abc", r"args\.success_threshold must be a number of at least 1"),
    (["scheduler", "args", "success_threshold"], None, r"args\.success_threshold must be a number of at least 1"),
    (["scheduler", "args", "success_threshold"], -5, r"args\.success_threshold must be a number of at least 1"),
    (["scheduler", "args", "cyclic"], 3, r"args\.cyclic must be true or false"),
    (["scheduler", "args", "tasks"], ["frist"], r"scheduler\.args\.tasks: Unknown task 'frist'. Did you mean 'first'"),
    (["scheduler", "args", "speed"], 3, r"scheduler\.args: .*speed"),
]


@pytest.mark.parametrize(("keys", "value", "complaint"), BROKEN)
def test_a_bad_file_names_the_key(tmp_path, keys, value, complaint):
    table = changed()
    part = table
    for key in keys[:-1]:
        part = part[key]
    part[keys[-1]] = value
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(table))
    with pytest.raises(InvalidInput, match=complaint) as caught:
        load_configuration(path)
    assert str(path) in str(caught.value)


def test_files_that_are_no_configuration(tmp_path):
    with pytest.raises(InvalidInput, match="There is no configuration file"):
        load_configuration(tmp_path / "missing.json")
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(InvalidInput, match="cannot be read"):
        load_configuration(tmp_path / "broken.json")
    (tmp_path / "broken.json").write_bytes(b'{"a": "\xff"}')
    with pytest.raises(InvalidInput, match="cannot be read"):
        load_configuration(tmp_path / "broken.json")
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(InvalidInput, match=r"must end in \.json, \.py or \.toml"):
        load_configuration(tmp_path / "notes.txt")


def test_our_own_toml(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('[commai]\ntasks = ["micro1", "mini"]\nscheduler = "random"\nscramble = "readable"\n')
    scheduler, settings = load_configuration(path)
    assert [task.name for task in scheduler.tasks][:2] == ["micro1", "mini0"]
    assert settings.scramble == "readable"
    path.write_text('schedular = "random"\n')
    with pytest.raises(InvalidInput, match=r"mine\.toml: Unknown setting 'schedular'. Did you mean 'scheduler'"):
        load_configuration(path)
    path.write_text('tasks = ["nope"]\n')
    with pytest.raises(InvalidInput, match=r"mine\.toml: Unknown task 'nope'"):
        load_configuration(path)
    path.write_text("success_threshold = 0\n")
    with pytest.raises(InvalidInput, match="success_threshold"):
        load_configuration(path)


PYTHON = """
from core.scheduler import ConsecutiveTaskScheduler
from tasks.challenge.round1.challenge_micro import Micro1Task, Micro5Sub2Task
from tasks.competition.navigation import TurningTask
from worlds.grid_world import GridWorld

def create_tasks():
    world = GridWorld()
    return ConsecutiveTaskScheduler([Micro1Task(), Micro5Sub2Task(), TurningTask(world)], success_threshold=3)
"""


def test_a_python_configuration_of_the_original(tmp_path, monkeypatch):
    elsewhere = sys.modules.get("worlds")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "setup.py").write_text(PYTHON)
    scheduler, _ = load_configuration("setup.py")
    assert isinstance(scheduler, ConsecutiveScheduler)
    assert [task.name for task in scheduler.tasks] == ["micro1", "micro5.2", "navigation.Turning"]
    assert "core.scheduler" not in sys.modules
    assert sys.modules.get("worlds") is elsewhere


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("x = 1", r"no function create_tasks\(\)"),
        ("def create_tasks():\n    return 3", "must return a scheduler, not int"),
        ("def create_tasks():\n    raise ValueError('boom')", r"setup\.py, line 2: ValueError: boom"),
        ("def create_tasks(:", r"setup\.py, line 1: SyntaxError"),
        ("from core.scheduler import Nope", r"setup\.py, line 1: ImportError: cannot import name 'Nope'"),
        ("from tasks.challenge.round1.challenge_micro import Micro99Task", "cannot import name 'Micro99Task'"),
    ],
)
def test_a_python_file_that_is_no_configuration(tmp_path, monkeypatch, text, complaint):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "setup.py").write_text(text)
    with pytest.raises(InvalidInput, match=complaint):
        load_configuration("setup.py")


def test_python_runs_only_from_the_working_directory(tmp_path):
    path = tmp_path / "elsewhere.py"
    path.write_text(PYTHON)
    with pytest.raises(InvalidInput, match="not inside the working directory"):
        load_configuration(path)
