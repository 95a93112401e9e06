"""What people see of a run: tables on a terminal, a page, an export, a film.

Start with `page.py`, which writes the report page; `terminal.py` prints the same numbers. `analysis.py` and `figures/`
return what pages show as data, `drawing.py` turns it into SVG, and `render.py` with `templates/` into HTML. The viewer
renders the same templates. Pages and the terminal share the words of `words.py`, the sentences of `findings.py` and the
table of all agents in `matrix.py`. `export/` writes data, tables and figures, `film.py` films.
"""

from typing import TYPE_CHECKING

from openfield.lazy import attach

if TYPE_CHECKING:
    from openfield.report.export.rows import write_rows
    from openfield.report.film import write_film
    from openfield.report.page import render_page, write_page
    from openfield.report.terminal import render_summary

__all__ = [
    "render_page",
    "render_summary",
    "write_film",
    "write_page",
    "write_rows",
]

__getattr__, __dir__ = attach(__name__)
