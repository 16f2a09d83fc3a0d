"""The face of the room: train on few labels and a dirty pool, predict, and see what became of the pool."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from typing_extensions import Self

from evidentia._support.errors import EvidentiaError, FileFormatError
from evidentia._support.files import load_tensors, save_tensors
from evidentia.learning.checkpoint import digest, part_of
from evidentia.learning.data import Samples, device_of
from evidentia.learning.seeding import seeded
from evidentia.prediction import Prediction
from evidentia.semisup.arrays import from_arrays
from evidentia.semisup.augmentation import Augmentation, Change, as_augmentation
from evidentia.semisup.checks import check_network
from evidentia.semisup.features import logits_in_parts
from evidentia.semisup.inputs import InputForm, check_layout
from evidentia.semisup.last_layer import LastLayer
from evidentia.semisup.log import run_log
from evidentia.semisup.objectives import OBJECTIVES, Objective
from evidentia.semisup.passes import Passes, build_network, network_name, usual_order
from evidentia.semisup.pool import SemiSupervisedData
from evidentia.semisup.review import PoolReview
from evidentia.semisup.robust import ROBUST, Pool, Robust
from evidentia.semisup.training import Record, SemiSupervisedTraining, Training

_KIND = "semi-supervised classifier"


class SemiSupervisedClassifier:
    """Learns classes from a few labels and an unlabeled pool that may hold samples of no class.

    Args:
        objective: what unlabeled samples cost; a name of `evidentia.semisup.OBJECTIVES` or an objective.
        robust: how they are weighed; a name of `evidentia.semisup.ROBUST` or a robust method.
        network: a module that ends in an `nn.Linear` (a copy of it is trained), a name of
            `evidentia.semisup.NETWORKS`, or None for a LeNet for images and an MLP for anything else. Images are of
            shape (n, C, H, W); grey ones may be (n, H, W), of at least 12 x 12, and get a channel of 1, but for a
            module of your own, which is shown what was given.
        augmentation: a name of `evidentia.semisup.AUGMENTATIONS`, an `Augmentation` or a pair of functions (weak,
            strong); by default that for images if samples are images, and noise if they are vectors.
        device: where to train; by default where the network is.
        settings: see `evidentia.semisup.SemiSupervisedTraining`: updates, labeled_batch, unlabeled_batch,
            learning_rate, weight_decay, schedule, average, norm, passes, block, seed, checkpoint, log, tensorboard,
            progress.

    Attributes:
        network_: the trained network, in evaluation mode, with averaged weights if there is an average.
        weights_: the weight of every sample of the pool, shape `(n_u,)`, in [0, 1].
        clusters_: the cluster of every sample, if weights are shared by clusters.
        uncertainty_: how little evidence there is for every sample, if the robust method has asked for it.
        history_: what was measured in each block of updates.

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
        **settings: Any,
    ) -> None:
        self.objective = OBJECTIVES[objective]() if not isinstance(objective, Objective) else objective
        self.robust = ROBUST[robust]() if not isinstance(robust, Robust) else robust
        self.network = network
        self.augmentation = None if augmentation is None else as_augmentation(augmentation)
        self.device = device
        self.settings = SemiSupervisedTraining(**settings)
        self.network_: nn.Module
        self.weights_: Tensor
        self.clusters_: Tensor | None = None
        self.uncertainty_: Tensor | None = None
        self.history_: list[Record] = []
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
        if isinstance(labeled, SemiSupervisedData):
            if unlabeled is not None or validation is not None or is_ood is not None or options:
                raise EvidentiaError("SemiSupervisedData brings its own pool and validation; give nothing else")
            data = labeled
        else:
            if unlabeled is None:
                raise EvidentiaError("there is no unlabeled pool; give one, or train without with EvidentialClassifier")
            data = from_arrays(labeled, unlabeled, validation=validation, is_ood=is_ood, **options)
        self._train(data)
        return self

    @torch.no_grad()
    def predict(self, x: Samples, batch_size: int = 1024) -> Prediction:
        """Class probabilities of samples, in evaluation mode; inputs are converted as those of `fit` are."""
        network = self._trained()
        logits = torch.cat([network(batch) for batch in self._form.batches(x, batch_size, network)])
        return Prediction(logits.softmax(-1), class_names=self.class_names or None)

    def review(self) -> PoolReview:
        """What became of the pool: a table, and with `evidentia.reports.pool_picture` a picture."""
        self._trained()
        if self._review is None:
            raise EvidentiaError("a loaded classifier has no pool; ask the one that was trained for its review")
        return self._review

    def save(self, path: str | Path) -> None:
        """Save network, settings and the pool's weights to one file, whole or not at all."""
        network = self._trained()
        name = None if isinstance(self.network, nn.Module) else network_name(self.network, self._form.network_shape)
        content = {
            "network": name,
            "settings": self.settings.model_dump(mode="json"),
            "trained_by": self._methods(),
            "num_classes": self.num_classes,
            "class_names": list(self.class_names),
            "sample_shape": list(self._form.sample_shape),
            "adds_channel": self._form.adds_channel,
            "history": self.history_,
        }
        tensors = {f"network/{name}": tensor for name, tensor in network.state_dict().items()}
        save_tensors(path, _KIND, tensors | {"weights": self.weights_}, content)

    @classmethod
    def load(cls, path: str | Path, network: nn.Module | None = None) -> Self:
        """Load what `save` wrote, to predict with; nothing in the file can run code.

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
            classes = content["num_classes"]
            trained = build_network(clf.network, form.network_shape, classes, clf.settings.norm).eval()
            trained.load_state_dict(part_of(tensors, "network"))
            clf.weights_, clf.history_ = tensors["weights"], content["history"]
            clf.num_classes, clf.class_names, clf._form = classes, tuple(content["class_names"]), form
        except (KeyError, TypeError, RuntimeError) as error:
            raise FileFormatError(f"{path} does not hold a whole semi-supervised classifier: {error}") from error
        clf.network_, clf._loaded = trained, True
        return clf

    def _train(self, data: SemiSupervisedData) -> None:
        settings = self.settings
        form = InputForm.of(data.sample_shape, self.network)
        if not isinstance(self.network, nn.Module) or self.augmentation is None:
            check_layout(data.sample_shape)
        data = form.shown(data)
        with seeded(settings.seed, -2):
            network = build_network(self.network, data.sample_shape, data.num_classes, settings.norm)
        device = torch.device(self.device) if self.device is not None else device_of(network)
        network.to(device)
        data = data.to(device)
        labeled = (data.x_labeled, data.y_labeled)
        check_network(network, data.x_labeled, data.num_classes)
        fingerprint = self._fingerprint(network, data)
        last = LastLayer(network)
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
            training.load(path, fingerprint)
        else:
            training.start()
        with run_log(settings, training.history) as tell:

            def after_block(record: Record) -> None:
                if path is not None:
                    training.save(path, fingerprint)
                tell(record)

            training.run(after_block)
        self._form = form
        self._keep(network, pool, data, training.history)

    def _keep(self, network: nn.Module, pool: Pool, data: SemiSupervisedData, history: list[Record]) -> None:
        self.network_, self.history_ = network, history
        self.weights_, self.clusters_ = pool.weights.per_sample, pool.weights.assignment
        self.uncertainty_ = pool.uncertainty
        self.num_classes, self.class_names = data.num_classes, data.class_names
        confidence, labels = logits_in_parts(network, data.x_unlabeled).softmax(-1).max(-1)
        self._review = PoolReview(
            weights=self.weights_,
            labels=labels,
            confidence=confidence,
            uncertainty=self.uncertainty_,
            clusters=self.clusters_,
            is_ood=data.is_ood,
            class_names=data.class_names,
        )

    def _trained(self) -> nn.Module:
        if not hasattr(self, "network_"):
            raise EvidentiaError("the classifier is not trained yet; call fit first")
        return self.network_

    def _methods(self) -> dict[str, str]:
        """What the classifier trains by, in words."""
        parts = {"objective": self.objective, "robust": self.robust, "augmentation": self.augmentation}
        return {name: _words(part) for name, part in parts.items()}

    def _fingerprint(self, network: nn.Module, data: SemiSupervisedData) -> dict[str, Any]:
        """What must be the same for an interrupted run to go on."""
        unimportant = {"checkpoint", "log", "tensorboard", "progress"}
        tensors = [data.x_labeled, data.y_labeled, data.x_unlabeled, data.x_validation, data.y_validation]
        if self.robust.uses_truth and data.is_ood is not None:
            tensors.append(data.is_ood)
        return {
            **self._methods(),
            **self.settings.model_dump(mode="json", exclude=unimportant),
            "data": digest(tensors),
            # Before any training: a user's own module brings its weights with it.
            "network": f"{_words(network)} {digest(network.state_dict().values())}",
        }


def _usual_augmentation(sample_shape: Sequence[int]) -> Augmentation:
    return as_augmentation({1: "vectors", 3: "images"}.get(len(sample_shape), "none"))


def _words(part: object) -> str:
    """How something shows itself, without addresses in memory, which differ from run to run."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(part))
