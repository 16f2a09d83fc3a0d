"""Chapter 4: events on live streams, called early and reliably.

The thesis' data sets are not free to have. Ours are soundscapes mixed from ESC-50: `domestic` stands beside DESED, and
`alarm`, `liquid` and `engine` beside the subsets of AudioSet of these names, so published figures show a pattern to
compare with, not a number to reach. The study of AVA needs features of its videos, which users bring: see
`evidentia.events.ava_clips` for where they belong, and why its delays are to be read with care.
"""

from __future__ import annotations

from typing import Any

from evidentia.events.data.ava_folder import AVA_SEGMENTS
from evidentia.events.data.sounds import ESC50_SUBSETS
from evidentia.experiments.jobs.events_methods import BASELINE, SOUND_METHODS, VIDEO_BASELINE, VIDEO_METHODS
from evidentia.experiments.study import Beside, Comparison, Pictures, Preset, Study

Options = dict[str, dict[str, Any]]

_DATA: Options = {subset: {"data": f"esc50-{subset}"} for subset in ESC50_SUBSETS}
_NAMES = {"data": {"domestic": "desed"}, "metric": {"macro_f1": "f1"}}
# Fewer clips and epochs: minutes, not hours.
_QUICK = {"clips": 200, "held_out": 100, "epochs": 8}
_FIGURES = ["macro_f1", "delay", "common_delay", "common_ratio", "censored_delay", "false_alarms_per_minute"]
_FALSE_ALARMS = ("false_alarms_per_minute", "false_alarms_ratio")
_TARGETS = [
    *(f"at_delay.{name}" for name in ("macro_f1", "delay", "gain", *_FALSE_ALARMS)),
    *(f"at_f1.{name}" for name in ("macro_f1", "delay", "gain", "common_ratio")),
]
_RUNS = 3
# They differ in training alone.
_AS_FAST_AS_OTHERS = ("mtenn-bce", "early", "crnn-pretrained", "early-pretrained")

AUDIO = Study(
    name="events-audio",
    title="Sound events: early F1 and delay",
    job="events",
    axes={"data": _DATA, "method": list(SOUND_METHODS)},
    metrics=[*_FIGURES, *_TARGETS, "onset_auc"],
    beside=Beside(table="events-audio", row="{data}/{method}", names=_NAMES, runs=_RUNS),
    compare=Comparison(axis="method", against=BASELINE, metrics=["macro_f1", "at_delay.macro_f1"]),
    pictures=Pictures(keep={"data": ["domestic"], "method": [BASELINE, "mtenn-wbc", "early"]}),
    presets={
        "quick": Preset(seeds=2, keep={"data": ["domestic"], "method": ["crnn", "mtenn-wbc", "early"]}, fixed=_QUICK),
        "full": Preset(seeds=5),
    },
)

# What each network is trained for shows where there is no time to wait.
DELAY = Study(
    name="events-delay",
    title="Sound events: what is to be had at a limit of delay, set on validation clips",
    job="events",
    axes={
        "data": _DATA,
        "limit": {f"{limit:.2f} s": {"delay_limit": limit} for limit in (0.25, 0.3, 0.35, 0.4)},
        "method": [BASELINE, "mtenn-wbc", "early", "crnn-pretrained", "early-pretrained"],
    },
    metrics=[
        f"{point}.{name}"
        for point in ("at_delay", "at_half_alarms")
        for name in ("macro_f1", "gain", "delay", "met", *_FALSE_ALARMS, "common_ratio")
    ],
    compare=Comparison(axis="method", against=BASELINE, metrics=["at_delay.macro_f1"]),
    presets={
        "quick": Preset(seeds=2, keep={"data": ["domestic"], "method": [BASELINE, "early"]}, fixed=_QUICK),
        "full": Preset(seeds=5),
    },
)

VIDEO = Study(
    name="events-video",
    title="Actions in video, by features of clips of three seconds: early F1 and delay",
    job="events",
    axes={"data": [f"ava-{length}" for length in AVA_SEGMENTS], "method": list(VIDEO_METHODS)},
    metrics=_FIGURES,
    beside=Beside(
        table="events-video",
        row="{data}/{method}",
        names={
            "method": {name: name.removeprefix("acar-") for name in VIDEO_METHODS if "mtenn" in name},
            "metric": _NAMES["metric"],
        },
        runs=_RUNS,
    ),
    compare=Comparison(axis="method", against=VIDEO_BASELINE, metrics=["macro_f1"]),
    presets={
        "quick": Preset(
            seeds=2,
            keep={"data": ["ava-0.3s"], "method": ["acar", "acar-mtenn-wbc", "acar-mtenn-umss"]},
            # Heads over features are small, and clips of few segments: there can be more of them.
            fixed={"clips": 2000, "held_out": 500, "epochs": 8},
        ),
        "full": Preset(seeds=5),
    },
)

ABLATION = Study(
    name="events-ablation",
    title="What the Beta loss and the fusion of segments add",
    job="events",
    axes={
        "data": {subset: _DATA[subset] for subset in ("engine", "liquid")},
        "method": ["mtenn-bce", "mtenn-phase1", "mtenn-bc", "mtenn-wbc", "mtenn-umss"],
    },
    metrics=_FIGURES,
    beside=Beside(table="events-ablation", row="{data}/{method}", names={"metric": _NAMES["metric"]}, runs=_RUNS),
    compare=Comparison(axis="method", against="mtenn-phase1", metrics=["macro_f1", "common_delay"]),
    presets={"quick": Preset(seeds=2, keep={"data": ["liquid"]}, fixed=_QUICK), "full": Preset(seeds=5)},
)

THRESHOLD = Study(
    name="events-threshold",
    title="F1 and delay over the limit of vacuity",
    job="events",
    # The thesis' rule as it stands: belief above disbelief, vacuity below the limit.
    fixed={"method": "mtenn-wbc", "calibrated": False},
    axes={
        "data": _DATA,
        "V": {f"{limit:g}": {"head": {"max_vacuity": limit}} for limit in (0.02, 0.05, 0.1, 0.2, 0.5, 0.9)},
    },
    metrics=["macro_f1", "delay", "censored_delay", "false_alarms_per_minute"],
    presets={"quick": Preset(seeds=2, keep={"data": ["alarm"]}, fixed=_QUICK), "full": Preset(seeds=5)},
)

WINDOW = Study(
    name="events-window",
    title="F1 and delay over the window",
    job="events",
    fixed={"method": "mtenn-wbc"},
    axes={"data": _DATA, "window": {f"{size}": {"head": {"window": size}} for size in (1, 2, 3, 4, 6, 8, 12)}},
    metrics=["macro_f1", "delay", "censored_delay", "false_alarms_per_minute"],
    presets={"quick": Preset(seeds=2, keep={"data": ["alarm"]}, fixed=_QUICK), "full": Preset(seeds=5)},
)

INFERENCE = Study(
    name="events-inference",
    title="Time of a segment of a live stream, networks of DCASE size, in milliseconds",
    job="events-time",
    axes={"data": {"desed": {}}, "method": [name for name in SOUND_METHODS if name not in _AS_FAST_AS_OTHERS]},
    metrics=["inference"],
    beside=Beside(table="events-inference", row="{data}/{method}"),
    presets={"quick": Preset(seeds=3, fixed={"segments": 100}), "full": Preset(seeds=5, fixed={"segments": 600})},
)

STUDIES = (AUDIO, DELAY, VIDEO, ABLATION, THRESHOLD, WINDOW, INFERENCE)
