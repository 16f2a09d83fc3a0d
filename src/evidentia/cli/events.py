"""`evidentia events`: train a detector of events, score it, and let it listen."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

events = typer.Typer(
    name="events",
    help="Call events on live sound or any series, early: train a detector, score it, and let it listen.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

_Data = Annotated[
    str,
    typer.Argument(
        help="synthetic (built in), esc50-domestic, -alarm, -liquid, -engine or -all, ava-0.75s, -0.5s, -0.375s, "
        "-0.3s, -0.25s or -0.2s; a tsv file of events, or a folder of sounds with one; a series, NAME.csv with its "
        "events in NAME.events.csv, or a folder of them; or a folder with a sub-folder of sounds (wav, flac, ogg) for "
        "each class, from which clips are mixed: 1,000 to train on, 250 from other sounds to calibrate on, 250 to "
        "evaluate."
    ),
]
_Model = Annotated[Path, typer.Argument(help="A detector that `events train` wrote.")]
_Clips = Annotated[
    int | None, typer.Option(min=1, help="How many clips. Default: all there are, or as many as DATA says.")
]
_Seed = Annotated[int, typer.Option(min=0, help="Seed of the clips that are mixed.")]
_Rate = Annotated[float | None, typer.Option(min=0, help="Samples per second of a series without a column of times.")]
_Time = Annotated[
    str | None,
    typer.Option(help="The column of a series that holds times in seconds. Default: the one named time, if any."),
]
_Needed = Annotated[
    int | None, typer.Option(min=1, help="How many of the latest --of segments must be called for an alarm.")
]
_Of = Annotated[
    int | None, typer.Option(min=1, help="Of how many of the latest segments --needed must be called for an alarm.")
]
_Refractory = Annotated[
    float | None, typer.Option(min=0, help="Seconds after an alarm without another of the same class.")
]
_MaxDelay = Annotated[
    float | None, typer.Option(min=0, help="Alarms later than this after the onset, in seconds, count as false.")
]
_EarlyCollar = Annotated[
    float, typer.Option(min=0, help="Alarms up to this long before the onset, in seconds, count as hits.")
]
_Background = Annotated[
    Path | None, typer.Option(help="Folder of background sounds to mix the sounds of a folder over. Default: noise.")
]
_DataRoot = Annotated[Path | None, typer.Option(help="Folder that ESC-50, AVA, or the sounds of a tsv file, are in.")]


def _given(**options: Any) -> dict[str, Any]:
    """The options that were given; of others the library knows the default, or the detector its own."""
    return {name: value for name, value in options.items() if value is not None}


@events.command()
def train(
    data: _Data,
    out: Annotated[Path, typer.Option(help="File to write the detector to.")],
    network: Annotated[
        str | None, typer.Option(help="crnn, conformer, dual-dnn, temporal … Default: crnn, or temporal for a series.")
    ] = None,
    size: Annotated[Literal["small", "dcase"], typer.Option(help="60k parameters, or 0.8M.")] = "small",
    head: Annotated[str, typer.Option(help="How segments are fused: wbc, bc, phase1, umss …")] = "wbc",
    preset: Annotated[
        Literal["early", "none"], typer.Option(help="early: augmentation, more weight on onsets.")
    ] = "early",
    epochs: Annotated[int | None, typer.Option(min=1, help="Passes over the clips. Default: 25.")] = None,
    clips: _Clips = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of training, and of clips that are mixed.")] = 0,
    false_alarms: Annotated[
        float | None,
        typer.Option(
            min=0, help="Calibrate to this many false alarms per minute. Default: 2, if no other target is given."
        ),
    ] = None,
    delay: Annotated[
        float | None,
        typer.Option(min=0, help="Calibrate to this mean delay in seconds; may be combined with --false-alarms."),
    ] = None,
    macro_f1: Annotated[float | None, typer.Option(min=0, max=1, help="Calibrate to this macro F1 instead.")] = None,
    max_delay: _MaxDelay = None,
    early_collar: _EarlyCollar = 0.0,
    needed: _Needed = None,
    of: _Of = None,
    refractory: _Refractory = None,
    sound: Annotated[
        bool | None,
        typer.Option(
            help="Whether clips are sound or numbers of a sensor. Default: CSV files are numbers, others sound."
        ),
    ] = None,
    segment: Annotated[
        int | None,
        typer.Option(min=1, help="Samples of a series that share a decision, else each has one; frames of sound, 4."),
    ] = None,
    start: Annotated[
        Path | None, typer.Option(help="A trained detector to start from; its classes may differ.")
    ] = None,
    validation: Annotated[
        str | None,
        typer.Option(
            help="Clips to calibrate on, given like DATA. Default: a part of DATA that is then not trained on."
        ),
    ] = None,
    background: _Background = None,
    data_root: _DataRoot = None,
    rate: _Rate = None,
    time: _Time = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="File in which to keep progress; the same command continues from it after a kill."),
    ] = None,
) -> None:
    """Train a detector, calibrate it on held-out clips, and write it to a file.

    Thresholds are calibrated for --needed, --of and --refractory, which are kept with the detector.
    """
    from evidentia.cli.events_fit import run_train

    model = _given(
        epochs=epochs,
        false_alarms_per_minute=false_alarms,
        delay=delay,
        macro_f1=macro_f1,
        max_delay=max_delay,
        needed=needed,
        of=of,
        refractory=refractory,
        sound=sound,
        start=start,
        checkpoint=checkpoint,
        network=network,
    )
    model |= {"size": size, "head": head, "seed": seed, "early_collar": early_collar}
    model["network_settings"] = _given(segment=segment)
    model["preset"] = None if preset == "none" else preset
    run_train(
        data,
        out,
        model,
        clips=clips,
        validation=validation,
        data_root=data_root,
        rate=rate,
        time_column=time,
        background=background,
    )


@events.command()
def evaluate(
    model: _Model,
    data: _Data,
    clips: _Clips = None,
    seed: _Seed = 0,
    by: Annotated[
        Literal["clip", "event"], typer.Option(help="Count the first alarm of each clip and class, or every event.")
    ] = "clip",
    max_delay: _MaxDelay = None,
    early_collar: _EarlyCollar = 0.0,
    needed: _Needed = None,
    of: _Of = None,
    refractory: _Refractory = None,
    background: _Background = None,
    data_root: _DataRoot = None,
    rate: _Rate = None,
    time: _Time = None,
    json: Annotated[Path | None, typer.Option(help="Write all results to this JSON file.")] = None,
    picture: Annotated[Path | None, typer.Option(help="Draw the first clip to this file: .png or .svg.")] = None,
) -> None:
    """Score a detector on test clips: F1, delay and false alarms, together and of each class, and inference time.

    Scores are of the alarms that `detect` gives; --needed, --of and --refractory default to the detector's.
    """
    from evidentia.cli.events_fit import run_evaluate

    run_evaluate(
        model,
        data,
        clips=clips,
        seed=seed,
        scoring={"by": by, "max_delay": max_delay, "early_collar": early_collar},
        trigger=_given(needed=needed, of=of, refractory=refractory),
        data_root=data_root,
        rate=rate,
        time_column=time,
        background=background,
        json_file=json,
        picture=picture,
    )


@events.command()
def detect(
    model: _Model,
    file: Annotated[
        str,
        typer.Argument(
            help="A wav, flac or ogg file, or a CSV file for a detector of a series; - for stdin: raw samples (16 "
            "bits, little-endian, mono), or lines of CSV."
        ),
    ],
    rate: Annotated[
        float | None,
        typer.Option(
            help="Samples per second on stdin, or of a CSV file whatever its times; must match the detector. Sound "
            "files are resampled."
        ),
    ] = None,
    time: _Time = None,
    output: Annotated[Literal["text", "json"], typer.Option("--format", help="Lines of text, or of JSON.")] = "text",
    engine: Annotated[Literal["torch", "onnx"], typer.Option(help="What runs the network.")] = "torch",
    chunk: Annotated[float, typer.Option(help="Process at most this many seconds at a time.")] = 0.064,
    state: Annotated[
        Path | None, typer.Option(help="Keep the stream's state in this file, and continue from it if it exists.")
    ] = None,
    label: Annotated[list[str] | None, typer.Option(help="Call only this class; may be given several times.")] = None,
    warnings: Annotated[bool, typer.Option(help="Also warn when something is beginning.")] = True,
    needed: _Needed = None,
    of: _Of = None,
    refractory: _Refractory = None,
) -> None:
    """Print alarms and warnings as they happen in a file, or in samples that come in on stdin.

    --needed, --of and --refractory default to the detector's.
    """
    from evidentia.cli.events_listen import run_detect

    if rate is not None and file != "-" and Path(file).suffix.lower() != ".csv":
        raise typer.BadParameter("a file says its own rate; --rate is for samples on stdin, and CSV files")
    if not 0 < chunk < float("inf"):
        raise typer.BadParameter(f"--chunk must be a positive number of seconds, got {chunk:g}")
    options = {"labels": label or None, "warnings": warnings, "engine": engine}
    options |= _given(needed=needed, of=of, refractory=refractory)
    as_json = output == "json"
    run_detect(model, file, options, rate=rate, time=time, chunk=chunk, state=state, as_json=as_json)
