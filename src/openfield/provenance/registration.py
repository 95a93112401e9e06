"""What was registered of a run before its first trial: the question, who plays what, the numbers, and when it stops.

The text stands in a file of the user's, to be published, and word for word among the facts of the run file, whose
fingerprint covers it. Its signature is a digest of all else that it says, the fingerprint of the plan included.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from openfield.errors import DamagedRun, InvalidInput
from openfield.files.data import read_json
from openfield.journal.reader import CellRecord

REGISTRATION_FACT = "registration"


class Registration(msgspec.Struct, frozen=True, kw_only=True):
    """What was registered of a run."""

    question: str
    started: str
    """When it was registered."""
    agents: dict[str, dict[str, str]]
    """Domain -> agent -> the fingerprint of its code, or where it comes from if it has none."""
    trials: list[str]
    """The ids of the trials, which are hashes of their content."""
    numbers: list[str]
    """The names of the numbers that the question is about."""
    stopping: str
    """The rule by which the run stops, with its options; empty if all trials are played."""
    plan: str
    """The fingerprint of the plan."""
    signature: str = ""

    def sign(self) -> Registration:
        """Return it with its signature."""
        bare = msgspec.structs.replace(self, signature="")
        digest = hashlib.sha256(msgspec.json.encode(bare, order="sorted")).hexdigest()
        return msgspec.structs.replace(self, signature=digest)

    def describe(self) -> str:
        """Return a sentence about it."""
        asked = f" “{self.question}”" if self.question else ""
        stops = f", {self.stopping}" if self.stopping else ""
        return f"Registered {self.started}:{asked} {', '.join(self.numbers)}{stops}. All else was found on the way."


def read_registration(facts: Mapping[str, str], place: object) -> Registration | None:
    """Return what was registered of a run; None if nothing was.

    Args:
        facts: The facts of the run file.
        place: The run file, for messages.

    Raises:
        DamagedRun: It cannot be read, or its signature is not that of its text.
    """
    if REGISTRATION_FACT not in facts:
        return None
    try:
        found = msgspec.json.decode(facts[REGISTRATION_FACT], type=Registration)
    except msgspec.DecodeError as error:
        raise DamagedRun(f"{place} is damaged: its registration cannot be read: {error}.") from None
    if found.sign() != found:
        raise DamagedRun(f"{place} is damaged: its registration was changed after it was signed.")
    return found


def read_registration_file(path: Path) -> Registration:
    """Return what a file registers.

    Raises:
        InvalidInput: It is something else, or was changed after it was signed.
    """
    try:
        found = msgspec.convert(read_json(path), Registration)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{path} is not a registration of a run: {error}.") from None
    if found.sign() != found:
        raise InvalidInput(f"{path} was changed after it was signed.")
    return found


def list_deviations(registration: Registration, cells: Iterable[CellRecord]) -> Iterator[str]:
    """Yield in sentences how a run is not what was registered: other agents, other code, other trials.

    Args:
        registration: What was registered.
        cells: The cells of the run.
    """
    known, trials = list(cells), {*registration.trials}
    others = {cell.agent for cell in known if cell.agent not in registration.agents.get(cell.trial.domain, {})}
    for agent in sorted(others):
        yield f"{agent} was not registered: what is said of it was found on the way."
    changed = {
        cell.agent
        for cell in known
        if cell.player is not None and registration.agents.get(cell.trial.domain, {}).get(cell.agent) != cell.player
    }
    for agent in sorted(changed - others):
        yield f"The code of {agent} is not the one that was registered."
    if added := len({cell.trial.id for cell in known} - trials):
        yield f"{added} of its trials {'was' if added == 1 else 'were'} not registered."
