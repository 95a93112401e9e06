"""The rules of a trial, by table."""

import math

import msgspec
import pytest

from openfield.domains.birds.harness import EvaluationScript, Harness, HarnessState, LevelSet
from openfield.domains.birds.settings import BirdsSettings

SHOTS_ONLY = BirdsSettings(count_loads=False)


def levels(count, **limits):
    return LevelSet(levels=tuple(f"{number}.xml" for number in range(count)), **limits)


def start(script, options=SHOTS_ONLY):
    """A trial whose first set is on."""
    harness = Harness(script, options)
    harness.ready()
    harness.ready()
    return harness


def play(harness, won=True, index=None, shots=1, score=5000):
    """Loads a level, shoots, and ends it."""
    loaded = harness.load(index)
    for _ in range(shots):
        harness.interact()
    harness.end_level(won, score)
    harness.update()
    return loaded


def test_a_trial_goes_from_announcement_to_menu_to_level_to_result():
    harness = Harness(EvaluationScript(training=levels(2, attempts=1)), SHOTS_ONLY)
    seen = [harness.state]
    for act in (harness.ready, harness.ready, harness.load, lambda: play_on(harness)):
        act()
        seen.append(harness.state)
    assert seen == [
        HarnessState.NEW_TRIAL,
        HarnessState.NEW_TRAINING_SET,
        HarnessState.MAIN_MENU,
        HarnessState.PLAYING,
        HarnessState.WON,
    ]


def play_on(harness):
    harness.interact()
    harness.end_level(True, 1)
    harness.update()


def test_a_trial_without_training_levels_starts_with_a_test():
    harness = Harness(EvaluationScript(training=levels(0), tests=(levels(1, attempts=1),)), SHOTS_ONLY)
    harness.ready()
    assert harness.state is HarnessState.NEW_TEST_SET


def test_ready_changes_nothing_while_a_level_is_on():
    harness = start(EvaluationScript(training=levels(2)))
    harness.load()
    harness.ready()
    assert harness.state is HarnessState.PLAYING


def test_training_that_is_played_out_leads_to_all_tests_and_then_the_end():
    harness = start(
        EvaluationScript(training=levels(1, attempts=1), tests=(levels(1, attempts=1), levels(1, attempts=1)))
    )
    play(harness)
    seen = [harness.state]
    for _ in range(2):
        harness.ready()
        play(harness)
        seen.append(harness.state)
    assert seen == [HarnessState.NEW_TEST_SET, HarnessState.NEW_TEST_SET, HarnessState.TERMINATED]


def test_a_checkpoint_by_interactions_waits_for_the_level_and_training_resumes_where_it_was():
    training = levels(4, attempts=2, selection=True)
    harness = start(EvaluationScript(training=training, tests=(levels(1, attempts=1),), checkpoint_interactions=2))
    play(harness, index=2, score=700)
    harness.load(1)
    harness.interact()
    harness.update()
    assert harness.state is HarnessState.PLAYING, "the level in play is not cut short by a checkpoint"
    harness.end_level(False, 10)
    harness.update()
    assert harness.state is HarnessState.NEW_TEST_SET
    harness.ready()
    play(harness)
    assert harness.state is HarnessState.RESUME_TRAINING
    harness.ready()
    current = harness.current
    assert (current.left, current.scores, current.position) == ([2, 1, 1, 2], [0, 10, 700, 0], 1)
    assert (current.recent_interactions, current.interactions) == (0, 2)
    assert harness.load() == 2, "it goes on after the level played last"
    order = [harness.load() for _ in range(4)]
    assert order == [3, 3, 0, 0], "and levels are repeated again while they have attempts left"
    assert harness.load() == 1, "also the one that was left behind"


@pytest.mark.parametrize(("policy", "final"), [("next_set", 1), ("all_sets", 2)])
def test_a_final_test_is_played_although_checkpoints_took_all_test_sets(policy, final):
    script = EvaluationScript(
        training=levels(3, attempts=1), tests=(levels(1, attempts=1), levels(2, attempts=1)), checkpoint_interactions=1
    )
    harness = start(script, BirdsSettings(count_loads=False, checkpoint_policy=policy))
    tested, numbers = [], []
    while not harness.over:
        if harness.state in (HarnessState.NEW_TEST_SET, HarnessState.RESUME_TRAINING):
            tested += [len(harness.current.left)] if harness.current.testing else []
            numbers += [harness.set_number] if harness.current.testing else []
            harness.ready()
        play(harness)
    assert tested == [1, 2, *[1, 2][-final:]], "the last one again, or all of them"
    assert numbers == list(range(1, 3 + final)), "each test is a set of its own in the record"


def test_a_checkpoint_by_time():
    harness = start(EvaluationScript(training=levels(9), tests=(levels(1, attempts=1),), checkpoint_seconds=10))
    harness.spend(10.0)
    harness.update()
    assert harness.state is HarnessState.NEW_TEST_SET


def test_without_test_sets_a_checkpoint_only_starts_its_clock_again():
    script = EvaluationScript(training=levels(9), checkpoint_interactions=2, report_step=3, report_in_training=True)
    harness, asked = start(script), []
    for _ in range(6):
        harness.load()
        harness.spend(1.0)
        harness.interact()
        asked.append(harness.state is HarnessState.REQUEST_BELIEF)
        harness.report_pending = False
        harness.end_level(True, 1)
        harness.update()
        assert harness.state is HarnessState.WON
    assert asked == [False, False, True] * 2, "questions still go by the interactions of the set"
    assert (harness.current.recent_interactions, harness.current.recent_seconds) == (6, 0.0)


def test_all_sets_at_a_checkpoint_is_an_option():
    tests = (levels(1, attempts=1), levels(1, attempts=1))
    script = EvaluationScript(training=levels(9), tests=tests, checkpoint_interactions=1)
    harness = start(script, BirdsSettings(count_loads=False, checkpoint_policy="all_sets"))
    play(harness)
    harness.ready()
    play(harness)
    assert harness.state is HarnessState.NEW_TEST_SET
    harness.ready()
    play(harness)
    assert harness.state is HarnessState.RESUME_TRAINING


def test_interactions_in_a_test_do_not_use_up_training():
    script = EvaluationScript(training=levels(9, interactions=3), tests=(levels(3),), checkpoint_interactions=1)
    harness = start(script)
    play(harness)
    harness.ready()
    for _ in range(5):
        harness.load()
        harness.interact()
        harness.end_level(True, 1)
    assert harness.training.interactions == 1


def test_time_over_waits_for_the_level_where_a_test_follows_and_cuts_it_short_where_none_does():
    for tests, state in (((levels(1),), HarnessState.PLAYING), ((), HarnessState.TERMINATED)):
        harness = start(EvaluationScript(training=levels(9, seconds=5), tests=tests))
        harness.load()
        harness.spend(6.0)
        harness.update()
        assert harness.state is state


def test_a_level_in_play_is_finished_before_a_test_also_when_no_interaction_is_left():
    harness = start(EvaluationScript(training=levels(9, interactions=1), tests=(levels(1),)))
    harness.load()
    harness.interact()
    harness.update()
    assert (harness.state, harness.may_shoot) == (HarnessState.PLAYING, True)
    assert harness.load(1) is None
    harness.end_level(True, 1)
    harness.update()
    assert harness.state is HarnessState.NEW_TEST_SET


LEAVING = [lambda harness: harness.load(), lambda harness: harness.load(1), lambda harness: harness.restart()]


@pytest.mark.parametrize("leave", LEAVING)
@pytest.mark.parametrize("limit", [{"interactions": 2}, {}])
def test_who_leaves_a_level_when_a_test_waits_for_its_end_gets_the_test_and_no_level(leave, limit):
    training = levels(9, selection=True, **limit)
    harness = start(EvaluationScript(training=training, tests=(levels(1),), checkpoint_interactions=2))
    harness.load()
    harness.interact()
    assert leave(harness) is not None
    harness.interact()
    harness.update()
    assert harness.load(99) is None
    assert harness.state is HarnessState.PLAYING, "a level that is none is no reason to leave"
    assert leave(harness) is None
    assert harness.state is HarnessState.NEW_TEST_SET


def test_nothing_moves_on_before_a_question_is_answered():
    script = EvaluationScript(training=levels(9), tests=(levels(1),), checkpoint_interactions=1)
    harness = start(msgspec.structs.replace(script, report_step=1, report_in_training=True))
    play(harness)
    assert (harness.state, harness.current.testing) == (HarnessState.REQUEST_BELIEF, False)
    harness.report_pending = False
    harness.update()
    assert harness.state is HarnessState.NEW_TEST_SET


def test_the_end_of_a_trial_waits_for_no_level_in_play():
    harness = start(EvaluationScript(training=levels(9, interactions=1)))
    harness.load()
    harness.interact()
    harness.update()
    assert harness.state is HarnessState.TERMINATED


@pytest.mark.parametrize("limit", [{"interactions": 1}, {"seconds": 5}])
def test_a_limit_may_also_end_the_level_in_play_where_a_test_follows(limit):
    options = BirdsSettings(count_loads=False, finish_levels=False)
    harness = start(EvaluationScript(training=levels(9, **limit), tests=(levels(1),)), options)
    harness.load()
    harness.spend(4.0)
    harness.update()
    assert (harness.state, harness.seconds_left) == (HarnessState.PLAYING, 1.0 if "seconds" in limit else math.inf)
    harness.spend(1.0)
    harness.interact()
    harness.update()
    assert harness.state is HarnessState.NEW_TEST_SET


def test_a_checkpoint_waits_for_the_level_also_where_limits_do_not():
    script = EvaluationScript(training=levels(9), tests=(levels(1),), checkpoint_seconds=5)
    harness = start(script, BirdsSettings(finish_levels=False))
    harness.load()
    harness.spend(6.0)
    harness.update()
    assert (harness.state, harness.seconds_left) == (HarnessState.PLAYING, math.inf)


def test_time_does_not_count_while_something_is_announced():
    harness = Harness(EvaluationScript(training=levels(2, seconds=5)), SHOTS_ONLY)
    harness.spend(100.0)
    harness.ready()
    harness.spend(100.0)
    harness.ready()
    harness.update()
    assert (harness.state, harness.current.seconds) == (HarnessState.MAIN_MENU, 0.0)


def test_asking_for_a_level_when_none_is_left_ends_the_set():
    harness = start(EvaluationScript(training=levels(1, attempts=1), tests=(levels(1),)))
    harness.load()
    assert harness.load() is None
    assert harness.state is HarnessState.NEW_TEST_SET


def test_a_sequence_gives_levels_in_order_and_a_set_any_that_is_left():
    sequence = start(EvaluationScript(training=levels(3, attempts=1)))
    assert [sequence.load(2), sequence.load(0), sequence.load(2), sequence.load()] == [None, 0, None, 1]
    free = start(EvaluationScript(training=levels(3, attempts=1, selection=True)))
    assert [free.load(2), free.load(2), free.load(7), free.load(0), free.load()] == [2, None, None, 0, 1]


def test_a_level_is_repeated_while_it_has_attempts_left():
    harness = start(EvaluationScript(training=levels(2, attempts=2)))
    assert [harness.load() for _ in range(4)] == [0, 0, 1, 1]
    assert harness.restart() is None


def test_without_a_limit_of_attempts_the_next_level_is_the_same_again_also_after_a_win():
    harness = start(EvaluationScript(training=levels(3, selection=True)))
    assert [play(harness), play(harness, won=False), harness.load()] == [0, 0, 0]
    assert harness.load(2) == 2
    assert harness.load() == 2


def test_without_a_limit_of_attempts_a_sequence_may_also_go_round():
    harness = start(EvaluationScript(training=levels(2)), BirdsSettings(count_loads=False, repeat_unlimited=False))
    assert [harness.load() for _ in range(3)] == [0, 1, 0]
    assert harness.restart() == 0


def test_limits_end_a_set_whose_attempts_have_none():
    for limits in ({"interactions": 5}, {"seconds": 5}):
        harness, played = start(EvaluationScript(training=levels(2, **limits))), 0
        while not harness.over:
            harness.load()
            harness.interact()
            harness.spend(1.0)
            harness.end_level(True, 1)
            harness.update()
            played += 1
        assert played == 5


def test_restarting_is_an_attempt():
    harness = start(EvaluationScript(training=levels(2, attempts=2)))
    assert harness.restart() is None, "nothing is loaded yet"
    harness.load()
    assert (harness.restart(), harness.restart()) == (0, None)


def test_loads_count_as_interactions_unless_told_otherwise():
    for options, count in ((BirdsSettings(), 2), (SHOTS_ONLY, 1)):
        harness = start(EvaluationScript(training=levels(3)), options)
        play(harness)
        assert harness.current.interactions == count


def test_a_belief_is_asked_for_every_so_many_interactions_and_nothing_goes_on_before_it_is_given():
    script = EvaluationScript(training=levels(3), report_step=2, report_in_training=True)
    harness = start(script)
    harness.load()
    harness.interact()
    assert harness.state is HarnessState.PLAYING
    harness.interact()
    assert harness.state is HarnessState.REQUEST_BELIEF
    assert not harness.may_shoot
    assert (harness.load(), harness.restart()) == (None, None)
    harness.report_pending = False
    assert harness.state is HarnessState.PLAYING


def test_beliefs_are_asked_for_only_where_the_script_says_so():
    for fields in ({"report_in_testing": True}, {"report_in_training": True, "informed": True}):
        harness = start(EvaluationScript(training=levels(3), report_step=1, **fields))
        harness.load()
        harness.interact()
        assert harness.state is HarnessState.PLAYING
