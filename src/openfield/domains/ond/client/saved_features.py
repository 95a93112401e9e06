"""Save the features an agent extracted and attributes of it, and read them in another run.

Files are npz archives with a JSON tree. Pickles of the original client are read only if the user allows it, in a child
process whose memory is limited, which writes such an archive. Nothing in a pickle is run: all names of functions are
refused, except the few that rebuild arrays.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from openfield.errors import AgentProtocol, InvalidInput, OpenfieldError
from openfield.files.arrays import read_arrays
from openfield.files.atomic import replacing
from openfield.objectives.pickle.unpickle import limit_process
from openfield.processes.child import describe_exit, one_thread
from openfield.processes.program import run_bounded

Features = tuple[dict[str, Any], dict[str, Any]]
"""Features and logits by sample id."""
PARTS = ("features_dict", "logit_dict")
MAX_PICKLE_BYTES = 4 << 30
BASE_MEMORY, MEMORY_PER_BYTE = 2 << 30, 8
"""Bytes that the reader of a pickle may take: at least, and for each byte of the file."""
BASE_SECONDS, BYTES_PER_SECOND = 20, 1_000_000
"""Processor seconds that it may take at least, and the bytes that earn it a further one."""
REBUILDERS = (("multiarray", "_reconstruct"), ("multiarray", "scalar"), ("numeric", "_frombuffer"))
PICKLE_NAMES = {("numpy", "ndarray"), ("numpy", "dtype"), ("collections", "OrderedDict"), ("_codecs", "encode")}
PICKLE_NAMES |= {(f"numpy.{core}.{module}", name) for core in ("core", "_core") for module, name in REBUILDERS}
"""What arrays and ordered mappings are rebuilt by, in old and new versions of NumPy."""


def read_saved_features(place: str | Path, test: str, agent: str, pickles: bool = False) -> Features | None:
    """Read the saved features of a test, or of all tests of an agent; return None if nothing was saved.

    The place is a folder or the file itself. Pickles of the original client are read only if allowed.
    """
    root = Path(place)
    stems = [root / f"{test}_{agent}_features", root / f"{agent}_features"] if not root.is_file() else []
    endings = (".npz", ".pkl") if pickles else (".npz",)
    for path in [*(Path(f"{stem}{ending}") for stem in stems for ending in endings), root]:
        if path.is_file():
            return read_features(path, pickles)
    return None


def read_features(path: Path, pickles: bool = False) -> Features:
    """Read the features in a file."""
    if path.suffix in (".pkl", ".pickle"):
        if not pickles:
            raise InvalidInput(f"{path} is a pickle. Say that it may be read: --set pickles=true, or merge --pickles.")
        found = read_pickle(path)
    else:
        found = _unpack(path)
    parts = [found.get(part) for part in PARTS] if isinstance(found, dict) else []
    tables = [{str(key): value for key, value in part.items()} for part in parts if isinstance(part, dict)]
    if len(tables) != len(PARTS):
        raise InvalidInput(f"{path} holds no features; they are a features_dict and a logit_dict.")
    return tables[0], tables[1]


def write_features(path: Path, features: Features) -> None:
    """Write features to a file."""
    _pack(path, dict(zip(PARTS, features, strict=True)), "features")


def merge_features(paths: Iterable[Path], target: Path, pickles: bool = False) -> int:
    """Join files of features into one and return the number of samples; later files win."""
    merged: Features = ({}, {})
    for path in paths:
        for part, more in zip(merged, read_features(path, pickles), strict=True):
            part.update(more)
    write_features(target, merged)
    return len(merged[0])


class AttributeStore:
    """Collects attributes of an agent step by step over a test, and restores them round by round."""

    def __init__(self, place: str | Path, wanted: Mapping[str, Sequence[str]], pickles: bool = False) -> None:
        """Prepare to save attributes in a folder or to read them from a folder or file; `wanted` names them by step."""
        self._place, self._wanted, self._pickles = Path(place), wanted, pickles
        self._collected: dict[str, Any] = {}

    def clear(self) -> None:
        """Forget the attributes of the last test."""
        self._collected = {}

    def collect(self, agent: Any, step: str) -> None:
        """Add the attributes a step left: mappings and sequences grow, anything else is replaced."""
        for name in self._wanted.get(step, ()):
            found = getattr(_owner(agent), name)
            collected = self._collected
            collected[name] = _extend(collected[name], found) if name in collected else found

    def write(self, test: str) -> None:
        """Write the attributes collected over a test."""
        _pack(self._place / f"{test}_attribute.npz", self._collected, "attributes")

    def read(self, test: str) -> None:
        """Read the saved attributes of a test."""
        paths = [self._place / f"{test}_attribute.npz", self._place]
        if self._pickles:
            paths.insert(1, self._place / f"{test}_attribute.pkl")
        path = next((path for path in paths if path.is_file()), None)
        if path is None:
            raise InvalidInput(f"There are no attributes of {test} in {self._place}.")
        self._collected = read_pickle(path) if path.suffix == ".pkl" else _unpack(path)

    def restore(self, agent: Any, step: str, first: int, ids: Sequence[str]) -> None:
        """Set the attributes of a step to their part for a round: these ids, after `first` samples of the test."""
        for name in self._wanted.get(step, ()):
            if name not in self._collected:
                raise InvalidInput(f"Attribute '{name}' was not saved. Saved: {', '.join(self._collected) or 'none'}.")
            setattr(_owner(agent), name, _part_of(self._collected[name], first, ids))


def _owner(agent: Any) -> Any:
    """Return the object that has the attributes: the detector of an adapter, or the agent itself."""
    return getattr(agent, "detector", agent)


def _extend(kept: Any, found: Any) -> Any:
    if isinstance(kept, dict) and isinstance(found, Mapping):
        return kept | dict(found)
    for kind in (list, tuple):
        if isinstance(kept, kind) and isinstance(found, kind):
            return kind([*kept, *found])
    if (table := _as_array(kept)) is not None and (more := _as_array(found)) is not None and table.ndim:
        return np.concatenate([table, more])
    return found


def _part_of(kept: Any, first: int, ids: Sequence[str]) -> Any:
    if isinstance(kept, dict):
        return {key: kept[key] for key in ids if key in kept}
    if isinstance(kept, list | tuple) or (isinstance(kept, np.ndarray) and kept.ndim):
        return kept[first : first + len(ids)]
    return kept


def _as_array(value: Any) -> NDArray[Any] | None:
    """Return an array, or a tensor of any library as one; None for anything else."""
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    return np.asarray(value.numpy()) if hasattr(value, "numpy") else None


def _pack(path: Path, content: Mapping[str, Any], what: str) -> None:
    """Write a tree of mappings, sequences, numbers, text and arrays: the tree as JSON, its arrays beside it."""
    arrays: list[NDArray[Any]] = []
    tree = msgspec.json.encode(_plain(dict(content), arrays, what)).decode()
    named: Mapping[str, Any] = {f"a{number}": array for number, array in enumerate(arrays)}
    with replacing(path) as draft, draft.open("wb") as file:
        np.savez_compressed(file, tree=np.array(tree), **named)


def _unpack(path: Path) -> Any:
    try:
        file = read_arrays(path)
        return _build(msgspec.json.decode(str(file["tree"])), file)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidInput(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from None


def _plain(value: Any, arrays: list[NDArray[Any]], what: str) -> Any:
    """Return a value as JSON can hold it; arrays are moved to `arrays` and named by their numbers."""
    array = _as_array(value)
    if array is not None and array.dtype != object:
        arrays.append(array)
        return {"array": len(arrays) - 1}
    match value:
        case Mapping() if (rows := _as_rows(list(value.values()))) is not None:
            arrays.append(rows)
            return {"rows": [list(value), len(arrays) - 1]}
        case Mapping():
            return {"dict": [[key, _plain(one, arrays, what)] for key, one in value.items()]}
        case list() | tuple():
            return {type(value).__name__: [_plain(one, arrays, what) for one in value]}
        case np.generic():
            return value.item()
        case None | bool() | int() | float() | str():
            return value
    kind = type(value).__name__
    raise AgentProtocol(f"the {what} hold a value of type {kind}; only numbers, text, arrays and lists can be saved")


def _as_rows(values: Sequence[Any]) -> NDArray[Any] | None:
    """Stack arrays of one shape and type into one: a file with an array for each of 100,000 samples takes minutes."""
    arrays = [array for array in map(_as_array, values) if array is not None]
    kinds = {(array.shape, array.dtype) for array in arrays if array.dtype != object}
    return np.stack(arrays) if len(kinds) == 1 and len(arrays) == len(values) else None


def _build(value: Any, arrays: Any) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    match kind:
        case "array":
            return arrays[f"a{content}"]
        case "rows":
            return dict(zip(content[0], arrays[f"a{content[1]}"], strict=True))
        case "dict":
            return {key: _build(one, arrays) for key, one in content}
        case "list":
            return [_build(one, arrays) for one in content]
        case "tuple":
            return tuple(_build(one, arrays) for one in content)
    raise ValueError(f"unknown kind {kind}")


def read_pickle(path: Path) -> Any:
    """Read a pickle of plain values and arrays; refuse one that names anything else or is damaged."""
    size = path.stat().st_size
    if size > MAX_PICKLE_BYTES:
        raise InvalidInput(f"{path} is larger than {MAX_PICKLE_BYTES >> 30} GB.")
    seconds = BASE_SECONDS + size // BYTES_PER_SECOND
    with tempfile.TemporaryDirectory(prefix="openfield-") as folder:
        archive = Path(folder, "unpickled.npz")
        command = [sys.executable, "-P", "-m", __name__, *map(str, (path.resolve(), archive, seconds))]
        environment = {**os.environ, **one_thread()}
        ended = run_bounded(command, seconds, subprocess.PIPE, environment)
        if ended is None:
            raise InvalidInput(f"{path} cannot be read as a pickle: it takes too long.")
        if ended.returncode:
            why = ended.stdout.decode(errors="replace").strip() or describe_exit(ended.returncode)
            raise InvalidInput(f"{path} cannot be read as a pickle: {why.rstrip('.')}.")
        return _unpack(archive)


def main(path: str, archive: str, seconds: str) -> int:
    """Write what a pickle holds to an archive, within limits. It is a program of its own."""
    size = Path(path).stat().st_size
    limit_process(BASE_MEMORY + MEMORY_PER_BYTE * size, int(seconds), MAX_PICKLE_BYTES)
    try:
        with Path(path).open("rb") as file:
            _pack(Path(archive), _Unpickler(file, encoding="latin-1").load(), "file")
    except OpenfieldError as error:
        sys.stdout.write(str(error))
    except Exception as error:  # damaged pickles fail in every way there is
        sys.stdout.write(type(error).__name__)
    else:
        return 0
    return 1


class _Unpickler(pickle.Unpickler):
    """An unpickler that refuses all names but those that rebuild arrays."""

    def find_class(self, module: str, name: str) -> Any:
        """Return the function of a name that rebuilds arrays, and refuse any other."""
        if (module, name) not in PICKLE_NAMES:
            raise InvalidInput(f"it wants to call {module[:60]}.{name[:60]}.")
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)

    def persistent_load(self, pid: Any) -> Any:
        """Refuse to read anything outside the file."""
        raise InvalidInput("it refers to something outside itself.")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
