"""This installation of openfield: its extras, the line that installs one, and what this machine has."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution, requires, version
from pathlib import Path
from shlex import quote
from urllib.parse import urlsplit
from urllib.request import url2pathname

BARE = "OPENFIELD_BARE"
"""If this environment variable is set, no optional system program is found: the machine counts as bare."""
_BUNDLES = ("all", "dev")


def list_extras(*names: str) -> dict[str, dict[str, str | None]]:
    """Return the packages of all extras, or of some, with their installed versions: 0.6 ms for each package."""
    extras: dict[str, dict[str, str | None]] = {}
    for line in requires("openfield") or ():
        marker = re.search(r'extra == [\'"]([\w-]+)[\'"]', line)
        name = re.match(r"[\w.-]+", line)
        if marker and name and name[0] != "openfield" and (marker[1] in names if names else marker[1] not in _BUNDLES):
            extras.setdefault(marker[1], {})[name[0]] = _find_version(name[0])
    return extras


def _find_version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def install_line(extra: str) -> str:
    """Return the command that installs an extra, as it fits how openfield was installed.

    In a clone it is `pip install -e '.[birds]'`, or with the path of the clone if that is another folder; after an
    installation from a wheel or a source archive it names that file. Where these are gone it is
    `pip install 'openfield[birds]'`: pip keeps the openfield that is there, and adds what the extra needs.
    """
    pip, (source, editable) = name_program("pip"), find_source()
    if source is None:
        return f"{pip} install 'openfield[{extra}]'"
    place = "." if source.resolve() == Path.cwd().resolve() else str(source)
    return f"{pip} install {'-e ' if editable else ''}{quote(f'{place}[{extra}]')}"


def find_source() -> tuple[Path | None, bool]:
    """Return the clone or the archive that openfield was installed from, and whether it is used from there (`-e`)."""
    with suppress(PackageNotFoundError, ValueError, TypeError):
        origin = json.loads(distribution("openfield").read_text("direct_url.json") or "{}")
        url = urlsplit(origin.get("url", ""))
        place = Path(url2pathname(url.path))
        if url.scheme == "file" and "dir_info" in origin and (place / "pyproject.toml").exists():
            return place, bool(origin["dir_info"].get("editable"))
        if url.scheme == "file" and "archive_info" in origin and place.is_file():
            return place, False
    return None, False


def find_program(name: str, path: str | None = None) -> str | None:
    """Return where an optional system program is, such as bwrap, or None. A path of folders may replace PATH.

    All parts of openfield that can use such a program ask here, so that OPENFIELD_BARE=1 shows how the package and its
    tests do without any of them.
    """
    return None if os.environ.get(BARE) else shutil.which(name, path=path)


def count_processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def name_program(name: str) -> str:
    """Return what to type for a program of this environment: its name, or its path if the shell finds another one."""
    found, own = shutil.which(name), Path(sys.executable).with_name(name)
    if not own.exists() or (found and Path(found).samefile(own)):
        return name
    return quote(os.path.relpath(own))
