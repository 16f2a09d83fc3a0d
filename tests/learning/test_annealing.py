"""The ramp, and the division by K."""

from __future__ import annotations

import pytest

from evidentia.learning import annealed_weight


def test_it_rises_in_a_straight_line_and_then_stays():
    weights = [annealed_weight(epoch, num_classes=1, ramp=8) for epoch in range(12)]
    assert weights == [0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1, 1, 1, 1]
    assert annealed_weight(0.5, num_classes=1, ramp=8) == 0.0625
    assert annealed_weight(float("inf"), num_classes=1) == 1


@pytest.mark.parametrize("num_classes", [2, 10, 1000])
def test_it_is_divided_by_the_number_of_classes(num_classes):
    assert annealed_weight(50, num_classes) == 1 / num_classes
    assert annealed_weight(50, num_classes, weight=num_classes) == 1


def test_without_a_ramp_it_is_there_from_the_start():
    assert annealed_weight(0, num_classes=4, weight=2, ramp=0) == 0.5
