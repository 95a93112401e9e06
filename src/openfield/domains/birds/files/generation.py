"""The generator of trials: draws the trials of a `configMeta.xml`, and writes them as a `config.xml`.

The same seed draws the same trials.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from xml.sax.saxutils import quoteattr

import msgspec

from openfield.domains.birds.files.config import MAX_TRIALS, ConfigMeta, MetaSet, MetaTrial, is_meta, read_meta
from openfield.domains.birds.files.pool import LevelPool
from openfield.domains.birds.files.xml_elements import naming
from openfield.domains.birds.harness import EvaluationScript, LevelSet
from openfield.domains.birds.settings import TimeScope
from openfield.errors import InvalidInput
from openfield.files.atomic import replacing
from openfield.trial import derive

META_NAME, CONFIG_NAME = "configMeta.xml", "config.xml"


def find_config(path: Path, pool: LevelPool, seed: int = 0, time_scope: TimeScope = "set") -> Path:
    """Return the list of trials behind a `config.xml`, a `configMeta.xml`, or a folder with either.

    If a description is newer than the list beside it, or has no list, its trials are drawn and written there.
    """
    meta = path / META_NAME if path.is_dir() else path
    if path.name == CONFIG_NAME and path.is_file() and path.with_name(META_NAME).is_file():
        meta = path.with_name(META_NAME)
    if not meta.is_file() or not is_meta(meta):
        return path / CONFIG_NAME if path.is_dir() else path
    listed = meta.with_name(CONFIG_NAME if meta.name == META_NAME else f"{meta.stem}.config.xml")
    if not listed.is_file() or meta.stat().st_mtime_ns > listed.stat().st_mtime_ns:
        with replacing(listed) as draft:
            draft.write_text(write_config(draw_scripts(read_meta(meta), pool, seed, time_scope)), encoding="utf-8")
    return listed


def draw_scripts(
    meta: ConfigMeta, pool: LevelPool, seed: int = 0, time_scope: TimeScope = "set"
) -> list[EvaluationScript]:
    """Draw the trials that a description asks for."""
    scripts: list[EvaluationScript] = []
    if (total := max(0, meta.repeats) * sum(max(0, trial.count) for trial in meta.trials)) > MAX_TRIALS:
        raise InvalidInput(f"The description asks for {total:,} trials; at most {MAX_TRIALS:,} are allowed.")
    for evaluation in range(max(0, meta.repeats)):
        for block, trial in enumerate(meta.trials):
            for number in range(max(0, trial.count)):
                rng = random.Random(derive(seed, "generate", evaluation, block, number))
                scripts += _trial(trial, pool, rng, time_scope)
    if not scripts:
        raise InvalidInput("The description asks for no trial: every <trial> has a count or repeats of 0 or less.")
    return scripts


def write_config(scripts: list[EvaluationScript]) -> str:
    """Return trials as the text of a `config.xml`."""
    first = scripts[0]
    measured = f'measure_in_training="{first.report_in_training}" measure_in_testing="{first.report_in_testing}"'
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        "<evaluation>",
        f'  <novelty_detection_measurement step="{first.report_step}" {measured} />',
        "  <trials>",
        *(line for number, script in enumerate(scripts) for line in _trial_lines(number, script)),
        "  </trials>",
        "</evaluation>",
    ]
    return "\n".join(lines) + "\n"


def count_test_sets(trial: MetaTrial, seconds: int) -> int:
    """Return the number of test sets before their percentages are applied: one per checkpoint, at least one.

    The seconds are those of training, all levels together.
    """
    by_time = seconds, trial.script.checkpoint_seconds
    by_count = trial.script.training.interactions, trial.script.checkpoint_interactions
    total = sum(-(-limit // every) for limit, every in (by_time, by_count) if limit > 0 and every > 0)
    if trial.tests and total > MAX_TRIALS:
        raise InvalidInput(
            f"The limits of training give {total:,} checkpoints with test sets; at most {MAX_TRIALS:,} are allowed."
        )
    return max(1, total) if trial.tests else 0


def _trial(trial: MetaTrial, pool: LevelPool, rng: random.Random, time_scope: TimeScope) -> Iterator[EvaluationScript]:
    script, limits = trial.script, trial.script.training
    if script.executions <= 0:
        return
    levels = tuple(name for part in trial.training for name in _draw(part, rng.randrange(*part.amount), pool, rng))
    seconds = limits.seconds * (len(levels) if time_scope == "level" else 1)
    training = msgspec.structs.replace(limits, levels=levels, seconds=seconds)
    tests = tuple(_draw_tests(trial, seconds, pool, rng))
    for informed in trial.informed:
        yield msgspec.structs.replace(script, training=training, tests=tests, informed=informed)


def _draw_tests(trial: MetaTrial, seconds: int, pool: LevelPool, rng: random.Random) -> Iterator[LevelSet]:
    """Draw test sets; no level comes twice in a trial."""
    total, used = count_test_sets(trial, seconds), set[str]()
    parts = [part for part in trial.tests for _ in range(math.ceil(total * Fraction(str(part.percentage)) / 100))]
    if not trial.ordered:
        rng.shuffle(parts)
    for number, part in enumerate(parts, 1):
        wanted = rng.randrange(*part.amount)
        drawn = _draw(part, wanted, pool, rng, used)
        if len(drawn) < wanted:
            same = [each for each in parts if _kind(each) == _kind(part)]
            needed = sum(each.amount[1] - 1 for each in same)
            short = f"test set {number} of {len(parts)} needs {wanted}, {len(drawn)} are left"
            raise _too_small(part, pool, short, needed)
        used.update(drawn)
        yield msgspec.structs.replace(part.limits, levels=tuple(drawn))


def _kind(part: MetaSet) -> tuple[str, str]:
    return part.novelty_level, part.novelty_type


def _too_small(part: MetaSet, pool: LevelPool, short: str, needed: int) -> InvalidInput:
    """Return what to do about a pool that has too few levels of a kind for the test sets of a trial."""
    from openfield.domains.birds.files.templates import count_for  # it loads the game, which only this message needs

    kind = f"novelty level {part.novelty_level}, type {part.novelty_type}"
    variations = count_for(part.novelty_level, part.novelty_type, needed)
    command = f"openfield birds generate --pool DIR --count {variations}"
    more = f", or make {needed:,} levels and name their folder with --levels: {command}" if variations else "."
    count = len(pool.names(part.novelty_level, part.novelty_type))
    return InvalidInput(
        f"{part.where}: there are {count} levels of {kind} in {pool.folder}, too few for the test sets of a trial, "
        f"in which no level comes twice: {short}. Lower 'amount'{more}"
    )


def _draw(part: MetaSet, wanted: int, pool: LevelPool, rng: random.Random, used: set[str] | None = None) -> list[str]:
    """Draw levels in the requested portions and shuffle them.

    A level may come again if `used` is None. Else no level comes twice, none of `used` comes at all, and there may be
    fewer than wanted.
    """
    with naming(f"{part.where}: 'novelty_level' and 'novelty_type'"):
        names = pool.names(part.novelty_level, part.novelty_type)
    buckets = sort_levels([name for name in names if name not in (used or ())])
    drawn: list[str] = []
    for bucket, count in zip(buckets, count_by_bucket(wanted, part, buckets), strict=True):
        again = used is None
        drawn += [rng.choice(bucket) for _ in range(count)] if again else rng.sample(bucket, min(count, len(bucket)))
    rng.shuffle(drawn)
    return drawn


def sort_levels(names: list[str]) -> tuple[list[str], list[str], list[str]]:
    """Sort levels by file name into novel ones, ones without the novelty, and ones where it makes no difference."""
    buckets: tuple[list[str], list[str], list[str]] = ([], [], [])
    for name in names:
        parts = Path(name).stem.split("_")
        buckets[1 if parts[1:2] == ["0"] else 2 if parts[2:3] == ["0"] else 0].append(name)
    return buckets


def count_by_bucket(amount: int, part: MetaSet, buckets: tuple[list[str], ...]) -> list[int]:
    """Return how many levels to draw from each bucket; an empty bucket gives its share to the others."""
    absence, no_difference = part.absence, part.no_difference
    total = absence + no_difference
    shares = [0.0, absence / total, no_difference / total] if total > 1 else [1 - total, absence, no_difference]
    present = [share if bucket else 0.0 for share, bucket in zip(shares, buckets, strict=True)]
    if not any(present):
        present = [1.0 if bucket else 0.0 for bucket in buckets]
    whole = math.fsum(present)
    if not whole:
        return [0, 0, 0]
    counts = [math.floor(amount * share / whole + 0.5) for share in present]
    largest = max(range(3), key=lambda index: present[index])
    counts[largest] += amount - sum(counts)
    return counts


def _trial_lines(number: int, script: EvaluationScript) -> Iterator[str]:
    yield (
        f'    <trial id="{number}" number_of_executions="{script.executions}" '
        f'checkpoint_time_limit="{script.checkpoint_seconds}" '
        f'checkpoint_interaction_limit="{script.checkpoint_interactions}" notify_novelty="{script.informed}">'
    )
    yield from _set_lines("training", script.training)
    for levels in script.tests:
        yield from _set_lines("test", levels)
    yield "    </trial>"


def _set_lines(mode: str, levels: LevelSet) -> Iterator[str]:
    yield (
        f'      <game_level_set mode="{mode}" time_limit="{levels.seconds}" '
        f'total_interaction_limit="{levels.interactions}" attempt_limit_per_level="{levels.attempts}" '
        f'allow_level_selection="{levels.selection}">'
    )
    yield from (f"        <game_levels level_path={quoteattr('Levels/' + name)} />" for name in levels.levels)
    yield "      </game_level_set>"
