"""Pictures of recorded turns, made by replay in processes that may crash or hang.

The server asks a `FramePool` for the `Reel` of an episode. The pool gives the order to a worker process, `worker.py`,
which plays the episode again and sends its pictures one by one. Start with `pool.py`.
"""

from openfield.view.frames.messages import EpisodeOrder, WarmOrder
from openfield.view.frames.pool import FramePool, Reel

__all__ = ["EpisodeOrder", "FramePool", "Reel", "WarmOrder"]
