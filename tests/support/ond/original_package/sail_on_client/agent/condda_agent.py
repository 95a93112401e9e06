from __future__ import annotations

import abc
from typing import Any

from sail_on_client.agent.visual_agent import VisualAgent


class CONDDAAgent(VisualAgent):
    step_descriptors = ("Initialize", "FeatureExtraction", "WorldDetection", "NoveltyCharacterization")

    def execute(self, toolset: dict[str, Any], step_descriptor: str) -> Any:
        methods = {
            "Initialize": self.initialize,
            "FeatureExtraction": self.feature_extraction,
            "WorldDetection": self.world_detection,
            "NoveltyCharacterization": self.novelty_characterization,
        }
        if step_descriptor not in methods:
            raise NotImplementedError(f"{step_descriptor} is no step of CONDDAAgent")
        return methods[step_descriptor](toolset)

    @abc.abstractmethod
    def initialize(self, toolset: dict[str, Any]) -> Any: ...

    @abc.abstractmethod
    def feature_extraction(self, toolset: dict[str, Any]) -> Any: ...

    @abc.abstractmethod
    def world_detection(self, toolset: dict[str, Any]) -> Any: ...

    @abc.abstractmethod
    def novelty_characterization(self, toolset: dict[str, Any]) -> Any: ...
