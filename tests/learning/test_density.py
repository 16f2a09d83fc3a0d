"""The density of features against SciPy, and what familiarity means at the edges."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from evidentia import EvidentiaError
from evidentia.learning import GaussianDensity


def classes(count=90, dims=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(3).repeat(count // 3)
    return 3 * y.unsqueeze(1) + torch.randn(count, dims, generator=generator, dtype=torch.float64), y


@pytest.mark.parametrize("shrinkage", [0.1, 0.5, 1.0])
def test_it_is_a_mixture_of_gaussians(shrinkage):
    x, y = classes()
    density = GaussianDensity(shrinkage).fit(x, y)
    means = np.stack([x[y == c].mean(0) for c in range(3)])
    residual = x.numpy() - means[y]
    sigma = residual.T @ residual / (len(x) - 3)
    sigma = (1 - shrinkage) * sigma + shrinkage * np.trace(sigma) / 4 * np.eye(4)
    asked = torch.randn(20, 4, dtype=torch.float64) * 5
    expected = logsumexp([multivariate_normal(mean, sigma).logpdf(asked) for mean in means], axis=0) - np.log(3)
    np.testing.assert_allclose(density.log_density(asked), expected, rtol=1e-9)


def test_without_labels_it_is_one_gaussian():
    x, _ = classes()
    alone = GaussianDensity().fit(x)
    torch.testing.assert_close(alone.log_density(x), GaussianDensity().fit(x, torch.zeros(len(x))).log_density(x))
    assert len(alone.means) == 1


def test_familiarity_is_1_for_the_usual_and_0_far_away(dtype):
    x, y = classes()
    density = GaussianDensity().fit(x.to(dtype), y)
    fresh, _ = classes(seed=1)
    familiarity = density.familiarity(fresh.to(dtype))
    assert familiarity.dtype == dtype
    assert bool(((familiarity >= 0) & (familiarity <= 1)).all())
    assert float(familiarity.mean()) > 0.7
    for far in (50.0, -1e4, 1e30):
        assert density.familiarity(torch.full((2, 4), far, dtype=dtype)).tolist() == [0, 0]
    assert float(density.familiarity(density.means.to(dtype)).min()) == 1


def test_familiarity_falls_with_distance():
    density = GaussianDensity().fit(*classes())
    along = density.familiarity(torch.linspace(6, 14, 50, dtype=torch.float64).unsqueeze(1).repeat(1, 4))
    assert bool((along.diff() <= 0).all())
    assert along[0] == 1
    assert along[-1] == 0


def test_strangeness_goes_on_where_familiarity_ends(dtype):
    density = GaussianDensity().fit(*classes())
    along = torch.linspace(6, 40, 200, dtype=dtype).unsqueeze(1).repeat(1, 4)
    familiarity, strangeness = density.familiarity(along), density.strangeness(along)
    assert strangeness.dtype == dtype
    assert bool((torch.minimum(familiarity, strangeness) == 0).all())
    assert bool(((familiarity - strangeness).diff() <= 0).all())
    assert float(strangeness[-1]) > 1
    assert bool(density.strangeness(torch.full((1, 4), 1e30, dtype=dtype)).isfinite().all())


def test_new_samples_are_as_familiar_with_more_dimensions_than_samples():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(40, 100, generator=generator)
    density = GaussianDensity().fit(x, torch.arange(40) % 2)
    fresh = density.familiarity(torch.randn(200, 100, generator=generator))
    assert float(fresh.mean()) > 0.5
    assert density.familiarity(10 * torch.ones(1, 100)).item() == 0


@pytest.mark.parametrize("value", [0.0, 3.0, 1e6])
def test_constant_features_are_familiar_and_others_are_not(value):
    x = torch.full((20, 5), value)
    density = GaussianDensity().fit(x, torch.arange(20) % 2)
    assert bool((density.familiarity(x) == 1).all())
    assert float(density.familiarity(x[:1])) == 1
    assert float(density.familiarity(x[:1] + 1 + value / 2)) == 0


def test_a_class_with_a_single_sample_does_not_make_the_strange_familiar():
    x, y = classes()
    alone = torch.cat([x, torch.full((1, 4), 200.0, dtype=torch.float64)])
    density = GaussianDensity().fit(alone, torch.cat([y, torch.tensor([3])]))
    assert float(density.familiarity(torch.full((1, 4), 200.0, dtype=torch.float64))) == 1
    assert float(density.familiarity(torch.full((1, 4), 100.0, dtype=torch.float64))) == 0
    assert float(density.familiarity(torch.full((1, 4), 14.0, dtype=torch.float64))) == 0


def test_when_every_class_has_a_single_sample_they_share_a_spread():
    x = torch.randn(10, 3)
    density = GaussianDensity().fit(x, torch.arange(10))
    assert len(density.means) == 1
    assert float(density.familiarity(x.mean(0, keepdim=True))) == 1


def test_two_samples_are_enough():
    density = GaussianDensity().fit(torch.tensor([[0.0, 0.0], [1.0, 1.0]]))
    assert bool(density.marks.isfinite().all())
    assert float(density.familiarity(torch.tensor([[0.5, 0.5]]))) == 1


def test_where_the_features_lie_does_not_matter():
    x, y = classes()
    near, far = GaussianDensity().fit(x, y), GaussianDensity().fit(x + 1e5, y)
    torch.testing.assert_close(near.log_density(x), far.log_density(x + 1e5), rtol=1e-6, atol=1e-6)


def test_its_state_can_be_moved_and_loaded():
    x, y = classes()
    density = GaussianDensity().fit(x, y)
    other = GaussianDensity()
    assert not other.fitted
    other.load_state_dict(density.state_dict())
    assert other.fitted
    assert torch.equal(other.familiarity(x), density.familiarity(x))
    # Refitting to other shapes and loading back again.
    other.fit(torch.randn(9, 2))
    other.load_state_dict(density.state_dict())
    assert torch.equal(other.log_density(x), density.log_density(x))
    # A model that is cast takes its density along.
    torch.testing.assert_close(
        other.float().familiarity(x.float()), density.familiarity(x).float(), rtol=1e-3, atol=1e-3
    )


def test_bad_input_is_refused_in_a_sentence():
    with pytest.raises(EvidentiaError, match="shrinkage must be a number, more than 0 and at most 1, got 0"):
        GaussianDensity(shrinkage=0)
    with pytest.raises(EvidentiaError, match="folds must be a whole number of at least 2, got 1"):
        GaussianDensity(folds=1)
    with pytest.raises(EvidentiaError, match=r"at least 2 samples, got \(1, 3\)"):
        GaussianDensity().fit(torch.zeros(1, 3))
    with pytest.raises(EvidentiaError, match="features must be finite"):
        GaussianDensity().fit(torch.full((3, 3), float("nan")))
    with pytest.raises(EvidentiaError, match=r"labels need shape \(3,\), got \(2,\)"):
        GaussianDensity().fit(torch.eye(3), torch.zeros(2))
    with pytest.raises(EvidentiaError, match=r"the density is not fitted; train with fit\(\), or call calibrate\(\)"):
        GaussianDensity().familiarity(torch.zeros(2, 3))
    with pytest.raises(EvidentiaError, match=r"features need shape \(samples, 3\) as when fitted, got \(2, 4\)"):
        GaussianDensity().fit(torch.eye(3)).familiarity(torch.zeros(2, 4))
