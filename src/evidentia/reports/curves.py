"""Curves over all thresholds: ROC, precision and recall, risk and coverage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from evidentia._support.checks import TensorLike
from evidentia._support.errors import EvidentiaError
from evidentia.evaluation import aupr, aurc, auroc, precision_recall_curve, risk_coverage, roc_curve
from evidentia.reports.style import add_legend, check_by_name, colour, ink, label_axes, new_axes, unit_square

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SQUARE = (4.0, 4.0)


def plot_roc(
    scores_by_name: Mapping[str, TensorLike],
    labels: TensorLike,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw the ROC curve of one or more scores for the same labels; the legend gives each AUROC.

    Args:
        scores_by_name: scores of shape `(N,)` by name, any range, higher is more positive.
        labels: shape `(N,)`, 0 or 1, both present.
        ax: where to draw; by default on a figure of its own.
        title: a title above the axes.

    Example:
        >>> ax = plot_roc({"vacuity": [0.1, 0.2, 0.7, 0.9]}, [0, 1, 0, 1])
        >>> ax.get_legend().get_texts()[0].get_text()
        'vacuity (AUROC 0.750)'
    """
    _require_some(scores_by_name)
    ax = new_axes(_SQUARE) if ax is None else ax
    for index, (name, scores) in enumerate(scores_by_name.items()):
        curve = roc_curve(scores, labels)
        area = float(auroc(scores, labels))
        _line(ax, curve.fpr.cpu().numpy(), curve.tpr.cpu().numpy(), f"{name} (AUROC {area:.3f})", index)
    ax.plot([0, 1], [0, 1], "--", color=ink(), alpha=0.5, linewidth=1.0)
    label_axes(ax, "false positive rate", "true positive rate", title)
    unit_square(ax)
    add_legend(ax, "lower right")
    return ax


def plot_precision_recall(
    scores_by_name: Mapping[str, TensorLike],
    labels: TensorLike,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw precision against recall of one or more scores for the same labels; the legend gives each AUPR.

    The dashed line is the share of positives: the precision of a score that knows nothing. Arguments are as for
    `plot_roc`.

    Example:
        >>> ax = plot_precision_recall({"vacuity": [0.1, 0.2, 0.7, 0.9]}, [0, 1, 0, 1])
        >>> ax.get_legend().get_texts()[0].get_text()
        'vacuity (AUPR 0.833)'
    """
    _require_some(scores_by_name)
    ax = new_axes(_SQUARE) if ax is None else ax
    for index, (name, scores) in enumerate(scores_by_name.items()):
        curve = precision_recall_curve(scores, labels)
        area = float(aupr(scores, labels))
        # AUPR sums steps, without interpolation, so the curve is drawn in steps: the area drawn is the area given.
        recall, precision = curve.recall.flip(0).cpu().numpy(), curve.precision.flip(0).cpu().numpy()
        _line(ax, recall, precision, f"{name} (AUPR {area:.3f})", index, drawstyle="steps-pre")
        # At the most lenient threshold everything is called positive, which leaves the share of positives.
        share = float(curve.precision[0])
    ax.axhline(share, linestyle="--", color=ink(), alpha=0.5, linewidth=1.0)
    label_axes(ax, "recall", "precision", title)
    unit_square(ax)
    add_legend(ax)
    return ax


def plot_risk_coverage(
    uncertainties_by_name: Mapping[str, TensorLike],
    errors: TensorLike,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw the error of the accepted samples against how many are accepted; the legend gives each AURC.

    The dashed line is the error when everything is accepted, which a score that knows nothing has throughout.

    Args:
        uncertainties_by_name: uncertainties of shape `(N,)` by name, any range, higher is less sure.
        errors: shape `(N,)`, 1 where the prediction is wrong and 0 where it is right, or any finite loss.
        ax: where to draw; by default on a figure of its own.
        title: a title above the axes.

    Example:
        >>> ax = plot_risk_coverage({"entropy": [0.1, 0.2, 0.3, 0.9]}, [0, 0, 1, 1])
        >>> ax.get_legend().get_texts()[0].get_text()
        'entropy (AURC 0.208)'
    """
    _require_some(uncertainties_by_name)
    ax = new_axes((4.8, 3.4)) if ax is None else ax
    for index, (name, uncertainty) in enumerate(uncertainties_by_name.items()):
        curve = risk_coverage(uncertainty, errors)
        area = float(aurc(uncertainty, errors))
        _line(ax, curve.coverage.cpu().numpy(), curve.risk.cpu().numpy(), f"{name} (AURC {area:.3f})", index)
        everything = float(curve.risk[-1])
    ax.axhline(everything, linestyle="--", color=ink(), alpha=0.5, linewidth=1.0)
    label_axes(ax, "coverage", "risk", title)
    ax.set_xlim(0, 1.01)
    # Curves end in the upper right and wander on the left, so the legend gets room above them.
    ax.set_ylim(0, 1.4 * ax.get_ylim()[1])
    add_legend(ax, "upper left")
    return ax


def _line(ax: Axes, x: object, y: object, label: str, index: int, drawstyle: str = "default") -> None:
    ax.plot(x, y, color=colour(index), linewidth=1.7, label=label, drawstyle=drawstyle)  # type: ignore[arg-type]


def _require_some(by_name: Mapping[str, TensorLike]) -> None:
    check_by_name(by_name)
    if not by_name:
        raise EvidentiaError("a curve needs at least one score by name, got none")
