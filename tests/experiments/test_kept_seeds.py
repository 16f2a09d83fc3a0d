"""Results of seeds that were run are found again, by the same run alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from evidentia import FileFormatError
from evidentia.experiments.kept_seeds import KeptSeed, KeptSeeds
from evidentia.experiments.record import RunCost

GAVE = KeptSeed({"accuracy": 0.1 + 0.2, "auroc": {"vacuity": 1 / 3}}, RunCost(2.5, 1.5, 7))


def kept(folder: Path, code: str = "1.0", **configuration: object) -> KeptSeeds:
    return KeptSeeds(folder, "graph", {"method": "gcn", **configuration}, code)


def test_a_result_is_found_again_bit_for_bit(tmp_path: Path) -> None:
    kept(tmp_path / "new" / "runs").save(3, GAVE)
    assert kept(tmp_path / "new" / "runs").load(3) == GAVE


def test_other_seeds_settings_and_code_do_not_find_it(tmp_path: Path) -> None:
    kept(tmp_path).save(3, GAVE)
    assert kept(tmp_path).load(4) is None
    assert kept(tmp_path, epochs=5).load(3) is None
    assert kept(tmp_path, code="1.1").load(3) is None
    kept(tmp_path, epochs=5).save(3, GAVE._replace(metrics={"accuracy": 1.0}))
    assert kept(tmp_path).load(3) == GAVE


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    kept(tmp_path).save(3, GAVE)
    (file,) = tmp_path.iterdir()
    for text in ("", "{}", "[]", file.read_text().replace('"metrics": {', '"metrics": 3, "x": {')):
        file.write_text(text)
        with pytest.raises(FileFormatError, match=f"{file.name}.* remove it"):
            kept(tmp_path).load(3)
