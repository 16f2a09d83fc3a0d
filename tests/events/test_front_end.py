"""The log-mel front end: equal to librosa, causal, and the same in pieces as whole."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from evidentia import EvidentiaError, validation
from evidentia.events import FrontEndState, LogMel, mel_filters
from evidentia.events.front_end import log_mel
from evidentia.events.front_end.live_log_mel import LiveLogMel
from evidentia.events.front_end.log_mel import filter_at

# dB: of rounding, where a matrix product adds in another order.
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-9}


def sound(streams=1, samples=4000, dtype=torch.float64):
    """Noise that swells, with a tone in it."""
    generator = torch.Generator().manual_seed(samples)
    noise = torch.randn(streams, samples, generator=generator, dtype=torch.float64)
    time = torch.arange(samples, dtype=torch.float64) / 16_000
    return (noise * (0.01 + time) + torch.sin(2 * torch.pi * 440 * time)).to(dtype)


def in_pieces(front, pieces):
    """The frames that each piece completes, and the state after all."""
    state, parts = front.start(len(pieces[0])), []
    for piece in pieces:
        frames, state = front.step(piece, state)
        parts.append(frames)
    return parts, state


def live_pieces(live, pieces):
    """The same of the front end of live streams, whose pieces are whole hops."""
    tail, parts = np.zeros((len(pieces[0]), live.overlap), dtype=np.float32), []
    for piece in pieces:
        frames, tail = live.advance(piece.numpy(), tail)
        parts.append(torch.from_numpy(frames))
    return torch.cat(parts, dim=1), tail


def librosa_decibels(samples, **options):
    librosa = pytest.importorskip("librosa")
    mel = librosa.feature.melspectrogram(
        y=samples, sr=16_000, n_fft=2048, hop_length=256, n_mels=128, dtype=samples.dtype, **options
    )
    return librosa.power_to_db(mel, top_db=None).T


@pytest.mark.parametrize(
    ("rate", "window", "mels", "low", "high"),
    [(16_000, 2048, 128, 0.0, None), (44_100, 1024, 40, 50.0, 14_000.0), (8_000, 512, 23, 300.0, 900.0)],
)
def test_filters_are_those_of_librosa(rate, window, mels, low, high):
    librosa = pytest.importorskip("librosa")
    theirs = librosa.filters.mel(sr=rate, n_fft=window, n_mels=mels, fmin=low, fmax=high, dtype=np.float64)
    np.testing.assert_allclose(mel_filters(rate, window, mels, low, high).T, theirs, rtol=1e-10, atol=1e-16)


def test_every_filter_of_the_thesis_hears_something():
    assert bool((mel_filters().sum(0) > 0).all())


@pytest.mark.parametrize(("mels", "low", "high"), [(128, 0.0, None), (40, 50.0, 14_000.0)])
def test_every_filter_is_found_by_the_frequency_of_its_peak(mels, low, high):
    # With a window of a second or more a frequency is a Hz or less wide.
    filters = mel_filters(32_000, 2**16, mels, low, high)
    found = [filter_at(int(row) * 32_000 / 2**16, 32_000, mels, low, high) for row in filters.argmax(0)]
    np.testing.assert_allclose(found, range(mels), atol=0.03)


def test_equal_to_librosa(dtype):
    samples = sound(samples=20_000, dtype=dtype)
    front = LogMel(dtype=dtype)
    tolerance = {torch.float32: 5e-4, torch.float64: 1e-8}[dtype]
    np.testing.assert_allclose(front.centred(samples)[0], librosa_decibels(samples[0].numpy()), atol=tolerance, rtol=0)
    padded = np.pad(samples[0].numpy(), (2048 - 256, 0))
    np.testing.assert_allclose(front(samples)[0], librosa_decibels(padded, center=False), atol=tolerance, rtol=0)


def test_equal_to_librosa_on_recordings(real_data):
    soundfile = pytest.importorskip("soundfile")
    clips = sorted((real_data / "ESC-50" / "audio").glob("*.ogg"))[::400]
    assert clips
    for clip in clips:
        samples, rate = soundfile.read(clip)
        assert rate == 16_000
        ours = LogMel(dtype=torch.float64).centred(torch.from_numpy(samples))
        theirs = librosa_decibels(samples)
        np.testing.assert_allclose(ours, theirs, atol=1e-6, rtol=0)
        # A float32 transform is exact to its largest values: quiet bands beside loud ones are less so.
        error = abs(LogMel().centred(torch.from_numpy(samples)).numpy() - theirs)
        assert error.max() < 0.1
        assert error[theirs > theirs.max(1, keepdims=True) - 60].max() < 5e-4


def test_noise_in_float32_is_equal_to_librosa_to_5e_5_decibels():
    noise = torch.randn(20_000)
    np.testing.assert_allclose(LogMel().centred(noise), librosa_decibels(noise.numpy()), atol=5e-5, rtol=0)


def test_causal_frames_are_the_centred_ones_three_hops_later():
    samples = sound(samples=160_000)
    front = LogMel(dtype=torch.float64)
    causal, centred = front(samples), front.centred(samples)
    assert causal.shape == (1, 625, 128)
    assert centred.shape == (1, 626, 128)
    torch.testing.assert_close(causal[:, 3:], centred[:, :622])


def test_no_frame_depends_on_later_samples(dtype):
    front = LogMel(dtype=dtype)
    samples = sound(samples=6000, dtype=dtype)
    for cut in (0, 256, 1000, 3072, 5800):
        changed = samples.clone()
        changed[:, cut:] = torch.randn(6000 - cut, dtype=dtype)
        done = cut // 256
        assert torch.equal(front(samples)[:, :done], front(changed)[:, :done])
        assert not torch.equal(front(samples)[:, done:], front(changed)[:, done:])


@settings(max_examples=30)
@given(
    cuts=st.lists(st.integers(0, 4000), max_size=8),
    streams=st.integers(1, 3),
    double=st.booleans(),
    window=st.booleans(),
)
def test_pieces_give_what_the_whole_gives(cuts, streams, double, window):
    dtype = torch.float64 if double else torch.float32
    front = LogMel(dtype=dtype) if window else LogMel(window=300, hop=100, mels=20, dtype=dtype)
    samples = sound(streams, dtype=dtype)
    parts, state = in_pieces(front, samples.tensor_split(sorted(cuts), dim=1))
    torch.testing.assert_close(torch.cat(parts, dim=1), front(samples), atol=TOLERANCE[dtype], rtol=0)
    assert state.frames.tolist() == [4000 // front.hop] * streams


def test_sample_by_sample():
    front = LogMel(dtype=torch.float64)
    samples = sound(2, 1100)
    parts, _ = in_pieces(front, samples.split(1, dim=1))
    assert [position for position, part in enumerate(parts) if part.shape[1]] == [255, 511, 767, 1023]
    torch.testing.assert_close(torch.cat(parts, dim=1), front(samples))


@pytest.mark.parametrize("streams", [1, 3, 40])
@pytest.mark.parametrize(("window", "hop", "hops"), [(2048, 256, 4), (300, 100, 1), (300, 100, 50), (256, 256, 2)])
def test_live_frames_are_those_of_the_whole(streams, window, hop, hops):
    front = LogMel(window=window, hop=hop, mels=40, dtype=torch.float32)
    live, samples = LiveLogMel(front), sound(streams, 3 * hops * hop, torch.float32)
    frames, tail = live_pieces(live, samples.split(hops * hop, dim=1))
    # Two transforms in float32 differ in quiet bands beside loud ones.
    torch.testing.assert_close(frames, front(samples), atol=5e-4, rtol=0)
    assert np.array_equal(tail, samples[:, samples.shape[1] - live.overlap :].numpy())
    # What is kept holds neither the caller's samples nor more of them than it needs.
    assert tail.base is None


@settings(max_examples=20)
@given(
    cuts=st.lists(st.integers(1, 39), unique=True, max_size=8), streams=st.integers(1, 3), changed=st.integers(0, 39)
)
def test_live_frames_are_the_same_in_any_pieces_and_causal(cuts, streams, changed):
    front = LogMel(dtype=torch.float32)
    live, samples = LiveLogMel(front), sound(streams, 40 * 256, torch.float32)
    edges = [256 * cut for cut in sorted(cuts)]
    frames, _ = live_pieces(live, samples.tensor_split(edges, dim=1))
    torch.testing.assert_close(frames, front(samples), atol=5e-4, rtol=0)
    other = samples.clone()
    other[:, 256 * changed :] = torch.randn(streams, (40 - changed) * 256)
    found, _ = live_pieces(live, other.tensor_split(edges, dim=1))
    assert torch.equal(found[:, :changed], frames[:, :changed])
    assert not torch.equal(found[:, changed:], frames[:, changed:])


def test_live_silence_is_the_floor():
    live = LiveLogMel(LogMel(dtype=torch.float32))
    frames, _ = live.advance(np.zeros((1, 1024), dtype=np.float32), np.zeros((1, live.overlap), dtype=np.float32))
    np.testing.assert_allclose(frames, -100.0, rtol=1e-6)


def test_long_sounds_are_done_in_blocks(monkeypatch):
    samples = sound(3, 5000)
    whole = LogMel(dtype=torch.float64)(samples)
    monkeypatch.setattr(log_mel, "_BLOCK", 7)
    torch.testing.assert_close(LogMel(dtype=torch.float64)(samples), whole)


def test_streams_of_a_batch_do_not_meet():
    front = LogMel(dtype=torch.float64)
    samples = sound(3, 3000)
    for row in range(3):
        torch.testing.assert_close(front(samples)[row], front(samples[row]))


def test_a_saved_stream_goes_on_where_it_was():
    front = LogMel()
    samples = sound(2, 4000, torch.float32)
    _, state = front.step(samples[:, :1234], front.start(2))
    saved = {name: tensor.clone() for name, tensor in state.to_dict().items()}
    expected, _ = front.step(samples[:, 1234:], state)
    again = FrontEndState.from_dict(saved)
    # A state is not changed by a step.
    for _ in range(2):
        assert torch.equal(LogMel().step(samples[:, 1234:], again)[0], expected)


def test_streams_of_different_ages_share_a_batch():
    front = LogMel(dtype=torch.float64)
    samples = sound(2, 4096)
    old = front.step(samples[:1, :2048], front.start())[1]
    parts = [each.to_dict() for each in (old, front.start())]
    both = FrontEndState.from_dict({name: torch.cat([part[name] for part in parts]) for name in parts[0]})
    frames, both = front.step(torch.cat([samples[:1, 2048:], samples[1:, :2048]]), both)
    torch.testing.assert_close(frames[0], front(samples[0])[8:])
    torch.testing.assert_close(frames[1], front(samples[1])[:8])
    assert both.frames.tolist() == [16, 8]


def test_a_state_holds_no_more_than_it_needs():
    front = LogMel()
    _, state = front.step(sound(1, 100_000, torch.float32), front.start())
    assert state.tail.untyped_storage().nbytes() < 2 * 4 * 2048


def test_silence_is_the_floor():
    assert torch.equal(LogMel()(torch.zeros(1, 1000)), torch.full((1, 3, 128), -100.0))
    assert float(LogMel(floor=1e-3, dtype=torch.float64)(torch.zeros(1, 256)).max()) == pytest.approx(-30)


def test_samples_take_the_dtype_of_the_front_end():
    assert LogMel()(sound(dtype=torch.float64)).dtype == torch.float32
    assert LogMel().double()(sound(dtype=torch.float32)).dtype == torch.float64


def test_shorter_than_a_hop_gives_no_frame():
    assert LogMel()(torch.zeros(2, 255)).shape == (2, 0, 128)
    assert LogMel().step(torch.zeros(2, 0), LogMel().start(2))[0].shape == (2, 0, 128)


def test_weights_files_need_not_hold_it():
    assert not LogMel().state_dict()


def test_gradients_reach_the_samples():
    samples = sound(1, 600).requires_grad_()
    LogMel(window=128, hop=64, mels=8, dtype=torch.float64)(samples).sum().backward()
    assert bool((samples.grad != 0).any())


def test_bad_samples_are_refused():
    front = LogMel()
    with pytest.raises(EvidentiaError, match=r"divide 16-bit samples by 32,768"):
        front(torch.zeros(1, 500, dtype=torch.int16))
    with pytest.raises(EvidentiaError, match=r"floating tensor.*got ndarray"):
        front(np.zeros(500))
    with pytest.raises(EvidentiaError, match="samples must be finite, got NaN"):
        front(torch.tensor([0.0, float("nan")]))
    with pytest.raises(EvidentiaError, match=r"samples must be of shape \(2, n\).*got \(3, 10\)"):
        front.step(torch.zeros(3, 10), front.start(2))
    with pytest.raises(EvidentiaError, match=r"samples must be of shape \(1, n\).*got \(10,\)"):
        front.step(torch.zeros(10), front.start())
    with validation(False):
        assert front(torch.full((1, 256), float("nan"))).isnan().any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hop": 0}, "at least 1"),
        ({"hop": 3000}, "no shorter than the hop"),
        ({"floor": 0.0}, "must be positive"),
        ({"f_max": 9000.0}, "half the sample rate"),
        ({"f_min": 500.0, "f_max": 400.0}, "f_min < f_max"),
    ],
)
def test_bad_settings_are_refused(options, message):
    with pytest.raises(EvidentiaError, match=message):
        LogMel(**options)


def test_a_state_of_other_settings_is_refused():
    with pytest.raises(EvidentiaError, match="other settings of window or hop"):
        LogMel().step(torch.zeros(1, 256), LogMel(window=1024).start())
    with pytest.raises(EvidentiaError, match="has the parts frames, tail, got tail"):
        FrontEndState.from_dict({"tail": torch.zeros(1, 1792)})
    with pytest.raises(EvidentiaError, match="at least 1 stream"):
        LogMel().start(0)
