"""Registries."""

from __future__ import annotations

import pytest

from evidentia import EvidentiaError
from evidentia._support.registry import Registry


@pytest.fixture
def colours() -> Registry[str]:
    registry: Registry[str] = Registry("colour")
    registry.register("red")("#f00")
    registry.register("blue")("#00f")
    return registry


def test_is_a_mapping_in_the_order_of_registration(colours):
    assert list(colours) == ["red", "blue"]
    assert dict(colours) == {"red": "#f00", "blue": "#00f"}
    assert len(colours) == 2
    assert "red" in colours
    assert "green" not in colours
    assert list(colours.values()) == ["#f00", "#00f"]


def test_get(colours):
    assert colours.get("red") == "#f00"
    assert colours.get("green") is None
    assert colours.get("green", "#0f0") == "#0f0"


def test_register_hands_back_what_it_decorates(colours):
    @colours.register("function")
    def function():
        return 1

    assert colours["function"] is function
    assert function() == 1


@pytest.mark.parametrize("name", ["green", "", None, ["red"]])
def test_unknown_name(colours, name):
    with pytest.raises(EvidentiaError, match=r"no colour named.*choose one of: blue, red"):
        colours[name]


def test_a_name_is_taken_once(colours):
    with pytest.raises(EvidentiaError, match="colour named 'red' is registered already"):
        colours.register("red")("#e00")
    assert colours["red"] == "#f00"


def test_is_read_only(colours):
    with pytest.raises(TypeError):
        colours["green"] = "#0f0"
    with pytest.raises(TypeError):
        del colours["red"]
