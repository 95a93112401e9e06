"""Posted results, read: rows of ids and values, checked as strictly as the test wants it.

Bytes in, values out; stands between the wire and the answers.
"""

from __future__ import annotations

import csv
import io
import re
import struct
from collections.abc import Sequence
from operator import itemgetter
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from openfield.domains.ond.errors import Refusal
from openfield.domains.ond.testset.test import Test

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
"""What may be posted; further types begin with `x_`."""
NUMBERS_AT_ONCE = 8_000
"""How many numbers are Python's at a time: so many stay in the cache, and 41,400 are read in half the time."""

MAX_DIGITS = 15
"""Of numbers that are read as whole ones: so many are exact."""


class ResultTable(msgspec.Struct, frozen=True):
    """Posted rows of one type: where each belongs in the test, and what it says."""

    positions: NDArray[np.int64]
    numbers: NDArray[np.float64] | None
    """Rows x columns; None for types whose values are text, or where rows have no values at all."""
    texts: list[list[str]] | None = None


def read_results(kind: str, content: str, test: Test, number: int, compat: bool) -> ResultTable:
    """The rows of a posted part.

    Args:
        kind: The type of result.
        content: CSV text without a header.
        test: Whose samples they are about.
        number: The round they were posted for.
        compat: Whether to accept what old clients post: rows of other rounds, further columns, the last of duplicates.

    Raises:
        Refusal: A row is not about a sample of the test, or says what it may not.
    """
    span = test.span(number)
    if kind == "detection" and (usual := _read_usual(content, test, span)) is not None:
        return ResultTable(np.arange(span.start, span.stop), usual)
    ids, rests = split_rows(content, test)
    if ids == test.ids[span.start : span.stop]:  # as most clients post; saves a tenth of a millisecond of looking up
        positions = np.arange(span.start, span.stop)
    else:
        positions = _locate(ids, test, kind)
        _check_place(positions, test, number, compat, kind)
    if kind not in NUMERIC:
        return ResultTable(positions, None, [_fields(rest, kind) for rest in rests])
    if not any(rests):
        if compat:
            return ResultTable(positions, None)
        raise Refusal("InvalidResults", f"The {kind} rows have no values.")
    return ResultTable(positions, read_numbers(rests, kind))


def _read_usual(content: str, test: Test, span: range) -> NDArray[np.float64] | None:
    """One value from 0 to 1 for each sample of a round, in order, as most clients post it; None if it is anything else.

    The rows are made the JSON list `["id",0.1,"id",0.2]` and checked and read in one go, in half the time.
    """
    if test.has_commas or any(sign in content for sign in _RARE):
        return None
    text = content.removesuffix("\n").replace(",", '",').replace("\n", ',"')
    try:
        flat = _PAIRS.decode(f'["{text}]')
    except msgspec.DecodeError:
        return None
    if flat[::2] != test.ids[span.start : span.stop]:
        return None
    return np.array(flat[1::2], dtype=np.float64)[:, None]  # no text: there is no quote it could have come in


def check_columns(kind: str, columns: int, test: Test, protocol: str) -> None:
    """Holds the number of values in a row against what the test's metadata let its clients know, and nothing else.

    Novel labels may lie beyond K; they are never hit, and columns for them would tell how many there are. Clusters are
    as many as the agent found.

    Raises:
        Refusal: There are too few or too many.
    """
    known = test.stated_known
    if kind == "detection" and columns > 2:
        raise Refusal("InvalidResults", f"detection rows have 1 or 2 values, not {columns}.")
    if kind == "classification" and known is not None and columns != known + 1:
        why = f"{known} known classes and the unknown one"
        raise Refusal("InvalidResults", f"classification rows have {known + 1} values ({why}), not {columns}.")
    if kind == "characterization" and protocol == "CONDDA" and known is not None and columns <= known:
        why = f"{known} known classes, the novel ones you found, and one for the rest"
        raise Refusal(
            "InvalidResults", f"characterization rows have {known + 1} values or more ({why}), not {columns}."
        )


def read_numbers(rests: Sequence[str], kind: str) -> NDArray[np.float64]:
    """Rows of comma separated numbers from 0 to 1, all of one length."""
    columns = rests[0].count(",") + 1
    step = max(NUMBERS_AT_ONCE // columns, 1)
    parts = []
    for first in range(0, len(rests), step):
        part = rests[first : first + step]
        even = _read_even(part, columns)
        parts.append(_read_any(part, columns, kind) if even is None else even)
    table = (parts[0] if len(parts) == 1 else np.concatenate(parts)).reshape(len(rests), columns)
    if not (table.min() >= 0 and table.max() <= 1):  # which a NaN is not
        raise Refusal("InvalidResults", f"The {kind} values must be numbers from 0 to 1.")
    return table


def _read_even(rests: Sequence[str], columns: int) -> NDArray[np.float64] | None:
    """Numbers that all have one digit and then equally many, as most tables have, in a third of the time.

    None if they are anything else. Their digits are whole numbers below 2**53, so that one division gives what any
    reader gives.
    """
    size, rest = divmod(len(rests[0]) + 1, columns)
    if rest or not 4 <= size <= MAX_DIGITS + 2 or len(set(map(len, rests))) != 1:
        return None
    text = (",".join(rests) + ",").encode()
    if len(text) != len(rests) * columns * size:  # some signs are not of one byte
        return None
    signs = np.frombuffer(text, np.uint8).reshape(-1, size)
    ends, points, digits = signs[:, -1] == ord(","), signs[:, 1] == ord("."), signs - np.uint8(ord("0"))
    digits[:, 1] = digits[:, -1] = 0
    if not (ends.all() and points.all() and digits.max() <= 9):
        return None
    decimals = size - 3
    worth = np.array([10**decimals, 0, *(10**place for place in range(decimals - 1, -1, -1)), 0], dtype=np.float64)
    found: NDArray[np.float64] = digits.astype(np.float64) @ worth / 10.0**decimals
    return found


def _read_any(rests: Sequence[str], columns: int, kind: str) -> NDArray[np.float64]:
    pack = struct.Struct(f"{columns}d").pack  # in two fifths of the time np.array takes
    try:
        return np.frombuffer(b"".join([pack(*row) for row in _rows_of_numbers(rests, kind)]))
    except struct.error:
        raise Refusal("InvalidResults", f"The {kind} rows differ in their number of columns.") from None


def _rows_of_numbers(rests: Sequence[str], kind: str) -> list[list[float]]:
    """JSON's reader is the fastest there is (1 ms for 41,400 numbers, Python's float 6); `.5` needs the other."""
    try:
        rows = _TABLE.decode(f"[[{'],['.join(rests)}]]")
        if len(rows) == len(rests):  # unless somebody posts brackets
            return rows
    except msgspec.DecodeError:
        pass
    try:
        if not any("_" in rest for rest in rests):  # which Python takes for a separator of digits
            return [[float(part) for part in rest.split(",")] for rest in rests]
    except ValueError:
        pass
    raise Refusal("InvalidResults", f"The {kind} values must be numbers.")


def split_rows(content: str, test: Test) -> tuple[list[str], list[str]]:
    """Ids and the rest of every row; an id that holds a comma is quoted by `|`, or as the test has it."""
    if not test.has_commas and not any(
        sign in content for sign in _RARE
    ):  # then it is all cuts at the first comma, at a third of the cost
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
    """A row that begins with an id as a round shows it, quotes and commas included; of several such ids the longest."""
    if not test.has_commas:
        key, _, rest = line.partition(",")
        return (key.strip(), rest.strip()) if key.strip() in test.index else None
    cuts = [at for at, sign in enumerate(line) if sign == ","]
    found = next((at for at in [len(line), *cuts[::-1]] if line[:at] in test.index), None)
    return None if found is None else (line[:found], line[found + 1 :].strip())


def split_row(line: str) -> tuple[str, str]:
    """The id of a row, quoted or not, and the rest."""
    key, rest = _unquote(line) if line[0] in '|"' else line.partition(",")[::2]
    return key.strip(), rest.strip()


def quote_id(key: str) -> str:
    """An id as the protocol's tables have it."""
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
        raise Refusal("InvalidResults", f"'{stranger[:80]}' in the {kind} rows is no sample of this test.")
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
        told = f"{len(positions)} of the {len(span)} samples of round {number}"
        raise Refusal("InvalidResults", f"The {kind} rows are about {told} only.")


def _fields(rest: str, kind: str) -> list[str]:
    try:
        return next(csv.reader([rest], delimiter=",", quotechar="|"), [])
    except csv.Error:  # a line ends in the middle of it, or a field has more than 128 kB
        raise Refusal("InvalidResults", f"A row of the {kind} results cannot be read: {rest[:40]!a}.") from None


_FIRST, _LAST = itemgetter(0), itemgetter(2)
_RARE = ("|", '"', " ", "\t", "\r", "\\")
_PAIRS: msgspec.json.Decoder[Any] = msgspec.json.Decoder(list[str | Annotated[float, msgspec.Meta(ge=0, le=1)]])
_TABLE: msgspec.json.Decoder[list[list[float]]] = msgspec.json.Decoder(list[list[float]])
