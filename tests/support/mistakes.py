"""Mistakes of users: commands with bad input, and what their message must say. `tests/data/messages.md` shows them."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import shutil
import sqlite3
from pathlib import Path
from unittest import mock

from openfield.cli import run_command
from support.places import MAZE

EXPERIMENTS = {
    "key": "trails = 3",
    "zero": "trials = 0",
    "type": 'trials = "three"',
    "agents": "agents = [3]",
    "agent": 'agents = ["compas"]',
    "novelty": 'novelty = "swaped"',
    "empty": 'novelty = ["swapped", ""]',
    "range": "[settings]\nsize = 99",
    "setting": "[settings]\nsiz = 9",
    "limit": "[limits]\nreply = 9",
    "seconds": "[limits]\nreply_seconds = -9",
    "people": "trials = 2\n[people]\ntrials = 99",
    "toml": "trials = ",
}
"""What is wrong with the experiment files, by name."""
MISTAKES: dict[str, list[tuple[str, str]]] = {
    "Words and options": [
        ("--versoin", "Unknown option '--versoin'. Did you mean '--version'? Help: openfield --help"),
        ("rum maze.py", "Unknown command 'rum'. Did you mean 'run'?"),
        ("visit ond", "'visit' is a command of ond: openfield ond visit --help"),
        ("doom", "doom is a domain without commands of its own. Evaluate agents: openfield run doom"),
        ("ond visi", "Unknown command 'visi'. Did you mean 'visit'? Commands: merge, stream, visit."),
        ("run", "DOMAIN is missing. Help: openfield run --help"),
        ("run maze.py --agnt random", "Unknown option '--agnt'. Did you mean '--agent'? Help: openfield run --help"),
        ("run maze.py random", "There is a word too many: 'random'."),
        ("run maze.py --seed", "--seed needs a value."),
        ("run maze.py --seed 1 --seed 2", "--seed is given more than once."),
        ("run maze.py --seed 1.5", "--seed takes a whole number, not '1.5'."),
        ("run maze.py --trials many", "--trials takes a whole number, not 'many'."),
        ("run maze.py --trials 1.5", "--trials takes a whole number, not '1.5'."),
        ("run maze.py --repeats 1.5", "--repeats takes a whole number, not '1.5'."),
        ("run maze.py --workers 1.5", "--workers takes a whole number, not '1.5'."),
        ("run maze.py --tag 'two words'", "A tag is a word of letters, digits and . : + - _, not 'two words'."),
        ("run maze.py --reply-seconds soon", "--reply-seconds takes a number, not 'soon'."),
        ("run maze.py --novelty ''", "--novelty is empty. Is a variable of your shell not set?"),
        ("run maze.py --novelty=", "--novelty is empty. Is a variable of your shell not set?"),
        ("serve maze.py --token ''", "--token is empty."),
        ("report x.sqlite -o ''", "-o is empty."),
        ("report ''", "A word is empty."),
        ("list novelty", "WHAT is one of domains, agents, novelties, metrics, settings, options"),
        ("list settings", "Settings of which domain? Name one: openfield list settings DOMAIN"),
        ("list options", "Options of which domain?"),
        ("completion csh", "SHELL is one of bash, zsh, fish, not 'csh'."),
        ("doctor now", "There is a word too many: 'now'."),
        ("demo maze.py --trials 0", "--trials cannot be 0. Must be >= 1."),
        ("demo maze.py --trials 1.5", "--trials takes a whole number, not '1.5'."),
    ],
    "Domains and agents": [
        ("run mase", "Unknown domain 'mase'. Did you mean 'maze'?"),
        ("play nosuchdomain", "Unknown domain 'nosuchdomain'. Installed: "),
        ("run nowhere.py", "no such file: nowhere.py"),
        ("check broken.py", "'broken.py' cannot be imported: ValueError: no brain"),
        ("check many.py", "many.py holds 2 domains; name one: many.py:ONE, many.py:TWO."),
        ("run maze.py --agent compas", "Did you mean 'compass'? For maze: compass, random."),
        ("run maze.py --agent maze.py:Compas", "Did you mean 'Compass'?"),
        ("run maze.py --agent agents.py", "Which agent of agents.py? Write agents.py:NAME."),
        ("run maze.py --agent broken.py:Agent", "'broken.py:Agent' cannot be imported: ValueError: no brain"),
        ("run maze.py --agent agents.py:Naked", "'Naked' is not an agent: too many positional arguments. A class or"),
        ("run maze.py --agent agents.py:three", "'three' is not an agent: missing a required argument: 'c'."),
        ("run maze.py -a random -a random", "Two agents are called 'random'. Name one of them: --agent other=random"),
        ("run maze.py --agent process:", "process: needs a command, for instance process:'python3 agent.py'."),
        ("run maze.py --agent 'process:\"'", "'process:\"' is not a command: no closing quotation."),
        ("run maze.py --agent wire:", "wire: needs a command, for instance wire:'python3 agent.py'."),
        ('run maze.py --agent "wire:python \'x"', "is not a command: no closing quotation."),
    ],
    "Trials and settings": [
        ("run maze.py --novelty swaped", "Did you mean 'swapped'? Declared: slip:easy, slip:hard, swapped."),
        ("run maze.py --novelty swapped+", "Unknown novelty ''."),
        ("play maze.py --novelty slip:heard", "Did you mean 'slip:hard'?"),
        ("run maze.py --set siz=3", "Unknown setting 'siz'. Did you mean 'size'?"),
        ("run maze.py --set seed=3", "Unknown setting 'seed'. Known: "),
        (
            "run maze.py --set size=99",
            "Setting 'size' cannot be '99': Expected `int` <= 20. Allowed: integer >= 3 <= 20.",
        ),
        ("run maze.py --set size", "--set takes key=value, not 'size'."),
        ("run maze.py --trials 0", "'trials' must be a whole number, 1 or more."),
        ("run maze.py --trials 99999999999999999999", "'trials' must be a whole number, at most 1000000."),
        ("run maze.py --workers -1", "'workers' must be a whole number, 0 or more."),
        ("run maze.py --reply-seconds 0", "limits: 'reply_seconds' must be a number, above 0."),
        ("run maze.py --reply-seconds inf", "limits: 'reply_seconds' must be"),
        ("play maze.py --trials 0", "--trials cannot be 0. Must be >= 1."),
        ("play maze.py --trials 1e20", "--trials cannot be 100000000000000000000. Must be <= 1000000."),
        ("play maze.py --seed 1.5", "--seed takes a whole number, not '1.5'."),
        ("play maze.py --terminal --people 3", "People play in a browser: leave out --terminal"),
        ("play maze.py --people 0", "--people cannot be 0. Must be >= 1."),
    ],
    "Detectors of change": [
        ("detect nowhere.csv --truth onsets.csv", "nowhere.csv"),
        ("detect --truth onsets.csv", "STREAM is missing. Help: openfield detect --help"),
        (
            "run maze.py --agent random+river:ADWON --dry-run",
            "Unknown detector 'river:ADWON'. Did you mean 'river:ADWIN'?",
        ),
        ("run maze.py --agent 'random+cusum(watch=sky)' --dry-run", "Unknown signal 'sky'. A detector watches: action"),
        ("run maze.py --agent counter+cusum --dry-run", "'counter' is a control, which states a belief of its own"),
        ("run maze.py --agent 'wire:python x.py+cusum'", "'wire:python x.py' speaks a domain's own protocol: it can"),
        ("run maze.py --agent random+ADWIN", "Unknown detector 'ADWIN'. Did you mean 'river:ADWIN'?"),
        ("run maze.py --agent random+cusum+mmd", "'random+cusum+mmd' has two detectors, and an agent takes one."),
        (
            "run maze.py --agent 'random+cusum(warmup=99)'",
            "A warmup of 99 leaves nothing to judge: the test has 25 episodes.",
        ),
        ("run maze.py --agent 'random+mmd(window=9)'", "A detector needs 18 training episodes, and saw 5. Make trials"),
        (
            "detect stream.csv --truth onsets.csv --training 2 --detector cusm",
            "Unknown detector 'cusm'. Did you mean 'cusum'?",
        ),
        ("detect stream.csv --truth stream.csv", "stream.csv: no column onset. Its columns of numbers are a, b."),
        ("detect stream.csv --truth onsets.csv", "the change at row 2 is within the 200 rows of training. Make them"),
        (
            "detect stream.csv --truth onsets.csv --training 2",
            "'cusum' needs 3 batches of training, and has 2: --training 3",
        ),
        ("detect strem.csv --truth onsets.csv", "strem.csv cannot be read: No such file or directory. Did you mean"),
    ],
    "How a change comes": [
        (
            "run maze.py --novelty 'swapped over 20'",
            "'swapped' changes no number gradually, so it cannot come 'over 20'",
        ),
        ("run maze.py --novelty 'slip:hard ovr 5'", "Unknown novelty 'slip:hard ovr 5'. Did you mean 'slip:hard'?"),
        ("run maze.py --novelty 'slip:hard over 900'", "takes 900 episodes, and the test has 18 at most"),
        ("run maze.py --novelty 'slip:hard over 9 turns'", "between episodes only. Count episodes: leave out 'turns'."),
        ("run maze.py --novelty 'slip:hard every 5 for 9'", "it would never go, as it stays for its whole period."),
        ("run maze.py --novelty 'slip:hard as sinus(period=3)'", "Unknown process 'sinus'. Did you mean 'sine'?"),
    ],
    "Trials that are needed, and when to stop": [
        ("plan maze.py --agents compass", "A plan compares agents: name two, as in --agents planner naive."),
        ("plan maze.py --agents compass random --power 2", "--power cannot be 2.0. Must be <= 0.99."),
        ("plan maze.py compass random", "Name one domain or run files, not maze.py and compass and random. Agents"),
        ("plan x.sqlite --agents compass random", "Existing runs have their agents and trials: leave the other"),
        ("plan maze.py --agents compass random --detect 5", "--detect cannot be 5.0. Must be < 1."),
        ("run maze.py --until decided", "--until 'decided' compares agents: add a second one, such as --agent random."),
        ("run maze.py -a compass -a random --until soon", "--until takes 'decided', 'AGENT - AGENT: width < 0.1' or"),
        (
            "run maze.py -a compass -a random --until 'compass - randm: width < 0.5'",
            "Unknown agent 'randm'. Did you mean 'random'?",
        ),
        (
            "run maze.py -a compass -a random --until 'compass: aftr width < 0.5'",
            "Unknown number 'aftr'. Did you mean 'after'?",
        ),
        (
            "run maze.py -a compass -a random --until 'compass - random: width < 0.01'",
            "an interval is wider than 0.081. More: --max-trials",
        ),
        (
            "run maze.py -a compass -a random --race --max-trials 3",
            "there are 3 trials that may change, and an interval takes 5.",
        ),
        (
            "run maze.py -a compass -a random --race --share 0/2",
            "A share does not see the trials of the others: leave out --race.",
        ),
        (
            "run maze.py -a compass -a random --negligible 0.1",
            "--negligible says when two agents count as equal: add --until decided or --race.",
        ),
        (
            "run maze.py -a compass -a random --max-trials 50",
            "--max-trials bounds a run that stops by itself: add --until or --race",
        ),
        (
            "run maze.py -a compass -a random --question 'Who?'",
            "A question and its numbers are registered in a file: add --register FILE.",
        ),
        (
            "run maze.py -a compass -a random --register x.sqlite -o x.sqlite",
            "x.sqlite is the run file. Name another one: --register x.json",
        ),
        (
            "run maze.py -a compass -a random --register asked.json --registered aftr",
            "Unknown number 'aftr'. Did you mean 'after'?",
        ),
        (
            "run maze.py -a compass -a random --share 0/2 --register asked.json",
            "registered as a whole, not share by share: leave out --share.",
        ),
        ("verify x.sqlite --plan asked.jsn", "asked.jsn cannot be read: No such file or directory."),
    ],
    "Experiment files": [
        ("run nowhere.toml", "nowhere.toml cannot be read: No such file or directory."),
        ("run domain.toml", "domain.toml: missing required field `domain`."),
        ("run campaign.toml", "campaign.toml: table 1 of domains: Unknown key 'workers'. Keys of a domain: agents"),
        ("play both.toml", "both.toml names 2 domains, and `openfield play` takes one. Name it instead."),
        ("run key.toml", "Unknown key 'trails'. Did you mean 'trials'? Keys of an experiment: agents, ask_above,"),
        ("run zero.toml", "'trials' must be a whole number, 1 or more."),
        ("run type.toml", "'trials' must be a whole number, not text."),
        ("run agents.toml", "'agents[0]' must be text, not a whole number."),
        ("run agent.toml", "Did you mean 'compass'?"),
        ("run novelty.toml", "Did you mean 'swapped'?"),
        ("run empty.toml", "empty.toml: Unknown novelty ''."),
        ("run range.toml", "Setting 'size' cannot be 99: Expected `int` <= 20. Allowed: integer >= 3 <= 20."),
        ("run setting.toml", "Did you mean 'size'?"),
        ("run limit.toml", "Unknown limit 'reply'. Did you mean 'reply_seconds'?"),
        ("run seconds.toml", "limits: 'reply_seconds' must be"),
        (
            "play people.toml --no-browser",
            "people.toml: [people]: each person is to play 99 trials, but there are only 3.",
        ),
        ("run toml.toml", "is not TOML"),
    ],
    "Run files": [
        ("run x.sqlite", "x.sqlite is a run, not a domain. To go on with it: openfield resume x.sqlite"),
        ("show nowhere.sqlite", "There is no run file nowhere.sqlite."),
        ("report .", ". is a folder. Name run files, such as *.sqlite."),
        ("report notes.txt", "notes.txt is not a run of openfield."),
        ("figure nowhere.sqlite -o x.pdf", "There is no run file nowhere.sqlite"),
        ("compare nowhere.sqlite compass", "Compare either two agents or two run files"),
        ("compare compass compass", "Compare two different agents, or two different run files."),
        ("compare compass random", "No run in runs has both compass and random. Name it: openfield compare compass"),
        ("figure x.sqlite --kind curve", "--kind is one of curves, belief, intervals, profile, learning, not 'curve'."),
        ("figure x.sqlite -o fig.txt", "A figure is written as pdf, svg, png: name it fig.pdf, for instance."),
        ("report x.sqlite --rename compass", "--rename takes AGENT=NAME, not 'compass'."),
        ("report x.sqlite --rename compass=c", "Unknown agent 'compass'. In these runs: none."),
        ("publish nowhere", "There is no run file or folder nowhere."),
        ("publish notes.txt", "There is no run file to publish."),
        ("verify other.sqlite", "other.sqlite is an SQLite file, but not a run of openfield."),
        ("slurm nowhere.toml --array 3", "nowhere.toml cannot be read"),
        ("slurm maze.toml --array 3 -- gpu", "What goes to sbatch begins with an option, such as --time"),
        (
            "slurm maze.toml --array 3 --sumbit",
            "Unknown option '--sumbit'. Did you mean '--submit'? Help: openfield slurm --help",
        ),
        (
            "slurm maze.toml --array 3 -- --array=0-99",
            "The tasks are counted by --array NUMBER before the --, not by '--array=0-99' for sbatch.",
        ),
        ("run maze.py --resources num_gpus=1", "--resources is about machines of a cluster. Add --executor ray."),
        (
            "run maze.py --concurrency 2 --resources num_gpus=1",
            "--resources is about machines of a cluster. Add --executor ray.",
        ),
        (
            "run maze.py --executor ray --resources memory=1000",
            "The agent 'random' needs memory=1000; Ray gives out no",
        ),
        ("run maze.py --executor ray --resources GPU=1", "The agent 'random' needs GPU=1; write num_gpus=1."),
        ("run maze.py --executor ray --resources gpu", "--resources takes num_gpus=1,num_cpus=2 or AGENT:num_gpus=1"),
        ("run maze.py --share 3/3", "A share is NUMBER/OF, counted from 0, such as 3/100"),
        (
            "run maze.py --share 0/2 --sealed",
            "The shares of a plan need the same sealed seed. Share it: --secret FILE.",
        ),
        ("run maze.py --budget soon", "--budget takes a time such as 2h, 90m or 1h30m, not 'soon'."),
        ("view nowhere", "There is no run file or folder nowhere. Make a run: openfield demo"),
        ("view notes.txt", "notes.txt is not a run of openfield. Name run files, or folders of them."),
        ("view . --host 0.0.0.0", "Serving on 0.0.0.0 lets other machines in; that needs a token: --token SECRET."),
        ("watch nowhere.sqlite", "There is no run file nowhere.sqlite."),
        ("merge x.sqlite notes.txt -o all.sqlite", "notes.txt is not a run of openfield."),
        ("merge x.sqlite -o x.sqlite", "x.sqlite exists. Merging makes a new file: name another one."),
        ("list runs nowhere", "There is no run file or folder nowhere."),
        ("export blank.sqlite", "blank.sqlite is empty: a run was stopped before it began."),
        ("resume nowhere.sqlite", "There is no run file nowhere.sqlite."),
        ("resume x.sqlite --workers 1.5", "--workers takes a whole number, not '1.5'."),
        ("show x.sqlite --turn 3", "--turn needs --cell."),
        ("show x.sqlite --film film.webp", "--film needs --cell."),
        ("show x.sqlite --episode 3", "--episode needs --film."),
        ("show x.sqlite --cell a --turn 1.5", "--turn takes a whole number, not '1.5'."),
        ("show x.sqlite --cell a", "Unknown cell 'a'. The nearest in this run: none."),
        ("report x.sqlite --metric detecton", "Did you mean 'detection'?"),
        ("report x.sqlite --baseline compas", "Unknown agent 'compas'."),
        ("export x.sqlite --format xml", "Unknown format 'xml'. Known: csv, html, jsonl, latex, markdown, parquet."),
        ("export x.sqlite --cell a", "--cell has no effect without a --format of the domain's own; leave it out."),
        ("export x.sqlite --failures exclude", "--failures exclude has no effect without --metric or --intervals"),
        ("export x.sqlite -o x.sqlite", "x.sqlite is the record of a run and is not written over. Name another file."),
    ],
    "Serving": [
        ("serve maze.py --set siz=3", "Did you mean 'size'?"),
        ("serve maze.toml", "`openfield serve` takes a domain, not an experiment file: name the domain of maze.toml."),
        ("serve maze.py --trials 0", "--trials cannot be 0. Must be >= 1."),
        ("serve maze.py --trials 1.5", "--trials takes a whole number, not '1.5'."),
        ("serve maze.py --port 1.5", "--port takes a whole number, not '1.5'."),
        ("serve maze.py --port 99999", "--port cannot be 99999. Must be <= 65535."),
        ("serve maze.py --host 0.0.0.0", "that needs a token: --token SECRET."),
        ("serve maze.py --host 192.0.2.1 --token x", "Cannot listen on 192.0.2.1: Cannot assign requested"),
    ],
    "Birds": [
        ("run birds --set scenario=flying", "Setting 'scenario' cannot be 'flying'"),
        ("run birds --novelty gravty", "Did you mean 'gravity'"),
        ("run birds --levels no/levels", "There is no folder of levels at no/levels."),
        ("run birds --trial 3", "--config"),
        ("run birds --informed-only --uninformed-only", "--informed-only and --uninformed-only exclude each other."),
        ("serve birds --token secret", "--token 8472913"),
        ("serve birds --observer-port x", "--observer-port takes a whole number, not 'x'."),
        ("birds import no.csv", "no.csv cannot be read: No such file or directory."),
        ("birds import notes.txt", "notes.txt is not a table of results: it has no column LevelStatus"),
        ("generate birds", "'generate' is a command of birds: openfield birds generate --help"),
        ("birds generate", "generate needs a description to draw from, or --pool DIR to make levels in."),
        ("birds generate no.xml", "no.xml cannot be read: No such file or directory."),
        ("birds generate no.xml --pool more", "Leave one of them out."),
        ("birds generate no.xml --count 3", "--count needs --pool."),
        ("birds generate --pool more --count 0", "--count cannot be 0. Must be >= 1."),
        ("birds generate --pool x --count 1.5", "--count takes a whole number, not '1.5'."),
    ],
    "CommAI": [
        ("run commai missing.json", "There is no configuration file missing.json"),
        ("run commai -l Learner", "--learner takes a dotted path like my_module.MyLearner, not 'Learner'."),
        ("run commai -v Nice", "Unknown view 'Nice'. Known: BaseView, ConsoleView."),
        ("run commai --mode fast", "--mode is one of line, dot, immediate, not 'fast'."),
        ("run commai -d -1", "-d cannot be -1.0. Must be a number of seconds, 0 or more."),
        ("run commai --learner-port 99999999", "--learner-port cannot be 99999999. Must be <= 65535."),
        ("run commai --learner-port 0", "Only a learner of --learner-cmd learns which."),
        ("run commai --set tasks=micro99", "Unknown task 'micro99'"),
        ("run commai --table .", "cannot be written: it is a folder, or its permissions forbid it."),
        ("play commai -l mine.Learner", "For a learner: openfield run commai -l mine.Learner"),
    ],
    "Doom": [
        ("run doom --novelty movin", "Did you mean 'moving"),
        ("run doom --set enemies=-1", "Setting 'enemies' cannot be '-1'"),
        ("serve doom --amqp nowhere", "'nowhere'"),
        ("serve doom --config nowhere.ini", "nowhere.ini cannot be read: No such file or directory."),
        ("serve doom --lease inf", "--lease must be a number of seconds above 0, not inf."),
        ("serve doom --token secret", "Protocol 0.8 has no place for a token"),
    ],
    "OND": [
        ("run ond --set area=nothing", "Setting 'area' cannot be 'nothing'"),
        ("serve ond --data nowhere", "There is no directory nowhere."),
        ("score ond", "Give --results and --data, or --detection, --classification, --data and --test."),
        (
            "score ond --results results",
            "Give --results and --data, or --detection, --classification, --data and --test.",
        ),
        ("score --id nowhere.npy", "nowhere.npy cannot be read as arrays: No such file or directory."),
        ("ond merge", "FILES is missing."),
        ("ond merge nowhere.npz -o all.npz", "nowhere.npz cannot be read"),
        ("ond visit", "SERVER is missing."),
        ("ond visit here -a nobody", "Unknown agent 'nobody'."),
        ("ond visit here -a msp+cusum", "'msp+cusum': a visit has no training that 'cusum' could be fitted to."),
    ],
    "Objectives": [
        ("objectives", "Name at least one table: openfield objectives TABLE..."),
        ("objectives nowhere.pkl", "nowhere.pkl"),
        ("objectives table.pkl --only entropi", "Unknown objective 'entropi'."),
        ("objectives table.pkl --compat --unit bits", "--compat prints the original's numbers, which are in nats."),
        ("objectives table.pkl --num-actions 0", "--num-actions is 0; it must be positive."),
        ("objectives similarity one.pkl", "Similarity compares two tables; 1 were given."),
        ("objectives study nowhere", "nowhere"),
        ("objectives convert nowhere.pkl table.txt", "the target must end in .parquet or .pkl."),
        ("objectives frames -o table.parquet", "Name at least one episode"),
    ],
}


def write_files(folder: Path) -> None:
    """Write the files that the commands name."""
    shutil.copy(MAZE, folder / "maze.py")
    (folder / "broken.py").write_text("raise ValueError('no brain')\n")
    (folder / "many.py").write_text("from maze import Maze\n\nONE, TWO = Maze(), Maze()\n")
    (folder / "agents.py").write_text("class Naked:\n    pass\n\n\ndef three(a, b, c):\n    pass\n")
    (folder / "domain.toml").write_text("trials = 3\n")
    (folder / "campaign.toml").write_text('[[domains]]\ndomain = "maze.py"\nworkers = 2\n')
    (folder / "both.toml").write_text(2 * '[[domains]]\ndomain = "maze.py"\n')
    for name, text in EXPERIMENTS.items():
        (folder / f"{name}.toml").write_text(f'domain = "maze.py"\n{text}\n')
    (folder / "stream.csv").write_text("a,b\n" + "1,2\n3,5\n" * 300)
    (folder / "onsets.csv").write_text("onset\n2\n")
    (folder / "notes.txt").write_text("all the things I did not do\n")
    (folder / "blank.sqlite").touch()
    sqlite3.connect(folder / "other.sqlite").execute("CREATE TABLE birds (name)").connection.close()
    with contextlib.chdir(folder):
        from openfield.journal.writer import Journal

        Journal("x.sqlite").close()


def complain(folder: Path, line: str) -> str:
    """Return the one line that a command with a mistake prints in a folder, and check that it is one line."""
    printed, complaint = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(folder),
        mock.patch.dict(os.environ, {"COLUMNS": "200"}),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(complaint),
    ):
        try:
            status: object = run_command(shlex.split(line))
        except SystemExit as left:
            status = left.code
    said = complaint.getvalue()
    if status != 2 or printed.getvalue() or said.count("\n") != 1 or not said.startswith("openfield: "):
        raise ValueError(f"openfield {line}: status {status}\n{printed.getvalue()}{said}")
    return said.rstrip("\n")
