"""Networks that run layers again in the backward pass, where batch weights and other parameters are gone."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from evidentia import EvidentiaError
from evidentia.semisup import ROBUST, SemiSupervisedClassifier, two_moons
from evidentia.semisup.uncertainty import LabeledAgainstUnlabeled

QUICK: dict[str, Any] = {"updates": 4, "unlabeled_batch": 10, "progress": False}
DATA = two_moons("faraway", 0.5, seed=1, unlabeled=20)


class Saving(nn.Module):
    """Keeps what is inside its body for the backward pass, or computes it anew."""

    def __init__(self, norm: nn.Module, saves: bool = True, reentrant: bool = False) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.first, self.body, self.head = nn.Linear(2, 8), nn.Sequential(norm, nn.Tanh()), nn.Linear(8, 2)
        self.saves, self.reentrant = saves, reentrant

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.first(x)
        found = checkpoint(self.body, hidden, use_reentrant=self.reentrant) if self.saves else self.body(hidden)
        logits: Tensor = self.head(found)
        return logits


def trained(network: nn.Module, robust: Any, norm: Any, objective: str = "pi-model") -> SemiSupervisedClassifier:
    return SemiSupervisedClassifier(objective, robust, network, norm=norm, **QUICK).fit(DATA)


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")
@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize(
    ("robust", "norm", "harm"),
    [
        ("none", "frozen", "bring unlabeled samples into the running statistics"),
        ("uncertainty", "frozen", "bring unlabeled samples into the running statistics"),
        ("meta", "weighted", "leave out the weights of the samples"),
    ],
)
def test_weights_and_statistics_that_would_be_gone_are_told_before_the_pool_is_looked_at(
    robust: str, norm: str, harm: str, reentrant: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LabeledAgainstUnlabeled, "uncertainty_of", lambda *_: pytest.fail("looked at the pool"))
    with pytest.raises(EvidentiaError, match=rf"BatchNorm1d\) again in the backward pass.*{harm}; take norm='batch'"):
        trained(Saving(nn.BatchNorm1d(8), reentrant=reentrant), robust, norm)


@pytest.mark.parametrize("robust", ["meta", "ift", "l2rw", "mwn", "ds3l"])
def test_parameters_after_a_step_that_would_be_gone_are_told(robust: str) -> None:
    with pytest.raises(EvidentiaError, match=r"\(LayerNorm\) again.*in place of those after a step; take scope='last'"):
        trained(Saving(nn.LayerNorm(8)), ROBUST[robust](scope="full"), "batch")


@pytest.mark.parametrize("objective", ["pi-model", "vat"])
@pytest.mark.parametrize("robust", ["none", "meta"])
def test_layers_that_do_the_same_each_time_train_as_if_they_had_been_run_once(robust: str, objective: str) -> None:
    one, other = (trained(Saving(nn.LayerNorm(8), saves), robust, "batch", objective) for saves in (True, False))
    for mine, theirs in zip(one.network_.parameters(), other.network_.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs)
    torch.testing.assert_close(one.weights_, other.weights_)


@pytest.mark.parametrize(("robust", "norm"), [("supervised", "frozen"), ("none", "batch")])
def test_batch_norm_alone_is_no_reason(robust: str, norm: str) -> None:
    assert trained(Saving(nn.BatchNorm1d(8)), robust, norm).predict(DATA.x_test).probs.isfinite().all()


def test_frozen_layers_are_no_reason() -> None:
    network = Saving(nn.BatchNorm1d(8).eval())
    network.body.eval()
    assert trained(network, "none", "frozen").predict(DATA.x_test).probs.isfinite().all()
