"""Agents that work in any domain, and bridges to programs that are agents already.

`random.py` is the smallest example of an agent. `turn_writer.py` says turns in words: a person at a terminal
(`human.py`) and a language model (`llm/`) read and answer them. It also has the words in which both are asked for
their beliefs. `program.py` starts a program that speaks JSON lines on its standard input and output, `legacy.py` one
that speaks the domain's own protocol. `policy.py` plays with a trained policy, `onnx.py` and `sb3.py` with one in a
file; `detectors.py` gives a belief to an agent that has none, and `with_parameters` gives an agent its parameters.
"""

from typing import TYPE_CHECKING

from openfield.lazy import attach

if TYPE_CHECKING:
    from openfield.agents.detectors import with_detector
    from openfield.agents.human import LineHuman
    from openfield.agents.legacy import drive_program
    from openfield.agents.onnx import onnx_agent
    from openfield.agents.policy import policy
    from openfield.agents.program import process_agent
    from openfield.agents.random import RandomAgent
    from openfield.agents.sb3 import sb3_agent
    from openfield.agents.turn_writer import TurnText, TurnWriter
    from openfield.parameters import with_parameters

__all__ = [
    "LineHuman",
    "RandomAgent",
    "TurnText",
    "TurnWriter",
    "drive_program",
    "onnx_agent",
    "policy",
    "process_agent",
    "sb3_agent",
    "with_detector",
    "with_parameters",
]

__getattr__, __dir__ = attach(__name__)
