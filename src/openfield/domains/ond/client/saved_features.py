"""What is kept of a hosted agent for another run: the features it extracted, and attributes it names.

Beside `host.py`. Everything is npz and JSON; the pickles of the original client are read by `pickles.py` where the user
says that they may be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from openfield.atomic import replacing
from openfield.domains.ond.client.pickles import read_old_pickle
from openfield.errors import AgentProtocol, InvalidInput

Features = tuple[dict[str, Any], dict[str, Any]]
"""Features and logits by sample id."""
PARTS = ("features_dict", "logit_dict")


def find_features(place: str | Path, test: str, agent: str, pickles: bool = False) -> Features | None:
    """Kept features: of a test, of all tests of an agent, or of whatever file is named; None if there are none.

    Args:
        place: A folder, or the file itself.
        test: The test they are wanted for.
        agent: Whose they are.
        pickles: Whether files of the original client may be read.
    """
    root = Path(place)
    stems = [root / f"{test}_{agent}_features", root / f"{agent}_features"] if not root.is_file() else []
    endings = (".npz", ".pkl") if pickles else (".npz",)
    for path in [*(Path(f"{stem}{ending}") for stem in stems for ending in endings), root]:
        if path.is_file():
            return read_features(path, pickles)
    return None


def read_features(path: Path, pickles: bool = False) -> Features:
    """The features in a file."""
    if path.suffix in (".pkl", ".pickle"):
        if not pickles:
            raise InvalidInput(f"{path} is a pickle. Say that it may be read: --set pickles=true, or merge --pickles.")
        found = read_old_pickle(path)
    else:
        found = _unpack(path)
    parts = [found.get(part) for part in PARTS] if isinstance(found, dict) else []
    tables = [{str(key): value for key, value in part.items()} for part in parts if isinstance(part, dict)]
    if len(tables) != len(PARTS):
        raise InvalidInput(f"{path} holds no features; they are a features_dict and a logit_dict.")
    return tables[0], tables[1]


def write_features(path: Path, features: Features) -> None:
    """Keeps features in a file."""
    _pack(path, dict(zip(PARTS, features, strict=True)), "features")


def merge_features(paths: Iterable[Path], target: Path, pickles: bool = False) -> int:
    """Joins files of features into one; of samples that are in several, the last counts. Returns how many there are."""
    merged: Features = ({}, {})
    for path in paths:
        for part, more in zip(merged, read_features(path, pickles), strict=True):
            part.update(more)
    write_features(target, merged)
    return len(merged[0])


class Attributes:
    """Attributes of an agent, gathered step by step over a test, and given back round by round."""

    def __init__(self, place: str | Path, wanted: Mapping[str, Sequence[str]], pickles: bool = False) -> None:
        """Keeps attributes in a folder, or reads those of one file.

        Args:
            place: The folder, or the file.
            wanted: Step -> names of attributes.
            pickles: Whether files of the original client may be read.
        """
        self._place, self._wanted, self._pickles = Path(place), wanted, pickles
        self._kept: dict[str, Any] = {}

    def begin(self) -> None:
        """A test begins, of which nothing was gathered yet."""
        self._kept = {}

    def gather(self, agent: Any, step: str) -> None:
        """Takes what a step left behind: mappings and sequences grow, anything else is replaced."""
        for name in self._wanted.get(step, ()):
            found = getattr(_owner(agent), name)
            self._kept[name] = _grown(self._kept[name], found) if name in self._kept else found

    def write(self, test: str) -> None:
        """Writes what was gathered over a test."""
        _pack(self._place / f"{test}_attribute.npz", self._kept, "attributes")

    def read(self, test: str) -> None:
        """Reads what was kept of a test."""
        paths = [self._place / f"{test}_attribute.npz", self._place]
        if self._pickles:
            paths.insert(1, self._place / f"{test}_attribute.pkl")
        path = next((path for path in paths if path.is_file()), None)
        if path is None:
            raise InvalidInput(f"There are no attributes of {test} in {self._place}.")
        self._kept = read_old_pickle(path) if path.suffix == ".pkl" else _unpack(path)

    def restore(self, agent: Any, step: str, first: int, ids: Sequence[str]) -> None:
        """Gives a step the part of its attributes that belongs to a round.

        Args:
            agent: Whose step it is.
            step: The step.
            first: How many samples of the test came before the round; a short last round tells of no others.
            ids: The samples of the round.
        """
        for name in self._wanted.get(step, ()):
            if name not in self._kept:
                raise InvalidInput(f"Attribute '{name}' was not kept; kept were {', '.join(self._kept) or 'none'}.")
            setattr(_owner(agent), name, _part_of(self._kept[name], first, ids))


def _owner(agent: Any) -> Any:
    """Whose attributes are meant: an adapter's detector, or the agent itself."""
    return getattr(agent, "detector", agent)


def _grown(kept: Any, found: Any) -> Any:
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
    """An array, also from a tensor of whatever library."""
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    return np.asarray(value.numpy()) if hasattr(value, "numpy") else None


def _pack(path: Path, content: Mapping[str, Any], what: str) -> None:
    """Writes a tree of mappings, sequences, numbers, text and arrays: the tree as JSON, its arrays beside it."""
    arrays: list[NDArray[Any]] = []
    tree = msgspec.json.encode(_plain(dict(content), arrays, what)).decode()
    named: Mapping[str, Any] = {f"a{number}": array for number, array in enumerate(arrays)}
    with replacing(path) as draft, draft.open("wb") as file:
        np.savez_compressed(file, tree=np.array(tree), **named)


def _unpack(path: Path) -> Any:
    try:
        with np.load(path, allow_pickle=False) as file:
            return _built(msgspec.json.decode(str(file["tree"])), file)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}.") from None


def _plain(value: Any, arrays: list[NDArray[Any]], what: str) -> Any:
    """What JSON can say; every array is put aside and named by its number."""
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
    raise AgentProtocol(f"A {type(value).__name__} among the {what} cannot be kept; use numbers, text, arrays, lists.")


def _as_rows(values: Sequence[Any]) -> NDArray[Any] | None:
    """Arrays of one shape and kind as one array: a file with a part for each of 100,000 samples takes minutes."""
    arrays = [array for array in map(_as_array, values) if array is not None]
    kinds = {(array.shape, array.dtype) for array in arrays if array.dtype != object}
    return np.stack(arrays) if len(kinds) == 1 and len(arrays) == len(values) else None


def _built(value: Any, arrays: Any) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    match kind:
        case "array":
            return arrays[f"a{content}"]
        case "rows":
            return dict(zip(content[0], arrays[f"a{content[1]}"], strict=True))
        case "dict":
            return {key: _built(one, arrays) for key, one in content}
        case "list":
            return [_built(one, arrays) for one in content]
        case "tuple":
            return tuple(_built(one, arrays) for one in content)
    raise ValueError(f"unknown kind {kind}")
