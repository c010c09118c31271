"""What is believed about the values of trainings."""

import math
from dataclasses import replace
from functools import partial

import pytest
import torch

from botorch_costly.models.growth import thinned
from botorch_costly.tuners.curves.ends import Common
from botorch_costly.tuners.curves.growth import GrowthBelief
from botorch_costly.tuners.curves.lengths import Ladder
from botorch_costly.tuners.curves.standstill import Movement
from botorch_costly.tuners.curves.trainings import Training
from botorch_costly.tuners.earlier.studies import EarlierStudies
from botorch_costly.tuners.earlier.unit import Unit
from tests.oracles import ends, growth as oracle
from tests.tuners.curves.playing import SPACE, made, play
from tests.tuners.curves.test_ranks import BEGUN, NO_CONFIG, training, trainings_of

LADDER = Ladder(1)
TKWARGS = {"dtype": torch.float64, "device": torch.device("cpu")}
NO_TASKS = EarlierStudies(SPACE, [], 1.0, fill=None, tkwargs=TKWARGS)
FIRSTS = [1.0, 0.5, 0.0, 0.2]  # of BEGUN; the first value of training 2 is 0
# Shares and values of BEGUN, most advanced first: rungs, the latest, and the end of what diverged.
MARKS = [
    (2, (16, 12, 8, 4, 2, 1)),
    (0, (4, 2, 1)),
    (1, (3, 1)),
    (3, (1,)),
]


def rows_of_begun():
    rows = [(BEGUN[i].point.tolist(), k / 16, BEGUN[i].curve[k - 1]) for i, at in MARKS for k in at]
    rows.append((BEGUN[3].point.tolist(), 1.0, 0.0))
    values = [value for *_, value in rows]
    unit = oracle.in_units(values, FIRSTS)
    return [(*row[:2], ()) for row in rows], [unit(value) for value in values], unit


def belief_of(trainings):
    belief = GrowthBelief(NO_CONFIG, LADDER, NO_TASKS)
    return belief, belief.outlook(trainings, Common.of(trainings, LADDER))


def test_rows_and_units_are_those_of_the_text():
    rows = GrowthBelief(NO_CONFIG, LADDER, NO_TASKS).rows(trainings_of(*BEGUN), {})
    found = zip(
        rows.marks.x.tolist(), rows.marks.share.tolist(), rows.targets.tolist(), strict=True
    )
    slow, values, unit = rows_of_begun()
    expected = sorted(
        (*point, share, value) for (point, share, _), value in zip(slow, values, strict=True)
    )
    for ours, theirs in zip(sorted((*x, s, y) for x, s, y in found), expected, strict=True):
        assert ours == pytest.approx(theirs)
    assert rows.best == pytest.approx(unit(3.5))


def test_the_outlook_is_that_of_the_text():
    trainings = trainings_of(*BEGUN)
    belief, outlook = belief_of(trainings)
    theta = belief.state_dict()["theta"].tolist()
    rows, values, unit = rows_of_begun()
    points, left = [[0.3, 0.2], [0.1, 0.5], [0.7, 0.9]], [1.0, 0.75, 1.0]
    costs = [t.paid * 16 / len(t.curve) for t in BEGUN]
    whole = ends.whole_costs([t.point.tolist() for t in BEGUN], costs, points)
    found = outlook.promise(torch.tensor(points, dtype=torch.float64), torch.tensor(left).double())
    for i, point in enumerate(points):
        promise = oracle.improvement(rows, values, point, unit(3.5), theta)
        assert float(found[i]) == pytest.approx(math.log(promise / (whole[i] * left[i])), abs=1e-4)


@pytest.mark.parametrize(("scale", "shift"), [(3.0, 0.0), (1e-200, 0.0), (1e300, 0.0), (1.0, -5.0)])
def test_neither_the_unit_nor_the_origin_of_rewards_counts(scale, shift):
    firsts, values = torch.tensor(FIRSTS).double(), torch.randn(9, dtype=torch.float64)
    ours = Unit.of(firsts, values)(values)
    theirs = Unit.of(firsts * scale + shift, values * scale + shift)(values * scale + shift)
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("wild", [-1e3, -1e12, -1e308])
def test_a_wild_loss_does_not_set_the_unit(wild):
    firsts, values = torch.tensor([0.1, 0.2, 0.3]).double(), torch.tensor([0.3, 0.6, 0.9]).double()
    with_loss = Unit.of(firsts, torch.cat([values, values.new_tensor([wild])]))
    best = values.new_tensor([0.9])
    assert float(with_loss(best)) > 0.8
    assert float(with_loss(values.new_tensor([wild]))) == pytest.approx(
        -float(with_loss(best)), rel=1e-6
    )


def test_equal_rewards_have_a_unit():
    same = torch.full((3,), 0.1).double()
    assert Unit.of(same, same)(same).tolist() == [0.0, 0.0, 0.0]
    assert Unit.of(0 * same, 0 * same)(0 * same).tolist() == [0.0, 0.0, 0.0]


def test_what_is_pending_promises_less():
    trainings, point = trainings_of(*BEGUN), torch.tensor([[0.3, 0.2]], dtype=torch.float64)
    pending = Training(4, {}, point[0], 16, until=16)
    before, after = (
        belief_of(t)[1].promise(point) for t in (trainings, trainings.with_one(pending))
    )
    assert float(after) < float(before) - 1


def test_what_stands_still_promises_less_and_counts_as_final():
    still = [training(k, 0.1 * k, [0.5] * 8) for k in range(3)]
    moving = training(3, 0.6, [0.1, 0.3, 0.4, 0.45])
    belief, outlook = belief_of(trainings_of(*still, moving))
    rows = belief.rows(trainings_of(*still, moving), {0: Movement(0.1, 0.3), 1: Movement(0.4, 0.7)})
    shares = {tuple(x): [] for x in rows.marks.x.tolist()}
    for x, share in zip(rows.marks.x.tolist(), rows.marks.share.tolist(), strict=True):
        shares[tuple(x)].append(share)
    assert [shares[tuple(t.point.tolist())] for t in still[:2]] == [[1.0], [0.5]]
    promises = outlook.promises([*still, moving], resumes=True)
    assert promises[3] > max(promises[:3])


def test_chances_are_small_for_what_stands_still():
    still = [training(k, 0.1 * k, [0.5] * 8) for k in range(3)]
    rising = training(3, 0.6, [0.1, 0.2, 0.3, 0.45])
    _, outlook = belief_of(trainings_of(*still, rising))
    soon = 1 / 8  # none of the six segments that followed moved
    assert outlook.chance(still[0], 12) <= soon
    assert outlook.exceeds(still[0], 12) > soon


def test_rows_are_bounded_and_the_most_advanced_and_the_last_stay(monkeypatch):
    monkeypatch.setattr("botorch_costly.tuners.curves.growth._MOST_ROWS", 5)
    rows = GrowthBelief(NO_CONFIG, LADDER, NO_TASKS).rows(trainings_of(*BEGUN), {})
    assert rows.marks.share.tolist() == [1.0, 1.0, 0.75, 0.25, 0.1875]


def test_a_fit_reads_a_bounded_number_of_rows(monkeypatch):
    few = partial(thinned, most=5)
    monkeypatch.setattr("botorch_costly.tuners.curves.growth.thinned", few)
    read = []

    def fit(marks, y, theta):
        read.append(len(y))
        return theta

    monkeypatch.setattr("botorch_costly.tuners.curves.growth.fit_growth", fit)
    belief_of(trainings_of(*BEGUN))
    assert read == [5]


def test_parameters_are_fitted_as_rows_come_in():
    optimizer = made()
    play(optimizer, 12)
    belief = optimizer._strategy._chooser._growth
    fitted = belief.state_dict()["fitted_rows"]
    assert fitted > 5
    play(optimizer, 3)
    assert belief.state_dict()["fitted_rows"] >= fitted


def test_a_state_continues():
    trainings = trainings_of(*BEGUN)
    (belief, outlook), other = belief_of(trainings), GrowthBelief(NO_CONFIG, LADDER, NO_TASKS)
    other.load_state_dict(belief.state_dict())
    point = torch.tensor([[0.3, 0.2]], dtype=torch.float64)
    assert torch.equal(
        other.outlook(trainings, Common.of(trainings, LADDER)).promise(point),
        outlook.promise(point),
    )


def test_any_lengths_go_together():
    other = replace(BEGUN[0], number=7, length=4)
    rows = GrowthBelief(NO_CONFIG, LADDER, NO_TASKS).rows(trainings_of(*BEGUN, other), {})
    assert sorted(rows.marks.share.tolist())[-3:] == [1.0, 1.0, 1.0]


def test_a_pending_segment_does_not_change_what_is_foretold():
    trainings = trainings_of(*BEGUN)
    pending = Training(4, {}, torch.tensor([0.3, 0.2], dtype=torch.float64), 16, until=16)
    _, alone = belief_of(trainings)
    _, beside = belief_of(trainings.with_one(pending))
    assert beside.chance(BEGUN[1], 4) == pytest.approx(alone.chance(BEGUN[1], 4), abs=0.05)


def test_the_last_row_of_every_training_stays(monkeypatch):
    monkeypatch.setattr("botorch_costly.tuners.curves.growth._MOST_ROWS", 8)
    begun = [training(k, 0.05 * k, [0.1 * j + k for j in range(8)]) for k in range(8)]
    short = training(8, 0.9, [-10.0])
    rows = GrowthBelief(NO_CONFIG, LADDER, NO_TASKS).rows(trainings_of(*begun, short), {})
    assert len(rows.targets) == 9
    assert rows.number == 8 * 4 + 1
    assert rows.marks.share.tolist()[-1] == 1 / 16


def test_refits_go_on_when_rows_are_left_out(monkeypatch):
    monkeypatch.setattr("botorch_costly.tuners.curves.growth._MOST_ROWS", 4)
    belief, fits = GrowthBelief(NO_CONFIG, LADDER, NO_TASKS), []
    for length in (4, 8, 16):
        grown = [training(k, 0.2 * k, [0.1 * j + k for j in range(length)]) for k in range(3)]
        trainings = trainings_of(*grown)
        belief.outlook(trainings, Common.of(trainings, LADDER))
        fits.append(belief.state_dict()["fitted_rows"])
    assert fits == sorted(set(fits))


def test_the_best_of_few_that_learn_are_distinguished():
    firsts, ends = torch.zeros(100).double(), torch.tensor([0.0] * 95 + [0.2, 0.4, 0.6, 0.8, 1.0])
    found = Unit.of(firsts, ends.double())(ends.double())
    assert len(set(found.tolist())) == 6
    assert found.tolist() == sorted(found.tolist())
    assert float(found.max()) < 6


def test_a_ceiling_where_trainings_begin_does_not_hide_the_worse():
    values = torch.tensor([1.0] * 6 + [0.0, 0.3, 0.6, 0.9], dtype=torch.float64)
    found = Unit.of(values, values)(values)
    assert float(found[:6].abs().max()) == 0
    assert bool((found[6:] < 0).all())
    assert len(set(found[7:].tolist())) == 3


def test_what_diverged_ended_at_the_lowest_value_even_if_it_stood_still():
    still = [training(k, 0.1 * k, [0.5] * 16) for k in range(4)]
    broken = training(4, 0.6, [0.9] * 4, broken=True)
    rows = GrowthBelief(NO_CONFIG, LADDER, NO_TASKS).rows(
        trainings_of(*still, broken), {4: Movement(0.1, 0.2)}
    )
    mine = [
        (share, y)
        for x, share, y in zip(*(v.tolist() for v in (*rows.marks[:2], rows.targets)), strict=True)
        if x == broken.point.tolist() and share == 1.0
    ]
    assert len(mine) == 1
    assert mine[0][1] == min(rows.targets.tolist())
