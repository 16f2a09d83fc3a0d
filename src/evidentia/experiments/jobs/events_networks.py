"""Trained networks of event studies, each trained once: methods that differ in their heads only share one.

What a network says of the validation and test clips is kept in a folder `event-networks` of the cache folder
(`$EVIDENTIA_CACHE`, else `~/.cache/evidentia`), under a hash of its training's configuration, seed and code. A training
that is killed goes on from its last epoch.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from evidentia._support.download import cache_folder
from evidentia._support.files import load_tensors, save_tensors
from evidentia._support.locks import lock_file
from evidentia.evaluation import EventTruth
from evidentia.events import Clip, EventDetector, beta_from_probability, make_network
from evidentia.events.data.by_name import data_version, load_clips
from evidentia.events.monte_carlo_dropout import dropout_samples
from evidentia.events.training.fitting import prepared
from evidentia.events.training.loop import train
from evidentia.experiments.code_version import code_version
from evidentia.opinions import BinomialOpinion, aleatoric, entropy, epistemic

HELD_OUT = ("validation", "test")
_MEASURES = {"epistemic": epistemic, "aleatoric": aleatoric}
_KIND = "outputs of an event network"
_TRUTH = ("clip", "label", "onset", "offset", "lengths")


class Outputs(NamedTuple):
    """What a network says of clips, and what is true of them."""

    alpha: Tensor
    """Evidence for each class plus 1, shape `(N, T, K)`."""
    beta: Tensor
    """Evidence against."""
    truth: EventTruth
    """The events of the N clips."""
    sampled: Mapping[str, Tensor] = MappingProxyType({})
    """Epistemic and aleatoric uncertainty by name, shape `(N, T, K)`, if the evidence is the mean of samples."""

    def uncertainty(self, measure: str) -> Tensor:
        """An uncertainty of every segment and class in bits, shape `(N, T, K)`; `entropy` is always to be had."""
        return (
            entropy(BinomialOpinion.from_beta(self.alpha, self.beta)) if measure == "entropy" else self.sampled[measure]
        )

    def within(self, measure: str, limit: float) -> tuple[Tensor, Tensor]:
        """Alpha and beta, with a probability of 0 wherever an uncertainty is not below a limit."""
        if limit == math.inf:
            return self.alpha, self.beta
        settled = self.uncertainty(measure) < limit
        never = beta_from_probability(torch.zeros_like(self.alpha))
        return torch.where(settled, self.alpha, never[0]), torch.where(settled, self.beta, never[1])


@dataclass(frozen=True)
class Training:
    """One training of one network: all that it depends on.

    Attributes:
        settings: of `EventDetector`.
        data: a name of `evidentia.events.data.by_name.DATASETS`.
        seed: of clips and training.
        clips: how many to train on; as many as the data have if None.
        held_out: how many to set thresholds on, and how many to test with.
        data_root: the folder that the data are in; what is in it counts only where it is the user's own making.
        start: the training whose network this one starts from.
    """

    settings: Mapping[str, Any]
    data: str
    seed: int
    clips: int | None = None
    held_out: int | None = None
    data_root: str | None = None
    start: Training | None = None

    @property
    def key(self) -> str:
        """A hash of all that it depends on, the code that trains and samples included."""
        behind = (EventDetector, train, make_network, load_clips, prepared, dropout_samples)
        code = [code_version(part) for part in behind]
        content = [dict(self.settings), self.data, self.seed, self.clips, self.held_out, code]
        content += [data_version(self.data, self.data_root)]
        content += [] if self.start is None else [self.start.key]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:24]

    def part(self, name: str) -> list[Clip]:
        """The clips of a part."""
        count = self.clips if name == "train" else self.held_out
        return load_clips(self.data, name, count=count, seed=self.seed, data_root=self.data_root)


def trained_outputs(training: Training, sampled: bool = False) -> dict[str, Outputs]:
    """What a network says of the `validation` and `test` clips; it is trained if that has not been done yet.

    Args:
        training: which network.
        sampled: by Monte Carlo dropout: the mean of several passes, and the uncertainties that they show.
    """
    variant = "sampled" if sampled else "plain"
    with _locked(_file(training, "lock")):
        # The last part is written last: where it is, all are.
        if not _file(training, variant, HELD_OUT[-1]).exists():
            detector = _trained(training)
            for part in HELD_OUT:
                clips = training.part(part)
                found = _sampled(detector, clips, training.seed) if sampled else _plain(detector, clips)
                _save(_file(training, variant, part), found)
    return {part: _load(_file(training, variant, part)) for part in HELD_OUT}


def trained_detector(training: Training) -> EventDetector:
    """The network itself, as a detector with settings of its own; trained if that has not been done yet."""
    with _locked(_file(training, "lock")):
        return _trained(training)


def _trained(training: Training) -> EventDetector:
    path = _file(training, "detector")
    if path.exists():
        return EventDetector.load(path)
    checkpoint = path.with_suffix(".checkpoint")
    settings = {**training.settings, "seed": training.seed, "checkpoint": checkpoint, "progress": False}
    settings["start"] = None if training.start is None else trained_detector(training.start)
    detector = EventDetector(**settings).fit(training.part("train"), training.part("validation"))
    detector.save(path)
    checkpoint.unlink(missing_ok=True)
    return detector


def _plain(detector: EventDetector, clips: Sequence[Clip]) -> Outputs:
    alpha, beta, _ = detector.beta(clips)
    return Outputs(alpha, beta, detector.truth(clips))


def _sampled(detector: EventDetector, clips: Sequence[Clip], seed: int) -> Outputs:
    truth, frames = detector.truth(clips), [detector.inputs_.frames(clip) for clip in clips]
    loss, activation = detector.settings.loss, detector.settings.activation
    samples = dropout_samples(detector.network_, frames, truth.lengths, loss=loss, activation=activation, seed=seed)
    both = torch.stack([1 - samples, samples], -1)
    uncertainties = {name: measure(both) for name, measure in _MEASURES.items()}
    return Outputs(*beta_from_probability(samples.mean(0)), truth, uncertainties)


def _file(training: Training, *what: str) -> Path:
    return cache_folder() / "event-networks" / ".".join([training.key, *what])


def _save(path: Path, outputs: Outputs) -> None:
    truth = outputs.truth
    tensors = {"alpha": outputs.alpha, "beta": outputs.beta, **{name: getattr(truth, name) for name in _TRUTH}}
    content = {"num_classes": truth.num_classes, "segment": truth.segment}
    save_tensors(path, _KIND, {**tensors, **outputs.sampled}, content)


def _load(path: Path) -> Outputs:
    tensors, content = load_tensors(path, _KIND)
    clip, label, onset, offset, lengths = (tensors[name] for name in _TRUTH)
    truth = EventTruth(clip, label, onset, offset, lengths, content["num_classes"], content["segment"])
    sampled = {name: tensors[name] for name in _MEASURES if name in tensors}
    return Outputs(tensors["alpha"], tensors["beta"], truth, sampled)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One process at a time; the system lets go of the lock when its holder ends, however that comes about."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o644)
    try:
        lock_file(handle)
        yield
    finally:
        os.close(handle)
