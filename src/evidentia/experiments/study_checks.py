"""Whether the parts of a study fit together."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from string import Formatter
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from evidentia._support.errors import EvidentiaError
from evidentia.experiments.jobs import JOBS
from evidentia.experiments.published_figures import published

if TYPE_CHECKING:
    from evidentia.experiments.study import Pictures, Study

Fail: TypeAlias = Callable[[str], NoReturn]

# What the runner adds to a configuration, or what changes nothing in the figures.
_NOT_OPTIONS = ("seed", "data_root", "progress", "checkpoint", "log", "cache")


def check_study(study: Study) -> None:
    """See that names, axes, options, presets and the published table fit together.

    Raises:
        EvidentiaError: saying what does not.
    """

    def fail(problem: str) -> NoReturn:
        raise EvidentiaError(f"the study {study.name!r} does not fit: {problem}")

    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", study.name):
        fail("its name must be of small letters, digits and dashes, such as my-study")
    if isinstance(study.job, str) and study.job not in JOBS:
        fail(f"there is no job named {study.job!r}; choose one of: {', '.join(sorted(JOBS))}")
    for axis, groups in study.axes.items():
        if not groups:
            fail(f"the axis {axis} has no values")
    _check_options(study, fail)
    for name, preset in study.presets.items():
        _check_kept(study, f"the preset {name}", preset.keep, fail)
    if study.pictures is not None:
        _check_kept(study, "the choice for pictures", study.pictures.keep, fail)
        _check_pictured(study, study.pictures, fail)
    _check_shown(study, fail)


def _check_kept(study: Study, who: str, keep: Mapping[str, Sequence[str]], fail: Fail) -> None:
    for axis, labels in keep.items():
        known = study.axes.get(axis)
        if known is None:
            fail(f"{who} keeps some of {axis!r}, which is no axis; there are: {_list(study.axes)}")
        if not labels or (unknown := [label for label in labels if label not in known]):
            what = f"no {unknown[0]!r}" if labels else "nothing to keep"
            fail(f"{who} finds {what} on the axis {axis}; there are: {_list(known)}")


def _check_pictured(study: Study, pictures: Pictures, fail: Fail) -> None:
    """A report says which options its networks have unlike the table's; none of them may be overruled."""
    for axis, groups in study.axes.items():
        for label in pictures.keep.get(axis, groups):
            if clash := sorted(groups[label].keys() & pictures.fixed.keys()):
                fail(f"the choice for pictures fixes {clash[0]}, which the axis {axis} sets for {label}")


def _check_options(study: Study, fail: Fail) -> None:
    owner: dict[str, str] = {}
    for axis, groups in study.axes.items():
        for option in {option for options in groups.values() for option in options}:
            if option in owner:
                fail(f"the axes {owner[option]} and {axis} both set {option}")
            owner[option] = axis
    own = [preset.fixed for preset in study.presets.values()]
    own += [] if study.pictures is None else [study.pictures.fixed]
    options = [study.fixed, *own, *({name: None} for name in owner)]
    for name in _NOT_OPTIONS:
        if any(name in group for group in options):
            fail(f"{name} is no option of a study: the command or the runner sets it")
    try:
        configurations = [cell.configuration for cell in study.cells()]
        json.dumps([*configurations, *own], allow_nan=False)
    except (TypeError, ValueError) as error:
        fail(f"options must be plain numbers, words and lists: {error}")


def _check_shown(study: Study, fail: Fail) -> None:
    if study.beside is not None:
        words = {*study.axes, "metric"}
        for part in (study.beside.table, study.beside.row, study.beside.column):
            for _, word, _, _ in Formatter().parse(part):
                if word is not None and word not in words:
                    fail(f"{part!r} names {word!r}, which is neither an axis nor 'metric'; there are: {_list(words)}")
        for name in study.beside.names:
            if name not in words:
                fail(f"names are given for {name!r}, which is neither an axis nor 'metric'")
        if "metric" in {word for _, word, _, _ in Formatter().parse(study.beside.table)}:
            fail("the published table cannot depend on the metric")
        for cell in study.cells():
            published(study.beside.table.format(**cell.labels))
            figures = [study.beside.figure(cell, metric) for metric in study.metrics]
            # Seconds and milliseconds are shown as they are measured; only percents are scaled.
            units = [figure.unit for figure in figures if figure is not None]
            if wrong := [unit for unit in units if (unit == "%") != (study.unit == "%")]:
                fail(f"it is in {study.unit!r}, and the published table in {wrong[0]!r}")
    if study.compare is not None:
        axis, against = study.compare.axis, study.compare.against
        if axis not in study.axes:
            fail(f"methods are compared along {axis!r}, which is no axis; there are: {_list(study.axes)}")
        if against not in study.axes[axis]:
            fail(f"all are compared with {against!r}, which is not on the axis {axis}: {_list(study.axes[axis])}")


def _list(names: Any) -> str:
    return ", ".join(sorted(map(str, names))) or "none"
