from __future__ import annotations

import itertools
import math
import random
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

import openfield as of
from openfield.agents.detectors import (
    DRIFT,
    EpisodeDetector,
    ObservationShift,
    ScoreDistribution,
    Seen,
    TransitionSurprise,
    WithDetector,
    encode_value,
    find_bound,
    make_detector,
)
from openfield.agents.detectors.agent_with_detector import find_columns
from openfield.agents.detectors.rules import BayesianChangePoint, measure_scores, read_held_out
from openfield.agents.detectors.signals import EpisodeScores
from openfield.core import Saves
from openfield.domain import spec_of
from openfield.errors import Cancelled, InvalidInput, MissingExtra, OpenfieldError, UnknownName
from openfield.isolation import isolate
from openfield.parameters import read_agent
from openfield.registry import check_agent_source, find_agent
from support.places import ROOT
from support.stories import press_ctrl_c_after, story

SHORT: dict[str, Any] = {"unchanged": 0, "training": 8, "before": 3, "after": 3}


def beliefs(cell: Any) -> list[float]:
    return [episode.belief.highest for episode in cell.episodes if episode.belief is not None]


def standardise(detector: EpisodeDetector, episodes: list[Seen]) -> ScoreDistribution:
    """Return how a detector scores the episodes that it was not fitted to."""
    return measure_scores([float(rows[0, 0]) for rows in read_held_out(EpisodeScores(detector), episodes)])


def walk(rng: Any, push: float = 1.0, start: float = 0.0) -> Seen:
    """An episode in which the action moves a point."""
    actions = rng.choice([-1.0, 1.0], (30, 1))
    moved = np.cumsum(push * actions + 0.1 * rng.normal(size=(30, 1)), axis=0)
    return Seen(start + np.vstack([np.zeros((1, 1)), moved]), actions, float(moved[-1, 0]))


def test_the_model_of_transitions_is_surprised_by_other_moves_and_not_by_other_places() -> None:
    rng, detector = np.random.default_rng(0), TransitionSurprise()
    standard = standardise(detector, [walk(rng) for _ in range(20)])
    assert standard.judge(detector.score(walk(rng, -1.0))) > 4
    assert abs(standard.judge(detector.score(walk(rng)))) < 3


def test_statistics_of_observations_tell_other_places() -> None:
    rng, detector = np.random.default_rng(0), ObservationShift()
    standard = standardise(detector, [walk(rng) for _ in range(20)])
    assert standard.judge(detector.score(walk(rng, start=40.0))) > 3
    assert abs(standard.judge(detector.score(walk(rng)))) < 3


def test_training_episodes_are_scored_by_a_detector_that_has_not_seen_them() -> None:
    class Notes:
        def __init__(self) -> None:
            self.known: list[float] = []
            self.scored: list[float] = []

        def fit(self, episodes: Any) -> None:
            self.known = [each.total for each in episodes]

        def score(self, episode: Seen) -> float:
            assert episode.total not in self.known
            self.scored.append(episode.total)
            return episode.total

    notes, none = Notes(), np.zeros((0, 0))
    standard = standardise(notes, [Seen(none, none, float(number)) for number in range(45)])
    assert sorted(notes.scored) == list(range(45)) == sorted(notes.known)
    assert (standard.mean, standard.episodes) == (22.0, 45)


@pytest.mark.parametrize("rate", [0.01, 0.05])
def test_false_alarms_of_normal_scores_are_about_as_many_as_chosen(rate: float) -> None:
    """With a known mean the sum crosses its bound as often as Siegmund's formula says."""
    rng, bound, crossed, total = np.random.default_rng(1), find_bound(rate), 0, 0.0
    for score in rng.normal(size=40_000):
        total = max(0.0, total + score - DRIFT)
        if total > bound:
            crossed, total = crossed + 1, 0.0
    assert crossed / 40_000 == pytest.approx(rate, rel=0.2)


def test_few_training_episodes_make_no_more_false_alarms() -> None:
    rng, bound, crossed = np.random.default_rng(2), find_bound(0.01), 0
    for _ in range(400):
        training, total = rng.normal(size=8), 0.0
        standard = ScoreDistribution(float(training.mean()), float(training.std(ddof=1)), 8)
        for score in rng.normal(size=50):
            total = max(0.0, total + standard.judge(float(score)) - standard.drift)
            if total > bound:
                crossed, total = crossed + 1, 0.0
    assert crossed / (400 * 50) < 0.012


def test_values_become_rows_of_numbers() -> None:
    space = of.spaces.Fields(
        {"way": of.spaces.Choice(("a", "b")), "box": of.spaces.Box(0, 9, (2,)), "n": of.spaces.Discrete(3, start=1)}
    )
    assert encode_value(space, {"way": "b", "box": [4, 5], "n": 2}).tolist() == [0, 1, 4, 5, 0, 1, 0]
    assert encode_value(of.spaces.Tuple((of.spaces.Discrete(1000), of.spaces.Text("a", 2))), [7, "aa"]).tolist() == [7]


@pytest.mark.parametrize("detector", ["surprise", "returns", "observations"])
def test_an_agent_plays_as_before_and_states_a_belief(detector: str, path: Path, maze: of.Domain[Any]) -> None:
    trials = maze.trials(1, **SHORT)
    player = of.policy(lambda seen: int(seen["at"] @ seen["goal"]) % 4)
    result = of.run({"with": of.with_detector(player, detector), "alone": player}, trials, path)
    watched, alone = (next(cell for cell in result.cells if cell.agent == name) for name in ("with", "alone"))
    assert watched.outcome == "done"
    assert [each.turns for each in watched.episodes] == [each.turns for each in alone.episodes]
    assert len(beliefs(watched)) == len(watched.episodes)
    assert all(0 <= belief <= 1 for belief in beliefs(watched))
    assert beliefs(watched)[:8] == [0.0] * 8


def test_surprise_notices_that_moves_are_swapped(path: Path, maze: of.Domain[Any]) -> None:
    trials = maze.trials(2, novelty="swapped", unchanged=0, training=20, before=4, after=4)
    for cell in of.run(of.with_detector("random", "surprise"), trials, path).cells:
        assert max(beliefs(cell)[:24]) < 0.5 <= beliefs(cell)[-1]


def test_it_goes_on_as_if_nothing_had_happened(path: Path, maze: of.Domain[Any]) -> None:
    agents, trials = {"a": of.with_detector("random", "surprise")}, maze.trials(1, **SHORT)
    with pytest.raises(Cancelled):
        of.run(agents, trials, path, watch=press_ctrl_c_after(9))
    of.run(agents, trials, path)
    of.run(agents, trials, path.with_name("whole.sqlite"))
    assert story(path) == story(path.with_name("whole.sqlite"))


def test_too_little_training_is_named(path: Path, maze: of.Domain[Any]) -> None:
    trials = maze.trials(1, **{**SHORT, "training": 2})
    with pytest.raises(InvalidInput, match=r"needs 3 training episodes, and saw 2\. Make trials with more"):
        of.run(of.with_detector("random", "returns"), trials, path)
    assert not path.exists()


def test_what_cannot_be_watched_is_refused_before_the_run(path: Path, maze: of.Domain[Any]) -> None:
    large = of.Spec(domain="maze", task="", actions=of.spaces.Discrete(2), observations=of.spaces.Box(0, 1, (101, 100)))
    for detector in ("surprise", "observations"):
        with pytest.raises(InvalidInput, match="too large for the detector"):
            of.with_detector("random", detector).check_spec(large)
    assert of.with_detector("random", "returns").check_spec(large).observations is None
    with pytest.raises(InvalidInput, match="does not declare its spaces"):
        of.with_detector("random", "surprise").check_spec(of.Spec(domain="maze", task=""))
    wrong = of.policy(type("Net", (), {"predict": len, "action_space": random})())
    with pytest.raises(InvalidInput, match="The policy cannot play maze"):
        of.run(of.with_detector(wrong, "returns"), maze.trials(1), path)


@pytest.mark.parametrize(
    ("detector", "options", "kind", "told"),
    [
        ("surprises", {}, UnknownName, "surprise"),
        (7, {}, InvalidInput, "an object of int has not"),
        ("returns", {"false_alarms": 0}, InvalidInput, "'false_alarms' is a number above 0"),
    ],
)
def test_wrong_arguments_are_one_line(detector: Any, options: Any, kind: Any, told: str) -> None:
    with pytest.raises(kind, match=told):
        of.with_detector("random", detector, **options)


NAMES = ["cusum(watch=observation)", "threshold", "bocpd(watch=transition)", "mmd", "deedee", "threshold(watch=action)"]


def shift(rng: Any, moved: float) -> Seen:
    """An episode of a stream around a number."""
    rows = moved + rng.normal(size=(20, 2))
    return Seen(rows, np.zeros((19, 0)), float(rows[:, 0].mean()), rows[1:, 0])


@pytest.mark.parametrize(
    "name", ["cusum", "threshold(watch=reward)", "bocpd", "mmd", "deedee", "river:ADWIN(watch=reward)"]
)
def test_every_detector_finds_a_shift_and_is_calm_before_it(name: str) -> None:
    rng, detector = np.random.default_rng(3), make_detector(name)
    detector.fit([shift(rng, 0.0) for _ in range(30)])
    assert max(detector.judge(shift(rng, 0.0)) for _ in range(10)) < 0.5
    assert max(detector.judge(shift(rng, 2.0)) for _ in range(10)) >= 0.5


def test_false_alarms_of_calibrated_detectors_are_about_as_rare_as_stated() -> None:
    rng = np.random.default_rng(0)
    for name in ("threshold(watch=return, false_alarms=0.05)", "deedee(false_alarms=0.05)"):
        alarms = 0
        for _ in range(20):
            detector = make_detector(name)
            detector.fit([shift(rng, 0.0) for _ in range(20)])
            alarms += sum(detector.judge(shift(rng, 0.0)) >= 0.5 for _ in range(20))
        assert 4 <= alarms <= 50, name  # 20 of 400 are expected


def test_a_change_point_is_as_likely_as_bayes_says() -> None:
    """Against the sum over all sets of change-points, for a stream short enough to list them."""
    scores, hazard = [0.1, 2.0, 2.5], 0.2
    detector = BayesianChangePoint(hazard=hazard)
    training = [np.array([[value]]) for value in (-1.0, 0.0, 1.0, 0.5)]
    detector.fit(training, 0)
    given = [detector.standardise(each) for each in training]
    standard = [detector.standardise(np.array([[score]])) for score in scores]
    joint = {"old": 0.0, "new": 0.0}
    for changes in itertools.product((False, True), repeat=len(scores)):
        weight, run = 1.0, list(given)
        for score, changed in zip(standard, changes, strict=True):
            run = [] if changed else run
            weight *= (hazard if changed else 1 - hazard) * student(run, score)
            run = [*run, score]
        joint["new" if any(changes) else "old"] += weight
    found = [detector.judge(np.array([[score]])) for score in scores][-1]
    assert found == pytest.approx(joint["new"] / (joint["new"] + joint["old"]))


def student(run: list[float], score: float) -> float:
    """The predictive density of a normal run under the prior of the detector."""
    weight, count = 0.1, len(run)
    mean = sum(run) / (weight + count)
    scale = 1.0 + 0.5 * (sum(value**2 for value in run) - (weight + count) * mean**2)
    shape = 1.0 + count / 2
    width = math.sqrt(scale * (weight + count + 1) / (shape * (weight + count)))
    return float(scipy.stats.t.pdf(score, 2 * shape, mean, width))


@pytest.mark.parametrize(
    ("name", "made"), [("ADWIN(delta=0.01, clock=1)", "ADWIN"), ("KSWIN(window_size=60)", "KSWIN")]
)
def test_alarms_of_river_are_its_own(name: str, made: str) -> None:
    drift = pytest.importorskip("river.drift")
    own = {"ADWIN": lambda: drift.ADWIN(delta=0.01, clock=1), "KSWIN": lambda: drift.KSWIN(window_size=60, seed=0)}[
        made
    ]()
    rng = np.random.default_rng(1)
    numbers = np.concatenate([rng.normal(size=150), rng.normal(3.0, 1.0, 150)])
    detector = make_detector(f"river:{name}", hold=1)
    detector.fit([])
    ours, theirs = [], []
    for number in numbers:
        ours.append(detector.judge(Seen(np.zeros((1, 0)), np.zeros((0, 0)), number)) >= 0.5)
        own.update(number)
        theirs.append(own.drift_detected)
    assert ours == theirs
    assert any(ours)


def test_the_ddm_family_is_told_what_is_worse_than_training() -> None:
    pytest.importorskip("river.drift")
    detector = make_detector("river:DDM(warm_start=5)")
    rows = np.zeros((1, 0))
    detector.fit([Seen(rows, rows, float(number % 10 != 0)) for number in range(40)])
    assert [detector.judge(Seen(rows, rows, 1.0)) for _ in range(9)] == [0.0] * 9
    assert [detector.judge(Seen(rows, rows, 0.0)) for _ in range(9)][-1] == 1.0


@pytest.mark.parametrize("name", [*NAMES, "cusum(watch=reward)", "river:ADWIN(watch=transition, delta=0.01)"])
def test_a_detector_on_the_command_line_goes_on_from_its_saved_state(
    name: str, path: Path, maze: of.Domain[Any]
) -> None:
    if name.startswith("river:"):
        pytest.importorskip("river")
    trials = maze.trials(1, **SHORT, novelty="swapped")
    (cell,) = of.run([f"random+{name}"], trials, path).cells
    assert cell.outcome == "done"
    assert cell.agent == read_agent(f"random+{name}").name
    factory, spec = find_agent(f"random+{name}", maze), spec_of(maze, trials[0])
    whole, halves = factory(spec, 1), factory(spec, 1)
    one, other = maze.world(trials[0]), maze.world(trials[0])
    turns = [one.reset(), other.reset()]
    for number in itertools.count():
        replies = [whole(turns[0]), halves(turns[1])]
        assert replies[0] == replies[1]
        if turns[0].last and one.over:
            break
        if number % 7 == 0:  # in training, in the test, and within episodes
            state, halves = halves.save(), factory(spec, 1)
            halves.load(state)
        turns = [world.step(reply) for world, reply in zip((one, other), replies, strict=True)]


class Doubter:
    """States a belief that is never 0.5 or more, and that rises when its 13th episode begins."""

    def __init__(self) -> None:
        self.turns = self.episodes = 0

    def __call__(self, turn: of.Turn) -> of.Reply:
        self.turns, self.episodes = self.turns + 1, self.episodes + turn.first
        return of.Reply("left", of.Belief(0.1 + self.turns * 7 % 10 / 100 + 0.2 * (self.episodes > 12)))

    def remember(self, turn: of.Turn, reply: of.Reply) -> None:
        self.turns, self.episodes = self.turns + 1, self.episodes + turn.first

    def save(self) -> bytes:
        return bytes(divmod(self.turns, 256)) + bytes([self.episodes])

    def load(self, state: bytes) -> None:
        self.turns, self.episodes = state[0] * 256 + state[1], state[2]


def test_a_belief_of_the_agent_is_calibrated_in_training_and_goes_on_from_its_saved_state(maze: of.Domain[Any]) -> None:
    (trial,) = maze.trials(1, **SHORT | {"before": 6})
    spec, world, found = spec_of(maze, trial), maze.world(trial), list[float]()
    factory = of.with_detector(lambda spec, seed: Doubter(), "cusum(watch=belief)")
    agent, turn = factory(spec, 1), world.reset()
    while True:
        reply = agent(turn)
        if turn.last:
            assert reply.belief is not None
            found.append(reply.belief.highest)
            if world.over:
                break
        state, agent = agent.save(), factory(spec, 1)
        agent.load(state)
        turn = world.step(reply)
    assert max(found[:12]) < 0.5 <= found[-1], "alarms begin with the episode in which the agent doubts more"
    assert found[12] > max(found[:12])
    assert not hasattr(agent, "remember"), "a record has the belief of the detector, and not that of the agent"


def test_an_agent_without_a_state_has_none_with_a_detector(maze: of.Domain[Any]) -> None:
    spec = spec_of(maze, maze.trials(1)[0])
    assert isinstance(of.with_detector("random", "cusum")(spec, 0), Saves)
    assert not isinstance(of.with_detector(lambda turn: of.Reply("left"), "cusum")(spec, 0), Saves)


def test_a_bomb_is_no_saved_state(maze: of.Domain[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openfield.agents.detectors.agent_with_detector.MAX_UNPACKED", 1000)
    agent: Any = of.with_detector("random", "cusum")(spec_of(maze, maze.trials(1)[0]), 0)
    with pytest.raises(InvalidInput, match="larger than"):
        agent.load(zlib.compress(bytes(5000)))


def test_the_state_of_another_detector_is_refused(maze: of.Domain[Any]) -> None:
    (trial,) = maze.trials(1, **SHORT)
    agents: list[Any] = [find_agent(f"random+{name}", maze)(spec_of(maze, trial), 1) for name in ("mmd", "threshold")]
    world = maze.world(trial)
    turn = world.reset()
    while not (turn.last and world.over):
        turn = world.step(agents[0](turn))
    agents[0](turn)
    with pytest.raises(InvalidInput, match="saved state of another detector"):
        agents[1].load(agents[0].save())


def test_without_training_the_first_test_episodes_count(path: Path, maze: of.Domain[Any]) -> None:
    settings = {**SHORT, "training": 0, "before": 6}
    (calm,) = of.run(["random+threshold(warmup=5)"], maze.trials(1, **settings), path).cells
    assert beliefs(calm)[:5] == [0.0] * 5
    assert beliefs(calm)[5] > 0
    with pytest.raises(InvalidInput, match="warmup=6"):
        of.run(["random+threshold"], maze.trials(1, **settings), path)


def test_features_are_chosen_by_name_and_place(maze: of.Domain[Any]) -> None:
    spec = of.Spec(domain="maze", task="", actions=of.spaces.Discrete(2), observations=of.spaces.Fields(SEEN))
    assert find_columns(spec.observations, ("at", 2)).tolist() == [0, 1, 2]
    assert find_columns(spec.observations, ()) == slice(None)
    with pytest.raises(InvalidInput, match=r"no feature 'goal'\. They have places 0 to 2, or at, to"):
        of.with_detector("random", "mmd(features=[goal])").check_spec(spec)


SEEN = {"at": of.spaces.Box(0, 1, (2,)), "to": of.spaces.Box(0, 1, (1,))}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("cusm", "Unknown detector 'cusm'. Did you mean 'cusum'"),
        ("cusum(fals_alarms=1)", "Unknown parameter 'fals_alarms'. Did you mean 'false_alarms'"),
        ("surprise(watch=return)", "Unknown parameter 'watch'"),
        ("cusum(watch=rewards)", "Unknown signal 'rewards'. Did you mean 'reward'"),
        ("cusum(false_alarms=2)", "'false_alarms' is a number above 0 and up to 0.5, not 2"),
        ("bocpd(hazard=0)", "'hazard' is a number above 0 and up to 1, not 0"),
        ("mmd(window=0)", "'window' is a number of episodes from 1 to 1000, not 0"),
        ("mmd(warmup=-1)", "'warmup' is a number of episodes from 0"),
        ("mmd(features={a=1})", "'features' is a list of places"),
    ],
)
def test_wrong_detectors_are_one_line(text: str, told: str, maze: of.Domain[Any]) -> None:
    with pytest.raises(OpenfieldError) as raised:
        make_detector(text)
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("river:ADWON", "Unknown detector 'river:ADWON'. Did you mean 'river:ADWIN'"),
        ("river:ADWIN(delt=1)", "Unknown parameter 'delt'. Did you mean 'delta'"),
        ("river:ADWIN(delta=much)", "'river:ADWIN' cannot be made"),
        ("river:ADWIN(hold=0)", "'hold' is a number of episodes from 1 on"),
    ],
)
def test_wrong_detectors_of_river_are_one_line(text: str, told: str) -> None:
    pytest.importorskip("river")
    with pytest.raises(OpenfieldError) as raised:
        make_detector(text)
    assert told in str(raised.value)


def test_river_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "river.drift", None)
    with pytest.raises(MissingExtra, match=r"A detector of river .*\[drift\]"):
        make_detector("river:ADWIN")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("random+cusm", "Unknown detector 'cusm'"),
        ("counter+cusum", "'counter' is a control, which states a belief"),
        ("wire:python {port}+cusum", "'wire:python {port}' speaks a domain's own protocol"),
        ("process:+cusum", "process: needs a command"),
        ("process:python agent.py+cusum(watch=sky)", "Unknown signal 'sky'"),
    ],
)
def test_an_agent_that_takes_no_detector_is_one_line(text: str, told: str, maze: of.Domain[Any]) -> None:
    with pytest.raises(OpenfieldError) as raised:
        check_agent_source(text, maze)
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("isolated", [False, pytest.param(True, marks=pytest.mark.sandbox)])
def test_a_program_has_a_detector_too(isolated: bool, path: Path, maze: of.Domain[Any]) -> None:
    program = f"process:{sys.executable} -S {ROOT / 'examples' / 'stdio_agent.py'}"
    trials = maze.trials(1, **SHORT, novelty="swapped")
    agents = {"bare": program, "watched": f"{program}+cusum"}
    made = of.run(isolate(agents) if isolated else agents, trials, path)
    assert [cell.outcome for cell in made.cells] == ["done", "done"]
    bare, watched = map(beliefs, made.cells)
    assert {*bare} <= {0.0, 0.5, 1.0}, "what the program says itself"
    assert not {*watched} <= {0.0, 0.5, 1.0}


def test_an_agent_of_coroutines_has_a_detector_too(path: Path, maze: of.Domain[Any]) -> None:
    async def walk(turn: of.Turn) -> of.Reply:
        return of.Reply("left")

    (cell,) = of.run(of.with_detector(walk, "cusum"), maze.trials(1, **SHORT, novelty="swapped"), path).cells
    assert (cell.outcome, cell.note) == ("done", "")


def test_what_the_runner_asks_an_agent_for_is_asked_through_its_detector(maze: of.Domain[Any]) -> None:
    class Caller:
        may_leave = True
        on_wait: Any = None

        def __call__(self, turn: of.Turn) -> of.Reply:
            return of.Reply("left")

    caller, excuse, spec = Caller(), [].append, spec_of(maze, maze.trials(1)[0])
    detected = WithDetector(caller, make_detector("cusum"), spec)
    detected.on_wait = excuse
    assert caller.on_wait is excuse
    assert detected.may_leave
    plain = of.with_detector("random", "cusum")(spec, 0)
    assert not plain.may_leave
    assert not hasattr(plain, "on_wait")
