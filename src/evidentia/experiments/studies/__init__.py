"""The thesis' tables as studies, by name."""

from __future__ import annotations

from pathlib import Path

from evidentia._support.errors import EvidentiaError
from evidentia.experiments.studies import digits, events, graphs, moons, pools, times, uncertainty
from evidentia.experiments.study import Study
from evidentia.experiments.study_file import load_study

_ROOMS = (digits, graphs, moons, pools, uncertainty, events, times)

STUDIES: dict[str, Study] = {study.name: study for room in _ROOMS for study in room.STUDIES}


def find_study(name: str) -> Study:
    """A study by its name, or from a `.toml` or `.py` file.

    Args:
        name: of `STUDIES`, or a path.

    Raises:
        EvidentiaError: if there is no such study, or the file is none.

    Example:
        >>> find_study("graph-ood").title
        'Nodes of classes never seen'
    """
    if name in STUDIES:
        return STUDIES[name]
    if Path(name).suffix in (".toml", ".py"):
        return load_study(name)
    raise EvidentiaError(
        f"there is no study named {name!r}; give a .toml or .py file, or choose one of: {', '.join(STUDIES)}"
    )


__all__ = ["STUDIES", "find_study"]
