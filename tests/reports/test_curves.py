"""Curves: the points drawn and the areas in the legend are those of the evaluation."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from evidentia import EvidentiaError
from evidentia.evaluation import aupr, aurc, auroc, precision_recall_curve, risk_coverage, roc_curve
from evidentia.reports import plot_precision_recall, plot_risk_coverage, plot_roc


@pytest.fixture
def case():
    labels = (torch.rand(300) < 0.3).long()
    # Scores like total evidence: far outside [0, 1], with ties.
    return {"energy": (labels * 20 + torch.randn(300) * 15).round(), "noise": torch.randn(300)}, labels


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_roc(case):
    scores, labels = case
    ax = plot_roc(scores, labels, title="outliers")
    assert legend(ax) == [f"{name} (AUROC {float(auroc(value, labels)):.3f})" for name, value in scores.items()]
    for line, value in zip(ax.lines, scores.values(), strict=False):
        curve = roc_curve(value, labels)
        assert line.get_xdata() == pytest.approx(curve.fpr.numpy())
        assert line.get_ydata() == pytest.approx(curve.tpr.numpy())
        assert np.trapezoid(line.get_ydata(), line.get_xdata()) == pytest.approx(float(auroc(value, labels)))
    assert ax.get_title() == "outliers"


def test_precision_recall(case):
    scores, labels = case
    ax = plot_precision_recall(scores, labels)
    assert legend(ax) == [f"{name} (AUPR {float(aupr(value, labels)):.3f})" for name, value in scores.items()]
    for line, value in zip(ax.lines, scores.values(), strict=False):
        curve = precision_recall_curve(value, labels)
        assert line.get_xdata() == pytest.approx(curve.recall.flip(0).numpy())
        # The area under the steps that are drawn is the number in the legend.
        recall, precision = line.get_data()
        assert line.get_drawstyle() == "steps-pre"
        assert (np.diff(recall) * precision[1:]).sum() == pytest.approx(float(aupr(value, labels)))
    chance = ax.lines[-1].get_ydata()
    assert chance[0] == pytest.approx(float(labels.double().mean()))


def test_risk_coverage(case):
    scores, labels = case
    ax = plot_risk_coverage(scores, labels)
    assert legend(ax) == [f"{name} (AURC {float(aurc(value, labels)):.3f})" for name, value in scores.items()]
    for line, value in zip(ax.lines, scores.values(), strict=False):
        assert line.get_ydata() == pytest.approx(risk_coverage(value, labels).risk.numpy())
        assert line.get_ydata().mean() == pytest.approx(float(aurc(value, labels)))
    assert ax.lines[-1].get_ydata()[0] == pytest.approx(float(labels.double().mean()))


def test_no_errors_at_all_is_a_flat_line():
    assert not plot_risk_coverage({"vacuity": torch.rand(9)}, torch.zeros(9)).lines[0].get_ydata().any()


@pytest.mark.parametrize("plot", [plot_roc, plot_precision_recall, plot_risk_coverage])
def test_at_least_one_score_is_needed(plot):
    with pytest.raises(EvidentiaError, match="at least one score"):
        plot({}, [0, 1])
    with pytest.raises(EvidentiaError, match="must be given by name, got Tensor; give such as"):
        plot(torch.rand(2), [0, 1])


@pytest.mark.parametrize("plot", [plot_roc, plot_precision_recall])
def test_both_labels_are_needed(plot):
    with pytest.raises(EvidentiaError, match="both 0 and 1"):
        plot({"vacuity": [0.1, 0.2]}, [1, 1])
