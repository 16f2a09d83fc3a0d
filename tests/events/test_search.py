"""The search behind calibration does as well as trying every choice."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evidentia.events.search import Candidates, choose

counts = st.integers(0, 6)


@given(st.lists(st.tuples(counts, counts, counts, counts), min_size=2, max_size=5), st.integers(0, 12))
def test_the_search_meets_a_budget_whenever_some_choice_does(rows, budget):
    tp, fp = (torch.tensor([[row[i], row[i + 2]] for row in rows]) for i in (0, 1))
    fn = 6 - tp
    zero = torch.zeros(tp.shape, dtype=torch.float64)
    candidates = Candidates(tp, fp, fn, zero, zero, minutes=1.0, per_class=True)
    choice, met = choose(candidates, {"false_alarms_per_minute": float(budget)})
    f1, most = candidates.f1, -1.0
    for pair in itertools.product(range(len(rows)), repeat=2):
        picked = torch.tensor(pair)
        if candidates.at(picked, fp) <= budget:
            most = max(most, candidates.at(picked, f1))
    assert met == (most >= 0)
    if met:
        assert candidates.at(choice, fp) <= budget
        assert candidates.at(choice, f1) <= most + 1e-9
    free, _ = choose(candidates, {})
    assert candidates.at(free, f1) == pytest.approx(float(f1.amax(0).sum()))


@given(
    st.lists(st.tuples(*[counts] * 6), min_size=2, max_size=5),
    st.integers(0, 12),
    st.sampled_from([0.25, 0.5, 1.0, 2.0]),
    st.booleans(),
)
def test_the_search_keeps_to_both_of_two_limits(rows, budget, limit, per_class):
    rows = [*rows, (0,) * 6]  # what is never called
    tp, fp, delays = (torch.tensor([[row[i], row[i + 3]] for row in rows]) for i in (0, 1, 2))
    delays = delays.double() * (tp > 0)
    candidates = Candidates(tp, fp, 6 - tp, delays, 0.0 * delays, minutes=1.0, per_class=per_class)
    choice, met = choose(candidates, {"false_alarms_per_minute": float(budget), "delay": limit})

    def kept(picked):
        hits = candidates.at(picked, tp)
        return candidates.at(picked, fp) <= budget and hits > 0 and candidates.at(picked, delays) <= limit * hits

    assert kept(choice) == met
    # Alarms are kept to whatever becomes of the delay.
    assert candidates.at(choice, fp) <= budget
    if per_class:
        possible = map(torch.tensor, itertools.product(range(len(rows)), repeat=2))
        best = max((candidates.at(picked, candidates.f1) for picked in possible if kept(picked)), default=None)
        assert best is not None or not met
        assert not met or candidates.at(choice, candidates.f1) <= best + 1e-9
    else:
        shared = [torch.tensor([n, n]) for n in range(len(rows)) if kept(torch.tensor([n, n]))]
        assert met == bool(shared)
        if met:
            assert candidates.macro_f1_at(choice) == pytest.approx(max(map(candidates.macro_f1_at, shared)))


def test_among_equals_that_of_fewest_alarms_is_shared():
    tp, fp, streamed = torch.tensor([[6], [6], [6]]), torch.tensor([[0], [0], [0]]), torch.tensor([[2], [1], [3]])
    zero = torch.zeros(tp.shape, dtype=torch.float64)
    candidates = Candidates(tp, fp, 6 - tp, zero, zero, minutes=1.0, per_class=False, false_alarms=streamed)
    assert choose(candidates, {"false_alarms_per_minute": 4.0}) == (torch.tensor([1]), True)


def test_what_is_left_of_a_budget_is_spent():
    # No multiplier makes the second candidate the best: it lies below the line between the others.
    tp, fp = torch.tensor([[0], [1], [6]]), torch.tensor([[0], [2], [5]])
    zero = torch.zeros(tp.shape, dtype=torch.float64)
    candidates = Candidates(tp, fp, 6 - tp, zero, zero, minutes=1.0, per_class=True)
    assert [int(choose(candidates, {"false_alarms_per_minute": most})[0]) for most in (0.0, 3.0, 5.0)] == [0, 1, 2]
    slow = Candidates(tp, fp, 6 - tp, fp.double(), zero, minutes=1.0, per_class=True)
    assert int(choose(slow, {"macro_f1": 0.2})[0]) == 1


@pytest.mark.parametrize("per_class", [True, False])
def test_a_delay_out_of_reach_is_come_near_by_the_mean_and_not_by_fewer_hits(per_class):
    # One late hit is less in excess of the target than ten that are sooner.
    tp, fp = torch.tensor([[10], [1], [0]]), torch.tensor([[0], [0], [0]])
    delays = torch.tensor([[2.0], [0.4], [0.0]], dtype=torch.float64)
    candidates = Candidates(tp, fp, 10 - tp, delays, torch.zeros_like(delays), minutes=1.0, per_class=per_class)
    choice, met = choose(candidates, {"delay": 0.1})
    assert (int(choice), met) == (0, False)


@pytest.mark.parametrize("per_class", [True, False])
def test_limits_that_cannot_be_had_together_leave_no_detector_that_hardly_calls(per_class):
    """One lucky hit is the soonest within the alarms, and nine others are missed."""
    tp, fp = torch.tensor([[10], [8], [1], [0]]), torch.tensor([[9], [2], [0], [0]])
    delays = torch.tensor([[1.0], [4.0], [0.3], [0.0]], dtype=torch.float64)
    missed = (10 - tp).double()
    candidates = Candidates(tp, fp, 10 - tp, delays, missed, minutes=1.0, per_class=per_class)
    both = {"delay": 0.2, "false_alarms_per_minute": 3.0}
    assert [int(choose(candidates, {name: value})[0]) for name, value in both.items()] == [0, 1]
    choice, met = choose(candidates, both)
    assert (int(choice), met) == (1, False)
