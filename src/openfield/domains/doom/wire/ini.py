"""The INI files of protocol 0.8: the server's and the client's.

`serve --config` reads a server's file, our client reads a client's. `wire:` agents get a copy with our address.
"""

from __future__ import annotations

import configparser
import re
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal, TypeVar
from urllib.parse import quote, unquote, urlsplit

import msgspec
from msgspec import Meta

from openfield.errors import InvalidInput
from openfield.files.data import read_data
from openfield.settings import describe_type

T = TypeVar("T", bound=msgspec.Struct)
MODELS = "model"
"""The folder in which clients keep trained models: in the current folder, or beside their file."""
Difficulty = Literal["easy", "medium", "hard"]


class PublishedNames(msgspec.Struct, frozen=True):
    """Names in such files that are not fields here, and why some of them are not supported."""

    names: dict[str, tuple[str, ...]]
    unserved: dict[str, str]
    refused: dict[str, str]


NAMES = read_data("openfield.domains.doom", "ini.toml", PublishedNames)
TRUTH = {"": False, **configparser.ConfigParser.BOOLEAN_STATES}


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The experiments of a server's file; the names are the file's."""

    amqp: str | None = None
    """The broker's address."""
    trials: Annotated[int, Meta(ge=1)] = 30
    novelty: Annotated[tuple[int, ...], Meta(min_length=1)] = (200,)
    difficulty: Annotated[tuple[Difficulty, ...], Meta(min_length=1)] = ("easy", "medium", "hard")
    novelty_visibility: Annotated[tuple[Annotated[int, Meta(ge=0, le=1)], ...], Meta(min_length=1)] = (0, 1)
    hint_level: Annotated[tuple[Annotated[int, Meta(ge=-1, le=3)], ...], Meta(min_length=1)] = (-1, 0, 1, 2, 3)
    normal_timeout_seconds: Annotated[float, Meta(gt=0, le=1e9)] = 1200.0
    training_timeout_multiplier: Annotated[float, Meta(gt=0, le=1e9)] = 100.0
    training_novelty_p1: Annotated[float, Meta(ge=0, le=1)] = 0.0
    testing_novelty_p2: Annotated[float, Meta(ge=0, le=1)] = 0.8
    phase: Literal["1", "2", "3", "4a", "4b"] = "3"
    training_episodes: Annotated[int, Meta(ge=0)] = 100
    testing_episodes: Annotated[int, Meta(ge=1)] = 200
    pre_novel_episodes: Annotated[int, Meta(ge=0)] = 0
    use_image: bool = False
    shortdemo: bool = False


class ClientConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A client's file."""

    amqp: str
    model_name: str
    experiment_type: str = "SAIL-ON"
    organization: str = ""
    username: str = ""
    secret: str = ""
    description: str = ""
    seed: int | None = None
    episode_seed: int | None = None
    domain: Literal["vizdoom"] = "vizdoom"
    experiment_secret: str | None = None
    no_testing: bool = False
    just_one_trial: bool = False


def read_server(path: Path) -> ServerConfig:
    """Read a server's file; missing keys have the published defaults."""
    parser = read_ini(path)
    values = {**_section(parser, "sail-on"), **_section(parser, "vizdoom"), **_section(parser, "options")}
    _mention(path, "section", parser.sections(), NAMES.names["sections"])
    _mention(
        path,
        "key",
        values,
        (*ServerConfig.__struct_fields__, *NAMES.names["left_out"], *NAMES.unserved, *NAMES.refused),
    )
    for name, reason in NAMES.refused.items():
        if _is_on(values.get(name, "")):
            raise InvalidInput(f"{path}: {name} is {values[name]}; {reason}.")
    for name, reason in NAMES.unserved.items():
        if _is_on(values.get(name, "")):
            warnings.warn(f"{path}: {name} is {values[name]}, but {reason}.", stacklevel=2)
    if _truth(values.get("demo", ""), "demo", path):
        values |= {"training_episodes": "3", "testing_episodes": "3"}
    return _convert({**values, "amqp": broker_url(parser, path)}, ServerConfig, path)


def read_client(path: Path) -> ClientConfig:
    """Read a client's file."""
    parser = read_ini(path)
    if not parser.has_section("amqp"):
        raise InvalidInput(f"{path}: there is no section [amqp].")
    values = {**_section(parser, "aiq-sail-on"), **_section(parser, "sail-on")}
    _mention(path, "key", values, (*ClientConfig.__struct_fields__, *NAMES.names["cartpole"]))
    config = _convert({**values, "amqp": broker_url(parser, path)}, ClientConfig, path)
    if config.just_one_trial and config.experiment_secret is None:
        raise InvalidInput(f"{path}: just_one_trial needs an experiment_secret.")
    return config


def _mention(path: Path, what: str, said: Iterable[str], known: Iterable[str]) -> None:
    """Warn of unknown names."""
    for name in sorted(set(said) - set(known)):
        warnings.warn(f"{path}: '{name}' is not a {what} of such a file and changes nothing.", stacklevel=3)


def _is_on(text: str) -> bool:
    """Check whether a value switches something on."""
    try:
        return float(text) != 0
    except ValueError:
        return TRUTH.get(text.lower(), text.lower() != "none")


def write_client(source: Path, target: Path, changes: dict[str, dict[str, str | None]]) -> None:
    """Copy a client's file with new values by section and name; None removes a value."""
    parser = read_ini(source)
    for section, values in changes.items():
        if not parser.has_section(section):
            parser.add_section(section)
        for name, value in values.items():
            if value is None:
                parser.remove_option(section, name)
            else:
                parser.set(section, name, value)
    with target.open("w") as file:
        parser.write(file)


def broker_url(parser: configparser.ConfigParser, path: Path) -> str | None:
    """Return the broker's address from the section [amqp]; a virtual host is written with a slash before its name."""
    values = _section(parser, "amqp")
    if not values:
        return None
    _mention(path, "key of [amqp]", values, NAMES.names["amqp"])
    secure = _truth(values.get("ssl", ""), "ssl", path)
    user, password = quote(values.get("user", "guest"), ""), quote(values.get("pass", "guest"), "")
    host, port = values.get("host", "localhost"), values.get("port", "5671" if secure else "5672")
    vhost = unquote(values.get("vhost", "/").removeprefix("/"))  # it stands there as in an address
    url = f"{'amqps' if secure else 'amqp'}://{user}:{password}@{host}:{port}/{quote(vhost, '')}"
    if not is_address(url):
        raise InvalidInput(f"{path}: [amqp] has no valid address: host '{host}', port '{port}'.")
    return url


def check_address(url: str) -> None:
    """Refuse a text that is not a broker's address."""
    if not is_address(url):
        raise InvalidInput(f"'{url}' is not a broker's address; one looks like amqp://user:pass@host:5672/.")


def is_address(url: str) -> bool:
    """Check whether a text is a broker's address."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("amqp", "amqps") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets that do not match, or a port that is not a number
        return False


def read_ini(path: Path) -> configparser.ConfigParser:
    """Read a file; refuse one that is not an INI file."""
    parser = configparser.ConfigParser(interpolation=None)
    try:
        with path.open() as file:
            parser.read_file(file)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from None
    except (configparser.Error, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} is not an INI file: {str(error).splitlines()[0]}") from None
    return parser


def _section(parser: configparser.ConfigParser, name: str) -> dict[str, str]:
    return dict(parser[name]) if parser.has_section(name) else {}


def _convert(values: dict[str, str | None], kind: type[T], path: Path) -> T:
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    kinds = {name: str(field.type) for name, field in fields.items()}
    said = {name: text for name, text in values.items() if name in fields and (text or "tuple" in kinds[name])}
    known = {name: _value(text or "", kinds[name], name, path) for name, text in said.items()}
    try:
        return msgspec.convert(known, kind, strict=False)
    except msgspec.ValidationError as error:
        place = re.search(r"at `\$\.(\w+)", str(error))
        if place is None:
            raise InvalidInput(f"{path}: {error}.") from None
        name = place[1]
        allowed = describe_type(fields[name].type)
        raise InvalidInput(f"{path}: {name} cannot be '{values[name]}'. Allowed: {allowed}.") from None


def _value(text: str, kind: str, name: str, path: Path) -> object:
    """Convert a value; a list may stand in brackets, and truth has many spellings."""
    if "tuple" in kind:
        parts = [part for part in re.split(r"[\s,\[\]\"']+", text) if part]
        if len(set(parts)) < len(parts):
            raise InvalidInput(f"{path}: {name} names something twice: {text}.")
        return parts
    return _truth(text, name, path) if kind.endswith("bool'>") else text


def _truth(text: str, name: str, path: Path) -> bool:
    if text.lower() not in TRUTH:
        raise InvalidInput(f"{path}: {name} is '{text}', neither true nor false.")
    return TRUTH[text.lower()]
