"""Locks on files, and systems that have none."""

from __future__ import annotations

import subprocess
import sys

from evidentia._support.locks import lock_file

# What the library stands on comes first: it may need these modules where they are.
ELSEWHERE = """
import sys
import matplotlib, pandas, sklearn, torch, torch_geometric, torchmetrics, typer
sys.modules["fcntl"] = sys.modules["resource"] = None
import evidentia.cli, evidentia.graphs, evidentia.semisup, evidentia.events, evidentia.experiments, evidentia.reports
from evidentia._support.locks import lock_file
with open(sys.argv[1]) as file:
    print(lock_file(file.fileno()))
"""


def test_one_holder_at_a_time(tmp_path) -> None:
    path = tmp_path / "lock"
    with path.open("w") as first, path.open("w") as second:
        assert lock_file(first.fileno())
        assert not lock_file(second.fileno(), wait=False)
        first.close()
        assert lock_file(second.fileno(), wait=False)


def test_a_system_without_locks_has_all_the_rest(tmp_path) -> None:
    path = tmp_path / "lock"
    path.touch()
    ran = subprocess.run([sys.executable, "-c", ELSEWHERE, path], capture_output=True, text=True, check=False)
    assert ran.stdout == "False\n", ran.stderr
