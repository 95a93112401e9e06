"""The world: bytes as turns, hidden instances, budgets, bad symbols, and novelties that start when they should."""

import random
from typing import Any

import msgspec
import numpy as np
import pytest

import openfield as of
from openfield.core import Ask, Belief, Reply, Turn
from openfield.domains.commai import DOMAIN, CommaiSettings, make_environment
from openfield.domains.commai.agents.learner_agent import LearnerAgent
from openfield.domains.commai.agents.oracle import OracleAgent
from openfield.errors import AgentProtocol, InvalidInput, OpenfieldError
from openfield.rollout import Rollout, drive
from openfield.settings import make_settings

SPEC = of.Spec(domain="commai", task="", actions=of.spaces.Discrete(256))


def open_world(novelty="none", red_light=False, seed=0, **settings):
    (trial,) = DOMAIN.trials(1, seed, novelty, red_light, **settings, unchanged=0)
    return DOMAIN.world(trial)


def play(world, say, steps=10_000):
    """Every turn with its truth, the learner saying what `say` makes of each turn."""
    turn = world.reset()
    seen = [(turn, world.truth)]
    while turn.last is None and len(seen) < steps:
        turn = world.step(Reply(say(turn)))
        seen.append((turn, world.truth))
    return seen


def play_oracle(world):
    rollout = Rollout(world)
    oracle = OracleAgent(SPEC, 0)
    oracle.attend(world)
    seen = [(rollout.turn, world.truth)]
    while not rollout.over:
        rollout.reply(oracle(rollout.turn))
        seen.append((rollout.turn, world.truth))
    return seen[:-1]


def echo(turn):
    return turn.observation


def test_a_turn_is_a_byte_a_reward_and_nothing_else():
    seen = play(open_world(tasks="micro7.1", max_steps=400), echo)
    first, *middle, last = [turn for turn, _ in seen]
    assert bytes(turn.observation for turn, _ in seen[:5]) == b"say: "
    assert first == Turn(observation=ord("s"), first=True)
    assert last.last == "truncated"
    assert last.ask is Ask.NONE
    assert all(turn == Turn(observation=turn.observation, reward=turn.reward) for turn in middle)


def test_the_end_of_a_hidden_instance_is_truth_and_tells_how_it_went():
    seen = play(open_world(tasks="micro4", max_steps=35, cyclic=True), echo)
    ends = [truth.detail for _, truth in seen if truth.episode_over]
    assert [end["instance"] for end in ends] == [1, 2, 3, 4]
    assert ends[0] == {
        "task": "micro4",
        "instance": 1,
        "steps": 10,
        "marks": "++++++++++",
        "interruptions": 0,
        "solved": True,
        "of": 1,
        "at": 1,
        "streak": 1,
        "needs": 5,
    }
    assert ends[-1]["solved"] is None
    assert ends[-1]["marks"] == "+++++"
    assert [truth.performance for _, truth in seen if truth.episode_over] == [1.0] * 4


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "settings",
    [
        {"tasks": "micro5.6"},
        {"tasks": "micro8", "max_steps": 3001},
        {"tasks": ("micro1", "mini3", "micro13.2"), "scheduler": "sequential"},
        {"tasks": "micro7.1", "max_reward_per_task": 0},
        {"tasks": "navigation.Turning"},
        {"tasks": "micro7.2", "bit_mode": True},
        {"tasks": "micro7.2", "scramble": "readable"},
    ],
)
def test_a_world_says_what_its_environment_says_whatever_it_hears(settings, seed):
    chosen = {"max_steps": 3000, "cyclic": True, **settings}
    bits = chosen.get("bit_mode", False)
    rng = random.Random(seed)
    said = [rng.choice((0, 1) if bits else (32, 32, 32, 46, 97, 233)) for _ in range(chosen["max_steps"])]
    (trial,) = DOMAIN.trials(1, seed, "none", **chosen, unchanged=0)
    world, answers = DOMAIN.world(trial), iter(said)
    seen = [turn for turn, _ in play(world, lambda turn: next(answers))]
    environment = make_environment(make_settings(CommaiSettings, chosen), trial.seed)
    spoken = [environment.next(symbol) for symbol in (None, *(code if bits else chr(code) for code in said))]
    assert [(turn.observation, turn.reward) for turn in seen] == [(_code(text, bits), paid) for text, paid in spoken]
    assert world.environment.penalties == environment.penalties > 0
    books, expected = world.environment.tallies(), environment.tallies()
    assert {name: book.reward for name, book in books.items()} == {n: book.reward for n, book in expected.items()}


def _code(symbol, bits):
    return int(symbol) if bits else ord(symbol)


def test_the_curriculum_ends_the_trial_with_its_last_reward_counted():
    seen = play(open_world(tasks="micro4", success_threshold=2), echo)
    assert seen[-1][0].last == "terminated"
    assert sum(turn.reward for turn, _ in seen) == 20


def test_one_instance_may_end_in_the_step_after_another():
    seen = play(open_world(tasks="micro4", required_consecutive_rewards=1, success_threshold=3), echo)
    assert [truth.episode_over for _, truth in seen] == [False, True, True, True]


@pytest.mark.parametrize("action", [-1, 256, "ab", "", "ā", 1.5, [97], {"byte": 97}, b"a"])
def test_what_is_no_symbol_is_refused(action):
    world = open_world()
    world.reset()
    with pytest.raises(AgentProtocol, match="; a symbol is one character with a code from 0 to 255"):
        world.step(Reply(action))


def test_characters_and_numbers_are_the_same_symbols():
    by_number = play(open_world(tasks="micro4", max_steps=50), echo)
    by_character = play(open_world(tasks="micro4", max_steps=50), lambda turn: chr(turn.observation))
    assert by_number == by_character


def test_bit_mode_shows_bits_and_takes_them():
    world = open_world(tasks="micro7.1", bit_mode=True, max_steps=100)
    seen = play(world, lambda turn: 0)
    assert {turn.observation for turn, _ in seen} == {0, 1}
    with pytest.raises(AgentProtocol, match="'0' or '1'"):
        world.step(Reply(2))


def test_the_world_can_be_looked_at():
    world = open_world(tasks="navigation.Turning", bit_mode=True)
    world.reset()
    assert world.look("task") == "navigation.Turning"
    assert len(world.look("map").splitlines()) == 5
    with pytest.raises(OpenfieldError, match="Known: map, task"):
        world.look("score")


@pytest.mark.parametrize("red_light", [True, False])
def test_a_novelty_starts_after_so_many_instances_and_the_red_light_says_so_only_if_granted(red_light):
    world = open_world("alphabet:hard", red_light, tasks="micro4", cyclic=True, onset_instances=3, max_steps=80)
    seen = play(world, echo)
    onset = next(number for number, (_, truth) in enumerate(seen) if truth.novel)
    assert sum(truth.episode_over for _, truth in seen[: onset + 1]) == 3
    assert all(truth.novel for _, truth in seen[onset:])
    assert [turn.red_light for turn, _ in seen] == [truth.novel if red_light else None for _, truth in seen]


def test_a_novelty_may_start_after_so_many_steps_or_at_once():
    late = play(open_world("reward-sign", tasks="micro4", cyclic=True, onset_steps=42, max_steps=100), echo)
    onset = next(number for number, (_, truth) in enumerate(late) if truth.novel)
    assert onset == 50  # the first instance that starts after 42 steps
    assert {turn.reward for turn, _ in late[onset + 1 :]} == {-1.0}
    at_once = play(open_world("reward-sign", tasks="micro4", cyclic=True, onset_instances=0, max_steps=30), echo)
    assert all(truth.novel for _, truth in at_once)


TASKS = "micro6,micro7.2,micro14,mini1"


@pytest.mark.parametrize("novelty", [novelty.id for novelty in DOMAIN.novelties])
def test_every_novelty_takes_effect_and_the_oracle_still_solves_everything(novelty):
    settings = {"tasks": TASKS, "scheduler": "sequential", "onset_instances": 4, "max_steps": 4000}
    changed = play_oracle(open_world(novelty, **settings))
    normal = play_oracle(open_world(**settings))
    onset = next(number for number, (_, truth) in enumerate(changed) if truth.novel)
    assert [turn for turn, _ in changed[:onset]] == [turn for turn, _ in normal[:onset]]
    assert [turn for turn, _ in changed] != [turn for turn, _ in normal]
    solved = [truth.detail["solved"] for _, truth in changed if truth.episode_over]
    assert len(solved) > 8
    assert all(solved[:-1])


@pytest.mark.parametrize(
    ("task", "original", "strict"),
    [("micro2", (0.5, 0.7), (0.0, 0.0)), ("micro3", (0.9, 1.0), (0.0, 1 / 12))],  # a permutation may change nothing
)
def test_the_original_criterion_is_reported_beside_the_strict_one(task, original, strict):
    seen = play(open_world(tasks=task, strict=True, cyclic=True, max_steps=50_000), echo, 50_000)
    ends = [truth.detail for _, truth in seen if truth.episode_over][:-1]
    assert len(ends) > 50
    assert original[0] <= sum(bool(end["original"]) for end in ends) / len(ends) <= original[1]
    assert strict[0] <= sum(bool(end["solved"]) for end in ends) / len(ends) <= strict[1]


def test_a_trial_is_the_same_every_time_and_its_settings_travel_as_data():
    (trial,) = DOMAIN.trials(1, 7, "scrambling", tasks="micro7.2", onset_instances=1, max_steps=3000, unchanged=0)
    travelled = msgspec.json.decode(msgspec.json.encode(trial), type=of.Trial)
    assert play(DOMAIN.world(trial), echo) == play(DOMAIN.world(travelled), echo)


def test_a_configuration_of_the_original_is_a_setting():
    table = {
        "worlds": {},
        "tasks": {"first": {"type": "tasks.challenge.round1.challenge_micro.Micro4Task"}},
        "scheduler": {"type": "core.scheduler.ConsecutiveTaskScheduler", "args": {"tasks": ["first"]}},
    }
    seen = play(open_world(configuration=table), echo)
    assert seen[-1][0].last == "terminated"
    assert seen[-1][1].detail["task"] == "first"


def test_a_python_configuration_is_part_of_the_trial(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.py").write_text(
        "from core.scheduler import SequentialTaskScheduler\n"
        "from tasks.challenge.round1.challenge_micro import Micro4Task\n"
        "def create_tasks():\n    return SequentialTaskScheduler([Micro4Task()])\n"
    )
    (trial,) = DOMAIN.trials(1, module="plan.py", max_steps=25, unchanged=0)
    assert list(trial.files) == ["plan.py"]
    assert [truth.detail["solved"] for _, truth in play(DOMAIN.world(trial), echo) if truth.episode_over] == [
        True,
        True,
        None,
    ]
    (tmp_path / "plan.py").write_text("def create_tasks():\n    return None\n")
    with pytest.raises(InvalidInput, match=r"plan\.py is not the file this trial was made with"):
        DOMAIN.world(trial)


def test_a_learner_of_the_original_kind_drives_a_rollout():
    class Learner:
        def __init__(self):
            self.rewards = []

        def next(self, symbol):
            return symbol.encode("latin-1")

        def reward(self, reward):
            self.rewards.append(reward)

    learner = Learner()
    rollout = Rollout(open_world(tasks="micro4", success_threshold=2))
    assert drive(rollout, LearnerAgent(learner, SPEC)) == "done"
    assert learner.rewards == [0, *[1] * 20]


def test_the_last_normal_instance_is_recorded_as_one(tmp_path):
    trials = DOMAIN.trials(
        1, novelty="reward-sign", tasks="micro4", cyclic=True, onset_instances=3, max_steps=75, unchanged=0
    )
    result = of.run(["echo"], trials, tmp_path / "run.sqlite")
    assert [episode.novel for episode in result.cells[0].episodes] == [False] * 3 + [True] * 5


@pytest.mark.parametrize("novelty", ["alphabet:hard", "feedback:hard", "new-task:hard"])
def test_turns_that_show_the_same_are_one_object_also_after_the_change(novelty: str) -> None:
    """That they are others then would tell an agent in this process, which looks at nothing but `is`."""
    (trial,) = DOMAIN.trials(1, novelty=novelty, unchanged=0, max_steps=4000)
    seen: dict[tuple[int, float], Turn] = {}
    shown = [turn for turn, _ in play(DOMAIN.world(trial), lambda turn: 32)][1:-1]
    assert all(seen.setdefault((turn.observation, turn.reward), turn) is turn for turn in shown)


@pytest.mark.parametrize("novel", [np.array([0.5]), (0.1, 0.9), [0.5]])
def test_an_array_as_a_belief_is_the_learners_fault(novel: Any) -> None:
    rollout = Rollout(DOMAIN.world(DOMAIN.trials(1, tasks="micro4", unchanged=0)[0]))
    with pytest.raises(AgentProtocol, match="Turn 0: the belief has a list of"):
        rollout.reply(Reply(" ", Belief(novel)))


@pytest.mark.parametrize("said", [np.array([1, 2]), np.array([65]), np.zeros((2, 2)), [65], {"a": 1}])
def test_an_array_is_the_learners_fault(said):
    world = DOMAIN.world(DOMAIN.trials(1, tasks="micro4", unchanged=0)[0])
    world.reset()
    with pytest.raises(AgentProtocol, match="a symbol is one character with a code from 0 to 255"):
        world.step(Reply(said))
