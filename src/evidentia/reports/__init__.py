"""Pictures for files: opinions, calibration and detection. They need the extra `report` (matplotlib).

Every plot is a function that draws on the axes it is given, or on a figure of its own, and returns the axes:

    ax = plot_roc({"vacuity": pred["vacuity"]}, is_outlier)
    save_figure(ax.figure, "roc.svg")
"""

from evidentia.reports.curves import plot_precision_recall, plot_risk_coverage, plot_roc
from evidentia.reports.early import plot_classes, plot_f1_delay
from evidentia.reports.embedding import plot_embedding
from evidentia.reports.events import clip_picture
from evidentia.reports.gallery import plot_images
from evidentia.reports.graphs import graph_picture, graph_pictures
from evidentia.reports.histograms import plot_histograms
from evidentia.reports.pictures import PICTURES
from evidentia.reports.reliability import plot_reliability
from evidentia.reports.report import Report
from evidentia.reports.semisup import pool_picture
from evidentia.reports.semisup_boundary import decision_boundaries, decision_boundary
from evidentia.reports.semisup_curves import weight_curves
from evidentia.reports.simplex import plot_simplex
from evidentia.reports.study import study_report
from evidentia.reports.study_pictures import study_pictures
from evidentia.reports.style import PALETTE, new_axes, new_figure, save_figure
from evidentia.reports.triangle import plot_opinion_triangle

__all__ = [
    "PALETTE",
    "PICTURES",
    "Report",
    "clip_picture",
    "decision_boundaries",
    "decision_boundary",
    "graph_picture",
    "graph_pictures",
    "new_axes",
    "new_figure",
    "plot_classes",
    "plot_embedding",
    "plot_f1_delay",
    "plot_histograms",
    "plot_images",
    "plot_opinion_triangle",
    "plot_precision_recall",
    "plot_reliability",
    "plot_risk_coverage",
    "plot_roc",
    "plot_simplex",
    "pool_picture",
    "save_figure",
    "study_pictures",
    "study_report",
    "weight_curves",
]
