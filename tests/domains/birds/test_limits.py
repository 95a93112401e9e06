"""No sequence of requests exceeds a limit: on the rules alone, and over the requests of agents in real levels.

States 8, 9 and 10 wait for the end of a level. So where a test or training follows, the level that is in play when a
limit is reached may be finished, and its birds are all that still counts; no other level is loaded. Where a trial ends
with the set, or with `finish_levels=false`, nothing is done beyond a limit.
"""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfield.domains.birds import DOMAIN
from openfield.domains.birds.harness import EvaluationScript, Harness, HarnessState, LevelSet
from openfield.domains.birds.settings import BirdsSettings
from openfield.domains.birds.wire.conversation import Conversation
from openfield.domains.birds.wire.messages import Request
from openfield.rollout import Rollout
from support.birds.serving import say

BIRDS = 3
REQUESTS = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 3), st.sampled_from((0.0, 0.5, 3.0))), min_size=40)
"""Long ones: left to itself, a list has five requests on average, which lead nowhere."""
LIMIT = st.integers(-1, 6)


def levels(count, **limits):
    return LevelSet(levels=tuple(f"{number}.xml" for number in range(count)), **limits)


SETS = st.builds(
    levels, st.integers(0, 3), seconds=LIMIT, interactions=LIMIT, attempts=st.integers(-1, 2), selection=st.booleans()
)
SCRIPTS = st.builds(
    EvaluationScript,
    training=SETS,
    tests=st.lists(SETS, max_size=3).map(tuple),
    checkpoint_seconds=LIMIT,
    checkpoint_interactions=LIMIT,
    report_step=st.integers(-1, 3),
    report_in_training=st.booleans(),
    report_in_testing=st.booleans(),
    informed=st.booleans(),
)
OPTIONS = st.builds(
    BirdsSettings,
    count_loads=st.booleans(),
    checkpoint_policy=st.sampled_from(["next_set", "all_sets"]),
    repeat_unlimited=st.booleans(),
    finish_levels=st.booleans(),
)


def is_spent(progress):
    """Whether a limit of a set is reached, counted here."""
    limits = progress.set
    return 0 < limits.seconds <= progress.seconds or 0 < limits.interactions <= progress.interactions


@settings(max_examples=80, deadline=None)
@given(SCRIPTS, OPTIONS, REQUESTS)
def test_no_sequence_of_requests_breaks_a_limit(script, options, requests):
    game = Game(Harness(script, options))
    for kind, index, seconds in requests:
        before = game.harness.stage
        game.take(kind, index, seconds)
        game.check()
        assert before is not HarnessState.TERMINATED or game.harness.stage is HarnessState.TERMINATED, (
            "the end is the end"
        )
    for progress in game.sets:
        limit, allowed = progress.set.interactions, game.allowed.get(progress, 0)
        assert limit <= 0 or progress.interactions <= limit + allowed


class Game:
    """Gives a harness requests as a world does, in levels of a few birds; knows nothing of its inner rules."""

    def __init__(self, harness):
        self.harness, self.birds = harness, 0
        self.sets = {harness.current: 0}
        """The sets that were on, and the shots in each after one of its limits was reached."""
        self.allowed = {}
        """How many these may be, for each set of which a limit is reached."""

    def take(self, kind, index, seconds):
        """Does what is asked for, lets time pass, and moves on."""
        harness, current = self.harness, self.harness.current
        match kind:
            case 0:
                harness.ready()
            case 1 | 2 | 3:
                self._load((harness.load, lambda: harness.load(index), harness.restart)[kind - 1])
            case 4 | 5 | 6 if harness.may_shoot and self.birds:
                self.birds -= 1
                self.sets[current] += is_spent(current)
                harness.interact()
            case 7 if harness.stage is HarnessState.PLAYING:
                harness.end_level(index == 0, index)
            case _:
                harness.report_pending = False
        harness.spend(seconds)
        if is_spent(current):
            self.allowed.setdefault(current, self.birds if self._may_finish else 0)
        harness.update()
        self.sets.setdefault(harness.current, 0)

    def check(self):
        """Sees that nothing is where it must not be."""
        harness, current = self.harness, self.harness.current
        assert all(late <= self.allowed.get(progress, 0) for progress, late in self.sets.items())
        assert harness.state is not HarnessState.PLAYING or not is_spent(current) or self._may_finish, (
            "a limit ends the level"
        )
        assert all(left is None or 0 <= left <= max(current.set.attempts, 0) for left in current.left)
        assert -1 <= current.position < max(len(current.left), 1)
        assert not (harness.report_pending and harness.script.informed)

    def _load(self, load):
        current, spent = self.harness.current, is_spent(self.harness.current)
        if load() is not None:
            assert not spent, "no level after a limit"
            assert self.harness.current is current
            self.birds = BIRDS

    @property
    def _may_finish(self):
        """Whether a level is in play that goes on beyond a limit, because another set follows this one."""
        harness, begun = self.harness, sum(progress.testing for progress in self.sets)
        left = sum(bool(levels.levels) for levels in harness.script.tests) - begun
        last = not left and (harness.training_over or not harness.current.testing)
        return harness.settings.finish_levels and harness.stage is HarnessState.PLAYING and not last


LIMITED = """<evaluation>
  <novelty_detection_measurement step="3" measure_in_training="True" measure_in_testing="False" />
  <trials><trial checkpoint_interaction_limit="6">
    <game_level_set mode="training" {limit}="9" attempt_limit_per_level="3" allow_level_selection="True">
      <game_levels novelty_level="0" type="010202" start="0" end="2" /></game_level_set>
    <game_level_set mode="test" {limit}="3">
      <game_levels novelty_level="2" type="010202" start="0" end="1" /></game_level_set>
    <game_level_set mode="test" {limit}="3">
      <game_levels novelty_level="2" type="010202" start="2" end="3" /></game_level_set>
  </trial></trials>
</evaluation>"""
SHOTS = (31, 41, 33, 38)


@pytest.mark.parametrize("limit", ["total_interaction_limit", "time_limit"])
@pytest.mark.parametrize("finish", [True, False])
@pytest.mark.parametrize("seed", range(2))
def test_no_sequence_of_requests_of_an_agent_does_either(tmp_path, limit, finish, seed):
    (tmp_path / "config.xml").write_text(LIMITED.format(limit=limit))
    (trial,) = DOMAIN.trials(config=str(tmp_path / "config.xml"), finish_levels=finish, unchanged=0)
    rng, rollout = random.Random(seed), Rollout(DOMAIN.world(trial))
    conversation, harness, done, late = Conversation(rollout.turn), rollout.world.harness, {}, {}
    while not rollout.over:
        request, current = any_request(rng), harness.current
        spent, last = is_spent(current), harness.training_over and len(done) == 3
        accepted = count_accepted(request.code, say(rollout, conversation, request))
        done[current] = done.get(current, 0) + accepted
        if spent and accepted:
            assert request.code in SHOTS, "no level after a limit"
            assert finish, "no shot either where levels are not finished"
            assert not last, "nor where no set follows"
            late[current] = late.get(current, 0) + accepted
    assert len(done) == 3, "all sets were on"
    assert bool(late) is finish, "some level was in play when a limit was reached"
    for progress, count in done.items():
        assert progress.interactions == count
        assert late.get(progress, 0) <= BIRDS
        if progress.set.interactions > 0:
            assert count <= progress.set.interactions + (BIRDS if finish else 0)


def any_request(rng):
    """A request to go on, to shoot somewhere, to load something, or to say something."""
    code = rng.choice((*SHOTS, 51, 52, 53, 53, 66, 68, 68, 12, 62, 70))
    shot = (rng.randrange(200), rng.randrange(150, 400), 0, 0)
    fields = {
        **dict.fromkeys((31, 41), shot),
        33: ((31, *shot[:2], 0, 0, 0, 0),) * 2,
        38: (*shot, 50, 0),
        51: (rng.randrange(1, 4),),
        66: (0.5, 0.5, (), 0, ""),
        70: (50, 1),
    }
    return Request(code, fields.get(code, ()))


def count_accepted(code, reply):
    """The interactions a request came to, by what was replied: shots, and levels that were loaded."""
    if code in (51, 53):
        return int(any(reply))
    if code == 38:
        return int(any(reply[:4]))
    return sum(reply) if code in SHOTS else 0
