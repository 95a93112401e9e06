"""Read the agents that a JSON configuration of the original client names: their classes and their parameters.

Such a file describes one agent, `{"smqtk": {"class": "package.module.Agent", "config": {...}}}`, or a whole protocol
whose `algorithms` are such descriptions by name. In older files they are the `detector_configs` of `detectors`. A
description is also read as `{"class", "config"}`, as `{"type": CLASS, CLASS: {...}}`, and as plain parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from openfield.errors import InvalidInput, UnknownName
from openfield.parameters import read_parameters, write_source

PLUGINS = "smqtk_plugins"
"""The group of entry points by which the original client finds agents. Each names a module of agents, or one agent."""


def is_configuration(source: Any) -> bool:
    """Return whether an agent was given as `FILE.json` or `FILE.json:NAME`."""
    return isinstance(source, str) and source.partition(".json")[2][:1] in ("", ":") and ".json" in source


def read_agent_configuration(source: str) -> dict[str, str]:
    """Return the agents of `FILE.json`, or the one that `FILE.json:NAME` names, as sources with their parameters.

    Raises:
        InvalidInput: The file cannot be read or names no agent, or the class of an agent cannot be found.
    """
    place, _, wanted = source.partition(".json")
    path, name = Path(f"{place}.json"), wanted.removeprefix(":")
    found = dict(_list_agents(read_parameters(path), path.stem))
    if not found:
        raise InvalidInput(
            f'{path} names no agent. Wanted: {{"smqtk": {{"class": ..., "config": ...}}}} or algorithms.'
        )
    if name and name not in found:
        raise UnknownName("agent", name, found, label=f"In {path}")
    chosen = {name: found[name]} if name else found
    return {each: write_source(_find_class(one[0], path), one[1]) for each, one in chosen.items()}


def read_description(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of one agent in a file: of the only one described, or of that with a class of this name.

    Values that describe no agent are the parameters themselves.
    """
    found = dict(_list_agents(values, name))
    chosen = [one for each, one in found.items() if name in (each, one[0].rpartition(".")[2])]
    chosen = chosen or list(found.values())
    if len(chosen) > 1:
        raise InvalidInput(f"Which of the agents {', '.join(found)} is '{name}'? Take one: FILE.json:NAME.")
    return chosen[0][1] if chosen else dict(values)


def _list_agents(values: Any, name: str) -> Iterator[tuple[str, tuple[str, dict[str, Any]]]]:
    """Yield the name, class and parameters of every agent; a protocol that holds agents may be described likewise."""
    if not isinstance(values, Mapping):
        return
    older = values.get("detectors")
    listed = values.get("algorithms") or (older.get("detector_configs") if isinstance(older, Mapping) else None)
    if isinstance(listed, Mapping):
        for each, described in listed.items():
            yield str(each), _read_agent(str(each), described)
        return
    inner = [one for one in values.values() if isinstance(one, Mapping)]
    protocols = [found for one in inner if (found := list(_list_agents(one, name))) and _is_protocol(one)]
    if protocols:
        yield from protocols[0]
    elif _is_agent(values):
        made = _read_agent("", values)
        yield made[0].rpartition(".")[2] or name, made


def _is_protocol(values: Any) -> bool:
    """Return whether agents are listed in these values, at any depth."""
    return isinstance(values, Mapping) and (
        bool({"algorithms", "detectors"} & values.keys()) or any(map(_is_protocol, values.values()))
    )


def _is_agent(values: Mapping[str, Any]) -> bool:
    return isinstance(values.get("smqtk"), Mapping) or _name_class(values) is not None


def _name_class(values: Mapping[str, Any]) -> str | None:
    """Return the class that a description names beside its parameters; parameters may have such names too."""
    kind = values.get("type")
    if isinstance(values.get("class"), str) and values.keys() <= {"class", "config"}:
        return str(values["class"])
    return kind if isinstance(kind, str) and isinstance(values.get(kind), Mapping) else None


def _read_agent(name: str, described: Any) -> tuple[str, dict[str, Any]]:
    """Return the class and the parameters of an agent, however it is described; its name where no class is named."""
    if not isinstance(described, Mapping):
        raise InvalidInput(f"The agent '{name}' of a configuration is a {type(described).__name__}, not an object.")
    if isinstance(described.get("smqtk"), Mapping):
        return _read_agent(name, described["smqtk"])
    kind = _name_class(described)
    if kind is None:
        return name, dict(described)
    given = described.get("config", described.get(kind, {}))
    if not isinstance(given, Mapping):
        raise InvalidInput(f"The parameters of {kind} are a {type(given).__name__}, not an object.")
    return kind, dict(given)


def _find_class(kind: str, path: Path) -> str:
    """Return where a class is found: by its dotted name, or among the plugins of the original client."""
    module, _, name = kind.rpartition(".")
    if module:
        return f"{module}:{name}"
    for point in entry_points(group=PLUGINS):
        loaded = point.load()
        if getattr(loaded, name, None) is not None or getattr(loaded, "__name__", "") == name:
            return point.value if ":" in point.value else f"{point.value}:{name}"
    raise InvalidInput(
        f"{path}: no installed plugin has the class '{name}'. Name its place and take the parameters from the file: "
        f"--agent 'file.py:{name}({path})'"
    )
