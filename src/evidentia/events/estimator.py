"""The face of the room: train a detector on labelled clips, then let it listen to live streams."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from typing_extensions import Self

from evidentia._support.errors import EvidentiaError
from evidentia.evaluation import EarlyScores, EventTruth, early_scores
from evidentia.events.augmentation import Augmentation, SeriesAugmentation
from evidentia.events.clip_kinds import check_levels, chosen_labels, inputs_for, network_for
from evidentia.events.clips import Clip, Event, event_truth
from evidentia.events.detections import Announcer, Detection
from evidentia.events.fitting import SegmentBeta, Tuning, hold_out, listed, pieces, prepared, segment_beta, tune
from evidentia.events.fusion import FusionHead, OnsetWarning, make_head
from evidentia.events.inputs import Inputs, SoundInputs
from evidentia.events.models import NETWORKS, EventNetwork, Size
from evidentia.events.offline import detect_offline
from evidentia.events.onnx import make_engine
from evidentia.events.pipeline import Engine, Pipeline
from evidentia.events.runner import Runner
from evidentia.events.saving import load_detector, save_detector
from evidentia.events.stream import DetectorStream
from evidentia.events.training import EventTraining, start_at_base_rates, train
from evidentia.events.triggers import Trigger
from evidentia.opinions import BinomialOpinion
from evidentia.prediction import Prediction

_PRESETS: dict[str, dict[str, Any]] = {
    "early": {"onset_weights": True, "augmentation": True, "windows": (1, 2, 3, 4, 6), "decays": (0.5, 0.8, 1.0)},
}


class EventDetector:
    """Calls events of several classes on live streams, early and reliably.

    A network gives evidence for and against each class in every segment (64 ms of sound), a fusion head joins the
    latest segments' opinions and decides. Train it on clips of sound or of a multivariate series, each with the
    intervals of its events.

    Args:
        network: a name of `evidentia.events.NETWORKS`, or a network (a copy of it is trained).
        size: "small", 60k parameters, or "dcase", 0.8M.
        head: a name of `evidentia.events.HEADS`, or a head; its thresholds are calibrated.
        labels: the classes; those of the training clips by default. Events of others are left out.
        preset: "early" trains with augmentation and more weight on onsets, and searches windows and decays; None
            takes the settings' own defaults. Settings that are given go before those of the preset.
        network_settings: further settings of the network, such as `dropout` or `segment`.
        sound: whether clips are sound, in [-1, 1], or a series; if None, those of one channel at 4 kHz or more are.
        settings: see `evidentia.events.EventTraining` (epochs, batch_size, learning_rate, loss, seed, checkpoint,
            progress, ...) and `evidentia.events.Tuning` (false_alarms_per_minute, delay or macro_f1, ...).

    Attributes:
        network_: the trained network, in evaluation mode.
        head_: the calibrated head.
        warning_: the calibrated head that warns when something is beginning.
        labels_: the classes.
        inputs_: the front end.
        history_: what was measured in each epoch.
        calibration_: scores on the held-out clips and whether the target was met there.

    Example:
        >>> from evidentia.events import synthetic_clips
        >>> clips = synthetic_clips(12, seed=1, labels=["tone", "clicks"], duration=4.0)
        >>> det = EventDetector(epochs=1, seed=0, progress=False).fit(clips)
        >>> stream = det.stream()
        >>> found = [detection for chunk in clips[0].samples.split(1000) for detection in stream.push(chunk)]
        >>> det.predict(clips[0])
        Prediction(62 samples, 2 classes (multilabel); mean vacuity ...)
    """

    def __init__(
        self,
        network: str | EventNetwork = "crnn",
        size: Size = "small",
        head: str | FusionHead = "wbc",
        labels: Sequence[str] | None = None,
        preset: Literal["early"] | None = "early",
        network_settings: dict[str, Any] | None = None,
        sound: bool | None = None,
        **settings: Any,
    ) -> None:
        if preset is not None and preset not in _PRESETS:
            raise EvidentiaError(f"there is no preset named {preset!r}; choose one of: {', '.join(_PRESETS)}, or None")
        if isinstance(network, str):
            NETWORKS[network]  # an error if there is none of that name
        elif not isinstance(network, EventNetwork):
            raise EvidentiaError(f"network must be a name or an EventNetwork, got {type(network).__name__}")
        if isinstance(labels, str) or (labels is not None and len(set(labels)) != len(labels)):
            raise EvidentiaError(f"labels must be a list of classes, each once, got {labels!r}")
        if not (sound is None or isinstance(sound, bool)):
            raise EvidentiaError(f"sound must be True, False or None, got {sound!r}")
        self.network, self.size, self.preset, self.sound = network, size, preset, sound
        self.head = head if isinstance(head, FusionHead) else make_head(head)
        self.labels = None if labels is None else tuple(labels)
        self.network_settings = dict(network_settings or {})
        chosen = {**_PRESETS.get(preset or "", {}), **settings}
        tuning = {name: chosen.pop(name) for name in Tuning.model_fields if name in chosen}
        self.settings, self.tuning = EventTraining(**chosen), Tuning(**tuning)
        self.network_: EventNetwork
        self.head_: FusionHead
        self.warning_: FusionHead
        self.labels_: tuple[str, ...] = ()
        self.inputs_: Inputs
        self.history_: list[dict[str, float]] = []
        self.calibration_: dict[str, Any] = {}
        self._runners: dict[Any, Runner] = {}
        self._engines: dict[tuple[str, bool], tuple[Pipeline, Engine]] = {}

    def fit(self, clips: Sequence[Clip], validation: Sequence[Clip] | None = None) -> Self:
        """Train on clips, then calibrate on others.

        Args:
            clips: what to train on.
            validation: what to calibrate on; by default a fifth of the clips, which is then not trained on. Whole
                clips are held out; of a single one a fifth of its pieces (`piece` segments), which are much like those
                beside them, so that thresholds are too hopeful.
        """
        clips = listed(clips, "clips")
        held = None if validation is None else listed(validation, "validation clips")
        labels = chosen_labels(self.labels, clips, held or [])
        inputs = inputs_for([*clips, *(held or [])], self.network, self.network_settings, self.sound)
        sound = isinstance(inputs, SoundInputs)
        piece = self.settings.piece
        if held is None:
            clips, held = hold_out(clips if len(clips) > 1 else pieces(clips, inputs, piece), self.settings.seed)
        check_levels([*clips, *held], inputs)
        self.labels_, self.inputs_ = labels, inputs
        network = self._new_network()
        examples, watched = (
            prepared(pieces(part, inputs, piece), labels, inputs, self.settings.onset_weights) for part in (clips, held)
        )
        if isinstance(self.network, str):
            start_at_base_rates(network, examples)
        augment = (Augmentation() if sound else SeriesAugmentation()) if self.settings.augmentation else None
        described = {"labels": list(labels), "inputs": inputs.model_dump(mode="json")}
        self.history_ = train(network, examples, self.settings, watched, augment, described)
        return self._use(network).calibrate(held)

    def calibrate(self, clips: Sequence[Clip]) -> Self:
        """Choose thresholds anew on other clips, to the same target; never on what the detector is tested with.

        Long clips are cut in pieces as for training, because F1 and delay are of the first call of a class in each; of
        false alarms every one counts.
        """
        parts = pieces(self._checked(clips), self.inputs_, self.settings.piece)
        alarm, warning = tune(self.head, self.beta(parts), self.truth(parts), self.tuning, self.inputs_.unsettled)
        self.head_, self.warning_ = alarm.head, warning.head
        self.calibration_ = {"target": self.tuning.target(), "met": alarm.met, "scores": alarm.scores.summary()}
        return self._use(self.network_)

    def beta(self, clips: Sequence[Clip]) -> SegmentBeta:
        """The network's Beta parameters for each segment and class of clips."""
        network, frames = self._trained(), [self.inputs_.frames(clip) for clip in listed(clips, "clips")]
        return segment_beta(network, frames, self.truth(clips).lengths, self.settings.loss, self.settings.activation)

    def truth(self, clips: Sequence[Clip]) -> EventTruth:
        """The events of clips as the detector is scored against; classes that it does not know are left out."""
        self._trained()
        return event_truth(listed(clips, "clips"), self.labels_, self.inputs_.seconds, ignore_others=True)

    def predict(self, clips: Clip | Sequence[Clip]) -> Any:
        """The opinion about each class in each segment, before any fusion.

        Returns:
            For one clip a `Prediction` with a row a segment, for several a list of them.
        """
        if isinstance(clips, Clip):
            return self.predict([clips])[0]
        found = self.beta(self._checked(clips))
        predictions = []
        for alpha, beta, length in zip(found.alpha, found.beta, found.lengths.tolist(), strict=True):
            opinion = BinomialOpinion.from_beta(alpha[:length], beta[:length])
            predictions.append(Prediction(opinion.projected, opinion, task="multilabel", class_names=self.labels_))
        return predictions

    def evaluate(self, clips: Sequence[Clip], **options: Any) -> EarlyScores:
        """Early F1, delay and false alarms of the head's calls; options are those of `early_scores`."""
        found, truth = self.beta(self._checked(clips)), self.truth(clips)
        pooled = self.head_.outputs(len(self.labels_)) < len(self.labels_)
        calls = self.head_.calls(self.head_.fuse(found.alpha, found.beta))
        return early_scores(calls, truth.any_class() if pooled else truth, **options)

    def detect(
        self, clip: Clip, *, labels: Sequence[str] | None = None, warnings: bool = True, **trigger: Any
    ) -> list[Detection]:
        """What a stream of the whole clip would give, with delays, all at once; also for networks that look ahead.

        Args:
            clip: the clip.
            labels: call these classes only.
            warnings: also warn when something is beginning.
            trigger: `needed`, `of` and `refractory`, see `evidentia.events.Trigger`.
        """
        found, rule = self.beta(self._checked([clip])), Trigger(**trigger)
        announcer = Announcer(
            self.labels_, self.head_.outputs(len(self.labels_)), self.inputs_.seconds, labels, clip.events
        )
        return detect_offline(found, self.head_, self.warning_ if warnings else None, rule, announcer)

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
            warnings: also warn, before any class is called, when something is beginning.
            engine: "torch", or "onnx" for ONNX Runtime, which is faster and needs `evidentia[onnx]`.
            longest_gap: after a gap of more seconds the stream's memory begins anew; see `DetectorStream`.
            trigger: `needed` and `of` for x-out-of-y, and `refractory` in seconds; see `evidentia.events.Trigger`.
        """
        self._trained()._check_streaming()
        rule = Trigger(**trigger)
        key = (engine, warnings, rule.needed, rule.of, rule.refractory)
        if key not in self._runners:
            self._runners[key] = self._runner(engine, warnings, rule)
        return DetectorStream(self._runners[key], labels, events, longest_gap)

    def save(self, path: str | Path) -> None:
        """Save network, head and settings to one file, whole or not at all."""
        save_detector(self, path)

    @classmethod
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
        det.labels_, det.inputs_ = tuple(labels), inputs
        if network.segment != inputs.segment:
            raise EvidentiaError(f"the network has {network.segment} frames a segment and the inputs {inputs.segment}")
        det.head_, det.warning_ = head, warning or OnsetWarning(threshold=2.0)
        return det._use(det._new_network().eval())

    def _new_network(self) -> EventNetwork:
        options = {"size": self.size, "segment": self.inputs_.segment, **self.network_settings}
        return network_for(self.network, self.inputs_.features, len(self.labels_), options, self.settings.seed)

    def _use(self, network: EventNetwork) -> Self:
        self.network_ = network
        self._runners.clear()
        self._engines.clear()
        return self

    def _trained(self) -> EventNetwork:
        if not hasattr(self, "network_"):
            raise EvidentiaError("the detector is not trained yet; call fit first")
        return self.network_

    def _checked(self, clips: Any) -> list[Clip]:
        self._trained()
        found = listed(clips, "clips")
        check_levels(found, self.inputs_)
        return found

    def _runner(self, engine: str, warnings: bool, trigger: Trigger) -> Runner:
        heads = [self.head_, self.warning_] if warnings else [self.head_]
        if (engine, warnings) not in self._engines:
            pipeline = Pipeline(self.network_, heads, self.settings.loss, self.settings.activation)
            self._engines[engine, warnings] = (pipeline, make_engine(engine, pipeline))
        pipeline, runs = self._engines[engine, warnings]
        return Runner(runs, pipeline, self.inputs_, self.labels_, trigger)
