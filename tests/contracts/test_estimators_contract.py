"""What the estimators of all three rooms keep to before and after training."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evidentia import EvidentiaError
from evidentia._support.errors import NotTrainedError
from evidentia.events import EventDetector, synthetic_clips
from evidentia.graphs import GraphClassifier, citation_graph
from evidentia.semisup import SemiSupervisedClassifier, two_moons

ESTIMATORS: dict[type, tuple[Callable[[], Any], Callable[[], Any]]] = {
    GraphClassifier: (
        lambda: GraphClassifier("s-gcn", epochs=2, passes=2, progress=False),
        lambda: citation_graph(nodes=150, classes=3, features=30),
    ),
    SemiSupervisedClassifier: (
        lambda: SemiSupervisedClassifier("pi-model", "none", updates=2, unlabeled_batch=10, progress=False),
        lambda: two_moons("faraway", 0.5, seed=1, unlabeled=20),
    ),
    EventDetector: (
        lambda: EventDetector(epochs=1, progress=False),
        lambda: synthetic_clips(8, seed=1, labels=["siren", "clicks"], duration=2.0),
    ),
}
every_estimator = pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)


@every_estimator
def test_what_is_learnt_is_not_there_before_training(kind: type, tmp_path: Path) -> None:
    new = ESTIMATORS[kind][0]()
    assert kind.__name__ in repr(new)
    for name in kind.learnt:  # type: ignore[attr-defined]
        for each in (new, copy.deepcopy(new)):
            assert not hasattr(each, name)
            with pytest.raises(NotTrainedError, match=f"this {kind.__name__} is not trained yet and has no {name}; "):
                getattr(each, name)
    with pytest.raises(NotTrainedError, match="call fit first"):
        new.save(tmp_path / "file")
    assert not list(tmp_path.iterdir())
    with pytest.raises(AttributeError, match=f"'{kind.__name__}' object has no attribute 'nothing_'") as told:
        new.nothing_  # noqa: B018
    assert not isinstance(told.value, EvidentiaError)


@every_estimator
def test_what_is_learnt_is_there_after_training_and_in_a_file(kind: type, tmp_path: Path) -> None:
    make, data = ESTIMATORS[kind]
    fitted = make().fit(data())
    fitted.save(tmp_path / "file")
    for each in (fitted, kind.load(tmp_path / "file"), copy.deepcopy(fitted)):  # type: ignore[attr-defined]
        assert all(hasattr(each, name) for name in kind.learnt)  # type: ignore[attr-defined]
    public = {name for name in vars(fitted).keys() - vars(make()).keys() if not name.startswith("_")}
    assert public == set(kind.learnt)  # type: ignore[attr-defined]
