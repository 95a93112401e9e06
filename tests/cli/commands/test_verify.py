"""`openfield verify`: damaged parts are named."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any


def test_verify_names_a_damaged_chunk(openfield: Any, run: Path) -> None:
    assert openfield("verify", run).out == f"{run} is as it was written.\n"
    assert json.loads(openfield("verify", run, "--json").out) == {"run": str(run), "faults": []}
    with sqlite3.connect(run) as db:
        (cell,) = db.execute("SELECT cell FROM chunks LIMIT 1").fetchone()
        db.execute("UPDATE chunks SET data = zeroblob(9) WHERE cell = ?", (cell,))
    db.close()
    said = openfield("verify", run)
    assert said.status == 2
    assert f"A chunk of the record is damaged (cell {cell}, attempt 1, turns 0 to " in said.err
    assert json.loads(openfield("verify", run, "--json").out)["faults"]
