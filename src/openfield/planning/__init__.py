"""Plan runs by what is to be known: how many trials that takes, and whether enough is known already.

`reach` says what a number of trials can show at best, `sample_size` how many a difference needs. `interim` looks at a
run that stops by itself between two batches. `registering` writes down what a run asks before its first trial.
"""
