"""What is in force when: novelties with processes, and worlds that change more than once."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest

import openfield as of
from openfield.core import Reply, Truth, Turn
from openfield.course import Blend
from openfield.errors import Cancelled, InvalidInput, OpenfieldError
from openfield.journal.reader import Run
from openfield.trial import bare_names, spread_windows, stages_of
from support.worlds import TinyPlay, TinySettings


class Slope(TinySettings, frozen=True):
    """Settings with numbers of all kinds."""

    tilt: Annotated[float, msgspec.Meta(ge=0, le=10)] = 1.0
    stones: Annotated[int, msgspec.Meta(ge=0, le=9)] = 0
    span: tuple[int, int] = (1, 3)
    sign: int = 1


class SlopePlay(TinyPlay):
    """An episode that shows its settings."""

    settings: Any

    def change(self, settings: Slope) -> None:
        self.settings = settings

    def _see(self) -> dict[str, Any]:
        told = {name: getattr(self.settings, name) for name in ("tilt", "stones", "span", "flipped")}
        return {"cue": self.rng.randrange(2), **told}


def _set(**values: Any) -> Any:
    return lambda settings: msgspec.structs.replace(settings, **values)


class Slopes(of.Domain[Slope]):
    """Worlds with slopes."""

    name, title, settings = "slopes", "Slopes", Slope
    turnwise = True
    novelties = (
        of.Novelty("steep", 6, "rules", "it is steep", _set(tilt=5.0)),
        of.Novelty("stony", 1, "objects", "there are stones", _set(stones=4)),
        of.Novelty("wide", 1, "objects", "there is a wide span", _set(span=(5, 9), flipped=True)),
        of.Novelty("flipped", 3, "actions", "answers are flipped", _set(flipped=True)),
    )

    def spec(self, trial: of.Trial) -> of.Spec:
        return of.Spec(domain=self.name, task="Answer.", actions=of.spaces.Discrete(2))

    def phases(self, settings: Slope, novelty: tuple[str, ...]) -> tuple[of.Phase, ...]:
        early = of.Phase("training", settings.training), of.Phase("test", settings.before)
        return (*early, of.Phase("test", settings.after, novelty))

    def world(self, trial: of.Trial) -> of.World:
        return of.EpisodicWorld(self, trial, SlopePlay)


SLOPES = Slopes()


def make(novelty: str, count: int = 1, **options: Any) -> list[of.Trial]:
    given = {"unchanged": 0, "training": 1, "before": 2, "after": 6, **options}
    return of.trials(SLOPES, count, novelty=novelty, **given)


def play(trial: of.Trial) -> tuple[list[Turn], list[Truth]]:
    world = SLOPES.world(trial)
    turns, truths = [world.reset()], [world.truth]
    while not (turns[-1].last and world.over):
        turns.append(world.step(Reply(0)))
        truths.append(world.truth)
    return turns, truths


def episodes(trial: of.Trial) -> list[tuple[Turn, Truth]]:
    """The first turn of each episode, and what is true of it."""
    return [(turn, truth) for turn, truth in zip(*play(trial), strict=True) if turn.first]


def strengths(trial: of.Trial) -> list[float | None]:
    return [truth.strength for _, truth in episodes(trial)]


def test_a_number_goes_evenly_to_its_full_value() -> None:
    played = episodes(make("steep over 4")[0])
    assert [turn.observation["tilt"] for turn, _ in played] == [1.0, 1.0, 1.0, 2.0, 3.0, 4.0, 5.0, 5.0, 5.0]
    assert [truth.strength for _, truth in played] == [0, 0, 0, 0.25, 0.5, 0.75, 1, 1, 1]
    assert [truth.novel for _, truth in played] == [False] * 3 + [True] * 6
    assert [truth.change for _, truth in played] == [""] * 3 + ["steep over 4"] * 6


def test_whole_numbers_stay_whole_and_no_stone_is_no_change() -> None:
    played = episodes(make("stony over 8 in steps of 1", after=9)[0])[3:]
    assert [turn.observation["stones"] for turn, _ in played] == [0, 1, 2, 2, 2, 3, 4, 4, 4]
    assert [truth.novel for _, truth in played] == [False] + [True] * 8
    assert [truth.strength for _, truth in played][:3] == [0, 0.25, 0.375]


def test_numbers_within_others_go_too_and_what_is_no_number_changes_at_once() -> None:
    played = episodes(make("wide over 2")[0])[2:]
    assert [turn.observation["span"] for turn, _ in played][:4] == [(1, 3), (3, 6), (5, 9), (5, 9)]
    assert [turn.observation["flipped"] for turn, _ in played][:3] == [False, True, True]


def test_any_change_may_come_and_go() -> None:
    for text, wanted in (
        ("flipped every 3 for 1", [1, 0, 0, 1, 0, 0]),
        ("flipped for 2", [1, 1, 0, 0, 0, 0]),
        ("steep every 2", [1, 0, 1, 0, 1, 0]),
    ):
        (trial,) = make(text)
        assert strengths(trial)[3:] == wanted
        seen = [turn.observation for turn, _ in episodes(trial)][3:]
        assert [shown["flipped"] or shown["tilt"] == 5.0 for shown in seen] == list(map(bool, wanted))


def test_two_changes_have_two_courses() -> None:
    played = episodes(make("steep over 4+flipped every 2")[0])[3:]
    assert [turn.observation["flipped"] for turn, _ in played] == [True, False] * 3
    assert [turn.observation["tilt"] for turn, _ in played] == [2.0, 3.0, 4.0, 5.0, 5.0, 5.0]
    assert [truth.change for _, truth in played][:2] == ["steep over 4+flipped every 2", "steep over 4"]
    assert [truth.strength for _, truth in played] == [1, 0.5, 1, 1, 1, 1]


def test_a_walk_gives_the_value_itself() -> None:
    text = "steep as walk(sigma=0.5, low=0, high=10)"
    (trial,) = make(text, after=40)
    tilts = [turn.observation["tilt"] for turn, _ in episodes(trial)]
    assert len(set(tilts[3:])) == 40
    for tilt, strength in zip(tilts, strengths(trial), strict=True):
        assert strength == pytest.approx(min(1, abs(tilt - 1) / 4), abs=1e-9)
    assert [turn.observation["tilt"] for turn, _ in episodes(make(text, after=40, seed=1)[0])] != tilts


class Counting(Slopes):
    """Slopes that count how often the way of a change is made."""

    made = 0

    def blend(self, usual: Slope, changed: Slope) -> Blend[Slope]:
        self.made += 1
        return super().blend(usual, changed)


def test_an_unchanged_twin_prepares_for_changes_and_looks_for_them_as_the_others_do() -> None:
    """What a turn takes must not tell the trials apart, nor where the onset is."""
    found = []
    for trial in make("steep over 20 turns", unchanged=1):
        domain, looks = Counting(), list[int]()
        world = of.EpisodicWorld(domain, trial, SlopePlay)
        turn = world.reset()
        prepared, course = domain.made, world._course
        assert course is not None
        at = course.at
        course.at = lambda *when, at=at, looks=looks: (looks.append(1), at(*when))[1]  # type: ignore[method-assign,misc]
        while not (turn.last and world.over):
            turn = world.step(Reply(0))
        found.append((trial.is_changed, prepared, domain.made, len(looks)))
    assert sorted(changed for changed, *_ in found) == [False, True]
    assert found[0][1:] == found[1][1:]
    assert found[0][1] == found[0][2] == 1


def test_a_change_in_turns_goes_on_within_episodes() -> None:
    turns, truths = play(make("steep over 20 turns")[0])
    at = next(number for number, truth in enumerate(truths) if truth.novel)
    asked = [
        (turn.observation["tilt"], truth.strength) for turn, truth in zip(turns, truths, strict=True) if not turn.last
    ]
    before = sum(not turn.last for turn in turns[:at])
    assert [strength for _, strength in asked[before:]] == [min(1, (n + 1) / 20) for n in range(36)]
    for tilt, strength in asked[before + 1 :]:
        # what is seen after a move was seen before the settings changed
        assert tilt == pytest.approx(1 + 4 * min(1.0, strength if strength == 1 and tilt == 5 else (tilt - 1) / 4))
    assert [tilt for tilt, _ in asked][-1] == 5.0


def test_a_strength_that_comes_back_is_the_same_moment() -> None:
    course = SLOPES.course(trial := make("steep as sine(period=4) in turns")[0])
    assert course is not None
    course.enter(trial.phases[-1], 3, 20)
    moments = [course.at(3, turns) for turns in range(20, 36)]
    assert [moment.strength for moment in moments[:4]] == [0.5, 1, 0.5, 0]
    assert [moment.settings.tilt for moment in moments[:4]] == [3, 5, 3, 1]
    assert all(before is after for before, after in zip(moments, moments[4:], strict=False))


@pytest.mark.parametrize("process", ["walk(sigma=0.5, low=0, high=10)", "sine(period=7)"])
def test_few_moments_are_kept_and_others_are_found_again(process: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (trial,) = make(f"steep as {process} in turns+stony as sine(period=5) in turns")
    played = play(trial)
    monkeypatch.setattr("openfield.course.MAX_KNOWN", 2)
    assert play(trial) == played


def test_worlds_that_change_between_episodes_only_say_so() -> None:
    class Still(Slopes):
        name, turnwise = "still", False

    with pytest.raises(InvalidInput, match="'steep over 20 turns': worlds of still change between episodes only"):
        Still().trials(1, novelty="steep over 20 turns")


def test_a_world_may_change_several_times() -> None:
    trials = make("steep then none then flipped then steep", 30, before=10, after=20, unchanged=12)
    changed = [trial for trial in trials if trial.is_changed]
    assert {trial.novelty for trial in trials} == {("steep then none then flipped then steep",)}
    assert (
        SLOPES.describe(trials[0].novelty)
        == "it is steep; then normal again; then answers are flipped; then it is steep"
    )
    (windows,) = {trial.windows for trial in trials}
    assert windows == spread_windows(30, 4) == ((3, 8), (9, 14), (15, 20), (21, 26))
    assert len(changed) == 30
    assert len(trials) == 42
    starts = set()
    for trial in changed:
        test = [phase for phase in trial.phases if phase.name == "test"]
        assert [phase.novelty for phase in test] == [(), ("steep",), (), ("flipped",), ("steep",)]
        onsets = list(itertools.accumulate(phase.episodes for phase in test[:-1]))
        assert all(low <= onset <= high for onset, (low, high) in zip(onsets, windows, strict=True))
        starts.add(tuple(onsets))
    assert len(starts) > 20, "each is drawn for itself"
    truths = [truth for _, truth in episodes(changed[0])]
    assert [name for name, _ in itertools.groupby(truth.change for truth in truths)] == [
        "",
        "steep",
        "",
        "flipped",
        "steep",
    ]
    twin = next(trial for trial in trials if trial.is_unchanged_twin)
    assert {(truth.novel, truth.strength, truth.change) for _, truth in episodes(twin)} == {(False, 0.0, "")}


def test_a_change_that_goes_on_beside_a_new_one_keeps_its_clock() -> None:
    (trial,) = make("steep over 6 then steep over 6+flipped", onset="2,5", after=8, before=2)
    assert strengths(trial)[3:] == pytest.approx([1 / 6, 2 / 6, 0.5, 1, 1, 1, 1, 1])
    assert [turn.observation["tilt"] for turn, _ in episodes(trial)][6] == pytest.approx(1 + 4 * 4 / 6)


def test_onsets_may_be_named() -> None:
    (trial,) = make("steep then none", onset="1,5")
    assert [(phase.episodes, phase.novelty) for phase in trial.phases] == [(1, ()), (1, ()), (4, ("steep",)), (3, ())]
    assert trial.windows == ((1, 1), (5, 5))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"novelty": "flipped over 3"},
            "'flipped' changes no number gradually, so it cannot come 'over 3'. It can come and go",
        ),
        ({"novelty": "wide as walk(sigma=1)"}, "gives the value of one number, and novelty 'wide' changes 2"),
        ({"novelty": "steep as walk(sigma=1, low=2, high=9)"}, "begins at the normal value, 1, which is beyond"),
        ({"novelty": "steep over 9"}, "takes 9 episodes, and the test has 6 at most from the change on"),
        ({"novelty": "steep every 1"}, "every must be a whole number of at least 2, not 1"),
        (
            {"novelty": "steep as ornstein_uhlenbeck(theta=0.01, sigma=4)"},
            r"takes a setting out of its range in episode \d of the trial\. Setting 'tilt' cannot be -",
        ),
        (
            {"novelty": "steep as ornstein_uhlenbeck(theta=0.1, sigma=4) in turns"},
            "needs low and high: how long it will last",
        ),
        ({"novelty": "steep then none", "onset": "1-4,4-6"}, "windows must not overlap, .* Write such as 2-3,4-6"),
        ({"novelty": "steep then none", "onset": "3"}, "the world changes 2 times: write a window for each change"),
        ({"novelty": "steep then none", "onset": "3,9"}, "must lie within the test, which has a length of 8"),
        ({"novelty": "steep then steep"}, "'steep' would change nothing where it comes"),
        ({"novelty": "none then steep"}, "'none' would change nothing where it comes"),
        ({"novelty": "steap over 3"}, "Unknown novelty 'steap'. Did you mean 'steep'"),
        ({"novelty": "steep over 3 then stepp"}, "Did you mean 'steep'"),
    ],
)
def test_what_cannot_be_is_refused_before_the_first_turn(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OpenfieldError, match=message) as caught:
        make(**options)
    assert "\n" not in str(caught.value)


def test_a_strength_out_of_range_names_its_time() -> None:
    class Signs(Slope, frozen=True):
        sign: Annotated[int, msgspec.Meta(ge=0)] = 1

    class Other(Slopes):
        name, settings = "other", Signs
        novelties = (of.Novelty("negative", 6, "rules", "the sign is negative", _set(stones=20)),)

    with pytest.raises(InvalidInput, match="takes a setting out of its range"):
        Other().trials(1, novelty="negative over 3")


def test_a_least_strength_says_what_counts_as_changed() -> None:
    (trial,) = make("steep over 4", min_strength=0.5)
    assert [truth.novel for _, truth in episodes(trial)] == [False] * 4 + [True] * 5
    assert strengths(trial)[3:5] == [0.25, 0.5]
    assert make("steep over 4")[0].settings == {"training": 1, "before": 2, "after": 6} | {
        name: value for name, value in trial.settings.items() if name not in ("min_strength",)
    }


def test_the_red_light_tells_nothing_or_that_or_how_much() -> None:
    told = {
        light: [turn.red_light for turn, _ in episodes(make("steep over 4", red_light=light)[0])][2:5]
        for light in (False, True)
    }
    assert told == {False: [None] * 3, True: [False, True, True]}
    lights = [turn.red_light for turn, _ in episodes(make("steep over 4", red_light="how much")[0])]
    assert lights == [0, 0, 0, 0.25, 0.5, 0.75, 1, 1, 1]
    abrupt = [turn.red_light for turn, _ in episodes(make("steep", red_light="how much")[0])]
    assert abrupt == [0.0] * 3 + [1.0] * 6


def test_a_change_at_once_is_recorded_as_ever() -> None:
    (trial,) = make("steep")
    assert not trial.has_course
    assert all(truth.strength is None and truth.change == "" for truth in play(trial)[1])
    assert b"windows" not in msgspec.json.encode(trial)


class Leaver:
    """An agent that is stopped after some turns."""

    may_leave = True
    left = 20

    def __init__(self, spec: of.Spec, seed: int) -> None:
        self.rng = random.Random(seed)

    def __call__(self, turn: Turn) -> Reply:
        Leaver.left -= 1
        if not Leaver.left:
            raise Cancelled("stopped")
        return Reply(self.rng.randrange(2), of.Belief(self.rng.random()))

    def save(self) -> bytes:
        return repr(self.rng.getstate()).encode()

    def load(self, state: bytes) -> None:
        self.rng.setstate(eval(state))


@pytest.mark.parametrize(
    "novelty", ["steep as walk(sigma=0.5, low=0, high=10)", "steep over 20 turns", "steep then none"]
)
def test_a_killed_run_goes_on_and_is_proven(novelty: str, path: Path) -> None:
    trials = make(novelty)
    Leaver.left = 20
    with pytest.raises(Cancelled):
        of.run([Leaver], trials, path)
    Leaver.left = 10**9
    of.run([Leaver], trials, path)
    with Run(path) as run:
        assert run.verify() == []
        (cell,) = run.cells()
        assert cell.outcome == "done"
        told = [(episode.strength, episode.novel, episode.change) for episode in cell.episodes]
        steps = [step.truth for step in run.steps(cell.id, cell.attempt)]
    assert [strength is not None for strength, _, _ in told] == [True] * len(told)
    assert {strength for strength, _, _ in told} <= {truth.strength for truth in steps if truth}
    assert any(novel for _, novel, _ in told)


def test_an_episode_keeps_the_most_that_its_world_had_changed(path: Path) -> None:
    of.run(["random"], make("steep every 4 turns for 1"), path)
    with Run(path) as run:
        told = [(episode.strength, episode.novel) for episode in run.cells()[0].episodes]
    assert told == [(0, False)] * 3 + [(1, True)] * 6


@pytest.mark.parametrize("novelty", ["steep every 2", "steep then none", "steep as sine(period=3)", "steep over 4"])
def test_an_episode_is_recorded_as_its_world_was(novelty: str, path: Path) -> None:
    trials = make(novelty, seed=3)
    of.run(["random"], trials, path)
    with Run(path) as run:
        told = [(episode.novel, episode.strength, episode.change) for episode in run.cells()[0].episodes]
    assert told == [(truth.novel, truth.strength, truth.change) for _, truth in episodes(trials[0])]


def test_a_blend_of_the_same_settings_has_no_number() -> None:
    blend = Blend(Slope(), Slope())
    assert blend.ranges == ()
    assert blend.at(1.0) == (Slope(), False)


def test_names_are_found_in_any_text() -> None:
    assert stages_of(("a over 3 then none then b+c",)) == (("a over 3",), (), ("b", "c"))
    assert stages_of(("a", "b")) == (("a", "b"),)
    assert bare_names(["a over 3 then none then b+a:hard every 4", "c"]) == ["a", "b", "a:hard", "c"]
