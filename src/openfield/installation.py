"""What to type in this installation of openfield: the line that installs an extra, and the names of programs."""

from __future__ import annotations

import json
import os
import shutil
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from shlex import quote
from urllib.parse import unquote, urlsplit


def install_line(extra: str) -> str:
    """Return the command that installs an extra, as it fits how openfield was installed.

    In a clone it is `pip install -e '.[birds]'`, or with the path of the clone if that is another folder; in any other
    installation it is `pip install 'openfield[birds]'`.
    """
    pip, clone, editable = name_program("pip"), *find_clone()
    if clone is None:
        return f"{pip} install 'openfield[{extra}]'"
    place = "." if clone.resolve() == Path.cwd().resolve() else str(clone)
    return f"{pip} install {'-e ' if editable else ''}{quote(f'{place}[{extra}]')}"


def find_clone() -> tuple[Path | None, bool]:
    """Return the folder openfield was installed from, if any, and whether it is used from there (`pip install -e`)."""
    with suppress(PackageNotFoundError, ValueError, TypeError):
        told = json.loads(distribution("openfield").read_text("direct_url.json") or "{}")
        url = urlsplit(told.get("url", ""))
        folder = Path(unquote(url.path))
        if url.scheme == "file" and "dir_info" in told and (folder / "pyproject.toml").exists():
            return folder, bool(told["dir_info"].get("editable"))
    return None, False


def name_program(name: str) -> str:
    """Return what to type for a program of this environment: its name, or its path if the shell finds another one."""
    found, own = shutil.which(name), Path(sys.executable).with_name(name)
    if not own.exists() or (found and Path(found).samefile(own)):
        return name
    return quote(os.path.relpath(own))
