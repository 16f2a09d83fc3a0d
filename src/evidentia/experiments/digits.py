"""Handwritten digits with some of them never shown: does the network know what it does not know?

scikit-learn's bundled digits (1,797 images of 8 x 8 pixels). By seed, three digits are held out as out of distribution
(OOD); of the seven others, 20 images a digit are for training, 20 for calibrating decisions, and all the rest for
testing. With so few labels there are mistakes to find.

Two networks of the same architecture, initialisation and batch order are trained alike: a softmax classifier, and an
evidential one (DAEDL, with its default settings). Two tasks: tell wrong test labels from right ones, and tell held-out
digits from known ones. All settings were chosen on other seeds (100 to 119) than the demo shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from evidentia._support.extras import from_extra
from evidentia.evaluation import auroc
from evidentia.learning import EvidentialClassifier, GaussianDensity
from evidentia.opinions import entropy
from evidentia.prediction import Prediction, TriageRule

HELD_OUT = 3
TRAIN_A_CLASS = 20
CALIBRATION_A_CLASS = 20
EPOCHS = 150
LEARNING_RATE = 5e-3
COVERAGE = 0.9

GROUPS = ("right", "wrong", "out of distribution")
TASKS = ("misclassification", "out of distribution")


@dataclass(frozen=True)
class DigitsSplit:
    """Images of shape `(N, 1, 8, 8)` in [0, 1], and the labels of the known digits, renumbered from 0."""

    digits: tuple[str, ...]
    train: tuple[Tensor, Tensor]
    calibration: tuple[Tensor, Tensor]
    test: tuple[Tensor, Tensor]
    unknown: Tensor


@dataclass(frozen=True)
class DigitsRun:
    """What one seed gave.

    Attributes:
        scores: AUROC by score (such as "softmax entropy" or "vacuity") and task.
        accuracy: test accuracy of each network.
        test: the evidential network's prediction for the test images.
        unknown: its prediction for the held-out digits.
        wrong: which test labels are wrong.
        rule: triage thresholds, calibrated to a coverage of 90%.
    """

    seed: int
    split: DigitsSplit
    scores: dict[str, dict[str, float]]
    accuracy: dict[str, float]
    test: Prediction
    unknown: Prediction
    wrong: Tensor
    rule: TriageRule

    def groups(self, name: str) -> dict[str, Tensor]:
        """An uncertainty of the right, the wrong and the out-of-distribution samples."""
        values = self.test[name]
        return dict(zip(GROUPS, (values[~self.wrong], values[self.wrong], self.unknown[name]), strict=True))


def digits_split(seed: int) -> DigitsSplit:
    """Split the digits by seed."""
    with from_extra("scikit-learn", "demo", "the digits data set"):
        from sklearn.datasets import load_digits

    data = load_digits()
    images = torch.as_tensor(data.images / 16, dtype=torch.float32).unsqueeze(1)
    labels = torch.as_tensor(data.target)
    rng = np.random.default_rng(seed)
    held_out = set(rng.permutation(10)[:HELD_OUT].tolist())
    known = [digit for digit in range(10) if digit not in held_out]
    parts: dict[str, list[Tensor]] = {"train": [], "calibration": [], "test": []}
    bounds = np.cumsum([0, TRAIN_A_CLASS, CALIBRATION_A_CLASS])
    for digit in known:
        rows = rng.permutation(np.flatnonzero(data.target == digit))
        pieces = np.split(rows, bounds[1:])
        for part, piece in zip(parts.values(), pieces, strict=True):
            part.append(torch.as_tensor(piece))
    index_of = {digit: index for index, digit in enumerate(known)}

    def samples(rows: list[Tensor]) -> tuple[Tensor, Tensor]:
        chosen = torch.cat(rows)
        return images[chosen], torch.tensor([index_of[int(label)] for label in labels[chosen]])

    unknown = torch.tensor([int(label) in held_out for label in labels])
    return DigitsSplit(
        digits=tuple(str(digit) for digit in known),
        train=samples(parts["train"]),
        calibration=samples(parts["calibration"]),
        test=samples(parts["test"]),
        unknown=images[unknown],
    )


def run_seed(seed: int) -> DigitsRun:
    """Train both networks on one split and score them on both tasks."""
    split = digits_split(seed)
    softmax = _train("softmax", seed, split)
    evidential = _train("daedl", seed, split)

    x, y = split.test
    test, unknown = evidential.predict(x), evidential.predict(split.unknown)
    plain, plain_unknown = softmax.predict(x), softmax.predict(split.unknown)
    wrong, plain_wrong = test.labels != y, plain.labels != y
    # A softmax network given the same density of its own features: what the density does by itself.
    dense, dense_unknown = _density_scaled(softmax, split, x), _density_scaled(softmax, split, split.unknown)
    scores = {
        "softmax entropy": _auroc(plain["entropy"], plain_unknown["entropy"], plain_wrong),
        "softmax entropy, density-scaled": _auroc(dense, dense_unknown, plain_wrong),
    }
    for name in ("vacuity", "dissonance", "entropy", "aleatoric", "epistemic"):
        scores[name] = _auroc(test[name], unknown[name], wrong)
    without = [evidential.predict_with(evidential, part) for part in (x, split.unknown)]
    for name in ("vacuity", "dissonance"):
        scores[f"{name}, without density"] = _auroc(without[0][name], without[1][name], wrong)
    return DigitsRun(
        seed=seed,
        split=split,
        scores=scores,
        accuracy={
            "softmax": float((~plain_wrong).double().mean()),
            "evidential": float((~wrong).double().mean()),
        },
        test=test,
        unknown=unknown,
        wrong=wrong,
        rule=TriageRule.calibrate(evidential.predict(split.calibration[0]), coverage=COVERAGE),
    )


def run_digits(seeds: Iterable[int], after_each: Callable[[DigitsRun], None] | None = None) -> list[DigitsRun]:
    """Run several seeds, calling `after_each` when one is done."""
    runs = []
    for seed in seeds:
        runs.append(run_seed(seed))
        if after_each is not None:
            after_each(runs[-1])
    return runs


def _train(method: str, seed: int, split: DigitsSplit) -> EvidentialClassifier:
    classes = len(split.digits)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        backbone = nn.Sequential(
            *(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            nn.Flatten(),
        )
        head = nn.Sequential(*(nn.Dropout(0.2), nn.Linear(128, 64), nn.ReLU()), nn.Dropout(0.2), nn.Linear(64, classes))
    model = EvidentialClassifier(backbone, classes, method, head=head, class_names=split.digits)
    return model.fit(*split.train, epochs=EPOCHS, learning_rate=LEARNING_RATE, seed=seed, progress=False)


@torch.no_grad()
def _density_scaled(model: EvidentialClassifier, split: DigitsSplit, x: Tensor) -> Tensor:
    """Entropy of the softmax after scaling the logits by the familiarity of the features."""
    density = GaussianDensity().fit(model.features(split.train[0]), split.train[1])
    scaled = model(x) * density.familiarity(model.features(x)).unsqueeze(-1)
    return entropy(scaled.softmax(-1))


def _auroc(test: Tensor, unknown: Tensor, wrong: Tensor) -> dict[str, float]:
    """How well a score tells wrong from right labels, and unknown from known digits."""
    is_unknown = torch.cat([torch.zeros(len(test)), torch.ones(len(unknown))]).long()
    found = auroc(test, wrong.long()), auroc(torch.cat([test, unknown]), is_unknown)
    return dict(zip(TASKS, map(float, found), strict=True))
