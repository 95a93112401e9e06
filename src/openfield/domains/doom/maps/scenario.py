"""Build a WAD from layouts: every episode is a map of its own, with the actors and scripts it needs.

The tasks draw layouts (`arena`, `duel`). The engine loads maps, actors and scripts from the WAD.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from string import Template
from typing import Any

import msgspec

from openfield.domains.doom.maps.acs import assemble
from openfield.domains.doom.settings import DoomSettings
from openfield.errors import InvalidInput

Lump = tuple[str, bytes]
"""A named piece of a WAD; the order of lumps carries meaning."""
FIRST_MAP = "HALL"
"""A map that every WAD has. The engine loads it before any episode."""
_HEADER = struct.Struct("<4sii")
_ENTRY = struct.Struct("<ii8s")
Point = tuple[float, float]
Value = bool | int | float | str
_PLACED = "skill1=true;skill2=true;skill3=true;skill4=true;skill5=true;single=true;coop=true;dm=true;class1=true;"
CEILING = 150.0
_SECTOR = 'sector{heightceiling=150;lightlevel=210;gravity=1.0000;texturefloor="FLOOR0_1";textureceiling="CEIL1_1";}'
PLAYER, HEALTH, AMMO, TRAP, OBSTACLE = 1, 20011, 20012, 20013, 20014
"""The numbers of actors in maps. Enemies and packs of bullets have one number per variant, from these on."""
FIRST_ENEMY, FIRST_AMMO = 21000, 20100
ENEMY_TAG = 20
ITEM_TAG = 100
PILLAR_TAG = 1000
"""The first tags, by which scripts know things: of enemies, of items that lie loose, and of pillars."""
PLAYER_HALF, PILLAR_HALF, ENEMY_HALF = 16, 16, 20
"""Half the widths of player, pillars and enemies; the duel has a setting for its enemies."""


class MapText:
    """A map under construction: one sector, walls around and inside it, things on its floor."""

    def __init__(self) -> None:
        self._vertices: dict[Point, int] = {}
        self._lines: list[str] = []
        self._sides: list[str] = []
        self._things: list[str] = []

    def room(self, corners: Sequence[Point]) -> None:
        """Add walls around a shape whose inside can be walked; its corners are given clockwise."""
        self._ring(corners, "STARTAN2")

    def solid(self, corners: Sequence[Point]) -> None:
        """Add a shape inside the room that cannot be entered; its corners are given clockwise."""
        self._ring([corners[0], *corners[:0:-1]], "STONE2")

    def thing(self, number: int, at: Point, angle: int = 0, tag: int = 0) -> None:
        """Add the actor of this number on the floor; scripts know it by its tag."""
        fields: dict[str, Value] = {"x": float(at[0]), "y": float(at[1]), "angle": angle, "type": number}
        if tag:
            fields["id"] = tag
        self._things.append(block("thing", _PLACED, **fields))

    def encode(self) -> bytes:
        """Return the text of the map."""
        vertices = [block("vertex", x=float(x), y=float(y)) for x, y in self._vertices]
        blocks = ['namespace="zdoom";', *vertices, *self._lines, *self._sides, _SECTOR, *self._things]
        return "\n".join(blocks).encode("ascii")

    def _ring(self, corners: Sequence[Point], texture: str) -> None:
        """Add walls whose walkable side is on the right of the way around: clockwise it is inside."""
        for start, end in zip(corners, (*corners[1:], corners[0]), strict=True):
            v1, v2 = (self._vertices.setdefault(at, len(self._vertices)) for at in (start, end))
            self._lines.append(block("linedef", v1=v1, v2=v2, sidefront=len(self._sides), blocking=True))
            self._sides.append(block("sidedef", sector=0, texturemiddle=texture))


def block(kind: str, more: str = "", **fields: Value) -> str:
    """Write one block of the format."""
    return f"{kind}{{{''.join(f'{name}={_written(value)};' for name, value in fields.items())}{more}}}"


def _written(value: Value) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value:.4f}"
        case str():
            return f'"{value}"'
    return str(value)


class Wall(msgspec.Struct, frozen=True):
    """A wall as the agent sees it."""

    x1: float
    x2: float
    y1: float
    y2: float


class Rectangle(msgspec.Struct, frozen=True):
    """A rectangular room or solid."""

    left: float
    bottom: float
    right: float
    top: float

    @property
    def corners(self) -> list[Point]:
        """The corners, clockwise."""
        left, bottom, right, top = msgspec.structs.astuple(self)
        return [(left, bottom), (left, top), (right, top), (right, bottom)]

    def walls(self) -> list[Wall]:
        """Return the four sides."""
        across = [Wall(self.left, self.right, y, y) for y in (self.bottom, self.top)]
        return across + [Wall(x, x, self.bottom, self.top) for x in (self.left, self.right)]


class Outline(msgspec.Struct, frozen=True):
    """A room of several rectangles that are joined: its corners, clockwise. Its walls run along the axes."""

    corners: tuple[Point, ...]

    def walls(self) -> list[Wall]:
        """Return the walls in the order of the corners."""
        pairs = zip(self.corners, (*self.corners[1:], self.corners[0]), strict=True)
        return [Wall(min(a, c), max(a, c), min(b, d), max(b, d)) for (a, b), (c, d) in pairs]


class MapLayout(msgspec.Struct, kw_only=True):
    """Where everything is at the start of an episode."""

    room: Rectangle | Outline
    solids: tuple[Rectangle, ...] = ()
    player: tuple[Point, int]
    """Position and angle."""
    enemies: list[tuple[Point, int]]
    items: list[tuple[int, Point]] = []
    """The number of the actor, and the position."""
    actor: tuple[tuple[str, int], ...] = ()
    """The values of the enemy's actor. Layouts with the same values share a variant."""

    def walls(self) -> list[Wall]:
        """Return all walls."""
        return [wall for part in (self.room, *self.solids) for wall in part.walls()]

    def text(self, enemy: int, ammo: int) -> bytes:
        """Return the text of the map, with enemies and packs of bullets of these actor numbers."""
        text = MapText()
        text.room(self.room.corners)
        for solid in self.solids:
            text.solid(solid.corners)
        text.thing(PLAYER, *self.player)
        for tag, (at, angle) in enumerate(self.enemies, ENEMY_TAG):
            text.thing(enemy, at, angle, tag)
        for first, pillars in ((ITEM_TAG, False), (PILLAR_TAG, True)):
            things = [item for item in self.items if (item[0] == OBSTACLE) is pillars]
            for tag, (number, at) in enumerate(things, first):
                text.thing(ammo if number == AMMO else number, at, 0, tag)
        return text.encode()


def build_wad(task: str, layouts: Sequence[MapLayout], settings: Sequence[DoomSettings]) -> bytes:
    """Build a WAD with these episodes, each under the `map_name` of its number."""
    variants = list(dict.fromkeys(layout.actor for layout in layouts))
    packs = list(dict.fromkeys(_pack_of(chosen) for chosen in settings))
    hall = MapLayout(room=Rectangle(-128, -128, 128, 128), player=((0, 0), 0), enemies=[])
    lumps = map_lumps(FIRST_MAP, hall.text(FIRST_ENEMY, FIRST_AMMO), _scripts(8, 0, 0, ENEMY_HALF))
    for number, (layout, chosen) in enumerate(zip(layouts, settings, strict=True)):
        variant = variants.index(layout.actor)
        half = dict(layout.actor).get("enemy_radius", ENEMY_HALF)
        scripts = _scripts(chosen.stride, variant, getattr(chosen, "closeness", 0), half)
        text = layout.text(FIRST_ENEMY + variant, FIRST_AMMO + packs.index(_pack_of(chosen)))
        lumps += map_lumps(map_name(number), text, scripts)
    return write_wad([*lumps, *_globals(task, variants, packs, settings[0], len(layouts))])


def _pack_of(settings: DoomSettings) -> int:
    """Return the bullets in a pack; the duel has no setting for it."""
    return getattr(settings, "ammo_pack", 15)


def map_name(number: int) -> str:
    """Return the name of an episode's map."""
    return f"E{number:05d}"


def _globals(
    task: str, variants: Iterable[Any], packs: Iterable[int], settings: DoomSettings, count: int
) -> list[Lump]:
    player = {"player_health": settings.player_health, "player_ammo": settings.player_ammo}
    common = _fill("common.decorate", {**player, "spread": 0 if task == "duel" else 1})
    ammo = [
        f"ACTOR FieldAmmo{variant} : FieldAmmo {FIRST_AMMO + variant} {{ Inventory.Amount {pack} }}"
        for variant, pack in enumerate(packs)
    ]
    enemies = [
        _fill(f"{task}.decorate", {**dict(values), "variant": variant, "number": FIRST_ENEMY + variant})
        for variant, values in enumerate(variants)
    ]
    names = [FIRST_MAP, *map(map_name, range(count))]
    maps = ['GameInfo { PlayerClasses = "FieldMarine" }', *(f'map {name} "field" {{ }}' for name in names)]
    return [("DECORATE", "\n".join([common, *ammo, *enemies]).encode()), ("MAPINFO", "\n".join(maps).encode())]


@functools.cache
def _scripts(stride: int, variant: int, closeness: int, half: int) -> bytes:
    values = {"stride": stride, "enemy": f"FieldEnemy{variant}", "closeness": closeness}
    return assemble(_fill("scripts.asm", {**values, "enemy_reach": PLAYER_HALF + half}))


def _fill(name: str, values: Mapping[str, object]) -> str:
    return Template(_content(name)).substitute(values)


@functools.cache
def _content(name: str) -> str:
    return (files("openfield.domains.doom") / "data" / name).read_text()


def write_wad(lumps: Iterable[Lump]) -> bytes:
    """Write a patch WAD with these lumps: header, contents, directory."""
    contents, directory = bytearray(), bytearray()
    for name, content in lumps:
        directory += _ENTRY.pack(_HEADER.size + len(contents), len(content), _name_bytes(name))
        contents += content
    count = len(directory) // _ENTRY.size
    return _HEADER.pack(b"PWAD", count, _HEADER.size + len(contents)) + bytes(contents + directory)


def read_wad(data: bytes) -> list[Lump]:
    """Read the lumps of a WAD, in order; refuse bytes that are not a WAD, or whose directory points outside."""
    try:
        magic, count, start = _HEADER.unpack_from(data)
        entries = [_ENTRY.unpack_from(data, start + number * _ENTRY.size) for number in range(count)]
    except struct.error as error:
        raise InvalidInput(f"Not a whole WAD: {error}.") from None
    if magic not in (b"PWAD", b"IWAD") or any(offset < 0 or offset + size > len(data) for offset, size, _ in entries):
        raise InvalidInput("Not a WAD, or one whose directory points outside of it.")
    return [(name.rstrip(b"\0").decode("ascii"), data[offset : offset + size]) for offset, size, name in entries]


def map_lumps(name: str, text: bytes, behavior: bytes) -> list[Lump]:
    """Return a map as the group of lumps the engine looks for."""
    return [(name, b""), ("TEXTMAP", text), ("BEHAVIOR", behavior), ("ENDMAP", b"")]


def _name_bytes(name: str) -> bytes:
    encoded = name.encode("ascii", "replace")
    if not 1 <= len(encoded) <= 8 or b"?" in encoded:
        raise InvalidInput(f"'{name}' cannot name a lump: it needs 1 to 8 plain characters.")
    return encoded
