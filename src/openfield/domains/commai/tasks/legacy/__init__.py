"""The bit-based task sets that came with the original environment, repaired; no part of the challenge.

`LEGACY` maps the name of a set to its tasks by their original names without the ending `Task`.
"""

from openfield.domains.commai.tasks.legacy.navigation import NAVIGATION
from openfield.domains.commai.tasks.legacy.properties import COUNTING, PROPERTIES
from openfield.domains.commai.tasks.legacy.repetition import REPETITION
from openfield.domains.commai.tasks.legacy.samples import SAMPLES, SMALLEST

LEGACY = {
    "repetition": REPETITION,
    "counting": COUNTING,
    "objects_properties": PROPERTIES,
    "navigation": NAVIGATION,
    "small": SMALLEST,
    "sample": SAMPLES,
}

__all__ = ["LEGACY"]
