"""Every detector against a plain implementation of its formula, sample by sample."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp, rel_entr, softmax
from scipy.stats import weibull_min
from sklearn.covariance import EmpiricalCovariance
from sklearn.neighbors import NearestNeighbors

from openfield.errors import InvalidInput, UnknownName
from openfield.metrics.ood import samples as samples_module
from openfield.metrics.ood.array_library import NUMPY
from openfield.metrics.ood.catalogue import DETECTORS, choose_detectors
from openfield.metrics.ood.logit_detectors import fit_weibull
from openfield.metrics.ood.samples import Head, SampleSet

D, C = 12, 4


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets are worked on in many parts, as large ones are."""
    monkeypatch.setattr(samples_module, "PART", 7 * D)
    monkeypatch.setattr("openfield.metrics.ood.feature_detectors.PART", 50)
    monkeypatch.setattr("openfield.metrics.ood.feature_detectors.TILE", 17)


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    middle = np.abs(rng.normal(2, 1, (C, D)))
    weight, bias = middle / 2, 4 - (middle**2).sum(axis=1) / 4  # the nearest mean wins

    def draw(count: int) -> tuple[Any, Any]:
        labels = rng.integers(0, C, count)
        return np.maximum(middle[labels] + rng.normal(0, 0.7, (count, D)), 0), labels

    features, labels = draw(200)
    test = np.maximum(rng.normal(1, 2, (60, D)), 0)
    head = Head(weight, bias)
    return {
        "train": SampleSet("train", head(features), features, labels),
        "head": head,
        "features": test,
        "logits": head(test),
    }


def score(data: dict[str, Any], source: str) -> Any:
    (one,) = choose_detectors([source])
    return one.fit(data["train"], data["head"])(data["features"], data["logits"])


def test_detectors_of_logits_are_their_formulas(data) -> None:
    logits = data["logits"]
    p = softmax(logits, axis=1)
    np.testing.assert_allclose(score(data, "msp"), p.max(axis=1))
    np.testing.assert_allclose(score(data, "msp(temperature=10)"), softmax(logits / 10, axis=1).max(axis=1))
    np.testing.assert_allclose(score(data, "maxlogit"), logits.max(axis=1))
    np.testing.assert_allclose(score(data, "energy"), logsumexp(logits, axis=1))
    np.testing.assert_allclose(score(data, "energy(temperature=2)"), 2 * logsumexp(logits / 2, axis=1))
    np.testing.assert_allclose(score(data, "entropy"), (p * np.log(p)).sum(axis=1))


def test_kl_matching_takes_the_nearest_mean_of_predicted_classes(data) -> None:
    p = softmax(data["train"].logits, axis=1)
    said = p.argmax(axis=1)
    means = [p[said == one].mean(axis=0) for one in np.unique(said)]
    wanted = [-min(rel_entr(row, mean).sum() for mean in means) for row in softmax(data["logits"], axis=1)]
    np.testing.assert_allclose(score(data, "klm"), wanted, rtol=1e-9, atol=1e-12)


def test_mahalanobis_takes_the_nearest_mean_under_one_covariance(data) -> None:
    x, y = data["train"].features, data["train"].labels
    means = np.stack([x[y == one].mean(axis=0) for one in range(C)])
    inverse = EmpiricalCovariance(assume_centered=True).fit(x - means[y]).precision_
    wanted = [-min((row - mean) @ inverse @ (row - mean) for mean in means) for row in data["features"]]
    np.testing.assert_allclose(score(data, "mahalanobis"), wanted, rtol=1e-8)


def test_mahalanobis_bears_features_that_never_change(data) -> None:
    def widen(x: Any) -> Any:
        return np.column_stack([x, np.full(len(x), 3.0), x[:, 0]])

    train = data["train"]
    wide = {"train": SampleSet("train", None, widen(train.features), train.labels), "head": None, "logits": None}
    assert score(wide | {"features": widen(data["features"])}, "mahalanobis") == pytest.approx(
        score(data, "mahalanobis"), rel=1e-6
    )


@pytest.mark.parametrize("k", [1, 5, 200, 999])
def test_knn_is_the_distance_to_the_kth_neighbour(data, k: int) -> None:
    unit = lambda x: x / np.linalg.norm(x, axis=1, keepdims=True)  # noqa: E731
    nearest = NearestNeighbors(n_neighbors=min(k, 200)).fit(unit(data["train"].features))
    wanted = -nearest.kneighbors(unit(data["features"]))[0][:, -1]
    np.testing.assert_allclose(score(data, f"knn(k={k})"), wanted, atol=1e-6)
    table = np.random.default_rng(k).integers(0, 2000, (3, 200 * k + 400)).astype(np.float32)  # also equal values
    np.testing.assert_array_equal(np.sort(NUMPY.take_largest(table, k), axis=1), np.sort(table, axis=1)[:, -k:])


@pytest.mark.parametrize("dimension", [None, 3])
def test_vim_is_energy_minus_a_virtual_logit(data, dimension: int | None) -> None:
    head, x = data["head"], data["train"].features
    origin = -np.linalg.pinv(head.weight) @ head.bias
    values, vectors = np.linalg.eig(EmpiricalCovariance(assume_centered=True).fit(x - origin).covariance_)
    rest = vectors.T[np.argsort(-values)[dimension or D // 2 :]].T
    scale = data["train"].logits.max(axis=1).mean() / np.linalg.norm((x - origin) @ rest, axis=1).mean()
    virtual = scale * np.linalg.norm((data["features"] - origin) @ rest, axis=1)
    source = "vim" if dimension is None else f"vim(dimension={dimension})"
    np.testing.assert_allclose(score(data, source), logsumexp(data["logits"], axis=1) - virtual, rtol=1e-8)


def test_react_cuts_features_at_a_percentile_of_training(data) -> None:
    cut = np.percentile(data["train"].features, 80)
    logits = np.minimum(data["features"], cut) @ data["head"].weight.T + data["head"].bias
    np.testing.assert_allclose(score(data, "react(percentile=80)"), logsumexp(logits, axis=1))


@pytest.mark.parametrize("variant", ["b", "p", "s"])
def test_ash_shapes_the_largest_features_of_each_sample(data, variant: str) -> None:
    wanted = []
    for row in data["features"]:
        kept = D - round(D * 0.75)
        at = np.argsort(row)[-kept:]
        shaped = np.zeros(D)
        shaped[at] = {
            "b": row.sum() / kept,
            "p": row[at],
            "s": row[at] * np.exp(row.sum() / row[at].sum()),
        }[variant]
        wanted.append(logsumexp(data["head"].weight @ shaped + data["head"].bias))
    np.testing.assert_allclose(score(data, f"ash(percentile=75, variant={variant})"), wanted)


def test_openmax_is_the_published_recalibration(data) -> None:
    logits, y = data["train"].logits, data["train"].labels
    alpha, tail, model = 3, 20, {}
    for one in range(C):
        rows = logits[(y == one) & (logits.argmax(axis=1) == one)]
        far = np.sort(np.linalg.norm(rows - rows.mean(axis=0), axis=1))[-tail:]
        shape, _, scale = weibull_min.fit(far - far[0] + 1, floc=0)
        model[one] = rows.mean(axis=0), far[0], shape, scale
    wanted = []
    for row in data["logits"]:
        revised, unknown = row.copy(), 0.0
        for place, one in enumerate(np.argsort(-row)[:alpha]):
            mean, start, shape, scale = model[one]
            outside = weibull_min.cdf(np.linalg.norm(row - mean) - start + 1, shape, scale=scale)
            revised[one] = row[one] * (1 - outside * (alpha - place) / alpha)
            unknown += row[one] - revised[one]
        wanted.append(1 - np.exp(unknown) / (np.exp(revised).sum() + np.exp(unknown)))
    np.testing.assert_allclose(score(data, "openmax"), wanted, rtol=2e-3, atol=1e-6)


def test_weibull_distributions_are_fitted_by_maximum_likelihood() -> None:
    rng = np.random.default_rng(0)
    tails = np.sort(rng.weibull(2, (5, 20)) * 3 + 4, axis=1)
    tails[3, 12:] = np.nan
    tails[4] = 7.0
    shape, scale, start = fit_weibull(tails)
    for row in range(4):
        found = tails[row][~np.isnan(tails[row])]
        wanted = weibull_min.fit(found - found.min() + 1, floc=0)
        assert (shape[row], scale[row]) == pytest.approx((wanted[0], wanted[2]), rel=1e-3)
        assert start[row] == found.min()
    assert np.isnan(shape[4])


def test_detectors_say_what_they_lack(data) -> None:
    only = [SampleSet("test", data["logits"])]
    missing = {one.name: one.missing(only, None, None) for one in choose_detectors([])}
    assert list(missing) == list(DETECTORS)
    assert [name for name, needs in missing.items() if not needs] == ["msp", "maxlogit", "energy", "entropy"]
    assert missing["openmax"] == ["logits and labels of training samples (--train)"]
    assert missing["vim"] == [
        "features of test",
        "features of training samples (--train)",
        "the last layer (--head)",
    ]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("mps", "Did you mean 'msp'"),
        ("knn(n=3)", "Unknown parameter 'n'. knn takes: k"),
        ("knn(k=0)", "k=1 or more"),
        ("knn(k=many)", "takes a whole number, not 'many'"),
        ("knn(k=1.5)", "takes a whole number"),
        ("openmax(tail=true)", "takes a whole number"),
        ("vim(dimension=x)", "takes a whole number"),
        ("msp(temperature=hot)", "takes a number"),
        ("msp(temperature=0)", "temperature above 0"),
        ("energy(temperature=-1)", "temperature above 0"),
        ("openmax(tail=1)", "tail=2 or more"),
        ("vim(dimension=12)", "from 1 to 11"),
        ("ash(variant=x)", "b, p or s"),
        ("react(percentile=101)", "from 0 to 100"),
    ],
)
def test_wrong_detectors_and_parameters_are_refused(data, source: str, message: str) -> None:
    with pytest.raises((InvalidInput, UnknownName), match=message.replace(".", r"\.")):
        score(data, source)


@pytest.mark.parametrize("kind", ["float16", "int8"])
def test_numbers_of_every_type_are_scored_alike(data, kind: str) -> None:
    logits = np.round(data["logits"])
    assert np.abs(logits).max() < 120
    for source, other in itertools.product(["msp", "energy", "openmax"], [kind]):
        (one,) = choose_detectors([source])
        fit = one.fit(
            SampleSet("train", np.round(data["train"].logits).astype(other), None, data["train"].labels), None
        )
        ((_, (part,)),) = SampleSet("test", logits.astype(other)).parts("logits", rows=999)
        np.testing.assert_array_equal(fit(None, part), fit(None, logits))


@pytest.mark.parametrize("name", ["react", "klm"])
def test_detectors_of_validation_samples_are_fitted_on_them(name: str, data: dict[str, Any]) -> None:
    (chosen,) = choose_detectors([name])
    train = data["train"]
    half = SampleSet("val", train.logits[::2] + 1, train.features[::2] * 2, train.labels[::2])
    features, logits = train.features[:9], train.logits[:9]
    both, alone = chosen.fit(train, data["head"], half), chosen.fit(half, data["head"])
    np.testing.assert_array_equal(both(features, logits), alone(features, logits))
    assert not (both(features, logits) == chosen.fit(train, data["head"])(features, logits)).all()
    assert chosen.missing([train], None, data["head"], half) == []
    (other,) = choose_detectors(["knn"])
    np.testing.assert_array_equal(
        other.fit(train, None, half)(features, logits), other.fit(train, None)(features, logits)
    )
