"""The record of a run: one SQLite file that a crash cannot tear.

Start with `writer`, whose `Journal` writes entries in one thread, and `reader`, whose `Run` reads them back. A
`recorder` gathers the steps of a rollout into entries; a `receipt` tells when they are on disk. `steps` writes and
reads chunks of steps and the tails that come before them. `schema` holds the tables; `leases` keep two processes from
playing or serving the same cell. `verification` computes a record again, `fingerprint` sums it up, `rules` keeps what
readers need of domains. `versions` tells versions of code apart, and `trust` decides which named code may run.
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
