"""The weights of the pool."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evidentia import EvidentiaError
from evidentia.semisup.weights import SampleWeights, drawn_rows

dtypes = st.sampled_from([torch.float32, torch.float64])
gradients = st.lists(st.floats(-1e30, 1e30), min_size=6, max_size=6)
CLUSTERS = torch.tensor([0, 0, 1, 1, 2, 2])


@given(
    steps=st.lists(gradients, min_size=1, max_size=5), dtype=dtypes, clustered=st.booleans(), rate=st.floats(0.01, 1)
)
def test_weights_stay_between_0_and_1_and_go_against_the_gradient(steps, dtype, clustered, rate):
    weights = SampleWeights(6, rate, assignment=CLUSTERS if clustered else None, dtype=dtype)
    for gradient in steps:
        before = weights.per_sample
        weights.step(torch.arange(6), torch.tensor(gradient, dtype=dtype))
        after = weights.per_sample
        assert after.dtype == dtype
        assert bool(((after >= 0) & (after <= 1)).all())
        if not clustered:
            assert bool(((after - before) * torch.tensor(gradient, dtype=torch.float64) <= 0).all())
        else:
            assert torch.equal(after[::2], after[1::2])


@given(scale=st.floats(1e-30, 1e30), dtype=dtypes)
def test_the_size_of_the_gradient_does_not_matter(scale, dtype):
    weights = SampleWeights(4, 0.05, start=torch.full((4,), 0.5), dtype=dtype)
    weights.step(torch.arange(3), scale * torch.tensor([2.0, -1.0, 0.0], dtype=dtype))
    expected = torch.tensor([0.5 - 0.1, 0.5 + 0.05, 0.5, 0.5], dtype=dtype)
    torch.testing.assert_close(weights.per_sample, expected)


def test_no_gradient_no_step_but_a_visit():
    weights = SampleWeights(3, start=0.5)
    weights.step(torch.tensor([0, 1]), torch.zeros(2))
    weights.step(torch.tensor([], dtype=torch.int64), torch.tensor([]))
    assert weights.per_sample.tolist() == [0.5] * 3
    assert weights.visits.tolist() == [1, 1, 0]


def test_a_sample_that_is_twice_in_a_batch_counts_once_with_its_mean():
    weights = SampleWeights(2, 0.1, start=0.5)
    weights.step(torch.tensor([0, 0, 1]), torch.tensor([1.0, 3.0, -2.0]))
    torch.testing.assert_close(weights.per_sample, torch.tensor([0.4, 0.6]))
    assert weights.visits.tolist() == [1, 1]


def test_a_cluster_moves_as_one_by_the_mean_of_those_in_the_batch():
    weights = SampleWeights(6, 0.1, start=0.5, assignment=CLUSTERS)
    weights.step(torch.tensor([0, 1, 2]), torch.tensor([1.0, 3.0, -4.0]))
    rate = 0.1 / 3  # the mean absolute gradient of the clusters is 3
    expected = [0.5 - 2 * rate] * 2 + [0.5 + 4 * rate] * 2 + [0.5] * 2
    torch.testing.assert_close(weights.per_sample, torch.tensor(expected))
    torch.testing.assert_close(weights.of(torch.tensor([5, 1])), torch.tensor([0.5, 0.5 - 2 * rate]))


@given(values=st.lists(st.floats(0, 1), min_size=6, max_size=6), dtype=dtypes)
def test_other_clusters_take_over_the_mean_of_their_samples_weights(values, dtype):
    start = torch.tensor(values, dtype=dtype)
    weights = SampleWeights(6, start=start, dtype=dtype)
    weights.recluster(CLUSTERS)
    torch.testing.assert_close(weights.per_sample[::2], (start[::2] + start[1::2]) / 2)
    # The mean over the pool is kept, as these clusters are of one size.
    torch.testing.assert_close(weights.per_sample.mean(), start.mean(), atol=1e-6, rtol=1e-5)
    before = weights.per_sample
    weights.recluster(torch.tensor([0, 0, 0, 0, 4, 4]), clusters=5)
    torch.testing.assert_close(weights.per_sample[0], before[:4].mean())
    torch.testing.assert_close(weights.per_sample[4:], before[4:])


def test_replaced_weights_are_shared_in_clusters():
    oracle = torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0, 0.0])
    single, shared = SampleWeights(6), SampleWeights(6, assignment=CLUSTERS)
    for weights in (single, shared):
        weights.replace(oracle)
    assert torch.equal(single.per_sample, oracle)
    assert shared.per_sample.tolist() == [0.5, 0.5, 1, 1, 0, 0]


@given(values=st.lists(st.floats(0, 1), min_size=2, max_size=20).filter(any))
def test_probabilities_are_proportional_to_the_weights(values):
    start = torch.tensor(values, dtype=torch.float64)
    drawn = SampleWeights(len(values), start=start, dtype=torch.float64).sampling_probabilities()
    torch.testing.assert_close(drawn * start.sum(), start)
    assert float(drawn.sum()) == pytest.approx(1)


def test_a_pool_without_weight_cannot_be_drawn_from():
    with pytest.raises(EvidentiaError, match="all weights of the pool are 0"):
        SampleWeights(3, start=0.0).sampling_probabilities()


def test_rare_visits_are_told():
    weights = SampleWeights(6)
    for _ in range(5):
        weights.step(torch.tensor([0, 2, 4]), torch.ones(3))
    with pytest.warns(UserWarning, match="weights of 3 of 6 samples were part of fewer than 5 steps"):
        assert weights.rarely_visited() == 3
    weights.recluster(CLUSTERS)
    assert weights.rarely_visited() == 0


@pytest.mark.parametrize("assignment", [None, CLUSTERS], ids=["samples", "clusters"])
def test_state_goes_round(assignment, dtype):
    weights = SampleWeights(6, assignment=assignment, dtype=dtype)
    weights.step(torch.tensor([0, 3]), torch.tensor([1.0, 2.0], dtype=dtype))
    state = weights.state_dict()
    other = SampleWeights(6, assignment=1 - CLUSTERS.clamp(max=1), dtype=dtype)
    other.load_state_dict(state)
    for each in (weights, other):
        each.step(torch.tensor([1, 3]), torch.tensor([3.0, -1.0], dtype=dtype))
    assert torch.equal(weights.per_sample, other.per_sample)
    assert torch.equal(weights.visits, other.visits)
    # What was saved is a copy.
    assert not torch.equal(state["visits"], weights.visits)


def test_states_of_something_else_are_refused():
    weights = SampleWeights(6)
    state = weights.state_dict()
    for bad in (
        {},
        SampleWeights(5).state_dict(),
        state | {"values": torch.ones(3)},
        state | {"assignment": CLUSTERS + 9},
    ):
        with pytest.raises(EvidentiaError, match="state"):
            weights.load_state_dict(bad)
    with pytest.raises(EvidentiaError, match=r"must lie in \[0, 1\]"):
        weights.load_state_dict(state | {"values": torch.full((6,), 2.0)})


def test_other_refusals():
    for options, match in (
        ({"size": 0}, "samples to weigh must be a whole number"),
        ({"size": 3, "rate": 0}, "rate"),
    ):
        with pytest.raises(EvidentiaError, match=match):
            SampleWeights(**options)
    weights = SampleWeights(6)
    with pytest.raises(EvidentiaError, match="one index and one gradient"):
        weights.step(torch.arange(3), torch.ones(2))
    with pytest.raises(EvidentiaError, match="must be finite"):
        weights.step(torch.arange(2), torch.tensor([1.0, torch.nan]))
    with pytest.raises(EvidentiaError, match="one weight for each of 6"):
        weights.replace(torch.ones(3))
    with pytest.raises(EvidentiaError, match="one cluster for each of 6"):
        weights.recluster(torch.zeros(6))


@given(
    trusted=st.integers(1, 60),
    others=st.integers(0, 60),
    doubt=st.floats(0.0, 0.2),
    count=st.integers(1, 200),
    seed=st.integers(0, 2**16),
)
def test_batches_have_the_shares_of_the_weights_however_small_the_pool(trusted, others, doubt, count, seed):
    weights = torch.cat([torch.ones(trusted), torch.full((others,), doubt)]).double()
    chances = weights / weights.sum()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        rows = drawn_rows(chances, count)
    found, expected = rows.bincount(minlength=len(chances)), count * chances
    assert len(rows) == count
    assert not bool(found[chances == 0].any())
    if count * float(chances.max()) > 0.5:
        # As often as is expected, but for rounding to a whole number.
        assert bool(((found - expected).abs() < 1 + 1e-6).all())
    else:
        assert int(found.max()) == 1


def test_few_of_a_large_pool_are_drawn_by_their_weights():
    chances = torch.cat([torch.full((500,), 3.0), torch.ones(500)]).double() / 2000
    with torch.random.fork_rng():
        torch.manual_seed(0)
        drawn = torch.cat([drawn_rows(chances, 20) for _ in range(2000)])
    assert float((drawn < 500).double().mean()) == pytest.approx(0.75, abs=0.01)


def test_pools_that_are_too_large_for_multinomial_are_drawn_from_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    # Of the likely rows, a batch takes so many that later ones are drawn from what is left.
    chances = torch.cat([torch.zeros(20), torch.full((20,), 9.0), torch.full((180,), 1.0)]).double() / 360
    shares = []
    for most in (len(chances), 0):
        monkeypatch.setattr("evidentia.semisup.weights._MULTINOMIAL", most)
        with torch.random.fork_rng():
            torch.manual_seed(0)
            batches = torch.stack([drawn_rows(chances, 20) for _ in range(4000)])
        assert int(batches.min()) >= 20
        assert all(len(batch.unique()) == 20 for batch in batches)
        shares.append((batches < 40).double().mean(0))
    assert float(shares[1].mean()) < 0.49
    torch.testing.assert_close(shares[0], shares[1], atol=0.04, rtol=0)


def test_those_that_are_kept_are_drawn_evenly_and_no_others() -> None:
    weights = SampleWeights(4)
    weights.replace(torch.tensor([0.0, 0.49, 0.5, 1.0]))
    assert weights.sampling_probabilities(kept_from=0.5).tolist() == [0, 0, 0.5, 0.5]
    weights.replace(torch.full((4,), 0.4))
    with pytest.raises(
        EvidentiaError, match=r"all weights of the pool are below 0\.5, so no sample of it can be drawn"
    ):
        weights.sampling_probabilities(kept_from=0.5)
