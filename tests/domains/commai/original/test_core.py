"""The task interface of the original: handlers and their order, speaking, states, verdicts, worlds, channels."""

import pickle
import random
from collections import defaultdict

import pytest

from openfield.domains.commai import CommaiSettings, Oracle, SequentialScheduler, make_environment, make_task, task_ids
from openfield.domains.commai.agents.original_learners import BaseLearner
from openfield.domains.commai.original.configuration import class_of
from openfield.domains.commai.original.core.channels import ByteInputChannel, InputChannel, OutputChannel
from openfield.domains.commai.original.core.events import EventManager, Observable, TaskFailed, Trigger
from openfield.domains.commai.original.core.scheduler import (
    ConsecutiveTaskScheduler,
    DependenciesTaskScheduler,
    IncrementalTaskScheduler,
    IntervalTaskScheduler,
    RandomTaskScheduler,
)
from openfield.domains.commai.original.core.serializer import IdentitySerializer, ScramblingSerializerWrapper
from openfield.domains.commai.original.core.session import Session
from openfield.domains.commai.original.core.task import (
    Task,
    World,
    on_ended,
    on_message,
    on_output_message,
    on_output_sequence,
    on_sequence,
    on_start,
    on_state_changed,
    on_timeout,
    on_world_start,
)
from openfield.domains.commai.original.grid_world import GridWorld, Point, Span
from openfield.domains.commai.original.hosting import HostedEnvironment, HostedTask
from openfield.domains.commai.original.tasks.base import BaseTask
from openfield.domains.commai.original.tasks.challenge_micro import MicroBase, TaskGenerator
from openfield.domains.commai.original.tasks.challenge_mini import build_automaton
from support.commai_streams import SERIALIZER, make, play


class Plain(Task):
    """A task that says hello and writes down what happens."""

    said = "hello"

    def __init__(self, max_time=1000, world=None):
        super().__init__(max_time, world)
        self.log = []

    @on_start()
    def begin(self, event):
        self.set_message(self.said)


# Speaking, verdicts and rewards: the streams of the original


class Priorities(Plain):
    @on_start()
    def begin(self, event):
        self.set_message("AAAAAA", 3)

    @on_message("1$")
    def one(self, event):
        self.set_message("bbb")

    @on_message("3$")
    def three(self, event):
        self.set_message("ddd", 3)

    @on_message("5$")
    def five(self, event):
        self.set_message("ccc", 5)


@pytest.mark.parametrize(("bits", "spoken"), [(False, "AAAAAAdddccc______bbb"), (True, "AAAddccc__________bbb")])
def test_a_message_of_lower_priority_is_lost_while_another_is_unsaid(bits, spoken):
    assert play(make(Priorities(), bits=bits), "1_3_5_1__________1___")[0] == spoken


class Verdict(Plain):
    @on_message(r"\.$")
    def decide(self, event):
        self.set_result(1)


class Unseparated(Verdict):
    skip_task_separator = True


@pytest.mark.parametrize(
    ("task", "bits", "compat", "streams"),
    [
        (Verdict, False, "", ("hello_hello_", "......+.....")),
        (Unseparated, False, "", ("hellohello__", ".....+......")),
        (Verdict, True, "", ("hehello_____", "..+.........")),
        (Verdict, True, "round1", ("hehello_____", "............")),
    ],
)
def test_a_verdict_without_a_text(task, bits, compat, streams):
    assert play(make(task(), bits=bits, compat=compat), "_.__________") == streams


def test_a_verdict_in_silence_is_paid_with_the_next_instance_and_in_round_1_lost():
    assert play(make(Verdict()), "______.____") == ("hello__hell", ".......+...")
    assert play(make(Verdict(), compat="round1"), "______.____") == ("hello__hell", "...........")


class Immediate(Plain):
    @on_message("m$")
    def more(self, event):
        self.set_immediate_reward(5)
        self.set_immediate_reward(1)

    @on_message("e$")
    def end_it(self, event):
        self.set_immediate_reward(-1)
        self.set_result(1, "x")


def test_immediate_rewards_come_at_once_and_the_verdict_with_the_next_instance():
    assert play(make(Immediate()), "_____m__m__e___________") == ("hello_______x_hello____", "......+..+..-.+........")


class TwoVerdicts(Plain):
    def __init__(self, first, second):
        super().__init__()
        self.verdicts = first, second

    @on_message(r"\.$")
    def first(self, event):
        self.set_result(self.verdicts[0], "first")

    @on_message("!$")
    def second(self, event):
        self.set_result(self.verdicts[1], "second")


@pytest.mark.parametrize(
    ("pair", "replaced"),
    [((0, 0), 1), ((0, 1), 1), ((1, 0), 1), ((True, 1), 1), ((0, False), 1), ((False, False), 0), ((True, True), 0)],
)
def test_the_first_verdict_is_final_and_in_round_1_only_the_same_boolean_is_ignored(pair, replaced):
    spoken, paid = play(make(TwoVerdicts(*pair)), "_____.!_______________")
    assert spoken.startswith("hello_first_hello")
    assert paid.count("+") == int(pair[0])
    spoken, paid = play(make(TwoVerdicts(*pair), compat="round1"), "_____.!_______________")
    assert spoken.startswith("hello_firstsecond_hel" if replaced else "hello_first_hello")
    assert paid.count("+") == int(pair[1] if replaced else pair[0])


def test_the_cap_of_rewards_holds_for_all_instances_of_a_task():
    environment = make(Verdict())
    environment._max_reward_per_task = 2
    assert play(environment, "______." * 6)[1].count("+") == 2
    assert environment.get_reward_per_task() == {"Verdict": 2}


def test_a_timeout_without_a_handler_ends_silently_and_bits_finish_their_filler():
    assert play(make(Plain(8)), "_" * 20)[0] == "hello___hello___hell"
    environment, times = make(Plain(100), bits=True), []
    environment.task_updated.register(lambda task: times.append(len(said)))
    said = []
    while len(said) < 150:
        said.append(environment.next("0"))
    assert times == [0, 104]


# Handlers: events, conditions, order, inheritance


class Everything(Plain):
    said = "hi."

    @on_ended()
    def a_ended(self, event):
        self.log.append("ended")
        self.set_message("lost")

    @on_message()
    def b_message(self, event):
        self.log.append(("message", event.message))

    @on_message("b(c?)")
    def c_matched(self, event):
        self.log.append(("match", event.get_match(), event.get_match(1), event.get_match_groups()))

    @on_output_message(r"\.$")
    def d_own_message(self, event):
        self.log.append(("own", event.output_message, self.get_time()))

    @on_output_sequence("^h$")
    def e_own_sequence(self, event):
        self.log.append(("own sequence", event.output_sequence))

    @on_sequence("")
    def f_sequence(self, event):
        self.log.append(("sequence", event.sequence))

    @on_timeout()
    def g_timeout(self, event):
        self.log.append(("timeout", self.get_time()))


def test_every_event_comes_with_its_fields_and_in_its_order():
    task = Everything(max_time=5)
    play(make(task), "abc__")
    assert task.log == [
        ("own sequence", "h"),
        ("message", "a"),
        ("sequence", "a"),
        ("message", "ab"),
        ("match", "b", "", ("",)),
        ("sequence", "ab"),
        ("own", "hi.", 2),
        ("message", "abc"),
        ("match", "bc", "c", ("c",)),
        ("sequence", "abc"),
        ("message", "abc "),
        ("match", "bc", "c", ("c",)),
        ("sequence", "abc "),
    ]
    task.log.clear()
    play(task._env, "_", heard=" ")
    assert task.log[0] == ("timeout", 5)
    assert task.log[-2:] == ["ended", ("own sequence", "h")]


def test_in_bit_mode_a_sequence_comes_with_every_bit_and_before_the_message():
    task = Everything()
    play(make(task, bits=True), "a_")
    heard = [entry for entry in task.log if entry[0] in ("message", "sequence")]
    assert [entry[0] for entry in heard] == ["sequence"] * 8 + ["message"] + ["sequence"] * 7
    assert heard[7] == ("sequence", "01100001")


def test_a_handler_without_an_expression_has_no_match():
    class Careless(Plain):
        @on_message()
        def look(self, event):
            event.get_match()

    with pytest.raises(TaskFailed, match=r"Careless\.look, at MessageReceived: AttributeError"):
        play(make(Careless()), "a_")


@pytest.mark.parametrize(
    ("heard", "text", "suffix", "ends", "exact"),
    [
        ("  one.", "one", ".", True, True),
        ("zz one.", "one", ".", True, False),
        ("one", "one", "", True, True),
        ("one.", "two", ".", False, False),
    ],
)
def test_messages_are_compared_at_their_end(heard, text, suffix, ends, exact):
    found = []

    class Compare(Plain):
        @on_message()
        def look(self, event):
            found.append((event.is_message(text, suffix), bool(event.is_message_exact(text, suffix))))

    play(make(Compare()), heard + "_")
    assert found[-1] == (ends, exact)
    play(make(Compare(), compat="round1"), heard + "_")
    assert found[-1] == ((ends, exact) if suffix else (False, False))


def test_an_override_switches_a_handler_off_or_replaces_it_and_may_call_the_first_one():
    class Base(Plain):
        @on_message("a$")
        def first(self, event):
            self.log.append("first")

        @on_message("a$")
        def second(self, event):
            self.log.append("second")

    class Derived(Base):
        def first(self, event):
            self.log.append("never")

        @on_message("b$")
        def second(self, event):
            self.log.append("derived")
            super().second(event)

    class Stacked(Plain):
        @on_message("a$")
        @on_timeout()
        def outer(self, event):
            self.log.append("outer")

    derived, stacked = Derived(), Stacked()
    play(make(derived), "ab_")
    play(make(stacked), "a_")
    assert (derived.log, stacked.log) == (["derived", "second"], ["outer"])


class Adding(Plain):
    @on_message("a$")
    def add(self, event):
        self.add_handler(on_message("[ab]$")(self.added))
        self.add_handler(on_message("[ab]$")(lambda task, event: task.log.append("function")))

    def added(self, event):
        self.log.append("method")

    @on_message(r"\.$")
    def finish(self, event):
        self.set_result(1)


@pytest.mark.parametrize(("compat", "kept"), [("", []), ("round1", ["function"] * 2)])
def test_handlers_can_be_added_until_the_instance_ends(compat, kept):
    task = Adding()
    environment = make(task, compat=compat)
    play(environment, "ab_")
    assert task.log == ["method", "function"] * 2  # they take part in the event that added them
    task.log.clear()
    play(environment, "_.__b_______b__")
    assert task.log == kept  # Round 1 never removed functions
    with pytest.raises(TypeError, match="is not a handler"):
        task.add_handler(task.added)


def test_conditions_see_what_earlier_handlers_did_and_the_message_stays():
    class Chain(Plain):
        @on_start()
        def begin(self, event):
            self.state.count = 0

        @on_message("x$")
        def a_erase(self, event):
            self.ignore_last_char()
            self.log.append(event.message)

        @on_message("x$")
        def b_still_there(self, event):
            self.log.append(event.message)
            self.log.append(self._env._input_channel.get_text())

    task = Chain()
    play(make(task), "ax_")
    assert task.log == ["ax", "ax", "a "]


# States


def test_every_assignment_is_one_change_and_what_lies_deeper_is_not_watched():
    class Changing(Plain):
        @on_start()
        def begin(self, event):
            self.state.value, self.state.table = 0, {"a": {}}
            self.state.counts, self.state.items = defaultdict(int), []

        @on_state_changed(lambda state: True)
        def changed(self, event):
            self.log.append(event.second_state)

    task = Changing()
    play(make(task), "_")
    assert task.log == []
    state, original = task.state, {"x": 1}
    changes = [
        (lambda: setattr(state, "value", 0), 1),
        (lambda: state.table.__setitem__("b", 1), 1),
        (lambda: state.counts.__setitem__("a", state.counts["a"] + 1), 2),
        (lambda: state.counts["missing"], 1),
        (lambda: state.counts["missing"], 0),
        (lambda: state.items.append(1), 0),
        (lambda: state.table["a"].__setitem__("c", 1), 0),
        (lambda: state.table.update(d=1), 0),
        (lambda: state.table.pop("d"), 0),
        (lambda: state.table.setdefault("e", 1), 0),
        (lambda: state.table.__delitem__("b"), 0),
        (lambda: setattr(state, "copied", original), 1),
        (lambda: original.__setitem__("y", 2), 0),
    ]
    for number, (change, events) in enumerate(changes):
        task.log.clear()
        change()
        assert len(task.log) == events, number
    assert state.copied == {"x": 1}


def test_changes_nest_and_conditions_get_the_states_of_world_and_task():
    class Counting(World):
        @on_world_start()
        def begin(self, event):
            self.state.steps = 0

        @on_message("w$")
        def step(self, event):
            self.state.steps += 1

    class Nested(Plain):
        @on_start()
        def begin(self, event):
            self.state.seen = 0

        @on_state_changed(lambda world, task: world.steps == 2 and task.seen < 3)
        def react(self, event):
            self.state.seen += 1
            self.log.append((event.state.steps, event.second_state.seen))

    task = Nested(world=Counting())
    play(make(task), "ww__")
    assert task.log == [(2, 3), (2, 3), (2, 3)]  # each assignment raises the next before it returns


def test_a_state_is_new_in_each_instance_and_missing_before_the_first():
    task = Verdict()
    with pytest.raises(AttributeError):
        _ = task.state
    environment = make(task)
    play(environment, "_")
    task.state.kept = 1
    play(environment, "____.____", heard=" ")
    assert not hasattr(task.state, "kept")
    assert (str(task), task.get_name(), task.has_started(), task.has_ended()) == ("Verdict", "Verdict", True, False)


# Worlds


class LoggedWorld(World):
    def __init__(self):
        super().__init__()
        self.log = []

    @on_ended()
    def ended(self, event):
        self.log.append("world ended")

    @on_message()
    def message(self, event):
        self.log.append(f"world message {event.message!r}")

    @on_start()
    def start_of_task(self, event):
        self.log.append("world start")

    @on_timeout()
    def timeout(self, event):
        self.log.append("world timeout")

    @on_world_start()
    def world_start(self, event):
        self.log.append("worldstart")


class LoggedTask(Task):
    def __init__(self, world):
        super().__init__(max_time=12, world=world)
        self.log = world.log

    @on_start()
    def start_a(self, event):
        self.log.append("task start a")
        self.set_message("hi.")

    @on_start()
    def start_b(self, event):
        self.log.append("task start b")

    @on_message()
    def message(self, event):
        self.log.append(f"task message {event.message!r}")

    @on_sequence()
    def sequence(self, event):
        self.log.append(f"task sequence {event.sequence!r}")

    @on_output_message(r"\.")
    def own(self, event):
        self.log.append(f"own message {event.output_message!r} at {self.get_time()}")

    @on_timeout()
    def timeout(self, event):
        self.log.append(f"task timeout {self.get_time()}")
        self.set_message("late.")

    @on_ended()
    def z_ended(self, event):
        self.log.append("task ended")


@pytest.mark.parametrize("compat", ["", "round1"])
def test_the_order_of_one_instance(compat):
    world = LoggedWorld()
    environment = make(LoggedTask(world), compat=compat)
    log, steps, heard, results = world.log, [], None, []
    environment._task_scheduler.reward = results.append
    for _ in range(19):
        log.clear()
        said, reward = environment.next(heard)
        heard = " "
        steps.append(([*log], said, reward))
    start = ["world start", "task start a", "task start b"]
    assert steps[0] == (["worldstart", *start], "h", 0)
    assert steps[1] == (["world message ' '", "task message ' '", "task sequence ' '"], "i", 0)
    assert (steps[2][0][-1], steps[2][1]) == ("own message 'hi.' at 2", ".")
    assert steps[12][0][:3] == ["world timeout", "task timeout 12", f"world message {' ' * 12!r}"]
    assert [said for _, said, _ in steps[12:18]] == [*"late.", " "]
    assert len(steps[13][0]) >= 3  # messages go on while the last words are said
    assert [entry for entry in steps[17][0] if "world message" in entry] == []  # dropped with the separator
    emptied = ["world message ''"] if compat else []
    assert steps[18] == (["world ended", "task ended", *emptied, *start], "h", 0)
    assert results == []


def test_a_world_keeps_its_state_until_a_task_without_it_comes_between():
    world = GridWorld()
    walk, other = Verdict(world=world), Verdict()
    environment, seen = make(walk, walk, other), []
    environment.world_updated.register(seen.append)
    play(environment, "______I move forward._________")
    assert world.state.learner_pos == Point(0, -1)
    play(environment, "____.____", heard=" ")
    assert world.state.learner_pos == Point(0, -1)
    play(environment, "____.________.____", heard=" ")
    assert world.state.learner_pos == Point(0, 0)
    assert seen == [world, None, world]


def test_the_grid_world_answers_after_the_task_and_only_what_is_not_lost():
    world = GridWorld()
    environment = make(Verdict(world=world))
    world_of = lambda: environment._current_world  # noqa: E731
    play(environment, "_")
    world_of().put_entity((0, -1), "egg", True, False)
    assert world_of().get_entity(Point(0, -1)).name == "egg"
    assert not world_of().can_move_to((0, -1))
    world_of().turn("east")
    assert (world_of().get_clockwise_direction(1), world_of().get_clockwise_direction(-1)) == ("south", "north")
    world_of().move_forward(2)
    assert world.state.learner_pos == Point(2, 0) == Point(0, 0) + 2 * Span(1, 0) == Point(4, 0) - Span(2, 0)
    world_of().remove_entity((9, 9))


# The eraser


class Judged(BaseTask):
    def __init__(self):
        super().__init__(max_time=1000)
        self.heard = []

    @on_start()
    def begin(self, event):
        self.set_message("abcd")

    @on_message(r"\.")
    def check(self, event):
        self.heard.append(("before", event.message))
        self.set_message("no")

    @on_message(r"\.$")
    def on_sentence(self, event):
        self.heard.append(("after", event.message))


def test_what_is_said_while_the_teacher_talks_becomes_a_space_and_a_dot_is_judged_at_once():
    task = Judged()
    play(make(task), "x.yz________.___")
    assert task.heard[:2] == [("before", " ."), ("after", " .")]
    assert task.heard[2:] == [("before", "  " + " " * 10 + "."), ("after", "  " + " " * 10 + ".")]
    assert set(task._env._input_channel.get_text()) == {" "}


# Micro tasks


class Constant(MicroBase):
    reg_answer_end = r"\."

    def get_task_generator(self):
        return TaskGenerator(lambda generator: ("abc", ["x."]), ".", "no", ";")


def test_a_micro_task_of_a_user():
    environment = make(Constant())
    assert play(environment, "___x.____y._z___") == ("abc._no;abc._____"[:16], ".....+....--....")
    task = environment._current_task
    assert (task.question, task.questions_asked, task.consecutive_reward, task.agent_answer) == ("abc.", 1, 0, " z  ")


def test_a_micro_task_ends_after_ten_right_answers_and_the_result_is_not_paid():
    environment, results = make(Constant()), []
    environment._task_scheduler.reward = results.append
    _, paid = play(environment, "___" + "x.______" * 11)
    assert (results, paid.count("+")) == ([True], 11)


@pytest.mark.parametrize(
    ("feedback", "right", "text"),
    [
        (None, True, ""),
        (False, True, ""),
        ("told", False, "told;"),
        (["a"], False, "a;"),
        (lambda right, question: f"{right} {question}", True, "True q;"),
        (True, True, "x.;"),
    ],
)
def test_feedback_of_a_generator(feedback, right, text):
    generator = TaskGenerator(lambda generator: ("q", ["x."]), "?", feedback, ";")
    assert generator.get_task_instance() == ("q?", ["x."])
    assert generator.get_original_question("q?") == "q"
    assert generator.get_feedback_text(right) == text


@pytest.mark.parametrize(
    ("answer", "said", "judged"),
    [
        (["x."], "x.", (True, True, 1)),
        (["x."], ".", (True, False, -1)),
        ("x.", ".", (True, True, 1)),
        (lambda said, question: (None, 0), "x", (False, False, 0)),
        (lambda said, question: (said == question, 7), "q", (True, True, 7)),
        (lambda said, question: (False, -1), "q", (True, False, -1)),
    ],
)
def test_answers_of_a_generator(answer, said, judged):
    generator = TaskGenerator(lambda generator: ("q", answer), ".")
    generator.get_task_instance()
    assert generator.check_answer(said) == judged


def test_an_instancer_is_a_plain_function():
    with pytest.raises(TypeError, match="must be a function, not builtin"):
        TaskGenerator(len)


# Parts


def test_managers_observables_and_sessions():
    manager, calls = EventManager(), []
    trigger = Trigger(int, None, lambda owner, event: calls.append((owner, event)))

    class Custom:
        condition_outcome = None

    manager.register("owner", Trigger(Custom, lambda event: True, trigger.event_handler))
    event = Custom()
    assert manager.raise_event(event)
    assert calls == [("owner", event)]
    manager.deregister("owner")
    assert not manager.raise_event(event)
    observable = Observable()
    observable.register(calls.append)
    observable(1)
    observable.deregister(calls.append)
    observable(2)
    assert calls[1:] == [1]

    session = Session(make(Verdict()), BaseLearner())
    session.total_time_updated.register(lambda steps: session.stop() if steps == 9 else None)
    session.run()
    assert (session.get_total_time(), session.get_task_count(), session.get_task_time()) == (
        9,
        {"Verdict": 1},
        {"Verdict": 9},
    )
    session.set_sleep(1)
    session.add_sleep(0.5)
    assert session.get_sleep() == 1.5
    session.reset_sleep()
    assert session.get_sleep() == 0


def test_channels_and_serializers():
    heard = InputChannel(SERIALIZER)
    for bit in SERIALIZER.to_binary("é") + "1":
        heard.consume_bit(bit)
    assert (heard.get_text(), heard.get_undeserialized(), heard.get_binary()[-1]) == ("é", "1", "1")
    said = OutputChannel(SERIALIZER)
    said.set_message("ab")
    said.consume_bit()
    said.set_message("c")
    assert said.unsaid == SERIALIZER.to_binary("a")[1:] + SERIALIZER.to_binary("c")
    said.add_message(" ")
    assert not said.is_silent()
    assert SERIALIZER.to_text("0100000100") == "A"
    assert (SERIALIZER.to_text("01"), SERIALIZER.to_text("1" * 8)) == (None, None)
    assert IdentitySerializer().to_text("01") == "01"
    wrapped = ScramblingSerializerWrapper(SERIALIZER)
    bits = wrapped.to_binary("Say it.")
    assert SERIALIZER.to_text(bits) != "Say it."
    assert wrapped.to_text(bits) == "Say it."
    assert not wrapped.can_deserialize(bits[:-8])
    assert (wrapped.tokenize("a b."), len(wrapped.word_mapping)) == ([("a", " "), ("b", ".")], 4)
    channel = ByteInputChannel(wrapped)
    for character in SERIALIZER.to_text(bits):
        channel.consume(character)
    assert channel.get_text() == "Say it."


def test_schedulers_of_the_original():
    first, second = Plain(), Verdict()
    incremental, consecutive = IncrementalTaskScheduler([first, second]), ConsecutiveTaskScheduler([first, second])
    for result in (1, 0, 1):
        incremental.reward(result)
        consecutive.reward(result)
    assert (incremental.get_next_task(), consecutive.get_next_task()) == (second, first)
    for _ in range(3):
        consecutive.reward(1)
        consecutive.reward(True)
        consecutive.get_next_task()
    assert consecutive.get_next_task() is None
    unlocking = DependenciesTaskScheduler([first, second], [[first, second]], 1)
    assert {unlocking.get_next_task() for _ in range(9)} == {first}
    unlocking.reward(1)
    assert {unlocking.get_next_task() for _ in range(40)} == {first, second}
    interval = IntervalTaskScheduler([first, second], [[0, 1], [1, 2]])
    assert [interval.get_next_task() for _ in range(3)] == [first, second, None]
    assert RandomTaskScheduler([first]).get_next_task() is first


def test_automata_and_points():
    automaton = build_automaton(["AB", "anything"], "and")
    random.seed(1)
    assert automaton.is_string_correct(automaton.get_correct_string(5))
    assert not automaton.is_string_correct(automaton.get_wrong_string(5, 0))
    assert build_automaton("AB and not C and anything", "and").is_string_correct("XABX")
    assert pickle.loads(pickle.dumps(Point(1, 2))) == Point(1, 2)


@pytest.mark.parametrize("name", task_ids(["all"]))
def test_a_subclass_of_a_task_of_the_challenge_says_what_the_task_itself_says(name):
    class Mine(class_of(name)):
        pass

    hosted = HostedEnvironment(SequentialScheduler([HostedTask(Mine())]), seed=5)
    native = make_environment(CommaiSettings(tasks=(name,), scheduler="sequential"), seed=5)
    guest = HostedEnvironment(SequentialScheduler([make_task(name)]), seed=5)
    rng, streams = random.Random(name), ([], [], [])
    oracle = Oracle(native)
    for step in range(500):
        heard = None if step == 0 else oracle.next("") if step % 200 < 150 else rng.choice("   a.")
        for environment, stream in zip((native, hosted, guest), streams, strict=True):
            stream.append(environment.next(heard))
    assert streams[0] == streams[1] == streams[2]
    assert native.finished == hosted.finished


def test_what_is_said_as_the_time_ends_is_judged_on_both_engines():
    class Mine(class_of("micro7.1")):
        pass

    native = make_environment(CommaiSettings(tasks=("micro7.1",), scheduler="sequential"), seed=5)
    hosted = HostedEnvironment(SequentialScheduler([HostedTask(Mine())]), seed=5)
    for step in range(10_050):
        heard = "." if native.finished == 0 and native.instance_steps >= 10_000 and not native.unsaid else " "
        said = native.next(heard if step else None), hosted.next(heard if step else None)
        assert said[0] == said[1], f"step {step}"
    assert native.finished == hosted.finished == 1
