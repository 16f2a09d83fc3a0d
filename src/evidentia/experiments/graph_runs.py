"""A task on a graph over several seeds, which goes on where it was killed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evidentia.experiments.code_version import code_version
from evidentia.experiments.graph_configuration import graph_configuration
from evidentia.experiments.jobs.graph import graph_name, job_graph
from evidentia.experiments.kept_seeds import KeptSeed, KeptSeeds
from evidentia.experiments.record import RunCost, RunRecord
from evidentia.graphs.tasks import TrainedTask, run_task, score_task, train_task
from evidentia.learning.checkpoint import digest


class GraphRuns:
    """Runs a task, seed by seed, and keeps what each gave.

    Args:
        settings: of the job `graph`: `data`, `data_root` and arguments of `evidentia.graphs.run_task`, but no seed.
        seeds: which seeds; split and training both follow from them.
        folder: for results and checkpoints: with the same folder, runs that were broken off go on to the same end.

    Attributes:
        record: what the seeds gave.

    Example:
        >>> runs = GraphRuns({"data": "synthetic", "method": "gcn", "epochs": 5}, seeds=[0])
        >>> runs.run()
        >>> runs.record.configuration["learning_rate"], sorted(runs.record.metrics[0])
        (0.01, ['accuracy', 'aupr', 'auroc'])
    """

    def __init__(self, settings: Mapping[str, Any], seeds: Sequence[int], folder: Path | None = None) -> None:
        self.settings = dict(settings)
        name = graph_name(self.settings.pop("data"))
        # Settings that do not fit are told before a graph is loaded or fetched.
        configuration = graph_configuration(name, **{k: v for k, v in self.settings.items() if k != "data_root"})
        self.data = job_graph(name, self.settings.pop("data_root", None))
        self.seeds = list(seeds)
        self.record = RunRecord(configuration)
        self.kept: KeptSeeds | None = None
        if folder is not None:
            # Another folder with data sets may hold another graph of that name.
            known_by = {**configuration, "graph": digest([self.data.edge_index, self.data.y])}
            self.kept = KeptSeeds(folder, "graph", known_by, code_version(run_task))
        self._first: TrainedTask | None = None

    def run(self, after_each: Callable[[int], None] | None = None) -> None:
        """Run all seeds; `after_each` is told how many are done."""
        for done, seed in enumerate(self.seeds, start=1):
            self._run(seed)
            if after_each is not None:
                after_each(done)

    def first(self) -> TrainedTask:
        """The network of the first seed; if its result was kept, from its checkpoint."""
        if self._first is None:
            self._first = self._train(self.seeds[0])
        return self._first

    def _run(self, seed: int) -> None:
        found = None if self.kept is None else self.kept.load(seed)
        if found is not None:
            self.record.add(seed, found.metrics, before=found.cost)
            return
        start = RunCost.now()
        trained = self._train(seed)
        metrics = asdict(score_task(trained))
        if self.kept is not None:
            self.kept.save(seed, KeptSeed(metrics, RunCost.now().since(start)))
        self.record.add(seed, metrics)
        if seed == self.seeds[0]:
            self._first = trained

    def _train(self, seed: int) -> TrainedTask:
        files: dict[str, Any] = {} if self.kept is None else {"checkpoint": self.kept.path(seed, ".safetensors")}
        return train_task(self.data, seed=seed, progress=False, **self.settings, **files)
