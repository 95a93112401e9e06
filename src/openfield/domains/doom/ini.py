"""The INI files of the old family: the client's and the server's, read as values and written back.

At the rim: `serve --config` and the client of protocol 0.8 read them, `wire:` agents get a copy with our address.
"""

from __future__ import annotations

import configparser
import re
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import msgspec

from openfield.errors import InvalidInput

T = TypeVar("T", bound=msgspec.Struct)


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What a server's file says about experiments; the names are the file's."""

    amqp: str | None = None
    """Where the broker is."""
    trials: int = 30
    novelty: tuple[int, ...] = (200,)
    difficulty: tuple[str, ...] = ("easy", "medium", "hard")
    novelty_visibility: tuple[int, ...] = (0, 1)
    hint_level: tuple[int, ...] = (-1, 0, 1, 2, 3)
    normal_timeout_seconds: float = 1200.0
    training_timeout_multiplier: float = 100.0
    testing_novelty_p2: float = 0.8
    phase: str = "3"
    training_episodes: int = 100
    testing_episodes: int = 200
    pre_novel_episodes: int = 0
    shortdemo: bool = False


class ClientConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What a client's file says."""

    amqp: str
    model_name: str
    organization: str = ""
    username: str = ""
    secret: str = ""
    description: str = ""
    seed: int | None = None
    episode_seed: int | None = None
    domain: str = "vizdoom"
    experiment_secret: str | None = None
    no_testing: bool = False
    just_one_trial: bool = False


def read_server(path: Path) -> ServerConfig:
    """A server's file; what it does not say has the published default."""
    parser = _read(path)
    values = {**_section(parser, "sail-on"), **_section(parser, "vizdoom"), **_section(parser, "options")}
    if values.get("demo", "").lower() in _TRUE:
        values |= {"training_episodes": "3", "testing_episodes": "3"}
    return _convert({**values, "amqp": broker_url(parser)}, ServerConfig, path)


def read_client(path: Path) -> ClientConfig:
    """A client's file."""
    parser = _read(path)
    if not parser.has_section("amqp"):
        raise InvalidInput(f"{path}: there is no section [amqp].")
    values = {**_section(parser, "aiq-sail-on"), **_section(parser, "sail-on")}
    config = _convert({**values, "amqp": broker_url(parser)}, ClientConfig, path)
    if config.just_one_trial and config.experiment_secret is None:
        raise InvalidInput(f"{path}: just_one_trial needs an experiment_secret.")
    return config


def write_client(source: Path, target: Path, changes: dict[str, dict[str, str | None]]) -> None:
    """A copy of a client's file with some values changed; None removes a value."""
    parser = _read(source)
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


def broker_url(parser: configparser.ConfigParser) -> str | None:
    """Where the section [amqp] says the broker is; a virtual host is written with one slash before its name."""
    values = _section(parser, "amqp")
    if not values:
        return None
    secure = values.get("ssl", "").lower() in _TRUE
    user, password = quote(values.get("user", "guest"), ""), quote(values.get("pass", "guest"), "")
    host, port = values.get("host", "localhost"), values.get("port", "5671" if secure else "5672")
    vhost = values.get("vhost", "/").removeprefix("/")
    return f"{'amqps' if secure else 'amqp'}://{user}:{password}@{host}:{port}/{quote(vhost, '')}"


def _read(path: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None)
    try:
        with path.open() as file:
            parser.read_file(file)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from None
    except (configparser.Error, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} is no INI file: {str(error).splitlines()[0]}") from None
    return parser


def _section(parser: configparser.ConfigParser, name: str) -> dict[str, str]:
    return dict(parser[name]) if parser.has_section(name) else {}


def _convert(values: dict[str, str | None], kind: type[T], path: Path) -> T:
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    known = {name: _value(text, str(fields[name].type)) for name, text in values.items() if name in fields and text}
    try:
        return msgspec.convert(known, kind, strict=False)
    except msgspec.ValidationError as error:
        reason = re.sub(r" - at `\$\.(\w+).*`$", r" (\1)", str(error))
        raise InvalidInput(f"{path}: {reason}.") from None


def _value(text: str, kind: str) -> object:
    """A list may stand in brackets; truth has the many spellings of INI files."""
    if "tuple" in kind:
        return [part for part in re.split(r"[\s,\[\]\"']+", text) if part]
    if kind.endswith("bool'>"):
        return text.lower() in _TRUE
    return text


_TRUE = ("1", "true", "yes", "on")
