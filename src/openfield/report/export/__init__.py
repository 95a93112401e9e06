"""Write results for other programs and for papers.

Start with `rows`, which writes episodes, cells and estimates as CSV, JSON lines or Parquet. `paper_table` writes tables
in Markdown, LaTeX and HTML, also those that `score_table` makes of detectors; `paper_figure` draws figures.
"""
