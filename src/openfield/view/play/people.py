"""What a study with people is: the texts, questions and trials that each of them gets, and the links to their pages.

The table `[people]` of an experiment file becomes a `People`. Links are made from a secret in a file of its owner's.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from openfield.errors import InvalidInput, UnknownName
from openfield.runner.sealing import read_secret
from openfield.trial import Trial

MAX_QUESTIONS = 100
Count = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question after the trials."""

    name: Name
    """What the answer is called in the record."""
    text: str
    kind: Literal["text", "number", "choice"] = "text"
    options: tuple[str, ...] = ()
    """What can be chosen."""
    optional: bool = False
    """Whether it may be left without an answer."""

    def check(self, answer: str) -> bool:
        """Return whether an answer fits."""
        if not answer.strip():
            return self.optional
        if self.kind == "choice":
            return answer in self.options
        return self.kind == "text" or _is_number(answer)


class People(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[people]`."""

    trials: Count | None = None
    """How many of the trials each person plays; all of them if not given."""
    title: str = ""
    consent: str = ""
    """What a person agrees to; empty asks for nothing."""
    instructions: str = ""
    practice: dict[str, Any] | None = None
    """Settings of a trial without a novelty that is played before and not recorded; none if not given."""
    questions: tuple[Question, ...] = ()
    thanks: str = "Thank you for playing."
    completion_code: str = ""
    """What a person is shown in the end, to prove that they took part."""

    @property
    def is_bare(self) -> bool:
        """Whether a person is shown nothing but the trials."""
        return not (self.consent or self.instructions or self.practice is not None or self.questions)


def read_people(table: Mapping[str, Any]) -> People:
    """Return the study that a table describes. A message names a wrong key or value."""
    for key in table:
        if key not in People.__struct_fields__:
            raise UnknownName("key", key, People.__struct_fields__, label="Keys of [people]")
    try:
        people = msgspec.convert(table, People)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"[people]: {str(error).removeprefix('Object ')}.") from None
    names = [question.name for question in people.questions]
    if len(set(names)) < len(names) or len(names) > MAX_QUESTIONS:
        raise InvalidInput(f"[people]: there are at most {MAX_QUESTIONS} questions, each with a name of its own.")
    for question in people.questions:
        if question.kind == "choice" and len(question.options) < 2:
            raise InvalidInput(f"[people]: the question '{question.name}' needs options to choose from.")
    return people


def make_links(file: Path, count: int) -> list[str]:
    """Return a secret for each person. The file is made if it is missing, so that the same links work again."""
    root = f"{read_secret(file):032x}".encode()
    digests = (hmac.new(root, f"person {number}".encode(), hashlib.sha256).digest() for number in range(count))
    return [base64.urlsafe_b64encode(digest[:18]).decode() for digest in digests]


def deal_trials(trials: Sequence[Trial], person: int, each: int | None) -> list[Trial]:
    """Return the trials of a person. People take turns, so that all trials are played about equally often.

    A trial that comes after another one, as a test after training, comes with it.

    Args:
        trials: All trials.
        person: The number of the person, from 0 on.
        each: How many of them a person plays, no more than there are; None deals all.
    """
    known = {trial.id: trial for trial in trials}
    tests = _list_tests(trials)
    count = len(tests) if each is None else each
    chosen = [tests[(person * count + number) % len(tests)] for number in range(count)]
    before = [known[trial.after] for trial in chosen if trial.after is not None and trial.after in known]
    return list({trial.id: trial for trial in (*before, *chosen)}.values())


def check_dealing(people: People, trials: Sequence[Trial]) -> None:
    """Check that there are as many trials as each person is to play."""
    count = len(_list_tests(trials))
    if people.trials is not None and people.trials > count:
        raise InvalidInput(f"[people]: each person is to play {people.trials} trials, but there are only {count}.")


def _list_tests(trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials that no other one comes after."""
    needed = {trial.after for trial in trials}
    return [trial for trial in trials if trial.id not in needed]


def _is_number(text: str) -> bool:
    try:
        return abs(float(text)) < float("inf")
    except ValueError:
        return False
