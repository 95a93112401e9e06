"""Any Gymnasium environment as a domain: `gym:CartPole-v1`, `gym:my_env.py:MyEnv`, `of.from_gymnasium(make)`.

Begin with `domain`. `family` opens the one that `gym:TEXT` names, `environment` makes environments, `adapter` maps
spaces and values, `novelty` holds what can change, `effects` carries out the changes that fit any environment, `probe`
finds which returns are a performance of 0 and 1, `agents` says turns in words.
"""
