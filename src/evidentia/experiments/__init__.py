"""Experiments that anyone can run again: data, protocol and figures of each in one place."""

from evidentia.experiments.engines import make_engine
from evidentia.experiments.jobs import JOBS
from evidentia.experiments.known_results import take_up
from evidentia.experiments.plan import Plan, plan_study
from evidentia.experiments.published_figures import PublishedFigure, published, published_figure
from evidentia.experiments.runner import FailedJob, StudyRun, run_plan
from evidentia.experiments.store import StudyStore
from evidentia.experiments.studies import STUDIES, find_study
from evidentia.experiments.study import Beside, Comparison, Pictures, Preset, Study
from evidentia.experiments.study_export import export_table
from evidentia.experiments.study_file import load_study
from evidentia.experiments.study_results import read_results
from evidentia.experiments.study_table import StudyTable, study_table

__all__ = [
    "JOBS",
    "STUDIES",
    "Beside",
    "Comparison",
    "FailedJob",
    "Pictures",
    "Plan",
    "Preset",
    "PublishedFigure",
    "Study",
    "StudyRun",
    "StudyStore",
    "StudyTable",
    "export_table",
    "find_study",
    "load_study",
    "make_engine",
    "plan_study",
    "published",
    "published_figure",
    "read_results",
    "run_plan",
    "study_table",
    "take_up",
]
