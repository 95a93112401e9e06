"""Trials of a configuration: which are chosen, and on which files they are played."""

import pytest

from openfield.domains.birds import DOMAIN
from openfield.domains.birds.files.config import read_meta
from openfield.domains.birds.files.generation import (
    draw_scripts,
    write_config,
)
from openfield.domains.birds.files.pool import LevelPool
from openfield.errors import InvalidInput
from support.birds.configurations import meta


def test_a_level_that_cannot_be_read_is_named_before_anything_is_played(tmp_path):
    levels = tmp_path / "Levels"
    levels.mkdir()
    (levels / "bad.xml").write_text('<Level width="abc"><Bird/><Pig/><Slingshot x="0" y="1"/></Level>')
    (tmp_path / "config.xml").write_text(
        "<evaluation><trials><trial><game_level_set mode='training'><game_levels level_path='Levels/bad.xml'/>"
        "</game_level_set></trial></trials></evaluation>"
    )
    with pytest.raises(InvalidInput, match=r"bad\.xml.*abc"):
        DOMAIN.trials(config=str(tmp_path / "config.xml"), unchanged=0)


def test_so_is_one_that_a_trial_may_draw_from_a_folder(tmp_path):
    name, pool = "novelty_level_0/type010101/Levels/1.xml", LevelPool()
    (tmp_path / name).parent.mkdir(parents=True)
    good = pool.content(pool.names(0, "010101")[0])
    for content, number in ((good, 1), (good.replace(b"BasicSmall", b"BasicSmal"), 2)):
        (tmp_path / name).with_name(f"{number}.xml").write_bytes(content)
    with pytest.raises(InvalidInput, match=r"2\.xml: Unknown pig 'BasicSmal'"):
        DOMAIN.trials(1, levels=str(tmp_path), novelty="colour", scenario="single", before=1, after=1)


def test_a_run_is_gone_on_with_from_the_folder_it_was_started_in(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.xml").write_text(write_config(draw_scripts(read_meta(meta(tmp_path)), LevelPool())))
    trial = DOMAIN.trials(config="config.xml", unchanged=0)[0]
    DOMAIN.world(trial).close()
    monkeypatch.chdir("/")
    with pytest.raises(InvalidInput, match=r"config.xml does not exist.*the folder in which the run was started"):
        DOMAIN.world(trial)


@pytest.mark.parametrize("setting", [{"unchanged": 2}, {"unchanged": "all"}, {"onset": "1-2"}])
def test_a_configuration_has_no_drawn_onset_and_no_twins(tmp_path, setting):
    path = meta(tmp_path)
    with pytest.raises(InvalidInput, match=r"The configuration .* takes neither the setting 'onset' nor 'unchanged'"):
        DOMAIN.trials(config=str(path), **setting)
    assert {trial.window for trial in DOMAIN.trials(config=str(path))} == {None}


def test_some_trials_of_a_configuration_can_be_chosen(tmp_path):
    path = meta(tmp_path, count=3, notify="both")
    (tmp_path / "list.txt").write_text("4\n1\n\n")
    (tmp_path / "beyond.txt").write_text("1\n99\n")

    def chosen(**choice):
        return [trial.id for trial in DOMAIN.trials(config=str(path), **choice, unchanged=0)]

    every = chosen()
    assert len(every) == 6
    assert chosen(trial="2") == every[2:3]
    assert chosen(trial="4-2") == every[2:5], "in whichever order"
    assert chosen(trial="4-77") == every[4:], "as far as there are trials"
    assert chosen(told="informed") == every[1::2]
    assert chosen(told="uninformed", trial="1-3") == every[2:3]
    assert chosen(trial_list=str(tmp_path / "list.txt")) == [every[4], every[1]]
    for choice, reason in (
        ({"trial": "first"}, "a number from 0 on"),
        ({"trial": "1", "told": "uninformed"}, "choose none of the 6 trials"),
        ({"trial_list": str(path)}, "where a trial number is expected"),
        ({"trial_list": "no/list.txt"}, "cannot be read"),
        ({"trial_list": str(tmp_path / "beyond.txt")}, "has trial 99, but the last one is 5"),
        ({"config": "", "trial": "1"}, "Only the trials of a configuration can be chosen"),
    ):
        with pytest.raises(InvalidInput, match=reason):
            DOMAIN.trials(**{"config": str(path), **choice}, unchanged=0)
