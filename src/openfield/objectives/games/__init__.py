"""Studies on live games: small agents live equally long in environments of Gymnasium, and are then compared.

Start at `game_study.run_games`. `plan` reads the file of a study, `learners` has the agents, and `life_file` plays one
life and keeps it, so that a study that was stopped goes on.
"""
