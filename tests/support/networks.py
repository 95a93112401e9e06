"""Small ONNX networks, made where a test needs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Shape = Sequence[int | str]
COMPASS = np.array([[-1, 0], [1, 0], [0, -1], [0, 1]], dtype="float32")
"""Where the four moves of the maze go."""
TOWARDS_GOAL = np.hstack([-COMPASS, COMPASS, 20 * np.eye(4, dtype="float32")]).T
"""Weights from `at`, `goal` and `open` to a score of each move: an open one towards the goal has the highest."""


def write_network(
    path: Path, nodes: list[Any], inputs: Mapping[str, Shape], outputs: Mapping[str, Shape], **weights: Any
) -> Path:
    """Write a network of some nodes; outputs whose names begin with `int_` are whole numbers, all else is float32."""

    def declare(name: str, shape: Shape) -> Any:
        return helper.make_tensor_value_info(
            name, TensorProto.INT64 if name.startswith("int_") else TensorProto.FLOAT, shape
        )

    graph = helper.make_graph(
        nodes,
        "network",
        [declare(*each) for each in inputs.items()],
        [declare(*each) for each in outputs.items()],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString())
    return path


def write_linear(path: Path, weights: Any = TOWARDS_GOAL, shape: Shape = ("batch", 8), name: str = "scores") -> Path:
    """Write a network that multiplies a row of numbers by weights."""
    weights = np.asarray(weights, dtype="float32")
    node = helper.make_node("MatMul", ["row", "weights"], [name])
    return write_network(path, [node], {"row": shape}, {name: ("batch", weights.shape[1])}, weights=weights)
