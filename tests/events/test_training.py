"""Training: losses, augmentation, resuming after a kill, and that a detector really learns."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from evidentia import EvidentiaError
from evidentia.evaluation import EventTruth
from evidentia.events import (
    Augmentation,
    Clip,
    EventDetector,
    EventTraining,
    SeriesAugmentation,
    SeriesInputs,
    beta_parameters,
    event_truth,
    make_network,
    onset_weights,
    segment_loss,
    synthetic_clips,
)
from evidentia.events.training import loop
from evidentia.events.training.augmentation import Batch, masked, mixed, rolled, shifted
from evidentia.events.training.fitting import prepared
from evidentia.events.training.loop import Examples
from evidentia.learning import beta_risk

# Few clips are held out of few, and not every class is in them.
pytestmark = pytest.mark.filterwarnings("ignore:the clips to calibrate on have no event of")

QUICK: dict[str, Any] = {"preset": None, "progress": False, "batch_size": 4}
KINDS: dict[str, Any] = {"labels": ["siren", "hiss", "clicks"], "duration": 4.0, "snr": (12.0, 24.0)}


@pytest.fixture(scope="module")
def clips() -> list[Clip]:
    return synthetic_clips(10, seed=1, **{**KINDS, "duration": 2.0})


def weights(det: EventDetector) -> dict[str, Tensor]:
    return dict(det.network_.state_dict())


def same(mine: EventDetector, its: EventDetector) -> bool:
    return all(torch.equal(value, weights(its)[name]) for name, value in weights(mine).items())


def test_a_detector_learns_and_calls_unseen_events_early() -> None:
    train, test = synthetic_clips(60, seed=1, **KINDS), synthetic_clips(30, seed=2, **KINDS)
    det = EventDetector(epochs=5, onset_weights=True, **QUICK).fit(train)
    assert det.history_[-1]["loss"] < 0.75 * det.history_[0]["loss"]
    scores = det.evaluate(test)
    assert scores.macro_f1 > 0.5
    assert scores.delay < 0.7
    assert scores.false_alarms_per_minute < 8
    # On streams too: what is called is mostly there.
    found = [each for clip in test[:10] for each in det.stream(events=clip.events, warnings=False).push(clip.samples)]
    assert sum(each.delay is not None for each in found) > len(found) / 2


def test_a_killed_run_ends_where_it_would_have(
    clips: list[Clip], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {**QUICK, "augmentation": True, "onset_weights": True, "epochs": 3, "patience": 3}
    whole = EventDetector(**options).fit(clips)
    file, epoch, seen = tmp_path / "run.safetensors", loop._epoch, []

    def killed(*arguments: Any) -> float:
        if len(seen) == 2:
            raise KeyboardInterrupt
        seen.append(1)
        return epoch(*arguments)

    monkeypatch.setattr(loop, "_epoch", killed)
    with pytest.raises(KeyboardInterrupt):
        EventDetector(**options, checkpoint=file).fit(clips)
    monkeypatch.undo()
    again = EventDetector(**options, checkpoint=file).fit(clips)
    assert same(whole, again)
    assert whole.history_ == again.history_
    assert whole.head_ == again.head_
    with pytest.raises(EvidentiaError, match=r"other settings \(learning_rate\)"):
        EventDetector(**options, checkpoint=file, learning_rate=1.0).fit(clips)
    with pytest.raises(EvidentiaError, match=r"other settings \(examples, network, validation\)"):
        EventDetector(**options, checkpoint=file).fit(clips[:8], clips[8:])


def test_seeds_decide_everything(clips: list[Clip]) -> None:
    first, second, other = (EventDetector(epochs=1, seed=seed, **QUICK).fit(clips) for seed in (0, 0, 1))
    assert same(first, second)
    assert not same(first, other)


def test_the_input_batch_norm_is_the_average_over_training(clips: list[Clip]) -> None:
    det = EventDetector(epochs=2, **QUICK).fit(clips[:8], clips[8:])
    frames = torch.cat([det.inputs_.frames(clip)[:124] for clip in clips[:8]])
    assert torch.allclose(det.network_.standardise.running_mean, frames.mean(0), atol=0.01)


@pytest.mark.parametrize("loss", ["beta", "bce", "sigmoid"])
@pytest.mark.parametrize("activation", ["exp", "softplus", "relu"])
def test_losses_are_finite_and_favour_the_truth(loss: Any, activation: Any) -> None:
    far = torch.tensor([[0.0, 0.0], [80.0, -80.0], [-80.0, 80.0], [1e4, 1e4]], requires_grad=True)
    for target in (torch.zeros(4), torch.ones(4)):
        value = segment_loss(far, target, loss, activation)
        assert bool(value.isfinite().all())
        (gradient,) = torch.autograd.grad(value.sum(), far)
        assert bool(gradient.isfinite().all())
    right, wrong = (
        segment_loss(far.detach(), torch.tensor([0.0, y, 1 - y, 0.0]), loss, activation) for y in (1.0, 0.0)
    )
    assert float(right[1:3].max()) < 0.1
    assert float(wrong[1:3].min()) > 1


def test_losses_are_what_they_say() -> None:
    outputs, target = torch.randn(5, 3, 2), torch.randint(0, 2, (5, 3)).float()
    alpha, beta = beta_parameters(outputs)
    assert torch.equal(alpha, outputs[..., 0].exp() + 1)
    assert torch.equal(segment_loss(outputs, target), beta_risk(alpha, beta, target))
    mean = alpha / (alpha + beta)
    expected = torch.nn.functional.binary_cross_entropy(mean, target, reduction="none")
    assert torch.allclose(segment_loss(outputs, target, "bce"), expected, atol=1e-5)
    plain, _ = beta_parameters(outputs, "sigmoid")
    assert torch.allclose(plain / 1e6, (outputs[..., 0] - outputs[..., 1]).sigmoid(), atol=1e-5)


def test_clips_of_different_lengths_are_repeated_without_weight() -> None:
    truth = EventTruth.from_events([[(0, 0.0, 0.1)], []], [3, 2], 1, 0.1)
    short, long = torch.arange(4.0).view(4, 1), torch.arange(7.0).view(7, 1)
    batch = Examples.of([long, short], truth, segment=2).batch
    assert batch.frames[..., 0].tolist() == [[0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 0, 1]]
    assert batch.weight[..., 0].tolist() == [[1, 1, 1], [1, 1, 0]]
    # What is beyond the end of a clip costs nothing.
    network = make_network("temporal", 1, 1, segment=2).eval()
    settings = EventTraining(progress=False)
    loss, entries = loop._loss(network, batch, settings)
    changed = batch._replace(target=batch.target.clone())
    changed.target[1, 2] = 1.0
    assert entries == 5
    assert loss.item() == loop._loss(network, changed, settings)[0].item()


def test_an_event_does_not_begin_where_a_piece_does() -> None:
    # 40, 23 and no segments of four samples; one event goes on over two edges, one ends right before one.
    events = [("jam", 0.5, 33.0), ("leak", 1.0, 15.9), ("jam", 60.0, 63.0)]
    long = Clip(torch.randn(161, 2), 4.0, [(label, onset / 1.6, offset / 1.6) for label, onset, offset in events])
    short, empty = Clip(torch.randn(92, 2), 4.0, [("leak", 2.0, 20.0)]), Clip(torch.randn(3, 2), 4.0)
    inputs, labels = SeriesInputs(rate=4.0, channels=2, segment=4), ["jam", "leak"]
    batch = prepared([long, short, empty], labels, inputs, 16, weigh_onsets=True).batch
    assert batch.lengths.tolist() == [16, 16, 8, 16, 7]
    whole = [onset_weights(event_truth([clip], labels, inputs.seconds))[0] for clip in (long, short)]
    parts = [*whole[0].split(16), *whole[1].split(16)]
    for row, part in zip(batch.weight, parts, strict=True):
        assert torch.equal(row[: len(part)], part)
        assert not row[len(part) :].any()
    # Where the second piece begins, the event has gone on for 16 segments.
    assert batch.weight[1, 0, 0] == 1.0
    plain = prepared([long, short, empty], labels, inputs, 16, weigh_onsets=False).batch
    assert plain.weight.sum() == 2 * plain.lengths.sum()
    assert torch.equal(plain.target, batch.target)


def test_bad_settings_are_sentences(clips: list[Clip], tmp_path: Path) -> None:
    with pytest.raises(EvidentiaError, match="epochs"):
        EventTraining(epochs=0)
    with pytest.raises(EvidentiaError, match="is a folder"):
        EventTraining(checkpoint=tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(EvidentiaError, match="cannot be written"):
        EventDetector(checkpoint=tmp_path / "file" / "run.safetensors")
    with pytest.raises(EvidentiaError, match="loss"):
        EventDetector(loss="hinge")
    with pytest.raises(EvidentiaError, match="lower the learning rate"):
        EventDetector(epochs=3, learning_rate=1e25, activation="softplus", **QUICK).fit(clips)


# Augmentation


def batch_of(count: int = 6, segments: int = 10, lengths: list[int] | None = None) -> Batch:
    torch.manual_seed(1)
    frames = 10 * torch.randn(count, 4 * segments, 32) - 40
    target = (torch.rand(count, segments, 3) < 0.3).float()
    size = torch.tensor(lengths or [segments] * count)
    weight = (torch.arange(segments) < size[:, None])[..., None] * (1 + target)
    return Batch(frames, target * (weight > 0), weight, size)


def test_augmentation_changes_frames_and_keeps_shapes() -> None:
    batch = batch_of(lengths=[10, 10, 7, 3, 1, 10])
    changed = Augmentation()(batch)
    assert [part.shape for part in changed] == [part.shape for part in batch]
    assert bool(changed.frames.isfinite().all())
    assert float(changed.frames.min()) >= -100
    assert not torch.allclose(changed.frames, batch.frames)
    beyond = torch.arange(10) >= batch.lengths[:, None]
    assert not changed.weight[beyond].any()
    nothing = Augmentation(gain=0, equaliser=0, shift=0, masks=0, roll=False, mix=0)(batch)
    assert torch.equal(nothing.frames, batch.frames.clamp(min=-100))
    torch.manual_seed(7)
    first = Augmentation()(batch)
    torch.manual_seed(7)
    assert torch.equal(first.frames, Augmentation()(batch).frames)


def test_rolling_moves_frames_targets_and_weights_together() -> None:
    segments = torch.arange(1.0, 9.0)
    frames = segments.repeat_interleave(4).view(1, 32, 1).repeat(5, 1, 2)
    rows = segments.view(1, 8, 1).repeat(5, 1, 1)
    found = rolled(Batch(frames, rows, 2 * rows, torch.full((5,), 8)))
    assert torch.equal(found.frames[:, ::4, :1], found.target)
    assert torch.equal(found.weight, 2 * found.target)
    assert len({tuple(row.flatten().tolist()) for row in found.target}) > 1


def test_mixing_adds_powers_and_events() -> None:
    batch = batch_of(count=2)._replace(frames=torch.full((2, 40, 32), -40.0))
    found = mixed(batch, share=1.0, most_gain=0.0)
    assert torch.allclose(found.frames, torch.tensor(-40 + 10 * math.log10(2)))
    both = torch.maximum(batch.target[0], batch.target[1])
    assert any(
        torch.equal(row, both) or torch.equal(row, mine) for row, mine in zip(found.target, batch.target, strict=True)
    )
    assert bool((found.target >= batch.target).all())


def test_shifts_and_masks() -> None:
    frames = torch.arange(32.0).expand(50, 4, 32)
    moved = shifted(frames, 5)[:, 0, 10] - 10
    assert sorted(set(moved.tolist())) == [float(step) for step in range(-5, 6)]
    hidden = masked(torch.randn(50, 4, 32), 2, 12)
    widths = (hidden[:, 0] == hidden[:, 1]).sum(1)
    assert 0 < int(widths.max()) <= 24
    noisy = SeriesAugmentation(noise=0.1)(batch_of())
    assert 0 < float((noisy.frames - batch_of().frames).std()) < 2


def series(scale: float, number: int, offset: float = 0.0) -> Clip:
    """Two channels of noise, in the first of which an event is a step, and a third that is constant."""
    numbers = torch.randn(300, 3, generator=torch.Generator().manual_seed(number))
    numbers[:, 2] = 0.1
    numbers[100:140, 0] += 4
    numbers[:, :2] = numbers[:, :2] * scale + offset
    return Clip(numbers, 10.0, [("leak", 10.0, 14.0)], f"clip {number}")


@pytest.mark.parametrize("scale", [1e-3, 1e-6, 1e-12, 1e-24, 1e3])
def test_a_series_of_any_unit_trains_alike(scale: float, tmp_path: Path) -> None:
    found = []
    for size in (1.0, scale):
        det = EventDetector("temporal", epochs=3, seed=0, **QUICK).fit([series(size, n) for n in range(10)])
        tested = [series(size, 50 + n) for n in range(4)]
        scores = det.evaluate(tested)
        assert scores.macro_f1 > 0.7
        found.append((det.history_[-1]["loss"], det.beta(tested).alpha))
        if size == scale:
            det.save(tmp_path / "detector")
            again = EventDetector.load(tmp_path / "detector")
            assert torch.equal(again.beta(tested).alpha, found[-1][1])
            assert torch.allclose(again.network_.usual_frame()[:2], torch.tensor(0.5 * scale), atol=0.6 * scale)
            assert float(again.network_.usual_frame()[2]) == pytest.approx(0.1, abs=1e-5)
            stream = again.stream(warnings=False)
            assert [each.time for each in stream.push(tested[0].samples)] == [
                each.time for each in det.detect(tested[0], warnings=False)
            ]
    assert found[0][0] == pytest.approx(found[1][0], rel=0.02)


def test_units_are_left_alone_where_they_are_large_enough() -> None:
    large = EventDetector("temporal", epochs=1, **QUICK).fit([series(5.0, n) for n in range(5)])
    assert large.network_.unit is None
    small = EventDetector("temporal", epochs=1, **QUICK).fit([series(1e-3, n) for n in range(5)])
    assert small.network_.unit is not None
    assert small.network_.unit.tolist()[2] == 1.0
    assert small.network_.unit.log2().frac().eq(0).all()
    # A network that has learned before keeps its units.
    after = EventDetector(small.network_, epochs=1, **QUICK).fit([series(1e-6, n) for n in range(5)])
    assert torch.equal(after.network_.unit, small.network_.unit)


@pytest.mark.parametrize("loss", ["beta", "bce", "sigmoid"])
def test_outputs_that_are_no_pairs_are_refused(loss):
    with pytest.raises(EvidentiaError, match=r"outputs must have the shape .* for and against, got \(5, 3\)"):
        segment_loss(torch.ones(5, 3), torch.ones(5), loss)
    with pytest.raises(EvidentiaError, match="outputs must be a tensor, got list"):
        segment_loss([[2.0, -9.0]], torch.ones(1), loss)
