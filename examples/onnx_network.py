"""A network in an ONNX file: CartPole's controller with one layer, fitted by trying weights at random.

Try it: python examples/onnx_network.py balance.onnx && openfield run gym:CartPole-v1 --agent onnx:balance.onnx
"""

import sys

import gymnasium
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TRIES, EPISODES, OPSET = 40, 3, 17


def search(seed: int = 0) -> np.ndarray:
    """Return the weights that balance the pole for longest, among some that are drawn."""
    rng = np.random.default_rng(seed)
    drawn = [rng.normal(size=(4, 2)).astype(np.float32) for _ in range(TRIES)]
    return max(drawn, key=balance)


def balance(weights: np.ndarray) -> float:
    """Return the steps that a network with these weights balances the pole, in some episodes."""
    env, steps = gymnasium.make("CartPole-v1"), 0.0
    for seed in range(EPISODES):
        seen, _ = env.reset(seed=seed)
        ended = cut = False
        while not (ended or cut):
            seen, reward, ended, cut, _ = env.step(int((seen @ weights).argmax()))
            steps += float(reward)
    return steps


def write(weights: np.ndarray, path: str) -> None:
    """Write a network with one layer: a score for each action, from the observation."""
    seen = helper.make_tensor_value_info("observation", TensorProto.FLOAT, ["batch", 4])
    scores = helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", 2])
    layer = helper.make_node("MatMul", ["observation", "weights"], ["scores"])
    graph = helper.make_graph([layer], "balance", [seen], [scores], [numpy_helper.from_array(weights, "weights")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    onnx.save(model, path)


if __name__ == "__main__":
    write(search(), sys.argv[1] if len(sys.argv) > 1 else "balance.onnx")
