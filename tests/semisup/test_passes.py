"""How batches go through a network, and what its batch norms make of them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from evidentia import EvidentiaError
from evidentia.learning import WeightedBatchNorm1d
from evidentia.semisup import (
    ROBUST,
    ByUncertainty,
    LabeledAgainstUnlabeled,
    LastLayer,
    LeNet,
    Meta,
    SemiSupervisedClassifier,
    two_moons,
)
from evidentia.semisup.choices import Norm, Order
from evidentia.semisup.networks.passes import Passes, build_network, network_name, usual_norm, usual_order
from evidentia.semisup.objectives import VAT


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4, momentum=1.0), nn.ReLU(), nn.Linear(4, 3))


def batches() -> tuple[Tensor, Tensor]:
    torch.manual_seed(1)
    return torch.randn(6, 2), torch.randn(10, 2) + 5


def mean_after(norm: Norm, order: Order, weights: Tensor) -> tuple[Tensor, Tensor]:
    """The running mean after a pass of both batches, and the hidden layer's input to batch norm."""
    built = build_network(network(), (2,), 3, norm)
    x, unlabeled = batches()
    passes = Passes(LastLayer(built), norm, order)
    passes.both(x, unlabeled, weights)
    first, layer = built[0], built[1]  # type: ignore[index]
    return layer.running_mean, first(torch.cat([x, unlabeled])).detach()


def test_concatenated_batches_share_their_statistics() -> None:
    running, inputs = mean_after("batch", "concat", torch.ones(10))
    torch.testing.assert_close(running, inputs.mean(0))


def test_separate_batches_leave_the_statistics_of_the_unlabeled_one() -> None:
    running, inputs = mean_after("batch", "separate", torch.ones(10))
    torch.testing.assert_close(running, inputs[6:].mean(0))


def test_frozen_statistics_are_of_the_labeled_batch() -> None:
    running, inputs = mean_after("frozen", "separate", torch.ones(10))
    torch.testing.assert_close(running, inputs[:6].mean(0))


@pytest.mark.parametrize("order", ["concat", "separate"])
def test_weights_of_0_keep_unlabeled_samples_out_of_the_statistics(order: Order) -> None:
    running, inputs = mean_after("weighted", order, torch.zeros(10))
    torch.testing.assert_close(running, inputs[:6].mean(0))


def test_weights_share_the_statistics_out() -> None:
    weights = torch.linspace(0, 1, 10)
    running, inputs = mean_after("weighted", "concat", weights)
    share = torch.cat([torch.ones(6), weights])
    torch.testing.assert_close(running, (share[:, None] * inputs).sum(0) / share.sum())


@pytest.mark.parametrize("norm", ["batch", "frozen", "weighted"])
def test_separate_passes_normalise_the_labeled_batch_on_its_own(norm: Norm) -> None:
    built = build_network(network(), (2,), 3, norm)
    x, unlabeled = batches()
    alone = built(x)
    (_, logits), (_, others) = Passes(LastLayer(built), norm, "separate").both(x, unlabeled, torch.ones(10))
    torch.testing.assert_close(logits, alone)
    assert others.shape == (10, 3)


def test_the_users_network_stays_as_it_is() -> None:
    given = network()
    built = build_network(given, (2,), 3, "weighted")
    assert type(given[1]) is nn.BatchNorm1d
    assert isinstance(built[1], WeightedBatchNorm1d)  # type: ignore[index]


def test_named_networks_follow_the_shape_and_the_norm() -> None:
    assert network_name(None, (3, 32, 32)) == "lenet"
    assert network_name(None, (1, 8, 8)) == "mlp"
    built = build_network(None, (1, 28, 28), 10, "none")
    assert isinstance(built, LeNet)
    assert not any(isinstance(layer, nn.modules.batchnorm._BatchNorm) for layer in built.modules())


def test_frozen_needs_separate_passes_and_has_them_by_default() -> None:
    assert usual_order("frozen") == "separate"
    assert {usual_order(norm) for norm in ("none", "batch", "weighted")} == {"concat"}
    with pytest.raises(EvidentiaError, match="needs passes 'separate'"):
        Passes(LastLayer(network()), "frozen", "concat")


def test_a_norm_that_does_not_fit_the_network_is_refused() -> None:
    with pytest.raises(EvidentiaError, match="has batch norm layers, but norm is 'none'"):
        build_network(network(), (2,), 3, "none")
    with pytest.raises(EvidentiaError, match="no batch norm layers to weigh"):
        build_network(nn.Linear(2, 3), (2,), 3, "weighted")
    with pytest.raises(EvidentiaError, match="norm must be one of"):
        Passes(LastLayer(network()), "layer", "concat")  # type: ignore[arg-type]
    with pytest.raises(EvidentiaError, match="passes must be"):
        Passes(LastLayer(network()), "batch", "together")  # type: ignore[arg-type]


def test_what_is_not_changed_costs_nothing_only_where_both_passes_have_one_set_of_statistics() -> None:
    data = two_moons("faraway", 0.5, seed=1, unlabeled=50)
    concat, separate = (
        SemiSupervisedClassifier(VAT(epsilon=0.0), "none", passes=passes, updates=4, progress=False).fit(data)
        for passes in ("concat", "separate")
    )
    assert concat.history_[-1]["unlabeled_loss"] > 1e-6
    assert abs(separate.history_[-1]["unlabeled_loss"]) < 1e-8


@pytest.mark.parametrize("robust", sorted(ROBUST))
def test_a_batch_norm_goes_with_every_method(robust: str) -> None:
    few, many = (usual_norm(ROBUST[robust](), labeled=labeled) for labeled in (31, 32))
    if robust in ("meta", "ift"):
        assert (few, many) == ("weighted", "weighted")
    else:
        assert (few, many) == ("batch", "frozen" if robust in ("uncertainty", "oracle") else "batch")


def test_samples_that_stay_in_the_batch_are_not_normalised_apart_from_the_labeled_ones() -> None:
    assert usual_norm(ByUncertainty(apply="loss"), labeled=100) == "batch"


def test_what_is_asked_for_and_what_the_network_has_go_first() -> None:
    assert usual_norm(ByUncertainty(), labeled=100, order="concat") == "batch"
    assert usual_norm(ByUncertainty(), labeled=100, order="separate") == "frozen"
    assert usual_norm(Meta(), labeled=100, network=nn.Linear(2, 2)) == "batch"
    assert usual_norm(Meta(), labeled=100, network=network()) == "weighted"


@pytest.mark.parametrize(("labels", "norm"), [(3, "batch"), (40, "frozen")])
def test_the_classifier_has_it_and_keeps_it(labels: int, norm: Norm, tmp_path: Path) -> None:
    data = two_moons("faraway", 0.5, labels_per_class=labels, unlabeled=100)
    robust = ByUncertainty(uncertainty=LabeledAgainstUnlabeled(steps=5))
    clf = SemiSupervisedClassifier("pi-model", robust, updates=2, progress=False)
    assert clf.fit(data).norm_ == norm
    assert clf.settings.norm is None
    clf.save(tmp_path / "clf.safetensors")
    loaded = SemiSupervisedClassifier.load(tmp_path / "clf.safetensors")
    assert loaded.norm_ == norm
    assert torch.equal(loaded.predict(data.x_test).probs, clf.predict(data.x_test).probs)
    asked = SemiSupervisedClassifier("pi-model", robust, norm="batch", updates=2, progress=False)
    assert asked.fit(data).norm_ == "batch"


def test_batches_of_two_shapes_are_told_to_go_separately() -> None:
    passes = Passes(LastLayer(network()), "batch", "concat")
    with pytest.raises(EvidentiaError, match=r"labeled .* shape \(2,\) .*unlabeled .* shape \(3,\).*separate"):
        passes.both(torch.randn(4, 2), torch.randn(4, 3), torch.ones(4))
