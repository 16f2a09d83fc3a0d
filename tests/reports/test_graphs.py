"""The pictures of a graph classifier."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from evidentia import EvidentiaError
from evidentia._support.errors import MissingExtraError
from evidentia.graphs import GraphClassifier, citation_graph, ood_split
from evidentia.reports import graph_pictures
from evidentia.reports import graphs as module

PICTURES = ["embedding.png", "uncertainties.png", "curves.png"]


@pytest.fixture(scope="module")
def data() -> Any:
    return citation_graph(nodes=300, classes=4, features=60, per_class=10, seed=0)


@pytest.fixture(scope="module")
def model(data: Any) -> GraphClassifier:
    return GraphClassifier("s-gcn", epochs=30, progress=False).fit(data)


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The figures by the name of their file, kept rather than rendered."""
    kept: dict[str, Any] = {}
    monkeypatch.setattr(module, "save_figure", lambda figure, path: kept.update({path.name: figure}))
    return kept


def legend(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_pictures_are_written(model: GraphClassifier, data: Any, tmp_path: Path) -> None:
    paths = graph_pictures(model, data, tmp_path / "new")
    assert paths == [tmp_path / "new" / name for name in PICTURES]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == sorted(PICTURES)


def test_wrong_labels_are_sought_among_the_test_nodes(
    model: GraphClassifier, data: Any, figures: dict[str, Any]
) -> None:
    graph_pictures(model, data, "")
    titles = [ax.get_title() for ax in figures["embedding.png"].axes if ax.get_title()]
    assert titles == ["class", "predicted class", *module.MAPPED]
    assert figures["curves.png"].axes[0].get_title() == "finding wrong labels"
    wrong = int((model.predict().labels != data.y)[data.test_mask].sum())
    right = int(data.test_mask.sum()) - wrong
    assert legend(figures["uncertainties.png"].axes[0]) == [f"right ({right})", f"wrong ({wrong})"]


def test_unknown_nodes_are_sought_where_there_are_some(data: Any, figures: dict[str, Any]) -> None:
    hidden = ood_split(data, validation=50)
    model = GraphClassifier("s-gcn", epochs=30, progress=False).fit(hidden)
    graph_pictures(model, hidden, "")
    assert figures["curves.png"].axes[0].get_title() == "finding nodes out of distribution"
    unknown = int((hidden.ood_mask & hidden.test_mask).sum())
    assert legend(figures["uncertainties.png"].axes[0])[-1] == f"out of distribution ({unknown})"
    assert legend(figures["embedding.png"].axes[0]) == ["0", "1", "none", "trained on"]


def test_a_method_without_evidence_has_fewer_panels(data: Any, figures: dict[str, Any]) -> None:
    graph_pictures(GraphClassifier("gcn", epochs=5, progress=False).fit(data), data, "")
    titles = [ax.get_title() for ax in figures["embedding.png"].axes if ax.get_title()]
    assert titles == ["class", "predicted class", "entropy"]


def test_without_test_mask_all_other_labelled_nodes_are_tested(
    model: GraphClassifier, data: Any, figures: dict[str, Any]
) -> None:
    own = data.clone()
    del own.test_mask
    own.y = torch.where(torch.arange(300) % 7 == 0, -1, own.y)
    graph_pictures(model, own, "")
    tested = (own.y >= 0) & ~own.train_mask & ~own.val_mask
    counts = [int(text.split("(")[1][:-1]) for text in legend(figures["uncertainties.png"].axes[0])]
    assert sum(counts) == int(tested.sum())


def test_curves_are_left_out_if_nothing_is_wrong(model: GraphClassifier, data: Any, figures: dict[str, Any]) -> None:
    own = data.clone()
    own.y = model.predict().labels
    assert [path.name for path in graph_pictures(model, own, "")] == PICTURES[:2]


def test_a_graph_without_test_nodes_or_with_other_features_is_refused(model: GraphClassifier, data: Any) -> None:
    own = data.clone()
    own.test_mask = torch.zeros(300, dtype=torch.bool)
    with pytest.raises(EvidentiaError, match="no test node with a label"):
        graph_pictures(model, own, "")
    with pytest.raises(EvidentiaError, match="features that the classifier was trained on, got 50"):
        graph_pictures(model, citation_graph(nodes=200, classes=4, features=50), "")


def test_a_loaded_classifier_draws_a_graph_that_it_was_not_trained_on(
    model: GraphClassifier, tmp_path: Path, figures: dict[str, Any]
) -> None:
    model.save(tmp_path / "model.safetensors")
    loaded = GraphClassifier.load(tmp_path / "model.safetensors")
    other = citation_graph(nodes=200, classes=4, features=60, seed=5)
    assert [path.name for path in graph_pictures(loaded, other, "")] == PICTURES


def test_equal_embeddings_can_be_placed() -> None:
    from sklearn.manifold import TSNE

    assert np.isfinite(module._in_the_plane(TSNE, torch.zeros(5, 4), seed=0)).all()


def test_without_scikit_learn_the_error_says_what_to_install(
    model: GraphClassifier, data: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.manifold", None)
    with pytest.raises(MissingExtraError, match=r"scikit-learn.*evidentia\[demo\]"):
        graph_pictures(model, data, "")
