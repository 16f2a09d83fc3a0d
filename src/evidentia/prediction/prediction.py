"""One result type for the whole library: what was predicted, how unsure it is, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor

from evidentia._support.checks import (
    TensorLike,
    as_array,
    as_float_tensor,
    check_adds_to_one,
    check_class_names,
    check_unit_interval,
    validation_enabled,
)
from evidentia._support.errors import EvidentiaError, FileFormatError
from evidentia._support.extras import from_extra
from evidentia._support.files import load_tensors, save_tensors
from evidentia.opinions import BinomialOpinion, HyperOpinion, MultinomialOpinion, Opinion, entropy, uncertainties
from evidentia.prediction.triage import Triage, TriageRule

if TYPE_CHECKING:
    import pandas as pd

Task = Literal["multiclass", "binary", "multilabel"]

_KIND = "prediction"


class Prediction:
    """Class probabilities, labels, opinion and uncertainties of N samples.

    Args:
        probs: shape `(N, K)` for multi-class (rows add up to 1) and multi-label tasks, `(N,)` for binary ones.
        opinion: the opinions behind them, of batch shape `(N,)`, or `(N, K)` for multi-label tasks; None where a
            method has none.
        uncertainties: further uncertainties by name, shape `(N,)`, or `(N, K)` for multi-label tasks; they take
            the place of those that the opinion gives under the same name.
        task: "multiclass", "binary" or "multilabel".
        class_names: a name for each class; for a binary task those of the negative and the positive class.

    Example:
        >>> import evidentia as ev
        >>> opinion = ev.MultinomialOpinion.from_evidence([[30.0, 1.0], [9.0, 9.0], [0.0, 0.0]])
        >>> pred = ev.Prediction(opinion.projected, opinion, class_names=["cat", "dog"])
        >>> pred
        Prediction(3 samples, 2 classes; mean vacuity 0.387, dissonance 0.320, entropy 0.777, ...)
        >>> pred["vacuity"]
        tensor([0.0606, 0.1000, 1.0000])
        >>> pred.triage(vacuity=0.5, dissonance=0.5).names
        ['accept', 'ask: conflicting evidence', 'abstain: no evidence']
    """

    task: Task
    probs: Tensor
    opinion: Opinion | None
    uncertainties: dict[str, Tensor]
    class_names: tuple[str, ...]

    def __init__(
        self,
        probs: TensorLike,
        opinion: Opinion | None = None,
        uncertainties: Mapping[str, TensorLike] | None = None,
        task: Task = "multiclass",
        class_names: Sequence[str] | None = None,
    ) -> None:
        if isinstance(probs, Opinion):
            raise EvidentiaError("an opinion goes beside its probabilities: Prediction(opinion.projected, opinion)")
        self._set(as_float_tensor(probs, "probabilities"), opinion, {}, task, class_names)
        if validation_enabled():
            check_unit_interval(self.probs, "probabilities")
            if task == "multiclass":
                check_adds_to_one(self.probs.sum(-1), self.num_classes, "the probabilities of a sample")
        if not isinstance(uncertainties, Mapping | None):
            raise EvidentiaError(
                f"uncertainties must be a mapping of names to values, got {type(uncertainties).__name__}; give such as "
                "{'vacuity': values}"
            )
        given = {name: as_float_tensor(values, name) for name, values in (uncertainties or {}).items()}
        self.uncertainties = _measure(self.probs, opinion, task) | given
        self._check_shapes()

    def _set(
        self,
        probs: Tensor,
        opinion: Opinion | None,
        uncertainties: dict[str, Tensor],
        task: Task,
        class_names: Sequence[str] | None,
    ) -> None:
        if not isinstance(opinion, Opinion | None):
            raise EvidentiaError(f"opinion must be an opinion of evidentia, got {type(opinion).__name__}")
        self.task = task
        self.probs = probs
        self.opinion = opinion
        self.uncertainties = uncertainties
        self._check_shapes()
        self.class_names = class_names_for(self.num_classes, class_names)

    @classmethod
    def _of_parts(cls, *parts: Any) -> Prediction:
        """A prediction whose values were checked and whose uncertainties were measured before."""
        prediction = cls.__new__(cls)
        prediction._set(*parts)
        return prediction

    @property
    def num_classes(self) -> int:
        """The number of classes; 2 for a binary task."""
        return 2 if self.task == "binary" else self.probs.shape[-1]

    @property
    def labels(self) -> Tensor:
        """The predicted class of each sample; for a multi-label task 0 or 1 for each sample and class."""
        if self.task == "multiclass":
            return self.probs.argmax(-1)
        return (self.probs > 0.5).long()

    @property
    def confidence(self) -> Tensor:
        """The probability of the predicted label."""
        if self.task == "multiclass":
            return self.probs.amax(-1)
        return torch.maximum(self.probs, 1 - self.probs)

    def __len__(self) -> int:
        return len(self.probs)

    def __getitem__(self, key: Any) -> Any:
        """An uncertainty by its name, or the samples at an index, slice or mask as another prediction."""
        if isinstance(key, str):
            if key not in self.uncertainties:
                raise KeyError(f"there is no uncertainty {key!r} here; there are: {', '.join(self.uncertainties)}")
            return self.uncertainties[key]
        try:
            position = index(key)
        except TypeError:
            pass
        else:
            if not -len(self) <= position < len(self):
                raise IndexError(f"there is no sample {position}; there are {len(self)}")
            key = slice(position, position + 1 or None)
        if isinstance(key, tuple):
            raise EvidentiaError("a prediction is indexed by samples only; index its probabilities for classes")
        return self._of_parts(
            self.probs[key],
            None if self.opinion is None else self.opinion[key],
            {name: values[key] for name, values in self.uncertainties.items()},
            self.task,
            self.class_names,
        )

    def __iter__(self) -> Iterator[Prediction]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        shown = [f"{name} {float(values.detach().mean()):.3f}" for name, values in list(self.uncertainties.items())[:3]]
        more = ", ..." if len(self.uncertainties) > 3 else ""
        means = f"; mean {', '.join(shown)}{more}" if len(self) else ""
        task = "" if self.task == "multiclass" else f" ({self.task})"
        return f"Prediction({len(self)} samples, {self.num_classes} classes{task}{means})"

    def triage(self, rule: TriageRule | None = None, **thresholds: float) -> Triage:
        """Decide for each sample whether to accept its label, to abstain or to ask.

        Args:
            rule: thresholds calibrated by `TriageRule.calibrate`.
            thresholds: or thresholds by the name of the uncertainty: vacuity, dissonance, vagueness.
        """
        if (rule is None) == (not thresholds):
            raise EvidentiaError("triage needs either a rule or thresholds, such as triage(vacuity=0.5)")
        if not isinstance(rule, TriageRule | None):
            raise EvidentiaError(
                f"triage needs a rule of TriageRule.calibrate, got {rule!r}; thresholds have names, as in "
                "triage(vacuity=0.5)"
            )
        return (rule or TriageRule.of(thresholds)).apply(self.uncertainties)

    def to_frame(self) -> pd.DataFrame:
        """A pandas table with a row a sample (multi-label: a row a sample and class).

        Columns: the predicted label, its probability, the probability of every class, and every uncertainty.
        """
        with from_extra("pandas", "report", "a table of predictions"):
            import pandas as pd

        def column(values: Tensor) -> Any:
            return as_array(values).reshape(-1)

        table: dict[str, Any] = {}
        if self.task == "multilabel":
            table["sample"] = column(torch.arange(len(self)).repeat_interleave(self.num_classes))
            table["class"] = self.class_names * len(self)
            table["label"] = column(self.labels)
            table["probability"] = column(self.probs)
        else:
            table["label"] = [self.class_names[label] for label in column(self.labels)]
            table["confidence"] = column(self.confidence)
            probs = self.probs if self.task == "multiclass" else torch.stack([1 - self.probs, self.probs], -1)
            for name, values in zip(self.class_names, probs.unbind(-1), strict=True):
                table[f"p({name})"] = column(values)
        table.update({name: column(values) for name, values in self.uncertainties.items()})
        frame: pd.DataFrame = pd.DataFrame(table)
        return frame

    def save(self, path: str | Path) -> None:
        """Save to one file, whole or not at all."""
        tensors = {"probs": self.probs}
        tensors |= {f"uncertainty/{name}": values for name, values in self.uncertainties.items()}
        content: dict[str, Any] = {
            "task": self.task,
            "class_names": list(self.class_names),
            "uncertainties": list(self.uncertainties),
            "opinion": None,
        }
        if self.opinion is not None:
            tensors |= {f"opinion/{name}": getattr(self.opinion, name) for name in self.opinion._fields}
            settings = {name: getattr(self.opinion, name) for name in self.opinion._settings}
            content["opinion"] = {"kind": type(self.opinion).__name__, "settings": settings}
        save_tensors(path, _KIND, tensors, content)

    @classmethod
    def load(cls, path: str | Path) -> Prediction:
        """Load what `save` wrote; nothing in the file can run code."""
        tensors, content = load_tensors(path, _KIND)
        try:
            # Listed apart, because tensors come back in the order of their names.
            found = {name: tensors[f"uncertainty/{name}"] for name in content["uncertainties"]}
            fields = {key.split("/", 1)[1]: value for key, value in tensors.items() if key.startswith("opinion/")}
            opinion = _build_opinion(content["opinion"], fields) if content["opinion"] else None
            return cls._of_parts(tensors["probs"], opinion, found, content["task"], content["class_names"])
        except (KeyError, TypeError, EvidentiaError) as error:
            raise FileFormatError(f"{path} does not hold a whole prediction: {error}") from error

    @classmethod
    def cat(cls, predictions: Sequence[Prediction]) -> Prediction:
        """Join predictions of several batches into one."""
        if not predictions:
            raise EvidentiaError("at least one prediction is needed, got none")
        first = predictions[0]
        for other in predictions[1:]:
            for name, describe in _ALIKE.items():
                if (mine := describe(first)) != (its := describe(other)):
                    raise EvidentiaError(f"predictions must have the same {name} to be joined, got {mine} and {its}")
        opinions = [prediction.opinion for prediction in predictions if prediction.opinion is not None]
        return cls._of_parts(
            torch.cat([prediction.probs for prediction in predictions]),
            type(opinions[0]).cat(opinions) if opinions else None,
            {name: torch.cat([p.uncertainties[name] for p in predictions]) for name in first.uncertainties},
            first.task,
            first.class_names,
        )

    def _check_shapes(self) -> None:
        expected = {"multiclass": 2, "binary": 1, "multilabel": 2}
        if self.task not in expected:
            raise EvidentiaError(f"task must be one of {', '.join(expected)}, got {self.task!r}")
        if self.probs.ndim != expected[self.task]:
            raise EvidentiaError(
                f"a {self.task} prediction needs probabilities of {expected[self.task]} dimensions, "
                f"got shape {tuple(self.probs.shape)}{_several(self.probs, expected[self.task])}"
            )
        shape = self.probs.shape if self.task == "multilabel" else self.probs.shape[:1]
        given = {name: values.shape for name, values in self.uncertainties.items()}
        if self.opinion is not None:
            given["opinion"] = self.opinion.shape
        for name, found in given.items():
            if found != shape:
                raise EvidentiaError(
                    f"{name} needs shape {tuple(shape)} to match the probabilities, got {tuple(found)}"
                )


def _several(probs: Tensor, dimensions: int) -> str:
    """What to do with several predictions of each sample, as dropout or an ensemble gives."""
    if probs.ndim != dimensions + 1 or dimensions == 1:
        return ""
    return (
        "; of several predictions of each sample, with these in the first dimension, give the mean and what they tell: "
        "Prediction(members.mean(0), uncertainties=evidentia.uncertainties(members))"
    )


# What predictions must have in common to be joined.
_ALIKE: dict[str, Callable[[Prediction], Any]] = {
    "task": lambda prediction: prediction.task,
    "class names": lambda prediction: prediction.class_names,
    "kind of opinion": lambda prediction: type(prediction.opinion).__name__,
    "uncertainties": lambda prediction: sorted(prediction.uncertainties),
}


def _measure(probs: Tensor, opinion: Opinion | None, task: Task) -> dict[str, Tensor]:
    if opinion is not None:
        return uncertainties(opinion)
    if task == "multiclass":
        return {"entropy": entropy(probs)}
    return {"entropy": entropy(torch.stack([1 - probs, probs], -1))}


def class_names_for(num_classes: int, names: Sequence[str] | None = None) -> tuple[str, ...]:
    """A name for each class: those given, or their numbers.

    Example:
        >>> class_names_for(2), class_names_for(2, ["cat", "dog"])
        (('0', '1'), ('cat', 'dog'))
    """
    if names is None:
        return tuple(str(k) for k in range(num_classes))
    check_class_names(names)
    given = tuple(str(name) for name in names)
    if len(given) != num_classes:
        raise EvidentiaError(f"class_names needs {num_classes} names, got {len(given)}")
    if len(set(given)) < len(given):
        raise EvidentiaError(f"class_names must differ from each other, got {', '.join(given)}")
    return given


def _build_opinion(content: dict[str, Any], fields: dict[str, Any]) -> Opinion:
    kinds: dict[str, Any] = {kind.__name__: kind for kind in (BinomialOpinion, MultinomialOpinion, HyperOpinion)}
    if content["kind"] not in kinds:
        raise FileFormatError(f"there is no kind of opinion named {content['kind']!r}")
    opinion: Opinion = kinds[content["kind"]](**fields, **content["settings"], validate=False)
    return opinion
