"""Say how a run was made: the command, the code and its versions, and the machine.

Every command that plays cells leaves one such record among the facts of the run file. Reports print them.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from openfield import __version__
from openfield.domain import Domain
from openfield.errors import DamagedRun, InvalidInput
from openfield.installation import list_extras
from openfield.journal.fingerprint import CodeVersion
from openfield.journal.reader import CellRecord, Run
from openfield.journal.schema import SourceText
from openfield.parameters import is_control
from openfield.provenance.versions import Code, find_versions, identify_file, identify_object, identify_source

FACT = "command "
"""How the keys of these facts begin; the moment follows."""
SECRET_OPTIONS = ("--token", "--team")
"""Options whose values are not recorded."""
GIT_SECONDS = 5.0
MAX_NOTE = 2_000
MAX_SOURCE = 1_000_000
"""Bytes of a source file that is kept in the run file."""


class Provenance(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How some cells of a run were made."""

    started: str
    command: str
    revision: str = ""
    """The git revision of the working folder; empty if it has none."""
    dirty: bool = False
    """Whether files that git knows had been changed since that revision."""
    versions: dict[str, str] = {}
    machine: str = ""
    note: str = ""
    tags: tuple[str, ...] = ()
    agents: dict[str, dict[str, CodeVersion]] = {}
    """Domain -> agent -> its version."""
    domains: dict[str, CodeVersion] = {}
    wrappers: dict[str, CodeVersion] = {}
    """Classes of users that change the world, and the files they are in."""
    experiment: CodeVersion | None = None


class Remarks(msgspec.Struct, frozen=True):
    """What the user says about a command, and the experiment file that it was given."""

    note: str = ""
    tags: tuple[str, ...] = ()
    experiment: Path | None = None

    def __post_init__(self) -> None:
        """Refuse a note or a tag that cannot be printed."""
        if len(self.note) > MAX_NOTE or not self.note.replace("\n", "").isprintable():
            raise InvalidInput(f"A note is at most {MAX_NOTE} characters, all of which can be printed.")
        for tag in self.tags:
            if not re.fullmatch(r"[\w.:+-]{1,60}", tag):
                raise InvalidInput(f"A tag is a word of letters, digits and . : + - _, not '{tag[:60]}'.")


class RunOrigin:
    """The code behind the agents and domains of a plan, and the record of it."""

    def __init__(
        self,
        agents: Mapping[tuple[str, str], Code],
        domains: Iterable[Domain[Any]],
        remarks: Remarks | None = None,
        wrappers: Iterable[str] = (),
    ) -> None:
        """Take the code of agents, and look for that of domains and wrappers.

        Args:
            agents: The code of agents, by domain and name.
            domains: The domains that are played.
            remarks: What the user says about the command.
            wrappers: Code that trials name, as `file.py`, `file.py:NAME` or `package.module:NAME`.
        """
        self._remarks = remarks or Remarks()
        self._agents = agents
        self._extras = {domain.extra for domain in domains if domain.extra}
        self._domains = {domain.name: identify_object(type(domain)) for domain in domains}
        found = {name: identify_source(name) for name in wrappers}
        self._wrappers = {name: code for name, code in found.items() if code is not None and code.files}
        file = self._remarks.experiment
        self._experiment = None if file is None else identify_file(file)

    def facts(self) -> dict[str, str]:
        """Return the record of this command as a fact of the run file."""
        now = datetime.now(UTC)
        agents: dict[str, dict[str, CodeVersion]] = {}
        for (domain, name), code in self._agents.items():
            agents.setdefault(domain, {})[name] = code.version
        revision, dirty = read_revision(Path.cwd())
        record = Provenance(
            started=f"{now:%Y-%m-%d %H:%M} UTC",
            command=name_command(sys.argv),
            revision=revision,
            dirty=dirty,
            versions=self._versions(),
            machine=f"{platform.platform()}, {os.cpu_count()} processors",
            note=self._remarks.note,
            tags=self._remarks.tags,
            agents=agents,
            domains={name: code.version for name, code in self._domains.items()},
            wrappers={name: code.version for name, code in self._wrappers.items()},
            experiment=None if self._experiment is None else self._experiment.version,
        )
        return {f"{FACT}{now:%Y-%m-%d %H:%M:%S.%f}": msgspec.json.encode(record).decode()}

    def sources(self) -> list[SourceText]:
        """Return the text of every source file that belongs to no package and is not too large."""
        found: dict[str, SourceText] = {}
        for code in self._codes():
            for name, path in code.files.items():
                digest = code.parts[f"file {name}"]
                with suppress(OSError, UnicodeDecodeError):
                    if digest and path.stat().st_size <= MAX_SOURCE:
                        found[digest] = SourceText(digest, name, path.read_bytes().decode())
        return list(found.values())

    def _codes(self) -> list[Code]:
        experiment = [] if self._experiment is None else [self._experiment]
        return [*self._agents.values(), *self._domains.values(), *self._wrappers.values(), *experiment]

    def _versions(self) -> dict[str, str]:
        """Return the versions of Python, openfield, and the packages that agents and domains use."""
        modules = set().union(*(code.imports for code in self._codes())) - sys.stdlib_module_names - {"openfield"}
        needed = list_extras(*self._extras) if self._extras else {}
        extras = {name: found for packages in needed.values() for name, found in packages.items() if found}
        versions = find_versions({"numpy", *modules}) | extras
        own = {"openfield": __version__, "python": platform.python_version()}
        return own | {name: versions[name] for name in sorted(versions)}


def read_provenance(facts: Mapping[str, str], path: str | Path) -> list[Provenance]:
    """Return what commands said about a run, in the order they were given, also in files that were merged."""
    said = sorted((key, text) for key, text in facts.items() if key.startswith(FACT))
    try:
        return [msgspec.json.decode(text, type=Provenance) for _, text in said]
    except msgspec.DecodeError as error:
        raise DamagedRun(f"{path} is damaged: a record of how it was made cannot be read: {error}.") from None


def latest_versions(provenance: Iterable[Provenance]) -> dict[tuple[str, str], CodeVersion]:
    """Return the latest known version of every agent, by domain and name."""
    return {
        (domain, name): version
        for each in provenance
        for domain, agents in each.agents.items()
        for name, version in agents.items()
    }


def mark_versions(
    cells: Iterable[CellRecord], provenance: Sequence[Provenance], agents: Mapping[str, str | None]
) -> Iterator[CellRecord]:
    """Yield cells that say whether the latest known version of their agent played them.

    Agents without a source were not started by openfield, which knows no version of them. A version that no command
    had was made by an edit while the run went on.
    """
    latest = latest_versions(provenance)
    had = {version.fingerprint for each in provenance for agents in each.agents.values() for version in agents.values()}
    for cell in cells:
        known = latest.get((cell.trial.domain, cell.agent))
        if cell.player is None:
            mark = "unknown" if cell.attempt and agents.get(cell.agent) is not None else ""
        else:
            other = "earlier" if cell.player in had else "edited"
            mark = "" if known is None or known.fingerprint == cell.player else other
        yield msgspec.structs.replace(cell, version=mark) if mark else cell


def split_versions(cells: Iterable[CellRecord], provenance: Iterable[Provenance]) -> Iterator[CellRecord]:
    """Yield cells whose agents have another name for each version, so that no number is of two versions.

    The latest known version keeps the name, or the first one if that played nothing.
    """
    known, latest = list(cells), latest_versions(provenance)
    players: dict[tuple[str, str], dict[str, None]] = {}
    for cell in known:
        if cell.player is not None:
            players.setdefault((cell.trial.domain, cell.agent), {})[cell.player] = None
    for cell in known:
        pair = cell.trial.domain, cell.agent
        found, last = players.get(pair, {}), latest.get(pair)
        own = last.fingerprint if last is not None and last.fingerprint in found else next(iter(found), None)
        if cell.player is None or cell.player == own:
            yield cell
        else:
            yield msgspec.structs.replace(cell, agent=f"{cell.agent} (version {cell.player[:8]})")


def find_false_players(run: Run) -> Iterator[str]:
    """Yield the attempts that an agent played which no recorded command had, and agents that became controls."""
    try:
        provenance, sources = read_provenance(run.facts, run.path), run.agents
    except DamagedRun as error:
        yield str(error)
        return
    for (_, name), version in latest_versions(provenance).items():
        if is_control(sources.get(name)) != is_control(version.parts.get("name")):
            yield f"Whether the agent '{name}' is a control is not what the command said that played it."
    known = {
        (domain, name, version.fingerprint)
        for each in provenance
        for domain, agents in each.agents.items()
        for name, version in agents.items()
    }
    cells, players = run.cells(with_episodes=False) if provenance else [], run.players()
    places = {cell.id: (cell.trial.domain, cell.agent) for cell in cells}
    for (cell, attempt), player in players.items() if provenance else ():
        if (*places[cell], player) not in known:
            yield f"Cell {cell}, attempt {attempt}: no recorded command had the agent that played it, {player}."
    started = {(domain, name) for domain, name, _ in known if sources.get(name) is not None}
    for one in cells:
        if one.outcome == "done" and places[one.id] in started and (one.id, one.attempt) not in players:
            yield f"Cell {one.id}, attempt {one.attempt}: which version of its agent played it is not recorded."


def read_revision(folder: Path) -> tuple[str, bool]:
    """Return the git revision of a folder and whether files were changed since; nothing where git cannot say."""
    words = ["git", "-c", "core.fsmonitor=false", "--no-optional-locks", "status", "--porcelain=v2", "--branch"]
    with suppress(OSError, subprocess.SubprocessError, UnicodeDecodeError):
        lines = subprocess.run(  # noqa: S603 - a program of the user's, found as their shell finds it
            [*words, "--untracked-files=no"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_SECONDS,
            check=True,
            encoding="utf-8",
        ).stdout.splitlines()
        revision = next((line.split()[2] for line in lines if line.startswith("# branch.oid ")), "")
        if re.fullmatch(r"[0-9a-f]{40,64}", revision):
            return revision, not all(line.startswith("#") for line in lines)
    return "", False


def name_command(words: Sequence[str]) -> str:
    """Return the command line of this process as a user would type it, without secrets."""
    program = Path(words[0]).name if words and words[0] else "python"
    if program == "__main__.py":
        program = "openfield"
    start = ["python", program] if program.endswith(".py") else [program]
    return shlex.join([*start, *_hide_secrets(words[1:])])


def _hide_secrets(words: Sequence[str]) -> Iterator[str]:
    """Yield words with `...` in place of tokens: everyone who has the run file may read the command."""
    hidden = False
    for word in words:
        option, sign, _ = word.partition("=")
        yield f"{option}=..." if sign and option in SECRET_OPTIONS else "..." if hidden else word
        hidden = not sign and option in SECRET_OPTIONS
