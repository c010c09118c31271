"""Trainings that are begun, paused and continued as they promise."""

import copy
import itertools
import logging
import math
import random

import numpy as np
import pytest
import torch

import botorch_costly as bc
from botorch_costly import errors
from tests.cases import quick, slow
from tests.tuners.curves.playing import LENGTH, curve_of, made, play, reward, run_of
from tests.tuners.online.states import same


def test_every_segment_begins_where_the_one_before_ended():
    done = {}
    for segment in run_of(0)[1]:
        assert segment.since == done.get(segment.training, 0)
        assert segment.since < segment.until <= LENGTH
        done[segment.training] = segment.until
    assert LENGTH in done.values()
    assert len(done) > 3


def test_configurations_near_the_best_are_trained_longest():
    optimizer, _ = run_of(0)
    whole = [training.config for training in optimizer.trainings if training.is_whole]
    ends = [reward(config, LENGTH) for config in whole]
    assert max(ends) > -0.5
    assert optimizer.best() == dict(max(whole, key=lambda c: reward(c, LENGTH)))
    looks = [t for t in optimizer.trainings if t.done < LENGTH / 2]
    assert looks


@pytest.mark.parametrize("unit", quick([2.0**-30, 2.0**40, 2.0**1000], 2.0**1000))
def test_the_unit_of_rewards_does_not_count(unit):
    assert play(made(), 9, change=lambda value: unit * value) == run_of(0)[1][:9]


def test_smaller_may_be_better():
    ours, (theirs, asked) = made(maximize=False), run_of(0, 9)
    assert play(ours, 9, change=lambda value: -value) == asked
    assert ours.best() == theirs.best()
    assert f"best {-theirs.best_training.latest:.6g}" in ours.summary()


@pytest.mark.parametrize("unit", quick([2.0**-20, 2.0**20], 2.0**20))
def test_the_unit_of_costs_does_not_count(unit):
    ours, theirs = play(made(), 9, unit=unit), run_of(0)[1][:9]
    assert [s.training for s in ours] == [s.training for s in theirs]


# In single precision GPyTorch may have to raise a variance to its floor, and says so.
@pytest.mark.filterwarnings("ignore::linear_operator.utils.warnings.NumericalWarning")
@pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.InputDataWarning")
@pytest.mark.parametrize("compression", [None, bc.Compression()])
@pytest.mark.parametrize(
    ("dtype", "unit"),
    quick(
        itertools.product([torch.float32, torch.float64], [1e-310, 1e-50, 1e50, 1e305]),
        *((torch.float32, 1e-310), (torch.float32, 1e305), (torch.float64, 1e305)),
    ),
)
def test_any_cost_that_is_taken_is_computed_with(unit, dtype, compression):
    """The kind: a cost that a float holds, or the sum of such, is none where it is computed with."""
    optimizer = made(dtype=dtype, compression=compression)
    play(optimizer, 4, unit=unit)
    assert optimizer.ask().reason
    assert "paid" in optimizer.summary()


def test_segments_asked_for_before_any_is_told_are_of_different_trainings():
    optimizer = made()
    play(optimizer, 8)
    asked = [optimizer.ask() for _ in range(6)]
    assert len({segment.training for segment in asked}) == 6
    assert len({tuple(segment.config.values()) for segment in asked}) == 6
    for segment in reversed(asked):
        optimizer.tell(segment, curve_of(segment), cost=1.0)
    assert sum(t.until is not None for t in optimizer.trainings) == 0


def test_a_training_may_be_stopped_early_and_goes_on_from_there():
    space = bc.SearchSpace({"arm": bc.Choice(["only", "other"])})
    optimizer = bc.CurveOptimizer(space, 16, shortest=8)
    first = optimizer.ask()
    optimizer.tell(first, [0.1, 0.2, 0.3], cost=3.0)
    other = optimizer.ask()
    optimizer.tell(other, [-9.0] * 8, cost=8.0)
    on = optimizer.ask()
    assert (on.training, on.since, on.until) == (first.training, 3, 8)


def test_a_segment_that_is_taken_back_leaves_its_training_as_it_was():
    optimizer = made()
    first = optimizer.enqueue({"lr": 0.01, "width": 5}, 4)
    optimizer.tell(first, curve_of(first))
    longer = optimizer.enqueue(first.config, training=0)
    assert (longer.since, longer.until) == (4, LENGTH)
    assert not optimizer.trainings[0].may_go_on
    optimizer.cancel(longer)
    assert optimizer.trainings[0].may_go_on
    assert optimizer.trainings[0].done == 4
    optimizer.cancel(optimizer.enqueue({"lr": 0.1, "width": 5}))
    assert len(optimizer.trainings) == 1


def test_without_resuming_every_segment_begins_anew():
    optimizer = made(resumes=False)
    asked = play(optimizer, 20)
    assert {segment.since for segment in asked} == {0}
    assert len({segment.training for segment in asked}) < 20
    again = next(t for t in optimizer.trainings if t.iterations > t.done)
    assert again.done == len(again.curve)


def test_what_diverged_is_left_and_its_surroundings_are_avoided():
    optimizer = made()
    asked = []
    for _ in range(22):
        segment = optimizer.ask()
        asked.append(segment)
        bad = segment.config["lr"] > 1e-2
        curve = [math.nan] if bad else [1.0 + 0.01 * s for s in range(segment.iterations)]
        optimizer.tell(segment, curve, cost=1.0)
    broken = [t for t in optimizer.trainings if t.broken]
    assert all(sum(s.training == t.number for s in asked) == 1 for t in broken)
    assert sum(s.config["lr"] > 1e-2 for s in asked[11:]) <= 3


@pytest.mark.parametrize("seed", quick([0, 1, 4], 0))
def test_trainings_that_diverge_first_do_not_decide_the_search(seed):
    """The kind: rows that are all equal are learnt from, and what is new is asked for beside the old."""
    optimizer = bc.CurveOptimizer(bc.SearchSpace({"x": bc.Real(0, 1)}), 8, seed=seed)
    begun = []
    for _ in range(18):
        segment = optimizer.ask()
        x = segment.config["x"]
        begun += [x] if segment.since == 0 else []
        diverges = segment.training < 3
        shown = range(segment.since + 1, segment.until + 1)
        optimizer.tell(
            segment, [math.nan] if diverges else [1 - (x - 0.4) ** 2 - 0.5 / t for t in shown]
        )
    begun.sort()
    assert min(after - x for x, after in itertools.pairwise(begun)) > 1e-3
    assert abs(optimizer.best()["x"] - 0.4) < 0.3


def test_gaps_are_no_failure():
    optimizer = made()
    for _ in range(12):
        segment = optimizer.ask()
        curve = curve_of(segment)
        curve[:-1] = [math.nan] * (len(curve) - 1)
        told = optimizer.tell(segment, torch.tensor(curve), cost=1.0)
        assert not told.broken
        assert told.reward == pytest.approx(curve[-1], rel=1e-6)
    segment = optimizer.ask()
    told = optimizer.tell(segment, [math.nan] * segment.iterations, cost=1.0, broken=False)
    assert told.failed
    assert not optimizer.trainings[-1].broken


def test_a_value_that_was_not_measured_is_no_divergence():
    optimizer = made()
    segment = optimizer.ask()
    told = optimizer.tell(segment, [0.9, None][-segment.iterations :], cost=1.0)
    assert not told.broken
    assert told.curve[-1] is None
    segment = optimizer.ask()
    assert optimizer.tell(segment, [math.inf], cost=1.0).broken


def test_what_diverged_is_no_network_at_hand():
    optimizer = made()
    good = optimizer.ask()
    optimizer.tell(good, curve_of(good), cost=1.0)
    better = optimizer.ask()
    curve = [*(v + 9 for v in curve_of(better)[:-1]), math.nan]
    optimizer.tell(better, curve, cost=1.0)
    assert optimizer.best_training.number == good.training
    lost = made()
    lost.tell(lost.ask(), [0.5], cost=1.0, broken=True)
    assert lost.best_training is None
    assert lost.best() is None


def test_what_was_asked_for_and_not_told_is_pending_after_a_restart():
    optimizer = made()
    segments = [optimizer.ask() for _ in range(3)]
    optimizer.tell(segments[1], curve_of(segments[1]), cost=2.0)
    resumed = made()
    resumed.load_state_dict(optimizer.state_dict())
    assert resumed.pending == (segments[0], segments[2])
    assert "1 segments of 3 trainings" in resumed.summary()
    assert "2 under way" in resumed.summary()
    first, second, _ = resumed.history
    assert (first["cost"], first["curve"], first["broken"]) == (None, None, False)
    assert (second["cost"], second["curve"]) == (2.0, curve_of(segments[1]))


def test_constant_curves_are_no_failure():
    optimizer = made()
    for _ in range(12):
        segment = optimizer.ask()
        optimizer.tell(segment, [0.5] * segment.iterations, cost=1.0)
    assert optimizer.best_training.latest == 0.5


def test_a_finite_space_is_trained_to_its_end_and_no_further():
    space = bc.SearchSpace({"arm": bc.Choice(["a", "b", "c"])})
    optimizer = bc.CurveOptimizer(space, 4)
    for _ in range(3 * 4):  # of four rungs each
        segment = optimizer.ask()
        optimizer.tell(segment, list(range(segment.iterations)))
    before = copy.deepcopy(optimizer.state_dict())
    assert all(training.is_whole for training in optimizer.trainings)
    with pytest.raises(errors.HorizonExceededError, match="neither trained to its end nor in"):
        optimizer.ask()
    assert same(optimizer.state_dict(), before)


def test_all_may_be_in_training_or_diverged():
    space = bc.SearchSpace({"arm": bc.Choice(["a", "b"])})
    optimizer = bc.CurveOptimizer(space, 4)
    first, second = optimizer.ask(), optimizer.ask()
    with pytest.raises(errors.HorizonExceededError):
        optimizer.ask()
    optimizer.tell(first, [math.nan])
    with pytest.raises(errors.HorizonExceededError):
        optimizer.ask()
    optimizer.tell(second, [math.nan], broken=False)
    assert optimizer.ask().training == second.training
    assert optimizer.best() is None
    assert optimizer.early_signal(0.5) is None


def test_the_length_may_be_a_hyperparameter_or_that_of_a_candidate():
    space = bc.SearchSpace({"lr": bc.Real(0.0, 1.0), "epochs": bc.Integer(2, 9)})
    for _ in range(10):
        segment = bc.CurveOptimizer(space, "epochs", shortest=8, seed=_).ask()
        assert segment.until == min(8, segment.config["epochs"])
    candidates = [{"lr": 0.3, "epochs": 2}, {"lr": 0.7, "epochs": 9}]
    optimizer = bc.CurveOptimizer(space, candidates=candidates, lengths=[40, 160])
    asked = [optimizer.ask(), optimizer.ask()]
    assert {s.config["lr"]: s.until for s in asked} == {0.3: 3, 0.7: 10}


def test_whether_to_stop_is_asked_of_the_same_rule():
    found = set()
    for first in (1.0, -1e6):
        ours, theirs = made(), made()
        for optimizer in (ours, theirs):
            optimizer.load_state_dict(run_of(0, 15)[0].state_dict())
        segment, same_one = ours.ask(), theirs.ask()
        before, trainings = copy.deepcopy(ours.state_dict()), ours.trainings
        stops = ours.should_stop(segment, [first], cost=4.0)
        assert ours.should_stop(segment, [math.nan], cost=4.0)
        assert same(ours.state_dict(), before)
        assert ours.trainings == trainings
        theirs.tell(same_one, [first], cost=4.0)
        assert stops == (theirs.ask().training != same_one.training)
        found.add(stops)
    assert found == {True, False}


def _early_noise(segment, generator):
    """Values that say nothing until half of the training is done."""
    end = reward(segment.config, LENGTH)
    noise = torch.randn(LENGTH, generator=generator).tolist()
    return [
        end + 0.01 * noise[at - 1] if at > LENGTH / 2 else 10 * noise[at - 1]
        for at in range(segment.since + 1, segment.until + 1)
    ]


@pytest.mark.parametrize("seed", quick([0, 2], 0))
def test_it_says_whether_early_values_carry_a_signal(seed, generator):
    quiet, noisy = run_of(seed)[0], made(seed)
    for _ in range(25):
        segment = noisy.ask()
        noisy.tell(segment, _early_noise(segment, generator), cost=float(segment.iterations))
    assert quiet.early_signal(0.25) > 0.8
    assert noisy.early_signal(0.25) < 0.5
    assert noisy.early_signal(1.0) > noisy.early_signal(0.25)
    assert "correlate" in noisy.summary()


@pytest.mark.parametrize(
    "shape", [lambda k, noise: 0.9 - 0.004 * k, slow(lambda k, noise: 0.7 + 0.02 * noise)]
)
def test_accuracies_that_overfit_or_hardly_move_earn_no_warning(shape, caplog):
    optimizer, draws = made(), random.Random(0)
    with caplog.at_level(logging.WARNING):
        for _ in range(15):
            segment = optimizer.ask()
            curve = [shape(k, draws.gauss(0, 1)) for k in range(segment.since, segment.until)]
            optimizer.tell(segment, curve, cost=1.0)
    assert not any("grow worse" in record.message for record in caplog.records)


@pytest.mark.parametrize("seed", quick(range(6), 0, 1))
@pytest.mark.parametrize("maximize", [True, False])
def test_trainings_that_have_learnt_nothing_yet_earn_no_warning(maximize, seed, caplog):
    """Kind: noise about the first value, which falls in most of five short curves by chance."""
    optimizer, draws = made(seed, maximize=maximize), random.Random(seed)
    sign = 1 if maximize else -1
    for _ in range(25):
        segment = optimizer.ask()
        curve = [
            0.1 + sign * 0.05 * max(0, k - 15) + draws.gauss(0, 0.02)
            for k in range(segment.since, segment.until)
        ]
        optimizer.tell(segment, curve, cost=1.0)
    assert not any("grow worse" in text for text in caplog.messages)


@pytest.mark.parametrize("noise", [0.0, 0.05])
@pytest.mark.parametrize("maximize", [True, False])
def test_losses_as_rewards_and_accuracies_as_losses_are_warned_of(maximize, noise, caplog):
    optimizer, draws = made(maximize=maximize), random.Random(0)
    for _ in range(25):
        segment = optimizer.ask()
        losses = [2.3 * math.exp(-0.3 * k) for k in range(segment.since, segment.until)]
        curve = [loss if maximize else 1 - loss / 2.6 for loss in losses]
        curve = [value * (1 + draws.gauss(0, noise)) for value in curve]
        optimizer.tell(segment, curve, cost=1.0)
    assert sum("grow worse" in text for text in caplog.messages) == 1


def test_curves_that_fall_are_warned_of_once(caplog):
    optimizer = made()
    with caplog.at_level(logging.WARNING):
        for _ in range(15):
            segment = optimizer.ask()
            falling = [-value for value in curve_of(segment)]
            optimizer.tell(segment, falling, cost=1.0)
    assert [r.message for r in caplog.records if "maximize" in r.message] == [
        "Most curves grow worse, if larger is better: is maximize right?"
    ]


def test_an_interrupted_decision_changes_nothing(monkeypatch):
    optimizer, other = (copy.deepcopy(run_of(0)[0]) for _ in range(2))

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("botorch_costly.tuners.curves.ends.LogLinearCost", interrupted)
        with pytest.raises(KeyboardInterrupt):
            optimizer.ask()
    assert optimizer.ask() == other.ask()


def test_numbers_of_any_library_are_numbers():
    ours, theirs = made(), made()
    for convert in (np.array, torch.tensor, tuple, lambda c: [np.float32(v) for v in c]):
        a, b = ours.ask(), theirs.ask()
        exact = np.float32(curve_of(a)).astype(float).tolist()
        ours.tell(a, convert(exact), cost=1.0)
        theirs.tell(b, exact, cost=1.0)
    assert ours.ask() == theirs.ask()
