"""The rules of an evaluation, and the tables that are written from its record.

Start with `script`, the value of a trial; `harness` applies its rules, and `exports` writes the original logs and the
published measures.
"""
