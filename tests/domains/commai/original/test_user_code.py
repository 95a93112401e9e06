"""Learners, tasks, worlds and configurations of users, written for the original and loaded unchanged."""

import json
import pickle
import random
import re
import sys
import types

import pytest

from openfield.cli import run_command
from openfield.domains.commai import DOMAIN, LearnerSession, load_configuration, load_learner, make_environment
from openfield.domains.commai.agents.original_learners import (
    BaseLearner,
    HumanLearner,
    SampleMemorizingLearner,
    SampleSilentLearner,
)
from openfield.domains.commai.curriculum import open_scheduler
from openfield.domains.commai.original.configuration import convert_scheduler
from openfield.domains.commai.original.core.events import TaskFailed
from openfield.domains.commai.original.core.scheduler import DependenciesTaskScheduler
from openfield.domains.commai.original.core.serializer import ScramblingSerializerWrapper, StandardSerializer
from openfield.domains.commai.original.core.task import Task, on_timeout
from openfield.domains.commai.original.grid_world import GridWorld
from openfield.domains.commai.original.hosting import ForeignScheduler, HostedEnvironment
from openfield.domains.commai.original.imports import user_folder
from openfield.domains.commai.original.tasks.challenge_micro import (
    CLASSES,
    FeedbackMappingTaskMixin,
    MicroBase,
    MicroMappingTask,
    TaskGenerator,
)
from openfield.domains.commai.original.tasks.navigation import TurningTask
from openfield.domains.commai.settings import CommaiSettings
from openfield.errors import InvalidInput
from openfield.journal.reader import Run
from openfield.registry import find_agent
from openfield.trial import Trial
from support.commai_streams import make, play

TASKS = """
import random

import my_helpers
from core.task import Task, on_message, on_start, on_state_changed, on_timeout
from tasks.competition.base import BaseTask
from tasks.competition.navigation import TurningTask
from tasks.challenge.round1.challenge_micro import Micro5Sub1Task, MicroBase
from tasks.challenge.round1.task_generator import TaskGenerator


class MovingTask(Task):
    def __init__(self, world, patience=40):
        super(MovingTask, self).__init__(max_time=patience, world=world)

    @on_start()
    def on_start(self, event):
        from tasks.competition.messages import number_to_string
        self.word = random.choice(my_helpers.WORDS)
        self.set_message("steps: %s, %s." % (number_to_string(2), self.word))

    @on_state_changed(lambda ws, ts: ws.steps >= 2)
    def on_walked(self, event):
        self.set_result(1, my_helpers.praise())


class Half(TurningTask):
    pass


class Digits(Micro5Sub1Task):
    FAILED_TASK_TOLERANCE = 3.0


class Broken(BaseTask):
    def __init__(self, world=None):
        super(Broken, self).__init__(max_time=10, world=world)

    @on_message()
    def listen(self, event):
        raise ValueError("no ears")
"""
WORLDS = """
from core.task import World, on_message, on_world_start


class GridWorld(World):
    @on_world_start()
    def begin(self, event):
        self.state.steps = 0

    @on_message(r"step\\.$")
    def on_step(self, event):
        self.state.steps += 1
        self.set_message("ok.")
"""
HELPERS = """
import learners.notes
from worlds.grid_world import Point

WORDS = ["tea", "milk", "water"]

def praise():
    import core.serializer
    return "well done." if core.serializer.StandardSerializer and learners.notes.KNOWN else ""
"""
LEARNERS = """
from learners.base import BaseLearner
import learners.notes


class Walker(BaseLearner):
    text = "step."

    def __init__(self):
        self.said = ""
        self.rewards = []

    def reward(self, reward):
        self.rewards.append(reward)

    def next(self, symbol):
        from core.serializer import StandardSerializer
        if symbol in "01":
            bits = StandardSerializer().to_binary(" " * 30 + self.text)
            self.said += "x"
            return bits[(len(self.said) - 1) % len(bits)]
        self.said += self.text[len(self.said) % len(self.text)]
        return self.said[-1]
"""
CONFIGURATION = {
    "worlds": {"mine": {"type": "my_worlds.GridWorld"}},
    "tasks": {"walk": {"type": "my_tasks.MovingTask", "world": "mine"}},
    "scheduler": {"type": "core.scheduler.IncrementalTaskScheduler", "args": {"tasks": ["walk"]}},
}
PYTHON = """
from core.scheduler import SequentialTaskScheduler
from my_tasks import MovingTask, Digits
from my_worlds import GridWorld
from tasks.challenge.round1.challenge_micro import Micro1Task


class Counted(SequentialTaskScheduler):
    results = []

    def reward(self, result):
        self.results.append(result)


def create_tasks():
    world = GridWorld()
    return Counted([MovingTask(world), MovingTask(world=world, patience=30), Digits(), Micro1Task()])
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    files = {
        "my_tasks.py": TASKS,
        "my_worlds.py": WORLDS,
        "my_helpers.py": HELPERS,
        "learners/notes.py": "KNOWN = True\n",
        "learners/walkers.py": LEARNERS,
        "walkers.py": LEARNERS,
        "config.json": json.dumps(CONFIGURATION),
        "config.py": PYTHON,
        "learners/base.py": "raise SystemExit('a checkout of the original')\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    before = {*sys.modules}
    yield tmp_path
    for name in {*sys.modules} - before:
        if name.partition(".")[0] in ("my_tasks", "my_worlds", "my_helpers", "walkers", "learners"):
            del sys.modules[name]


def words(steps, settings=None, seed=1, learner=None):
    """Play a learner and return what the teacher said, and the rewards."""
    chosen = settings or CommaiSettings(configuration=CONFIGURATION)
    environment = make_environment(chosen, seed, open_scheduler(chosen, seed))
    told = []
    session = LearnerSession(
        environment, learner or Steps(), lambda symbol, reward, said: told.append((symbol, reward))
    )
    session.run(steps)
    return "".join(symbol for symbol, _ in told), sum(reward for _, reward in told), environment


class Steps(BaseLearner):
    text, at = "step.     ", 0

    def next(self, symbol):
        self.at += 1
        return self.text[self.at % len(self.text)]


def test_a_user_world_and_a_user_task_play_from_json_and_repeat_with_the_seed():
    said, reward, environment = words(200)
    assert isinstance(environment, HostedEnvironment)
    assert "well done." in said
    assert reward == environment.tallies()["walk"].solved > 1
    state = random.getstate()
    assert words(200)[0] == said
    assert random.getstate() == state
    assert words(200, seed=2)[0] != said


def test_the_same_names_of_the_original_are_ours():
    table = json.loads(json.dumps(CONFIGURATION))
    table["worlds"]["mine"]["type"] = "worlds.grid_world.GridWorld"
    table["tasks"]["walk"]["type"] = "tasks.competition.navigation.MovingTask"
    scheduler, _ = load_configuration(table)
    assert scheduler.tasks[0].kind == "navigation.Moving"
    scheduler, _ = load_configuration(CONFIGURATION)
    assert type(scheduler.tasks[0].hosted).__module__ == "my_tasks"
    assert type(scheduler.tasks[0].world).__module__ == "my_worlds"


def test_arguments_of_a_user_task_are_keyword_arguments():
    table = json.loads(json.dumps(CONFIGURATION))
    table["tasks"]["walk"]["args"] = {"patience": 77}
    scheduler, _ = load_configuration(table)
    assert scheduler.tasks[0].max_time == 77
    table["tasks"]["walk"]["args"] = {"colour": 1}
    with pytest.raises(InvalidInput, match=r"tasks\.walk: MovingTask cannot be made: .*colour"):
        load_configuration(table)


def test_a_python_configuration_with_a_scheduler_of_its_own_beside_tasks_of_ours():
    said, _, environment = words(6000, CommaiSettings(module="config.py"))
    results = environment.scheduler.foreign.results
    assert "well done." in said
    assert 1 in results
    assert {"MovingTask", "Digits", "Micro1Task"} <= environment.tallies().keys()


def test_bit_mode_counts_bits_and_a_learner_on_the_base_class_plays_in_both():
    for bits in (False, True):
        chosen = CommaiSettings(configuration=CONFIGURATION, bit_mode=bits, max_steps=4000)
        (trial,) = DOMAIN.trials(1, 3, "none", **{"configuration": CONFIGURATION, "bit_mode": bits, "max_steps": 400})
        agent = find_agent("walkers:Walker", DOMAIN)(DOMAIN.spec(trial), 0)
        world = DOMAIN.world(trial)
        turn = world.reset()
        while not world.over:
            turn = world.step(agent(turn))
        agent(turn)
        assert len(agent.learner.rewards) == chosen.max_steps // 10 + 1
        assert all(type(reward) is int for reward in agent.learner.rewards)
        assert bits or sum(agent.learner.rewards) > 0


def test_an_edited_task_is_another_trial(folder):
    (trial,) = DOMAIN.trials(1, 3, "none", configuration=CONFIGURATION)
    assert trial.files.keys() == {"my_tasks.py", "my_worlds.py", "my_helpers.py", "learners/notes.py"}
    (named,) = DOMAIN.trials(1, 3, "none", module="config.py")
    assert named.files.keys() == {"config.py", *trial.files}
    table = CONFIGURATION | {"scheduler": {"type": "core.scheduler.ConsecutiveTaskScheduler", "args": {"tasks": []}}}
    table["tasks"] = {"walk": CONFIGURATION["tasks"]["walk"], "turn": {"type": "tasks.competition.moved.TurningTask"}}
    table["scheduler"]["args"]["tasks"] = ["walk", "turn"]
    first, *alone = DOMAIN.trials(1, 3, configuration=table, design="gradual")
    assert first.files == trial.files
    assert {each.reference_for for each in alone} == {first.id}
    (folder / "my_helpers.py").write_text(HELPERS + "\n")
    (edited,) = DOMAIN.trials(1, 3, "none", configuration=CONFIGURATION)
    assert edited.id != trial.id
    DOMAIN.world(edited)
    for old in (trial, named):
        with pytest.raises(InvalidInput, match=r"my_helpers\.py is not the file this trial was made with"):
            DOMAIN.world(old)


@pytest.mark.parametrize("agent", ["walkers:Walker", "learners.walkers:Walker", "walkers.py:Walker"])
def test_learners_are_found_beside_the_old_packages_and_below_them(agent):
    trial = Trial(domain="commai", version=DOMAIN.version, seed=1, phases=DOMAIN.phases(CommaiSettings(), ()))
    made = find_agent(agent, DOMAIN)(DOMAIN.spec(trial), 0)
    assert isinstance(made.learner, BaseLearner)
    assert "core.task" not in sys.modules
    assert "learners.base" not in sys.modules
    if "py:" not in agent:
        assert type(pickle.loads(pickle.dumps(made.learner))) is type(made.learner)


def test_others_keep_their_packages_of_the_same_names(monkeypatch, folder):
    (folder / "core.py").write_text("MINE = 1\n")
    (folder / "uses_core.py").write_text("import core\n")
    theirs = types.ModuleType("tasks")
    monkeypatch.setitem(sys.modules, "tasks", theirs)
    words(60)
    import core

    assert core.MINE == 1
    assert sys.modules["tasks"] is theirs
    module = user_folder().import_module("my_tasks")
    assert module.BaseTask.__module__.startswith("openfield.")
    del sys.modules["core"]


def test_a_run_plays_user_code_in_workers_and_says_what_fails(capsys, folder, monkeypatch):
    assert run_command(["run", "commai", "config.json", "-l", "walkers.Walker", "--step-budget", "300"]) == 0
    with Run("runs/commai.sqlite") as run:
        (cell,) = run.cells()
    assert cell.outcome in ("done", "truncated")
    assert any(episode.detail["solved"] for episode in cell.episodes)
    assert run_command(["verify", "runs/commai.sqlite", "--replay"]) == 0
    capsys.readouterr()
    assert run_command(["show", "runs/commai.sqlite", "--source", "my_helpers.py"]) == 0
    assert 'WORDS = ["tea", "milk", "water"]' in capsys.readouterr().out
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))  # another user, who signed nothing
    assert run_command(["verify", "runs/commai.sqlite", "--replay"]) == 2
    assert "names code that you did not sign" in (told := capsys.readouterr().err)
    assert "my_tasks:MovingTask, my_worlds:GridWorld" in told
    again = ["run", "commai", "-l", "walkers.Walker", "--trials-of", "runs/commai.sqlite", "--workers", "0"]
    assert run_command([*again, "-o", "again.sqlite"]) == 2
    assert "names code that you did not sign" in capsys.readouterr().err
    assert run_command([*again, "-o", "again.sqlite", "--trust"]) == 0
    table = json.loads(json.dumps(CONFIGURATION))
    table["tasks"]["walk"] = {"type": "my_tasks.Broken"}
    (folder / "config.json").write_text(json.dumps(table))
    run_command(["run", "commai", "config.json", "-l", "walkers.Walker", "--workers", "0", "-o", "broken.sqlite"])
    with Run("broken.sqlite") as run:
        (cell,) = run.cells()
    assert "Broken.listen, at MessageReceived: ValueError: no ears" in cell.note


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("from core.task import Nothing\n", r"my_bad\.py, line 1: ImportError: cannot import name 'Nothing'"),
        ("import tasks.unheard_of\n", r"my_bad\.py, line 1: ModuleNotFoundError: No module named 'tasks\.unheard_of'"),
        ("import no_such_library\n", r"my_bad\.py, line 1: ModuleNotFoundError: No module named 'no_such_library'"),
        ("class Other:\n    pass\n", r"Unknown class 'It'.*In my_bad: Other"),
        ("It = 3\n", r"my_bad\.It is not a task"),
        ("from tasks.micro.lookup_tables import It\n", "tasks.micro.lookup_tables of the original is known, but not"),
        ("def (\n", r"my_bad\.py, line 1: SyntaxError"),
    ],
)
def test_a_task_that_cannot_load_says_what_is_missing(folder, text, complaint):
    (folder / "my_bad.py").write_text(text)
    sys.modules.pop("my_bad", None)
    table = json.loads(json.dumps(CONFIGURATION))
    table["tasks"]["walk"] = {"type": "my_bad.It"}
    with pytest.raises(InvalidInput, match=complaint):
        load_configuration(table)
    sys.modules.pop("my_bad", None)


def test_an_error_of_a_condition_names_class_method_and_event():
    scheduler, _ = load_configuration(CONFIGURATION)
    environment = make_environment(scheduler=scheduler)
    environment.next(None)
    del environment._core._current_world.state.steps
    with pytest.raises(TaskFailed, match=r"MovingTask\.on_walked, at StateChanged: AttributeError"):
        scheduler.tasks[0].hosted.state.x = 1

    class Fussy:
        def step(self, reward):
            raise ValueError("not this one")

    with pytest.raises(TaskFailed, match=r"Fussy\.step: ValueError: not this one"):
        ForeignScheduler(Fussy()).record(1)


# Learners of the original


def test_the_base_learner_repeats_and_passes_rewards_on():
    heard = []

    class Learner(BaseLearner):
        def reward(self, reward):
            heard.append(reward)

    learner = Learner()
    learner.try_reward(None)
    learner.try_reward(0)
    assert (learner.next("x"), heard) == ("x", [0])

    class Person(HumanLearner):
        def __init__(self, serializer, byte_mode):
            super().__init__(serializer, byte_mode)
            self.given = serializer.to_binary("a"), byte_mode

    trial = Trial(domain="commai", version=DOMAIN.version, seed=1, phases=DOMAIN.phases(CommaiSettings(), ()))
    assert DOMAIN.adapt(Person, {})(DOMAIN.spec(trial), 0).learner.given == ("01100001", True)


def test_sample_learners_are_silent_and_memorise():
    silent = SampleSilentLearner()
    assert "".join(silent.next("0") for _ in range(16)) == "00100000" * 2
    assert silent.next("a") == " "
    memorising = SampleMemorizingLearner()
    assert "".join(memorising.next(symbol) for symbol in "hi.  abc") == "    hi. "
    memorising.reward(0)
    assert memorising.next("d") == " "
    memorising.reward(1)
    assert "".join(memorising.next(symbol) for symbol in "ab") == "  "


@pytest.mark.parametrize("calls", ["every", "ends"])
def test_rewards_are_told_at_every_step_or_at_the_ends_of_instances(calls):
    told = []

    class Learner(BaseLearner):
        def try_reward(self, reward):
            told.append(reward)

        def next(self, symbol):
            return symbol if symbol != "z" else "y"

    settings = {"tasks": "sample.RepeatingChar", "scheduler": "sequential", "max_steps": 60, "reward_calls": calls}
    (trial,) = DOMAIN.trials(1, 5, "none", **settings)
    world = DOMAIN.world(trial)
    agent = DOMAIN.adapt(Learner, {})(DOMAIN.spec(trial), 0)
    turn, ends = world.reset(), []
    while not world.over:
        turn = world.step(agent(turn))
        ends.append(world.truth.episode_over)
    if calls == "every":
        assert None not in told
        assert sum(told) > 5
    else:
        assert [reward for reward in told if reward is not None] == [1] * (sum(ends) - 1)
        assert None in told or all(ends)


ELSEWHERE = """
from learners.base import BaseLearner
from core.serializer import StandardSerializer
import beside


class Prompter(BaseLearner):
    def next(self, symbol):
        from core.serializer import IdentitySerializer
        return beside.SAID if IdentitySerializer().to_text("x") else symbol
"""


def test_a_learner_outside_the_working_folder_finds_the_original(tmp_path, monkeypatch):
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there / "learners"):
        folder.mkdir(parents=True)
    (there / "prompters_of_a_user.py").write_text(ELSEWHERE)
    (there / "beside.py").write_text("from learners.own import SAID")
    (there / "learners" / "own.py").write_text("SAID = 'y'")
    monkeypatch.chdir(here)
    monkeypatch.setattr(sys, "path", [str(there), *sys.path])
    assert load_learner("prompters_of_a_user.Prompter").next("a") == "y"
    assert find_agent("prompters_of_a_user:Prompter", DOMAIN) is not None


def test_a_checkout_on_the_path_has_learners_and_tasks_below_the_old_packages(tmp_path, monkeypatch):
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    for package, module, code in (
        ("learners", "of_a_checkout", "from learners.base import BaseLearner\nclass Mine(BaseLearner): pass"),
        ("tasks/micro", "nano", "from core.task import Task\nclass Task0(Task): pass"),
        ("core", "task", "raise RuntimeError('ours is used')"),
    ):
        (there / package).mkdir(parents=True)
        (there / package / f"{module}.py").write_text(code)
    monkeypatch.chdir(here)
    monkeypatch.setattr(sys, "path", [str(there), *sys.path])
    assert load_learner("learners.of_a_checkout.Mine").next("a") == "a"
    assert user_folder().import_module("tasks.micro.nano").Task0.__name__ == "Task0"


def test_task_files_of_a_checkout_load_though_they_are_not_shipped(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ImportError, match="known, but not shipped"):
        user_folder().import_module("tasks.micro.nano")
    (tmp_path / "tasks" / "micro").mkdir(parents=True)
    (tmp_path / "tasks" / "micro" / "nano.py").write_text(
        "from core.task import Task\n\nclass Task0(Task):\n    pass\n"
    )
    assert user_folder().import_module("tasks.micro.nano").Task0.__name__ == "Task0"


def test_dependencies_are_those_of_objects():
    kinds = [types.new_class(name, (Task,)) for name in ("FlipX", "RepeatNX")]
    first, middle, last = kinds[0](10), kinds[1](10), kinds[0](10)
    made = DependenciesTaskScheduler([first, middle, last], [(first, middle), (middle, last)], 1)
    converted = convert_scheduler(made, (), "here")
    assert made.get_next_task() is first
    made.reward(1)
    assert {id(made.get_next_task()) for _ in range(30)} == {id(first), id(middle)}
    rng = random.Random(1)
    assert {converted.next_task(rng).hosted for _ in range(9)} == {first}
    converted.record(1)
    assert {converted.next_task(rng).hosted for _ in range(30)} == {first, middle}


def test_two_objects_of_one_name_are_one_task_in_the_results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "twice.py").write_text(
        "from core.scheduler import DependenciesTaskScheduler\n"
        "from tasks.challenge.round1.challenge_micro import Micro1Task, Micro4Task\n"
        "def create_tasks():\n"
        "    made = [Micro1Task(), Micro4Task(), Micro1Task()]\n"
        "    return DependenciesTaskScheduler(made, [(made[0], made[1]), (made[1], made[2])], 2)\n"
    )
    words = ["run", "commai", "twice.py", "-a", "silent", "--trials", "1", "--workers", "0", "-o", "twice.sqlite"]
    assert run_command([*words, "--set", "max_steps=1500"]) == 0
    with Run(tmp_path / "twice.sqlite") as run:
        assert {episode.detail["of"] for cell in run.cells() for episode in cell.episodes} == {2}


def test_what_tasks_of_third_parties_read_is_there():
    task = CLASSES["Micro1Task"]()
    play(make(task), "____")
    assert len(task.alphabet) == 10
    assert task.answer in task.alphabet
    assert task.under_time_limit_for_successfull_solution()
    assert [trigger.type.__name__ for trigger in task.get_triggers()] == ["MessageReceived", "Timeout", "Start"]
    pairs = ScramblingSerializerWrapper(StandardSerializer()).tokenise("a bc, d")
    assert pairs == [("a", " "), ("bc", ","), ("", " "), ("d", "")]


class Parrot(MicroBase):
    """A micro task as users write them: one character is the answer."""

    def get_task_generator(self):
        return TaskGenerator(lambda generator: ("q", ["x"]))


def test_every_character_ends_an_answer_by_default():
    rng = random.Random(1)
    said = "".join(chr(rng.randrange(33, 127)) for _ in range(3_000))
    paid = play(make(Parrot()), said)[1]
    assert paid.count("-") + paid.count("+") == 2_999


class Strict(Parrot):
    """A micro task that says something of its own when too many questions were asked."""

    @on_timeout()
    def on_too_late(self, event):
        self.set_message("that was all.")


@pytest.mark.parametrize("kind", [Parrot, Strict])
def test_an_instance_that_is_given_up_times_out(kind):
    task, results = kind(), []
    environment = make(task)
    environment._task_scheduler.reward = results.append
    said = "".join(environment.next(symbol)[0] for symbol in " " + "y" * 200)
    assert results == [False]
    assert said.count("that was all.") == (kind is Strict)


class Table(FeedbackMappingTaskMixin):
    task_gen_kwargs = {"input_sep": ".", "feedback_sep": ";"}

    def _get_mapping(self):
        return {"a": "1", "b": "22"}


def test_a_mapping_of_a_user_is_asked():
    table, told = Table(), {"a": "1", "b": "22"}
    environment = make(table)
    spoken, paid, heard = "", 0, None
    for _ in range(100):
        symbol, reward = environment.next(heard)
        spoken, paid = spoken + symbol, paid + reward
        rest = told[table.question[0]][len(table.agent_answer) :]
        heard = rest[:1] if environment.is_silent() else " "
    assert re.match(r"(a\. ?1;|b\. ?22;)+", spoken.replace(" ", ""))
    assert paid >= 10
    assert isinstance(CLASSES["Micro5Sub3Task"](), MicroMappingTask)


@pytest.mark.parametrize(("name", "answer"), [("Micro5Sub5Task", "7"), ("Micro2Task", "k")])
def test_an_overridden_mapping_takes_effect(name, answer):
    class Mine(CLASSES[name]):
        def _get_mapping(self):
            return {"5": answer}

    task = Mine()
    play(make(task), "____")
    assert task.question[0] == "5"
    assert task.answer.rstrip(".") == answer
    drawn = CLASSES[name]()
    play(make(drawn), "_")
    assert len(drawn._get_mapping()) >= 10


def test_an_overridden_time_out_of_navigation_takes_effect():
    class Mine(TurningTask):
        limit = 20

        @on_timeout()
        def fail_learner(self, event):
            self.set_result(0, "late.")

    assert "late." in play(make(Mine(GridWorld())), "_" * 40)[0]
    assert play(make(Mine(GridWorld())), "_" * 40)[0].count(".") == 3, "no other text about the time"
