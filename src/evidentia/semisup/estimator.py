"""The face of the room: train on few labels and a dirty pool, predict, and see what became of the pool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from typing_extensions import Self

from evidentia._support.errors import EvidentiaError, FileFormatError, NotTrainedError
from evidentia._support.files import check_writable, load_tensors, save_tensors
from evidentia.learning.checkpoint import part_of
from evidentia.learning.data import Samples, dtype_of
from evidentia.learning.seeding import seeded
from evidentia.prediction import Prediction
from evidentia.semisup.arrays import training_data
from evidentia.semisup.augmentation import Augmentation, Change, as_augmentation
from evidentia.semisup.checks import check_network, divided, put_on
from evidentia.semisup.features import logits_in_parts
from evidentia.semisup.fingerprint import fingerprint
from evidentia.semisup.inputs import InputForm, check_layout
from evidentia.semisup.log import check_places, run_log
from evidentia.semisup.objectives import OBJECTIVES, Objective
from evidentia.semisup.passes import Passes, build_network, network_name, usual_order
from evidentia.semisup.pool import SemiSupervisedData
from evidentia.semisup.review import PoolReview
from evidentia.semisup.robust import ROBUST, Pool, Robust
from evidentia.semisup.scaling import Scale, warn_of_scale
from evidentia.semisup.training import Record, SemiSupervisedTraining, Training
from evidentia.semisup.words import from_words, words

_KIND = "semi-supervised classifier"
_LEARNT = ("network_", "weights_", "clusters_", "uncertainty_", "history_", "trained_by_")
_METHODS: dict[str, type] = {"objective": Objective, "robust": Robust, "augmentation": Augmentation}


class SemiSupervisedClassifier:
    """Learns classes from a few labels and an unlabeled pool that may hold samples of no class.

    Args:
        objective: what unlabeled samples cost; a name of `evidentia.semisup.OBJECTIVES` or an objective.
        robust: how they are weighed; a name of `evidentia.semisup.ROBUST` or a robust method.
        network: a module that gives logits, of which a copy is trained, a name of `evidentia.semisup.NETWORKS`, or
            None for a LeNet for images and an MLP for anything else. Robust methods that look at features need one that
            ends in an `nn.Linear`. Layers of a module in training mode that are in evaluation mode stay frozen so, as
            batch norms of a pretrained body; a module that is in evaluation mode itself is trained as a whole. Samples
            get its dtype, float32 or float64. Images are of shape (n, C, H, W); grey ones may be (n, H, W), of at
            least 12 x 12, and get a channel of 1, but for a module of your own, which is shown what was given.
        augmentation: a name of `evidentia.semisup.AUGMENTATIONS`, an `Augmentation` or a pair of functions (weak,
            strong); by default that for images if samples are images, and noise if they are vectors.
        device: where to train; by default where the network is.
        standardise: whether every feature of vectors, every channel of images, is brought to mean 0 and deviation 1
            by statistics of labeled samples and pool together (a constant feature is only centred), in `fit` and in
            `predict`. Augmentations and networks are made for samples of a scale near 1; without it, `fit` warns if the
            root mean square of the labeled samples is above 10, or if they vary by less than 0.05.
        settings: see `evidentia.semisup.SemiSupervisedTraining`: updates, labeled_batch, unlabeled_batch,
            learning_rate, weight_decay, schedule, average, norm, passes, block, seed, checkpoint, log, tensorboard,
            progress.

    Attributes:
        network_: the trained network, in evaluation mode, with averaged weights if there is an average.
        weights_: the weight of every sample of the pool, shape `(n_u,)`, in [0, 1].
        clusters_: the cluster of every sample, if weights are shared by clusters.
        uncertainty_: how little evidence there is for every sample, if the robust method has asked for it.
        history_: what was measured in each block of updates.
        trained_by_: the objective, the robust method and the augmentation in words.

    Example:
        >>> from evidentia.semisup import load_pool
        >>> data = load_pool("two-moons", ood="faraway", ratio=0.5)
        >>> clf = SemiSupervisedClassifier(objective="pi-model", updates=150, progress=False)
        >>> _ = clf.fit((data.x_labeled, data.y_labeled), data.x_unlabeled)
        >>> clf.predict(data.x_test).probs.shape, clf.weights_.shape
        (torch.Size([1000, 2]), torch.Size([4000]))
        >>> bool(clf.weights_[data.is_ood].mean() < 0.3)
        True
    """

    def __init__(
        self,
        objective: str | Objective = "fixmatch",
        robust: str | Robust = "uncertainty",
        network: nn.Module | str | None = None,
        augmentation: str | Augmentation | tuple[Change, Change] | None = None,
        device: torch.device | str | None = None,
        standardise: bool = False,
        **settings: Any,
    ) -> None:
        self.objective = OBJECTIVES[objective]() if not isinstance(objective, Objective) else objective
        self.robust = ROBUST[robust]() if not isinstance(robust, Robust) else robust
        self.network = network
        self.augmentation = None if augmentation is None else as_augmentation(augmentation)
        self.device = device
        self.standardise = standardise
        self.settings = SemiSupervisedTraining(**settings)
        self.network_: nn.Module
        self.weights_: Tensor
        self.clusters_: Tensor | None
        self.uncertainty_: Tensor | None
        self.history_: list[Record]
        self.trained_by_: dict[str, str]
        self.num_classes = 0
        self.class_names: tuple[str, ...] = ()
        self._review: PoolReview | None = None
        self._loaded = False
        self._form = InputForm()

    def fit(
        self, labeled: Any, unlabeled: Any = None, validation: Any = None, *, is_ood: Any = None, **options: Any
    ) -> Self:
        """Train.

        Args:
            labeled: a pair of inputs and classes, a `Dataset` of such pairs, or `SemiSupervisedData` with everything.
            unlabeled: inputs, or a `Dataset`; a label in it is left unread.
            validation: clean labels beyond the labeled ones, by which weights are learnt, in the form of `labeled`; by
                default weights are learnt by the labeled samples.
            is_ood: which samples of the pool belong to no class, if known. Only the robust method "oracle" trains with
                it; for all others it goes to the log and to the review of the pool.
            options: `num_classes` and `class_names`, as for `evidentia.semisup.from_arrays`.
        """
        if self._loaded:
            raise EvidentiaError("a loaded classifier is there to predict; make a new one to train")
        check_places(self.settings)
        self._train(training_data(labeled, unlabeled, validation, is_ood, options))
        return self

    @torch.no_grad()
    def predict(self, x: Samples, batch_size: int = 1024) -> Prediction:
        """Class probabilities of samples, in evaluation mode; inputs are converted as those of `fit` are."""
        network = self.network_
        logits = torch.cat([network(batch) for batch in self._form.batches(x, batch_size, network)])
        return Prediction(logits.softmax(-1), class_names=self.class_names or None)

    def review(self) -> PoolReview:
        """What became of the pool: a table, and with `evidentia.reports.pool_picture` a picture."""
        if self._loaded:
            raise EvidentiaError("a loaded classifier has no pool; ask the one that was trained for its review")
        if self._review is None:
            raise NotTrainedError("the classifier is not trained yet and has no review; call fit first")
        return self._review

    def save(self, path: str | Path) -> None:
        """Save network, settings and what is known of the pool's samples to one file, whole or not at all."""
        network = self.network_
        check_writable(path)
        name = None if isinstance(self.network, nn.Module) else network_name(self.network, self._form.network_shape)
        content = {
            "network": name,
            "settings": self.settings.model_dump(mode="json"),
            "trained_by": self.trained_by_,
            "num_classes": self.num_classes,
            "class_names": list(self.class_names),
            "sample_shape": list(self._form.sample_shape),
            "adds_channel": self._form.adds_channel,
            "standardise": self.standardise,
            "history": self.history_,
        }
        tensors = {f"network/{name}": tensor for name, tensor in network.state_dict().items()}
        if (scale := self._form.scale) is not None:
            tensors |= {"scale/mean": scale.mean, "scale/deviation": scale.deviation}
        pool = {"weights": self.weights_, "clusters": self.clusters_, "uncertainty": self.uncertainty_}
        tensors |= {name: tensor for name, tensor in pool.items() if tensor is not None}
        save_tensors(path, _KIND, tensors, content)

    @classmethod
    def load(cls, path: str | Path, network: nn.Module | None = None) -> Self:
        """Load what `save` wrote, to predict with; nothing in the file can run code.

        Objective, robust method and augmentation are made anew where they are evidentia's own. Classes and functions of
        your own are not in the file: the attribute is then missing, and `trained_by_` has it in words.

        Args:
            path: the file.
            network: a module of the same shape, if the classifier was built with one of your own.
        """
        tensors, content = load_tensors(path, _KIND)
        try:
            if (content["network"] is None) == (network is None):
                needed = "the module it was built with" if network is None else "no module"
                raise EvidentiaError(f"{path} needs {needed} as network")
            clf = cls(network=content["network"] if network is None else network, **content["settings"])
            # Files from before grey images got a channel do not say so, and their networks were given none.
            form = InputForm(tuple(content["sample_shape"]), content.get("adds_channel", False))
            # Nor do files from before samples could be standardised.
            if content.get("standardise", False):
                clf.standardise, form = True, replace(form, scale=Scale(**part_of(tensors, "scale")))
            classes = content["num_classes"]
            trained = build_network(clf.network, form.network_shape, classes, clf.settings.norm).eval()
            state = part_of(tensors, "network")
            trained.to(next((each.dtype for each in state.values() if each.is_floating_point()), None))
            trained.load_state_dict(state)
            clf.weights_, clf.history_ = tensors["weights"], content["history"]
            # Files from before clusters and uncertainty were saved have neither.
            clf.clusters_, clf.uncertainty_ = tensors.get("clusters"), tensors.get("uncertainty")
            clf._restore_methods(content["trained_by"])
            clf.num_classes, clf.class_names, clf._form = classes, tuple(content["class_names"]), form
        except (KeyError, TypeError, RuntimeError) as error:
            raise FileFormatError(f"{path} does not hold a whole semi-supervised classifier: {error}") from error
        clf.network_, clf._loaded = trained, True
        return clf

    def _train(self, data: SemiSupervisedData) -> None:
        settings = self.settings
        form = InputForm.of(data.sample_shape, self.network)
        if not isinstance(self.network, nn.Module) or self.augmentation is None or self.standardise:
            check_layout(data.sample_shape)
        if self.standardise:
            form = form.standardising(data)
        data = form.shown(data)
        if not self.standardise:
            warn_of_scale(data.x_labeled)
        with seeded(settings.seed, -2):
            network = build_network(self.network, data.sample_shape, data.num_classes, settings.norm)
        data = data.to(put_on(network, self.device), dtype_of(network))
        labeled = (data.x_labeled, data.y_labeled)
        check_network(network, data.x_labeled, data.num_classes)
        last = divided(network, data.x_labeled, self.robust)
        methods = {name: words(getattr(self, name)) for name in _METHODS}
        truth, standardise = self.robust.uses_truth, self.standardise
        known_by = fingerprint(methods, settings, network, data, standardise=standardise, truth=truth)
        pool = Pool(
            last=last,
            labeled=labeled,
            unlabeled=data.x_unlabeled,
            clean=(data.x_validation, data.y_validation) if data.extra_labels else labeled,
            num_classes=data.num_classes,
            augment=self.augmentation or _usual_augmentation(data.sample_shape),
            is_ood=data.is_ood,
        )
        passes = Passes(last, settings.norm, settings.passes or usual_order(settings.norm))
        training = Training(passes, self.objective, self.robust, pool, settings)
        path = settings.checkpoint
        if path is not None and path.exists():
            training.load(path, known_by)
        else:
            training.start()
        with run_log(settings, training.history) as tell:

            def after_block(record: Record) -> None:
                if path is not None:
                    training.save(path, known_by)
                tell(record)

            training.run(after_block)
        self._form, self.trained_by_ = form, methods
        self._keep(network, pool, data, training.history)

    def _keep(self, network: nn.Module, pool: Pool, data: SemiSupervisedData, history: list[Record]) -> None:
        self.network_, self.history_ = network, history
        self.weights_, self.clusters_ = pool.weights.per_sample, pool.weights.assignment
        self.uncertainty_ = pool.uncertainty
        self.num_classes, self.class_names = data.num_classes, data.class_names
        confidence, labels = logits_in_parts(network, data.x_unlabeled, pool.batch_size).softmax(-1).max(-1)
        self._review = PoolReview(
            weights=self.weights_,
            labels=labels,
            confidence=confidence,
            uncertainty=self.uncertainty_,
            clusters=self.clusters_,
            is_ood=data.is_ood,
            class_names=data.class_names,
        )

    if not TYPE_CHECKING:
        # Hidden from type checkers, which would take any attribute for one that exists.
        def __getattr__(self, name: str) -> Any:
            """Say what to do if what is learnt is asked for before training."""
            if name in _LEARNT:
                raise NotTrainedError(f"the classifier is not trained yet and has no {name}; call fit first")
            if name in _METHODS:
                raise AttributeError(
                    f"the {name} of this classifier is not evidentia's own, so the file has it in words only; see "
                    f"trained_by_[{name!r}]"
                )
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _restore_methods(self, trained_by: dict[str, str]) -> None:
        self.trained_by_ = trained_by
        for name, kind in _METHODS.items():
            restored = from_words(trained_by[name])
            if isinstance(restored, kind) or trained_by[name] == "None":
                setattr(self, name, restored)
            else:
                delattr(self, name)


def _usual_augmentation(sample_shape: Sequence[int]) -> Augmentation:
    return as_augmentation({1: "vectors", 3: "images"}.get(len(sample_shape), "none"))
