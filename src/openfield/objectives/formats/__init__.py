"""Files of transition tables: published pickles and Parquet, of any size.

Start at `load.load_table`, which reads any table file, and `convert.convert`, which writes one as another format.
`large_tables` computes histograms of files that do not fit into memory.
"""
