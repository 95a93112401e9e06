"""A domain's settings: one frozen record, read from files, from `--set key=value` and from Python alike.

Domains subclass `Settings`; trials keep only what differs from the defaults.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import msgspec

from openfield.core import AskMoment
from openfield.errors import InvalidInput, UnknownName

S = TypeVar("S", bound="Settings")
MAX_DELAY = 10
"""The episodes within which an alarm counts for a change, unless a trial says otherwise."""
SET_SETTINGS = ("onset", "unchanged")
"""Settings that are about a set of trials."""
SIX_EPISODES = {"training": 1, "before": 3, "after": 3}
"""What `preset=short` means where a domain has nothing else in mind: only settings that it has are changed."""


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The root of all settings. Describe a field with `Annotated[int, msgspec.Meta(ge=1, description=...)]`.

    The fields below are those every domain has. `draw_set` reads the first two, which are about a set of trials, and no
    trial keeps them; of the preset it keeps the settings that it stands for.
    """

    short: ClassVar[Mapping[str, Any]] = {}
    """The settings of `preset=short`: a blind trial that takes a person about two minutes. If empty, six episodes."""

    onset: Annotated[
        str | int,
        msgspec.Meta(
            description="How much of the test precedes the change: a window such as 6-18, in which it is drawn, or a "
            "number; for several changes one each, such as 6-9,15-18; empty means the middle half."
        ),
    ] = ""
    unchanged: Annotated[
        str | int,
        msgspec.Meta(
            description="Trials without change on top, with the seeds of the first: a number, or all; empty "
            "means two fifths."
        ),
    ] = ""
    max_delay: Annotated[
        int,
        msgspec.Meta(
            description="Test episodes after a change within which an alarm counts for it, where the world changes "
            "gradually or several times.",
            ge=1,
        ),
    ] = MAX_DELAY
    min_strength: Annotated[
        float,
        msgspec.Meta(
            description="The strength from which a gradual change counts as one; 0 means any strength.", ge=0, le=1
        ),
    ] = 0.0
    preset: Annotated[
        Literal["", "short"],
        msgspec.Meta(description="Other defaults for some settings: `short` makes blind trials of about two minutes."),
    ] = ""
    ask: Annotated[
        AskMoment,
        msgspec.Meta(description="When people and language models are asked whether their world has changed."),
    ] = "episode"


class SettingRow(msgspec.Struct, frozen=True):
    """A setting as a list shows it."""

    name: str
    type: str
    default: Any
    note: str


def make_settings(kind: type[S], values: Mapping[str, Any]) -> S:
    """Return the settings with these changes. Text is read as the field's type wants it.

    Raises:
        InvalidInput: A value does not fit; the message names the key and what would be right.
    """
    rows = {row.name: row for row in setting_rows(kind)}
    values = gather_keys(kind, expand_preset(kind, values))
    for name in values:
        if name not in rows:
            raise UnknownName("setting", name, rows, label="Known")
    made: dict[str, Any] = {}
    for name, field in _fields(kind).items():
        if name in values:
            made[field.name] = _convert(name, values[name], field.type, rows[name])
    return kind(**made)


def expand_preset(kind: type[Settings], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values with the settings that their preset stands for in its place; those that are given win."""
    if values.get("preset") != "short":
        return dict(values)
    known = {row.name for row in setting_rows(kind)}
    short = kind.short or {name: value for name, value in SIX_EPISODES.items() if name in known}
    return {**short, **{name: value for name, value in values.items() if name != "preset"}}


def changed_settings(settings: Settings) -> dict[str, Any]:
    """Return what differs from the defaults, as plain values for a file."""
    plain, default = (msgspec.json.decode(msgspec.json.encode(each)) for each in (settings, type(settings)()))
    return {name: value for name, value in plain.items() if value != default[name]}


def trial_settings(settings: Settings) -> dict[str, Any]:
    """Return what a trial keeps of its settings: what differs from the defaults, and is not about the whole set."""
    changed = changed_settings(settings)
    return {name: value for name, value in changed.items() if name not in SET_SETTINGS}


def write_settings(values: Mapping[str, Any]) -> list[str]:
    """Return settings in words, in the order of their names; keys of a mapping as `--set make.size=8` names them."""
    written = []
    for name, value in sorted(values.items()):
        keys = {f"{name}.{key}": one for key, one in sorted(value.items())} if isinstance(value, Mapping) else {}
        written += [f"{key}={one}" for key, one in (keys or {name: value}).items()]
    return written


def setting_rows(kind: type[Settings]) -> tuple[SettingRow, ...]:
    """Return every setting with its type, default and meaning."""
    return _rows(kind)


def describe_type(kind: Any) -> str:
    """Describe in a few words what values a type allows."""
    (schema,), components = msgspec.json.schema_components([kind])
    return _type_text(schema, components)


@functools.cache
def _rows(kind: type[Settings]) -> tuple[SettingRow, ...]:
    """They are read off the annotations, which takes 8 ms for a large domain: once a process is enough."""
    default = msgspec.to_builtins(kind())
    _, components = msgspec.json.schema_components([kind])
    properties = components[kind.__name__]["properties"]
    return tuple(
        SettingRow(
            field.encode_name,
            _type_text(properties[field.encode_name], components),
            default[field.encode_name],
            properties[field.encode_name].get("description", ""),
        )
        for field in msgspec.structs.fields(kind)
    )


@functools.cache
def _fields(kind: type[Settings]) -> dict[str, msgspec.structs.FieldInfo]:
    return {field.encode_name: field for field in msgspec.structs.fields(kind)}


def gather_keys(kind: type[Settings], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values in which `make.size=8` is the key `size` of the mapping `make`; its text is read as JSON.

    Of two values for a key the later one counts.
    """
    mappings = {row.name for row in setting_rows(kind) if row.type == "object"}
    gathered: dict[str, Any] = {}
    for name, value in values.items():
        field, dot, key = name.partition(".")
        if field not in mappings or (dot and not key):
            gathered[name] = value
            continue
        known = gathered.setdefault(field, {})
        given = {key: read_plain(value) if isinstance(value, str) else value} if dot else value
        if isinstance(known, Mapping):  # else that is refused
            gathered[field] = {**known, **given} if isinstance(given, Mapping) else given
    return gathered


def read_plain(text: str) -> Any:
    """Return the value that a text stands for as JSON; other text stands for itself.

    Shells take away quotes: so `[a,b]` is a list of texts.
    """
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        if text[:1] == "[" and text[-1:] == "]" and not set(text[1:-1]) & set("[]{}\"'"):
            return [read_plain(part.strip()) for part in text[1:-1].split(",")]
        return text


def _convert(name: str, value: Any, kind: Any, row: SettingRow) -> Any:
    """Text may stand for anything: `3`, `true`, `a,b`; everything else must have the right type."""
    lists = row.type.startswith("list")
    none = value == "null" and row.type.endswith("| null")
    split = lists and isinstance(value, str) and not none
    parts = [part for part in value.split(",") if part] if split else value
    try:
        return msgspec.convert(parts, kind, strict=not isinstance(parts, str) and not lists)
    except msgspec.ValidationError as error:
        reason = re.sub(r" - at `\$.*`$", "", str(error))
        raise InvalidInput(f"Setting '{name}' cannot be {value!r}: {reason}. Allowed: {row.type}.") from None


def _type_text(schema: dict[str, Any], components: dict[str, Any]) -> str:
    """A JSON schema in a few words."""
    if "$ref" in schema:
        return _type_text(components[schema["$ref"].rsplit("/", 1)[1]], components)
    if "enum" in schema:
        return " | ".join(str(option) for option in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(_type_text(option, components) for option in schema["anyOf"])
    if schema.get("type") == "array":
        parts = schema.get("prefixItems") or [schema.get("items")]
        return f"list of {', '.join(_type_text(part, components) for part in parts)}" if parts[0] else "list"
    bounds = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}
    limits = [f"{sign} {schema[key]}" for key, sign in bounds.items() if key in schema]
    return " ".join([str(schema.get("type", "anything")), *limits])
