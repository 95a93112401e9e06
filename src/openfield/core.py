"""What an agent and a world exchange: turns, replies and beliefs, and the truth beside them.

Everything else stands on these values: plan -> rollout (passes them) -> journal (keeps them) -> metrics -> report.
"""

from __future__ import annotations

import enum
from typing import Annotated, Any, Literal, Protocol, runtime_checkable

import msgspec

from openfield.spaces import Space

_SHORT = {
    "action": "a",
    "belief": "b",
    "change": "c",
    "detail": "d",
    "episode_over": "e",
    "feedback": "f",
    "last": "l",
    "novel": "n",
    "observation": "o",
    "phase": "p",
    "performance": "q",
    "reward": "r",
    "first": "s",
    "took": "t",
    "strength": "x",
}
"""The names of fields in the record, where a turn's names would be longer than their values: 0.3 calls a turn."""
__all__ = [
    "Agent",
    "AgentFactory",
    "Ask",
    "Belief",
    "ChecksSpec",
    "ChecksTrial",
    "Ending",
    "Remembers",
    "Reply",
    "Saves",
    "Spec",
    "Truth",
    "Turn",
    "World",
]

PhaseName = Literal["training", "test"]
Ending = Literal["terminated", "truncated"]
"""How an episode ended: by the rules of the world, or by a limit."""
AskMoment = Literal["episode", "turn"]
"""When people and language models are asked for their belief: at the end of every test episode, or also with every
turn of the test that wants an action."""


class Ask(enum.Enum):
    """The request of a turn to the agent."""

    ACT = "act"
    """An action; a belief may ride on it."""
    BELIEF = "belief"
    """What the agent thinks happened to its world."""
    READY = "ready"
    """A go-ahead: something begins. Any reply will do."""
    NONE = "none"
    """Nothing: the episode ended here. The reply's action is ignored."""


class Turn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, rename=_SHORT.get):
    """What the agent is shown. It never holds anything the trial does not grant."""

    ask: Ask = Ask.ACT
    observation: Any = None
    reward: float = 0.0
    feedback: Any = None
    """What the last reply earned beside the reward: a performance, a bought label."""
    phase: PhaseName = "test"
    first: bool = False
    """An episode starts here."""
    last: Ending | None = None
    """The episode ended here; observation and reward are its final ones."""
    red_light: bool | float | None = None
    """Whether the world has changed, or how much, from 0 to 1, if the trial grants to say so."""


class Belief(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What the agent thinks happened to its world."""

    novel: float | tuple[float, ...]
    """The probability that the world has changed: one number, or one per sample."""
    level: Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)] | None = None
    """Which level of the novelty hierarchy, in the domain's numbering."""
    detail: Any = None

    @property
    def highest(self) -> float:
        """The probability as one number: of several samples the highest counts."""
        return max(self.novel, default=0.0) if isinstance(self.novel, tuple) else self.novel


def says_novel(belief: Belief) -> bool:
    """Return whether the probability is one half or more, for any sample. This is the common rule."""
    return belief.highest >= 0.5


class Reply(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, rename=_SHORT.get):
    """What the agent gives back. `Reply(None, belief)` is always legal and shows an ACT turn again."""

    action: Any = None
    belief: Belief | None = None
    took: float = 0.0
    """Seconds the agent needed; stamped by the rollout for worlds whose rules know time."""
    note: Any = None
    """What the agent wants on record beside its answer, such as tokens and transcript. The world never sees it."""


class Truth(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, rename=_SHORT.get):
    """The truth about a turn. It goes into the journal and never reaches an agent."""

    novel: bool = False
    """The world differs from the normal one."""
    episode_over: bool = False
    """An episode ends with this turn, whether the agent learns it (`Turn.last`) or not."""
    performance: float | None = None
    """How well the episode went so far, from 0 to 1; its value at the end of the episode counts."""
    detail: Any = None
    belief: Belief | None = None
    """The belief that counts for the episode, whatever else is stated: the agent was shown the truth after it."""
    strength: float | None = None
    """How strong the change is: 0 is normal, 1 is full. None where the world only changes once and at once."""
    change: str = ""
    """The novelties in force, beside a strength."""


class Spec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The agent's knowledge before it starts: the task in words, and the spaces of actions and observations."""

    domain: str
    task: str
    actions: Space | None = None
    observations: Space | None = None
    reply_seconds: float | None = None
    """How long a reply may take; None means as long as it likes."""
    ask: AskMoment = "episode"
    """When an agent that does not speak up by itself is asked for its belief."""


class World(Protocol):
    """A passive world: it only answers, and never reads a clock or a global random source.

    A class attribute `timed = True` asks for replies stamped with `took`. A method `stays(reply)`, if there is one,
    says whether a reply to the last turn of the trial has more to say of it; with any other the trial is over. A method
    `check_belief(belief)` raises `AgentProtocol` for beliefs that the world refuses.
    """

    @property
    def truth(self) -> Truth:
        """The truth about the turn shown last."""
        ...

    @property
    def over(self) -> bool:
        """True when no episode follows. Read only after a turn that ended an episode (`last`)."""
        ...

    def reset(self) -> Turn:
        """Start the trial and return its first turn."""
        ...

    def step(self, reply: Reply) -> Turn:
        """Take a reply and return the next turn; raise `AgentProtocol` if it has no such action.

        A world that returns the last turn of an episode again, the very same object, lets the agent say more about it.
        """
        ...

    def look(self, query: str) -> Any:
        """Read something without changing anything: a screenshot, a score."""
        ...

    def close(self) -> None:
        """Free what the world holds."""
        ...


class Agent(Protocol):
    """Anything that answers turns. `save`, `load`, `remember` and `close` are optional, see `Saves` and `Remembers`."""

    def __call__(self, turn: Turn, /) -> Reply:
        """Answer a turn."""
        ...


class AgentFactory(Protocol):
    """Makes a fresh agent for a cell."""

    def __call__(self, spec: Spec, seed: int, /) -> Agent:
        """Make the agent."""
        ...


@runtime_checkable
class ChecksSpec(Protocol):
    """A factory of agents that checks before a run starts whether they can play a trial, as a trained policy does."""

    def check_spec(self, spec: Spec) -> Any:
        """Check that observations and actions fit; raise `InvalidInput` if they do not."""
        ...


@runtime_checkable
class ChecksTrial(Protocol):
    """A factory of agents that checks before a run starts whether a trial has what they need, such as training."""

    def check_trial(self, trial: Any) -> None:
        """Check a `Trial`; raise `InvalidInput` if agents would fail in it."""
        ...


@runtime_checkable
class Saves(Protocol):
    """An agent whose state can be kept: a resumed cell goes on from its last saved state."""

    def save(self) -> bytes:
        """Return the state as bytes."""
        ...

    def load(self, state: bytes, /) -> None:
        """Restore the agent that was saved."""
        ...


@runtime_checkable
class Remembers(Protocol):
    """An agent that receives its recorded past when a cell is resumed, instead of being asked again.

    For agents whose replies cost money or are random. One that also has `save` and `load` gets its last saved state
    first, and then receives the later turns.
    """

    def remember(self, turn: Turn, reply: Reply, /) -> None:
        """Take note of a turn that it was shown and of the reply that it gave."""
        ...
