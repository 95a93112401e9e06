"""A trial is a frozen script: which world, which phases, what changes when, and what is granted.

Domains write trials, plans pair them with agents, rollouts play them. `draw_set` keeps agents blind to the change: it
draws its place anew in every trial and adds trials in which nothing changes. All trials of a set have the same length,
so counting episodes reveals nothing about the world.
"""

from __future__ import annotations

import copyreg
import hashlib
import itertools
import math
import random
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from openfield.change_process import NORMAL, THEN, split_process, split_stages
from openfield.core import PhaseName
from openfield.errors import InvalidInput
from openfield.settings import Settings

FIXING = frozenset({"before", "after", "onset_instances", "onset_steps"})
"""Settings of domains that fix where the change comes, unless `onset` says otherwise."""
UNCHANGED_SHARE = 0.4


def _get_unset() -> msgspec.UnsetType:
    return msgspec.UNSET


# pickle looks for UNSET by its name in all modules, and asking ours for a name that they do not have imports them
copyreg.pickle(msgspec.UnsetType, lambda unset: (_get_unset, ()))


class Phase(msgspec.Struct, frozen=True):
    """A stretch of a trial."""

    name: PhaseName
    episodes: int = 0
    """How many episodes; 0 where the world's own rules decide."""
    novelty: tuple[str, ...] = ()
    """The novelties in force, as `NAME` or `NAME:difficulty`."""
    steps: int = 0
    """How many steps, in a world that counts steps instead of episodes."""


RedLight = bool | Literal["how much"]
"""What agents are told of the change: nothing, that the world has changed, or how strong the change is."""
Window = tuple[int, int]
"""How much of a test may precede its change, at least and at most: episodes, or steps where a world counts those."""


Seconds = Annotated[float, msgspec.Meta(gt=0, le=1e8)]
"""Three years at most, so that ten times as many nanoseconds can be counted; None is for ever."""


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an agent may use up. None means no limit."""

    reply_seconds: Seconds | None = 60.0
    """For one reply; passing it ends the cell as `agent_timeout`."""
    episode_turns: Annotated[int, msgspec.Meta(gt=0)] | None = None
    """For one episode; reaching it ends the trial as `truncated`."""
    trial_seconds: Seconds | None = None
    """For the whole trial, time of the world included; passing it ends the trial as `truncated`."""
    tokens: Annotated[int, msgspec.Meta(gt=0)] | msgspec.UnsetType = msgspec.UNSET
    """Tokens of a language model, by the notes of its replies; reaching it ends the trial as `truncated`."""

    def __post_init__(self) -> None:
        """Turn whole seconds into the numbers they are read back as: a trial keeps its id."""
        for name in ("reply_seconds", "trial_seconds"):
            if isinstance(seconds := getattr(self, name), int):
                msgspec.structs.force_setattr(self, name, float(seconds))


class Trial(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A frozen script; its id is the hash of its content."""

    domain: str
    version: int
    seed: int
    phases: tuple[Phase, ...]
    settings: dict[str, Any] = {}
    """The settings that differ from the domain's defaults."""
    red_light: RedLight = False
    """Whether the agent is told when the world has changed, or also how much."""
    limits: Limits = Limits()
    after: str | None = None
    """The id of the trial whose saved agent is the starting point."""
    files: dict[str, str] = {}
    """Names and digests of the level and data files the world reads."""
    scenario: tuple[str, ...] | None = None
    """The novelties of the table it belongs to, whether or not they come into force; None: those of its phases."""
    window: Window | None = None
    """Where the place of the change was drawn; None if it is fixed or published."""
    reference_for: str | None = None
    """The id of the trial that is compared with this one. It is in no table of its own then."""
    imported: str | None = None
    """The file that its results were read from: it was played elsewhere, and cannot be played again here."""
    windows: tuple[Window, ...] | msgspec.UnsetType = msgspec.UNSET
    """Where the places of several changes were drawn, the first included."""

    def __post_init__(self) -> None:
        """Refuse another red light than there is.

        Raises:
            InvalidInput: There is one.
        """
        if type(self.red_light) is not bool and self.red_light != "how much":
            raise InvalidInput(f"'red_light' is False, True or 'how much', not {self.red_light!r}.")

    @cached_property
    def id(self) -> str:
        """Twelve hexadecimal digits that stand for everything above."""
        return hash_trial(self)

    @property
    def is_training(self) -> bool:
        """Whether it is nothing but training."""
        return all(phase.name == "training" for phase in self.phases)

    @property
    def novelty(self) -> tuple[str, ...]:
        """The novelties of its scenario, in force or not."""
        return self._in_force if self.scenario is None else self.scenario

    @property
    def is_changed(self) -> bool:
        """Whether the world changes in it."""
        return bool(self._in_force)

    @property
    def is_unchanged_twin(self) -> bool:
        """Whether nothing changes in it although its scenario has a novelty."""
        return bool(self.novelty) and not self.is_changed

    @cached_property
    def has_course(self) -> bool:
        """Whether its changes have a process, or come one after the other: its truth tells how strong they are."""
        names = {*self.novelty, *(name for phase in self.phases for name in phase.novelty)}
        return any(THEN in name or _has_process(name) for name in names)

    @property
    def test_length(self) -> int:
        """The number of its test episodes, or of its steps if the world counts those; 0 where its rules decide."""
        return measure_test(self.phases)

    @property
    def _in_force(self) -> tuple[str, ...]:
        """The novelties of the first phase that has any."""
        return next((phase.novelty for phase in self.phases if phase.novelty), ())


def measure_test(phases: Iterable[Phase]) -> int:
    """Return the length of the test, in the steps of worlds that count steps, and else in episodes."""
    return sum(phase.steps or phase.episodes for phase in phases if phase.name == "test")


def hash_trial(content: Trial | dict[str, Any]) -> str:
    """Return the id of a trial, or of its recorded content. Fields that came later count only where they are used."""
    plain: dict[str, Any] = {**msgspec.to_builtins(content)}
    for name in ("scenario", "window", "reference_for", "imported"):
        if plain.get(name) is None:
            plain.pop(name, None)
    plain["phases"] = [
        {name: value for name, value in phase.items() if name != "steps" or value} for phase in plain["phases"]
    ]
    return hashlib.sha256(msgspec.json.encode(plain, order="sorted")).hexdigest()[:12]


def show_light(granted: RedLight, novel: bool, strength: float | None = None) -> bool | float | None:
    """Return what the red light of a turn shows of the truth.

    Args:
        granted: What the trial grants.
        novel: Whether the world has changed.
        strength: How much; None where it only changes at once.
    """
    if not granted:
        return None
    return novel if granted is True else float(novel) if strength is None else strength


def with_places(trial: Trial, places: Mapping[str, str]) -> Trial:
    """Return the same trial, with the same id, whose settings name files by the places that they have here.

    Args:
        trial: What is played.
        places: Where files are that the settings name, by how they name them.
    """
    settings = {name: _replace_text(value, places) for name, value in trial.settings.items()}
    return with_settings(trial, settings)


def with_settings(trial: Trial, settings: dict[str, Any]) -> Trial:
    """Return the same trial, with the same id, as if it had other settings."""
    if settings == trial.settings:
        return trial
    changed = msgspec.structs.replace(trial, settings=settings)
    vars(changed)["id"] = trial.id  # where the property keeps it
    return changed


def _replace_text(value: Any, places: Mapping[str, str]) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(_replace_text(each, places) for each in value)
    return places.get(value, value) if isinstance(value, str) else value


def with_limits(trials: Iterable[Trial], change: Callable[[Limits], Limits]) -> list[Trial]:
    """Return the same trials with other limits."""
    return with_changes(trials, lambda trial: msgspec.structs.replace(trial, limits=change(trial.limits)))


def with_changes(trials: Iterable[Trial], change: Callable[[Trial], Trial]) -> list[Trial]:
    """Return the trials, each changed. A trial that belongs to another one follows it to its new id."""
    made: dict[str, Trial] = {}
    for trial in trials:
        named = {name: getattr(trial, name) for name in ("after", "reference_for")}
        links = {name: made[other].id for name, other in named.items() if other in made}
        made[trial.id] = msgspec.structs.replace(change(trial), **links)
    return list(made.values())


def derive(seed: int, *path: str | int) -> int:
    """Derive a seed from another: the same path gives the same seed everywhere, another path an independent one."""
    text = "/".join(str(part) for part in (seed, *path))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def file_digest(content: bytes) -> str:
    """Return the digest of a file's content for `Trial.files`."""
    return hashlib.sha256(content).hexdigest()


class Draw(NamedTuple):
    """What is drawn for one trial of a set."""

    seed: int
    novelty: tuple[str, ...]
    """Empty in a trial in which nothing changes."""
    onset: int | None = None
    """How much of the test precedes the change; None if other settings fix it, or where nothing changes, unless every
    trial of the set would change there: the twin's phases then meet there, too."""
    later: tuple[tuple[int, tuple[str, ...]], ...] = ()
    """Further changes: how much of the test precedes each, and the novelties in force from then on."""


class BlindSet(NamedTuple):
    """The trials of a set, before they are written down."""

    draws: list[Draw]
    window: Window | None
    """Where the onsets were drawn; None if the place of the change is fixed."""
    scenario: tuple[str, ...] | None
    """What its trials say of their novelties. A set with a fixed change and no twins says nothing, as it always did."""
    windows: tuple[Window, ...] | msgspec.UnsetType = msgspec.UNSET
    """Where the onsets of several changes were drawn."""


def draw_set(
    settings: Settings, given: Collection[str], length: int, novelty: tuple[str, ...], roots: Sequence[int]
) -> BlindSet:
    """Draw the onset of each trial, add unchanged twins, and shuffle: the order must reveal nothing either.

    Args:
        settings: The settings of the set; its `onset` and `unchanged` are used.
        given: The names of the settings the user gave: `before` and `after` fix the onset.
        length: The length of the test, in episodes or steps.
        novelty: The novelties of the scenario.
        roots: The seeds of the changed trials.

    Raises:
        InvalidInput: The window is not within the test, or there cannot be as many unchanged trials.
    """
    if not novelty:
        refuse_blinding(settings, "A set without novelty")
        return BlindSet([Draw(seed, ()) for seed in roots], None, None)
    twins, fixed = _count_unchanged(str(settings.unchanged), len(roots)), None
    stages = stages_of(novelty)
    if len(stages) > 1:
        windows = _read_windows(str(settings.onset), length, len(stages))
        draws = [_draw_stages(seed, stages, windows) for seed in roots]
        blind = BlindSet([], windows[0], novelty, windows)
    else:
        window = _read_window(str(settings.onset), length, bool(FIXING & set(given)))
        draws = [Draw(seed, novelty, _draw_onset(seed, window)) for seed in roots]
        drawn = window if window is not None and window[0] < window[1] else None
        fixed = draws[0].onset if drawn is None and draws else None
        blind = BlindSet([], drawn, novelty if drawn or twins else None)
    draws += [Draw(seed, (), fixed) for seed in roots[:twins]]
    if twins:
        random.Random(derive(roots[0], "order")).shuffle(draws)
    return blind._replace(draws=draws)


def stages_of(novelty: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Return the novelties of each stage of a scenario, in order; those of a world that changes once are one stage."""
    if len(novelty) != 1 or THEN not in novelty[0]:
        return (novelty,)
    return tuple(() if stage == NORMAL else tuple(stage.split("+")) for stage in split_stages(novelty[0]))


def bare_names(names: Iterable[str]) -> list[str]:
    """Return the novelties that texts name, each once, without their processes and whatever stage they are in."""
    stages = (stage for name in names for stage in stages_of((name,)))
    return list(dict.fromkeys(split_process(name)[0] for stage in stages for name in stage))


def _has_process(name: str) -> bool:
    with suppress(InvalidInput):  # an imported trial may call its novelty anything
        return split_process(name)[1] is not None
    return False


def _draw_stages(seed: int, stages: Sequence[tuple[str, ...]], windows: Sequence[Window]) -> Draw:
    """Draw the onset of each stage; that of the first as if it were the only one."""
    drawn = [random.Random(derive(seed, "onset", *path)).randint(*window) for path, window in _number(windows)]
    return Draw(seed, stages[0], drawn[0], tuple(zip(drawn[1:], stages[1:], strict=True)))


def _number(windows: Sequence[Window]) -> Iterable[tuple[tuple[int, ...], Window]]:
    return (((number,) if number else (), window) for number, window in enumerate(windows))


def refuse_blinding(settings: Settings, source: str) -> None:
    """Refuse an onset or unchanged trials beside a source of trials that does not take them."""
    if settings.onset != "" or settings.unchanged not in ("", "0", 0):
        raise InvalidInput(f"{source} takes neither the setting 'onset' nor 'unchanged': leave them out.")


def place_change(phases: Sequence[Phase], draw: Draw) -> tuple[Phase, ...]:
    """Return the phases of a trial of the same length with the change where it was drawn, or without it."""
    if not draw.novelty:
        placed = phases if draw.onset is None else place_change(phases, draw._replace(novelty=("",)))
        return tuple(replace(phase, novelty=()) for phase in placed)
    if draw.onset is None:
        return tuple(phases)
    training = tuple(phase for phase in phases if phase.name == "training")
    if draw.later:
        return (*training, *_place_stages(phases, draw))
    if any(phase.steps for phase in phases):
        normal, changed = Phase("test", steps=draw.onset), Phase("test", 0, draw.novelty)
        return (*training, *([normal] if draw.onset else []), replace(changed, steps=measure_test(phases) - draw.onset))
    test = [phase.novelty for phase in phases if phase.name == "test" for _ in range(phase.episodes)]
    first = next(number for number, novelty in enumerate(test) if novelty)
    novel = (test[first:] + test[-1:] * len(test))[: len(test) - draw.onset]
    return (*training, *gather_episodes([()] * draw.onset + novel))


def _place_stages(phases: Sequence[Phase], draw: Draw) -> list[Phase]:
    """Return the test of a trial that changes more than once, stage by stage."""
    stages = [(0, ()), (draw.onset or 0, draw.novelty), *draw.later]
    ends = [onset for onset, _ in stages[1:]] + [measure_test(phases)]
    in_steps = any(phase.steps for phase in phases)
    lengths = [(end - onset, novelty) for (onset, novelty), end in zip(stages, ends, strict=True) if end > onset]
    if in_steps:
        return [Phase("test", 0, novelty, length) for length, novelty in lengths]
    return [Phase("test", length, novelty) for length, novelty in lengths]


def gather_episodes(episodes: Iterable[tuple[str, ...]], name: PhaseName = "test") -> tuple[Phase, ...]:
    """Gather neighbouring episodes with the same novelties into phases."""
    groups = itertools.groupby(episodes)
    return tuple(Phase(name, len(list(group)), novelty) for novelty, group in groups)


def _read_window(text: str, length: int, fixed: bool) -> Window | None:
    """Return the window of the onset: as the setting says, or the middle half of the test; None if fixed elsewhere."""
    if not text:
        return None if fixed or not length else middle_half(length)
    found = re.fullmatch(r"(\d{1,12})(?:-(\d{1,12}))?", text)
    low, high = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
    if not low <= high < length:
        raise InvalidInput(
            f"Setting 'onset' cannot be '{text}': the test has a length of {length}, and 0 to {length - 1} of it may "
            f"precede the change. Write a number, or a window such as {'-'.join(map(str, middle_half(length)))}."
        )
    return low, high


def _read_windows(text: str, length: int, count: int) -> tuple[Window, ...]:
    """Return the windows of several changes: as the setting says, or evenly spread over the test."""
    usual = spread_windows(length, count)
    found = [re.fullmatch(r"(\d{1,12})(?:-(\d{1,12}))?", part.strip()) for part in text.split(",")] if text else []
    windows = tuple((int(each[1]), int(each[2] or each[1])) for each in found if each) if text else usual
    example = ",".join("-".join(map(str, window)) for window in usual)
    if len(windows) != count or (text and len(found) != count):
        raise InvalidInput(
            f"Setting 'onset' is '{text}', and the world changes {count} times: write a window for each change, such "
            f"as {example}."
        )
    for (low, high), (after, _) in itertools.pairwise((*windows, (length, length))):
        if low > high or high >= after:
            raise InvalidInput(
                f"Setting 'onset' cannot be '{text or example}': windows must not overlap, and must lie within the "
                f"test, which has a length of {length}. Write such as {example}."
            )
    return windows


def spread_windows(length: int, count: int) -> tuple[Window, ...]:
    """Return the windows of several changes that are used if the user names none."""
    if count == 1:
        return (middle_half(length),)
    width = length / (count + 1)
    lows = [math.ceil(width * (number + 0.5)) for number in range(count)]
    return tuple((low, max(low, math.ceil(width * (number + 1.5)) - 1)) for number, low in enumerate(lows))


def middle_half(length: int) -> Window:
    """Return the window that is used if the user asks for none."""
    return min(math.ceil(length / 4), length // 2), 3 * length // 4


def _draw_onset(seed: int, window: Window | None) -> int | None:
    return None if window is None else random.Random(derive(seed, "onset")).randint(*window)


def _count_unchanged(text: str, changed: int) -> int:
    """Return how many unchanged twins come on top: as the setting says, or two fifths, rounded up."""
    if not text:
        return math.ceil(UNCHANGED_SHARE * changed)
    count = changed if text == "all" else int(text) if re.fullmatch(r"\d{1,9}", text) else -1
    if not 0 <= count <= changed:
        raise InvalidInput(
            f"Setting 'unchanged' cannot be '{text}': {changed} trials have 0 to {changed} unchanged twins, or `all`."
        )
    return count
