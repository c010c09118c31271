"""A trial is a trial: alone, in a batch, together with other policies, in single precision."""

import numpy as np
import pytest
import torch

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError, InvalidBudgetError
from botorch_costly.problems import DriftingFunction
from botorch_costly.query import (
    AlwaysQuery,
    BernoulliQuery,
    ConfidenceBoundQuery,
    ConfidenceQuery,
    MixedQuery,
    PricedQuery,
)
from botorch_costly.simulation import GridPolicy, Run, draw, expected_improvement, play, simulate
from tests.cases import quick
from tests.counting import least_successes

HORIZON = 40
POLICIES = [
    GridPolicy("always", AlwaysQuery()),
    GridPolicy("coin", BernoulliQuery(0.3)),
    GridPolicy("coin as printed", BernoulliQuery(0.3), ages=False),
    GridPolicy("confidence", ConfidenceQuery(0.8)),
    GridPolicy("joint", ConfidenceQuery(0.9, joint=True), joint=True),
    GridPolicy("bounds", ConfidenceBoundQuery()),
    GridPolicy("restarts", BernoulliQuery(0.7), forgetting=0.0, restart_every=17),
    GridPolicy("another rate", ConfidenceQuery(0.8), forgetting=0.2, unqueried_play="mean"),
    GridPolicy("improvement", BernoulliQuery(0.5), score=expected_improvement),
    GridPolicy("mixed", MixedQuery(5, 30, HORIZON)),
    GridPolicy("priced", PricedQuery(price=0.3)),
    GridPolicy("budget", PricedQuery(budget=15)),
]


@pytest.fixture(scope="module")
def problem():
    return DriftingFunction.on_unit_interval(40, forgetting=0.05)


@pytest.fixture(scope="module")
def whole(problem):
    return simulate(problem, POLICIES, trials=12, horizon=HORIZON, seed=1, trials_at_once=12)


def assert_same(actual, expected):
    assert torch.equal(actual.query, expected.query)
    assert torch.equal(actual.choice, expected.choice)
    for name in ("regret", "mean", "variance"):
        values = getattr(actual, name), getattr(expected, name)
        torch.testing.assert_close(*values, rtol=0, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [5, 6])
def test_a_trial_does_not_depend_on_how_many_share_a_program(problem, whole, at_once):
    parts = simulate(problem, POLICIES, 12, HORIZON, seed=1, trials_at_once=at_once)
    assert_same(parts, whole)


@pytest.mark.parametrize("trial", quick([0, 7, 11], 11))
def test_a_trial_alone_is_the_trial(problem, whole, trial):
    alone = simulate(problem, POLICIES, 1, HORIZON, seed=1, first_trial=trial)
    assert_same(alone, Run(*(tensor[:, trial : trial + 1] for tensor in whole)))


@pytest.mark.slow
@pytest.mark.parametrize("together", [3, len(POLICIES)])
def test_policies_may_share_a_program(problem, whole, together):
    options = {"policies_at_once": together, "trials_at_once": 4}
    assert_same(simulate(problem, POLICIES, 12, HORIZON, seed=1, **options), whole)


def test_every_policy_meets_the_same_chance(problem, whole):
    rare = simulate(problem, [GridPolicy("", BernoulliQuery(0.2))], 12, HORIZON, seed=1)
    often = simulate(problem, [GridPolicy("", BernoulliQuery(0.6))], 12, HORIZON, seed=1)
    assert not (rare.query & ~often.query).any()
    assert not torch.equal(rare.query, often.query)
    first = whole.choice[..., 0]
    assert (first == first[0]).all()
    draws = draw(problem, range(12), HORIZON, seed=1)
    assert_same(play(problem, POLICIES[:2], draws), Run(*(tensor[:2] for tensor in whole)))


def test_the_cases_query_neither_always_nor_never(whole):
    share = dict(zip((p.name for p in POLICIES), whole.query.double().mean((1, 2)), strict=True))
    assert share.pop("always") == 1
    assert all(0.05 < value < 0.99 for value in share.values()), share
    assert (whole.query.sum(-1)[-1] == 15).all()
    assert 5 / HORIZON < share["mixed"] < 30 / HORIZON
    assert whole.regret.min() >= 0


def test_what_comes_back_has_the_shape_promised(problem):
    run = bc.simulate(problem, POLICIES[:2], trials=3, horizon=5)
    assert run.regret.shape == run.query.shape == run.choice.shape == (2, 3, 5)
    assert run.mean.shape == run.variance.shape == (2, 3, 40)
    assert run.of(1).regret.shape == (3, 5)
    assert (run.query.dtype, run.choice.dtype) == (torch.bool, torch.long)


def test_counts_come_in_any_type(problem):
    plain = simulate(problem, POLICIES[:1], 3, 10)
    assert_same(simulate(problem, POLICIES[:1], 3.0, np.int64(10), seed=0.0), plain)


def test_global_randomness_is_not_touched(problem):
    before = torch.random.get_rng_state()
    simulate(problem, POLICIES[:2], trials=2, horizon=5)
    assert torch.random.get_rng_state().equal(before)


@pytest.fixture(scope="module")
def fine():
    """Functions on many points, where neighbours tie, and the decisions of each round in float32."""
    problem = DriftingFunction.on_unit_interval(400, forgetting=0.05)
    policies = [p for p in POLICIES if p.name in ("always", "coin", "confidence", "priced")]
    draws = draw(problem, range(5), 100)
    double = play(problem, policies, draws)
    return problem, double, play(problem, policies, draws, dtype=torch.float32, history=double)


@pytest.mark.slow
def test_single_precision_decides_the_same_in_99_of_100_rounds(fine):
    _, double, single = fine
    same = (single.query == double.query) & (single.choice == double.choice)
    assert (same.sum((1, 2)) >= least_successes(same[0].numel(), 0.99)).all()
    # A processor's error of 1e-6, multiplied by the noise and the near copies that the belief weighs.
    torch.testing.assert_close(single.mean, double.mean, rtol=0, atol=2e-4)
    torch.testing.assert_close(single.variance, double.variance, rtol=0, atol=2e-5)
    assert not torch.equal(single.mean, double.mean)


@pytest.mark.slow
def test_where_it_does_not_it_goes_next_door(fine):
    problem, double, single = fine
    x = problem.points[:, 0]
    distance = (x[single.choice] - x[double.choice]).abs()
    assert (distance <= 0.2 / 50).sum() >= least_successes(distance.numel(), 0.999)


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"policies": []}, "policies"),
        ({"policies": [AlwaysQuery()]}, "policies"),
        ({"policies": POLICIES[0]}, "policies"),
        ({"trials": 0}, "trials"),
        ({"horizon": 0}, "horizon"),
        ({"seed": -1}, "seed"),
        ({"first_trial": -1}, "first_trial"),
        ({"policies_at_once": 0}, "policies_at_once"),
        ({"trials_at_once": 0}, "trials_at_once"),
        ({"dtype": torch.float16}, "dtype"),
        ({"dtype": "float64"}, "dtype"),
        ({"device": "abacus"}, "device"),
        ({"device": "cuda:99"}, "device"),
        ({"beta": 2.0}, "beta"),
        ({"horizon": 3.5}, "horizon"),
        ({"bandwidth": -0.1}, "bandwidth"),
    ],
)
def test_what_is_wrong_is_named(problem, changed, name):
    options = {"policies": POLICIES[:1], "trials": 2, "horizon": 3, **changed}
    with pytest.raises(InvalidArgumentError, match=f"{name}: Expected .*; Received"):
        simulate(problem, **options)


def test_a_run_too_short_for_a_budget_is_named_before_anything_is_drawn(problem):
    with pytest.raises(InvalidBudgetError, match="budget: Expected at most 9 rounds; Received 15"):
        simulate(problem, POLICIES, trials=10**9, horizon=9)
