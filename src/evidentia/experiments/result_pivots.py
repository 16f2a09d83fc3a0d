"""Tables that answer one question each from committed results, for README and documentation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from evidentia._support.errors import EvidentiaError
from evidentia.experiments.published_figures import PublishedFigure, published_figure
from evidentia.experiments.studies.pools import OURS as _OURS
from evidentia.experiments.study_export import markdown_table
from evidentia.experiments.study_row import TableRow
from evidentia.experiments.study_table import StudyTable

Tables = Mapping[str, StudyTable]
"""Tables of studies by preset and name, such as `full/graph-ood`."""

# Seeds below which a figure is no claim.
_ENOUGH = 5

_CONTROLS = {"no BN", "concatenated BN", "separate BN", "frozen BN", "compute-matched"}
_KINDS = {
    "fashion": "clothes",
    "emnist": "letters",
    "mean": "blends of two digits",
    "mixed": "clothes and letters",
    "letters": "letters",
    "svhn": "SVHN's numbers",
}
_CLASSES = {
    "mnist": "MNIST",
    "digits": "scikit-learn digits",
    "cifar10": "CIFAR-10, six animals",
    "svhn": "SVHN 0 to 4",
}
_OTHERS = {
    ("digits", "held-out"): "digits 5 to 9",
    ("cifar10", "held-out"): "its four vehicles",
    ("svhn", "held-out"): "SVHN 5 to 9",
}


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


def pools_of_pictures(tables: Tables) -> str:
    """For the guide: MNIST with a clean pool and with ones of which most is of no class, by every way to train."""
    methods = ("no BN", "concatenated BN", "frozen BN", "compute-matched", _OURS, "oracle")
    rows: dict[str, list[list[str]]] = {"clean": []}
    for table in (_table(tables, "full/semisup-mnist-clean"), _pools(tables)):
        for labels in _cells(table):
            found = {method: _row(table, "accuracy", **labels, method=method) for method in methods}
            if (ours := found[_OURS]) is not None and ours.n >= _ENOUGH:
                pool = _dirty(labels["ratio"], labels["ood"]) if "ood" in labels else "clean"
                cells = [_spread(row) if method == _OURS else _mean(row) for method, row in found.items()]
                rows.setdefault(pool, []).append([pool, f"`{labels['objective']}`", *cells])
    heads = ["pool", "objective", *methods[:4], "`uncertainty`", "oracle"]
    return markdown_table(heads, [row for several in rows.values() for row in several])


def gains_on_pools(tables: Tables) -> str:
    """For the documentation: MNIST, by how many points ours is above the best control, and above the best rival."""
    table = _pools(tables)
    objectives = dict.fromkeys(labels["objective"] for labels in _cells(table))
    rows = []
    for ratio, ood in dict.fromkeys((labels["ratio"], labels["ood"]) for labels in _cells(table)):
        cells = []
        for objective in objectives:
            rows_of = {
                row.cell.labels["method"]: row
                for row in table.rows
                if row.metric == "accuracy"
                and [row.cell.labels[axis] for axis in ("objective", "ood", "ratio")] == [objective, ood, ratio]
                and row.n >= _ENOUGH
            }
            cells.append(_gains(rows_of))
        if any(cells):
            rows.append([_dirty(ratio, ood), *cells])
    return markdown_table(["pool", *objectives], rows)


def _dirty(ratio: str, ood: str) -> str:
    return f"{ratio}% {_KINDS[ood]} (`{ood}`)"


def _gains(rows: Mapping[str, TableRow]) -> str:
    """Ours over the best control, and over the best rival with how many rivals there are."""
    if _OURS not in rows or not rows.keys() >= _CONTROLS:
        return ""
    ours, rivals = rows[_OURS].mean, rows.keys() - _CONTROLS - {_OURS, "oracle"}
    over = f"{ours - max(rows[name].mean for name in _CONTROLS):+.1f}"
    return f"{over}; {ours - max(rows[name].mean for name in rivals):+.1f} ({len(rivals)})" if rivals else over


def found_in_pools(tables: Tables) -> str:
    """For the guide: what the discriminator finds in a pool before training."""
    table = _table(tables, "quick/semisup-found")
    metrics = ("ood_auroc", "w_in", "w_ood")
    rows = []
    for labels in _cells(table):
        data, _, ood = labels["pool"].partition(", ")
        found = [_row(table, metric, **labels) for metric in metrics]
        numbers = ["" if row is None else f"{row.mean:.2f}" for row in found]
        rows.append([_CLASSES[data], _OTHERS.get((data, ood), _KINDS.get(ood, ood)), *numbers])
    return markdown_table(["classes", "others in the pool", "AUROC", "w in", "w out"], rows)


PIVOTS: dict[str, Callable[[Tables], str]] = {
    "digits": digits,
    "unknown-classes": unknown_classes,
    "wrong-labels": wrong_labels,
    "dirty-pool": dirty_pool,
    "pools-of-pictures": pools_of_pictures,
    "gains-on-pools": gains_on_pools,
    "found-in-pools": found_in_pools,
    "early-alarms": early_alarms,
}


def _pools(tables: Tables) -> StudyTable:
    return _table(tables, "full/semisup-mnist-controls")


def _cells(table: StudyTable) -> list[dict[str, str]]:
    """The labels of all rows but for their method, each once."""
    found = ({axis: label for axis, label in row.cell.labels.items() if axis != "method"} for row in table.rows)
    return [dict(pairs) for pairs in dict.fromkeys(tuple(labels.items()) for labels in found)]


def _table(tables: Tables, name: str) -> StudyTable:
    if name not in tables:
        raise EvidentiaError(f"a table of the README needs the results {name}, got {', '.join(tables)}")
    return tables[name]


def _graphs(table: StudyTable, method: str, metric: str) -> list[tuple[str, str]]:
    found = [row for row in table.rows if row.metric == metric and row.cell.labels["method"] == method]
    return [(row.cell.labels["data"], row.cell.labels["data"].capitalize()) for row in found]


def _row(table: StudyTable, metric: str, **labels: str) -> TableRow | None:
    return next((row for row in table.rows if row.metric == metric and row.cell.labels == labels), None)


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
