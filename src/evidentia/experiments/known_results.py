"""Results that were exported before, taken up into a store: what was run elsewhere need not be run again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from evidentia.experiments.job import Outcome
from evidentia.experiments.plan import Plan
from evidentia.experiments.store import StudyStore
from evidentia.experiments.study_table import CODE, StudyTable


def take_up(plan: Plan, store: StudyStore, table: StudyTable) -> int:
    """Let the results of a table stand for jobs of a plan that the store has none of.

    They are known by the kind of the job, its configuration and its seed, and by nothing else: results of other code
    count too, and the plan's own table then names that code beside its own. What a job cost is what the cell's jobs
    cost in the mean.

    Args:
        plan: what is to be run.
        store: where its results are kept.
        table: of this study or another, as `read_results` gives it.

    Returns:
        How many were taken up.

    Example:
        >>> import tempfile
        >>> from evidentia.experiments import Study, plan_study, run_plan, study_table
        >>> study = Study(name="tiny", title="Tiny", job="graph", metrics=["accuracy"], unit="%",
        ...     fixed={"data": "synthetic", "epochs": 2}, axes={"method": ["gcn"]})
        >>> one, two = (plan_study(study, seeds=seeds) for seeds in (1, 2))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with StudyStore(f"{folder}/here") as here, StudyStore(f"{folder}/there") as there:
        ...         _ = run_plan(one, there, progress=False)
        ...         take_up(two, here, study_table(one, there)), run_plan(two, here, progress=False).now
        (1, 1)
    """
    if table.job != plan.study.job_name:
        return 0
    scale = 100.0 if table.unit == "%" else 1.0
    metrics: dict[tuple[str, int], dict[str, float]] = {}
    for rows, unit in ((table.rows, scale), (table.further, 1.0)):
        for row in rows:
            for seed, value in row.values.items():
                metrics.setdefault((_text(row.cell.configuration), seed), {})[row.metric] = value / unit
    costs = {_text(runs.cell.configuration): runs.cpu_seconds for runs in table.cells}
    place = {**_joined(table.environments), CODE: table.code or "not noted"}
    if table.code == plan.code:
        del place[CODE]
    store.add(plan.jobs.values())
    store.forgive(plan.jobs)
    taken = 0
    for key, job in plan.jobs.items():
        configuration = _text(job.configuration)
        found = metrics.get((configuration, job.seed))
        if found is not None and store.claim(key):
            seconds = table.seconds / max(1, table.done)
            cost = (seconds, costs[configuration], table.peak_memory_bytes)
            taken += store.finish(Outcome(key, found, None, False, *cost, environment=place))
    return taken


def _text(configuration: Mapping[str, Any]) -> str:
    return json.dumps(configuration, sort_keys=True)


def _joined(environments: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """What several machines have in common, and where they differ all that it may have been."""
    found: dict[str, dict[str, None]] = {}
    for environment in environments:
        for name, value in environment.items():
            found.setdefault(name, {})[value] = None
    return {name: " or ".join(values) for name, values in found.items()}
