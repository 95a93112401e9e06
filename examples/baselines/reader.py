"""An agent of OND that recognises samples by features which a network learned on other characters.

    openfield run ond --agent 'examples/baselines/reader.py:Reader(network=examples/baselines/networks/reader.onnx)'

In the training turn it fits a head of K+1 classes to the features of the labelled samples, and a detector of change to
those held out: both are the ones of the domain's agent `learner`. `train_reader.py` trains the network. It needs the
extra onnx.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from openfield.core import Reply, Spec, Turn
from openfield.lazy import import_extra
from openfield.registry import find_agent, find_domain


class Reader:
    """Plays as an agent of the domain does, and shows it features instead of pictures."""

    def __init__(self, spec: Spec, seed: int, network: str, learner: str = "knn") -> None:
        runtime = import_extra("onnxruntime", "onnx", "The learned reader")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._network = runtime.InferenceSession(network, options)
        self._learner = find_agent(learner, find_domain(spec.domain))(spec, seed)

    def __call__(self, turn: Turn) -> Reply:
        """Answer a turn."""
        seen = turn.observation
        if isinstance(seen, dict) and "images" in seen:
            turn = replace(turn, observation={**seen, "images": self._read(seen["images"])})
        return self._learner(turn)

    def _read(self, images: Any) -> NDArray[np.float32]:
        (features,) = self._network.run(None, {"images": np.asarray(images, np.float32)})
        return np.asarray(features * np.sqrt(features.shape[1]), np.float32)
