"""XML elements of configuration files: typed attributes, and errors that name the file, the element and the attribute.

Encodings are detected and document types are refused. A misspelt element or attribute is refused with the name that was
meant. A name that resembles none is ignored with a warning, because other releases of the game may write it.
"""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from openfield.domains.birds.game.level import decode_xml
from openfield.errors import InvalidInput
from openfield.files.data import read_data
from openfield.lazy import import_extra

MAX_NUMBER = 10**9
MIN_LIKENESS = 0.6
"""How alike two names are, from 0 to 1, of which one is taken for a misspelling of the other."""


class ElementNames(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The names that an element may contain."""

    attributes: tuple[str, ...] = ()
    children: tuple[str, ...] = ()


@cache
def load_names() -> dict[str, dict[str, ElementNames]]:
    """Return the elements of each kind of file, by the name of its root."""
    return read_data("openfield.domains.birds", "configuration.toml", dict[str, dict[str, ElementNames]])


def read_root(path: Path, name: str) -> XmlElement:
    """Read an XML file and return its root element, after a check of all names in it."""
    import_extra("defusedxml", "birds", "Reading configurations of birds")
    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import ParseError, fromstring

    try:
        text = re.sub(r"^\s*<\?xml[^>]*\?>", "", decode_xml(path.read_bytes()))
        element = fromstring(text.strip("\x00 \t\r\n"), forbid_dtd=True)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from None
    except DefusedXmlException:
        raise InvalidInput(f"{path}: document types and entities are not allowed.") from None
    except (ParseError, ValueError) as error:
        raise InvalidInput(_say_malformed(path, str(error))) from None
    if element.tag != name:
        raise InvalidInput(f"{path} has <{element.tag}> at its top; expected <{name}>.")
    root = XmlElement(element, path)
    root.check_names(load_names()[name])
    return root


def _say_malformed(path: Path, said: str) -> str:
    """Return what is wrong with a malformed file, and where."""
    reason, _, place = said.partition(":")
    cut = reason in ("no element found", "unclosed token")
    place = place.strip()
    return (
        f"{path} {'is cut off; copy it again' if cut else f'is not well-formed: {reason}'} ({place or 'in its text'})."
    )


@contextmanager
def naming(place: str) -> Iterator[None]:
    """Prefix the message of an `InvalidInput` with a place."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(f"{place}: {error}") from None


class XmlElement:
    """An XML element with typed attributes."""

    def __init__(self, element: Any, path: Path) -> None:
        self._element, self.path = element, path

    @property
    def place(self) -> str:
        """The file and the tag, for messages."""
        return f"{self.path}: <{self._element.tag}>"

    def check_names(self, known: dict[str, ElementNames]) -> None:
        """Refuse misspelt names of attributes and elements, here and in all elements inside."""
        names = known[self._element.tag]
        self._check("attribute", self._element.attrib, names.attributes)
        self._check("element", (child.tag for child in self._element), names.children)
        for child in self._element:
            if child.tag in names.children:
                XmlElement(child, self.path).check_names(known)

    def _check(self, kind: str, found: Iterable[str], known: tuple[str, ...]) -> None:
        for name in dict.fromkeys(found):
            if name in known or name.startswith("{"):  # a name of another name space says nothing about trials
                continue
            near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=MIN_LIKENESS)
            if near:
                raise InvalidInput(f"{self.place}: unknown {kind} '{name}'. Did you mean '{near[0]}'?")
            listed = f"Known: {', '.join(known)}." if known else f"It has no {kind}s."
            warnings.warn(f"{self.place}: the {kind} '{name}' is not known and is ignored. {listed}", stacklevel=2)

    def all(self, where: str) -> list[XmlElement]:
        """Return the elements at a path below this one."""
        return [XmlElement(found, self.path) for found in self._element.findall(where)]

    def one(self, where: str) -> XmlElement | None:
        """Return the element at a path below this one, or None; a second one is refused."""
        found = self.all(where)
        if len(found) > 1:
            raise InvalidInput(f"{self.place}: there are {len(found)} <{where}>. Leave one of them.")
        return next(iter(found), None)

    def has(self, name: str) -> bool:
        """Return whether the element has an attribute."""
        return self._element.get(name) is not None

    def text(self, name: str, default: str | None = None, allowed: str = "a text") -> str:
        """Return an attribute; without a default it is required, and an error says what is allowed."""
        value = self._element.get(name, default)
        if value is None:
            raise self.error(name, None, allowed)
        return str(value).strip()

    def whole(self, name: str, default: int | None = None, most: int = MAX_NUMBER) -> int:
        """Return a whole number from an attribute."""
        allowed = f"a whole number up to {most:,}"
        text = self.text(name, None if default is None else str(default), allowed)
        if not re.fullmatch(r"[+-]?\d{1,10}(\.0*)?", text) or float(text) > most:
            raise self.error(name, text, allowed)
        return int(float(text))

    def choice(self, name: str, allowed: tuple[str, ...], default: str | None = None) -> str:
        """Return an attribute that has one of some values, in any case."""
        *quoted, last = (f'"{value}"' for value in allowed)
        said = f"{', '.join(quoted)} or {last}"
        text = self.text(name, default, said)
        if text.lower() not in allowed:
            raise self.error(name, text, said)
        return text.lower()

    def truth(self, name: str, default: str | None = None) -> bool:
        """Return `true` or `false` from an attribute, in any case."""
        return self.choice(name, ("true", "false"), default) == "true"

    def stated(self, name: str) -> XmlElement:
        """Move the value of the element to an attribute of this name; it may be there, in `value`, or in the text."""
        places = (self._element.get(name), self._element.get("value"), self._element.text, "")
        self._element.set(name, next(text for text in places if text is not None))
        return self

    def share(self, name: str, default: float, highest: float) -> float:
        """Return a number from 0 up from an attribute."""
        text = self.text(name, str(default))
        if not re.fullmatch(r"\d{1,9}(\.\d+)?", text) or float(text) > highest:
            raise self.error(name, text, f"a number from 0 to {highest:g}")
        return float(text)

    def error(self, name: str, value: str | None, allowed: str) -> InvalidInput:
        """Return an error about an attribute."""
        found = "is missing" if value is None else f"cannot be {value!r}"
        return InvalidInput(f"{self.place}: '{name}' {found}. Allowed: {allowed}.")
