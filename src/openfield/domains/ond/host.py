"""Hosts agents written for the protocol's original client: an object with `execute(toolset, step)` or step methods.

Stands in for the visit's `Player`. Steps exchange files, as they always did; features may be kept and reused as npz.
"""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from openfield.domains.ond.client import read_ids
from openfield.domains.ond.feedback_client import FeedbackAccount
from openfield.domains.ond.visit import Feedback
from openfield.errors import AgentProtocol

STEPS = {
    "Initialize": ("Initialize", "initialize"),
    "FeatureExtraction": ("FeatureExtraction", "feature_extraction"),
    "WorldDetection": ("WorldDetection", "world_detection"),
    "NoveltyClassification": ("NoveltyClassification", "novelty_classification"),
    "NoveltyAdaptation": ("NoveltyAdaptation", "NoveltyAdaption", "novelty_adaptation", "novelty_adaption"),
    "NoveltyCharacterization": ("NoveltyCharacterization", "novelty_characterization"),
}
"""Each step and the names agents have for it."""


class StepPlayer:
    """Calls an agent's steps in the order of the protocol, each with everything known so far."""

    def __init__(
        self,
        name: str,
        agent: Any,
        root: str = "",
        config: Mapping[str, Any] | None = None,
        skip: Sequence[str] = (),
        features: str | None = None,
        feedback_type: str = "classification",
    ) -> None:
        """Hosts an agent.

        Args:
            name: What its results are called.
            agent: An object with `execute(toolset, step)` or methods named for the steps.
            root: Where the samples lie that ids name.
            config: What the agent is told with `Initialize`.
            skip: Steps that are left out.
            features: A folder where features are kept and found again.
            feedback_type: What `FeedbackInstance` buys.
        """
        self.name, self._agent, self._root = name, agent, root
        self._config, self._skip = dict(config or {}), set(skip)
        self._features, self._feedback_type = features, feedback_type
        self.threshold = float(self._config.get("detection_threshold", 0.5))

    def start(self, session: str, test: str, metadata: Mapping[str, Any], feedback: Feedback) -> None:
        """Tells the agent of the test."""
        self._test, self._condda = test, metadata.get("protocol") == "CONDDA"
        self._saved = self._load_features()
        self._kept: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
        budget = int(metadata.get("feedback_max_ids", 0))
        self._tools: dict[str, Any] = self._config | {
            "session_id": session,
            "test_id": test,
            "test_type": "",
            "metadata": dict(metadata),
            "pre_novelty_batches": metadata.get("pre_novelty_batches", 0),
            "redlight_image": metadata.get("red_light", ""),
            "dataset_root": self._root,
            "attributes": {},
        }
        if "CreateFeedbackInstance" not in self._skip and not self._condda:
            account = FeedbackAccount(budget, budget, budget, feedback, self._feedback_type)
            self._tools |= {"FeedbackInstance": account, "ImageClassificationFeedback": account}
        self._call("Initialize")

    def play(self, number: int, content: bytes) -> Iterator[Mapping[str, str]]:
        """Features, detection, classification, adaptation; CONDDA characterises instead."""
        ids = read_ids(content)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{self._test}.{number}.csv"
            path.write_bytes(content)
            self._tools |= {"dataset": str(path), "round_id": number, "dataset_ids": ids}
            self._extract(ids)
            for step, kind in self._posting():
                yield from self._results(self._call(step), kind)
            if not self._condda and "FeedbackInstance" in self._tools:
                self._call("NoveltyAdaptation")

    def finish(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Characterisation of the whole test, and the features for another time."""
        self._save_features()
        if self._condda:
            return {}
        self._tools["dataset_ids"] = list(ids)
        merged: dict[str, str] = {}
        for results in self._results(self._call("NoveltyCharacterization"), "characterization"):
            merged |= results
        return merged

    def _posting(self) -> tuple[tuple[str, str], ...]:
        last = (
            ("NoveltyCharacterization", "characterization")
            if self._condda
            else ("NoveltyClassification", "classification")
        )
        return ("WorldDetection", "detection"), last

    def _extract(self, ids: Sequence[str]) -> None:
        features, logits = self._saved or self._call("FeatureExtraction") or ({}, {})
        if self._saved:
            features, logits = ({key: part[key] for key in ids if key in part} for part in (features, logits))
        self._tools |= {"features_dict": features, "logit_dict": logits}
        self._kept[0].update(features)
        self._kept[1].update(logits)

    def _call(self, step: str) -> Any:
        """Does a step by whichever name the agent has for it."""
        if step in self._skip:
            return None
        for method in STEPS[step]:
            found = getattr(self._agent, method, None)
            if callable(found):
                return found(self._tools) if _takes_argument(found) else found()
        if not hasattr(self._agent, "execute"):
            if step in ("NoveltyAdaptation", "NoveltyCharacterization", "Initialize"):
                return None
            raise AgentProtocol(f"The agent has neither execute() nor a method for {step}.")
        return self._execute(step)

    def _execute(self, step: str) -> Any:
        try:
            return self._agent.execute(self._tools, step)
        except (NotImplementedError, KeyError, AttributeError, ValueError):
            if step != "NoveltyAdaptation":
                raise
            return self._agent.execute(self._tools, "NoveltyAdaption")  # as older agents spell it

    def _results(self, returned: Any, kind: str) -> Iterator[Mapping[str, str]]:
        """What a step returned: a path, or a path for each type, or nothing."""
        if returned is None:
            return
        paths = returned if isinstance(returned, Mapping) else {kind: returned}
        yield {str(name): Path(path).read_text(encoding="utf-8") for name, path in paths.items()}

    def _feature_file(self) -> Path | None:
        return None if self._features is None else Path(self._features) / f"{self._test}_{self.name}_features.npz"

    def _load_features(self) -> tuple[dict[str, Any], dict[str, Any]] | None:
        path = self._feature_file()
        if path is None or not path.is_file():
            return None
        with np.load(path, allow_pickle=False) as file:
            ids = file["ids"].tolist()
            return tuple(dict(zip(ids, file[part], strict=True)) for part in ("features", "logits"))  # type: ignore[return-value]

    def _save_features(self) -> None:
        path = self._feature_file()
        features, logits = self._kept
        if path is None or path.is_file() or not features or features.keys() != logits.keys():
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        parts = {
            name: np.stack([np.asarray(part[key]) for key in features])
            for name, part in (("features", features), ("logits", logits))
        }
        np.savez_compressed(path, ids=np.array(list(features)), **parts)  # type: ignore[arg-type]


class PrecomputedAgent:
    """Answers from files written before: `CACHE/TEST_NAME_detection.csv` and so on, a round's rows at a time."""

    def __init__(self, cache: str, name: str) -> None:
        self._cache, self._name = Path(cache), name

    def execute(self, toolset: dict[str, Any], step: str) -> Any:
        """Does a step."""
        match step:
            case "FeatureExtraction":
                return {}, {}
            case "WorldDetection":
                return self._slice(toolset, "detection")
            case "NoveltyClassification":
                return self._slice(toolset, "classification")
            case "NoveltyCharacterization":
                path = self._path(toolset["test_id"], "characterization")
                return str(path) if path.is_file() else None
        return None

    def _slice(self, toolset: dict[str, Any], kind: str) -> str:
        """The rows of this round's samples, by id and not by position; a file for the round alone is used as it is."""
        whole = self._path(f"{toolset['test_id']}.{toolset['round_id']}", kind)
        if whole.is_file():
            return str(whole)
        wanted = set(toolset["dataset_ids"])
        lines = self._path(toolset["test_id"], kind).read_text(encoding="utf-8").splitlines(keepends=True)
        place = Path(toolset["dataset"]).with_suffix(f".{kind}")
        place.write_text("".join(line for line in lines if line.partition(",")[0] in wanted), encoding="utf-8")
        return str(place)

    def _path(self, stem: str, kind: str) -> Path:
        return self._cache / f"{stem}_{self._name}_{kind}.csv"


def make_hosted(found: Any, config: Mapping[str, Any]) -> Any:
    """An agent from a class, a factory or an object, whichever way it likes to be made."""
    if not inspect.isclass(found):
        return found
    make: Any = found
    if hasattr(found, "from_config"):
        return make.from_config(dict(config))
    wanted = [
        p for p in inspect.signature(found).parameters.values() if p.default is p.empty and p.kind is not p.VAR_KEYWORD
    ]
    if len(wanted) == 1 and wanted[0].name in ("toolset", "config"):
        return make(dict(config))
    return make(**config)


def is_hostable(found: Any) -> bool:
    """Whether something speaks the protocol's steps rather than turns."""
    return hasattr(found, "execute") or any(hasattr(found, name) for names in STEPS.values() for name in names)


def _takes_argument(method: Any) -> bool:
    try:
        return len(inspect.signature(method).parameters) > 0
    except (TypeError, ValueError):
        return True
