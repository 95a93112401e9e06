"""Drawings of a study as SVG: scatter, heat map, bars with intervals.

Between `study` and its page; every drawing is a file of its own as well, so it carries its colours with it.
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
    """Agents as points, one colour per environment."""
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
    """Correlations as coloured cells: blue below zero, orange above, empty where not defined."""
    cell, left, top = 46, 150, 100
    width, height = left + cell * len(names) + 10, top + cell * len(names) + 10
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
    """Values from `low` to `high` with intervals; a diamond marks what the paper found."""
    width, left, right, line = 460, 150, 20, 26
    height = 30 + line * len(bars)
    scale = _Scale([low, high], left, width - right, tight=True)
    parts = [
        f'<line x1="{scale.at(mark):.1f}" x2="{scale.at(mark):.1f}" y1="6" y2="{height - 22}" stroke="{INK}" '
        f'stroke-opacity="{0.6 if mark == 0 else 0.15}"/>' + _text(scale.at(mark), height - 8, f"{mark:g}", "middle")
        for mark in (low, (low + high) / 2, high)
    ]
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
    parts = [
        f'<line x1="{across.start}" x2="{across.stop}" y1="{floor}" y2="{floor}" stroke="{INK}" stroke-opacity=".5"/>',
        f'<line x1="{across.start}" x2="{across.start}" y1="{floor}" y2="{up.stop}" stroke="{INK}" stroke-opacity=".5"/>',
    ]
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
        return [
            f'<rect x="{x}" y="{y}" width="{size - 2}" height="{size - 2}" fill="none" stroke="{INK}" stroke-opacity=".2"/>'
        ]
    colour = ORANGE if value >= 0 else BLUE
    return [
        f'<rect x="{x}" y="{y}" width="{size - 2}" height="{size - 2}" fill="{colour}" '
        f'fill-opacity="{min(1.0, abs(value)) * 0.85:.2f}"/>',
        _text(x + size / 2 - 1, y + size / 2 + 4, f"{value:.2f}", "middle"),
    ]


def _bar(bar: Bar, scale: _Scale, y: float, left: int) -> list[str]:
    zero, end = scale.at(0.0), scale.at(bar.value)
    parts = [
        _text(left - 8, y + 4, bar.label, "end"),
        f'<rect x="{min(zero, end):.1f}" y="{y - 6}" width="{abs(end - zero):.1f}" height="12" fill="{BLUE}" fill-opacity=".5"/>',
    ]
    if bar.low is not None and bar.high is not None:
        parts.append(
            f'<line x1="{scale.at(bar.low):.1f}" x2="{scale.at(bar.high):.1f}" y1="{y}" y2="{y}" stroke="{INK}" stroke-width="1.5"/>'
        )
    if bar.reference is not None:
        at = scale.at(bar.reference)
        parts.append(
            f'<polygon points="{at - 5:.1f},{y} {at:.1f},{y - 5} {at + 5:.1f},{y} {at:.1f},{y + 5}" fill="{ORANGE}">'
            f"<title>paper: {bar.reference:.2f}</title></polygon>"
        )
    return parts


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{INK}" font-size="11" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(title: str, width: int, height: int, parts: Sequence[str]) -> str:
    body = "".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'font-family="system-ui, sans-serif"><title>{escape(title)}</title>{body}</svg>'
    )
