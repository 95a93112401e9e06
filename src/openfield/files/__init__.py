"""Files of users and of the package: how they are read within bounds, and written whole or not at all.

Start with `data`, which reads TOML and the package's own data, and `atomic`, which replaces a file. `arrays` reads NPY,
NPZ and pictures that may be hostile, `csv_files` writes tables that no spreadsheet runs, `webp` writes films,
`database` is the DuckDB session behind tables beyond memory.
"""
