"""The objectives that compare two views: Pi-model, mean teacher, FixMatch, UDA and MixMatch."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 (its usual name)

from evidentia import EvidentiaError
from evidentia.semisup import AUGMENTATIONS, Augmentation
from evidentia.semisup.objectives import UDA, FixMatch, MeanTeacher, MixMatch, PiModel

NONE = AUGMENTATIONS["none"]()
DOUBLED = Augmentation(weak=lambda x: x, strong=lambda x: 2 * x)


@pytest.fixture
def logits() -> torch.Tensor:
    return 3 * torch.randn(200, 4)


def test_pi_model_is_the_mean_square_of_the_difference(logits):
    objective = PiModel()
    consistency = objective.prepare(nn.Identity(), logits, DOUBLED)
    expected = ((2 * logits).softmax(-1) - logits.softmax(-1)).square().mean(-1)
    torch.testing.assert_close(objective.per_sample(consistency.inputs, consistency), expected)
    assert objective.weight == 20


@pytest.mark.parametrize("kind", [PiModel, MeanTeacher])
def test_two_views_of_the_same_kind(kind, logits):
    objective = kind(view="weak")
    objective.start(nn.Identity())
    consistency = objective.prepare(nn.Identity(), logits, DOUBLED)
    assert torch.equal(consistency.inputs, logits)
    assert (objective.per_sample(consistency.inputs, consistency) == 0).all()


def test_pi_model_sees_the_difference_that_dropout_makes():
    net, x = nn.Sequential(nn.Dropout(0.5), nn.Linear(8, 3)), torch.randn(50, 8)
    objective = PiModel()
    consistency = objective.prepare(net, x, NONE)
    assert (objective.per_sample(net(consistency.inputs), consistency) > 0).float().mean() > 0.9


def test_the_teacher_is_the_moving_average_of_the_network():
    net, x = nn.Linear(2, 3), torch.randn(5, 2)
    objective = MeanTeacher(decay=0.9)
    objective.start(net)
    weight, bias = net.weight.detach().clone(), net.bias.detach().clone()
    for step in range(30):
        with torch.no_grad():
            for parameter in net.parameters():
                parameter.add_(torch.randn_like(parameter))
        objective.after_step(net)
        decay = min(0.9, 1 - 1 / (step + 2))
        weight, bias = decay * weight + (1 - decay) * net.weight, decay * bias + (1 - decay) * net.bias
    targets = objective.prepare(net, x, NONE).targets
    torch.testing.assert_close(targets, F.linear(x, weight, bias).softmax(-1).detach())


def test_the_thesis_table_is_the_default_of_the_mean_teacher():
    assert (MeanTeacher().weight, MeanTeacher().decay, MeanTeacher().rampup) == (8, 0.95, 0)


def test_a_teacher_without_network_says_so():
    with pytest.raises(EvidentiaError, match="call start"):
        MeanTeacher().prepare(nn.Linear(2, 3), torch.randn(5, 2), NONE)
    with pytest.raises(EvidentiaError, match="call start"):
        MeanTeacher().after_step(nn.Linear(2, 3))


def test_fixmatch_teaches_the_sure_class_of_the_weak_view_to_the_strong_one(logits):
    objective = FixMatch()
    consistency = objective.prepare(nn.Identity(), logits, DOUBLED)
    probs = logits.softmax(-1)
    sure = probs.max(-1).values >= 0.95
    assert sure.any()
    assert not sure.all()
    assert torch.equal(consistency.counts, sure.float())
    costs = objective.per_sample(consistency.inputs, consistency)
    expected = F.cross_entropy(2 * logits, probs.argmax(-1), reduction="none")
    torch.testing.assert_close(costs[sure], expected[sure])
    assert (costs[~sure] == 0).all()


def test_a_sample_below_the_threshold_has_no_gradient():
    z = torch.tensor([[1.0, 0.0], [9.0, 0.0]], requires_grad=True)
    objective = FixMatch()
    consistency = objective.prepare(nn.Identity(), z.detach(), NONE)
    (gradient,) = torch.autograd.grad(objective.per_sample(z, consistency).sum(), z)
    assert (gradient[0] == 0).all()
    assert (gradient[1] != 0).all()


def test_uda_is_the_divergence_from_the_sharpened_prediction(logits):
    objective = UDA(temperature=0.4, threshold=0.8)
    consistency = objective.prepare(nn.Identity(), logits, DOUBLED)
    sure = logits.softmax(-1).max(-1).values >= 0.8
    target = (logits / 0.4).softmax(-1)
    expected = F.kl_div((2 * logits).log_softmax(-1), target, reduction="none").sum(-1) * sure
    torch.testing.assert_close(objective.per_sample(consistency.inputs, consistency), expected, rtol=1e-4, atol=1e-5)


def test_uda_at_temperature_0_is_fixmatch(logits):
    cold, hard = UDA(temperature=1e-3, threshold=0.95), FixMatch()
    one, other = (objective.prepare(nn.Identity(), logits, DOUBLED) for objective in (cold, hard))
    torch.testing.assert_close(cold.per_sample(one.inputs, one), hard.per_sample(other.inputs, other))


def test_mixmatch_averages_its_views_before_it_sharpens():
    x = torch.randn(6, 3)
    seen = []

    def noisy(batch):
        seen.append(batch + torch.randn_like(batch))
        return seen[-1]

    consistency = MixMatch(views=3, temperature=0.5, alpha=0.0).prepare(nn.Identity(), x, Augmentation(noisy))
    assert len(seen) == 3
    mean = sum(view.softmax(-1) for view in seen) / 3
    torch.testing.assert_close(consistency.targets, mean**2 / (mean**2).sum(-1, keepdim=True))
    assert torch.equal(consistency.inputs, seen[0])


def test_a_mixture_is_mostly_its_own_sample():
    # Two samples far apart and nothing else: the mixture tells how much of each there is.
    x = torch.tensor([[0.0, 0.0], [1.0, 1.0]]).repeat(50, 1)
    consistency = MixMatch().prepare(nn.Linear(2, 3), x, NONE)
    assert ((consistency.inputs - x).abs() <= 0.5).all()
    assert (consistency.inputs != x).any()


def test_inputs_and_targets_are_mixed_alike():
    x = torch.zeros(400, 1)
    labeled = torch.ones(400, 1), torch.ones(400, dtype=torch.long)

    class Constant(nn.Module):
        def forward(self, inputs):
            return torch.tensor([9.0, 0.0]).expand(len(inputs), 2)

    consistency = MixMatch(views=1).prepare(Constant(), x, NONE, labeled=labeled)
    own = consistency.targets[consistency.inputs[:, 0] == 0]
    # The share of the labeled partner can be read from the input, and is that of its class in the target.
    share = consistency.inputs[:, 0]
    assert 0.3 < (share > 0).float().mean() < 0.7
    torch.testing.assert_close(consistency.targets[:, 1], share + (1 - share) * own[0, 1])


def test_a_small_alpha_mixes_little():
    x = torch.randn(500, 2)
    gaps = [(MixMatch(alpha=a).prepare(nn.Identity(), x, NONE).inputs - x).norm() for a in (0.0, 0.1, 5.0)]
    assert gaps[0] == 0
    assert gaps[1] < gaps[2]


@pytest.mark.parametrize(
    ("labeled", "message"),
    [
        ((torch.randn(4, 3), torch.zeros(4, dtype=torch.long)), "labeled samples of shape"),
        ((torch.randn(4, 2), torch.zeros(3, dtype=torch.long)), "labeled samples of shape"),
        ((torch.randn(4, 2), torch.full((4,), 2)), "class indices from 0 to 1"),
        ((torch.randn(4, 2), torch.full((4,), -1)), "class indices from 0 to 1"),
        ((torch.randn(4, 2), torch.rand(4)), "class indices from 0 to 1"),
    ],
)
def test_mixmatch_says_what_is_wrong_with_labeled_samples(labeled, message):
    with pytest.raises(EvidentiaError, match=message):
        MixMatch().prepare(nn.Identity(), torch.randn(5, 2), NONE, labeled=labeled)
