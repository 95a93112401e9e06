"""Reads the answers of agents: posted rows, checked as strictly as the test wants it, and the tables of local agents.

Between the server, which gets text, and `agent_answers.py`, which keeps values. Local agents have the column of the
unknown class first, tests may have it last.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from contextlib import suppress
from operator import itemgetter
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from openfield.core import Belief
from openfield.domains.ond.actions import PackedRows
from openfield.domains.ond.errors import Refusal
from openfield.domains.ond.testset.test import Test
from openfield.errors import AgentProtocol

BOMS = (b"\xff\xfe", b"\xfe\xff")
NUMERIC = ("detection", "classification", "characterization")
TYPES = (
    *NUMERIC,
    "transcription",
    "labels",
    "pen_pressure",
    "letter_size",
    "word_spacing",
    "slant_angle",
    "appearance",
)
"""The types of results; further ones begin with `x_`."""
MAX_DIGITS = 15
"""Digits of whole numbers that are exact in 64 bits."""
MIN_BYTES = 10_000
"""Length of text from which on numbers of equally many digits are read in a way of their own."""


class ResultTable(msgspec.Struct, frozen=True):
    """Posted rows of one type: the place of each in the test, and its values."""

    positions: NDArray[np.int64]
    numbers: NDArray[np.float64] | None
    """Rows x columns; None for types whose values are text, or where rows have no values at all."""
    texts: list[list[str]] | None = None
    packed: PackedRows | None = None
    """The rows as a record keeps them, where that is shorter than their text."""


def read_posted_rows(kind: str, content: str | PackedRows, test: Test, number: int, compat: bool) -> ResultTable:
    """Read the rows that were posted for a round, CSV text without a header; refuse those that do not fit the test.

    With `compat`, what old clients post is accepted: rows of other rounds, further columns, the last of duplicates.
    """
    span = test.span(number)
    packed = content if isinstance(content, PackedRows) else None
    ids, rests = split_rows(content, test) if isinstance(content, str) else (content.ids.split("\n"), [])
    if ids == test.ids[span.start : span.stop]:  # as most clients post; saves a tenth of a millisecond of looking up
        positions = np.arange(span.start, span.stop)
    else:
        positions = _locate(ids, test, kind)
        _check_place(positions, test, number, compat, kind)
    if packed is not None:
        return ResultTable(positions, _check_range(_unpack(packed, len(ids)), kind), packed=packed)
    if kind not in NUMERIC:
        return ResultTable(positions, None, [_fields(rest, kind) for rest in rests])
    if not any(rests):
        if compat:
            return ResultTable(positions, None)
        raise Refusal("InvalidResults", f"The {kind} rows have no values.")
    numbers, packed = read_numbers(ids, rests, kind)
    return ResultTable(positions, numbers, packed=packed)


def format_rows(content: str | PackedRows) -> str:
    """Return posted rows as text, each on a line of its own."""
    if isinstance(content, str):
        return content if content.endswith("\n") or not content else f"{content}\n"
    ids, places = content.ids.split("\n"), content.decimals
    table = _as_whole(content).reshape(len(ids), -1).tolist()
    one = 10**places
    rows = (",".join(f"{value // one}.{value % one:0{places}d}" for value in row) for row in table)
    return "".join(f"{key},{row}\n" for key, row in zip(ids, rows, strict=True))


def check_columns(kind: str, columns: int, test: Test, protocol: str) -> None:
    """Check the number of values in a row against the metadata that clients know, and nothing else.

    Novel labels may lie beyond K. They are never hit, and columns for them would reveal their number. The number of
    clusters is free.
    """
    known = test.stated_known
    if kind == "detection" and columns > 2:
        raise Refusal("InvalidResults", f"detection rows have 1 or 2 values, not {columns}.")
    if kind == "classification" and known is not None and columns != known + 1:
        why = f"{known} known classes and the unknown one"
        problem = f"classification rows have {known + 1} values ({why}), not {columns}."
        raise Refusal("InvalidResults", f"{problem} A server started with --compat takes any number.")
    if kind == "characterization" and protocol == "CONDDA" and known is not None and columns <= known:
        why = f"{known} known classes, the novel ones you found, and one for the rest"
        raise Refusal(
            "InvalidResults", f"characterization rows have {known + 1} values or more ({why}), not {columns}."
        )


def read_numbers(ids: Sequence[str], rests: Sequence[str], kind: str) -> tuple[NDArray[np.float64], PackedRows | None]:
    """Read rows of comma separated numbers from 0 to 1, all of one length; return them also packed, if they can be."""
    even = _read_even(rests)
    if even is not None:
        packed = PackedRows("\n".join(ids), *even)
        return _check_range(_unpack(packed, len(rests)), kind), packed
    rows = _read_rows(rests, kind)
    if len({len(row) for row in rows}) > 1 or not rows[0]:
        raise Refusal("InvalidResults", f"The {kind} rows differ in their number of columns.")
    return _check_range(np.array(rows, dtype=np.float64), kind), None


def _check_range(table: NDArray[np.float64], kind: str) -> NDArray[np.float64]:
    if not (table.min() >= 0 and table.max() <= 1):  # which a NaN is not
        raise Refusal("InvalidResults", f"The {kind} values must be numbers from 0 to 1.")
    return table


def _read_even(rests: Sequence[str]) -> tuple[int, bytes] | None:
    """Read numbers such as 0.125 that all have equally many digits, as in most large tables; None if they have not.

    Returns:
        How many decimals they have, and the numbers without their point as `PackedRows` keeps them. They are exact, so
        that one division gives what any reader gives, six times as fast.
    """
    size, uneven = divmod(len(rests[0]) + 1, rests[0].count(",") + 1)
    if uneven or not 4 <= size <= MAX_DIGITS + 2 or len(rests) * len(rests[0]) < MIN_BYTES:
        return None
    text = (",".join(rests) + ",").encode()
    if len(text) % size or {len(rest) for rest in rests} != {len(rests[0])}:
        return None
    signs = np.frombuffer(text, np.uint8).reshape(-1, size)
    digits = signs - np.uint8(ord("0"))
    digits[:, 1] = digits[:, -1] = 0
    if (signs[:, 1] != ord(".")).any() or (signs[:, -1] != ord(",")).any() or digits.max() > 9:
        return None
    if digits[:, 0].max() > 1:
        return None  # out of range, which is reported where any number is
    worth = 10.0 ** np.array([size - 3, 0, *range(size - 4, -1, -1), 0])
    return size - 3, (digits.astype(np.float64) @ worth).astype(_whole_type(size - 3)).tobytes()


def _whole_type(decimals: int) -> str:
    return "<u4" if decimals < 10 else "<u8"


def _as_whole(packed: PackedRows) -> NDArray[Any]:
    return np.frombuffer(packed.values, _whole_type(packed.decimals))


def _unpack(packed: PackedRows, rows: int) -> NDArray[np.float64]:
    return np.asarray(_as_whole(packed).astype(np.float64) / 10.0**packed.decimals).reshape(rows, -1)


def _read_rows(rests: Sequence[str], kind: str) -> list[list[float]]:
    """Read rows as JSON, or `.5` and the like as Python does, which takes six times as long."""
    rows: list[list[float]] = []
    try:
        rows = _TABLE.decode(f"[[{'],['.join(rests)}]]")
    except msgspec.DecodeError:
        with suppress(ValueError):
            if not any(
                "_" in rest or not rest.isascii() for rest in rests
            ):  # Python reads 1_0 and other scripts' digits
                rows = [[float(part) for part in rest.split(",")] for rest in rests]
    if len(rows) != len(rests):  # also if brackets were posted
        raise Refusal("InvalidResults", f"The {kind} values must be numbers.")
    return rows


def split_rows(content: str, test: Test) -> tuple[list[str], list[str]]:
    """Return the ids and the rests of all rows. An id that holds a comma is quoted by `|`, or as the test has it."""
    if not test.has_commas and not any(sign in content for sign in _RARE):  # at a third of the cost
        rows = [line.partition(",") for line in content.split("\n") if line]
        ids, rests = list(map(_FIRST, rows)), list(map(_LAST, rows))
    else:
        lines = [line for line in content.replace("\r\n", "\n").split("\n") if line.strip()]
        pairs = [_split_known(line, test) or split_row(line) for line in lines]
        ids, rests = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    if not ids:
        raise Refusal("InvalidResults", "There are no rows.")
    return ids, rests


def _split_known(line: str, test: Test) -> tuple[str, str] | None:
    """Split a row that begins with an id as a round shows it, with quotes and commas; the longest such id counts."""
    if not test.has_commas:
        key, _, rest = line.partition(",")
        return (key.strip(), rest.strip()) if key.strip() in test.index else None
    cuts = [at for at, sign in enumerate(line) if sign == ","]
    found = next((at for at in [len(line), *cuts[::-1]] if line[:at] in test.index), None)
    return None if found is None else (line[:found], line[found + 1 :].strip())


def split_row(line: str) -> tuple[str, str]:
    """Return the id of a row, quoted or not, and the rest."""
    key, rest = _unquote(line) if line[0] in '|"' else line.partition(",")[::2]
    return key.strip(), rest.strip()


def quote_id(key: str) -> str:
    """Return an id as the protocol's tables have it."""
    return f"|{key.replace('|', '||')}|" if "," in key or key[:1] in '|"' else key


def read_text(content: bytes) -> str:
    """Decode text of the protocol."""
    return content.decode(text_encoding(content))


def text_encoding(content: bytes) -> str:
    """Return the encoding of text of the protocol: utf-16 if it begins with a BOM, utf-8 otherwise."""
    return "utf-16" if content[:2] in BOMS else "utf-8-sig"


def read_ids(content: bytes) -> list[str]:
    """Return the sample ids in the body of a round.

    Rounds of text tests begin with a BOM, have further columns, and their texts may span several lines.
    """
    if content[:2] in BOMS:
        return [row[0] for row in csv.reader(io.StringIO(read_text(content)), quotechar="|") if row]
    return [line for line in re.split(r"\r?\n", content.decode()) if line]


def _unquote(line: str) -> tuple[str, str]:
    quote = line[0]
    end = line.find(quote, 1)
    while end != -1 and line[end + 1 : end + 2] == quote:  # a doubled quote stands for one
        end = line.find(quote, end + 2)
    if end == -1:
        return line, ""
    return line[1:end].replace(quote * 2, quote), line[end + 1 :].removeprefix(",")


def _locate(ids: Sequence[str], test: Test, kind: str) -> NDArray[np.int64]:
    found = [test.index.get(key, -1) for key in ids]
    if min(found) < 0:
        stranger = ids[found.index(-1)]
        raise Refusal("InvalidResults", f"'{stranger[:80]}' in the {kind} rows is not a sample of this test.")
    return np.array(found, dtype=np.int64)


def _check_place(positions: NDArray[np.int64], test: Test, number: int, compat: bool, kind: str) -> None:
    if compat:
        return
    if len(set(positions.tolist())) != len(positions):
        raise Refusal("InvalidResults", f"A sample occurs twice in the {kind} rows.")
    span = test.span(number)
    if kind not in ("detection", "classification", "labels"):
        return  # others may come for the whole test with round 0
    if positions.min() < span.start or positions.max() >= span.stop:
        raise Refusal("InvalidResults", f"The {kind} rows must be about samples of round {number}.")
    if len(positions) < len(span):  # the rest could not be posted later, and the test not be scored
        part = f"{len(positions)} of the {len(span)} samples of round {number}"
        raise Refusal("InvalidResults", f"The {kind} rows are about {part} only.")


def _fields(rest: str, kind: str) -> list[str]:
    try:
        return next(csv.reader([rest], delimiter=",", quotechar="|"), [])
    except csv.Error:  # a line ends in the middle of it, or a field has more than 128 kB
        raise Refusal("InvalidResults", f"A row of the {kind} results cannot be read: {rest[:40]!a}.") from None


_FIRST, _LAST = itemgetter(0), itemgetter(2)
_RARE = ("|", '"', " ", "\t", "\r", "\\")
_TABLE: msgspec.json.Decoder[list[list[float]]] = msgspec.json.Decoder(list[list[float]])


LABELLED = ("classification", "labels")
"""The kinds of feedback that name classes."""


def read_table(p: Any, rows: int) -> NDArray[np.float64]:
    """Read the scores of an agent as a table: as many rows as expected, of equal length, all probabilities."""
    try:
        fits = len(p) == rows and len({len(row) for row in p}) == 1 and np.asarray(p).dtype.kind in "biuf"  # no text
        table = np.array(p, dtype=float) if fits else np.zeros(0)
    except (TypeError, ValueError):
        fits = False
    if not fits or table.ndim != 2:
        raise AgentProtocol(f"scores must be a table with {rows} rows of equal length")
    if not ((table >= 0) & (table <= 1)).all():
        raise AgentProtocol("scores must be numbers from 0 to 1")
    return table


def read_beliefs(belief: Belief | None, rows: int) -> NDArray[np.float64]:
    """Return the belief of an agent for each sample; one probability is that of all."""
    said = belief.novel if belief is not None else 0.0
    worlds = np.asarray([said] * rows if isinstance(said, float | int) else said)
    if worlds.dtype.kind not in "biuf" or worlds.shape != (rows,) or not ((worlds >= 0) & (worlds <= 1)).all():
        raise AgentProtocol(f"the belief must be one probability, or one for each of the {rows} samples")
    return worlds


def put_unknown_last(scores: ArrayLike) -> NDArray[np.float64]:
    """Turn scores [unknown, 1 to K] into those of tests whose classes are 0 to K-1 and whose unknown class is K."""
    return np.roll(np.asarray(scores, dtype=float), -1, axis=1)


def number_from_one(kind: str, lines: Sequence[str], known: int) -> list[str]:
    """Turn bought labels of such tests, 0 to K-1 and more, into those of agents: 1 to K, and 0 for unknown classes.

    Feedback of a kind that names no classes stays as it is.
    """
    return [_renumber(line, known) for line in lines] if kind in LABELLED else list(lines)


def _renumber(line: str, known: int) -> str:
    key, label = split_row(line)
    if not label.lstrip("-").isdecimal():  # five texts, no distance: nothing to number
        return line
    number = int(label)
    return f"{quote_id(key)},{number + 1 if 0 <= number < known else 0}"
