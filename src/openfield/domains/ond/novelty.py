"""The novelties of this domain: unknown classes, changed attributes, changed surroundings.

Each is a change of settings; the builder applies the difference to novel samples.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from openfield.course import Blend
from openfield.domains.ond.settings import OndSettings
from openfield.novelty import Novelty, SettingNovelties

RECORDED = "the novelty that a test's own files have; in built tests, unknown classes"


def _with(**changes: Any) -> Callable[[OndSettings], OndSettings]:
    return lambda settings: msgspec.structs.replace(settings, **changes)


class OndBlend(Blend[OndSettings]):
    """The way to other settings, on which samples of unknown classes come by their share."""

    def __init__(self, usual: OndSettings, changed: OndSettings) -> None:
        begins = usual
        if changed.new_classes and not usual.new_classes:
            begins = msgspec.structs.replace(usual, new_classes=True, share=0.0)
        super().__init__(begins, changed)
        self._normal = usual

    def at(self, share: float) -> tuple[OndSettings, bool]:
        """Return the settings at a share of the way, and whether they differ."""
        return super().at(share) if share else (self._normal, False)


_LISTED: tuple[Novelty[OndSettings], ...] = (
    Novelty("classes", 1, "objects", "samples of classes never seen in training", _with(new_classes=True)),
    Novelty("rotation", 2, "relations", "samples turned by 30 degrees", _with(rotation=30.0), "easy"),
    Novelty("rotation", 2, "relations", "samples turned by 90 degrees", _with(rotation=90.0), "hard"),
    Novelty(
        "font", 2, "objects", "glyphs in another typeface; handwriting in another slant", _with(typeface="courier")
    ),
    Novelty("slant", 2, "relations", "samples slanted as in an italic font", _with(slant=0.5)),
    Novelty("blur", 3, "environments", "samples out of focus", _with(blur=2)),
    Novelty("contrast", 3, "environments", "samples that have lost most of their contrast", _with(contrast=0.3)),
    Novelty("background", 3, "environments", "samples before a bright slope", _with(background=0.7)),
    Novelty("noise", 3, "environments", "samples with noise", _with(grain=0.3)),
    Novelty("brightness", 3, "environments", "brighter samples", _with(brightness=0.4)),
    Novelty("prior", 4, "events", "known classes occur unevenly", _with(skew=2.0)),
    Novelty("recorded", 1, "objects", RECORDED, _with(new_classes=True)),
)
COVARIATES = ("rotation", "blur", "contrast", "background", "grain", "brightness", "slant", "skew")
NOVELTIES = SettingNovelties.of(_LISTED, OndSettings, COVARIATES)
"""Novelties by name; `rotation=45` is one too."""
