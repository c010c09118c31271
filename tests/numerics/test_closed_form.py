"""The closed form of a posterior against a dense solve, against autograd, and around its points."""

import math

import pytest
import torch
from botorch.acquisition.analytic import UpperConfidenceBound

from botorch_costly.models import StreamingGP
from botorch_costly.numerics.closed_form import (
    Moments,
    moments,
    moments_and_slopes,
    upper_bound_and_gradient_at,
    upper_bound_at,
    upper_bound_with_gradient,
)
from botorch_costly.numerics.expansion import expand, expanded_upper_bound, upper_bound_with_hessian
from botorch_costly.numerics.radial import FAMILIES, NUGGET
from botorch_costly.numerics.stationary import Stationary
from tests.oracles import dense_gp

FORGETTING, NOISE, FLOOR, DIM = 0.04, 0.05, 1e-10, 3
NU = {"matern12": 0.5, "matern32": 1.5, "matern52": 2.5, "rbf": math.inf}
SMOOTH = ["matern32", "matern52", "rbf"]
NUMBERS = {"dtype": torch.float64}


def points(n, seed=1):
    return torch.rand(n, DIM, generator=torch.Generator().manual_seed(seed), **NUMBERS)


def belief_of(family, rows=9, seed=0, noise=NOISE):
    generator = torch.Generator().manual_seed(seed)
    lengthscale = torch.tensor([0.3, 0.5, 0.9], **NUMBERS)
    belief = StreamingGP(
        Stationary(family, lengthscale, torch.tensor(1.3, **NUMBERS)), FORGETTING, noise
    )
    for x in points(rows, seed):
        now = float(torch.randint(20, (), generator=generator))  # rounds come in any order
        reward = float(torch.randn((), generator=generator))
        belief.observe(torch.cat([x, x.new_tensor([now])]), reward)
    return belief


def form_in(belief, now):
    """Return the closed form in a round, and what is retained of it."""
    seen = belief.snapshot(now)
    return seen.form, seen.retained


def dense(belief, X, now):
    """Return mean and variance as the paper writes them."""
    x, times, kernel = belief.inputs[:, :-1], belief.inputs[:, -1].tolist(), belief.kernel
    shape = kernel.lengthscale, kernel.outputscale, NU[kernel.family]
    covs = (dense_gp.matern(a, b, *shape) for a, b in ((x, x), (X, x), (X, X)))
    space, cross, target = covs
    mean, cov, _ = dense_gp.posterior(
        space, times, belief.rewards, belief.noise, cross, target, now, FORGETTING
    )
    return mean, cov.diagonal()


@pytest.mark.parametrize("now", [19.0, 23.0, 60.0])
@pytest.mark.parametrize("family", FAMILIES)
def test_moments_match_a_dense_solve(family, now):
    belief, X = belief_of(family), points(6)
    seen, retained = form_in(belief, now)
    actual = moments(seen, X)
    mean, variance = dense(belief, X, now)
    torch.testing.assert_close(retained * actual.mean, mean, rtol=1e-10, atol=1e-11)
    torch.testing.assert_close(
        1.3 - retained**2 * actual.explained, variance, rtol=1e-10, atol=1e-11
    )


@pytest.mark.parametrize("lengthscale", [0.3, 0.004])
def test_a_nugget_is_known_where_it_was_seen_and_nowhere_else(lengthscale):
    """Far in units of a short lengthscale, where distances by inner products are never exactly 0."""
    belief, now, scale = belief_of(NUGGET, rows=40), 19.0, 1.3
    belief = StreamingGP(
        Stationary(NUGGET, torch.tensor([lengthscale], **NUMBERS), torch.tensor(scale, **NUMBERS)),
        FORGETTING,
        NOISE,
    ).condition_on_observations(belief.inputs, belief.rewards.unsqueeze(-1))
    x, times = belief.inputs[:, :-1], belief.inputs[:, -1].tolist()
    X = torch.cat([x, x[[4]] + 1e-5, points(3)])

    def covariance(a, b):
        smooth = dense_gp.matern(a, b, torch.tensor([lengthscale] * DIM, **NUMBERS), scale, 2.5)
        same = torch.tensor([[float(torch.equal(p, q)) for q in b] for p in a], **NUMBERS)
        return 0.9 * smooth + 0.1 * scale * same

    mean, cov, _ = dense_gp.posterior(
        covariance(x, x), times, belief.rewards, NOISE, covariance(X, x), covariance(X, X), now,
        FORGETTING,
    )  # fmt: skip
    actual = belief.snapshot(now).mean_and_variance(X)
    torch.testing.assert_close(actual[0], mean, rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(actual[1], cov.diagonal(), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("now", [5.0, 40.0])
def test_a_round_before_the_newest_row_counts_ages_both_ways(now):
    belief, X = belief_of("matern52"), points(6)
    mean, variance = belief.in_round(X, now)
    expected = dense(belief, X, now)
    torch.testing.assert_close(mean, expected[0], rtol=1e-10, atol=1e-11)
    torch.testing.assert_close(variance, expected[1], rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("now", [19.0, 30.0])
@pytest.mark.parametrize("family", FAMILIES)
def test_value_and_gradient_are_botorchs(family, now):
    belief = belief_of(family, rows=40, noise=1e-4)
    X = torch.cat([points(50), belief.inputs[:2, :-1] + 1e-4])
    asked = torch.cat([X, torch.full_like(X[:, :1], now)], -1).requires_grad_()
    theirs = UpperConfidenceBound(belief, X.new_tensor(1.7))(asked.unsqueeze(-2))
    (slope,) = torch.autograd.grad(theirs.sum(), asked)
    seen, retained = form_in(belief, now)
    value, gradient = upper_bound_with_gradient(seen, retained, X.new_tensor(1.7).sqrt(), FLOOR)(X)
    torch.testing.assert_close(value, theirs.detach(), rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(gradient, slope[:, :-1], rtol=1e-8, atol=1e-8)


def test_at_an_observation_the_kink_has_no_slope():
    """Exactly there, not a rounding error away."""
    belief = belief_of("matern12", rows=1)
    seen, retained = form_in(belief, 30.0)
    _, gradient = upper_bound_with_gradient(seen, retained, torch.tensor(1.0, **NUMBERS), FLOOR)(
        belief.inputs[:, :-1]
    )
    assert torch.equal(gradient, torch.zeros(1, DIM, **NUMBERS))


def test_a_variance_at_its_floor_has_no_slope():
    belief, X = belief_of("matern52"), points(5)
    seen, retained = form_in(belief, 25.0)
    value, gradient = upper_bound_with_gradient(seen, retained, torch.tensor(2.0, **NUMBERS), 10.0)(
        X
    )
    mean, slope = upper_bound_with_gradient(seen, retained, torch.tensor(0.0, **NUMBERS), FLOOR)(X)
    torch.testing.assert_close(value, mean + 2 * math.sqrt(10.0))
    torch.testing.assert_close(gradient, slope)


def test_a_loss_is_the_bound_times_minus_one():
    belief, X = belief_of("rbf"), points(5)
    seen, retained = form_in(belief, 25.0)
    width = torch.tensor(1.2, **NUMBERS)
    up, down = (
        upper_bound_with_gradient(seen, retained, width, FLOOR, sign)(X) for sign in (1.0, -1.0)
    )
    for ours, theirs in zip(up, down, strict=True):
        torch.testing.assert_close(ours, -theirs)


def test_known_moments_give_the_bound_of_any_round():
    belief, X = belief_of("matern52"), points(7)
    width = torch.tensor(1.1, **NUMBERS)
    seen, _ = form_in(belief, 19.0)
    before = moments(seen, X)
    for now in (19.0, 22.0, 90.0):
        retained = form_in(belief, now)[1]
        expected, _ = upper_bound_with_gradient(seen, retained, width, FLOOR)(X)
        actual = upper_bound_at(belief.kernel.outputscale, before, retained, width, FLOOR)
        torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("family", SMOOTH)
@pytest.mark.parametrize("floor", [FLOOR, 0.55])  # some variances are below the second
def test_known_moments_and_slopes_give_the_gradient_of_any_round(family, floor):
    belief, X = belief_of(family, rows=15), points(8)
    seen, _ = form_in(belief, 19.0)
    retained = torch.tensor([[1.0], [0.9], [0.4]], **NUMBERS)
    width = torch.tensor([[1.1], [1.2], [1.3]], **NUMBERS)
    value, gradient = upper_bound_and_gradient_at(
        *moments_and_slopes(seen, X), retained, width, seen.prior, floor
    )
    for row in range(3):
        bound = upper_bound_with_gradient(seen, float(retained[row]), width[row, 0], floor)
        expected = bound(X)
        torch.testing.assert_close(value[row], expected[0], rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(gradient[row], expected[1], rtol=1e-11, atol=1e-12)


def test_rankings_swap_between_queries():
    """Lemma 1 of the paper says they do not: 1 > .6 now, and 1 < 1.005 after a = .8."""
    before = Moments(torch.tensor([0.0, 0.5], **NUMBERS), torch.tensor([0.0, 0.99], **NUMBERS))
    unit = torch.tensor(1.0, **NUMBERS)
    now, later = (upper_bound_at(unit, before, retained, unit, FLOOR) for retained in (1.0, 0.8))
    torch.testing.assert_close(now, torch.tensor([1.0, 0.6], **NUMBERS))
    assert now[0] > now[1]
    assert later[0] < later[1]


@pytest.mark.parametrize("family", SMOOTH)
@pytest.mark.parametrize("now", [19.0, 33.0])
def test_hessians_are_differences_of_gradients(family, now):
    belief, X = belief_of(family, rows=15), points(4)
    (seen, retained), width = form_in(belief, now), torch.tensor(1.4, **NUMBERS)
    bound, step = upper_bound_with_gradient(seen, retained, width, FLOOR), 1e-5
    model = expanded_upper_bound(expand(seen, X), seen.prior, retained, width, FLOOR)
    value, gradient = bound(X)
    torch.testing.assert_close(model.value, value, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(model.gradient, gradient, rtol=1e-11, atol=1e-12)
    for column in range(DIM):
        shift = step * torch.eye(DIM, **NUMBERS)[column]
        difference = (bound(X + shift)[1] - bound(X - shift)[1]) / (2 * step)
        torch.testing.assert_close(model.hessian[..., column], difference, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("family", SMOOTH)
@pytest.mark.parametrize("floor", [FLOOR, 0.55])  # some variances are below the second
def test_both_ways_to_an_expanded_bound_agree(family, floor):
    belief, X = belief_of(family, rows=15), points(8)
    (seen, retained), width = form_in(belief, 19.0), torch.tensor(1.4, **NUMBERS)
    expected = expanded_upper_bound(expand(seen, X), seen.prior, retained, width, floor)
    ours = upper_bound_with_hessian(seen, retained, width, floor)(X)
    for quantity, exact in zip(ours, expected, strict=True):
        torch.testing.assert_close(quantity, exact, rtol=1e-9, atol=1e-10)


def test_an_expansion_is_off_by_the_cube_of_the_step():
    belief, X = belief_of("matern52", rows=15), points(4)
    seen, _ = form_in(belief, 19.0)
    around = expand(seen, X)
    errors = []
    for size in (0.04, 0.02):
        step = size * torch.tensor([1.0, -1.0, 0.5], **NUMBERS).expand_as(X)
        there = moments(seen, X + step)
        errors.append((around.mean.at(step) - there.mean).abs().max())
        assert (around.explained.at(step) - there.explained).abs().max() < 100 * size**3
    assert errors[0] / errors[1] > 6


def test_several_rounds_are_each_of_them():
    belief, X = belief_of("matern52", rows=15), points(4)
    seen, retained = form_in(belief, 19.0)
    around, widths = expand(seen, X), torch.tensor([[1.0], [1.5]], **NUMBERS)
    retentions = torch.tensor([[retained], [0.7 * retained]], **NUMBERS)
    together = expanded_upper_bound(around, seen.prior, retentions, widths, FLOOR)
    for row in range(2):
        alone = expanded_upper_bound(
            around, seen.prior, float(retentions[row]), widths[row, 0], FLOOR
        )
        for quantity, expected in zip(together, alone, strict=True):
            torch.testing.assert_close(quantity[row], expected, rtol=1e-13, atol=1e-13)


def test_single_precision_stays_single_and_close():
    belief, X = belief_of("matern52", rows=30), points(6)
    seen, retained = belief.snapshot(25.0).to(torch.float32).form, belief.snapshot(25.0).retained
    assert belief.snapshot(26.0).to(torch.float32).form is seen  # it is made once
    value, gradient = upper_bound_with_gradient(seen, retained, torch.tensor(1.0), FLOOR)(X.float())
    assert value.dtype == gradient.dtype == torch.float32
    exact = upper_bound_with_gradient(
        form_in(belief, 25.0)[0], retained, torch.tensor(1.0, **NUMBERS), FLOOR
    )(X)
    torch.testing.assert_close(value.double(), exact[0], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(gradient.double(), exact[1], rtol=1e-3, atol=1e-3)
