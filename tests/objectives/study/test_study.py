import json
import math
import xml.etree.ElementTree as ElementTree
from concurrent.futures.process import BrokenProcessPool

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from openfield.cli import run_command
from openfield.errors import InvalidInput
from openfield.objectives import jaccard
from openfield.objectives.measures.correlations import Observation, correlate, fisher_interval, pearson, spearman
from openfield.objectives.study import study as module
from openfield.objectives.study.manifest import find_entries, published_values
from openfield.objectives.study.study import REWARD, SIMILARITY, run_study
from openfield.report.drawing import draw_bars, draw_heat_map, draw_scatter
from openfield.report.figures import Bar, Dot
from openfield.report.study import (
    COLUMNS,
    draw_study,
    find,
    render_study,
    write_study,
)
from support.browsers import open_browser
from support.objectives.reference import dump

SPREADS = {"human": 60, "noop": 2, "random": 20, "ppo": 40, "icm_reward": 50, "icm_noreward": 45, "rnd_reward": 70}


def coded_table(random, spread, size=400):
    obs, actions = random.integers(1, spread + 1, size), random.integers(0, 4, size)
    table = {}
    for key in zip(obs.tolist(), actions.tolist(), np.minimum(obs + actions, 80).tolist(), strict=True):
        table[key] = table.get(key, 0) + 1
    return table


@pytest.fixture
def folder(tmp_path):
    """Two environments as published, with rewards in a manifest."""
    random = np.random.default_rng(0)
    lines = ["[environments.toy]", "num_obs = 500", "num_actions = 4"]
    book = {2**100 + index: index for index in range(1, 81)}
    tables = tmp_path / "tables"
    tables.mkdir()
    for environment in ("montezuma", "toy"):
        for agent, spread in SPREADS.items():
            table = coded_table(random, spread)
            dump(tables / f"{environment}_{agent}_human_disc.pkl", (table, book))
            if agent != "human":
                dump(tables / f"{environment}_{agent}_shared_disc.pkl", table)
                lines += ["[[agents]]", f'environment = "{environment}"', f'agent = "{agent}"', f"reward = {spread}.5"]
    (tables / "study.toml").write_text("\n".join(lines))
    return tables


def test_agents_are_found_by_their_names(folder):
    entries = find_entries(folder)
    assert len(entries) == 14
    entry = next(entry for entry in entries if (entry.environment, entry.agent) == ("toy", "icm_noreward"))
    assert entry.size.num_obs == 500
    assert entry.reward == 45.5
    assert entry.reference.name == "toy_human_human_disc.pkl"
    assert next(entry for entry in entries if entry.environment == "montezuma").size.num_obs == 101_509


def test_a_study_of_a_folder(folder, tmp_path):
    seen = []
    study = run_study(find_entries(folder), tmp_path / "cache", progress=lambda *state: seen.append(state), draws=50)
    assert len(study.rows) == 12
    assert seen[-1] == (36, 36)
    row = next(row for row in study.rows if (row.environment, row.agent) == ("toy", "ppo"))
    from openfield.objectives import evaluate_file, load_table

    shared = evaluate_file(folder / "toy_ppo_shared_disc.pkl", num_obs=500)
    assert {name: row.values[name] for name in shared.values} == shared.values
    pair = [load_table(folder / f"toy_{agent}_human_disc.pkl") for agent in ("human", "ppo")]
    assert row.values[SIMILARITY] == jaccard(*pair)
    assert row.rarefied[-1].transitions == 400
    assert row.rarefied[-1].jaccard == pytest.approx(row.values[SIMILARITY])
    assert all(not row.problems for row in study.rows)
    line = find(study, SIMILARITY, REWARD)
    assert line.n == 12
    assert line.r > 0.8
    assert line.fisher[0] < line.r < line.fisher[1]


def test_a_study_goes_on_from_its_cache(folder, tmp_path, monkeypatch):
    entries, cache = find_entries(folder), tmp_path / "cache"
    first = run_study(entries, cache, draws=20)

    def refuse(task):
        raise AssertionError(task)

    monkeypatch.setattr(module, "work", refuse)
    assert run_study(entries, cache, draws=20) == first
    next(cache.iterdir()).write_text("{half")
    with pytest.raises(AssertionError):
        run_study(entries, cache, draws=20)
    monkeypatch.undo()
    assert run_study(entries, cache, draws=20) == first
    dump(folder / "toy_ppo_shared_disc.pkl", {(1, 0, 1): 1})
    assert run_study(find_entries(folder), cache, draws=20) != first


def test_processes_change_nothing(folder, tmp_path):
    entries = find_entries(folder)[:4]
    assert run_study(entries, tmp_path / "a", workers=2, draws=20) == run_study(entries, tmp_path / "b", draws=20)


def test_a_bad_table_is_a_problem_of_its_row(folder, tmp_path):
    (folder / "toy_ppo_shared_disc.pkl").write_bytes(b"\x80\x03nonsense")
    study = run_study(find_entries(folder), tmp_path / "cache", draws=20)
    bad = [row for row in study.rows if row.problems]
    assert [(row.environment, row.agent) for row in bad] == [("toy", "ppo")]
    assert "toy_ppo_shared_disc.pkl" in bad[0].problems[0]
    assert bad[0].values["empowerment"] is None
    assert "Not everything could be computed" in render_study(study, "t")


def test_a_page_and_drawings(folder, tmp_path):
    study = run_study(find_entries(folder), tmp_path / "cache", draws=20)
    page = write_study(study, tmp_path / "out", "A <study>")
    text = page.read_text()
    assert "A &lt;study&gt;" in text
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "<script" not in text
    assert ">0.89<" in text  # the paper's Table 1
    drawings = sorted(path.stem for path in (tmp_path / "out").glob("*.svg"))
    assert {"correlations", "bars_human_similarity", "bars_task_reward", "scatter_empowerment"} <= set(drawings)
    for drawing in draw_study(study):
        ElementTree.fromstring(drawing.svg)
        assert drawing.svg in text, drawing.name
    stored = msgspec.json.decode((tmp_path / "out" / "study.json").read_bytes(), type=module.Study)
    assert stored == study


def test_a_page_of_its_own_name(folder, tmp_path):
    page = tmp_path / "mine.html"
    assert run_command(["objectives", "study", str(folder), "-o", str(page), "--workers", "0"]) == 0
    assert "<h1>" in page.read_text()
    assert (tmp_path / "mine_files" / "study.json").exists()
    assert not (tmp_path / "mine_files" / "study.html").exists()


@pytest.mark.browser
@pytest.mark.parametrize("seeds", [None, 5], ids=["tables", "games"])
def test_the_first_table_is_not_cut(tmp_path, seeds):
    limits = dict.fromkeys(COLUMNS, (-1234.567, 1234.567)) if seeds else {}
    values = dict.fromkeys(COLUMNS, 1234.567)
    rows = [
        module.StudyRow(environment="montezuma", agent=agent, values=values, seeds=seeds, intervals=limits)
        for agent in ("random", "curious reward")
    ]
    page = write_study(module.Study(rows=rows, correlations=[]), tmp_path, "A study")
    with open_browser() as browser:
        shown = browser.new_page(viewport={"width": 1280, "height": 800})
        shown.goto(page.as_uri())
        first = shown.locator(".wide").first
        assert first.evaluate("each => each.scrollWidth <= each.clientWidth")


def test_a_manifest(folder, tmp_path):
    text = '[[agents]]\nenvironment = "e"\nagent = "a"\nshared = "toy_ppo_shared_disc.pkl"\nreward = 3\n'
    (folder / "own.toml").write_text(text)
    (entry,) = find_entries(folder / "own.toml")
    assert entry.shared == folder / "toy_ppo_shared_disc.pkl"
    (row,) = run_study([entry], tmp_path / "cache", draws=20).rows
    assert row.values["info_gain_dirichlet"] is None
    assert "num_obs" in row.reasons["info_gain_dirichlet"]
    assert row.problems == ()


@pytest.mark.parametrize("text", ["agents = 3", "[[agents]]\nname = 'x'", "not toml at all", "[[agents]]\nagent='a'"])
def test_manifests_that_cannot_be_read(tmp_path, text):
    (tmp_path / "m.toml").write_text(text)
    with pytest.raises(InvalidInput, match=r"m\.toml"):
        find_entries(tmp_path / "m.toml")


def test_nothing_to_study(tmp_path):
    with pytest.raises(InvalidInput, match="no tables named like"):
        find_entries(tmp_path)


def test_the_papers_figures_are_quoted():
    assert published_values().correlations["human_similarity"]["input_entropy"] == 0.89
    assert published_values().environments["seaquest"].num_obs == 215_436_546


points = st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=3, max_size=20)


@given(points)
def test_correlations_agree_with_scipy(values):
    x, y = (np.array(column, float) for column in zip(*values, strict=True))
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        assert np.isnan(pearson(x, y))
        assert np.isnan(spearman(x, y))
        return
    assert float(pearson(x, y)) == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-12)
    assert float(spearman(x, y)) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)


def test_fisher_intervals_are_those_of_the_paper_if_it_has_26_rows():
    for r, low, high in ((0.67, 0.38, 0.84), (0.89, 0.77, 0.95), (0.66, 0.37, 0.83), (0.41, 0.03, 0.69)):
        assert fisher_interval(r, 26) == pytest.approx((low, high), abs=0.005)
    assert fisher_interval(1.0, 26) is None
    assert fisher_interval(0.5, 3) is None


def test_three_ways_to_pool():
    random = np.random.default_rng(0)
    observations = []
    for number, environment in enumerate("abc"):
        x = random.normal(size=7) * 10**number
        y = x / 10**number + random.normal(size=7) / 2 + 100 * number
        observations += [Observation(environment, f"agent{i}", float(x[i]), float(y[i])) for i in range(7)]
    lines = correlate("x", "y", observations, draws=200)
    single = [line.r for line in lines if line.pooling == "environment"]
    assert [line.environment for line in lines[:3]] == ["a", "b", "c"]
    assert single[0] == pytest.approx(
        stats.pearsonr([p.x for p in observations[:7]], [p.y for p in observations[:7]]).statistic
    )
    assert lines[4].pooling == "mean"
    assert lines[4].r == pytest.approx(np.mean(single))
    assert lines[4].fisher is None
    scaled = [
        stats.zscore([getattr(p, side) for p in observations if p.environment == e]) for side in "xy" for e in "abc"
    ]
    expected = stats.pearsonr(np.concatenate(scaled[:3]), np.concatenate(scaled[3:])).statistic
    assert lines[3].r == pytest.approx(expected)
    for line in lines:
        assert line.bootstrap[0] <= line.r + 0.2
        assert line.without_one[0] <= line.without_one[1]
        assert 0 < line.p <= 1
    assert lines[3].p < 0.05


def test_what_does_not_vary_does_not_correlate():
    flat = [Observation("a", str(i), 1.0, float(i)) for i in range(5)]
    assert all(line.r is None and line.note for line in correlate("x", "y", flat, draws=20))


@pytest.mark.parametrize(
    "drawing",
    [
        draw_scatter("<t>", "x", "y", [Dot(1, 2, "a & b", "e"), Dot(1, 2, "c", "f")]),
        draw_scatter("t", "x", "y", []),
        draw_heat_map("t", ["a", "<b>"], [[1.0, -0.5], [None, 1.0]]),
        draw_bars("t", [Bar("a", 0.5, 0.1, 0.7, 0.6), Bar("b", -0.2)]),
    ],
)
def test_drawings_are_well_formed(drawing):
    assert ElementTree.fromstring(drawing).tag.endswith("svg")


def test_names_above_a_heat_map_stay_within_it():
    names = ["a", "human similarity"]
    root = ElementTree.fromstring(draw_heat_map("t", names, [[1.0, 0.5], [0.5, 1.0]]))
    width = float(root.get("viewBox").split()[2])
    leaning = [text for text in root.iter("{http://www.w3.org/2000/svg}text") if text.get("transform")]
    assert float(leaning[-1].get("x")) + len(names[-1]) * 5.5 * math.cos(math.radians(40)) < width


def test_fractional_counts_are_compared_but_not_drawn_from(folder):
    table = {(1, 0, 2): 1.5, (2, 1, 3): 0.5}
    dump(folder / "toy_ppo_human_disc.pkl", (table, {2**100 + index: index for index in range(1, 4)}))
    (entry,) = [entry for entry in find_entries(folder) if (entry.environment, entry.agent) == ("toy", "ppo")]
    (row,) = run_study([entry], folder / "cache", draws=10).rows
    assert row.values[SIMILARITY] > 0
    assert row.rarefied == []
    assert "toy_ppo_human_disc.pkl: Drawing transitions needs whole counts." in row.reasons["rarefied"]
    assert not row.problems


def test_an_output_that_cannot_be_made_is_one_line(folder, run):
    (folder / "afile").write_text("")
    status, _, said = run("study", folder, "-o", folder / "afile")
    assert status == 2
    assert said.startswith(f"Cannot write {folder / 'afile' / 'cache'}: ")


def test_a_process_that_dies_takes_only_its_own_task_along(folder, monkeypatch):
    def pool(tasks, workers):
        for task in tasks:
            if task.paths[-1].name == "toy_ppo_shared_disc.pkl":
                raise BrokenProcessPool
            yield task, module.work(task)

    monkeypatch.setattr(module, "_run_in_pool", pool)
    found = run_study(find_entries(folder), folder / "cache", workers=2, draws=10)
    (row,) = [row for row in found.rows if row.problems]
    assert (row.environment, row.agent) == ("toy", "ppo")
    assert row.problems[0].startswith(str(folder / "toy_ppo_shared_disc.pkl: the process that read it died"))


def test_a_lack_of_memory_is_a_problem_of_one_task(folder, monkeypatch):
    def lack(path, **options):
        raise MemoryError

    monkeypatch.setattr(module, "open_table", lack)
    (entry,) = [entry for entry in find_entries(folder) if (entry.environment, entry.agent) == ("toy", "ppo")]
    assert "not enough memory; fewer --workers" in run_study([entry], folder / "cache").rows[0].problems[0]


def test_the_rule_for_buckets_may_be_the_originals(tmp_path, run):
    """Index 0 stands for two images: the exact rule counts both, the original's one, its last."""
    tables = tmp_path / "tables"
    tables.mkdir()
    dump(tables / "toy_human_human_disc.pkl", ({(1, 0, 2): 3, (2, 0, 1): 1}, {50: 1, 60: 2}))
    dump(tables / "toy_ppo_human_disc.pkl", ({(0, 0, 1): 2, (1, 0, 0): 1}, {70: 0, 80: 0, 50: 1}))
    rows = []
    for flags, rule in (((), "exact"), (("--compat",), "original")):
        status, output, _ = run("study", tables, "--workers", 0, "--json", "-o", tmp_path / "out", *flags)
        record = json.loads(output)
        assert (status, record["similarity_rule"], record["paper_similarity_rule"]) == (0, rule, "original")
        (row,) = [row for row in record["rows"] if row["agent"] == "ppo"]
        rows.append(row["values"]["human_similarity"])
        page = (tmp_path / "out" / "study.html").read_text()
        assert "The published table, quoted beside them, used the original" in page
        assert ("by the original&#39;s rule (--compat)" in page) is bool(flags)
    assert rows == [1 / 4, 1 / 3]
    assert "similarity by the original's rule" in run("study", tables, "--workers", 0, "--compat")[1]


def test_agents_stand_beside_random_at_equal_numbers(tmp_path, run):
    tables = tmp_path / "tables"
    tables.mkdir()
    for agent, inputs, times in (("ppo", 5, 400), ("random", 8, 3)):
        counts = {(o, a, (o + a) % inputs): times for o in range(inputs) for a in range(3)}
        dump(tables / f"toy_{agent}_shared_disc.pkl", counts)
    (tables / "study.toml").write_text("agents = []\n[environments.toy]\nnum_obs = 10\n")
    record = json.loads(run("study", tables, "--workers", 0, "--json", "-o", tmp_path / "out")[1])
    ppo, random = record["rows"]
    assert ppo["equal_transitions"] == random["equal_transitions"] == 72
    assert random["equal"]["input_entropy"] == random["values"]["input_entropy"]
    assert ppo["equal"]["info_gain_dirichlet"] <= ppo["values"]["info_gain_dirichlet"]
    assert ppo["empowerment"]["excess"] == pytest.approx(math.log(3), rel=0.05)
    assert random["empowerment"]["excess"] is None
    assert ppo["distinct"] == {"inputs": 5, "sources": 5, "actions": 3, "pairs": 15, "moves": 15, "transitions": 15}
    page = (tmp_path / "out" / "study.html").read_text()
    assert "At equal numbers of transitions" in page
    assert "not identifiable" in page
    lines = run("study", tables, "--workers", 0)[1].splitlines()
    assert any("permutation null" in line and "at equal transitions" in line for line in lines)
