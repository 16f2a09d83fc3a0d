"""`evidentia semisup`: a robust method on a dirty pool, over several seeds, with the controls beside it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from evidentia._support.errors import EvidentiaError
from evidentia._support.files import check_writable
from evidentia.cli.console import plain_console
from evidentia.cli.figures import over_seeds, percent, titled_table
from evidentia.experiments.semisup_published import published_accuracy
from evidentia.experiments.semisup_runs import PoolRuns
from evidentia.semisup import SemiSupervisedTraining, pool_kinds
from evidentia.semisup.data.by_name import known_name
from evidentia.semisup.tasks import ALL_LABELS, COMPUTE_MATCHED, check_task

Row = tuple[str, dict[str, Any]]

_GOES_ON = "the same command goes on from here"
_CONSTANTS = {"True": True, "False": False, "None": None}
_OPTIONS = {
    **{name: f"--{name}" for name in ("norm", "passes", "updates", "checkpoint")},
    "seed": "--first-seed and --seeds",
    "log": "--checkpoint, which keeps a log as well",
}
_TRAINING = [name for name in SemiSupervisedTraining.model_fields if name not in (*_OPTIONS, "progress")]
_TRAINING += ["network", "augmentation", "standardise", "device"]


def run_semisup(
    settings: dict[str, Any],
    seeds: Sequence[int],
    *,
    json_file: Path | None = None,
    picture: Path | None = None,
    checkpoint: Path | None = None,
    controls: bool = True,
) -> None:
    """Run the method, write what it gave, then run the controls and write again; print a table at the end."""
    settings = _complete(settings)
    check_task(**settings, seed=max(seeds))
    if json_file is not None:
        check_writable(json_file)
        if picture is not None and json_file.resolve() == picture.resolve():
            raise EvidentiaError(f"--json and --picture are both {json_file}; give two files")
    if picture is not None:
        from evidentia.reports.style import check_picture

        check_picture(picture)
    console, notes = plain_console(), plain_console(stderr=True)
    started = 0

    def announce(name: str, seed: int) -> None:
        nonlocal started
        started += 1
        total = runs.trainings if controls else len(seeds)
        what = settings["robust"] if name == "method" else name
        notes.print(f"{started}/{total}  {what}, seed {seed}", style="dim", highlight=False)

    runs = PoolRuns(settings, seeds, checkpoint, announce)
    try:
        runs.run_method()
        if json_file is not None:
            runs.save(json_file)
        if picture is not None:
            _draw(runs, picture)
        if controls:
            runs.run_controls()
            if json_file is not None:
                runs.save(json_file)
    except KeyboardInterrupt:
        kept = "trainings are kept with --checkpoint only" if checkpoint is None else _GOES_ON
        notes.print(f"stopped: {kept}", highlight=False)
        raise
    _print(console, runs)


def given_settings(given: Sequence[str]) -> dict[str, Any]:
    """Settings of the form `name=value`, as `train_task` takes them; values are JSON, Python's constants or else names.

    A name alone is of the robust method; `objective.name`, `training.name` and `data.name` are of these.

    Example:
        >>> given_settings(["clusters=50", "joint=False", "objective.epsilon=0.5", "training.learning_rate=1e-3"])
        {'robust_options': {'clusters': 50, 'joint': False}, 'objective_options': {'epsilon': 0.5}, 'data_options': {},
        'learning_rate': 0.001}
    """
    found: dict[str, dict[str, Any]] = {"robust": {}, "objective": {}, "data": {}, "training": {}}
    for each in given:
        name, equals, value = each.partition("=")
        group, dot, own = name.rpartition(".")
        if not own or not equals or (dot and group not in found):
            raise EvidentiaError(
                "a setting is given as name=value, such as clusters=50, objective.epsilon=0.5, "
                f"training.learning_rate=0.001 or data.labels_per_class=5, got {each!r}"
            )
        found[group or "robust"][own] = _value(value)
    for name in found["training"]:
        if name in _OPTIONS:
            raise EvidentiaError(f"training.{name} is given by {_OPTIONS[name]}")
        if name not in _TRAINING:
            raise EvidentiaError(f"training has no setting {name!r}; choose one of: {', '.join(_TRAINING)}")
    options = {f"{group}_options": found[group] for group in ("robust", "objective", "data")}
    return {**options, **found["training"]}


def _value(text: str) -> Any:
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _complete(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings with the names and the share of OOD that are meant."""
    data = known_name(settings["data"])
    ood = settings["ood"] or pool_kinds(data)[0]
    ratio = settings["ratio"]
    if ood == "none":
        return {**settings, "data": data, "ood": None, "ratio": ratio or None}
    # With a share of 0 too: which classes there are to learn may follow from what is left out.
    return {**settings, "data": data, "ood": ood, "ratio": 0.5 if ratio is None else ratio}


def _draw(runs: PoolRuns, path: Path) -> None:
    from evidentia.reports import pool_picture, save_figure

    data = runs.first.data
    figure = pool_picture(
        runs.first.classifier.review(),
        data.x_unlabeled,
        labeled=(data.x_labeled, data.y_labeled),
        title=f"{_task(runs.settings)}, {runs.settings['robust']}, seed {runs.seeds[0]}",
    )
    save_figure(figure, path)


def _print(console: Console, runs: PoolRuns) -> None:
    settings, result = runs.settings, runs.method
    rows: list[Row] = [(settings["robust"], result), *runs.controls.items()]
    figures = [_published(row[1]["configuration"]) for row in rows]
    title = f"{_task(settings)}: accuracy in %, {over_seeds(len(runs.seeds))}"
    headings = ["method", "accuracy", *(["published"] if any(figures) else []), "w_in / w_ood", "AUROC", "seconds"]
    table = titled_table(title, headings)
    for index, ((name, found), figure) in enumerate(zip(rows, figures, strict=True)):
        cells = _cells(found, [figure] if any(figures) else [])
        table.add_row(name, *cells, style=None if index else "bold", end_section=not index)
    console.print(table)
    for note in _notes(runs):
        console.print(note, highlight=False)
    cost = f"{result['wall_seconds']:.0f} s for the method, {result['peak_memory_bytes'] / 1e6:.0f} MB at most"
    console.print(cost, style="dim", highlight=False)


def _cells(found: dict[str, Any], published: list[str]) -> list[str]:
    mean, std = found["mean"], found["std"]
    weights = auroc = ""
    # Without a method every sample weighs 1.
    if found["configuration"]["robust"] not in ("none", "supervised"):
        weights = " / ".join(f"{mean[name]:.2f}" for name in ("w_in", "w_ood") if name in mean)
        auroc = f"{mean['ood_auroc']:.3f}" if "ood_auroc" in mean else ""
    return [percent(mean["accuracy"], std["accuracy"]), *published, weights, auroc, f"{mean['seconds']:.1f}"]


def _published(configuration: dict[str, Any]) -> str:
    if configuration.get("validation_use") == "labeled" or configuration["data_options"]:
        return ""
    parts = ("data", "objective", "robust", "ood", "ratio", "norm", "passes")
    figure = published_accuracy(*(configuration[part] for part in parts))
    return "" if figure is None else f"{figure.value:.1f}"


def _notes(runs: PoolRuns) -> list[str]:
    """Which labels and updates there were."""
    data, extra = runs.first.data, runs.settings["validation"]
    labeled, updates = len(data.y_labeled), runs.first.result.updates
    notes = [f"labels: {labeled} to train on, {extra or 'none'} for validation; updates: {updates:,}"]
    if ALL_LABELS in runs.controls:
        notes.append(f"{ALL_LABELS}: trained on the {labeled} and on the {extra} for validation")
    if COMPUTE_MATCHED in runs.controls:
        more = runs.controls[COMPUTE_MATCHED]["mean"]["updates"]
        notes.append(f"{COMPUTE_MATCHED}: the plain objective with {more:,.0f} updates, in the time of the method")
    return notes


def _task(settings: dict[str, Any]) -> str:
    dirt = f"{settings['ratio']:.0%} {settings['ood']}" if settings["ratio"] else "a clean pool"
    return f"{settings['data']}, {dirt}, {settings['objective']}"
