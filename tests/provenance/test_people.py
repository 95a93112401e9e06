"""People in a record: named, timed, and counted as persons."""

from pathlib import Path

import openfield as of
from openfield.journal.writer import Journal
from openfield.provenance.people import person_fact
from openfield.result import Result
from support.places import MAZE


def test_intervals_of_people_are_over_persons(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    trials = of.trials(MAZE, count=2, training=0, before=1, after=1, unchanged=0, patience=5)
    of.run(agents={"human": "random"}, trials=trials, journal=path, repeats=3, workers=0)
    assert {group.estimates["after"].n for group in Result([path]).summary().groups} == {2}
    with Journal(path) as journal:
        journal.enter([], {}, {person_fact("human", number): f"p{number}" for number in range(3)})
    result = Result([path])
    (group,) = result.summary().groups
    assert group.estimates["after"].n == 3
    assert "human: 3 people" in group.note
    assert {(cell.repeat, cell.person) for cell in result.cells} == {(0, "p0"), (1, "p1"), (2, "p2")}
    times = result.responses()
    assert {len(times[cell.id]) for cell in result.cells} == {2}
    assert all(seconds is not None and seconds >= 0 for each in times.values() for seconds in each)
