"""What a hosted agent does in a test, stage by stage: what may be left out, and what is kept for another run.

Typed by the user, read by `host.py`.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from openfield.domains.ond.client.saved_features import Attributes, Features, find_features
from openfield.domains.ond.client.steps import STEPS
from openfield.errors import UnknownName

STAGES = (*STEPS, "CreateFeedbackInstance", "EvaluateRoundwise", "EvaluateAlgorithms", "SaveFeatures")
"""What may be left out, by the names the original client has."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What is left out of the protocol's steps, and what is kept of an agent for another run."""

    skip: tuple[str, ...] = ()
    """Steps and stages that are left out, by the protocol's names."""
    baseline: bool = False
    """A reaction baseline: it classifies, and neither detects, adapts nor characterises."""
    extract_only: bool = False
    """Nothing but features is wanted."""
    feedback_type: str = "classification"
    features: str | None = None
    """A folder where features are kept and found again, or a file to find them in."""
    consolidated: bool = False
    """One file for all tests of an agent."""
    pickles: bool = False
    """Whether pickles of the original client may be read."""
    attributes: str | None = None
    """A folder for attributes, or a file to find them in."""
    keep: dict[str, tuple[str, ...]] = {}
    """Step -> attributes of the agent that are kept."""
    use_attributes: bool = False
    """Give the agent kept attributes, instead of keeping them."""

    def skipped(self) -> set[str]:
        """All steps and stages that are left out."""
        for name in (*self.skip, *self.keep):
            if name not in STAGES:
                raise UnknownName("stage", name, STAGES, label="Known")
        react = ("WorldDetection", "NoveltyCharacterization", "CreateFeedbackInstance") if self.baseline else ()
        rest = (*STEPS.keys() - {"Initialize", "FeatureExtraction"}, "CreateFeedbackInstance")
        return {*self.skip, *react, *(rest if self.extract_only else ())}

    def find_features(self, test: str, agent: str) -> Features | None:
        """Features of a test, if there are any."""
        return None if self.features is None else find_features(self.features, test, agent, self.pickles)

    def feature_file(self, test: str, agent: str) -> Path | None:
        """Where features are to be kept, if they are."""
        if self.features is None or "SaveFeatures" in self.skip or Path(self.features).is_file():
            return None
        stem = agent if self.consolidated else f"{test}_{agent}"
        return Path(self.features) / f"{stem}_features.npz"

    def attribute_store(self) -> Attributes | None:
        """Where attributes are kept, if any are."""
        return Attributes(self.attributes, self.keep, self.pickles) if self.attributes and self.keep else None
