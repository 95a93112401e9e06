"""Play in the browser: a person takes the place of an agent, alone or as one of many in a study.

`play_server` has the pages and leads a person through all of it over a WebSocket. `people_study` says who plays what.
The worlds of each person run in a process of their own: `play_process` is what the server sees of it,
`play_worker` what happens there, `open_trial` one trial and `play_session` how it is played. `messages` are what a
browser may send. What a domain shows, and what an act means, is its own:
`openfield.capabilities.HasPlayPage`.
"""
