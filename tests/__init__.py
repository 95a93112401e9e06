"""The tests. This file keeps other packages that are called `tests` from taking their place."""
