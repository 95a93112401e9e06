"""Seal trials: take their root seed from the system's entropy, so that no agent can compute its trials beforehand.

The seed is kept in the run file and shown after the run, or shared by several runs through a file of its owner's.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openfield.errors import InvalidInput
from openfield.journal.reader import Run
from openfield.provenance.trust import admit_code
from openfield.registry import list_trial_code
from openfield.trial import Trial

if TYPE_CHECKING:
    from openfield.domain import Domain

SEED_BITS = 128
SEED_FACT, DIGEST_FACT = "sealed seed", "secret digest"
"""Facts of a run file: the root seed of a sealed run, or a digest that identifies a shared secret."""


def seal(run: Path, secret: Path | None) -> tuple[int, dict[str, str]]:
    """Return the root seed of a sealed run, and the facts that its file keeps.

    A run file that has a seed keeps it, so that the same command goes on. A shared secret stays in its own file.
    """
    if secret is not None:
        seed = read_secret(secret)
        return seed, {DIGEST_FACT: sha256(f"{seed:032x}".encode()).hexdigest()}
    known = _read_facts(run).get(SEED_FACT)
    seed = secrets.randbits(SEED_BITS) if known is None else int(known, 16)
    return seed, {SEED_FACT: f"{seed:032x}"}


def read_run_trials(run: Path, domain: Domain[Any], trust: bool = False) -> list[Trial]:
    """Return the trials of a run file, to be played again by other agents.

    Args:
        run: The run file.
        domain: The domain of the trials.
        trust: Let code run that they name even if this user did not sign it.

    Raises:
        InvalidInput: The file has no trials, or they name code that may not run.
    """
    with Run(run) as file:
        trials = list(file.trials())
        found = [trial for trial in trials if trial.domain in (domain.name, *domain.former_names)]
        admit_code(file, list_trial_code(found), trust)
        sources = sorted({file.facts.get(f"domain {trial.domain}", trial.domain) for trial in trials})
    if not found:
        others = f" It has trials of {', '.join(sources)}." if sources else ""
        raise InvalidInput(f"{run} has no trials of {domain.name}.{others}")
    return found


def _read_facts(run: Path) -> dict[str, str]:
    if not run.exists():
        return {}
    with Run(run) as file:
        return file.facts


def read_secret(path: Path) -> int:
    """Return the seed in a file, which only its owner may read. A file that does not exist yet is made."""
    try:
        if not path.exists():
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w", encoding="ascii") as file:
                file.write(f"{secrets.randbits(SEED_BITS):032x}\n")
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):  # a pipe would be waited for
            raise InvalidInput(f"{path} is not a regular file. Name one, or a new one, which is then made.")
        if stat.S_IMODE(mode) & 0o077:
            raise InvalidInput(f"Others can read {path}, so it is not a secret. Allow only its owner: chmod 600 {path}")
        text = path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be used as a secret: {error.strerror}.") from None
    except UnicodeDecodeError:
        text = ""
    if not re.fullmatch(r"[0-9a-f]{32}", text):
        raise InvalidInput(
            f"{path} is not a secret: it must hold 32 hexadecimal digits. A file that does not exist is made."
        )
    return int(text, 16)
