"""The compiled engine: steps all environments of a batch, one after the other, by a program.

It does in one loop what `Environment.next` and `MicroInstance.judge` do for one environment, in the same order and with
the same draws. No text of a micro task ends with a space, except questions that are one space, so nothing is unsaid
when an answer is heard. Needs numba (extra `fast`).

In every function `memory` holds the program and the states of all environments, and `env` is the address of one of
them. `texts` is the same memory read as symbols: what each environment says, the expected answer and the answer that
was heard. `factors` is the same memory read as fractions. Everything lies in one array because each array that is
handed over costs as much as a short step.

The functions marked with `compile_part` or `compile_inline` are also the engine of devices: `translation.py` turns them
into CUDA. They keep to whole numbers, `while`, `for ... in range`, `if` and what else stands there; the translation
refuses the rest.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

from openfield.domains.commai.batched import program as at
from openfield.domains.commai.batched.batch import FACTORS, MAX_SYMBOL, SHIFTS, STEP, UNIT, Array
from openfield.domains.commai.batched.program_batch import ProgramBatch
from openfield.domains.commai.settings import CommaiSettings
from openfield.installation import count_processors

_DOT, _SPACE, _ZERO = ord("."), ord(" "), ord("0")
_NONE = -1
_ARRAY, _INT64 = np.ndarray, np.dtype(np.int64)
_SHARE = 2_048
"""Environments for which a thread of their own pays."""
_UNLIMITED = np.iinfo(np.int64).max
_STEP, _FACTOR, _FACTOR2 = np.uint64(STEP), np.uint64(FACTORS[0]), np.uint64(FACTORS[1])
_SHIFT, _SHIFT2, _SHIFT3, _SHIFT4 = (np.uint64(shift) for shift in SHIFTS)

Function = TypeVar("Function", bound=Callable[..., Any])


def compile_part(function: Function) -> Function:
    """Compile a function that only compiled code calls; the way to it from Python is left out."""
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled: Function = njit(**options)(function)
    return compiled


def compile_inline(function: Function) -> Function:
    """Compile a function into each of those that call it."""
    options: dict[str, Any] = {"inline": "always"}
    compiled: Function = njit(**options)(function)
    return compiled


def _read_memory_as(item: Any) -> Any:
    """Return a function that makes a pointer to items of a type from an address."""
    pointer: Any = types.CPointer

    def make_pointer(context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

        return pointer(item)(address), generate

    return intrinsic(make_pointer)


point_to_numbers, point_to_symbols, point_to_factors = map(_read_memory_as, (types.int64, types.uint8, types.float64))
"""Compiled code is handed addresses: each array that is handed over takes as long as saying a symbol."""


@compile_part
def _speak(memory: Any, texts: Any, env: int) -> int:
    now = memory[env + at.AT]
    if now >= memory[env + at.END]:
        memory[env + at.DUE] -= 1
        return _SPACE
    memory[env + at.AT] = now + 1
    return int(texts[now])


@compile_part
def _listen(memory: Any, factors: Any, texts: Any, env: int, symbol: int) -> int:
    """Take a symbol said while the teacher was silent, and return the reward."""
    reward = 0
    if memory[env + at.RUNNING]:
        said = memory[env + at.AT] - memory[env + at.TEXT]
        if said >= memory[env + at.DUE] and memory[env + at.AT] >= memory[env + at.END]:
            memory[env + at.VERDICT], memory[env + at.RUNNING] = 0, 0
        reward = _hear(memory, factors, texts, env, symbol)
    # words said after the last ones are lost
    if not memory[env + at.RUNNING] and memory[env + at.AT] >= memory[env + at.END] and not memory[env + at.OVER]:
        _switch(memory, texts, env)
    return reward


@compile_part
def _hear(memory: Any, factors: Any, texts: Any, env: int, symbol: int) -> int:
    """Add a symbol to the answer, and judge it if it is complete."""
    size = memory[env + at.HEARD_SIZE]
    texts[memory[env + at.HEARD] + size * memory[at.COUNT_OF_ALL]] = symbol
    size += 1
    complete = symbol == _DOT if memory[memory[env + at.TASK] + at.DOTTED] else size >= memory[env + at.EXPECTED_SIZE]
    memory[env + at.HEARD_SIZE] = 0 if complete else size
    return int(_judge(memory, factors, texts, env, size)) if complete else 0


@compile_part
def _judge(memory: Any, factors: Any, texts: Any, env: int, size: int) -> int:
    """Judge an answer, give feedback, and ask the next question unless there is a verdict."""
    right = _accepts(memory, texts, env, size)
    if memory[env + at.INTERRUPTED]:
        memory[env + at.INTERRUPTED], memory[env + at.STREAK] = 0, 0
    memory[env + at.ASKED] += 1
    memory[env + at.STREAK] = memory[env + at.STREAK] + 1 if right else 0
    feedback = memory[memory[env + at.ROUND] + (at.RIGHT if right else at.WRONG)]
    reward = 1 if right else -1
    verdict, earlier = _decide(memory, factors, env, right), memory[env + at.VERDICT]
    if verdict != _NONE and earlier != _NONE and (not memory[at.ROUND1] or earlier == verdict):
        return reward
    start = end = memory[env + at.TEXT]
    if memory[feedback + at.PIECE_COUNT]:
        end = _write(memory, texts, env, feedback, start)
    if verdict == _NONE:
        end = _ask(memory, texts, env, end)
    else:
        memory[env + at.VERDICT], memory[env + at.RUNNING] = verdict, 0
    if end > start:
        memory[env + at.DUE] -= memory[env + at.AT] - start
        _set_speech(memory, texts, env, end)
    return reward


@compile_part
def _set_speech(memory: Any, texts: Any, env: int, end: int) -> None:
    """Begin to say the text that ends there."""
    start = memory[env + at.TEXT]
    memory[env + at.AT], memory[env + at.END] = start, end
    while end > start and texts[end - 1] == _SPACE:
        end -= 1
    memory[env + at.SPOKEN] = end


@compile_part
def _decide(memory: Any, factors: Any, env: int, right: bool) -> int:
    """Return the verdict after an answer, or that it is still open."""
    known = not memory[env + at.KNOWN] and _knows(memory, env, right)
    if known:
        memory[env + at.KNOWN] = 1
    asked = memory[env + at.ASKED]
    if memory[env + at.STREAK] >= memory[at.REQUIRED]:
        return 1 if not memory[env + at.LATE] and asked <= memory[env + at.QUESTION_LIMIT] else 0
    if known:
        memory[env + at.QUESTION_LIMIT] = int(asked + factors[memory[at.FACTORS]])
    elif asked > memory[env + at.QUESTION_LIMIT]:
        if memory[env + at.LATE]:
            return 0
        memory[env + at.LATE], memory[env + at.QUESTION_LIMIT] = (
            1,
            int(asked * factors[memory[at.FACTORS] + memory[memory[env + at.TASK] + at.PATIENCE]]),
        )
    return _NONE


@compile_part
def _knows(memory: Any, env: int, right: bool) -> bool:
    """Return True if the learner should know the answers now."""
    task, options = memory[env + at.TASK], memory[env + at.OPTIONS] + memory[env + at.KEY]
    if memory[task + at.GUESSES] >= 0:
        if memory[env + at.GUESSES_LEFT] == 0 or (right and memory[options]):
            return True
        if not right:
            memory[env + at.GUESSES_LEFT] -= 1
        return False
    if memory[env + at.UNKNOWN] and memory[options] > 1:
        memory[options] = 1 if right or memory[task + at.SEEN] else memory[options] - 1
        memory[env + at.UNKNOWN] -= memory[options] == 1
    return bool(memory[env + at.UNKNOWN] == 0)


@compile_part
def _accepts(memory: Any, texts: Any, env: int, size: int) -> bool:
    """Return True if the answer of this length is right."""
    judged, heard, expected = memory[env + at.ROUND], memory[env + at.ANSWER_HEARD], memory[env + at.EXPECTED]
    for k in range(size):
        texts[heard + k] = texts[memory[env + at.HEARD] + k * memory[at.COUNT_OF_ALL]]
    rule = memory[judged + at.ACCEPT]
    if rule == at.IS_ANSWER:
        return bool(size == memory[env + at.EXPECTED_SIZE] and _equal(texts, heard, texts, expected, size))
    if rule == at.LACKS and size == 1:
        return False
    for k in range(memory[judged + at.ACCEPTED_COUNT]):  # each is written where the answer was, which is not needed
        length = _write(memory, texts, env, memory[judged + at.ACCEPTED + k], expected) - expected
        if rule == at.IS_ONE_OF:
            found = length == size and _equal(texts, heard, texts, expected, size)
        elif rule == at.IS_PART_OF:
            found = _contains(texts, expected, length, texts, heard, size)
        else:
            found = _contains(texts, heard, size, texts, expected, length)
        if found:
            return bool(rule != at.LACKS)
    return bool(rule == at.LACKS)


@compile_part
def _equal(first: Any, start: int, second: Any, begin: int, size: int) -> bool:
    k = 0
    while k < size and first[start + k] == second[begin + k]:
        k += 1
    return k == size


@compile_part
def _contains(whole: Any, start: int, size: int, part: Any, begin: int, part_size: int) -> bool:
    k, last = start, start + size - part_size
    while k <= last and not _equal(whole, k, part, begin, part_size):
        k += 1
    return k <= last


# Instances


@compile_part
def _switch(memory: Any, texts: Any, env: int) -> None:
    """Note the verdict, and start the next instance or end the curriculum."""
    if memory[env + at.TASK] != _NONE:
        result = memory[env + at.VERDICT]
        memory[env + at.FINISHED] += 1
        memory[env + at.ENDED], memory[env + at.RESULT] = 1, result
        memory[env + at.SOLVED_IN_ROW] += result
        if not result and memory[at.CHOOSER] == at.CONSECUTIVE:
            memory[env + at.SOLVED_IN_ROW] = 0
    memory[env + at.AT] = memory[env + at.END] = memory[env + at.SPOKEN] = memory[env + at.TEXT]
    memory[env + at.VERDICT] = _NONE
    curriculum = memory[env + at.CURRICULUM]
    _choose(memory, env, memory[curriculum + at.TASK_COUNT])
    if memory[env + at.POSITION] >= memory[curriculum + at.TASK_COUNT]:
        memory[env + at.OVER], memory[env + at.RUNNING] = 1, 0
        return
    entry = curriculum + at.ENTRIES + memory[env + at.POSITION] * at.ENTRY_SIZE
    memory[env + at.TASK], memory[env + at.TASK_TURNS], memory[env + at.TASK_NUMBER] = (
        memory[entry],
        memory[entry + 1],
        memory[entry + 2],
    )
    _start(memory, texts, env)


@compile_part
def _choose(memory: Any, env: int, count: int) -> None:
    """Choose the position of the next task; the one behind the last ends the curriculum."""
    chooser = memory[at.CHOOSER]
    if chooser == at.RANDOM:
        memory[env + at.POSITION] = int(_draw(memory, env) * count)
        return
    if chooser == at.SEQUENTIAL:
        memory[env + at.POSITION] += 1
    elif memory[env + at.SOLVED_IN_ROW] >= memory[at.THRESHOLD]:
        memory[env + at.SOLVED_IN_ROW] = 0
        memory[env + at.POSITION] += 1
    if memory[env + at.POSITION] >= count and (memory[at.CYCLIC] or chooser != at.CONSECUTIVE):
        memory[env + at.POSITION] = 0


@compile_part
def _start(memory: Any, texts: Any, env: int) -> None:
    """Draw an instance and ask its first question."""
    task = memory[env + at.TASK]
    source = memory[env + at.SOURCE] = _walk(memory, env, memory[task + at.START])
    for field in (at.ASKED, at.STREAK, at.INTERRUPTED, at.LATE, at.KNOWN, at.HEARD_SIZE, at.UNKNOWN, at.KEY):
        memory[env + field] = 0
    memory[env + at.RUNNING], memory[env + at.DUE] = 1, memory[task + at.MAX_TIME]
    memory[env + at.QUESTION_LIMIT], memory[env + at.GUESSES_LEFT] = _UNLIMITED, memory[task + at.GUESSES]
    if memory[source + at.SOURCE_KIND] != at.FROM_TREE:
        _draw_mapping(memory, env, source)
    _set_speech(memory, texts, env, _ask(memory, texts, env, memory[env + at.TEXT]))


@compile_part
def _draw_mapping(memory: Any, env: int, source: int) -> None:
    """Draw keys and answers into their slots."""
    count = behind = memory[source + at.KEY_COUNT]
    slots, digits = memory[env + at.SLOTS], memory[env + at.DIGITS]
    keys, answers = memory[source + at.KEYS], memory[source + at.ANSWERS]
    if keys == at.SAMPLED:
        _draw_texts(memory, env, memory[source + at.KEY_POOL], memory[source + at.KEY_POOL_SIZE], count, 0)
    elif keys != at.LISTED:
        count = _draw_keys(memory, env, source)
    if answers == at.SAMPLED:
        _draw_texts(memory, env, memory[source + at.ANSWER_POOL], memory[source + at.ANSWER_POOL_SIZE], count, behind)
    elif answers == at.NUMBERS:
        for k in range(count):
            _draw_number(memory, env, memory[source + at.MIN_ANSWER], memory[source + at.MAX_ANSWER], behind + k)
    elif answers == at.ONE_KEY:
        memory[slots + behind] = memory[slots + int(_draw(memory, env) * count)]
        memory[digits + behind] = 0
    elif answers == at.OTHER_ORDER:
        _shuffle(memory, env, count, count)
        for k in range(count):
            memory[slots + behind + k] = memory[slots + memory[memory[env + at.SPARE] + k]]
            memory[digits + behind + k] = 0
    total = count + memory[source + at.FIXED_COUNT]
    memory[env + at.DRAWN_KEYS], memory[env + at.KEY_TOTAL], memory[env + at.DECK_LEFT] = count, total, 0
    for key in range(total):
        options = memory[_round_of(memory, env, source, key) + at.OPTION_COUNT]
        memory[memory[env + at.OPTIONS] + key] = options
        memory[env + at.UNKNOWN] += options > 1


@compile_part
def _draw_keys(memory: Any, env: int, source: int) -> int:
    """Draw numbers into the first slots, each once, and return how many there are."""
    slots, digits, least = memory[env + at.SLOTS], memory[env + at.DIGITS], memory[source + at.MIN_KEY]
    distinct = memory[source + at.KEYS] == at.DISTINCT_NUMBERS
    wanted = memory[source + at.KEY_COUNT]
    wanted = min(wanted, _raise_ten(least)) if distinct else wanted
    count = tried = 0
    while (count if distinct else tried) < wanted:
        _draw_number(memory, env, least, memory[source + at.MAX_KEY], count)
        tried += 1
        old = False
        for k in range(count):
            same = memory[slots + k] == memory[slots + count] and memory[digits + k] == memory[digits + count]
            old = old or same
        count += not old
    return int(count)


@compile_part
def _round_of(memory: Any, env: int, source: int, key: int) -> int:
    fixed = key - memory[env + at.DRAWN_KEYS]
    if fixed < 0:
        return int(memory[source + at.ROUNDS] + key * at.ROUND_SIZE)
    return int(memory[source + at.FIXED] + fixed * at.ROUND_SIZE)


@compile_part
def _ask(memory: Any, texts: Any, env: int, place: int) -> int:
    """Draw the next round, and write its answer and its question; return where the question ends."""
    source = memory[env + at.SOURCE]
    kind = memory[source + at.SOURCE_KIND]
    if kind == at.FROM_TREE:
        drawn = _walk(memory, env, memory[source + at.TREE])
    else:
        key = (
            _draw_key(memory, texts, env)
            if kind == at.SHUFFLED
            else int(_draw(memory, env) * memory[env + at.KEY_TOTAL])
        )
        memory[env + at.KEY], drawn = key, _round_of(memory, env, source, key)
        chance = memory[source + at.NOISE_CHANCE]
        if chance >= at.CERTAIN or (chance and _draw_bits(memory, env) < chance):
            count = memory[source + at.KEY_COUNT]
            _draw_number(memory, env, memory[source + at.MIN_NOISE], memory[source + at.MAX_NOISE], 2 * count)
            drawn += count * at.ROUND_SIZE
    memory[env + at.ROUND] = drawn
    start = memory[env + at.EXPECTED]
    memory[env + at.EXPECTED_SIZE] = _write(memory, texts, env, memory[drawn + at.ANSWER], start) - start
    return int(_write(memory, texts, env, memory[drawn + at.QUESTION], place))


@compile_part
def _draw_key(memory: Any, texts: Any, env: int) -> int:
    """Take a key from the deck, which has each of n keys n times."""
    deck, keys = memory[env + at.DECK], memory[env + at.KEY_TOTAL]
    left = memory[env + at.DECK_LEFT]
    if left == 0:
        for _ in range(keys):
            for key in range(keys):
                texts[deck + left] = key
                left += 1
    place = deck + int(_draw(memory, env) * left)
    drawn = texts[place]
    left -= 1
    texts[place] = texts[deck + left]
    memory[env + at.DECK_LEFT] = left
    return int(drawn)


# Draws and texts


@compile_part
def _draw(memory: Any, env: int) -> float:
    """Return the next number of an environment, from 0 to 1: `DrawStream.random`."""
    return float(_draw_bits(memory, env)) * UNIT


@compile_part
def _draw_bits(memory: Any, env: int) -> int:
    """Return the next number of an environment as a whole number of units."""
    counter = np.uint64(memory[env + at.DRAWS]) + _STEP
    memory[env + at.DRAWS] = np.int64(counter)
    mixed = (counter ^ (counter >> _SHIFT)) * _FACTOR
    mixed = (mixed ^ (mixed >> _SHIFT2)) * _FACTOR2
    return np.int64((mixed ^ (mixed >> _SHIFT3)) >> _SHIFT4)  # type: ignore[return-value]


@compile_part
def _walk(memory: Any, env: int, node: int) -> int:
    """Draw from a node down to a leaf and return its result."""
    while memory[node + at.KIND] != at.LEAF:
        kind = memory[node + at.KIND]
        if kind == at.CHOICE:
            node = memory[node + at.CHILDREN + int(_draw(memory, env) * memory[node + at.SIZE])]
        elif kind == at.CHANCE:
            first = _draw_bits(memory, env) < memory[node + at.PROBABILITY]
            node = memory[node + at.CHILDREN + (0 if first else 1)]
        elif kind == at.IN_TURN:
            node = memory[node + at.CHILDREN + _take_turn(memory, env, memory[node + at.SIZE])]
        else:
            pool, size, slot = memory[node + at.POOL], memory[node + at.POOL_SIZE], memory[node + at.SLOT]
            _draw_texts(memory, env, pool, size, memory[node + at.COUNT], slot)
            while memory[node + at.AVOIDS] and _has_code_word(memory, env, slot):
                _draw_texts(memory, env, pool, size, 1, slot)
            node = memory[node + at.NEXT]
    return int(memory[node + at.NEXT])


@compile_part
def _take_turn(memory: Any, env: int, size: int) -> int:
    """Return one of a number of parts; all come once before any comes again."""
    place = memory[env + at.TURNS] + memory[env + at.TASK_TURNS] * memory[at.PARTS]
    if memory[place] == 0:
        _shuffle(memory, env, size, size)
        for k in range(size):
            memory[place + 1 + k] = memory[memory[env + at.SPARE] + k]
        memory[place] = size
    memory[place] -= 1
    return int(memory[place + 1 + memory[place]])


@compile_part
def _draw_texts(memory: Any, env: int, pool: int, size: int, count: int, slot: int) -> None:
    """Draw different texts of a pool into slots, as `sample` does."""
    first, digits = memory[env + at.SLOTS] + slot, memory[env + at.DIGITS] + slot
    shuffled = count * 3 > size
    if shuffled:
        _shuffle(memory, env, size, count)
    done = 0
    while done < count:
        chosen = memory[memory[env + at.SPARE] + done] if shuffled else int(_draw(memory, env) * size)
        memory[first + done], memory[digits + done] = memory[pool + chosen], 0
        old = False
        for k in range(done):
            old = old or memory[first + k] == memory[first + done]
        done += not old


@compile_part
def _shuffle(memory: Any, env: int, size: int, count: int) -> None:
    """Put `count` different numbers below `size` into the spare room, in random order."""
    spare = memory[env + at.SPARE]
    for k in range(size):
        memory[spare + k] = k
    for done in range(count):
        place = done + int(_draw(memory, env) * (size - done))
        memory[spare + done], memory[spare + place] = memory[spare + place], memory[spare + done]


@compile_part
def _has_code_word(memory: Any, env: int, slot: int) -> bool:
    """Return True if the text in a slot contains one of the code words, which are in the first slots."""
    slots = memory[env + at.SLOTS]
    word = memory[slots + slot]
    for k in range(memory[at.CODES]):
        part = memory[slots + k]
        if _contains(memory, word + at.SYMBOLS, memory[word], memory, part + at.SYMBOLS, memory[part]):
            return True
    return False


@compile_part
def _draw_number(memory: Any, env: int, least: int, most: int, slot: int) -> None:
    """Draw random digits into a slot, as `draw_digits` does."""
    size = least if least == most else least + int(_draw(memory, env) * (most - least + 1))
    memory[memory[env + at.DIGITS] + slot] = size
    memory[memory[env + at.SLOTS] + slot] = int(_draw(memory, env) * _raise_ten(size))


@compile_part
def _raise_ten(size: int) -> int:
    """Return ten to the power of a size."""
    power = 1
    for _ in range(size):
        power *= 10
    return power


@compile_part
def _write(memory: Any, texts: Any, env: int, template: int, place: int) -> int:
    """Write a text of a program to a place, and return where it ends."""
    piece = template + at.PIECES
    for _ in range(memory[template + at.PIECE_COUNT]):
        slot, value, mark, digits = memory[piece], memory[piece + 1], 0, 0
        if slot >= 0:
            mark, value = value, memory[memory[env + at.SLOTS] + slot]
            digits = memory[memory[env + at.DIGITS] + slot]
        if digits:
            for k in range(place + digits - 1, place - 1, -1):
                texts[k] = _ZERO + value % 10
                value //= 10
            place += digits
        else:
            for k in range(value + at.SYMBOLS, value + at.SYMBOLS + memory[value + at.LENGTH]):
                if mark and k > value + at.SYMBOLS:
                    texts[place] = mark
                    place += 1
                texts[place] = memory[k]
                place += 1
        piece += at.PIECE_SIZE
    return place


@compile_inline
def _step(memory: Any, factors: Any, texts: Any, env: int, heard: int) -> tuple[int, int]:
    """Step an environment with the symbol it hears, and return the teacher's symbol and the reward."""
    now = memory[env + at.AT]
    memory[env + at.ENDED] = 0
    if now >= memory[env + at.SPOKEN]:
        reward = _listen(memory, factors, texts, env, heard)
        return _speak(memory, texts, env), reward
    memory[env + at.AT] = now + 1
    if heard == _SPACE:
        return int(texts[now]), 0
    memory[env + at.INTERRUPTED] = 1
    return int(texts[now]), -1


@compile_part
def _begin(memory: Any, texts: Any, env: int) -> int:
    """Start the curriculum of an environment anew, and return the teacher's first symbol."""
    for field in (at.OVER, at.ENDED, at.FINISHED, at.SOLVED_IN_ROW, at.POSITION):
        memory[env + field] = 0
    memory[env + at.RESULT] = memory[env + at.TASK] = _NONE
    if memory[at.CHOOSER] == at.SEQUENTIAL:
        memory[env + at.POSITION] = -1
    for place in range(memory[at.TURNS_SIZE]):
        memory[memory[env + at.TURNS] + place] = 0
    _switch(memory, texts, env)
    return int(_speak(memory, texts, env))


@compile_part
def _answer(memory: Any, texts: Any, env: int) -> int:
    """Return the symbol with which an environment would be answered rightly, or -1 if it is not asked."""
    if memory[env + at.AT] < memory[env + at.SPOKEN] or not memory[env + at.RUNNING]:
        return _NONE
    size = memory[env + at.HEARD_SIZE]
    return _DOT if size >= memory[env + at.EXPECTED_SIZE] else int(texts[memory[env + at.EXPECTED] + size])


# What Python calls. The types are given, so that others are refused and not compiled for.


_HEARD = types.Array(types.int64, 1, "C", readonly=True)


@njit(inline="always")
def _are_symbols(heard: Any) -> bool:
    all_bits = 0
    for i in range(len(heard)):
        all_bits |= heard[i]
    return 0 <= all_bits <= MAX_SYMBOL


@njit(types.boolean(_HEARD), cache=True)
def are_symbols(heard: Any) -> bool:
    """Return True if all numbers are symbols."""
    return bool(_are_symbols(heard))


@njit(types.void(types.int64, _HEARD, types.int64[::1], types.float64[::1], types.int64), cache=True, nogil=True)
def step_some(room: Any, heard: Any, symbols: Any, rewards: Any, first: Any) -> None:
    """Step as many environments as there are symbols, from one of them on, without a look at the symbols.

    Args:
        room: The address of the memory.
        heard: The symbols.
        symbols: Where the teacher's symbols are written.
        rewards: Where the rewards are written.
        first: The number of the first environment.
    """
    memory, texts, factors = point_to_numbers(room), point_to_symbols(room), point_to_factors(room)
    env = memory[at.FIRST] + first * at.STATE_SIZE
    for i in range(len(heard)):
        symbols[i], rewards[i] = _step(memory, factors, texts, env, heard[i])
        env += at.STATE_SIZE


@njit(types.boolean(types.int64, _HEARD, types.int64[::1], types.float64[::1]), cache=True)
def step_all(room: Any, heard: Any, symbols: Any, rewards: Any) -> bool:
    """Step every environment with the symbol it hears, and write the teacher's symbols and the rewards.

    If there is not one symbol for each environment, nothing is done, and the function returns False.

    Args:
        room: The address of the memory.
        heard: The symbols.
        symbols: Where the teacher's symbols are written.
        rewards: Where the rewards are written.
    """
    if not _are_symbols(heard) or len(heard) != point_to_numbers(room)[at.COUNT_OF_ALL]:
        return False
    step_some(room, heard, symbols, rewards, 0)
    return True


@njit(types.int64(types.int64, types.int64), cache=True)
def step_one(room: Any, heard: Any) -> int:
    """Step the only environment, and return the place of the result in `RESULTS_OF_ONE`; -1 if it is not a symbol."""
    if heard < 0 or heard > MAX_SYMBOL:
        return -1
    memory, texts, factors = point_to_numbers(room), point_to_symbols(room), point_to_factors(room)
    symbol, reward = _step(memory, factors, texts, memory[at.FIRST], heard)
    return int((reward + 1) * (MAX_SYMBOL + 1) + symbol)


@njit(types.void(types.int64, types.int64[:], types.int64[::1]), cache=True)
def start_all(room: Any, which: Any, symbols: Any) -> None:
    """Start the curricula of some environments anew and write the teacher's first symbols.

    Args:
        room: The address of the memory.
        which: The numbers of the environments.
        symbols: The last symbols of all.
    """
    memory, texts = point_to_numbers(room), point_to_symbols(room)
    for i in which:
        symbols[i] = _begin(memory, texts, memory[at.FIRST] + i * at.STATE_SIZE)


@njit(types.void(types.int64, types.int64[::1]), cache=True)
def answer_all(room: Any, answers: Any) -> None:
    """Write the symbol with which each environment would be answered rightly, or -1 where it is not asked."""
    memory, texts = point_to_numbers(room), point_to_symbols(room)
    for i in range(len(answers)):
        answers[i] = _answer(memory, texts, memory[at.FIRST] + i * at.STATE_SIZE)


class CompiledBatch(ProgramBatch):
    """A batch that is stepped by compiled code, large ones on all processors."""

    def __init__(
        self, curricula: Sequence[Sequence[str]], settings: CommaiSettings, seed: int | Sequence[int] = 0
    ) -> None:
        threads = max(1, min(count_processors(), len(curricula) // _SHARE))
        super().__init__(curricula, settings, seed, rooms=threads)
        self._play: Callable[..., bool] = step_all
        if threads > 1:
            bounds = [self.n * thread // threads for thread in range(threads + 1)]
            self._shares = [slice(*share) for share in itertools.pairwise(bounds)]
            self._threads = ThreadPoolExecutor(threads - 1, "commai")
            self._play = self._step_shares

    def restart(self, which: Array) -> Array:
        """Start the curricula of some environments anew, with further draws; return the last symbols of all."""
        symbols = self._symbols = self._symbols.copy()
        start_all(self._address, np.asarray(which, np.int64), symbols)
        return symbols.copy()

    def step(self, symbols: Array) -> tuple[Array, Array]:
        """Let every environment hear a symbol; return the teacher's symbols and the rewards."""
        heard = symbols if type(symbols) is _ARRAY and symbols.dtype is _INT64 else self._convert(symbols)
        results = np.empty(self.n, np.int64), np.empty(self.n)
        try:
            stepped = self._play(self._address, heard, *results)
        except TypeError:  # they do not lie in a row
            stepped = self._play(self._address, heard := self._convert(heard), *results)
        if not stepped:
            self._refuse(self._convert(heard))
        self._symbols = results[0]
        return results

    def _step_shares(self, room: int, heard: Array, symbols: Array, rewards: Array) -> bool:
        """Step a share of the environments in each thread: `step_all` for large batches."""
        if not are_symbols(heard) or len(heard) != self.n:
            return False
        first, *others = [(room, heard[each], symbols[each], rewards[each], each.start) for each in self._shares]
        under_way = [self._threads.submit(step_some, *given) for given in others]
        step_some(*first)
        for each in under_way:
            each.result()
        return True

    def _write_answers(self, answers: Array) -> None:
        answer_all(self._address, answers)


class CompiledSingle(CompiledBatch):
    """A batch of one. What it returns is not made anew in each step, which would take longer than the step."""

    def step(self, symbols: Array) -> tuple[Array, Array]:
        """Let the environment hear a symbol; return the teacher's symbol and the reward, in arrays."""
        try:
            heard = (symbols if symbols.dtype is _INT64 else self._convert(symbols)).item()
        except (AttributeError, ValueError):  # it is no array, or not of one number
            heard = self._convert(symbols).item()
        place = step_one(self._address, heard)
        if place < 0:
            self._refuse(self._convert(symbols))
        results = RESULTS_OF_ONE[place]
        self._symbols = results[0]
        return results


def _list_results() -> list[tuple[Array, Array]]:
    """Return all results of a step of one environment: by the reward and then by the symbol, read-only."""
    symbols, rewards = np.arange(MAX_SYMBOL + 1).reshape(-1, 1), np.array([[-1.0], [0.0], [1.0]])
    for each in (symbols, rewards):
        each.setflags(write=False)
    return [(symbol, reward) for reward in rewards for symbol in symbols]


RESULTS_OF_ONE = _list_results()
