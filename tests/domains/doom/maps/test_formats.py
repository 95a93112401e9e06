"""WADs, maps and scripts: what is written can be read, what is wrong is named."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openfield.domains.doom.maps.acs import INSTRUCTIONS, assemble
from openfield.domains.doom.maps.scenario import MapText, Rectangle, map_lumps, read_wad, write_wad
from openfield.errors import InvalidInput

names = st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", min_size=1, max_size=8)


@given(st.lists(st.tuples(names, st.binary(max_size=200)), max_size=20))
def test_what_is_written_is_read(lumps: list[tuple[str, bytes]]) -> None:
    assert read_wad(write_wad(lumps)) == lumps


@pytest.mark.parametrize("data", [b"", b"PWAD", b"ZWAD" + bytes(8), struct.pack("<4sii", b"PWAD", 1, 4000)])
def test_broken_wads_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput):
        read_wad(data)


def test_directory_must_stay_inside() -> None:
    outside = struct.pack("<4sii", b"PWAD", 1, 12) + struct.pack("<ii8s", 5, 500, b"LUMP")
    with pytest.raises(InvalidInput, match="outside"):
        read_wad(outside)


@pytest.mark.parametrize("name", ["", "NINECHARS", "späh"])
def test_lump_names_are_short_and_plain(name: str) -> None:
    with pytest.raises(InvalidInput, match="cannot name a lump"):
        write_wad([(name, b"")])


def test_map_is_a_group_of_lumps() -> None:
    assert [name for name, _ in map_lumps("E00001", b"t", b"b")] == ["E00001", "TEXTMAP", "BEHAVIOR", "ENDMAP"]


def test_map_text() -> None:
    text = MapText()
    text.room(Rectangle(-10, -10, 10, 10).corners)
    text.solid(Rectangle(-1, -1, 1, 1).corners)
    text.thing(1, (0.5, 2), 90, tag=7)
    lines = text.encode().decode().splitlines()
    assert lines[0] == 'namespace="zdoom";'
    assert sum(line.startswith("vertex") for line in lines) == 8
    assert sum(line.startswith("linedef") for line in lines) == sum(line.startswith("sidedef") for line in lines) == 8
    assert "thing{x=0.5000;y=2.0000;angle=90;type=1;id=7;" in lines[-1]


def test_rooms_run_clockwise_and_solids_the_other_way() -> None:
    text = MapText()
    text.room(Rectangle(0, 0, 4, 4).corners)
    text.solid(Rectangle(1, 1, 2, 2).corners)
    corners = [line[7:-1] for line in text.encode().decode().splitlines() if line.startswith("vertex")]
    assert corners[:2] == ["x=0.0000;y=0.0000;", "x=0.0000;y=4.0000;"]
    assert corners[4:6] == ["x=1.0000;y=1.0000;", "x=2.0000;y=1.0000;"]


class TestAssembler:
    def test_layout(self) -> None:
        lump = assemble("script 3 open 0\n:again push 7 goto @again\nscript 4 closed 2 push 'Clip' terminate")
        magic, directory = struct.unpack_from("<4si", lump)
        code = struct.unpack_from(f"<{(directory - 8) // 4}i", lump, 8)
        assert magic == b"ACS\0"
        assert code == (INSTRUCTIONS["push"], 7, INSTRUCTIONS["goto"], 8, INSTRUCTIONS["push"], 0, 1)
        assert struct.unpack_from("<7i", lump, directory) == (2, 1003, 8, 0, 4, 24, 2)
        assert lump.endswith(b"Clip\0")

    def test_comments_are_left_out(self) -> None:
        assert assemble("script 1 enter 0 terminate # push 9") == assemble("script 1 enter 0 terminate")

    def test_equal_strings_are_kept_once(self) -> None:
        assert assemble("script 1 open 0 push 'A' push 'A'").count(b"A\0") == 1

    @pytest.mark.parametrize(
        ("source", "complaint"),
        [
            ("jump 3", "'jump' is neither an instruction"),
            ("goto @x", "leads nowhere"),
            ("script 1 weird 0", "not a kind of script"),
        ],
    )
    def test_mistakes_are_named(self, source: str, complaint: str) -> None:
        with pytest.raises(InvalidInput, match=complaint):
            assemble(source)
