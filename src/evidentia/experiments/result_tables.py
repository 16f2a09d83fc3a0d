"""The tables of README and documentation, written between markers from committed results.

A page has, each on a line of its own, `<!-- results: NAME -->` and `<!-- end -->`; what stands between is written anew
by `make readme`, which runs this module with the folder of results and the pages.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from evidentia._support.errors import EvidentiaError
from evidentia._support.files import write_text
from evidentia.experiments.result_pivots import PIVOTS, Tables
from evidentia.experiments.studies import STUDIES
from evidentia.experiments.study_export import (
    markdown_table,
    table_notes,
    table_texts,
    verdict_counts,
    verdict_sentence,
)
from evidentia.experiments.study_results import read_results
from evidentia.experiments.study_row import VERDICTS
from evidentia.experiments.study_table import StudyTable

_MARKED = re.compile(r"(<!-- results: (?P<name>[\w/-]+) -->\n)(?P<old>.*?)(<!-- end -->)", re.DOTALL)


def load_tables(folder: str | Path) -> dict[str, StudyTable]:
    """All tables in a folder of results, which has one for each preset.

    Args:
        folder: with files such as `full/graph-ood.json`.

    Raises:
        EvidentiaError: if there are none.
    """
    folder = Path(folder)
    tables = {f"{file.parent.name}/{file.stem}": read_results(file) for file in sorted(folder.glob("*/*.json"))}
    if not tables:
        raise EvidentiaError(f"there are no results in {folder}")
    return tables


def fill_page(text: str, tables: Tables) -> str:
    """A page with everything between its markers written anew.

    Args:
        text: of the page.
        tables: of `load_tables`.

    Raises:
        EvidentiaError: if a marker names what there is not, or is not closed.
    """

    def fill(found: re.Match[str]) -> str:
        name = found["name"]
        if name in PIVOTS:
            new = PIVOTS[name](tables)
        elif name in tables:
            new = verdicts(tables[name])
        elif name == "all":
            new = overview(tables)
        elif name.partition("/")[2] in STUDIES:
            new = "*No results of this are committed.*"
        else:
            known = ", ".join([*PIVOTS, "all", *tables])
            raise EvidentiaError(f"there are no results named {name!r}; choose one of: {known}")
        return f"{found[1]}\n{new}\n\n{found[4]}"

    if text.count("<!-- results:") != len(_MARKED.findall(text)):
        raise EvidentiaError("a marker '<!-- results: NAME -->' is not closed by '<!-- end -->'")
    return _MARKED.sub(fill, text)


def verdicts(table: StudyTable) -> str:
    """For the documentation: the verdicts on every method, and all rows to unfold."""
    parts = [
        f"`{table.commands[0]}`" if len(table.commands) == 1 else f"{len(table.commands)} runs of `evidentia graph`"
    ]
    if table.missing:
        parts += [
            f"Not all of it is run yet: {table.done} of {table.jobs} jobs are done; n says how many seeds a row has."
        ]
    if table.has_published:
        parts += [verdict_sentence(table)]
        axis = table.axes[-1]
        labels = dict.fromkeys(row.cell.labels[axis] for row in table.rows if row.verdict)
        counts = [[label, *(str(_count(table, axis, label, verdict)) for verdict in VERDICTS)] for label in labels]
        if len(counts) > 1:
            parts += [markdown_table([axis, *VERDICTS], counts)]
    notes = [f"- {note}" for note in table_notes(table)]
    rows = [markdown_table(*table_texts(table)), *(["\n".join(notes)] if notes else [])]
    parts += ["<details markdown><summary>All rows</summary>", *rows, "</details>"]
    return "\n\n".join(parts)


def overview(tables: Tables) -> str:
    """For the documentation: what was run, and how it compares."""
    rows = []
    for name, table in tables.items():
        found = map(str, verdict_counts(table).values()) if table.has_published else [""] * len(VERDICTS)
        part = f" ({table.done} of {table.jobs} jobs)" if table.missing else ""
        rows.append([name, table.title, f"{len(table.seeds)}{part}", *found])
    machines = dict.fromkeys(_machine(kind) for table in tables.values() for kind in table.environments)
    parts = [markdown_table(["results", "what", "seeds", *VERDICTS], rows)]
    parts += ["Run on: " + "; ".join(machines) + "."] if machines else []
    unknown = [name for name in STUDIES if not any(table.study == name for table in tables.values())]
    parts += [f"No results are committed of: {', '.join(unknown)}."] if unknown else []
    return "\n\n".join(parts)


def main(arguments: Sequence[str]) -> None:
    """Write the tables of pages anew.

    Args:
        arguments: the folder of results, and the pages.
    """
    folder, *pages = map(Path, arguments)
    tables = load_tables(folder)
    for page in pages:
        write_text(page, fill_page(page.read_text(encoding="utf-8"), tables))


def _count(table: StudyTable, axis: str, label: str, verdict: str) -> int:
    return sum(row.cell.labels[axis] == label and row.verdict == verdict for row in table.rows)


def _machine(kind: Mapping[str, str]) -> str:
    return f"{kind.get('processor')}, {kind.get('cores')} cores, Python {kind.get('python')}, torch {kind.get('torch')}"


if __name__ == "__main__":
    main(sys.argv[1:])
