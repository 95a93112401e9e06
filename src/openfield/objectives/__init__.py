"""What an agent did, without asking for its reward: objectives from transition counts."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# At once, for the function has the name of its module and must come after it.
from openfield.objectives.empowerment import empowerment, empowerment_corrected

if TYPE_CHECKING:
    from openfield.objectives.conditional import Conditionals, compare_conditionals
    from openfield.objectives.entropy import input_entropy, input_entropy_corrected
    from openfield.objectives.evaluation import Evaluation, evaluate, evaluate_file
    from openfield.objectives.frames import (
        code_book,
        dense_indices,
        discretize,
        downscale,
        encode,
        encode_frames,
        encode_packed,
    )
    from openfield.objectives.information import (
        info_gain_dirichlet,
        info_gain_log_counts,
        info_gain_per_transition,
        info_gain_sqrt_counts,
        info_gain_total,
    )
    from openfield.objectives.moves import transitions
    from openfield.objectives.similarity import Similarity, compare, jaccard, jensen_shannon
    from openfield.objectives.tables import Meta, Table, load_table

__all__ = [
    "Conditionals",
    "Evaluation",
    "Meta",
    "Similarity",
    "Table",
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
    "evaluate",
    "evaluate_file",
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
    "transitions",
]
_HOMES = {
    "conditional": ("Conditionals", "compare_conditionals"),
    "entropy": ("input_entropy", "input_entropy_corrected"),
    "evaluation": ("Evaluation", "evaluate", "evaluate_file"),
    "frames": (
        "code_book",
        "dense_indices",
        "discretize",
        "downscale",
        "encode",
        "encode_frames",
        "encode_packed",
    ),
    "information": (
        "info_gain_dirichlet",
        "info_gain_log_counts",
        "info_gain_per_transition",
        "info_gain_sqrt_counts",
        "info_gain_total",
    ),
    "moves": ("transitions",),
    "similarity": ("Similarity", "compare", "jaccard", "jensen_shannon"),
    "tables": ("Meta", "Table", "load_table"),
}


def __dir__() -> list[str]:
    """All public names, whether they have been imported yet or not."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used, so that the command line answers at once."""
    for home, names in _HOMES.items():
        if name in names:
            value = getattr(import_module(f"openfield.objectives.{home}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'openfield.objectives' has no attribute '{name}'")
