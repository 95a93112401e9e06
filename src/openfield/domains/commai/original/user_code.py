"""Which code of users the settings of a trial name, and the digests of its files.

Tasks, worlds and schedulers of a JSON configuration, and Python configurations, are code. An edited file is another
trial, and a run file that names code does not run it unasked: `CommaiDomain` tells both to the rest of openfield.
Nothing is imported here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from openfield.domains.commai.original.configuration import find_task
from openfield.domains.commai.original.imports import MODULES, is_old_name, user_folder
from openfield.domains.commai.tasks.catalogue import CATALOGUE
from openfield.provenance.versions import Code, identify_source


def list_code(settings: Mapping[str, Any]) -> list[str]:
    """Return the code that settings name: the file of a Python configuration, and classes as `module:NAME`.

    The settings may come from a run file and hold anything.
    """
    module, table = settings.get("module"), settings.get("configuration")
    files = [module] if isinstance(module, str) and module else []
    classes = {path for path in _list_types(table) if not _is_ours(path)} if isinstance(table, Mapping) else set()
    return [*files, *(":".join(path.rpartition(".")[::2]) for path in sorted(classes))]


def digest_files(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the digests of the files that hold this code, and of those beside them that they import.

    A Python configuration has the name that the settings give it, all others their place in the working directory.
    Installed packages have versions of their own.
    """
    found: dict[str, str] = {}
    module = settings.get("module")
    for source in list_code(settings):
        if source == module:
            code = Code()
            code.add_file(Path(source).resolve(), Path.cwd())
        else:
            code = identify_source(source) or Code()
        for name, path in code.files.items():
            if name.removesuffix(".py").replace("/", ".") in MODULES:
                continue  # ours are used, also in a checkout of the original
            found[module if module and path == Path(module).resolve() else name] = code.parts[f"file {name}"]
    return found


def _list_types(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield the dotted names of classes in a configuration."""
    groups = [table.get("worlds"), table.get("tasks"), {"": table.get("scheduler")}]
    for entries in groups:
        for entry in entries.values() if isinstance(entries, Mapping) else ():
            path = entry.get("type") if isinstance(entry, Mapping) else None
            if isinstance(path, str) and "." in path:
                yield path


def _is_ours(path: str) -> bool:
    """Return whether a class is one of ours; that of a module of the original's may have moved since."""
    module = path.rpartition(".")[0]
    if path in CATALOGUE or module in MODULES:
        return True
    if not is_old_name(module) or find_task(path) is None:
        return False
    place = user_folder().folder.joinpath(*module.split("."))
    return not (place.with_suffix(".py").is_file() or place.is_dir())
