"""The report of the digits experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from evidentia.experiments.digits import GROUPS, TASKS, DigitsRun
from evidentia.experiments.digits_summary import (
    accuracy_line,
    claims,
    score_rows,
    triage_rows,
    uncertainty_rows,
)
from evidentia.prediction import Verdict
from evidentia.reports.curves import plot_roc
from evidentia.reports.gallery import plot_images
from evidentia.reports.histograms import plot_histograms
from evidentia.reports.report import Report
from evidentia.reports.style import new_figure, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Part:
    """What another experiment has for the report: a table, and figures with their captions by file name."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    figures: Mapping[str, tuple[Figure, str]] = field(default_factory=dict)


def write_digits_report(
    runs: Sequence[DigitsRun],
    folder: Path,
    further: Mapping[str, Part] | None = None,
    origin: Sequence[tuple[str, str]] = (),
) -> list[Path]:
    """Write the pictures and the report into a folder, and return their paths.

    Args:
        runs: what the experiment gave.
        folder: where to; it is made if need be.
        further: parts of other experiments for the end of the report, by their title.
        origin: what is to be said of where it all comes from, such as versions and seeds.
    """
    figures = {
        "uncertainties": (
            _histograms(runs),
            "Vacuity and dissonance of test images labelled right, of those labelled wrong, and of digits never shown; "
            "all splits together.",
        ),
        "roc": (
            _roc(runs),
            "What each score finds, all splits together: digits never shown (left), wrong labels (right).",
        ),
        "gallery": (
            _gallery(runs[0]),
            "First split: the most vacuous, the most dissonant and the most certain images, with the predicted digit, "
            "the vacuity u and the dissonance d. Digits never shown are marked with a star.",
        ),
    }
    report = Report("How unsure is the network, and why? Handwritten digits")
    report.section("The experiment").paragraph(
        f"{len(runs)} random splits of scikit-learn's digits. In each, three digits are never shown, and 20 images of "
        "each other digit are for training. A softmax network and an evidential one are trained alike: same "
        "architecture, initialisation and batches."
    )
    report.paragraph(f"Test accuracy: {accuracy_line(runs)}.")
    report.section("How unsure the evidential network is")
    report.table(
        ("uncertainty", *GROUPS), uncertainty_rows(runs), "Mean over all test images of all splits.", filters=()
    )
    report.figure(*figures["uncertainties"])
    report.section("What each score finds")
    report.table(("score", *TASKS), score_rows(runs), "AUROC, mean ± standard deviation over the splits.", filters=())
    for claim in claims(runs):
        report.paragraph(f"{claim}.")
    report.figure(*figures["roc"])
    report.section("What to do with each image")
    report.table(
        ("verdict", *GROUPS),
        triage_rows(runs),
        "Thresholds set on held-out known digits so that 90% of them are accepted.",
        filters=(),
    )
    report.figure(*figures["gallery"])
    for title, part in (further or {}).items():
        report.section(title)
        report.table(part.header, part.rows, filters=())
        for name, (figure, caption) in part.figures.items():
            report.figure(figure, caption)
            figures[name] = (figure, caption)

    if origin:
        report.section("Where it comes from")
        report.table(("what", ""), origin, words=2)

    paths = []
    for name, (figure, _) in figures.items():
        paths.append(folder / f"{name}.png")
        save_figure(figure, paths[-1])
    paths.append(folder / "report.html")
    report.save(paths[-1])
    return paths


def _histograms(runs: Sequence[DigitsRun]) -> Figure:
    figure, axes = new_figure(columns=2, width=9.0, height=3.2)
    for name, ax in zip(("vacuity", "dissonance"), axes, strict=True):
        pooled = {group: torch.cat([run.groups(name)[group] for run in runs]) for group in GROUPS}
        plot_histograms(pooled, name, ax=ax)
    return figure


def _roc(runs: Sequence[DigitsRun]) -> Figure:
    figure, axes = new_figure(columns=2, width=9.0, height=4.2)
    names = ("vacuity", "dissonance", "entropy")
    test = {name: torch.cat([run.test[name] for run in runs]) for name in names}
    unknown = {name: torch.cat([run.unknown[name] for run in runs]) for name in names}
    count = len(test["vacuity"]), len(unknown["vacuity"])
    is_unknown = torch.cat([torch.zeros(count[0]), torch.ones(count[1])]).long()
    plot_roc({name: torch.cat([test[name], unknown[name]]) for name in names}, is_unknown, ax=axes[0])
    axes[0].set_title("digits never shown")
    plot_roc(test, torch.cat([run.wrong for run in runs]).long(), ax=axes[1])
    axes[1].set_title("wrong labels")
    return figure


def _gallery(run: DigitsRun) -> Figure:
    images = torch.cat([run.split.test[0], run.split.unknown]).squeeze(1)
    labels = torch.cat([run.test.labels, run.unknown.labels])
    vacuity = torch.cat([run.test["vacuity"], run.unknown["vacuity"]])
    dissonance = torch.cat([run.test["dissonance"], run.unknown["dissonance"]])
    is_unknown = torch.arange(len(images)) >= len(run.test)
    rows = {
        Verdict.NO_EVIDENCE.description: vacuity.argsort(descending=True),
        Verdict.CONFLICT.description: dissonance.argsort(descending=True),
        Verdict.ACCEPT.description: (vacuity + dissonance).argsort(),
    }
    shown = {title: order[:8] for title, order in rows.items()}
    captions = {
        title: [
            f"{run.split.digits[int(labels[i])]}{'*' if is_unknown[i] else ''}  "
            f"u {float(vacuity[i]):.2f}  d {float(dissonance[i]):.2f}"
            for i in chosen
        ]
        for title, chosen in shown.items()
    }
    return plot_images({title: images[chosen] for title, chosen in shown.items()}, captions)
