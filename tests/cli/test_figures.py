"""Tables on terminals of any width."""

from __future__ import annotations

import pytest
from rich.console import Console

from evidentia.cli.figures import titled_table


@pytest.mark.parametrize("width", [30, 44, 80])
def test_no_figure_is_cut(capsys, width: int) -> None:
    table = titled_table("two-moons", ["method", "accuracy", "AUROC", "seconds"])
    table.add_row("compute-matched", "99.6 ± 0.5", "0.994", "12.0")
    Console(width=width).print(table)
    printed = capsys.readouterr().out
    assert "…" not in printed
    assert max(map(len, printed.splitlines())) <= width
    if width > 40:
        assert all(figure in printed for figure in ("99.6", "0.994", "12.0"))
