"""Tags and notes that readers of a run write afterwards, in a file beside the run file.

A run file is a record: what it says of itself is part of its fingerprint, which may be published. So tags and notes
that are changed later stand beside it, in `RUN.remarks.json`, and are shown in place of those that commands recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from openfield.errors import InvalidInput
from openfield.files.atomic import replacing
from openfield.provenance.provenance import Provenance, Remarks

SUFFIX = ".remarks.json"
MAX_BYTES = 100_000
"""Bytes of a file of remarks that are read."""
MAX_TAGS = 30


class EditedRemarks(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a file of remarks holds."""

    tags: tuple[str, ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        """Refuse what a command would refuse, too."""
        if len(self.tags) > MAX_TAGS:
            raise InvalidInput(f"A run has at most {MAX_TAGS} tags, not {len(self.tags)}.")
        Remarks(self.note, self.tags)


def locate_remarks(run: Path) -> Path:
    """Return where the remarks about a run file are."""
    return run.with_name(f"{run.name}{SUFFIX}")


def read_remarks(run: Path) -> EditedRemarks | None:
    """Return what readers wrote about a run; None if they wrote nothing.

    Raises:
        InvalidInput: The file holds something else.
    """
    path = locate_remarks(run)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidInput(f"Cannot read {path.name}: {error.strerror or error}.") from None
    try:
        if len(data) > MAX_BYTES:
            raise InvalidInput(f"it has more than {MAX_BYTES:,} bytes")
        return msgspec.json.decode(data, type=EditedRemarks)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, InvalidInput) as error:
        raise InvalidInput(f"{path.name} holds no tags and notes: {error}") from None


def write_remarks(run: Path, remarks: EditedRemarks) -> None:
    """Write the tags and the note of a run beside it.

    Raises:
        InvalidInput: The folder cannot be written to.
    """
    tags = tuple(dict.fromkeys(remarks.tags))
    data = msgspec.json.format(msgspec.json.encode(EditedRemarks(tags, remarks.note)))
    with replacing(locate_remarks(run)) as draft:
        draft.write_bytes(data + b"\n")


def join_remarks(provenance: Sequence[Provenance], *runs: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the tags and the notes of a run: those that readers wrote, or those that its commands recorded.

    Of several runs together it is those that were recorded.
    """
    recorded = tuple(dict.fromkeys(tag for each in provenance for tag in each.tags))
    notes = tuple(each.note for each in provenance if each.note)
    try:
        edited = read_remarks(runs[0]) if len(runs) == 1 else None
    except InvalidInput as error:
        return recorded, (*notes, str(error))
    if edited is None:
        return recorded, notes
    return edited.tags, (edited.note,) if edited.note else ()
