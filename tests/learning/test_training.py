"""`fit`: the same by its seed, untouched by the global random state, and resumable to the last bit."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.data import Dataset, TensorDataset

from evidentia import EvidentiaError
from evidentia._support.errors import FileFormatError
from evidentia.learning import EvidentialClassifier, TrainingSettings

GENERATOR = torch.Generator().manual_seed(0)
Y = torch.arange(3).repeat(25)
X = torch.tensor([[2.0, 0], [0, 2], [-2, -2]])[Y] + torch.randn(75, 2, generator=GENERATOR)
VALIDATION = (X[:30] + 0.5 * torch.randn(30, 2, generator=GENERATOR), Y[:30])
SETTINGS = {"epochs": 6, "batch_size": 16, "learning_rate": 0.02, "progress": False}


class BrokenOffError(Exception):
    pass


def model(width=16, **kwargs):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.4))
    return EvidentialClassifier(net, 3, **kwargs)


def state_of(net):
    return {name: tensor.clone() for name, tensor in net.state_dict().items()}


def same(first, second):
    return first.keys() == second.keys() and all(torch.equal(tensor, second[name]) for name, tensor in first.items())


def break_off_in(net, epoch, batches=5):
    """Let the network fail in the middle of an epoch, counted from 0."""
    calls = iter(range(10_000))
    last = epoch * batches + 2

    def fail(module, _):
        if module.training and next(calls) >= last:
            raise BrokenOffError

    net.backbone.register_forward_pre_hook(fail)
    return net


def test_the_seed_decides_everything():
    first, second = (model().fit(X, Y, **SETTINGS, seed=1) for _ in range(2))
    assert same(state_of(first), state_of(second))
    assert first.history == second.history
    assert not same(state_of(first), state_of(model().fit(X, Y, **SETTINGS, seed=2)))


@pytest.mark.parametrize("as_dataset", [False, True])
def test_the_global_random_state_is_neither_used_nor_changed(as_dataset):
    states = []
    for seed in (5, 6):
        net = model(method="daedl")
        torch.manual_seed(seed)
        before = torch.get_rng_state()
        given = (TensorDataset(X, Y),) if as_dataset else (X, Y)
        validation = TensorDataset(*VALIDATION) if as_dataset else VALIDATION
        net.fit(*given, **SETTINGS, validation=validation)
        assert torch.equal(torch.get_rng_state(), before)
        states.append(state_of(net))
    assert same(*states)


RUNS = {
    "plain": {},
    "constant rate": {"schedule": "constant", "weight_decay": 0.1},
    "validation": {"validation": VALIDATION},
    "early stopping": {"validation": VALIDATION, "patience": 2, "epochs": 30, "learning_rate": 0.2},
}


@pytest.mark.parametrize("method", ["edl", "daedl"])
@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("stop", [0, 1, 3])
def test_a_run_that_is_broken_off_ends_where_it_would_have(method, name, stop, tmp_path):
    settings = SETTINGS | RUNS[name]
    whole = model(method=method).fit(X, Y, **settings)
    interrupted = break_off_in(model(method=method), stop)
    with pytest.raises(BrokenOffError):
        interrupted.fit(X, Y, **settings, checkpoint=tmp_path / "run")
    assert (tmp_path / "run").exists() == (stop > 0)
    assert interrupted.history == whole.history[:stop]
    assert not interrupted.training
    torch.manual_seed(99)
    resumed = model(method=method).fit(X, Y, **settings, checkpoint=tmp_path / "run")
    assert same(state_of(resumed), state_of(whole))
    assert resumed.history == whole.history
    # A run that is over is over: nothing is trained again.
    again = break_off_in(model(method=method), 0).fit(X, Y, **settings, checkpoint=tmp_path / "run")
    assert same(state_of(again), state_of(whole))
    assert again.history == whole.history


KILLED = """
import sys
import torch
sys.path.insert(0, {folder!r})
from test_training import SETTINGS, VALIDATION, X, Y, model

torch.set_num_threads(1)
net = model()
calls = iter(range(10_000))

def report(module, _):
    if module.training and next(calls) == 22:  # in the fifth epoch
        print("ready", flush=True)
        sys.stdin.read()

net.backbone.register_forward_pre_hook(report)
net.fit(X, Y, **SETTINGS, validation=VALIDATION, patience=5, checkpoint={checkpoint!r})
"""


def test_a_run_that_is_killed_ends_where_it_would_have(tmp_path):
    checkpoint = tmp_path / "run"
    script = KILLED.format(folder=str(Path(__file__).parent), checkpoint=str(checkpoint))
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    settings = SETTINGS | {"validation": VALIDATION, "patience": 5}
    resumed = model()
    resumed.fit(X, Y, **settings, checkpoint=checkpoint)
    whole = model().fit(X, Y, **settings)
    assert same(state_of(resumed), state_of(whole))
    assert resumed.history == whole.history
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_early_stopping_returns_to_the_best_epoch():
    settings = SETTINGS | {"epochs": 40, "learning_rate": 0.2, "schedule": "constant", "validation": VALIDATION}
    net = model().fit(X, Y, **settings, patience=3)
    losses = [record["validation_loss"] for record in net.history]
    best = losses.index(min(losses))
    assert len(losses) == best + 4 < 40
    with torch.no_grad():
        loss = float(net.loss(net(VALIDATION[0]), VALIDATION[1], settings["epochs"]))
    assert loss == pytest.approx(losses[best], rel=1e-5)


def test_the_validation_loss_has_the_same_penalty_in_every_epoch():
    # With a vanishing learning rate nothing is learnt, so nothing may change but the training loss.
    frozen = SETTINGS | {"learning_rate": 1e-12, "validation": VALIDATION}
    torch.manual_seed(0)
    net = EvidentialClassifier(nn.Linear(2, 8), 3, kl_ramp=6).fit(X, Y, **frozen)
    first, last = net.history[0], net.history[-1]
    assert last["validation_loss"] == pytest.approx(first["validation_loss"], rel=1e-5)
    assert last["loss"] > first["loss"] * 1.001


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"learning_rate": 0.5}, "learning_rate"),
        ({"seed": 4}, "seed"),
        ({"epochs": 7}, "epochs"),
        ({"validation": VALIDATION}, "validation samples"),
    ],
)
def test_a_checkpoint_of_other_settings_is_refused_in_a_sentence(change, named, tmp_path):
    model().fit(X, Y, **SETTINGS, checkpoint=tmp_path / "run")
    with pytest.raises(EvidentiaError, match=rf"was made with other settings \({named}\); use the same ones to go on"):
        model().fit(X, Y, **SETTINGS | change, checkpoint=tmp_path / "run")


def test_a_checkpoint_of_another_model_or_data_set_is_refused_and_nothing_is_lost(tmp_path):
    model().fit(X, Y, **SETTINGS, checkpoint=tmp_path / "run")
    with pytest.raises(EvidentiaError, match=r"other settings \(samples\)"):
        model().fit(X[1:], Y[1:], **SETTINGS, checkpoint=tmp_path / "run")
    with pytest.raises(EvidentiaError, match=r"other settings \(method\)"):
        model(method="i-edl").fit(X, Y, **SETTINGS, checkpoint=tmp_path / "run")
    with pytest.raises(EvidentiaError, match=r"other settings \(method_options\)"):
        model(kl_weight=3).fit(X, Y, **SETTINGS, checkpoint=tmp_path / "run")
    other = model(width=8)
    other(X)
    before = state_of(other)
    with pytest.raises(FileFormatError, match="is of another network"):
        other.fit(X, Y, **SETTINGS, checkpoint=tmp_path / "run")
    assert same(state_of(other), before)


def test_a_damaged_checkpoint_is_refused_in_a_sentence(tmp_path):
    path = tmp_path / "run"
    model().fit(X, Y, **SETTINGS, checkpoint=path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(FileFormatError, match="may be truncated"):
        model().fit(X, Y, **SETTINGS, checkpoint=path)
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(FileFormatError, match="does not match its checksum"):
        model().fit(X, Y, **SETTINGS, checkpoint=path)
    with pytest.raises(EvidentiaError, match=r"the checkpoint must be a file, but .* is a folder"):
        model().fit(X, Y, **SETTINGS, checkpoint=tmp_path)


def test_a_loss_that_is_no_number_is_an_error_that_says_when():
    net = model()
    calls = iter(range(1000))

    def spoil(module, _, outputs):
        return outputs * float("nan") if module.training and next(calls) >= 12 else outputs

    handle = net.backbone.register_forward_hook(spoil)
    with pytest.raises(EvidentiaError, match=r"training stopped in epoch 2: .*NaN"):
        net.fit(X, Y, **SETTINGS)
    assert len(net.history) == 2
    handle.remove()
    softmax = model(method="softmax")
    softmax.backbone.register_forward_hook(lambda *given: given[2] * float("inf"))
    with pytest.raises(EvidentiaError, match="the loss became nan in epoch 0; lower the learning rate or check"):
        softmax.fit(X, Y, **SETTINGS)


def test_weights_that_are_no_numbers_are_never_saved(tmp_path):
    net = model(method="softmax")
    net(X)
    # A gradient that overflows in the last step of the first epoch, after a finite loss.
    calls = iter(range(1000))
    net.head.weight.register_hook(lambda gradient: gradient * float("nan") if next(calls) == 4 else gradient)
    with pytest.raises(EvidentiaError, match="weights became NaN or infinite in epoch 0; lower the learning rate"):
        net.fit(X, Y, **SETTINGS, checkpoint=tmp_path / "run")
    assert not (tmp_path / "run").exists()


class Mislabelled(Dataset):
    def __len__(self):
        return 20

    def __getitem__(self, index):
        return torch.zeros(2), index


def test_wrong_labels_of_a_dataset_are_an_error_that_says_when():
    with pytest.raises(EvidentiaError, match=r"training stopped in epoch 0: class indices must lie in 0\.\.2"):
        model().fit(Mislabelled(), **SETTINGS)


def test_batches_of_one_are_left_out_for_batch_normalisation():
    assert len(model().fit(X[:17], Y[:17], **SETTINGS).history) == 6


def test_a_bar_is_shown_on_the_error_stream_only(capsys):
    model().fit(X, Y, **SETTINGS | {"progress": True, "epochs": 1})
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": 0}, "epochs: Input should be greater than or equal to 1"),
        ({"batch_size": 0}, "batch_size"),
        ({"learning_rate": 0}, "learning_rate"),
        ({"learning_rate": float("inf")}, "learning_rate: Input should be a finite number"),
        ({"weight_decay": -1}, "weight_decay"),
        ({"schedule": "wild"}, "schedule: Input should be 'cosine' or 'constant'"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**32}, "seed"),
        ({"learning_speed": 1}, "learning_speed: there is no such setting"),
        ({"patience": 3}, r"early stopping by patience needs validation data; give validation=\(x, y\)"),
    ],
)
def test_wrong_settings_are_refused_in_a_sentence(settings, message):
    with pytest.raises(EvidentiaError, match=message):
        model().fit(X, Y, **settings)


def test_the_cosine_schedule_falls_from_the_rate_to_0():
    settings = TrainingSettings(epochs=4, learning_rate=2.0)
    assert [round(settings.rate_at(epoch), 4) for epoch in range(5)] == [2.0, 1.7071, 1.0, 0.2929, 0.0]
    assert TrainingSettings(epochs=4, learning_rate=2.0, schedule="constant").rate_at(3) == 2.0
