from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import openfield as of
from openfield.runner.plan import make_plan
from openfield.runner.run import run_plan
from openfield.runner.shares import Share, share_plan
from support.players import copycat
from support.worlds import tiny_trials


def test_the_command_says_what_it_did(tmp_path: Path, openfield: Any) -> None:
    for number in (0, 1):
        of.run([copycat], tiny_trials(2)[number:], tmp_path / f"{number}.sqlite")
    said = openfield("merge", "0.sqlite", "1.sqlite", "-o", "joined.sqlite")
    words = "2 cells of 2 files in joined.sqlite. Files overlap in 1; equal records were kept once.\n"
    assert (said.status, said.out) == (0, words)
    assert openfield("verify", "joined.sqlite").status == 0
    said = openfield("merge", "1.sqlite", "-o", "one.sqlite")
    assert said.out == "1 cell of 1 file in one.sqlite.\n"
    missing = openfield("merge", "0.sqlite", "1.sqlite")
    assert missing.status == 2
    assert "--output" in missing.err


def test_missing_shares_are_named_for_each_plan(tmp_path: Path, openfield: Any) -> None:
    for number, seed in ((0, 0), (1, 9)):
        plan = make_plan([copycat], tiny_trials(4, seed=seed))
        run_plan(share_plan(plan, Share(number, 2)), tmp_path / f"{number}.sqlite")
    said = openfield("merge", "0.sqlite", "1.sqlite", "-o", "joined.sqlite")
    words = "1/2 of the plan of 0.sqlite (4 cells); 0/2 of the plan of 1.sqlite (4 cells)"
    assert (said.status, said.err) == (1, f"openfield: joined.sqlite lacks the shares {words}.\n")
    said = openfield("merge", "0.sqlite", "-o", "one.sqlite", "--json")
    (missing,) = json.loads(said.out)["missing"]
    assert (said.status, missing["shares"], missing["part"]) == (1, ["1/2"], "0.sqlite")
