"""What every estimator returns, and the decisions made from it."""

from evidentia.prediction.prediction import Prediction, Task, class_names_for
from evidentia.prediction.triage import Triage, TriageRule, Verdict

__all__ = ["Prediction", "Task", "Triage", "TriageRule", "Verdict", "class_names_for"]
