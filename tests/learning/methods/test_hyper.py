"""Hyper-evidential learning: the partial cross entropy is an expectation, and vague labels make vague opinions."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F  # noqa: N812

import evidentia as ev
from evidentia import EvidentiaError
from evidentia.learning import METHODS, annealed_weight, dirichlet_kl
from evidentia.opinions import GroupedDirichlet

K = 4
SETS = [(0, 2), (1, 3)]
OUTPUTS = torch.tensor([[1.0, 0.2, -1.0, 3.0, 2.0, 0.5]], dtype=torch.float64)


def method(**options):
    return METHODS["hyper"](num_classes=K, **{"sets": SETS, **options})


@pytest.mark.parametrize("label", range(K + 2))
def test_the_loss_is_the_expected_log_probability_of_the_class_or_set(label):
    evidence = F.softplus(OUTPUTS)
    p = GroupedDirichlet(evidence[:, :K] + 1, evidence[:, K:], SETS).sample((300_000,))
    of_label = p[..., [label]] if label < K else p[..., list(SETS[label - K])]
    samples = -of_label.sum(-1).log()
    found = method().loss(OUTPUTS, torch.tensor([label]), 0)
    assert abs(float(samples.mean() - found)) < 5 * float(samples.std()) / len(samples) ** 0.5


@pytest.mark.parametrize("sets", [SETS, [(1, 2)]])
def test_without_evidence_for_sets_it_is_the_cross_entropy_risk(sets):
    singles = torch.randn(6, K, dtype=torch.float64)
    nothing = torch.full((6, len(sets)), -1e30, dtype=torch.float64)
    labels = torch.arange(6) % K
    plain = METHODS["edl"](num_classes=K, activation="softplus")
    found = method(sets=sets).loss(torch.cat([singles, nothing], -1), labels, 0)
    torch.testing.assert_close(found, plain.loss(singles, labels, 0))


def test_the_penalty_is_on_evidence_for_every_other_class_and_set():
    evidence = F.softplus(OUTPUTS)
    labels = torch.tensor([K + 1])
    risk, total = (method(kl_weight=weight).loss(OUTPUTS, labels, 5) for weight in (0.0, 2.0))
    left = evidence * (1 - F.one_hot(labels, K + 2)) + 1
    weight = annealed_weight(5, K + 2, 2.0)
    torch.testing.assert_close(total - risk, weight * dirichlet_kl(left, torch.ones_like(left)))


def test_only_the_penalty_tells_evidence_for_a_set_from_evidence_for_its_members():
    # The same total for the set (0, 2), more and more of it for its members.
    evidence = torch.tensor(
        [[0.5, 0.3, 0.5, 0.1, 8.0, 0.2], [2.5, 0.3, 1.5, 0.1, 5.0, 0.2], [6.0, 0.3, 2, 0.1, 1, 0.2]]
    )
    outputs, labels = evidence.double().expm1().log(), torch.full((3,), K)
    risk, total = (method(kl_weight=weight).loss(outputs, labels, 10) for weight in (0.0, 1.0))
    torch.testing.assert_close(risk, risk[:1].expand(3))
    assert total.tolist() == sorted(total.tolist())
    assert float(total.diff().min()) > 0.01


def test_vague_labels_teach_vague_opinions():
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(3).repeat(80)
    centres = torch.tensor([[5.0, 0, 0], [0, 5, 0], [0, 0, 5]])
    x = centres[y] + 0.5 * torch.randn(240, 3, generator=generator)
    labels = torch.where(y == 0, 0, 3)  # classes 1 and 2 were never told apart
    net = torch.nn.Sequential(torch.nn.Linear(3, 16), torch.nn.ReLU())
    model = ev.EvidentialClassifier(net, 3, method="hyper", sets=[{1, 2}])
    pred = model.fit(x, labels, epochs=40, learning_rate=0.02, progress=False).predict(centres)
    assert float(pred["vagueness"][0]) < 0.2
    assert float(pred["vagueness"][1:].min()) > 0.5
    assert float(pred.probs[0, 0]) > 0.7
    assert pred.triage(vagueness=0.5).names == ["accept", "ask: classes not distinct", "ask: classes not distinct"]


def test_sets_given_as_sets_can_be_saved(tmp_path):
    model = ev.EvidentialClassifier(torch.nn.Linear(3, 8), K, method="hyper", sets=({0, 2}, range(1, 4, 2)))
    expected = model(torch.ones(1, 3))
    model.save(tmp_path / "model")
    other = ev.EvidentialClassifier.load(tmp_path / "model", torch.nn.Linear(3, 8))
    assert other.method.sets == ((0, 2), (1, 3))
    assert torch.equal(other(torch.ones(1, 3)), expected)


def test_wrong_sets_and_labels_are_refused_in_a_sentence():
    with pytest.raises(EvidentiaError, match="sets need at least two classes each"):
        method(sets=[(0,)])
    with pytest.raises(EvidentiaError, match="sets must not overlap"):
        method(sets=[(0, 1), (1, 2)])
    with pytest.raises(EvidentiaError, match=r"needs integer labels \(4 classes, then 2 sets\), got torch.float64"):
        method().loss(OUTPUTS, torch.zeros(1, dtype=torch.float64), 0)
    with pytest.raises(EvidentiaError, match=r"labels need shape \(1,\), got \(1, 6\)"):
        method().loss(OUTPUTS, torch.zeros(1, 6), 0)
    with pytest.raises(EvidentiaError, match="not all 2"):
        ev.EvidentialClassifier(torch.nn.Linear(3, 8), 2, method="hyper", task="binary", sets=[[0, 1]])
