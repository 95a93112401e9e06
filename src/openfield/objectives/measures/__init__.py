"""The measures: numbers computed from one table, from two tables, or from many agents.

`entropy`, `information` and `empowerment` are the objectives of one table: start there. `similarity`, `conditional`
and `rarefaction` compare two tables. `intervals` and `episodes` resample episodes to say how sure a value is, and
`correlations` relates objectives, reward and human similarity over agents.
"""
