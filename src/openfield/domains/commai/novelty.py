"""The novelties of CommAI, level by level of the hierarchy.

Every novelty is a change of the settings that the world applies between two instances.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import msgspec

from openfield.course import Blend
from openfield.domains.commai.settings import CommaiSettings
from openfield.novelty import Novelty, SettingNovelties


def _set(**values: Any) -> Callable[[CommaiSettings], CommaiSettings]:
    return lambda settings: msgspec.structs.replace(settings, **values)


class CommaiBlend(Blend[CommaiSettings]):
    """The way to other settings, on which another alphabet and another task come by their shares."""

    def __init__(self, usual: CommaiSettings, changed: CommaiSettings, abrupt: Collection[str] = ()) -> None:
        begins = usual
        if changed.alphabet != usual.alphabet:
            begins = msgspec.structs.replace(begins, alphabet=changed.alphabet, alphabet_share=0.0)
        if changed.intruder != usual.intruder:
            begins = msgspec.structs.replace(begins, intruder=changed.intruder, intruder_share=0.0)
        super().__init__(begins, changed, abrupt)
        self._normal = usual

    def at(self, share: float) -> tuple[CommaiSettings, bool]:
        """Return the settings at a share of the way, and whether they differ."""
        return super().at(share) if share else (self._normal, False)


_LISTED = (
    Novelty("alphabet", 1, "objects", "letters and digits are others than before", _set(alphabet="shifted"), "easy"),
    Novelty("alphabet", 1, "objects", "letters and digits are bytes never used", _set(alphabet="foreign"), "hard"),
    Novelty("vocabulary", 1, "objects", "the words of questions are rare ones", _set(vocabulary="rare")),
    Novelty("separators", 1, "objects", "other marks end questions, answers, feedback", _set(separators=True)),
    Novelty("feedback", 2, "agents", "praise and blame come in other words", _set(feedback="reworded"), "easy"),
    Novelty("feedback", 2, "agents", "praise and blame are left out", _set(feedback="withheld"), "medium"),
    Novelty("feedback", 2, "agents", "praise and blame are swapped", _set(feedback="swapped"), "hard"),
    Novelty("scrambling", 4, "relations", "words are other, pronounceable ones", _set(scramble="readable"), "easy"),
    Novelty("scrambling", 4, "relations", "words are other letters", _set(scramble="unreadable"), "hard"),
    Novelty("synonyms", 5, "interactions", "keywords are replaced by synonyms", _set(synonyms=True)),
    Novelty("reward-delay", 6, "rules", "rewards come three steps late", _set(reward_delay=3), "easy"),
    Novelty("reward-delay", 6, "rules", "rewards come twenty steps late", _set(reward_delay=20), "hard"),
    Novelty("reward-sign", 7, "goals", "rewards are punishments and punishments rewards", _set(reward_sign=-1)),
    Novelty("new-task", 8, "events", "every second question wants an echo", _set(intruder="micro4"), "easy"),
    Novelty("new-task", 8, "events", "every second question wants the next letter", _set(intruder="micro14"), "hard"),
)
NOVELTIES = SettingNovelties.of(_LISTED, CommaiSettings, ("reward_delay",))
"""Novelties by name; `reward_delay=5` is one too."""
