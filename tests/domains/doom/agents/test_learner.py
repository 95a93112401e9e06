"""The learning agent: what its tables say after what they were told, and that it improves after the onset."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from openfield.core import Reply, Turn
from openfield.domains.doom import ARENA, DUEL
from openfield.domains.doom.agents.learner import Experience, LearningAgent, untrained
from openfield.domains.doom.agents.reference import ReferenceAgent
from openfield.domains.doom.domain import DoomDomain
from openfield.domains.doom.world import DoomWorld
from support.doom.worlds import open_world, play


class TestTables:
    def test_a_move_that_leads_elsewhere_is_experience(self) -> None:
        learnt = untrained("duel")
        surprises = [learnt.enter_effect("left", (0.0, -8.0)) for _ in range(20)]
        assert surprises[0] == pytest.approx(16.0)
        assert surprises[-1] < 0.1
        assert learnt.effects["left"] == pytest.approx((0.0, -8.0), abs=0.1)

    def test_shots_that_never_hit_are_no_longer_fired(self) -> None:
        learnt = untrained("duel")
        assert learnt.aim == 18.0
        for _ in range(10):
            learnt.enter_shot(13.0, hit=False)
            learnt.enter_shot(10.0, hit=True)
        assert learnt.aim == 12.0

    def test_shots_that_all_hit_less_often_are_still_fired(self) -> None:
        learnt = untrained("arena")
        for number in range(40):
            for offset in (1.0, 4.0, 7.0, 10.0, 13.0):
                learnt.enter_shot(offset, hit=number % 3 == 0)
        assert learnt.aim == untrained("arena").aim

    def test_the_line_of_fire_is_never_narrower_than_a_step(self) -> None:
        learnt = untrained("duel")
        for _ in range(20):
            learnt.enter_shot(1.0, hit=False)
        assert learnt.aim == 4.0  # eight units aside, it is four at most

    def test_where_it_always_hurts_is_told_from_where_bullets_hit(self) -> None:
        learnt = untrained("arena")
        for number in range(60):
            learnt.enter_harm(30.0, 5.0)
            learnt.enter_harm(50.0, 25.0 if number % 5 == 0 else 0.0)
            learnt.enter_harm(200.0, 0.0)
        assert learnt.harm_at(31.0) == learnt.harm_at(17.0) == 5.0  # nearer is not held better
        assert learnt.harm_at(52.0) <= 0.5
        assert learnt.harm_at(float("inf")) == 0.0

    def test_what_hurts_everywhere_keeps_off_no_place(self) -> None:
        learnt = untrained("arena")
        for clearance in (20.0, 36.0, 300.0):
            for _ in range(10):
                learnt.enter_harm(clearance, 2.0)
        assert learnt.harm_at(20.0) == 0.0

    def test_they_are_kept(self) -> None:
        learnt = untrained("arena")
        learnt.enter_harm(20.0, 5.0)
        learnt.enter_shot(2.0, hit=False)
        assert msgspec.json.decode(msgspec.json.encode(learnt), type=Experience) == learnt


@pytest.mark.engine
@pytest.mark.parametrize(("domain", "novelty"), [(DUEL, "mirrored"), (ARENA, "204:hard")], ids=["duel", "arena"])
def test_it_recovers_where_the_reference_does_not(domain: DoomDomain, novelty: str) -> None:
    settings = {"episodes": 12, "before": 3, "limit": 1000}

    def scores(kind: type[Any]) -> list[float]:
        world = open_world(domain, novelty, **settings)
        agent = kind(domain.spec(world.trial), 0)
        return [world.truth.performance or 0.0 for turn in play(world, agent) if turn.last]

    learner, fixed = scores(LearningAgent), scores(ReferenceAgent)
    assert sum(learner[5:]) > sum(fixed[5:]) + 1.0
    assert sum(learner[-4:]) / 4 > 0.9 * sum(learner[:3]) / 3


def test_where_no_known_move_leads_it_tries_any() -> None:
    """It knows that left goes right; that right goes left it finds out only by trying, wherever the enemy stands."""
    agent = LearningAgent(DUEL.spec(DUEL.trials(1, unchanged=0)[-1]), 0)
    agent._experience.effects["left"] = (0.0, -8.0)
    body = {"id": 0, "x_position": -384.0, "y_position": 0.0, "z_position": 0.0, "health": 10.0}
    enemy = {**body, "x_position": 0.0}

    def tried(y: float) -> set[str]:
        turn = Turn(observation={"player": body, "enemies": [{**enemy, "y_position": y}]})
        return {agent(turn).action for _ in range(40)}

    assert tried(200.0) == {"forward", "left", "backward", "right"}
    assert len(tried(-200.0)) == 1  # what is known to lead there is done


@pytest.mark.engine
def test_it_goes_on_from_what_it_saved() -> None:
    world = open_world(ARENA, limit=80)
    agent = LearningAgent(ARENA.spec(world.trial), 0)
    list(play(world, agent))
    other = LearningAgent(ARENA.spec(world.trial), 1)
    other.load(agent.save())
    assert other.save() == agent.save()


@pytest.mark.engine
def test_the_arena_as_it_was_does_not_surprise_it() -> None:
    """Walls and pillars stop moves as well; they are no novelty."""
    training, test = ARENA.trials(1, novelty="none", training=3, episodes=10, limit=300, unchanged=0)
    agent, levels = LearningAgent(ARENA.spec(training), 0), []
    list(play(DoomWorld(ARENA, training), agent))

    def noting(turn: Turn) -> Reply:
        reply = agent(turn)
        levels.extend([reply.belief.level] if turn.last and reply.belief else [])
        return reply

    list(play(DoomWorld(ARENA, test), noting))
    assert levels == [0] * 9  # the last episode's end is not asked about
