"""Any network as a classifier: the three tasks side by side, heads and backbones, saving, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import Dataset, IterableDataset, TensorDataset

import evidentia as ev
from evidentia import EvidentiaError
from evidentia._support.errors import FileFormatError
from evidentia.learning import EvidentialClassifier, MCDropout

TASKS = {"multiclass": 3, "binary": 2, "multilabel": 4}
every_task = pytest.mark.parametrize("task", TASKS)


def samples(task, count=90, seed=0):
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(3).repeat(count // 3)
    x = torch.tensor([[4.0, 0], [0, 4], [-4, -4]])[y] + torch.randn(count, 2, generator=generator)
    labels = {"multiclass": y, "binary": (y == 2).long(), "multilabel": torch.stack([y == 0, y == 1, y > 0, y < 2], -1)}
    return x, labels[task].long()


def network():
    return nn.Sequential(nn.Linear(2, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.1))


def model(task="multiclass", **kwargs):
    torch.manual_seed(0)
    return EvidentialClassifier(network(), TASKS[task], task=task, **kwargs)


def assert_learnt(pred, y):
    assert float((pred.labels == y).float().mean()) > 0.9


@every_task
def test_a_training_loop_of_ones_own(task):
    net = model(task)
    x, y = samples(task)
    optimizer = None
    for epoch in range(40):
        loss = net.loss(net(x), y, epoch)
        optimizer = optimizer or torch.optim.Adam(net.parameters(), lr=0.05)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert_learnt(net.predict(x), y)


@every_task
def test_fit_and_predict(task):
    x, y = samples(task)
    net = model(task).fit(x, y, epochs=30, learning_rate=0.02, batch_size=30, progress=False)
    test_x, test_y = samples(task, seed=1)
    pred = net.predict(test_x)
    assert_learnt(pred, test_y)
    shape = {"multiclass": (90, 3), "binary": (90,), "multilabel": (90, 4)}[task]
    assert pred.probs.shape == shape
    assert pred["vacuity"].shape == pred.opinion.shape == (shape if task == "multilabel" else (90,))
    kinds = {"multiclass": ev.MultinomialOpinion, "binary": ev.BinomialOpinion, "multilabel": ev.BinomialOpinion}
    assert type(pred.opinion) is kinds[task]
    torch.testing.assert_close(pred.opinion.projected, pred.probs)
    assert len(net.history) == 30
    assert not net.training


@every_task
def test_soft_labels(task):
    x, y = samples(task)
    soft = nn.functional.one_hot(y, 3).float() * 0.9 + 0.1 / 3 if task == "multiclass" else 0.05 + 0.9 * y.float()
    assert_learnt(model(task).fit(x, soft, epochs=30, learning_rate=0.02, batch_size=30, progress=False).predict(x), y)


@every_task
def test_saving_keeps_every_bit(task, tmp_path):
    names = [f"class {k}" for k in range(TASKS[task])]
    x, y = samples(task)
    net = model(task, class_names=names, method="daedl", kl_weight=0.2)
    net.fit(x, y, epochs=2, progress=False).save(tmp_path / "model")
    other = EvidentialClassifier.load(tmp_path / "model", network())
    other.eval()
    mine, its = net.predict(x), other.predict(x)
    assert torch.equal(mine.probs, its.probs)
    assert all(torch.equal(mine[name], its[name]) for name in mine.uncertainties)
    assert its.class_names == tuple(names)
    assert (other.task, other.method.kl_weight) == (task, 0.2)
    assert all(torch.equal(tensor, other.state_dict()[name]) for name, tensor in net.state_dict().items())
    # What was loaded can be saved again before it was ever called.
    EvidentialClassifier.load(tmp_path / "model", network()).save(tmp_path / "again")
    again = EvidentialClassifier.load(tmp_path / "again", network())
    assert torch.equal(again.predict(x).probs, mine.probs)


def test_a_binary_task_agrees_with_two_classes():
    x, y = samples("binary")
    binary = model("binary")
    two = EvidentialClassifier(network(), 2)
    binary(x), two(x)
    two.load_state_dict(binary.state_dict())
    as_binary, as_two = binary.predict(x), two.predict(x)
    assert torch.equal(as_binary.probs, as_two.probs[:, 1])
    assert torch.equal(as_binary["vacuity"], as_two["vacuity"])
    torch.testing.assert_close(as_binary["dissonance"], as_two["dissonance"])
    outputs = two(x)
    for labels in (y, y.unsqueeze(1), y.bool(), y.float(), y.to(torch.uint8)):
        torch.testing.assert_close(binary.loss(outputs, labels, 5), two.loss(outputs, y, 5))


def test_a_multi_label_loss_is_the_mean_of_its_binary_ones():
    net = model("multilabel")
    x, y = samples("multilabel")
    outputs = net(x)
    assert outputs.shape == (90, 4, 2)
    binary = model("binary")
    expected = torch.stack([binary.sample_losses(outputs[:, k], y[:, k], 5) for k in range(4)]).mean(0)
    torch.testing.assert_close(net.sample_losses(outputs, y, 5), expected)
    torch.testing.assert_close(net.loss(outputs, y, 5), expected.mean())


@pytest.mark.parametrize(
    ("head", "backbone"),
    [
        ("linear", nn.Linear(2, 8)),
        (nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3)), nn.Linear(2, 8)),
        (None, nn.Linear(2, 3)),
        ("linear", nn.Identity()),
    ],
    ids=["linear", "module", "none", "no backbone"],
)
def test_heads(head, backbone, tmp_path):
    x, y = samples("multiclass")
    net = EvidentialClassifier(backbone, 3, head=head)
    net.fit(x, y, epochs=20, learning_rate=0.05, progress=False)
    assert_learnt(net.predict(x), y)
    expected = net.predict(x).probs
    net.save(tmp_path / "model")
    assert torch.equal(EvidentialClassifier.load(tmp_path / "model", backbone, head).predict(x).probs, expected)


def test_a_convolutional_backbone_with_features_of_many_dimensions():
    y = torch.arange(2).repeat(20)
    x = torch.randn(40, 1, 8, 8) + 2 * y.reshape(-1, 1, 1, 1)
    net = EvidentialClassifier(nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2)), 2)
    assert net.fit(x, y, epochs=15, learning_rate=0.02, progress=False).features(x).shape == (40, 36)
    assert_learnt(net.predict(x), y)


def test_a_backbone_that_reads_integers():
    tokens = torch.randint(20, (40, 5))
    y = (tokens[:, 0] > 9).long()
    net = EvidentialClassifier(nn.Embedding(20, 4), 2).fit(tokens, y, epochs=40, learning_rate=0.05, progress=False)
    assert_learnt(net.predict(tokens.numpy()), y)


class Pairs(Dataset):
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index], int(self.y[index])


def test_tensors_arrays_and_datasets_are_the_same():
    x, y = samples("multiclass")
    forms = [
        ((x, y), x),
        ((x.double().numpy(), y.numpy()), x.double().numpy()),
        ((x.tolist(), y.tolist()), x.tolist()),
        ((TensorDataset(x, y),), TensorDataset(x, y)),
        ((Pairs(x, y),), Pairs(x, y)),
        ((Pairs(x, y),), TensorDataset(x)),
        ((x.double(), y), x.double()),
        ((TensorDataset(x.double(), y),), TensorDataset(x.double(), y)),
        ((Pairs(x.double().numpy(), y),), Pairs(x.double().numpy(), y)),
    ]
    expected = None
    for given, asked in forms:
        pred = model().fit(*given, epochs=2, progress=False).predict(asked, batch_size=13)
        expected = pred.probs if expected is None else expected
        torch.testing.assert_close(pred.probs, expected)


def test_arrays_of_float64_get_the_dtype_of_the_network():
    x, y = samples("multiclass")
    net = model().double().fit(x.double().numpy(), y.numpy(), epochs=1, progress=False)
    assert net.predict(x.double().numpy()).probs.dtype == torch.float64


@pytest.mark.parametrize("method", ["edl", "daedl"])
@pytest.mark.parametrize("given", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("own", [torch.float32, torch.float64])
def test_inputs_of_any_precision_get_that_of_the_network(method, given, own):
    x, y = samples("multiclass")
    x = x.to(given)
    net = model(method=method).to(own).fit(x, y, epochs=1, validation=(x, y), progress=False)
    expected = net.predict(x.to(own)).probs
    assert expected.dtype == own
    for asked in (x, x.numpy(), TensorDataset(x)):
        assert torch.equal(net.predict(asked).probs, expected)
    assert torch.equal(MCDropout(net, 1, seed=0).predict(x).probs, MCDropout(net, 1, seed=0).predict(x.to(own)).probs)


class Scales(nn.Linear):
    def forward(self, x):
        assert not x.is_floating_point()
        return super().forward(x / 255)


INTEGERS = torch.arange(90).reshape(45, 2)


@pytest.mark.parametrize("backbone", [Scales(2, 4), nn.Embedding(90, 4)])
def test_integers_are_left_to_the_network(backbone):
    net = EvidentialClassifier(backbone, 3).fit(INTEGERS, torch.arange(3).repeat(15), epochs=1, progress=False)
    assert torch.equal(net.predict(INTEGERS.numpy()).probs, net.predict(INTEGERS).probs)


@pytest.mark.parametrize(
    ("backbone", "x", "message"),
    [
        (nn.Linear(2, 4), INTEGERS, r"torch.int64 \(mat1 .*\); give x.to\(torch.float32\)"),
        (nn.Linear(2, 4).double(), INTEGERS.byte(), r"torch.uint8 \(mat1 .*\); give x.to\(torch.float64\)"),
        (nn.Flatten(), INTEGERS > 4, r"torch.bool \(.*\); give x.to\(torch.float32\)"),
        (nn.BatchNorm1d(2), INTEGERS.int(), r"torch.int32 \(.*\); give x.to\(torch.float32\)"),
        (nn.Embedding(90, 4), INTEGERS.float(), r"torch.float32 \((.|\n)*\); give x.long\(\)"),
    ],
)
def test_inputs_of_a_kind_that_the_network_cannot_take_are_refused_in_a_sentence(backbone, x, message):
    net, y = EvidentialClassifier(backbone, 3), torch.arange(3).repeat(15)
    for call in (
        lambda: net.fit(x, y),
        lambda: net.fit(x.numpy(), y),
        lambda: net.fit(TensorDataset(x, y)),
        lambda: net.predict(x),
        lambda: net.predict(x.numpy()),
    ):
        with pytest.raises(EvidentiaError, match="the network cannot take inputs of " + message):
            call()


def test_other_errors_of_a_network_are_its_own():
    class Breaks(nn.Linear):
        def forward(self, x):
            raise RuntimeError("out of luck")

    with pytest.raises(RuntimeError, match="out of luck"):
        EvidentialClassifier(Breaks(2, 4), 3).fit(INTEGERS, torch.arange(3).repeat(15))
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        EvidentialClassifier(nn.Linear(3, 4), 3).predict(INTEGERS.float())


@pytest.mark.parametrize("method", ["edl", "daedl"])
def test_predicting_changes_nothing(method):
    x, y = samples("multiclass")
    net = model(method=method).fit(x, y, epochs=1, progress=False).train()
    net.backbone[1].eval()
    modes = [module.training for module in net.modules()]
    state = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    random = torch.get_rng_state()
    first = net.predict(TensorDataset(x, y), batch_size=7)
    net.calibrate(TensorDataset(x, y))
    assert torch.equal(torch.get_rng_state(), random)
    assert [module.training for module in net.modules()] == modes
    assert all(torch.equal(tensor, state[name]) for name, tensor in net.state_dict().items())
    assert not first.probs.requires_grad
    torch.testing.assert_close(net.predict(x).probs, first.probs)


def test_opinions_carry_gradients():
    net = model().eval()
    x = torch.randn(3, 2, requires_grad=True)
    net.opinion(x).vacuity.sum().backward()
    assert float(x.grad.abs().sum()) > 0


def test_a_density_needs_calibration_after_a_loop_of_ones_own():
    x, y = samples("multiclass")
    net = model(method="daedl")
    net(x)
    with pytest.raises(EvidentiaError, match=r"the density is not fitted; .* call calibrate\(\) after your own loop"):
        net.predict(x)
    for labels in (y, nn.functional.one_hot(y, 3).float()):
        net.calibrate(x, labels)
        assert len(net.method.density.means) == 3
    for distance in (1000, 1e30):
        assert float(net.predict(x + distance)["vacuity"].min()) > 0.99
    assert float(net.predict(x)["vacuity"].mean()) < 0.7


def test_a_softmax_has_no_opinion():
    x, y = samples("multiclass")
    net = model(method="softmax").fit(x, y, epochs=2, progress=False)
    assert net.predict(x).opinion is None
    assert list(net.predict(x).uncertainties) == ["entropy"]
    with pytest.raises(EvidentiaError, match="method 'softmax' gives no opinions; choose an evidential one"):
        net.opinion(x)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "magic"}, "there is no method named 'magic'; choose one of: daedl, edl"),
        ({"task": "regression"}, "there is no task named 'regression'"),
        ({"head": "quadratic"}, "head must be 'linear', a torch.nn.Module or None, got 'quadratic'"),
        ({"head": 5}, "head must be 'linear', a torch.nn.Module or None, got 5"),
        ({"backbone": torch.relu}, "the backbone must be a torch.nn.Module, got builtin_function_or_method"),
        ({"class_names": ["a", "b"]}, "class_names needs 3 names, got 2"),
        ({"class_names": "abc"}, r"a list of names in the order of the classes, got 'abc' \(str\)"),
        ({"class_names": ["a", "b", "a"]}, "class_names must differ from each other, got a, b, a"),
        ({"task": "binary"}, "a binary task has num_classes=2, got 3; use task='multilabel' for more"),
        ({"num_classes": 1}, "num_classes must be a whole number of at least 2, got 1"),
        ({"num_classes": 3.0}, "num_classes must be a whole number of at least 2, got 3.0"),
        ({"num_classes": 0, "task": "multilabel"}, "num_classes must be a whole number of at least 1, got 0"),
        ({"activation": "magic"}, "there is no evidence activation named 'magic'"),
        ({"temperature": 2}, "method 'edl' cannot be built with the options {'temperature': 2}"),
        ({"kl_weight": torch.relu}, "method options must be numbers, names or lists of them"),
        ({"kl_weight": "much"}, "kl_weight must be a number, at least 0, got 'much'"),
    ],
)
def test_wrong_settings_are_refused_before_any_training(settings, message):
    with pytest.raises(EvidentiaError, match=message):
        EvidentialClassifier(**{"backbone": nn.Linear(2, 4), "num_classes": 3, **settings})


class Returns(nn.Module):
    def __init__(self, value):
        super().__init__()
        self.value = value

    def forward(self, _):
        return self.value


@pytest.mark.parametrize(
    ("value", "given"),
    [(torch.zeros(4), r"shape \(4,\)"), (torch.zeros(3, 2), r"shape \(3, 2\)"), ((torch.zeros(4, 2),), "tuple")],
)
def test_a_backbone_that_gives_no_features_is_refused_in_a_sentence(value, given):
    with pytest.raises(EvidentiaError, match=rf"features of shape \(4, ...\) for a batch of 4 inputs, got {given}"):
        EvidentialClassifier(Returns(value), 2)(torch.zeros(4, 1))


@every_task
def test_a_wrong_number_of_outputs_is_refused_in_a_sentence(task):
    outputs = {"multiclass": 3, "binary": 2, "multilabel": 8}[task]
    message = rf"for a {task} task with {TASKS[task]} classes needs {outputs} outputs a sample, got shape \(4, 7\)"
    for backbone, head in ((nn.Linear(2, 7), None), (nn.Linear(2, 5), nn.Linear(5, 7))):
        with pytest.raises(EvidentiaError, match=message):
            EvidentialClassifier(backbone, TASKS[task], task=task, head=head)(torch.zeros(4, 2))


class Endless(IterableDataset):
    def __iter__(self):
        return iter([])


@pytest.mark.parametrize(
    ("task", "labels", "message"),
    [
        ("multiclass", torch.tensor([0, 1, 3]), r"class indices must lie in 0..2, got values from 0 to 3"),
        ("multiclass", torch.tensor([0, -1, 2]), r"class indices must lie in 0..2, got values from -1 to 2"),
        ("multiclass", torch.tensor([0.0, 1, 2]), r"targets must be class indices \(integers\) .* got torch.float32"),
        ("multiclass", torch.zeros(3, 3, dtype=torch.long), r"got torch.int64 of shape \(3, 3\)"),
        ("multiclass", torch.full((3, 3), 0.5), "target probabilities must add up to 1, got a sum of 1.5"),
        ("multiclass", torch.zeros(3, 2), r"or class probabilities \(floating\) of shape \(3, 3\)"),
        ("binary", torch.tensor([0, 1, 2]), "labels must be 0 or 1, got values from 0 to 2"),
        ("binary", torch.tensor([0, 1, float("nan")]), "labels must be 0 or 1, got values from nan"),
        ("binary", torch.zeros(3, 2), r"labels need shape \(3,\), got \(3, 2\)"),
        ("multilabel", torch.zeros(3), r"labels need shape \(3, 4\), got \(3,\)"),
        ("multilabel", torch.zeros(3, 5), r"labels need shape \(3, 4\), got \(3, 5\)"),
        ("multilabel", torch.full((3, 4), -1), "labels must be 0 or 1, got values from -1 to -1"),
    ],
)
def test_wrong_labels_are_refused_in_a_sentence(task, labels, message):
    net, x = model(task), torch.randn(3, 2)
    with pytest.raises(EvidentiaError, match=message):
        net.loss(net(x), labels)
    weights = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    with pytest.raises(EvidentiaError, match=message):
        net.fit(x, labels, progress=False)
    with pytest.raises(EvidentiaError, match=message):
        net.fit(x, torch.zeros(3, 4).long() if task == "multilabel" else torch.zeros(3).long(), validation=(x, labels))
    assert all(torch.equal(tensor, weights[name]) for name, tensor in net.state_dict().items())


def test_wrong_inputs_are_refused_in_a_sentence():
    x, y = samples("multiclass")
    net = model()
    for call, message in [
        (lambda: net.fit(x), "the training set has no labels"),
        (lambda: net.fit(x, y[:-1]), r"as many labels as inputs, got shapes \(90, 2\) and \(89,\)"),
        (lambda: net.fit(x[:0], y[:0]), "the training set is empty"),
        (lambda: net.fit(torch.tensor(1.0), y), "as many labels as inputs"),
        (lambda: net.fit(TensorDataset(x, y), y), "a Dataset brings its own labels; leave y out"),
        (lambda: net.fit(TensorDataset(x[:0], y[:0])), "the training set is empty"),
        (lambda: net.fit(TensorDataset(x)), "must give pairs of input and label, got tuple"),
        (lambda: net.predict(Endless()), "the Dataset must have a length"),
        (lambda: net.fit(x / 0, y), "inputs must be finite, got"),
        (lambda: net.fit({"a": 1}, y), "inputs must be a tensor, an array or a Dataset, of numbers, got dict"),
        (lambda: net.fit(x, np.array(["a", "b", "c"])[y]), "labels must be .* of numbers, got ndarray of <U1"),
        (lambda: net.fit(x, y, validation=x), "validation must be a pair of inputs and labels, .* got Tensor"),
        (lambda: net.fit(x, y, validation=(x, y[:5])), "the validation set needs as many labels as inputs"),
        (lambda: net.fit(x, y, validation=(x[:0], y[:0])), "the validation set is empty"),
        (lambda: net.fit(x, y, validation=(x * float("nan"), y)), "inputs must be finite, got NaN"),
        (lambda: net.predict(x[:0]), "there are no samples to predict"),
        (lambda: net.predict(TensorDataset(x[:0])), "there are no samples to predict"),
        (lambda: net.predict(torch.tensor(1.0)), "there are no samples to predict"),
        (lambda: net.predict(np.full((2, 2), np.inf)), "inputs must be finite, got infinite"),
        (lambda: net.predict(x, batch_size=0), "batch_size must be a whole number of at least 1, got 0"),
    ]:
        with pytest.raises(EvidentiaError, match=message):
            call()


def test_arrays_in_the_other_order_of_bytes_are_taken_as_any():
    x, y = samples("multiclass")
    foreign = x.double().numpy().astype(">f8")
    plain, swapped = model(), model()
    swapped.load_state_dict(plain.state_dict())
    plain.fit(x, y, epochs=1, progress=False)
    swapped.fit(foreign, y.numpy().astype(">i4"), epochs=1, progress=False)
    assert torch.equal(plain.predict(x).probs, swapped.predict(foreign).probs)


def test_outputs_that_are_no_numbers_are_refused_in_a_sentence():
    net = EvidentialClassifier(Returns(torch.full((3, 2), float("nan"))), 2, head=None)
    with pytest.raises(EvidentiaError, match="the network's outputs must be finite, got NaN"):
        net.predict(torch.zeros(3, 1))


def test_files_that_do_not_fit_are_refused_in_a_sentence(tmp_path):
    net, x = model(), torch.randn(3, 2)
    with pytest.raises(EvidentiaError, match="the head has no size yet; train the model or call it on a batch"):
        net.save(tmp_path / "model")
    net(x)
    net.save(tmp_path / "model")
    with pytest.raises(FileFormatError, match=r"does not fit this backbone and head: (.|\n)*size mismatch"):
        EvidentialClassifier.load(tmp_path / "model", nn.Sequential(nn.Linear(3, 16), nn.BatchNorm1d(16)))
    content = (tmp_path / "model").read_bytes()
    (tmp_path / "short").write_bytes(content[: len(content) // 2])
    with pytest.raises(FileFormatError, match="may be truncated"):
        EvidentialClassifier.load(tmp_path / "short", network())
    (tmp_path / "changed").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(FileFormatError, match="does not match its checksum"):
        EvidentialClassifier.load(tmp_path / "changed", network())
    net.predict(x).save(tmp_path / "prediction")
    with pytest.raises(FileFormatError, match="needed is 'evidential classifier', got 'prediction'"):
        EvidentialClassifier.load(tmp_path / "prediction", network())
    with pytest.raises(FileNotFoundError):
        EvidentialClassifier.load(tmp_path / "nowhere", network())


@pytest.mark.parametrize("half", [torch.float64, torch.bfloat16])
def test_the_head_follows_the_backbone(half, tmp_path):
    x, _ = samples("multiclass")
    given = EvidentialClassifier(network().to(half), 3)
    assert given.predict(x.to(half)).probs.dtype == half
    given.save(tmp_path / "m.safetensors")
    loaded = EvidentialClassifier.load(tmp_path / "m.safetensors", network().to(half))
    assert torch.equal(loaded.predict(x.to(half)).probs, given.predict(x.to(half)).probs)


def test_the_number_of_classes_may_be_a_number_of_numpy(tmp_path):
    made = EvidentialClassifier(network(), np.arange(3).max() + 1)
    made.predict(torch.zeros(1, 2))
    made.save(tmp_path / "m.safetensors")
    assert EvidentialClassifier.load(tmp_path / "m.safetensors", network()).num_classes == 3


def test_head_and_method_are_made_where_the_backbone_is():
    made = EvidentialClassifier(nn.Linear(2, 4, device="meta"), 3, method="daedl")
    assert {tensor.device.type for tensor in made.state_dict().values()} == {"meta"}


def test_a_loader_is_refused_in_a_sentence():
    loader = torch.utils.data.DataLoader(TensorDataset(*samples("multiclass")))
    for call in (model().fit, model().predict):
        with pytest.raises(EvidentiaError, match=r"loader\.dataset"):
            call(loader)


def test_masked_and_sparse_samples_are_refused():
    net = ev.EvidentialClassifier(nn.Linear(3, 4), 2)
    for x, message in [
        (np.ma.masked_greater(np.eye(3, dtype=np.float32), 0.5), "inputs has 3 of 9 entries masked"),
        (torch.eye(3).to_sparse(), "inputs must be a dense tensor, got one that is sparse"),
    ]:
        for call in (lambda x=x: net.fit(x, [0, 1, 0], epochs=1), lambda x=x: net.predict(x)):
            with pytest.raises(EvidentiaError, match=message):
                call()
