"""The pictures of a study that need trained networks: trained anew, drawn, and what failed told in a sentence."""

from __future__ import annotations

import traceback
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evidentia._support.errors import EvidentiaError, MissingExtraError
from evidentia._support.progress import progress_bar
from evidentia.experiments.job import alike_everywhere
from evidentia.experiments.plan import Plan
from evidentia.experiments.study import PresetName, Study, value_label
from evidentia.reports.pictures import PICTURES, Group, NetworkPictures
from evidentia.reports.report import Drawn, Report, draw_both
from evidentia.reports.study_figures import worded


@dataclass(frozen=True)
class FailedPicture:
    """What could not be drawn, why in a sentence, and the traceback where that sentence was not written for users."""

    what: str
    why: str
    traceback: str | None


@dataclass(frozen=True)
class StudyPictures:
    """What was drawn of a study's networks.

    Attributes:
        intro: what was trained.
        groups: the pictures that stand together, drawn.
        failures: what could not be drawn.
    """

    intro: str
    groups: list[tuple[Group, list[Drawn]]] = field(default_factory=list)
    failures: list[FailedPicture] = field(default_factory=list)

    def add_to(self, report: Report) -> None:
        """Add all of it to a report."""
        report.subsection("Networks of the study")
        report.paragraph(self.intro)
        for group, figures in self.groups:
            report.subsection(group.heading)
            if group.text:
                report.paragraph(group.text)
            report.drawn(figures, small=group.small)
        for failed in self.failures:
            report.paragraph(f"There is no picture of {failed.what}: {failed.why}")
            if failed.traceback is not None:
                report.details("The error", failed.traceback)


def check_pictures(study: Study, preset: PresetName) -> None:
    """See that the networks of a study can be drawn, before any work.

    Raises:
        EvidentiaError: if its job has no pictures, or a cell that is to be shown cannot be trained.
    """
    if study.pictures is None:
        return
    if study.job_name not in PICTURES:
        raise EvidentiaError(
            f"the study {study.name} declares pictures, and there are none of networks of the job {study.job_name}; "
            f"there are for: {', '.join(PICTURES)}"
        )
    study.check_shown(preset)


def study_pictures(plan: Plan, data_root: str | Path | None = None, *, progress: bool = True) -> StudyPictures | None:
    """Train the networks that a study shows, for its first seed, and draw them.

    Whatever fails is noted, and the rest goes on.

    Args:
        plan: of the study.
        data_root: a folder with the data sets.
        progress: whether a bar shows how far it is.

    Returns:
        What was drawn; None if the study shows no networks.

    Example:
        >>> from evidentia.experiments import find_study, plan_study
        >>> study_pictures(plan_study(find_study("semisup-moons-p"))) is None
        True
    """
    cells = plan.study.shown(plan.preset)
    if not cells:
        return None
    kind, seed = PICTURES[plan.study.job_name](), plan.seeds[0]
    place = {} if data_root is None else {"data_root": str(data_root)}
    varied = [axis for axis in plan.study.axes if len({cell.labels[axis] for cell in cells}) > 1] or list(
        cells[0].labels
    )
    made = StudyPictures(_intro(plan.study, seed, _words(cells[0].labels, set(cells[0].labels) - set(varied))))
    trained: dict[str, Any] = {}
    # One step for each network, and one for drawing them all.
    with progress_bar(f"{plan.study.name}, pictures", len(cells) + 1, shown=progress, stays=True) as advance:
        for number, cell in enumerate(cells, start=1):
            name = _words(cell.labels, varied) or plan.study.name
            with _noting(made.failures, name), alike_everywhere(seed):
                trained[name] = kind.train({**cell.configuration, **place}, seed)
            advance(number, "")
        _draw(kind, trained, made)
        advance(len(cells) + 1, "")
    return made


def _draw(kind: NetworkPictures[Any], trained: dict[str, Any], made: StudyPictures) -> None:
    with _noting(made.failures, "the networks"):
        for group in kind.groups(trained) if trained else []:
            with _noting(made.failures, group.heading):
                made.groups.append((group, [draw_both(drawing) for drawing in group.drawings]))


@contextmanager
def _noting(failures: list[FailedPicture], what: str) -> Iterator[None]:
    """Note what goes wrong inside, whatever it is: the rest of the report is worth having."""
    try:
        yield
    except (EvidentiaError, MissingExtraError) as error:
        failures.append(FailedPicture(what, f"{error}.", None))
    except Exception as error:
        why = f"{type(error).__name__}: {error}."
        failures.append(FailedPicture(what, why, traceback.format_exc()))


def _words(labels: Mapping[str, str], axes: Collection[str]) -> str:
    return ", ".join(worded(axis, label) for axis, label in labels.items() if axis in axes)


def _intro(study: Study, seed: int, shared: str) -> str:
    text = f"The networks below are of {shared}{', ' if shared else ''}seed {seed}."
    options = {} if study.pictures is None else study.pictures.fixed
    if options:
        text += f" Unlike those of the table: {', '.join(f'{name} {value_label(v)}' for name, v in options.items())}."
    return text
