"""The face of the room: train a detector on labelled clips, then let it listen to live streams."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from typing_extensions import Self

from evidentia._support.errors import EvidentiaError
from evidentia._support.learnt import LearntAttributes
from evidentia._support.precision import single_precision
from evidentia._support.settings import refuse_unknown
from evidentia.evaluation import EventTruth
from evidentia.events.clip_kinds import (
    check_choices,
    check_levels,
    chosen_labels,
    in_step,
    inputs_for,
    network_for,
    warn_of_pace,
)
from evidentia.events.clips import Clip, Event, event_truth
from evidentia.events.front_end.channels import arranged, named_columns
from evidentia.events.front_end.inputs import Inputs
from evidentia.events.front_end.missing import completed
from evidentia.events.fusion import FusionHead, OnsetWarning, make_head
from evidentia.events.networks.by_name import EventNetwork, Size
from evidentia.events.offline import detect_offline, predictions
from evidentia.events.presets import chosen_settings
from evidentia.events.saving import load_detector, save_detector
from evidentia.events.scoring import DetectorScores, score_detector
from evidentia.events.streams.detections import Announcer, Detection
from evidentia.events.streams.runners import Runners
from evidentia.events.streams.stream import DetectorStream
from evidentia.events.streams.triggers import Trigger
from evidentia.events.training.augmentation import usual_augmentation
from evidentia.events.training.first_weights import fit_to, start_from
from evidentia.events.training.fitting import (
    SegmentBeta,
    Tuning,
    listed,
    parted,
    pieces,
    prepared,
    segment_beta,
    tune,
)
from evidentia.events.training.held_out import warn_missing
from evidentia.events.training.loop import EventTraining, train


class EventDetector(LearntAttributes):
    """Calls events of several classes on live streams, early and reliably.

    A network gives evidence for and against each class in every segment (64 ms of sound), a fusion head joins the
    latest segments' opinions and decides. Train it on clips of sound or of a multivariate series, each with the
    intervals of its events. Numbers of a series may be missing, as NaN: the channel's last good number stands for them,
    in training as in streams, and at first its mean in training.

    Args:
        network: a name of `evidentia.events.NETWORKS`, or a network (a copy of it is trained).
        size: "small", 60k parameters, or "dcase", 0.8M.
        head: a name of `evidentia.events.HEADS`, or a head; its thresholds are calibrated.
        labels: the classes; those of the training clips by default. Events of others are left out.
        preset: "early" trains with augmentation and more weight on onsets, and searches windows and decays; None
            takes the settings' own defaults. Settings that are given go before those of the preset.
        network_settings: further settings of the network, such as `dropout` or `segment`.
        sound: whether clips are sound, in [-1, 1], or a series; if None, those of one channel at 4 kHz or more are.
        start: a trained detector, or its file, whose network this one starts from; its classes may be others. With few
            recordings, one that was trained on many others makes a better start.
        settings: see `evidentia.events.EventTraining` (epochs, batch_size, learning_rate, loss, seed, checkpoint,
            progress, ...), `evidentia.events.Tuning` (false_alarms_per_minute, delay or macro_f1, ...) and
            `evidentia.events.Trigger` (needed, of, refractory): for that trigger thresholds are calibrated, and scores,
            detections and streams have it unless they are given another.

    Attributes:
        network_: the trained network, in evaluation mode.
        head_: the calibrated head.
        warning_: the calibrated head that warns when something is beginning.
        labels_: the classes.
        columns_: the names of a series' channels, if its clips had names; clips are put in that order.
        inputs_: the front end.
        history_: what was measured in each epoch.
        calibration_: scores on the held-out clips, whether the target was met there, classes they miss, their minutes.

    Example:
        >>> from evidentia.events import synthetic_clips
        >>> clips = synthetic_clips(12, seed=1, labels=["tone", "clicks"], duration=4.0)
        >>> det = EventDetector(epochs=1, seed=0, progress=False).fit(clips)
        >>> stream = det.stream()
        >>> found = [detection for chunk in clips[0].samples.split(1000) for detection in stream.push(chunk)]
        >>> det.predict(clips[0])
        Prediction(62 samples, 2 classes (multilabel); mean vacuity ...)
    """

    learnt = ("network_", "head_", "warning_", "labels_", "columns_", "inputs_", "history_", "calibration_")

    def __init__(
        self,
        network: str | EventNetwork = "crnn",
        size: Size = "small",
        head: str | FusionHead = "wbc",
        labels: Sequence[str] | None = None,
        preset: Literal["early"] | None = "early",
        network_settings: dict[str, Any] | None = None,
        sound: bool | None = None,
        start: EventDetector | str | Path | None = None,
        **settings: Any,
    ) -> None:
        refuse_unknown(settings, EventDetector, EventTraining, Tuning, Trigger)
        check_choices(network, labels, sound)
        self.network, self.size, self.preset, self.sound = network, size, preset, sound
        self.head = head if isinstance(head, FusionHead) else make_head(head)
        self.labels = None if labels is None else tuple(labels)
        self.network_settings = dict(network_settings or {})
        self.start = start if isinstance(start, EventDetector | None) else EventDetector.load(start)
        self.settings, self.tuning, self.trigger = chosen_settings(preset, settings)
        self.network_: EventNetwork
        self.head_: FusionHead
        self.warning_: FusionHead
        self.labels_: tuple[str, ...]
        self.columns_: tuple[str, ...]
        self.inputs_: Inputs
        self.history_: list[dict[str, float]]
        self.calibration_: dict[str, Any]
        self._runners = Runners()

    @single_precision()
    def fit(self, clips: Sequence[Clip], validation: Sequence[Clip] | None = None) -> Self:
        """Train on clips, then calibrate on others; a detector stays as it was until all of it is done.

        Args:
            clips: what to train on.
            validation: what to calibrate on; by default a fifth of the clips, which is then not trained on. Whole
                clips are held out; of a single one a fifth of its pieces (`piece` segments), which are much like those
                beside them, so that thresholds are too hopeful.
        """
        clips = listed(clips, "clips")
        columns = named_columns(clips)
        clips = arranged(clips, columns)
        held = None if validation is None else arranged(listed(validation, "validation clips"), columns)
        labels = chosen_labels(self.labels, clips, held or [])
        inputs = inputs_for([*clips, *(held or [])], self.network, self.network_settings, self.sound)
        clips, held = parted(in_step(clips, inputs), held and in_step(held, inputs), inputs, self.settings)
        check_levels([*clips, *held], inputs)
        trained = copy.copy(self)
        trained.labels_, trained.columns_, trained.inputs_ = labels, columns, inputs
        trained.network_ = network = trained._new_network()
        warn_of_pace(inputs)
        start_from(self.start, network, inputs, columns)
        examples, watched = (
            prepared(part, labels, inputs, self.settings.piece, self.settings.onset_weights) for part in (clips, held)
        )
        fit_to(network, examples, inputs, new=isinstance(self.network, str))
        augment = usual_augmentation(inputs) if self.settings.augmentation else None
        described = {"labels": list(labels), "inputs": inputs.model_dump(mode="json")}
        trained.history_ = train(network, examples, self.settings, watched, augment, described)
        vars(self).update(vars(trained.calibrate(held)))
        return self

    def calibrate(self, clips: Sequence[Clip]) -> Self:
        """Choose thresholds anew on other clips, to the same target; never on what the detector is tested with.

        Long clips are cut in pieces as for training, as F1 and delay are of a class's first alarm in each; but where an
        event is going on, a piece is longer.
        """
        parts = pieces(self._checked(clips), self.inputs_, self.settings.piece, quiet=True)
        found, truth = self.beta(parts), self.truth(parts)
        alarm, warning = tune(self.head, found, truth, self.tuning, self.trigger, self.inputs_.unsettled)
        about = {"target": self.tuning.target(), "missing": warn_missing(truth, self.labels_), "minutes": truth.minutes}
        self.calibration_ = about | alarm.summary()
        self.head_, self.warning_ = alarm.head, warning.head
        return self

    @single_precision()
    def beta(self, clips: Sequence[Clip]) -> SegmentBeta:
        """The network's Beta parameters for each segment and class of clips."""
        found = self._ready(clips)
        frames, lengths = [self.inputs_.frames(clip) for clip in found], self.truth(found).lengths
        return segment_beta(self.network_, frames, lengths, self.settings.loss, self.settings.activation)

    def truth(self, clips: Sequence[Clip]) -> EventTruth:
        """The events of clips as the detector is scored against; classes that it does not know are left out."""
        timed = in_step(listed(clips, "clips"), self.inputs_)
        return event_truth(timed, self.labels_, self.inputs_.seconds, ignore_others=True)

    def predict(self, clips: Clip | Sequence[Clip]) -> Any:
        """The opinion about each class in each segment, before any fusion.

        Returns:
            For one clip a `Prediction` with a row a segment, for several a list of them.
        """
        if isinstance(clips, Clip):
            return self.predict([clips])[0]
        return predictions(self.beta(self._checked(clips)), self.labels_)

    def evaluate(
        self,
        clips: Sequence[Clip],
        *,
        by: Literal["clip", "event"] = "clip",
        max_delay: float | None = None,
        early_collar: float = 0.0,
        **trigger: Any,
    ) -> DetectorScores:
        """Early F1, delay and false alarms of the alarms that streams of the clips give, and the inference time.

        Args:
            clips: what to score on.
            by: `clip` counts the first alarm of each clip and class, `event` all; false alarms a minute are of all.
            max_delay: alarms later than this after the onset, in seconds, are false.
            early_collar: alarms up to this long before the onset, in seconds, are hits.
            trigger: `needed`, `of` and `refractory` of the streams; those of the detector if not given.
        """
        options: dict[str, Any] = {"by": by, "max_delay": max_delay, "early_collar": early_collar}
        return score_detector(self, self._checked(clips), self.trigger.with_changes(trigger), options)

    def detect(
        self, clip: Clip, *, labels: Sequence[str] | None = None, warnings: bool = True, **trigger: Any
    ) -> list[Detection]:
        """What a stream of the whole clip would give, with delays, all at once; also for networks that look ahead.

        Args:
            clip: the clip; of a series at about the detector's rate, times are those of its samples at that rate.
            labels: call these classes only.
            warnings: also warn when something is beginning.
            trigger: `needed`, `of` and `refractory`, see `evidentia.events.Trigger`; the detector's if not given.
        """
        (clip,) = self._checked([clip])  # with its events by the clock of the segments
        found, rule = self.beta([clip]), self.trigger.with_changes(trigger)
        outputs = self.head_.outputs(len(self.labels_))
        announcer = Announcer(self.labels_, outputs, self.inputs_.seconds, labels, clip.events)
        return detect_offline(found, self.head_, self.warning_ if warnings else None, rule, announcer)

    @single_precision()
    def stream(
        self,
        *,
        labels: Sequence[str] | None = None,
        events: Sequence[Event] | None = None,
        warnings: bool = True,
        engine: Literal["torch", "onnx"] = "torch",
        longest_gap: float = 1.0,
        **trigger: Any,
    ) -> DetectorStream:
        """Open a live stream.

        Args:
            labels: call these classes only; all if None.
            events: what is known to happen in the stream, by which detections get a delay.
            warnings: also warn when something is beginning, but for the refractory time after an alarm.
            engine: "torch", or "onnx" for ONNX Runtime, which is faster and needs `evidentia[onnx]`.
            longest_gap: after a gap of more seconds the stream's memory begins anew; see `DetectorStream`.
            trigger: `needed` and `of` for x-out-of-y, and `refractory` in seconds, see `evidentia.events.Trigger`; the
                detector's if not given.
        """
        self.network_._check_streaming()
        runner = self._runners.get(self, engine, warnings, self.trigger.with_changes(trigger))
        return DetectorStream(runner, labels, events, longest_gap)

    def save(self, path: str | Path) -> None:
        """Save network, head and settings to one file, whole or not at all."""
        save_detector(self, path)

    @classmethod
    @single_precision()
    def load(cls, path: str | Path, network: EventNetwork | None = None) -> Self:
        """Load what `save` wrote; nothing in the file can run code.

        Args:
            path: the file.
            network: a network of the same shape, if the detector was built with one of your own.
        """
        return load_detector(cls, path, network)

    @classmethod
    def assemble(
        cls,
        network: EventNetwork,
        labels: Sequence[str],
        inputs: Inputs,
        head: FusionHead,
        warning: FusionHead | None = None,
        **settings: Any,
    ) -> Self:
        """A detector from a network that was trained elsewhere, and a head with its thresholds.

        Args:
            network: the network; a copy of it is taken.
            labels: the classes in the order of its outputs.
            inputs: `SoundInputs` or `SeriesInputs`.
            head: decides.
            warning: tells that something is beginning; by default an `OnsetWarning` that never does.
            settings: of `EventTraining`, of which `loss` and `activation` say what the outputs mean.
        """
        det = cls(network, head=head, labels=labels, preset=None, **settings)
        det.labels_, det.columns_, det.inputs_ = tuple(labels), (), inputs
        if network.segment != inputs.segment:
            raise EvidentiaError(f"the network has {network.segment} frames a segment and the inputs {inputs.segment}")
        det.head_, det.warning_ = head, warning or OnsetWarning(threshold=2.0)
        det.history_, det.calibration_ = [], {}
        det.network_ = det._new_network().eval()
        return det

    def __repr__(self) -> str:
        network = self.network if isinstance(self.network, str) else type(self.network).__name__
        known = f"{len(self.labels_)} classes" if hasattr(self, "labels_") else "not trained"
        return f"{type(self).__name__}({network}, {self.head.name}: {known})"

    def _new_network(self) -> EventNetwork:
        options = {"size": self.size, "segment": self.inputs_.segment, **self.network_settings}
        return network_for(self.network, self.inputs_.features, len(self.labels_), options, self.settings.seed)

    def _ready(self, clips: Any) -> list[Clip]:
        usual = self.network_.usual_frame
        return completed(in_step(arranged(listed(clips, "clips"), self.columns_), self.inputs_), usual)

    def _checked(self, clips: Any) -> list[Clip]:
        check_levels(found := self._ready(clips), self.inputs_)
        return found
