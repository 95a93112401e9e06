"""What can change in an environment of Gymnasium, and the length of a trial."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from operator import attrgetter
from typing import Annotated, Any

import msgspec

from openfield.errors import InvalidInput
from openfield.registry import names_class
from openfield.settings import Settings


def _about(text: str, **bounds: Any) -> msgspec.Meta:
    return msgspec.Meta(description=text, **bounds)


Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class GymSettings(Settings, frozen=True, gc=False, rename={"scale": "return"}):
    """The environment, what lies between it and the agent, how it is scored, and how long it is played."""

    short = {"before": 3, "after": 3, "max_steps": 200}

    make: Annotated[dict[str, Any], _about("Arguments of the constructor: make.KEY=VALUE sets one.")] = {}
    attributes: Annotated[
        tuple[str, ...], _about("Changes of attributes of the environment, such as gravity=19.6 or length*=2.")
    ] = ()
    wrappers: Annotated[
        tuple[str, ...], _about("Wrapper classes, file.py:NAME or package.module:NAME, innermost first.")
    ] = ()
    novel_wrappers: Annotated[tuple[str, ...], _about("Wrappers that novelties add; they change no score.")] = ()
    instead: Annotated[str, _about("Another environment with the same spaces that takes the place of this one.")] = ""
    derived: Annotated[
        dict[str, str], _about("Attributes computed from others, such as total_mass = masscart + masspole.")
    ] = {}
    suite: Annotated[
        dict[str, str], _about("What novelties of your own suite change. Trials keep it, so that they need no file.")
    ] = {}
    permute_actions: Annotated[bool, _about("Each action means the next one.")] = False
    mirror_actions: Annotated[bool, _about("Each action means its opposite.")] = False
    broken_actuators: Annotated[Share, _about("Share of actuators, or of single actions, that do nothing.")] = 0.0
    delay_actions: Annotated[int, _about("Steps until an action has its effect.", ge=0, le=1000)] = 0
    sticky_actions: Annotated[Share, _about("Chance that the action before is carried out again.")] = 0.0
    drop_actions: Annotated[Share, _about("Chance that the first action, or 0, takes the place of an action.")] = 0.0
    noise: Annotated[
        float, _about("Standard deviation of noise on observed numbers, in shares of their range.", ge=0)
    ] = 0.0
    mask: Annotated[Share, _about("Share of observed numbers that are blank, drawn anew at every step.")] = 0.0
    dead_sensors: Annotated[Share, _about("Share of observed numbers that are blank all the time.")] = 0.0
    permute_observations: Annotated[bool, _about("Observed numbers, or colours, change places.")] = False
    mirror_observations: Annotated[bool, _about("Pictures have left and right exchanged.")] = False
    invert_observations: Annotated[bool, _about("Pictures have opposite colours.")] = False
    freeze: Annotated[Share, _about("Chance that the observation before is shown again.")] = 0.0
    delay_observations: Annotated[int, _about("Steps by which observations come late.", ge=0, le=1000)] = 0
    reward_factor: Annotated[float, _about("What the agent is paid for a reward of 1. It changes no score.")] = 1.0
    delay_rewards: Annotated[int, _about("Steps by which rewards come late.", ge=0, le=1000)] = 0
    sparse_rewards: Annotated[bool, _about("All rewards of an episode are paid at its end.")] = False
    scale: Annotated[
        tuple[float, float] | None,
        _about(
            "LOW,HIGH: the returns that are a performance of 0 and 1; null derives them from published returns or "
            "Gymnasium's reward threshold, if there are any."
        ),
    ] = None
    max_steps: Annotated[
        int, _about("Steps until an episode is cut off; 0 means the environment's own limit, or 10000.", ge=0)
    ] = 0
    reuse: Annotated[
        bool | None,
        _about("Play all episodes in one environment; null does so where it is known to be like a fresh one."),
    ] = None
    time_limit: Annotated[Share, _about("Share of these steps after which an episode is cut off.")] = 1.0
    allow_drift: Annotated[
        bool, _about("Play an environment that does not replay. Its runs cannot be resumed or proven.")
    ] = False
    training: Annotated[int, _about("Episodes of training.", ge=0)] = 0
    before: Annotated[int, _about("Test episodes before the onset.", ge=0)] = 10
    after: Annotated[int, _about("Test episodes from the onset on.", ge=0)] = 10

    @property
    def has_effects(self) -> bool:
        """Whether anything lies between the environment and the agent."""
        return bool(_read_effects(self) != _NO_EFFECTS)

    def __post_init__(self) -> None:
        """Refuse a scale without a length, and wrappers that are not named as classes.

        Raises:
            InvalidInput: There is one.
        """
        for text in (*self.wrappers, *self.novel_wrappers):
            if not names_class(text):
                raise InvalidInput(f"'{text}' names no wrapper: write file.py:NAME or package.module:NAME.")
        if self.scale is not None and not (
            math.isfinite(self.scale[1] - self.scale[0]) and self.scale[0] < self.scale[1]
        ):
            raise InvalidInput(f"return={self.scale[0]:g},{self.scale[1]:g} is not a scale: LOW must be below HIGH.")


_SURROUNDINGS = {"make", "attributes", "derived", "suite", "instead", "wrappers", "novel_wrappers"}
_LIMITS = {"scale", "max_steps", "time_limit", "reuse", "allow_drift", "training", "before", "after"}
_SHARED = {each.name for each in msgspec.structs.fields(Settings)}
_EFFECTS = [each for each in msgspec.structs.fields(GymSettings) if each.name not in _SURROUNDINGS | _LIMITS | _SHARED]
_NO_EFFECTS = tuple(each.default for each in _EFFECTS)
_read_effects = attrgetter(*(each.name for each in _EFFECTS))
"""Returns the settings of all effects. Every episode asks for them, and some last ten steps only."""


def keep_arguments(text: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of what makes an environment as a trial keeps them.

    Raises:
        InvalidInput: A trial cannot keep one of them.
    """
    try:
        json.dumps(arguments, allow_nan=False, default=str)  # msgspec writes null in place of inf
        kept: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(arguments, order="sorted"))
    except (TypeError, ValueError):
        raise InvalidInput(
            f"Arguments of {text} must be finite numbers, text, lists or mappings, which a trial can keep. "
            "For others give a function that makes the environment."
        ) from None
    return kept


def environment_key(settings: GymSettings) -> bytes:
    """Return a key that differs between environments made differently."""
    made_of = settings.make, settings.attributes, settings.wrappers, settings.novel_wrappers, settings.instead
    return msgspec.json.encode((*made_of, settings.derived), order="sorted")
