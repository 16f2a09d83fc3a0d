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


@pytest.mark.parametrize("backbone", ["gat", "graphsage", "appnp"])
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


def test_a_seed_repeats_bit_for_bit_and_leaves_the_random_state_alone(data: Any) -> None:
    before = torch.random.get_rng_state()
    first, again, other = (classifier(seed=seed).fit(data).predict() for seed in (3, 3, 4))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.equal(first.probs, again.probs)
    assert torch.equal(first["vacuity"], again["vacuity"])
    assert not torch.equal(first.probs, other.probs)


@pytest.mark.parametrize("stop_at", [5, EPOCHS + 7])
def test_a_broken_off_run_ends_where_it_would_have(
    stop_at: int, data: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = classifier().fit(data)
    path = tmp_path / "run.safetensors"
    steps = 0
    original = training_module._validation_risk

    def interrupted(*arguments: Any) -> torch.Tensor:
        nonlocal steps
        steps += 1
        if steps == stop_at:
            raise KeyboardInterrupt
        return original(*arguments)

    # The teacher trains first: 5 stops it, EPOCHS + 7 stops the student.
    monkeypatch.setattr(training_module, "_validation_risk", interrupted)
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


def test_propagated_vacuity_finds_classes_never_shown() -> None:
    graph = citation_graph(nodes=1200, classes=6, features=150, homophily=0.9, seed=0)
    unknown = ood_split(graph, seed=0)
    pred = classifier(propagation="strength", prior_weight=0.1, epochs=150).fit(unknown).predict()
    tested = unknown.test_mask
    assert float(auroc(pred["vacuity"][tested], unknown.ood_mask[tested].long())) > 0.75


def test_passes_in_one_batch_or_many_are_as_many(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = classifier("drop-gcn", passes=7).fit(data)
    assert model._sample(*model._trained()).shape[0] == 7
    monkeypatch.setattr("evidentia.graphs.estimator._PASS_ENTRIES", 1)
    assert model._sample(*model._trained()).shape[0] == 7


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
        ({"method": "gcn", "propagation": "strength"}, "no evidence"),
        ({"propagation": "both"}, "propagation must be"),
        ({"passes": 0}, "passes"),
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
