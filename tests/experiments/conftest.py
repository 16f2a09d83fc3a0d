"""What the tests of studies share: a study of a job that takes no time, and says in a file when it is begun."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

STUDY = """
import os
import random
import signal
from pathlib import Path

from evidentia.experiments.study import Comparison, Study

FOLDER = Path(__file__).parent


def dummy(configuration, seed):
    with (FOLDER / "begun").open("ab", buffering=0) as file:
        file.write(f"{configuration['method']}/{configuration['size']}/{seed}\\n".encode())
    unlucky = FOLDER / "unlucky"
    if unlucky.exists() and unlucky.read_text() == f"{configuration['method']}/{configuration['size']}/{seed}":
        unlucky.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    if configuration["method"] == "broken":
        raise RuntimeError("this method is broken")
    draw = random.Random(f"{configuration['method']} {configuration['size']} {seed}")
    return {"score": draw.random(), "deep": {"er": draw.random() + configuration["size"]}}


study = Study(
    name="dummy",
    title="A dummy",
    job=dummy,
    axes={"method": METHODS, "size": [1, 2, 3]},
    metrics=["score", "deep.er"],
    compare=Comparison(axis="method", against="a"),
    seeds=SEEDS,
)
"""


@pytest.fixture
def write_study(tmp_path: Path) -> Callable[..., Path]:
    def write(name: str = "study", seeds: int = 4, methods: tuple[str, ...] = ("a", "b")) -> Path:
        path = tmp_path / name / "dummy.py"
        path.parent.mkdir()
        path.write_text(STUDY.replace("SEEDS", str(seeds)).replace("METHODS", repr(list(methods))))
        return path

    return write
