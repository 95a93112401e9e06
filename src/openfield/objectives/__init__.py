"""Objectives that need no reward: input entropy, information gain, empowerment and human similarity.

They are computed from transition tables: counts of (input, action, next input). Start at `evaluation.evaluate`;
`intervals` says how sure the values are.
`tables/` holds tables and counts, `measures/` the formulas, `formats/` and `pickle/` read and write files, `frames/`
makes tables from images, `runs/` from recorded runs, `tracking/` from an agent that lives in an environment, and
`study/` compares many agents.
"""

from typing import TYPE_CHECKING

from openfield.lazy import attach

# At once, for the function has the name of its module and must come after it.
from openfield.objectives.measures.entropy import empowerment, empowerment_corrected

if TYPE_CHECKING:
    from openfield.objectives.evaluation import Evaluation, evaluate, evaluate_file, evaluate_shards
    from openfield.objectives.formats.load import load_table
    from openfield.objectives.formats.shards import map_over_ray
    from openfield.objectives.frames.encode import (
        code_book,
        dense_indices,
        discretize,
        downscale,
        encode,
        encode_frames,
        encode_packed,
    )
    from openfield.objectives.measures.entropy import input_entropy, input_entropy_corrected
    from openfield.objectives.measures.excess import EmpowermentEstimate, estimate_empowerment
    from openfield.objectives.measures.information import (
        info_gain_dirichlet,
        info_gain_log_counts,
        info_gain_per_transition,
        info_gain_sqrt_counts,
        info_gain_total,
    )
    from openfield.objectives.measures.similarity import (
        Conditionals,
        Similarity,
        compare,
        compare_conditionals,
        jaccard,
        jensen_shannon,
    )
    from openfield.objectives.tables.table import Meta, Table
    from openfield.objectives.tables.transitions import transitions
    from openfield.objectives.tracking.callback import ObjectivesCallback
    from openfield.objectives.tracking.measured import LifeMeasures
    from openfield.objectives.tracking.tracker import Tracker, VectorTracker

__all__ = [
    "Conditionals",
    "EmpowermentEstimate",
    "Evaluation",
    "LifeMeasures",
    "Meta",
    "ObjectivesCallback",
    "Similarity",
    "Table",
    "Tracker",
    "VectorTracker",
    "code_book",
    "compare",
    "compare_conditionals",
    "dense_indices",
    "discretize",
    "downscale",
    "empowerment",
    "empowerment_corrected",
    "encode",
    "encode_frames",
    "encode_packed",
    "estimate_empowerment",
    "evaluate",
    "evaluate_file",
    "evaluate_shards",
    "info_gain_dirichlet",
    "info_gain_log_counts",
    "info_gain_per_transition",
    "info_gain_sqrt_counts",
    "info_gain_total",
    "input_entropy",
    "input_entropy_corrected",
    "jaccard",
    "jensen_shannon",
    "load_table",
    "map_over_ray",
    "transitions",
]

__getattr__, __dir__ = attach(__name__)
