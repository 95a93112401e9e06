"""What the kernel needs of numba beside `njit`: parts without a way from Python, and pointers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit, types
from numba.extending import intrinsic

Function = TypeVar("Function", bound=Callable[..., Any])


def compile_part(function: Function) -> Function:
    """Compile a function that only compiled code calls; the way to it from Python is left out."""
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled: Function = njit(**options)(function)
    return compiled


def _make_pointer(context: Any, array: Any) -> Any:
    """Return a pointer to the data of an array, typed and as code."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.make_array(signature.args[0])(context, builder, arguments[0]).data

    pointer: Any = types.CPointer
    return pointer(array.dtype)(array), generate


point_to: Any = intrinsic(_make_pointer)
"""Points to the data of an array. A function that is handed a pointer counts no reference to the array, which takes
most of the time otherwise."""
