"""The lead of a run over its start: which state came from which, and what few rounds of it can tell."""

import math

import pytest

from botorch_costly.records import TwinDecision
from botorch_costly.tuners.twins.lead import Lineages, lead_of, lineages


def least(start, run, rounds, given_back, **options):
    return lead_of(Lineages(start, run, **options), rounds, given_back).least


def decided(round, lr, **moves):
    return TwinDecision(round, {"lr": lr}, query=True, reason="a test", **moves)


def test_levels_belong_to_the_states_that_they_were_measured_in():
    decisions = [
        decided(0, 0.1),
        decided(1, 0.1, keep=1),  # after one round
        decided(2, 0.2, keep=2, restore=1),
        decided(3, 0.2),
        decided(4, 0.1, restore=2),  # the start goes on
        decided(5, 0.1, keep=3),
    ]
    levels = dict(enumerate([0.0, 1.0, 2.0, math.nan, 1.5, -math.inf]))
    found = lineages(decisions, levels, None)
    assert found.start == [(1, 0.0), (2, 1.0), (3, 1.5), (4, -math.inf)]
    assert (found.shared, lineages(decisions[:4], levels, None).shared) == (4, 1)
    assert found.run == [(1, 0.0), (2, 1.0), (3, 1.5)]
    assert lineages(decisions, levels, 3).run == [(1, 0.0), (2, 1.0), (3, 1.5)]
    other = lineages([*decisions[:4]], levels, None)
    assert other.run == [(1, 0.0), (2, 2.0)]
    assert other.start == [(1, 0.0), (2, 1.0)]


def test_a_run_is_ahead_of_a_slower_start_by_the_rounds_that_it_would_need():
    run = [(n, 0.3 * math.log(n)) for n in (1, 2, 4, 8, 16, 32, 64)]
    start = [(3, 0.3 * math.log(1.5)), (6, 0.3 * math.log(3))]
    faster = 0.3 * math.log(2)
    assert least(start, run, 64, 0) == pytest.approx(faster, rel=1e-12)
    assert least(start, run, 128, 64) == pytest.approx(0.0, abs=1e-12)
    assert least(run[:3], run, 128, 64) == pytest.approx(-faster, rel=1e-12)
    failed = least([(3, -math.inf)], run, 64, 0)
    assert failed == pytest.approx(0.3 * math.log(10), rel=1e-12)  # more cannot be told
    assert least([], run, 64, 0) == 0.0
    level = [*run[:3], (8, 0.9), (16, 0.9), (64, 0.9)]
    assert math.isnan(least(start, level, 64, 0))  # the start may have come as far


def test_the_most_is_the_distance_to_the_last_level_of_the_start():
    run = [(n, 0.3 * math.log(n)) for n in (1, 2, 4, 8, 16, 32, 64)]
    assert lead_of(Lineages([(3, -1.0)], run), 64, 0).most == pytest.approx(run[-1][1] + 1.0)
    assert lead_of(Lineages([(3, -math.inf)], run), 64, 0).most == math.inf
    behind = lead_of(Lineages([(6, 9.0)], run), 64, 0)  # it reached more than the run
    assert behind.least == behind.most == pytest.approx(run[-1][1] - 9.0)
    ends = lead_of(Lineages(run[:3], run, shared=64), 128, 64)
    assert ends.least == ends.most < 0  # the run is the start itself


def test_the_lead_is_what_was_learnt_since_then_although_learning_slows_down():
    run = [(n, 1 - 1 / n) for n in (1, 2, 4, 8, 16, 32, 64)]
    assert least([(8, run[1][1])], run, 64, 0) == pytest.approx(1 / 16 - 1 / 64, rel=1e-12)
    # Half as fast as before round 6.
    before = least([(3, 0.75 - 1e-12)], [(6, 0.75), *run[3:]], 64, 0)
    assert before == 0.0


def test_noise_before_the_run_left_the_start_is_no_speed():
    shared = [(2, 0.0), (4, 0.9), (8, 0.5)]
    run = [*shared, (16, 1.0), (32, 1.5)]
    assert least(shared, run, 32, 0, shared=8) == 0.0
    later = least([*shared, (12, 0.4)], run, 32, 0, shared=8)
    assert later == pytest.approx(0.5 * math.log(1.5) / math.log(2), rel=1e-12)
