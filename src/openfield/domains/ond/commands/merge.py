"""`openfield ond merge`: join files of features into one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def merge_feature_files(
    files: list[Path],
    /,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"], metavar="FILE")],
    pickles: bool = False,
) -> None:
    """Join files of features into one; of samples that are in several files, the last counts.

    Args:
        files: Files written with `--set features=DIR`, or those of the original client.
        output: The .npz file to write.
        pickles: Also read pickles of the original client: arrays and plain values, nothing else.

    Example:
        openfield ond merge a.npz b.npz -o all.npz
    """
    from openfield.domains.ond.client.saved_features import merge_features

    print(f"{merge_features(files, output, pickles):,} samples in {output}")
