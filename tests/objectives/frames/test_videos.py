"""Videos as episodes: the frames that a decoder finds, with the actions that lie beside them."""

from __future__ import annotations

import sys
from pathlib import Path

import av
import numpy as np
import pytest

from openfield.errors import InvalidInput
from openfield.objectives.frames.table_of_episodes import Recipe, build_table, open_episode


def write_video(path: Path, frames: np.ndarray) -> None:
    """Write grey frames without loss."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264rgb", rate=30)
        stream.height, stream.width = frames.shape[1:]
        stream.pix_fmt, stream.options = "rgb24", {"crf": "0"}
        for frame in frames:
            coloured = av.VideoFrame.from_ndarray(np.repeat(frame[..., np.newaxis], 3, axis=2), format="rgb24")
            container.mux(stream.encode(coloured))
        container.mux(stream.encode())


@pytest.fixture
def frames() -> np.ndarray:
    coarse = np.random.default_rng(0).integers(0, 255, (40, 8, 8), np.uint8)
    return coarse.repeat(4, axis=1).repeat(4, axis=2)


@pytest.mark.parametrize("ending", [".npz", ".npy", ".txt"])
def test_a_video_gives_the_table_of_its_frames(tmp_path: Path, frames: np.ndarray, ending: str) -> None:
    actions = np.arange(40) % 3
    video = tmp_path / "episode.mp4"
    write_video(video, frames)
    if ending == ".npz":
        np.savez(tmp_path / "episode.npz", action=actions)
    elif ending == ".npy":
        np.save(tmp_path / "episode.npy", actions)
    else:
        (tmp_path / "episode.txt").write_text(" ".join(map(str, actions)))
    np.savez(tmp_path / "same.npz", observ=frames, action=actions)
    found, same = (build_table([open_episode(tmp_path / name)], Recipe()) for name in ("episode.mp4", "same.npz"))
    assert open_episode(video).length == 40
    assert found.meta == same.meta
    assert all(
        np.array_equal(getattr(found, name), getattr(same, name)) for name in ("obs", "action", "next_obs", "count")
    )


def test_a_video_that_cannot_be_used_says_why(
    tmp_path: Path, frames: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    video = tmp_path / "episode.mp4"
    write_video(video, frames)
    with pytest.raises(InvalidInput, match=r"no actions.*episode\.npz, episode\.npy, episode\.txt"):
        open_episode(video)
    np.save(tmp_path / "episode.npy", np.zeros(7, int))
    with pytest.raises(InvalidInput, match="40 frames and 7 actions"):
        build_table([open_episode(video)], Recipe())
    with pytest.raises(InvalidInput, match=r"no images .* Name the files in it: .*/\*\.mp4"):
        open_episode(tmp_path)
    video.write_bytes(b"no video at all")
    with pytest.raises(InvalidInput, match="cannot be read"):
        open_episode(video)
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(InvalidInput, match=r"\[video\].*ffmpeg -i .*episode\.mp4"):
        open_episode(video)
