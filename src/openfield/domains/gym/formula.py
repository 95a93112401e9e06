"""Formulas of attributes that follow from others: `masscart + masspole`. They are read, never run as code."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from openfield.errors import InvalidInput

MAX_FORMULA = 200
"""Characters of a formula."""
_SIGNS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


class Formula:
    """A sum, difference, product or quotient of attributes and numbers."""

    def __init__(self, text: str, tree: ast.expr) -> None:
        self._text, self._tree = text, tree
        self.names = tuple(dict.fromkeys(node.id for node in ast.walk(tree) if isinstance(node, ast.Name)))

    def compute(self, values: Mapping[str, Any]) -> Any:
        """Return the value for these attributes.

        Raises:
            InvalidInput: It divides by 0, or an attribute is not a number.
        """
        try:
            return _compute(self._tree, values)
        except (ArithmeticError, TypeError, ValueError) as error:
            raise InvalidInput(f"The formula '{self._text}' cannot be computed: {error}.") from None


@lru_cache(256)
def read_formula(text: str) -> Formula:
    """Return the formula in a text. It is read once: a world that changes gradually computes it in every turn.

    Raises:
        InvalidInput: It holds more than attributes, numbers, brackets and + - * /.
    """
    try:
        tree = ast.parse(text, mode="eval").body if len(text) <= MAX_FORMULA else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tree = None
    if tree is None or not all(map(_is_known, ast.walk(tree))):
        raise InvalidInput(f"'{text:.80}' is not a formula: write attributes, numbers, brackets and + - * /.")
    return Formula(text, tree)


def _is_known(node: ast.AST) -> bool:
    match node:
        case ast.BinOp(op=op):
            return type(op) in _SIGNS
        case ast.Constant(value=value):
            return type(value) in (int, float)
    return isinstance(node, ast.Name | ast.Load | ast.operator)


def _compute(node: ast.expr, values: Mapping[str, Any]) -> Any:
    match node:
        case ast.BinOp(left, op, right):
            return _SIGNS[type(op)](_compute(left, values), _compute(right, values))
        case ast.Name(name):
            return values[name]
        case ast.Constant(value):
            return value
    raise InvalidInput(f"{ast.unparse(node)} cannot be part of a formula.")
