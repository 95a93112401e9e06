"""`openfield score`: numbers from result files or arrays, with no server and no run."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from openfield.console import print_json, print_table

HEADLINES = {
    "m_acc": ("full_top1", "pre_top1", "post_top1"),
    "m_num_stats": ("GT_indx", "P_indx_0.5"),
    "m_is_cdt_and_is_early": ("Is CDT", "Is Early"),
    "m_nrp": ("M_nrp_post_top1", "M_nrp_post_top3"),
}
"""What the table shows of each test."""


def score(
    domain: str,
    /,
    *,
    logits: Path | None = None,
    labels: Path | None = None,
    features: Path | None = None,
    scores: Path | None = None,
    higher: Literal["known", "novel"] = "known",
    arrays: Path | None = None,
    detection: Path | None = None,
    classification: Path | None = None,
    data: Path | None = None,
    test: str | None = None,
    results: Path | None = None,
    baseline: str | None = None,
    redlight: bool = False,
    area: str = "image_classification",
    protocol: str = "OND",
    stream: bool = False,
    json: bool = False,
) -> None:
    """Score open-set results that lie on disk.

    Parameters
    ----------
    domain
        `ond`.
    logits
        An .npy file, samples x classes.
    labels
        An .npy file; -1 is unknown.
    features
        An .npy file, samples x anything, for detectors that want it.
    scores
        An .npy file with a score per sample of your own.
    higher
        What a higher score of yours means.
    arrays
        An .npz file with `pred`, `conf` and `label`.
    detection
        A detection file of the protocol.
    classification
        A classification file of the protocol; for text tests, the file of labels.
    data
        The data directory with the test's truth.
    test
        The test's name.
    results
        A folder of result files of many tests; also gives the programme's M1 to M6 over them.
    baseline
        Whose results in that folder the others are told against: M3 to M6 and m_nrp, which are not defined without.
    redlight
        The tests were run with the red light: the relative performance is M4 then, not M3.
    area
        The kind of test.
    protocol
        OND or CONDDA.
    stream
        Build seeded tests from the arrays and play them with each change detector.
    json
        Print the numbers as JSON.
    """
    from openfield.errors import InvalidInput

    if domain != "ond":
        raise InvalidInput(f"'{domain}' has nothing to score from files; ond has.")
    if results is not None:
        from openfield.domains.ond.scoring.programme import Wanted, score_results

        if data is None:
            raise InvalidInput("Scoring a folder of results needs --data, the directory of the tests.")
        wanted = Wanted(data=data, protocol=protocol, area=area, baseline=baseline, given=redlight)
        found = score_results(results, wanted)
        print_json(found) if json else _print_folder(found)
        return
    if detection is not None or classification is not None:
        from openfield.domains.ond.scoring.from_files import score_files

        if detection is None or classification is None or data is None or test is None:
            raise InvalidInput("Scoring result files needs --detection, --classification, --data and --test.")
        _print(score_files(detection, classification, data, protocol, area, test), json)
        return
    _print(_score_arrays(logits, labels, features, (scores, higher), arrays, stream), json)


def _score_arrays(
    logits: Path | None,
    labels: Path | None,
    features: Path | None,
    own: tuple[Path | None, str],
    arrays: Path | None,
    stream: bool,
) -> dict[str, Any]:
    """The numbers of arrays, by detector; with `stream`, those of the change detectors too."""
    from openfield.domains.ond.scoring.from_files import count_confusion, score_arrays, score_logits, score_stream
    from openfield.domains.ond.testset.arrays import Arrays, read_array, read_labels, read_named
    from openfield.errors import InvalidInput

    numbers: dict[str, Any] = {}
    if arrays is not None:
        yours = read_named(arrays)
        probable = bool(yours.conf.size and yours.conf.min() >= 0 and yours.conf.max() <= 1)
        numbers["yours"] = score_arrays(yours, probable)
    elif logits is None or labels is None:
        raise InvalidInput("Give --logits and --labels, or --arrays, or --detection and --classification.")
    else:
        table, truth = read_array(logits), read_labels(labels)
        numbers |= score_logits(table, truth, None if features is None else read_array(features))
        path, higher = own
        conf = table.max(axis=1) if path is None else read_array(path) * (1.0 if higher == "known" else -1.0)
        yours = Arrays(table.argmax(axis=1), conf.astype(float), truth)
        numbers |= {} if path is None else {"yours": score_arrays(yours)}
    numbers["confusion"] = count_confusion(yours)
    return numbers | ({"stream": score_stream(yours)} if stream else {})


def _print(numbers: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(numbers)
        return
    rows = [(family, name, _text(value)) for family, part in numbers.items() for name, value in part.items()]
    print_table(("", "number", "value"), rows)
    if any("resampling" in getattr(value, "note", "") for part in numbers.values() for value in part.values()):
        print("\nOne test: the intervals come from resampling its samples.")


def _print_folder(found: dict[str, dict[str, Any]]) -> None:
    """The programme's numbers of everyone, and the few of each test that say most; `--json` has them all."""
    rows: list[tuple[str, str, str, str]] = []
    for who, parts in found.items():
        rows += [(who, "programme", name, _text(value)) for name, value in parts["programme"].items()]
        for test, families in parts.items():
            if "refused" in families:
                rows.append((who, test, "refused", families["refused"]))
            flat = {name: value for family in HEADLINES for name, value in families.get(family, {}).items()}
            rows += [(who, test, name, _text(flat[name])) for name in sum(HEADLINES.values(), ()) if name in flat]
    print_table(("", "test", "number", "value"), rows)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_text(part)}" for name, part in value.items())
    return "-" if value is None else str(value)
