"""Every request of the table, in any order and any state, gets a reply of its layout."""

import math
import random
import struct

import pytest

from openfield.core import Belief
from openfield.domains.birds import DOMAIN
from openfield.domains.birds.harness import HarnessState
from openfield.domains.birds.wire.conversation import Conversation
from openfield.domains.birds.wire.messages import FIXED, Request
from openfield.rollout import Rollout
from support.birds.serving import say

IMAGE = 8 + 640 * 480 * 3
SIZES = {
    **{
        1: 3,
        2: 1,
        11: IMAGE,
        12: 1,
        14: 4,
        15: 4,
        31: 1,
        32: 1,
        34: 1,
        35: 1,
        36: 1,
        41: 1,
        42: 1,
        51: 1,
        52: 1,
        53: 4,
    },
    **{65: 4, 66: 1, 67: 1, 68: 19, 69: 4, 71: IMAGE, 72: 6},
}


def any_request(rng):
    code = rng.choice([*FIXED, *(31, 41, 53, 53, 68, 68, 66, 66), 33, 38, 43, 66, 67])
    if code in (33, 43):
        return Request(code, tuple((rng.choice((31, 32)), 100, 250, -60, 30, 0, 0) for _ in range(rng.randrange(3))))
    if code == 38:
        return Request(code, (rng.randrange(640), rng.randrange(480), 0, 0, 40, rng.randrange(2)))
    if code == 66:
        return Request(code, (rng.choice((0.3, float("nan"), 7.0)), 0.5, (1, 2), 3, "text"))
    if code == 67:
        return Request(code, ("text",))
    if code == 70:
        return Request(code, (rng.randrange(-5, 50), rng.randrange(-2, 4)))
    kinds = {"B": lambda: rng.randrange(2), "I": lambda: rng.randrange(8), "i": lambda: rng.randrange(-700, 700)}
    return Request(code, tuple(kinds[kind]() for kind in FIXED[code][1:]))


@pytest.mark.parametrize("seed", range(3))
def test_any_sequence_of_requests_gets_replies_of_their_layout(seed):
    rng = random.Random(seed)
    (trial,) = DOMAIN.trials(1, training=4, before=3, after=3, attempts=2, report_step=3, novelty="storm", unchanged=0)
    rollout = Rollout(DOMAIN.world(trial))
    conversation, seen = Conversation(rollout.turn), set()
    for _ in range(250):
        request = any_request(rng)
        reply = say(rollout, conversation, request)
        assert len(reply) == SIZES.get(request.code, len(reply)), request
        if request.code in (13, 23):
            assert len(reply) == 4 + 4 * struct.unpack(">I", reply[:4])[0]
        if request.code in (33, 43):
            assert len(reply) == len(request.fields)
        if request.code in (38, 70):
            assert blocks(reply) <= 300
        seen.add(HarnessState(say(rollout, conversation, Request(12))[0]))
    assert {
        HarnessState.NEW_TRIAL,
        HarnessState.NEW_TRAINING_SET,
        HarnessState.PLAYING,
        HarnessState.REQUEST_BELIEF,
    } <= seen


def blocks(reply):
    """How many ground truths a reply has; it must have nothing else."""
    (count,), place = struct.unpack(">I", reply[:4]), 4
    for _ in range(count):
        place += 4 + struct.unpack(">I", reply[place : place + 4])[0]
    assert place == len(reply)
    return count


@pytest.mark.parametrize(("speed", "passes", "own"), [(0, False, 0.0), (1, True, 0.1), (100, True, 0.0)])
def test_an_agent_may_slow_the_game_down_to_watch_a_flight(speed, passes, own):
    (trial,) = DOMAIN.trials(1, novelty="none", before=1, after=0, unchanged=0)
    rollout = Rollout(DOMAIN.world(trial))
    conversation = Conversation(rollout.turn)
    for request in (Request(2, (speed,)), Request(68), Request(68), Request(53), Request(41, (0, 300, 0, 0))):
        say(rollout, conversation, request)
    before = rollout.world.in_play.game.seconds
    for _ in range(3):
        say(rollout, conversation, Request(62))
    assert (rollout.world.in_play.game.seconds > before + 1) is passes
    before = rollout.world.in_play.game.seconds
    assert say(rollout, conversation, Request(41, (0, 300, 0, 0))) == b"\x00"
    assert rollout.world.in_play.game.seconds == pytest.approx(before + own), (
        "a refused shot takes the agent's own time"
    )


@pytest.mark.parametrize(("elapsed", "tries"), [(20.0, 1), (0.02, 100)])
def test_an_agent_that_does_nothing_but_shoot_gets_its_next_bird_as_time_passes(elapsed, tries):
    (trial,) = DOMAIN.trials(1, novelty="none", before=1, after=0, family=2, scenario="multiple", unchanged=0)
    rollout = Rollout(DOMAIN.world(trial))
    conversation = Conversation(rollout.turn)
    for request in (Request(68), Request(68), Request(53), Request(41, (600, 100, 0, 0))):
        say(rollout, conversation, request)
    replies = []
    while not replies or replies[-1] == b"\x00":
        replies.append(say(rollout, conversation, Request(41, (600, 100, 0, 0)), elapsed))
    assert len(replies) <= tries
    assert (len(replies) == 1) is (elapsed > 10), "no sooner than the first bird has touched something"


def test_who_observes_takes_none_of_the_time_of_an_agent():
    (trial,) = DOMAIN.trials(1, novelty="none", before=1, after=0, unchanged=0)
    rollout = Rollout(DOMAIN.world(trial))
    conversation = Conversation(rollout.turn)
    for request in (Request(68), Request(68), Request(53), Request(41, (0, 300, 0, 0))):
        say(rollout, conversation, request, 0.0)
    game = rollout.world.in_play.game
    before = game.seconds
    for _ in range(10):
        say(rollout, conversation, Request(41, (0, 300, 0, 0)), 0.05)
        watching = conversation.observe(Request(62))
        with pytest.raises(StopIteration):
            watching.send(rollout.world.look(next(watching)))
    assert game.seconds == pytest.approx(before + 0.5)


@pytest.mark.parametrize(("degrees", "pixels", "zoom"), [(30, 12, 34), (-5, 7, 35), (150, 9, 34), (45, 400, 35)])
def test_a_polar_shot_flies_where_it_says_as_fast_as_it_says(degrees, pixels, zoom):
    (trial,) = DOMAIN.trials(1, novelty="none", before=1, after=0, unchanged=0)
    rollout = Rollout(DOMAIN.world(trial))
    conversation = Conversation(rollout.turn)
    for code in (68, 68, 53, zoom):
        say(rollout, conversation, Request(code))
    assert say(rollout, conversation, Request(42, (degrees, pixels, 0, 0))) == b"\1"
    in_play = rollout.world.in_play
    velocity = in_play.game.flying.physical.linearVelocity
    assert math.degrees(math.atan2(velocity.y, velocity.x)) == pytest.approx(degrees, abs=1e-3)
    width = in_play.game.level.camera.widest if zoom == 34 else in_play.game.level.camera.narrowest
    assert math.hypot(velocity.x, velocity.y) == pytest.approx(10 * min(1, pixels * width / 640), abs=1e-4)


def test_a_report_out_of_bounds_is_brought_into_them():
    (trial,) = DOMAIN.trials(1, before=1, after=0, novelty="none", unchanged=0)
    rollout = Rollout(DOMAIN.world(trial))
    said = []
    conversation = Conversation(rollout.turn)
    say(rollout, conversation, Request(68))
    talk = conversation.report(7.0, float("inf"), (), 1, "")
    said.append(next(talk).belief)
    assert said == [Belief(1.0, 1, {"not_novel": 0.0, "objects": [], "text": ""})]


@pytest.mark.parametrize("code", [33, 43])
def test_each_shot_of_a_sequence_has_the_next_bird(code):
    (trial,) = DOMAIN.trials(1, novelty="none", before=1, after=0, family=2, scenario="multiple", unchanged=0)
    rollout = Rollout(DOMAIN.world(trial))
    conversation = Conversation(rollout.turn)
    for request in (Request(68), Request(68), Request(53)):
        say(rollout, conversation, request)
    away = (31, 600, 100, 0, 0, 0, 0)
    assert say(rollout, conversation, Request(code, (away,) * 5)) == bytes((1, 1, 1, 0, 0)), "there are three"
