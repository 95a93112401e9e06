"""Write a recorded episode as an animated picture: the record is played again in a world that draws.

The record holds no pictures. A film shows what happened because every turn of the replay is compared with the recorded
one.
"""

from __future__ import annotations

import io
import itertools
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

import numpy as np

from openfield.capabilities import Film, HasFilm, make_film
from openfield.core import Reply, Turn, World
from openfield.domain import Domain, make_world
from openfield.errors import InvalidInput, ReplayMismatch
from openfield.files.atomic import replacing
from openfield.journal.reader import CellRecord, Episode, Run
from openfield.journal.replay import resume_rollout
from openfield.lazy import import_extra
from openfield.provenance.rules import DomainRules
from openfield.provenance.trust import trusted_domain
from openfield.record import is_picture
from openfield.report.excerpt import Line, quote_change
from openfield.rollout import Rollout
from openfield.trial import Trial

if TYPE_CHECKING:
    from openfield.report.words import Domains

MAX_PICTURES = {".gif": 1_000, ".webp": 10_000}
"""Pictures of a film in each format. A GIF is made in memory, a WebP picture by picture."""
LAST_MILLISECONDS = 1_500
GIF_UNIT = 10
"""Milliseconds that a GIF counts in."""
SEEN_MILLISECONDS = 100
"""How long a picture is shown that the agent itself was given."""


SMALL_WIDTH = 320
MAX_SMALL_PICTURES = 120
MAX_SMALL_BYTES = 250_000
"""Bytes of a film inside a page; it gets fewer pictures until it fits."""
MIN_SMALL_MILLISECONDS = 40.0
"""How long a picture of it is shown at least."""
MAX_LOOKS = 20
"""Turns that are looked at to see whether agents are shown pictures."""
Progress = Callable[[int], None]
QUALITY = 80
ANIMATED = 0x02
"""The flag of the file header: an animation follows."""
KEEP = 0x02
"""The flag of a picture: it replaces the pixels it covers, without blending."""


class Clip(NamedTuple):
    """A film of one episode for a page, or an excerpt of a conversation."""

    title: str
    """When it was played, and how it went."""
    data: bytes
    """A WebP file; empty for a conversation."""
    lines: Sequence[Line] = ()
    """What was said and what was answered, symbol below symbol."""


class DomainFilm(NamedTuple):
    """Films of one domain: an agent in the episode before the change, and in the first one after it."""

    domain: str
    change: str
    """What changes, in words."""
    caption: str
    """Which agent, trial and episodes they show."""
    clips: list[Clip]


class Picture(NamedTuple):
    """A picture of a replayed episode."""

    turn: int
    """The turn that it leads to, counted from 0 within the cell. A turn may have several pictures, or none."""
    pixels: Any
    """An array of height, width and three colours, a byte each."""
    episode: int = 0


def write_film(
    run: Run, cell: CellRecord, episode: int, output: Path, trust: bool = False, progress: Progress | None = None
) -> int:
    """Write an episode as an animated GIF or WebP, and return how many pictures it has.

    Args:
        run: The run file.
        cell: The cell.
        episode: The number of the episode; the one after the last finished one is filmed as far as it goes.
        output: The file to write; its name ends in `.gif` or `.webp`. WebP is several times smaller.
        trust: Run a domain that the run file names even if this user did not sign it.
        progress: Called with the number of every turn that was played again.
    """
    kind = output.suffix.lower() or ".gif"  # a pipe has no ending
    if kind not in MAX_PICTURES:
        raise InvalidInput(f"{output}: the name of a film ends in .webp (smaller) or .gif.")
    count = len(cell.episodes) + cell.is_in_episode
    if not 0 <= episode < count:
        have = f"episodes 0 to {count - 1}" if count else "no episode yet"
        raise InvalidInput(f"Cell {cell.id} has no episode {episode}; it has {have}.")
    replay = EpisodeReplay(run, cell, episode, trust)
    taken = (picture.pixels for picture in replay.pictures(progress))
    with replacing(output) as draft:
        count = save_film(itertools.islice(taken, MAX_PICTURES[kind]), draft, replay.milliseconds, kind)
        if not count:
            raise InvalidInput(f"Episode {episode} of cell {cell.id} has no picture.")
    return count


def make_small_films(run: Run, cell: CellRecord, first: int, count: int = 1, trust: bool = False) -> list[bytes]:
    """Return episodes that follow each other as WebP that fit into a page: small, and of a few seconds.

    Args:
        run: The run file.
        cell: The cell.
        first: The number of the first episode.
        count: How many episodes.
        trust: Run a domain that the run file names even if this user did not sign it.
    """
    image = import_extra("PIL.Image", "view", "A film")
    replay = EpisodeReplay(run, cell, first, trust, count)
    small: dict[int, list[Any]] = {}
    for picture in itertools.islice(replay.pictures(), count * MAX_PICTURES[".gif"]):
        small.setdefault(picture.episode, []).append(_shrink(image.fromarray(picture.pixels)))
    for number in range(first, first + count):
        if number not in small:
            raise InvalidInput(f"Episode {number} of cell {cell.id} has no picture.")
    return [_fit(small[number], replay.milliseconds) for number in range(first, first + count)]


def _fit(pictures: list[Any], milliseconds: float) -> bytes:
    """Return a film with as many of these pictures as fit into a page."""
    count = min(len(pictures), MAX_SMALL_PICTURES)
    while True:
        step = len(pictures) / count
        chosen = [pictures[int(number * step)] for number in range(count)]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "film.webp"
            write_webp(chosen, path, max(milliseconds * step, MIN_SMALL_MILLISECONDS), LAST_MILLISECONDS)
            data = path.read_bytes()
        if len(data) <= MAX_SMALL_BYTES or count == 1:
            return data
        count = max(int(count * 0.9 * MAX_SMALL_BYTES / len(data)), 1)


def film_domains(paths: Iterable[Path], domains: Domains, trust: bool = False) -> list[DomainFilm]:
    """Return films of each domain of some run files that draws: of an agent before and after the change.

    Args:
        paths: The run files.
        domains: Their domains, by name.
        trust: Run a domain that a run file names even if this user did not sign it.
    """
    films: dict[str, DomainFilm] = {}
    for path in paths:
        with Run(path) as run:
            for cell in sorted(run.cells(), key=lambda cell: (cell.control, not cell.trial.is_changed)):
                domain = cell.trial.domain
                if domain not in films and (film := film_cell(run, cell, domains[domain], trust)) is not None:
                    films[domain] = film
    return list(films.values())


def film_cell(run: Run, cell: CellRecord, domain: Domain[Any] | DomainRules, trust: bool = False) -> DomainFilm | None:
    """Return films of a cell around the change, or what was said then; None where nothing can be shown of it.

    Args:
        run: The run file.
        cell: The cell.
        domain: The domain, for its words.
        trust: Run the domain even if this user did not sign it.
    """
    number = _first_changed(cell)
    if number is None:
        return None
    if _draws(run, cell, trust):
        return _film_change(run, cell, number, domain, trust)
    return _quote_change(run, cell, domain) if domain.letters and cell.episodes[number].novel else None


def _film_change(run: Run, cell: CellRecord, number: int, domain: Domain[Any] | DomainRules, trust: bool) -> DomainFilm:
    """Return films of the first episode in a changed world and of the one before it.

    Args:
        run: The run file.
        cell: The cell.
        number: The number of the episode.
        domain: The domain, for its words.
        trust: Run the domain even if this user did not sign it.
    """
    changed = cell.episodes[number].novel
    first = max(number - changed, 0)
    titles = ("Before the change", "After the change")[-2 if first < number else -1 :] if changed else ("",)
    films = make_small_films(run, cell, first, len(titles), trust)
    numbers = f"episodes {first} and {number}" if first < number else f"episode {number}"
    return DomainFilm(
        domain=domain.title,
        change=domain.describe(cell.trial.novelty) if cell.trial.novelty else "",
        caption=f"{cell.agent}, trial {cell.trial.id[:8]}, {numbers}",
        clips=[
            Clip(_tell_episode(title, cell.episodes[first + place]), film)
            for place, (title, film) in enumerate(zip(titles, films, strict=True))
        ],
    )


def _quote_change(run: Run, cell: CellRecord, domain: Domain[Any] | DomainRules) -> DomainFilm:
    """Return what was said and answered just before the change and after it, in a domain of letters."""
    before, after, turn = quote_change(run, cell)
    return DomainFilm(
        domain=domain.title,
        change=domain.describe(cell.trial.novelty),
        caption=f"{cell.agent} answers in blue, trial {cell.trial.id[:8]}, around turn {turn:,}",
        clips=[Clip("Before the change", b"", before), Clip("After the change", b"", after)],
    )


def _tell_episode(title: str, episode: Episode) -> str:
    """Return a title with how the episode went, if its world says that."""
    performance = "" if episode.performance is None else f"performance {episode.performance:.2f}"
    return ", ".join(filter(None, (title, performance)))


def _draws(run: Run, cell: CellRecord, trust: bool) -> bool:
    """Return whether a cell can be filmed."""
    if cell.trial.imported is not None:
        return False
    return isinstance(trusted_domain(run, cell.trial.domain, trust), HasFilm) or sees_pictures(run, cell)


def _first_changed(cell: CellRecord) -> int | None:
    """Return the first test episode in a changed world, or the last one if nothing changes; None if none is over."""
    changed = (each.number for each in cell.episodes if each.novel and each.phase == "test")
    return next(changed, len(cell.episodes) - 1 if cell.episodes else None)


def _shrink(picture: Any) -> Any:
    """Return a picture that is at most `SMALL_WIDTH` wide."""
    if picture.width <= SMALL_WIDTH:
        return picture
    return picture.resize((SMALL_WIDTH, max(round(picture.height * SMALL_WIDTH / picture.width), 1)))


def save_film(pictures: Iterable[Any], path: Path, milliseconds: float, kind: str = ".webp") -> int:
    """Write pictures to a file, each shown for some milliseconds and the last one longer, and return their number."""
    image = import_extra("PIL.Image", "view", "A film")
    if kind == ".webp":
        return write_webp((image.fromarray(array) for array in pictures), path, milliseconds, LAST_MILLISECONDS)
    made = [image.fromarray(array).quantize(method=image.Quantize.FASTOCTREE) for array in pictures]
    if made:
        ends = [round(number * milliseconds / GIF_UNIT) * GIF_UNIT for number in range(len(made))]
        times = [after - before for before, after in itertools.pairwise(ends)] + [LAST_MILLISECONDS]
        made[0].save(path, "GIF", save_all=True, append_images=made[1:], duration=times, loop=0)
    return len(made)


class EpisodeReplay:
    """A recorded episode that is played again, in a world that draws or with the pictures that the agent saw."""

    def __init__(self, run: Run, cell: CellRecord, episode: int, trust: bool = False, count: int = 1) -> None:
        """Find the domain; nothing is played yet.

        Args:
            run: The run file. It stays open while pictures are taken.
            cell: The cell, with its episodes.
            episode: The number of the episode; the one after the last finished one is played as far as it goes.
            trust: Run a domain that the run file names even if this user did not sign it.
            count: How many episodes are filmed, from this one on.
        """
        self._run, self._cell, self._episode, self._count = run, cell, episode, count
        self._domain = trusted_domain(run, cell.trial.domain, trust)
        self._film = self._make_film()
        self.milliseconds: float = self._film.milliseconds
        """How long each picture is shown."""

    def pictures(self, progress: Progress | None = None) -> Iterator[Picture]:
        """Play the episode again, and yield its pictures as they are taken.

        Args:
            progress: Called with the number of every turn that was played again, also of earlier episodes.

        Raises:
            ReplayMismatch: A turn is not the recorded one.
        """
        tell = progress or (lambda _: None)
        before = self._cell.episodes[: self._episode]
        first = sum(each.turns for each in before)
        try:
            rollout = None
            if before and self._film.skip is not None and self._film.skip(before):
                try:
                    rollout = self._resume(first)
                except ReplayMismatch:  # play all of it, to find out which turn differs
                    self._film.world.close()
                    self._film = self._make_film()
            if rollout is not None:
                yield from self._play(rollout, first, self._episode, tell)
            else:
                yield from self._play(self._resume(0), 0, 0, tell)
        finally:
            self._film.world.close()

    def close(self) -> None:
        """Close the world, if no pictures are wanted."""
        self._film.world.close()

    def _make_film(self) -> Film:
        try:
            return make_film(self._domain, self._cell.trial)
        except InvalidInput:
            if not sees_pictures(self._run, self._cell):
                raise
        return film_observations(self._domain, self._cell.trial)

    def _resume(self, first: int) -> Rollout:
        return resume_rollout(self._film.world, self._run.raw_steps(self._cell.id, self._cell.attempt, first), known=1)

    def _play(self, rollout: Rollout, turn: int, number: int, tell: Progress) -> Iterator[Picture]:
        """Play on from a turn, which is the first of an episode."""
        film, wanted, shown = self._film, range(self._episode, self._episode + self._count), None
        replies = self._run.raw_steps(self._cell.id, self._cell.attempt, turn + 1)
        for reply in itertools.chain((step.reply for step in replies), [None]):
            if rollout.turn is not shown:
                shown = rollout.turn
                if number in wanted:
                    yield from (Picture(turn, pixels, number) for pixels in film.pictures())
                number += shown.last is not None or film.world.truth.episode_over
            tell(turn)
            if reply is None or rollout.over or number >= wanted.stop:
                return
            rollout.reply(reply)
            turn += 1


class SeeingWorld:
    """A world beside which the latest turn is kept, for a film of what the agent saw."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.turn: Turn | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world, name)

    def reset(self) -> Turn:
        """Start the trial."""
        self.turn = self._world.reset()
        return self.turn

    def step(self, reply: Reply) -> Turn:
        """Take a reply."""
        self.turn = self._world.step(reply)
        return self.turn


def film_observations(domain: Domain[Any], trial: Trial) -> Film:
    """Make a film of the pictures that the agent is shown."""
    world = SeeingWorld(make_world(domain, trial))

    def pictures() -> Iterator[Any]:
        if world.turn is not None and (found := find_picture(world.turn.observation)) is not None:
            yield found

    return Film(cast("World", world), pictures, SEEN_MILLISECONDS)


def find_picture(observation: Any) -> Any:
    """Return the picture in an observation as an array of three colours, or None: it, or the first of its parts."""
    parts = observation.values() if isinstance(observation, Mapping) else [observation]
    picture = next((part for part in parts if is_picture(part)), None)
    if picture is None:
        return None
    flat = picture if picture.ndim == 3 else picture[:, :, None]
    return flat[:, :, :3] if flat.shape[2] > 1 else np.repeat(flat, 3, axis=2)


def is_recorded_picture(observation: Any) -> bool:
    """Return whether a recorded observation holds what stands for a picture: the digest of an array of bytes."""
    parts = [observation]
    if isinstance(observation, Mapping) and "array" not in observation:
        parts = list(observation.values())
    return any(
        isinstance(part, Mapping) and part.get("dtype") == "uint8" and len(part.get("shape", ())) in (2, 3)
        for part in parts
    )


def sees_pictures(run: Run, cell: CellRecord) -> bool:
    """Return whether the first turns of a cell hold pictures."""
    steps = itertools.islice(run.steps(cell.id, cell.attempt), MAX_LOOKS)
    return any(step.turn is not None and is_recorded_picture(step.turn.observation) for step in steps)


def write_webp(pictures: Iterable[Any], path: Path, milliseconds: float, last: int) -> int:
    """Write pictures of the same size, and return how many there were.

    Pillow keeps all pictures of an animation in memory until it is written, which for half a minute are a gigabyte.
    Here it compresses each picture alone, only where it differs from the one before.

    Args:
        pictures: Images of Pillow, in RGB.
        path: The file.
        milliseconds: How long each picture is shown; the fractions add up.
        last: How long the last picture is shown, in milliseconds.
    """
    chops = import_extra("PIL.ImageChops", "view", "A film")
    count, before, begun, held = 0, None, 0, None
    with path.open("wb") as file:
        for picture in pictures:
            now = round(count * milliseconds)
            count += 1
            box = (0, 0, *picture.size) if before is None else chops.difference(before, picture).getbbox()
            if before is None:
                _write_head(file, picture.size)
            if box is not None:  # else the picture before is shown on
                if held is not None:
                    _write_frame(file, held, now - begun)
                begun, held = now, _compress(picture, box)
            before = picture
        if held is not None:
            _write_frame(file, held, round((count - 1) * milliseconds) - begun + last)
            size = file.tell()
            file.seek(4)
            file.write((size - 8).to_bytes(4, "little"))
    return count


Frame = tuple[int, int, int, int, bytes]
"""Left, top, width, height, and the compressed pixels."""


def _compress(picture: Any, box: tuple[int, int, int, int]) -> Frame:
    """Compress a part of a picture; the container can only place parts at even pixels."""
    left, top = box[0] // 2 * 2, box[1] // 2 * 2
    part, data = picture.crop((left, top, box[2], box[3])), io.BytesIO()
    part.save(data, "WEBP", quality=QUALITY, method=2)
    return left, top, part.width, part.height, data.getvalue()[12:]  # without the header of a file of its own


def _write_head(file: BinaryIO, size: tuple[int, int]) -> None:
    """Write the header; the size of the file is filled in at the end."""
    file.write(b"RIFF\0\0\0\0WEBP")
    width, height = (_number(side - 1) for side in size)
    _write_chunk(file, b"VP8X", bytes([ANIMATED, 0, 0, 0]) + width + height)
    _write_chunk(file, b"ANIM", bytes(6))  # a clear background, played for ever


def _write_frame(file: BinaryIO, frame: Frame, milliseconds: int) -> None:
    left, top, width, height, data = frame
    places = (left // 2, top // 2, width - 1, height - 1, milliseconds)
    _write_chunk(file, b"ANMF", b"".join(map(_number, places)) + bytes([KEEP]) + data)


def _write_chunk(file: BinaryIO, name: bytes, data: bytes) -> None:
    file.write(name + len(data).to_bytes(4, "little") + data + b"\0" * (len(data) % 2))


def _number(value: int) -> bytes:
    return value.to_bytes(3, "little")
