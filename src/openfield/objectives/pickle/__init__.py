"""A reader for published pickles that runs nothing in them: it accepts transition tables and refuses the rest.

Start at `reader.read_pickle`. `opcodes` steps through any pickle of a table, and `template_reader` reads the long
uniform stretches of one much faster. `reader.read_checked` keeps the rows of a large file back until
all of it was checked.
"""
