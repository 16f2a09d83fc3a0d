"""Results of seeds in a folder, so that a command that was killed goes on with those it has not finished."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from evidentia._support.errors import EvidentiaError, FileFormatError
from evidentia._support.files import check_writable, write_text
from evidentia.experiments.job import Job
from evidentia.experiments.record import RunCost


class KeptSeed(NamedTuple):
    """The metrics of a seed, and what they cost."""

    metrics: dict[str, Any]
    cost: RunCost


@dataclass(frozen=True)
class KeptSeeds:
    """A file a seed, written whole or not at all.

    Files are known by a hash of the configuration, the seed and the code: a run with others does not see them, and
    both may share a folder.

    Attributes:
        folder: made if need be.
        kind: of the runs.
        configuration: everything that they depend on, as plain JSON.
        code: version of the code, as `code_version` has it.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     kept = KeptSeeds(Path(folder), "graph", {"method": "gcn"}, "1.0")
        ...     kept.save(0, KeptSeed({"accuracy": 0.8}, RunCost(2.0, 1.0, 1)))
        ...     kept.load(0).metrics, kept.load(1), KeptSeeds(Path(folder), "graph", {}, "1.0").load(0)
        ({'accuracy': 0.8}, None, None)
    """

    folder: Path
    kind: str
    configuration: Mapping[str, Any]
    code: str

    def __post_init__(self) -> None:
        if self.folder.exists() and not self.folder.is_dir():
            raise EvidentiaError(f"results are kept in a folder, but {self.folder} is a file; give a folder")
        check_writable(self.folder / "results")
        self.folder.mkdir(parents=True, exist_ok=True)

    def path(self, seed: int, suffix: str) -> Path:
        """A file of a seed: of its result, or of the training from which that comes."""
        return self.folder / f"{self.kind}-{seed}-{self._key(seed)[:12]}{suffix}"

    def load(self, seed: int) -> KeptSeed | None:
        """What a seed gave, if it has been run.

        Raises:
            FileFormatError: if the file is damaged.
        """
        path = self.path(seed, ".json")
        if not path.exists():
            return None
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            key, metrics = content["key"], dict(content["metrics"])
            cost = RunCost(*(content[name] for name in RunCost._fields))
        except (ValueError, KeyError, TypeError) as error:
            raise FileFormatError(
                f"{path} does not hold the result of a seed: {error!r}; remove it, and that seed is run again"
            ) from error
        return KeptSeed(metrics, cost) if key == self._key(seed) else None

    def save(self, seed: int, kept: KeptSeed) -> None:
        """Keep what a seed gave."""
        content = {
            "key": self._key(seed),
            "code": self.code,
            "configuration": dict(self.configuration),
            "seed": seed,
            "metrics": kept.metrics,
            **kept.cost._asdict(),
        }
        write_text(self.path(seed, ".json"), json.dumps(content, indent=2) + "\n")

    def _key(self, seed: int) -> str:
        return Job(self.kind, self.configuration, seed, self.code).key
