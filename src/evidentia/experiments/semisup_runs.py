"""A robust method on a dirty pool over several seeds, and the controls that belong beside it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evidentia._support.files import write_text
from evidentia.experiments.record import RunRecord
from evidentia.semisup import SemiSupervisedClassifier
from evidentia.semisup.choices import Norm
from evidentia.semisup.networks.passes import usual_order
from evidentia.semisup.tasks import (
    ALL_LABELS,
    COMPUTE_MATCHED,
    CONTROLS,
    TrainedTask,
    base_control,
    matched_updates,
    train_task,
)

# Where files are kept changes nothing in the figures.
_PLACES = ("data_root", "log", "tensorboard", "progress")
_OF_A_SITTING = {"seed", "checkpoint", "log", "tensorboard", "progress"}
_PARTS = ("configuration", "metrics", "mean", "std", "wall_seconds", "cpu_seconds")


class PoolRuns:
    """Runs a method and its controls, seed by seed, and keeps what each gave.

    Args:
        settings: of `evidentia.semisup.train_task`, but for the seed and the checkpoint.
        seeds: which seeds; data and training both follow from them.
        folder: for checkpoints and logs of all runs: with the same folder, runs that were broken off go on. TensorBoard
            gets a folder for each run in the one of the settings.
        before_each: told the method or control and the seed before each training.

    Attributes:
        first: the method's training of the first seed.
        method: what the method gave, as plain JSON.
        controls: what the controls gave, by their names.

    Example:
        >>> runs = PoolRuns({"data": "two-moons", "robust": "none", "updates": 5, "progress": False}, seeds=[0])
        >>> runs.run_method()
        >>> runs.control_names
        ['supervised', 'no BN', 'concatenated BN', 'separate BN', 'frozen BN', 'oracle']
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        seeds: Sequence[int],
        folder: Path | None = None,
        before_each: Callable[[str, int], None] | None = None,
    ) -> None:
        usual: dict[str, Any] = {
            "robust": "uncertainty",
            "robust_options": {},
            "norm": None,
            "passes": None,
            "validation": 0,
        }
        self.settings = {**usual, **settings}
        self.seeds = list(seeds)
        self.folder = folder
        self.before_each = before_each
        self.first: TrainedTask
        self.method: dict[str, Any] = {}
        self.controls: dict[str, dict[str, Any]] = {}

    @property
    def control_names(self) -> list[str]:
        """The controls that there are for this method."""
        needless = set() if self.settings["validation"] else {ALL_LABELS}
        if self.settings["robust"] in ("none", "supervised"):
            needless.add(COMPUTE_MATCHED)
        return [name for name in CONTROLS if name not in needless]

    @property
    def norm(self) -> Norm:
        """The method's batch norm, which is known once it has run."""
        norm: Norm = self.method["configuration"]["norm"]
        return norm

    @property
    def trainings(self) -> int:
        """How many trainings there are in all."""
        return len(self.seeds) * (1 + len(self.control_names))

    def run_method(self) -> None:
        """Run the method for all seeds."""
        self.method = self._run("method", self.settings, keep_first=True)

    def run_controls(self) -> None:
        """Run the controls for all seeds, after the method, whose time one of them is given."""
        for name in self.control_names:
            settings = {**self.settings, "norm": self.norm, **CONTROLS[name]}
            if name == COMPUTE_MATCHED:
                norm = "batch" if self.norm == "weighted" else self.norm
                settings |= {"norm": norm, "updates": self._matched_updates()}
            self.controls[name] = {part: value for part, value in self._run(name, settings).items() if part in _PARTS}

    def summary(self) -> dict[str, Any]:
        """What the method gave and, as far as they were run, under "controls" what these gave."""
        return {**self.method, "controls": self.controls} if self.controls else dict(self.method)

    def save(self, path: Path) -> None:
        """Write the summary to a JSON file, whole or not at all."""
        write_text(path, json.dumps(self.summary(), indent=2) + "\n")

    def _run(self, name: str, settings: dict[str, Any], keep_first: bool = False) -> dict[str, Any]:
        record = RunRecord({option: value for option, value in settings.items() if option not in _PLACES})
        for seed in self.seeds:
            if self.before_each is not None:
                self.before_each(name, seed)
            trained = train_task(**{**settings, **self._files(name, seed)}, seed=seed)
            record.configuration |= {"norm": trained.classifier.norm_, "trained": described(trained.classifier)}
            record.add(seed, trained.result.metrics())
            if keep_first and seed == self.seeds[0]:
                self.first = trained
        return record.summary()

    def _files(self, name: str, seed: int) -> dict[str, Any]:
        stem = f"{name.lower().replace(',', '').replace(' ', '-')}-{seed}"
        files = {}
        if self.settings.get("tensorboard"):
            files["tensorboard"] = Path(self.settings["tensorboard"]) / stem
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            files |= {"checkpoint": self.folder / f"{stem}.safetensors", "log": self.folder / f"{stem}.jsonl"}
        return files

    def _matched_updates(self) -> int:
        """From the times of the method and of the plain objective, over all seeds; told again as it was told first."""
        kept = None if self.folder is None else self.folder / f"{COMPUTE_MATCHED}-updates.txt"
        if kept is not None and kept.exists():
            return int(kept.read_text())
        base = self.controls[base_control(self.norm, self.settings["passes"])]
        mean = self.method["mean"]
        updates = matched_updates(int(mean["updates"]), mean["seconds"], base["mean"]["seconds"])
        if kept is not None:
            write_text(kept, str(updates))
        return updates


def described(clf: SemiSupervisedClassifier) -> dict[str, Any]:
    """How a classifier was trained, with all that was left to defaults, as plain JSON.

    Example:
        >>> runs = PoolRuns({"data": "two-moons", "robust": "none", "updates": 5, "progress": False}, seeds=[0])
        >>> runs.run_method()
        >>> trained = runs.method["configuration"]["trained"]
        >>> trained["network"], trained["norm"], trained["passes"], trained["learning_rate"]
        ('mlp', 'batch', 'concat', 0.003)
    """
    settings = clf.settings.model_dump(mode="json", exclude=_OF_A_SITTING)
    settings |= {"norm": clf.norm_, "passes": settings["passes"] or usual_order(clf.norm_)}
    return {**clf.trained_by_, "network": clf.network, "standardise": clf.standardise, **settings}
