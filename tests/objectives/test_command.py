import hashlib
import json
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest

import openfield as of
from openfield.cli import run_command
from openfield.cli.objectives import app
from openfield.objectives import evaluate, evaluate_file
from support.objectives.reference import dump

TABLE = {(1, 0, 2): 3, (2, 1, 1): 4, (2, 0, 3): 1}
NAMES = ["input_entropy", "info_gain_dirichlet", "info_gain_sqrt_counts", "info_gain_log_counts", "empowerment"]


@pytest.fixture
def table(tmp_path):
    return dump(tmp_path / "toy_noop_shared_disc.pkl", TABLE)


def test_one_table_as_json(run, table):
    status, output, errors = run(table, "--num-obs", 10, "--num-actions", 2, "--json")
    assert (status, errors) == (0, "")
    record = json.loads(output)
    assert list(record["values"]) == NAMES
    assert record["values"] == evaluate(TABLE, num_obs=10).values
    assert record["unit"] == "nats"
    assert record["n"] == 8
    assert record["reasons"] == {}


def test_what_is_not_defined_is_null_with_a_reason(run, table):
    status, output, _ = run(table, "--json")
    record = json.loads(output)
    assert status == 0
    assert record["values"]["info_gain_dirichlet"] is None
    assert "--num-obs" in record["reasons"]["info_gain_dirichlet"]


@pytest.mark.parametrize("size", ["12.5", "nan", "inf", "many", "1e400"])
def test_a_number_that_is_not_whole_is_refused(capsys, table, size):
    assert run_command(["objectives", str(table), "--num-obs", size]) == 2
    output, errors = capsys.readouterr()
    assert output == ""
    assert errors.startswith(f"openfield: --num-obs takes a whole number, not {size!r}.")
    assert errors.count("\n") == 1


def test_a_whole_number_may_be_written_as_people_do(run, table):
    found = [json.loads(run(table, "--num-obs", size, "--json")[1])["values"] for size in ("1e3", "1000.0", 1000)]
    assert found == [evaluate(TABLE, num_obs=1000).values] * 3


def test_bits_and_a_choice(run, table):
    _, output, _ = run(table, "--json", "--unit", "bits", "--only", "input_entropy", "--only", "empowerment")
    record = json.loads(output)
    assert list(record["values"]) == ["input_entropy", "empowerment"]
    assert record["values"]["input_entropy"] == evaluate(TABLE).values["input_entropy"] / math.log(2)


def test_several_tables_and_a_bad_one(run, table, tmp_path):
    bad = tmp_path / "bad.pkl"
    bad.write_bytes(b"\x80\x03cos\nsystem\n.")
    status, output, errors = run(table, bad, table, "--json")
    assert status == 2
    first, second, third = json.loads(output)["tables"]
    assert first["values"] == third["values"] == evaluate(TABLE).values
    assert set(second["values"].values()) == {None}
    assert "bad.pkl" in second["error"]
    assert set(second["reasons"].values()) == {second["error"]}
    assert errors == f"openfield: {second['error']}\n"


def test_an_empty_table_is_null_and_exits_2(run, tmp_path):
    status, output, errors = run(dump(tmp_path / "none.pkl", {}), "--json")
    assert status == 2
    assert set(json.loads(output)["values"].values()) == {None}
    assert "none.pkl: no positive counts" in errors
    status, output, errors = run(dump(tmp_path / "none.pkl", {}))
    assert (status, output, errors.count("\n")) == (2, "", 1)


def test_too_small_an_environment_exits_2_and_keeps_the_rest(run, table):
    status, output, errors = run(table, "--num-obs", 2, "--json")
    record = json.loads(output)
    assert status == 2
    assert record["values"]["info_gain_dirichlet"] is None
    assert record["values"]["empowerment"] == evaluate(TABLE).values["empowerment"]
    assert "3 distinct inputs were seen" in errors


def test_the_originals_lines(run, table):
    _, output, _ = run(table, "--compat", "--num-obs", 10)
    values = evaluate(TABLE, num_obs=10).values
    assert output.splitlines() == [
        f"Curiosity: {values['input_entropy']}",
        f"Information gain: {values['info_gain_dirichlet']}",
        f"Sqrt counts information gain: {values['info_gain_sqrt_counts']}",
        f"Log counts information gain: {values['info_gain_log_counts']}",
        f"Empowerment: {values['empowerment']}",
    ]


def test_lines_for_a_reader(run, table, tmp_path):
    zeros = dump(tmp_path / "zeros.pkl", TABLE | {(9, 9, 9): 0})
    status, output, _ = run(table, zeros)
    assert status == 0
    assert "bias-corrected" in output
    assert "not defined: needs" in output
    assert "1 entries with a count of zero left out" in output
    assert str(table) in output


def test_intervals_of_counts_are_asked_for(run, table):
    record = json.loads(run(table, "--json", "--intervals", "--num-obs", 10, "--unit", "bits")[1])
    assert list(record["intervals"]) == ["input_entropy"]  # a gain depends on n, and empowerment is not identifiable
    low, high = record["intervals"]["input_entropy"]
    assert low < record["values"]["input_entropy"] < high
    assert "ignores time dependence" in record["intervals_by"]
    assert "ignores time dependence" in run(table, "--intervals")[1]
    assert "intervals" not in json.loads(run(table, "--json")[1])
    assert run(table, "--intervals", "--inputs", "all")[0] == 2


def test_empowerment_stands_beside_its_null(run, table, tmp_path):
    steady = dump(tmp_path / "steady.pkl", {(o, a, (o + a) % 5): 400 for o in range(5) for a in range(3)})
    record = json.loads(run(steady, "--json")[1])["empowerment"]
    assert record["plug_in"] == pytest.approx(math.log(3))
    assert record["null_band"][0] <= record["null_mean"] <= record["null_band"][1] < 0.01
    assert (record["p"], record["permutations"], record["identifiable"]) == (1 / 201, 200, True)
    assert record["excess"] == record["plug_in"] - record["null_mean"]
    bits = json.loads(run(steady, "--json", "--unit", "bits")[1])["empowerment"]
    assert bits["excess"] == pytest.approx(record["excess"] / math.log(2))
    text = run(steady)[1]
    assert "permutation null" in text
    assert "5 distinct inputs, 3 distinct actions, 15 distinct pairs, 15 distinct transitions" in text
    assert "excess over null      not identifiable: too few visits (2.7 per input-action pair)" in run(table)[1]
    assert json.loads(run(table, "--json")[1])["empowerment"]["excess"] is None


def test_the_null_of_a_large_table_is_asked_for(run, tmp_path):
    large = dump(tmp_path / "large.pkl", {(o, a, (o + a) % 5): 10**6 for o in range(5) for a in range(3)})
    assert "not computed: more than 1,000,000 transitions; --null computes it" in run(large)[1]
    assert json.loads(run(large, "--json", "--null")[1])["empowerment"]["identifiable"]
    single = dump(tmp_path / "single.pkl", {(1, 0, 2): 10**8, (2, 0, 1): 10**8, (2, 0, 2): 5})
    assert "not identifiable: only one action was taken" in run(single)[1]


def test_inputs_that_never_repeat_are_said_to(run, tmp_path):
    text = run(dump(tmp_path / "t.pkl", {(n, n % 3, n + 1): 1 for n in range(40)}))[1]
    assert "saturated: all 40 inputs are distinct" in text


def test_several_tables_are_compared_at_equal_numbers(run, table, tmp_path):
    other = dump(tmp_path / "other.pkl", {(n % 7, n % 3, n % 5): 9 for n in range(40)})
    first, second = json.loads(run(table, other, "--json")[1])["tables"]
    assert first["equal"]["transitions"] == second["equal"]["transitions"] == 8
    assert first["equal"]["values"]["input_entropy"] == first["values"]["input_entropy"]
    assert second["equal"]["values"]["input_entropy"] < second["values"]["input_entropy"]
    assert "at 8 transitions, as many as every table has: input_entropy " in run(table, other)[1]


def test_files_are_named_by_their_hash(run, table):
    assert json.loads(run(table, "--json")[1])["sha256"] == hashlib.sha256(table.read_bytes()).hexdigest()


def test_both_ends(run, table):
    _, output, _ = run(table, "--inputs", "all", "--json")
    assert json.loads(output)["values"]["input_entropy"] == evaluate(TABLE, inputs="all").values["input_entropy"]


def test_mistakes_of_the_caller(run, table):
    status, _, errors = run()
    assert (status, "TABLE" in errors) == (2, True)
    status, _, errors = run(table, "--only", "entropy")
    assert (status, "Unknown objective 'entropy'" in errors) == (2, True)


@pytest.fixture
def pair(tmp_path):
    human = dump(tmp_path / "human.pkl", (TABLE, {10: 1, 2**127: 2, 5: 3}))
    agent = dump(tmp_path / "agent.pkl", ({(1, 0, 2): 1, (2, 0, 2): 1}, {10: 2, 99: 1}))
    return human, agent


def test_similarity(run, pair):
    status, output, _ = run("similarity", *pair, "--json", "--conditional")
    record = json.loads(output)
    assert status == 0
    assert record["values"]["jaccard"] == 1 / 3
    assert 0 < record["values"]["jsd_nats"] < math.log(2)
    assert record["values"]["first_in_second"] == 3 / 8
    assert record["values"]["action_jsd_nats"] is not None
    assert "next_jsd_nats" not in record["reasons"]
    _, output, _ = run("similarity", *pair)
    assert output.startswith("jaccard")


def test_similarity_in_the_originals_lines(run, pair):
    _, output, _ = run("similarity", *pair, "--compat")
    lines = output.splitlines()
    assert lines[0] == f"Human similarity: {1 / 3}"
    assert lines[1] == "Proportion of observations in human that are also in agent: 0.375"
    assert lines[2] == "Proportion of observations in agent that are also in human: 0.5"
    assert lines[3].startswith("JSD human similarity: 0.")


def test_similarity_of_the_wrong_files(run, pair, table):
    for tokens in ([pair[0]], [*pair, table], []):
        status, _, errors = run("similarity", *tokens)
        assert (status, "two tables" in errors) == (2, True)
    status, output, errors = run("similarity", pair[0], table, "--json")
    assert status == 2
    assert json.loads(output)["values"]["jaccard"] is None
    assert "no code book" in errors
    status, output, errors = run("similarity", pair[0], table)
    assert (status, output, errors.count("\n")) == (2, "", 1)


def test_forms_that_do_not_go_together_are_told(run, table, maze, tmp_path):
    played = tmp_path / "run.sqlite"
    of.run(
        {"compass": maze.agents["compass"]}, maze.trials(1, size=3, training=1, before=1, after=1, unchanged=0), played
    )
    assert "tables and runs cannot be evaluated by one command" in run(table, played)[2]
    assert "For runs: openfield objectives" in run("similarity", played, table)[2]
    assert "in nats" in run(table, "--compat", "--unit", "bits")[2]
    options = json.loads(run(table, "--json", "--inputs", "all")[1])["options"]
    assert (options["inputs"], options["unit"]) == ("all", "nats")


def test_thresholds_say_size_and_levels(run, tmp_path):
    frames = np.random.default_rng(0).integers(0, 9, (20, 8, 8)).astype(float)
    np.savez(tmp_path / "e.npz", observ=frames, action=np.arange(20) % 3)
    run("frames", tmp_path / "e.npz", "-o", tmp_path / "t.parquet", "--size", 4, "--levels", 3)
    for wrong in (("--levels", 8), ("--size", 8)):
        status, _, errors = run(
            "frames", tmp_path / "e.npz", "-o", tmp_path / "u.parquet", "--thresholds", tmp_path / "t.parquet", *wrong
        )
        assert (status, "t.parquet: its thresholds are for size 4 and 3 levels" in errors) == (2, True)
    run("frames", tmp_path / "e.npz", "-o", tmp_path / "u.parquet", "--thresholds", tmp_path / "t.parquet")
    assert run("similarity", tmp_path / "t.parquet", tmp_path / "u.parquet")[1].startswith("jaccard                 1")


def test_nothing_is_made_where_nobody_asked(run, table, tmp_path):
    for words in (("convert", table), ("frames", table, "-o")):
        status, _, errors = run(*words, tmp_path / "none" / "t.parquet")
        assert (status, "does not exist" in errors) == (2, True)
    assert not (tmp_path / "none").exists()


def test_convert(run, table, tmp_path):
    status, output, _ = run("convert", table, tmp_path / "t.parquet")
    assert status == 0
    assert "3 rows" in output
    run("convert", tmp_path / "t.parquet", tmp_path / "back.pkl")
    assert pickle.loads((tmp_path / "back.pkl").read_bytes()) == TABLE
    status, _, errors = run("convert", tmp_path / "none.pkl", tmp_path / "t.parquet")
    assert (status, "none.pkl" in errors) == (2, True)


def test_frames(run, tmp_path):
    frames = np.random.default_rng(0).integers(0, 3, (4, 8, 8)).astype(float)[np.arange(40) % 4]
    for number in range(2):
        np.savez_compressed(tmp_path / f"{number}.npz", observ=frames, action=np.arange(40) % 3)
    status, output, _ = run("frames", tmp_path / "0.npz", tmp_path / "1.npz", "-o", tmp_path / "t.parquet")
    assert status == 0
    assert "of 78" in output
    assert evaluate_file(tmp_path / "t.parquet").n == 78
    run("frames", tmp_path / "1.npz", "-o", tmp_path / "u.parquet", "--thresholds", tmp_path / "t.parquet")
    _, output, _ = run("similarity", tmp_path / "t.parquet", tmp_path / "u.parquet", "--json")
    assert json.loads(output)["values"]["jaccard"] == 1
    status, _, errors = run("frames", "-o", tmp_path / "t.parquet")
    assert (status, "at least one episode" in errors) == (2, True)
    status, _, errors = run("frames", tmp_path / "t.parquet", "-o", tmp_path / "v.parquet")
    assert (status, "not an NPZ file" in errors) == (2, True)


def test_study(run, tmp_path):
    folder = tmp_path / "tables"
    folder.mkdir()
    for agent in ("noop", "ppo"):
        dump(folder / f"toy_{agent}_shared_disc.pkl", TABLE)
    (folder / "study.toml").write_text("agents = []\n[environments.toy]\nnum_obs = 10\n")
    status, output, _ = run("study", folder, "--workers", 1)
    assert status == 0
    assert "study.html: 2 agents in 1 environments" in output
    assert output.splitlines()[1].split()[:3] == ["toy", "noop", f"{evaluate(TABLE).values['input_entropy']:.4g}"]
    assert (folder / "study" / "study.html").exists()
    status, output, _ = run("study", folder, "--workers", 1, "--json", "-o", tmp_path / "out")
    assert [row["agent"] for row in json.loads(output)["rows"]] == ["noop", "ppo"]
    (folder / "toy_bad_shared_disc.pkl").write_bytes(b"\x80\x03x")
    status, _, errors = run("study", folder, "--workers", 1)
    assert (status, "toy/bad" in errors) == (2, True)


def test_a_study_as_json_says_what_it_is(run, tmp_path):
    (tmp_path / "tables").mkdir()
    dump(tmp_path / "tables" / "toy_noop_shared_disc.pkl", TABLE)
    record = json.loads(run("study", tmp_path / "tables", "--workers", 0, "--json", "-o", tmp_path / "out")[1])
    assert (record["schema"], record["unit"]) == (1, "nats")
    assert record["paper"]["human_similarity"]["input_entropy"] == 0.89
    assert record == json.loads((tmp_path / "out" / "study.json").read_bytes())
    status, _, errors = run("study", tmp_path / "tables", "--workers", -3)
    assert (status, errors) == (2, "--workers is -3; it must not be negative.")


def test_a_study_says_why_there_is_no_value(run, tmp_path):
    (tmp_path / "tables").mkdir()
    for agent in ("noop", "ppo"):
        dump(tmp_path / "tables" / f"toy_{agent}_human_disc.pkl", (TABLE, {5: 1, 6: 2, 7: 3}))
    dump(tmp_path / "tables" / "toy_noop_shared_disc.pkl", TABLE)
    status, output, _ = run("study", tmp_path / "tables", "--workers", 0)
    assert status == 0
    assert "toy: info_gain_dirichlet not defined: needs the number of distinct inputs" in output
    assert output.count("toy: human_similarity not defined: needs the human's own table, toy_human_human_disc") == 1
    assert "2 agents in 1 environments" in output
    assert "needs the human" in (tmp_path / "tables" / "study" / "study.html").read_text()


@pytest.mark.parametrize(
    ("words", "place"),
    [(["objectives", "frames", "x.npz"], "objectives frames "), (["objectives", "--x"], "objectives ")],
)
def test_mistakes_lead_to_the_help_of_their_own_command(capsys, words, place):
    assert run_command(words) == 2
    assert capsys.readouterr().err.endswith(f" Help: openfield {place}--help\n")


def test_a_study_that_is_not_there_is_said_to_be_not_there(run, tmp_path):
    missing = tmp_path / "none"
    assert run("study", missing)[::2] == (2, f"{missing} cannot be read: No such file or directory.")


def test_pipes_say_what_they_are(table):
    command = f"exec {sys.executable} -m openfield objectives <(cat {table})"
    found = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    assert found.returncode == 2
    assert "A pipe cannot be read twice" in found.stderr


def test_numbers_of_other_kinds_are_refused_in_a_sentence(run, tmp_path):
    status, _, errors = run(dump(tmp_path / "t.pkl", {(1, 0, 2): np.float16(2.5)}))
    assert status == 2
    assert "NumPy numbers of kind 'f2' are not read, only b1, i1, i2," in errors


def test_help_names_every_command(capsys):
    app(["--help"], result_action="return_value")
    text = capsys.readouterr().out
    for word in ("similarity", "study", "convert", "frames", "--num-obs", "--compat", "--human"):
        assert word in text


def test_compat_says_what_is_missing_and_of_which_file(run, tmp_path):
    table = dump(tmp_path / "t.pkl", {(1, 0, 2): 3, (2, 1, 1): 4})
    (tmp_path / "bad.pkl").write_bytes(b"bad")
    lines = run(table, tmp_path / "bad.pkl", "--compat")[1].splitlines()
    assert lines[0] == str(table)
    assert lines[2].startswith("Information gain: not defined: needs the number of distinct inputs")
    assert lines[6] == str(tmp_path / "bad.pkl")
    assert all("not defined: " in line for line in lines[7:])
    assert run(table, "--num-actions", 0)[::2] == (2, "--num-actions is 0; it must be positive.")


@pytest.mark.parametrize(
    ("options", "said"),
    [(("--num-actions", 1), "2 distinct actions"), (("--num-obs", 1, "--only", "empowerment"), "3 distinct inputs")],
)
def test_sizes_are_checked_whatever_is_asked_for(run, table, options, said):
    status, output, errors = run(table, "--json", *options)
    assert status == 2
    assert errors.startswith(f"openfield: {table}: {said} were seen")
    assert json.loads(output)["error"] in errors
    assert json.loads(output)["values"]["empowerment"] is not None


def test_a_comparison_says_how_it_was_asked_for(run, tmp_path):
    table = dump(tmp_path / "t.pkl", ({(1, 0, 2): 3}, {5: 1}))
    record = json.loads(run("similarity", table, table, "--json", "--compat", "--inputs", "sources")[1])
    assert record["options"] == {"compat": True, "inputs": "sources", "conditional": False}
    assert record["sha256"][0] == record["sha256"][1] == hashlib.sha256(table.read_bytes()).hexdigest()
    assert record["seconds"] > 0


def test_corrected_empowerment_is_at_most_what_actions_can_say():
    assert evaluate({(-5, 0, 8): 3, (-5, -1, 7): 2}).corrected["empowerment"] == math.log(2)
    assert evaluate({(1, 0, 1): 3}, num_obs=1).values["info_gain_dirichlet"] == 0
