"""Gains from a part of the validation set, and their variance."""

import itertools
import json
import math
from dataclasses import replace
from statistics import fmean, variance

import numpy as np
import pytest
import torch

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError, InvalidShapeError, StateMismatchError
from botorch_costly.rewards import BeforeAfterReward, GainReward, GuardedReward
from botorch_costly.rewards.sample import Sample
from tests.cases import slow
from tests.oracles import gains as oracle

nan = math.nan
X = [0.3, 1.1, 0.7, 2.0, 0.4, 1.6, 0.9]
Y = [0.5 + 0.8 * x for x in X]


def part(values, examples, population=None):
    examples = list(examples)
    population = len(values) if population is None else population
    return Sample.from_values([values[i] for i in examples], population, examples)


def checkpoints(population=2000, seed=0):
    """Losses of all examples at two checkpoints, of which the second is better; they are alike."""
    generator = torch.Generator().manual_seed(seed)
    hard = torch.randn(population, generator=generator, dtype=torch.float64).exp()
    better = 0.8 * hard * (0.1 * torch.randn(population, generator=generator).double()).exp()
    return hard, better


# -- the variance of means ------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 6])
def test_the_variance_is_right_on_average_over_all_parts(n):
    """Exactly: over all samples without replacement of a small population."""
    parts = list(itertools.combinations(range(7), n))
    truth = oracle.covariance_of_means(X, X, n, n, n)  # equal parts: the variance of the mean
    assert fmean(part(X, chosen).variance for chosen in parts) == pytest.approx(truth)
    assert part(X, range(7)).variance == 0.0


@pytest.mark.parametrize(
    ("n", "k", "common"), [(3, 3, 3), (4, 3, 3), (4, 4, 2), (5, 4, 2), (3, 3, 0), (3, 4, 0)]
)
def test_the_covariance_is_that_over_all_pairs_of_parts(n, k, common):
    x, y = part(X, range(n)), part(Y, range(n - common, n - common + k))
    x, y = replace(x, spread=variance(X)), replace(y, spread=variance(Y))  # as if they were known
    truth = oracle.covariance_of_means(X, Y, n, k, common)
    assert x.covariance(y) == pytest.approx(truth)
    assert y.covariance(x) == pytest.approx(truth)


def test_a_single_common_example_has_no_correlation_and_the_larger_variance_counts():
    x, y = part(X, [0, 1, 2]), part(Y, [2, 3, 4])
    assert x.covariance(y) == pytest.approx(math.sqrt(x.spread * y.spread) * (1 / 9 - 1 / 7))
    wide = [replace(sample, population=20) for sample in (x, y)]  # 1 / 9 - 1 / 20 is positive
    assert wide[0].covariance(wide[1]) == 0.0


def test_without_numbers_parts_are_drawn_independently():
    x, y = Sample.from_values(X[:4], 7), Sample.from_values(Y[:4], 7)
    assert x.covariance(y) == part(X, range(4)).covariance(y) == 0.0


# -- gains ----------------------------------------------------------------------------------------


def test_a_gain_on_the_same_examples_has_the_variance_of_the_paired_difference():
    before, after = checkpoints()
    chosen = torch.randperm(2000, generator=torch.Generator().manual_seed(2))[:150]
    reward = GainReward("loss", scale=2.0)
    assert reward.read(before[chosen], 3, population=2000, examples=chosen) == (None, 0.0)
    mixed = chosen.flip(0)  # in another order
    reading = reward.read(after[mixed], 5, population=2000, examples=mixed)
    first, second = before[chosen], after[chosen]
    assert reading.reward == pytest.approx(float((first.mean() / second.mean()).log()))  # 2 / 2
    influence = second / second.mean() - first / first.mean()
    expected = float(influence.var()) * (1 / 150 - 1 / 2000)
    assert reading.variance == pytest.approx(expected)


@pytest.mark.parametrize(
    ("kind", "paired"),
    [slow(("loss", True)), ("loss", False), ("accuracy", True), ("accuracy", False)],
)
def test_the_told_variance_is_that_of_many_readings(kind, paired):
    before, after = checkpoints()
    if kind == "accuracy":
        before, after = (before < 1.0).double(), (after < 1.0).double()
    generator, gains, told = torch.Generator().manual_seed(0), [], []
    for _ in range(800):
        reward = GainReward(kind, clip=math.inf)
        first = torch.randperm(2000, generator=generator)[:300]
        second = first if paired else torch.randperm(2000, generator=generator)[:300]
        names = (first, second) if paired else (None, None)
        reward.read(before[first], 0, population=2000, examples=names[0])
        reading = reward.read(after[second], 1, population=2000, examples=names[1])
        gains.append(reading.reward)
        told.append(reading.variance)
    # The variance of 800 normal numbers has a relative deviation of 5 %.
    assert fmean(told) == pytest.approx(variance(gains), rel=0.25)
    exact = GainReward(kind, clip=math.inf)
    exact(float(before.mean()), 0)
    assert fmean(gains) == pytest.approx(exact(float(after.mean()), 1), rel=0.05)


def test_pairing_is_more_precise_and_overlap_is_in_between():
    before, after = checkpoints()
    told = []
    for start in (0, 100, 300):
        reward = GainReward("loss")
        reward.read(before[:200], 0, population=2000, examples=range(200))
        chosen = range(start, start + 200)
        told.append(reward.read(after[list(chosen)], 1, population=2000, examples=chosen).variance)
    assert 20 * told[0] < told[1] < told[2]


def test_of_the_whole_set_nothing_is_uncertain():
    before, after = checkpoints()
    whole, called = GainReward("loss"), GainReward("loss")
    readings = [whole.read(x, t, population=2000) for t, x in enumerate((before, after))]
    rewards = [called(float(x.mean()), t) for t, x in enumerate((before, after))]
    assert [r.reward for r in readings] == rewards
    assert [r.variance for r in readings] == [0.0, 0.0]
    part = GainReward("loss")
    part.read(before[:100], 0, population=2000, examples=range(100))
    reading = part.read(after, 1, population=2000, examples=range(2000))
    relative = float(before[:100].var() / before[:100].mean() ** 2)
    assert reading.variance == pytest.approx(relative * (1 / 100 - 1 / 2000))


def test_elapsed_rounds_divide_the_deviation():
    before, after = checkpoints()
    told = []
    for elapsed in (1, 4):
        reward = GainReward("loss", clip=math.inf)
        for t, x in ((0, before), (elapsed, after)):
            reading = reward.read(x[:50], t, population=2000)
        told.append(reading.variance)
    assert told[0] == pytest.approx(16 * told[1])


def test_a_clipped_gain_has_its_deviation_reduced_as_it_is():
    before, after = checkpoints()
    told = {}
    for clip in (math.inf, 0.1):
        reward = GainReward("loss", clip=clip)
        reward.read(before[:50], 0, population=2000)
        told[clip] = reward.read(after[:50], 1, population=2000)
    free, clipped = told[math.inf], told[0.1]
    assert clipped.reward == 0.1 < free.reward
    assert clipped.variance == pytest.approx(free.variance * (0.1 / free.reward) ** 2)


def test_with_a_memory_the_reference_is_an_average_of_independent_parts():
    reward, memory = GainReward("loss", memory=0.5, clip=math.inf), 0.5
    generator = torch.Generator().manual_seed(4)
    samples = [torch.rand(20, generator=generator, dtype=torch.float64) + 0.5 for _ in range(4)]
    for t, values in enumerate(samples):
        reading = reward.read(values, t, population=90, examples=range(20))
    spreads = [float(v.var() / v.mean() ** 2) * (1 / 20 - 1 / 90) for v in samples]
    weights = [memory**k for k in (2, 1, 0)]
    total = sum(weights)
    lag = sum(w * k for w, k in zip(weights, (3, 2, 1), strict=True)) / total
    reference = sum((w / total) ** 2 * s for w, s in zip(weights, spreads[:3], strict=True))
    assert reading.variance == pytest.approx((spreads[3] + reference) / lag**2)


@pytest.mark.parametrize("make", [list, tuple, np.asarray, torch.as_tensor])
def test_values_and_examples_come_in_any_form(make):
    reward = GainReward("accuracy")
    reward.read(make([True, False, True, True]), 0, population=9, examples=make([3, 1, 8, 0]))
    reading = reward.read(make([1.0, 0.0, 1.0, 0.5]), 1, population=9, examples=make([3, 1, 8, 0]))
    assert reading.reward == -2.0
    assert 0 < reading.variance < math.inf


def test_a_list_is_read_in_double_precision():
    values = [0.1, 0.3, 1e300]
    assert Sample.from_values(values, 3).mean == pytest.approx(fmean(values), rel=1e-12)
    with pytest.raises(InvalidArgumentError, match="values"):
        Sample.from_values([1.0, 10**400], 2)


def test_a_failed_reading_has_no_variance_and_leaves_the_reference():
    reward = GainReward("loss")
    reward.read([1.0, 2.0], 0, population=9, examples=[1, 2])
    before = reward.state_dict()
    reading = reward.read([1.0, nan], 1, population=9, examples=[1, 2])
    assert math.isnan(reading.reward)
    assert reading.variance == 0.0
    assert reward.state_dict() == before
    zeros = GainReward("loss")
    assert zeros.read([0.0, 0.0], 0, population=9) == (None, 0.0)
    assert zeros.read([1.0, 2.0], 1, population=9) == (None, 0.0)


def test_a_loop_in_three_lines():
    before, after = checkpoints()
    space = bc.SearchSpace({"lr": bc.Real(1e-4, 1e-1, log=True)})
    tuner, reward = bc.OnlineTuner(space, 8, hold=bc.Hold(share=0.0)), GainReward("loss")
    for _ in range(8):
        decision = tuner.ask()
        losses = (before + decision.config["lr"] * after)[:500]
        if decision.query:
            reading = reward.read(losses, decision, population=2000)
            tuner.tell(decision, reading.reward, variance=reading.variance)
    told = [o for o in tuner.observations if o.reward is not None]
    assert all(observation.variance > 0 for observation in told)


def test_tiny_losses_leave_finite_variances():
    reward = GainReward("loss")
    for t, size in enumerate((1e-300, 5e-324, 1.0)):
        reading = reward.read([size, 2 * size], t, population=9, examples=[0, 1])
        assert 0 <= reading.variance < math.inf


# -- states and errors ----------------------------------------------------------------------------


@pytest.mark.parametrize("memory", [0.0, 0.5])
@pytest.mark.parametrize("named", [True, False])
def test_a_state_continues_the_pairing(memory, named):
    before, after = checkpoints()
    names = range(50) if named else None
    one, two = GainReward("loss", memory=memory), GainReward("loss", memory=memory)
    one.read(before[:50], 0, population=2000, examples=names)
    two.load_state_dict(json.loads(json.dumps(one.state_dict())))
    readings = [r.read(after[:50], 1, population=2000, examples=names) for r in (one, two)]
    assert readings[0] == readings[1]
    assert one.state_dict() == two.state_dict()


def test_states_of_earlier_versions_load():
    reward, again = GainReward("loss"), GainReward("loss")
    reward(1.0, 0)
    state = reward.state_dict()
    del state["sample"], state["reference"]["variance"]
    again.load_state_dict(state)
    assert again.state_dict() == reward.state_dict()
    pair = BeforeAfterReward("loss")
    state = pair.state_dict()
    del state["sample"]
    pair.load_state_dict(state)


@pytest.mark.parametrize(
    "change",
    [
        {"number": 0}, {"number": 9999}, {"spread": -1.0}, {"mean": nan}, {"values": [1.0]},
        {"examples": None}, {"other": 1},
    ],
    ids=str,
)  # fmt: skip
def test_damaged_samples_are_refused(change):
    reward = GainReward("loss")
    reward.read([1.0, 2.0], 0, population=9, examples=[1, 2])
    state = reward.state_dict()
    with pytest.raises(StateMismatchError):
        reward.load_state_dict({**state, "sample": {**state["sample"], **change}})
    assert reward.state_dict() == state


@pytest.mark.parametrize(
    ("values", "options", "error", "name"),
    [
        ([], {}, InvalidShapeError, "values"),
        ([[1.0, 2.0]], {}, InvalidShapeError, "values"),
        (1.0, {}, InvalidShapeError, "values"),
        (["much", "more"], {}, InvalidArgumentError, "values"),
        ([1.0], {}, InvalidArgumentError, "values: Expected at least two"),
        ([-1.0, -2.0], {}, InvalidArgumentError, "metric"),
        ([1.0, 2.0], {"population": 1}, InvalidArgumentError, "population"),
        ([1.0, 2.0], {"population": 2.5}, InvalidArgumentError, "population"),
        ([1.0, 2.0], {"examples": [1]}, InvalidShapeError, "examples"),
        ([1.0, 2.0], {"examples": [1, 1]}, InvalidArgumentError, "examples"),
        ([1.0, 2.0], {"examples": [1, 9]}, InvalidArgumentError, "examples"),
        ([1.0, 2.0], {"examples": [-1, 2]}, InvalidArgumentError, "examples"),
        ([1.0, 2.0], {"examples": [0.5, 2.0]}, InvalidArgumentError, "examples"),
        ([1.0, 2.0], {"examples": ["a", "b"]}, InvalidArgumentError, "examples"),
        ([1.0, 2.0], {"population": 8, "examples": [1, 2]}, InvalidArgumentError, "population"),
        ([1.0, 2.0], {"round": 0}, InvalidArgumentError, "round"),
    ],
)
def test_bad_readings_are_named_and_change_nothing(values, options, error, name):
    reward = GainReward("loss")
    reward.read([1.0, 2.0, 3.0], 0, population=9, examples=[1, 2, 3])
    before = reward.state_dict()
    with pytest.raises(error, match=rf"{name}.*Received"):
        reward.read(values, **{"round": 1, "population": 9, **options})
    assert reward.state_dict() == before


# -- before and after, and the guard --------------------------------------------------------------


def test_before_and_after_are_paired_by_the_numbers_of_examples():
    before, after = checkpoints()
    reward, other = BeforeAfterReward("loss"), GainReward("loss")
    reward.read_before(before[:80], population=2000, examples=range(80))
    again = BeforeAfterReward("loss")
    again.load_state_dict(json.loads(json.dumps(reward.state_dict())))
    other.read(before[:80], 0, population=2000, examples=range(80))
    expected = other.read(after[:80], 1, population=2000, examples=range(80))
    for one in (reward, again):
        assert one.read_after(after[:80], population=2000, examples=range(80)) == expected
    reward.before(1.0)  # exact
    reading = reward.read_after(after[:80], population=2000)
    values = after[:80]
    relative = float(values.var() / values.mean() ** 2)
    assert reading.variance == pytest.approx(relative * (1 / 80 - 1 / 2000))


def test_a_failed_part_before_the_round_fails_the_reward():
    reward = BeforeAfterReward("loss")
    reward.read_before([1.0, nan], population=9)
    json.dumps(reward.state_dict(), allow_nan=True)
    reading = reward.read_after([1.0, 2.0], population=9)
    assert math.isnan(reading.reward)
    assert reading.variance == 0.0
    reward.read_before([1.0, 2.0], population=9)
    assert math.isnan(reward.read_after([1.0, nan], population=9).reward)
    assert reward.read_after([1.0, 2.0], population=9).reward == 0.0  # measured again


def guarded(**options):
    weights = {"w": 1.0}
    return weights, GuardedReward(GainReward("loss", **options), weights.copy, weights.update)


def test_a_guard_reads_as_the_gain_within():
    before, after = checkpoints()
    _, guard = guarded()
    plain = GainReward("loss")
    for t, values in enumerate((before, after)):
        readings = [r.read(values[:90], t, population=2000, examples=range(90))
                    for r in (guard, plain)]  # fmt: skip
        assert readings[0] == readings[1]


def test_a_guard_allows_for_the_noise_of_a_part():
    """0.15 nats worse: beyond the margin, but not beyond two deviations of a small part."""
    before, _ = checkpoints()
    for number, restored in ((2000, True), (30, False)):
        weights, guard = guarded()
        guard.read(before[:number], 0, population=2000)
        weights["w"] = 2.0
        guard.read(before[:number] * math.exp(0.15), 1, population=2000)
        assert (weights["w"] == 1.0) is restored


@pytest.mark.parametrize("saved", [False, True])
def test_after_a_rollback_the_gain_counts_from_the_restored_state_and_its_variance(saved):
    before, after = checkpoints()
    weights, guard = guarded()
    guard.read(before[:400], 0, population=2000, examples=range(400))
    weights["w"] = 99.0
    reading = guard.read(20 * before[:400], 1, population=2000, examples=range(400))
    assert reading.reward == -1.0
    assert weights == {"w": 1.0}
    if saved:
        state = json.loads(json.dumps(guard.state_dict()))
        _, guard = guarded()
        guard.load_state_dict(state)
    reading = guard.read(after[:400], 2, population=2000, examples=range(400))
    plain = GainReward("loss")
    plain.read(before[:400], 1, population=2000, examples=range(400))
    assert reading == plain.read(after[:400], 2, population=2000, examples=range(400))
    weights["w"] = 3.0
    assert guard.read([nan, 1.0], 3, population=2000) == (-1.0, 0.0)


def test_a_guard_is_unchanged_by_an_error():
    before, _ = checkpoints()

    def refuse(state):
        raise ValueError("no")

    weights = {"w": 1.0}
    guard = GuardedReward(GainReward("loss"), weights.copy, refuse)
    guard.read(before[:400], 0, population=2000, examples=range(400))
    state = guard.state_dict()
    with pytest.raises(bc.errors.RestoreError):
        guard.read(20 * before[:400], 1, population=2000, examples=range(400))
    assert guard.state_dict() == state
