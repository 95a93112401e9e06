"""Run agents in processes of their own, where they have only the rights they are given (`openfield run --isolate`).

`openfield.isolation` describes the rights of an agent. Start with `sandbox`, which starts and ends programs
under these rules and watches their resources: inside bubblewrap (`bubblewrap`, `view`) where it works, under a
`supervisor` elsewhere. `agent` is an isolated agent as the harness sees it, `child` is the process behind it, and
`messages` are those that they exchange. `listener` lets programs that speak a wire reach their server.
"""
