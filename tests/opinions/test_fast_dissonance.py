"""Both ways to compute dissonance against its definition."""

from __future__ import annotations

from importlib import import_module

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck

import evidentia as ev
from evidentia.opinions.fast_dissonance import SHIFT_LOOP_MAX_CLASSES, dissonance_of_belief, shift_loop, sorted_scan

# By name, because the package has a function of the same name.
module = import_module("evidentia.opinions.fast_dissonance")

WAYS = [shift_loop, sorted_scan]
both_ways = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)


def by_definition(belief: torch.Tensor) -> torch.Tensor:
    """The N x K x K definition, in the dtype given."""
    mine, other = belief.unsqueeze(-1), belief.unsqueeze(-2)
    total = mine + other
    balance = 2 * torch.minimum(mine, other) / torch.where(total > 0, total, torch.ones_like(total))
    distinct = ~torch.eye(belief.shape[-1], dtype=torch.bool)
    others = (other * distinct).sum(-1)
    weighted = (other * balance * distinct).sum(-1)
    return (belief * (weighted / torch.where(others > 0, others, torch.ones_like(others)))).sum(-1)


def normalised(masses: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return (masses / (masses.sum(-1, keepdim=True) + 1)).to(dtype)


def scattered(samples: int, classes: int, seed: int = 0) -> torch.Tensor:
    """Masses over sixty orders of magnitude in one row, a third of them 0 and a third equal to others."""
    generator = torch.Generator().manual_seed(seed)
    masses = 10 ** (60 * torch.rand(samples, classes, generator=generator, dtype=torch.float64) - 30)
    kind = torch.randint(3, masses.shape, generator=generator)
    return torch.where(kind == 0, 0.0, torch.where(kind == 1, masses[:, :1], masses))


def special_rows(classes: int) -> torch.Tensor:
    ramp = torch.linspace(0.5, 1.5, classes, dtype=torch.float64) / classes / 2
    rows = {
        "nothing": torch.zeros(classes),
        "all equal": torch.full((classes,), 0.9 / classes),
        "one only": torch.eye(classes)[0] * 0.7,
        "one dominates": torch.cat([torch.tensor([1.0]), torch.full((classes - 1,), 1e-12)]) * 0.99,
        "tiny": torch.full((classes,), 1e-30),
        "tiny and zero": torch.full((classes,), 1e-30) * (torch.arange(classes) % 2),
        "ties": torch.where(torch.arange(classes) % 2 == 0, 0.3, 0.6) / classes,
        "ramp": ramp,
        "descending": ramp.flip(0),
    }
    return torch.stack([row.double() for row in rows.values()])


@both_ways
@pytest.mark.parametrize("classes", [2, 3, 7, 40, 151, 1000])
def test_definition(way, classes, dtype):
    samples = 20 if classes < 1000 else 3
    spread = normalised(scattered(samples, classes), dtype)
    dense = normalised(torch.rand(samples, classes, dtype=torch.float64), dtype)
    for belief in (spread, dense, special_rows(classes).to(dtype)):
        expected = by_definition(belief.double())
        error = (way(belief).double() - expected).abs()
        # Rounding of sums over the classes, relative to the total belief of each row: tiny masses have tiny errors.
        # (The scan's polynomial is good to 5e-15.)
        bound = torch.finfo(dtype).eps * (32 + classes / 8)
        assert (error <= bound * belief.double().sum(-1)).all()


@given(
    masses=st.lists(st.one_of(st.just(0.0), st.floats(-30, 0).map(lambda x: 10**x)), min_size=2, max_size=30),
    seed=st.integers(0, 2**32 - 1),
)
def test_two_ways_agree_and_do_not_care_for_the_order(masses, seed):
    belief = normalised(torch.tensor([masses], dtype=torch.float64), torch.float64)
    order = torch.randperm(len(masses), generator=torch.Generator().manual_seed(seed))
    total = float(belief.sum())
    expected = float(by_definition(belief))
    for way in WAYS:
        assert float(way(belief)) == pytest.approx(expected, rel=1e-12, abs=1e-14 * total)
        assert float(way(belief[:, order])) == pytest.approx(expected, rel=1e-12, abs=1e-14 * total)
    assert -1e-15 <= expected <= total * (1 + 1e-12)


@both_ways
def test_worked_values(way, dtype):
    # b (.5, .3, .1): hand-computed in the scout notes; (.6, .3) is 2 min(b, d); equal masses give their total.
    rows = torch.tensor([[0.5, 0.3, 0.1], [0.6, 0.3, 0.0], [0.3, 0.3, 0.3]], dtype=dtype)
    torch.testing.assert_close(way(rows), torch.tensor([0.575, 0.6, 0.9], dtype=dtype))


@pytest.mark.parametrize("classes", [5, 200])
@pytest.mark.parametrize("differentiable", [False, True])
def test_chunks_do_not_change_the_result(monkeypatch, classes, differentiable, dtype):
    belief = normalised(torch.rand(17, classes), dtype).requires_grad_(differentiable)
    whole = dissonance_of_belief(belief)
    for name in ("_CHUNK_ENTRIES", "_SCAN_CHUNK_ENTRIES", "_SCAN_CHUNK_ENTRIES_WITH_GRADIENT"):
        monkeypatch.setattr(module, name, 3 * classes)
    # To the last bits, because vectorised sums over a chunk group their terms by its size.
    torch.testing.assert_close(dissonance_of_belief(belief), whole, rtol=8 * torch.finfo(dtype).eps, atol=0)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0, 2), (), (1,), (2, 3, 4)])
@pytest.mark.parametrize("classes", [4, 160])
@pytest.mark.parametrize("differentiable", [False, True])
def test_batch_dimensions(shape, classes, differentiable):
    belief = normalised(torch.rand(*shape, classes, dtype=torch.float64), torch.float64)
    value = ev.dissonance(belief.requires_grad_(differentiable))
    assert value.shape == shape
    torch.testing.assert_close(value, by_definition(belief))


@pytest.mark.parametrize("classes", [4, 160])
def test_strided_input_is_read_right_and_left_alone(classes):
    belief = normalised(torch.rand(classes, 6), torch.float32).T / classes
    before = belief.clone()
    torch.testing.assert_close(ev.dissonance(belief), by_definition(belief))
    assert torch.equal(belief, before)


@pytest.mark.parametrize("classes", [4, 160])
@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16], ids=["bfloat16", "float16"])
def test_half_precision(classes, half):
    belief = torch.full((2, classes), 1 / (2 * classes), dtype=half)
    value = dissonance_of_belief(belief)
    assert value.dtype == half
    torch.testing.assert_close(value.float(), torch.full((2,), 0.5), atol=0.02, rtol=0)


def distinct_masses(samples: int, classes: int) -> torch.Tensor:
    """Masses in random order, none near another."""
    order = torch.stack([torch.randperm(classes) for _ in range(samples)])
    return ((order + 1).double() / classes**2).requires_grad_()


@both_ways
def test_gradcheck(way):
    assert gradcheck(way, (distinct_masses(2, 6),))


@both_ways
def test_gradgradcheck(way):
    assert gradgradcheck(way, (distinct_masses(1, 4),))


def test_gradgradcheck_through_the_chunks():
    assert gradgradcheck(ev.dissonance, (distinct_masses(2, 3),))


@pytest.mark.parametrize("classes", [9, SHIFT_LOOP_MAX_CLASSES, SHIFT_LOOP_MAX_CLASSES + 1, 400])
@pytest.mark.parametrize("chunked", [False, True])
def test_gradient_is_that_of_the_definition(monkeypatch, classes, chunked):
    if chunked:
        for name in ("_CHUNK_ENTRIES", "_SCAN_CHUNK_ENTRIES_WITH_GRADIENT"):
            monkeypatch.setattr(module, name, 2 * classes)
    belief = distinct_masses(5, classes)
    weight = torch.rand(5, dtype=torch.float64)
    (expected,) = torch.autograd.grad((weight * by_definition(belief)).sum(), belief)
    (ours,) = torch.autograd.grad((weight * ev.dissonance(belief)).sum(), belief)
    torch.testing.assert_close(ours, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("classes", [5, 170])
def test_gradient_is_finite_everywhere(classes, dtype):
    belief = torch.cat([special_rows(classes), normalised(scattered(20, classes), torch.float64)]).to(dtype)
    belief.requires_grad_()
    ev.dissonance(belief).sum().backward()
    assert torch.isfinite(belief.grad).all()


def test_no_gradient_is_kept_when_none_is_wanted():
    belief = distinct_masses(2, 160)
    with torch.no_grad():
        value = ev.dissonance(belief)
    assert not value.requires_grad
    torch.testing.assert_close(value, by_definition(belief.detach()))
