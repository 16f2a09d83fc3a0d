"""What several tests of commands share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from evidentia.cli import app


@pytest.fixture(scope="session")
def pump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of series with two channels at 10 Hz, of which a jam raises the second, and a detector of it."""
    folder = tmp_path_factory.mktemp("pump")
    for number in range(8):
        draw = np.random.default_rng(number)
        values = 0.1 * draw.standard_normal((200, 2))
        first = int(draw.integers(30, 120))
        values[first : first + 60, 1] += 2.0
        rows = [f"{step / 10:.1f},{row[0]:.6f},{row[1]:.6f}" for step, row in enumerate(values)]
        (folder / f"{number}.csv").write_text("\n".join(["time,flow,heat", *rows]) + "\n")
        (folder / f"{number}.events.csv").write_text(f"label,onset,offset\njam,{first / 10},{first / 10 + 6}\n")
    options = ["--out", str(folder / "pump.safetensors"), "--epochs", "4", "--macro-f1", "0.9"]
    result = CliRunner().invoke(app, ["events", "train", str(folder), *options])
    assert result.exit_code == 0, result.output
    assert "8 clips, 1 classes; temporal" in result.stdout
    return folder
