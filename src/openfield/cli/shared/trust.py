"""Let code run that a run file names: only if this user signed or trusts it, and never without listing it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openfield.domain import Domain
    from openfield.journal.reader import Run


def admit_all(path: Path, trust: bool) -> None:
    """Let all code run that a run file names, and list it."""
    from openfield.journal.reader import Run
    from openfield.provenance.trust import admit_code, list_code

    with Run(path) as run:
        code = list_code(run)
        admit_code(run, code, trust)
    _list(path, code)


def admit_domains(run: Run, trust: bool) -> dict[str, Domain[Any]]:
    """Let the domains of a run file run, list those that it names, and return all of them."""
    from openfield.provenance.trust import admit_code, list_domain_code, trusted_domain

    code = list_domain_code(run)
    admit_code(run, code, trust)
    _list(run.path, code)
    return {name: trusted_domain(run, name, trust) for name in {trial.domain for trial in run.trials()}}


def _list(path: Path, code: Sequence[str]) -> None:
    if code:
        print(f"openfield: {path} names this code, which runs now: {', '.join(code)}", file=sys.stderr)
