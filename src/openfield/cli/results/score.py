"""`openfield score`: compare detectors of unknown samples on arrays or score files, at the level of OpenOOD.

A domain may add options for results of its own on disk: `openfield score DOMAIN --help`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Group, Parameter
from cyclopts.validators import Number

from openfield.cli.shared.domain_options import DomainOptions, DomainTarget, prepare_changes
from openfield.options import MORE, CommandChanges, NumberTable, Whole

if TYPE_CHECKING:
    from openfield.metrics.ood.benchmark import Benchmark, Scored
    from openfield.metrics.ood.resampling import DetectorComparison

SAMPLES = Group("Samples", sort_key=1)
SET, FILE = Parameter(metavar="[NAME=]FILE", consume_multiple=False), Parameter(metavar="FILE")
Digits = Annotated[Whole, Parameter(validator=Number(gte=1, lte=12), metavar="NUMBER", group=MORE)]
Resamples = Annotated[Whole, Parameter(validator=Number(gte=0, lte=100_000), metavar="NUMBER", group=MORE)]
Format = Literal["text", "markdown", "latex", "json"]


@Parameter(name="*", group=SAMPLES)
@dataclass(frozen=True)
class SampleFiles:
    """The files of samples."""

    id: Annotated[str | None, Parameter(metavar="[NAME=]FILE")] = None
    """Known samples: .npz, or a folder of .npy, with logits, features, labels."""
    near: Annotated[tuple[str, ...], SET] = ()
    """Unknown samples like the known ones. Repeat it."""
    far: Annotated[tuple[str, ...], SET] = ()
    """Unknown samples unlike them. Repeat it."""
    train: Annotated[Path | None, FILE] = None
    """Training samples, for detectors that are fitted."""
    val: Annotated[Path | None, FILE] = None
    """Validation samples, for detectors that the literature fits on them (react, klm); else --train is used."""
    head: Annotated[Path | None, FILE] = None
    """The last layer: .npz with weight and bias."""


NO_FILES = SampleFiles()


def score(
    folders: Annotated[list[str] | None, Parameter(metavar="[NAME=]FOLDER")] = None,
    /,
    options: DomainOptions = None,
    target: DomainTarget = None,
    *,
    files: SampleFiles = NO_FILES,
    detector: Annotated[tuple[str, ...], Parameter(metavar="NAME", consume_multiple=False)] = (),
    measure: Annotated[tuple[str, ...], Parameter(metavar="NAME", consume_multiple=False)] = (),
    compare: Annotated[str | None, Parameter(metavar="NAME")] = None,
    format: Annotated[Format, Parameter(metavar="FORMAT")] = "text",
    digits: Digits = 4,
    resamples: Resamples = 500,
    seed: Annotated[Whole, Parameter(group=MORE)] = 0,
    device: Annotated[str, Parameter(group=MORE, metavar="DEVICE")] = "cpu",
) -> None:
    """Compare detectors of unknown samples on the same samples.

    Args:
        folders: Folders of OpenOOD's score files, one for each detector; --id, --near and --far then name their sets.
            A name that is given again is another seed: numbers are means over seeds.
            The name of a domain scores its own files: openfield score DOMAIN --help
        options: Options of the domain.
        target: The domain.
        files: The samples.
        detector: msp, maxlogit, energy, entropy, klm, openmax, mahalanobis, knn, vim, react or ash, also as knn(k=10).
            Repeat it [all].
        measure: auroc, fpr95, fpr95_id, aupr_in, aupr_out, oscr, ccr_fpr1e-1 to -4 or autc. Repeat it [auroc, fpr95].
        compare: The detector that the others are compared with [the first].
        format: How the numbers are printed; json has all measures [text].
        digits: Decimals in tables [4].
        resamples: Resamplings behind intervals and comparisons [500]; 0 makes none.
        seed: The seed of the resamplings [0].
        device: `cuda` or `cuda:1`: compute knn, mahalanobis, vim, energy and react on an NVIDIA card, with PyTorch or
            CuPy (extra `cuda`) [cpu].

    Example:
        openfield score --train train.npz --id test.npz --far svhn=s.npz
    """
    from openfield.errors import InvalidInput, UnknownName
    from openfield.metrics.ood.benchmark import MEASURES
    from openfield.metrics.ood.resampling import compare_detectors

    changes = CommandChanges() if target is None else prepare_changes(target.domain, "score", options)
    if target is not None and changes.score is not None:
        if files != NO_FILES or detector or measure or compare or len(folders or ()) > 1 or device != "cpu":
            name = target.domain.name
            raise InvalidInput(
                f"{name} scores its own files: leave out other folders, samples, detectors and --device."
            )
        _print_numbers(changes.score(), format)
        return
    measures = measure or ("auroc", "fpr95")
    for name in measures:
        if name not in MEASURES:
            raise UnknownName("measure", name, MEASURES, label="Known")
    if folders and (files.train or files.val or files.head or detector or device != "cpu"):
        raise InvalidInput("Score files hold confidences: leave out --train, --val, --head, --detector and --device.")
    table, scored = _score_folders(folders, files) if folders else _score_arrays(files, detector, device)
    reference = compare or next(iter(scored))
    if reference not in scored:
        raise UnknownName("detector", reference, scored, label="Scored")
    comparison = compare_detectors(table, scored, reference, resamples, seed) if resamples else None
    _print(format, table, comparison, measures, digits)


def _score_folders(folders: list[str], files: SampleFiles) -> tuple[Benchmark, dict[str, Scored]]:
    from openfield.errors import InvalidInput
    from openfield.metrics.ood.score_files import score_folders

    named: dict[str, list[Path]] = {}
    for text in folders:
        name, path = _split(text)
        if name in named and not text.startswith(f"{name}="):
            raise InvalidInput("Two folders have the same name. Name the detectors: msp=FOLDER knn=FOLDER")
        named.setdefault(name, []).append(path)
    return score_folders(named, files.id, files.near, files.far)


def _score_arrays(files: SampleFiles, detectors: tuple[str, ...], device: str) -> tuple[Benchmark, dict[str, Scored]]:
    from openfield.errors import InvalidInput
    from openfield.metrics.ood.array_library import open_library, say_full
    from openfield.metrics.ood.benchmark import score_detectors
    from openfield.metrics.ood.catalogue import choose_detectors
    from openfield.metrics.ood.samples import read_last_layer, read_samples

    if files.id is None:
        raise InvalidInput("Give the in-distribution samples with --id, or a folder of score files.")
    chosen = choose_detectors(detectors, open_library(device))
    known, *others = (read_samples(path, name) for name, path in map(_split, (files.id, *files.near, *files.far)))
    train, val = (
        None if path is None else read_samples(path, name)
        for name, path in (("train", files.train), ("val", files.val))
    )
    head = None if files.head is None else read_last_layer(files.head, known.width)
    near, far = others[: len(files.near)], others[len(files.near) :]
    try:
        return score_detectors(known, near, far, chosen, train, head, val)
    except (RuntimeError, MemoryError) as error:
        if (full := say_full(error)) is not None:
            raise full from None
        raise


def _split(text: str) -> tuple[str, Path]:
    """Return the name and the path of `NAME=PATH` or `PATH`; a file without a name is called by its stem."""
    name, sign, path = text.partition("=")
    if not sign or "/" in name:
        return Path(text).stem, Path(text)
    return name, Path(path)


def _print_numbers(table: NumberTable, style: Format) -> None:
    """Print the numbers of a domain."""
    from openfield.console import print_json

    if style == "json":
        print_json(table.values)
    else:
        _print_tables(style, [(table.caption, [list(table.titles), *map(list, table.rows)])], table.remarks)


def _print(
    style: Format, table: Benchmark, comparison: DetectorComparison | None, measures: tuple[str, ...], digits: int
) -> None:
    from openfield.console import print_json
    from openfield.metrics.ood.benchmark import LOWER_IS_BETTER, MEASURES
    from openfield.metrics.ood.resampling import RESAMPLED
    from openfield.report.export import score_table

    if style == "json":
        print_json(score_table.as_values(table, comparison))
        return
    bold = {"markdown": score_table.bold_markdown, "latex": score_table.bold_latex}.get(style, str)
    titles = {
        name: f"{MEASURES[name]}, {'lower' if name in LOWER_IS_BETTER else 'higher'} is better" for name in measures
    }
    tables = [(title, score_table.tabulate_measure(table, name, digits, bold)) for name, title in titles.items()]
    resampled = [name for name in measures if name in RESAMPLED]
    for name in resampled:
        if comparison is None:
            break
        title = f"95 % intervals of {MEASURES[name].partition(' ')[0]}"
        tables.append((title, score_table.interval_cells(comparison, table.columns, name, digits)))
    if comparison is not None and comparison.differences and resampled:
        against = f"Differences from {score_table.title_of(comparison.reference)}"
        tables.append((against, score_table.comparison_cells(comparison, table.columns, resampled, digits)))
    _print_tables(style, tables, score_table.list_remarks(table, comparison))


def _print_tables(style: Format, tables: Sequence[tuple[str, list[list[str]]]], remarks: Iterable[str]) -> None:
    """Print tables, titles of columns first, and lines below them: for a terminal, in Markdown or in LaTeX."""
    from openfield.console import escape_controls, print_table
    from openfield.report.export import score_table

    blocks: list[str] = []
    for title, cells in tables:
        if style == "text":
            print(title)
            print_table(cells[0], cells[1:])
            print()
        else:
            heading = "" if style == "latex" else f"{title}\n\n"
            blocks.append(f"{heading}{score_table.write_cells(cells, style, title)}\n")
    sign = "% " if style == "latex" else ""
    blocks += [f"{sign}{line}" for line in remarks]
    print(escape_controls("\n".join(blocks)))
