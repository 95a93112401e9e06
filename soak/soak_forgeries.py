"""Forge every value of a run file, row by row: `verify` names it, or the run's fingerprint is another one.

Then forge the outcomes of failed cells, which `verify` must name. `--rows N` of each table [0: all]. The forgeries are
those of `tests/journal/test_verification.py`.
"""

from __future__ import annotations

import importlib
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from common import ROOT, finish, folder, parameter, report

sys.path.insert(0, str(ROOT / "tests"))

from openfield.errors import JournalError

verification: Any = importlib.import_module("journal.test_verification")


def main(rows: int) -> None:
    named = proven = missed = 0
    with folder() as place:
        whole, forged = verification.make_run(place / "whole.sqlite"), place / "forged.sqlite"
        published = verification.fingerprint(whole)
        for table, column in verification.columns():
            if (table, column) in verification.LEASES:
                continue
            for row in list_rows(whole, table, rows):
                shutil.copy(whole, forged)
                if not forge(forged, table, column, row):
                    continue
                try:
                    found, other = bool(verification.find_faults(forged)), True
                    other = found or verification.fingerprint(forged) != published
                except JournalError:
                    found = other = True
                named, proven, missed = named + found, proven + (other and not found), missed + (not other)
    total = named + proven + missed
    report("forgeries", "values forged unnoticed", missed, 0, forged=total, named=named, by_fingerprint=proven)


def forge_outcomes() -> None:
    missed = []
    with folder() as place:
        whole, forged = verification.make_failed_run(place / "whole.sqlite"), place / "forged.sqlite"
        wrong = verification.find_faults(whole)
        for name in verification.OUTCOME_FORGERIES:
            shutil.copy(whole, forged)
            verification.forge_outcomes(forged, name)
            missed += [] if verification.find_faults(forged) else [name]
    count = len(verification.OUTCOME_FORGERIES)
    report("forgeries", "outcomes forged unnoticed", len(missed), 0, forged=count, missed=missed)
    report("forgeries", "faults found in a file as it was written", len(wrong), 0)


def list_rows(path: Path, table: str, count: int) -> list[int]:
    with closing(sqlite3.connect(path)) as db:
        found = [row for (row,) in db.execute(f"SELECT rowid FROM {table}")]
    return found[:: max(1, len(found) // count)] if count else found


def forge(path: Path, table: str, column: str, row: int) -> bool:
    """Change a value; return False if the file's own rules do not allow it."""
    with closing(sqlite3.connect(path)) as db, db:
        (value,) = db.execute(f"SELECT {column} FROM {table} WHERE rowid = ?", (row,)).fetchone()
        try:
            db.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (verification.alter(value), row))
        except sqlite3.IntegrityError:
            return False
    return True


if __name__ == "__main__":
    main(parameter("rows", 0, 3))
    forge_outcomes()
    finish()
