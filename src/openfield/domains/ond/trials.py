"""Trials of this domain: which test a trial is about, and where its files are.

Between the domain and the world, for built tests and for tests of a data directory alike.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from openfield.domain import Domain
from openfield.domains.ond.settings import OndSettings
from openfield.domains.ond.testset.builder import Built, build_trial
from openfield.domains.ond.testset.data_directory import TABLE_SUFFIX, DataDirectory, Origin, load_arrays
from openfield.domains.ond.testset.test import HINTED, Test
from openfield.errors import InvalidInput
from openfield.trial import Limits, Phase, RedLight, Trial, derive

UNLIMITED = Limits(reply_seconds=None)


@functools.lru_cache(32)
def find_directory(root: str) -> DataDirectory:
    """Return the data directory at a path; all worlds share it, so that each test is read once."""
    return DataDirectory(root)


def make_built(domain: Domain[OndSettings], trial: Trial) -> Built:
    """Return the test of a trial, and the samples that an agent may learn from."""
    settings = domain.settings_in(trial, Phase("test"))
    test = named_test(trial, settings)
    if test is None:
        return build_trial(domain, trial)
    arrays = load_arrays(find_directory(settings.data).root)
    if arrays is None or not {"train_images", "train_labels"} <= arrays.keys() or not settings.training:
        return Built(test, np.zeros((0, 0), np.float32), np.zeros(0, np.int64))
    return Built(test, arrays["train_images"], arrays["train_labels"])


def named_test(trial: Trial, settings: OndSettings) -> Test | None:
    """Return the test of a data directory that a trial is about, if it is about one."""
    named = [name.removesuffix(TABLE_SUFFIX) for name in trial.files if name.endswith(TABLE_SUFFIX)]
    if not named:
        return None
    test, digests = find_directory(settings.data).load(settings.protocol, settings.area, named[0])
    if digests != trial.files:
        raise InvalidInput(f"The files of test {named[0]} have changed since the trial was made.")
    return test.changed(read_hints(settings.hints))


def grant_hints(hints: Sequence[str], limits: Mapping[str, int], test: Test) -> dict[str, int]:
    """Return the metadata that the hints of a session change, of the form `KEY=NUMBER`.

    Args:
        hints: What the session asked for; hints of another form or about another key change nothing.
        limits: The keys that may be changed and the highest number of each; a test's own number is always allowed.
        test: The test.
    """
    found = {}
    for key, value in (hint.replace(" ", "").split("=", 1) for hint in hints if "=" in hint):
        if key in limits and key in HINTED and value.isascii() and value.isdigit():
            own = test.count(key) or 0
            found[key] = max(min(int(value[:9]), max(limits[key], own)), int(key == "round_size"))
    return {key: value for key, value in found.items() if value != test.count(key)}


def write_hints(granted: Mapping[str, int]) -> str:
    """Return granted hints as the setting `hints`."""
    return "+".join(f"{key}={value}" for key, value in sorted(granted.items()))


def read_hints(text: str) -> dict[str, int]:
    """Return the metadata that the setting `hints` changes."""
    pairs = [part.partition("=") for part in text.split("+") if part]
    for key, _, value in pairs:
        if key not in HINTED or not (value.isascii() and value.isdigit() and len(value) < 10):
            raise InvalidInput(
                f"hints are KEY=NUMBER joined by +, with one of {', '.join(HINTED)}; not '{key}={value}'."
            )
    return {key: int(value) for key, _, value in pairs}


def session_trial(
    test: Test, digests: dict[str, str], root: Path, facts: Mapping[str, Any], version: int, compat: bool
) -> Trial:
    """Return the trial of a test in a session, by the facts of the session's opening."""
    settings: dict[str, object] = {
        "data": str(root),
        "protocol": facts["protocol"],
        "area": facts["domain"],
        "threshold": facts["detection_threshold"],
    }
    settings |= {"level": "compat"} if compat else {}
    granted = grant_hints(facts["hints"], facts.get("hint_limits", {}), test)
    settings |= {"hints": write_hints(granted)} if granted else {}
    origin = find_directory(str(root)).origins.get(test.name)
    return served_trial(test.changed(granted), digests, settings, version, "red_light" in facts["hints"], origin)


def served_trial(
    test: Test,
    digests: dict[str, str],
    settings: dict[str, object],
    version: int,
    red_light: RedLight,
    origin: Origin | None = None,
) -> Trial:
    """Return the trial of a test that clients of the protocol ask for."""
    size = test.round_size or len(test.ids)
    onset = int(np.flatnonzero(test.novel)[0]) // size if test.novel.any() else test.rounds
    novelty = ("recorded",) if onset < test.rounds else ()
    return Trial(
        domain="ond",
        version=version,
        seed=derive(0, digests.get(test.name + TABLE_SUFFIX, test.name)) if origin is None else origin.seed,
        phases=(Phase("test", onset), Phase("test", test.rounds - onset, novelty)),
        settings={"training": 0} | settings,  # not the test's name: tests that differ in nothing else are compared
        red_light=red_light,
        limits=UNLIMITED,
        files=digests,
        scenario=None if origin is None or origin.scenario is None else ("recorded",),
        window=None if origin is None else origin.window,
    )
