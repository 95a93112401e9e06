"""Play tests with agents written for the original client: an object with `execute(toolset, step)` or step methods.

`StepPlayer` is the `OndPlayer` of such an agent, `StepOptions` the user's choices. Steps exchange files, as in the
original client. Adaptation has two spellings: older agents leave out two letters. An agent that does not know a step
may pass over it without a trace, so the name it gets notes whether the agent recognises it.
"""

from __future__ import annotations

import inspect
import logging
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from openfield.domains.ond.client.original_client import FeedbackAccount
from openfield.domains.ond.client.saved_features import AttributeStore, Features, read_saved_features, write_features
from openfield.domains.ond.client.workflow import THRESHOLD, StartedTest, read_threshold, write_version
from openfield.domains.ond.testset.results import read_ids, read_text
from openfield.domains.ond.testset.test import read_count
from openfield.errors import AgentCrashed, AgentProtocol, InvalidInput, OpenfieldError, UnknownName, describe_error

ADAPTATION, ADAPTION = "NoveltyAdaptation", "NoveltyAdaption"
"""The two spellings of one step."""
METHODS = {ADAPTATION: (ADAPTATION, "novelty_adaptation"), ADAPTION: (ADAPTION, "novelty_adaption")}
"""Each spelling and the methods named for it."""
STEPS = {
    "Initialize": ("Initialize", "initialize"),
    "FeatureExtraction": ("FeatureExtraction", "feature_extraction"),
    "WorldDetection": ("WorldDetection", "world_detection"),
    "NoveltyClassification": ("NoveltyClassification", "novelty_classification"),
    ADAPTATION: (ADAPTATION, ADAPTION, "novelty_adaptation", "novelty_adaption"),
    "NoveltyCharacterization": ("NoveltyCharacterization", "novelty_characterization"),
}
"""Each step and the names agents have for it."""
PASSED_OVER = object()
"""What adaptation returns if the agent seems to know it by neither spelling."""


def has_steps(found: Any) -> bool:
    """Return whether an agent has the protocol's steps, and does not reply to turns."""
    return hasattr(found, "execute") or any(hasattr(found, name) for names in STEPS.values() for name in names)


def make_step_agent(found: Any, config: Mapping[str, Any]) -> Any:
    """Make an agent from its class and parameters; anything but a class is returned as it is.

    The detection threshold is the session's. A class that has no parameter of this name is made without it.
    """
    if not inspect.isclass(found):
        return found
    make: Any = getattr(found, "from_config", found)
    try:
        parameters = inspect.signature(found).parameters
        wanted = [one for one in parameters.values() if one.default is one.empty and one.kind is not one.VAR_KEYWORD]
        takes_all = [one.name for one in wanted] in (["toolset"], ["config"])
        is_open = takes_all or any(one.kind is one.VAR_KEYWORD for one in parameters.values())
        given = {key: one for key, one in config.items() if is_open or key != THRESHOLD or key in parameters}
        return make(given) if make is not found or takes_all else make(**given)
    except TypeError as error:
        names = ", ".join(config) or "none"
        raise InvalidInput(f"{found.__name__} cannot be made from the parameters given ({names}): {error}.") from None


def call_step(agent: Any, step: str, toolset: dict[str, Any]) -> Any:
    """Call a step of an agent and return its result: by `execute`, or else by the first method named for the step."""
    if hasattr(agent, "execute"):
        return _adapt(agent, toolset) if step == ADAPTATION else agent.execute(toolset, step)
    for method in STEPS[step]:
        found = getattr(agent, method, None)
        if callable(found):
            return found(toolset) if _takes_argument(found) else found()
    if step in (ADAPTATION, "NoveltyCharacterization", "Initialize"):
        return None
    raise AgentProtocol(f"The agent has neither execute() nor a method for {step}.")


def _takes_argument(method: Any) -> bool:
    try:
        return len(inspect.signature(method).parameters) > 0
    except (TypeError, ValueError):
        return True


class AdaptationName(str):
    """A spelling of adaptation that notes whether the agent recognises it: finds it equal, or reads it by a method."""

    recognised = False

    def __eq__(self, other: object) -> bool:
        equal = super().__eq__(other) is True
        self.recognised = self.recognised or equal
        return equal

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__

    def __contains__(self, part: Any) -> bool:
        self.recognised = True
        return super().__contains__(part)

    def __getattribute__(self, name: str) -> Any:
        if hasattr(str, name) and not name.startswith("_"):  # `lower`, `startswith` and so on
            self.recognised = True
        return super().__getattribute__(name)


def _adapt(agent: Any, toolset: dict[str, Any]) -> Any:
    """Call adaptation by one spelling, and by the other if the agent did not recognise it or says it has no such step.

    The spelling that a method of the agent has comes first, else the longer one. Any other error is the agent's own.
    """
    owners = [agent, *(part for part in getattr(agent, "__dict__", {}).values() if hasattr(part, "execute"))]
    named = [name for name, methods in METHODS.items() if any(hasattr(one, m) for one in owners for m in methods)]
    names = [AdaptationName(name) for name in sorted(METHODS, key=lambda name: name not in named)]
    unknown: list[Exception] = []
    for name in names:
        try:
            returned = agent.execute(toolset, name)
        except Exception as error:
            if not _says_unknown(error, name):
                raise
            unknown.append(error)
        else:
            if name.recognised or returned is not None or len(named) == len(names):
                return returned
    if len(unknown) == len(names) or (unknown and names[0].recognised):
        raise unknown[0]
    return None if unknown or named else PASSED_OVER


def _says_unknown(error: Exception, name: AdaptationName) -> bool:
    """Return whether an error says that there is no such step; an agent that recognises a name may fail in the step."""
    named = any(method in str(error) for method in METHODS[str(name)])
    return isinstance(error, NotImplementedError) or (named and not name.recognised)


STAGES = (*STEPS, "CreateFeedbackInstance", "EvaluateRoundwise", "EvaluateAlgorithms", "SaveFeatures")
"""The steps and stages that can be skipped, by the names of the original client."""
LOG = logging.getLogger("openfield.ond")


class StepOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The steps of the protocol to skip, and the parts of an agent to save for another run."""

    skip: tuple[str, ...] = ()
    """Steps and stages to skip, by the protocol's names."""
    baseline: bool = False
    """Whether it is a reaction baseline, which classifies and neither detects, adapts nor characterises."""
    extract_only: bool = False
    """Whether only features are wanted."""
    feedback_type: str = "classification"
    features: str | None = None
    """A folder to save features in and read them from, or a file to read them from."""
    consolidated: bool = False
    """Whether all tests of an agent share one file of features."""
    pickles: bool = False
    """Whether pickles of the original client may be read."""
    attributes: str | None = None
    """A folder for attributes, or a file to read them from."""
    keep: dict[str, tuple[str, ...]] = {}
    """Step -> attributes of the agent to save."""
    use_attributes: bool = False
    """Restore saved attributes instead of saving them."""

    def skipped(self) -> set[str]:
        """Return all steps and stages that are skipped, and check their names."""
        for name in (*self.skip, *self.keep):
            if name not in STAGES:
                raise UnknownName("stage", name, STAGES, label="Known")
        react = ("WorldDetection", "NoveltyCharacterization", "CreateFeedbackInstance") if self.baseline else ()
        rest = (*STEPS.keys() - {"Initialize", "FeatureExtraction"}, "CreateFeedbackInstance")
        return {*self.skip, *react, *(rest if self.extract_only else ())}

    def feature_file(self, test: str, agent: str) -> Path | None:
        """Return the file to save features in, or None if they are not to be saved."""
        if self.features is None or "SaveFeatures" in self.skip or Path(self.features).is_file():
            return None
        stem = agent if self.consolidated else f"{test}_{agent}"
        return Path(self.features) / f"{stem}_features.npz"


class StepPlayer:
    """Calls an agent's steps in the order of the protocol, each with everything known so far."""

    def __init__(
        self,
        name: str,
        agent: Any,
        root: str = "",
        config: Mapping[str, Any] | None = None,
        options: StepOptions | None = None,
        version: str = "",
    ) -> None:
        """Prepare an agent, which gets `config` with `Initialize`; ids name samples in the folder `root`."""
        self.version = version or write_version(name, {})
        self.name, self._agent, self._root = name, agent, root
        self._config, self._options = dict(config or {}), options or StepOptions()
        self._skip, own = self._options.skipped(), self._options
        saves = own.attributes and own.keep
        self._store = AttributeStore(own.attributes or "", own.keep, own.pickles) if saves else None
        self._warned = False
        self.threshold = read_threshold(self._config.get(THRESHOLD, 0.5))

    def start(self, started: StartedTest) -> None:
        """Initialize the agent for a test."""
        test, metadata = started.test, started.metadata
        self._test, self._condda = test, metadata.get("protocol") == "CONDDA"
        place, pickles = self._options.features, self._options.pickles
        self._saved = None if place is None else read_saved_features(place, test, self.name, pickles)
        self._resumed, self._position = bool(started.answered), len(started.answered)
        if self._store is not None:
            self._store.read(test) if self._options.use_attributes else self._store.clear()
        self._extracted: Features = ({}, {})
        self._toolset: dict[str, Any] = self._config | {
            "session_id": started.session,
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
        budget = read_count(metadata.get("feedback_max_ids"), f"Test {test}: feedback_max_ids") or 0
        if "CreateFeedbackInstance" not in self._skip and not self._condda:
            account = FeedbackAccount(budget, budget, budget, started.feedback, self._options.feedback_type)
            self._toolset |= {"FeedbackInstance": account, "ImageClassificationFeedback": account}
        self._call("Initialize")

    def play(self, number: int, content: bytes) -> Iterator[Mapping[str, str]]:
        """Call the steps of a round: features, detection, classification, adaptation; CONDDA characterises instead."""
        ids = read_ids(content)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{self._test}.{number}.csv"
            path.write_bytes(content)
            self._toolset |= {"dataset": str(path), "round_id": number, "dataset_ids": ids}
            self._extract(ids)
            yield from self._results(self._call("WorldDetection"), "detection")
            if self._condda:
                yield from self._results(self._call("NoveltyCharacterization"), "characterization")
            else:
                yield from self._results(self._call("NoveltyClassification"), "classification")
                self._adapt()
        self._position += len(ids)

    def finish(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Return the characterisation of the whole test, and save features and attributes."""
        self._save()
        if self._condda:
            return {}
        self._position = 0
        self._toolset["dataset_ids"] = list(ids)
        return next(self._results(self._call("NoveltyCharacterization"), "characterization"), {})

    def _adapt(self) -> None:
        """Call adaptation if there is feedback, and warn once if the agent may have passed over the step."""
        if "FeedbackInstance" not in self._toolset:
            return
        if self._call("NoveltyAdaptation") is PASSED_OVER and not self._warned:
            self._warned = True
            LOG.warning("%s names adaptation by neither spelling, and may have passed over it.", self.name)

    def _extract(self, ids: Sequence[str]) -> None:
        """Put the features of a round into the toolset: the saved ones if none is missing, else the agent's."""
        saved, fresh = self._saved, None
        if saved is None or not all(key in part for key in ids for part in saved if part):
            fresh = self._call("FeatureExtraction")
        features, logits = fresh or (
            ({key: part[key] for key in ids if key in part} for part in saved) if saved else ({}, {})
        )
        self._toolset |= {"features_dict": features, "logit_dict": logits}
        if fresh:
            self._extracted[0].update(features)
            self._extracted[1].update(logits)

    def _call(self, step: str) -> Any:
        """Call a step unless it is skipped; restore the attributes it needs before it, or save its own after it."""
        if step in self._skip:
            return None
        store, using = self._store, self._options.use_attributes
        try:
            if store is not None and using:
                store.restore(self._agent, step, self._position, self._toolset.get("dataset_ids", ()))
            returned = call_step(self._agent, step, self._toolset)
            if store is not None and not using:
                store.collect(self._agent, step)
        except OpenfieldError:
            raise
        except Exception as error:
            place = f"Test {self._test}, round {self._toolset.get('round_id', 0)}, {step}"
            raise AgentCrashed(f"{place}: the agent raised {describe_error(error)}") from error
        return returned

    def _results(self, returned: Any, kind: str) -> Iterator[Mapping[str, str]]:
        """Yield the results a step returned: a path, a path for each type, or None for no results."""
        if returned is None:
            return
        paths = returned if isinstance(returned, Mapping) else {kind: returned}
        try:
            yield {str(name): read_text(Path(path).read_bytes()) for name, path in paths.items()}
        except (OSError, TypeError, UnicodeDecodeError) as error:
            raise AgentProtocol(f"Test {self._test}: the {kind} results cannot be read: {error}.") from None

    def _save(self) -> None:
        """Save features and attributes for another run; a failure is a warning, because the test was played."""
        path = self._options.feature_file(self._test, self.name)
        try:
            if path is not None and self._extracted[0]:
                before = self._saved or ({}, {})
                write_features(path, (before[0] | self._extracted[0], before[1] | self._extracted[1]))
            if self._store is not None and not self._options.use_attributes:
                if self._resumed:  # they are restored by position, and would be those of other samples
                    raise AgentProtocol("attributes of a test that was interrupted lack its first rounds")
                self._store.write(self._test)
        except (AgentProtocol, InvalidInput) as error:
            LOG.warning("%s, test %s: not everything was saved: %s", self.name, self._test, error)
