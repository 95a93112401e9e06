from __future__ import annotations

from pathlib import Path
from typing import Any

import openfield as of
from support.players import copycat
from support.worlds import tiny_trials


def test_the_command_says_what_it_did(tmp_path: Path, openfield: Any) -> None:
    for number in (0, 1):
        of.run([copycat], tiny_trials(2)[number:], tmp_path / f"{number}.sqlite")
    said = openfield("merge", "0.sqlite", "1.sqlite", "-o", "joined.sqlite")
    words = "2 cells of 2 files in joined.sqlite. Files overlap in 1; equal records were kept once.\n"
    assert (said.status, said.out) == (0, words)
    assert openfield("verify", "joined.sqlite").status == 0
    missing = openfield("merge", "0.sqlite", "1.sqlite")
    assert missing.status == 2
    assert "--output" in missing.err
