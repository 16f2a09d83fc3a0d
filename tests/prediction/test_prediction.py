"""The one result type: what it checks, how it is cut and joined, shown, tabulated and saved."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import evidentia as ev
from evidentia import EvidentiaError, Prediction
from evidentia._support.errors import FileFormatError


def prediction(task="multiclass", count=5, seed=0, **kwargs):
    generator = torch.Generator().manual_seed(seed)
    if task == "multiclass":
        opinion = ev.MultinomialOpinion.from_evidence(9 * torch.rand(count, 3, generator=generator))
    elif task == "hyper":
        task, sets = "multiclass", [(0,), (1,), (2,), (0, 2)]
        opinion = ev.HyperOpinion.from_evidence(9 * torch.rand(count, 4, generator=generator), sets, 3)
    else:
        shape = (count,) if task == "binary" else (count, 4)
        opinion = ev.BinomialOpinion.from_evidence(*(9 * torch.rand(2, *shape, generator=generator)))
    return Prediction(opinion.projected, opinion, task=task, **kwargs)


every_kind = pytest.mark.parametrize("kind", ["multiclass", "hyper", "binary", "multilabel"])


def assert_same(first, second):
    assert torch.equal(first.probs, second.probs)
    assert (first.task, first.class_names) == (second.task, second.class_names)
    assert first.uncertainties.keys() == second.uncertainties.keys()
    assert all(torch.equal(values, second[name]) for name, values in first.uncertainties.items())
    assert type(first.opinion) is type(second.opinion)
    assert first.opinion is None or first.opinion.allclose(second.opinion, rtol=0, atol=0)


@every_kind
def test_it_holds_what_the_opinion_says(kind):
    pred = prediction(kind)
    for name, values in ev.uncertainties(pred.opinion).items():
        assert torch.equal(pred[name], values)
    if kind in ("multiclass", "hyper"):
        assert torch.equal(pred.labels, pred.probs.argmax(-1))
        assert torch.equal(pred.confidence, pred.probs.amax(-1))
    else:
        assert torch.equal(pred.labels, (pred.probs > 0.5).long())
        assert torch.equal(pred.confidence, torch.where(pred.probs > 0.5, pred.probs, 1 - pred.probs))
    assert pred.num_classes == {"binary": 2, "multilabel": 4}.get(kind, 3)
    assert len(pred) == 5


def test_without_an_opinion_there_is_the_entropy():
    multi = Prediction(torch.tensor([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]))
    torch.testing.assert_close(multi["entropy"], torch.tensor([np.log(2) / np.log(3), 0.0]).float())
    for task, probs in (("binary", torch.tensor([0.5, 1.0])), ("multilabel", torch.tensor([[0.5], [1.0]]))):
        pred = Prediction(probs, task=task)
        assert pred["entropy"].flatten().tolist() == [1, 0]
        assert list(pred.uncertainties) == ["entropy"]


def test_further_uncertainties_take_the_place_of_those_of_the_opinion():
    opinion = ev.MultinomialOpinion.from_evidence([[1.0, 2.0]])
    given = {"epistemic": torch.tensor([0.25]), "mine": torch.tensor([7.0])}
    pred = Prediction(opinion.projected, opinion, given)
    assert pred["epistemic"] == 0.25
    assert pred["mine"] == 7
    assert pred["vacuity"] == opinion.vacuity


def test_arrays_and_lists_are_welcome():
    assert torch.equal(Prediction([[0.25, 0.75]]).probs, torch.tensor([[0.25, 0.75]]))
    assert Prediction(np.array([0.25, 0.75]), task="binary").labels.tolist() == [0, 1]


@every_kind
def test_indexing_by_samples(kind):
    pred = prediction(kind)
    for key in (0, -1, 4, np.int64(2), torch.tensor(3)):
        one = pred[key]
        assert len(one) == 1
        assert torch.equal(one.probs[0], pred.probs[int(key)])
        assert torch.equal(one["vacuity"][0], pred["vacuity"][int(key)])
        assert one.opinion.allclose(pred.opinion[int(key) : int(key) + 1 or None])
    mask = pred["vacuity"].reshape(5, -1)[:, 0] > 0.2
    for key, count in ((slice(1, 4), 3), (mask, int(mask.sum())), ([0, 2], 2), (torch.tensor([4, 4]), 2)):
        assert len(pred[key]) == count
        assert torch.equal(pred[key].probs, pred.probs[key])
    assert len(pred[mask & ~mask]) == 0
    for key in (5, -6, np.int64(5)):
        with pytest.raises(IndexError, match=r"there is no sample .*; there are 5"):
            pred[key]
    with pytest.raises(EvidentiaError, match="indexed by samples only"):
        pred[0, 1]
    with pytest.raises(KeyError, match="there is no uncertainty 'confusion' here; there are: vacuity"):
        pred["confusion"]


@every_kind
def test_iterating_and_joining_gives_it_back(kind):
    pred = prediction(kind)
    assert_same(Prediction.cat(list(pred)), pred)
    assert_same(Prediction.cat([pred[:2], pred[2:2], pred[2:]]), pred)


def test_cutting_and_joining_keeps_given_uncertainties():
    pred = Prediction([[0.5, 0.5], [1, 0]], uncertainties={"mine": torch.tensor([1.0, 2.0])})
    assert Prediction.cat([pred[1], pred[0]])["mine"].tolist() == [2, 1]


def test_what_does_not_belong_together_is_not_joined():
    pred = prediction()
    for other, message in [
        (prediction("multilabel"), "same task to be joined, got multiclass and multilabel"),
        (prediction(class_names=["a", "b", "c"]), "same class names to be joined"),
        (Prediction(pred.probs), "same kind of opinion to be joined, got MultinomialOpinion and NoneType"),
        (Prediction(pred.probs, pred.opinion, {"mine": torch.zeros(5)}), "same uncertainties to be joined"),
    ]:
        with pytest.raises(EvidentiaError, match=message):
            Prediction.cat([pred, other])
    with pytest.raises(EvidentiaError, match="at least one prediction is needed, got none"):
        Prediction.cat([])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"probs": torch.rand(5, 3, 2)}, r"got shape \(5, 3, 2\); of several predictions .*members\.mean\(0\)"),
        ({"probs": ev.MultinomialOpinion([0.5, 0.3], 0.2)}, r"Prediction\(opinion\.projected, opinion\)"),
        ({"probs": torch.rand(3)}, r"needs probabilities of 2 dimensions, got shape \(3,\)"),
        ({"probs": torch.rand(3, 2), "task": "binary"}, r"needs probabilities of 1 dimensions, got shape \(3, 2\)"),
        ({"probs": torch.full((3, 2), 0.4)}, "probabilities of a sample must add up to 1, got a sum of 0.8"),
        ({"probs": torch.tensor([1.5]), "task": "binary"}, r"probabilities must lie in \[0, 1\]"),
        ({"probs": torch.tensor([[-0.5, 1.5]])}, r"probabilities must lie in \[0, 1\]"),
        ({"probs": torch.tensor([[float("nan"), 1.0]])}, "probabilities must be finite, got NaN"),
        ({"task": "regression"}, "task must be one of multiclass, binary, multilabel, got 'regression'"),
        ({"opinion": ev.MultinomialOpinion.vacuous(4, 2)}, r"opinion needs shape \(3,\) .*, got \(4,\)"),
        ({"uncertainties": {"mine": torch.zeros(2)}}, r"mine needs shape \(3,\) to match .*, got \(2,\)"),
        ({"opinion": torch.rand(3, 2)}, "opinion must be an opinion of evidentia, got Tensor"),
        ({"uncertainties": torch.rand(3)}, "uncertainties must be a mapping of names to values, got Tensor"),
        ({"class_names": ["a"]}, "class_names needs 2 names, got 1"),
        ({"class_names": "ab"}, r"a list of names in the order of the classes, got 'ab' \(str\); give such as"),
        ({"class_names": {"a", "b"}}, "a list of names in the order of the classes, got {"),
        ({"class_names": 2}, r"a list of names in the order of the classes, got 2 \(int\)"),
        ({"class_names": ["a", "a"]}, "class_names must differ from each other, got a, a"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(given, message):
    with pytest.raises(EvidentiaError, match=message):
        Prediction(**{"probs": torch.full((3, 2), 0.5), **given})


def test_checks_of_values_can_be_switched_off():
    with ev.validation(False):
        assert Prediction(torch.full((3, 2), 0.4)).labels.tolist() == [0, 0, 0]


def test_a_table_of_a_multi_class_task():
    frame = prediction(class_names=["cat", "dog", "emu"]).to_frame()
    assert list(frame)[:5] == ["label", "confidence", "p(cat)", "p(dog)", "p(emu)"]
    pred = prediction()
    assert len(frame) == 5
    assert frame["label"].tolist() == [["cat", "dog", "emu"][k] for k in pred.labels]
    np.testing.assert_array_equal(frame["p(dog)"], pred.probs[:, 1])
    np.testing.assert_array_equal(frame["confidence"], pred.confidence)
    assert set(frame) >= set(pred.uncertainties)
    np.testing.assert_array_equal(frame["dissonance"], pred["dissonance"])


def test_a_table_of_a_binary_task():
    pred = prediction("binary", class_names=["no", "yes"])
    frame = pred.to_frame()
    assert frame["label"].tolist() == [["no", "yes"][k] for k in pred.labels]
    np.testing.assert_array_equal(frame["p(yes)"], pred.probs)
    np.testing.assert_array_equal(frame["p(no)"], 1 - pred.probs)


def test_a_table_of_a_multi_label_task_has_a_row_a_sample_and_class():
    pred = prediction("multilabel", class_names=list("abcd"))
    frame = pred.to_frame()
    assert len(frame) == 20
    row = frame[(frame["sample"] == 3) & (frame["class"] == "c")].iloc[0]
    assert row["probability"] == float(pred.probs[3, 2])
    assert row["label"] == int(pred.labels[3, 2])
    assert row["vacuity"] == float(pred["vacuity"][3, 2])


@every_kind
@pytest.mark.parametrize("count", [5, 0])
def test_saving_keeps_every_bit(kind, count, tmp_path):
    pred = prediction(kind, count)
    pred.save(tmp_path / "prediction")
    assert_same(Prediction.load(tmp_path / "prediction"), pred)


def test_saving_without_an_opinion_and_with_other_uncertainties(tmp_path, dtype):
    pred = Prediction(
        torch.tensor([[0.25, 0.75]], dtype=dtype), None, {"a/b": torch.tensor([3.0])}, class_names=["x", "y"]
    )
    pred.save(tmp_path / "prediction")
    loaded = Prediction.load(tmp_path / "prediction")
    assert_same(loaded, pred)
    assert loaded.probs.dtype == dtype


def test_damaged_and_foreign_files_are_refused_in_a_sentence(tmp_path):
    path = tmp_path / "prediction"
    prediction().save(path)
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(FileFormatError, match="does not match its checksum"):
        Prediction.load(path)
    path.write_bytes(content[:100])
    with pytest.raises(FileFormatError, match="may be truncated"):
        Prediction.load(path)
    path.write_bytes(content.replace(b"multiclass", b"multiglass"))
    with pytest.raises(FileFormatError):
        Prediction.load(path)


def test_a_file_that_holds_too_little_is_refused_in_a_sentence(tmp_path):
    from evidentia._support.files import load_tensors, save_tensors

    path = tmp_path / "prediction"
    prediction().save(path)
    tensors, content = load_tensors(path, "prediction")
    for broken, described in [
        ({name: values for name, values in tensors.items() if name != "probs"}, content),
        (tensors | {"probs": tensors["probs"][:2]}, content),
        (tensors, content | {"task": "regression"}),
        (tensors, content | {"class_names": ["a"]}),
        (tensors, content | {"opinion": {"kind": "Rumour", "settings": {}}}),
        (tensors, content | {"opinion": {"kind": "HyperOpinion"}}),
    ]:
        save_tensors(path, "prediction", broken, described)
        with pytest.raises(FileFormatError, match="does not hold a whole prediction"):
            Prediction.load(path)


def test_how_it_is_shown():
    opinion = ev.MultinomialOpinion.from_evidence([[1.0, 0.0], [0.0, 0.0]])
    shown = repr(Prediction(opinion.projected, opinion))
    assert shown.startswith("Prediction(2 samples, 2 classes; mean vacuity 0.833, dissonance 0.000, entropy 0.9")
    assert repr(Prediction([0.5], task="binary")) == "Prediction(1 samples, 2 classes (binary); mean entropy 1.000)"
    assert repr(prediction(count=0)) == "Prediction(0 samples, 3 classes)"


def test_saving_keeps_the_order_of_the_uncertainties(tmp_path):
    pred = prediction(uncertainties={"zeal": torch.zeros(5), "awe": torch.ones(5)})
    pred.save(tmp_path / "p.safetensors")
    assert list(Prediction.load(tmp_path / "p.safetensors").uncertainties) == list(pred.uncertainties)


def test_uncertainties_may_be_arrays_and_lists():
    pred = Prediction([[0.5, 0.5], [1.0, 0.0]], uncertainties={"a": [0.1, 0.2], "b": np.array([1, 2])})
    assert pred[1:]["a"].tolist() == pytest.approx([0.2])
    assert pred["b"].tolist() == [1, 2]


def test_bfloat16_can_be_tabulated():
    opinion = ev.MultinomialOpinion.from_evidence(torch.rand(4, 3).bfloat16())
    assert Prediction(opinion.projected, opinion).to_frame()["vacuity"].dtype == np.float32
