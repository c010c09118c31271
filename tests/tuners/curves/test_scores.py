"""Configuration and length chosen together, by scores of curves."""

import math

import pytest
import torch

import botorch_costly as bc
from botorch_costly import errors
from botorch_costly.tuners.curves.score_points import resampled
from botorch_costly.tuners.curves.trainings import Training
from tests.cases import quick
from tests.tuners.curves.playing import LENGTH, SPACE, made, play, reward

FEW = [{"lr": 10.0**-k, "width": w} for k in (1, 2, 3, 4) for w in (1, 3, 5, 7)]


def made_few(seed=0, **options):
    options = {"compression": bc.Compression(), "candidates": FEW, **options}
    return bc.CurveOptimizer(SPACE, LENGTH, seed=seed, **options)


def test_the_best_are_found_and_trained_longest():
    optimizer = made_few()
    play(optimizer, 14)
    ends = sorted((reward(config, LENGTH) for config in FEW), reverse=True)
    assert reward(optimizer.best(), LENGTH) >= ends[2]
    lengths = [t.done for t in optimizer.trainings]
    assert min(lengths) < max(lengths)


def test_the_whole_space_is_searched():
    optimizer = made(compression=bc.Compression(), search=bc.Search(num_restarts=2))
    asked = play(optimizer, 8)
    assert len({segment.config["lr"] for segment in asked}) > 3
    assert any("promises most" in segment.reason for segment in asked)


def exact(value):
    """Round to a multiple of a power of two, so that differences are exact."""
    return round(value * 2**20) / 2**20


def test_a_training_far_off_all_others_does_not_hide_them():
    """The kind: one finite curve that diverged sets the unit in which all others are alike."""
    seen = []
    for far in (-1e6, -1e300, None):
        optimizer = made_few()
        for config in FEW[:8]:
            segment = optimizer.enqueue(config, LENGTH)
            curve = [reward(config, at) for at in range(1, LENGTH + 1)]
            optimizer.tell(segment, curve)
        if far is not None:
            optimizer.tell(optimizer.enqueue(FEW[8], LENGTH), [far] * LENGTH)
        strategy = optimizer._strategy
        seen.append(strategy._chooser._model(strategy.trainings).curves)
    for curves in seen[:2]:
        assert torch.equal(curves[:8], seen[2])
        assert torch.equal(curves[8], torch.zeros(LENGTH, dtype=torch.float64))


# In single precision GPyTorch may have to raise a variance to its floor, and says so.
@pytest.mark.filterwarnings("ignore::linear_operator.utils.warnings.NumericalWarning")
@pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.InputDataWarning")
@pytest.mark.parametrize("dtype", quick([torch.float32, torch.float64], torch.float32))
def test_any_finite_reward_is_computed_with(dtype):
    optimizer = made_few(dtype=dtype)
    for number in range(5):
        segment = optimizer.ask()
        value = [-1e60, 1e308, -1e308, 0.0, 0.1][number]
        optimizer.tell(segment, [value] * segment.iterations, cost=1.0)
    assert optimizer.ask().reason


UNITS = {"zero": lambda v: exact(v) - 1024, "unit": lambda v: 8 * exact(v) - 1024}


@pytest.mark.parametrize("change", quick(UNITS, "unit"))
def test_zero_and_unit_of_rewards_do_not_count(change):
    """Negative rewards make no score fall as a training goes on."""
    ours, theirs = made_few(), made_few()
    a, b = play(ours, 9, change=UNITS[change]), play(theirs, 9, change=exact)
    assert [(s.training, s.until) for s in a] == [(s.training, s.until) for s in b]


@pytest.mark.parametrize("weighting", ["log", "average"])
def test_weights_may_be_given(weighting):
    optimizer = made_few(compression=bc.Compression(weighting, augments=False))
    play(optimizer, 10)
    share = optimizer.early_signal(0.5)
    assert share == pytest.approx(0.5) if weighting == "average" else share < 0.5


def test_as_published_every_training_begins_anew():
    optimizer = bc.CurveOptimizer.as_published(SPACE, LENGTH, candidates=FEW)
    asked = play(optimizer, 8)
    assert {segment.since for segment in asked} == {0}
    state = optimizer.state_dict()
    other = bc.CurveOptimizer.as_published(SPACE, LENGTH, candidates=FEW)
    other.load_state_dict(state)
    assert other.ask() == optimizer.ask()
    with pytest.raises(errors.StateMismatchError, match=r"option compression"):
        made_few(resumes=False).load_state_dict(state)


@pytest.mark.parametrize("softplus", quick([False, True], True))
def test_no_length_below_the_shortest_is_valued_or_drawn(softplus):
    """What cannot be asked for has no promise: its cost would be less than what is paid."""
    shortest = LENGTH * 3 // 8
    compression = bc.Compression(softplus=softplus)
    optimizer = made_few(compression=compression, shortest=shortest, resumes=False)
    play(optimizer, 6)
    chooser, trainings = optimizer._strategy._chooser, optimizer._strategy.trainings
    outlook = chooser._outlook(chooser._model(trainings), trainings)
    wanted = [shortest / LENGTH, *(share for share in (1 / 2, 3 / 4, 1.0))]
    assert list(outlook.shares) == wanted
    assert outlook.by_length(trainings.points).shape == (len(trainings.points), len(wanted))
    drawn = {made_few(shortest=shortest, seed=seed).ask().until / LENGTH for seed in range(30)}
    assert drawn == set(wanted)


def test_early_noise_is_seen_in_the_weights(generator):
    optimizer = made_few()
    for _ in range(12):
        segment = optimizer.ask()
        noise = torch.randn(LENGTH, generator=generator).tolist()
        end = reward(segment.config, LENGTH)
        curve = [
            end if at > LENGTH / 2 else 10 * noise[at - 1]
            for at in range(segment.since + 1, segment.until + 1)
        ]
        optimizer.tell(segment, curve, cost=float(segment.iterations))
    assert optimizer.early_signal(0.25) < 0.25


def training(curve, length, **more):
    point = torch.zeros(2, dtype=torch.float64)
    return Training(0, {}, point, length, tuple(curve), **more)


def test_curves_of_all_lengths_are_seen_at_equal_shares():
    nan = math.nan
    half = resampled(training([1.0, 2.0, 3.0], 6), 6, lowest=0.0)
    assert half.tolist()[:3] == [1.0, 2.0, 3.0]
    assert half[3:].isnan().all()
    short = resampled(training([1.0, 2.0], 2), 4, lowest=-1.0)
    assert short.tolist()[1:] == [2.0, 2.0, 3.0]
    assert short[0].isnan()
    long = resampled(training(range(12), 12), 4, lowest=0.0)
    assert long.tolist() == [2.0, 5.0, 8.0, 11.0]
    gaps = resampled(training([1.0, nan, 3.0, nan], 4), 4, lowest=0.0)
    assert gaps.tolist() == [1.0, 1.0, 3.0, 3.0]
    first = resampled(training([5.0], 100), 10, lowest=0.0)
    assert first[0] == 5.0
    broken = resampled(training([5.0, nan], 4, broken=True), 4, lowest=2.0)
    assert broken.tolist() == [3.0, 0.0, 0.0, 0.0]


def test_only_what_has_diverged_or_failed_leaves_no_belief():
    optimizer = made_few()
    for _ in range(5):
        segment = optimizer.ask()
        optimizer.tell(segment, [math.nan], cost=1.0)
    assert optimizer.early_signal(0.5) is None
    segment = optimizer.ask()
    optimizer.tell(segment, [1.0] * segment.iterations, cost=1.0)
    assert optimizer.ask().training != segment.training or segment.until < LENGTH


@pytest.mark.parametrize(
    "fields", [{"weighting": "square"}, {"augments": 1}, {"softplus": "no"}, {"weighting": None}]
)
def test_fields_out_of_range_are_named(fields):
    with pytest.raises(errors.InvalidArgumentError, match=r"Expected .*; Received "):
        bc.Compression(**fields)
    with pytest.raises(errors.InvalidArgumentError, match="a Compression or None"):
        made(compression="sigmoid")
