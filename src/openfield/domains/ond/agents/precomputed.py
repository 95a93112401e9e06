"""An agent that answers from result files, round by round.

`StepPlayer` plays it like an agent of the original client: in OND, in CONDDA, or as a reaction baseline.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from openfield.domains.ond.testset.results import split_row
from openfield.errors import InvalidInput


class PrecomputedAgent:
    """Answers from the files `CACHE/TEST_NAME_detection.csv` and so on."""

    def __init__(self, cache: str, name: str) -> None:
        self._cache, self._name = Path(cache), name
        self._rows = functools.cache(self._read)

    def execute(self, toolset: dict[str, Any], step: str) -> Any:
        """Return the results of a step."""
        kinds = {"WorldDetection": "detection", "NoveltyClassification": "classification"}
        if toolset["metadata"].get("protocol") == "CONDDA":
            kinds["NoveltyCharacterization"] = "characterization"
        if step in kinds:
            return self._slice(toolset, kinds[step])
        path = self._path(toolset["test_id"], "characterization")
        if step == "NoveltyCharacterization" and path.is_file():
            return str(path)
        return ({}, {}) if step == "FeatureExtraction" else None

    def _slice(self, toolset: dict[str, Any], kind: str) -> str:
        """Return a file with the rows of this round's samples, or the file for this round alone if there is one."""
        whole = self._path(f"{toolset['test_id']}.{toolset['round_id']}", kind)
        if whole.is_file():
            return str(whole)
        rows = self._rows(self._path(toolset["test_id"], kind))
        place = Path(toolset["dataset"]).with_suffix(f".{kind}")
        place.write_text("".join(rows.get(key, "") for key in toolset["dataset_ids"]), encoding="utf-8")
        return str(place)

    def _read(self, path: Path) -> dict[str, str]:
        """Return the rows of a file by their ids."""
        if not path.is_file():
            raise InvalidInput(f"There are no results {path}.")
        lines = path.read_text(encoding="utf-8").splitlines()
        return {split_row(line)[0]: f"{line}\n" for line in lines if line.strip()}

    def _path(self, stem: str, kind: str) -> Path:
        return self._cache / f"{stem}_{self._name}_{kind}.csv"
