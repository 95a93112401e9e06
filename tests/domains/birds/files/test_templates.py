"""Levels drawn from templates."""

from openfield.domains.birds.files.templates import make_pair, write_pool
from openfield.domains.birds.game.level import parse_level


def test_the_generator_gives_the_same_pair_for_a_number_and_others_for_others(tmp_path):
    first = make_pair("010101", 900)
    assert make_pair("010101", 900) == first != make_pair("010101", 901)
    files = list(write_pool(tmp_path, 1, seed=5, types=("010105",)))
    assert [path.relative_to(tmp_path).as_posix() for path in files] == [
        "novelty_level_0/type010105/Levels/00001_0_5_010105_0_5.xml",
        "novelty_level_1/type010105/Levels/00001_0_5_010105_1_5.xml",
    ]
    assert parse_level(files[0].read_bytes()).birds == ("BirdRed",)
