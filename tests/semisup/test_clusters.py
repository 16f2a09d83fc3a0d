"""K-means clusters of the pool."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from evidentia import EvidentiaError
from evidentia.semisup.clusters import kmeans, purity, share

seeds = st.integers(0, 2**32 - 1)
dtypes = st.sampled_from([torch.float32, torch.float64])


def blobs(seed: int, dtype: torch.dtype = torch.float64, count: int = 5) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    truth = torch.arange(12 * count) % count
    noise = 0.1 * torch.randn(len(truth), 2, generator=generator, dtype=torch.float64)
    corners = torch.stack([10.0 * torch.arange(count), 10.0 * torch.arange(count) % 3], 1).double()
    return (corners[truth] + noise).to(dtype), truth


def pairs(assignment: Tensor) -> Tensor:
    """Who is together with whom: a partition, whatever its clusters are called."""
    return assignment[:, None] == assignment


@given(seed=seeds, dtype=dtypes, offset=st.sampled_from([0.0, 1e3]))
def test_separated_blobs_are_found(seed, dtype, offset):
    x, truth = blobs(seed, dtype)
    found = kmeans(x + offset, 5, seed=seed)
    assert torch.equal(pairs(found.assignment), pairs(truth))
    assert purity(found.assignment, truth) == 1
    assert found.sizes.tolist() == [12] * 5
    means = torch.stack([(x + offset)[found.assignment == k].double().mean(0) for k in range(5)])
    torch.testing.assert_close(found.centres, means, atol=1e-3, rtol=0)
    assert torch.equal(found.nearest(x + offset), found.assignment)


@given(seed=seeds, dtype=dtypes, clusters=st.integers(1, 12), scale=st.sampled_from([1e-6, 1.0, 1e6]))
def test_inertia_never_rises_and_is_what_it_says(seed, dtype, clusters, scale):
    x = scale * torch.randn(40, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)
    found = kmeans(x, clusters, seed=seed)
    assert all(after <= before for before, after in zip(found.inertia, found.inertia[1:], strict=False))
    assert len(found.sizes) == len(found) == clusters
    assert int(found.sizes.min()) > 0
    distances = torch.cdist(x.double(), found.centres).square()
    assert float(distances.min(1).values.mean()) == pytest.approx(found.inertia[-1], rel=1e-4)
    # Every sample is with the centre nearest to it.
    torch.testing.assert_close(
        distances.gather(1, found.assignment[:, None])[:, 0], distances.min(1).values, rtol=1e-4, atol=1e-6 * scale**2
    )


@given(seed=seeds, dtype=dtypes)
def test_the_order_of_the_samples_does_not_matter(seed, dtype):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(60, 4, generator=generator, dtype=torch.float64).to(dtype)
    order = torch.randperm(60, generator=generator)
    first, second = kmeans(x, 6), kmeans(x[order], 6)
    assert torch.equal(pairs(first.assignment)[order][:, order], pairs(second.assignment))


def test_as_good_as_scikit_learn():
    cluster = pytest.importorskip("sklearn.cluster")
    x = torch.randn(500, 8, generator=torch.Generator().manual_seed(0))
    theirs = cluster.KMeans(20, n_init=3, random_state=0).fit(x.numpy()).inertia_ / len(x)
    assert kmeans(x, 20).inertia[-1] < 1.02 * theirs


def test_seeds_repeat_and_leave_the_global_random_state_alone():
    x, before = torch.randn(50, 3), torch.get_rng_state()
    first, second = kmeans(x, 4, seed=3), kmeans(x, 4, seed=3)
    assert torch.equal(first.assignment, second.assignment)
    assert torch.equal(torch.get_rng_state(), before)


def test_small_pools_and_copies(dtype):
    x = torch.tensor([[0.0], [5.0], [9.0]], dtype=dtype)
    found = kmeans(x, 20)
    assert sorted(found.assignment.tolist()) == [0, 1, 2]
    copies = kmeans(torch.ones(30, 2, dtype=dtype), 4)
    assert copies.inertia[-1] == pytest.approx(0, abs=1e-12)
    assert int(copies.sizes.sum()) == 30
    two = kmeans(torch.tensor([[0.0]] * 9 + [[1.0]], dtype=dtype), 5)
    assert two.assignment[9] != two.assignment[0]
    assert two.inertia[-1] == pytest.approx(0, abs=1e-12)


@given(
    values=st.lists(st.tuples(st.floats(-10, 10, width=32), st.integers(0, 3)), min_size=1, max_size=20), dtype=dtypes
)
def test_share_is_the_mean_over_a_cluster(values, dtype):
    given_values, clusters = zip(*values, strict=True)
    x, assignment = torch.tensor(given_values, dtype=dtype), torch.tensor(clusters)
    means = share(x, assignment, 4)
    for k in range(4):
        expected = x[assignment == k].mean() if k in clusters else torch.zeros((), dtype=dtype)
        torch.testing.assert_close(means[k], expected, atol=1e-5, rtol=1e-5)
    # Sharing what is shared changes nothing.
    torch.testing.assert_close(share(means[assignment], assignment, 4), means, atol=1e-5, rtol=1e-5)


def test_purity_of_known_tables():
    assert purity(torch.zeros(4, dtype=torch.int64), torch.tensor([True, True, True, False])) == 0.75
    assert purity(torch.arange(4), torch.tensor([1, 1, 2, 2])) == 1
    assert purity(torch.tensor([7, 7, 7, 2, 2, 2]), torch.tensor([-1, -1, 5, 5, 5, -1])) == pytest.approx(4 / 6)


def test_a_seed_may_be_a_number_of_numpy():
    x = torch.randn(50, 2, generator=torch.Generator().manual_seed(0))
    assert torch.equal(kmeans(x, 3, np.int64(5)).assignment, kmeans(x, 3, 5).assignment)


def test_refusals():
    with pytest.raises(EvidentiaError, match="seed must be a whole number of at least 0, got None"):
        kmeans(torch.zeros(5, 2), 2, None)
    for call in (kmeans, lambda x: share(x, torch.zeros(5)), lambda x: purity(torch.zeros(5), x)):
        with pytest.raises(EvidentiaError, match="must be a tensor, got ndarray; give"):
            call(np.zeros(5))
    with pytest.raises(EvidentiaError, match="shape"):
        kmeans(torch.zeros(5))
    with pytest.raises(EvidentiaError, match="clusters must be a whole number"):
        kmeans(torch.zeros(5, 2), 0)
    with pytest.raises(EvidentiaError, match="must be finite"):
        kmeans(torch.full((5, 2), torch.nan))
    with pytest.raises(EvidentiaError, match="as when clustered"):
        kmeans(torch.randn(5, 2), 2).nearest(torch.randn(5, 3))
    with pytest.raises(EvidentiaError, match="one value and one cluster"):
        share(torch.zeros(3), torch.zeros(2, dtype=torch.int64))
    with pytest.raises(EvidentiaError, match="in cluster 5"):
        share(torch.zeros(1), torch.tensor([5]), 2)
    with pytest.raises(EvidentiaError, match="one truth a sample"):
        purity(torch.zeros(3, dtype=torch.int64), torch.zeros(2))
