"""Files of transition tables: published pickles and Parquet, of any size.

Start at `load.load_table`, which reads any table file, and `convert.convert_table`, which writes one as another format.
`shards` counts files that do not fit into memory, here or on a cluster, and `large_tables` compares them.
"""
