"""Translate the functions of the compiled engine into CUDA, so that one source is played on processors and on devices.

`kernel.py` is read, not imported: a machine with a card needs no numba. What is translated is the part of Python in
which the engine is written. Anything else is refused by name and line, so no change of the kernel is mistranslated
silently. All values are whole numbers of 64 bits but draws, which are fractions.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

from openfield.domains.commai.batched import program as at
from openfield.domains.commai.batched.batch import FACTORS, SHIFTS, STEP, UNIT
from openfield.errors import OpenfieldError

_KERNEL = Path(__file__).with_name("kernel.py")
_MARKS = ("compile_part", "compile_inline")
_GIVEN = "_draw_bits"
"""The one function that needs numbers without a sign; it is written below."""
_POINTERS = {
    "memory": "Number*",
    "texts": "Symbol*",
    "factors": "const double*",
}
_TEMPLATES = {"first", "second", "whole", "part"}
"""Arguments that are numbers in one call and symbols in another."""
_FRACTIONS = {"_draw"}
_WORDS = {"template": "text_template", "new": "new_"}
"""Names that mean something else in C++."""
_Signs = dict[type[ast.AST], str]
_BINARY: _Signs = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "/", ast.Mod: "%"}
_COMPARED: _Signs = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
_CASTS = {"int": "Number", "float": "double", "bool": "bool"}
_NUMBERS = {"_DOT": ord("."), "_SPACE": ord(" "), "_ZERO": ord("0"), "_NONE": -1, "_UNLIMITED": 2**63 - 1}
_LARGE = 2**31

_HEAD = """\
typedef long long Number;
typedef unsigned long long Bits;
typedef unsigned char Symbol;
typedef int Said;
typedef float Paid;
struct Pair { Number first, second; };
template<class T> ON_DEVICE T least_of(T a, T b) { return a < b ? a : b; }
"""
_FIND_ROW = f"""\
ON_DEVICE Number find_row(const Number* memory, Number i) {{ return memory[{at.FIRST}] + i * {at.STATE_SIZE}; }}
"""
_DRAW_BITS = f"""\
ON_DEVICE Number {_GIVEN}(Number* memory, Number env) {{
  Bits counter = (Bits)memory[env + {at.DRAWS}] + {STEP}ULL;
  memory[env + {at.DRAWS}] = (Number)counter;
  Bits mixed = (counter ^ (counter >> {SHIFTS[0]})) * {FACTORS[0]}ULL;
  mixed = (mixed ^ (mixed >> {SHIFTS[1]})) * {FACTORS[1]}ULL;
  return (Number)((mixed ^ (mixed >> {SHIFTS[2]})) >> {SHIFTS[3]});
}}
"""


class Untranslatable(OpenfieldError):
    """The kernel uses something that the translation does not know."""


def translate_kernel() -> str:
    """Return the marked functions of the kernel as C++ functions, each marked ON_DEVICE."""
    functions = [node for node in ast.parse(_KERNEL.read_text("utf-8")).body if _is_marked(node)]
    translated = [_Function(node) for node in functions if isinstance(node, ast.FunctionDef) and node.name != _GIVEN]
    bodies = [function.define() for function in translated]
    declared = [f"{function.signature};" for function in translated]
    return "\n".join([_HEAD, _FIND_ROW, *declared, _DRAW_BITS, *bodies, ""])


def _is_marked(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and any(
        isinstance(mark, ast.Name) and mark.id in _MARKS for mark in node.decorator_list
    )


class _Function:
    """Translates one function."""

    def __init__(self, node: ast.FunctionDef) -> None:
        self._node = node
        self._locals: dict[str, None] = {}
        self._numbers = count(1)
        names = [argument.arg for argument in node.args.args]
        generic = any(name in _TEMPLATES for name in names)
        kinds = [_POINTERS.get(name, "const T*" if name in _TEMPLATES else "Number") for name in names]
        value = "double" if node.name in _FRACTIONS else "Number"
        returned = "void" if _is_nothing(node.returns) else "Pair" if isinstance(node.returns, ast.Subscript) else value
        arguments = ", ".join(f"{kind} {_rename(name)}" for kind, name in zip(kinds, names, strict=True))
        prefix = "template<class T> " if generic else ""
        self.signature = f"{prefix}ON_DEVICE {returned} {node.name}({arguments})"
        self._arguments = set(map(_rename, names))

    def define(self) -> str:
        """Return the whole function."""
        body = [f"  {line}" for line in self._translate_all(self._node.body)]
        own = [name for name in self._locals if name not in self._arguments]
        declared = [f"  Number {', '.join(own)};"] if own else []
        return "\n".join([f"{self.signature} {{", *declared, *body, "}"])

    def _translate_all(self, statements: Sequence[ast.stmt]) -> Iterator[str]:
        for statement in statements:
            yield from self._translate(statement)

    def _translate(self, node: ast.stmt) -> Iterator[str]:
        match node:
            case ast.Expr(value=ast.Constant()):  # a docstring
                return
            case ast.Expr(value=value):
                yield f"{_write(value)};"
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                yield from self._assign_at_once(targets, values)
            case ast.Assign(targets=targets, value=value):
                place = " = ".join(self._write_target(target) for target in targets)
                yield f"{place} = {_write(value)};"
            case ast.AugAssign(target=target, op=operator, value=value):
                yield f"{self._write_target(target)} {_find(_BINARY, operator, node)}= {_write(value)};"
            case ast.If(test=test, body=body, orelse=others):
                yield from self._block(f"if ({_write(test)})", body)
                if others:
                    yield from self._block("else", others)
            case ast.While(test=test, body=body, orelse=[]):
                yield from self._block(f"while ({_write(test)})", body)
            case ast.For(target=ast.Name() as target, iter=ast.Tuple(elts=values), body=body, orelse=[]):
                for value in values:
                    yield f"{self._write_target(target)} = {_write(value)};"
                    yield from self._translate_all(body)
            case ast.For(target=ast.Name() as target, iter=ast.Call(func=ast.Name("range")) as span, body=body):
                yield from self._repeat(target, span.args, body)
            case ast.Return(value=None):
                yield "return;"
            case ast.Return(value=ast.Tuple(elts=[first, second])):
                yield f"return Pair{{{_write(first)}, {_write(second)}}};"
            case ast.Return(value=ast.expr() as value):
                yield f"return {_write(value)};"
            case _:
                raise _refuse(node)

    def _assign_at_once(self, targets: Sequence[ast.expr], values: Sequence[ast.expr]) -> Iterator[str]:
        """Compute all values before any is assigned."""
        held = [f"held{next(self._numbers)}" for _ in values]
        for name, value in zip(held, values, strict=True):
            yield f"const Number {name} = {_write(value)};"
        for target, name in zip(targets, held, strict=True):
            yield f"{self._write_target(target)} = {name};"

    def _repeat(self, target: ast.Name, span: Sequence[ast.expr], body: Sequence[ast.stmt]) -> Iterator[str]:
        """Count as `range` does: the bounds are computed once, and the body may change the variable."""
        first, last = ("0", _write(span[0])) if len(span) == 1 else (_write(span[0]), _write(span[1]))
        down = len(span) == 3
        if down and ast.unparse(span[2]) != "-1":
            raise _refuse(span[2])
        number = next(self._numbers)
        step, compared = ("--", ">") if down else ("++", "<")
        bounds = f"Number at{number} = {first}, end{number} = {last}"
        yield f"for ({bounds}; at{number} {compared} end{number}; {step}at{number}) {{"
        yield f"  {self._write_target(target)} = at{number};"
        yield from (f"  {line}" for line in self._translate_all(body))
        yield "}"

    def _block(self, head: str, body: Sequence[ast.stmt]) -> Iterator[str]:
        yield f"{head} {{"
        yield from (f"  {line}" for line in self._translate_all(body))
        yield "}"

    def _write_target(self, node: ast.expr) -> str:
        if isinstance(node, ast.Name):
            self._locals[_rename(node.id)] = None
        return _write(node)


def _write(node: ast.expr) -> str:
    """Return an expression in C++."""
    match node:
        case ast.Constant(value=bool(value)):
            return str(int(value))
        case ast.Constant(value=int(value)):
            return _write_number(value)
        case ast.Name(id="UNIT"):
            return repr(UNIT)
        case ast.Name(id=name):
            return _write_number(_NUMBERS[name]) if name in _NUMBERS else _rename(name)
        case ast.Attribute(value=ast.Name(id="at"), attr=name):
            return _write_number(getattr(at, name))
        case ast.Subscript(value=ast.Name(id=name), slice=place):
            return f"{_rename(name)}[{_write(place)}]"
        case ast.BinOp(left=left, op=operator, right=right):
            return f"({_write(left)} {_find(_BINARY, operator, node)} {_write(right)})"
        case ast.Compare(left=left, ops=operators, comparators=others):
            sides = list(map(_write, [left, *others]))
            signs = [_find(_COMPARED, operator, node) for operator in operators]
            parts = [f"({a} {sign} {b})" for a, sign, b in zip(sides, signs, sides[1:], strict=False)]
            return parts[0] if len(parts) == 1 else f"({' && '.join(parts)})"
        case ast.BoolOp(op=operator, values=values):
            sign = " && " if isinstance(operator, ast.And) else " || "
            return f"({sign.join(map(_write, values))})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return f"!({_write(operand)})"
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return f"(-{_write(operand)})"
        case ast.IfExp(test=test, body=body, orelse=other):
            return f"({_write(test)} ? {_write(body)} : {_write(other)})"
        case ast.Call(func=ast.Name(id=name), args=[value]) if name in _CASTS:
            return f"(({_CASTS[name]})({_write(value)}))"
        case ast.Call(func=ast.Name(id="min"), args=values):
            return f"least_of<Number>({', '.join(map(_write, values))})"
        case ast.Call(func=ast.Name(id=name), args=values, keywords=[]) if name.startswith("_"):
            return f"{name}({', '.join(map(_write, values))})"
        case _:
            raise _refuse(node)


def _write_number(value: int) -> str:
    return f"{value}LL" if abs(value) >= _LARGE else str(value)


def _rename(name: str) -> str:
    return _WORDS.get(name, name)


def _find(signs: _Signs, operator: ast.AST, node: ast.AST) -> str:
    if type(operator) not in signs:
        raise _refuse(node)
    return signs[type(operator)]


def _is_nothing(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _refuse(node: ast.AST) -> Untranslatable:
    place = getattr(node, "lineno", 0)
    return Untranslatable(f"{_KERNEL.name}, line {place}: '{ast.unparse(node)}' cannot be translated for a device.")
