"""The usual settings, by the name of an objective and by an objective."""

from __future__ import annotations

import pytest

from evidentia.semisup import OBJECTIVES, usual_settings
from evidentia.semisup.objectives import MeanTeacher
from evidentia.semisup.presets import Preset


@pytest.mark.parametrize("preset", ["quick", "thesis", "author"])
@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_an_objective_trains_at_the_rate_of_its_name(name: str, preset: Preset) -> None:
    by_name, made = (usual_settings("mnist", each, preset) for each in (name, OBJECTIVES[name]()))
    assert made["learning_rate"] == by_name["learning_rate"]


def test_the_rates_of_the_thesis() -> None:
    """FixMatch is built on pseudo-labels, but is not in the thesis' table."""
    rates = {"fixmatch": 3e-3, "uda": 3e-3, "mixmatch": 3e-3, "pseudo-label": 3e-4, "vat": 3e-3}
    for name, rate in rates.items():
        assert usual_settings("mnist", name, "thesis")["learning_rate"] == rate

    class Mine(MeanTeacher):
        pass

    for objective in ("mean-teacher", MeanTeacher(weight=1.0), Mine()):
        assert usual_settings("mnist", objective, "thesis")["learning_rate"] == 4e-4
