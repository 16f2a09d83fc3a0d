"""The face: fit, predict, review, save and load, log and resume, and what it says to bad input."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from evidentia import EvidentiaError
from evidentia._support.errors import FileFormatError
from evidentia._support.files import load_tensors, save_tensors
from evidentia.semisup import (
    OBJECTIVES,
    ByUncertainty,
    LabeledAgainstUnlabeled,
    SemiSupervisedClassifier,
    SemiSupervisedData,
    load_pool,
    two_moons,
)
from evidentia.semisup.uncertainty import PoolView

QUICK: dict[str, Any] = {"updates": 20, "block": 10, "unlabeled_batch": 40, "progress": False}


@pytest.fixture(scope="module")
def data() -> SemiSupervisedData:
    return two_moons("faraway", 0.5, seed=1, unlabeled=200)


def accuracy(clf: SemiSupervisedClassifier, data: SemiSupervisedData) -> float:
    return float((clf.predict(data.x_test).labels == data.y_test).double().mean())


def test_far_samples_of_no_class_ruin_batch_norm_in_separate_passes_and_not_ours() -> None:
    data = two_moons("faraway", 0.5, seed=0, unlabeled=500)
    settings: dict[str, Any] = {"updates": 300, "unlabeled_batch": 100, "progress": False}
    ruined = SemiSupervisedClassifier("pi-model", "none", norm="batch", passes="separate", **settings).fit(data)
    ours = SemiSupervisedClassifier("pi-model", "uncertainty", **settings).fit(data)
    assert accuracy(ruined, data) < 0.7
    assert accuracy(ours, data) > 0.95
    summary = ours.review().summary()
    assert summary["w_ood"] < 0.3
    assert summary["w_in"] > 0.7


def test_tensors_arrays_and_datasets_are_the_same(data: SemiSupervisedData) -> None:
    x, y, pool = data.x_labeled, data.y_labeled, data.x_unlabeled
    forms = [((x, y), pool), ((x.numpy(), y.numpy()), pool.numpy()), (TensorDataset(x, y), TensorDataset(pool))]
    found = [SemiSupervisedClassifier("vat", "meta", **QUICK).fit(labeled, unlabeled) for labeled, unlabeled in forms]
    for other in found[1:]:
        assert torch.equal(found[0].weights_, other.weights_)
    assert torch.equal(found[0].predict(x).probs, found[1].predict(x.numpy()).probs)


def test_the_truth_about_the_pool_changes_nothing_but_the_log(data: SemiSupervisedData) -> None:
    labeled = (data.x_labeled, data.y_labeled)
    without, told = (
        SemiSupervisedClassifier("vat", "ift", **QUICK).fit(labeled, data.x_unlabeled, is_ood=is_ood)
        for is_ood in (None, data.is_ood)
    )
    assert torch.equal(without.weights_, told.weights_)
    assert "w_ood" not in without.history_[-1]
    assert {"w_in", "w_ood"} <= told.history_[-1].keys()


def test_validation_labels_change_the_weights_and_are_measured() -> None:
    data = two_moons("boundary", 0.5, seed=1, unlabeled=200, validation=50)
    known = (data.x_labeled, data.y_labeled)
    without = SemiSupervisedClassifier("vat", "meta", **QUICK).fit(known, data.x_unlabeled)
    validated = SemiSupervisedClassifier("vat", "meta", **QUICK).fit(
        known, data.x_unlabeled, (data.x_validation, data.y_validation)
    )
    assert not torch.equal(without.weights_, validated.weights_)
    assert 0 <= validated.history_[-1]["validation_accuracy"] <= 1
    assert "validation_accuracy" not in without.history_[-1]


@pytest.mark.parametrize(
    ("norm", "passes"), [("none", "concat"), ("batch", "separate"), ("frozen", None), ("weighted", "separate")]
)
def test_every_norm_and_order_trains(norm: str, passes: str | None, data: SemiSupervisedData) -> None:
    clf = SemiSupervisedClassifier("fixmatch", "meta", norm=norm, passes=passes, **QUICK).fit(data)
    assert bool(clf.predict(data.x_test).probs.isfinite().all())


def test_images_get_a_lenet_and_image_augmentation() -> None:
    data = load_pool("digits", ood="letters", ratio=0.5, unlabeled=60)
    clf = SemiSupervisedClassifier("fixmatch", "none", updates=2, unlabeled_batch=20, progress=False).fit(data)
    assert clf.predict(data.x_test).probs.shape == (len(data.y_test), 10)
    assert clf.review().class_names == data.class_names


def test_the_log_holds_a_line_a_block_also_after_a_restart(data: SemiSupervisedData, tmp_path: Path) -> None:
    log, kept = tmp_path / "log.jsonl", tmp_path / "run.safetensors"
    clf = SemiSupervisedClassifier("vat", "meta", log=log, checkpoint=kept, **QUICK).fit(data)
    lines = log.read_text().splitlines()
    assert [json.loads(line) for line in lines] == clf.history_
    # As a crash would leave it: the last line cut off. The finished run is taken up again and tells nothing new.
    log.write_text("\n".join(lines)[:-7])
    again = SemiSupervisedClassifier("vat", "meta", log=log, checkpoint=kept, **QUICK).fit(data)
    assert log.read_text().splitlines() == lines
    assert torch.equal(again.weights_, clf.weights_)


def test_tensorboard_gets_the_same_figures(data: SemiSupervisedData, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    clf = SemiSupervisedClassifier("vat", "meta", tensorboard=tmp_path, **QUICK).fit(data)
    events = EventAccumulator(str(tmp_path)).Reload()
    assert [event.step for event in events.Scalars("w_in")] == [10, 20]
    assert [event.value for event in events.Scalars("loss")] == pytest.approx([r["loss"] for r in clf.history_])


def test_a_checkpoint_of_another_run_is_refused(data: SemiSupervisedData, tmp_path: Path) -> None:
    kept = tmp_path / "run.safetensors"
    SemiSupervisedClassifier("vat", "none", checkpoint=kept, **QUICK).fit(data)
    others = [
        (SemiSupervisedClassifier("vat", "none", seed=1, checkpoint=kept, **QUICK), data, "seed"),
        (SemiSupervisedClassifier("vat", "meta", checkpoint=kept, **QUICK), data, "robust"),
        (SemiSupervisedClassifier("pi-model", "none", checkpoint=kept, **QUICK), data, "objective"),
        (SemiSupervisedClassifier("vat", "none", checkpoint=kept, **QUICK), two_moons(seed=2, unlabeled=200), "data"),
    ]
    for clf, given, changed in others:
        with pytest.raises(EvidentiaError, match=rf"other settings \(.*{changed}"):
            clf.fit(given)


def test_saved_and_loaded_predicts_the_same(data: SemiSupervisedData, tmp_path: Path) -> None:
    path = tmp_path / "clf.safetensors"
    clf = SemiSupervisedClassifier("vat", "meta", norm="weighted", **QUICK).fit(data)
    clf.save(path)
    loaded = SemiSupervisedClassifier.load(path)
    assert torch.equal(loaded.predict(data.x_test).probs, clf.predict(data.x_test).probs)
    for name in ("weights_", "clusters_", "uncertainty_"):
        assert torch.equal(getattr(loaded, name), getattr(clf, name))
    for name in ("objective", "robust", "augmentation"):
        assert repr(getattr(loaded, name)) == repr(getattr(clf, name))
    loaded.save(path)
    assert SemiSupervisedClassifier.load(path).trained_by_ == clf.trained_by_
    with pytest.raises(EvidentiaError, match="is a folder"):
        clf.save(tmp_path)
    with pytest.raises(EvidentiaError, match="is there to predict"):
        loaded.fit(data)
    with pytest.raises(EvidentiaError, match="has no pool"):
        loaded.review()


def test_methods_of_ones_own_are_loaded_in_words_only(data: SemiSupervisedData, tmp_path: Path) -> None:
    class Own(type(OBJECTIVES["vat"]())):  # type: ignore[misc]
        pass

    path = tmp_path / "clf.safetensors"
    clf = SemiSupervisedClassifier(Own(), "none", augmentation=(torch.clone, lambda x: x), **QUICK).fit(data)
    clf.save(path)
    loaded = SemiSupervisedClassifier.load(path)
    assert type(loaded.robust).__name__ == "NotRobust"
    assert "Own(weight=" in loaded.trained_by_["objective"]
    for name in ("objective", "augmentation"):
        with pytest.raises(AttributeError, match=rf"the {name} of this classifier is not evidentia's own.*trained_by_"):
            getattr(loaded, name)


def test_files_from_before_clusters_and_uncertainty_were_saved(data: SemiSupervisedData, tmp_path: Path) -> None:
    path = tmp_path / "clf.safetensors"
    clf = SemiSupervisedClassifier("vat", "meta", **QUICK).fit(data)
    clf.save(path)
    tensors, content = load_tensors(path, "semi-supervised classifier")
    kept = {name: tensor for name, tensor in tensors.items() if name not in ("clusters", "uncertainty")}
    save_tensors(path, "semi-supervised classifier", kept, content)
    loaded = SemiSupervisedClassifier.load(path)
    assert loaded.clusters_ is None
    assert loaded.uncertainty_ is None
    assert torch.equal(loaded.predict(data.x_test).probs, clf.predict(data.x_test).probs)


def test_a_network_of_ones_own_is_needed_again_to_load(data: SemiSupervisedData, tmp_path: Path) -> None:
    path = tmp_path / "clf.safetensors"
    network = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))
    clf = SemiSupervisedClassifier("vat", "none", network, norm="none", **QUICK).fit(data)
    clf.save(path)
    assert torch.equal(
        SemiSupervisedClassifier.load(path, network).predict(data.x_test).probs, clf.predict(data.x_test).probs
    )
    with pytest.raises(EvidentiaError, match="needs the module it was built with"):
        SemiSupervisedClassifier.load(path)
    with pytest.raises(FileFormatError, match="does not hold a whole"):
        SemiSupervisedClassifier.load(path, nn.Linear(2, 3))


def test_a_truncated_file_is_told(data: SemiSupervisedData, tmp_path: Path) -> None:
    path = tmp_path / "clf.safetensors"
    SemiSupervisedClassifier("vat", "none", **QUICK).fit(data).save(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(FileFormatError):
        SemiSupervisedClassifier.load(path)


def test_what_cannot_be_trained_is_told_before_training(data: SemiSupervisedData) -> None:
    x, y, pool = data.x_labeled, data.y_labeled, data.x_unlabeled
    nan = pool.clone()
    nan[3, 0] = float("nan")
    cases: list[tuple[Any, Any, dict[str, Any], str]] = [
        ((x, y), torch.zeros(50, 3), {}, "shape"),
        ((x, torch.zeros_like(y)), pool, {"num_classes": 2}, "class"),
        ((x, y), nan, {}, "NaN|finite"),
        ((x, y), pool[:0], {}, "the pool is empty"),
        ((x, y), None, {}, "no unlabeled pool"),
    ]
    for labeled, unlabeled, options, message in cases:
        with pytest.raises(EvidentiaError, match=message):
            SemiSupervisedClassifier("vat", "none", progress=False).fit(labeled, unlabeled, **options)


def test_a_batch_larger_than_the_pool_is_told_and_the_default_fits() -> None:
    small = two_moons(unlabeled=30)
    with pytest.raises(EvidentiaError, match="unlabeled_batch is 31, but the pool has 30"):
        SemiSupervisedClassifier("vat", "none", updates=2, unlabeled_batch=31, progress=False).fit(small)
    SemiSupervisedClassifier("vat", "none", updates=2, progress=False).fit(small)


def test_a_network_with_other_classes_is_told(data: SemiSupervisedData) -> None:
    with pytest.raises(EvidentiaError, match="2 classes"):
        SemiSupervisedClassifier("vat", "none", nn.Linear(2, 5), norm="none", **QUICK).fit(data)


def test_an_oracle_has_to_be_told(data: SemiSupervisedData) -> None:
    with pytest.raises(EvidentiaError, match="has to be told"):
        SemiSupervisedClassifier("vat", "oracle", **QUICK).fit((data.x_labeled, data.y_labeled), data.x_unlabeled)


def test_data_that_brings_everything_takes_nothing_else(data: SemiSupervisedData) -> None:
    with pytest.raises(EvidentiaError, match="brings its own"):
        SemiSupervisedClassifier(**QUICK).fit(data, data.x_unlabeled)


def test_nothing_is_predicted_before_training(data: SemiSupervisedData) -> None:
    for call in (lambda c: c.predict(data.x_test), lambda c: c.review(), lambda c: c.save("x")):
        with pytest.raises(EvidentiaError, match="not trained yet"):
            call(SemiSupervisedClassifier())


@pytest.mark.parametrize("name", ["network_", "weights_", "clusters_", "uncertainty_", "history_", "trained_by_"])
def test_what_is_learnt_is_not_there_before_fit(name: str) -> None:
    clf = SemiSupervisedClassifier()
    with pytest.raises(EvidentiaError, match=f"not trained yet and has no {name}; call fit first"):
        getattr(clf, name)
    assert not hasattr(clf, name)
    assert not hasattr(copy.deepcopy(clf), name)
    with pytest.raises(AttributeError, match="no attribute 'weight_'"):
        clf.weight_  # type: ignore[attr-defined]  # noqa: B018


def test_unknown_names_are_told() -> None:
    for arguments in (("vta", "none"), ("vat", "non")):
        with pytest.raises(EvidentiaError, match="there is no"):
            SemiSupervisedClassifier(*arguments)
    with pytest.raises(EvidentiaError, match="updates"):
        SemiSupervisedClassifier(updates=0)


def test_a_loss_that_diverges_is_told(data: SemiSupervisedData) -> None:
    with pytest.raises(EvidentiaError, match="lower the learning rate"):
        SemiSupervisedClassifier("pi-model", "none", norm="none", learning_rate=1e30, **QUICK).fit(data)


def test_a_pool_that_is_all_thrown_out_is_told(data: SemiSupervisedData) -> None:
    class Nothing(LabeledAgainstUnlabeled):
        def _estimate(self, pool: PoolView) -> Tensor:
            return torch.ones(len(pool.unlabeled))

    with pytest.raises(EvidentiaError, match="all weights of the pool are 0"):
        SemiSupervisedClassifier("vat", ByUncertainty(uncertainty=Nothing()), **QUICK).fit(data)
    # As factors of the loss they leave the labeled samples to learn from, and running statistics to normalise by.
    weighing = ByUncertainty(uncertainty=Nothing(), apply="loss")
    clf = SemiSupervisedClassifier("vat", weighing, norm="weighted", passes="separate", **QUICK).fit(data)
    assert clf.history_[-1]["unlabeled_loss"] == 0
