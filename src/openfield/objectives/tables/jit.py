"""Compiled loops without what nobody here needs of the compiler's package.

Under `compiled` and `compiled_frames`. Before it loads anything, numba imports SciPy's linear algebra to see whether it
is there, which takes 0.15 s; that SciPy is installed says the same.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec

from numba import njit

__all__ = ["njit"]


def _believe_scipy() -> None:
    """Let numba take SciPy's word for its linear algebra; whoever uses it there has it imported then."""
    from numba.np import linalg

    check = getattr(linalg, "ensure_blas", None)  # another numba may ask otherwise
    if check is None or find_spec("scipy") is None:
        return
    linalg.ensure_blas = lambda: None
    try:
        import numba.np.arraymath  # noqa: F401
    finally:
        linalg.ensure_blas = check


if "numba.np.arraymath" not in sys.modules:
    _believe_scipy()
