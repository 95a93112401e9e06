"""The metrics of the open-world programme with their published values and keys, odd edges included.

Arrays of one test -> named numbers; `metrics/programme.py` has M1 to M6 over many tests. Arguments are plain arrays:
`p_novel` (N), `gt_novel` (N of 0 and 1), `p_class` (N x C), `gt_class` (N, columns of `p_class`).
"""

from __future__ import annotations

import math
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from openfield.errors import InvalidInput

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
NEVER = np.iinfo(np.int64).max
"""The rank of a label that has no column: it is never among the best."""
THRESHOLDS = (0.175, 0.225, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
RATES = ("accuracy", "precision", "recall", "f1_score", "TP", "FP", "TN", "FN")
WINDOW, FIRST_ROUNDS = 100, 5
"""Every caller of the original uses windows of 100 samples and suffixes from 5 rounds on."""
Numbers = dict[str, float]
Period = Literal["full_test", "pre_novelty", "post_novelty"]


def m_num(p_novel: ArrayLike, gt_novel: ArrayLike) -> Numbers:
    """Count the samples from the onset to the first detection; 1 also without a detection. Keys are the thresholds."""
    p, novel = check_novel(p_novel, gt_novel)
    if not novel.any():
        return {str(h): -1 for h in THRESHOLDS}
    return {str(h): 1 + (first_of(p[novel] >= h) or 0) for h in THRESHOLDS}


def m_num_stats(p_novel: ArrayLike, gt_novel: ArrayLike) -> Numbers:
    """Return where novelty starts and where it is first detected, counted from 1; N + 1 means never."""
    p, novel = check_novel(p_novel, gt_novel)
    found: Numbers = {"GT_indx": _position(novel)}
    return found | {f"P_indx_{h}": _position(p >= h) for h in THRESHOLDS}


def m_ndp(p_novel: ArrayLike, gt_novel: ArrayLike, mode: Period = "full_test") -> Numbers:
    """Score the detection of novel samples as a binary decision: eight numbers for each of nine thresholds.

    Raises:
        InvalidInput: The mode is not one of `full_test`, `pre_novelty` and `post_novelty`, or an array is wrong.
    """
    if mode not in get_args(Period):
        raise InvalidInput(
            f"The mode must be {', '.join(get_args(Period)[:-1])} or {get_args(Period)[-1]}, not {mode!r}."
        )
    p, novel = check_novel(p_novel, gt_novel)
    onset = first_of(novel)
    if mode == "post_novelty" and onset is None:
        return {f"{rate}_{h}": -1 for h in THRESHOLDS for rate in RATES}
    if mode == "post_novelty":
        p, novel = p[onset:], novel[onset:]
    elif mode == "pre_novelty" and onset is not None and not novel.all():
        p, novel = p[:onset], novel[:onset]
    return {f"{rate}_{h}": value for h in THRESHOLDS for rate, value in _count_decisions(p > h, novel).items()}


def m_ndp_pre(p_novel: ArrayLike, gt_novel: ArrayLike) -> Numbers:
    """Compute `m_ndp` before the onset."""
    return m_ndp(p_novel, gt_novel, "pre_novelty")


def m_ndp_post(p_novel: ArrayLike, gt_novel: ArrayLike) -> Numbers:
    """Compute `m_ndp` from the onset on."""
    return m_ndp(p_novel, gt_novel, "post_novelty")


def m_acc(
    gt_novel: ArrayLike,
    p_class: ArrayLike,
    gt_class: ArrayLike,
    round_size: int = WINDOW,
    asymptotic_start_round: int = FIRST_ROUNDS,
) -> Numbers:
    """Compute top-1 and top-3 accuracy over the whole test, before and after the onset, and over its last samples."""
    ranks = rank_labels(*check_classes(p_class, gt_class))
    return acc_of_ranks(_flags(gt_novel, len(ranks)), ranks, round_size, asymptotic_start_round)


def acc_of_ranks(
    novel: NDArray[np.bool_], ranks: Ints, width: int = WINDOW, first_rounds: int = FIRST_ROUNDS
) -> Numbers:
    """Compute `m_acc` from ranks, in time linear in the number of samples."""
    hits = {k: ranks < k for k in (1, 3)}
    numbers: Numbers = {f"full_top{k}": _share(hits[k]) for k in hits}
    onset = first_of(novel)
    for k in hits:
        if onset is None:
            numbers[f"pre_top{k}"] = numbers[f"full_top{k}"]
            numbers |= {f"post_{part}top{k}": -1 for part in ("", "mean_", "std_")}
        else:  # the first novel sample counts as before: the original's border
            numbers |= _describe("pre_", k, hits[k][: onset + 1], width)
            numbers |= _describe("post_", k, hits[k][onset + 1 :], width)
    return numbers | _asymptotic(hits, width, first_rounds * width)


def m_acc_round_wise(p_class: ArrayLike, gt_class: ArrayLike, round_size: int = WINDOW) -> Numbers:
    """Compute top-1 and top-3 accuracy of every round."""
    return round_wise_of_ranks(rank_labels(*check_classes(p_class, gt_class)), round_size)


def round_wise_of_ranks(ranks: Ints, size: int) -> Numbers:
    """Compute `m_acc_round_wise` from ranks."""
    numbers: Numbers = {}
    for number in range(-(-len(ranks) // size)):
        part = ranks[number * size : (number + 1) * size]
        numbers |= {f"top{k}_accuracy_round_{number}": _share(part < k) for k in (1, 3)}
    return numbers


def m_ndp_failed_reaction(p_novel: ArrayLike, gt_novel: ArrayLike, p_class: ArrayLike, gt_class: ArrayLike) -> Numbers:
    """Compute `m_ndp` on the samples that were classified wrongly."""
    p, novel = check_novel(p_novel, gt_novel)
    return failed_reaction_of_ranks(p, novel, rank_labels(*check_classes(p_class, gt_class)))


def failed_reaction_of_ranks(p: Floats, novel: NDArray[np.bool_], ranks: Ints) -> Numbers:
    """Compute `m_ndp_failed_reaction` from ranks."""
    numbers: Numbers = {}
    for k in (1, 3):
        missed = ranks >= k
        if missed.any():
            numbers |= {f"top{k}_{name}": value for name, value in m_ndp(p[missed], novel[missed]).items()}
        else:
            numbers |= {f"top{k}_{rate}": -1 for rate in RATES}
    return numbers


def m_accuracy_on_novel(p_class: ArrayLike, gt_class: ArrayLike, gt_novel: ArrayLike) -> Numbers:
    """Compute top-3 and top-1 accuracy on the novel samples alone."""
    ranks = rank_labels(*check_classes(p_class, gt_class))
    return novel_only_of_ranks(_flags(gt_novel, len(ranks)), ranks)


def novel_only_of_ranks(novel: NDArray[np.bool_], ranks: Ints) -> Numbers:
    """Compute `m_accuracy_on_novel` from ranks."""
    return {f"top{k}_acc_novel_only": _share(ranks[novel] < k) for k in (3, 1)}


def m_is_cdt_and_is_early(gt_idx: int, ta2_idx: int, test_len: int) -> dict[str, bool]:
    """Return whether the change was detected correctly, and whether too early; at the last sample it is neither."""
    return {"Is CDT": gt_idx <= ta2_idx < test_len, "Is Early": ta2_idx < gt_idx}


def m_nrp(ta2_acc: dict[str, float], baseline_acc: dict[str, float]) -> dict[str, float | None]:
    """Return the agent's accuracy after the onset in percent of the baseline's before it; None if one is missing."""
    return {f"M_nrp_post_top{k}": _percent(ta2_acc[f"post_top{k}"], baseline_acc[f"pre_top{k}"]) for k in (1, 3)}


def rank_labels(p_class: ArrayLike, gt_class: ArrayLike) -> Ints:
    """Return how many classes come before the true one; a label without a column has the rank `NEVER`.

    Of equal scores the lower index comes first: an unstable sort would give other numbers on other processors.
    """
    scores, labels = np.asarray(p_class), np.asarray(gt_class, dtype=np.int64)
    within = (labels >= 0) & (labels < scores.shape[1])
    safe = np.where(within, labels, 0)
    own = scores[np.arange(len(scores)), safe][:, None]
    before = np.arange(scores.shape[1]) < safe[:, None]
    ranks = ((scores > own) | ((scores == own) & before)).sum(axis=1)
    return np.where(within, ranks, NEVER)


def first_of(flags: NDArray[Any]) -> int | None:
    """Return the index of the first true flag, or None."""
    found = np.flatnonzero(flags)
    return int(found[0]) if len(found) else None


def mean_hits(hits: NDArray[Any]) -> float | None:
    """Return the share of hits, or None if there are no samples."""
    return float(hits.mean()) if len(hits) else None


def count_windows(hits: NDArray[np.bool_], width: int) -> Ints:
    """Count the hits in each window of this width."""
    total = np.concatenate([[0], np.cumsum(hits, dtype=np.int64)])
    return total[width:] - total[: len(total) - width] if len(hits) >= width else np.zeros(0, np.int64)


def check_novel(p_novel: ArrayLike, gt_novel: ArrayLike) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the checked arrays of a detection metric.

    Raises:
        InvalidInput: They differ in length, are not flat, or hold values out of range.
    """
    p = np.asarray(p_novel, dtype=float)
    if p.ndim != 1 or (p < 0).any() or (p > 1).any():
        raise InvalidInput("p_novel must be a flat array of numbers from 0 to 1.")
    return p, _flags(gt_novel, len(p))


def check_classes(p_class: ArrayLike, gt_class: ArrayLike) -> tuple[NDArray[Any], Ints]:
    """Return the checked arrays of a classification metric.

    Raises:
        InvalidInput: They differ in length, `p_class` is not a table of numbers from 0 to 1, a label is beyond its
            columns or all are negative, as in the original. `rank_labels` takes any label.
    """
    p, labels = np.asarray(p_class, dtype=float), np.asarray(gt_class, dtype=np.int64)
    if p.ndim != 2 or labels.ndim != 1 or len(p) != len(labels):
        raise InvalidInput(f"p_class must be a table with a row for each of the {labels.size} labels; it is {p.shape}.")
    if (p < 0).any() or (p > 1).any():
        raise InvalidInput("p_class must hold numbers from 0 to 1.")
    if len(labels) and not 0 <= labels.max() < p.shape[1]:
        largest = f"the largest is {labels.max()}"
        raise InvalidInput(f"gt_class must be columns of p_class, 0 to {p.shape[1] - 1}, or negative; {largest}.")
    return p, labels


def _flags(gt_novel: ArrayLike, length: int) -> NDArray[np.bool_]:
    novel = np.asarray(gt_novel)
    if novel.shape != (length,) or not np.isin(novel, (0, 1)).all():
        raise InvalidInput(f"gt_novel must be {length} values of 0 or 1.")
    return novel.astype(bool)


def _percent(share: float, base: float) -> float | None:
    """Return a share in percent of another; None if one is missing, which is -1, or if the other is 0."""
    return 100 * share / base if share >= 0 and base > 0 else None


def _position(flags: NDArray[np.bool_]) -> int:
    found = first_of(flags)
    return (len(flags) if found is None else found) + 1


def _share(hits: NDArray[np.bool_]) -> float:
    """Return a share rounded as Python does; `m_ndp` rounds as NumPy does: 319/320 is 0.99687 here, 0.99688 there."""
    return round(int(hits.sum()) / len(hits), 5) if len(hits) else -1


def _count_decisions(said: NDArray[np.bool_], novel: NDArray[np.bool_]) -> Numbers:
    tp, fp = int((said & novel).sum()), int((said & ~novel).sum())
    tn, fn = int((~said & ~novel).sum()), int((~said & novel).sum())
    accuracy = (tp + tn) / len(said) if len(said) else math.nan
    precision = tp / (tp + fp) if tp + fp else 0.0
    recall = tp / (tp + fn) if tp + fn else 0.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    rounded = [float(np.round(value, 5)) for value in (accuracy, precision, recall, f1)]
    return dict(zip(RATES, [*rounded, tp, fp, tn, fn], strict=True))


def _describe(prefix: str, k: int, hits: NDArray[np.bool_], width: int) -> Numbers:
    """Return the accuracy of a period, and mean and deviation of its moving average."""
    counts = count_windows(hits, width)
    mean, deviation = _moments(len(counts), int(counts.sum()), int((counts**2).sum()), width)
    if not len(hits):
        mean = deviation = -1
    return {f"{prefix}top{k}": _share(hits), f"{prefix}mean_top{k}": mean, f"{prefix}std_top{k}": deviation}


def _moments(n: int, total: int, squares: int, width: int) -> tuple[float, float]:
    """Return mean and sample deviation of n shares of windows, from the exact sums of their counts."""
    mean = total / n / width if n else math.nan
    deviation = math.sqrt((n * squares - total**2) / (n * (n - 1))) / width if n > 1 else math.nan
    return mean, deviation


def _asymptotic(hits: dict[int, NDArray[np.bool_]], width: int, shortest: int) -> Numbers:
    """Return the accuracies of ever longer ends of a test; all come from one cumulative sum of windows."""
    length = len(hits[1])
    counts = {k: count_windows(hits[k], width)[::-1] for k in hits}
    sums = {k: (np.cumsum(hits[k][::-1]), np.cumsum(counts[k]), np.cumsum(counts[k] ** 2)) for k in hits}
    numbers: Numbers = {}
    for suffix in range(shortest, length, width):
        size = suffix or length
        windows = max(size - width + 1, 0)
        for k, (right, total, squares) in sums.items():
            both = (int(total[windows - 1]), int(squares[windows - 1])) if windows else (0, 0)
            mean, deviation = _moments(windows, *both, width)
            name = f"asymptotic_{suffix}_"
            numbers[f"{name}top{k}"] = round(int(right[size - 1]) / size, 5)
            numbers |= {f"{name}mean_top{k}": mean, f"{name}std_top{k}": deviation}
    return numbers
