"""Reads what the engine shows: who is who, and where in the engine's list, throughout an episode.

Between `sight` and `play`. Who is in which place hardly changes from tick to tick: where it has not, nothing is sorted
out again.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from openfield.domains.doom.engine.scene import ITEMS, Body, Scene
from openfield.domains.doom.engine.snapshot import FACTS, GLANCE, HEAD, Look, Sight, gaze

KINDS = {"FieldHealth": "health", "FieldAmmo": "ammo", "FieldTrap": "trap", "FieldPillar": "obstacle"}
Known = tuple[str, int, int]
"""What is remembered of a thing: its kind, its small id, its tag if it is an enemy."""
_ENEMY = re.compile(r"FieldEnemy\d+$")
_BOLT = re.compile(r"FieldBolt\d+$")


class Place(NamedTuple):
    """Where in a look somebody's numbers are, and what is remembered of them."""

    x: int
    y: int
    z: int
    angle: int
    roll: int
    """Health: an angle that is not quite whole."""
    id: int
    tag: int


class Cast(NamedTuple):
    """Who is in a look."""

    player: Place
    enemies: list[Place]
    bolts: list[Place]


class Seen(msgspec.Struct, gc=False):
    """A look and what it means; bodies are made of it only where somebody asks for them."""

    look: Look
    cast: Cast
    items: dict[str, list[Body]]

    def scene(self) -> Scene:
        """Everything that is seen."""
        look, (player, enemies, bolts) = self.look, self.cast
        mine = _body(look, player)
        mine.health = float(look[0])
        return Scene(
            mine,
            float(look[1]),
            [_body(look, place) for place in enemies],
            self.items,
            [_body(look, place) for place in bolts],
        )


def seen_of(scene: Scene) -> Seen:
    """The look of a scene that nobody has seen: as if it were so."""
    look: list[Any] = [scene.player.health, scene.ammo, 0]
    places = []
    for body in (scene.player, *scene.enemies, *scene.bolts):
        places.append(_place(len(look), body.id, body.tag))
        look += (0, body.x, body.y, body.z, body.angle, body.health, b"")
    bolts = len(places) - len(scene.bolts)
    return Seen(tuple(look), Cast(places[0], places[1:bolts], places[bolts:]), scene.items)


MOST_CASTS = 256
"""That are remembered: the engine's list has hardly more orders until somebody comes or goes."""


class Reader:
    """Reads the ticks of one episode: gives small ids by first appearance and tells enemies apart."""

    def __init__(self, drifting: bool = False) -> None:
        """Starts with the first tick of an episode.

        Args:
            drifting: Whether items may move; items at rest are read once.
        """
        self._drifting = drifting
        self._known: dict[int, Known] = {}
        self._count = 0
        self._enemies = 0
        self.returning: list[int] = []
        """The tags of enemies that were told to come back and are not seen yet, in that order."""
        self._present: tuple[int, ...] = ()
        """The numbers of items, in the engine's order."""
        self._items: dict[str, list[Body]] = {kind: [] for kind in ITEMS}
        self._gaze = GLANCE
        """How to look if nothing but places has changed: items at rest need no second look."""
        self._resting = slice(0)
        """Where in such a look the numbers of items are that need none."""
        self._others: Sequence[int] = ()
        """Where everybody else begins."""
        self._signs: Callable[[Look], Any] = operator.itemgetter(HEAD - 1)
        """What must be as before for the same to be in the same places of a look."""
        self._casts: dict[Any, Cast] = {}

    def read(self, sight: Sight) -> Seen:
        """What is seen now."""
        look = sight.look(self._gaze)
        cast = self._casts.get(self._signs(look))
        if cast is None:
            look, cast = self._recognise(look, sight)
        return Seen(look, cast, self._items)

    def _recognise(self, look: Look, sight: Sight) -> tuple[Look, Cast]:
        """Who is in a look that is not as any before, and the look to find them in."""
        if not self._all_known(look):
            look = self._look_around(sight)
        cast = self._cast(look)
        if not self._drifting:
            if len(self._casts) >= MOST_CASTS:
                self._casts.clear()
            self._casts[self._signs(look)] = cast
        return look, cast

    def _all_known(self, look: Look) -> bool:
        """Whether all have changed places at most, as enemies in the engine's list often do; items may not."""
        if look[HEAD - 1] != self._gaze.things or look[self._resting] != self._present:
            return False
        known = self._known
        return all(look[at] in known and known[look[at]][0] not in ITEMS for at in self._others)

    def _look_around(self, sight: Sight) -> Look:
        """A look at everything; a better one is prepared for as long as nobody comes or goes."""
        look = sight.look(gaze(sight.look(GLANCE)[-1]))
        places = dict(zip(look[HEAD::FACTS], range(HEAD, len(look), FACTS), strict=True))
        numbers = tuple(places)
        self._meet(sight, numbers)
        present = tuple(number for number in numbers if self._known[number][0] in ITEMS)
        if present != self._present or self._drifting:
            self._arrange(present, look, places)
        if self._drifting:
            self._others = tuple(places.values())
            return look
        self._prepare(numbers)
        return sight.look(self._gaze)

    def _prepare(self, numbers: tuple[int, ...]) -> None:
        """A look that has only the numbers of items, if they are side by side, and where everybody else is in it."""
        count, rest = len(numbers), len(self._present)
        start = numbers.index(self._present[0]) if rest else 0
        end = start + rest if numbers[start : start + rest] == self._present else start
        if self._gaze == gaze(count, start, end):
            return
        self._gaze, self._casts = gaze(count, start, end), {}
        before = HEAD + FACTS * start
        behind = before + end - start
        self._resting = slice(before, behind)
        self._others = at = (*range(HEAD, before, FACTS), *range(behind, behind + FACTS * (count - end), FACTS))
        self._signs = operator.itemgetter(HEAD - 1, *range(before, behind), *at, *(place + FACTS - 1 for place in at))

    def _cast(self, look: Look) -> Cast:
        """Who is where, by their ids."""
        found: dict[str, list[Place]] = {"player": [], "enemy": [], "bolt": []}
        for at in self._others:
            kind, small, tag = self._known[look[at]]
            if kind in found and (kind != "enemy" or look[at + FACTS - 1] == b"F"):  # the dead are called Dead...
                found[kind].append(_place(at, small, tag))
        if not found["player"]:
            raise LookupError("the engine shows no player")
        by_id = operator.attrgetter("id")
        return Cast(found["player"][0], sorted(found["enemy"], key=by_id), sorted(found["bolt"], key=by_id))

    def _meet(self, sight: Sight, numbers: Sequence[int]) -> None:
        """Takes note of what is new. The engine numbers things from the last of a map to its first: the player is 0."""
        new = [(_kind(sight.name(index)), number) for index, number in enumerate(numbers) if number not in self._known]
        for kind, number in sorted(new, key=lambda thing: (_rank(thing[0]), -thing[1])):
            small = self._free_bolt(numbers) if kind == "bolt" else None
            if small is None:
                small = self._count
                self._count += bool(kind)
            self._known[number] = (kind, small, self._free_tag() if kind == "enemy" else 0)
            self._casts.clear()  # a number may be that of somebody who is gone

    def _free_bolt(self, present: Iterable[float]) -> int | None:
        """The id of a projectile that is gone, for another one: in a long duel there are more of them than ids."""
        gone = self._known.keys() - set(present)
        bolts = [(self._known[number][1], number) for number in gone if self._known[number][0] == "bolt"]
        free = min(bolts, default=None)
        if free is None:
            return None
        del self._known[free[1]]
        return free[0]

    def _free_tag(self) -> int:
        """The place of a new enemy: at the start one after the other, later that of the one it stands in for."""
        if self.returning:
            return self.returning.pop(0)
        self._enemies += 1
        return self._enemies - 1

    def _arrange(self, present: tuple[int, ...], look: Look, places: dict[int, int]) -> None:
        """Reads the items anew: one was taken, or the wind moves them."""
        self._present = present
        self._items = {kind: [] for kind in ITEMS}
        for number in sorted(present, key=lambda number: self._known[number][1]):
            kind, small, tag = self._known[number]
            self._items[kind].append(_body(look, _place(places[number], small, tag)))


def _place(at: int, number: int, tag: int) -> Place:
    return Place(at + 1, at + 2, at + 3, at + 4, at + 5, number, tag)


def _body(look: Look, place: Place) -> Body:
    x, y, z, angle, roll, number, tag = place
    return Body(number, look[x], look[y], look[z], look[angle], (look[roll] + 0.5) // 1, tag)


def _kind(name: str) -> str:
    if _ENEMY.match(name.removeprefix("Dead")):
        return "enemy"
    if _BOLT.match(name):
        return "bolt"
    return "player" if name == "FieldMarine" else KINDS.get(name, "")


def _rank(kind: str) -> int:
    return ("player", "enemy", *ITEMS, "bolt", "").index(kind)
