"""What every registered operator must keep to; a new one is held to it by being registered."""

from __future__ import annotations

import inspect

import pytest
import torch

from evidentia import BinomialOpinion, EvidentiaError, MultinomialOpinion
from evidentia.opinions import OPERATORS, Opinion

F64 = torch.float64


def arguments(name: str) -> tuple[list[str], list[str], bool]:
    """The annotations of the opinions an operator takes, its other required arguments, and whether it takes `dim`."""
    opinions, others = [], []
    parameters = inspect.signature(OPERATORS[name]).parameters.values()
    for parameter in parameters:
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            opinions += [parameter.annotation] * 2
        elif parameter.annotation in ("BinomialOpinion", "OpinionT"):
            opinions.append(parameter.annotation)
        elif parameter.default is inspect.Parameter.empty:
            others.append(parameter.name)
    return opinions, others, any(parameter.name == "dim" for parameter in parameters)


def opinion(annotation: str, kind: type[Opinion], *shape: int, seed: int = 0, dtype=F64) -> Opinion:
    """An opinion with little belief and a small base rate, so that several can exclude each other."""
    generator = torch.Generator().manual_seed(seed)
    u = 0.1 + 0.2 * torch.rand(shape, generator=generator, dtype=F64)
    b = 0.3 * torch.rand(shape, generator=generator, dtype=F64)
    a = 0.1 + 0.2 * torch.rand(shape, generator=generator, dtype=F64)
    w = BinomialOpinion(b, 1 - b - u, u, a).to(dtype)
    return w if annotation == "BinomialOpinion" or kind is BinomialOpinion else w.to_multinomial()


def call(name: str, opinions: list[Opinion]) -> Opinion:
    return OPERATORS[name](*opinions, *[0.2 for _ in arguments(name)[1]])


def build(name: str, kind: type[Opinion], *shapes: tuple[int, ...], dtype=F64) -> list[Opinion]:
    """Opinions for each place of the operator, with the shapes given in turn."""
    annotations = arguments(name)[0]
    return [
        opinion(annotation, kind, *shapes[i % len(shapes)], seed=i, dtype=dtype)
        for i, annotation in enumerate(annotations)
    ]


def fields(w: Opinion) -> dict[str, torch.Tensor]:
    return {field: getattr(w, field) for field in w._fields}


CASES = [
    (name, kind)
    for name in OPERATORS
    for kind in (BinomialOpinion, MultinomialOpinion)
    if kind is BinomialOpinion or "OpinionT" in arguments(name)[0]
]
every_case = pytest.mark.parametrize(("name", "kind"), CASES, ids=[f"{name}-{kind.__name__}" for name, kind in CASES])
every_operator = pytest.mark.parametrize("name", OPERATORS)


@every_operator
def test_takes_opinions_and_is_documented(name):
    opinions, others, _ = arguments(name)
    assert opinions
    assert set(others) <= {"base_rate"}  # teach `call` about any other
    assert ">>>" in inspect.getdoc(OPERATORS[name])


@every_case
@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (0,)])
def test_the_result_is_an_opinion_of_the_same_make(name, kind, shape, dtype):
    w = call(name, build(name, kind, shape, dtype=dtype))
    assert isinstance(w, kind)
    assert w.shape == shape
    assert w.dtype == dtype
    assert w.device == torch.device("cpu")
    assert all(field.dtype == dtype for field in fields(w).values())
    kind(**w.numpy(), prior_weight=w.prior_weight)  # checks that masses add up, and that all lie in [0, 1]


@every_case
def test_batches_broadcast(name, kind):
    given = build(name, kind, (3, 1), (4,))
    shape = torch.broadcast_shapes(*(w.shape for w in given))
    together = call(name, given)
    assert together.shape == shape
    assert together.allclose(call(name, [w.expand(*shape) for w in given]), rtol=1e-13, atol=1e-15)


@every_case
def test_a_batch_is_combined_one_by_one(name, kind):
    given = build(name, kind, (5,))
    together = call(name, given)
    for i, one in enumerate(together):
        assert one.allclose(call(name, [w[i] for w in given]), rtol=1e-13, atol=1e-15)


@every_case
def test_the_same_input_gives_the_same_bits_and_is_left_alone(name, kind):
    given = build(name, kind, (20,))
    before = [{field: value.clone() for field, value in fields(w).items()} for w in given]
    first, second = call(name, given), call(name, given)
    assert all(torch.equal(value, fields(second)[field]) for field, value in fields(first).items())
    for w, old in zip(given, before, strict=True):
        assert all(torch.equal(value, old[field]) for field, value in fields(w).items())


@every_case
def test_gradients_flow_to_every_opinion(name, kind):
    leaves = [{k: v.clone().requires_grad_() for k, v in fields(w).items()} for w in build(name, kind, (3,))]
    given = [w._with(leaf) for w, leaf in zip(build(name, kind, (3,)), leaves, strict=True)]
    w = call(name, given)
    sum((field.sin() * (i + 1)).sum() for i, field in enumerate(fields(w).values())).backward()
    for leaf in leaves:
        gradients = [field.grad for field in leaf.values() if field.grad is not None]
        assert gradients
        assert all(torch.isfinite(gradient).all() for gradient in gradients)
        assert any((gradient != 0).any() for gradient in gradients)


@every_case
def test_vacuous_and_dogmatic_opinions_give_opinions(name, kind, dtype):
    # `add` is given what can exclude each other: with beliefs of 1 in both it must refuse.
    corners = [(0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (0.0, 0.4, 0.6), (0.5, 0.5, 0.0), (0.4, 0.6, 0.0)]
    annotations = arguments(name)[0]
    grid = torch.tensor(corners, dtype=dtype)
    choices = torch.cartesian_prod(*[torch.arange(len(corners))] * len(annotations)).reshape(-1, len(annotations))
    for rate in (0.0, 0.3, 0.5):
        given = []
        for place, annotation in enumerate(annotations):
            w = BinomialOpinion(*grid[choices[:, place]].unbind(-1), rate)
            given.append(w if annotation == "BinomialOpinion" or kind is BinomialOpinion else w.to_multinomial())
        try:
            w = call(name, given)
        except EvidentiaError as refusal:
            assert "exclude" in str(refusal)  # noqa: PT017
            continue
        kind(**w.numpy(), prior_weight=w.prior_weight)


@every_case
def test_dim_is_the_same_as_separate_arguments(name, kind):
    annotations, _, takes_dim = arguments(name)
    if not takes_dim:
        assert all(
            parameter.kind is not inspect.Parameter.VAR_POSITIONAL
            for parameter in inspect.signature(OPERATORS[name]).parameters.values()
        )
        return
    batch = opinion(annotations[0], kind, 3, 2)
    assert OPERATORS[name](batch, dim=0).allclose(OPERATORS[name](*batch), rtol=1e-13, atol=1e-15)
    assert OPERATORS[name](batch, dim=-1).allclose(OPERATORS[name](batch[:, 0], batch[:, 1]), rtol=1e-13, atol=1e-15)


@every_case
@pytest.mark.parametrize("junk", ["text", None, torch.ones(2), 0.5], ids=["text", "None", "tensor", "number"])
def test_junk_is_rejected_with_a_sentence(name, kind, junk):
    for place in range(len(arguments(name)[0])):
        given = build(name, kind, ())
        given[place] = junk
        with pytest.raises(EvidentiaError, match=rf"\b{type(junk).__name__}\b"):
            call(name, given)


@every_case
def test_shapes_that_do_not_broadcast_are_rejected_with_a_sentence(name, kind):
    if len(arguments(name)[0]) < 2:
        return
    with pytest.raises(EvidentiaError, match=r"broadcast"):
        call(name, build(name, kind, (3,), (4,)))
