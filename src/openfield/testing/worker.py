"""A process that plays for the conformance kit and is ended when it hangs.

Its hash seed differs from that of this process, and its clocks can be made to drift under a world (`clocks.py`).
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from openfield.processes.child import Caller
from openfield.testing.clocks import replace_clocks

T = TypeVar("T")


class Worker(Caller):
    """A process that calls functions for this one. Its clocks are replaced before any domain can import a real one."""

    def __init__(self, patience: float, inline: bool = False) -> None:
        """Start nothing yet.

        Args:
            patience: Seconds without a heartbeat after which the process is ended.
            inline: Call functions in this process, for what no other process can import. It cannot end what hangs.
        """
        other = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"  # it orders sets of words otherwise
        super().__init__(patience, replace_clocks, script=True, environment={"PYTHONHASHSEED": other})
        self.inline = inline

    def call(self, kind: type[T], function: Callable[..., T], *values: Any) -> T:
        """Call a function and return its result; errors are those of `Caller`, unless it is called in this process."""
        return function(*values) if self.inline else super().call(kind, function, *values)


@contextmanager
def global_random(seed: int) -> Iterator[None]:
    """Seed the global random sources, and restore them afterwards."""
    before, numpy_before = random.getstate(), np.random.get_state()
    random.seed(seed)
    np.random.seed(seed)
    try:
        yield
    finally:
        random.setstate(before)
        np.random.set_state(numpy_before)
