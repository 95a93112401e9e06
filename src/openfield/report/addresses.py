"""The addresses of runs and their parts: every thing has one, and it stays the same.

Pages link by these functions, which templates know by the same names. Names of agents and novelties are chosen by
users, so characters that mean something in an address are written as `~` and two hexadecimal digits. A run without a
key is one that no viewer serves: a report stands alone, and every address in it is empty.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import urlencode

import msgspec

from openfield.errors import InvalidInput
from openfield.metrics.scenario import Scenario

MAX_STEM = 40
"""Characters of a file's name that its address shows."""
TWIN = ".json"
"""What the address of a page ends with to get its data as JSON."""


def name_run(path: Path) -> str:
    """Return the key of a run file: its name, and a few digits of a hash of its path."""
    stem = re.sub(r"[^\w-]+", "-", path.stem, flags=re.ASCII).strip("-")[:MAX_STEM] or "run"
    return f"{stem}-{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]}"


def name_novelty(domain: str, novelty: Sequence[str]) -> str:
    """Return the name of a novelty of a domain in addresses; without one it is `DOMAIN:none`."""
    return f"{domain}:{'+'.join(novelty) or 'none'}"


def name_scenario(scenario: Scenario) -> str:
    """Return the name of a scenario on a page: some digits of a hash."""
    return f"s{hashlib.sha256(msgspec.json.encode(scenario)).hexdigest()[:8]}"


def escape_name(name: str) -> str:
    """Return a name as one part of an address."""
    plain = re.sub(r"[^\w+:@.-]", _escape, name, flags=re.ASCII)
    dotted = plain.startswith(".") or plain.endswith(TWIN)
    return plain.replace(".", "~2e") if dotted else plain


def read_name(part: str) -> str:
    """Return the name that a part of an address stands for."""
    try:
        return re.sub(rb"~([0-9a-f]{2})", lambda found: bytes.fromhex(found[1].decode()), part.encode()).decode()
    except UnicodeDecodeError:
        raise InvalidInput(f"'{part[:60]}' stands for no name.") from None


def _escape(found: re.Match[str]) -> str:
    return "".join(f"~{byte:02x}" for byte in found[0].encode("utf-8", "surrogatepass"))


def run_address(run: str) -> str:
    """Return the address of a run by its key."""
    return run and f"/runs/{run}"


def agent_address(run: str, agent: str) -> str:
    """Return the address of an agent in a run."""
    return run and f"/runs/{run}/agents/{escape_name(agent)}"


def number_address(run: str, agent: str, number: str, scenario: str) -> str:
    """Return the address of a number of an agent, trial by trial.

    Args:
        run: The key of the run.
        agent: The agent.
        number: The name of the number.
        scenario: What the scenario is called on the page.
    """
    return run and f"{agent_address(run, agent)}?{urlencode({'number': number})}#{scenario}-trials"


def novelty_address(run: str, domain: str, novelty: Sequence[str]) -> str:
    """Return the address of a novelty in a run.

    Args:
        run: The key of the run.
        domain: The domain's name.
        novelty: The names of what changes; without any there is no novelty.
    """
    return run and f"/runs/{run}/novelties/{escape_name(name_novelty(domain, novelty))}"


def objectives_address(run: str) -> str:
    """Return the address of the objectives of a run."""
    return run and f"/runs/{run}/objectives"


def figures_address(run: str) -> str:
    """Return the address of further figures of a run, such as those of samples and of curricula."""
    return run and f"/runs/{run}/figures"


def trials_address(run: str, **wanted: str) -> str:
    """Return the address of the trials of a run, or of those that fit: `agent`, `scenario`, `outcome`, `search`."""
    given = {name: value for name, value in wanted.items() if value}
    return run and f"/runs/{run}/trials{f'?{urlencode(given)}' if given else ''}"


def trial_address(run: str, cell: str) -> str:
    """Return the address of a trial that an agent played: a cell."""
    return run and f"/runs/{run}/trials/{escape_name(cell)}"


def episode_address(run: str, cell: str, number: int) -> str:
    """Return the address of an episode of a cell.

    Args:
        run: The key of the run.
        cell: The id of the cell.
        number: The episode, counted from 0.
    """
    return run and f"{trial_address(run, cell)}/episodes/{number}"


def turn_address(run: str, cell: str, number: int) -> str:
    """Return the address of a turn of a cell.

    Args:
        run: The key of the run.
        cell: The id of the cell.
        number: The turn, counted from 0 within the cell.
    """
    return run and f"{trial_address(run, cell)}/turns/{number}"


def compare_address(runs: Iterable[str], agents: Iterable[str] = ()) -> str:
    """Return the address of a comparison of runs, or only of some agents in them."""
    known = [("run", run) for run in runs if run]
    return f"/compare?{urlencode([*known, *(('agent', agent) for agent in agents)])}" if known else ""
