"""The torchmetrics classes: batches add up to the function on everything, in one process or several."""

from __future__ import annotations

import pickle

import pytest
import torch
from torchmetrics import MetricCollection
from torchmetrics.utilities import dim_zero_cat

from evidentia import EvidentiaError
from evidentia.evaluation import (
    AUPR,
    AURC,
    AUROC,
    ECE,
    NLL,
    Brier,
    DetectionScores,
    FPRAt,
    aupr,
    aurc,
    auroc,
    brier,
    detection_scores,
    ece,
    fpr_at,
    nll,
)


def ranked(size=90):
    labels = torch.arange(size) % 3 == 0
    return torch.randint(0, 40, (size,)) * 10.0 + 20 * labels, labels


def probabilities(size=90):
    return torch.randn(size, 5).softmax(-1), torch.randint(5, (size,))


CASES = [
    pytest.param(AUROC, {}, auroc, ranked, id="AUROC"),
    pytest.param(AUPR, {}, aupr, ranked, id="AUPR"),
    pytest.param(AUPR, {"positive": 0}, aupr, ranked, id="AUPR-negative"),
    pytest.param(FPRAt, {}, fpr_at, ranked, id="FPRAt-95"),
    pytest.param(FPRAt, {"tpr": 0.5}, fpr_at, ranked, id="FPRAt-50"),
    pytest.param(DetectionScores, {}, detection_scores, ranked, id="DetectionScores"),
    pytest.param(AURC, {}, aurc, ranked, id="AURC"),
    pytest.param(ECE, {"bins": 7}, ece, probabilities, id="ECE"),
    pytest.param(Brier, {}, brier, probabilities, id="Brier"),
    pytest.param(NLL, {}, nll, probabilities, id="NLL"),
]
every_metric = pytest.mark.parametrize(("metric", "options", "function", "data"), CASES)


def fed(metric, batches):
    for batch in batches:
        metric.update(*batch)
    return metric


def split(data, *sizes):
    return list(zip(*(part.split(sizes) for part in data), strict=True))


@every_metric
def test_batches_add_up_to_the_whole(metric, options, function, data):
    whole = data()
    # The first batch holds one sample, hence one kind of label: only all of them together need both.
    computed = fed(metric(**options), split(whole, 1, 9, 80)).compute()
    torch.testing.assert_close(computed, function(*whole, **options), rtol=1e-12, atol=0)


@every_metric
def test_forward_gives_the_batch_and_keeps_the_whole(metric, options, function, data):
    whole = data()
    running = metric(**options)
    for batch in split(whole, 30, 60):
        torch.testing.assert_close(running(*batch), function(*batch, **options), rtol=1e-12, atol=0)
    torch.testing.assert_close(running.compute(), function(*whole, **options), rtol=1e-12, atol=0)


@every_metric
def test_processes_of_unequal_load_agree(metric, options, function, data):
    whole = data()
    here, there = split(whole, 70, 20)
    peer = fed(metric(**options), [there])
    peer_states = iter(
        [dim_zero_cat(state) if isinstance(state, list) else state for state in peer.metric_state.values()]
    )
    local = metric(
        **options,
        distributed_available_fn=lambda: True,
        dist_sync_fn=lambda tensor, group: [tensor, next(peer_states)],
    )
    computed = fed(local, split(here, 50, 20)).compute()
    torch.testing.assert_close(computed, function(*whole, **options), rtol=1e-12, atol=0)


@every_metric
def test_reset_forgets_and_pickle_remembers(metric, options, function, data):
    first, second = data(), data()
    running = fed(metric(**options), [first])
    running.reset()
    running.update(*second)
    copy = pickle.loads(pickle.dumps(running))
    torch.testing.assert_close(copy.compute(), function(*second, **options), rtol=1e-12, atol=0)


@every_metric
def test_computing_without_samples_is_refused(metric, options, function, data):
    with (
        pytest.warns(UserWarning, match="before the ``update`` method"),
        pytest.raises(EvidentiaError, match="has seen no samples; call update before compute"),
    ):
        metric(**options).compute()


@pytest.mark.parametrize(
    ("metric", "better"),
    [(AUROC, True), (AUPR, True), (FPRAt, False), (AURC, False), (ECE, False), (Brier, False), (NLL, False)],
)
def test_each_says_which_way_is_better(metric, better):
    assert metric.higher_is_better is better


def test_bad_batches_are_refused_when_they_come():
    with pytest.raises(EvidentiaError, match="scores must not be NaN"):
        AUROC().update([float("nan")], [1])
    with pytest.raises(EvidentiaError, match="errors must be finite"):
        AURC().update([0.5], [float("inf")])
    with pytest.raises(EvidentiaError, match="must add up to 1"):
        Brier().update([[0.5, 0.1]], [1])
    with pytest.raises(EvidentiaError, match="bins must be a whole number of at least 1, got 0"):
        ECE(bins=0)


def test_they_work_in_a_collection():
    scores, labels = ranked()
    collection = MetricCollection({"roc": AUROC(), "pr": AUPR(), "fpr": FPRAt()})
    for batch in split((scores, labels), 45, 45):
        collection.update(*batch)
    expected = {"roc": auroc(scores, labels), "pr": aupr(scores, labels), "fpr": fpr_at(scores, labels)}
    assert collection.compute() == expected


@pytest.mark.parametrize("build", [lambda: AUPR(positive=2), lambda: FPRAt(tpr=95), lambda: FPRAt(tpr="0.95")])
def test_bad_settings_are_refused_before_any_batch(build):
    with pytest.raises(EvidentiaError, match="must be"):
        build()
