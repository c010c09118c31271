"""The batched simulator against a loop written from the paper, and what pairing promises."""

from dataclasses import dataclass

import pytest
import torch
from benchmarks.grid_simulation import (
    GridPolicy,
    expected_improvement,
    probability_of_improvement,
    simulate,
)

from benchmarks.paper import TABLE_A2
from benchmarks.table_a2 import World, policies, restart_period, restarting
from botorch_costly.acquisition import LogBeta
from botorch_costly.errors import InvalidShapeError
from botorch_costly.numerics.stationary import Stationary
from botorch_costly.problems import DriftingFunction
from botorch_costly.query import AlwaysQuery, BernoulliQuery, ConfidenceBoundQuery, ConfidenceQuery
from tests.oracles import ce_gp_ucb, dense_gp

TRIALS, HORIZON, POINTS = 3, 30, 17


@dataclass
class Case:
    policy: GridPolicy
    rule: tuple
    options: dict


CASES = {
    "always": Case(GridPolicy("", AlwaysQuery()), ("always", None), {}),
    "coin": Case(GridPolicy("", BernoulliQuery(0.4)), ("coin", 0.4), {}),
    "coin as printed": Case(
        GridPolicy("", BernoulliQuery(0.4), ages=False),
        ("coin", 0.4),
        {"clock_counts_looks": True},
    ),
    "confidence": Case(GridPolicy("", ConfidenceQuery(0.8)), ("marginal", 0.8), {}),
    "joint": Case(GridPolicy("", ConfidenceQuery(0.9, joint=True), joint=True), ("joint", 0.9), {}),
    "literal": Case(
        GridPolicy("", ConfidenceQuery(0.8), lone_rival=False),
        ("marginal", 0.8),
        {"bandwidth": None},
    ),
    "bounds": Case(GridPolicy("", ConfidenceBoundQuery()), ("bounds", None), {}),
    "restarts": Case(
        GridPolicy("", AlwaysQuery(), forgetting=0.0, restart_every=7),
        ("always", None),
        {"forgetting": 0.0, "restart_every": 7},
    ),
}


@pytest.fixture(scope="module")
def setting():
    generator = torch.Generator().manual_seed(5)
    # Uneven points: on an even grid two equally good ones may lie on either side of a look.
    points = torch.rand(POINTS, 1, generator=generator, dtype=torch.float64).sort(0).values
    one = torch.ones((), dtype=torch.float64)
    truth = DriftingFunction(points, Stationary("matern32", 0.2 * one, one), 0.1, 0.01)
    paths = truth.paths(HORIZON, TRIALS, generator)
    return truth, paths, 0.1 * torch.randn(TRIALS, HORIZON, generator=generator).double()


@pytest.mark.parametrize("name", CASES)
def test_simulation_is_the_loop_of_the_paper(setting, name):
    truth, paths, noise = setting
    case = CASES[name]
    run = simulate(
        truth, paths, noise, case.policy, LogBeta(), torch.Generator().manual_seed(1), bandwidth=0.2
    )

    draws = torch.Generator().manual_seed(1)
    openings = torch.randint(POINTS, (TRIALS,), generator=draws).tolist()
    coins = torch.zeros(HORIZON, TRIALS, dtype=torch.float64)
    if case.rule[0] == "coin":
        for t in range(HORIZON):
            coins[t] = torch.rand(TRIALS, generator=draws, dtype=torch.float64)
    prior = dense_gp.matern(truth.points, truth.points, 0.2, nu=1.5)
    options = {"forgetting": truth.forgetting, **case.options}
    for i in range(TRIALS):
        history = ce_gp_ucb.run(
            paths[i], noise[i], truth.points[:, 0].tolist(), prior, noise_variance=truth.noise,
            rule=case.rule, beta=LogBeta(), opening=openings[i], coins=coins[:, i].tolist(), **options,
        )  # fmt: skip
        choice, look, regret = zip(*history, strict=True)
        assert run.look[i].tolist() == list(look)
        assert run.choice[i].tolist() == list(choice)
        expected = torch.tensor(regret, dtype=torch.float64)
        torch.testing.assert_close(run.regret[i], expected, rtol=0, atol=1e-12)


def test_the_cases_tell_the_rules_apart(setting):
    truth, paths, noise = setting
    looks = {
        name: simulate(
            truth, paths, noise, case.policy, LogBeta(), torch.Generator().manual_seed(1)
        ).look
        for name, case in CASES.items()
    }
    assert not looks["confidence"].equal(looks["joint"])
    assert not looks["confidence"].equal(looks["literal"])
    assert not looks["confidence"].equal(looks["bounds"])
    assert not looks["bounds"].all()


def test_the_belief_returned_is_that_after_the_last_look(setting):
    truth, paths, noise = setting
    run = simulate(truth, paths, noise, GridPolicy("", AlwaysQuery()), LogBeta(), torch.Generator())
    prior = dense_gp.matern(truth.points, truth.points, 0.2, nu=1.5)
    for i in range(TRIALS):
        y = (paths[i] + noise[i, :, None]).gather(-1, run.choice[i, :, None]).squeeze(-1)
        looks = list(zip(range(HORIZON), run.choice[i].tolist(), y.tolist(), strict=True))
        mean, cov = ce_gp_ucb.belief(prior, truth.forgetting, truth.noise, looks, HORIZON - 1)
        torch.testing.assert_close(run.mean[i], mean, rtol=0, atol=1e-8)
        torch.testing.assert_close(run.variance[i], cov.diagonal(), rtol=0, atol=1e-8)


def hill(horizon=120):
    """A world whose function has one hill, of which the first look sees the top."""
    truth = DriftingFunction.on_unit_interval(41, forgetting=0.05)
    x = truth.points[:, 0]
    paths = (3 * torch.exp(-10 * (x - 0.5) ** 2)).expand(1, horizon, -1)
    return truth, paths, torch.zeros(1, horizon, dtype=torch.float64)


def opening_in_the_middle():
    """A generator whose first draw below 41 is 20."""
    for seed in range(1000):
        if torch.randint(41, (1,), generator=torch.Generator().manual_seed(seed)).item() == 20:
            return torch.Generator().manual_seed(seed)
    raise AssertionError


def test_the_literal_rule_never_looks_again_at_a_lone_optimum():
    literal = GridPolicy("", ConfidenceQuery(0.9), lone_rival=False)
    # The opening is the middle of the plateau: not even the first round has a rival.
    run = simulate(*hill(), literal, LogBeta(), opening_in_the_middle())
    assert run.look.sum() <= 1
    assert not run.look[:, 1:].any()


def test_a_far_rival_keeps_the_rule_looking():
    run = simulate(
        *hill(), GridPolicy("", ConfidenceQuery(0.9)), LogBeta(), opening_in_the_middle()
    )
    assert run.look[:, 60:].any()


def test_the_far_rival_pays():
    world = World.draw(0.05, trials=12, horizon=200, points=60)
    rule = ConfidenceQuery(0.9)
    literal = world.play(GridPolicy("", rule, lone_rival=False))
    repaired = world.play(GridPolicy("", rule))
    assert literal.regret.mean() > repaired.regret.mean() + 0.05
    silent = ~literal.look[:, 100:].any(-1)
    assert silent.any()
    assert repaired.look[:, 100:].any(-1).all()


def test_a_belief_that_stands_still_never_asks_again():
    world = World.draw(0.05, trials=6, horizon=150, points=60)
    still = world.play(GridPolicy("", ConfidenceQuery(0.8), ages=False))
    assert still.look[:, 75:].double().mean() < 0.05


def test_every_policy_meets_the_same_world():
    one, two = (World.draw(0.05, trials=2, horizon=20, points=30, seed=3) for _ in range(2))
    assert one.paths.equal(two.paths)
    assert one.noise.equal(two.noise)
    rare, often = (one.play(GridPolicy("", BernoulliQuery(p))).look for p in (0.3, 0.7))
    assert not (rare & ~often).any()  # the same coins
    other = World.draw(0.05, trials=2, horizon=20, points=30, seed=4)
    assert not one.paths.equal(other.paths)


def test_global_randomness_is_not_touched():
    before = torch.random.get_rng_state()
    World.draw(0.05, trials=2, horizon=5, points=10).play(GridPolicy("", BernoulliQuery(0.5)))
    assert torch.random.get_rng_state().equal(before)


def test_the_table_has_the_rows_of_the_paper():
    names = [policy.name for policy in policies(0.01, 500)]
    assert [name for name in names if "as printed" not in name] == list(TABLE_A2)
    assert len(set(names)) == len(names)


def test_r_gp_ucb_forgets_by_restarting():
    assert restart_period(0.05, 500) == 88
    assert restart_period(0.003, 500) == 500
    assert restarting(0.05, 500).forgetting == 0.0
    assert restarting(0.05, 500, 0.3).rule == BernoulliQuery(0.3)


def test_improvement_is_finite_where_nothing_is_left_to_learn():
    mean, std = torch.tensor([[0.0, 1.0, 1.0]]), torch.tensor([[1.0, 0.0, 1.0]])
    gain = expected_improvement(mean, std, 1.0)
    assert gain.isfinite().all()
    assert gain.argmax() == 2
    assert gain[0, 2].item() == pytest.approx(0.3989423)
    chance = probability_of_improvement(mean, std, 1.0)
    assert not chance.isnan().any()
    assert chance.argmax() == 2


@pytest.mark.parametrize(
    ("paths", "noise"), [((2, 5, 9), (2, 5)), ((2, 5, 10), (2, 6)), ((5, 10), (5,))]
)
def test_shapes_are_checked(paths, noise):
    truth = DriftingFunction.on_unit_interval(10)
    with pytest.raises(InvalidShapeError, match="Expected shape"):
        simulate(
            truth, torch.zeros(paths).double(), torch.zeros(noise).double(),
            GridPolicy("", AlwaysQuery()), LogBeta(), torch.Generator(),
        )  # fmt: skip
