"""What `pickle.load` makes of a file, from a process of its own that knows five names and little memory.

Reads a length in eight bytes and that many bytes, answers a line: `refused`, `other`, or the mapping and the code
book in one spelling. Run by `test_differential`.
"""

import io
import pickle
import resource
import struct
import sys
import warnings
from collections import defaultdict

import numpy as np

try:
    from numpy._core.multiarray import scalar
except ImportError:
    from numpy.core.multiarray import scalar

NAMES = {
    ("numpy.core.multiarray", "scalar"): scalar,
    ("numpy._core.multiarray", "scalar"): scalar,
    ("numpy", "dtype"): np.dtype,
    ("collections", "defaultdict"): defaultdict,
    ("builtins", "int"): int,
}
OLD = {("__builtin__", "int"), ("__builtin__", "long")}
MEMORY = 1 << 31


def main():
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    while head := sys.stdin.buffer.read(8):
        sys.stdout.write(answer(sys.stdin.buffer.read(struct.unpack("<Q", head)[0])) + "\n")
        sys.stdout.flush()


def answer(raw):
    try:
        return spelling(load(raw))
    except Exception as error:  # whatever a damaged file leads to
        return f"refused {type(error).__name__}"


def load(raw):
    """By the compiled reader; one that asks for too much memory for its memo by the other, which keeps it in a dict."""
    try:
        return Restricted(io.BytesIO(raw)).load()
    except MemoryError:
        return Patient(io.BytesIO(raw)).load()


def find(module, name):
    if (module, name) not in NAMES:
        raise pickle.UnpicklingError(f"{module}.{name}")
    return NAMES[module, name]


class Restricted(pickle.Unpickler):
    """That of C, which also renames what Python 2 wrote, but only below protocol 3."""

    def find_class(self, module, name):
        if (module, name) in OLD:
            return super().find_class(module, name)
        return find(module, name)


class Patient(pickle._Unpickler):
    """That of Python."""

    def find_class(self, module, name):
        if (module, name) in OLD and self.proto < 3:
            return int
        return find(module, name)


def spelling(found):
    pair = type(found) is tuple
    table, book = found if pair and len(found) == 2 else (found, None)
    if not isinstance(table, dict) or (pair and not isinstance(book, dict)):
        return "other"
    if not all(type(key) is tuple and len(key) == 3 and all(map(whole, key)) for key in table):
        return "other"
    rows = {tuple(int(part) for part in key): spelled(count) for key, count in table.items()}
    codes = None if book is None else {int(code): int(index) for code, index in book.items()}
    return repr((sorted(rows.items()), None if codes is None else sorted(codes.items())))


def whole(value):
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def spelled(count):
    return int(count) if whole(count) else float(count)


if __name__ == "__main__":
    main()
