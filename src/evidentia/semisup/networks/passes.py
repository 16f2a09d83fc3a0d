"""How labeled and unlabeled samples go through a network, and what its batch norms make of them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import get_args

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from evidentia._support.errors import EvidentiaError
from evidentia.learning import batch_weights, convert_batch_norm, frozen_statistics
from evidentia.semisup.choices import Norm, Order
from evidentia.semisup.hypergradients.inner_problem import WEIGHTED, Outputs
from evidentia.semisup.networks.last_layer import LastLayer
from evidentia.semisup.networks.models import NETWORKS, SMALLEST_IMAGE
from evidentia.semisup.networks.own_network import training_copy
from evidentia.semisup.networks.second_runs import no_second_runs
from evidentia.semisup.robust import Robust

NORMS: tuple[Norm, ...] = get_args(Norm)


@dataclass(frozen=True)
class Passes:
    """A way to run a network on both batches of an update.

    | norm | order | statistics of a batch | running statistics |
    |---|---|---|---|
    | none | | | |
    | batch | concat | labeled and unlabeled together | of both together |
    | batch | separate | of either batch on its own | of the labeled, then of the unlabeled batch |
    | frozen | separate | of either batch on its own | of the labeled batch alone |
    | weighted | concat | of both together, by weights 1 and w | likewise |
    | weighted | separate | labeled; unlabeled by weights w | of the labeled, then of the unlabeled batch |

    What a consistency objective takes for its targets comes from a pass of the unlabeled batch alone, whatever the
    order. With "separate", the pass that learns has the same statistics. With "concat" and batch norm it has others,
    those of both batches, so that even a sample that is not changed has two predictions: VAT with an epsilon of 0 costs
    more than 0 there, and nothing with "separate".

    Attributes:
        last: the network.
        norm: what its batch norms do; "none" if there are none.
        order: "concat" runs both batches as one, "separate" one after the other.
    """

    last: LastLayer
    norm: Norm
    order: Order

    def __post_init__(self) -> None:
        """Require a way that there is."""
        check_passes(self.norm, self.order)

    def weighing(self, weights: Tensor) -> AbstractContextManager[None]:
        """Inside, weighted batch norms take these weights."""
        return batch_weights(self.last.network, weights) if self.norm == "weighted" else nullcontext()

    def backward(self, loss: Tensor) -> None:
        """The gradients of a loss, and an error if layers are run again for them that would now do something else."""
        harm = {
            "weighted": "would leave out the weights of the samples",
            "frozen": "would bring unlabeled samples into the running statistics",
        }.get(self.norm, "")
        # In evaluation mode, as layers that are frozen by their owner, they do the same each time.
        layers = [layer for layer in self.last.network.modules() if isinstance(layer, _BatchNorm) and layer.training]
        with no_second_runs(layers if harm else [], f"{harm}; take norm='batch'"):
            loss.backward()

    def labeled(self, x: Tensor) -> Outputs:
        """Hidden features and logits of labeled samples alone."""
        return self.last.hidden_and_logits(x)

    def both(self, x: Tensor, unlabeled: Tensor, weights: Tensor) -> tuple[Outputs, Outputs]:
        """Hidden features and logits of a labeled and of an unlabeled batch."""
        count = len(x)
        if self.order == "concat":
            if x.shape[1:] != unlabeled.shape[1:]:
                raise EvidentiaError(
                    f"labeled samples of shape {tuple(x.shape[1:])} cannot be in one pass with unlabeled ones of shape "
                    f"{tuple(unlabeled.shape[1:])}, as the objective gives them; take passes='separate'"
                )
            with self.weighing(torch.cat([weights.new_ones(count), weights])):
                hidden, logits = self.last.hidden_and_logits(torch.cat([x, unlabeled]))
            return (hidden[:count], logits[:count]), (hidden[count:], logits[count:])
        first = self.labeled(x)
        kept = frozen_statistics(self.last.network) if self.norm == "frozen" else nullcontext()
        with kept, self.weighing(weights):
            return first, self.last.hidden_and_logits(unlabeled)


def check_passes(norm: Norm, order: Order) -> None:
    """Require a norm and an order that there are, and that go together."""
    if norm not in NORMS:
        raise EvidentiaError(f"norm must be one of {', '.join(NORMS)}, got {norm!r}")
    if order not in ("concat", "separate"):
        raise EvidentiaError(f"passes must be 'concat' or 'separate', got {order!r}")
    if norm == "frozen" and order == "concat":
        raise EvidentiaError(
            "norm 'frozen' keeps unlabeled samples out of the running statistics, which needs passes 'separate'"
        )


def check_norm(robust: Robust, norm: Norm, network: nn.Module | None = None) -> None:
    """Require batch norms that take weights, if the robust method needs them.

    A network without any is refused as well: what was asked for would do nothing, and nobody would be told.

    Args:
        robust: says whether it does.
        norm: as it is set.
        network: as it was built; by default one of ours, which has batch norm unless the norm is "none".

    Example:
        >>> from evidentia.semisup import Meta
        >>> check_norm(Meta(joint=True), "weighted")
        >>> check_norm(Meta(joint=True), "batch")
        Traceback (most recent call last):
        evidentia._support.errors.EvidentiaError: Meta(joint=True) weighs samples in the statistics of batch norm, which
        norm='batch' does not; take norm='weighted', or leave joint=True out
    """
    if (setting := robust.needs_weighted_norm()) is None:
        return
    told = f"{type(robust).__name__}({setting}) weighs samples in the statistics of batch norm"
    norms = [] if network is None else [layer for layer in network.modules() if isinstance(layer, _BatchNorm)]
    norms = [layer for layer in norms if layer.training or layer.running_mean is None]
    if norm == "none" or (network is not None and not norms):
        raise EvidentiaError(
            f"{told}, and with norm={norm!r} this network has none, or frozen ones alone, so that it would do nothing; "
            f"take norm='weighted' and a network with batch norm to train, or leave {setting} out"
        )
    if (network is None and norm != "weighted") or any(not isinstance(layer, WEIGHTED) for layer in norms):
        raise EvidentiaError(f"{told}, which norm={norm!r} does not; take norm='weighted', or leave {setting} out")


def usual_norm(
    robust: Robust, labeled: int, network: nn.Module | str | None = None, order: Order | None = None
) -> Norm:
    """The batch norm that goes with a robust method, if none is asked for.

    Args:
        robust: what says so, see `Robust.usual_norm`.
        labeled: labeled samples of a batch.
        network: as `build_network` takes it; a module without batch norm has none to be weighed or frozen.
        order: as it is set, for which "frozen" is left alone if it does not go with it.

    Example:
        >>> from evidentia.semisup import ROBUST
        >>> usual_norm(ROBUST["meta"](), labeled=64), usual_norm(ROBUST["uncertainty"](), labeled=64)
        ('weighted', 'frozen')
        >>> usual_norm(ROBUST["uncertainty"](), labeled=64, order="concat")
        'batch'
    """
    norm = robust.usual_norm(labeled)
    plain = isinstance(network, nn.Module) and not any(isinstance(layer, _BatchNorm) for layer in network.modules())
    return "batch" if plain or (norm == "frozen" and order == "concat") else norm


def usual_order(norm: Norm) -> Order:
    """Together, unless running statistics are to be of labeled samples alone."""
    return "separate" if norm == "frozen" else "concat"


def network_name(name: str | None, sample_shape: Sequence[int]) -> str:
    """The name of a network, by default that of one for such samples.

    Example:
        >>> network_name(None, (1, 28, 28)), network_name(None, (2,)), network_name("wrn", (3, 32, 32))
        ('lenet', 'mlp', 'wrn')
    """
    images = len(sample_shape) == 3 and min(sample_shape[1:]) >= SMALLEST_IMAGE
    return name if name is not None else "lenet" if images else "mlp"


def build_network(
    network: nn.Module | str | None, sample_shape: Sequence[int], num_classes: int, norm: Norm
) -> nn.Module:
    """A network to train, with the batch norm that is asked for; a user's own is copied (`training_copy`).

    Args:
        network: a module that gives logits, a name of `evidentia.semisup.NETWORKS`, or None for a LeNet if
            samples are images and an MLP if not.
        sample_shape: of one sample.
        num_classes: K.
        norm: "none" builds a named network without batch norm.

    Example:
        >>> type(build_network(None, (1, 28, 28), 10, "weighted").body[1]).__name__
        'WeightedBatchNorm2d'
    """
    if isinstance(network, nn.Module):
        built = training_copy(network, sample_shape)
    else:
        built = NETWORKS[network_name(network, sample_shape)](
            sample_shape, num_classes, norm="none" if norm == "none" else "batch"
        )
    has_norm = any(isinstance(layer, _BatchNorm) for layer in built.modules())
    if norm == "none" and has_norm:
        raise EvidentiaError("the network has batch norm layers, but norm is 'none'; give a network without them")
    if norm == "weighted" and not has_norm:
        raise EvidentiaError("the network has no batch norm layers to weigh; use norm='none'")
    return convert_batch_norm(built) if norm == "weighted" else built
