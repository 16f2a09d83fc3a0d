"""The bar of long work, on a terminal and in a file."""

from __future__ import annotations

import pytest
from rich.console import Console

from evidentia._support import progress
from evidentia._support.progress import progress_bar


@pytest.mark.parametrize(("stays", "told"), [(False, False), (True, True)])
def test_a_file_gets_no_more_than_what_stays(capsys, stays: bool, told: bool) -> None:
    with progress_bar("training", 2, stays=stays) as advance:
        for step in (1, 2):
            advance(step, "loss 0.1")
    out, err = capsys.readouterr()
    assert out == ""
    assert ("training" in err and "2/2" in err) == told
    assert bool(err) == told


def test_a_terminal_gets_a_bar(capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    def terminal(**options: bool) -> Console:
        return Console(force_terminal=True, **options)

    monkeypatch.setattr(progress, "Console", terminal)
    with progress_bar("training", 2) as advance:
        advance(2, "loss 0.1")
    assert "training" in capsys.readouterr().err
