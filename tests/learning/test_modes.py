"""Evaluation mode is left as it was found, layer by layer."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from evidentia import EvidentiaError
from evidentia.learning.dropout import Dropout
from evidentia.learning.modes import dropping, evaluating, frozen_statistics


def test_every_layer_gets_back_its_own_mode_even_after_an_error():
    first, second = nn.Sequential(nn.Dropout(), nn.Dropout().eval()), nn.Dropout().eval()
    for error in (None, ZeroDivisionError):
        try:
            with evaluating(first, second):
                assert not any(module.training for module in [*first.modules(), second])
                if error:
                    raise error
        except ZeroDivisionError:
            pass
        assert [module.training for module in first.modules()] == [True, True, False]
        assert not second.training


def test_errors_come_through():
    with pytest.raises(ZeroDivisionError), evaluating(nn.Dropout()):
        raise ZeroDivisionError


@pytest.mark.parametrize("kind", [nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, Dropout])
def test_dropout_of_any_kind_goes_on_and_nothing_else(kind):
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3).eval(), kind(0.5).eval(), kind(0.0))
    modes = [module.training for module in net.modules()]
    for error in (None, ZeroDivisionError):
        try:
            with dropping(net):
                assert [layer.training for layer in net] == [False, False, True, False]
                if error:
                    raise error
        except ZeroDivisionError:
            pass
        assert [module.training for module in net.modules()] == modes


def test_without_dropout_nothing_can_go_on():
    for net in (nn.Linear(2, 3), nn.Dropout(0.0)):
        with pytest.raises(EvidentiaError, match="needs a network with dropout layers"), dropping(net):
            pass


def test_running_statistics_of_instance_norm_stay_too():
    norm = nn.InstanceNorm1d(2, track_running_stats=True)
    with frozen_statistics(norm):
        norm(torch.randn(5, 2, 7) + 3)
    assert norm.running_mean.tolist() == [0, 0]
    norm(torch.randn(5, 2, 7) + 3)
    assert norm.running_mean.min() > 0
