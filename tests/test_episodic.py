from __future__ import annotations

from typing import Any

import pytest

import openfield as of
from openfield.core import Ask, Reply, Turn
from openfield.errors import OpenfieldError, UnknownName
from support.worlds import TINY, TinyPlay, TinySettings, tiny_trials


def play(trial: of.Trial) -> tuple[list[Turn], list[Any]]:
    world = TINY.world(trial)
    turns, truths = [world.reset()], [world.truth]
    while not (turns[-1].last and world.over):
        turns.append(world.step(Reply(0)))
        truths.append(world.truth)
    return turns, truths


def test_the_script_of_a_trial_is_played_in_order() -> None:
    turns, truths = play(tiny_trials(1)[0])
    assert sum(turn.first for turn in turns) == sum(turn.last is not None for turn in turns) == 8
    assert [turn.phase for turn in turns if turn.first] == ["training"] * 2 + ["test"] * 6
    assert [truth.novel for truth, turn in zip(truths, turns, strict=True) if turn.first] == [False] * 5 + [True] * 3
    for turn, truth in zip(turns, truths, strict=True):
        assert truth.episode_over == (turn.last is not None)
        assert (turn.ask is Ask.NONE) == (turn.last is not None)
        assert turn.red_light is None


def test_an_episode_depends_on_nothing_but_trial_and_number() -> None:
    (trial,) = tiny_trials(1)
    world = TINY.world(trial)
    world.reset()
    once = [world.step(Reply(1)) for _ in range(20)]
    world.reset()
    assert [world.step(Reply(1)) for _ in range(20)] == once
    assert play(trial)[0] == play(trial)[0]
    assert play(trial)[0] != play(tiny_trials(1, seed=1)[0])[0]


def test_the_red_light_is_shown_only_where_it_is_granted() -> None:
    turns, truths = play(tiny_trials(1, red_light=True)[0])
    assert [turn.red_light for turn in turns] == [truth.novel for truth in truths]


def test_a_world_with_nothing_to_look_at_says_so() -> None:
    world = TINY.world(tiny_trials(1)[0])
    world.reset()
    with pytest.raises(OpenfieldError, match="tiny has nothing to look at"):
        world.look("screen")
    world.close()


def test_a_play_may_be_looked_at() -> None:
    class Seen(TinyPlay):
        def look(self, query: str) -> str:
            return f"{query} at move {self.moves}"

    world = of.EpisodicWorld(TINY, tiny_trials(1)[0], Seen)
    world.reset()
    world.step(Reply(1))
    assert world.look("score") == "score at move 1"


def test_trials_with_a_fixed_onset_differ_in_their_seeds_only() -> None:
    trials = tiny_trials(4, seed=3, length=9, onset=2)
    assert len({trial.id for trial in trials}) == len({trial.seed for trial in trials}) == 4
    assert len({(trial.phases, str(trial.settings)) for trial in trials}) == 1
    assert trials[0].settings == {"length": 9}
    assert tiny_trials(2, seed=3, length=9, onset=2) == trials[:2]
    assert not {trial.seed for trial in tiny_trials(4, seed=4)} & {trial.seed for trial in trials}


def test_novelties_are_named_and_applied_by_the_domain() -> None:
    (trial,) = tiny_trials(1)
    assert [TINY.settings_in(trial, phase).flipped for phase in trial.phases] == [False, False, True]
    (plain,) = tiny_trials(1, novelty="none")
    assert [phase.novelty for phase in plain.phases] == [(), (), ()]
    assert TINY.describe(trial.novelty) == "the other answer is right"
    assert TINY.describe(()) == "no novelty"
    with pytest.raises(UnknownName, match="Did you mean 'flipped'"):
        tiny_trials(1, novelty="fliped")
    assert TINY.settings_in(trial, trial.phases[0]) == TinySettings()


def test_beliefs_of_a_half_and_more_are_detections() -> None:
    for novel, detected in ((0.5, True), (0.49, False), ((0.1, 0.9), True), ((0.1,), False), ((), False)):
        assert TINY.detected(of.Belief(novel)) is detected


def test_settings_are_made_once_for_all_episodes_of_a_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    (trial,) = tiny_trials(1)
    made: list[str] = []
    monkeypatch.setattr(TINY, "settings_in", lambda trial, phase: made.append(phase.name) or TinySettings())
    assert sum(turn.first for turn in play(trial)[0]) == 8
    assert made == [phase.name for phase in trial.phases]
