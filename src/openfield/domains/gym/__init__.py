"""Any Gymnasium environment as a domain: `gym:CartPole-v1`, `gym:my_env.py:MyEnv`, `of.from_gymnasium(make)`.

Start with `domain`. `family` opens the domain that `gym:TEXT` names, `makers` finds what makes its environments, and
`environment` makes them; `adapter` maps spaces and values. `novelty` lists what can change: changes of one environment
come from `suites`, those that fit any from `generic`, which `transforms` carries out; `blend` has what lies between the
normal and the changed environment. `probe` finds which returns are a performance of 0 and 1, and `agents` says turns in
words.
"""
