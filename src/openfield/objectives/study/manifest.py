"""Find the tables of a study: by the published file names, or as a manifest lists them.

Only the manifest is read here, no table.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from pathlib import Path

import msgspec

from openfield.errors import InvalidInput
from openfield.files.data import read_toml
from openfield.objectives.tables.table import meta_of_name

ENDINGS = (".pkl", ".pickle", ".parquet")
HUMAN = "human"


class StudyEnvironment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The size of an environment: its distinct inputs and actions."""

    num_obs: int | None = None
    num_actions: int | None = None


class ListedAgent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One agent in one environment, as a manifest lists it."""

    environment: str
    agent: str
    shared: str | None = None
    """The table with shared levels: entropy, information gain and empowerment come from it."""
    human: str | None = None
    """The table with human levels: similarity comes from it."""
    reward: float | None = None
    """Mean task reward, for correlations."""


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A study as a TOML file: `[[agents]]` with tables and rewards, `[environments.NAME]` with sizes."""

    agents: list[ListedAgent]
    environments: dict[str, StudyEnvironment] = {}


class Entry(msgspec.Struct, frozen=True):
    """One agent in one environment, with the paths of its tables."""

    environment: str
    agent: str
    size: StudyEnvironment
    shared: Path | None = None
    human: Path | None = None
    reference: Path | None = None
    """The human's own table in the same environment."""
    reward: float | None = None


class _Published(msgspec.Struct, frozen=True):
    environments: dict[str, StudyEnvironment]
    correlations: dict[str, dict[str, float]]


@cache
def published_values() -> _Published:
    """Read the published values: the sizes of the environments and the table of correlations."""
    text = resources.files("openfield.objectives").joinpath("published.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), _Published)


def find_entries(source: Path) -> list[Entry]:
    """Find the agents of a study, in a folder of published tables or in a manifest.

    A `study.toml` in the folder may add rewards and sizes of environments.

    Raises:
        InvalidInput: There is no table, or the manifest cannot be read.
    """
    if source.is_dir():
        manifest = source / "study.toml"
        listed = _listed_in_folder(source)
        extra = read_manifest(manifest) if manifest.exists() else Manifest([])
        entries = _entries(_with_rewards(listed, extra), source, extra.environments)
    else:
        read = read_manifest(source)
        entries = _entries(read.agents, source.parent, read.environments)
    if not entries:
        raise InvalidInput(f"{source}: no tables named like montezuma_noop_shared_disc.pkl in it.")
    return entries


def read_manifest(path: Path) -> Manifest:
    """Read a manifest file.

    Raises:
        InvalidInput: It cannot be read, or has unknown keys.
    """
    try:
        return msgspec.convert(read_toml(path), Manifest)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{path}: not a study manifest ({error}).") from None


def _listed_in_folder(folder: Path) -> list[ListedAgent]:
    """Find tables by their names. If an agent has both a pickle and a Parquet file, take the Parquet file."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for path in sorted(folder.iterdir(), key=lambda path: (path.suffix == ".parquet", path.name)):
        if path.suffix not in ENDINGS or path.name.endswith(".codes.parquet"):
            continue
        meta = meta_of_name(path.name)
        if meta.environment and meta.agent and meta.levels:
            suffix = {None: "", True: "_reward", False: "_noreward"}[meta.reward]
            found.setdefault((meta.environment, meta.agent + suffix), {})[meta.levels] = path.name
    return [ListedAgent(*key, files.get("shared"), files.get("human")) for key, files in sorted(found.items())]


def _with_rewards(listed: list[ListedAgent], manifest: Manifest) -> list[ListedAgent]:
    rewards = {(row.environment, row.agent): row.reward for row in manifest.agents}
    return [msgspec.structs.replace(row, reward=rewards.get((row.environment, row.agent))) for row in listed]


def _entries(listed: list[ListedAgent], folder: Path, sizes: dict[str, StudyEnvironment]) -> list[Entry]:
    known = published_values().environments | sizes
    humans = {row.environment: folder / row.human for row in listed if row.agent == HUMAN and row.human}
    return [
        Entry(
            environment=row.environment,
            agent=row.agent,
            size=known.get(row.environment, StudyEnvironment()),
            shared=folder / row.shared if row.shared else None,
            human=folder / row.human if row.human else None,
            reference=humans.get(row.environment),
            reward=row.reward,
        )
        for row in listed
    ]
