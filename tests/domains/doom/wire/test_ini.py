"""The INI files of the old family."""

from __future__ import annotations

from pathlib import Path

import pytest

from openfield.domains.doom.settings import DoomSettings
from openfield.domains.doom.trials import compose
from openfield.domains.doom.wire.amqp import AmqpWire, redirect
from openfield.domains.doom.wire.experiments import domain_of, list_groups, make_experiment_trials, without_reply_limits
from openfield.domains.doom.wire.ini import ServerConfig, read_client, read_server, write_client
from openfield.errors import InvalidInput, UnknownName

CLIENT = """
[aiq-sail-on]
experiment_type = SAIL-ON
organization = field
model_name = walker
username = ada
secret = s3cret
[sail-on]
domain = vizdoom
[amqp]
user = fie:ld
pass = p/w
host = broker.example
vhost = /demo
port = 5673
ssl = False
"""
SERVER = """
[amqp]
user = u
pass = p
host = localhost
vhost = /
port = 5672
[sail-on]
trials = 1
novelty = 200,201,202,203,204,205,206,207,208
difficulty = easy,medium,hard
novelty_visibility = 0,1
hint_level = -1,0,1,2,3
testing_novelty_p2 = 1.0
[vizdoom]
training_episodes = 4
testing_episodes = 20
pre_novel_episodes = 5
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "file.config"
    path.write_text(text)
    return path


def test_client(tmp_path: Path) -> None:
    config = read_client(written(tmp_path, CLIENT))
    assert config.amqp == "amqp://fie%3Ald:p%2Fw@broker.example:5673/demo"
    assert (config.model_name, config.experiment_secret, config.no_testing) == ("walker", None, False)


def test_client_gets_another_address(tmp_path: Path) -> None:
    path = written(tmp_path, CLIENT)
    changes: dict[str, dict[str, str | None]] = {
        "amqp": {"host": "127.0.0.1", "vhost": "/"},
        "sail-on": {"experiment_secret": "abc", "just_one_trial": "True"},
    }
    write_client(path, tmp_path / "copy", changes)
    config = read_client(tmp_path / "copy")
    assert config.amqp == "amqp://fie%3Ald:p%2Fw@127.0.0.1:5673/"
    assert (config.experiment_secret, config.just_one_trial) == ("abc", True)


def test_one_trial_needs_a_secret(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="experiment_secret"):
        read_client(written(tmp_path, CLIENT.replace("domain = vizdoom", "just_one_trial = True")))


@pytest.mark.parametrize(
    "text",
    [
        "no section",
        *(
            f"[sail-on]\n{line}"
            for line in (
                "trials = many",
                "trials = 0",
                "novelty =",
                "difficulty = brutal",
                "novelty_visibility = 0,5",
                "hint_level = 7",
                "normal_timeout_seconds = 0",
                "testing_novelty_p2 = 1.5",
                "phase = 9",
            )
        ),
        "[vizdoom]\ntesting_episodes = 0",
        "[amqp]\nhost = broker\nport = abc",
        "[amqp]\nhost =",
    ],
)
def test_mistakes_name_the_file(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidInput, match=r"file\.config"):
        read_server(written(tmp_path, text))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "difficulty = easy,brutal",
            r"difficulty cannot be 'easy,brutal'\. Allowed: list of easy \| hard \| medium\.$",
        ),
        ("hint_level = 7", r"hint_level cannot be '7'\. Allowed: list of integer >= -1 <= 3\.$"),
        ("trials = many", r"trials cannot be 'many'\. Allowed: integer >= 1\.$"),
    ],
)
def test_mistakes_say_what_would_be_right(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        read_server(written(tmp_path, f"[sail-on]\n{line}"))


def test_a_key_nobody_knows_is_mentioned(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="'trails' is not a key"):
        assert read_server(written(tmp_path, SERVER.replace("trials", "trails"))).trials == 30


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("[vizdom]\nlive = True", "'vizdom' is not a section"),
        ("[options]\nlogfile = log.txt", "there is no log file"),
        ("[options]\nsave_experiment_json = True", "experiments are not saved as JSON"),
        ("[options]\ntesting = 1", "testing is 1, but there is no such mode"),
        ("[amqp]\nhost = h\npasword = x", "'pasword' is not a key of"),
    ],
)
def test_what_would_have_an_effect_elsewhere_is_mentioned(tmp_path: Path, line: str, said: str) -> None:
    with pytest.warns(UserWarning, match=said):
        read_server(written(tmp_path, line))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("[sail-on]\ntraining_novelty_p1 = 1.2", "training_novelty_p1"),
        ("[options]\nload_experiment_json = True", "load_experiment_json is True; experiments cannot be loaded"),
        ("[options]\nshortdemo = maybe", "shortdemo is 'maybe', neither true nor false"),
        ("[options]\ndemo = ture", "demo is 'ture', neither true nor false"),
        ("[amqp]\nhost = h\nssl = perhaps", "ssl is 'perhaps'"),
        ("[sail-on]\nnovelty = 201,202,201", "novelty names something twice"),
        ("[sail-on]\nnormal_timeout_seconds = inf", "normal_timeout_seconds"),
        ("[sail-on]\nnormal_timeout_seconds = nan", "normal_timeout_seconds"),
        ("[sail-on]\ntraining_timeout_multiplier = inf", "training_timeout_multiplier"),
    ],
)
def test_what_would_make_another_experiment_is_refused(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        read_server(written(tmp_path, line))


def test_every_published_key_is_known(tmp_path: Path) -> None:
    """At values that ask for nothing that is not there, nothing is said."""
    text = """
        [amqp]\nuser = u\npass = p\nhost = h\nport = 5672\nvhost = /\nssl = False
        [postgresql]\nuser = u\npass = p\nhost = h\nport = 5432\ndatabase = d
        [sota]\nusername = u\nsecret = s
        [sail-on]\ntrials = 2\nnovelty = [200, 201]\ndifficulty = easy,hard\nnovelty_visibility = 0,1
        hint_level = -1,3\nnormal_timeout_seconds = 60\ntraining_timeout_multiplier = 5\ntraining_novelty_p1 = 0.2
        testing_novelty_p2 = 0.5\nphase = 4a\nrandom_sleep_seconds = 3
        [vizdoom]\ntraining_episodes = 1\ntesting_episodes = 4\npre_novel_episodes = 2\nlive = True
        use_image = True\nbudget = 0.5
        [cartpole]\ntraining_episodes = 9
        [smartenv]\ntraining_episodes = 9
        [options]\ndebug = True\nfulldebug = False\nprintout = True\nlogfile =\ntesting = False\ndemo = False
        shortdemo = yes\nsave_experiment_json = False\nload_experiment_json = False\nexperiment_json_file = x.json
        startup_sleep_window = 5
    """
    lines = "\n".join(line.strip() for line in text.splitlines())
    config = read_server(written(tmp_path, lines))
    assert (config.trials, config.novelty, config.difficulty) == (2, (200, 201), ("easy", "hard"))
    assert (config.novelty_visibility, config.hint_level, config.phase) == ((0, 1), (-1, 3), "4a")
    assert (config.training_episodes, config.testing_episodes, config.pre_novel_episodes) == (1, 4, 2)
    assert (config.normal_timeout_seconds, config.training_timeout_multiplier) == (60, 5)
    assert (config.training_novelty_p1, config.testing_novelty_p2, config.shortdemo) == (0.2, 0.5, True)
    assert config.use_image
    assert make_experiment_trials(config, 0)[-1].settings["use_image"]


def test_a_client_of_another_domain_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="domain"):
        read_client(written(tmp_path, CLIENT.replace("vizdoom", "cartpole")))
    with pytest.warns(UserWarning, match="'modelname' is not a key"):
        read_client(written(tmp_path, CLIENT.replace("username", "modelname")))


def test_empty_values_are_as_if_not_there(tmp_path: Path) -> None:
    assert read_client(written(tmp_path, CLIENT.replace("username = ada", "seed =\ndescription ="))).seed is None


def test_server_makes_as_many_trials_as_published(tmp_path: Path) -> None:
    config = read_server(written(tmp_path, SERVER))
    trials = make_experiment_trials(config, seed=1)
    assert len(trials) - 1 == len(list(list_groups(config))) == 27 + 123
    assert len({trial.id for trial in trials}) == len(trials)
    training, *tests = trials
    assert training.phases[0].name == "training"
    assert all(trial.after == training.id for trial in tests)
    assert {sum(phase.episodes for phase in trial.phases) for trial in tests} == {20}
    assert {trial.phases[0].episodes for trial in tests if trial.novelty} == {5}


def test_hints_come_only_with_announced_novelties(tmp_path: Path) -> None:
    config = read_server(written(tmp_path, SERVER))
    assert all(group.hint == -1 for group in list_groups(config) if group.visibility == 0 or group.novelty == 200)


def test_the_first_phase_is_the_duel() -> None:
    assert domain_of(ServerConfig(phase="1")).name == "doom"
    assert domain_of(ServerConfig(novelty=(50, 51))).name == "doom-arena"
    assert domain_of(ServerConfig()).name == "doom-arena"


def test_unknown_novelties_and_difficulties_are_named() -> None:
    with pytest.raises(UnknownName, match="999"):
        make_experiment_trials(ServerConfig(novelty=(999,), trials=1), 0)
    with pytest.raises(InvalidInput, match="brutal"):
        make_experiment_trials(ServerConfig(difficulty=("brutal",), trials=1), 0)  # type: ignore[arg-type]


def test_a_server_names_the_file_with_an_unknown_novelty(tmp_path: Path) -> None:
    path = written(tmp_path, "[sail-on]\nnovelty = 51,999\n")
    with pytest.raises(InvalidInput, match=r"file\.config: Unknown novelty '999"):
        AmqpWire(config=str(path))


def test_unhurried_trials_still_come_after_their_training() -> None:
    slow = without_reply_limits(make_experiment_trials(ServerConfig(trials=1, hint_level=(-1,)), 3))
    assert {trial.after for trial in slow[1:]} == {slow[0].id}
    assert all(trial.limits.reply_seconds is None for trial in slow)


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_seeds_the_engine_does_not_take_are_refused(seed: int) -> None:
    with pytest.raises(InvalidInput, match="episode_seed"):
        make_experiment_trials(ServerConfig(trials=1), 0, seed)
    assert make_experiment_trials(ServerConfig(trials=1), 0, 2**32 - 1)


@pytest.mark.parametrize(("share", "novel"), [(0.0, 0), (0.3, 1), (1.0, 2)])
def test_a_trial_that_is_to_change_does_however_short_it_is(share: float, novel: int) -> None:
    phases = compose(DoomSettings(episodes=3, before=1, share=share), ("moving:easy",), 0)
    assert sum(phase.episodes for phase in phases) == 3
    assert sum(phase.episodes for phase in phases if phase.novelty) == novel


@pytest.mark.parametrize(
    ("url", "joined"),
    [
        ("amqp://h", "amqp://guest:guest@h:5672/"),
        ("amqp://a:b@h:1/%2F", "amqp://a:b@h:1/"),
        ("amqp://a:b@h:1/%2f", "amqp://a:b@h:1/"),
        ("amqp://a:b@h:1/my%20host", "amqp://a:b@h:1/my%20host"),
        ("amqp://a%40:b%2F%25@h/demo", "amqp://a%40:b%2F%25@h:5672/demo"),
        ("amqps://a:b@h/", "amqps://a:b@h:5671/"),
        ("amqp://a:b@[::1]:1/", "amqp://a:b@[::1]:1/"),
    ],
)
def test_a_program_is_led_to_where_the_broker_is(tmp_path: Path, url: str, joined: str) -> None:
    (tmp_path / "copy").mkdir()
    own = tmp_path / "client.ini"
    own.write_text("[aiq-sail-on]\nmodel_name = old\n[amqp]\nhost = elsewhere\n")
    *_, word = redirect(url, ["TA2.py", "--config", str(own)], tmp_path / "copy", None)
    assert read_client(Path(word)).amqp == joined
