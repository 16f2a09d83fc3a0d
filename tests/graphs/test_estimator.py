"""The graph classifier: what it promises whatever the method."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from evidentia import EvidentiaError, FileFormatError
from evidentia.evaluation import auroc
from evidentia.graphs import GRAPH_METHODS, GraphClassifier, citation_graph, ood_split
from evidentia.graphs import training as training_module
from evidentia.graphs.graph_tensors import GraphTensors

EPOCHS = 120


@pytest.fixture(scope="module")
def data() -> Any:
    return citation_graph(nodes=400, classes=4, features=80, seed=1)


def classifier(method: str = "s-bgcn-t-k", **options: Any) -> GraphClassifier:
    return GraphClassifier(method, **{"epochs": EPOCHS, "passes": 20, "progress": False, **options})


@pytest.mark.parametrize("method", GRAPH_METHODS)
def test_every_method_learns_and_says_how_unsure_it_is(method: str, data: Any) -> None:
    pred = classifier(method).fit(data).predict()
    assert len(pred) == data.num_nodes
    assert float((pred.labels == data.y)[data.test_mask].float().mean()) > 0.6
    torch.testing.assert_close(pred.probs.sum(-1), torch.ones(data.num_nodes))
    spec = GRAPH_METHODS[method]
    expected = {"entropy"}
    if spec.evidence is not None:
        expected |= {"vacuity", "dissonance", "aleatoric", "epistemic"}
    if spec.energy:
        expected |= {"energy"}
    if spec.sampling != "none":
        expected |= {"aleatoric", "epistemic"}
    assert expected <= set(pred.uncertainties)
    assert all(bool(values.isfinite().all()) for values in pred.uncertainties.values())


@pytest.mark.parametrize("backbone", ["mean-gcn", "gat", "graphsage", "appnp"])
def test_other_backbones_by_name(backbone: str, data: Any) -> None:
    pred = classifier("s-bgcn", backbone=backbone).fit(data).predict()
    assert float((pred.labels == data.y)[data.test_mask].float().mean()) > 0.6


def test_a_module_of_ones_own(data: Any) -> None:
    class Mine(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(80, 16), nn.Linear(16, 4)

        def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
            hidden = torch.relu(self.first(x))
            return self.second(hidden.index_add(0, edge_index[1], hidden[edge_index[0]]))

    torch.manual_seed(0)
    pred = classifier("s-gcn", backbone=Mine()).fit(data).predict()
    assert float((pred.labels == data.y)[data.test_mask].float().mean()) > 0.5


def test_members_made_of_ones_own_module_differ(data: Any) -> None:
    class Mine(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(80, 4)

        def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
            return self.layer(x)

    mine = Mine()
    before = mine.layer.weight.clone()
    model = classifier("s-gcn", backbone=mine, members=2, epochs=3).fit(data)
    first, second = (member(model._shown(None)) for member in model._members("classes"))
    assert not torch.equal(first, second)
    assert torch.equal(mine.layer.weight, before)


def test_a_seed_repeats_bit_for_bit_and_leaves_the_random_state_alone(data: Any) -> None:
    before = torch.random.get_rng_state()
    first, again, other = (classifier(seed=seed).fit(data).predict() for seed in (3, 3, 4))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.equal(first.probs, again.probs)
    assert torch.equal(first["vacuity"], again["vacuity"])
    assert not torch.equal(first.probs, other.probs)


@pytest.mark.parametrize("stop_at", [5, 25, EPOCHS + 27])
def test_a_broken_off_run_ends_where_it_would_have(
    stop_at: int, data: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = classifier().fit(data)
    path = tmp_path / "run.safetensors"
    steps = 0
    original = training_module._Step.loss

    def interrupted(*arguments: Any) -> torch.Tensor:
        nonlocal steps
        steps += 1
        if steps == stop_at:
            raise KeyboardInterrupt
        return original(*arguments)

    # The teacher trains first and is stopped before and after its first checkpoint, then the student.
    monkeypatch.setattr(training_module._Step, "loss", interrupted)
    with pytest.raises(KeyboardInterrupt):
        classifier(checkpoint=path).fit(data)
    monkeypatch.undo()
    resumed = classifier(checkpoint=path).fit(data)
    assert resumed.history == whole.history
    assert torch.equal(resumed.predict().probs, whole.predict().probs)


def test_a_checkpoint_of_other_settings_is_refused(data: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.safetensors"
    classifier("s-gcn", checkpoint=path).fit(data)
    with pytest.raises(EvidentiaError, match="other settings"):
        classifier("s-gcn", checkpoint=path, learning_rate=0.5).fit(data)


def test_early_stopping_returns_to_the_best_epoch(data: Any) -> None:
    model = classifier("gcn", epochs=400, patience=10).fit(data)
    losses = [epoch["validation_loss"] for epoch in model.history]
    assert len(losses) < 400
    assert losses.index(min(losses)) == len(losses) - 11


def test_saved_and_loaded_predicts_the_same(data: Any, tmp_path: Path) -> None:
    model = classifier(propagation="gated", hidden=8).fit(data)
    model.save(tmp_path / "model.safetensors")
    loaded = GraphClassifier.load(tmp_path / "model.safetensors")
    assert torch.equal(loaded.predict(data).probs, model.predict().probs)
    assert torch.equal(loaded.predict(data)["vacuity"], model.predict()["vacuity"])
    with pytest.raises(EvidentiaError, match="no graph of its own"):
        loaded.predict()


def test_a_truncated_file_is_refused(data: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    classifier("s-gcn", epochs=1).fit(data).save(path)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(FileFormatError):
        GraphClassifier.load(path)


def test_strength_propagation_keeps_every_label(data: Any) -> None:
    plain, spread = (classifier(propagation=way).fit(data).predict() for way in ("none", "strength"))
    assert torch.equal(plain.labels, spread.labels)
    assert not torch.equal(plain["vacuity"], spread["vacuity"])


def test_a_second_network_for_the_strength_keeps_every_label(data: Any, tmp_path: Path) -> None:
    plain, split = classifier("s-bgcn-t-k").fit(data), classifier("s-bgcn-t-kw").fit(data)
    assert split.propagation == "strength"
    assert torch.equal(plain.predict().probs, split.predict().probs)
    assert not torch.equal(plain.predict()["vacuity"], split.predict()["vacuity"])
    split.save(tmp_path / "model.safetensors")
    loaded = GraphClassifier.load(tmp_path / "model.safetensors").predict(data)
    assert torch.equal(loaded["vacuity"], split.predict()["vacuity"])


def test_an_ensemble_averages_networks_that_differ(data: Any, tmp_path: Path) -> None:
    model = classifier("s-gcn", members=3).fit(data)
    pred = model.predict()
    outputs = [member(model._shown(None)) for member in model._members("classes")]
    assert len(outputs) == 3
    assert not torch.equal(outputs[0], outputs[1])
    assert bool((pred["epistemic"] > 0).all())
    model.save(tmp_path / "model.safetensors")
    assert torch.equal(GraphClassifier.load(tmp_path / "model.safetensors").predict(data).probs, pred.probs)
    softmax = classifier("gcn", members=2).fit(data).predict()
    assert {"aleatoric", "epistemic"} <= set(softmax.uncertainties)


def test_a_cached_teacher_is_found_by_other_methods_and_not_by_other_graphs(data: Any, tmp_path: Path) -> None:
    for method in ("s-bgcn-t", "s-bgcn-t-k", "s-bgcn-t-kw"):
        cached = classifier(method, epochs=10, cache=tmp_path).fit(data)
        assert torch.equal(cached.predict().probs, classifier(method, epochs=10).fit(data).predict().probs)
    assert len(list(tmp_path.iterdir())) == 1
    other = citation_graph(nodes=400, classes=4, features=80, seed=2)
    classifier("s-bgcn-t", epochs=10, cache=tmp_path).fit(other)
    assert len(list(tmp_path.iterdir())) == 2


def test_training_by_neighbourhoods_learns_repeats_and_resumes(
    data: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"batch_size": 30, "fanouts": (5, 5), "epochs": 60}
    whole = classifier(**options).fit(data)
    pred = whole.predict()
    assert float((pred.labels == data.y)[data.test_mask].float().mean()) > 0.6
    steps = 0
    original = training_module._Step.loss
    batches = -(-int(data.train_mask.sum()) // 30)

    def interrupted(*arguments: Any) -> torch.Tensor:
        nonlocal steps
        steps += 1
        if steps == 75 * batches - 1:  # in the student's fifteenth epoch
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(training_module._Step, "loss", interrupted)
    path = tmp_path / "run.safetensors"
    with pytest.raises(KeyboardInterrupt):
        classifier(checkpoint=path, **options).fit(data)
    monkeypatch.undo()
    resumed = classifier(checkpoint=path, **options).fit(data)
    assert torch.equal(resumed.predict().probs, pred.probs)


def test_a_large_graph_is_trained_by_batches_of_itself(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_module, "LARGE_GRAPH", 100)
    monkeypatch.setattr(training_module, "USUAL_BATCH", 10)
    batches = training_module._batches(
        GraphTensors.build(data.x, data.edge_index), data, training_module.GraphTraining(), others=True
    )
    shown = list(batches.training(0))
    assert len(shown) == -(-int(data.train_mask.sum()) // 10)
    assert all(batch.graph.num_nodes < data.num_nodes for batch in shown)
    labelled = torch.cat([batch.nodes[data.train_mask[batch.nodes]] for batch in shown])
    assert torch.equal(labelled.sort().values, data.train_mask.nonzero().squeeze(-1))


@pytest.mark.parametrize("way", ["strength", "evidence"])
def test_evidence_can_be_propagated_in_training(way: str, data: Any) -> None:
    inside, outside = (
        classifier("s-bgcn-t-k", propagation=way, propagated=propagated).fit(data).predict()
        for propagated in (True, False)
    )
    assert float((inside.labels == data.y)[data.test_mask].float().mean()) > 0.6
    assert not torch.equal(inside["vacuity"], outside["vacuity"])


def test_propagated_vacuity_finds_classes_never_shown() -> None:
    graph = citation_graph(nodes=1200, classes=6, features=150, homophily=0.9, seed=0)
    unknown = ood_split(graph, seed=0)
    pred = classifier(propagation="strength", prior_weight=0.1, epochs=150).fit(unknown).predict()
    tested = unknown.test_mask
    assert float(auroc(pred["vacuity"][tested], unknown.ood_mask[tested].long())) > 0.75


def test_passes_in_one_batch_or_many_are_as_many(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = classifier("drop-gcn", passes=7).fit(data)
    in_one = model.predict()
    monkeypatch.setattr("evidentia.graphs.passes._PASS_ENTRIES", 1)
    one_by_one = model.predict()
    # Other units are dropped, so the two agree as two samples do.
    assert float((in_one.probs - one_by_one.probs).abs().mean()) < 0.1
    assert model._passes("classes", model._shown(None)).number == 7


def test_new_nodes_are_predicted_from_features_and_neighbours(data: Any) -> None:
    model = classifier("s-gcn").fit(data)
    larger = citation_graph(nodes=500, classes=4, features=80, seed=2)
    pred = model.predict(larger)
    assert len(pred) == 500
    assert model.embed().shape == (400, 16)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "gnc"}, "no graph method"),
        ({"backbone": "gnc"}, "no graph backbone"),
        ({"method": "gcn", "propagation": "strength"}, "no logarithms of evidence"),
        ({"method": "edl-gcn", "propagation": "strength"}, "no logarithms of evidence"),
        ({"backbone": nn.Linear}, "made and not its class"),
        ({"hidden": 0}, "hidden must be a whole number"),
        ({"hidden": "a"}, "hidden must be a whole number"),
        ({"passes": 2.5}, "passes must be a whole number"),
        ({"dropout": 1.0}, "dropout must be a number, at least 0 and less than 1"),
        ({"dropout": "a"}, "dropout must be a number"),
        ({"sigma": 0.0}, "sigma must be a number, more than 0"),
        ({"dropout": -1.0}, "dropout"),
        ({"checkpoint": "."}, "is a folder"),
        ({"propagation": "both"}, "propagation must be"),
        ({"passes": 0}, "passes"),
        ({"members": 0}, "members"),
        ({"propagated": True}, "needs propagation strength or evidence"),
        ({"epochs": 0}, "epochs"),
        ({"learning_rate": -1.0}, "learning_rate"),
        ({"speed": 3}, "speed"),
    ],
)
def test_settings_that_cannot_work_are_refused_at_once(options: dict[str, Any], words: str) -> None:
    with pytest.raises(EvidentiaError, match=words):
        GraphClassifier(**options)


def test_a_graph_that_cannot_be_trained_on_is_refused_before_training(data: Any) -> None:
    broken = data.clone()
    broken.edge_index = broken.edge_index + 1000
    with pytest.raises(EvidentiaError):
        classifier().fit(broken)
    with pytest.raises(EvidentiaError, match="call fit first"):
        classifier().predict()
