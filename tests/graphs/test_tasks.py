"""Tasks and protocols: what is positive, what is tested, and by which score."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from evidentia import EvidentiaError, MultinomialOpinion, Prediction
from evidentia.evaluation import aupr, auroc
from evidentia.graphs import citation_graph, misclassification_split, ood_split
from evidentia.graphs import tasks as tasks_module
from evidentia.graphs.tasks import run_task, usual_settings

QUICK = {"epochs": 30, "passes": 5, "hidden": 8, "progress": False}


@pytest.fixture(scope="module")
def data() -> Any:
    return citation_graph(nodes=2600, classes=4, features=80, seed=0)


class _Fake:
    """A classifier that has learnt nothing, and says so in a way that can be checked."""

    settings: dict[str, Any]

    def __init__(self, method: str, **settings: Any) -> None:
        type(self).settings = {"method": method, **settings}

    def fit(self, split: Any) -> _Fake:
        self.split = split
        return self

    def predict(self) -> Prediction:
        evidence = torch.rand(len(self.split.y), 2, generator=torch.Generator().manual_seed(0)) * 9
        opinion = MultinomialOpinion.from_evidence(evidence)
        return Prediction(opinion.projected, opinion)


def test_misclassification_scores_right_labels_by_low_uncertainty(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks_module, "GraphClassifier", _Fake)
    result = run_task(data, "misclassification", seed=2)
    split = misclassification_split(data, 2)
    pred = _Fake("").fit(split).predict()
    right = (pred.labels == split.y)[split.test_mask].long()
    assert result.accuracy == pytest.approx(float(right.double().mean()))
    uncertainty = pred["dissonance"][split.test_mask]
    assert result.auroc["dissonance"] == pytest.approx(float(auroc(-uncertainty, right)))
    assert result.aupr["dissonance"] == pytest.approx(float(aupr(-uncertainty, right)))


def test_ood_scores_unknown_classes_by_high_uncertainty(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks_module, "GraphClassifier", _Fake)
    result = run_task(data, "ood")
    split = ood_split(data, 0)
    pred = _Fake("").fit(split).predict()
    unknown, tested = split.ood_mask, split.test_mask
    known = tested & ~unknown
    assert result.accuracy == pytest.approx(float((pred.labels == split.y)[known].double().mean()))
    assert result.auroc["vacuity"] == pytest.approx(float(auroc(pred["vacuity"][tested], unknown[tested].long())))


def test_tested_nodes_are_neither_trained_nor_validated_on(data: Any) -> None:
    for split in (misclassification_split(data, 1), ood_split(data, 1)):
        assert not bool((split.test_mask & (split.train_mask | split.val_mask)).any())


def test_the_thesis_settings_follow_task_and_graph(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks_module, "GraphClassifier", _Fake)
    run_task(data, "ood", seed=3)
    assert _Fake.settings["prior_weight"] == 0.1
    assert _Fake.settings["hidden"] == 64
    cora = data.clone()
    cora.name = "cora"
    run_task(cora, "misclassification", epochs=7)
    assert _Fake.settings["prior_weight"] == 0.001
    assert (_Fake.settings["hidden"], _Fake.settings["epochs"]) == (16, 7)
    assert "patience" not in _Fake.settings


def test_the_public_protocol_tests_on_the_graphs_own_test_nodes(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks_module, "GraphClassifier", _Fake)
    own = data.clone()
    own.test_mask = torch.arange(len(own.y)) % 3 == 0
    result = run_task(own, "misclassification", protocol="public")
    split = misclassification_split(own, 0)
    tested = split.test_mask & own.test_mask
    right = (_Fake("").fit(split).predict().labels == split.y)[tested]
    assert result.accuracy == pytest.approx(float(right.double().mean()))
    del own.test_mask
    with pytest.raises(EvidentiaError, match="no test nodes of its own"):
        run_task(own, protocol="public")


@pytest.mark.parametrize("task", ["misclassification", "ood"])
def test_a_real_run_of_both_protocols(task: Any, data: Any) -> None:
    clean, author = (run_task(data, task, "s-bgcn", protocol=protocol, **QUICK) for protocol in ("clean", "author"))
    for result in (clean, author):
        assert 0 <= result.accuracy <= 1
        assert all(0 <= value <= 1 for value in (*result.auroc.values(), *result.aupr.values()))
    assert clean.auroc != author.auroc


def test_the_posterior_network_sees_features_of_length_one_where_nodes_have_many_words() -> None:
    assert usual_settings("Cora", "ood", "gpn")["backbone"] == "gpn"
    assert usual_settings("Computers", "ood", "gpn")["backbone"] == "unit-gpn"
    assert usual_settings("a graph of one's own", "ood", "gpn")["backbone"] == "unit-gpn"
