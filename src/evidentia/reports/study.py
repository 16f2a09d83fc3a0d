"""The report of one or more studies: tables, pictures, and where every figure comes from."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from evidentia._support.errors import EvidentiaError
from evidentia.experiments.study_export import (
    paired_texts,
    table_caption,
    table_notes,
    table_texts,
    verdict_counts,
    verdict_sentence,
)
from evidentia.experiments.study_row import CONFIDENCE, VERDICTS
from evidentia.experiments.study_table import StudyTable
from evidentia.reports.report import Report
from evidentia.reports.study_figures import study_drawings
from evidentia.reports.study_pictures import StudyPictures


def study_report(
    tables: Sequence[StudyTable], title: str | None = None, pictures: Mapping[str, StudyPictures] | None = None
) -> Report:
    """Make one report of the tables of studies.

    Args:
        tables: of `evidentia.experiments.study_table`, or read from files by `evidentia.experiments.read_results`.
        title: the heading; by default that of the study, if there is one.
        pictures: what `study_pictures` drew of networks, by the names of their studies.

    Raises:
        EvidentiaError: if there is no table.

    Example:
        >>> import tempfile
        >>> from evidentia.experiments import StudyStore, find_study, plan_study, study_table
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with StudyStore(f"{folder}/results.sqlite") as store:
        ...         table = study_table(plan_study(find_study("semisup-moons-p")), store)
        ...     study_report([table]).save(f"{folder}/report.html")
    """
    if not tables:
        raise EvidentiaError("a report needs the table of at least one study")
    report = Report(title or (tables[0].title if len(tables) == 1 else "Studies: ours beside the published"))
    if len(tables) > 1:
        report.section("In short")
        report.table(
            ("study", "what", "seeds", *VERDICTS),
            [_short(table) for table in tables],
            f"How many of our figures lie above, within the noise of, or below the published, at {CONFIDENCE:.0%}. "
            "Above is better for scores, and worse for delays, times and losses.",
            words=2,
            filters=("study",),
        )
    for table in tables:
        heading = f"{table.title} ({table.preset})" if len(tables) > 1 else "Results"
        add_study(report, table, heading, (pictures or {}).get(table.study))
    return report


def add_study(report: Report, table: StudyTable, heading: str, pictures: StudyPictures | None = None) -> None:
    """Add what there is of a study to a report, under a heading."""
    report.section(heading)
    for command in table.commands[:1] if len(table.commands) == 1 else ():
        report.paragraph(f"`{command}`")
    if table.has_published:
        report.paragraph(verdict_sentence(table))
    headings, rows = table_texts(table)
    words = len(table.axes) + 1
    filters = [*headings[:words], *(["verdict"] if table.has_published else [])]
    report.table(headings, rows, _caption(table), words=words, filters=filters)
    for note in table_notes(table):
        report.paragraph(note[0].upper() + note[1:] + ".")
    report.drawings(study_drawings(table))
    if table.tests:
        report.subsection(f"Against {table.tests[0].against}")
        headings, rows = paired_texts(table)
        words = headings.index("difference")
        caption = "Paired t-tests of the same seeds, with Holm's correction for all tests of this table."
        report.table(headings, rows, caption, words=words, filters=headings[:words])
    if pictures is not None:
        pictures.add_to(report)
    report.subsection("Where it comes from")
    report.table(("what", ""), _origin(table), words=2)
    report.details("Configuration of every cell", _configurations(table))
    if len(table.commands) > 1:
        report.details(f"The {len(table.commands)} commands", "\n".join(table.commands))
    for what, traceback in table.failures.items():
        report.details(f"Failed: {what}", traceback)


def machine_words(environment: Mapping[str, str]) -> str:
    """What a job ran on, in words.

    Example:
        >>> machine_words({"processor": "a chip", "cores": "2", "machine": ""})
        'processor a chip, cores 2'
    """
    return ", ".join(f"{name} {value}" for name, value in environment.items() if value)


def _short(table: StudyTable) -> list[str]:
    counts = verdict_counts(table)
    numbers = [str(counts[verdict]) for verdict in VERDICTS]
    return [
        f"{table.study} ({table.preset})",
        table.title,
        str(len(table.seeds)),
        *(numbers if table.has_published else [""] * 3),
    ]


def _caption(table: StudyTable) -> str:
    text = table_caption(table)
    if table.has_published:
        text += f" Within noise: a difference that chance alone would make, at {CONFIDENCE:.0%}."
    if any(row.published is not None and row.published.misprint for row in table.rows):
        text += " * a known misprint."
    return text


def _origin(table: StudyTable) -> list[tuple[str, str]]:
    seeds = ", ".join(map(str, table.seeds))
    rows = [
        ("evidentia", table.version),
        ("code of the job", table.code or "not noted"),
        ("jobs", f"{table.done} of {table.jobs}, of the kind {table.job}"),
        ("seeds", seeds),
        ("time", f"{_time(table.seconds)} in all, {_time(table.cpu_seconds)} of the processor"),
        ("most memory of a job", f"{table.peak_memory_bytes / 1e6:,.0f} MB"),
    ]
    machines = [machine_words(kind) for kind in table.environments]
    return [*rows, *(("machine", words) for words in machines or ["not noted"])]


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _configurations(table: StudyTable) -> str:
    """What all cells share, and what each has beyond it."""
    cells = [runs.cell for runs in table.cells]
    shared: dict[str, Any] = dict(cells[0].configuration) if cells else {}
    for cell in cells:
        shared = {name: value for name, value in shared.items() if cell.configuration.get(name) == value}
    lines = [f"all: {json.dumps(shared, ensure_ascii=False)}"]
    for cell in cells:
        own = {name: value for name, value in cell.configuration.items() if name not in shared}
        lines.append(f"{', '.join(cell.labels.values()) or table.study}: {json.dumps(own, ensure_ascii=False)}")
    return "\n".join(lines)
