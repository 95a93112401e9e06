"""The rules of an evaluation.

Start with `script`, the value of a trial; `harness` plays it by the rules of the original evaluation.
"""
