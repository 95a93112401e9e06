"""Put pages from outside docs/ on the site, and point every link at its page there.

Domains are documented beside their code, the changelog and the decisions beside the project: there is one copy of each.
A link to a file that is not on the site, such as an example, becomes plain text.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
OUTSIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "design/decisions.md": "decisions.md",
    "design/intervals.md": "intervals.md",
    **{
        f"src/openfield/domains/{path.parent.name}/README.md": f"domains/{path.parent.name}.md"
        for path in sorted((ROOT / "src" / "openfield" / "domains").glob("*/README.md"))
    },
}
"""Files of the repository, and the pages they become. The front page has a text of its own."""

SOURCES = {page: source for source, page in OUTSIDE.items() if page != "index.md"}
FENCE = re.compile(r"(^(?:```|~~~).*?^(?:```|~~~)$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pages that lie outside docs/."""
    for page, source in SOURCES.items():
        if (ROOT / source).exists():
            files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Return a page whose links lead to pages of the site; code blocks stay as they are."""
    place = page.file.src_uri
    parts = FENCE.split(markdown)
    return "".join(part if number % 2 else _lead(part, place) for number, part in enumerate(parts))


def _lead(text: str, place: str) -> str:
    folder = posixpath.dirname(SOURCES.get(place, f"docs/{place}"))
    return LINK.sub(lambda found: _link(found, place, folder), text)


def _link(found: re.Match[str], place: str, folder: str) -> str:
    sign, text, target = found.groups()
    path, mark, anchor = target.partition("#")
    if "://" in target or not path:
        return found[0]
    source = posixpath.normpath(posixpath.join(folder, path))
    page = OUTSIDE.get(source, source.removeprefix("docs/") if source.startswith("docs/") else None)
    if page is None:
        return str(text)
    return f"{sign}[{text}]({posixpath.relpath(page, posixpath.dirname(place) or '.')}{mark}{anchor})"
