"""The commands that look at results, one file each, named like it; `cli/app.py` lists them."""
