"""Atari games: importing this module registers them with Gymnasium, without the banner of the emulator."""

from __future__ import annotations

import gymnasium

from openfield.lazy import import_extra

ale_py = import_extra("ale_py", "atari", "An Atari game")
gymnasium.register_envs(ale_py)
ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
