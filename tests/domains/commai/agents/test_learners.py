"""Learners: what they say, what they learn, and how anybody's class becomes one."""

import subprocess
import sys

import pytest

import openfield
from openfield.core import Saves, Spec
from openfield.domains.commai import (
    DOMAIN,
    CommaiSettings,
    EchoLearner,
    LearnerSession,
    MappingLearner,
    MemorisingLearner,
    RandomLearner,
    SilentLearner,
    load_learner,
    make_environment,
)
from openfield.domains.commai.agents.learner_agent import LearnerAgent
from openfield.domains.commai.environment.learner_session import LearnerAdapter
from openfield.errors import AgentProtocol, InvalidInput, UnknownName
from support.places import ROOT


def play(learner, *tasks, steps=20_000, seed=1, **settings):
    environment = make_environment(CommaiSettings(tasks=tasks, **settings), seed=seed)
    session = LearnerSession(environment, learner)
    session.run(steps)
    return session.tallies()


def test_simple_learners_say_what_they_are_called_for():
    assert EchoLearner().next("x") == "x"
    assert SilentLearner().next("x") == " "
    one, other = (RandomLearner(3, "ab") for _ in range(2))
    assert [one.next("x") for _ in range(50)] == [other.next("x") for _ in range(50)]
    assert {one.next("x") for _ in range(50)} == {"a", "b"}


def test_the_memorising_learner_repeats_what_was_rewarded():
    learner = MemorisingLearner()
    assert learner.next("x") == " "
    learner.reward(1)
    assert [learner.next("x") for _ in range(3)] == [" "] * 3
    learner.reward(-1)
    assert learner.next("x") == " "


def test_an_echo_games_micro3_and_not_micro1():
    tally = play(EchoLearner(), "micro3", cyclic=True)["micro3"]
    assert tally.solved / tally.instances > 0.85
    assert play(EchoLearner(), "micro1", cyclic=True)["micro1"].solved == 0


@pytest.mark.parametrize("name", ["micro1", "micro3", "micro4", "micro5.1", "micro5.4", "micro5.10", "micro5.17"])
@pytest.mark.parametrize("seed", [1, 4711, 271828])
def test_the_baseline_learns_mappings(name, seed):
    tally = play(MappingLearner(), name, cyclic=True, seed=seed)[name]
    assert tally.solved / tally.instances > 0.5
    assert tally.solved >= 20


def test_the_baseline_carries_on_what_it_learned():
    """The first instance costs many more questions than later ones: when to speak is found out once."""
    environment = make_environment(CommaiSettings(tasks=("micro5.3",), cyclic=True), seed=2)
    session, lengths = LearnerSession(environment, MappingLearner()), []
    while environment.finished < 12:
        before = session.steps
        finished = environment.finished
        while environment.finished == finished:
            session.run(1)
        lengths.append(session.steps - before)
    assert max(lengths[6:]) < lengths[0] / 2


def test_the_baseline_gets_through_all_mapping_tasks_in_order():
    books = play(MappingLearner(), "all", steps=150_000)
    assert "micro5.12" in books


class Mine:
    """A learner as people have them: no types, no base class."""

    def __init__(self):
        self.rewards = []

    def next(self, symbol):
        return symbol.encode()

    def reward(self, reward):
        self.rewards.append(reward)


def test_a_class_of_the_user_runs_unchanged():
    mine = Mine()
    books = play(LearnerAdapter(mine), "micro4", steps=100, cyclic=True)
    assert books["micro4"].solved == 9
    assert len(mine.rewards) == 100


def test_a_learner_is_named_by_its_path(tmp_path, monkeypatch):
    (tmp_path / "my_learners.py").write_text("class Quiet:\n    def next(self, symbol):\n        return ' '\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert load_learner("my_learners.Quiet").next("a") == " "
    assert load_learner("my_learners:Quiet").name == "my_learners:Quiet"
    with pytest.raises(UnknownName, match="Unknown name 'Loud'"):
        load_learner("my_learners.Loud")
    with pytest.raises(InvalidInput, match="cannot be imported"):
        load_learner("no_such_module.Loud")
    with pytest.raises(InvalidInput, match="has no module"):
        load_learner("Quiet")


def test_what_is_no_learner_or_says_no_symbol_is_named():
    with pytest.raises(InvalidInput, match="object is not a learner"):
        LearnerAdapter(object())

    class Chatty:
        def next(self, symbol):
            return "hello"

    with pytest.raises(AgentProtocol, match="Chatty said 'hello'"):
        LearnerAdapter(Chatty()).next("a")


def test_the_example_runs():
    example = ROOT / "examples" / "commai_task.py"
    shown = subprocess.run([sys.executable, example], capture_output=True, text=True, check=True).stdout
    assert shown.startswith("Backwards: 3 of 3 instances solved in ")
    text = example.read_text()
    assert len(text[text.index("class Backwards") : text.index("if __name__")].strip().splitlines()) < 30


@pytest.mark.parametrize(("task", "instances"), [("micro2", 40), ("micro4", 80)])
def test_a_noticing_learner_is_surprised_by_a_new_alphabet_and_by_nothing_before(tmp_path, task, instances):
    """On seeds that nothing was chosen by: of 400 others, 200 with the novelty, all were right and 192 at once."""
    options = {"tasks": task, "cyclic": True, "max_steps": 4000, "onset_instances": instances}
    trials = openfield.trials("commai", 12, seed=8675309, novelty="alphabet:hard", **options, unchanged=0)
    result = openfield.run(["mapper"], trials, tmp_path / "run.sqlite")
    delays = []
    for cell in result.cells:
        onset = next(episode.number for episode in cell.episodes if episode.novel)
        delays.append(next(episode.number for episode in cell.episodes if episode.detected) - onset)
    assert min(delays) >= 0
    assert sum(delay <= 1 for delay in delays) >= 10


@pytest.mark.parametrize("seed", range(100, 104))
def test_the_baseline_bears_any_task(seed):
    environment = make_environment(CommaiSettings(tasks=("all",), scheduler="random"), seed=seed)
    LearnerSession(environment, MappingLearner()).run(30_000)
    assert environment.finished >= 3


def test_the_demonstration_shows_a_drop_and_a_detection(tmp_path):
    trials = DOMAIN.trials(3, novelty=DOMAIN.demo_novelty, **DOMAIN.demo_settings, unchanged=0)
    result = openfield.run(DOMAIN.demo_agents, trials, tmp_path / "run.sqlite")
    assert {cell.outcome for cell in result.cells} == {"done"}
    for cell in result.cells:
        before, after = ([e.performance for e in cell.episodes if e.novel is novel] for novel in (False, True))
        assert sum(before) / len(before) > sum(after) / len(after) + 0.2
        assert any(episode.detected for episode in cell.episodes) is (cell.agent == "mapper")


def test_a_learner_that_saves_its_state_is_an_agent_that_does():
    class Patient(EchoLearner):
        at = b""

        def save(self):
            return self.at

        def load(self, state):
            self.at = state

    spec = Spec(domain="commai", task="")
    agent, other = LearnerAgent(Patient(), spec), LearnerAgent(EchoLearner(), spec)
    assert isinstance(agent, Saves)
    assert not isinstance(other, Saves)
    agent.load(b"here")
    assert agent.save() == b"here"
