"""What a graph classifier is given: graphs it cannot take, features of any kind, and modules of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from evidentia import EvidentiaError
from evidentia.graphs import GraphClassifier, citation_graph
from evidentia.graphs.models import GCN


@pytest.fixture(scope="module")
def data() -> Any:
    return citation_graph(nodes=400, classes=4, features=80, seed=1)


def classifier(method: str = "s-bgcn-t-k", **options: Any) -> GraphClassifier:
    return GraphClassifier(method, **{"epochs": 20, "passes": 20, "progress": False, **options})


def _changed(data: Any, **changes: Any) -> Any:
    other = data.clone()
    for name, value in changes.items():
        setattr(other, name, value(getattr(data, name)) if callable(value) else value)
    return other


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"edge_index": lambda edges: edges + 5}, "nodes from 0 to 399"),
        ({"edge_index": lambda edges: edges - 5}, "nodes from 0 to 399"),
        ({"edge_index": lambda edges: edges.T}, "transpose it"),
        ({"edge_index": None}, "edge_index must be a tensor"),
        ({"x": None}, "x must be a tensor"),
        ({"x": lambda x: x.to_dense()[:, :70]}, "the 80 features that the classifier was trained on, got 70"),
        ({"x": lambda x: x.to_dense().long()}, r"convert it by \.float\(\)"),
        ({"x": lambda x: x.to_dense()[:0]}, "shape"),
        ({"x": lambda x: x.to_dense() * torch.nan}, "data.x"),
    ],
)
def test_a_graph_that_cannot_be_predicted_is_refused(changes: dict[str, Any], words: str, data: Any) -> None:
    model = classifier("gcn", epochs=2).fit(data)
    other = _changed(data, **changes)
    for use in (model.predict, model.embed):
        with pytest.raises(EvidentiaError, match=words):
            use(other)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("dense", [True, False])
def test_features_of_any_floating_type_and_labels_of_any_whole_one(dtype: torch.dtype, dense: bool, data: Any) -> None:
    given = _changed(
        data,
        x=lambda x: (x.to_dense() if dense else x).to(dtype).requires_grad_(dense),
        y=lambda y: y.to(torch.int32),
        edge_index=lambda edges: edges.to(torch.int32),
    )
    expected = classifier("s-bgcn-t", epochs=5).fit(data).predict()
    found = classifier("s-bgcn-t", epochs=5).fit(given).predict()
    assert found.probs.dtype == torch.float32
    # Dropout of dense features and of sparse ones is drawn in other ways.
    assert torch.allclose(found.probs, expected.probs, atol=0.2 if dense else 1e-5)


def test_torch_may_have_another_usual_type(data: Any) -> None:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        pred = classifier("s-bgcn-t-kw", epochs=3).fit(data).predict()
    finally:
        torch.set_default_dtype(before)
    assert pred.probs.dtype == torch.float64


def test_features_below_zero_are_taken_as_they_are(tmp_path: Path) -> None:
    graph = citation_graph(nodes=600, classes=3, features=40, homophily=0.9, seed=0)
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(3, 16, generator=generator)
    graph.x = centres[graph.y] + torch.randn(600, 16, generator=generator)
    model = classifier("gcn", epochs=100).fit(graph)
    pred = model.predict()
    assert float((pred.labels == graph.y)[graph.test_mask].float().mean()) > 0.9
    model.save(tmp_path / "model.safetensors")
    # Another graph is shown as the first one was, whatever its signs.
    positive = _changed(graph, x=lambda x: x.abs())
    loaded = GraphClassifier.load(tmp_path / "model.safetensors")
    assert torch.equal(loaded.predict(graph).probs, pred.probs)
    assert torch.equal(loaded.predict(positive).probs, model.predict(positive).probs)
    with pytest.raises(EvidentiaError, match="cannot be divided by their sum"):
        classifier("gcn", normalise=True).fit(graph)
    plain = classifier("gcn", epochs=5, normalise=False).fit(positive).predict()
    assert not torch.equal(plain.probs, classifier("gcn", epochs=5).fit(positive).predict().probs)


def test_settings_may_be_numbers_of_numpy(data: Any, tmp_path: Path) -> None:
    counts = {"hidden": np.int64(8), "passes": np.int64(3), "members": np.int64(1), "epochs": np.int64(2)}
    shares = {"dropout": np.float32(0.5), "sigma": np.float64(1.0), "learning_rate": np.float32(0.01)}
    model = classifier(**counts, **shares, checkpoint=tmp_path / "run.safetensors").fit(data)
    model.save(tmp_path / "model.safetensors")
    assert torch.equal(
        GraphClassifier.load(tmp_path / "model.safetensors").predict(data).probs, model.predict(data).probs
    )


def test_a_classifier_says_what_it_is(data: Any) -> None:
    model = classifier("gcn", backbone="gat", epochs=1)
    assert repr(model) == "GraphClassifier(gcn, gat: not trained)"
    assert repr(model.fit(data)) == "GraphClassifier(gcn, gat: 4 classes)"
    assert repr(classifier(backbone=_Normed())) == "GraphClassifier(s-bgcn-t-k, _Normed: not trained)"


def test_what_a_graph_lacks_is_told(data: Any) -> None:
    with pytest.raises(EvidentiaError, match=r"data\.y must be a tensor"):
        classifier().fit(_changed(data, y=None))
    for wrong in (None, "cora", (data.x, data.edge_index, data.y)):
        with pytest.raises(EvidentiaError, match=rf"must be a PyG Data, got {type(wrong).__name__}; .* Data\(x=x"):
            classifier().fit(wrong)
    with pytest.raises(EvidentiaError, match=r"hiden: there is no such setting; .*hidden"):
        GraphClassifier(hiden=8)
    with pytest.raises(EvidentiaError, match=r"num_classes must be a whole number, got 3\.0"):
        classifier().fit(data, num_classes=3.0)
    with pytest.warns(UserWarning, match="edge_weight is not looked at"):
        classifier("gcn", epochs=1).fit(_changed(data, edge_weight=torch.ones(data.edge_index.shape[1])))


class _Normed(nn.Module):
    """A module of a user's with batch norm and dropout."""

    def __init__(self, outputs: int = 4) -> None:
        super().__init__()
        self.first, self.norm, self.second = nn.Linear(80, 16), nn.BatchNorm1d(16), nn.Linear(16, outputs)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        hidden = nn.functional.dropout(torch.relu(self.norm(self.first(x))), 0.5, self.training)
        return self.second(hidden)


def test_predicting_leaves_the_norms_of_ones_own_module_alone(data: Any) -> None:
    model = classifier("s-bgcn", backbone=_Normed(), epochs=20).fit(data)
    before = model.embed()
    assert bool((model.predict()["epistemic"] > 0).any())
    assert torch.equal(model.embed(), before)
    alone = _changed(data, x=lambda x: x.to_dense()[:1], edge_index=torch.zeros(2, 0, dtype=torch.long))
    assert len(model.predict(alone)) == 1


def test_ones_own_module_must_give_a_number_for_every_node_and_class(data: Any) -> None:
    class Pair(_Normed):
        def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> Any:
            return super().forward(x, edge_index), x

    for backbone, got in (
        (_Normed(5), r"got shape \(400, 5\)"),
        (_Normed(3), r"got shape \(400, 3\)"),
        (Pair(), "got tuple"),
    ):
        with pytest.raises(EvidentiaError, match=got):
            classifier("gcn", backbone=backbone).fit(data)
    with pytest.raises(EvidentiaError, match="has no parameter"):
        classifier("gcn", backbone=_Normed().requires_grad_(False)).fit(data)


@pytest.mark.parametrize(
    ("backbone", "taken"),
    [
        (nn.Linear(3, 2), r"Linear takes \(input\)"),
        (nn.Sequential(nn.Linear(3, 2)), r"Sequential takes \(input\)"),
        (GCN(3, 2), r"GCN takes \(graph, passes\)"),
    ],
)
def test_a_module_that_is_called_otherwise_is_refused_before_training(backbone: nn.Module, taken: str) -> None:
    with pytest.raises(EvidentiaError, match=rf"called as module\(x, edge_index\), but {taken}; give a name"):
        classifier("gcn", backbone=backbone)


def test_a_module_that_does_not_tell_what_it_takes_is_left_to_show_it() -> None:
    compiled = nn.Module()
    compiled.forward = max  # a function in C, of which there is no signature
    assert classifier("gcn", backbone=compiled).backbone is compiled


def test_a_run_of_another_start_of_ones_own_module_is_not_taken_up(data: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.safetensors"
    torch.manual_seed(0)
    classifier("s-gcn", backbone=_Normed(), checkpoint=path, epochs=3).fit(data)
    with pytest.raises(EvidentiaError, match="other settings"):
        classifier("s-gcn", backbone=_Normed(), checkpoint=path, epochs=3).fit(data)


def test_memory_of_attention_is_bounded_by_its_edges(data: Any) -> None:
    model = classifier("s-gcn", backbone="gat", epochs=1).fit(data)
    (network,) = model._members("classes")
    graph = model._shown(None)
    # Eight heads of eight units on every edge and on every node's loop.
    assert network.pass_entries(graph) == (graph.edge_index.shape[1] + 400) * 64
