"""Errors."""

from __future__ import annotations

import pytest

from evidentia import EvidentiaError, FileFormatError, MissingExtraError


def test_kinds():
    assert issubclass(EvidentiaError, ValueError)
    assert issubclass(FileFormatError, EvidentiaError)
    assert issubclass(MissingExtraError, ImportError)


def test_missing_extra_says_what_to_run():
    with pytest.raises(ImportError, match=r"plots needs matplotlib.*pip install 'evidentia\[report\]'"):
        raise MissingExtraError("matplotlib", "report", "plots")
