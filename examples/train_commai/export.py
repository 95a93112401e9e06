"""Write the trained learner as an ONNX network that `onnx:learner.onnx` plays: one step at a time, with its memory.

    python export.py learner.npz learner.onnx

The network takes the teacher's symbol and the reward. What it must remember are inputs that have an output `next_NAME`:
keys and values of the steps in its window, its own last symbol, what it foretold, and how surprised it was lately. Its
belief is that surprise, beyond what it expected. Needs the package onnx; the weights are kept as halves.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SYMBOLS, BYTES, SPACE = 128, 256, 32
HEADS, WINDOW = 7, 768
RATE, USUAL, SCALE = 1 / 50, 0.45, 0.08
"""How fast surprise is forgotten; where the belief is one half, and how steep it is there.

Where nothing changes, surprise in excess of the expected one has a mean of 0.02 nats and, forgotten at this rate, a
deviation of 0.09; it stayed below 0.36 in 4,000 steps.
"""


class Graph:
    """Nodes and weights of a network that is being written."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.count = 0

    def add(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Add a node and return the name of its output, or of all of them."""
        self.count += 1
        names = [f"v{self.count}_{number}" for number in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, **attributes))
        return names[0] if outputs == 1 else names

    def keep(self, value: Any, dtype: Any = np.float32) -> str:
        """Add a constant and return its name."""
        self.count += 1
        self.weights.append(numpy_helper.from_array(np.asarray(value, dtype), f"c{self.count}"))
        return f"c{self.count}"

    def half(self, value: Any) -> str:
        """Add a weight that is kept as a half."""
        return str(self.add("Cast", self.keep(value, np.float16), to=TensorProto.FLOAT))

    def name(self, value: str, name: str) -> None:
        """Give a value a name of its own, as an output."""
        self.nodes.append(helper.make_node("Identity", [value], [name]))


def write_network(weights: dict[str, Any]) -> onnx.ModelProto:
    """Return the network of a step."""
    graph = Graph()
    width = weights["norm.weight"].shape[0]
    layers, size = sum(name.endswith("join.weight") for name in weights), width // HEADS
    one = graph.keep([1], np.int64)
    heard = graph.add("Clip", "observation", graph.keep(0, np.int64), graph.keep(SYMBOLS - 1, np.int64))
    sign = graph.add("Cast", graph.add("Sign", "reward"), to=TensorProto.INT64)
    said_before = graph.add("Add", "own", graph.keep([SPACE], np.int64))  # memory begins with zeros: a space
    embedded = {name: graph.half(weights[f"{name}.weight"]) for name in ("teacher", "own", "reward")}
    x = graph.add(
        "Add", graph.add("Gather", embedded["teacher"], heard), graph.add("Gather", embedded["own"], said_before)
    )
    x = graph.add("Add", x, graph.add("Gather", embedded["reward"], graph.add("Add", sign, one)))  # 1, width
    cos, sin = write_rotation(graph, size)
    row = graph.keep(np.arange(WINDOW).reshape(1, 1, WINDOW), np.int64)
    place = graph.add("Mod", "at", graph.keep([WINDOW], np.int64))
    places = [graph.add("Expand", place, graph.keep(shape, np.int64)) for shape in ([HEADS, size, 1], [HEADS, 1, size])]
    unseen = graph.add("Cast", graph.add("Greater", row, "at"), to=TensorProto.FLOAT)
    bias = graph.add("Mul", unseen, graph.keep(-1e9))
    for layer in range(layers):
        own = {name.removeprefix(f"layers.{layer}."): value for name, value in weights.items()}
        parts = write_linear(graph, write_norm(graph, x, own, "before_attention"), own, "attention.query_key_value")
        shaped = graph.add("Reshape", parts, graph.keep([3, HEADS, 1, size], np.int64))
        query, key, value = (graph.add("Gather", shaped, graph.keep(each, np.int64), axis=0) for each in range(3))
        query, key = (write_rotated(graph, each, cos, sin) for each in (query, key))
        across = graph.add(
            "Reshape", key, graph.keep([HEADS, size, 1], np.int64)
        )  # keys are kept ready to be multiplied
        keys, values = f"next_keys_{layer}", f"next_values_{layer}"
        graph.nodes.append(helper.make_node("ScatterElements", [f"keys_{layer}", places[0], across], [keys], axis=2))
        graph.nodes.append(helper.make_node("ScatterElements", [f"values_{layer}", places[1], value], [values], axis=1))
        scores = graph.add("Mul", graph.add("MatMul", query, keys), graph.keep(size**-0.5))
        seen = graph.add("Softmax", graph.add("Add", scores, bias), axis=-1)
        joined = graph.add("Reshape", graph.add("MatMul", seen, values), graph.keep([1, width], np.int64))
        x = graph.add("Add", x, write_linear(graph, joined, own, "attention.join"))
        inner = write_linear(graph, write_norm(graph, x, own, "before_network"), own, "network.0")
        half = graph.add("Mul", inner, graph.keep(0.5))
        bent = graph.add("Erf", graph.add("Mul", inner, graph.keep(0.5**0.5)))
        x = graph.add(
            "Add",
            x,
            write_linear(graph, graph.add("Mul", half, graph.add("Add", bent, graph.keep(1.0))), own, "network.2"),
        )
    x = graph.add("Mul", write_norm(graph, x, weights, "norm"), graph.keep(2 * width**-0.5))
    said, foretold = (
        graph.add("MatMul", x, graph.add("Transpose", embedded[name], perm=[1, 0])) for name in ("own", "teacher")
    )
    others = graph.keep(np.full((1, BYTES - SYMBOLS), -1e9))
    graph.name(graph.add("Concat", said, others, axis=1), "scores")
    best = graph.add("ArgMax", said, axis=1, keepdims=0)
    graph.name(graph.add("Sub", best, graph.keep([SPACE], np.int64)), "next_own")
    graph.name(graph.add("Add", "at", one), "next_at")
    write_belief(graph, heard, foretold)
    return make_model(graph, layers, size)


def write_rotation(graph: Graph, size: int) -> tuple[str, str]:
    """Return cosine and sine of this step; angles are reduced as doubles, so that they stay exact in long trials."""
    turns = 10_000.0 ** -(np.arange(size // 2) / (size // 2)) / (2 * np.pi)
    turned = graph.add("Mul", graph.add("Cast", "at", to=TensorProto.DOUBLE), graph.keep(turns, np.float64))
    part = graph.add("Cast", graph.add("Sub", turned, graph.add("Floor", turned)), to=TensorProto.FLOAT)
    angle = graph.add("Mul", part, graph.keep(2 * np.pi))
    return graph.add("Cos", angle), graph.add("Sin", angle)


def write_rotated(graph: Graph, x: str, cos: str, sin: str) -> str:
    """Rotate pairs of features, one of the first half with one of the second."""
    first, second = graph.add("Split", x, outputs=2, axis=-1, num_outputs=2)
    left = graph.add("Sub", graph.add("Mul", first, cos), graph.add("Mul", second, sin))
    right = graph.add("Add", graph.add("Mul", first, sin), graph.add("Mul", second, cos))
    return str(graph.add("Concat", left, right, axis=-1))


def write_linear(graph: Graph, x: str, weights: dict[str, Any], name: str) -> str:
    """Multiply by a matrix, and add a bias if there is one."""
    product = graph.add("MatMul", x, graph.half(weights[f"{name}.weight"].T))
    bias = weights.get(f"{name}.bias")
    return str(product if bias is None else graph.add("Add", product, graph.half(bias)))


def write_norm(graph: Graph, x: str, weights: dict[str, Any], name: str) -> str:
    """Normalise features."""
    given = (graph.half(weights[f"{name}.{part}"]) for part in ("weight", "bias"))
    return str(graph.add("LayerNormalization", x, *given, axis=-1, epsilon=1e-5))


def write_belief(graph: Graph, heard: str, foretold: str) -> None:
    """Compare what was heard with what was foretold a step ago, and believe in a change if it was worse than expected."""
    known = graph.add("LogSoftmax", "foretold", axis=-1)
    found = graph.add("Gather", known, heard, axis=1)  # 1, 1
    expected = graph.add("ReduceSum", graph.add("Mul", graph.add("Exp", known), known), graph.keep([1], np.int64))
    beyond = graph.add("Clip", graph.add("Sub", expected, found), graph.keep(-5.0), graph.keep(5.0))
    moved = graph.add(
        "Mul", graph.add("Sub", graph.add("Reshape", beyond, graph.keep([1], np.int64)), "surprise"), graph.keep(RATE)
    )
    surprise = graph.add("Add", "surprise", moved)
    graph.name(surprise, "next_surprise")
    graph.name(foretold, "next_foretold")
    raised = graph.add("Mul", graph.add("Sub", surprise, graph.keep(USUAL)), graph.keep(1 / SCALE))
    graph.name(graph.add("Sigmoid", raised), "belief")


def make_model(graph: Graph, layers: int, size: int) -> onnx.ModelProto:
    """Return the model with its inputs and outputs."""
    rings = {"keys": [HEADS, size, WINDOW], "values": [HEADS, WINDOW, size]}
    memory = {
        "own": (TensorProto.INT64, [1]),
        "at": (TensorProto.INT64, [1]),
        **{f"{name}_{layer}": (TensorProto.FLOAT, ring) for layer in range(layers) for name, ring in rings.items()},
        "foretold": (TensorProto.FLOAT, [1, SYMBOLS]),
        "surprise": (TensorProto.FLOAT, [1]),
    }
    shown = {"observation": (TensorProto.INT64, [1]), "reward": (TensorProto.FLOAT, [1])}
    results = {"scores": (TensorProto.FLOAT, [1, BYTES]), "belief": (TensorProto.FLOAT, [1])}
    inputs = [helper.make_tensor_value_info(name, *kind) for name, kind in {**shown, **memory}.items()]
    after = {f"next_{name}": kind for name, kind in memory.items()}
    outputs = [helper.make_tensor_value_info(name, *kind) for name, kind in {**results, **after}.items()]
    made = helper.make_graph(graph.nodes, "learner", inputs, outputs, graph.weights)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(model)
    return model


def main() -> None:
    """Export."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("weights", type=Path)
    parser.add_argument("network", type=Path)
    given = parser.parse_args()
    with np.load(given.weights) as kept:
        model = write_network({name: kept[name].astype(np.float32) for name in kept.files})
    given.network.write_bytes(model.SerializeToString())
    print(f"{given.network}: {given.network.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
