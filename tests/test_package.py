"""The package as a whole: names that stay put, and metadata that agree."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest

import evidentia as ev

ROOT = Path(__file__).parent.parent

NAMES = {
    "evidentia": [
        *("MultinomialOpinion", "BinomialOpinion", "HyperOpinion", "vacuity", "dissonance", "vagueness", "entropy"),
        *("aleatoric", "epistemic", "uncertainties", "EvidentialClassifier", "Prediction"),
    ],
    "evidentia.opinions": ["comultiply", "discount", "cumulative_fusion"],
    "evidentia.evaluation": ["auroc", "aupr", "fpr_at"],
    "evidentia.learning": ["WeightedBatchNorm1d", "WeightedBatchNorm2d"],
    "evidentia.graphs": ["GraphClassifier", "kernel_prior", "load_graph"],
    "evidentia.semisup": ["SemiSupervisedClassifier", "WeightedBatchNorm1d", "WeightedBatchNorm2d", "convert"],
    "evidentia.events": ["EventDetector", "synthetic_clips"],
    "evidentia.experiments": ["published"],
}
ROOMS = ("opinions", "prediction", "learning", "evaluation", "graphs", "semisup", "events", "experiments", "reports")


@pytest.mark.parametrize(("module", "name"), [(module, name) for module, names in NAMES.items() for name in names])
def test_names_that_stay_put(module: str, name: str) -> None:
    assert hasattr(importlib.import_module(module), name)


@pytest.mark.parametrize("module", ["evidentia", *(f"evidentia.{room}" for room in ROOMS)])
def test_all_lists_what_is_there(module: str) -> None:
    loaded = importlib.import_module(module)
    assert loaded.__all__
    for name in loaded.__all__:
        assert hasattr(loaded, name), name


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_is_in_the_documentation(room: str) -> None:
    page = (ROOT / "docs" / "api" / f"{room}.md").read_text()
    loaded = importlib.import_module(f"evidentia.{room}")
    assert [name for name in loaded.__all__ if not re.search(rf"\b{name}\b", page)] == []


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_function_has_an_example(room: str) -> None:
    loaded = importlib.import_module(f"evidentia.{room}")
    functions = {name: getattr(loaded, name) for name in loaded.__all__ if inspect.isfunction(getattr(loaded, name))}
    assert [name for name, function in functions.items() if ">>>" not in (function.__doc__ or "")] == []


def test_citation_and_changelog_have_the_version() -> None:
    assert f"version: {ev.__version__}" in (ROOT / "CITATION.cff").read_text()
    assert f"## {ev.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_package_is_typed() -> None:
    assert (Path(ev.__file__).parent / "py.typed").is_file()
