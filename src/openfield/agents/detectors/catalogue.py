"""The detectors by name, and how one is made of its text: `cusum(watch=reward, false_alarms=0.001)`.

Every detector takes `watch`, what it watches, unless its name says that; `features`, which numbers of an observation;
and `warmup`, how many of the first test episodes count as training too. Its rule has further parameters.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from openfield.agents.detectors.rules import (
    AlarmRule,
    BayesianChangePoint,
    Cusum,
    Deedee,
    OnlineMmd,
    Threshold,
    check_training,
    read_held_out,
)
from openfield.agents.detectors.signals import (
    SIGNALS,
    EpisodeDetector,
    EpisodeScores,
    FallingReturn,
    ObservationShift,
    Seen,
    Signal,
    TransitionSurprise,
)
from openfield.agents.policy import Array
from openfield.errors import InvalidInput, UnknownName
from openfield.parameters import RIVER, RIVER_DETECTORS, AgentText, read_agent

COMMON = ("watch", "features", "warmup")
MAX_WARMUP = 100_000
"""Test episodes that may count as training."""


class DetectorKind(NamedTuple):
    """A detector of our own."""

    rule: Callable[..., AlarmRule]
    watch: str
    """What it watches if nothing is said."""
    note: str
    watches: Callable[[], EpisodeDetector] | None = None
    """What scores episodes, for a detector that watches nothing else."""


KINDS: dict[str, DetectorKind] = {
    "surprise": DetectorKind(
        Cusum, "transition", "a linear model of transitions predicts episodes badly", TransitionSurprise
    ),
    "returns": DetectorKind(Cusum, "return", "returns are low", FallingReturn),
    "observations": DetectorKind(Cusum, "observation", "observations are far from their mean", ObservationShift),
    "cusum": DetectorKind(Cusum, "return", "sums of deviations cross a bound (CUSUM)"),
    "threshold": DetectorKind(Threshold, "transition", "an episode is beyond a threshold calibrated in training"),
    "bocpd": DetectorKind(BayesianChangePoint, "return", "Bayesian online change-point detection"),
    "mmd": DetectorKind(OnlineMmd, "observation", "maximum mean discrepancy of the last episodes"),
    "deedee": DetectorKind(Deedee, "observation", "DEEDEE's two statistics of each number"),
}
"""Our own detectors by name."""


class ChangeDetector:
    """A signal and a rule: what is watched, and when it counts as changed."""

    def __init__(self, signal: Signal, rule: AlarmRule, features: Sequence[int | str] = (), warmup: int = 0) -> None:
        """Make the detector.

        Args:
            signal: What it watches.
            rule: When that counts as changed.
            features: Which numbers of an observation it watches, by place or name; all if none is named.
            warmup: How many of the first test episodes count as training.
        """
        self.signal, self.rule, self.features, self.warmup = signal, rule, tuple(features), warmup
        self.training: list[Array] = []
        """What it was fitted to."""
        self.judged: list[Array] = []
        """What it has judged since."""

    @property
    def name(self) -> str:
        """The name of its rule, or of the object that scores episodes."""
        return type(self.signal.detector if isinstance(self.signal, EpisodeScores) else self.rule).__name__

    @property
    def state(self) -> dict[str, Any]:
        """What its signal has learned, by the name of the attribute."""
        return vars(self.signal.detector if isinstance(self.signal, EpisodeScores) else self.signal)

    @property
    def can_save(self) -> bool:
        """Whether all that it has learned is numbers."""
        return all(isinstance(value, int | float | np.ndarray) for value in self.state.values())

    def fit(self, episodes: Sequence[Seen]) -> None:
        """Learn from training episodes.

        Raises:
            InvalidInput: There are too few of them.
        """
        check_training(len(episodes), self.rule.min_training)
        self.restore(read_held_out(self.signal, episodes) if episodes else [], [])

    def restore(self, training: list[Array], judged: list[Array]) -> None:
        """Fit the rule, and let it judge what it has judged before."""
        self.training, self.judged = training, judged
        self.rule.fit(training, self.signal.worse)
        for values in judged:
            self.rule.judge(values)

    def judge(self, episode: Seen) -> float:
        """Return how likely a change is after one more episode; 0.5 is an alarm."""
        values = self.signal.read(episode)
        self.judged.append(values)
        return self.rule.judge(values)


def make_detector(
    source: str | AgentText | EpisodeDetector, false_alarms: float | None = None, hold: int | None = None
) -> ChangeDetector:
    """Return the detector of this text, or one with an object that scores episodes.

    Args:
        source: The text, such as `river:ADWIN(delta=0.002)`, or an object with `fit(episodes)` and `score(episode)`.
        false_alarms: How many false alarms an unchanged episode may have, where the text does not say it.
        hold: For how many episodes an alarm of river counts, where the text does not say it; None is for all.

    Raises:
        UnknownName: There is no detector of this name, or no parameter.
        InvalidInput: A parameter is wrong.
        MissingExtra: It needs a package that is not installed.
    """
    if not isinstance(source, str | AgentText):
        if not (callable(getattr(source, "fit", None)) and callable(getattr(source, "score", None))):
            made = type(source).__name__
            raise InvalidInput(f"A detector has fit(episodes) and score(episode), and an object of {made} has not.")
        return ChangeDetector(EpisodeScores(source), Cusum(**_take(false_alarms, {})))
    text = read_agent(source)
    given = dict(text.parameters)
    if text.place.startswith(RIVER):
        return _make_river(text.place.removeprefix(RIVER), given, hold)
    if text.place not in KINDS:
        raise UnknownName("detector", text.place, [*KINDS, *RIVER_DETECTORS, f"{RIVER}NAME"], label="Known")
    kind = KINDS[text.place]
    own = list(inspect.signature(kind.rule).parameters)
    allowed = [*own, *(name for name in COMMON if name != "watch" or kind.watches is None)]
    for name in given:
        if name not in allowed:
            raise UnknownName("parameter", name, allowed, label=f"{text.place} takes")
    chosen = {name: given.pop(name) for name in own if name in given}
    rule = kind.rule(**(_take(false_alarms, chosen) if "false_alarms" in own else chosen))
    signal = EpisodeScores(kind.watches()) if kind.watches is not None else _find_signal(given, kind.watch)
    return ChangeDetector(signal, rule, *_read_common(given))


def _make_river(name: str, given: dict[str, Any], hold: int | None) -> ChangeDetector:
    from openfield.agents.detectors.river_rules import RiverRule

    common = {key: given.pop(key) for key in COMMON if key in given}
    rule = RiverRule(name, {key: value for key, value in given.items() if key != "hold"}, given.get("hold", hold))
    return ChangeDetector(_find_signal(common, "return"), rule, *_read_common(common))


def _find_signal(given: Mapping[str, Any], usual: str) -> Signal:
    watch = given.get("watch", usual)
    if watch not in SIGNALS:
        raise UnknownName("signal", str(watch), list(SIGNALS), label="A detector watches")
    return SIGNALS[watch]()


def _read_common(given: Mapping[str, Any]) -> tuple[list[int | str], int]:
    features, warmup = given.get("features", []), given.get("warmup", 0)
    features = features if isinstance(features, list) else [features]
    if any(isinstance(each, bool) or not isinstance(each, int | str) for each in features):
        raise InvalidInput(f"'features' is a list of places from 0 on, or of names, not {features!r}.")
    if isinstance(warmup, bool) or not isinstance(warmup, int) or not 0 <= warmup <= MAX_WARMUP:
        raise InvalidInput(f"'warmup' is a number of episodes from 0 to {MAX_WARMUP:,}, not {warmup!r}.")
    return features, warmup


def _take(false_alarms: float | None, chosen: Mapping[str, Any]) -> dict[str, Any]:
    return ({} if false_alarms is None else {"false_alarms": false_alarms}) | dict(chosen)
