"""Early events: call a multi-label event on a live stream, early and reliably (thesis chapter 4)."""

from evidentia.events.calibration import Calibration, calibrate, quiet_thresholds, sensitivity
from evidentia.events.clips import ANY, SEGMENT, Clip, Event, clip_labels, event_truth
from evidentia.events.data.annotations import DESED_CLASSES, Ontology, load_strong, read_strong_labels
from evidentia.events.data.audio_blocks import audio_blocks
from evidentia.events.data.audio_files import read_audio
from evidentia.events.data.ava import load_ava, read_ava, read_ava_actions
from evidentia.events.data.ava_folder import ava_clips
from evidentia.events.data.by_name import load_clips
from evidentia.events.data.series import load_series, read_series
from evidentia.events.data.sound_folder import folder_soundscapes
from evidentia.events.data.sounds import ESC50_BACKGROUND, ESC50_SUBSETS, Sound, bouts, load_esc50, load_sounds
from evidentia.events.data.soundscapes import ESC50_SPLITS, esc50_soundscapes, mix_soundscapes
from evidentia.events.data.synthetic import synthetic_clips
from evidentia.events.data.waveforms import WAVEFORMS
from evidentia.events.estimator import EventDetector
from evidentia.events.evidence import beta_parameters, segment_loss
from evidentia.events.front_end.inputs import SeriesInputs, SoundInputs
from evidentia.events.front_end.log_mel import LogMel, mel_filters
from evidentia.events.fusion import (
    BC,
    HEADS,
    UMSS,
    WBC,
    AleatoricFilter,
    EntropyFilter,
    EpistemicFilter,
    Fusion,
    FusionHead,
    FusionState,
    OnsetWarning,
    PhaseI,
    Seed,
    WindowedHead,
    beta_from_probability,
    make_head,
)
from evidentia.events.monte_carlo_dropout import dropout_samples
from evidentia.events.networks.by_name import (
    CRNN,
    NETWORKS,
    ACARHead,
    AIAHead,
    Conformer,
    DualDNN,
    DualParts,
    EventNetwork,
    OfflineCRNN,
    SlowFastHead,
    TemporalNetwork,
    make_network,
)
from evidentia.events.scoring import DetectorScores
from evidentia.events.state import FrontEndState, NetworkState
from evidentia.events.streams.detections import Detection
from evidentia.events.streams.onnx import OnnxEngine, export_onnx
from evidentia.events.streams.stream import DetectorStream, push_many
from evidentia.events.streams.triggers import Trigger
from evidentia.events.training.augmentation import Augmentation, SeriesAugmentation
from evidentia.events.training.fitting import SegmentBeta, Tuning
from evidentia.events.training.loop import EventTraining
from evidentia.events.training.onsets import onset_weights

__all__ = [
    "ANY",
    "BC",
    "CRNN",
    "DESED_CLASSES",
    "ESC50_BACKGROUND",
    "ESC50_SPLITS",
    "ESC50_SUBSETS",
    "HEADS",
    "NETWORKS",
    "SEGMENT",
    "UMSS",
    "WAVEFORMS",
    "WBC",
    "ACARHead",
    "AIAHead",
    "AleatoricFilter",
    "Augmentation",
    "Calibration",
    "Clip",
    "Conformer",
    "Detection",
    "DetectorScores",
    "DetectorStream",
    "DualDNN",
    "DualParts",
    "EntropyFilter",
    "EpistemicFilter",
    "Event",
    "EventDetector",
    "EventNetwork",
    "EventTraining",
    "FrontEndState",
    "Fusion",
    "FusionHead",
    "FusionState",
    "LogMel",
    "NetworkState",
    "OfflineCRNN",
    "OnnxEngine",
    "OnsetWarning",
    "Ontology",
    "PhaseI",
    "Seed",
    "SegmentBeta",
    "SeriesAugmentation",
    "SeriesInputs",
    "SlowFastHead",
    "Sound",
    "SoundInputs",
    "TemporalNetwork",
    "Trigger",
    "Tuning",
    "WindowedHead",
    "audio_blocks",
    "ava_clips",
    "beta_from_probability",
    "beta_parameters",
    "bouts",
    "calibrate",
    "clip_labels",
    "dropout_samples",
    "esc50_soundscapes",
    "event_truth",
    "export_onnx",
    "folder_soundscapes",
    "load_ava",
    "load_clips",
    "load_esc50",
    "load_series",
    "load_sounds",
    "load_strong",
    "make_head",
    "make_network",
    "mel_filters",
    "mix_soundscapes",
    "onset_weights",
    "push_many",
    "quiet_thresholds",
    "read_audio",
    "read_ava",
    "read_ava_actions",
    "read_series",
    "read_strong_labels",
    "segment_loss",
    "sensitivity",
    "synthetic_clips",
]
