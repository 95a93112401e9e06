"""Write results for other programs and for papers.

Start with `rows` (episodes, cells and estimates as CSV, JSON lines or Parquet); `frames` makes the same rows tables of
pandas or polars; `paper` writes tables in Markdown, LaTeX and HTML, `score_table` those of detectors.
"""
