"""Agents as they were written for the original client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np


class Executor:
    """An agent of the original client, as older ones were written."""

    def __init__(self, toolset: dict[str, Any]) -> None:
        self.steps: list[str] = []
        self.labels: list[Any] = []

    def execute(self, toolset: dict[str, Any], step: str) -> Any:
        self.steps.append(step)
        if step == "NoveltyAdaptation":
            raise NotImplementedError(step)
        if step == "NoveltyAdaption":
            table = toolset["FeedbackInstance"].get_feedback(toolset["round_id"], [0, 1], toolset["dataset_ids"])
            self.labels.append(table)
            return None
        if step == "FeatureExtraction":
            ids = Path(toolset["dataset"]).read_text().split()
            return {key: np.ones(3) for key in ids}, {key: np.zeros(5) for key in ids}
        if step in ("WorldDetection", "NoveltyClassification"):
            values = "0.7" if step == "WorldDetection" else "0.1,0.6,0.1,0.1,0.1"
            path = Path(toolset["dataset"]).with_suffix(f".{step}")
            path.write_text("".join(f"{key},{values}\n" for key in toolset["features_dict"]))
            return str(path)
        return None


class Methods:
    """An agent with a method for each step."""

    def initialize(self, toolset: dict[str, Any]) -> None:
        self.light = toolset["redlight_image"]

    def feature_extraction(self, toolset: dict[str, Any]) -> Any:
        raise AssertionError("saved features are used instead")

    def world_detection(self, toolset: dict[str, Any]) -> dict[str, str]:
        path = Path(toolset["dataset"]).with_suffix(".d")
        path.write_text("".join(f"{key},0.1,0.2\n" for key in toolset["features_dict"]))
        return {"detection": str(path)}

    def novelty_classification(self, toolset: dict[str, Any]) -> str:
        path = Path(toolset["dataset"]).with_suffix(".c")
        path.write_text("".join(f"{key},0.2,0.2,0.2,0.2,0.2\n" for key in toolset["logit_dict"]))
        return str(path)

    def novelty_characterization(self, toolset: dict[str, Any]) -> str:
        path = Path(toolset["dataset"]).parent.parent / "characterization.csv"
        path.write_text("".join(f"{key},0.5,0.5\n" for key in toolset["dataset_ids"]))
        return str(path)
