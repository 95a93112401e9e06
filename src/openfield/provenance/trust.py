"""Decide whether code that a run file names may run here.

A run file names code: the files of domains and agents, and the commands of programs. Reading a file runs none of it. To
go on with a run, to replay it or to film it, the code must run. It may if this user signed it, which a run does with a
key of the user's own, or if the user says `--trust`. A signature covers what the code is and where: changed or moved
code is not signed.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from openfield.errors import DamagedRun, InvalidInput, UnknownName
from openfield.parameters import AgentText, is_command, is_control, strip_parameters
from openfield.provenance.versions import identify_source
from openfield.registry import find_family, known_domain, list_trial_code, split_family, use_recorded

if TYPE_CHECKING:
    from openfield.domain import Domain
    from openfield.journal.reader import Run

KEY_BYTES = 32
SIGNATURE = "signature"
"""How the facts begin that hold signatures: the key's id and a digest of the code follow."""


def is_code(source: str | AgentText | None) -> bool:
    """Return whether a source of an agent or domain names code, and not something that is installed."""
    if source is None:
        return False
    plain = source.place if isinstance(source, AgentText) else strip_parameters(source)
    return (":" in plain or plain.endswith(".py")) and not is_control(plain)


def is_domain_code(source: str) -> bool:
    """Return whether the source of a domain names code; `gym:CartPole-v1` is found among what is installed.

    Code that its novelties name is named by the trials too.
    """
    family, text = split_family(source)
    return is_code(find_family(family).strip_data(text) if family else text)


def sign_code(sources: Iterable[str | AgentText | None]) -> dict[str, str]:
    """Return the facts that let this user run named code again, or nothing if no key can be kept."""
    code = [source for source in sources if source is not None and is_code(source)]
    key = _read_key(make=True) if code else None
    return {} if key is None else {_name_fact(key, each): _sign(key, each) for each in map(_describe, code)}


def list_code(run: Run) -> list[str]:
    """Return the code that a run file names, domains first."""
    agents = sorted(source for source in run.agents.values() if source is not None and is_code(source))
    return list(dict.fromkeys([*list_domain_code(run), *agents]))


def list_domain_code(run: Run) -> list[str]:
    """Return the domains that a run file names and that are not installed, and the classes that its trials name."""
    facts, trials = run.facts, list(run.trials())
    named = (facts.get(f"domain {name}") for name in sorted({trial.domain for trial in trials}))
    domains = [source for source in named if source is not None and is_domain_code(source)]
    return [*domains, *list_trial_code(trials)]


def admit_code(run: Run, code: Iterable[str], trust: bool = False) -> None:
    """Refuse code that a run file names unless this user signed or trusts it.

    Raises:
        InvalidInput: It is neither signed nor trusted.
    """
    facts, key = run.facts, _read_key()
    foreign = [source for source in code if not trust and not _is_signed(facts, key, source)]
    if foreign:
        raise InvalidInput(
            f"{run.path} names code that you did not sign, or that has changed or moved since: {', '.join(foreign)}. "
            "If you trust it, add --trust."
        )


def trusted_domain(run: Run, name: str, trust: bool = False) -> Domain[Any]:
    """Return the domain of a trial in a run file: a known one, or the one that the file names if it may run here.

    Raises:
        InvalidInput: It may not.
        DamagedRun: The file names another domain.
        UnknownName: It is not installed, and the file does not say where it is found.
    """
    source = run.facts.get(f"domain {name}", "")
    admit_code(run, list_trial_code(trial for trial in run.trials() if trial.domain == name), trust)
    try:
        return known_domain(name, source)
    except UnknownName:
        if not source:
            raise
    admit_code(run, [source] if is_domain_code(source) else [], trust)
    domain = use_recorded(source, name)
    if domain.name != name:
        raise DamagedRun(f"{run.path} is damaged: {source} is the domain '{domain.name}', not '{name}'.")
    return domain


def key_path() -> Path:
    """Return where the key of this user is kept."""
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "openfield" / "key"


def user_key() -> bytes | None:
    """Return the key of this user, which is made on first use; None if none can be kept.

    Raises:
        InvalidInput: Others can read it.
    """
    return _read_key(make=True)


def _is_signed(facts: dict[str, str], key: bytes | None, source: str) -> bool:
    if key is None:
        return False
    code = _describe(source)
    return hmac.compare_digest(facts.get(_name_fact(key, code), "").encode(), _sign(key, code).encode())


def _describe(source: str | AgentText) -> bytes:
    """Return the signed text: the source, the files it leads to from here, and their content.

    A command can reach any file by a name that is relative to the folder it starts in, so that folder is signed too.
    """
    whole = str(source)
    text = split_family(whole)[1]
    found = [identify_source(source), identify_source(text) if text != whole else None]
    codes = [code for code in found if code is not None]
    paths = sorted(str(path) for code in codes for path in code.paths)
    parts = {name: part for code in codes for name, part in code.parts.items()}
    folder = _name_folder() if is_command(whole) else ""
    return msgspec.json.encode([whole, folder, paths, parts], order="sorted")


def _name_folder() -> str:
    try:
        return str(Path.cwd())
    except FileNotFoundError:  # it was removed
        return ""


def _name_fact(key: bytes, code: bytes) -> str:
    key_id = hashlib.sha256(b"id of " + key).hexdigest()[:12]
    return f"{SIGNATURE} {key_id} {hashlib.sha256(code).hexdigest()[:12]}"


def _sign(key: bytes, code: bytes) -> str:
    return hmac.new(key, code, hashlib.sha256).hexdigest()


def _read_key(make: bool = False) -> bytes | None:
    """Return the key of this user, which is made on first use, or None without a home that can be written.

    Raises:
        InvalidInput: Others can read it, so that they can sign.
    """
    path = key_path()
    try:
        if make and not path.exists():
            _make_key(path)
        key, mode = path.read_bytes(), path.stat().st_mode
    except (OSError, RuntimeError):  # there is no home, or it is read-only
        return None
    if mode & 0o077:
        raise InvalidInput(f"Others can read {path} and sign code for you. Remove it; a new key is made.")
    return key if len(key) == KEY_BYTES else None


def _make_key(path: Path) -> None:
    """Write a new key. It appears whole, and the first of several processes wins."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f"key.{os.getpid()}.{secrets.token_hex(4)}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(handle, secrets.token_bytes(KEY_BYTES))
        os.fsync(handle)
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        os.close(handle)
        draft.unlink()
