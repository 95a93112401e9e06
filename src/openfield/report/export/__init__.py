"""Write results for other programs and for papers.

Start with `rows` (episodes, cells and estimates as CSV, JSON lines or Parquet); `paper` writes Markdown and LaTeX.
"""
