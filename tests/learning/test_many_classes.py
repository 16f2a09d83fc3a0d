"""Evidential training works with very many classes, because the penalty is divided by their number."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import evidentia as ev


def clusters(classes, each, dims, seed):
    centres = torch.randn(classes, dims, generator=torch.Generator().manual_seed(7))
    y = torch.arange(classes).repeat(each)
    return centres[y] + 0.2 * torch.randn(len(y), dims, generator=torch.Generator().manual_seed(seed)), y


def accuracy(pred, y):
    return float((pred.labels == y).float().mean())


@pytest.mark.parametrize(
    ("classes", "dims", "each", "backbone", "epochs", "batch_size", "learning_rate"),
    [
        (100, 16, 10, nn.Sequential(nn.Linear(16, 128), nn.ReLU()), 12, 50, 0.01),
        (1000, 64, 2, nn.Identity(), 8, 125, 0.05),
    ],
    ids=["100", "1000"],
)
def test_it_learns_and_knows_what_it_has_not_seen(classes, dims, each, backbone, epochs, batch_size, learning_rate):
    model = ev.EvidentialClassifier(backbone, classes, kl_ramp=3)
    settings = {"epochs": epochs, "batch_size": batch_size, "learning_rate": learning_rate, "progress": False}
    model.fit(*clusters(classes, each, dims, seed=0), **settings)
    x, y = clusters(classes, 1, dims, seed=1)
    known, unknown = model.predict(x[:300]), model.predict(torch.randn(200, dims))
    assert accuracy(known, y[:300]) > 0.9
    assert float(known["vacuity"].mean()) < 0.2
    assert float(unknown["vacuity"].mean()) > 2 * float(known["vacuity"].mean())


def test_the_penalty_without_the_division_drowns_the_evidence():
    (x, y), (test_x, test_y) = clusters(100, 10, 16, seed=0), clusters(100, 2, 16, seed=1)
    predictions = []
    for weight in (1.0, 100.0):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(16, 128), nn.ReLU())
        model = ev.EvidentialClassifier(net, 100, risk="squared-error", kl_weight=weight, kl_ramp=3)
        model.fit(x, y, epochs=10, batch_size=50, learning_rate=0.01, progress=False)
        predictions.append(model.predict(test_x))
    scaled, unscaled = predictions
    assert accuracy(scaled, test_y) > 0.95
    assert accuracy(unscaled, test_y) < 0.9
    assert float(unscaled["vacuity"].mean()) > 4 * float(scaled["vacuity"].mean())
