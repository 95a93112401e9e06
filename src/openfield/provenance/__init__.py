"""Where a run comes from, beside what it recorded: whose code played it, by which rules, and at what cost.

Start with `provenance`, which says how a run was made. `versions` identifies versions of code, and `trust` decides
which code named in a run file may run. `rules` keeps what readers need of domains, `usage` counts what language models
used up, and `people` names the persons of a study. All of it is kept in facts and steps of the journal, which knows
nothing of it.
"""
