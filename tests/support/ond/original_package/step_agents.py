"""Agents as people wrote them for the original client, with its base classes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from sail_on_client.agent.condda_agent import CONDDAAgent
from sail_on_client.agent.ond_agent import ONDAgent
from sail_on_client.agent.ond_reaction_agent import ONDReactionAgent
from sail_on_client.checkpointer import Checkpointer
from sail_on_client.errors import ServerError

CALLS: list[str] = []


class Steps:
    """What the agents below share: features are made up from ids, results are files beside the list of ids."""

    def get_config(self) -> dict[str, Any]:
        return {}

    def initialize(self, toolset: dict[str, Any]) -> None:
        assert {"session_id", "test_id", "test_type", "pre_novelty_batches"} <= toolset.keys()
        CALLS.append(f"{type(self).__name__}.initialize")

    def feature_extraction(self, toolset: dict[str, Any]) -> Any:
        assert {"dataset", "dataset_root", "round_id"} <= toolset.keys()
        CALLS.append(f"{type(self).__name__}.features")
        ids = Path(toolset["dataset"]).read_text().split()
        return {key: np.full(2, len(key)) for key in ids}, {key: np.arange(5.0) for key in ids}

    def world_detection(self, toolset: dict[str, Any]) -> str:
        assert "redlight_image" in toolset
        return self.write(toolset, "world", "0.7")

    def novelty_classification(self, toolset: dict[str, Any]) -> str:
        return self.write(toolset, "class", "0.1,0.6,0.1,0.1,0.1")

    def write(self, toolset: dict[str, Any], name: str, values: str) -> str:
        path = Path(toolset["dataset"]).with_suffix(f".{name}")
        path.write_text("".join(f"{key},{values}\n" for key in toolset["features_dict"]))
        return str(path)


class Learner(Steps, ONDAgent, Checkpointer):
    """An OND agent that adapts, with an adapter's detector whose attributes can be kept."""

    def __init__(self, detection_threshold: float = 0.5) -> None:
        Checkpointer.__init__(self, {})
        self.detector = SimpleNamespace(seen={}, trace=[], scale=1.0)
        self.restored: list[Any] = []

    def world_detection(self, toolset: dict[str, Any]) -> str:
        self.restored.append((dict(self.detector.seen), list(self.detector.trace)))
        self.detector.seen = {key: np.ones(1) for key in toolset["features_dict"]}
        self.detector.trace = [toolset["round_id"]] * len(toolset["features_dict"])
        return super().world_detection(toolset)

    def novelty_adaptation(self, toolset: dict[str, Any]) -> None:
        assert toolset["FeedbackInstance"].get_feedback(toolset["round_id"], [0], toolset["dataset_ids"]) is not None
        CALLS.append("Learner.adapt")

    def novelty_characterization(self, toolset: dict[str, Any]) -> None:
        return None


class Greedy(Learner):
    """Wants more labels than its budget has."""

    def novelty_adaptation(self, toolset: dict[str, Any]) -> None:
        toolset["FeedbackInstance"].get_feedback(toolset["round_id"], range(9), toolset["dataset_ids"])


class Lost(Learner):
    """Returns a file that is not there."""

    def novelty_classification(self, toolset: dict[str, Any]) -> str:
        return "nowhere.csv"


class Failing(Learner):
    """Fails in the middle."""

    def feature_extraction(self, toolset: dict[str, Any]) -> Any:
        if toolset["round_id"] == 1:
            raise ServerError("no picture")
        return super().feature_extraction(toolset)


class Reaction(Steps, ONDReactionAgent):
    """A reaction baseline: it has no detection to ask for."""

    def novelty_adaptation(self, toolset: dict[str, Any]) -> None:
        raise AssertionError("a reaction baseline does not adapt here")


class Clusterer(Steps, CONDDAAgent):
    """A CONDDA agent: clusters in every round."""

    def novelty_characterization(self, toolset: dict[str, Any]) -> str:
        return self.write(toolset, "clusters", "0,0,0,0,0,1")


class Silent:
    """An older agent: one growing toolset, the older spelling, and steps it does not know are passed over."""

    def __init__(self, toolset: dict[str, Any]) -> None:
        self.inner = Learner()

    def execute(self, toolset: dict[str, Any], step: str) -> Any:
        if step == "NoveltyAdaption":
            CALLS.append("Silent.adapt")
        elif step in ("FeatureExtraction", "WorldDetection", "NoveltyClassification"):
            return self.inner.execute(toolset, step)
        return None
