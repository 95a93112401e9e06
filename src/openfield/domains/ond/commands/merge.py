"""`openfield merge`: files of features that were kept of several tests, joined into one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def merge(
    files: list[Path],
    /,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    pickles: bool = False,
) -> None:
    """Join files of features that hosted agents of ond left; of samples that are in several, the last counts.

    Parameters
    ----------
    files
        Files that `--set features=DIR` wrote, or those of the original client.
    output
        The file to write, an .npz.
    pickles
        Also read features the original client pickled: arrays and plain values, nothing else.
    """
    from openfield.domains.ond.client.saved_features import merge_features

    print(f"{merge_features(files, output, pickles):,} samples in {output}")
