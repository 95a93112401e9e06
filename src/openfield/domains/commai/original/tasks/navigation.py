"""`tasks.competition.navigation` of the original: walking, looking, taking, giving and counting in the grid world.

Most tasks end when the state of the world is as they want it; the world's own reply is then all that is heard. Things
stay where they lie for later instances, unless a task removes them.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from openfield.domains.commai.original.core.task import (
    on_ended,
    on_message,
    on_start,
    on_state_changed,
    on_timeout,
)
from openfield.domains.commai.original.grid_world import GridWorld, Point
from openfield.domains.commai.original.tasks import messages
from openfield.domains.commai.original.tasks.base import BaseTask, DrawingTask
from openfield.domains.commai.original.tasks.objects_properties import global_objects

QUARTERS = {"right": 1, "left": -1}
_MAX_WALK = 16
"""How far from the learner a way is looked for."""


def next_command(world: GridWorld, beside: Point | None = None, at: Point | None = None, facing: str = "") -> str:
    """Return the first command of a shortest way: until a place lies ahead, is reached, or a direction is faced.

    Args:
        world: The world.
        beside: A place that must lie ahead in the end.
        at: A place where the learner must be in the end.
        facing: A direction that it must face in the end.
    """
    names, spans, start = world.clockwise_directions, world.valid_directions, world.state.learner_pos
    first = start, names.index(world.state.learner_direction)
    seen, queue = {first}, deque([(first, "")])
    while queue:
        (place, turned), command = queue.popleft()
        ahead = place + spans[names[turned]]
        if (beside == ahead) or (at == place) or (facing == names[turned]):
            return command
        steps = [((place, (turned + 1) % 4), "I turn right."), ((place, (turned - 1) % 4), "I turn left.")]
        if world.can_move_to(ahead):
            steps.append(((ahead, turned), "I move forward."))
        for reached, say in steps:
            near = abs(reached[0].x - start.x) + abs(reached[0].y - start.y) <= _MAX_WALK
            if reached not in seen and near:
                seen.add(reached)
                queue.append((reached, command or say))
    return ""


class GridTask(BaseTask):
    """A task in the grid world. When its time is over it says so, without a verdict."""

    limit = 1000
    _world: GridWorld

    def __init__(self, world: GridWorld) -> None:
        super().__init__(max_time=self.limit, world=world)

    @on_timeout()
    def fail_learner(self, event: Any) -> None:
        """Say that the time is over."""
        self.set_message(self.draw(messages.timeout))

    @property
    def here(self) -> Point:
        """The place of the learner."""
        place: Point = self._world.state.learner_pos
        return place

    def neighbour(self, direction: str) -> Point:
        """Return the next cell in a direction."""
        return self.here + self._world.valid_directions[direction]

    def lay(self, place: Point) -> str:
        """Put a random thing on a cell and return its name."""
        name = str(self.draw(global_objects))
        self._world.put_entity(place, name, True, True)
        return name

    def owned(self, name: str) -> int:
        """Return how many things of a kind the learner has."""
        number: int = self._world.state.learner_inventory.get(name, 0)
        return number


class TurningTask(GridTask):
    """Turn left or right."""

    limit = 576

    @on_start()
    def ask(self, event: Any) -> None:
        """Name the side."""
        side = self.draw(("left", "right"))
        self.state.goal = self._world.get_clockwise_direction(QUARTERS[side])
        self.set_message(f"Turn {side}.")

    @on_state_changed(lambda world, task: world.learner_direction == task.goal)
    def on_turned(self, event: Any) -> None:
        """Succeed."""
        self.set_result(1)

    def hint(self) -> str:
        """Return the command."""
        return next_command(self._world, facing=self.state.goal)


class MovingTask(GridTask):
    """Move to the cell ahead."""

    limit = 600

    @on_start()
    def ask(self, event: Any) -> None:
        """Ask for a step."""
        self.state.goal = self._world.get_position_ahead()
        self.set_message("Move forward.")

    @on_state_changed(lambda world, task: world.learner_pos == task.goal)
    def on_moved(self, event: Any) -> None:
        """Succeed."""
        self.set_result(1)

    def hint(self) -> str:
        """Return the next command on the way."""
        return next_command(self._world, at=self.state.goal)


class MovingRelativeTask(MovingTask):
    """Move to the cell on the left or on the right."""

    limit = 784

    @on_start()
    def ask(self, event: Any) -> None:
        """Name the side."""
        side = self.draw(("left", "right"))
        self.state.goal = self.neighbour(self._world.get_clockwise_direction(QUARTERS[side]))
        self.set_message(f"Move {side}.")


class MovingAbsoluteTask(MovingTask):
    """Move to the next cell in a direction, which lies to the left or to the right."""

    limit = 2336

    @on_start()
    def ask(self, event: Any) -> None:
        """Name the direction."""
        direction = self._world.get_clockwise_direction(self.draw((-1, 1)))
        self.state.goal = self.neighbour(direction)
        self.set_message(f"You are facing {self._world.state.learner_direction}, move {direction}.")


class PickUpTask(GridTask):
    """Pick up the thing ahead."""

    limit = 1328

    def place(self) -> tuple[Point, str]:
        """Choose a cell, and return the words for it."""
        return self._world.get_position_ahead(), "in front of you"

    def finish(self) -> None:
        """Succeed."""
        self.set_result(1)

    @on_start()
    def ask(self, event: Any) -> None:
        """Lay a thing and say where."""
        state = self.state
        state.place, words = self.place()
        state.thing = self.lay(state.place)
        state.had = self.owned(state.thing)
        thing = messages.indef_article(state.thing)
        self.set_message(f"There is {thing} {words}. Pick up the {state.thing}.")

    @on_state_changed(lambda world, task: world.learner_inventory.get(task.thing, 0) == task.had + 1)
    def on_picked_up(self, event: Any) -> None:
        """Go on once the learner has it."""
        self.finish()

    def hint(self) -> str:
        """Return the next command on the way, then the one that takes it."""
        command = next_command(self._world, beside=self.state.place)
        return command or f"I pick up the {self.state.thing}."


class PickUpAroundTask(PickUpTask):
    """Pick up a thing on one of the four cells around."""

    limit = 2896

    def place(self) -> tuple[Point, str]:
        """Choose one of the cells around."""
        direction = self.draw(self._world.clockwise_directions)
        return self.neighbour(direction), f"{direction} from you, you are facing {self._world.state.learner_direction}"


class PickUpInFrontTask(PickUpTask):
    """Pick up a thing one to ten cells ahead."""

    limit = 3328

    def place(self) -> tuple[Point, str]:
        """Choose one of ten cells ahead."""
        steps = self._env.rng.randint(1, 10)
        ahead = steps * self._world.valid_directions[self._world.state.learner_direction]
        number = messages.number_to_string(steps, self._env.rng)
        return self.here + ahead, f"{number} {messages.pluralize('step', steps)} forward"

    def finish(self) -> None:
        """Succeed with praise."""
        self.set_result(1, self.praise())


class GivingTask(GridTask):
    """Give a thing back to the teacher."""

    limit = 1280

    @on_start()
    def ask(self, event: Any) -> None:
        """Hand a thing over and ask for it."""
        world, name = self._world.state, self.draw(global_objects)
        world.learner_inventory[name] = self.owned(name) + 1
        world.teacher_accepts.add(name)
        self.state.thing, self.state.given = name, world.teacher_inventory.get(name, 0)
        self.state.answer = f"I give you {messages.indef_article(name)}."
        self.set_message(
            f"I gave you {messages.indef_article(name)}. Give it back to me by saying '{self.state.answer[:-1]}'."
        )

    @on_state_changed(lambda world, task: world.teacher_inventory.get(task.thing, 0) == task.given + 1)
    def on_given(self, event: Any) -> None:
        """Succeed."""
        self.set_result(1)


class PickUpAroundAndGiveTask(PickUpAroundTask):
    """Pick up a thing on a cell around, and give it to the teacher."""

    limit = 5584

    @on_start()
    def ask(self, event: Any) -> None:
        """Lay a thing, say where, and ask for it."""
        super().ask(event)
        world = self._world.state
        self.state.picked, self.state.given = False, world.teacher_inventory.get(self.state.thing, 0)
        world.teacher_accepts.add(self.state.thing)
        self.add_message(" Then give it to me.")

    def finish(self) -> None:
        """Take note that the learner has picked it up."""
        if not self.state.picked:
            self.state.picked = True

    @on_state_changed(lambda world, task: world.teacher_inventory.get(task.thing, 0) == task.given + 1)
    def on_given(self, event: Any) -> None:
        """Succeed if it was picked up; if not, ask for that."""
        if self.state.picked:
            self.set_result(1)
        else:
            self.set_message(f"You must pick up the {self.state.thing} first.")

    @on_timeout()
    def fail_learner(self, event: Any) -> None:
        """Remove the thing and say that the time is over."""
        self._world.remove_entity(self.state.place)
        super().fail_learner(event)

    @on_ended()
    def stop_accepting(self, event: Any) -> None:
        """Ask for it no longer."""
        self._world.state.teacher_accepts.discard(self.state.thing)

    def hint(self) -> str:
        """Return the next command: take it, then give it."""
        return f"I give you {messages.indef_article(self.state.thing)}." if self.state.picked else super().hint()


class CountingInventoryTask(GridTask):
    """Say how many things of a kind the learner has, in digits."""

    limit = 800

    @on_start()
    def ask(self, event: Any) -> None:
        """Choose a kind and ask."""
        self.state.thing = self.draw(global_objects)
        self.set_message(f"How many {self.state.thing}s do you have?")

    @on_message(r"(?<!\d)(\d+)\.$")
    def on_number(self, event: Any) -> None:
        """Judge the number; a wrong one is answered with the true one."""
        number = self.owned(self.state.thing)
        if event.get_match(1) == str(number):
            self.set_result(1, self.praise())
        else:
            self.set_message(f"{self.blame()} you have {number}.")

    def hint(self) -> str:
        """Return the number."""
        return f"{self.owned(self.state.thing)}."


class CountingInventoryGivingTask(GridTask):
    """Count, get one more, count, give one back, count. All three numbers must be right."""

    limit = 8000
    GIFT = 2
    """The stage in which the learner gives."""

    @on_start()
    def ask(self, event: Any) -> None:
        """Choose a kind and ask for the first time."""
        state = self.state
        state.thing = self.draw(global_objects)
        state.stage, state.right, state.asked_at = 0, 0, 0
        world = self._world.state  # Round 1 compares what the teacher has with what the learner had
        state.given = (world.learner_inventory if self._env._round1 else world.teacher_inventory).get(state.thing, 0)
        self.set_message(self.question())

    def question(self) -> str:
        """Return the question for the number."""
        return f"How many {self.state.thing}s do you have?"

    @on_message(r"(\w+)\.$")
    def check_response(self, event: Any) -> None:
        """Judge a number and go on to the next stage, also after a wrong one."""
        state = self.state
        if state.stage == self.GIFT or (state.stage and state.asked_at == self.get_time()):
            return
        said = event.get_match(1)
        right = said in messages.number_to_strings(self.owned(state.thing))
        state.right += right
        self.advance(self.praise() if right else self.blame())

    def advance(self, verdict: str) -> None:
        """Begin the next stage."""
        state, world, thing = self.state, self._world.state, messages.indef_article(self.state.thing)
        state.stage, state.asked_at = state.stage + 1, self.get_time()
        if state.stage == 1:
            world.learner_inventory[state.thing] = self.owned(state.thing) + 1
            self.set_message(f"{verdict} I gave you {thing}. {self.question()}")
        elif state.stage == self.GIFT:
            world.teacher_accepts.add(state.thing)
            self.set_message(f"{verdict} Now give {thing} back to me.")
        else:
            self.set_result(int(state.right == 3), verdict)

    @on_state_changed(lambda world, task: world.teacher_inventory.get(task.thing, 0) == task.given + 1)
    def on_given(self, event: Any) -> None:
        """Ask for the last time once the learner has given it."""
        if self.state.stage == self.GIFT:
            self.state.stage, self.state.asked_at = 3, self.get_time()
            self.set_message(f"You gave me {messages.indef_article(self.state.thing)}. {self.question()}")

    @on_ended()
    def stop_accepting(self, event: Any) -> None:
        """Ask for it no longer."""
        self._world.state.teacher_accepts.discard(self.state.thing)

    def hint(self) -> str:
        """Return the number, or the command to give."""
        if self.state.stage == self.GIFT:
            return f"I give you {messages.indef_article(self.state.thing)}."
        return f"{self.owned(self.state.thing)}."


class LookTask(GridTask):
    """Look in a direction."""

    fail_learner = None

    @on_start()
    def ask(self, event: Any) -> None:
        """Name the direction."""
        self.state.goal = self.draw(self._world.clockwise_directions)
        self.set_message(f"You are facing {self._world.state.learner_direction}, look {self.state.goal}.")

    @on_message(r"I look\.$")
    def on_look(self, event: Any) -> None:
        """Succeed if the learner faces it."""
        if self._world.state.learner_direction == self.state.goal:
            self.set_result(1, self.praise())

    def hint(self) -> str:
        """Return the command to turn, then to look."""
        return next_command(self._world, facing=self.state.goal) or "I look."


class LookAroundTask(DrawingTask):
    """Look in all four directions without moving."""

    _world: GridWorld

    def __init__(self, world: GridWorld) -> None:
        super().__init__(max_time=5000, world=world)

    @on_start()
    def ask(self, event: Any) -> None:
        """Ask for it."""
        self.state.seen, self.state.start = [], self._world.state.learner_pos
        self.set_message(f"Look around. You are facing {self._world.state.learner_direction}.")

    @on_message(r"I look\.$")
    def on_look(self, event: Any) -> None:
        """Take note of a direction until all were seen."""
        direction, seen = self._world.state.learner_direction, self.state.seen
        if direction in seen:
            self.set_message(f"You have already seen {direction}.")
            return
        seen.append(direction)
        left = len(self._world.clockwise_directions) - len(seen)
        if left:
            self.set_message(f"{left} {messages.pluralize('direction', left)} to go.")
        else:
            self.set_result(1, self.praise())

    @on_state_changed(lambda world, task: world.learner_pos != task.start)
    def on_moved(self, event: Any) -> None:
        """Fail."""
        self.set_result(0, "You must not move.")

    def hint(self) -> str:
        """Return the command to look, or to turn where the learner has looked."""
        return "I turn right." if self._world.state.learner_direction in self.state.seen else "I look."


class FindObjectAroundTask(DrawingTask):
    """Find one of four things around, and pick it up."""

    _world: GridWorld
    _things: tuple[str, ...] = ()

    def __init__(self, world: GridWorld) -> None:
        super().__init__(max_time=10_000, world=world)

    @on_start()
    def ask(self, event: Any) -> None:
        """Lay the things and name one."""
        world, state = self._world, self.state
        if not self._things:
            self._things = tuple(self._env.rng.sample(global_objects, 4))
        here, names = world.state.learner_pos, self._env.rng.sample(self._things, 4)
        state.cells = [here + span for span in world.valid_directions.values()]
        for place, name in zip(state.cells, names, strict=True):
            world.put_entity(place, name, True, True)
        state.thing = self.draw(names)
        state.place = state.cells[names.index(state.thing)]
        state.had = world.state.learner_inventory.get(state.thing, 0)
        self.set_message(f"There is {messages.indef_article(state.thing)} around you. Pick up the {state.thing}.")

    @on_state_changed(lambda world, task: world.learner_inventory.get(task.thing, 0) == task.had + 1)
    def on_found(self, event: Any) -> None:
        """Succeed."""
        self.set_result(1, self.praise())

    @on_ended()
    def clear_cells(self, event: Any) -> None:
        """Remove the things."""
        for place in self.state.cells:
            self._world.remove_entity(place)

    def hint(self) -> str:
        """Return the next command on the way, then the one that takes it."""
        return next_command(self._world, beside=self.state.place) or f"I pick up the {self.state.thing}."
