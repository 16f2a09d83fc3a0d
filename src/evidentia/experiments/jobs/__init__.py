"""What a study can run: one job is one cell of its grid and one seed."""

from evidentia.experiments.jobs import graph, semisup, semisup_uncertainty
from evidentia.experiments.jobs.registry import CHECKS, JOBS, JobFunction

__all__ = ["CHECKS", "JOBS", "JobFunction", "graph", "semisup", "semisup_uncertainty"]
