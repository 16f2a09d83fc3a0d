"""The tables of README and documentation, written between markers from committed results.

A page has, each on a line of its own, `<!-- results: NAME -->` and `<!-- end -->`; what stands between is written anew
by `make readme`, which runs this module with the folder of results and the pages.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from evidentia._support.errors import EvidentiaError
from evidentia._support.files import write_text
from evidentia.experiments.published_figures import PublishedFigure, published_figure
from evidentia.experiments.studies import STUDIES
from evidentia.experiments.study_export import (
    markdown_table,
    table_notes,
    table_texts,
    verdict_counts,
    verdict_sentence,
)
from evidentia.experiments.study_results import read_results
from evidentia.experiments.study_row import VERDICTS, TableRow
from evidentia.experiments.study_table import StudyTable

Tables = Mapping[str, StudyTable]
"""Tables of studies by preset and name, such as `full/graph-ood`."""

# Seeds below which a figure is no claim.
_ENOUGH = 5

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


def unknown_classes(tables: Tables) -> str:
    """For the README: which nodes are of classes never seen, on each graph."""
    table = _table(tables, "full/graph-ood")
    rows = []
    for data, name in _graphs(table, "s-bgcn-t-kw", "auroc.vacuity"):
        ours = _row(table, "auroc.vacuity", data=data, method="s-bgcn-t-kw")
        others = [
            _row(table, f"auroc.{score}", data=data, method=method)
            for method, score in (("gcn", "entropy"), ("gnnsafe-energy", "energy"), ("gpn", "vacuity"))
        ]
        theirs = published_figure("graph-ood", f"{data}/s-bgcn-t-k", "auroc.vacuity")
        cells = [_seeds(name, ours, others), *map(_mean, others), _published(theirs), _spread(ours)]
        rows.append(cells)
    heads = ["GCN, entropy", "GNNSafe, energy", "GPN, vacuity", "the thesis' best (published)", "evidentia, vacuity"]
    return markdown_table(["", *heads], rows)


def wrong_labels(tables: Tables) -> str:
    """For the README: which labels are wrong, on each graph."""
    table = _table(tables, "full/graph-misclassification")
    rows = []
    for data, name in _graphs(table, "s-bgcn-t-k", "auroc.dissonance"):
        entropy, ours, accuracy = (
            _row(table, metric, data=data, method="s-bgcn-t-k")
            for metric in ("auroc.entropy", "auroc.dissonance", "accuracy")
        )
        rival = _row(table, "auroc.dissonance", data=data, method="dpn-gcn")
        rows.append(
            [
                _seeds(name, ours, [entropy, rival]),
                *(_mean(entropy), _mean(rival), _published(_beside(ours)), _spread(ours)),
                f"{_mean(accuracy)} ({_published(_beside(accuracy))})",
            ]
        )
    heads = ["entropy, same net", "DPN-GCN, dissonance", "published", "evidentia, dissonance", "accuracy (published)"]
    return markdown_table(["", *heads], rows)


def dirty_pool(tables: Tables) -> str:
    """For the README: two moons over the share of the pool that belongs to no class."""
    table = _table(tables, "full/semisup-moons-controls")
    names = {
        "separate BN": "batch norm, separate passes",
        "concatenated BN": "batch norm, one pass",
        "no BN": "no batch norm",
        "by uncertainty": "evidentia",
        "oracle": "oracle",
    }
    rows = []
    for ratio in dict.fromkeys(row.cell.labels["ratio"] for row in table.rows):
        found = {name: _row(table, "accuracy", method=name, ratio=ratio) for name in names}
        cells = [_spread(row) if name == "by uncertainty" else _mean(row) for name, row in found.items()]
        rows.append([f"{ratio}%", *cells])
    return markdown_table(["share of no class", *names.values()], rows)


def digits(tables: Tables) -> str:
    """For the README: handwritten digits, some never shown."""
    table = _table(tables, "full/digits")
    tasks = {
        "unknown": ("which digits were never shown?", "vacuity"),
        "wrong": ("which labels are wrong?", "dissonance"),
    }
    rows = []
    for task, (question, best) in tasks.items():
        scores = ("softmax-entropy", "softmax-entropy-density-scaled", best, "entropy")
        found = {score: _row(table, f"{task}.{score}", data="digits") for score in scores}
        cells = {score: "" if row is None else f"{row.mean:.3f}" for score, row in found.items()}
        rows.append([question, *(f"{cell} ({score})" if score == best else cell for score, cell in cells.items())])
    heads = ["softmax entropy", "the same, with a density of the features", "evidentia", "its entropy"]
    return markdown_table(["", *heads], rows)


def early_alarms(tables: Tables) -> str:
    """For the documentation: sound events over the delay that is allowed, F1 and false alarms a minute."""
    table = _table(tables, "full/events-delay")
    names = {"crnn": "CRNN", "crnn-pretrained": "CRNN, pretrained", "early-pretrained": "evidentia, pretrained"}
    metrics = ("at_delay.macro_f1", "at_delay.false_alarms_per_minute")
    rows = []
    for data, limit in dict.fromkeys((row.cell.labels["data"], row.cell.labels["limit"]) for row in table.rows):
        found = [[_row(table, metric, data=data, limit=limit, method=name) for metric in metrics] for name in names]
        rows.append([data, limit, *(_f1_and_alarms(*both) for both in found)])
    return markdown_table(["subset", "mean delay at most", *names.values()], rows)


PIVOTS: dict[str, Callable[[Tables], str]] = {
    "digits": digits,
    "unknown-classes": unknown_classes,
    "wrong-labels": wrong_labels,
    "dirty-pool": dirty_pool,
    "early-alarms": early_alarms,
}


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


def _table(tables: Tables, name: str) -> StudyTable:
    if name not in tables:
        raise EvidentiaError(f"a table of the README needs the results {name}, got {', '.join(tables)}")
    return tables[name]


def _graphs(table: StudyTable, method: str, metric: str) -> list[tuple[str, str]]:
    found = [row for row in table.rows if row.metric == metric and row.cell.labels["method"] == method]
    return [(row.cell.labels["data"], row.cell.labels["data"].capitalize()) for row in found]


def _row(table: StudyTable, metric: str, **labels: str) -> TableRow | None:
    return next((row for row in table.rows if row.metric == metric and row.cell.labels == labels), None)


def _count(table: StudyTable, axis: str, label: str, verdict: str) -> int:
    return sum(row.cell.labels[axis] == label and row.verdict == verdict for row in table.rows)


def _seeds(name: str, ours: TableRow | None, others: Sequence[TableRow | None]) -> str:
    n = 0 if ours is None else ours.n
    counts = sorted({row.n for row in others if row is not None})
    rest = [] if counts == [n] else counts
    return f"{name} ({n} seeds{'; others ' + ' or '.join(map(str, rest)) if rest else ''})"


def _mean(row: TableRow | None) -> str:
    return "" if row is None else f"{row.mean:.1f}"


def _f1_and_alarms(f1: TableRow | None, alarms: TableRow | None) -> str:
    """With the number of seeds, where they are too few for a claim."""
    if f1 is None or alarms is None:
        return "not run"
    few = f" (n = {f1.n})" if f1.n < _ENOUGH else ""
    return f"{f1.mean:.3f}, {alarms.mean:.1f} a minute{few}"


def _spread(row: TableRow | None) -> str:
    return "" if row is None else f"{row.mean:.1f} ± {row.std or 0.0:.1f}"


def _beside(row: TableRow | None) -> PublishedFigure | None:
    return None if row is None else row.published


def _published(figure: PublishedFigure | None) -> str:
    return "" if figure is None else f"{figure.value:.1f}"


def _machine(kind: Mapping[str, str]) -> str:
    return f"{kind.get('processor')}, {kind.get('cores')} cores, Python {kind.get('python')}, torch {kind.get('torch')}"


if __name__ == "__main__":
    main(sys.argv[1:])
