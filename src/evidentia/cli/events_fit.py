"""`evidentia events train` and `evaluate`: a detector, and its figures."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from evidentia._support.errors import EvidentiaError
from evidentia._support.files import check_writable
from evidentia.cli.console import plain_console
from evidentia.cli.events_clips import SOUND_RATE, check_background, has_parts, is_series, read_clips
from evidentia.cli.events_sources import told_as_options
from evidentia.cli.figures import titled_table
from evidentia.evaluation import EarlyScores
from evidentia.events import ANY, Clip, EventDetector, FusionHead
from evidentia.events.data.by_name import DATASETS
from evidentia.events.data.sound_folder import is_sound_folder
from evidentia.experiments.record import RunRecord

# Where none came in a time in which three were to be expected, fewer are meant, with a certainty of 95%.
_ENOUGH = 3.0
_TARGETS = {
    "false_alarms_per_minute": "at most {:g} false alarms a minute",
    "delay": "a mean delay of at most {:g} s",
    "macro_f1": "a macro F1 of at least {:g}",
}


def run_train(
    data: str,
    out: Path,
    model: dict[str, Any],
    *,
    clips: int | None,
    validation: str | None = None,
    data_root: Path | None = None,
    rate: float | None = None,
    time_column: str | None = None,
    background: Path | None = None,
) -> None:
    """Load, fit, save, and print what was calibrated."""
    check_writable(out)
    check_background(data, background)
    sound = model.get("sound", not is_series(data))
    model = {"network": "crnn" if sound else "temporal", **model, "sound": sound}
    detector, begin = EventDetector(**model), time.monotonic()
    source: dict[str, Any] = {"seed": model["seed"], "data_root": data_root, "background": background}
    source |= {"series_rate": rate, "time_column": time_column}
    training = read_clips(data, "train", count=clips, **source)
    held = _held_out(data, validation, clips, source)
    with told_as_options(), warnings.catch_warnings():
        # It is told in a sentence of its own, beneath the target.
        warnings.filterwarnings("ignore", message="the clips to calibrate on")
        detector.fit(training, held)
    detector.save(out)
    console = plain_console()
    size = sum(parameter.numel() for parameter in detector.network_.parameters())
    console.print(
        f"{_short(data)}: {len(training):,} clips, {len(detector.labels_)} classes; {model['network']}, {size:,} "
        f"parameters, {len(detector.history_)} epochs, {time.monotonic() - begin:.0f} s",
        highlight=False,
    )
    _print_calibration(console, detector)
    console.print(f"written to {out}", style="dim", highlight=False, soft_wrap=True)


def run_evaluate(
    model: Path,
    data: str,
    *,
    clips: int | None = None,
    seed: int = 0,
    scoring: Mapping[str, Any],
    trigger: Mapping[str, Any],
    data_root: Path | None = None,
    rate: float | None = None,
    time_column: str | None = None,
    background: Path | None = None,
    json_file: Path | None = None,
    picture: Path | None = None,
) -> None:
    """Score a detector, print the figures, write them and draw the first clip."""
    if json_file is not None:
        check_writable(json_file)
    check_background(data, background)
    if picture is not None:
        from evidentia.reports.style import check_picture

        check_picture(picture)
    detector = EventDetector.load(model)
    record = RunRecord(
        {"model": model.name, "data": _short(data), "clips": clips, **scoring, **_configuration(detector, trigger)}
    )
    wanted = float(detector.inputs_.sample_rate)
    # A series in CSV files may have any rate, but sound is resampled to whole numbers of samples a second.
    sound_rate = int(wanted) if wanted.is_integer() else SOUND_RATE
    found = read_clips(
        data,
        "test",
        count=clips,
        seed=seed,
        data_root=data_root,
        rate=sound_rate,
        series_rate=rate,
        time_column=time_column,
        background=background,
    )
    if is_sound_folder(data):
        typer.echo(
            f"clips are mixed from all sounds in {data}; if the detector was trained on some of them, its scores are "
            "too good: give a folder of other sounds",
            err=True,
        )
    if not any(label in detector.labels_ for clip in found for label in clip.labels):
        raise EvidentiaError(
            f"{_short(data)} has no event of a class that the detector knows: {', '.join(detector.labels_)}"
        )
    with told_as_options():
        scores = detector.evaluate(found, **scoring, **trigger)
    names = detector.labels_ if len(scores.f1) == len(detector.labels_) else (ANY,)
    metrics = _metrics(scores, names)
    record.add(seed, metrics)
    if json_file is not None:
        record.save(json_file)
    _print_scores(plain_console(), f"{_short(data)}, {len(found)} clips, by {scoring['by']}", metrics)
    if picture is not None:
        from evidentia.reports import clip_picture, save_figure

        save_figure(clip_picture(detector, found[0], **trigger), picture)


def _held_out(data: str, validation: str | None, clips: int | None, source: Mapping[str, Any]) -> list[Clip] | None:
    """Clips to calibrate on; None if a part of the training clips is to be held out."""
    if validation is None and not has_parts(data):
        return None
    given = data if validation is None else validation
    # Of sounds that are trained on, and of data sets, there is a part for it; a folder of other sounds is taken whole.
    part = "validation" if given == data or given in DATASETS else "test"
    few = math.ceil(clips / 4) if clips is not None and has_parts(given) else None
    return read_clips(given, part, count=few, **source)


def _short(data: str) -> str:
    """The name of data; of a path its last part, so that figures do not depend on where files lie."""
    return data if data in DATASETS else Path(data).name


def _configuration(detector: EventDetector, trigger: Mapping[str, Any]) -> dict[str, Any]:
    left_out = {"checkpoint", "progress"}
    return {
        "network": detector.network,
        "size": detector.size,
        "preset": detector.preset,
        "head": detector.head_.describe(),
        "labels": list(detector.labels_),
        "training": detector.settings.model_dump(mode="json", exclude=left_out),
        "tuning": detector.tuning.model_dump(mode="json"),
        "trigger": {**detector.trigger.model_dump(mode="json"), **trigger},
    }


def _metrics(scores: EarlyScores, names: tuple[str, ...]) -> dict[str, Any]:
    """All figures that something was counted for."""
    figures: dict[str, Any] = {name: value for name, value in scores.summary().items() if value is not None}
    classes: dict[str, dict[str, float]] = {}
    for k, name in enumerate(names):
        counted = {
            "f1": float(scores.f1[k]),
            "precision": float(scores.precision[k]),
            "recall": float(scores.recall[k]),
            "delay": float(scores.class_delay[k]),
            "true_positives": int(scores.true_positives[k]),
            "false_positives": int(scores.false_positives[k]),
            "false_negatives": int(scores.false_negatives[k]),
        }
        classes[name] = {part: value for part, value in counted.items() if not math.isnan(value)}
    return {**figures, "classes": classes}


def _print_scores(console: Console, title: str, metrics: dict[str, Any]) -> None:
    table = titled_table(title, ["class", "F1", "precision", "recall", "delay, s", "hits", "false", "missed"])
    for name, found in metrics["classes"].items():
        shares = [_number(found.get(part), "{:.3f}") for part in ("f1", "precision", "recall", "delay")]
        counts = [str(found[part]) for part in ("true_positives", "false_positives", "false_negatives")]
        table.add_row("any" if name == ANY else name, *shares, *counts)
    console.print(table)
    inference = f"inference took {metrics['inference_time']:.4f} processor seconds a second of input"
    for line in (*_figures(metrics), inference):
        console.print(line, highlight=False)


def _figures(scores: dict[str, Any]) -> list[str]:
    f1, micro, delay, censored, alarms = (
        _number(scores.get(name), "{:.3f}")
        for name in ("macro_f1", "micro_f1", "delay", "censored_delay", "false_alarms_per_minute")
    )
    return [
        f"macro F1 {f1}, micro F1 {micro}, {alarms} false alarms a minute",
        f"delay {delay} s over hits; {censored} s if a miss counts to the end of its event",
    ]


def _asked(name: str, value: float) -> str:
    """A target in words; a rate that nobody has a feeling for by the minute also by the hour."""
    told = _TARGETS[name].format(value)
    return f"{told} ({60 * value:.3g} an hour)" if name == "false_alarms_per_minute" and 0 < value < 0.1 else told


def _minutes(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _print_calibration(console: Console, detector: EventDetector) -> None:
    found = detector.calibration_
    target = found["target"]
    asked = " and ".join(_asked(name, value) for name, value in target.items())
    met = "met" if found["met"] else "NOT met, the nearest was taken"
    console.print(f"calibrated on clips held out to {asked}: {met}", highlight=False)
    rate = target.get("false_alarms_per_minute", 0.0)
    if 0 < rate * found["minutes"] < _ENOUGH:
        known, needed = (_minutes(each) for each in (found["minutes"], _ENOUGH / rate))
        console.print(f"  on {known} minutes; to be sure takes about {needed}: more may come", highlight=False)
    if found["missing"]:
        missing = "any class" if len(found["missing"]) == len(detector.labels_) else ", ".join(found["missing"])
        console.print(f"  they have no event of {missing}: nothing is known of when to call it", highlight=False)
    for line in _figures(found["scores"]):
        console.print(f"  {line}", highlight=False)
    console.print(_settings_table(detector.head_, detector.labels_))


def _settings_table(head: FusionHead, labels: tuple[str, ...]) -> Table:
    """Thresholds, windows and decays of each class; in one row if all classes share them."""
    settings = {
        name: value
        for name, value in head.model_dump().items()
        if isinstance(value, int | float | tuple | list) and not isinstance(value, bool)
    }
    table = titled_table(f"{head.name}, calibrated", ["class", *(name.replace("_", " ") for name in settings)])
    alike = not any(isinstance(value, tuple | list) for value in settings.values())
    for k, label in enumerate(("all",) if alike else labels):
        row = [value[k] if isinstance(value, tuple | list) else value for value in settings.values()]
        table.add_row(label, *(f"{value:.3g}" for value in row))
    return table


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)
