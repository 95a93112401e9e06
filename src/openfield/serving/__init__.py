"""Serve trials to agents in other programs.

Start with `wire`, which defines the two sides: a wire talks to agents, a dispatcher gives each of them a trial.
`dispatch` has the dispatchers for single trials, `sessions` the one for sessions of many; `assignments` picks the next
trial and `remote` holds the rollout of an agent. `jsonlines` is the wire of domains that bring none; `listen` opens
ports.
"""
