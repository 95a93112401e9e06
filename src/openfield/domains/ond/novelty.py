"""The novelties of this domain: unknown classes, changed attributes, changed surroundings.

Each is a change of settings; the builder applies the difference to novel samples.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from openfield.domains.ond.settings import OndSettings
from openfield.novelty import Novelty

RECORDED = "the novelty that a test's own files have; in built tests, unknown classes"


def _with(**changes: Any) -> Callable[[OndSettings], OndSettings]:
    return lambda settings: msgspec.structs.replace(settings, **changes)


NOVELTIES: tuple[Novelty[OndSettings], ...] = (
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
    Novelty("prior", 4, "events", "known classes occur unevenly", _with(skew=2.0)),
    Novelty("recorded", 1, "objects", RECORDED, _with(new_classes=True)),
)
