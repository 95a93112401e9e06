"""Every request of the table in every state, over a real socket, by an agent that shares no code with this package."""

import contextlib
import socket
import struct

import pytest

from openfield.domains.birds import DOMAIN
from openfield.journal.reader import Run
from support.birds.legacy_agent import (
    AWAY,
    LIKELIHOOD,
    LOST,
    MENU,
    OVER,
    PICTURE,
    PLAYING,
    RESUME,
    TEST,
    TRAINING,
    TRIAL,
    WON,
    LegacyAgent,
    bounds,
    features,
    go_to,
)
from support.birds.serving import NORMAL, serving, short_server

CONFIG = """<evaluation>
  <novelty_detection_measurement step="{step}" measure_in_training="True" measure_in_testing="True" />
  <trials>
    <trial id="0" number_of_executions="1" checkpoint_time_limit="0" checkpoint_interaction_limit="4"
        notify_novelty="{informed}">
      <game_level_set mode="training" time_limit="3600" total_interaction_limit="6" attempt_limit_per_level="-1"
          allow_level_selection="True">
        <game_levels novelty_level="novelty_level_0" type="type010101" start="0" end="2" />
      </game_level_set>
      <game_level_set mode="test" time_limit="0" total_interaction_limit="0" attempt_limit_per_level="1"
          allow_level_selection="False">
        <game_levels level_path="Levels/novelty_level_1/type010101/Levels/00001_0_1_010101_1_1.xml" />
      </game_level_set>
    </trial>
  </trials>
</evaluation>
"""


@contextlib.contextmanager
def legacy_server(tmp_path, step=0, informed=False, **options):
    (tmp_path / "config.xml").write_text(CONFIG.format(step=step, informed=informed))
    trials = DOMAIN.trials(config=str(tmp_path / "config.xml"), dev=options.pop("dev", False), unchanged=0)
    with serving(tmp_path / "run.sqlite", trials, **options) as port:
        yield port


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    with legacy_server(tmp_path_factory.mktemp("served")) as number:
        yield number


@pytest.fixture(scope="module")
def asking_port(tmp_path_factory):
    with legacy_server(tmp_path_factory.mktemp("asking"), step=2) as number:
        yield number


def reads(agent):
    """All requests that only read, with the layout of their replies."""
    assert agent.byte(2, "I", 100) == 1
    assert agent.byte(2, "I", 0) == 1
    width, height, pixels = agent.picture()
    assert (width, height, len(pixels) + 8) == (640, 480, PICTURE)
    assert agent.picture(71)[:2] == (640, 480)
    count = agent.word(15)
    assert len(agent.scores()) == len(agent.scores(13)) == count
    assert 0 <= agent.word(14) <= count
    assert agent.word(65) >= 0
    assert struct.unpack(">i", agent.ask(b"\x45", 4)) == (-1,), "nobody is told what is novel"
    assert agent.byte(36) in (0, 1)
    assert agent.hint() == {}
    for code in (62, 64):
        features(agent.truth(code))
    for code in (61, 63):
        agent.socket.sendall(bytes((code,)))
        features(agent.read_truth())
        assert agent.read_picture()[:2] == (640, 480)
    assert agent.silent(bytes(7))
    assert agent.silent(b"\xfe\xfd\x03")


def refusals(agent, described=1, truths=0):
    """All requests that do something, where there is no level to do it in; the last level can still be seen."""
    for code in (31, 32, 41, 42):
        assert agent.shoot(100, 300, 900, code) == 0
    assert agent.ask(struct.pack(">BBB6iB6i", 33, 2, 31, *range(6), 32, *range(6)), 2) == bytes(2)
    assert agent.ask(struct.pack(">BBB6i", 43, 1, 31, *range(6)), 1) == bytes(1)
    assert agent.silent(b"\x21\x00"), "no shots, no bytes"
    assert agent.shoot_and_watch(100, 300, 0, 5, 0) == []
    assert len(agent.watch(20000, 1)) == truths
    assert (agent.byte(34), agent.byte(35)) == (0, 0)
    assert agent.byte(52) == 0
    assert agent.describe("nothing to see") == described


@pytest.mark.parametrize("state", [TRIAL, TRAINING, TEST, RESUME, OVER])
def test_between_sets_everything_is_answered_and_nothing_can_be_done(port, state):
    with LegacyAgent(port, team=100 + state, mode=1) as agent:
        assert agent.configured == bytes(3)
        go_to(agent, state)
        assert agent.state() == state
        reads(agent)
        refusals(agent, truths=int(state not in (TRIAL, TRAINING)))
        assert agent.byte(51, "I", 1) == 0
        assert agent.word(53) == 0
        assert agent.report(0.5, 0.5, (-7, 2**31 - 1), 3, "perhäps") == 1
        assert agent.state() == state, "nothing has changed"


def test_in_the_menu_a_level_can_be_loaded(port):
    with LegacyAgent(port, team=1) as agent:
        assert agent.configured == bytes((0, 60, 3)), "round, minutes, levels"
        agent.ready()
        assert agent.ready() == (3600, 6, 3, 0, 0, 1, 0)
        assert agent.state() == MENU
        reads(agent)
        refusals(agent)
        assert agent.ready() == (3600, 6, 3, 0, 0, 1, 0), "accepted at any time"
        for level in (0, 4, 2**32 - 1):
            assert agent.byte(51, "I", level) == 0
        assert agent.state() == MENU
        assert agent.byte(51, "I", 2) == 1
        assert (agent.state(), agent.word(14)) == (PLAYING, 2)


def test_in_a_level(port):
    with LegacyAgent(port, team=2) as agent:
        go_to(agent, PLAYING)
        reads(agent)
        assert agent.ready()[2] == 3
        assert agent.state() == PLAYING, "also when a client is ready once too often"
        assert agent.report(1.0, 0.0) == 1
        assert agent.describe("a pig on a platform") == 1
        wide = bounds(features(agent.truth())[1])
        assert (agent.byte(35), agent.byte(36)) == (1, 1)
        assert bounds(features(agent.truth())[1])[3] != wide[3]
        assert agent.byte(34) == 1
        assert bounds(features(agent.truth())[1]) == wide
        assert len(agent.watch(5, 3)) == 1, "everything rests"
        assert agent.byte(52) == 1, "once more"
        assert agent.byte(51, "I", 3) == 1, "or another one"
        assert agent.word(14) == 3
        frames = agent.shoot_and_watch(-(2**31), 2**31 - 1, 0, 5, 0)
        assert 5 < len(frames) <= 300
        flying = [dots(frame) for frame in frames]
        assert flying[0] <= flying[5] < flying[-1]
        assert agent.state() == LOST
        assert len(agent.scores()) == 3


def dots(truth):
    return sum(len(each["geometry"]["coordinates"]) for each in features(truth) if label(each) == "Trajectory")


def label(feature):
    return feature["properties"]["label"]


@pytest.mark.parametrize("state", [WON, LOST])
def test_after_a_level(port, state):
    with LegacyAgent(port, team=200 + state) as agent:
        go_to(agent, state)
        assert agent.state() == state
        score = agent.word(65)
        assert (score >= 5000) is (state == WON)
        assert agent.scores() == [score, 0, 0]
        reads(agent)
        assert agent.shoot(100, 300) == 0
        assert len(agent.watch(5, 3)) == 1, "nothing moves any more"
        assert agent.watch(5, 0) == []
        assert agent.state() == state
        assert agent.byte(52) == 1
        assert agent.state() == PLAYING
        assert agent.word(65) == 0


def test_a_question_comes_first(asking_port):
    with LegacyAgent(asking_port, team=1) as agent:
        go_to(agent, LIKELIHOOD)
        assert agent.state() == LIKELIHOOD
        reads(agent)
        refusals(agent, described=0, truths=1)
        assert (agent.word(53), agent.byte(51, "I", 1)) == (0, 0)
        assert agent.ready()[2] == 3
        assert agent.state() == LIKELIHOOD, "only a report clears it"
        request = struct.pack(">Bffiiii", 66, 0.25, 0.75, 1, -1006, 1, 0)
        assert agent.ask(request + bytes(4), 1) == b"\x01", "one client sends four zeros too many"
        assert agent.state() == LOST


def test_where_agents_are_told_what_is_novel_nobody_asks_and_there_is_a_hint(tmp_path):
    with legacy_server(tmp_path, step=1, informed=True) as port, LegacyAgent(port, team=1) as agent:
        go_to(agent, PLAYING)
        assert struct.unpack(">i", agent.ask(b"\x45", 4)) == (0,)
        assert agent.hint() == {}
        assert agent.shoot(*AWAY) == 1
        assert agent.state() == LOST, "no question"
        assert agent.word(53) == 1
        agent.shoot(*AWAY)
        assert agent.ready() == (0, 0, 1, 1, 1, 0, 1)
        assert (agent.state(), agent.word(14), agent.word(65)) == (MENU, 0, 0)
        assert features(agent.truth()) == [], "the level of the set before is no longer to be seen"
        assert agent.word(53) == 1
        assert struct.unpack(">i", agent.ask(b"\x45", 4)) == (1,)
        assert agent.hint(3) == {
            "level": 3,
            "hint": "objects: pigs and some blocks get a colour never seen; nothing else changes",
        }


def test_requests_come_in_pieces_and_in_heaps(port):
    with LegacyAgent(port, team=3) as agent:
        for byte in struct.pack(">BI", 2, 50):
            agent.socket.sendall(bytes((byte,)))
        assert agent.exactly(1) == b"\x01"
        agent.socket.sendall(b"\x0c\x44\x0c\x44\x0c\x35\x0c")
        data = agent.exactly(1 + 19 + 1 + 19 + 1 + 4 + 1)
        assert (data[0], data[20], data[40], data[45]) == (TRIAL, TRAINING, MENU, PLAYING)


def test_the_older_client_watches_with_five_numbers(tmp_path):
    with legacy_server(tmp_path, gtshoot_ints=5) as port, LegacyAgent(port, team=1) as agent:
        go_to(agent, PLAYING)
        assert len(agent.shoot_and_watch(*AWAY, 0, 10)) > 5
        assert agent.state() == LOST


def test_the_last_shot_of_a_trial_counts_too_and_its_frames_come(tmp_path):
    with legacy_server(tmp_path) as port:
        with LegacyAgent(port, team=1) as agent:
            go_to(agent, RESUME)
            agent.ready()
            assert agent.word(53) == 2
            assert agent.shoot(*AWAY) == 1
            assert agent.state() == TEST, "the final test, although the checkpoint took the only set"
            agent.ready()
            assert agent.word(53) == 1
            assert len(agent.shoot_and_watch(*AWAY, 0, 5, 1)) > 5
            assert agent.state() == OVER
        with LegacyAgent(port, team=1) as agent:
            assert agent.state() == OVER, "also over another connection"
    with legacy_server(tmp_path) as port, LegacyAgent(port, team=1) as agent:
        assert agent.configured == bytes(3)
        assert agent.state() == OVER, "also when the server was started again"
        reads(agent)
    with Run(tmp_path / "run.sqlite") as run:
        (cell,) = run.cells()
    assert (cell.outcome, [episode.detail["status"] for episode in cell.episodes]) == ("done", ["Fail"] * 5)


def test_the_last_level_is_there_to_be_seen_until_the_next_trial_is_begun(tmp_path):
    with short_server(tmp_path, NORMAL.format(last=0), executions=2) as port, LegacyAgent(port, team=1) as agent:
        for state in (TRIAL, OVER):
            go_to(agent, WON)
            assert (agent.state(), agent.word(65) >= 5000) == (state, True)
            assert label(features(agent.truth())[1]) == "Slingshot"
        assert agent.word(65) >= 5000, "also when all is over"


def test_a_shot_watched_to_its_first_contact_leaves_the_game_paused(tmp_path):
    (tmp_path / "Levels").mkdir()
    (tmp_path / "Levels" / "1.xml").write_text(
        '<Level width="2"><Camera x="0" y="-1" minWidth="20" maxWidth="35"/><Birds><Bird type="BirdRed"/>'
        '<Bird type="BirdRed"/></Birds><Slingshot x="-12" y="-2.5"/>'
        '<GameObjects><Pig type="BasicSmall" x="9" y="-3.3"/></GameObjects></Level>'
    )
    with short_server(tmp_path, "level_path='Levels/1.xml'") as port, LegacyAgent(port, team=1) as agent:
        go_to(agent, PLAYING)
        frames = agent.shoot_and_watch(0, 300, 0, 5, 1)
        (seen, later) = agent.truth(), agent.truth()
        assert len(features(seen)) == len(features(later)) == len(features(frames[-1])), "the bird still lies there"
        assert agent.state() == PLAYING
        assert agent.shoot(*AWAY) == 1
        assert agent.state() in (OVER, LOST)


def test_two_connections_of_a_team_at_once_play_one_trial(tmp_path):
    trials = DOMAIN.trials(3, before=1, after=1, unchanged=0)
    with serving(tmp_path / "run.sqlite", trials) as port:
        sockets = [socket.create_connection(("127.0.0.1", port), 120) for _ in range(4)]
        for one in sockets:
            one.sendall(struct.pack(">BIB", 1, 9, 0))
        with contextlib.suppress(OSError):
            for one in sockets:
                one.recv(3)
        for one in sockets:
            one.close()
        with LegacyAgent(port, team=9) as agent:
            assert agent.state() == TRIAL
    with Run(tmp_path / "run.sqlite") as run:
        assert [cell.outcome for cell in run.cells()] == ["cancelled", None, None]


def test_the_level_an_agent_left_after_it_ended_is_booked_when_the_server_ends(tmp_path):
    with legacy_server(tmp_path) as port, LegacyAgent(port, team=1) as agent:
        go_to(agent, LOST)
        assert agent.report(0.6, 0.4) == 1
    with Run(tmp_path / "run.sqlite") as run:
        (cell,) = run.cells()
    assert (cell.outcome, [episode.detail["status"] for episode in cell.episodes]) == ("cancelled", ["Fail"])
    assert cell.episodes[0].belief.novel == 0.6
    with legacy_server(tmp_path) as port, LegacyAgent(port, team=1) as agent:
        assert agent.state() == LOST


def test_agents_that_never_say_who_they_are_have_games_of_their_own(tmp_path):
    with legacy_server(tmp_path, agent="nobody") as port:
        with LegacyAgent(port) as one, LegacyAgent(port) as other, LegacyAgent(port, team=7):
            go_to(one, PLAYING)
            assert (other.state(), one.state()) == (TRIAL, PLAYING)
        with LegacyAgent(port) as again:
            assert again.state() == PLAYING, "the first of them goes on where it was"
    with Run(tmp_path / "run.sqlite") as run:
        assert {cell.agent for cell in run.cells()} == {"nobody", "nobody.2", "nobody-7"}


def test_ground_truth_is_typed_as_the_java_client_casts_it(tmp_path):
    with legacy_server(tmp_path, dev=True) as port, LegacyAgent(port, team=1) as agent:
        go_to(agent, PLAYING)
        found = features(agent.truth())
        assert [label(each) for each in found[:2]] == ["Ground", "Slingshot"]
        assert found[0]["geometry"] == {}
        assert type(found[0]["properties"]["yindex"]) is int
        assert {label(each) for each in found[2:]} == {"pig_basic_small_1", "bird_red_1", "Platform"}
        for each in found[1:]:
            assert -(2**31) <= int(each["properties"]["id"]) < 2**31
            assert all(type(number) is int for point in each["geometry"]["coordinates"][0] for number in point)
            for colour in each["properties"]["colormap"]:
                assert (type(colour["color"]), type(colour["percent"])) == (int, float)
        assert [type(each["properties"]["currentLife"]) for each in found[2:]] == [float] * len(found[2:])


def test_observers_are_answered_before_anybody_plays_and_see_who_came_last(tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
    with legacy_server(tmp_path, observer_port=free) as port, LegacyAgent(free, team=4) as observer:
        assert observer.configured == bytes(3)
        assert features(observer.truth()) == []
        assert observer.picture()[:2] == (640, 480)
        with LegacyAgent(port, team=9) as agent:
            go_to(agent, PLAYING)
            assert features(observer.truth()) == features(agent.truth())
            observer.socket.sendall(b"\x0c\x35\x44\x48" + bytes(4))  # not for observers: nothing is said or done
            assert observer.truth() == agent.truth()
            assert agent.state() == PLAYING
