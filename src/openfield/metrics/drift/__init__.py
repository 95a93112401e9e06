"""Numbers of worlds that change gradually, again, or several times.

`changes` measures how each change of a trial was met; `alarms` has the measures of drift detectors, for alarms of any
origin.
"""
