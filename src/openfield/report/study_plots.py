"""Drawings of a study as SVG: scatter plot, heat map, bars with intervals.

Every drawing is also a file of its own, so it carries its colours with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import msgspec

INK, BLUE, ORANGE = "currentColor", "#0072b2", "#d55e00"
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f")
"""Okabe and Ito's colours, which most eyes tell apart."""


class Dot(msgspec.Struct, frozen=True):
    """A point of a scatter plot."""

    x: float
    y: float
    label: str
    group: str


class Bar(msgspec.Struct, frozen=True):
    """A value with its interval, and what the paper found for it."""

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    reference: float | None = None


def draw_scatter(title: str, x: str, y: str, dots: Sequence[Dot]) -> str:
    """Draw agents as points, one colour per environment."""
    width, height, left, bottom, top, right = 360, 270, 52, 40, 14, 96
    groups = sorted({dot.group for dot in dots})
    across = _Scale([dot.x for dot in dots], left, width - right)
    up = _Scale([dot.y for dot in dots], height - bottom, top)
    parts = [*_axes(across, up, x, y, height, bottom)]
    for dot in dots:
        colour = PALETTE[groups.index(dot.group) % len(PALETTE)]
        name = escape(f"{dot.label}, {dot.group}: {dot.x:.4g}, {dot.y:.4g}")
        parts.append(
            f'<circle cx="{across.at(dot.x):.1f}" cy="{up.at(dot.y):.1f}" r="4" fill="{colour}" fill-opacity=".8">'
            f"<title>{name}</title></circle>"
        )
    for number, group in enumerate(groups):
        line = top + 8 + 15 * number
        parts.append(f'<circle cx="{width - right + 12}" cy="{line}" r="4" fill="{PALETTE[number % len(PALETTE)]}"/>')
        parts.append(_text(width - right + 20, line + 4, group))
    return _svg(title, width, height, parts)


def draw_heat_map(title: str, names: Sequence[str], values: Sequence[Sequence[float | None]]) -> str:
    """Draw correlations as coloured cells: blue below zero, orange above, grey where not defined."""
    cell, left, top = 46, 150, 100
    width, height = left + cell * len(names) + 50, top + cell * len(names) + 10  # the last name leans to the right
    parts = []
    for row, name in enumerate(names):
        parts.append(_text(left - 8, top + cell * row + cell / 2 + 4, name, "end"))
        place = left + cell * row + cell / 2
        parts.append(
            f'<text x="{place}" y="{top - 8}" fill="{INK}" font-size="11" '
            f'transform="rotate(-40 {place} {top - 8})">{escape(name)}</text>'
        )
        for column, value in enumerate(values[row]):
            parts += _cell(left + cell * column, top + cell * row, cell, value)
    return _svg(title, width, height, parts)


def draw_bars(title: str, bars: Sequence[Bar], low: float = -1.0, high: float = 1.0) -> str:
    """Draw values from `low` to `high` with intervals; a diamond marks what the paper found."""
    width, left, right, line = 460, 150, 20, 26
    height = 30 + line * len(bars)
    scale = _Scale([low, high], left, width - right, tight=True)
    parts = []
    for mark in (low, (low + high) / 2, high):
        at = scale.at(mark)
        parts.append(_line((at, 6), (at, height - 22), 0.6 if mark == 0 else 0.15))
        parts.append(_text(at, height - 8, f"{mark:g}", "middle"))
    for number, bar in enumerate(bars):
        parts += _bar(bar, scale, 18 + line * number, left)
    return _svg(title, width, height, parts)


class _Scale:
    """Numbers to drawing units, with a margin on both sides unless tight."""

    def __init__(self, values: Sequence[float], start: float, stop: float, tight: bool = False) -> None:
        low, high = min(values, default=0.0), max(values, default=1.0)
        margin = 0.0 if tight else 0.06 * (high - low) or abs(high) * 0.1 or 1.0
        self.low, self.high, self.start, self.stop = low - margin, high + margin, start, stop

    def at(self, value: float) -> float:
        return self.start + (self.stop - self.start) * (value - self.low) / (self.high - self.low)

    def marks(self) -> list[float]:
        return [self.low + (self.high - self.low) * part for part in (0.1, 0.5, 0.9)]


def _axes(across: _Scale, up: _Scale, x: str, y: str, height: int, bottom: int) -> list[str]:
    floor = height - bottom
    corner = (across.start, floor)
    parts = [_line(corner, (across.stop, floor), 0.5), _line(corner, (across.start, up.stop), 0.5)]
    parts += [_text(across.at(mark), floor + 14, f"{mark:.3g}", "middle") for mark in across.marks()]
    parts += [_text(across.start - 5, up.at(mark) + 4, f"{mark:.2g}", "end") for mark in up.marks()]
    parts.append(_text((across.start + across.stop) / 2, height - 8, x, "middle"))
    middle = (floor + up.stop) / 2
    parts.append(
        f'<text x="11" y="{middle}" fill="{INK}" font-size="11" text-anchor="middle" '
        f'transform="rotate(-90 11 {middle})">{escape(y)}</text>'
    )
    return parts


def _cell(x: float, y: float, size: int, value: float | None) -> list[str]:
    if value is None:
        return [_rect((x, y), (size - 2, size - 2), INK, 0.06)]
    colour = ORANGE if value >= 0 else BLUE
    return [
        _rect((x, y), (size - 2, size - 2), colour, min(1.0, abs(value)) * 0.85),
        _text(x + size / 2 - 1, y + size / 2 + 4, f"{value:.2f}", "middle"),
    ]


def _bar(bar: Bar, scale: _Scale, y: float, left: int) -> list[str]:
    zero, end = scale.at(0.0), scale.at(bar.value)
    parts = [_text(left - 8, y + 4, bar.label, "end")]
    parts.append(_rect((min(zero, end), y - 6), (abs(end - zero), 12), BLUE, 0.5))
    if bar.low is not None and bar.high is not None:
        parts.append(_line((scale.at(bar.low), y), (scale.at(bar.high), y), 1.0))
    if bar.reference is not None:
        at = scale.at(bar.reference)
        corners = " ".join(f"{at + dx:.1f},{y + dy:.1f}" for dx, dy in ((-5, 0), (0, -5), (5, 0), (0, 5)))
        title = f"<title>paper: {bar.reference:.2f}</title>"
        parts.append(f'<polygon points="{corners}" fill="{ORANGE}">{title}</polygon>')
    return parts


def _line(start: tuple[float, float], end: tuple[float, float], opacity: float) -> str:
    place = f'x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"'
    return f'<line {place} stroke="{INK}" stroke-opacity="{opacity:g}"/>'


def _rect(corner: tuple[float, float], size: tuple[float, float], colour: str, opacity: float) -> str:
    place = f'x="{corner[0]:.1f}" y="{corner[1]:.1f}" width="{size[0]:.1f}" height="{size[1]:.1f}"'
    return f'<rect {place} fill="{colour}" fill-opacity="{opacity:.2f}"/>'


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} font-size="11" style="fill:{INK}">{escape(text)}</text>'


def _svg(title: str, width: int, height: int, parts: Sequence[str]) -> str:
    body = "".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'font-family="system-ui, sans-serif"><title>{escape(title)}</title>{body}</svg>'
    )
