"""Start, watch and end child processes: the one place for it, whatever the children do.

`child` starts a process that runs a function of ours, `program` one that is a program or a module, and both end with
all they started. They speak over a `channel`, whose messages are bytes: each user has its own types of messages.
`forks` finds the forks of a process that runs agents. Start with `child`.
"""
