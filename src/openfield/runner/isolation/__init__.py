"""Run agents in processes of their own, where they see and use only what they may (`openfield run --isolate`).

`openfield.isolation` says what an agent may see and use. Start with `sandbox`, which starts and ends programs
under these rules and watches what they use: inside bubblewrap (`bubblewrap`, `view`) where it works, under a
`supervisor` elsewhere. `agent` is an isolated agent as the harness sees it, `child` is the process behind it, and
`messages` is what they exchange. `listener` lets programs that speak a wire reach their server.
"""
