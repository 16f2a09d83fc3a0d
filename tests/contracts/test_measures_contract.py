"""What every registered measure must keep to; a new one is held to it by being registered."""

from __future__ import annotations

import inspect

import pytest
import torch

from evidentia import BinomialOpinion, EvidentiaError, HyperOpinion, MultinomialOpinion
from evidentia.opinions import MEASURES

KINDS = {
    "binomial": lambda e: BinomialOpinion.from_evidence(e[..., 0], e[..., 1], 0.3),
    "multinomial": MultinomialOpinion.from_evidence,
    "hyper": lambda e: HyperOpinion.from_evidence(e, [{0}, {1}, {2, 3}], 5),
}


def evidence(*shape, dtype=torch.float32):
    return torch.rand(*shape, 3, generator=torch.Generator().manual_seed(3), dtype=dtype) * 10


def applies(name: str, kind: str) -> bool:
    try:
        MEASURES[name](KINDS[kind](evidence()))
    except EvidentiaError:
        return False
    return True


CASES = [(name, kind) for name in MEASURES for kind in KINDS if applies(name, kind)]
every_case = pytest.mark.parametrize(("name", "kind"), CASES)
every_measure = pytest.mark.parametrize("name", MEASURES)


@every_measure
def test_applies_to_binomial_and_multinomial_opinions(name):
    assert {kind for measure, kind in CASES if measure == name} >= {"binomial", "multinomial"}


@every_measure
def test_is_documented_and_takes_one_positional_argument(name):
    signature = inspect.signature(MEASURES[name])
    first, *options = signature.parameters.values()
    assert first.default is inspect.Parameter.empty
    assert all(option.kind is inspect.Parameter.KEYWORD_ONLY for option in options)
    assert all(option.default is not inspect.Parameter.empty for option in options)
    assert "Example:" in inspect.getdoc(MEASURES[name])
    assert ">>>" in inspect.getdoc(MEASURES[name])


@every_case
@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (0,), (2, 0)])
def test_shape_dtype_and_device_are_kept(name, kind, shape, dtype):
    w = KINDS[kind](evidence(*shape, dtype=dtype))
    value = MEASURES[name](w)
    assert value.shape == shape
    assert value.dtype == dtype
    assert value.device == w.device


@every_case
def test_a_batch_is_measured_one_by_one(name, kind):
    w = KINDS[kind](evidence(5, dtype=torch.float64))
    together = MEASURES[name](w)
    torch.testing.assert_close(together, torch.stack([MEASURES[name](one) for one in w]), rtol=1e-13, atol=1e-15)


@every_case
def test_expanded_batches(name, kind):
    w = KINDS[kind](evidence(3))
    torch.testing.assert_close(MEASURES[name](w.expand(2, 3)), MEASURES[name](w).expand(2, 3))


@every_case
def test_the_same_input_gives_the_same_bits_and_is_left_alone(name, kind):
    w = KINDS[kind](evidence(50))
    before = {field: array.copy() for field, array in w.numpy().items()}
    first, second = MEASURES[name](w), MEASURES[name](w)
    assert torch.equal(first, second)
    assert all((array == before[field]).all() for field, array in w.numpy().items())


@every_case
def test_no_nan_from_nothing_to_everything(name, kind, dtype):
    amounts = torch.tensor([0.0, 1e-30, 1.0, 1e30], dtype=dtype)
    w = KINDS[kind](torch.cartesian_prod(amounts, amounts, amounts))
    assert not torch.isnan(MEASURES[name](w)).any()


@every_case
def test_no_nan_in_gradients_from_little_to_everything(name, kind, dtype):
    amounts = torch.tensor([1e-30, 1.0, 1e30], dtype=dtype)
    e = torch.cartesian_prod(amounts, amounts, amounts).requires_grad_()
    value = MEASURES[name](KINDS[kind](e))
    if value.requires_grad:
        value.sum().backward()
        assert torch.isfinite(e.grad).all()


@every_case
def test_gradients_flow_and_are_finite(name, kind):
    e = evidence(4).requires_grad_()
    value = MEASURES[name](KINDS[kind](e))
    if not value.requires_grad:  # a measure that is 0 for this kind of opinion
        assert (value == 0).all()
        return
    value.sum().backward()
    assert torch.isfinite(e.grad).all()


@every_measure
@pytest.mark.parametrize("junk", ["text", None, object(), {"a": 1}], ids=["text", "None", "object", "dict"])
def test_junk_is_rejected_with_a_sentence(name, junk):
    with pytest.raises(EvidentiaError, match=rf"\b{type(junk).__name__}\b"):
        MEASURES[name](junk)
