"""Open World Novelty Detection as a domain: its settings, novelties, trials, agents and protocol under one name.

Importing this needs no extra; the protocol's server and the glyphs are imported where they are used.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from openfield.core import Agent, Belief, Reply, Spec, Turn
from openfield.course import Blend
from openfield.domain import Domain
from openfield.domains.ond.novelty import NOVELTIES, OndBlend
from openfield.domains.ond.settings import OndSettings
from openfield.errors import InvalidInput
from openfield.settings import make_settings, trial_settings
from openfield.spaces import Box
from openfield.trial import Phase, RedLight, Trial, refuse_blinding

if TYPE_CHECKING:
    from openfield.agents.play_page import PlayPage
    from openfield.agents.turn_writer import TurnWriter
    from openfield.capabilities import Film
    from openfield.domains.ond.world import TestWorld
    from openfield.journal.writer import Journal
    from openfield.options import CommandOptions
    from openfield.serving.wire import Dispatcher, Serving, Wire

_AGENTS = "openfield.domains.ond.agents.builtin"


class OndDomain(Domain[OndSettings]):
    """Batches of samples, K+1 classes, the probability that the world has changed, with and without red light."""

    name, version = "ond", 4
    title = "Open-set recognition: which classes, and since when is there anything new?"
    settings = OndSettings
    loose = MappingProxyType({"level": "compat"})
    novelties = NOVELTIES
    default_novelty = demo_novelty = "classes"
    agents = {
        "knn": f"{_AGENTS}:NearestAgent",
        "msp": f"{_AGENTS}:SoftmaxAgent",
        "energy": f"{_AGENTS}:EnergyAgent",
        "mahalanobis": f"{_AGENTS}:MahalanobisAgent",
        "openmax": f"{_AGENTS}:OpenMaxAgent",
        "adapting": f"{_AGENTS}:AdaptingAgent",
    }
    demo_agents = ("adapting", "msp")
    metrics = ("performance", "detection", "adaptation", "openset")
    commands = {
        "visit": "openfield.domains.ond.commands:visit",
        "stream": "openfield.domains.ond.commands:stream",
        "merge": "openfield.domains.ond.commands:merge_feature_files",
    }

    def spec(self, trial: Trial) -> Spec:
        """Return the task, with the number of classes."""
        from openfield.domains.ond.trials import named_test

        settings = self.settings_in(trial, trial.phases[0])
        test = named_test(trial, settings) if trial.files else None
        known, size = (settings.known, settings.round_size) if test is None else (test.known, test.round_size or 1)
        task = (
            f"Give each sample of a batch {known + 1} scores (the unknown class and {known} known ones) and say how "
            "probable it is that the world has changed. Then buy labels or go on."
        )
        return Spec(domain=self.name, task=task, actions=Box(0, 1, (size, known + 1)))

    def phases(self, settings: OndSettings, novelty: tuple[str, ...]) -> tuple[Phase, ...]:
        """Return training, the batches before the onset, and those from it on."""
        trains = (Phase("training", 1),) if settings.training else ()
        return (*trains, Phase("test", settings.before), Phase("test", settings.after, novelty))

    def trials(
        self, count: int = 5, seed: int = 0, novelty: str | None = None, red_light: RedLight = False, **settings: Any
    ) -> list[Trial]:
        """Make trials that differ in their seeds, or the one trial of a named test of a data directory."""
        from openfield.domains.ond.testset.samples import data_files
        from openfield.domains.ond.trials import find_directory, served_trial

        chosen = make_settings(self.settings, settings)
        if chosen.classes:
            settings["known"] = named = len(chosen.classes.split("+"))
            if chosen.known not in (named, OndSettings().known):
                raise InvalidInput(f"Setting 'classes' names {named} classes, and 'known' is {chosen.known}.")
        if not chosen.test:
            self._refuse_directory(chosen)
            made, files = super().trials(count, seed, novelty, red_light, **settings), data_files(chosen)
            found = [msgspec.structs.replace(trial, files=files) for trial in made]
            for trial in {(trial.is_changed, trial.has_course and trial.id): trial for trial in found}.values():
                self.world(trial).close()  # whether the data suffice is said before anything is played
            return found
        refuse_blinding(chosen, f"The test {chosen.test}")
        test, digests = find_directory(chosen.data).load(chosen.protocol, chosen.area, chosen.test)
        changes = {key: value for key, value in trial_settings(chosen).items() if key != "test"}
        changes["training"] = chosen.training  # also if it is the usual number
        origin = find_directory(chosen.data).origins.get(chosen.test)
        return [served_trial(test, digests, changes, self.version, red_light, origin)]

    def _refuse_directory(self, settings: OndSettings) -> None:
        """Refuse a data directory without the name of one of its tests."""
        from openfield.domains.ond.trials import find_directory

        places = find_directory(settings.data).places()
        if places:
            asked = [place for place in places if place[:2] == (settings.protocol, settings.area)]
            protocol, area, names = (asked or places)[0]
            words = {"test": names[0]} | ({} if asked else {"protocol": protocol, "area": area})
            listed = ", ".join(names[:9]) + (f" and {len(names) - 9} more" if len(names) > 9 else "")
            raise InvalidInput(
                f"{settings.data} is a data directory. Name one of its tests: "
                f"{' '.join(f'--set {key}={value}' for key, value in words.items())} ({listed}). To serve all of them: "
                f"openfield serve ond --data {settings.data}"
            )

    def world(self, trial: Trial) -> TestWorld:
        """Make the test of a trial."""
        from openfield.domains.ond.trials import make_built
        from openfield.domains.ond.world import TestWorld

        return TestWorld(make_built(self, trial), self.settings_in(trial, Phase("test")), trial.red_light)

    def blend(self, usual: OndSettings, changed: OndSettings) -> Blend[OndSettings]:
        """Return the way to other settings, on which samples of unknown classes come by their share."""
        return OndBlend(usual, changed)

    def detection_rule(self, trial: Trial) -> Callable[[Belief], bool]:
        """Return the protocol's rule: for any sample a probability that reaches the threshold of the trial."""
        threshold = float(trial.settings.get("threshold", 0.5))
        return lambda belief: belief.highest >= threshold

    def list_purchases(self, turn: Turn) -> Sequence[Any]:
        """Return purchases of both kinds of feedback that reveal the truth, once a batch is answered."""
        from openfield.domains.ond.actions import Buy

        answered = isinstance(turn.observation, dict) and turn.observation.get("answered")
        return [Buy("detection"), Buy("classification")] if answered else []

    def tells_change(self, feedback: Any) -> bool:
        """Return whether feedback calls a sample novel, or of the unknown class."""
        lines = feedback.get("lines", ()) if isinstance(feedback, dict) else ()
        sign = ",1" if lines and feedback["type"] == "detection" else ",0"
        return any(line.endswith(sign) for line in lines)

    def encode(self, observation: Any) -> Any:
        """Encode a batch by its coarse mean picture, and any other turn by its kind."""
        from openfield.domains.ond.encode import coarse_batch

        return coarse_batch(observation)

    def encode_action(self, action: Any) -> Any:
        """Encode an action by its kind, and scores by how much they call unknown."""
        from openfield.domains.ond.encode import coarse_action

        return coarse_action(action)

    def options(self, command: str) -> type[CommandOptions] | None:
        """Return the options of `serve` and `score`, and those of `run` for agents that visit a server."""
        from openfield.domains.ond.options import OPTIONS

        return OPTIONS.get(command)

    def turn_writer(self, spec: Spec) -> TurnWriter:
        """Return what says turns in words for language models and people."""
        from openfield.domains.ond.agents.ond_writer import OndWriter

        return OndWriter(spec)

    def film(self, trial: Trial) -> Film:
        """Return a film of the batches, with the classes that the agent named."""
        from openfield.domains.ond.film import film_world

        return film_world(self.world(trial))

    def play_page(self, trial: Trial) -> PlayPage:
        """Let a person label pictures in a browser."""
        from openfield.domains.ond.play_page import LabelPage

        return LabelPage(self.spec(trial))

    def wire(self) -> Wire:
        """Return the protocol's own REST interface."""
        from openfield.domains.ond.server.wire import OndWire

        return OndWire(self)

    def scripted_agent(self, spec: Spec, seed: int) -> Agent:
        """Make a client whose replies the wire can carry. It knows the samples of the trial the kit plays."""
        from openfield.domains.ond.client.conformance import script_client

        return script_client(self.world(self.trials(count=1, novelty=self.novelties[0].id, unchanged=0)[0]).test)

    async def scripted_peer(self, host: str, port: int, replies: Sequence[Reply]) -> None:
        """Play these replies over the wire, for the conformance kit."""
        from openfield.domains.ond.client.conformance import play_replies

        await play_replies(host, port, replies)

    def open_dispatcher(self, journal: Journal, trials: Sequence[Trial], serving: Serving) -> tuple[Wire, Dispatcher]:
        """Serve the tests of a directory; without one, build tests from the trials beside the run file."""
        from openfield.domains.ond.options import OndServeOptions
        from openfield.domains.ond.server.session_service import ServiceRules
        from openfield.domains.ond.server.wire import OndWire
        from openfield.domains.ond.testset.builder import write_trials
        from openfield.domains.ond.trials import find_directory
        from openfield.serving.sessions import SessionDispatcher

        options = serving.options or OndServeOptions()
        root = options.data or write_trials(self, trials, journal.path.with_suffix(".data"))
        if not root.is_dir():
            raise InvalidInput(f"There is no directory {root}.")
        dispatcher, directory = SessionDispatcher(journal, self, serving.token), find_directory(str(root))
        if not directory.count():
            logging.getLogger("openfield.ond").warning("There is no test in %s yet.", root)
        if options.import_legacy is not None:
            from openfield.domains.ond.server.import_results import import_sessions

            import_sessions(options.import_legacy, directory, dispatcher, self.version, options.compat)
        teams = frozenset(options.teams.values())
        rules = ServiceRules(options.compat, options.devmode, options.hint_limits, options.scorings, teams)
        return OndWire(self, directory, rules, options.teams, options.hostname), dispatcher


DOMAIN = OndDomain()
"""The domain `ond`, as `openfield.registry.find_domain("ond")` returns it."""
