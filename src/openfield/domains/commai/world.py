"""The CommAI world: a teacher behind the core's turns, one byte each way.

A rollout steps it. The learner sees only the byte and the reward. Where instances and novelties begin is truth.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from openfield.core import Ask, Belief, Reply, Truth, Turn
from openfield.course import Course
from openfield.domains.commai.curriculum import make_environment, open_scheduler
from openfield.domains.commai.environment import schedulers
from openfield.domains.commai.environment.environment import Environment
from openfield.domains.commai.environment.serializers import Scrambler, make_byte_table, make_serializer
from openfield.domains.commai.environment.task import BYTES, Prices
from openfield.domains.commai.settings import INSTANCE_BEGINS, CommaiSettings
from openfield.domains.commai.tasks.catalogue import make_task
from openfield.errors import AgentProtocol, InvalidInput, OpenfieldError
from openfield.trial import Trial, show_light

SKIP = "SKIP"
"""The action with which a person gives up an instance."""
Exchange = Callable[[Any], tuple[str, int]]


class CommaiWorld:
    """The world of one trial.

    Args:
        trial: The trial.
        settings: The settings before the onset.
        changed: The settings from the onset on; None if nothing changes.
        onset: Instances before the change, or if there are any, steps before it.
        course: What is in force when, where a change has a process or several follow each other.
    """

    def __init__(
        self,
        trial: Trial,
        settings: CommaiSettings,
        changed: CommaiSettings | None = None,
        onset: tuple[int, int] = (0, 0),
        course: Course[CommaiSettings] | None = None,
    ) -> None:
        self.truth = Truth()
        self.over = False
        self.alphabet: dict[int, int] = {}
        """Which byte stands for which; the others stand for themselves."""
        self._seed, self._red_light = trial.seed, trial.red_light
        self._settings, self._changed, self._onset = settings, changed, onset
        self._course, self._phases = course, trial.phases
        self._made: dict[tuple[int, float, bool | float | None], Turn] = {}
        self._novel, self._strength, self._change_now = False, None if course is None else 0.0, ""

    def reset(self) -> Turn:
        """Start the curriculum and show the teacher's first byte."""
        settings = self._settings
        self.environment: Environment = make_environment(settings, self._seed, open_scheduler(settings, self._seed))
        self.environment.watch = self._end_instance
        self._next: Exchange = self.environment.next
        self._left = settings.max_steps
        self._penalties = self._instances = 0
        self._counts: dict[str, int] = {}
        self._ended: Truth | None = None
        self._in_force = settings
        self._serializers: dict[str, Scrambler | None] = {settings.scramble: self.environment.serializer}
        self._delay: RewardDelay | None = None
        self._coming = deque(zip(self._phases, self._list_starts(), strict=True))
        self._stirred = False  # whether the truth changes with this step: an instance ended in it or in the last one
        self._until = self._since = 0  # where `step` stops saying text by itself; `at` of the last call
        if self._course is not None:
            self._tune(settings)
            self._follow(self._course)
        elif self._changed is not None and not any(self._onset):
            self._novel = True
            self._change(self._changed)
        else:
            self._tune(settings)
        self.truth = self._calm = self._describe_now()
        symbol, reward = self._next(None)
        self._since = self.environment.at
        self._overheard = self._price(self.environment.prices)
        begins = {"feedback": INSTANCE_BEGINS} if settings.reward_calls == "ends" else {}
        return msgspec.structs.replace(self._turns[reward][symbol], first=True, **begins)

    def step(self, reply: Reply) -> Turn:
        """Take the learner's symbol and show the teacher's next one with the reward.

        Most steps say one more symbol of a text, and only a penalty can happen at them. They are done here, without the
        environment, up to the next symbol it must hear.
        """
        environment = self.environment
        at = environment.at
        heard: str | None
        try:
            if at < self._until and (turns := self._overheard[reply.action]) is not None:
                environment.at = at + 1
                if turns is not self._free:
                    environment.penalties += 1
                    environment.tally.reward -= 1
                return turns[environment.text[at]]
            heard = self._hears[reply.action]
        except (KeyError, TypeError):
            heard = self._skip(reply.action)
        symbol, reward = self._next(heard)
        left = self._left = self._left - 1 - (at - self._since)
        self._since = since = environment.at
        if self._stirred or left <= 0:
            return self._settle(symbol, reward)
        spoken = environment.spoken
        self._until = (spoken if spoken - since < left else since + left - 1) if self._leisurely else 0
        return self._turns[reward][symbol]

    def check_belief(self, belief: Belief) -> None:
        """Refuse a belief of several probabilities: a turn shows one symbol.

        Raises:
            AgentProtocol: There are several.
        """
        if isinstance(belief.novel, tuple):
            raise AgentProtocol(f"the belief has a list of {len(belief.novel)}; here it is one number from 0 to 1")

    def look(self, query: str) -> Any:
        """Return the `map` of the grid world, if the current task has one, or the name of the current `task`."""
        task = self.environment.task
        if query == "map":
            draw = getattr(None if task is None else task.world, "map", None)
            return draw() if callable(draw) else ""
        if query == "task":
            return task.name if task is not None else ""
        raise OpenfieldError(f"There is no view '{query}'. Known: map, task.")

    def close(self) -> None:
        """Do nothing: there is nothing to free."""

    def _skip(self, action: Any) -> str | None:
        """Let the current instance time out if the learner asks for it and may; it hears nothing then."""
        if not isinstance(action, str) or action != SKIP or not self._settings.skips:  # an array compares itself
            said = repr(action)
            shown = said if len(said) < 60 else f"{said[:57]}..."
            raise AgentProtocol(f"the learner said {shown}; a symbol is {self.environment.symbols}")
        self.environment.time_out()
        return None

    def _settle(self, symbol: str, reward: int) -> Turn:
        """Return the turn of a step at which an instance or the trial ends, or of the step after."""
        turn = self._turns[reward][symbol]
        self._until = 0
        self._overheard = self._price(self.environment.prices)
        if self._ended is not None:
            self.truth, self._ended = self._ended, None
            if self._settings.reward_calls == "ends":
                turn = msgspec.structs.replace(turn, feedback=INSTANCE_BEGINS)
        else:
            self.truth, self._stirred = self._calm, False
        if not (self.environment.over or self._left <= 0):
            return turn
        if not self.truth.episode_over:
            self.truth = self._truth(self._describe(None))
        self.over = True
        ending = "terminated" if self.environment.over else "truncated"
        return msgspec.structs.replace(turn, ask=Ask.NONE, last=ending)

    def _end_instance(self) -> None:
        """Note the result of an instance, and apply the novelty if it is time. The environment calls it."""
        detail = self._describe(self.environment.result)
        self._stirred = True
        self._instances += 1
        instances, steps = self._onset
        due = self._is_due(instances, steps, self._settings.max_steps - self._left)
        if self._course is not None:
            self._follow(self._course)
            self._calm = self._describe_now()
        elif self._changed is not None and not self._novel and due:
            self._novel = True
            self._change(self._changed)
            self._calm = Truth(novel=True)
        self._ended = self._truth(detail)

    def _follow(self, course: Course[CommaiSettings]) -> None:
        """Begin the phases that are due, and put in force what the course says."""
        steps = self._settings.max_steps - self._left
        while self._coming and self._is_due(*self._coming[0][1], steps):
            course.enter(self._coming.popleft()[0], self._instances, steps)
        moment = course.at(self._instances, steps)
        self._novel, self._strength, self._change_now = moment.novel, moment.strength, moment.change
        self._change(moment.settings)

    def _list_starts(self) -> list[tuple[int, int]]:
        """Return after how many instances, or steps, each phase begins."""
        lengths = [(phase.episodes, phase.steps) for phase in self._phases[:-1]]
        if lengths and any(self._onset):
            lengths[0] = self._onset
        return list(
            itertools.accumulate(lengths, lambda one, more: (one[0] + more[0], one[1] + more[1]), initial=(0, 0))
        )

    def _is_due(self, instances: int, steps: int, taken: int) -> bool:
        """Return whether a phase begins that comes after some instances or steps."""
        return taken >= steps if steps else self._instances >= instances

    def _change(self, settings: CommaiSettings) -> None:
        """Apply other settings, from the next instance on."""
        environment = self.environment
        environment.settings = settings
        if settings.scramble != self._in_force.scramble:
            if settings.scramble not in self._serializers:
                self._serializers[settings.scramble] = make_serializer(settings, self._seed)
            environment.serializer = self._serializers[settings.scramble]
        self._intrude(settings)
        self._in_force = settings
        self._tune(settings)

    def _intrude(self, settings: CommaiSettings) -> None:
        """Let another task take its share of the instances, or no more of them."""
        scheduler = self.environment.scheduler
        known = scheduler if isinstance(scheduler, schedulers.IntrudedScheduler) else None
        if known is not None:
            known.share = settings.intruder_share if settings.intruder else 0.0
        if settings.intruder and settings.intruder != self._in_force.intruder:
            intruder = make_task(settings.intruder)
            if known is not None:
                known.intruder = intruder
            else:
                share = settings.intruder_share
                self.environment.scheduler = schedulers.IntrudedScheduler(scheduler, intruder, share)

    def _tune(self, settings: CommaiSettings) -> None:
        """Make the tables between bytes and characters, and between rewards and turns."""
        table = self.alphabet = make_byte_table(settings)
        if settings.bit_mode:
            self.environment.alphabet = table
        self._hears = _hearing(table, settings.bit_mode)
        shown = _showing(table, settings.bit_mode)
        light = show_light(self._red_light, self._novel, self._strength)
        sign = settings.reward_sign
        look = (lambda: self.look("map")) if settings.show_world else None
        self._turns = TurnsByReward(lambda reward: Turns(shown, reward * sign, light, look, self._made))
        self._free = self._turns[0]
        self._priced: dict[int, dict[Any, Turns | None]] = {}
        if settings.reward_delay or self._delay is not None:
            self._delay = self._delay or RewardDelay(self.environment.next)
            self._delay.steps = settings.reward_delay
            self._next = self._delay
        out_of_reach = settings.max_reward_per_task >= settings.max_steps  # a step pays one point at most
        self._leisurely = out_of_reach and not (settings.bit_mode or self._delay is not None)

    def _price(self, prices: Prices) -> dict[Any, Turns | None]:
        """Return the turns shown after an action while the teacher talks; None if the environment must decide."""
        table = self._priced.get(id(prices))
        if table is None:
            turns: dict[int | None, Turns] = {0: self._free, -1: self._turns[-1]}
            table = {action: turns.get(prices[heard]) for action, heard in self._hears.items()}
            self._priced[id(prices)] = table
        return table

    def _truth(self, detail: dict[str, Any]) -> Truth:
        """Return the truth of the turn that ends an instance. It already shows the next one's first symbol."""
        marks = detail["marks"]
        performance = marks.count("+") / len(marks) if marks else None
        return msgspec.structs.replace(self._describe_now(), episode_over=True, performance=performance, detail=detail)

    def _describe_now(self) -> Truth:
        """Return what is true of the change now."""
        return Truth(novel=self._novel, strength=self._strength, change=self._change_now)

    def _describe(self, result: bool | None) -> dict[str, Any]:
        environment = self.environment
        task, instance = environment.task, environment.instance
        if task is None or instance is None:
            raise InvalidInput("The curriculum has no task.")
        number = self._counts[task.name] = self._counts.get(task.name, 0) + 1
        penalties, self._penalties = environment.penalties - self._penalties, environment.penalties
        verdict = "" if result is None else "+" if result else "-"
        original = result if instance.original is None else instance.original
        return {
            "task": task.name,
            "instance": number,
            "steps": environment.instance_steps,
            "marks": instance.marks or verdict,
            "interruptions": penalties,
            "solved": result,
            **({"original": original} if self._settings.strict else {}),
            **_place(environment.scheduler),
        }


class TurnsByReward(dict[float, "Turns"]):
    """The turns of each reward. Tasks of ours pay -1, 0 and 1; those of users may pay anything."""

    def __init__(self, make: Callable[[float], Turns]) -> None:
        super().__init__({reward: make(reward) for reward in (-1, 0, 1)})
        self._make = make

    def __missing__(self, reward: float) -> Turns:
        self[reward] = made = self._make(reward)
        return made


class Turns(dict[str, Turn]):
    """The turns that show a symbol with one reward, made once each: a trial has a few hundred at most.

    With `look` they are made every time, because the map may have changed. Turns that show the same are one object also
    after the world has changed: that they were others then would tell an agent.

    Args:
        shown: From the teacher's symbol to the observation.
        reward: The reward of these turns.
        red_light: The red light of these turns.
        look: Reads the map that the feedback shows; None shows none.
        made: All turns of the trial.
    """

    def __init__(
        self,
        shown: Callable[[str], int],
        reward: float,
        red_light: bool | float | None,
        look: Callable[[], str] | None = None,
        made: dict[tuple[int, float, bool | float | None], Turn] | None = None,
    ) -> None:
        super().__init__()
        self._shown, self._reward, self._red_light, self._look = shown, reward, red_light, look
        self._made = {} if made is None else made

    def __missing__(self, symbol: str) -> Turn:
        turn = Turn(observation=self._shown(symbol), red_light=self._red_light)
        if self._reward:  # the default itself is left out of the record, another zero is not: 16 bytes a turn
            turn = msgspec.structs.replace(turn, reward=self._reward)
        if self._look is not None:
            return msgspec.structs.replace(turn, feedback=self._look() or None)
        self[symbol] = turn = self._made.setdefault((turn.observation, turn.reward, turn.red_light), turn)
        return turn


def _hearing(table: dict[int, int], bits: bool) -> dict[Any, str]:
    """Return the teacher's symbol for every form an action may have."""
    if bits:
        return {0: "0", 1: "1", "0": "0", "1": "1"}
    heard = [BYTES[table.get(code, code)] for code in range(256)]
    return {**dict(enumerate(heard)), **dict(zip(BYTES, heard, strict=True))}


def _showing(table: dict[int, int], bits: bool) -> Callable[[str], int]:
    """Return the function from the teacher's symbol to its number; what is not a byte is a question mark."""
    codes = {symbol: table.get(ord(symbol), ord(symbol)) for symbol in BYTES}
    return int if bits else lambda symbol: codes.get(symbol, ord("?"))


class RewardDelay:
    """The same exchange with rewards that come some steps later. When the delay becomes shorter, several come at once.

    Args:
        exchange: The exchange whose rewards are late.
    """

    def __init__(self, exchange: Exchange) -> None:
        self.steps = 0
        self._exchange = exchange
        self._waiting: deque[int] = deque()

    def __call__(self, heard: Any) -> tuple[str, int]:
        """Pass on what is said, and return the answer with the rewards that are due."""
        symbol, reward = self._exchange(heard)
        self._waiting.append(reward)
        return symbol, sum(self._waiting.popleft() for _ in range(max(0, len(self._waiting) - self.steps)))


def _place(scheduler: schedulers.Scheduler) -> dict[str, int]:
    """Return the position in the curriculum, if it has an order."""
    inner = scheduler.scheduler if isinstance(scheduler, schedulers.IntrudedScheduler) else scheduler
    tasks = len(inner.tasks)
    if isinstance(inner, schedulers.IncrementalScheduler | schedulers.ConsecutiveScheduler):
        return {"of": tasks, "at": inner.position % tasks + 1, "streak": inner.streak, "needs": inner.threshold}
    return {"of": len({task.name for task in inner.tasks})}  # instances of one name count as one task
