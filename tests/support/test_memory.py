"""The most memory that a process has had."""

from __future__ import annotations

import sys
from pathlib import Path

from evidentia._support.memory import peak_memory_bytes


def test_systems_that_tell_it_in_another_way_tell_much_the_same(monkeypatch) -> None:
    def no_file(*_: object) -> str:
        raise OSError

    first = peak_memory_bytes()
    monkeypatch.setattr(Path, "read_text", no_file)
    # What the system has counted from the start may be more, but is of the same unit.
    assert 0.5 < peak_memory_bytes() / first < 100


def test_a_system_that_does_not_tell_has_used_nothing(monkeypatch) -> None:
    def no_file(*_: object) -> str:
        raise OSError

    monkeypatch.setattr(Path, "read_text", no_file)
    monkeypatch.setitem(sys.modules, "resource", None)
    assert peak_memory_bytes() == 0
