"""What a robust method is: the weights of unlabeled samples, before training and at every update of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias, get_args

from torch import Tensor

from evidentia._support.errors import EvidentiaError
from evidentia._support.registry import Registry
from evidentia.learning.checkpoint import check_no_state
from evidentia.semisup.augmentation import Augmentation
from evidentia.semisup.choices import Norm
from evidentia.semisup.hypergradients.hypergradient import InnerProblem, LastLayerProblem
from evidentia.semisup.networks.features import BATCH
from evidentia.semisup.networks.last_layer import LastLayer
from evidentia.semisup.objectives import Consistency, Objective
from evidentia.semisup.uncertainty import Progress
from evidentia.semisup.weights import SampleWeights

ROBUST: Registry[Callable[..., Robust]] = Registry("robust method")

Apply: TypeAlias = Literal["loss", "sample", "keep"]

_ENOUGH_TO_NORMALISE = 32


@dataclass(eq=False)
class Pool:
    """The unlabeled pool in training, and what it is judged by.

    Attributes:
        last: the network that is trained, split at its last layer if it has one.
        labeled: all labeled samples and their classes.
        unlabeled: the pool, shape `(n_u, ...)`.
        clean: the samples that weights are learnt by: the validation set or, if there is none, the labeled set.
        num_classes: K.
        augment: how samples are changed without changing their class.
        is_ood: which samples of the pool belong to no class, if known: for the oracle and for the log.
        weights: the weight of every sample; robust methods move them.
        uncertainty: how little is known of every sample, if the method has asked for it.
        batch_size: how many samples go through the network at once where all of them do.
        progress: told how far a long look at the pool is, while somebody watches.
    """

    last: LastLayer
    labeled: tuple[Tensor, Tensor]
    unlabeled: Tensor
    clean: tuple[Tensor, Tensor]
    num_classes: int
    augment: Augmentation
    is_ood: Tensor | None = None
    weights: SampleWeights = field(init=False)
    uncertainty: Tensor | None = None
    batch_size: int = BATCH
    progress: Progress | None = None

    def __post_init__(self) -> None:
        """Let every sample weigh 1."""
        self.weights = SampleWeights(len(self.unlabeled), device=self.unlabeled.device)

    @property
    def clean_is_labeled(self) -> bool:
        """Whether weights are learnt by the labeled samples themselves."""
        return self.clean is self.labeled


@dataclass(frozen=True)
class Update:
    """One update of training, between the pass through the network and the step of the optimiser.

    Attributes:
        number: of the update, from 0.
        rows: which samples of the pool are in the batch, shape `(B,)`.
        weights: of those samples, as the pass has used them.
        objective: what gives the costs.
        consistency: what it prepared for the batch.
        coefficient: of the unlabeled loss.
        labeled: the labeled batch.
        clean: a batch of clean samples; the labeled batch itself if weights are learnt by labeled samples, or not at
            all by gradients (`Robust.uses_clean`).
        hidden: the last hidden layer of the labeled and of the unlabeled batch.
        costs: of the unlabeled batch, shape `(B,)`, detached.
        concat: whether both batches went through the network together.
    """

    number: int
    rows: Tensor
    weights: Tensor
    objective: Objective
    consistency: Consistency
    coefficient: float
    labeled: tuple[Tensor, Tensor]
    clean: tuple[Tensor, Tensor]
    hidden: tuple[Tensor, Tensor]
    costs: Tensor
    concat: bool

    def problem(self, pool: Pool, weights: Tensor, rate: float, *, joint: bool = False) -> InnerProblem:
        """The update as a function of all parameters of the network."""
        return InnerProblem(
            last=pool.last,
            objective=self.objective,
            consistency=self.consistency,
            coefficient=self.coefficient,
            labeled=self.labeled,
            validation=self.clean,
            weights=weights,
            rate=rate,
            joint=joint,
            concat=self.concat,
        )

    def last_layer_problem(self, pool: Pool, clean: Tensor, rate: float) -> LastLayerProblem:
        """The update as a function of the last layer, from the features that its pass has computed."""
        labeled, unlabeled = self.hidden
        return LastLayerProblem(
            head=pool.last.head,
            objective=self.objective,
            consistency=self.consistency,
            coefficient=self.coefficient,
            labeled=(labeled, self.labeled[1]),
            unlabeled=unlabeled,
            validation=(clean, self.clean[1]),
            weights=self.weights,
            rate=rate,
        )


@dataclass(kw_only=True, eq=False)
class Robust:
    """How unlabeled samples are weighed, so that those of no class do no harm.

    As it stands, every sample weighs what it weighs at the start. Training calls `attach` and `start` once, `refresh`
    every `refresh_every` updates after that, `weigh` in every update, and `finish` after the last. What is remembered
    between them is in the pool and in `state_dict`. Randomness comes from PyTorch's global generator.

    Attributes:
        uses_pool: whether unlabeled samples are trained on at all.
        uses_truth: whether weights follow from which samples are truly OOD.
        uses_clean: whether `weigh` looks at `Update.clean`; if not, no batch of a validation set is drawn for it.
        apply: "loss" multiplies costs by weights, in weighted batch norm also shares of the statistics; "sample" draws
            batches in proportion to the weights, and "keep" evenly from samples of a weight of at least 0.5; every
            sample that is drawn counts in full.
        refresh_every: updates between two calls of `refresh`; 0 for never.
    """

    uses_pool: ClassVar[bool] = True
    uses_truth: ClassVar[bool] = False
    uses_clean: ClassVar[bool] = True
    apply: Apply | None = field(default="loss", init=False)
    refresh_every: int = field(default=0, init=False)

    def last_layer_uses(self) -> dict[str, str]:
        """What the method reads `Update.hidden`, or the pool's last layer, for, and what it would do without.

        Settings as a user writes them, by the setting that needs features. A network that does not end in an
        `nn.Linear` is refused for these before training, and has features of width 0 if there are none.
        """
        return {}

    @property
    def applied(self) -> Apply:
        """How weights are used: as `apply` says, or as goes with the method if that is None."""
        return self.apply or "loss"

    def usual_norm(self, labeled: int) -> Norm:
        """The batch norm that goes with the method, given how many labeled samples a batch has."""
        return "batch"

    def needs_weighted_norm(self) -> str | None:
        """The setting, as a user writes it, for which batch norms must take weights; None if they need not."""
        return None

    def attach(self, pool: Pool) -> None:
        """Called first, also when a broken-off run is taken up: make what states are then loaded into."""

    def start(self, pool: Pool) -> None:
        """Called before the first update, with an untrained network."""

    def refresh(self, pool: Pool) -> None:
        """Called now and then, to look again at the pool with what the network has learnt."""

    def weigh(self, pool: Pool, update: Update) -> Tensor:
        """The weights, shape `(B,)`, that the costs of this update's samples are multiplied by."""
        return update.weights

    def finish(self, pool: Pool) -> None:
        """Called after the last update, to say what is to be known of the weights."""

    def state_dict(self) -> dict[str, Tensor]:
        """What the method remembers beyond the pool's weights, as tensors."""
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take up what `state_dict` gave, after `attach`."""
        check_no_state(self, state, "method")


def norm_of_clean_batches(method: Robust, labeled: int) -> Norm:
    """The batch norm for a method that may leave the samples of no class out of its batches.

    Labeled and unlabeled samples are then best normalised on their own, with running statistics of the labeled ones,
    which nothing has changed. Statistics of fewer than 32 samples are poor, as is known of batch norm (Wu and He, ECCV
    2018), and samples that stay in a batch with a weight of 0 are in its statistics.
    """
    return "frozen" if method.applied != "loss" and labeled >= _ENOUGH_TO_NORMALISE else "batch"


def check_apply(apply: object) -> None:
    """Require one of the ways to use weights."""
    if apply not in get_args(Apply):
        raise EvidentiaError(f"apply must be 'loss', 'sample' or 'keep', got {apply!r}")
