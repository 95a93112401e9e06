"""Levels as values, and the reader and writer of level files.

The reader takes every published file as it is. Of 1,296 public files 1,273 declare a wrong encoding and 39 leave tags
open, so tags are scanned and not parsed as strict XML. Entities are refused and never expanded.
"""

from __future__ import annotations

import math
import re
from typing import Literal
from xml.sax.saxutils import quoteattr

import msgspec

from openfield.domains.birds.game.early_novelties import NO_NOVELTY, EarlyNovelty
from openfield.errors import InvalidInput, UnknownName

ProfileName = Literal["sailon", "phyq"]
SOLID = ("Block", "Pig", "TNT", "Platform")
"""Elements that must have a place; a storm needs none."""
KINDS = (*SOLID, "Novelty", "ExternalAgent")
ELEMENTS = ("Level", "Camera", "Score", "ScenarioID", "Birds", "Bird", "Slingshot", "GameObjects", *KINDS)
MAX_LEVEL_OBJECTS, MAX_BIRDS = 400, 100
"""Published levels have up to 36 objects; the engine fails with some thousand at one place."""
MAX_COORDINATE = 1e4
"""World units. A larger coordinate is a mistake, and the engine would lose precision."""


class LevelObject(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An object placed in a level."""

    kind: str
    """The element's name, one of `KINDS`."""
    type: str = ""
    material: str = ""
    x: float
    y: float
    rotation: float = 0.0
    """Degrees, counter-clockwise."""
    scale_x: float = 1.0
    scale_y: float = 1.0
    force: float = 0.0
    """Strength of a fan or wind; 0 means the usual one."""


class Camera(msgspec.Struct, frozen=True):
    """The part of the world that is seen, in world units."""

    x: float = 0.0
    y: float = -1.0
    narrowest: float = 25.0
    widest: float = 35.0


class Laws(msgspec.Struct, frozen=True):
    """Laws of nature, as multiples of the usual ones."""

    gravity: float = 1.0
    friction: float = 1.0
    launch: float = 1.0
    """The speed of a bird that leaves the sling."""


USUAL_LAWS = Laws()


class Level(msgspec.Struct, frozen=True, kw_only=True):
    """A level as its file describes it."""

    name: str = ""
    width: int = 2
    camera: Camera = Camera()
    sling: tuple[float, float] = (-12.0, -2.5)
    birds: tuple[str, ...] = ()
    objects: tuple[LevelObject, ...] = ()
    early: EarlyNovelty = NO_NOVELTY
    """What the registry says about levels of its novelty level and type."""
    laws: Laws = USUAL_LAWS

    @property
    def profile(self) -> ProfileName:
        """The physics that the level was made for, by its camera, its novelties and its file name."""
        if self.camera.widest == 30 or any(placed.kind == "Novelty" for placed in self.objects):
            return "sailon"
        return "phyq" if re.search(r"(^|[\\/])\d+_\d+_\d+_\d+\.xml$", self.name) else "sailon"


def parse_level(content: bytes, name: str = "") -> Level:
    """Read a level from the bytes of a file, whatever encoding they declare."""
    text = re.sub(r"<!--.*?-->", "", decode_xml(content), flags=re.S)
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise InvalidInput(f"Level {name}: document types and entities are not allowed in levels.")
    tags = [(tag, _Attributes(name, tag, attributes)) for tag, attributes in _TAG.findall(text)]
    _check_elements([tag for tag, _ in tags], text, name)
    for most, kinds, what in ((MAX_LEVEL_OBJECTS, KINDS, "objects"), (MAX_BIRDS, ("Bird",), "birds")):
        if (count := sum(tag in kinds for tag, _ in tags)) > most:
            raise InvalidInput(f"Level {name}: there are {count:,} {what}; at most {most:,} are allowed.")
    parts = dict(reversed(tags))
    camera, sling = parts.get("Camera", _Attributes(name, "Camera")), parts["Slingshot"]
    return Level(
        name=name,
        width=max(1, min(8, round(parts["Level"].number("width", 2)))),
        camera=_camera(camera, name),
        sling=(sling.number("x", None), sling.number("y", None)),
        birds=tuple(found.text("type") for tag, found in tags if tag == "Bird"),
        objects=tuple(_level_object(tag, found) for tag, found in tags if tag in KINDS),
    )


def _check_elements(tags: list[str], text: str, name: str) -> None:
    """Refuse a file that is cut off or malformed, has unknown elements, or lacks those that every level has."""
    if "Level" not in tags:
        raise InvalidInput(f"Level {name}: there is no <Level> element; is this a level file?")
    if not re.search(r"</\s*Level\s*>", text):
        raise InvalidInput(f"Level {name}: there is no </Level> at the end; the file is cut off. Copy it again.")
    if malformed := re.search(r"<\s*[A-Za-z_][^>]{0,60}", _TAG.sub("", text)):
        raise InvalidInput(
            f"Level {name}: {' '.join(malformed[0].split())} ... is not well-formed; look at its quotes."
        )
    if unknown := next((tag for tag in tags if tag not in ELEMENTS), ""):
        raise InvalidInput(f"Level {name}: {UnknownName('element', unknown, ELEMENTS, label='Known')}")
    if missing := next((tag for tag in ("Slingshot", "Bird", "Pig") if tag not in tags), ""):
        raise InvalidInput(f"Level {name}: there is no <{missing}> element; without one the level cannot be played.")


def write_level(level: Level) -> str:
    """Return a level as the text of a file that every reader of such files accepts."""
    camera = level.camera
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        f'<Level width="{level.width}">',
        f'  <Camera x="{camera.x:g}" y="{camera.y:g}" minWidth="{camera.narrowest:g}" maxWidth="{camera.widest:g}" />',
        '  <Score highScore="0" />',
        "  <Birds>",
        *(f"    <Bird type={quoteattr(bird)} />" for bird in level.birds),
        "  </Birds>",
        f'  <Slingshot x="{level.sling[0]:g}" y="{level.sling[1]:g}" />',
        "  <GameObjects>",
        *(f"    {_element(placed)}" for placed in level.objects),
        "  </GameObjects>",
        "</Level>",
    ]
    return "\n".join(lines) + "\n"


def decode_xml(content: bytes) -> str:
    """Decode an XML file by its first bytes, not by the encoding it declares."""
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return content.decode("utf-16", "replace")
    if len(content) > 3 and content[1] == 0:
        return content.decode("utf-16-le", "replace")
    if len(content) > 3 and content[0] == 0:
        return content.decode("utf-16-be", "replace")
    return content.decode("utf-8-sig", "replace")


class _Attributes:
    """The attributes of a tag; errors name the level and the tag."""

    def __init__(self, level: str, tag: str, text: str = "") -> None:
        self._level, self._tag = level, tag
        self._values: dict[str, str] = {name: first or second for name, first, second in _ATTRIBUTE.findall(text)}

    def text(self, name: str) -> str:
        return self._values.get(name, "")

    def number(self, name: str, default: float | None = 0.0, nonzero: bool = False) -> float:
        """Return a number; without a default it is required."""
        text = self.text(name).strip()
        if not text and default is None:
            raise InvalidInput(f"Level {self._level}: <{self._tag}> has no {name}='...'; it needs a place, x and y.")
        try:
            number = float(text or default or 0.0)
        except ValueError:
            number = math.nan
        if not abs(number) <= MAX_COORDINATE or (nonzero and not number):
            right = f"a number up to {MAX_COORDINATE:g}{', and not 0' if nonzero else ''}"
            raise InvalidInput(f"Level {self._level}: <{self._tag}> has {name}={text!r}; it must be {right}.")
        return number


_TAG = re.compile(r"<\s*([A-Za-z_]\w*)((?:\s+[\w:.-]+\s*=\s*(?:\"[^\"<]*\"|'[^'<]*'))*)\s*/?\s*>")
_ATTRIBUTE = re.compile(r"([\w:.-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")


def _camera(camera: _Attributes, name: str) -> Camera:
    narrowest, widest = camera.number("minWidth", 25.0), camera.number("maxWidth", 35.0)
    if not 0 < narrowest <= widest:
        raise InvalidInput(
            f"Level {name}: <Camera> has minWidth={narrowest:g} and maxWidth={widest:g}; "
            "it must be 0 < minWidth <= maxWidth."
        )
    return Camera(camera.number("x"), camera.number("y", -1.0), narrowest, widest)


def _level_object(tag: str, found: _Attributes) -> LevelObject:
    origin = None if tag in SOLID else 0.0
    return LevelObject(
        kind=tag,
        type=found.text("type"),
        material=found.text("material"),
        x=found.number("x", origin),
        y=found.number("y", origin),
        rotation=found.number("rotation"),
        scale_x=found.number("scaleX", 1.0, nonzero=True),
        scale_y=found.number("scaleY", 1.0, nonzero=True),
        force=found.number("forceMagnitude"),
    )


def _element(placed: LevelObject) -> str:
    words = [f"<{placed.kind} type={quoteattr(placed.type)}"]
    if placed.kind in ("Block", "Novelty"):
        words.append(f"material={quoteattr(placed.material)}")
    words.append(f'x="{placed.x:.5g}" y="{placed.y:.5g}" rotation="{placed.rotation:g}"')
    if (placed.scale_x, placed.scale_y) != (1.0, 1.0) or placed.kind == "Platform":
        words.append(f'scaleX="{placed.scale_x:.5g}" scaleY="{placed.scale_y:.5g}"')
    if placed.force:
        words.append(f'forceMagnitude="{placed.force:g}"')
    return " ".join(words) + " />"
