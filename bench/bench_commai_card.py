"""CommAI's batches on an NVIDIA card: equal to the engine of processors, and how many steps a second they make.

Without a card it says so and measures nothing. Bars: no differing step; 900 million steps/s at 65,536 environments on
an H200.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np

from openfield.domains import commai
from openfield.domains.commai.tasks.catalogue import MICRO
from openfield.errors import OpenfieldError

SETTINGS = commai.CommaiSettings(cyclic=True)
SIZES = (1_024, 16_384, 65_536, 262_144, 1_048_576)
STEPS, REPEATS = 50, 20
_POLICY = """
extern "C" __global__ void guess(const int* right, int* said, long long n, unsigned seed) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned h = (unsigned)(i * 2654435761u) ^ (seed * 2246822519u);
  h ^= h >> 15; h *= 2246822519u; h ^= h >> 13;
  said[i] = right[i] < 0 ? 32 : h % 10 ? right[i] : 32 + (h >> 8) % 90;
}
"""


def count_differences(each: int = 60, steps: int = 1_200) -> tuple[int, int]:
    """Play all tasks on the card and on processors, with an oracle that errs; return all steps and the differing."""
    curricula = [(name,) for name in MICRO for _ in range(each)]
    card = commai.batch(curricula, len(curricula), SETTINGS, seed=11, device="cuda")
    own = commai.batch(curricula, len(curricula), SETTINGS, seed=11)
    differing = int((card.reset().get() != own.reset()).sum())  # type: ignore[attr-defined]
    rng = np.random.default_rng(5)
    for _ in range(steps):
        right = own.answers()
        differing += int((card.answers().get() != right).sum())  # type: ignore[attr-defined]
        odd = rng.random(len(curricula)) < 0.15
        heard = np.where(right < 0, 32, np.where(odd, rng.integers(0, 256, len(curricula)), right))
        symbols, rewards = own.step(heard)
        others, paid = card.step(heard)
        differing += int(((others.get() != symbols) | (paid.get() != rewards)).sum())  # type: ignore[attr-defined]
    return len(curricula) * steps, differing


def measure_speed(cupy: Any, n: int) -> tuple[float, float]:
    """Return the million steps a second of n environments with a scripted learner in a CUDA graph, and gigabytes."""
    batch = commai.batch([(name,) for name in MICRO] * (n // 40) + [("micro1",)] * (n % 40), n, SETTINGS, device="cuda")
    batch.reset()
    cupy.cuda.Device().synchronize()  # what follows goes to another stream
    policy, said = cupy.RawKernel(_POLICY, "guess"), cupy.zeros(n, np.int32)

    def play(count: int) -> None:
        for step in range(count):
            policy((-(-n // 128),), (128,), (batch.answers(), said, np.int64(n), np.uint32(step)))
            batch.step(said)

    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        play(300)
        stream.begin_capture()
        play(STEPS)
        graph = stream.end_capture()
        graph.launch(stream)
        stream.synchronize()
        start = time.perf_counter()
        for _ in range(REPEATS):
            graph.launch(stream)
        stream.synchronize()
        seconds = time.perf_counter() - start
    used = cupy.get_default_memory_pool().used_bytes() / 1e9
    return n * STEPS * REPEATS / seconds / 1e6, used


def main() -> None:
    """Print a JSON line for each figure."""
    try:
        steps, differing = count_differences()
    except OpenfieldError as error:
        print(f"bench_commai_card: {error}", file=sys.stderr)
        return
    import cupy

    card = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(json.dumps({"card": card, "steps compared": steps, "differing": differing, "bar": 0}), flush=True)
    for n in SIZES:
        speed, used = measure_speed(cupy, n)
        bar = {"bar": 900} if n == 65_536 else {}
        print(
            json.dumps({"environments": n, "million steps/s": round(speed, 1), "GB": round(used, 2), **bar}), flush=True
        )
        cupy.get_default_memory_pool().free_all_blocks()


if __name__ == "__main__":
    main()
