"""Pictures of turns and films of episodes, which workers make by replay (`openfield.view.frames`)."""

from __future__ import annotations

import tempfile
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from urllib.parse import quote

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from openfield.errors import InvalidInput, OpenfieldError
from openfield.view.frames import EpisodeOrder, FramePool, Reel
from openfield.view.library import Signature, sign_file
from openfield.view.page import find_status, library_of
from openfield.view.pages.trial import TRIAL, find_sides
from openfield.view.trials.trial import PlayedTrial

END = 0xFFFF_FFFF
"""Stands where a turn's number would, before the last part: JSON that says how it ended."""
FILMS = {"webp": "image/webp", "gif": "image/gif"}
MAX_KEPT_BYTES = 64 << 20
"""Bytes of films that are kept."""
FilmKey = tuple[EpisodeOrder, str, Signature]
"""Which film it is: the episode, the format, and the state of the run file."""
RETRY = "1"
"""Seconds after which to ask again where a worker was busy or lost."""
PNG = b"\x89PNG"


async def send_frames(request: Request) -> Response:
    """Answer with the pictures of an episode, while they are made.

    Every part has four bytes for the turn, four for its length, and a JPEG or PNG file. The first part is JSON with the
    milliseconds of each picture, the last one JSON with a message if pictures are missing; both have the turn `END`.
    """
    try:
        trial = (await run_in_threadpool(find_sides, request))[0]
        reel = frames_of(request).open_reel(_order(request, trial, request.path_params["episode"]))
    except OpenfieldError as error:
        return _refuse(error)
    return StreamingResponse(_parts(reel), media_type="application/octet-stream")


async def send_picture(request: Request) -> Response:
    """Answer with the picture of a turn."""
    try:
        trial = (await run_in_threadpool(find_sides, request))[0]
        turn = trial.check_turn(request.path_params["turn"])
        reel = frames_of(request).open_reel(_order(request, trial, trial.episode_of(turn)))
        frame = await reel.picture_at(turn)
    except OpenfieldError as error:
        return _refuse(error)
    if frame is None:
        return _say_missing(reel, f"Turn {turn} has no picture.")
    return Response(frame.data, media_type="image/png" if frame.data.startswith(PNG) else "image/jpeg")


class KeptFilms:
    """Films that were made lately, so that one is not made again each time that it is asked for."""

    def __init__(self, most: int = MAX_KEPT_BYTES) -> None:
        """Keep nothing yet.

        Args:
            most: How many bytes are kept.
        """
        self._films: OrderedDict[FilmKey, bytes] = OrderedDict()
        self._most = most

    def find(self, key: FilmKey) -> bytes | None:
        """Return a film that is kept."""
        if key in self._films:
            self._films.move_to_end(key)
        return self._films.get(key)

    def keep(self, key: FilmKey, data: bytes) -> None:
        """Keep a film, and give up those that were asked for longest ago."""
        self._films[key] = data
        while sum(map(len, self._films.values())) > self._most:
            self._films.popitem(last=False)


async def send_film(request: Request) -> Response:
    """Answer with a film of an episode as a file."""
    kind, episode = request.path_params["kind"], request.path_params["episode"]
    try:
        if kind not in FILMS:
            raise InvalidInput("A film is a webp or a gif.")
        trial = (await run_in_threadpool(find_sides, request))[0]
        order = _order(request, trial, episode)
        key = order, kind, await run_in_threadpool(sign_file, trial.path)
        name = f"{trial.path.stem}-{trial.cell.id[:8]}-{episode}.{kind}"
        films: KeptFilms = request.app.state.films
        if (known := films.find(key)) is not None:
            return _send(known, kind, name)
        with tempfile.TemporaryDirectory(prefix="openfield-film-") as folder:
            path = Path(folder) / f"film.{kind}"
            reel = frames_of(request).open_reel(msgspec.structs.replace(order, film=str(path)))
            async for _ in reel.follow():
                pass
            if not reel.is_whole or not path.is_file():
                return _say_missing(reel, f"Episode {episode} has no picture.")
            data = await run_in_threadpool(path.read_bytes)
    except OpenfieldError as error:
        return _refuse(error)
    films.keep(key, data)
    return _send(data, kind, name)


def _send(film: bytes, kind: str, name: str) -> Response:
    """Answer with a film as a file of this name."""
    head = {"content-disposition": f"attachment; filename*=utf-8''{quote(name)}"}
    return Response(film, media_type=FILMS[kind], headers=head)


def frames_of(request: Request) -> FramePool:
    """Return what makes pictures for the application that got a request."""
    found: FramePool = request.app.state.frames
    return found


def _order(request: Request, trial: PlayedTrial, episode: int) -> EpisodeOrder:
    """Return the order for an episode; the pictures of one that is not over are made anew when it went on."""
    trial.turns_of(episode)
    if trial.draws is False:
        raise InvalidInput(f"{trial.cell.trial.domain} draws no pictures.")
    cell = trial.cell
    steps = cell.steps if episode >= len(trial.episodes) else 0
    trust = library_of(request).trust
    return EpisodeOrder(str(trial.path), cell.id, cell.attempt, episode, steps, trust)


async def _parts(reel: Reel) -> AsyncIterator[bytes]:
    await reel.wait_begun()
    yield _part(END, msgspec.json.encode({"milliseconds": reel.milliseconds}))
    async with aclosing(reel.follow()) as frames:  # closed at once when the reader goes: others wait for the worker
        async for frame in frames:
            yield _part(frame.turn, frame.data)
    yield _part(END, msgspec.json.encode({"message": reel.message}))


def _part(turn: int, data: bytes) -> bytes:
    return turn.to_bytes(4, "big") + len(data).to_bytes(4, "big") + data


def _say_missing(reel: Reel, otherwise: str) -> Response:
    """Answer why there are no pictures: to be asked for again, or none can be made of what was recorded."""
    data = {"error": reel.message or otherwise}
    return JSONResponse(data, 503, {"retry-after": RETRY}) if reel.again else JSONResponse(data, 422)


def _refuse(error: OpenfieldError) -> Response:
    return JSONResponse({"error": str(error)}, find_status(error))


ROUTES = [
    Route(f"{TRIAL}/episodes/{{episode:int}}/frames", send_frames),
    Route(f"{TRIAL}/episodes/{{episode:int}}/film.{{kind}}", send_film),
    Route(f"{TRIAL}/turns/{{turn:int}}/picture", send_picture),
]
