"""The table of a study in words, and as Markdown, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from evidentia._support.errors import EvidentiaError
from evidentia._support.files import check_writable, write_text
from evidentia.experiments.published_figures import printed_decimals
from evidentia.experiments.study_results import as_json, row_json
from evidentia.experiments.study_row import VERDICTS, TableRow, Verdict
from evidentia.experiments.study_table import StudyTable

_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$"}
_LATEX |= {sign: f"\\{sign}" for sign in "&%$#_{}"}


def table_texts(table: StudyTable) -> tuple[list[str], list[list[str]]]:
    """The headings and the rows of a table as it is printed: axes, metric, ours, n, published, difference, verdict."""
    beside = ["published", "difference", "verdict"] if table.has_published else []
    headings = [*table.axes, "metric", _heading("ours", table), "n", *beside]
    return headings, [_texts(row, table.axes, bool(beside), table.unit) for row in table.rows]


def paired_texts(table: StudyTable) -> tuple[list[str], list[list[str]]]:
    """The headings and the rows of the paired tests."""
    axes = [axis for axis in table.axes if table.tests and axis in table.tests[0].labels]
    headings = [*axes, "metric", "method", "against", "difference", "n", "p", "p (Holm)"]
    digits = _digits(table.unit)
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
    parts = [f"## {table.title}", table_caption(table), markdown_table(*table_texts(table))]
    if table.tests:
        parts += ["Paired t-tests of the same seeds:", markdown_table(*paired_texts(table))]
    parts += [f"- {note}" for note in table_notes(table)]
    return "\n\n".join(parts) + "\n"


def as_csv(table: StudyTable) -> str:
    """One line a row, all digits."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    figures = ["mean", "std", "n", "published", "published_std", "difference", "noise", "verdict", "misprint"]
    writer.writerow([*table.axes, "metric", "unit", *figures])
    for row in table.rows:
        entry = row_json(row)
        labels = [row.cell.labels[axis] for axis in table.axes]
        cells = ["" if entry[name] is None else entry[name] for name in figures]
        writer.writerow([*labels, row.metric, table.unit, *cells])
    return file.getvalue()


def as_latex(table: StudyTable) -> str:
    """A `tabular`, for `booktabs`."""
    headings, rows = table_texts(table)
    first = len(table.axes) + 1
    lines = [" & ".join(map(_latex, row)) + r" \\" for row in (headings, *rows)]
    body = [r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule"]
    note = f"% {table.title}{'' if table.title.endswith(('.', '?', '!')) else '.'} {table_caption(table)}"
    return "\n".join(
        [note, rf"\begin{{tabular}}{{{'l' * first}{'r' * (len(headings) - first)}}}", *body, r"\end{tabular}", ""]
    )


EXPORTS: dict[str, Callable[[StudyTable], str]] = {
    ".md": as_markdown,
    ".csv": as_csv,
    ".tex": as_latex,
    ".json": as_json,
}


def check_export(path: str | Path) -> None:
    """See that a file could be exported to.

    Raises:
        EvidentiaError: if its ending is not one of `EXPORTS`, or no file can be made where it is to stand.
    """
    if Path(path).suffix not in EXPORTS:
        raise EvidentiaError(f"a table is exported to a file ending in {', '.join(EXPORTS)}, got {path}")
    check_writable(path)


def export_table(table: StudyTable, path: str | Path) -> None:
    """Write a table to a file, whole or not at all; its ending says which format.

    Args:
        table: of a study.
        path: ending in `.md`, `.csv`, `.tex` or `.json`.

    Example:
        >>> import tempfile
        >>> from evidentia.experiments import StudyStore, find_study, plan_study, read_results, study_table
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with StudyStore(f"{folder}/results.sqlite") as store:
        ...         table = study_table(plan_study(find_study("semisup-moons-p")), store)
        ...     export_table(table, f"{folder}/table.json")
        ...     read_results(f"{folder}/table.json").study
        'semisup-moons-p'
    """
    check_export(path)
    write_text(path, EXPORTS[Path(path).suffix](table))


def table_notes(table: StudyTable) -> list[str]:
    """What a reader has to know: jobs that are missing, known misprints and other remarks on published figures."""
    notes = []
    if table.missing:
        failed = f", {len(table.failures)} of which failed" if table.failures else ""
        notes.append(f"{table.missing} of {table.jobs} jobs have no result{failed}")
    remarks: dict[str, list[str]] = {}
    for row in table.rows:
        if row.published is not None and row.published.note:
            kind = "misprint" if row.published.misprint else "published"
            remarks.setdefault(f"{kind}: {row.published.note}", []).append(f"{row.published.row}, {row.metric}")
    # Cells may share a published figure.
    return notes + [f"{'; '.join(dict.fromkeys(cells))} ({note})" for note, cells in remarks.items()]


def table_caption(table: StudyTable) -> str:
    """How many seeds there are, and what a cell holds."""
    unit = ", in %" if table.unit == "%" else ""
    return f"Preset {table.preset}, {seeds_text(table)}: mean ± standard deviation{unit}."


def seeds_text(table: StudyTable) -> str:
    """How many seeds there are, in words."""
    return f"{len(table.seeds)} seeds" if len(table.seeds) > 1 else "one seed"


def verdict_counts(table: StudyTable) -> dict[Verdict, int]:
    """How many figures lie above, within the noise of, and below the published."""
    found = Counter(row.verdict for row in table.rows)
    return {verdict: found[verdict] for verdict in VERDICTS}


def verdict_sentence(table: StudyTable) -> str:
    """The counts in words."""
    counts = verdict_counts(table)
    total = sum(counts.values())
    parts = ", ".join(f"{number} {verdict}" for verdict, number in counts.items())
    single = sum(row.published is not None and row.verdict is None for row in table.rows)
    unjudged = f"; {single} with one seed, and so without a noise to judge by" if single else ""
    return f"Of {total} figures that the thesis prints too: {parts}{unjudged}."


def _heading(name: str, table: StudyTable) -> str:
    return f"{name}, %" if table.unit == "%" else name


def _digits(unit: str, value: float = 1.0) -> int:
    """One decimal of a percentage; three of others, and of a small one as many as show three digits."""
    if unit == "%":
        return 1
    return 3 if abs(value) >= 0.1 or value == 0 else 2 - math.floor(math.log10(abs(value)))


def _texts(row: TableRow, axes: Sequence[str], beside: bool, unit: str) -> list[str]:
    digits = _digits(unit, row.mean)
    spread = "" if row.std is None else f" ± {row.std:.{digits}f}"
    cells = [*(row.cell.labels[axis] for axis in axes), row.metric, f"{row.mean:.{digits}f}{spread}", str(row.n)]
    if not beside:
        return cells
    figure = row.published
    if figure is None or row.difference is None:
        return [*cells, "", "", ""]
    printed = printed_decimals(figure.table, figure.column)
    theirs = "" if figure.spread is None else f" ± {figure.spread:.{printed}f}"
    mark = "*" if figure.misprint else ""
    return [*cells, f"{figure.value:.{printed}f}{theirs}{mark}", f"{row.difference:+.{digits}f}", row.verdict or ""]


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _latex(text: str) -> str:
    return "".join(_LATEX.get(sign, sign) for sign in text)
