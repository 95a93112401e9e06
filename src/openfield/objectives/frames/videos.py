"""Videos as episodes of frames, decoded by PyAV where it is installed.

Feeds `table_of_episodes`. A video has no actions: they are in a file of the same name beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from openfield.errors import InvalidInput, MissingExtra
from openfield.lazy import import_extra
from openfield.objectives.frames.encode import grey
from openfield.objectives.tables.histograms import Array

VIDEO_ENDINGS = (".mp4", ".mkv", ".avi", ".mov", ".webm")
ACTION_ENDINGS = (".npz", ".npy", ".txt")
"""The endings of files with the actions of a video, in the order in which they are looked for."""


def find_video_actions(path: Path) -> Path:
    """Return the file beside a video that has its actions; refuse a video without one."""
    beside = [path.with_suffix(ending) for ending in ACTION_ENDINGS]
    for file in beside:
        if file.exists():
            return file
    names = ", ".join(file.name for file in beside)
    raise InvalidInput(f"{path}: a video has no actions. Put them beside it, one per frame, in one of {names}.")


def count_video_frames(path: Path) -> int:
    """Count the frames of a video. All are decoded, because what the file says of their number may be wrong."""
    return sum(1 for _ in _frames(path))


def read_video(path: Path, length: int) -> Iterator[Array]:
    """Yield the frames of a video in grey, a batch at a time."""
    batch: list[Array] = []
    for frame in _frames(path):
        batch.append(grey(frame.to_ndarray(format="rgb24")))
        if len(batch) == length:
            yield np.stack(batch)
            batch = []
    if batch:
        yield np.stack(batch)


def _frames(path: Path) -> Iterator[Any]:
    with _opened(path) as container:
        yield from container.decode(video=0)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a video; whatever is wrong with it is said in one line."""
    try:
        av = import_extra("av", "video", f"{path}: a video")
    except MissingExtra as error:
        images = path.with_suffix("")
        raise InvalidInput(
            f"{error} Or make images of it: mkdir {images}; ffmpeg -i {path} -fps_mode passthrough {images}/%06d.png"
        ) from None
    try:
        with av.open(str(path)) as container:
            if not container.streams.video:
                raise InvalidInput(f"{path}: there is no video in it.")
            yield container
    except (av.FFmpegError, OSError, ValueError) as error:
        raise InvalidInput(f"{path}: the video cannot be read ({error}).") from None
