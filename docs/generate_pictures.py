"""Write the pictures of the viewer in `docs/images/`, from a run of the demo. Needs chromium and Playwright."""

from __future__ import annotations

import shutil
import sys
import tempfile
from contextlib import chdir
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from openfield.cli import run_command
from openfield.journal.reader import Run
from openfield.report.addresses import compare_address, name_run, run_address, trials_address, turn_address
from openfield.view import Library, ViewServer

PLACE = Path(__file__).parent.resolve() / "images"
SIZE = {"width": 1400, "height": 900}


def main() -> None:
    """Play the demo, or take the run file that is given, and write the pictures."""
    given = [Path(word).resolve() for word in sys.argv[1:]]
    run = Path("runs/demo.sqlite")  # as a reader would name it: pages show it
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        run.parent.mkdir()
        if given:
            shutil.copy(given[0], run)
        else:
            run_command(["demo", "--output", str(run)])
        server = ViewServer(Library([run]), port=0)
        with server.serving():
            take_pictures(server, name_run(run), pick_turn(run))


def pick_turn(path: Path) -> tuple[str, int]:
    """Return a trial of Birds and the last turn of its first episode in a changed world."""
    with Run(path) as run:
        cell = next(cell for cell in run.cells() if cell.trial.domain == "birds" and cell.trial.is_changed)
    episode = next(episode.number for episode in cell.episodes if episode.novel)
    return cell.id, sum(each.turns for each in cell.episodes[: episode + 1]) - 1


def take_pictures(server: ViewServer, key: str, moment: tuple[str, int]) -> None:
    """Open pages in the browser and write a picture of each."""
    addresses = {
        "view-run": run_address(key),
        "view-trials": trials_address(key),
        "view-turn": turn_address(key, *moment),
        "view-compare": compare_address([key]),
    }
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        context = browser.new_context(viewport=SIZE, color_scheme="light")
        page = context.new_page()
        page.goto(server.address())
        for name, address in addresses.items():
            page.goto(server.origin + address)
            page.locator(".pending, .screen.empty").first.wait_for(state="detached")
            save(page, name)
        page.close()
        browser.close()


def save(page: Page, name: str) -> None:
    """Write what the window shows, with as few colours as the eye needs."""
    from PIL import Image

    path = PLACE / f"{name}.png"
    page.screenshot(path=path)
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(256).save(path, optimize=True)


if __name__ == "__main__":
    main()
