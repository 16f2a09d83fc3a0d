"""Argument checks."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
import pytest
import torch

from evidentia import EvidentiaError, validation
from evidentia._support.checks import (
    as_float_tensor,
    check_adds_to_one,
    check_class_dim,
    check_finite,
    check_nonnegative,
    check_same_length,
    check_tensor,
    check_unit_interval,
    mass_tolerance,
    validation_enabled,
)
from evidentia.evaluation._inputs import as_values


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1, torch.float32),
        (True, torch.float32),
        (1.5, torch.float32),
        ([1, 2], torch.float32),
        ([1.0, 2.0], torch.float32),
        ((1.0, 2.0), torch.float32),
        (np.float64(1.5), torch.float64),
        (np.ones(2), torch.float64),
        (np.ones(2, dtype=np.float32), torch.float32),
        (np.ones(2, dtype=np.int32), torch.float32),
        (torch.ones(2, dtype=torch.float64), torch.float64),
        (torch.ones(2, dtype=torch.bfloat16), torch.bfloat16),
        (torch.ones(2, dtype=torch.int64), torch.float32),
        (torch.ones(2, dtype=torch.bool), torch.float32),
    ],
)
def test_dtypes(value, dtype):
    tensor = as_float_tensor(value, "x")
    assert tensor.dtype == dtype
    np.testing.assert_array_equal(tensor.double().numpy(), np.asarray(torch.as_tensor(value).double()))
    like = torch.ones((), dtype=torch.float64)
    assert as_float_tensor(value, "x", like=like).dtype == torch.float64


def test_default_dtype():
    torch.set_default_dtype(torch.float64)
    try:
        assert as_float_tensor([0.1], "x").dtype == torch.float64
        assert as_float_tensor(1, "x").dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_numbers_keep_their_digits_beside_float64():
    like = torch.ones((), dtype=torch.float64)
    assert as_float_tensor(0.1, "x", like=like).item() == 0.1
    assert as_float_tensor([0.1, 0.7], "x", like=like).tolist() == [0.1, 0.7]


def test_tensors_are_not_copied():
    x = torch.ones(2)
    assert as_float_tensor(x, "x") is x


def test_read_only_and_reversed_arrays():
    frozen = np.broadcast_to(np.array([1.0, 2.0]), (3, 2))
    assert as_float_tensor(frozen, "x").tolist() == [[1.0, 2.0]] * 3
    assert as_float_tensor(np.array([1.0, 2.0, 3.0])[::-1], "x").tolist() == [3.0, 2.0, 1.0]


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", "i2", "i8"])
def test_arrays_of_any_order_of_bytes(kind):
    found = [as_float_tensor(np.array([[1, 2], [3, 4]], dtype=order + kind), "x") for order in "<>="]
    assert all(torch.equal(tensor, found[0]) and tensor.dtype == found[0].dtype for tensor in found)
    assert found[0].tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize("value", ["text", None, object(), [[1.0], [1.0, 2.0]], {"a": 1}])
def test_not_numbers(value):
    with pytest.raises(EvidentiaError, match=rf"^weight must be a tensor.*got {type(value).__name__}\b"):
        as_float_tensor(value, "weight")


def test_not_real():
    with pytest.raises(EvidentiaError, match=r"x must be real.*complex64"):
        as_float_tensor(torch.ones(2, dtype=torch.complex64), "x")


def test_list_of_tensors_with_gradients():
    with pytest.raises(EvidentiaError, match="x must be a tensor"):
        as_float_tensor([torch.ones((), requires_grad=True)], "x")


def test_class_dim():
    check_class_dim(torch.ones(0, 2), "x")
    for shape in ((), (1,), (5, 1), (5, 0)):
        with pytest.raises(EvidentiaError, match=r"x needs a last dimension.*at least 2 classes"):
            check_class_dim(torch.ones(shape), "x")


def test_finite():
    check_finite(torch.ones(3), "x")
    check_finite(torch.ones(0), "x")
    with pytest.raises(EvidentiaError, match=r"x must be finite, got NaN \(2 of 3 entries"):
        check_finite(torch.tensor([1.0, float("nan"), float("inf")]), "x")
    with pytest.raises(EvidentiaError, match="got infinite values"):
        check_finite(torch.tensor([-float("inf")]), "x")


@pytest.mark.parametrize("shape", [(2_500_000,), (5, 500_000), (1_500_000, 2), (2, 1, 1_500_000)])
def test_a_large_tensor_is_looked_at_part_by_part(shape, monkeypatch):
    whole, seen = torch.zeros(shape), []
    is_finite = torch.isfinite

    def watched(part):
        seen.append(part.numel())
        return is_finite(part)

    with monkeypatch.context() as patch:
        patch.setattr(torch, "isfinite", watched)
        check_finite(whole, "x")
    assert sum(seen) == whole.numel()
    assert max(seen) <= max(2**20, whole[0].numel())
    whole.view(-1)[-1] = float("nan")
    with pytest.raises(EvidentiaError, match=rf"got NaN \(1 of {whole.numel()} entries"):
        check_finite(whole, "x")


def test_nonnegative():
    check_nonnegative(torch.tensor([0.0, 1e30]), "x")
    check_nonnegative(torch.ones(0), "x")
    with pytest.raises(EvidentiaError, match=r"x must be at least 0.*smallest value of -1e-30"):
        check_nonnegative(torch.tensor([0.0, -1e-30]), "x")


def test_unit_interval():
    check_unit_interval(torch.tensor([0.0, 1.0]), "x")
    check_unit_interval(torch.ones(0), "x")
    for bad in (-0.1, 1.1, float("nan")):
        with pytest.raises(EvidentiaError, match=r"^x must"):
            check_unit_interval(torch.tensor([0.5, bad]), "x")


def test_adds_to_one(dtype):
    inside, outside = 0.5 * mass_tolerance(dtype, 10), 4 * mass_tolerance(dtype, 10)
    check_adds_to_one(torch.tensor([1 - inside, 1 + inside], dtype=dtype), 10, "masses")
    check_adds_to_one(torch.ones(0, dtype=dtype), 10, "masses")
    for bad in (1 - outside, 1 + outside):
        with pytest.raises(EvidentiaError, match="masses must add up to 1"):
            check_adds_to_one(torch.tensor([1.0, bad], dtype=dtype), 10, "masses")
    with pytest.raises(EvidentiaError, match=r"a sum of 3;"):
        check_adds_to_one(torch.tensor([[1.0, 0.9], [3.0, 1.0]]), 2, "masses")


def test_tolerance_grows_with_the_terms():
    assert mass_tolerance(torch.float32, 1000) > mass_tolerance(torch.float32, 10) > mass_tolerance(torch.float64, 1000)


def test_same_length():
    check_same_length([1, 2], torch.ones(2), "scores and labels")
    with pytest.raises(EvidentiaError, match="scores and labels must have the same length, got 2 and 3"):
        check_same_length([1, 2], [1, 2, 3], "scores and labels")


def test_validation_switch():
    assert validation_enabled()
    assert not validation_enabled(False)
    with validation(False):
        assert not validation_enabled()
        assert validation_enabled(True)
        with validation(True):
            assert validation_enabled()
        assert not validation_enabled()
    assert validation_enabled()


def test_validation_switch_after_an_exception():
    with pytest.raises(ZeroDivisionError), validation(False):
        raise ZeroDivisionError
    assert validation_enabled()


def test_validation_switch_is_the_threads_own():
    seen = []
    with validation(False):
        thread = threading.Thread(target=lambda: seen.append(validation_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_validation_switch_is_the_tasks_own():
    async def switched_off(inside: asyncio.Event, done: asyncio.Event) -> bool:
        with validation(False):
            inside.set()
            await done.wait()
            return validation_enabled()

    async def main() -> tuple[bool, bool]:
        inside, done = asyncio.Event(), asyncio.Event()
        task = asyncio.create_task(switched_off(inside, done))
        await inside.wait()
        here = validation_enabled()
        done.set()
        return here, await task

    assert asyncio.run(main()) == (True, False)


IN_A_FORM_OF_ITS_OWN = [
    (torch.eye(3).to_sparse(), "one that is sparse; give x.to_dense"),
    (torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged), "one that is nested; pad it"),
]


@pytest.mark.parametrize(("tensor", "message"), IN_A_FORM_OF_ITS_OWN)
def test_a_tensor_in_a_form_of_its_own(tensor, message):
    for take in (as_float_tensor, check_tensor, as_values):
        with pytest.raises(EvidentiaError, match=f"evidence must be a dense tensor, got {message}"):
            take(tensor, "evidence")


def test_values_that_are_not_there_are_not_looked_at():
    with pytest.raises(EvidentiaError, match="evidence has no values, on the device meta"):
        check_finite(torch.ones(3, 3, device="meta"), "evidence")


@pytest.mark.parametrize("take", [as_float_tensor, as_values])
def test_what_is_masked_is_no_number(take):
    values = np.ma.masked_greater([1.0, 9e36, 2.0], 1e36)
    with pytest.raises(EvidentiaError, match="evidence has 1 of 3 entries masked; fill them"):
        take(values, "evidence")
    assert take(np.ma.masked_greater([1.0, 2.0], 1e36), "evidence").tolist() == [1.0, 2.0]


@pytest.mark.parametrize("value", [None, [1.0], np.ones(2), "x"])
def test_where_only_a_tensor_will_do(value):
    with pytest.raises(EvidentiaError, match=r"alpha must be a tensor, got .*; give torch.as_tensor\(x\)"):
        check_tensor(value, "alpha")
