"""Loading compiled code imports little, and leaves numba as it would be for anybody else."""

import subprocess
import sys

import pytest

pytest.importorskip("numba", reason="pip install 'openfield[fast]'")
pytest.importorskip("scipy")

CHILD = """
import sys
import numpy as np
from openfield.objectives.tables.compiled import pack_keys
from openfield.objectives.tables.packing import Layout
columns = tuple(np.array([number]) for number in (5, 6, 1, 2))
assert pack_keys(columns, Layout(3, 3, 1, 8, 0, 0)).tolist() == [((5 << 3 | 6) << 1 | 1) << 8 | 2]
print("scipy.linalg" in sys.modules)
from numba import njit
print(njit(lambda one, other: np.dot(one, other))(np.eye(2), np.ones(2)).tolist())
from numba.np import arraymath
print(arraymath._HAVE_BLAS)
"""


def test_scipy_is_imported_when_somebody_needs_it():
    done = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n") == ["False", "[1.0, 1.0]", "True", ""]
