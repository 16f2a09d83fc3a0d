"""Tasks and protocols: what is positive, what is tested, and by which score."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from evidentia import EvidentiaError, MultinomialOpinion, Prediction
from evidentia.evaluation import aupr, auroc
from evidentia.graphs import citation_graph, misclassification_split, ood_split
from evidentia.graphs import tasks as tasks_module
from evidentia.graphs.tasks import run_task, train_task, usual_settings

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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"task": "oood"}, "there is no task 'oood'; choose one of: misclassification, ood"),
        ({"protocol": "x"}, "there is no protocol 'x'; choose one of: clean, public, author"),
        ({"classes": "random"}, "the task 'misclassification' knows all classes.* 'random'.* choose the task 'ood'"),
        ({"task": "ood", "classes": "first"}, "'last', 'random' or a list of classes, got 'first'"),
        ({"task": "ood", "classes": 3}, "a list of whole numbers, got 3"),
        ({"task": "ood", "classes": [2.5]}, r"a list of whole numbers, got \[2.5\]"),
        ({"per_class": 0}, "per_class must be a whole number of at least 1, got 0"),
        ({"validation": "many"}, "validation must be a whole number of at least 1, got 'many'"),
        ({"protocol": "author", "per_class": 450}, "draw fewer, or use the protocol 'clean'"),
    ],
)
def test_what_there_is_not_is_told_before_training(
    arguments: dict[str, Any], message: str, data: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Fake, "fit", lambda *_: pytest.fail("nothing was to be trained"))
    monkeypatch.setattr(tasks_module, "GraphClassifier", _Fake)
    for run in (run_task, train_task):
        with pytest.raises(EvidentiaError, match=message):
            run(data, **arguments)


def test_unknown_classes_are_the_last_unless_others_are_wanted(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks_module, "GraphClassifier", _Fake)
    assert train_task(data, "ood").split.ood_classes == [2, 3]
    assert train_task(data, "ood", classes=[1]).split.ood_classes == [1]
    drawn = [train_task(data, "ood", seed=seed, classes="random").split.ood_classes for seed in range(8)]
    assert drawn == [ood_split(data, seed, "random").ood_classes for seed in range(8)]
    assert len(set(map(tuple, drawn))) > 1
    assert run_task(data, "ood", classes=[1]) != run_task(data, "ood")


def test_a_small_graph_without_masks_can_be_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks_module, "GraphClassifier", _Fake)
    small = citation_graph(nodes=200, classes=4, features=40)
    del small.train_mask, small.val_mask, small.test_mask
    for task in ("misclassification", "ood"):
        with pytest.raises(EvidentiaError, match="lower validation or per_class"):
            run_task(small, task)
        split = train_task(small, task, per_class=5, validation=30).split
        assert [int(mask.sum()) for mask in (split.train_mask, split.val_mask)] == [5 * split.num_classes, 30]
        assert 0 <= run_task(small, task, per_class=5, validation=30).accuracy <= 1


def test_counted_nodes_take_the_place_of_the_graphs_own(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks_module, "GraphClassifier", _Fake)
    split = train_task(data, per_class=7).split
    assert torch.equal(split.train_mask, misclassification_split(data, 0, per_class=7, public=False).train_mask)
    assert int(split.train_mask.sum()) == 28
    assert int(split.val_mask.sum()) == 500


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
