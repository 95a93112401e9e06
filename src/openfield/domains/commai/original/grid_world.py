"""`worlds.grid_world` of the original: an endless plane, in which the learner walks, looks, takes and gives.

The state is changed before the world speaks, so a task that ends at the change speaks first.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

from openfield.domains.commai.environment.grid_world import NAMES, draw_map, with_article
from openfield.domains.commai.original.core.task import World, on_message, on_world_start


class Span(NamedTuple):
    """A difference of two places."""

    dx: int
    dy: int

    def __mul__(self, times: Any) -> Span:
        return self.__rmul__(times)

    def __rmul__(self, times: Any) -> Span:
        return Span(self.dx * times, self.dy * times)


class Point(NamedTuple):
    """A place; y grows southward."""

    x: int
    y: int

    def __add__(self, span: Any) -> Point:
        return Point(self.x + span[0], self.y + span[1])

    def __sub__(self, span: Any) -> Point:
        return Point(self.x - span[0], self.y - span[1])


class GWEntity(NamedTuple):
    """A thing on a cell."""

    name: str
    pickable: bool
    traversable: bool


class GridWorld(World):
    """The world of the navigation tasks.

    Args:
        init_pos: Where the learner starts.
        init_direction: Where it looks at first.
    """

    valid_directions = {"north": Span(0, -1), "east": Span(1, 0), "south": Span(0, 1), "west": Span(-1, 0)}
    clockwise_directions = list(NAMES)

    def __init__(self, init_pos: tuple[int, int] = (0, 0), init_direction: str = "north") -> None:
        super().__init__()
        self._init_pos, self._init_direction = Point(*init_pos), init_direction

    @on_world_start()
    def on_world_start(self, event: Any) -> None:
        """Put the learner at its place in an empty world."""
        state = self.state
        state.learner_pos, state.learner_direction = self._init_pos, self._init_direction
        state.entities = {}
        state.learner_inventory, state.teacher_inventory = defaultdict(int), defaultdict(int)
        state.teacher_accepts = set()

    def put_entity(self, position: Any, name: str, pickable: bool, traversable: bool) -> None:
        """Put a thing on a cell."""
        self.state.entities[Point(*position)] = GWEntity(name, pickable, traversable)

    def remove_entity(self, position: Any) -> None:
        """Remove what lies on a cell, if anything does."""
        self.state.entities.pop(Point(*position), None)

    def get_entity(self, position: Any) -> GWEntity | None:
        """Return what lies on a cell."""
        found: GWEntity | None = self.state.entities.get(Point(*position))
        return found

    def get_clockwise_direction(self, quarters: int) -> str:
        """Return the direction after some quarter turns to the right."""
        now = self.clockwise_directions.index(self.state.learner_direction)
        return self.clockwise_directions[(now + quarters) % 4]

    def turn(self, direction: int | str) -> None:
        """Turn by quarters to the right, or into a direction."""
        state = self.state
        state.learner_direction = direction if isinstance(direction, str) else self.get_clockwise_direction(direction)

    def move_forward(self, steps: int = 1) -> None:
        """Move the learner, whatever is in its way."""
        state = self.state
        state.learner_pos = state.learner_pos + steps * self.valid_directions[state.learner_direction]

    def can_move_to(self, position: Any) -> bool:
        """Return whether the learner can stand on a cell."""
        entity = self.get_entity(position)
        return entity is None or entity.traversable

    def get_position_ahead(self) -> Point:
        """Return the cell in front of the learner."""
        state = self.state
        ahead: Point = state.learner_pos + self.valid_directions[state.learner_direction]
        return ahead

    def map(self) -> str:
        """Return the cells around the learner as five lines of five characters."""
        state = self.state
        names = {tuple(place): entity.name for place, entity in state.entities.items()}
        return draw_map(tuple(state.learner_pos), state.learner_direction, names)

    @on_message(r"I give you (?:an|a) (\w+)\.$")
    def on_give(self, event: Any) -> None:
        """Hand a thing to the teacher, who takes what was asked for; in Round 1 also what the learner has not."""
        state = self.state
        name = event.get_match(1)
        if name not in state.teacher_accepts:
            self.set_message(f"I haven't asked you for {with_article(name)}.")
        elif state.learner_inventory.get(name, 0) <= 0 and not self._env._round1:
            self.set_message(f"You don't have {with_article(name)}.")
        else:
            state.learner_inventory[name] -= 1
            state.teacher_inventory[name] += 1
            self.set_message(f"You gave me {with_article(name)}.")

    @on_message(r"I look\.$")
    def on_look(self, event: Any) -> None:
        """Say what lies ahead."""
        entity = self.get_entity(self.get_position_ahead())
        self.set_message(f"There is {with_article(entity.name)}." if entity else "There is nothing here.")

    @on_message(r"I move forward\.$")
    def on_move_forward(self, event: Any) -> None:
        """Move the learner, unless something is in its way."""
        if self.can_move_to(self.get_position_ahead()):
            self.move_forward(1)
            self.set_message("You moved.")
        else:
            self.set_message("You can't move.")

    @on_message(r"I pick up the (\w+)\.$")
    def on_pick_up(self, event: Any) -> None:
        """Take what lies ahead, if it has this name."""
        name, ahead = event.get_match(1), self.get_position_ahead()
        entity = self.get_entity(ahead)
        if entity is None or entity.name != name:
            self.set_message(f"There is no {name} here.")
        elif not entity.pickable:
            self.set_message(f"You can't pick up the {name}.")
        else:
            self.remove_entity(ahead)
            self.state.learner_inventory[name] += 1
            self.set_message(f"You picked up the {name}.")

    @on_message(r"I turn left\.$")
    def on_turn_left(self, event: Any) -> None:
        """Turn to the left."""
        self.turn(-1)
        self.set_message(f"You turned left, you are now facing {self.state.learner_direction}.")

    @on_message(r"I turn right\.$")
    def on_turn_right(self, event: Any) -> None:
        """Turn to the right."""
        self.turn(1)
        self.set_message(f"You turned right, you are now facing {self.state.learner_direction}.")
