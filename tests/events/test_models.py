"""Every event network: causal, the same in pieces as whole, and of the size it says."""

from __future__ import annotations

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load, save
from torch import nn

from evidentia import EvidentiaError
from evidentia.events import NETWORKS, DualDNN, LogMel, NetworkState, OfflineCRNN, make_network

SOUND = ("crnn", "crnn-offline", "conformer", "dual-dnn")
FEATURES = {**dict.fromkeys(NETWORKS, 256), **dict.fromkeys(SOUND, 128), "temporal": 6}
# Short memories, so that sequences of a test are longer than they are.
SETTINGS = {"conformer": {"context": 5, "kernel": 3}, "temporal": {"blocks": 2, "segment": 3}}
STREAMING = sorted(name for name in NETWORKS if name != "crnn-offline")
TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-10}
every_network = pytest.mark.parametrize("name", sorted(NETWORKS))
every_streaming_network = pytest.mark.parametrize("name", STREAMING)

_built = {}


def build(name, dtype=torch.float64, **options):
    """A small network that has seen data, so that no norm or bias is as it was made."""
    key = (name, dtype, *sorted(options.items()))
    if key not in _built:
        torch.manual_seed(1)
        net = make_network(name, FEATURES[name], 3, **{**SETTINGS.get(name, {}), **options}).to(dtype)
        for parameter in net.parameters():
            parameter.data += 0.1 * torch.randn_like(parameter)
        for layer in net.modules():
            if isinstance(layer, nn.modules.batchnorm._BatchNorm):
                layer.running_mean.normal_(std=0.2)
                layer.running_var.uniform_(0.5, 2)
        _built[key] = net.eval()
    return _built[key]


def frames(net, segments, batch=2, extra=0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(batch, segments * net.segment + extra, net.features, generator=generator, dtype=torch.float64)
    return x.to(net.head.weight.dtype)


def push(net, pieces, batch):
    state, outputs = net.start(batch), []
    for piece in pieces:
        given_out, state = net.step(piece, state)
        outputs.append(given_out)
    return torch.cat(outputs, dim=1), state


@every_network
def test_shapes(name, dtype):
    net = build(name, dtype)
    outputs = net(frames(net, 9, extra=net.segment - 1))
    assert outputs.shape == (2, 9, 3, 2)
    assert outputs.dtype == dtype
    assert bool(torch.isfinite(outputs).all())
    assert net(frames(net, 0, extra=net.segment - 1)).shape == (2, 0, 3, 2)


@every_streaming_network
@pytest.mark.parametrize("normalisation", ["fixed", "running"])
@settings(max_examples=8)
@given(data=st.data())
def test_pieces_give_what_the_whole_gives(name, normalisation, data):
    dtype = data.draw(st.sampled_from([torch.float32, torch.float64]))
    net = build(name, dtype, normalisation=normalisation)
    x = frames(net, 11, extra=net.segment // 2, seed=data.draw(st.integers(0, 99)))
    cuts = data.draw(st.lists(st.integers(0, x.shape[1]), max_size=6))
    outputs, state = push(net, x.tensor_split(sorted(cuts), dim=1), batch=2)
    torch.testing.assert_close(outputs, net(x), atol=TOLERANCE[dtype], rtol=0)
    assert state.segments.tolist() == [11, 11]
    assert state.pending.shape[1] == net.segment // 2


@every_streaming_network
def test_frame_by_frame(name):
    net = build(name)
    x = frames(net, 20)
    outputs, _ = push(net, x.split(1, dim=1), batch=2)
    torch.testing.assert_close(outputs, net(x), atol=1e-10, rtol=0)


@every_streaming_network
@pytest.mark.parametrize("normalisation", ["fixed", "running"])
@settings(max_examples=8)
@given(data=st.data())
def test_no_output_depends_on_later_frames(name, normalisation, data):
    net = build(name, normalisation=normalisation)
    x = frames(net, 12, seed=data.draw(st.integers(0, 99)))
    cut = data.draw(st.integers(0, x.shape[1] - 1))
    changed = x.clone()
    changed[:, cut:] = 50 * torch.randn_like(changed[:, cut:])
    done = cut // net.segment
    torch.testing.assert_close(net(x)[:, :done], net(changed)[:, :done], atol=1e-12, rtol=0)
    assert not torch.allclose(net(x)[:, done], net(changed)[:, done])


def test_the_offline_baseline_looks_ahead_and_says_so():
    net = build("crnn-offline")
    assert not net.streaming
    x = frames(net, 12)
    changed = x.clone()
    changed[:, -1] += 5
    assert bool(((net(x) - net(changed)).abs().amax((0, 2, 3)) > 0).all())
    for call in (net.start, lambda: net.step(x, None)):
        with pytest.raises(EvidentiaError, match=r"OfflineCRNN looks ahead .* offline baseline"):
            call()
    with pytest.raises(EvidentiaError, match="running normalisation is for streaming networks"):
        type("Late", (OfflineCRNN,), {"__init__": lambda self: super(OfflineCRNN, self).__init__(8, 1, 4, "running")})()


def test_samples_to_outputs_in_pieces():
    net, front = build("crnn"), LogMel(dtype=torch.float64)
    samples = torch.randn(2, 16_000, dtype=torch.float64)
    whole = net(front(samples))
    assert whole.shape[1] == 15
    sound, state, outputs = front.start(2), net.start(2), []
    for piece in samples.split(1111, dim=1):
        heard, sound = front.step(piece, sound)
        told, state = net.step(heard, state)
        outputs.append(told)
    torch.testing.assert_close(torch.cat(outputs, dim=1), whole, atol=1e-8, rtol=0)
    # A change at sample t leaves alone whatever was told by then.
    changed = samples.clone()
    changed[:, 8200:] = 0
    told_before = 8200 // (256 * 4)
    assert torch.equal(net(front(changed))[:, :told_before], whole[:, :told_before])


@every_streaming_network
@pytest.mark.parametrize("normalisation", ["fixed", "running"])
def test_streams_of_different_ages_share_a_batch(name, normalisation):
    net = build(name, normalisation=normalisation)
    x = frames(net, 16)
    half = 7 * net.segment
    old, state = net.step(x[:1, :half], net.start())
    parts = [each.to_dict() for each in (state, net.start())]
    both = NetworkState.from_dict({key: torch.cat([part[key] for part in parts]) for key in parts[0]})
    together, both = net.step(torch.cat([x[:1, half : half + 6], x[1:, :6]]), both)
    more, both = net.step(torch.cat([x[:1, half + 6 :], x[1:, 6 : 9 * net.segment]]), both)
    late = torch.cat([together, more], dim=1)
    torch.testing.assert_close(torch.cat([old[0], late[0]]), net(x)[0], atol=1e-10, rtol=0)
    torch.testing.assert_close(late[1], net(x)[1, :9], atol=1e-10, rtol=0)
    assert both.segments.tolist() == [16, 9]
    alone = both.map(lambda part: part[1:])
    further = frames(net, 2, batch=1, seed=5)
    expected = net(torch.cat([x[1:, : 9 * net.segment], further], dim=1))[:, 9:]
    torch.testing.assert_close(net.step(further, alone)[0], expected, atol=1e-10, rtol=0)


@every_streaming_network
def test_a_state_survives_a_file(name, dtype):
    net = build(name, dtype)
    x = frames(net, 10, extra=1)
    _, state = net.step(x[:, : 5 * net.segment + 1], net.start(2))
    restored = NetworkState.from_dict(load(save({key: part.contiguous() for key, part in state.to_dict().items()})))
    rest = x[:, 5 * net.segment + 1 :]
    assert torch.equal(net.step(rest, restored)[0], net.step(rest, state)[0])


@every_streaming_network
def test_a_state_does_not_grow_and_is_not_changed(name):
    net = build(name)
    x = frames(net, 40, batch=1)
    _, early = net.step(x[:, : 3 * net.segment], net.start())
    before = {key: part.clone() for key, part in early.to_dict().items()}
    _, late = net.step(x[:, 3 * net.segment :], early)
    sizes = [{key: part.shape for key, part in state.to_dict().items()} for state in (early, late)]
    assert sizes[0] == sizes[1]
    assert all(torch.equal(part, before[key]) for key, part in early.to_dict().items())
    assert all(part.untyped_storage().nbytes() <= 2 * part.nbytes for part in late.to_dict().values())
    assert not any(part.requires_grad for part in late.to_dict().values())


@every_network
def test_everything_is_trained(name):
    torch.manual_seed(0)
    options = {"normalisation": "running"} if name != "crnn-offline" else {}
    net = make_network(name, FEATURES[name], 3, **options).double()
    loss = net(frames(net, 12)).square().sum()
    if isinstance(net, DualDNN):
        parts = net.parts(frames(net, 12))
        loss = loss + parts.distances.square().sum() + parts.foreground.square().sum()
    loss.backward()
    for key, parameter in net.named_parameters():
        assert parameter.grad is not None, key
        assert bool(torch.isfinite(parameter.grad).all()), key
        # A mix of one thing has nothing to weigh.
        if parameter.numel() > 1:
            assert bool((parameter.grad != 0).any()), key


@pytest.mark.parametrize("size", ["small", "dcase"])
@every_network
def test_parameters_are_as_many_as_the_size_says(name, size):
    net = make_network(name, FEATURES[name], 10, size=size)
    count = sum(parameter.numel() for parameter in net.parameters())
    wanted = {"small": 60_000, "dcase": 800_000}[size]
    if name == "crnn-offline":
        # The published baseline has 1.1M: its GRU runs both ways.
        wanted = {"small": 85_000, "dcase": 1_110_000}[size]
    assert count == pytest.approx(wanted, rel=0.05)


@every_streaming_network
def test_a_copy_streams_by_itself(name):
    net = build(name)
    x = frames(net, 4)
    before = push(net, [x], 2)[0]
    twin = copy.deepcopy(net)
    for parameter in twin.parameters():
        parameter.data *= 1.1
    torch.testing.assert_close(push(twin, [x], 2)[0], twin(x), atol=1e-10, rtol=0)
    assert torch.equal(push(net, [x], 2)[0], before)
    assert not torch.allclose(twin(x), before)
    assert all(layer is dict(twin.named_modules())[key] for key, layer in twin._memories.items())


@every_streaming_network
def test_single_dropout_layers_may_draw(name):
    net = copy.deepcopy(build(name))
    for layer in net.modules():
        if isinstance(layer, nn.Dropout):
            layer.train()
    x = frames(net, 4)
    state = net.start(2)
    assert not torch.equal(net.step(x, state)[0], net.step(x, state)[0])


@every_streaming_network
def test_bad_frames_are_refused(name):
    net = build(name)
    good = frames(net, 2)
    with pytest.raises(
        EvidentiaError, match=rf"frames must be of shape \(batch, time, {net.features}\), got shape \(2, 2\)"
    ):
        net(good[:, :2, 0])
    with pytest.raises(EvidentiaError, match=r"frames must be of shape"):
        net(torch.cat([good, good], dim=2))
    with pytest.raises(EvidentiaError, match="frames must be finite, got NaN"):
        net(good * float("nan"))
    with pytest.raises(EvidentiaError, match=r"frames are torch.float32 and the network is torch.float64"):
        net.step(good.float(), net.start(2))
    with pytest.raises(EvidentiaError, match="3 streams in the state and 2 in the frames"):
        net.step(good, net.start(3))
    with pytest.raises(EvidentiaError, match=r"call eval\(\) first"):
        copy.deepcopy(net).train().step(good, net.start(2))
    with pytest.raises(EvidentiaError, match="at least 1 stream"):
        net.start(0)


def test_a_state_of_another_network_is_refused():
    crnn, conformer = build("crnn"), build("conformer")
    x, parts = frames(crnn, 1, batch=1), crnn.start().to_dict()
    with pytest.raises(EvidentiaError, match=r"of another network: .*gru"):
        crnn.step(x, conformer.start())
    name = next(key for key in parts if key.startswith("caches."))
    for changed, message in (
        ({name: torch.zeros(1, 1, 1)}, f"{name.removeprefix('caches.')} do not fit"),
        ({"pending": torch.zeros(1, 4, 128)}, "its waiting frames do not fit"),
    ):
        with pytest.raises(EvidentiaError, match=f"of another network: {message}"):
            crnn.step(x, NetworkState.from_dict({**parts, **changed}))
    with pytest.raises(EvidentiaError, match="has the parts caches, pending, segments"):
        NetworkState.from_dict({})


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("crnn", {"num_classes": 0}, "num_classes must be a whole number of at least 1, got 0"),
        ("crnn", {"size": "huge"}, "size must be 'small' or 'dcase', got 'huge'"),
        ("crnn", {"segment": 3}, "a power of 2"),
        ("crnn", {"features": 40}, "at least 128 features a frame, got 40; the network 'temporal'"),
        ("crnn", {"normalisation": "clip"}, "'fixed' or 'running'"),
        ("conformer", {"context": 0}, "context must be a whole number of at least 1"),
        ("dual-dnn", {"context": 0}, "context must be a whole number of at least 1"),
        ("temporal", {"blocks": 0}, "blocks must be a whole number of at least 1"),
        ("acar", {"memory": 0}, "memory must be a whole number of at least 1"),
        ("rnn", {}, "there is no event network named 'rnn'"),
    ],
)
def test_bad_settings_are_refused(name, options, message):
    with pytest.raises(EvidentiaError, match=message):
        make_network(name, **{"features": 128, "num_classes": 3, **options})
