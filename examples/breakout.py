"""A policy for the pixels of Breakout: keep the paddle below the ball.

Try it: openfield run gym:ALE/Breakout-v5 --agent examples/breakout.py:FOLLOWER --agent random --novelty make.mode=36
"""

from typing import Any

import numpy as np

import openfield as of

NOTHING, FIRE, RIGHT, LEFT = range(4)
AIR, PADDLE = slice(93, 189), slice(189, 193)
"""Rows of the picture between the bricks and the paddle, and those of the paddle."""
WIDTH = slice(8, 152)


def follow(picture: Any) -> int:
    """Choose the move that brings the paddle below the ball, and serve where there is none."""
    shown = np.asarray(picture)
    red = shown if shown.ndim == 2 else shown[..., 0]
    ball = np.flatnonzero(red[AIR, WIDTH].any(0))
    paddle = np.flatnonzero(red[PADDLE, WIDTH].all(0))
    if not ball.size or not paddle.size:
        return FIRE
    gap = ball.mean() - paddle.mean()
    return NOTHING if abs(gap) < 3 else RIGHT if gap > 0 else LEFT


FOLLOWER = of.policy(follow)
