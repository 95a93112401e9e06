"""Hosts agents written for the protocol's original client: an object with `execute(toolset, step)` or step methods.

Stands in for the visit's `Player`. Steps exchange files, as they always did; features may be kept and reused as npz.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from openfield.domains.ond.client.feedback_client import FeedbackAccount
from openfield.domains.ond.client.rest_client import read_ids, read_text
from openfield.domains.ond.client.saved_features import write_features
from openfield.domains.ond.client.stages import Options
from openfield.domains.ond.client.steps import do_step, may_miss_adaptation
from openfield.domains.ond.client.workflow import Occasion
from openfield.domains.ond.testset.sheet import read_count
from openfield.errors import AgentCrashed, AgentProtocol, InvalidInput, OpenfieldError

LOG = logging.getLogger("openfield.ond")


class StepPlayer:
    """Calls an agent's steps in the order of the protocol, each with everything known so far."""

    def __init__(
        self,
        name: str,
        agent: Any,
        root: str = "",
        config: Mapping[str, Any] | None = None,
        options: Options | None = None,
    ) -> None:
        """Hosts an agent.

        Args:
            name: What its results are called.
            agent: An object with `execute(toolset, step)` or methods named for the steps.
            root: Where the samples lie that ids name.
            config: What the agent is told with `Initialize`.
            options: What is left out, and what is kept.
        """
        self.name, self._agent, self._root = name, agent, root
        self._config, self._options = dict(config or {}), options or Options()
        self._skip = self._options.skipped()
        self._attributes = self._options.attribute_store()
        self._warned = False
        self.threshold = float(self._config.get("detection_threshold", 0.5))

    def start(self, occasion: Occasion) -> None:
        """Tells the agent of the test."""
        test, metadata = occasion.test, occasion.metadata
        self._test, self._condda = test, metadata.get("protocol") == "CONDDA"
        self._saved = self._options.find_features(test, self.name)
        self._whole, self._before = not occasion.answered, len(occasion.answered)
        if self._attributes is not None:
            self._attributes.read(test) if self._options.use_attributes else self._attributes.begin()
        self._kept: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
        budget = read_count(metadata.get("feedback_max_ids"), f"Test {test}: feedback_max_ids") or 0
        self._tools: dict[str, Any] = self._config | {
            "session_id": occasion.session,
            "test_id": test,
            "test_type": "",
            "metadata": dict(metadata),
            "pre_novelty_batches": metadata.get("pre_novelty_batches") or 0,
            "redlight_image": metadata.get("red_light") or "",
            "dataset_root": self._root,
            "attributes": {},
            "features_dict": {},
            "logit_dict": {},
        }
        if "CreateFeedbackInstance" not in self._skip and not self._condda:
            account = FeedbackAccount(budget, budget, budget, occasion.feedback, self._options.feedback_type)
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
                self._adapt()
        self._before += len(ids)

    def finish(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Characterisation of the whole test, and the features for another time."""
        self._keep()
        if self._condda:
            return {}
        self._before = 0
        self._tools["dataset_ids"] = list(ids)
        merged: dict[str, str] = {}
        for results in self._results(self._call("NoveltyCharacterization"), "characterization"):
            merged |= results
        return merged

    def _adapt(self) -> None:
        """Adaptation; where an agent may have passed over it unnoticed, that is said once."""
        returned = self._call("NoveltyAdaptation")
        if returned is None and not self._warned and "NoveltyAdaptation" not in self._skip:
            self._warned = True
            if may_miss_adaptation(self._agent):
                LOG.warning("%s names adaptation by neither spelling, and may have passed over it.", self.name)

    def _posting(self) -> tuple[tuple[str, str], ...]:
        last = (
            ("NoveltyCharacterization", "characterization")
            if self._condda
            else ("NoveltyClassification", "classification")
        )
        return ("WorldDetection", "detection"), last

    def _extract(self, ids: Sequence[str]) -> None:
        """Features of a round: those kept of it if they are all there, else the agent's."""
        kept, fresh = self._saved, None
        if kept is None or not all(key in part for key in ids for part in kept if part):
            fresh = self._call("FeatureExtraction")
        features, logits = fresh or (
            ({key: part[key] for key in ids if key in part} for part in kept) if kept else ({}, {})
        )
        self._tools |= {"features_dict": features, "logit_dict": logits}
        if fresh:
            self._kept[0].update(features)
            self._kept[1].update(logits)

    def _call(self, step: str) -> Any:
        """Does a step, with the attributes it is to have before it, or those it is to leave behind after it."""
        if step in self._skip:
            return None
        store, using = self._attributes, self._options.use_attributes
        try:
            if store is not None and using:
                store.restore(self._agent, step, self._before, self._tools.get("dataset_ids", ()))
            returned = do_step(self._agent, step, self._tools)
            if store is not None and not using:
                store.gather(self._agent, step)
        except OpenfieldError:
            raise
        except Exception as error:
            place = f"Test {self._test}, round {self._tools.get('round_id', 0)}, {step}"
            raise AgentCrashed(f"{place}: the agent raised {type(error).__name__}: {error}") from error
        return returned

    def _results(self, returned: Any, kind: str) -> Iterator[Mapping[str, str]]:
        """What a step returned: a path, or a path for each type, or nothing."""
        if returned is None:
            return
        paths = returned if isinstance(returned, Mapping) else {kind: returned}
        try:
            yield {str(name): read_text(Path(path).read_bytes()) for name, path in paths.items()}
        except (OSError, TypeError, UnicodeDecodeError) as error:
            raise AgentProtocol(f"Test {self._test}: the {kind} results cannot be read: {error}.") from None

    def _keep(self) -> None:
        """Writes features and attributes for another time."""
        place = self._options.feature_file(self._test, self.name)
        try:
            if place is not None and self._kept[0]:
                before = self._saved or ({}, {})
                write_features(place, (before[0] | self._kept[0], before[1] | self._kept[1]))
            if self._attributes is not None and not self._options.use_attributes:
                if not self._whole:  # they are given back by the round, and would be those of others
                    raise AgentProtocol("attributes of a test that was interrupted lack its first rounds")
                self._attributes.write(self._test)
        except (AgentProtocol, InvalidInput) as error:  # the test was played all the same
            LOG.warning("%s, test %s: not everything was kept: %s", self.name, self._test, error)
