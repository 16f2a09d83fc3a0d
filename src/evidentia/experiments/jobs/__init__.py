"""What a study can run: one job is one cell of its grid and one seed."""

from evidentia.experiments.jobs import (
    digits,
    events,
    events_time,
    graph,
    graph_time,
    semisup,
    semisup_time,
    semisup_uncertainty,
)
from evidentia.experiments.jobs.registry import CHECKS, JOBS, JobFunction

__all__ = [
    "CHECKS",
    "JOBS",
    "JobFunction",
    "digits",
    "events",
    "events_time",
    "graph",
    "graph_time",
    "semisup",
    "semisup_time",
    "semisup_uncertainty",
]
