"""The documentation site builds without a warning, loads nothing from elsewhere, and its links lead somewhere."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zlib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
import yaml

from support.browsers import open_browser
from support.packages import public_packages, read_names
from support.places import ROOT

pytestmark = [pytest.mark.site, pytest.mark.xdist_group("site")]  # so that one worker builds it
LOADED = {"script": "src", "link": "href", "img": "src", "source": "src", "iframe": "src", "video": "src"}
"""Elements that make a browser load something."""


class Reader(HTMLParser):
    """Collects the names, links and loaded addresses of a page."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.names, self.links, self.loaded = set[str](), set[str](), set[str]()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.names |= {name for name in (found.get("id"), found.get("name")) if name}
        if tag == "a" and (link := found.get("href")):
            self.links.add(link)
        if address := found.get(LOADED.get(tag, "")):
            self.loaded.add(address)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(ROOT / "mkdocs.yml"), "-d", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Reader]:
    return {path: Reader(path) for path in site.rglob("*.html")}


def list_nav(entry: object) -> Iterator[str]:
    """Yield the pages of the navigation."""
    if isinstance(entry, str):
        yield entry
    elif isinstance(entry, list):
        for each in entry:
            yield from list_nav(each)
    elif isinstance(entry, dict):
        yield from list_nav(list(entry.values()))


def test_every_page_of_the_navigation_is_there(site: Path) -> None:
    listed = re.search(r"^nav:\n(.*)", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert listed
    names = list(list_nav(yaml.safe_load(listed[1])))
    assert len(names) == len(set(names)) > 60
    for name in names:
        assert (site / re.sub(r"README\.md$", "index.md", name)).with_suffix(".html").exists() or (
            site / name.replace(".md", ".html")
        ).exists(), name


def test_nothing_is_loaded_from_elsewhere(site: Path, pages: dict[Path, Reader]) -> None:
    for path, page in pages.items():
        assert not [address for address in page.loaded if re.match(r"(https?:)?//", address)], path
    for style in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", style.read_text(encoding="utf-8")), style


def test_internal_links_and_anchors_resolve(site: Path, pages: dict[Path, Reader]) -> None:
    for path, page in pages.items():
        if path.name == "404.html":  # its links are those of a web server's root
            continue
        for link in page.links:
            if re.match(r"[a-z]+:|//", link):
                continue
            place, _, anchor = unquote(link).partition("#")
            target = (path.parent / place).resolve() if place else path
            target = target / "index.html" if target.is_dir() else target
            assert target.exists(), f"{path.relative_to(site)}: {link}"
            if anchor and target.suffix == ".html":
                assert anchor in pages[target].names, f"{path.relative_to(site)}: {link}"


def test_search_knows_what_pages_say(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    found = {entry["location"] for entry in index["docs"] if "concordance" in entry["text"].lower()}
    assert "numbers.html#concordance" in found
    assert (site / "search" / "search_index.js").exists()  # for pages opened from the disk


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    inventory = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]
    known = {line.split()[0] for line in zlib.decompress(inventory).decode().splitlines()}
    for package in ("openfield", *public_packages()):
        for name in read_names(package):
            assert {f"{package}.{name}", f"{package}.{name}.{name}"} & known, f"{package}.{name}"


@pytest.mark.browser
def test_search_works_from_the_disk_without_a_network(site: Path) -> None:
    with open_browser() as browser:
        page = browser.new_page()
        asked, errors = list[str](), list[str]()
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto((site / "index.html").as_uri())
        page.keyboard.press("/")
        page.keyboard.type("concordance")
        page.wait_for_selector(".md-search-result__item")
        assert not errors
        assert all(address.startswith(("file:", "data:", "about:", "blob:")) for address in asked)
