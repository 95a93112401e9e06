"""Maps as text: rooms, blocks and things in the Universal Doom Map Format (UDMF)."""

from __future__ import annotations

from collections.abc import Sequence

Point = tuple[float, float]
Value = bool | int | float | str
_PLACED = "skill1=true;skill2=true;skill3=true;skill4=true;skill5=true;single=true;coop=true;dm=true;class1=true;"


_SECTOR = 'sector{heightceiling=150;lightlevel=210;gravity=1.0000;texturefloor="FLOOR0_1";textureceiling="CEIL1_1";}'


class MapText:
    """A map under construction: one sector, walls around and inside it, things on its floor."""

    def __init__(self) -> None:
        self._vertices: dict[Point, int] = {}
        self._lines: list[str] = []
        self._sides: list[str] = []
        self._things: list[str] = []

    def room(self, left: float, bottom: float, right: float, top: float) -> None:
        """Add walls around a rectangle whose inside can be walked."""
        self._ring([(left, bottom), (left, top), (right, top), (right, bottom)], "STARTAN2")

    def solid(self, left: float, bottom: float, right: float, top: float) -> None:
        """Add a rectangle inside the room that cannot be entered."""
        self._ring([(left, bottom), (right, bottom), (right, top), (left, top)], "STONE2")

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
