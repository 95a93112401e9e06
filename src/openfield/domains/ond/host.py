"""Hosts agents written for the protocol's original client: an object with `execute(toolset, step)` or step methods.

Stands in for the visit's `Player`. Steps exchange files, as they always did; features may be kept and reused as npz.
"""

from __future__ import annotations

import inspect
import logging
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from openfield.domains.ond.client import read_ids, read_text
from openfield.domains.ond.feedback_client import FeedbackAccount
from openfield.domains.ond.keeping import Attributes, Features, find_features, write_features
from openfield.domains.ond.visit import Feedback
from openfield.errors import AgentCrashed, AgentProtocol, InvalidInput, OpenfieldError, UnknownName

LOG = logging.getLogger("openfield.ond")
STEPS = {
    "Initialize": ("Initialize", "initialize"),
    "FeatureExtraction": ("FeatureExtraction", "feature_extraction"),
    "WorldDetection": ("WorldDetection", "world_detection"),
    "NoveltyClassification": ("NoveltyClassification", "novelty_classification"),
    "NoveltyAdaptation": ("NoveltyAdaptation", "NoveltyAdaption", "novelty_adaptation", "novelty_adaption"),
    "NoveltyCharacterization": ("NoveltyCharacterization", "novelty_characterization"),
}
"""Each step and the names agents have for it."""

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
        self.threshold = float(self._config.get("detection_threshold", 0.5))

    def start(
        self,
        session: str,
        test: str,
        metadata: Mapping[str, Any],
        feedback: Feedback,
        answered: Sequence[str] = (),
    ) -> None:
        """Tells the agent of the test."""
        self._test, self._condda = test, metadata.get("protocol") == "CONDDA"
        self._saved = self._options.find_features(test, self.name)
        self._whole = not answered
        if self._attributes is not None:
            self._attributes.read(test) if self._options.use_attributes else self._attributes.begin()
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
            "features_dict": {},
            "logit_dict": {},
        }
        if "CreateFeedbackInstance" not in self._skip and not self._condda:
            account = FeedbackAccount(budget, budget, budget, feedback, self._options.feedback_type)
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
        self._keep()
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
                store.restore(self._agent, step, self._tools.get("round_id", 0), self._tools.get("dataset_ids", ()))
            returned = self._do(step)
            if store is not None and not using:
                store.gather(self._agent, step)
        except OpenfieldError:
            raise
        except Exception as error:
            place = f"Test {self._test}, round {self._tools.get('round_id', 0)}, {step}"
            raise AgentCrashed(f"{place}: the agent raised {type(error).__name__}: {error}") from error
        return returned

    def _do(self, step: str) -> Any:
        """Does a step as the original client has it done, by `execute`, or by whichever method is named for it."""
        if hasattr(self._agent, "execute"):
            return self._execute(step)
        for method in STEPS[step]:
            found = getattr(self._agent, method, None)
            if callable(found):
                return found(self._tools) if _takes_argument(found) else found()
        if step in ("NoveltyAdaptation", "NoveltyCharacterization", "Initialize"):
            return None
        raise AgentProtocol(f"The agent has neither execute() nor a method for {step}.")

    def _execute(self, step: str) -> Any:
        if step != "NoveltyAdaptation":
            return self._agent.execute(self._tools, step)
        likely, other = _spellings(self._agent)
        try:
            return self._agent.execute(self._tools, likely)
        except (NotImplementedError, LookupError, AttributeError, ValueError) as error:
            if not _is_about(error, likely):  # the step is known, and something in it went wrong
                raise
        return self._agent.execute(self._tools, other)

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
        except (AgentProtocol, OSError) as error:  # the test was played all the same
            LOG.warning("%s, test %s: not everything was kept: %s", self.name, self._test, error)


def make_hosted(found: Any, config: Mapping[str, Any]) -> Any:
    """An agent from a class, a factory or an object, whichever way it likes to be made."""
    if not inspect.isclass(found):
        return found
    try:
        return _make(found, config)
    except TypeError as error:
        given = ", ".join(config) or "none"
        raise InvalidInput(f"{found.__name__} cannot be made from the settings given ({given}): {error}.") from None


def _make(found: Any, config: Mapping[str, Any]) -> Any:
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


def _spellings(agent: Any) -> tuple[str, str]:
    """How an agent may spell adaptation, the likelier first: older ones leave out two letters.

    Agents that pass over steps they do not know cannot be told by trying; their `execute` names those it knows.
    """
    new, old = "NoveltyAdaptation", "NoveltyAdaption"
    code = getattr(getattr(agent.execute, "__func__", agent.execute), "__code__", None)
    named = code.co_consts if code is not None else ()
    return (old, new) if old in named and new not in named else (new, old)


def _is_about(error: Exception, step: str) -> bool:
    """Whether an error says that there is no such step, by whatever name of it."""
    return any(name in str(error) for name in (step, _snake(step)))


def _snake(step: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in step).lstrip("_")
