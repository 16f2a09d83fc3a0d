"""The simple scores: definitions in float64, scikit-learn and numpy as oracles, one orientation for all."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import logsumexp, softmax
from scipy.stats import entropy
from sklearn.neighbors import NearestNeighbors

from evidentia import EvidentiaError
from evidentia.evaluation import (
    SCORES,
    KNNScore,
    MahalanobisScore,
    energy,
    max_logit,
    max_softmax,
    scores,
    softmax_entropy,
)

every_score = pytest.mark.parametrize("name", sorted(SCORES))
FITTED = [KNNScore(k=3), MahalanobisScore()]


def test_the_registry_holds_the_scores_of_logits():
    assert dict(SCORES) == {
        "energy": energy,
        "max_logit": max_logit,
        "max_softmax": max_softmax,
        "softmax_entropy": softmax_entropy,
    }


def test_they_follow_their_formulas(dtype):
    logits = 5 * torch.randn(20, 6, dtype=dtype)
    z = logits.double().numpy()
    expected = {
        "energy": -logsumexp(z, axis=-1),
        "max_logit": -z.max(-1),
        "max_softmax": 1 - softmax(z, axis=-1).max(-1),
        "softmax_entropy": entropy(softmax(z, axis=-1), axis=-1, base=6),
    }
    for name, score in SCORES.items():
        found = score(logits)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected[name], rtol=1e-4, atol=1e-6)


def test_a_temperature_that_is_learnt_keeps_its_gradient():
    temperature = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    logits = torch.randn(5, 3, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda t: energy(logits, t), temperature)


def test_energy_with_temperature():
    logits = torch.randn(5, 3, dtype=torch.float64)
    np.testing.assert_allclose(energy(logits, 2.5), -2.5 * logsumexp(logits.numpy() / 2.5, axis=-1))


@every_score
def test_higher_is_more_unsure(name):
    sure, unsure = SCORES[name]([[9.0, 0.0, 0.0], [0.1, 0.0, 0.0]])
    assert sure < unsure


@every_score
def test_any_batch_shape_keeps_its_shape_and_gradients(name):
    logits = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    assert SCORES[name](logits).shape == (2, 3)
    assert torch.autograd.gradcheck(SCORES[name], logits)


@every_score
def test_huge_logits_stay_finite(name):
    assert bool(SCORES[name](torch.tensor([[1e30, 0.0], [-1e30, -1e30], [1e4, -1e4]])).isfinite().all())


def test_sure_predictions_keep_their_order():
    # In float32 1 - p is 0 for all three.
    assert bool((max_softmax([[60.0, 0.0], [40.0, 0.0], [20.0, 0.0]]).diff() > 0).all())


@every_score
@pytest.mark.parametrize(
    ("logits", "message"),
    [
        ([[float("nan"), 0.0]], "logits must be finite, got NaN"),
        ([[1.0]], "logits needs a last dimension .* at least 2 classes"),
    ],
)
def test_bad_logits_are_refused(name, logits, message):
    with pytest.raises(EvidentiaError, match=message):
        SCORES[name](logits)


@pytest.mark.parametrize("temperature", [0, -1, float("inf"), float("nan"), None, "1", [1.0]])
def test_bad_temperatures_are_refused(temperature):
    with pytest.raises(EvidentiaError, match="temperature must be a number, more than 0, got"):
        energy([[1.0, 2.0]], temperature)


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("k", [1, 7, 80])
def test_knn_is_that_of_scikit_learn(k, normalized, dtype):
    train, query = torch.randn(80, 12, dtype=dtype), torch.randn(30, 12, dtype=dtype)
    a, b = train.double().numpy(), query.double().numpy()
    if normalized:
        a, b = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (a, b))
    expected = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(a).kneighbors(b)[0][:, -1]
    found = KNNScore(k, normalized=normalized).fit(train).score(query)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype == torch.float32 else 1e-10)


def test_knn_in_blocks_is_knn_at_once(monkeypatch):
    knn = KNNScore(k=5).fit(torch.randn(50, 4, dtype=torch.float64))
    query = torch.randn(33, 4, dtype=torch.float64)
    whole = knn.score(query)
    monkeypatch.setattr(scores, "_CHUNK_BYTES", 50 * 8 * 10)  # ten rows at a time
    torch.testing.assert_close(knn.score(query), whole, rtol=1e-12, atol=0)
    monkeypatch.setattr(scores, "_CHUNK_BYTES", 1)
    torch.testing.assert_close(knn.score(query), whole, rtol=1e-12, atol=0)


def test_knn_finds_training_samples_at_distance_zero():
    train = 100 + torch.randn(60, 8)
    assert float(KNNScore(k=1, normalized=False).fit(train).score(train).max()) == 0


@pytest.mark.parametrize("shrinkage", [0.0, 1e-6, 0.3])
def test_mahalanobis_is_its_formula(shrinkage):
    rng = np.random.default_rng(0)
    labels = np.array([3, 8, 5] * 40)  # class names need not be 0, 1, 2
    train = rng.normal(size=(120, 5)) @ rng.normal(size=(5, 5)) + labels[:, None]
    query = 3 * rng.normal(size=(25, 5))
    means = {c: train[labels == c].mean(0) for c in (3, 8, 5)}
    residual = np.stack([x - means[c] for x, c in zip(train, labels, strict=True)])
    sigma = residual.T @ residual / 120
    sigma = (1 - shrinkage) * sigma + shrinkage * np.trace(sigma) / 5 * np.eye(5)
    inverse = np.linalg.inv(sigma)
    expected = [min((x - m) @ inverse @ (x - m) for m in means.values()) for x in query]
    found = MahalanobisScore(shrinkage).fit(train, labels).score(query)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_mahalanobis_without_labels_is_one_gaussian():
    train = torch.randn(50, 3, dtype=torch.float64)
    one = MahalanobisScore().fit(train, torch.zeros(50)).score(train)
    torch.testing.assert_close(MahalanobisScore().fit(train).score(train), one)
    assert float(one.mean()) == pytest.approx(3, rel=1e-4)  # the mean squared distance is the dimension


def test_mahalanobis_survives_dead_and_repeated_features():
    train = torch.randn(40, 3)
    singular = torch.cat([train, train, torch.zeros(40, 2)], -1)
    score = MahalanobisScore().fit(singular)
    found = score.score(singular)
    assert bool(found.isfinite().all())
    broken = singular.clone()
    broken[:, -1] = 1  # a feature that never fired in training
    assert float(score.score(broken).min()) > float(found.max())


def test_mahalanobis_does_not_depend_on_where_the_features_lie():
    train = torch.randn(60, 4, dtype=torch.float64)
    near = MahalanobisScore().fit(train).score(train)
    far = MahalanobisScore().fit(train + 1e5).score(train + 1e5)
    torch.testing.assert_close(near, far, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("score", FITTED, ids=lambda score: type(score).__name__)
def test_fitted_scores_are_higher_far_from_the_training_set(score):
    train = torch.randn(100, 5) + torch.tensor([4.0, 0, 0, 0, 0])
    assert score.fit(train) is score
    near, far = score.score(train), score.score(torch.randn(100, 5) - torch.tensor([9.0, 0, 0, 0, 0]))
    assert float(far.min()) > float(near.max())


@pytest.mark.parametrize("kind", [KNNScore, MahalanobisScore])
def test_bad_features_are_refused_in_a_sentence(kind):
    make = {KNNScore: lambda: KNNScore(k=2), MahalanobisScore: MahalanobisScore}[kind]
    with pytest.raises(EvidentiaError, match=f"this {kind.__name__} is not fitted; call fit"):
        make().score(torch.zeros(2, 3))
    with pytest.raises(EvidentiaError, match=r"features must have shape \(N, D\) .*got \(3,\)"):
        make().fit([1.0, 2.0, 3.0])
    with pytest.raises(EvidentiaError, match=r"features must have shape \(N, D\) .*got \(0, 3\)"):
        make().fit(torch.zeros(0, 3))
    with pytest.raises(EvidentiaError, match="features must be finite, got NaN"):
        make().fit([[float("nan")], [1.0]])
    with pytest.raises(EvidentiaError, match="features must have 2 columns as in fit, got 3"):
        make().fit(torch.eye(2)).score(torch.zeros(1, 3))


def test_bad_settings_are_refused_in_a_sentence():
    with pytest.raises(EvidentiaError, match="k must be a whole number of at least 1, got 0"):
        KNNScore(k=0)
    with pytest.raises(EvidentiaError, match=r"50-th nearest of 3 training features .* or a smaller k"):
        KNNScore(k=50).fit(torch.eye(3))
    with pytest.raises(EvidentiaError, match="shrinkage must be a number, at least 0 and at most 1, got 2"):
        MahalanobisScore(2)
    with pytest.raises(EvidentiaError, match="cannot be inverted with shrinkage 0; pass more samples"):
        MahalanobisScore(0).fit(torch.eye(3))
    with pytest.raises(EvidentiaError, match="features and labels must have the same length, got 3 and 2"):
        MahalanobisScore().fit(torch.eye(3), [0, 1])
    with pytest.raises(EvidentiaError, match="cannot be inverted"):
        MahalanobisScore().fit(torch.ones(3, 2))


def test_half_precision_features_are_welcome():
    train = torch.randn(40, 3).half()
    for score in FITTED:
        assert bool(score.fit(train).score(train).isfinite().all())
