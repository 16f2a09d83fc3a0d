"""Samples in the form a network is trained on: what fit takes, predict takes, and takes for the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from torch import Tensor, nn
from torch.utils.data import Dataset, TensorDataset

from evidentia import EvidentiaError
from evidentia.semisup import SemiSupervisedClassifier, load_pool
from evidentia.semisup.inputs.form import InputForm, check_layout
from evidentia.semisup.networks.models import LeNet

QUICK: dict[str, Any] = {"updates": 2, "unlabeled_batch": 10, "progress": False}
Y = torch.arange(8) % 2


class Samples(Dataset[Any]):
    def __init__(self, x: Any) -> None:
        self.x = x
        self.read: list[int] = []

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, row: int) -> Any:
        self.read.append(row)
        return self.x[row]


def pixels(shape: tuple[int, ...] = (1, 12, 12), size: int = 20) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.random.default_rng(0).integers(0, 256, (size, *shape), dtype=np.uint8)


@pytest.fixture(scope="module")
def vectors() -> tuple[SemiSupervisedClassifier, Tensor]:
    # Whole numbers, which float16 and integers hold as they are.
    x = torch.randint(-5, 5, (20, 3), generator=torch.Generator().manual_seed(0)).float()
    return SemiSupervisedClassifier("pi-model", "none", **QUICK).fit((x[:8], Y), x), x


@pytest.mark.parametrize("dtype", ["float64", "float16", "int64", "int16"])
@pytest.mark.parametrize("form", ["array", "tensor", "list", "dataset", "dataset of arrays", "pairs"])
def test_numbers_of_every_kind_are_predicted_alike(
    vectors: tuple[SemiSupervisedClassifier, Tensor], dtype: str, form: str
) -> None:
    clf, x = vectors
    array = x.numpy().astype(dtype)
    given = {
        "array": array,
        "tensor": torch.as_tensor(array),
        "list": array.tolist(),
        "dataset": TensorDataset(torch.as_tensor(array)),
        "dataset of arrays": Samples(array),
        "pairs": Samples([(row, 0) for row in array]),
    }[form]
    assert torch.equal(clf.predict(given).probs, clf.predict(x).probs)


def test_bytes_are_divided_by_255_as_in_training() -> None:
    x = pixels()
    clf = SemiSupervisedClassifier("pi-model", "none", **QUICK).fit((x[:8], Y), x)
    expected = clf.predict(torch.as_tensor(x).float() / 255).probs
    for given in (x, torch.as_tensor(x), Samples(x), TensorDataset(torch.as_tensor(x), torch.zeros(20))):
        assert torch.equal(clf.predict(given).probs, expected)


def test_a_network_in_float64_is_given_float64() -> None:
    form, network = InputForm((3,)), nn.Linear(3, 2).double()
    for x in (torch.ones(2, 3), np.ones((2, 3), dtype=np.uint8)):
        assert [part.dtype for part in form.batches(x, 2, network)] == [torch.float64]


def test_inputs_are_read_part_by_part() -> None:
    given = Samples(torch.zeros(10, 3))
    parts = InputForm((3,)).batches(given, 4, nn.Linear(3, 2))
    assert (len(next(parts)), given.read) == (4, [0, 1, 2, 3])
    assert [len(part) for part in parts] == [4, 2]


def test_parts_are_copies() -> None:
    x = torch.ones(3, 2)
    for part in InputForm((2,)).batches(x, 2, nn.Linear(2, 2)):
        part.zero_()
    assert bool((x == 1).all())


def test_what_cannot_be_predicted_is_told(vectors: tuple[SemiSupervisedClassifier, Tensor]) -> None:
    clf, x = vectors
    nan = x.clone()
    nan[3, 1] = float("nan")
    cases: list[tuple[Any, str]] = [
        (torch.zeros(5, 4), r"samples of shape \(3,\), got inputs of shape \(5, 4\); give inputs of shape \(n, 3\)"),
        (x[0], r"got inputs of shape \(3,\)"),
        (x[:0], "no samples to predict"),
        (nan, "inputs"),
        (Samples(nan), "inputs"),
        (Samples(x[:0]), "has no samples"),
        (Samples([{"image": x[0]}]), "must be a tensor or an array, got dict"),
        ("abc", "must be a tensor or an array, got str"),
        (torch.utils.data.DataLoader(TensorDataset(x)), "DataLoader"),
        (csr_matrix(x.numpy()), r"must be dense, got a sparse csr_matrix; give x\.toarray\(\)"),
        (x.to_sparse(), r"must be dense, got a sparse Tensor; give x\.to_dense\(\)"),
        ((row for row in x), r"all there at once, got a generator; give np\.stack\(list\(x\)\)"),
        (map(abs, x), r"got a map; give np\.stack\(list\(x\)\)"),
    ]
    for given, message in cases:
        with pytest.raises(EvidentiaError, match=message):
            clf.predict(given)
    for size in (0, -1, 2.5, "10", None):
        with pytest.raises(EvidentiaError, match=f"batch_size must be a whole number of at least 1, got {size!r}"):
            clf.predict(x, batch_size=size)  # type: ignore[arg-type]
    assert torch.equal(clf.predict(x, batch_size=np.int64(7)).probs, clf.predict(x, batch_size=7).probs)


@pytest.mark.parametrize("standardise", ["yes", 1, None])
def test_a_choice_that_is_none_is_told(standardise: Any) -> None:
    with pytest.raises(EvidentiaError, match=f"standardise must be True or False, got {standardise!r}"):
        SemiSupervisedClassifier(standardise=standardise)
    assert SemiSupervisedClassifier(standardise=np.bool_(True)).standardise is True  # type: ignore[arg-type]


def test_samples_without_features_are_told(vectors: tuple[SemiSupervisedClassifier, Tensor]) -> None:
    _, x = vectors
    with pytest.raises(EvidentiaError, match=r"samples of x_labeled have no features: they are of shape \(0,\)"):
        SemiSupervisedClassifier("pi-model", "none", **QUICK).fit((x[:8, :0], Y), x[:, :0])


def test_a_single_number_is_no_inputs() -> None:
    with pytest.raises(EvidentiaError, match="the labeled inputs must be one a class, got the single number 5"):
        SemiSupervisedClassifier().fit((5, [0, 1]), torch.rand(5, 2))


@pytest.mark.parametrize("shape", [(16, 16, 3), (16, 20, 1), (28, 28, 4)])
def test_channels_last_are_refused(shape: tuple[int, ...]) -> None:
    x = pixels(shape)
    with pytest.raises(EvidentiaError, match=r"channels last.*x\.transpose\(0, 3, 1, 2\)"):
        SemiSupervisedClassifier("fixmatch", "none", **QUICK).fit((x[:8], Y), x)


def test_a_network_and_an_augmentation_of_ones_own_take_channels_last() -> None:
    x = pixels((12, 12, 3))
    network = nn.Sequential(nn.Flatten(), nn.Linear(432, 2))
    clf = SemiSupervisedClassifier("pi-model", "none", network, "none", norm="none", **QUICK).fit((x[:8], Y), x)
    assert clf.predict(x).probs.shape == (20, 2)


def test_channels_first_feature_maps_and_other_shapes_are_no_images_with_channels_last() -> None:
    for shape in ((3, 32, 32), (1, 28, 28), (1, 8, 8), (64, 4, 4), (3, 3, 3), (4,), (20, 3)):
        check_layout(shape)
    check_layout(load_pool("digits", unlabeled=60).sample_shape)


def test_grey_images_without_a_channel_are_images(tmp_path: Path) -> None:
    x = pixels((12, 14))
    flat, full = (
        SemiSupervisedClassifier("fixmatch", "none", **QUICK).fit((given[:8], Y), given) for given in (x, x[:, None])
    )
    assert isinstance(flat.network_, LeNet)
    assert torch.equal(flat.predict(x).probs, full.predict(x[:, None]).probs)
    flat.save(tmp_path / "clf.safetensors")
    loaded = SemiSupervisedClassifier.load(tmp_path / "clf.safetensors")
    assert torch.equal(loaded.predict(x).probs, flat.predict(x).probs)
    with pytest.raises(EvidentiaError, match=r"samples of shape \(12, 14\)"):
        loaded.predict(x[:, None])


def test_a_network_of_ones_own_is_shown_what_was_given() -> None:
    x, shapes = torch.rand(20, 12, 12), set()

    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.last = nn.Linear(144, 2)

        def forward(self, x: Tensor) -> Tensor:
            shapes.add(tuple(x.shape[1:]))
            return self.last(x.flatten(1))

    SemiSupervisedClassifier("pi-model", "none", Own(), norm="none", **QUICK).fit((x[:8], Y), x).predict(x)
    assert shapes == {(12, 12)}


def test_small_tables_of_numbers_are_no_images() -> None:
    assert not InputForm.of((11, 28), None).adds_channel
    assert InputForm.of((12, 28), "lenet").adds_channel


def test_what_is_predicted_has_the_scale_of_training(tmp_path: Path) -> None:
    images = pixels()
    units = torch.as_tensor(images).float() / 255
    numbers = units * 5 - 1
    trained = {
        name: SemiSupervisedClassifier("pi-model", "none", **QUICK).fit((x[:8], Y), x)
        for name, x in (("bytes", images), ("numbers", numbers), ("units", units))
    }
    assert torch.equal(trained["bytes"].predict(units).probs, trained["bytes"].predict(images).probs)
    assert torch.equal(trained["units"].predict(images).probs, trained["units"].predict(units).probs)
    trained["bytes"].save(tmp_path / "clf.safetensors")
    for clf in (trained["bytes"], SemiSupervisedClassifier.load(tmp_path / "clf.safetensors")):
        with pytest.raises(EvidentiaError, match=r"float32 of up to 255, .* trained on uint8.*divide by 255"):
            clf.predict(255 * units)
    with pytest.raises(EvidentiaError, match=r"the inputs are uint8.*trained on numbers beyond 0 to 1"):
        trained["numbers"].score(images, [0] * len(images))
