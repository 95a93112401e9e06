"""Controls fail where an evaluation is sound, and succeed where it is not; one that can only fail shows nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import openfield as of
from openfield.agents.controls import Peeker, Scout
from openfield.core import Ask, Reply, Turn
from openfield.errors import InvalidInput
from openfield.journal.reader import CellRecord
from openfield.metrics.concordance import estimate_concordance
from openfield.metrics.performance import split_periods
from openfield.parameters import is_control
from openfield.registry import CONTROLS, find_agent, find_domain
from openfield.rollout import Rollout, drive
from openfield.trial import derive
from support.places import MAZE
from support.walks import Walks
from support.worlds import TINY, act, end

SPEC = of.Spec(domain="tiny", task="", actions=of.spaces.Discrete(2))
BLIND = {"training": 1, "before": 4, "after": 4, "onset": "2-6", "length": 2}


def make(name: str, seed: int = 1) -> Any:
    return find_agent(name, TINY)(SPEC, seed)


def beliefs_of(agent: Any, turns: list[Turn]) -> list[float | None]:
    replies = [agent(turn) for turn in turns]
    return [None if reply.belief is None else reply.belief.novel for reply in replies]


def episodes(count: int, turns: int = 2) -> list[Turn]:
    """The turns of some episodes, in which nothing is earned."""
    return [turn for _ in range(count) for turn in [act(first=True), *[act()] * (turns - 1), end()]]


def stated(cell: CellRecord) -> list[float]:
    """The beliefs of a cell's test episodes."""
    return [e.belief.highest if e.belief else 0.0 for e in cell.episodes if e.phase == "test"]


def is_right(cell: CellRecord) -> bool:
    """Return whether there is a belief from the onset on and none before; a twin may make it doubtful."""
    return [belief > 0 for belief in stated(cell)] == [e.novel for e in cell.episodes if e.phase == "test"]


def test_the_counter_believes_after_so_many_episodes_of_the_test() -> None:
    training = [Turn(phase="training", first=True), Turn(ask=Ask.NONE, phase="training", last="terminated")]
    said = beliefs_of(make("counter:2"), [*training, *episodes(3)])
    assert said == [0.0] * 2 + [0.0] * 6 + [1.0] * 3


def test_a_last_turn_that_is_shown_again_counts_once() -> None:
    assert beliefs_of(make("counter:2"), [act(first=True), end(), end(), end(), act(), act()]) == [0.0] * 6


def test_the_counter_counts_turns_where_the_world_hides_its_episodes() -> None:
    commai = find_domain("commai")
    agent = find_agent("counter:3", commai)(commai.spec(commai.trials(1)[0]), 1)
    assert beliefs_of(agent, [act(32) for _ in range(5)]) == [0.0, 0.0, 0.0, 1.0, 1.0]


def test_the_alarmist_always_believes_and_the_sleeper_only_denies_when_asked() -> None:
    asked = [act(first=True), Turn(ask=Ask.BELIEF), end()]
    assert beliefs_of(make("alarmist"), asked) == [1.0, 1.0, 1.0]
    assert beliefs_of(make("sleeper"), asked) == [None, 0.0, None]


def test_the_doubter_draws_once_an_episode() -> None:
    said = beliefs_of(make("doubter:0.3"), episodes(400))
    drawn = said[::3]
    assert [one for one in drawn for _ in range(3)] == said
    assert 0.2 < sum(map(float, filter(None, drawn))) / 400 < 0.4
    assert set(beliefs_of(make("doubter:0"), episodes(5))) == {0.0}


def test_the_quitter_leaves_when_it_earns_too_little() -> None:
    good, bad = [act(first=True), end(reward=1.0)], [act(first=True), end(reward=0.4)]
    agent = make("quitter:2")
    beliefs_of(agent, good * 4 + bad * 2)
    with pytest.raises(RuntimeError, match="my last 2 episodes went badly"):
        agent(act(first=True))
    beliefs_of(make("quitter:1000"), good * 4 + bad * 20)
    beliefs_of(make("quitter:1"), [act(first=True), end(reward=-1.0)] * 5)


def test_the_quitter_goes_by_the_performance_where_it_is_shown() -> None:
    agent, shown = make("quitter:1"), [end(reward=9.0, feedback={"performance": worth}) for worth in (1.0, 0.4)]
    with pytest.raises(RuntimeError):
        beliefs_of(agent, [act(first=True), shown[0], act(first=True), shown[1], act(first=True)])


@pytest.mark.parametrize("text", ["counter:x", "counter:1.5", "counter:-1", "doubter:2", "doubter:nan", "counter:"])
def test_a_number_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=f"'{text}': the control '.*' takes a .*number"):
        find_agent(text, TINY)


def test_a_control_that_takes_no_number_says_so() -> None:
    with pytest.raises(InvalidInput, match=r"'sleeper' takes no number\. Write sleeper\."):
        find_agent("sleeper:3", TINY)


class Crowded(type(TINY)):  # type: ignore[misc]
    """A domain that has a counter of its own."""

    name = "crowded"

    def __init__(self) -> None:
        self.agents = {"counter": lambda spec, seed: lambda turn: Reply(0)}


def test_a_domains_own_agent_wins(path: Path) -> None:
    crowded = Crowded()
    of.registry.use_domain(crowded)
    result = of.run(["counter", "alarmist"], crowded.trials(1, unchanged=0, **BLIND), path)
    assert {cell.agent: cell.control for cell in result.cells} == {"counter": False, "alarmist": True}
    assert find_agent("control:counter", crowded)(SPEC, 1)(act()).belief is not None


def test_a_run_file_says_which_agents_are_controls_whatever_their_names(path: Path) -> None:
    result = of.run({"mine": "counter:3", "counter": "random"}, of.trials(TINY, 1, unchanged=0), path)
    assert {cell.agent: cell.control for cell in result.cells} == {"mine": True, "counter": False}
    with of.journal.reader.Run(path) as run:
        assert [is_control(run.agents[name]) for name in ("mine", "counter")] == [True, False]


@pytest.mark.parametrize("name", CONTROLS)
def test_every_control_plays_and_is_deterministic(name: str, tmp_path: Path) -> None:
    trials = of.trials(TINY, 1, **BLIND)
    first, second = (of.run(name, trials, tmp_path / f"{number}.sqlite").cells for number in range(2))
    assert [cell.episodes for cell in first] == [cell.episodes for cell in second]
    assert {cell.outcome for cell in first} <= {"done", "agent_error"}


def test_the_peeker_finds_the_truth_in_its_own_process(path: Path) -> None:
    result = of.run("peeker", of.trials(TINY, 3, **BLIND), path)
    assert all(is_right(cell) for cell in result.cells)
    assert result.cells[0].episodes[0].belief.detail == {"found": ["the call stack"]}  # type: ignore[union-attr]


def test_the_peeker_finds_the_truth_in_a_run_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trials = of.trials(TINY, 2, unchanged=0, **BLIND)
    of.run("random", trials, path)
    cells = {cell.trial.id: cell.cell for cell in of.Result([path]).cells}
    monkeypatch.chdir(path.parent)
    monkeypatch.setattr("openfield.agents.controls._search_stack", lambda: iter(()))
    monkeypatch.setattr("openfield.agents.controls._search_memory", lambda: iter(()))
    for trial in trials:
        agent = Peeker(TINY, SPEC, cells[trial.id].seed)
        world = TINY.world(trial)
        rights: list[bool] = []

        def answer(turn: Turn, agent: Peeker = agent, world: Any = world, rights: list[bool] = rights) -> Reply:
            reply = agent(turn)
            rights.append(reply.belief.novel == float(world.truth.novel))  # type: ignore[union-attr]
            return reply

        drive(Rollout(world), answer)
        assert all(rights)
        assert f"the run file {path.name}" in (agent.found or [])


@pytest.mark.sandbox
def test_the_isolated_peeker_finds_nothing(path: Path) -> None:
    (cell,) = of.run(of.isolate("peeker"), find_domain(MAZE).trials(1, unchanged=0, training=0), path).cells
    beliefs = [episode.belief for episode in cell.episodes]
    assert all(belief is not None and belief.detail == {"found": []} for belief in beliefs)
    assert set(stated(cell)) == {0.0}


def test_the_peeker_reads_telling_words_in_what_it_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown = [{"id": "test-novel-3"}, {"ids": ["a", "b"]}, {"deep": [{"novel": True}]}, {"novel": False}, {"n": 3}]
    agent = make("peeker", derive(1, "no cell has this seed"))
    assert beliefs_of(agent, [act(each) for each in shown]) == [1.0, 0.0, 1.0, 0.0, 0.0]
    assert agent.found == []


def test_the_enumerator_knows_the_trials_of_a_small_seed(path: Path) -> None:
    maze = find_domain(MAZE)
    result = of.run("enumerator", maze.trials(2, 3, unchanged=0), path)
    assert all(is_right(cell) for cell in result.cells)


def test_the_enumerator_recognises_what_it_sees_under_another_name(path: Path) -> None:
    maze = find_domain(MAZE)
    result = of.run({"mine": "enumerator:2"}, maze.trials(2, 1, unchanged=0), path)
    assert all(is_right(cell) for cell in result.cells)


def test_the_enumerator_tells_twins_by_its_own_seed(path: Path) -> None:
    """Ordinary trials are not blind to an agent that computes them: only sealed ones are."""
    maze = find_domain(MAZE)
    result = of.run("enumerator", maze.trials(1, unchanged="all"), path)
    assert {cell.trial.is_changed: max(stated(cell)) for cell in result.cells} == {True: 1.0, False: 0.0}


def test_the_enumerator_knows_nothing_of_sealed_trials(path: Path) -> None:
    maze = find_domain(MAZE)
    result = of.run("enumerator", maze.trials(2, 1 << 127), path)
    assert {belief for cell in result.cells for belief in stated(cell)} == {0.0}


def test_a_counter_is_right_only_where_the_onset_is_fixed(tmp_path: Path) -> None:
    fixed = of.run("counter:4", of.trials(TINY, 3, before=4, after=4, unchanged=0), tmp_path / "fixed.sqlite")
    blind = of.run("counter:4", of.trials(TINY, 5, **BLIND), tmp_path / "blind.sqlite")
    assert all(is_right(cell) for cell in fixed.cells)
    assert len({len(split_periods(cell).before) for cell in blind.cells}) > 2
    assert not all(is_right(cell) for cell in blind.cells)


class Schooled(Walks):
    """A domain whose agents are trained in a trial of its own, as in Doom."""

    name = "schooled"

    def trials(self, *args: Any, **options: Any) -> list[of.Trial]:
        made = super().trials(*args, **options)
        school = replace(made[0], seed=7, phases=(of.Phase("training", 1),), scenario=None, window=None)
        return [school, *(replace(trial, phases=trial.phases[1:], after=school.id) for trial in made)]


@pytest.mark.parametrize("name", ["peeker", "enumerator"])
def test_training_in_a_trial_of_its_own_hides_nothing(name: str, path: Path) -> None:
    schooled = of.registry.use_domain(Schooled())
    _, *tests = of.run(name, schooled.trials(2), path).cells
    changed = [cell for cell in tests if cell.trial.is_changed]
    assert len(changed) == 2
    assert all(is_right(cell) for cell in changed)


SELLING = {"training": 60, "round_size": 10, "before": 3, "after": 5, "onset": "1-6"}


def concordance_of(name: str, path: Path) -> float:
    result = of.run(name, of.trials("ond", 8, novelty="classes", **SELLING), path)
    found = estimate_concordance(result.cells)
    assert found is not None
    return found.mean


@pytest.mark.parametrize("name", ["buyer", "buyer:0", "buyer:1"])
def test_the_buyer_gains_nothing_where_bought_truth_does_not_count(name: str, path: Path) -> None:
    assert concordance_of(name, path) == 0.5


def test_the_buyer_finds_feedback_that_pays(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openfield.domains.ond.testset.agent_answers.AgentAnswers.bind", lambda _: None)
    assert concordance_of("buyer", path) > 0.85  # it knows a batch later


def test_the_scout_uses_what_it_noted(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the process of its first visit it knows everything; isolated it must not, which `check --controls` plays."""
    monkeypatch.setattr("openfield.agents.controls.tempfile.gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(Scout, "seen", {})
    assert concordance_of("scout", path) == 0.5
    monkeypatch.setattr(Scout, "seen", {})  # its notes are left
    assert concordance_of("scout", path.with_name("again.sqlite")) == 1.0
