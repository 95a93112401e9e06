"""Parameters of an agent, written in brackets behind it: `my.py:Net(checkpoint=best.pt, layers=[64, 32])`.

Values are numbers, `true` and `false`, `null`, text, lists in `[]` and tables in `{}`. Text needs quotes only where it
could be read as something else, or has one of the signs `,=()[]{}"'`. A file in the brackets, `Net(best.json)` or
`Net(best.toml)`, holds further parameters; those beside it win. The text of an agent with its parameters is its name
in reports and its source in run files, so it has one form: `read_agent(text).name`. A detector may sit on it, with
parameters of its own: `planner+river:ADWIN(delta=0.002)`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, overload

import msgspec

from openfield.errors import InvalidInput
from openfield.files.data import read_json, read_toml

MAX_TEXT = 1 << 16
"""Characters of an agent with its parameters."""
MAX_DEPTH = 20
"""How deep lists and tables may be nested."""
CONTROL = "control:"
"""What the source of a control begins with in plans and run files."""
COMMANDS = ("process:", "wire:")
"""What the source of a program begins with. Programs take the words of their command instead of parameters."""
MODELS = ("onnx:", "sb3:")
"""What the source of a trained model begins with. Its file stands last: `onnx:net.onnx`, `sb3:PPO:net.zip`."""
LLM = "llm:"
"""What the source of a language model begins with. Its name at the endpoint follows: `llm:MODEL`."""
RIVER = "river:"
"""What a detector of the package river begins with. The name of its class follows: `river:ADWIN`."""
DETECTORS = ("surprise", "returns", "observations", "cusum", "threshold", "bocpd", "mmd", "deedee")
"""Detectors of our own that an agent may have, as `AGENT+NAME`; `openfield.agents.detectors` makes them."""
WORDS = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}
RIVER_DETECTORS = (f"{RIVER}ADWIN", f"{RIVER}KSWIN", f"{RIVER}PageHinkley")
"""Some detectors of river that fit any numbers."""
_PLACE = re.compile(r".*?\.py:[\w.]+(?=\()|[^()]*(?=\()")
_DETECTOR = re.compile(rf"\+(?:{'|'.join(DETECTORS)}|{RIVER}\w+)(?:\(.*\))?", re.DOTALL)
_BARE = re.compile(r"[^,=()\[\]{}\"']+")
_KEY = re.compile(r"[\w.-]+")
_WHOLE = re.compile(r"[+-]?\d+")
_REAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?inf|nan")


def is_control(source: str | None) -> bool:
    """Return whether the source of an agent in a plan or a run file is that of a control."""
    return source is not None and source.startswith(CONTROL)


def is_command(source: str) -> bool:
    """Return whether the source of an agent is the command of a program."""
    return source.startswith(COMMANDS)


def list_language_models(agents: Mapping[str, object]) -> list[str]:
    """Return the names of those agents that are language models."""
    return [name for name, agent in agents.items() if isinstance(agent, AgentText) and agent.text.startswith(LLM)]


def strip_parameters(source: str) -> str:
    """Return an agent without brackets and detector. They are not read, so nothing in them can be wrong here."""
    return _strip_brackets(split_detector(source)[0])


def _strip_brackets(source: str) -> str:
    found = None if source.startswith(COMMANDS) or not source.endswith(")") else _PLACE.match(source)
    return source if found is None else found[0]


def split_detector(source: str) -> tuple[str, str]:
    """Return an agent without its detector, and the detector, empty if it has none.

    The last word of a command may be in quotes, so that it names no detector: `process:convert '+cusum'`.
    """
    if "+" not in source:
        return source, ""
    for plus in re.finditer(r"\+", source[:MAX_TEXT]):
        agent = source[: plus.start()].rstrip()
        # else this sign is within the brackets of the agent
        whole = agent.endswith(")") or "(" not in agent or source.startswith(COMMANDS)
        if agent and whole and _DETECTOR.fullmatch(source, plus.start()):
            return agent, source[plus.end() :]
    return source, ""


@dataclass(frozen=True)
class AgentText:
    """An agent as text, split once: `my.py:Net(rate=0.5)` is the place `my.py:Net` with the parameter `rate`."""

    text: str
    """The text as it was given."""
    place: str
    """The text without brackets. That of a program is its whole command."""
    parameters: Mapping[str, Any]
    detector: AgentText | None = None
    """The detector that states its beliefs."""

    def __str__(self) -> str:
        return self.text

    @property
    def name(self) -> str:
        """The one form of the text, with the parameters of files in it: the name of the agent in reports."""
        own = write_source(self.place, self.parameters)
        return own if self.detector is None else f"{own}+{self.detector.name}"

    @property
    def player(self) -> AgentText:
        """The agent without its detector."""
        return make_agent_text(self.place, self.parameters) if self.detector else self

    @property
    def files(self) -> list[Path]:
        """The files that exist among those that it names: its model, and the values of its parameters."""
        model = {"": self.place.rpartition(":")[2]} if self.place.startswith(MODELS) else {}
        return named_files({**self.parameters, **model})

    def settle(self, absolute: Callable[[str], str] = str) -> AgentText:
        """Return it with full paths of the files that exist: run files keep it so, and processes in other folders.

        Args:
            absolute: Returns a place as a process in another folder can use it.
        """
        place = self.place
        if place.startswith(MODELS):
            start, colon, file = place.rpartition(":")
            place = f"{start}{colon}{_full_path(file)}"
        settled = {name: _change(value, _full_path) for name, value in self.parameters.items()}
        return make_agent_text(absolute(place), settled, self.detector)

    def give(self, parameters: Mapping[str, Any]) -> AgentText:
        """Return it with further parameters; they win over those it has."""
        return make_agent_text(self.place, {**self.parameters, **parameters}, self.detector)


def make_agent_text(place: str, parameters: Mapping[str, Any], detector: AgentText | None = None) -> AgentText:
    """Return an agent with these parameters and this detector."""
    made = AgentText("", place, parameters, detector)
    return AgentText(made.name, place, parameters, detector)


@overload
def read_agent(source: str | AgentText, unpack: Callable[[dict[str, Any]], Mapping[str, Any]] = dict) -> AgentText: ...
@overload
def read_agent(source: Callable[..., Any]) -> Callable[..., Any]: ...
def read_agent(source: Any, unpack: Callable[[dict[str, Any]], Mapping[str, Any]] = dict) -> Any:
    """Return an agent whose text is split, into its place and the parameters in its brackets; others as they are.

    Args:
        source: The agent. One that is split already stays as it is.
        unpack: Returns the parameters in the values of a file, where they are not the values themselves.

    Raises:
        InvalidInput: The brackets cannot be read; the message says where.
    """
    if not isinstance(source, str):
        return source
    plain, detector = split_detector(source)
    if detector:
        agent, made = read_agent(plain, unpack), read_agent(detector)
        if agent.detector is not None:
            raise InvalidInput(f"'{source}' has two detectors, and an agent takes one.")
        return AgentText(source, agent.place, agent.parameters, made)
    place = _strip_brackets(source)
    if place == source:
        return AgentText(source, source, {})
    if len(source) > MAX_TEXT:
        raise InvalidInput(f"An agent with its parameters has at most {MAX_TEXT:,} characters. Put them in a file.")
    named, files = _Reader(source, len(place) + 1).read_brackets()
    read = (unpack(read_parameters(Path(file))).items() for file in files)
    return AgentText(source, place, {name: value for values in read for name, value in values} | named)


def write_source(place: str, parameters: Mapping[str, Any]) -> str:
    """Return an agent with its parameters as text, in the order of their names.

    Raises:
        InvalidInput: A value is neither a number, a text, true, false, null, a list nor a table.
    """
    written = ", ".join(f"{_write_key(name)}={write_value(value)}" for name, value in sorted(parameters.items()))
    return f"{place}({written})" if parameters else place


def named_files(parameters: Mapping[str, Any]) -> list[Path]:
    """Return the files that exist among the values of parameters."""
    found: list[Path] = []

    def note(value: Any) -> Any:
        if (path := _existing(value)) is not None:
            found.append(path)
        return value

    _change(dict(parameters), note)
    return found


VERSION = re.compile(r"(.*[^ ])( \([^()]*\))")
"""An agent, and in parentheses which of its versions it is, or which run file it is from."""


def shorten_agents(agents: Iterable[str]) -> dict[str, str]:
    """Return a short name for each agent that none of the others has.

    `labs/net.py:Net(rate=0.5)` is `Net`, beside another `Net` with other parameters `Net(rate=0.5)`, and beside one of
    another file `net.py:Net(rate=0.5)`.
    """
    forms = {agent: _list_names(agent) for agent in agents}
    chosen = dict.fromkeys(forms, 0)
    while True:
        names = {agent: forms[agent][at] for agent, at in chosen.items()}
        uses = Counter(names.values())
        longer = [agent for agent, name in names.items() if uses[name] > 1 and chosen[agent] < len(forms[agent]) - 1]
        if not longer:
            return names
        for agent in longer:
            chosen[agent] += 1


def _list_names(agent: str) -> list[str]:
    """Return the possible names of an agent, the shortest first and its own last. A detector is part of them all."""
    player, detector = split_detector(agent)
    if detector:
        return [f"{name}+{detector}" for name in _list_names(player)]
    versioned = VERSION.fullmatch(agent)
    if versioned:
        return [f"{name}{versioned[2]}" for name in _list_names(versioned[1])]
    place, bracket, parameters = agent.partition("(")
    if ":" not in place or " " in place:  # a name, or a command line
        return [agent]
    kind, _, name = place.rpartition(":")
    bare = name.rpartition("/")[2]
    file = kind.rpartition("/")[2]
    return list(dict.fromkeys([bare, f"{bare}{bracket}{parameters}", f"{file}:{bare}{bracket}{parameters}", agent]))


@overload
def with_parameters(agent: str, **parameters: Any) -> str: ...
@overload
def with_parameters(agent: Callable[..., Any], **parameters: Any) -> Callable[..., Any]: ...
def with_parameters(agent: Any, **parameters: Any) -> Any:
    """Return an agent with parameters: `of.agents.with_parameters("my.py:Net", checkpoint="best.pt", temperature=0.5)`.

    A class or factory is called with them beside spec and seed, a function beside the turn. They are part of the
    agent's identity: cells that were played with other parameters are played again.
    """
    if not isinstance(agent, str):
        return partial(agent, **parameters)
    return read_agent(agent).give(parameters).text


def read_parameters(path: Path) -> dict[str, Any]:
    """Return the parameters in a JSON or TOML file.

    Raises:
        InvalidInput: It cannot be read, or is not a table of names and values.
    """
    if path.suffix not in (".json", ".toml"):
        raise InvalidInput(f"Parameters are NAME=VALUE, or a .json or .toml file with them, not '{path}'.")
    if path.exists() and not path.is_file():
        raise InvalidInput(f"{path} is not a file of parameters.")
    values = read_toml(path) if path.suffix == ".toml" else read_json(path)
    if not isinstance(values, dict):
        raise InvalidInput(f"{path} is a {type(values).__name__}, not an object of names and values.")
    return values


def read_value(text: str) -> Any:
    """Return the value that a text stands for, as in brackets: `0.5`, `true`, `[1, 2]`, `{a=1}`; else the text.

    Raises:
        InvalidInput: A list or table is not closed, or something follows it.
    """
    if text.strip()[:1] not in ("[", "{", '"', "'"):
        return _read_word(text)
    reader = _Reader(text, 0)
    value = reader.read_value(0)
    reader.skip_spaces()
    if reader.at < len(text):
        raise reader.wrong("nothing more")
    return value


def write_value(value: Any) -> str:
    """Return a value as text that `read_value` reads back."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_write_key(str(name))}={write_value(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(write_value, value))}]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Path):
        value = str(value)
    if not isinstance(value, str):
        raise InvalidInput(
            f"A parameter may be a number, text, true, false, null, a list or a table, not a {type(value).__name__}."
        )
    is_plain = _BARE.fullmatch(value) and value == value.strip() and value.isprintable() and _read_word(value) == value
    return value if is_plain else msgspec.json.encode(value).decode()


class _Reader:
    """Reads the content of brackets, from a position in a text on."""

    def __init__(self, text: str, at: int) -> None:
        self._text, self.at = text, at

    def read_brackets(self) -> tuple[dict[str, Any], list[str]]:
        """Return the parameters up to the closing bracket, which ends the text, and the files among them."""
        named: dict[str, Any] = {}
        files: list[str] = []
        while not self._take(")"):
            start = self.at
            key = self._read_key()
            if key and self._take("="):
                self._add(named, key, self.read_value(0))
            else:
                self.at = start
                files.append(str(self.read_value(0)))
            if not self._take(","):
                self._expect(")")
                break
        if self.at != len(self._text):
            raise self.wrong("nothing after the closing bracket")
        return named, files

    def read_value(self, depth: int) -> Any:
        """Return the next value, at this depth of lists and tables."""
        self.skip_spaces()
        if depth > MAX_DEPTH:
            raise InvalidInput(f"Parameters are nested more than {MAX_DEPTH} deep.")
        if self._take("["):
            return self._read_list(depth)
        if self._take("{"):
            return self._read_table(depth)
        return self._read_text() if self._next() in ('"', "'") else self._read_bare()

    def skip_spaces(self) -> None:
        """Pass over spaces and line ends."""
        while self.at < len(self._text) and self._text[self.at].isspace():
            self.at += 1

    def wrong(self, wanted: str) -> InvalidInput:
        """Return the error that something else is wanted here."""
        return InvalidInput(f"'{self._text:.200}': {wanted} is wanted at character {self.at + 1}.")

    def _read_list(self, depth: int) -> list[Any]:
        values: list[Any] = []
        while not self._take("]"):
            values.append(self.read_value(depth + 1))
            if not self._take(","):
                self._expect("]")
                break
        return values

    def _read_table(self, depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        while not self._take("}"):
            key = self._read_key()
            if not key or not (self._take("=") or self._take(":")):
                raise self.wrong("NAME=VALUE")
            self._add(values, key, self.read_value(depth + 1))
            if not self._take(","):
                self._expect("}")
                break
        return values

    def _add(self, values: dict[str, Any], key: str, value: Any) -> None:
        if key in values:
            raise InvalidInput(f"'{self._text:.200}': the parameter '{key}' is given twice.")
        values[key] = value

    def _read_key(self) -> str:
        self.skip_spaces()
        if self._next() in ('"', "'"):
            return self._read_text()
        found = _KEY.match(self._text, self.at)
        self.at = found.end() if found else self.at
        return found[0] if found else ""

    def _read_text(self) -> str:
        """Return a text in quotes: double ones as in JSON, single ones as it stands."""
        quote, start = self._text[self.at], self.at
        pattern = r'"(?:[^"\\]|\\.)*"' if quote == '"' else r"'[^']*'"
        found = re.compile(pattern, re.DOTALL).match(self._text, start)
        if found is None:
            raise self.wrong(f"a text that ends with {quote}")
        self.at = found.end()
        try:
            return str(msgspec.json.decode(found[0], type=str)) if quote == '"' else found[0][1:-1]
        except (msgspec.DecodeError, UnicodeEncodeError):
            self.at = start
            raise self.wrong("a text as in JSON") from None

    def _read_bare(self) -> Any:
        found = _BARE.match(self._text, self.at)
        if found is None or not found[0].strip():
            raise self.wrong("a value")
        self.at = found.end()
        if self._next() not in (",", ")", "]", "}"):
            raise self.wrong("a comma or a closing bracket (text with such signs needs quotes)")
        return _read_word(found[0])

    def _next(self) -> str:
        return self._text[self.at : self.at + 1]

    def _take(self, sign: str) -> bool:
        """Pass over a sign if it comes next, and return whether it did."""
        self.skip_spaces()
        found = self._next() == sign
        self.at += found
        return found

    def _expect(self, sign: str) -> None:
        if not self._take(sign):
            raise self.wrong(f"a comma or '{sign}'")


def _read_word(text: str) -> Any:
    """Return the number or constant that a word stands for, or else the word."""
    word = text.strip()
    if word in WORDS:
        return WORDS[word]
    if _WHOLE.fullmatch(word) and len(word) < 100:
        return int(word)
    return float(word) if _REAL.fullmatch(word) else word


def _write_key(name: str) -> str:
    return name if _KEY.fullmatch(name) else msgspec.json.encode(name).decode()


def _change(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a value with every text, number and constant in it changed."""
    if isinstance(value, Mapping):
        return {name: _change(one, change) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_change(one, change) for one in value]
    return change(value)


def _existing(value: Any) -> Path | None:
    """Return the file that a value names, if there is one. A word without a dot or slash is not taken for a file."""
    if isinstance(value, Path):
        value = str(value)
    if not isinstance(value, str) or not {".", "/"} & set(value):
        return None
    try:
        return Path(value).absolute() if Path(value).is_file() else None
    except (OSError, ValueError):  # a text that is too long for a name, or has a zero byte
        return None


def _full_path(value: Any) -> Any:
    path = _existing(value)
    return value if path is None else str(path)
