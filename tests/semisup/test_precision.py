"""Features that float32 cannot hold are told of; usual data are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import evidentia as ev
from evidentia import EvidentiaError
from evidentia.semisup import SemiSupervisedClassifier, from_arrays, load_pool
from evidentia.semisup.inputs.precision import Precision

DRAW = np.random.default_rng(0)
Y = np.arange(200) % 2
TIMES = np.stack([DRAW.normal(size=200), 1.7e9 + 40 * Y + DRAW.normal(size=200)], 1)
TOLD = r"values of about 1\.7e\+09 that vary by 20 .* changes them by .*; subtract an offset from it first"
LABELED = slice(0, 8)
RIM = np.arange(14) == 0


@pytest.mark.parametrize("kind", ["float64", "int64", "int32", ">f8", "tensor", "list", "memmap"])
def test_a_feature_with_a_large_offset_is_told_by_its_column(kind: str, tmp_path: Any) -> None:
    x: Any = TIMES
    if kind == "memmap":
        x = np.memmap(tmp_path / "x.bin", dtype="float64", mode="w+", shape=TIMES.shape)
        x[:] = TIMES
    elif kind != "list":
        x = TIMES.astype("float64" if kind == "tensor" else kind)
    x = torch.as_tensor(x) if kind == "tensor" else x.tolist() if kind == "list" else x
    for standardise in (True, False):
        clf = SemiSupervisedClassifier("pi-model", "none", standardise=standardise, updates=2, progress=False)
        with pytest.raises(EvidentiaError, match=f"column 1 has {TOLD}"):
            clf.fit((x[LABELED], Y[LABELED]), x)


def test_a_column_of_a_table_is_told_by_its_name() -> None:
    frame = pytest.importorskip("pandas").DataFrame(TIMES, columns=["flow", "time"])
    with pytest.raises(EvidentiaError, match=f"column 'time' has {TOLD}"):
        from_arrays((frame[LABELED], Y[LABELED]), frame[["time", "flow"]])


def test_what_is_told_to_do_helps() -> None:
    x = TIMES - TIMES.mean(0)
    clf = SemiSupervisedClassifier("pi-model", "none", standardise=True, updates=100, progress=False)
    clf.fit((x[LABELED], Y[LABELED]), x)
    assert float((clf.predict(x).labels.numpy() == Y).mean()) == 1
    from_arrays((TIMES[LABELED].astype("float32"), Y[LABELED]), TIMES.astype("float32"))
    with ev.validation(False):
        from_arrays((TIMES[LABELED], Y[LABELED]), TIMES)


def test_data_in_float64_for_a_network_in_float32_are_told_too() -> None:
    data = load_pool("two-moons", unlabeled=200).to("cpu", torch.float64)
    x = {f"x_{part}": getattr(data, f"x_{part}") + 1.7e9 for part in ("labeled", "unlabeled", "validation", "test")}
    far = type(data)(**{**vars(data), **x})
    clf = SemiSupervisedClassifier("pi-model", "none", standardise=True, updates=2, progress=False)
    with pytest.raises(EvidentiaError, match=r"column 0 has values of about 1\.7e\+09"):
        clf.fit(far)
    network = torch.nn.Linear(2, 2, dtype=torch.float64)
    SemiSupervisedClassifier("pi-model", "none", network, norm="none", standardise=True, updates=2, progress=False).fit(
        far
    )
    clf.fit(data)


def test_several_columns_and_channels_are_counted() -> None:
    thrice = TIMES[:, [1, 1, 1]]
    with pytest.raises(EvidentiaError, match=r"column 0 has .* and so with 2 more;"):
        from_arrays((thrice[LABELED], Y[LABELED]), thrice)
    images = DRAW.normal(size=(20, 3, 12, 12)) + np.array([0, 1e9, 0])[:, None, None]
    with pytest.raises(EvidentiaError, match="channel 1 has"):
        from_arrays((images[:4], [0, 1, 0, 1]), images)


@pytest.mark.parametrize(
    "x",
    [
        DRAW.normal(size=(200, 5)),
        DRAW.normal(size=(200, 5)) * [1, 1e-30, 1e30, 1e5, 0] + [1e3, 0, 0, 1e6, 0.1],
        # A constant that was computed in several ways.
        np.where(Y[:, None] == 0, 0.3, 0.1 + 0.2) * [1, 1e6, -7],
        # The computed mean of a constant that is no binary fraction differs from it.
        np.full((200, 3), 0.1),
        # Numbers of articles, years, one-hot vectors, counts that are mostly 0.
        DRAW.integers(0, 10**9, (200, 4)),
        DRAW.integers(1990, 2026, (200, 2)).astype("int32"),
        np.eye(4)[DRAW.integers(0, 4, 200)],
        (DRAW.random((200, 4)) < 0.01) * DRAW.integers(0, 10**6, (200, 4)),
        # Images, of which a white rim varies by less than float32 tells apart.
        DRAW.integers(0, 256, (200, 3, 12, 12)) / 255,
        np.where(RIM, 1 + 1e-9 * DRAW.random((200, 1, 14, 14)), DRAW.random((200, 1, 14, 14))),
        np.where(RIM, 1 + 1e-9 * DRAW.random((200, 14, 14)), DRAW.random((200, 14, 14))),
        DRAW.integers(0, 256, (200, 12, 12)),
        DRAW.normal(size=(200, 6, 4)),
        np.array([[1.0, 1.0], [1.0, np.nan]] * 100),
        np.array([[1e300], [-1e300], [0.0]]),
    ],
    ids=["normal", "scales", "computed", "constant", "numbers", "years", "one-hot", "sparse", "images", "rim",
         "grey rim", "grey", "series", "nan", "infinite"],
)  # fmt: skip
def test_usual_data_are_left_alone(x: Any) -> None:
    seen = Precision()
    seen.see(torch.as_tensor(x))
    seen.check()


def test_few_labeled_samples_that_are_alike_are_judged_with_the_pool() -> None:
    pool = DRAW.normal(size=(200, 1)) + 100
    alike = np.array([[100.00001], [100.00002]])
    assert from_arrays((alike, [0, 1]), pool).num_classes == 2
    assert from_arrays((alike, [0, 1]), pool.astype("float32")).num_classes == 2


def test_parts_count_as_one_whole() -> None:
    x = torch.as_tensor(DRAW.normal(size=(700_000, 1)) + 1e9)
    whole, parts = Precision(), Precision()
    whole.see(x)
    for part in x.split(50_000):
        parts.see(part)
    messages = []
    for seen in (whole, parts):
        with pytest.raises(EvidentiaError, match=r"vary by 1 .*changes them by 1;") as caught:
            seen.check()
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
