from __future__ import annotations

import abc
from typing import Any

from sail_on_client.agent.visual_agent import VisualAgent


class ONDReactionAgent(VisualAgent):
    step_descriptors = ("Initialize", "FeatureExtraction", "NoveltyClassification", "NoveltyAdaptation")

    def execute(self, toolset: dict[str, Any], step_descriptor: str) -> Any:
        methods = {
            "Initialize": self.initialize,
            "FeatureExtraction": self.feature_extraction,
            "NoveltyClassification": self.novelty_classification,
            "NoveltyAdaptation": self.novelty_adaptation,
        }
        if step_descriptor not in methods:
            raise NotImplementedError(f"{step_descriptor} is no step of ONDReactionAgent")
        return methods[step_descriptor](toolset)

    @abc.abstractmethod
    def initialize(self, toolset: dict[str, Any]) -> Any: ...

    @abc.abstractmethod
    def feature_extraction(self, toolset: dict[str, Any]) -> Any: ...

    @abc.abstractmethod
    def novelty_classification(self, toolset: dict[str, Any]) -> Any: ...

    @abc.abstractmethod
    def novelty_adaptation(self, toolset: dict[str, Any]) -> Any: ...
