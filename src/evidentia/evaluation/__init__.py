"""Is the uncertainty any good? Detection, calibration, selective prediction, early detection, simple rival scores.

Every measure is a pure function over tensors, arrays or lists; most come as a torchmetrics `Metric` too, in
capitals (`auroc` and `AUROC`). Scores may have any range: nothing here applies a sigmoid.
"""

from evidentia.evaluation.calibration import Reliability, brier, ece, nll, reliability
from evidentia.evaluation.detection import (
    PrecisionRecallCurve,
    RocCurve,
    aupr,
    auroc,
    detection_scores,
    fpr_at,
    precision_recall_curve,
    roc_curve,
)
from evidentia.evaluation.early import EarlyScores, common_delays, early_scores, onset_auc
from evidentia.evaluation.early_curve import EarlyCurve, early_curve
from evidentia.evaluation.early_truth import EventTruth
from evidentia.evaluation.metrics import AUPR, AURC, AUROC, ECE, NLL, Brier, DetectionScores, FPRAt
from evidentia.evaluation.scores import (
    SCORES,
    KNNScore,
    MahalanobisScore,
    energy,
    max_logit,
    max_softmax,
    softmax_entropy,
)
from evidentia.evaluation.selective import RiskCoverage, aurc, excess_aurc, risk_coverage, selective_risk

__all__ = [
    "AUPR",
    "AURC",
    "AUROC",
    "ECE",
    "NLL",
    "SCORES",
    "Brier",
    "DetectionScores",
    "EarlyCurve",
    "EarlyScores",
    "EventTruth",
    "FPRAt",
    "KNNScore",
    "MahalanobisScore",
    "PrecisionRecallCurve",
    "Reliability",
    "RiskCoverage",
    "RocCurve",
    "aupr",
    "aurc",
    "auroc",
    "brier",
    "common_delays",
    "detection_scores",
    "early_curve",
    "early_scores",
    "ece",
    "energy",
    "excess_aurc",
    "fpr_at",
    "max_logit",
    "max_softmax",
    "nll",
    "onset_auc",
    "precision_recall_curve",
    "reliability",
    "risk_coverage",
    "roc_curve",
    "selective_risk",
    "softmax_entropy",
]
