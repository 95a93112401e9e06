"""The older task sets, made for bit mode, with their defects repaired. They are not part of the challenge.

`LEGACY` maps the name of a set to its tasks by their original names without the ending `Task`. Start with
`dialogue.py`, the kinds of instance they share. Each other module has one or more of the sets; their texts are in
`data/texts.toml`.
"""

from openfield.domains.commai.tasks.legacy.navigation import NAVIGATION
from openfield.domains.commai.tasks.legacy.properties import COUNTING, PROPERTIES
from openfield.domains.commai.tasks.legacy.repetition import REPETITION, SAMPLES, SMALLEST

LEGACY = {
    "repetition": REPETITION,
    "counting": COUNTING,
    "objects_properties": PROPERTIES,
    "navigation": NAVIGATION,
    "small": SMALLEST,
    "sample": SAMPLES,
}

__all__ = ["LEGACY"]
