"""Draws the pictures of the site while it is built, each for light and for dark paper, with evidentia's own plots."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib
import torch
from matplotlib.figure import Figure
from mkdocs.structure.files import File, Files
from sklearn.datasets import load_digits

import evidentia as ev
from evidentia.opinions import averaging_fusion, cumulative_fusion
from evidentia.reports import (
    new_axes,
    plot_histograms,
    plot_opinion_triangle,
    plot_reliability,
    plot_risk_coverage,
    plot_roc,
    plot_simplex,
    save_figure,
)

# The theme's own colours of paper and ink.
_PAPERS = {"light": ("#ffffff", "#212121"), "dark": ("#1e2129", "#d5d7e2")}

_SHOWN = ("vacuity", "dissonance", "entropy")

FIGURES: dict[str, Callable[[], Figure]] = {}


def on_files(files: Files, *, config: Any) -> Files:
    """Add every picture to the files of the site."""
    for theme, (paper, ink) in _PAPERS.items():
        with matplotlib.rc_context(_settings(paper, ink)):
            for name, draw in FIGURES.items():
                files.append(File.generated(config, f"figures/{name}-{theme}.svg", content=_svg(draw())))
    return files


def _settings(paper: str, ink: str) -> dict[str, str]:
    grounds = ("figure.facecolor", "axes.facecolor", "savefig.facecolor")
    lines = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    return dict.fromkeys(grounds, paper) | dict.fromkeys(lines, ink)


def _svg(figure: Figure) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "figure.svg"
        save_figure(figure, path)
        return path.read_bytes()


def figure(draw: Callable[[], Figure]) -> Callable[[], Figure]:
    """Register a picture under the name of its function."""
    FIGURES[draw.__name__.replace("_", "-")] = draw
    return draw


@figure
def opinion_triangle() -> Figure:
    """One opinion with its base rate and projector."""
    return plot_opinion_triangle(ev.BinomialOpinion(0.4, 0.1, 0.5, base_rate=0.3), labels=["ω"]).figure


@figure
def confident() -> Figure:
    """Evidence for one class."""
    return _simplex([18.0, 1.0, 1.0], "confident")


@figure
def conflicting() -> Figure:
    """As much evidence for each class."""
    return _simplex([10.0, 10.0, 10.0], "conflicting")


@figure
def out_of_distribution() -> Figure:
    """No evidence."""
    return _simplex([0.0, 0.0, 0.0], "out of distribution")


def _simplex(evidence: list[float], title: str) -> Figure:
    return plot_simplex(ev.MultinomialOpinion.from_evidence(evidence), title=title).figure


@figure
def fusion() -> Figure:
    """Two sources, and what becomes of them by two kinds of fusion."""
    first, second = ev.BinomialOpinion(0.6, 0.1, 0.3), ev.BinomialOpinion(0.1, 0.4, 0.5)
    shown = {
        "first": first,
        "second": second,
        "cumulative": cumulative_fusion(first, second),
        "averaging": averaging_fusion(first, second),
    }
    return plot_opinion_triangle(
        ev.BinomialOpinion.stack(list(shown.values())), labels=list(shown), projector=False
    ).figure


@figure
def vacuity() -> Figure:
    """The vacuity of right, wrong and unknown digits."""
    return _histogram("vacuity")


@figure
def dissonance() -> Figure:
    """The dissonance of right, wrong and unknown digits."""
    return _histogram("dissonance")


def _histogram(name: str) -> Figure:
    test, labels, unknown = _digits()
    right = test.labels == labels
    groups = {"right": test[name][right], "wrong": test[name][~right], "never seen": unknown[name]}
    return plot_histograms(groups, name, ax=new_axes((4.4, 3.2))).figure


@figure
def roc() -> Figure:
    """What finds digits never seen."""
    test, _, unknown = _digits()
    is_unknown = torch.cat([torch.zeros(len(test)), torch.ones(len(unknown))]).long()
    together = {name: torch.cat([test[name], unknown[name]]) for name in _SHOWN}
    return plot_roc(together, is_unknown, new_axes((4.2, 4.2)), title="Finding digits never seen").figure


@figure
def risk_coverage() -> Figure:
    """What is gained by leaving out the unsure."""
    test, labels, _ = _digits()
    wrong = (test.labels != labels).long()
    uncertainties = {name: test[name] for name in _SHOWN}
    return plot_risk_coverage(uncertainties, wrong, new_axes((4.2, 4.2)), title="Leaving out the unsure").figure


@figure
def reliability() -> Figure:
    """Calibration on the digits that were seen."""
    test, labels, _ = _digits()
    return plot_reliability(test.probs, labels, bins=10, title="Known digits").figure


@cache
def _digits() -> tuple[ev.Prediction, torch.Tensor, ev.Prediction]:
    """The example of the evaluation guide: predictions for known test digits, their labels, and unknown digits."""
    digits = load_digits()
    images = torch.tensor(digits.data, dtype=torch.float32) / 16
    labels = torch.tensor(digits.target)
    known = labels < 7
    x, y = images[known], labels[known]
    torch.manual_seed(0)
    backbone = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU())
    model = ev.EvidentialClassifier(backbone, num_classes=7)
    model.fit(x[:200], y[:200], epochs=20, batch_size=50, learning_rate=0.02, progress=False)
    return model.predict(x[400:]), y[400:], model.predict(images[~known])
