"""The table of a study as Markdown, CSV, LaTeX or JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from evidentia._support.errors import EvidentiaError
from evidentia._support.files import write_text
from evidentia._version import __version__
from evidentia.experiments.study_table import CONFIDENCE, StudyTable, TableRow

_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$"}
_LATEX |= {sign: f"\\{sign}" for sign in "&%$#_{}"}


def table_texts(table: StudyTable) -> tuple[list[str], list[list[str]]]:
    """The headings and the rows of a table as it is printed: axes, metric, ours, n, published, difference, verdict."""
    axes = list(table.plan.study.axes)
    beside = table.plan.study.beside is not None
    headings = [
        *axes,
        "metric",
        _heading("ours", table),
        "n",
        *(["published", "difference", "verdict"] if beside else []),
    ]
    return headings, [_texts(row, axes, beside, table.plan.study.unit) for row in table.rows]


def paired_texts(table: StudyTable) -> tuple[list[str], list[list[str]]]:
    """The headings and the rows of the paired tests."""
    axes = [
        axis for axis in table.plan.study.axes if table.plan.study.compare and axis != table.plan.study.compare.axis
    ]
    headings = [*axes, "metric", "method", "against", "difference", "n", "p", "p (Holm)"]
    digits = _digits(table.plan.study.unit)
    return headings, [
        [
            *(test.labels[axis] for axis in axes),
            *(test.metric, test.method, test.against, f"{test.difference:+.{digits}f}", str(test.n)),
            *(f"{p:.3f}" if p >= 0.001 else "<0.001" for p in (test.p_value, test.corrected)),
        ]
        for test in table.tests
    ]


def as_markdown(table: StudyTable) -> str:
    """The table, its tests and its notes."""
    plan = table.plan
    parts = [f"## {plan.study.title}", _caption(table), _markdown_table(*table_texts(table))]
    if table.tests:
        parts += ["Paired t-tests of the same seeds:", _markdown_table(*paired_texts(table))]
    parts += [f"- {note}" for note in table_notes(table)]
    return "\n\n".join(parts) + "\n"


def as_csv(table: StudyTable) -> str:
    """One line a row, all digits."""
    axes = list(table.plan.study.axes)
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    figures = ["mean", "std", "n", "published", "published_std", "difference", "noise", "verdict", "misprint"]
    writer.writerow([*axes, "metric", "unit", *figures])
    for row in table.rows:
        entry = _row_json(row)
        labels = [row.cell.labels[axis] for axis in axes]
        cells = ["" if entry[name] is None else entry[name] for name in figures]
        writer.writerow([*labels, row.metric, table.plan.study.unit, *cells])
    return file.getvalue()


def as_latex(table: StudyTable) -> str:
    """A `tabular`, for `booktabs`."""
    headings, rows = table_texts(table)
    first = len(table.plan.study.axes) + 1
    lines = [" & ".join(map(_latex, row)) + r" \\" for row in (headings, *rows)]
    body = [r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule"]
    note = f"% {table.plan.study.title}. {_caption(table)}"
    return "\n".join(
        [note, rf"\begin{{tabular}}{{{'l' * first}{'r' * (len(headings) - first)}}}", *body, r"\end{tabular}", ""]
    )


def as_json(table: StudyTable) -> str:
    """Everything, with the configuration of every cell, every value, what it cost, and why jobs failed."""
    plan, study = table.plan, table.plan.study
    costs = list(table.results.values())
    content = {
        "evidentia_version": __version__,
        "code": plan.code,
        "study": study.name,
        "title": study.title,
        "job": study.job_name,
        "preset": plan.preset,
        "unit": study.unit,
        "seeds": list(plan.seeds),
        "confidence": CONFIDENCE,
        "rows": [_row_json(row) for row in table.rows],
        "tests": [{**vars(test), "labels": dict(test.labels)} for test in table.tests],
        "jobs": len(plan.jobs),
        "done": len(costs),
        "job_seconds": sum(cost.seconds for cost in costs),
        "job_cpu_seconds": sum(cost.cpu_seconds for cost in costs),
        "peak_memory_bytes": max((cost.peak_memory_bytes for cost in costs), default=0),
        "environments": [json.loads(text) for text in sorted({json.dumps(dict(c.environment)) for c in costs})],
        "failures": [{"job": plan.describe(plan.jobs[key]), "traceback": text} for key, text in table.failures.items()],
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


EXPORTS: dict[str, Callable[[StudyTable], str]] = {
    ".md": as_markdown,
    ".csv": as_csv,
    ".tex": as_latex,
    ".json": as_json,
}


def check_export(path: str | Path) -> None:
    """See that a file could be exported to.

    Raises:
        EvidentiaError: if its ending is not one of `EXPORTS`.
    """
    if Path(path).suffix not in EXPORTS:
        raise EvidentiaError(f"a table is exported to a file ending in {', '.join(EXPORTS)}, got {path}")


def export_table(table: StudyTable, path: str | Path) -> None:
    """Write a table to a file, whole or not at all; its ending says which format.

    Args:
        table: of a study.
        path: ending in `.md`, `.csv`, `.tex` or `.json`.
    """
    check_export(path)
    write_text(path, EXPORTS[Path(path).suffix](table))


def table_notes(table: StudyTable) -> list[str]:
    """What a reader has to know: jobs that are missing, known misprints and other remarks on published figures."""
    notes = []
    if table.missing:
        failed = f", {len(table.failures)} of which failed" if table.failures else ""
        notes.append(f"{table.missing} of {len(table.plan.jobs)} jobs have no result{failed}")
    remarks: dict[str, list[str]] = {}
    for row in table.rows:
        if row.published is not None and row.published.note:
            kind = "misprint" if row.published.misprint else "published"
            remarks.setdefault(f"{kind}: {row.published.note}", []).append(f"{row.published.row}, {row.metric}")
    return notes + [f"{'; '.join(cells)} ({note})" for note, cells in remarks.items()]


def _caption(table: StudyTable) -> str:
    seeds = f"{len(table.plan.seeds)} seeds" if len(table.plan.seeds) > 1 else "one seed"
    unit = ", in %" if table.plan.study.unit == "%" else ""
    return f"Preset {table.plan.preset}, {seeds}: mean ± standard deviation{unit}."


def _heading(name: str, table: StudyTable) -> str:
    return f"{name}, %" if table.plan.study.unit == "%" else name


def _digits(unit: str) -> int:
    return 1 if unit == "%" else 3


def _texts(row: TableRow, axes: Sequence[str], beside: bool, unit: str) -> list[str]:
    digits = _digits(unit)
    spread = "" if row.std is None else f" ± {row.std:.{digits}f}"
    cells = [*(row.cell.labels[axis] for axis in axes), row.metric, f"{row.mean:.{digits}f}{spread}", str(row.n)]
    if not beside:
        return cells
    figure = row.published
    if figure is None or row.difference is None:
        return [*cells, "", "", ""]
    theirs = "" if figure.spread is None else f" ± {figure.spread:.{digits}f}"
    mark = "*" if figure.misprint else ""
    return [*cells, f"{figure.value:.{digits}f}{theirs}{mark}", f"{row.difference:+.{digits}f}", row.verdict or ""]


def _row_json(row: TableRow) -> dict[str, Any]:
    figure = row.published
    return {
        "labels": dict(row.cell.labels),
        "configuration": dict(row.cell.configuration),
        "metric": row.metric,
        "values": {str(seed): value for seed, value in row.values.items()},
        "mean": row.mean,
        "std": row.std,
        "n": row.n,
        "published": None if figure is None else figure.value,
        "published_std": None if figure is None else figure.spread,
        "published_cell": None if figure is None else [figure.table, figure.row, figure.column],
        "difference": row.difference,
        "noise": row.noise,
        "verdict": row.verdict,
        "misprint": None if figure is None else figure.misprint,
    }


def _markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _latex(text: str) -> str:
    return "".join(_LATEX.get(sign, sign) for sign in text)
