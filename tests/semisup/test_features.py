"""Features and logits of many samples."""

from __future__ import annotations

import pytest
import torch

from evidentia import EvidentiaError
from evidentia.semisup import MLP, ROBUST, SemiSupervisedClassifier
from evidentia.semisup.networks.features import BATCH, hidden_and_logits, logits_in_parts, pass_size, pool_features
from evidentia.semisup.presets import usual_settings


def test_parts_make_no_difference_and_the_mode_is_kept():
    net, x = MLP(4, 3, dropout=0.5).train(), torch.randn(10, 4)
    whole, parts = hidden_and_logits(net, x), hidden_and_logits(net, x, batch_size=3)
    assert net.training
    torch.testing.assert_close(whole, parts)
    torch.testing.assert_close(logits_in_parts(net, x, batch_size=4), whole[1])
    net.eval()
    torch.testing.assert_close(pool_features(x, net), net.features(x).detach())
    assert torch.equal(pool_features(x.view(10, 2, 2)), x)


@pytest.mark.parametrize("x", [torch.zeros(0, 4), torch.zeros(4)])
def test_no_samples_are_refused(x):
    for function in (
        lambda: pool_features(x),
        lambda: pool_features(x, MLP(4, 3)),
        lambda: logits_in_parts(MLP(4, 3), x),
    ):
        with pytest.raises(EvidentiaError, match="n >= 1"):
            function()


@pytest.mark.parametrize(
    "robust",
    [ROBUST["uncertainty"](uncertainty=name, refresh_every=1) for name in ("kernel", "evidential", "confidence")]
    + [ROBUST["uasd"](refresh_every=1), ROBUST["meta"](clusters=3, refresh_every=1)],
    ids=["kernel", "evidential", "confidence", "uasd", "meta"],
)
def test_passes_over_the_whole_pool_follow_the_batches_of_training(robust):
    sizes = []

    class Watched(MLP):
        def forward(self, x):
            sizes.append(len(x))
            return super().forward(x)

    x, y = torch.randn(200, 4), torch.arange(100) % 2
    settings = {"updates": 3, "labeled_batch": 2, "unlabeled_batch": 3, "progress": False}
    clf = SemiSupervisedClassifier("pi-model", robust, Watched(4, 2), **settings)
    clf.fit((x[:100], y), x, (x[:100], y))
    assert 3 <= max(sizes) <= 30


def test_the_presets_are_not_slowed_by_small_passes():
    for preset in ("quick", "thesis", "author"):
        settings = usual_settings("mnist", "fixmatch", preset)
        assert pass_size(settings["labeled_batch"] + settings["unlabeled_batch"]) == BATCH
