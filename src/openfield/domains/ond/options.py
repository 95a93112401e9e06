"""The options of OND: which tests `serve` serves, which server the agents of `run` visit, and what `score` scores."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from openfield.errors import InvalidInput, UnknownName
from openfield.options import MORE, CommandChanges, Count, NumberTable

TEAM, TOKEN = re.compile(r"[\w.~-]{1,60}"), re.compile(r"[A-Za-z0-9_.~-]+")
"""What names and tokens of teams are made of: tokens are part of addresses."""


@dataclass(frozen=True, kw_only=True)
class OndServeOptions:
    """Options of `serve`.

    Example:
        openfield serve ond --data tests --port 3307
    """

    data: Annotated[Path | None, Parameter(metavar="DIR")] = None
    """A directory of tests to serve."""
    import_legacy: Annotated[Path | None, Parameter(metavar="DIR")] = None
    """A directory of results of the original server, to go on with."""
    compat: bool = False
    """Accept what old clients post."""
    devmode: bool = False
    """Let clients see the scores of a test before its last round. Reports say where that was done."""
    scorings: Annotated[Count, Parameter(metavar="NUMBER")] = 1
    """How often a team gets the scores of a test [1]. Once, when everyone has completed it: scores reveal the onset,
    and many of them the labels. Reports say how often they were given."""
    hint: Annotated[tuple[str, ...], Parameter(metavar="KEY=MAX", consume_multiple=False)] = ()
    """A key of the metadata that clients may set by a hint KEY=NUMBER, and its highest number. Repeat the option for
    each key [feedback_max_ids=1000]."""
    team: Annotated[tuple[str, ...], Parameter(metavar="NAME:TOKEN", consume_multiple=False)] = ()
    """A team and the secret it must show. A team sees only its own sessions. Repeat the option for each team."""
    hostname: Annotated[tuple[str, ...], Parameter(metavar="NAME", consume_multiple=False)] = ()
    """A name by which clients reach this server. Requests for other names are refused; addresses and localhost work."""

    def prepare(self) -> CommandChanges:
        """Return the options as they are; the dispatcher reads them."""
        trials_from = "" if self.data is None else str(self.data)
        return CommandChanges(
            serving=self, needs_token=bool(self.teams), trials_from=trials_from, sealed=self.data is None
        )

    @property
    def hint_limits(self) -> dict[str, int]:
        """The metadata that clients may change, and the highest number of each."""
        from openfield.domains.ond.server.session_service import HINT_LIMITS
        from openfield.domains.ond.testset.test import HINTED

        pairs = [text.partition("=") for text in self.hint]
        for key, _, value in pairs:
            if key not in HINTED:
                raise UnknownName("key", key, HINTED, label="Hints can change")
            if not (value.isascii() and value.isdigit() and len(value) < 10):
                raise InvalidInput(f"--hint takes KEY=MAX with a whole number, such as --hint {key}=100.")
        return {key: int(value) for key, _, value in pairs} or dict(HINT_LIMITS)

    @property
    def teams(self) -> dict[str, str]:
        """The teams by their tokens."""
        found: dict[str, str] = {}
        for text in self.team:
            name, _, token = text.rpartition(":")
            if not name or not token:
                raise InvalidInput(
                    "--team takes a team and its token, such as --team blue:4f9d2c. One of them has none."
                )
            if not TEAM.fullmatch(name) or not TOKEN.fullmatch(token):
                raise InvalidInput("--team NAME:TOKEN may hold letters, digits and the signs - _ . ~ and nothing else.")
            if token in found:
                raise InvalidInput(f"The teams {found[token]} and {name} have the same token. Give each its own.")
            if name in found.values():
                raise InvalidInput(f"The team {name} is given twice. Give it one token.")
            found[token] = name
        return found


@dataclass(frozen=True, kw_only=True)
class OndRunOptions:
    """Options of `run`.

    Example:
        openfield run ond -a knn --server http://HOST:3307 --set data=DIR
    """

    server: Annotated[str | None, Parameter(metavar="URL")] = None
    """The server where the agents play, or `here` for one in this process."""
    token: Annotated[str | None, Parameter(metavar="SECRET")] = None
    """The secret which that server asks for."""

    def prepare(self) -> CommandChanges:
        """Return that the agents play on a server, if one is named."""
        return CommandChanges(instead=self.visit if self.server else None)

    def visit(self, own: Mapping[str, Any]) -> Any:
        """Play the tests of the server with the agents and settings of the command."""
        from openfield.domains.ond.client.visit import play_at_server
        from openfield.registry import find_domain

        return play_at_server(find_domain("ond"), self.server or "", self.token, own)


FILE, NAME, DIR = Parameter(metavar="FILE"), Parameter(metavar="NAME"), Parameter(metavar="DIR")


@dataclass(frozen=True, kw_only=True)
class OndScoreOptions:
    """Options of `score`: result files of the protocol, two of one test or a folder of many.

    Example:
        openfield score ond --results DIR --data DIR --baseline NAME
    """

    results: Annotated[Path | None, DIR] = None
    """A folder with files of many tests; also gives the programme's M1 to M6 over them."""
    data: Annotated[Path | None, DIR] = None
    """The data directory with the truth of the tests."""
    baseline: Annotated[str | None, NAME] = None
    """The agent in the folder that the others are compared with: M3 to M6 and m_nrp need one."""
    redlight: bool = False
    """The tests had the red light: M3 is then called M4."""
    detection: Annotated[Path | None, FILE] = None
    """The detection file of one test."""
    classification: Annotated[Path | None, FILE] = None
    """Its classification file; for text tests, the file of labels."""
    test: Annotated[str | None, NAME] = None
    """Its name."""
    area: Annotated[str, Parameter(metavar="NAME", group=MORE)] = "image_classification"
    """The kind of test [image_classification]."""
    protocol: Annotated[Literal["OND", "CONDDA"], Parameter(metavar="NAME", group=MORE)] = "OND"
    """The protocol of the tests [OND]."""

    def prepare(self) -> CommandChanges:
        """Return that result files are scored."""
        return CommandChanges(score=self.score)

    def score(self) -> NumberTable:
        """Score the folder, or the two files."""
        from openfield.domains.ond.scoring import result_files

        if self.data is None or (self.results is None and None in (self.detection, self.classification, self.test)):
            raise InvalidInput(
                "Give --results and --data, or --detection, --classification, --data and --test. "
                "Arrays are scored without a domain: openfield score --id FILE"
            )
        tests = result_files.ResultTests(
            data=self.data, protocol=self.protocol, area=self.area, baseline=self.baseline, red_light=self.redlight
        )
        if self.results is not None:
            return result_files.tabulate_folder(result_files.score_folder(self.results, tests))
        files = Path(self.detection or ""), Path(self.classification or "")
        return result_files.tabulate_test(result_files.score_test(*files, tests, str(self.test)))


OPTIONS = {"run": OndRunOptions, "serve": OndServeOptions, "score": OndScoreOptions}
