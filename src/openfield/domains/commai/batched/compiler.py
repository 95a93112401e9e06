"""The compiler: from the micro tasks' own definitions to a program.

It calls the functions and reads the plans that the single engine draws with, so a task has one meaning in both.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import NamedTuple, TypeVar

from openfield.domains.commai.batched import program as at
from openfield.domains.commai.batched.program import Sizes, TaskProgram
from openfield.domains.commai.batched.trace import (
    Leaf,
    Literal,
    SlotDraw,
    Tracer,
    Tree,
    split_text,
    stand_for,
    stand_for_letters,
    trace,
)
from openfield.domains.commai.environment.task import Round, Task
from openfield.domains.commai.settings import CommaiSettings
from openfield.domains.commai.tasks import phrases
from openfield.domains.commai.tasks.catalogue import make_task
from openfield.domains.commai.tasks.draws import load_words, pick
from openfield.domains.commai.tasks.mapping import (
    MAPPING_WORDS,
    Anew,
    FixedTexts,
    MappingPlan,
    MappingTask,
    Numbers,
    Relation,
    Sampled,
    prefix_digits,
)
from openfield.domains.commai.tasks.micro import SYNONYMS, KnowAfter, KnowByElimination, KnowWhenSeen, MicroTask, Rule
from openfield.domains.commai.tasks.phrases import MixedTask, PhraseContext, PhraseTask, ReworkedTask, RoundMaker
from openfield.errors import InvalidInput

T = TypeVar("T")
_MAX_POOL = MAPPING_WORDS
"""Texts of the largest pool that most of may be drawn from, so that a copy of it is shuffled."""
_CHOOSERS = {
    "random": at.RANDOM,
    "sequential": at.SEQUENTIAL,
    "incremental": at.INCREMENTAL,
    "consecutive": at.CONSECUTIVE,
}


def compile_tasks(curricula: Sequence[Sequence[str]], settings: CommaiSettings) -> TaskProgram:
    """Compile the tasks of some curricula. The number of a task is its place among all names, each counted once."""
    compiler = _Compiler(settings)
    names = dict.fromkeys(name for curriculum in curricula for name in curriculum)
    tasks = {name: compiler.add_task(make_task(name)) for name in names}
    return compiler.finish([[tasks[name] for name in curriculum] for curriculum in curricula])


class _Stage(NamedTuple):
    """What plans read of an environment."""

    rng: Random
    settings: CommaiSettings


class _Compiler:
    """Writes a program, and notes how much room the state of an environment needs."""

    def __init__(self, settings: CommaiSettings) -> None:
        self._settings = settings
        self._words = load_words(settings.vocabulary)
        self._code = [0] * at.HEADER_SIZE
        self._factors = [settings.required_consecutive_rewards * (1 + settings.success_tolerance)]
        self._strings: dict[str, int] = {}
        self._pools: dict[tuple[str, ...], int] = {}
        self._numbers: dict[int, int] = {}  # of tasks
        self._in_turn: set[int] = set()
        self._slots = self._keys = self._deck = self._parts = 1
        self._texts: list[tuple[int, int]] = []  # symbols and slots of each text
        self._digits = 0  # of the longest number that is drawn
        self._max_time = 0

    def add_task(self, task: Task) -> int:
        """Add a micro task."""
        if not isinstance(task, MicroTask):
            raise InvalidInput(f"{task.name} is not a micro task, and only those can be compiled.")
        rule, patience = task.rule, self._settings.failed_task_tolerance
        start = self._add_start(task)
        address = self._add(
            start,
            int(task.dotted),
            task.max_time,
            rule.guesses if isinstance(rule, KnowAfter) else -1,
            int(isinstance(rule, KnowWhenSeen)),
            len(self._factors),
        )
        self._factors.append(1 + (task.failed_task_tolerance if patience is None else patience))
        if isinstance(task, ReworkedTask):
            self._in_turn.add(address)
        self._numbers[address] = len(self._numbers)
        self._max_time = max(self._max_time, task.max_time)
        return address

    def finish(self, curricula: Sequence[Sequence[int]]) -> TaskProgram:
        """Return the program with these curricula."""
        places, in_turn = [], 1
        for tasks in curricula:
            counts = list(itertools.accumulate((task in self._in_turn for task in tasks), initial=0))
            entries = [(task, turns, self._numbers[task]) for task, turns in zip(tasks, counts, strict=False)]
            places.append(self._add(len(tasks), *itertools.chain.from_iterable(entries)))
            in_turn = max(in_turn, counts[-1])
        self._write_header()
        longest = max(*map(len, self._strings), self._digits)
        text = 2 * max(symbols + slots * 2 * longest for symbols, slots in self._texts)
        turns = in_turn * self._code[at.PARTS]
        sizes = Sizes(text, self._max_time + 2, self._slots, self._keys, turns, self._deck, _MAX_POOL)
        return TaskProgram(self._code, self._factors, places, sizes)

    def _write_header(self) -> None:
        """Write the rules for all tasks."""
        code, settings = self._code, self._settings
        code[at.REQUIRED] = settings.required_consecutive_rewards
        code[at.CHOOSER] = _CHOOSERS[settings.scheduler]
        code[at.THRESHOLD] = settings.success_threshold
        code[at.CYCLIC] = int(settings.cyclic)
        code[at.ROUND1] = int(settings.compat == "round1")
        code[at.CODES] = len(SYNONYMS)
        code[at.PARTS] = self._parts + 1

    # How an instance starts

    def _add_start(self, task: MicroTask) -> int:
        """Add the tree that a new instance of a task is drawn with, and return its first node."""
        if isinstance(task, PhraseTask):
            return self._add_tree(trace(lambda rng: task.make), self._add_maker)
        if isinstance(task, MixedTask):
            return self._add_tree(trace(lambda rng: pick(rng, task.makers)), self._add_maker)
        if isinstance(task, ReworkedTask):
            return self._add_turns(task)
        if isinstance(task, MappingTask):
            plans = trace(lambda rng: task.plan(_Stage(rng, self._settings)))  # type: ignore[arg-type]
            return self._add_tree(plans, partial(self._add_mapping, task.rule))
        raise InvalidInput(f"{task.name} cannot be batched: only the forty micro tasks of the challenge can.")

    def _add_turns(self, task: ReworkedTask) -> int:
        """Add a task whose parts are played in turn, in other words."""
        pool = phrases.load_plain_words(self._settings.vocabulary)
        codes = {key: stand_for(slot) for slot, key in enumerate(SYNONYMS)} if task.coded else {}
        drawn = [SlotDraw(pool[phrases.CODE_WORDS], len(codes), 0)] if codes else []
        starts = []
        for make in task.makers:

            def draw(context: PhraseContext, make: RoundMaker = make) -> Round:
                return task.rework(make(context), context)

            source = self._add_source({at.TREE: self._add_rounds(draw, pool, codes)})
            starts.append(self._add_tree(Leaf(drawn, source), lambda number: number))
        self._parts = max(self._parts, len(starts))
        return self._add(at.IN_TURN, 0, len(starts), *starts)

    def _add_maker(self, make: RoundMaker) -> int:
        return self._add_source({at.TREE: self._add_rounds(make, self._words, {})})

    def _add_rounds(self, draw: Callable[[PhraseContext], Round], pool: Sequence[str], codes: dict[str, str]) -> int:
        """Add the tree that each round is drawn with."""

        def run(rng: Tracer) -> Round:
            return draw(
                PhraseContext(
                    rng,
                    word=lambda: stand_for_letters(*rng.fill(pool, avoids=bool(codes))),
                    letters=lambda count: "".join(map(stand_for, rng.fill(phrases.LETTERS, count))),
                    synonyms=lambda: {key: stand_for(*rng.fill(words)) for key, words in SYNONYMS.items()},
                    codes=codes,
                    lenient=self._settings.compat == "round1",
                )
            )

        return self._add_tree(trace(run, slot=len(codes)), self._add_round)

    def _add_mapping(self, rule: Rule, plan: MappingPlan) -> int:
        """Add a mapping: its keys are in the first slots, its answers in the next ones."""
        keys, answers, noise = plan.keys, plan.answers, plan.noise
        count = len(keys.texts) if isinstance(keys, FixedTexts) else keys.count
        rounds = [plan.make(*pair) for pair in _pair_slots(plan, count)]
        example = keys.options[0] if isinstance(keys, Sampled) else ""
        options = [_count_options(rule, plan.make(example, "").question if example else "")]
        noisy = [] if noise is None else [prefix_digits(each, stand_for(2 * count)) for each in rounds]
        rows = [self._describe_round(*each) for each in zip([*rounds, *noisy], itertools.cycle(options))]
        fixed = [self._describe_round(each, _count_options(rule, each.question)) for each in plan.fixed]
        first = self._add(*itertools.chain(*rows, *fixed))
        total = count + len(fixed)
        self._slots = max(self._slots, 2 * count + 1)
        self._keys = max(self._keys, total)
        self._deck = max(self._deck, total**2 if plan.shuffled else 1)
        lengths = (0, 0) if noise is None else noise.lengths
        drawn = [each.lengths[1] for each in (keys, answers) if isinstance(each, Numbers | Anew)]
        self._digits = max(self._digits, lengths[1], *drawn)
        return self._add_source(
            {
                at.SOURCE_KIND: at.SHUFFLED if plan.shuffled else at.ALONE,
                at.ROUNDS: first,
                at.FIXED: first + len(rows) * at.ROUND_SIZE,
                at.FIXED_COUNT: len(fixed),
                at.KEY_COUNT: count,
                **self._describe_keys(keys),
                **self._describe_answers(answers),
                at.NOISE_CHANCE: 0 if noise is None else math.ceil(noise.chance * at.CERTAIN),
                at.MIN_NOISE: lengths[0],
                at.MAX_NOISE: lengths[1],
            }
        )

    def _describe_keys(self, keys: Sampled | FixedTexts | Numbers) -> dict[int, int]:
        if isinstance(keys, Sampled):
            pool, size = self._add_pool(keys.options), len(keys.options)
            return {at.KEYS: at.SAMPLED, at.KEY_POOL: pool, at.KEY_POOL_SIZE: size}
        if isinstance(keys, Numbers):
            kind = at.DISTINCT_NUMBERS if keys.distinct else at.NUMBERS
            return {at.KEYS: kind, at.MIN_KEY: keys.lengths[0], at.MAX_KEY: keys.lengths[1]}
        return {at.KEYS: at.LISTED}

    def _describe_answers(self, answers: Anew | FixedTexts | Relation) -> dict[int, int]:
        if isinstance(answers, Anew) and answers.options:
            pool, size = self._add_pool(answers.options), len(answers.options)
            return {at.ANSWERS: at.SAMPLED, at.ANSWER_POOL: pool, at.ANSWER_POOL_SIZE: size}
        if isinstance(answers, Anew):
            least, most = answers.lengths
            return {at.ANSWERS: at.NUMBERS, at.MIN_ANSWER: least, at.MAX_ANSWER: most}
        drawn = {Relation.ONE: at.ONE_KEY, Relation.OTHERS: at.OTHER_ORDER}
        return {at.ANSWERS: at.LISTED if isinstance(answers, FixedTexts) else drawn.get(answers, at.LISTED)}

    # Parts of the program

    def _add_tree(self, tree: Tree[T], finish: Callable[[T], int]) -> int:
        """Add the nodes of a tree and return the first one."""
        if isinstance(tree, Leaf):
            node = self._add(at.LEAF, finish(tree.result))
        else:
            children = [self._add_tree(branch, finish) for branch in tree.branches]
            if tree.chance is None:
                node = self._add(at.CHOICE, 0, len(children), *children)
            else:
                node = self._add(at.CHANCE, 0, math.ceil(tree.chance * at.CERTAIN), *children)
        for drawn in reversed(tree.slots):
            self._slots = max(self._slots, drawn.slot + drawn.count)
            pool, size = self._add_pool(drawn.options), len(drawn.options)
            node = self._add(at.TEXTS, node, pool, size, drawn.count, drawn.slot, int(drawn.avoids))
        return node

    def _add_round(self, each: Round) -> int:
        return self._add(*self._describe_round(each))

    def _describe_round(self, each: Round, options: int = 0) -> list[int]:
        accept, accepted = _describe_accept(each)
        texts = [self._add_text(text) for text in (each.question, each.answer, each.right, each.wrong)]
        judged_by = [self._add_text(text) for text in accepted]
        numbers = [*texts, options, accept, len(judged_by), *judged_by]
        return [*numbers, *[0] * (at.ROUND_SIZE - len(numbers))]

    def _add_text(self, text: str) -> int:
        parts = split_text(text)
        pieces = []
        for part in parts:
            if isinstance(part, Literal):
                pieces += [-1, self._add_string(part.text)]
            else:
                pieces += [part.slot, ord(part.mark) if part.mark else 0]
        literal = [len(part.text) for part in parts if isinstance(part, Literal)]
        self._texts.append((sum(literal), len(parts) - len(literal)))
        return self._add(len(parts), *pieces)

    def _add_pool(self, options: Sequence[str]) -> int:
        """Add strings to draw from."""
        pool = tuple(options)
        if pool not in self._pools:
            strings = [self._add_string(text) for text in pool]
            self._pools[pool] = self._add(*strings)
        return self._pools[pool]

    def _add_string(self, text: str) -> int:
        if text not in self._strings:
            self._strings[text] = self._add(len(text), *text.encode("latin-1"))
        return self._strings[text]

    def _add_source(self, fields: dict[int, int]) -> int:
        return self._add(*(fields.get(field, 0) for field in range(at.SOURCE_SIZE)))

    def _add(self, *numbers: int) -> int:
        """Add numbers and return their address."""
        self._code.extend(numbers)
        return len(self._code) - len(numbers)


def _pair_slots(plan: MappingPlan, count: int) -> list[tuple[str, str]]:
    """Return each key and its answer as they stand in texts."""
    keys: Sequence[str] = [stand_for(slot) for slot in range(count)]
    answers: Sequence[str] = [stand_for(count + slot) for slot in range(count)]
    if isinstance(plan.keys, FixedTexts):
        keys = plan.keys.texts
    if isinstance(plan.answers, FixedTexts):
        answers = plan.answers.texts
    elif plan.answers is Relation.SAME:
        answers = keys
    elif plan.answers is Relation.ONE:
        answers = [answers[0]] * count
    return list(zip(keys, answers, strict=True))


def _count_options(rule: Rule, key: str) -> int:
    """Return how many answers to a key a learner must try before it should know; 1 means it need not try."""
    if isinstance(rule, KnowWhenSeen):
        return 2
    if isinstance(rule, KnowAfter):
        return int(rule.tells(key))
    return rule.options if isinstance(rule, KnowByElimination) and key in rule.guessed else 1


def _describe_accept(each: Round) -> tuple[int, Sequence[str]]:
    match each.accepts:
        case None:
            return at.IS_ANSWER, ()
        case phrases.IsOneOf(answers):
            return at.IS_ONE_OF, sorted(answers)
        case phrases.HasAny(words):
            return at.HAS_ANY, words
        case phrases.Lacks(letter):
            return at.LACKS, [letter]
        case phrases.IsPartOf(whole):
            return at.IS_PART_OF, [whole]
    raise InvalidInput(f"A round that is judged by {each.accepts} cannot be compiled.")
