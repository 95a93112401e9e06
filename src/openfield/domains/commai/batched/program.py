"""Micro tasks as one array of numbers: the draws, the texts made of them, and how answers are judged.

The compiler writes a program and the kernel reads it. A part of a program begins at an address, and the constants here
say what stands how far behind it; other parts are referred to by their addresses. The states of all environments stand
behind the program in the same array, because compiled code that hands over a dozen arrays takes ten times as long.

After a change here, change the kernel too: numba keeps compiled code until the file of its own source changes.
"""

from __future__ import annotations

from typing import NamedTuple

# The beginning of a program: rules for all tasks, and where things are
REQUIRED, CHOOSER, THRESHOLD, CYCLIC, ROUND1, CODES, PARTS = range(7)
"""Parts are the numbers that a task needs to take its parts in turn: how many are left, and which."""
COUNT_OF_ALL, TURNS_SIZE, FIRST, FACTORS, HEADER_SIZE = range(7, 12)
"""The count of environments, the room of turns, and where the first environment and the factors are. The first factor
is for the questions up to the soft limit."""
CERTAIN = 2**53
"""A chance of 1. Chances are whole numbers, like the draws they are compared with."""

# How the next task is chosen
RANDOM, SEQUENTIAL, INCREMENTAL, CONSECUTIVE = range(4)

# A curriculum: the count of its tasks, then for each the task, which of those with parts in turn it is, and its number
TASK_COUNT, ENTRIES, ENTRY_SIZE = 0, 1, 3

# A task
START, DOTTED, MAX_TIME, GUESSES, SEEN, PATIENCE = range(6)
"""Guesses are -1 unless knowledge is expected after them. Patience is a place among the factors."""

# A node of a tree: the draw, and what comes next
KIND, NEXT = 0, 1
LEAF = 0
"""Nothing is drawn. What comes next is the result: a source when an instance starts, a round for a question."""
CHOICE, SIZE, CHILDREN = 1, 2, 3
"""One of the children, alike."""
CHANCE, PROBABILITY = 2, 2
"""The first child with a chance, else the second."""
IN_TURN = 3
"""One of the children, each once in random order before any comes again."""
TEXTS, POOL, POOL_SIZE, COUNT, SLOT, AVOIDS = 4, 2, 3, 4, 5, 6
"""Some texts of a pool into slots; those with a code word are drawn again if they are to be avoided."""

# A source of rounds: a tree, or a mapping whose rounds are drawn alone or shuffled
SOURCE_KIND, TREE, ROUNDS, FIXED, FIXED_COUNT = range(5)
KEYS, KEY_POOL, KEY_POOL_SIZE, KEY_COUNT, MIN_KEY, MAX_KEY = range(5, 11)
ANSWERS, ANSWER_POOL, ANSWER_POOL_SIZE, MIN_ANSWER, MAX_ANSWER = range(11, 16)
NOISE_CHANCE, MIN_NOISE, MAX_NOISE, SOURCE_SIZE = range(16, 20)
"""A noisy round stands `key_count` rounds behind the plain one."""
FROM_TREE, ALONE, SHUFFLED = range(3)
LISTED, SAMPLED, NUMBERS, DISTINCT_NUMBERS, ONE_KEY, OTHER_ORDER = range(6)
"""How keys and answers are drawn. Listed ones are not, and neither are answers that are their own keys."""

# A round, and the texts its answers are judged by
QUESTION, ANSWER, RIGHT, WRONG, OPTION_COUNT, ACCEPT, ACCEPTED_COUNT, ACCEPTED = range(8)
"""Options are those that a learner must try before it should know the answer."""
ROUND_SIZE = ACCEPTED + 4
IS_ANSWER, IS_ONE_OF, HAS_ANY, LACKS, IS_PART_OF = range(5)

# A text: the count of its pieces, then for each a slot and a mark between its letters, or -1 and a string
PIECE_COUNT, PIECES, PIECE_SIZE = 0, 1, 2

# A string: the count of its symbols, then the symbols
LENGTH, SYMBOLS = 0, 1

# The state of an environment. The names are those of `Environment` and `MicroInstance`; -1 is None. What one step uses
# stands together, eight numbers in a line of the cache: first what every step uses, then every answer, then every round
(AT, SPOKEN, ENDED, INTERRUPTED, END, DUE, RUNNING, OVER) = range(8)
(TASK, HEARD_SIZE, EXPECTED_SIZE, ROUND, STREAK, ASKED, KNOWN, QUESTION_LIMIT) = range(8, 16)
(SOURCE, KEY, KEY_TOTAL, DRAWN_KEYS, DECK_LEFT, DRAWS, VERDICT, LATE) = range(16, 24)
(TEXT, EXPECTED, HEARD, DECK, SLOTS, DIGITS, OPTIONS, TURNS) = range(24, 32)
"""Addresses of its texts and its drawn things. Symbols heard stand so far apart that those of all environments fit in
between: of a hundred places only the first are used, and they stay close together."""
(UNKNOWN, GUESSES_LEFT, CURRICULUM, POSITION, SOLVED_IN_ROW) = range(32, 37)
(TASK_TURNS, TASK_NUMBER, FINISHED, RESULT) = range(37, 41)
(SPARE, ANSWER_HEARD, STATE_SIZE) = range(41, 44)
"""Where texts are shuffled and where the answer to be judged is. Environments that are stepped one after the other
share this room; those that are stepped at the same time do not."""


class Sizes(NamedTuple):
    """How much room an environment needs."""

    text: int
    """Symbols of its longest speech, and of its longest answer."""
    heard: int
    slots: int
    options: int
    turns: int
    deck: int
    spare: int
    """Numbers that are shuffled at once."""


class TaskProgram(NamedTuple):
    """What the kernel needs to know."""

    code: list[int]
    factors: list[float]
    """The numbers of a program that are not whole."""
    curricula: list[int]
    """The address of each curriculum."""
    sizes: Sizes
