"""A reader for pickled transition tables that runs nothing in them and refuses everything else.

Start at `reader.read_pickle`. It reads the published form by itself: `source` gives the bytes, and `template_reader`
reads long stretches of entries by `templates`. Pickles of any other form are read by Python's own `Unpickler` with an
allow-list of names: `reader` starts `unpickle` in a process that may take little memory and time.
"""
