"""The code in README.md runs as it stands, with a small network and small data in the place of the reader's own."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from evidentia.events import EventDetector, synthetic_clips
from evidentia.semisup import SemiSupervisedClassifier

README = (Path(__file__).parent.parent / "README.md").read_text()
# Examples at a prompt are doctests.
BLOCKS = [block for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if not block.startswith(">>>")]


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the reader is to bring: a backbone and data."""
    monkeypatch.chdir(tmp_path)
    y = torch.arange(10).repeat(10)
    x = torch.randn(100, 8) + 5 * torch.randn(10, 8)[y]
    return {
        "backbone": torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU()),
        "loader": DataLoader(TensorDataset(x, y), batch_size=50),
        "x": x,
        "y": y,
        "x_new": x[:5],
        "x_val": x,
        "y_val": y,
        "pool": x,
    }


def test_five_lines_and_what_follows(names: dict[str, Any]) -> None:
    exec(BLOCKS[0], names)
    fit = re.search(r"`(model\.fit\(.*?\))`", README)
    assert fit is not None
    exec(fit[1], names)
    exec(BLOCKS[1], names)
    assert len(names["pred"]) == 5
    assert Path("run.safetensors").is_file()


def test_a_dirty_pool(names: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("evidentia.semisup.SemiSupervisedClassifier", partial(SemiSupervisedClassifier, updates=5))
    exec(BLOCKS[2], names)
    assert Path("pool.png").is_file()


@pytest.mark.filterwarnings("ignore:the clips to calibrate on have no event")
def test_an_early_alarm(names: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evidentia.events.EventDetector", partial(EventDetector, epochs=1))
    names |= {"clips": synthetic_clips(10, seed=0), "samples": synthetic_clips(1, seed=1)[0].samples}
    exec(BLOCKS[3], names)
    assert names["stream"].state_dict()


def test_no_other_code() -> None:
    assert len(BLOCKS) == 4
