"""The protocol in process: batches, beliefs, budgets, red light, resume, novelties that take effect."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import openfield as of
from openfield.cli import run_command
from openfield.core import Ask, Belief, Reply
from openfield.domains.ond import DOMAIN
from openfield.domains.ond.actions import Buy, Clusters, NextBatch, Scores, read_action
from openfield.domains.ond.settings import OndSettings
from openfield.domains.ond.testset.agent_answers import AgentAnswers
from openfield.domains.ond.testset.builder import write_tests, write_trials
from openfield.domains.ond.testset.data_directory import DataDirectory
from openfield.domains.ond.testset.results import ResultTable
from openfield.domains.ond.testset.samples import (
    Samples,
    alter_images,
    draw_glyphs,
    load_digits,
    make_samples,
    read_folder,
)
from openfield.errors import AgentProtocol, InvalidInput
from openfield.journal.replay import resume_rollout
from openfield.journal.verification import EpisodeCollector
from openfield.metrics.concordance import estimate_concordance
from openfield.metrics.detection import measure_detection
from openfield.metrics.programme import make_facts, measure_programme
from openfield.rollout import Rollout
from support.ond.protocol import TEST, write_test

SMALL = {"training": 60, "round_size": 10, "before": 2, "after": 3}


def world(novelty: str = "classes", red_light: bool = False, **settings):
    (trial,) = DOMAIN.trials(1, 3, novelty, red_light, **SMALL | settings, unchanged=0)
    return DOMAIN.world(trial)


def perfect(test, at: range) -> list[list[float]]:
    return np.eye(test.known + 1)[test.labels[at.start : at.stop]].tolist()


def play(w, belief: float = 0.2) -> list[float | None]:
    """Answers every batch rightly; returns the performance of each."""
    w.reset()
    turn, found = w.step(Reply()), []
    while True:
        number = turn.observation["round"]
        w.step(Reply(Scores(perfect(w.test, w.test.span(number))), Belief(belief)))
        turn = w.step(Reply(NextBatch()))
        assert turn.ask is Ask.NONE
        found.append(w.truth.performance)
        if w.over:
            return found
        turn = w.step(Reply())


def test_a_batch_is_answered_then_labels_are_bought_then_it_goes_on() -> None:
    w = world()
    ready = w.reset()
    assert ready.ask is Ask.READY
    assert set(np.unique(ready.observation["labels"])) <= set(range(1, 7))
    turn = w.step(Reply())
    assert len(turn.observation["ids"]) == 10
    assert turn.observation["images"].shape == (10, 8, 8)
    w.step(Reply(Scores(perfect(w.test, range(10))), Belief((0.1,) * 10)))
    bought = w.step(Reply(Buy("classification", turn.observation["ids"][:2]))).feedback
    assert [line.rpartition(",")[2] for line in bought["lines"]] == [str(label) for label in w.test.labels[:2]]
    again = w.step(Reply(Buy("classification")))
    assert len(again.feedback["lines"]) == 3
    assert w.step(Reply(Buy("classification"))).feedback["refused"] == "FeedbackBudgetExceeded"
    w.step(Reply(NextBatch()))
    assert w.truth.performance == 1.0
    assert w.truth.detail["rank"] == [0] * 10


def test_right_answers_are_perfect_and_round_scores_are_told_if_granted() -> None:
    assert play(world()) == [1.0] * 5
    w = world(scores=True)
    w.reset()
    w.step(Reply())
    told = w.step(Reply(Scores(perfect(w.test, range(10))))).feedback
    assert told == {"top1": 1.0, "top3": 1.0}


def test_the_red_light_is_given_only_where_the_trial_grants_it() -> None:
    dark, lit = world(), world(red_light=True)
    assert "red_light" not in dark.reset().observation["metadata"]
    assert lit.reset().observation["metadata"]["red_light"] == lit.test.ids[20]
    lights = []
    turn = lit.step(Reply())
    for number in range(5):
        lights.append(turn.red_light)
        lit.step(Reply(Scores(perfect(lit.test, lit.test.span(number)))))
        lit.step(Reply(NextBatch()))
        turn = lit.step(Reply()) if number < 4 else turn
    assert lights == [False, False, True, True, True]
    assert dark.step(Reply()).red_light is None


@pytest.mark.parametrize(
    "action",
    [
        Scores([[0.5] * 7] * 9),
        Scores([[0.5] * 7] * 9 + [[0.5] * 6]),
        Scores([[1.5] * 7] * 10),
        Scores([[float("nan")] * 7] * 10),
        NextBatch(),
        {"do": "dance"},
        "shoot",
    ],
)
def test_what_is_no_answer_is_the_agents_fault(action) -> None:
    w = world()
    w.reset()
    w.step(Reply())
    with pytest.raises(AgentProtocol):
        w.step(Reply(action))


def test_beliefs_must_be_probabilities_for_each_sample() -> None:
    for belief in (Belief((0.1,) * 3), Belief(1.5), Belief((2.0,) * 10)):
        w = world()
        w.reset()
        w.step(Reply())
        with pytest.raises(AgentProtocol):
            w.step(Reply(Scores(perfect(w.test, range(10))), belief))


@pytest.mark.parametrize("novelty", [one.id for one in DOMAIN.novelties if one.name not in ("classes", "recorded")])
def test_attribute_novelties_change_novel_samples_and_nothing_else(
    novelty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openfield.domains.ond.testset.builder.alter_images", lambda images, _: images)
    changed, normal = world(novelty), world("none")
    new = changed.test.novel
    assert new[:20].sum() == 0
    assert new[20]
    assert not normal.test.novel.any()
    assert (changed.test.labels > 0).all()
    if novelty == "prior":
        counts = np.bincount(changed.test.labels[new], minlength=7)
        assert counts.max() > 0.6 * counts.sum()
    else:
        same = {image.tobytes() for image in load_digits().images}
        inside = np.array([image.tobytes() in same for image in changed.test.images])
        assert inside[~new].all()
        assert not inside[new].any()


def test_glyphs_are_seeded_and_drawn_as_often_as_needed() -> None:
    pytest.importorskip("PIL")
    first, again, other = (world(data="glyphs", known=8, unknown=5).test.images for _ in range(3))
    assert (first == again).all()
    assert (again == other).all()
    assert first.shape == (50, 16, 16)


@pytest.mark.parametrize(("columns", "protocol"), [(6, "OND"), (8, "OND"), (6, "CONDDA")])
def test_scores_have_a_column_for_every_known_class_and_the_unknown(columns: int, protocol: str) -> None:
    w = world("classes", protocol=protocol)
    w.reset()
    w.step(Reply())
    with pytest.raises(AgentProtocol, match=f"7 values.*not {columns}"):
        w.step(Reply(Scores([[0.1] * columns] * 10)))


def test_characterisation_clusters_are_scored_at_the_end() -> None:
    w = world("classes", protocol="OND")
    w.reset()
    for number in range(5):
        w.step(Reply())
        w.step(Reply(Scores(perfect(w.test, w.test.span(number)))))
        if number == 4:
            classes = [int(row[3]) % 10 for row in w.test.rows]
            w.step(Reply(Clusters(np.eye(10)[classes].tolist())))
        w.step(Reply(NextBatch()))
    assert "cluster" in w.truth.detail


def test_condda_batches_are_clusters(tmp_path: Path) -> None:
    def agent(turn: of.Turn) -> of.Reply:
        if turn.ask is Ask.ACT and not turn.observation.get("answered"):
            return of.Reply(Scores([[1.0] + [0.0] * 10] * len(turn.observation["ids"])), Belief(0.0))
        return of.Reply(NextBatch()) if turn.ask is Ask.ACT else of.Reply()

    trials = DOMAIN.trials(1, protocol="CONDDA", **SMALL, unchanged=0)
    result = of.run({"flat": agent}, trials, tmp_path / "c.sqlite", workers=0)
    assert result.cells[0].outcome == "done"
    assert "cluster" in result.cells[0].episodes[-1].detail


def test_a_recorded_test_replays_to_the_same_turns(tmp_path: Path) -> None:
    trials = DOMAIN.trials(1, **SMALL, unchanged=0)
    result = of.run(["random"], trials, tmp_path / "r.sqlite", workers=0)
    from openfield.journal.reader import Run

    with Run(tmp_path / "r.sqlite") as run:
        past = list(run.raw_steps(result.cells[0].id, 1))
    assert resume_rollout(DOMAIN.world(trials[0]), past).over


def test_actions_survive_a_journal() -> None:
    for action in (Scores([[0.5]]), Buy("score", ["a"]), NextBatch(), Clusters([[1.0]])):
        plain = msgspec.msgpack.decode(msgspec.msgpack.encode(action))
        from openfield.domains.ond.actions import read_action

        assert read_action(plain) == action


def test_actions_are_counted_by_kind_and_by_what_they_call_unknown() -> None:
    sure, unsure = Scores([[0.1, 0.9]] * 4), Scores([[0.8, 0.2]] * 2 + [[0.1, 0.9]] * 2)
    assert DOMAIN.encode_action(sure) == ("scores", 0)
    assert DOMAIN.encode_action(msgspec.to_builtins(unsure)) == ("scores", 2)
    assert DOMAIN.encode_action(Buy("score", ["a"])) == DOMAIN.encode_action(Buy()) == ("buy", 0)


def test_users_bring_arrays_folders_and_directories(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2, -1], 60)
    np.savez(tmp_path / "mine.npz", features=rng.normal(size=(240, 5)), labels=labels)
    own = {"data": str(tmp_path / "mine.npz"), "known": 3, "unknown": 1}
    assert play(world(**own)) == [1.0] * 5
    from PIL import Image

    for name in ("cat", "dog", "emu"):
        (tmp_path / "folder" / name).mkdir(parents=True)
        for number in range(40):
            pixels = rng.integers(0, 255, (20, 20), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "folder" / name / f"{number}.png")
    assert read_folder(tmp_path / "folder").images.shape == (120, 20, 20)
    folder = {"data": str(tmp_path / "folder"), "known": 2, "unknown": 1, "training": 20, "round_size": 5}
    assert play(world(**folder)) == [1.0] * 5
    settings = OndSettings(training=50, round_size=10, before=1, after=2)
    names = write_tests(tmp_path / "dir", settings, msgspec.structs.replace(settings, new_classes=True), [1, 2])
    (trial,) = DOMAIN.trials(data=str(tmp_path / "dir"), test=names[0], unchanged=0)
    assert DOMAIN.world(trial).test.images.shape == (30, 8, 8)
    sheet = tmp_path / f"dir/OND/image_classification/{names[1]}_single_df.csv"
    sheet.write_text(sheet.read_text() + "extra,0,1\n")
    with pytest.raises(InvalidInput, match=r"no file or folder .*nothing\.npz"):
        world(data=str(tmp_path / "nothing.npz"))


def test_too_little_data_is_said() -> None:
    with pytest.raises(InvalidInput, match=r"1079 samples .* too few for training=5000"):
        world(training=5000)
    with pytest.raises(InvalidInput, match="classes"):
        world(known=10)
    with pytest.raises(InvalidInput, match="do not belong"):
        make_samples(np.zeros((3, 2)), [1])


def test_tests_of_a_directory_are_played_and_specified_by_their_files(data: Path, tmp_path: Path) -> None:
    trials = DOMAIN.trials(data=str(data), test="OND.1.0000.7", unchanged=0)
    spec = DOMAIN.spec(trials[0])
    assert spec.actions.shape == (10, 5)
    result = of.run(["random"], trials, tmp_path / "d.sqlite", workers=0)
    assert result.cells[0].outcome == "done"
    sheet = data / "OND/image_classification/OND.1.0000.7_single_df.csv"
    sheet.write_text(sheet.read_text() + "late,0,1\n")
    from openfield.domains.ond.trials import find_directory

    find_directory.cache_clear()
    with pytest.raises(InvalidInput, match="have changed"):
        DOMAIN.world(trials[0])


@pytest.mark.parametrize("setting", [{"unchanged": 1}, {"onset": "1-2"}])
def test_a_published_test_has_no_drawn_onset_and_no_twin(data: Path, setting: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=r"The test OND.1.0000.7 takes neither the setting 'onset' nor 'unchanged'"):
        DOMAIN.trials(data=str(data), test="OND.1.0000.7", **setting)
    (trial,) = DOMAIN.trials(data=str(data), test="OND.1.0000.7")
    assert trial.window is None


def test_the_name_of_a_built_test_does_not_contain_a_seed(tmp_path: Path) -> None:
    trials = DOMAIN.trials(2)
    folder = write_trials(DOMAIN, trials, tmp_path / "built")
    names = DataDirectory(folder).names("OND", "image_classification")
    names += [DOMAIN.world(trial).test.name for trial in trials]
    assert not any(str(trial.seed) in name for name in names for trial in trials)


def test_another_typeface_is_another_print_of_the_same_characters() -> None:
    worlds = [DOMAIN.world(DOMAIN.trials(1, data="glyphs", novelty=name, unchanged=0)[0]) for name in ("none", "font")]
    usual, other = (world.test for world in worlds)
    novel = other.novel
    assert novel.any()
    assert np.array_equal(usual.images[:200], other.images[:200])
    font = OndSettings(data="glyphs", typeface="courier")
    sans = OndSettings(data="glyphs")
    printed = [draw_glyphs(settings, 3) for settings in (sans, font)]
    assert np.array_equal(printed[0].labels, printed[1].labels)
    ink = [float(samples.images.mean()) for samples in printed]
    assert ink[1] > 1.2 * ink[0]  # the second is a bold one


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["data=nope.npz"], "There is no file or folder nope.npz"),
        (["data=few.npz"], "too few for training="),
        (["known=20"], "20 known ones leave none unknown"),
        (["data=bare.npz"], "labels"),
        (["data=holes.npz"], "Sample 3 holds values that are not numbers"),
        (["data=folder"], "a.png cannot be read as an image"),
        (["data=junk.npz"], "holds no samples"),
        (["data=glyphs", "known=60"], "There are 50 glyphs"),
    ],
)
def test_data_that_do_not_suffice_are_told_before_anything_is_played(
    tmp_path: Path, monkeypatch, capsys, words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    holes = np.ones((900, 4))
    holes[3, 1] = np.nan
    np.savez("few.npz", images=np.zeros((9, 2, 2)), labels=np.arange(9))
    np.savez("bare.npz", images=np.zeros((9, 2, 2)))
    np.savez("holes.npz", features=holes, labels=np.arange(900) % 9)
    Path("junk.npz").write_bytes(b"PK junk")
    Path("folder/a").mkdir(parents=True)
    Path("folder/a/a.png").write_bytes(b"no image")
    sets = [part for word in words for part in ("--set", word)]
    assert run_command(["run", "ond", "-a", "knn", "--trials", "1", "-o", "z.sqlite", *sets]) == 2
    assert said in capsys.readouterr().err
    assert not Path("z.sqlite").exists()


def test_no_table_of_the_packaged_samples_has_those_of_a_test() -> None:
    """The attack `lookup`: find the packaged images, and their labels, by what they look like."""
    packaged = load_digits()
    for steps in (16, 8, 4):  # rounded as they are packaged, and more coarsely
        table = {
            (image * steps).round().astype(int).tobytes(): label
            for image, label in zip(*_arrays(packaged), strict=True)
        }
        (trial,) = DOMAIN.trials(1, 3, "none", unchanged=0)
        built = DOMAIN.world(trial)
        shown = [built.test.images, built.reset().observation["images"]]
        found = sum((image * steps).round().astype(int).tobytes() in table for images in shown for image in images)
        assert found <= 0.02 * sum(map(len, shown))
    again, other = (DOMAIN.world(trial).test.images for trial in DOMAIN.trials(2, 3, "none", unchanged=0))
    assert not {image.tobytes() for image in again} & {image.tobytes() for image in other}


def test_a_table_of_the_packaged_samples_is_worth_little_more_than_one_of_other_digits() -> None:
    """Who brings labelled digits knows the classes of all digits: by the nearest one, altered or not."""
    packaged, rng = load_digits(), np.random.default_rng(4)
    at = rng.permutation(len(packaged.labels))[:300]
    table, shown = (
        images.reshape(len(images), -1) for images in (packaged.images, alter_images(packaged.images[at], rng))
    )
    far = (table**2).sum(axis=1) - 2 * shown @ table.T
    with_them = (packaged.labels[far.argmin(axis=1)] == packaged.labels[at]).mean()
    far[np.arange(len(at)), at] = np.inf
    without = (packaged.labels[far.argmin(axis=1)] == packaged.labels[at]).mean()
    assert 0.95 < without <= with_them <= without + 0.03


def _arrays(samples: Samples) -> tuple[Any, Any]:
    return samples.images, samples.labels


class Buying:
    """Answers at random, buys what it can and states beliefs as a script says: a batch's first, and later ones."""

    def __init__(self, first: float, told: float, calm: float, kinds: tuple[str, ...]) -> None:
        self.first, self.told, self.calm, self.kinds, self.knows = first, told, calm, kinds, False

    def play(self, w: Any) -> list[float]:
        """Play a test with a rollout, and return the belief that counts in each batch."""
        collector = EpisodeCollector("cell", 1)
        rollout, left = Rollout(w, recorder=collector), list(self.kinds)
        while not rollout.over:
            seen, feedback = rollout.turn.observation or {}, rollout.turn.feedback or {}
            telling = ",0" if feedback.get("type") == "classification" else ",1"
            self.knows = self.knows or any(line.endswith(telling) for line in feedback.get("lines", ()))
            after = Belief(self.told if self.knows else self.calm)
            if "ids" in seen:
                left, before = list(self.kinds), Belief(self.told if self.knows else self.first)
                rollout.reply(Reply(Scores([[0.5] * 7] * len(seen["ids"])), before))
            elif seen.get("answered") and left:
                rollout.reply(Reply(None, after))  # withdraws it before the purchase
                rollout.reply(Reply(Buy(left.pop(0)), after))
            elif seen.get("answered"):
                rollout.reply(Reply(NextBatch(), after))
            else:
                rollout.reply(Reply(None, after))
        test = (end.belief for end in collector.episodes if end.phase == "test")
        return [0.0 if belief is None else belief.highest for belief in test]


@pytest.mark.parametrize(("first", "kinds"), [(0.6, ("detection", "classification")), (0.0, ("classification",))])
def test_who_buys_the_truth_detects_nothing(first: float, kinds: tuple[str, ...]) -> None:
    """The attack `buyer`: unlock labels by a belief, buy them, and then state what they tell."""
    beliefs = Buying(first, 1.0, 0.0, kinds).play(world())
    assert beliefs == [first] * 5  # before and after the onset, whatever it stated later


def test_who_detects_before_it_buys_keeps_its_detection() -> None:
    w = world()
    w.reset()
    turn, counted = w.step(Reply()), []
    for number in range(5):
        stated = 0.9 if number >= 3 else 0.1
        w.step(Reply(Scores(perfect(w.test, w.test.span(number))), Belief(stated)))
        if number >= 3:
            w.step(Reply(Buy("classification")))
        turn = w.step(Reply(NextBatch()))
        counted.append(w.truth.belief.highest if w.truth.belief else stated)
        turn = w.step(Reply()) if number < 4 else turn
    assert counted == [0.1, 0.1, 0.1, 0.9, 0.9]


class Heedless:
    """Never looks at an image: buys labels in every batch, and states beliefs that depend on the batch alone."""

    def __init__(self, beliefs: Callable[[int], float]) -> None:
        self.beliefs, self.number = beliefs, -1

    def __call__(self, turn: of.Turn) -> Reply:
        """Answer a batch, buy its labels, go on."""
        seen = turn.observation or {}
        if "ids" in seen:
            self.number += 1
            return Reply(Scores([[0.5] * 7] * len(seen["ids"])), Belief(self.beliefs(self.number)))
        if not seen.get("answered"):
            return Reply()
        return Reply(Buy("classification") if turn.feedback is None else NextBatch())


@pytest.mark.parametrize(
    "novelty", ["classes", "classes for 2", "classes every 4 for 2", "blur then none then classes"]
)
@pytest.mark.parametrize("beliefs", [lambda n: 0.9 - 0.05 * n, lambda n: 0.1 + 0.05 * n, lambda n: 0.9 * (n >= 4)])
def test_what_counts_of_a_belief_tells_nothing_by_itself(novelty: str, beliefs: Any, tmp_path: Path) -> None:
    """That a belief counts from the moment on at which feedback told the change must not tell where that was."""
    trials = DOMAIN.trials(10, 3, novelty, training=0, round_size=6, before=4, after=6, budget=6)
    played = of.run({"heedless": lambda spec, seed: Heedless(beliefs)}, trials, tmp_path / "run.sqlite", workers=0)
    found = estimate_concordance(played.cells)
    assert found is not None
    assert found.mean <= 0.5


def test_a_belief_is_held_after_a_restart() -> None:
    w = world()
    w.reset()
    w.step(Reply())
    w.step(Reply(Scores(perfect(w.test, w.test.span(0))), Belief(0.7)))
    w.step(Reply(Buy("classification")))
    later = AgentAnswers(w.test, binding=True)
    later.take_over(read_action(msgspec.to_builtins(w.answers.carry())))
    later.post(1, {"detection": ResultTable(np.arange(10, 20), np.full((10, 1), 0.2))})
    assert later.p_world[10:20].tolist() == [0.7] * 10


def test_who_starts_again_states_no_beliefs_with_hindsight() -> None:
    w = world()
    w.reset()
    for number in range(3):
        w.show(number)
        at = np.arange(10) + 10 * number
        w.answers.post(number, {"classification": ResultTable(at, np.full((10, 5), 0.2))})
    later = AgentAnswers(w.test, binding=True)
    later.take_over(read_action(msgspec.to_builtins(w.answers.carry())))
    for number in range(3):
        later.post(number, {"detection": ResultTable(np.arange(10) + 10 * number, np.full((10, 1), 0.9))})
    assert np.isnan(later.p_world[:20]).all()
    assert later.p_world[20:30].tolist() == [0.9] * 10


@pytest.mark.parametrize(
    ("onset", "alarms"),
    [(15, at) for at in ((3,), (12,), (12, 16), (15,), (16, 25), (40,))]
    + [(6, at) for at in ((3,), (6,), (2, 8), (12, 13), (40,))]
    + [(10, (9,)), (10, (10,)), (29, (28,)), (29, (29,))],
)
def test_an_onset_within_a_batch_is_judged_by_sample(onset: int, alarms: tuple[int, ...], tmp_path: Path) -> None:
    """Correct detection, false alarm and M1 agree with the programme's measures, which count samples."""
    write_test(tmp_path / "data", onset=onset)
    declared = np.isin(np.arange(30), alarms)

    def make(spec: Any, seed: int) -> Any:
        def agent(turn: Any) -> Reply:
            if turn.ask is not Ask.ACT or turn.observation.get("answered"):
                return Reply(NextBatch())
            first = 10 * turn.observation["round"]
            beliefs = tuple(0.9 if told else 0.1 for told in declared[first : first + 10])
            return Reply(Scores([[0.2] * 5] * 10), Belief(beliefs))

        return agent

    (trial,) = DOMAIN.trials(data=str(tmp_path / "data"), test=TEST)
    (cell,) = of.run({"scripted": make}, [trial], tmp_path / "run.sqlite").cells
    wanted = make_facts(np.arange(30) >= onset, declared, None)
    found, programme = measure_detection(cell), measure_programme(cell)
    assert found["correct"] == programme["cdt"] == float(wanted.correct)
    assert found["alarmed"] == programme["false_positive_trial"] == float(wanted.early)
