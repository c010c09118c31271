"""What is believed about the ends of trainings."""

import math
from dataclasses import replace

import pytest
import torch

from botorch_costly.tuners.curves.ends import Common
from botorch_costly.tuners.curves.lengths import Ladder
from botorch_costly.tuners.curves.ranks import RankBelief
from botorch_costly.tuners.curves.trainings import Training, Trainings
from tests.oracles import ends as oracle
from tests.tuners.curves.playing import SPACE, made, play

PACE = 30.0
LADDER = Ladder(1)
NO_CONFIG = torch.empty(0, 2, dtype=torch.float64)


def trainings_of(*begun):
    trainings = Trainings(SPACE.encode, lambda config: 16)
    for training in begun:
        trainings = trainings.with_one(training)
    return trainings


def training(number, x, curve, **more):
    config = {"lr": 10 ** (-4 + 3 * x), "width": 4}
    point = torch.tensor([x, 0.5 + 0.1 * number], dtype=torch.float64)
    more = {"paid": 1.0 + number, "iterations": len(curve), **more}
    return Training(number, config, point, 16, tuple(curve), **more)


BEGUN = (
    training(0, 0.1, [1.0, 2.0, 3.0, 3.5]),
    training(1, 0.4, [0.5, math.nan, 2.5]),
    training(2, 0.8, [0.1 * k for k in range(16)]),
    training(3, 0.9, [0.2, math.nan], broken=True),
)


def test_rewards_count_at_the_rungs_and_at_the_latest():
    rows = belief().rows(trainings_of(*BEGUN))
    found = sorted((*x[:1], round(math.exp(x[2] / PACE), 6)) for x in rows.inputs.tolist())
    expected = [(0.1, k / 16) for k in (1, 2, 4)] + [(0.4, k / 16) for k in (1, 3)]
    expected += [(0.8, k / 16) for k in (1, 2, 4, 8, 12, 16)] + [(0.9, 1 / 16), (0.9, 1.0)]
    assert found == sorted((x, round(s, 6)) for x, s in expected)


@pytest.mark.parametrize("change", [math.exp, lambda value: 3 * value - 7, lambda v: v**3])
def test_only_the_order_of_rewards_counts(change):
    other = [replace(t, curve=tuple(change(v) for v in t.curve)) for t in BEGUN]
    ours, theirs = (belief().rows(trainings_of(*b)) for b in (BEGUN, other))
    assert torch.equal(ours.targets, theirs.targets)
    assert ours.best == theirs.best


def belief():
    return RankBelief(NO_CONFIG, LADDER, torch.Generator().manual_seed(0))


def slow_rows():
    """Rows ``(point, share)`` and scores of ``BEGUN``, by hand."""
    among = [r for t in BEGUN for r in t.curve if not math.isnan(r)]
    lowest = min(among)
    marks = [(0, (1, 2, 4)), (1, (1, 3)), (2, (1, 2, 4, 8, 12, 16)), (3, (1,))]
    rows = [(BEGUN[i].point.tolist(), k / 16, BEGUN[i].curve[k - 1]) for i, at in marks for k in at]
    rows.append((BEGUN[3].point.tolist(), 1.0, lowest))
    among.append(lowest)
    scores = [oracle.normal_score(value, among) for _, _, value in rows]
    best = oracle.normal_score(3.5, among)
    return [row[:2] for row in rows], scores, best


def test_the_outlook_is_that_of_the_text():
    ranks, trainings = belief(), trainings_of(*BEGUN)
    outlook = ranks.outlook(trainings, Common.of(trainings, LADDER))
    values = [value.tolist() for value in ranks._values]
    rows, scores, best = slow_rows()
    points = [[0.3, 0.2], [0.1, 0.5], [0.7, 0.9]]
    left = [1.0, 0.75, 1.0]
    costs = [t.paid * 16 / len(t.curve) for t in BEGUN]
    whole = oracle.whole_costs([t.point.tolist() for t in BEGUN], costs, points)
    found = outlook.promise(torch.tensor(points).double(), torch.tensor(left).double())
    for i, point in enumerate(points):
        mean, variance = oracle.posterior(rows, scores, point, values, PACE)
        promise = oracle.expected_improvement(mean, variance, best)
        assert found[i].item() == pytest.approx(math.log(promise / (whole[i] * left[i])), abs=1e-5)


def test_what_is_pending_promises_less():
    trainings, point = trainings_of(*BEGUN), torch.tensor([[0.3, 0.2]], dtype=torch.float64)
    more = trainings.with_one(Training(4, {}, point[0], 16, until=16))
    before, after = (
        belief().outlook(t, Common.of(t, LADDER)).promise(point) for t in (trainings, more)
    )
    assert float(after) < float(before) - 1


def test_rows_are_bounded_and_the_latest_stay(monkeypatch):
    monkeypatch.setattr("botorch_costly.tuners.curves.ranks._MOST_ROWS", 5)
    rows = belief().rows(trainings_of(*BEGUN))
    assert sorted(math.exp(t / PACE) for t in rows.inputs[:, -1].tolist()) == pytest.approx(
        [0.25, 0.5, 0.75, 1.0, 1.0]
    )


def test_hyperparameters_are_fitted_as_rows_come_in():
    optimizer = made()
    play(optimizer, 12)
    belief = optimizer._strategy._chooser._ranks
    assert belief._fits >= 5
    fitted = belief._fitted_rows
    play(optimizer, 1)
    assert belief._fitted_rows >= fitted


@pytest.mark.parametrize(
    ("length", "rungs"), [(1, [1]), (3, [1, 2, 3]), (32, [2, 4, 8, 16, 24, 32])]
)
def test_rungs_are_shares_of_the_length(length, rungs):
    assert Ladder(1).rungs(length) == rungs
    assert Ladder(10).rungs(length) == sorted({min(max(rung, 10), length) for rung in rungs})
    assert Ladder(1).after(0, length) == rungs[0]
