"""Play tests of an OND server, as the protocol's clients do.

Start with `workflow`: it opens sessions, plays their tests and fetches the scores. It asks a `rest_client`, over
HTTP or in this process, and has a player answer: `turn_player` for openfield agents, `step_player` for
agents written for the original client. The latter give their agent the objects in `original_client`, and
keep what it extracts in `saved_features`. `visit` does all of it for a command. `conformance` plays a fixed script for
the tests.
"""
