"""The face of the room: train on few labels and a dirty pool, predict, and see what became of the pool."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from typing_extensions import Self

from evidentia._support.errors import EvidentiaError, NotTrainedError
from evidentia._support.learnt import LearntAttributes
from evidentia._support.settings import refuse_unknown
from evidentia.learning.data import Samples, dtype_of
from evidentia.learning.modes import evaluating
from evidentia.learning.seeding import seeded
from evidentia.prediction import Prediction
from evidentia.semisup.augmentation import Augmentation, Change, as_augmentation, usual_augmentation
from evidentia.semisup.choices import Norm, as_flag, refuse_class
from evidentia.semisup.inputs.arrays import samples_and_classes, training_data
from evidentia.semisup.inputs.form import InputForm, check_layout
from evidentia.semisup.inputs.precision import check_precision
from evidentia.semisup.inputs.scaling import warn_of_scale
from evidentia.semisup.networks.calls import in_full
from evidentia.semisup.networks.features import BATCH, logits_in_parts
from evidentia.semisup.networks.passes import Passes, build_network, check_norm, usual_norm, usual_order
from evidentia.semisup.objectives import OBJECTIVES, Objective
from evidentia.semisup.pool import SemiSupervisedData
from evidentia.semisup.review import PoolReview
from evidentia.semisup.robust import ROBUST, Pool, Robust
from evidentia.semisup.saving import METHODS, SavedClassifier
from evidentia.semisup.scoring import share_right
from evidentia.semisup.training.checks import check_confidence, check_network, divided, put_on
from evidentia.semisup.training.fingerprint import fingerprint
from evidentia.semisup.training.log import check_places, first_look, run_log
from evidentia.semisup.training.loop import Record, SemiSupervisedTraining, Training
from evidentia.semisup.training.words import brief, from_words, words


class SemiSupervisedClassifier(LearntAttributes):
    """Learns classes from a few labels and an unlabeled pool that may hold samples of no class.

    Args:
        objective: what unlabeled samples cost; a name of `evidentia.semisup.OBJECTIVES` or an objective.
        robust: how they are weighed; a name of `evidentia.semisup.ROBUST` or a robust method.
        network: a module that gives logits, of which a copy is trained, a name of `evidentia.semisup.NETWORKS`, or
            None for a LeNet for images and an MLP for anything else. Robust methods that look at features need one that
            ends in an `nn.Linear`. Layers of a module in training mode that are in evaluation mode stay frozen so, as
            batch norms of a pretrained body; a module that is in evaluation mode itself is trained as a whole. Samples
            get its dtype, float32 or float64. Images are of shape (n, C, H, W); grey ones may be (n, H, W), of at
            least 12 x 12, and get a channel of 1, but for a module of your own, which is shown what was given: there
            (n, H, W) may as well be sequences, which are neither shifted nor bent, so give grey images their channel.
        augmentation: a name of `evidentia.semisup.AUGMENTATIONS`, an `Augmentation` or a pair of functions (weak,
            strong); by default that for images if samples are images, and noise for anything else.
        device: where to train; by default where the network is.
        standardise: whether every feature of vectors, every channel of images, is brought to mean 0 and deviation 1
            by statistics of the labeled samples, in `fit` and in `predict`. What is the same in all of them goes by
            statistics of the pool, and is only centred if it is the same there too. Augmentations and networks are made
            for samples of a scale near 1; without it, `fit` warns if the root mean square of the labeled samples is
            above 10, or if they vary by less than 0.05.
        settings: see `evidentia.semisup.SemiSupervisedTraining`: updates, labeled_batch, unlabeled_batch,
            learning_rate, weight_decay, schedule, average, norm, passes, block, seed, checkpoint, log, tensorboard,
            progress.

    Attributes:
        network_: the trained network, in evaluation mode, with averaged weights if there is an average.
        norm_: the batch norm that it was trained with.
        weights_: the weight of every sample of the pool, shape `(n_u,)`, in [0, 1].
        clusters_: the cluster of every sample, if weights are shared by clusters.
        uncertainty_: how little evidence there is for every sample, if the robust method has asked for it.
        history_: what was measured in each block of updates.
        trained_by_: the objective, the robust method and the augmentation in words.
        num_classes: K.
        class_names: names of the classes, or nothing.

    Example:
        >>> from evidentia.semisup import load_pool
        >>> data = load_pool("two-moons", ood="faraway", ratio=0.5)
        >>> clf = SemiSupervisedClassifier(objective="pi-model", updates=150, progress=False)
        >>> clf
        SemiSupervisedClassifier(PiModel(), robust=ByUncertainty(), updates=150, progress=False)
        >>> _ = clf.fit((data.x_labeled, data.y_labeled), data.x_unlabeled)
        >>> clf.predict(data.x_test).probs.shape, clf.weights_.shape
        (torch.Size([1000, 2]), torch.Size([4000]))
        >>> bool(clf.weights_[data.is_ood].mean() < 0.3), clf.score(data.x_test, data.y_test) > 0.8
        (True, True)
    """

    learnt = (
        *("network_", "norm_", "weights_", "clusters_", "uncertainty_", "history_", "trained_by_"),
        *("num_classes", "class_names"),
    )

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
        refuse_unknown(settings, SemiSupervisedClassifier, SemiSupervisedTraining)
        for setting, value in (("objective", objective), ("robust", robust), ("network", network)):
            refuse_class(value, setting)
        self.objective = OBJECTIVES[objective]() if not isinstance(objective, Objective) else objective
        self.robust = ROBUST[robust]() if not isinstance(robust, Robust) else robust
        self.network = network
        self.augmentation = None if augmentation is None else as_augmentation(augmentation)
        self.device = device
        self.standardise = as_flag(standardise, "standardise")
        self.settings = SemiSupervisedTraining(**settings)
        self.network_: nn.Module
        self.norm_: Norm
        self.weights_: Tensor
        self.clusters_: Tensor | None
        self.uncertainty_: Tensor | None
        self.history_: list[Record]
        self.trained_by_: dict[str, str]
        self.num_classes: int
        self.class_names: tuple[str, ...]
        self._review: PoolReview | None = None
        self._pool: dict[str, Tensor] = {}
        self._loaded = False
        self._form = InputForm()

    def fit(
        self, labeled: Any, unlabeled: Any = None, validation: Any = None, *, is_ood: Any = None, **options: Any
    ) -> Self:
        """Train.

        Args:
            labeled: a pair of inputs and classes, a `Dataset` of such pairs, or `SemiSupervisedData` with everything.
            unlabeled: inputs, or a `Dataset`; a label in it is left unread.
            validation: clean labels beyond the labeled ones, in the form of `labeled`, by which meta, ift, l2rw, mwn,
                ds3l and uasd learn weights; by default they do by the labeled samples. For all methods the log tells
                the accuracy on it.
            is_ood: which samples of the pool belong to no class, if known. Only the robust method "oracle" trains with
                it; for all others it goes to the log and to the review of the pool.
            options: `num_classes` and `class_names`, as for `evidentia.semisup.from_arrays`.
        """
        if self._loaded:
            raise EvidentiaError("a loaded classifier is there to predict; make a new one to train")
        check_places(self.settings)
        # Training needs gradients, wherever it is called.
        with torch.inference_mode(False), torch.enable_grad():
            data = training_data(labeled, unlabeled, validation, is_ood, options)
            self._train(data)
        return self

    @torch.no_grad()
    def predict(self, x: Samples, batch_size: int = BATCH) -> Prediction:
        """Class probabilities of samples, in evaluation mode; inputs are converted as those of `fit` are."""
        network = self.network_
        with evaluating(network):
            logits = torch.cat([network(batch) for batch in self._form.batches(x, batch_size, network)])
        return Prediction(in_full(logits).softmax(-1), class_names=self.class_names or None)

    def score(self, x: Any, y: Any = None, batch_size: int = BATCH) -> float:
        """The accuracy, the share of samples whose class is predicted.

        Args:
            x: inputs, as for `predict`; or, without `y`, a pair of inputs and classes or a `Dataset` of such pairs.
            y: their classes, by number or by name as in `fit`.
            batch_size: how many samples are predicted at once.
        """
        if y is None:
            x, y = samples_and_classes(x)
        predicted = self.predict(x, batch_size).labels
        return share_right(predicted, y, self.class_names, self.num_classes)

    def __repr__(self) -> str:
        """The methods, and the settings that differ from the defaults."""
        # Methods of the user's own are not in a file, so that of a loaded classifier there are but words.
        methods = [brief(getattr(self, name)) if hasattr(self, name) else self.trained_by_[name] for name in METHODS]
        objective, robust, augmentation = methods
        usual = {"network": None, "device": None, "standardise": False}
        shown = {name: brief(value) for name in usual if (value := getattr(self, name)) != usual[name]}
        shown |= {} if augmentation == "None" else {"augmentation": augmentation}
        shown |= {name: brief(value) for name, value in self.settings if name in self.settings.changed}
        entries = {"robust": robust, **shown}
        return f"{type(self).__name__}({', '.join([objective, *(f'{name}={text}' for name, text in entries.items())])})"

    def review(self) -> PoolReview:
        """What became of the pool: a table, and with `evidentia.reports.pool_picture` a picture."""
        if self._review is None:
            raise NotTrainedError("this classifier is not trained yet and has no review; call fit first")
        return self._review

    def save(self, path: str | Path) -> None:
        """Save network, settings and what is known of the pool's samples to one file, whole or not at all."""
        SavedClassifier(
            network=self.network_,
            built_as=self.network,
            settings=self.settings.model_copy(update={"norm": self.norm_}),
            trained_by=self.trained_by_,
            num_classes=self.num_classes,
            class_names=self.class_names,
            form=self._form,
            pool=self._pool,
            used=self.review().used,
            history=self.history_,
        ).write(path)

    @classmethod
    def load(cls, path: str | Path, network: nn.Module | None = None) -> Self:
        """Load what `save` wrote, to predict with; nothing in the file can run code.

        Objective, robust method and augmentation are made anew where they are evidentia's own. Classes and functions of
        your own are not in the file: the attribute is then missing, and `trained_by_` has it in words.

        Args:
            path: the file.
            network: a module of the same shape, if the classifier was built with one of your own.
        """
        saved = SavedClassifier.read(path, network)
        clf = cls(network=saved.built_as, standardise=saved.form.scale is not None, **saved.settings.model_dump())
        clf._restore_methods(saved.trained_by)
        clf.network_, clf.history_, clf._review = saved.network, saved.history, saved.review
        clf.norm_ = saved.settings.norm or "batch"
        clf._pool, clf.weights_ = saved.pool, saved.pool["weights"]
        clf.clusters_, clf.uncertainty_ = (saved.pool.get(name) for name in ("clusters", "uncertainty"))
        clf.num_classes, clf.class_names, clf._form = saved.num_classes, saved.class_names, saved.form
        clf._loaded = True
        return clf

    def _train(self, data: SemiSupervisedData) -> None:
        labeled_batch = min(self.settings.labeled_batch, len(data.x_labeled))
        norm = self.settings.norm or usual_norm(self.robust, labeled_batch, self.network, self.settings.passes)
        # With what was chosen, so that a run goes on with it.
        settings = self.settings.model_copy(update={"norm": norm})
        form = InputForm.of(data.sample_shape, self.network, data.columns, data.values)
        if not isinstance(self.network, nn.Module) or self.augmentation is None or self.standardise:
            check_layout(data.sample_shape)
        check_precision(data, self.network)
        if self.standardise:
            form = form.standardising(data)
        data = form.shown(data)
        if not self.standardise:
            warn_of_scale(data.x_labeled)
        with seeded(settings.seed, -2):
            network = build_network(self.network, data.sample_shape, data.num_classes, norm)
        data = data.to(put_on(network, self.device), dtype_of(network))
        labeled = (data.x_labeled, data.y_labeled)
        check_network(network, data.x_labeled, data.num_classes)
        check_norm(self.robust, norm, network)
        last = divided(network, data.x_labeled, self.robust)
        methods = {name: words(getattr(self, name)) for name in METHODS}
        truth, standardise = self.robust.uses_truth, self.standardise
        path = settings.checkpoint
        known_by = fingerprint(methods, settings, network, data, standardise=standardise, truth=truth) if path else {}
        pool = Pool(
            last=last,
            labeled=labeled,
            unlabeled=data.x_unlabeled,
            clean=(data.x_validation, data.y_validation) if data.extra_labels else labeled,
            num_classes=data.num_classes,
            augment=self.augmentation or usual_augmentation(data.sample_shape),
            is_ood=data.is_ood,
        )
        passes = Passes(last, norm, settings.passes or usual_order(norm))
        training = Training(passes, self.objective, self.robust, pool, settings)
        if path is not None and path.exists():
            training.load(path, known_by)
        else:
            with first_look(settings) as progress:
                training.start(progress)
            if path is not None:
                # The look may have taken longer than a block of updates does.
                training.save(path, known_by)
        with run_log(settings, training.history) as tell:

            def after_block(record: Record) -> None:
                if path is not None:
                    training.save(path, known_by)
                tell(record)

            training.run(after_block)
        self._form, self.trained_by_, self.norm_ = form, methods, norm
        self._keep(network, pool, data, training.history)

    def _keep(self, network: nn.Module, pool: Pool, data: SemiSupervisedData, history: list[Record]) -> None:
        self.network_, self.history_ = network, history
        self.weights_, self.clusters_ = pool.weights.per_sample, pool.weights.assignment
        self.uncertainty_ = pool.uncertainty
        self.num_classes, self.class_names = data.num_classes, data.class_names
        confidence, labels = logits_in_parts(network, data.x_unlabeled, pool.batch_size).softmax(-1).max(-1)
        check_confidence(confidence)
        self._review = PoolReview(
            weights=self.weights_,
            labels=labels,
            confidence=confidence,
            uncertainty=self.uncertainty_,
            clusters=self.clusters_,
            is_ood=data.is_ood,
            class_names=data.class_names,
            num_classes=data.num_classes,
            used=self.robust.uses_pool,
            scale=self._form.scale,
        )
        self._pool = self._review.tensors()

    if not TYPE_CHECKING:
        # Hidden from type checkers, which would take any attribute for one that exists.
        def __getattr__(self, name: str) -> Any:
            """Say where the methods are that a file does not hold."""
            if name in METHODS:
                raise AttributeError(
                    f"the {name} of this classifier is not evidentia's own, so the file has it in words only; see "
                    f"trained_by_[{name!r}]"
                )
            return super().__getattr__(name)

    def _restore_methods(self, trained_by: dict[str, str]) -> None:
        self.trained_by_ = trained_by
        for name, kind in METHODS.items():
            restored = from_words(trained_by[name])
            if isinstance(restored, kind) or trained_by[name] == "None":
                setattr(self, name, restored)
            else:
                delattr(self, name)
