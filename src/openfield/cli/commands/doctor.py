"""`openfield doctor`: list installed and missing parts, with the line that installs each."""

from __future__ import annotations

import warnings

from openfield.console import print_json, print_table


def doctor(*, json: bool = False) -> None:
    """Say which optional parts are installed, how to install the others, and whether agents can be isolated.

    Args:
        json: Print as JSON.

    Example:
        openfield doctor
    """
    from openfield import __version__
    from openfield.installation import install_line, list_extras
    from openfield.runner.isolation.bubblewrap import find_obstacle

    broken, obstacle = _broken_plugins(), find_obstacle()
    parts, notes = list_extras(), _diagnoses()
    if json:
        isolation = {"bubblewrap": not obstacle, "obstacle": obstacle}
        found = {"openfield": __version__, "extras": parts, "isolation": isolation, "broken_plugins": broken}
        print_json({**found, "notes": notes})
        return
    print(f"openfield {__version__}\n")
    rows = []
    for extra, packages in parts.items():
        missing = [name for name, found in packages.items() if found is None]
        state = "missing " + ", ".join(missing) if missing else "there"
        rows.append((extra, state, install_line(extra) if missing else ""))
    rows.append(("isolation", obstacle or "there", ""))
    print_table(("extra", "state", "to install it"), rows)
    for line in (*notes, *broken):
        print(f"\n{line}")


def _diagnoses() -> list[str]:
    """Return the reports of installed domains on their requirements, each line once."""
    from openfield.registry import PluginWarning, installed_domains

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PluginWarning)  # broken ones are named below
        domains = installed_domains()
    return list(dict.fromkeys(note for domain in domains if (note := domain.diagnose())))


def _broken_plugins() -> list[str]:
    """Return the problems of installed plugins."""
    from openfield.metrics.catalogue import installed_metrics
    from openfield.registry import PluginWarning, installed_agents, installed_domains

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PluginWarning)
        for load in (installed_domains, installed_agents, installed_metrics):
            load()
    return list(dict.fromkeys(str(each.message) for each in caught if issubclass(each.category, PluginWarning)))
