"""What an estimator of the pool's uncertainty is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import torch
from torch import Tensor, nn

from evidentia._support.checks import check_unit_interval, validation_enabled
from evidentia._support.errors import EvidentiaError
from evidentia._support.registry import Registry
from evidentia._support.scalars import whole_number
from evidentia.learning.checkpoint import check_no_state
from evidentia.learning.modes import evaluating
from evidentia.semisup.augmentation import Augmentation
from evidentia.semisup.inputs.conversion import to_tensor
from evidentia.semisup.networks.features import BATCH

UNCERTAINTIES: Registry[Callable[..., PoolUncertainty]] = Registry("uncertainty of the pool")

Progress: TypeAlias = Callable[[int, int], None]
"""Told the number of steps done and the number of all steps."""


@dataclass(frozen=True, eq=False)
class PoolView:
    """What an estimator may look at.

    Attributes:
        network: gives logits of shape `(B, K)`; in evaluation mode, and to be left as it is.
        labeled: inputs and their classes, 0 to K - 1.
        unlabeled: the pool, shape `(n_u, ...)`.
        num_classes: K.
        augment: how samples are changed without changing their class.
        batch_size: how many samples go through a network at once where all of them do.
        progress: to be told how far it is by an estimator that takes its time.
    """

    network: nn.Module
    labeled: tuple[Tensor, Tensor]
    unlabeled: Tensor
    num_classes: int
    augment: Augmentation
    batch_size: int = BATCH
    progress: Progress | None = None

    def __post_init__(self) -> None:
        """Require samples of one shape, and labels that are classes."""
        _check(self.labeled, self.unlabeled, self.num_classes)


@dataclass(kw_only=True, eq=False)
class PoolUncertainty(ABC):
    r"""How little evidence there is that a sample of the pool belongs to a class: $u_j \in [0, 1]$ (thesis 3.3).

    What is high for samples of no class serves to weigh them down, by the regulariser $\mathrm{Un}(w, u)$ or as
    $w = 1 - u$. Randomness comes from PyTorch's global generator alone.

    One of your own says how by `uncertainty_of`; a function of a `PoolView` does as well where an estimator is asked
    for.

    Attributes:
        refresh: whether u changes as the network learns, so that it is to be estimated again every so often, as it is
            by default; if not, it follows from the data alone and once is enough.
        is_probability: whether u is the probability of being of no class, and not just a score that rises with it.
        uses_features: whether it looks at the network's last hidden layer, for which that must end in an `nn.Linear`.

    Example:
        >>> from evidentia.semisup import AUGMENTATIONS, MLP
        >>> labeled, unlabeled = (torch.randn(6, 2), torch.tensor([0, 1] * 3)), torch.randn(50, 2)
        >>> estimator = UNCERTAINTIES["kernel"]()
        >>> estimator.estimate(MLP(2, 2), labeled, unlabeled, 2, AUGMENTATIONS["vectors"]()).shape
        torch.Size([50])
    """

    refresh: ClassVar[bool] = True
    is_probability: ClassVar[bool] = False
    uses_features: ClassVar[bool] = False

    def estimate(
        self,
        network: nn.Module,
        labeled: tuple[Tensor, Tensor],
        unlabeled: Tensor,
        num_classes: int,
        augment: Augmentation,
        batch_size: int = BATCH,
        progress: Progress | None = None,
    ) -> Tensor:
        """The uncertainty of every sample of the pool, shape `(n_u,)`, in the dtype of the pool.

        Arguments are those of `PoolView`.
        """
        pool = PoolView(network, labeled, unlabeled, num_classes, augment, batch_size, progress)
        what = f"the uncertainty of {self.title}"
        with evaluating(network):
            found = self.uncertainty_of(pool)
        uncertainty = to_tensor(found, what).to(unlabeled)
        if uncertainty.shape != unlabeled.shape[:1]:
            raise EvidentiaError(
                f"{self.title} must give one uncertainty for each of {len(unlabeled)} samples, got shape "
                f"{tuple(uncertainty.shape)}"
            )
        if validation_enabled():
            check_unit_interval(uncertainty, what)
        return uncertainty

    @property
    def title(self) -> str:
        """What the estimator is called where something is wrong with what it gave."""
        return type(self).__name__

    def state_dict(self) -> dict[str, Tensor]:
        """What was found beyond the uncertainty itself, as tensors, for a run that is broken off."""
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take up what `state_dict` gave."""
        check_no_state(self, state, "estimator")

    @abstractmethod
    def uncertainty_of(self, pool: PoolView) -> Any:
        """The uncertainty of every sample of the pool, in [0, 1]: a tensor, an array or a list of `n_u` numbers."""


@dataclass(kw_only=True, eq=False)
class ByFunction(PoolUncertainty):
    """What a function of the user's own says of the pool, asked again every so often.

    Args:
        function: takes a `PoolView`, and gives what `PoolUncertainty.uncertainty_of` does.
    """

    function: Callable[[PoolView], Any]

    @property
    def title(self) -> str:
        """The function's name."""
        return str(getattr(self.function, "__name__", repr(self.function)))

    def uncertainty_of(self, pool: PoolView) -> Any:
        """What the function says."""
        return self.function(pool)


def _check(labeled: tuple[Tensor, Tensor], unlabeled: Tensor, num_classes: int) -> None:
    inputs, classes = labeled
    whole_number(num_classes, "num_classes", 2)
    for name, part in (("labeled", inputs), ("unlabeled", unlabeled)):
        if part.ndim < 2 or not len(part) or not part.is_floating_point():
            raise EvidentiaError(
                f"the {name} samples must be floating numbers of shape (n, ...) with n >= 1, got {part.dtype} of shape "
                f"{tuple(part.shape)}"
            )
    if inputs.shape[1:] != unlabeled.shape[1:]:
        raise EvidentiaError(
            f"labeled and unlabeled samples must be of one shape, got {tuple(inputs.shape[1:])} and "
            f"{tuple(unlabeled.shape[1:])}"
        )
    if classes.shape != inputs.shape[:1] or classes.is_floating_point():
        raise EvidentiaError(
            f"the labels must be {len(inputs)} whole numbers, one a labeled sample, got {classes.dtype} of shape "
            f"{tuple(classes.shape)}"
        )
    if int(classes.min()) < 0 or int(classes.max()) >= num_classes:
        raise EvidentiaError(
            f"the labels must be classes from 0 to {num_classes - 1}, got labels from {int(classes.min())} to "
            f"{int(classes.max())}"
        )


def check_classes(logits: Tensor, num_classes: int) -> Tensor:
    """Require finite logits with one entry a class."""
    if logits.ndim != 2 or logits.shape[1] != num_classes:
        raise EvidentiaError(
            f"the network must give logits of shape (n, {num_classes}) for {num_classes} classes, got shape "
            f"{tuple(logits.shape)}"
        )
    if not bool(torch.isfinite(logits).all()):
        raise EvidentiaError("the network's logits are not finite: it has diverged; lower the learning rate")
    return logits
