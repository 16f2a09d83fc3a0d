"""The reliability diagram: bars, gaps and counts are the data that the evaluation gives."""

from __future__ import annotations

import pytest
import torch

from evidentia import EvidentiaError
from evidentia.evaluation import ece, reliability
from evidentia.reports import plot_reliability


@pytest.fixture
def case():
    logits = torch.randn(500, 4) * 2
    return logits.softmax(-1), torch.distributions.Categorical(logits=logits * 0.5).sample()


def test_bars_are_the_accuracy_and_end_with_the_gap_at_the_confidence(case):
    diagram = reliability(*case, bins=10)
    filled = diagram.count > 0
    ax = plot_reliability(*case, bins=10)
    accuracy, gap = ax.containers
    assert [bar.get_height() for bar in accuracy] == pytest.approx(diagram.accuracy[filled].tolist())
    assert [bar.get_x() for bar in accuracy] == pytest.approx(diagram.edges[:-1][filled].tolist())
    assert [bar.get_y() + bar.get_height() for bar in gap] == pytest.approx(diagram.confidence[filled].tolist())


def test_the_histogram_counts_every_sample(case):
    (below,) = plot_reliability(*case, bins=10).child_axes
    (bars,) = below.containers
    assert [bar.get_height() for bar in bars] == reliability(*case, bins=10).count.tolist()
    assert sum(bar.get_height() for bar in bars) == 500


def test_the_title_gives_the_error(case):
    error = f"ECE {float(ece(*case)):.3f}"
    assert plot_reliability(*case).get_title() == error
    assert plot_reliability(*case, title="test set").get_title() == f"test set: {error}"


def test_binary_and_multilabel_problems_work_too():
    probs = torch.rand(200)
    labels = (torch.rand(200) < probs).long()
    for shape in ((200,), (50, 4)):
        ax = plot_reliability(probs.reshape(shape), labels.reshape(shape), bins=5)
        assert len(ax.containers[0]) == 5


def test_bad_input_is_refused_as_the_evaluation_refuses_it():
    with pytest.raises(EvidentiaError, match="softmax or sigmoid"):
        plot_reliability([3.0, -1.0], [1, 0])
    with pytest.raises(EvidentiaError, match="bins must be a whole number of at least 1"):
        plot_reliability([0.3, 0.4], [1, 0], bins=0)
