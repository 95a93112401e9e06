"""Play in the browser: a person takes the place of an agent, alone or as one of many in a study.

`people_study` says who plays what and keeps their trials, `open_trial` is one of these trials, `play_session` leads a
person through it over a WebSocket, and `person_visit` through all of their study. `messages` are what a browser may
send; `play_server` has the pages. What a domain shows, and what an act means, is its own:
`openfield.capabilities.HasPlayPage`.
"""
