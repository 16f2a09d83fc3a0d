"""Features and logits of many samples."""

from __future__ import annotations

import pytest
import torch

from evidentia import EvidentiaError
from evidentia.semisup import MLP
from evidentia.semisup.features import hidden_and_logits, logits_in_parts, pool_features


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
