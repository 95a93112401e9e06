"""What the tests of pickles share."""

from openfield.objectives.pickle.reader import read_pickled_table
from openfield.objectives.tables.rows import Codes

NUMBERS = b"h\x01h\x03C\x08%s\x86R\x94" * 3 + b"\x87K\x01"
"""The opcodes of an entry whose key has three NumPy numbers, all of which the memo keeps."""
REFUSE = """
import pathlib, re, sys
from openfield.errors import InvalidInput
from openfield.objectives.formats.load import load_table
try:
    load_table(sys.argv[1])
except InvalidInput as error:
    print(error)
print(re.search(r"VmHWM:\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1])
"""
"""Prints why a table was refused, and the kB of memory its process had at most."""


def read(path):
    """The entries as a mapping, and the code book."""
    table, book = {}, {}
    for piece in read_pickled_table(path):
        if isinstance(piece, Codes):
            book |= dict(zip(piece.codes.tolist(), piece.indices.tolist(), strict=True))
        else:
            columns = [column.tolist() for column in piece]
            rows = list(zip(*columns, strict=True))
            assert not {row[:3] for row in rows} & set(table)
            table |= {row[:3]: row[3] for row in rows}
    return table, book
