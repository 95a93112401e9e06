"""From when on a learner should know the answers of a micro task: its limits begin to count there.

Micro tasks choose one of these for each instance; `micro.py` asks it after every answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Knows = Callable[[str, bool], bool]
"""Told the key of a question and whether it was answered right, says whether the learner should know it all by now."""


def know_at_once(key: str, right: bool) -> bool:
    """The learner should know from the first question on."""
    return True


def know_when_seen(keys: Sequence[str]) -> Knows:
    """The learner should know once every key has been asked."""
    unseen = set(keys)

    def knows(key: str, right: bool) -> bool:
        unseen.discard(key)
        return not unseen

    return knows


def know_after(guesses: int, telling: Callable[[str], bool]) -> Knows:
    """The learner should know after its first right answer to a telling question, or when its guesses are used up."""
    left = guesses

    def knows(key: str, right: bool) -> bool:
        nonlocal left
        if left == 0 or (right and telling(key)):
            return True
        if not right:
            left -= 1
        return False

    return knows


def know_by_elimination(options: dict[str, int]) -> Knows:
    """The learner should know once every key was answered right or has one option left."""
    left = {key: count for key, count in options.items() if count > 1}

    def knows(key: str, right: bool) -> bool:
        if key in left:
            left[key] = 1 if right else left[key] - 1
            if left[key] == 1:
                del left[key]
        return not left

    return knows
