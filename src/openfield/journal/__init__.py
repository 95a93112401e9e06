"""The record of a run: one SQLite file that a crash cannot tear.

Start with `writer`, whose `Journal` writes entries in one thread, and `reader`, whose `Run` reads them back. A
`recorder` gathers the steps of a rollout into entries; a `receipt` says when they are on disk. `steps` writes and
reads chunks of steps and the tails that come before them. `schema` holds the tables; `leases` keep two processes from
playing or serving the same cell. `replay` goes on with a recorded trial, `verification` computes a record again, and
`fingerprint` sums it up. Where a run comes from is in the package `provenance`.
"""

from typing import TYPE_CHECKING

from openfield.lazy import attach

if TYPE_CHECKING:
    from openfield.journal.reader import CellRecord, Episode, Run
    from openfield.journal.receipt import Receipt
    from openfield.journal.recorder import Recorder
    from openfield.journal.writer import Journal

__all__ = ["CellRecord", "Episode", "Journal", "Receipt", "Recorder", "Run"]

__getattr__, __dir__ = attach(__name__)
