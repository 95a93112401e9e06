"""`openfield objectives`: what agents did, from tables, runs, frames and whole studies.

A command: it reads files, calls `openfield.objectives` and prints. Heavy imports wait until a command needs them.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import cyclopts
from cyclopts import Parameter

from openfield.cli.shared.parameters import Trust
from openfield.console import escape_controls, print_json
from openfield.errors import MORE_MEMORY, InvalidInput, OpenfieldError
from openfield.files.large import allowing_large
from openfield.installation import count_processors
from openfield.options import MORE, Whole

if TYPE_CHECKING:
    from openfield.objectives.evaluation import Evaluation
    from openfield.objectives.formats.shards import Apply
    from openfield.objectives.runs.recordings import Reading, Recording
    from openfield.objectives.study.study import Study
    from openfield.objectives.tables.table import Table, TableSummary

AllowLarge = Annotated[bool, Parameter(group=MORE)]

app = cyclopts.App(
    name="objectives",
    help="Say what agents did, without asking for their reward.",
    default_parameter=Parameter(negative=()),
)

SQLITE = b"SQLite format 3\0"
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # nothing here multiplies matrices; idle threads cost 40 ms
MAX_SHUFFLED = 1_000_000
"""Transitions of a table up to which the null of empowerment is computed without being asked for: it takes seconds."""
MAX_THINNED = 1_000_000
"""Rows of a table up to which values at equal numbers of transitions are computed."""


@app.default
def print_objectives(
    *tables: Path,
    num_obs: Whole | None = None,
    num_actions: Annotated[Whole | None, Parameter(group=MORE)] = None,
    only: Annotated[tuple[str, ...], Parameter(metavar="NAME")] = (),
    json: bool = False,
    unit: Annotated[Literal["nats", "bits"], Parameter(metavar="UNIT")] = "nats",
    compat: Annotated[bool, Parameter(group=MORE)] = False,
    inputs: Annotated[Literal["sources", "all"], Parameter(metavar="WHICH", group=MORE)] = "sources",
    intervals: bool = False,
    null: Annotated[bool, Parameter(group=MORE)] = False,
    human: Annotated[Path | None, Parameter(metavar="RUN")] = None,
    human_agent: Annotated[str | None, Parameter(metavar="NAME", group=MORE)] = None,
    thresholds: Annotated[Path | None, Parameter(metavar="FILE", group=MORE)] = None,
    pictures: Annotated[bool, Parameter(group=MORE)] = False,
    trust: Trust = False,
    executor: Annotated[str | None, Parameter(metavar="WHERE", group=MORE)] = None,
    allow_large: AllowLarge = False,
) -> None:
    """Print the objectives of transition tables, or of runs: how did behaviour change when the world did?

    Args:
        tables: Published pickles, Parquet files made by `convert` or `frames`, or run files.
        num_obs: The number of distinct inputs over all agents, for the Dirichlet information gain of a table.
        num_actions: The number of actions of the environment. It is only checked: fewer than were seen is an error.
        only: Show only this objective. Repeat it for further ones.
        json: Print one JSON object.
        unit: The unit of entropies and information [nats].
        compat: Print what the original scripts print.
        inputs: Which inputs the entropy counts: those acted on, or both ends of every transition [sources].
        intervals: Add 95 % intervals to the values of tables, where they hold. Runs always have them.
        null: Compute the permutation null of empowerment also for tables of more than 1,000,000 transitions.
        human: A run in which people played, for the human similarity [the one of the runs in which they did].
        human_agent: The name of the person in that run; needed if several agents are in it.
        thresholds: A table made by `frames`, whose thresholds discretise the pictures of runs [their own].
        pictures: Count pictures of the world, drawn anew, instead of what agents were shown.
        trust: Run domains that a run file names even if you did not sign them.
        executor: Count shards of sorted Parquet in `processes`, one per processor, on a Ray cluster that is started
            here (`ray`), or on one at `ray=HOST:PORT` [in this process].
        allow_large: Read files whose content is more than a hundred times as large as the file.

    Example:
        openfield objectives human.pkl agent.pkl --num-obs 65536
    """
    options = {"num_obs": num_obs, "only": only, "unit": unit}
    asked = TableQuestions(intervals=intervals, null=null, compat=compat, hashed=json, executor=executor)
    _check_options(tables, options, compat)
    if human or human_agent or thresholds or pictures or trust or any(_read_start(path) == SQLITE for path in tables):
        if compat or inputs == "all" or num_actions is not None or intervals or null or executor:
            raise InvalidInput(
                "--compat, --executor, --inputs all, --intervals, --null and --num-actions are for tables, not runs."
            )
        _print_runs(_record_runs(tables, human, human_agent, thresholds, pictures, trust, options), json)
        return
    with allowing_large(allow_large):
        records = record_tables(tables, {**options, "num_actions": num_actions, "inputs": inputs}, asked)
    _print_tables(records, json, compat)


def _check_options(tables: Sequence[Path], options: dict[str, Any], compat: bool) -> None:
    from openfield.objectives.evaluation import check_names

    if not tables:
        raise InvalidInput("Name at least one table: openfield objectives TABLE...")
    if compat and options["unit"] == "bits":
        raise InvalidInput("--compat prints the original's numbers, which are in nats.")
    check_names(options["only"])


def _print_runs(record: dict[str, Any], as_json: bool) -> None:
    from openfield.report.objectives import runs_lines

    print_json(record) if as_json else _print_lines(runs_lines(record))
    _exit_with(record["runs"])


def _print_tables(records: list[dict[str, Any]], as_json: bool, compat: bool) -> None:
    from openfield.report.objectives import SCHEMA, compat_lines, evaluation_lines

    if as_json:
        print_json(records[0] if len(records) == 1 else {"schema": SCHEMA, "tables": records})
    else:
        for record in records:
            titled = len(records) > 1
            _print_lines(compat_lines(record, titled) if compat else evaluation_lines(record, titled))
    _exit_with(records)


@app.command
def similarity(
    *tables: Path,
    json: bool = False,
    compat: bool = False,
    conditional: bool = False,
    inputs: Literal["sources", "all"] = "sources",
    allow_large: AllowLarge = False,
) -> None:
    """Compare two tables with code books: which images both agents met, and how often.

    Args:
        tables: Two tables, the human's first by custom.
        json: Print one JSON object.
        compat: Print what the original scripts print, by their rules for index 0.
        conditional: Also compare actions, and next images, given the image.
        inputs: Which inputs are compared: those acted on, or both ends of every transition.
        allow_large: Read files whose content is more than a hundred times as large as the file.

    Example:
        openfield objectives similarity human.pkl agent.pkl
    """
    from openfield.objectives.formats.large_tables import compare_conditional_files, compare_files
    from openfield.objectives.formats.load import file_hash
    from openfield.report import objectives as report

    start = time.perf_counter()
    if len(tables) != 2:
        raise InvalidInput(f"Similarity compares two tables; {len(tables)} were given.")
    try:
        with allowing_large(allow_large):
            found = compare_files(*tables, compat=compat, inputs=inputs)
            more = compare_conditional_files(*tables) if conditional else None
        asked = {
            "sha256": [file_hash(path) for path in tables] if json else None,
            "options": {"compat": compat, "inputs": inputs, "conditional": conditional},
            "seconds": round(time.perf_counter() - start, 4),
        }
        record = report.similarity_record(tables, found, more, asked)
    except OpenfieldError as error:
        named = {"tables": [str(path) for path in tables]}
        record = report.failure_record(named, str(error), report.COMPARED[:3])
    if json:
        print_json(record)
    elif "error" not in record:
        _print_lines(report.compat_similarity_lines(record) if compat else report.similarity_lines(record))
    _exit_with([record])


@app.command
def study(
    source: Path,
    /,
    *,
    output: Annotated[Path | None, Parameter(name=("--output", "-o"), metavar="PATH")] = None,
    workers: Whole | None = None,
    quick: bool = False,
    compat: Annotated[bool, Parameter(group=MORE)] = False,
    json: bool = False,
    allow_large: AllowLarge = False,
) -> None:
    """Evaluate all tables of a folder or manifest, or play a study of live games; correlate, and write a page.

    Args:
        source: A folder of tables named as published, a TOML manifest of tables, or the TOML file of a study of games.
        output: The folder for the page, drawings and results so far [`study` beside the tables; for games the name of
            the file], or a page, NAME.html, with the rest in NAME_files. A study that was stopped goes on from it.
        workers: Processes that evaluate or play [one per processor]; 0 works in this one.
        quick: Play the short form of a study of games.
        compat: Compare images by the original's rule for index 0, which takes a bucket of many images for one.
        json: Print the study as one JSON object.
        allow_large: Read files whose content is more than a hundred times as large as the file.

    Example:
        openfield objectives study tables/ -o study
    """
    from openfield.objectives.games.plan import is_game_plan
    from openfield.objectives.study.manifest import find_entries
    from openfield.objectives.study.study import Asked, run_study
    from openfield.report.study import write_study

    if workers is not None and workers < 0:
        raise InvalidInput(f"--workers is {workers}; it must not be negative.")
    if is_game_plan(source):
        if compat:
            raise InvalidInput("--compat is for tables; frames of live games have no index 0.")
        _print_study(*_play_games(source, output, _processes(workers), quick), as_json=json, rule="")
        return
    if quick:
        raise InvalidInput("--quick is for a study of live games, whose file lists [[games]].")
    entries = find_entries(source)
    folder, named = _place_study(output, (source if source.is_dir() else source.parent) / "study")
    with _progress() as show:
        found = run_study(
            entries,
            folder / "cache",
            Asked(compat=compat, allow_large=allow_large),
            workers=_processes(workers),
            progress=show,
        )
    page = write_study(found, folder, f"Objectives of {source.resolve().name}", named)
    rule = f"similarity by {'the original' if compat else 'openfield'}'s rule for index 0"
    _print_study(found, page, as_json=json, rule=rule)


def _place_study(output: Path | None, usual: Path) -> tuple[Path, Path | None]:
    """Return the folder of a study, and its page if that is named."""
    if output is None or output.suffix.lower() not in (".html", ".htm") or output.is_dir():
        return output or usual, None
    return output.with_name(f"{output.stem}_files"), output


def _processes(workers: int | None) -> int:
    return count_processors() if workers is None else workers


def _play_games(source: Path, output: Path | None, workers: int, quick: bool) -> tuple[Study, Path]:
    """Play a study of live games, and return it with the path of its page."""
    from openfield.objectives.games.game_study import run_games
    from openfield.objectives.games.plan import read_game_plan
    from openfield.report.study import write_study

    plan = read_game_plan(source)
    if quick and plan.quick is None:
        raise InvalidInput(f"{source}: it has no [quick] with steps and seeds.")
    sizes = plan.quick if quick and plan.quick else plan.full
    folder, named = _place_study(output, Path(source.stem))
    with _progress("lives") as show:
        found = run_games(plan, sizes, folder / "lives", base=source.parent, workers=workers, progress=show)
    title = f"{source.stem.replace('_', ' ')}{', quick' if quick else ''}"
    return found, write_study(found, folder, title, named)


def _print_study(found: Study, page: Path, *, as_json: bool, rule: str) -> None:
    """Print a study, and exit with status 2 if a part of it failed."""
    from openfield.report.objectives import study_lines, study_record

    if as_json:
        print_json(study_record(found))
    else:
        _print_lines(study_lines(found))
        places = len({row.environment for row in found.rows})
        _print_lines([rule] if rule else [])
        print(f"{page}: {len(found.rows)} agents in {places} environments, {len(found.correlations)} correlations")
    problems = [f"{row.environment}/{row.agent}: {problem}" for row in found.rows for problem in row.problems]
    _exit_with([{"error": problem} for problem in problems])


@app.command
def convert(source: Path, target: Path, /, *, allow_large: AllowLarge = False) -> None:
    """Turn a published pickle into sorted Parquet, or back; works for tables larger than memory.

    Args:
        source: A table.
        target: Where to write it; `.parquet` or `.pkl` decides the form.
        allow_large: Read a file whose content is more than a hundred times as large as the file.

    Example:
        openfield objectives convert agent.pkl agent.parquet
    """
    from openfield.objectives.formats.convert import convert_table

    with allowing_large(allow_large):
        done = convert_table(source, target)
    print(f"{target}: {done.rows:,} rows, {target.stat().st_size:,} bytes")
    for note in done.notes:
        print(f"note: {escape_controls(note)}")


@app.command
def frames(
    *episodes: Path,
    output: Annotated[Path, Parameter(name=("--output", "-o"), metavar="FILE")],
    thresholds: Annotated[Path | None, Parameter(metavar="FILE")] = None,
    size: Whole | None = None,
    levels: Whole | None = None,
    alignment: Annotated[
        Literal["action_leads_to_next", "action_led_here"], Parameter(metavar="WHICH")
    ] = "action_leads_to_next",
    allow_large: AllowLarge = False,
) -> None:
    """Make a table from episodes: NPZ files with frames and actions, folders of images, or videos.

    Args:
        episodes: One file or folder per episode.
        output: The table to write, `.parquet` or `.pkl`.
        thresholds: A table made by this command, whose thresholds are used; needed to compare agents.
        size: The height and width that frames are scaled down to [8, or that of the thresholds].
        levels: Levels per pixel [4, or those of the thresholds].
        alignment: Whether an action was chosen on its frame, or led to it [action_leads_to_next].
        allow_large: Read files whose content is more than a hundred times as large as the file.

    Example:
        openfield objectives frames episodes/*.npz -o agent.parquet
    """
    from openfield.objectives.formats.convert import check_target, read_thresholds
    from openfield.objectives.frames.table_of_episodes import Recipe, write_episode_table

    if not episodes:
        raise InvalidInput("Name at least one episode: openfield objectives frames EPISODE.npz -o table.parquet")
    check_target(output)
    bins = read_thresholds(thresholds) if thresholds else None
    high, deep = (8, 4) if bins is None else (len(bins), bins.shape[2] + 1)
    if bins is not None and (size or high, levels or deep) != (high, deep):
        raise InvalidInput(f"{thresholds}: its thresholds are for size {high} and {deep} levels.")
    recipe = Recipe(size=high if size is None else size, levels=deep if levels is None else levels, alignment=alignment)
    with allowing_large(allow_large):
        made = write_episode_table(episodes, recipe, output, bins)
    print(f"{output}: {made.rows:,} distinct transitions of {made.transitions:,}, {made.inputs:,} inputs")


def _read_start(path: Path) -> bytes:
    """Return how a file begins. Ask before SQLite opens it: closing it here would drop SQLite's locks."""
    try:
        with path.open("rb") as file:
            return file.read(len(SQLITE))
    except OSError:
        return b""  # reading it as a table or a run says why


def _record_runs(
    paths: Sequence[Path],
    human: Path | None,
    human_agent: str | None,
    thresholds: Path | None,
    pictures: bool,
    trust: bool,
    options: dict[str, Any],
) -> dict[str, Any]:
    """Return the JSON object of runs; a file that cannot be used is reported in its entry."""
    from msgspec.structs import replace

    from openfield.objectives.formats.convert import read_thresholds
    from openfield.objectives.runs.evaluate import evaluate_runs
    from openfield.objectives.runs.observations import SIZE
    from openfield.objectives.runs.recordings import Reading, read_human, read_study
    from openfield.report.objectives import runs_record

    if human_agent and not human:
        raise InvalidInput("--human-agent names the person in the run given by --human. Add --human.")
    bins = None if thresholds is None else read_thresholds(thresholds)
    size = SIZE if bins is None else len(bins)
    reading = Reading(size=size, pictures=pictures, trust=trust)
    if human is not None:
        person: Recording | None = read_human(human, replace(reading, agent=human_agent))
    else:
        person = read_study(paths, reading)
    runs, entries = _read_all(paths, reading)
    found = evaluate_runs(runs, human=person, thresholds=bins, **options)
    return runs_record(entries, None if person is None else person.path, options["unit"], found)


def _read_all(paths: Sequence[Path], reading: Reading) -> tuple[list[Recording], list[dict[str, Any]]]:
    from openfield.objectives.formats.load import file_hash
    from openfield.objectives.runs.recordings import read_recording

    runs: list[Recording] = []
    entries: list[dict[str, Any]] = []
    known: dict[str, Path] = {}
    for path in paths:
        try:
            if _read_start(path)[:1] in (b"\x80", b"P"):
                raise InvalidInput(f"{path}: a table; tables and runs cannot be evaluated by one command.")
            before = known.setdefault(file_hash(path), path)
            if before is not path:
                raise InvalidInput(f"{path}: the same run as {before}; its episodes count once.")
            run = read_recording(path, reading)
            runs.append(run)
            entries.append({"run": str(path), "episodes": run.episodes, "distinct_pictures": run.pictures})
        except OpenfieldError as error:
            said = str(error)
            entries.append({"run": str(path), "error": said if str(path) in said else f"{path}: {said}"})
    return runs, entries


@contextmanager
def _progress(what: str = "tables") -> Iterator[Callable[[int, int], None]]:
    """Show a bar on the error stream while a study runs, if it is a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        bar = progress.add_task(what)
        yield lambda done, total: progress.update(bar, completed=done, total=total)


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        print(escape_controls(line))


def _exit_with(records: list[dict[str, Any]]) -> None:
    """Print a line on the error stream for each file that failed, and exit with status 2 if there is one."""
    failed = [record["error"] for record in records if "error" in record]
    for line in failed:
        print(f"openfield: {escape_controls(line)}", file=sys.stderr)
    if failed:
        raise SystemExit(2)


class TableQuestions(NamedTuple):
    """What else is asked of tables."""

    intervals: bool
    null: bool
    compat: bool
    hashed: bool
    executor: str | None
    """What counts the shards of each table; None if only large ones are cut, and counted here."""


def record_tables(paths: Sequence[Path], options: dict[str, Any], asked: TableQuestions) -> list[dict[str, Any]]:
    """Return the JSON objects of tables.

    Args:
        paths: Their files.
        options: Those of `print_objectives`.
        asked: What else is asked of them.

    Raises:
        InvalidInput: Options do not go together, or there is no such executor.
    """
    both_ends, number = options["inputs"] == "all", options["num_actions"]
    if asked.intervals and both_ends:
        raise InvalidInput("--intervals are of inputs acted on; they do not go with --inputs all.")
    if number is not None and number < 1:
        raise InvalidInput(f"--num-actions is {number}; it must be positive.")
    if asked.executor and (asked.intervals or asked.null or both_ends):
        raise InvalidInput("--executor counts shards; --intervals, --null and --inputs all need the whole table.")
    with _sharing(asked.executor) as apply:
        records = [_record(path, options, asked, apply) for path in paths]
    _add_equal_numbers(paths, records, asked)
    return records


def _record(path: Path, options: dict[str, Any], asked: TableQuestions, apply: Apply | None) -> dict[str, Any]:
    """Return the JSON object of one file; one that cannot be used has null values and says why."""
    from openfield.objectives.evaluation import NAMES, evaluate
    from openfield.objectives.formats.large_tables import open_table
    from openfield.objectives.formats.load import file_hash, load_table
    from openfield.objectives.formats.shards import summarise_shards
    from openfield.report.objectives import evaluation_record, failure_record

    start = time.perf_counter()
    try:
        if asked.null or asked.intervals or options["inputs"] == "all":
            table: Table | TableSummary = load_table(path)
        else:
            table = open_table(path) if apply is None else summarise_shards(path, apply)
        found = evaluate(table, **options)
        more = {} if asked.compat else _estimate(table, found, asked)
        digest = file_hash(path) if asked.hashed else None
    except OpenfieldError as error:
        return failure_record({"table": str(path)}, str(error), options["only"] or NAMES, options["unit"])
    record = evaluation_record(found, time.perf_counter() - start, digest, options) | more
    return record | {"error": found.faults[0]} if found.faults else record


def _estimate(table: Table | TableSummary, found: Evaluation, asked: TableQuestions) -> dict[str, Any]:
    """Return the null and the excess of empowerment, saturation, and intervals if they are asked for."""
    from openfield.objectives.measures.excess import describe_saturation
    from openfield.objectives.measures.permutations import DRAWS as SHUFFLES
    from openfield.objectives.tables.table import TableSummary

    if isinstance(table, TableSummary):
        return {"empowerment": None, "saturation": describe_saturation(table.counts) or None}
    shuffled = asked.null or table.num_actions == 1 or table.counts.total <= MAX_SHUFFLED
    if not shuffled and not asked.intervals:  # without the imports that estimates need
        reason = f"more than {MAX_SHUFFLED:,} transitions; --null computes it"
        plain = {"plug_in": found.values.get("empowerment"), "null_mean": None, "excess": None, "reason": reason}
        return {"empowerment": plain, "saturation": describe_saturation(table.counts) or None}
    from openfield.objectives.intervals import DRAWS, estimate_counts
    from openfield.report.objectives import estimates_record

    shuffles = SHUFFLES if shuffled and "empowerment" in found.values else 0
    known = estimate_counts(table, draws=DRAWS if asked.intervals else 0, shuffles=shuffles)
    record = estimates_record(known, found.unit, asked.intervals)
    if not shuffled:
        record["empowerment"]["reason"] = f"more than {MAX_SHUFFLED:,} transitions; --null computes it"
    shown = [name for name in record.get("intervals", {}) if name in found.values or name == "excess"]
    record |= {"intervals": {name: record["intervals"][name] for name in shown}} if asked.intervals else {}
    return record if "empowerment" in found.values else record | {"empowerment": None}


def _add_equal_numbers(paths: Sequence[Path], records: list[dict[str, Any]], asked: TableQuestions) -> None:
    """Add to the objects of several tables their entropy and information gain at as many transitions as all have."""
    usable = [(path, record) for path, record in zip(paths, records, strict=True) if "n" in record]
    if len(usable) < 2 or asked.compat or any(record["distinct"]["transitions"] > MAX_THINNED for _, record in usable):
        return
    from openfield.objectives import load_table
    from openfield.objectives.intervals import count_table, objectives_at

    least = min(record["n"] for _, record in usable)
    if not isinstance(least, int):
        return
    for path, record in usable:
        found = objectives_at([count_table(load_table(path))], least, record["num_obs"])
        scale = {name: math.log(2) if unit == "bits" else 1.0 for name, unit in record["units"].items()}
        values = {name: value / scale[name] for name, value in found.items() if name in scale}
        record["equal"] = {"transitions": least, "values": values}


@contextmanager
def _sharing(executor: str | None) -> Iterator[Apply | None]:
    """Yield what runs a function over the shards of tables, or None if nothing was said about that.

    Raises:
        InvalidInput: There is no such executor, or Ray does not answer.
    """
    if executor is None:
        yield None
        return
    from openfield.objectives.formats.shards import map_over_ray
    from openfield.runner.cluster import Cluster, choose_workers
    from openfield.runner.ray.connection import RayConnection

    players = choose_workers(count_processors(), executor)
    if not isinstance(players, Cluster):
        yield _map_over_processes
        return
    with closing(RayConnection(players)) as connection:
        connection.open()
        yield map_over_ray


def _map_over_processes(function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    """Run a function over items in one process per processor; results come in any order."""
    from concurrent.futures.process import BrokenProcessPool

    from openfield.objectives.pool import run_in_pool

    try:
        for _, result in run_in_pool(function, list(items), count_processors()):
            yield result
    except BrokenProcessPool:
        raise InvalidInput(f"A process that counted a shard died. {MORE_MEMORY}") from None
