"""The measures: numbers computed from one table, from two tables, or from many agents.

`entropy`, `information` and `empowerment` are the objectives of one table: start there. `similarity` and
`rarefaction` compare two tables. `correlations` relates objectives, reward and human similarity over agents.
"""
