"""What every registered fusion head must keep to; a new one is held to it by being registered."""

from __future__ import annotations

import inspect
import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import evidentia as ev
from evidentia.events import HEADS, FusionState, make_head

F64 = torch.float64
# What a state of a head is made of.
PARTS = ("alpha", "beta", "seen")
every_head = pytest.mark.parametrize("name", HEADS)


def draw(*shape: int, seed: int = 0, dtype: torch.dtype = F64) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    alpha, beta = (1 + 10 ** (5 * torch.rand(2, *shape, generator=generator, dtype=F64) - 2)).to(dtype)
    return alpha, beta


def same(one, other) -> None:
    torch.testing.assert_close(one.score, other.score, rtol=1e-6, atol=1e-6)
    assert one.opinion.allclose(other.opinion)


@every_head
def test_it_is_documented_and_named(name):
    assert ">>>" in inspect.getdoc(HEADS[name])
    assert HEADS[name].name == name


@every_head
@pytest.mark.parametrize("batch", [(), (3,), (2, 3), (0,)])
@pytest.mark.parametrize("length", [0, 1, 2, 20])
def test_shapes_and_dtypes(name, batch, length, dtype):
    head = make_head(name)
    alpha, beta = draw(*batch, length, 4, dtype=dtype)
    fusion = head.fuse(alpha, beta)
    assert fusion.opinion.shape == (*batch, length, 4)
    assert fusion.score.shape == (*batch, length, head.outputs(4))
    assert fusion.score.dtype == fusion.opinion.dtype == dtype
    assert head.calls(fusion).dtype == torch.bool


@every_head
def test_each_stream_and_class_is_on_its_own(name):
    head = make_head(name)
    alpha, beta = draw(3, 20, 4)
    fusion = head.fuse(alpha, beta)
    for i in range(3):
        alone = head.fuse(alpha[i], beta[i])
        torch.testing.assert_close(alone.score, fusion.score[i])
    if head.outputs(4) == 4:
        same(head.fuse(alpha[..., 1:2], beta[..., 1:2]), type(fusion)(fusion.opinion[..., 1:2], fusion.score[..., 1:2]))


@every_head
@given(st.integers(1, 29), st.integers(0, 1000))
def test_the_future_changes_nothing(name, t, seed):
    head = make_head(name)
    alpha, beta = draw(2, 30, 3, seed=seed)
    other_alpha, other_beta = draw(2, 30, 3, seed=seed + 1)
    changed = head.fuse(
        torch.cat([alpha[:, :t], other_alpha[:, t:]], 1), torch.cat([beta[:, :t], other_beta[:, t:]], 1)
    )
    fusion = head.fuse(alpha, beta)
    assert torch.equal(changed.score[:, :t], fusion.score[:, :t])
    assert torch.equal(changed.opinion.belief[:, :t], fusion.opinion.belief[:, :t])


@every_head
def test_what_is_older_than_the_window_is_forgotten(name):
    head = make_head(name)
    alpha, beta = draw(30, 3)
    other = torch.cat([2 * alpha[:10], alpha[10:]])
    kept = slice(10 + head.span - 1, None)
    torch.testing.assert_close(head.fuse(alpha, beta).score[kept], head.fuse(other, beta).score[kept])


@every_head
@given(
    st.lists(st.integers(0, 7), min_size=1, max_size=12), st.sampled_from([torch.float32, F64]), st.integers(0, 1000)
)
def test_streaming_in_any_chunks_equals_offline(name, chunks, dtype, seed):
    head = make_head(name)
    alpha, beta = draw(2, sum(chunks), 3, seed=seed, dtype=dtype)
    whole = head.fuse(alpha, beta)
    state = head.initial_state(3, (2,), dtype)
    scores, beliefs = [], []
    for a, b in zip(alpha.split(chunks, 1), beta.split(chunks, 1), strict=True):
        fusion, state = head.push(state, a, b)
        scores.append(fusion.score)
        beliefs.append(fusion.opinion.belief)
    torch.testing.assert_close(torch.cat(scores, 1), whole.score, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(torch.cat(beliefs, 1), whole.opinion.belief, rtol=1e-6, atol=1e-6)


@every_head
def test_streams_of_different_ages_run_in_one_batch(name):
    head = make_head(name)
    alpha, beta = draw(2, 20, 3)
    _, old = head.push(head.initial_state(3, (), F64), alpha[0, :15], beta[0, :15])
    young = head.initial_state(3, (), F64)
    together = FusionState(*(torch.stack([getattr(each, part) for each in (old, young)]) for part in PARTS))
    both, states = head.push(together, *(x[:, 15:] for x in (alpha, beta)))
    torch.testing.assert_close(both.score[0], head.fuse(alpha[0], beta[0]).score[15:])
    torch.testing.assert_close(both.score[1], head.fuse(alpha[1, 15:], beta[1, 15:]).score)
    alone = FusionState(*(getattr(states, part)[0] for part in PARTS))
    next_alpha, next_beta = draw(2, 4, 3, seed=5)
    resumed, unbroken = head.push(alone, next_alpha[0], next_beta[0])[0], head.push(states, next_alpha, next_beta)[0]
    torch.testing.assert_close(resumed.score, unbroken.score[0])


@every_head
def test_a_push_leaves_the_state_and_the_input_alone(name):
    head = make_head(name)
    alpha, beta = draw(10, 3)
    _, state = head.push(head.initial_state(3, (), F64), alpha, beta)
    before = {part: getattr(state, part).clone() for part in PARTS}
    kept = alpha.clone()
    _, after = head.push(state, alpha, beta)
    alpha.fill_(1.0)
    assert all(torch.equal(before[part], getattr(state, part)) for part in PARTS)
    assert torch.equal(after.alpha, kept[len(kept) - head.span + 1 :])


@every_head
def test_settings_survive_json(name):
    head = make_head(name, threshold=0.25)
    again = make_head(**json.loads(json.dumps(head.describe())))
    assert again == head
    assert again.describe() == head.describe()


@every_head
def test_bad_input_is_refused(name):
    head = make_head(name)
    good = torch.full((5, 3), 2.0)
    for alpha, beta, message in [
        (good[0], good[0], "segments, classes"),
        (good, good[:4], "one shape"),
        (good, good.double(), "dtype"),
        (good.long(), good.long(), "floating"),
        (good * 0.25, good, "at least 1"),
        (good, good * torch.nan, "finite"),
        (good * 1.6e38, good * 1.6e38, "finite"),
        (good[:, :0], good[:, :0], "at least one class"),
        ([[1.0]], [[1.0]], "list"),
    ]:
        with pytest.raises(ev.EvidentiaError, match=message):
            head.fuse(alpha, beta)
    with pytest.raises(ev.EvidentiaError, match="initial_state"):
        head.push(head.initial_state(2), good, good)
    with pytest.raises(ev.EvidentiaError, match="settings do not fit"):
        make_head(name, thresholds=1.0)


def test_bad_settings_and_states_are_refused():
    good = torch.full((5, 3), 2.0)
    for settings, message in [
        ({"window": 0}, "window"),
        ({"window": (2, 0, 1)}, "window"),
        ({"decay": 1.5}, "decay"),
        ({"mode": "both"}, "mode"),
        ({"max_vacuity": -0.1}, "max_vacuity"),
        ({"threshold": float("nan")}, "threshold"),
    ]:
        with pytest.raises(ev.EvidentiaError, match=message):
            make_head("wbc", **settings)
    for settings in ({"window": (2, 2)}, {"decay": (0.5, 0.5)}, {"max_vacuity": (0.5, 0.5)}):
        with pytest.raises(ev.EvidentiaError, match="one value for each of 3 classes"):
            make_head("wbc", **settings).fuse(good, good)
    with pytest.raises(ev.EvidentiaError, match="choose one of"):
        make_head("wcb")
    with pytest.raises(ev.EvidentiaError, match="seen"):
        FusionState(good, good, torch.zeros(2))
