"""Probabilities that each of several Gaussian values is the smallest, by quasi-Monte Carlo."""

import math

import numpy as np
import pytest
import torch

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError, NumericalError
from botorch_costly.numerics import separation
from botorch_costly.numerics.separation import log_prob_min_by_draws
from tests.cases import quick
from tests.numerics.test_ep import KINDS, problem_of, variation
from tests.oracles import separation as oracle
from tests.oracles.ep import drawn_prob_min

NUMBERS = {"dtype": torch.float64}


@pytest.mark.parametrize("drawn", [2, 5])
def test_an_orthant_is_one_draw_after_another(drawn):
    for seed in range(4):
        level, root = torch.randn(
            6, 7, generator=torch.Generator().manual_seed(seed), **NUMBERS
        ).split([1, 6], -1)
        covariance = root @ root.T + torch.eye(6, **NUMBERS)
        sd = covariance.diagonal().sqrt()
        correlation = covariance / (sd * sd.unsqueeze(-1))
        coins = torch.rand(drawn, 16, generator=torch.Generator().manual_seed(9), **NUMBERS)
        actual = separation._log_orthant(level.T, correlation.unsqueeze(0), coins)
        expected = oracle.probability(level.squeeze(-1).numpy(), correlation.numpy(), coins.numpy())
        assert actual.exp().item() / 16 == pytest.approx(expected, rel=1e-5)


def test_of_two_values_it_is_the_closed_form():
    mean = torch.tensor([0.3, -0.4], **NUMBERS)
    cov = torch.tensor([[1.0, 0.6], [0.6, 2.0]], **NUMBERS)
    first = torch.special.ndtr((mean[1] - mean[0]) / (1.0 + 2.0 - 1.2) ** 0.5)
    actual = log_prob_min_by_draws(mean, cov).exp()
    torch.testing.assert_close(actual, torch.stack([first, 1 - first]), atol=1e-7, rtol=0)


@pytest.mark.parametrize(
    ("points", "bound"),
    quick([(5, 0.004), (10, 0.006), (25, 0.008), (50, 0.013)], (5, 0.004), (25, 0.008)),
)
def test_probabilities_are_close_to_draws(points, bound):
    generator = torch.Generator().manual_seed(0)
    for kind in KINDS:
        mean, cov = problem_of(kind, points, 1)
        truth = drawn_prob_min(mean, cov, 400_000, generator)
        assert variation(log_prob_min_by_draws(mean, cov).exp(), truth) < bound


@pytest.mark.slow
def test_more_draws_are_closer():
    errors = dict.fromkeys((16, 64, 1024), 0.0)
    for kind in KINDS:
        mean, cov = problem_of(kind, 20, 3)
        truth = log_prob_min_by_draws(mean, cov, draws=2**14).exp()
        for draws in errors:
            errors[draws] += variation(log_prob_min_by_draws(mean, cov, draws=draws).exp(), truth)
    assert errors[16] > 2 * errors[64] > 4 * errors[1024]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("points", quick([6, 24], 6))
def test_derivatives_are_finite_differences(kind, points):
    mean, cov = problem_of(kind, points, 2)
    mean = mean + 0.1 * torch.sin(7 * torch.arange(points))  # of equal means any may come first
    weight = torch.linspace(-1, 1, points, **NUMBERS)

    def value(mean, cov):
        return (weight * log_prob_min_by_draws(mean, cov).exp()).sum()

    mean, cov = mean.requires_grad_(), cov.requires_grad_()
    by_mean, by_cov = torch.autograd.grad(value(mean, cov), (mean, cov))
    generator = torch.Generator().manual_seed(1)
    values, vectors = torch.linalg.eigh(cov.detach())
    root = vectors * values.clamp_min(0).sqrt()
    for _ in range(2):
        step = 1e-6
        middle = torch.randn(points, points, generator=generator, **NUMBERS)
        to = root @ (middle + middle.T) @ root.T  # so that no change is large beside the covariance
        difference = value(mean, cov + step * to) - value(mean, cov - step * to)
        assert difference.item() / (2 * step) == pytest.approx(float((by_cov * to).sum()), abs=1e-4)
        to = root @ middle[:, 0]
        difference = value(mean + step * to, cov) - value(mean - step * to, cov)
        assert difference.item() / (2 * step) == pytest.approx(float(by_mean @ to), abs=1e-4)


def test_parts_are_the_whole_with_derivatives_too(monkeypatch):
    problems = [problem_of(kind, 6, seed) for kind in KINDS for seed in range(2)]
    means = torch.stack([mean for mean, _ in problems]).reshape(4, 2, 6).requires_grad_()
    covs = torch.stack([cov for _, cov in problems]).reshape(4, 2, 6, 6)
    together = log_prob_min_by_draws(means, covs)
    (slope,) = torch.autograd.grad(together[..., 0].sum(), means)
    for at, (mean, cov) in enumerate(problems):
        torch.testing.assert_close(log_prob_min_by_draws(mean, cov), together[at // 2, at % 2])
    monkeypatch.setattr(separation, "_AT_ONCE", {"cpu": 5 * 256 * 4})
    parts = log_prob_min_by_draws(means, covs)
    torch.testing.assert_close(parts, together)
    torch.testing.assert_close(torch.autograd.grad(parts[..., 0].sum(), means)[0], slope)
    with torch.no_grad():
        torch.testing.assert_close(log_prob_min_by_draws(means, covs), together)


def test_a_common_component_changes_nothing():
    mean, cov = problem_of("wishart", 7, 0)
    actual = log_prob_min_by_draws(mean, cov)
    torch.testing.assert_close(
        log_prob_min_by_draws(mean + 3.0, cov + 2.0), actual, rtol=0, atol=1e-6
    )
    torch.testing.assert_close(
        log_prob_min_by_draws(1e4 * mean, 1e8 * cov), actual, rtol=0, atol=1e-6
    )


def test_duplicates_share_and_certainty_is_certain():
    mean, cov = problem_of("wishart", 4, 0)
    again = torch.tensor([0, 1, 2, 3, 0])
    actual = log_prob_min_by_draws(mean[again], cov[again][:, again]).exp()
    alone = log_prob_min_by_draws(mean, cov).exp()
    assert actual[0] == pytest.approx(actual[4].item(), rel=1e-3)
    assert float(actual[0] + actual[4]) == pytest.approx(float(alone[0]), abs=0.01)
    certain = log_prob_min_by_draws(torch.tensor([1.0, 0.0, 2.0]), torch.zeros(3, 3)).exp()
    torch.testing.assert_close(certain, torch.tensor([0.0, 1.0, 0.0]))
    even = log_prob_min_by_draws(torch.zeros(3), torch.zeros(3, 3)).exp()
    torch.testing.assert_close(even, torch.full((3,), 1 / 3), atol=2e-3, rtol=0)
    assert log_prob_min_by_draws(torch.zeros(2, 1), torch.ones(2, 1, 1)).tolist() == [[0.0], [0.0]]


@pytest.mark.parametrize("scale", quick([1e-12, 1.0, 1e12], 1e-12))
def test_no_number_is_ever_nan(scale):
    generator = torch.Generator().manual_seed(0)
    root = torch.randn(7_000, 5, 5, generator=generator, **NUMBERS)
    root[::3, :, 2:] = 0  # singular
    root[::7] *= 1e-9  # beside the means
    mean = torch.randn(7_000, 5, generator=generator, **NUMBERS) * 10.0 ** torch.randint(
        -4, 5, (7_000, 1), generator=generator
    )
    mean = (scale * mean).requires_grad_()
    actual = log_prob_min_by_draws(mean, scale**2 * (root @ root.mT), draws=16)
    assert actual.isfinite().all()
    torch.testing.assert_close(actual.exp().sum(-1), torch.ones(7_000, **NUMBERS))
    (slope,) = torch.autograd.grad(actual.exp()[:, 0].sum(), mean)
    assert slope.isfinite().all()


def test_single_precision_is_rounded_double(tkwargs):
    mean, cov = problem_of("wishart", 8, 0)
    actual = log_prob_min_by_draws(mean.to(**tkwargs), cov.to(**tkwargs))
    assert actual.dtype == tkwargs["dtype"]
    expected = log_prob_min_by_draws(mean, cov)
    torch.testing.assert_close(actual.double().cpu(), expected, rtol=1e-3, atol=1e-3)


def test_invalid_arguments_are_refused():
    with pytest.raises(InvalidShapeError, match="mean, cov"):
        log_prob_min_by_draws(torch.zeros(3), torch.eye(4))
    with pytest.raises(NumericalError, match="finite"):
        log_prob_min_by_draws(torch.tensor([0.0, math.nan]), torch.eye(2))
    with pytest.raises(InvalidArgumentError, match="draws"):
        log_prob_min_by_draws(torch.zeros(2), torch.eye(2), draws=0)


def test_draws_do_not_depend_on_earlier_draws():
    mean, cov = problem_of("prior", 9, 0)
    first = log_prob_min_by_draws(mean, cov)
    separation._sobol.cache_clear()
    torch.manual_seed(5)
    before = torch.get_rng_state()
    assert torch.equal(log_prob_min_by_draws(mean, cov), first)
    assert torch.equal(torch.get_rng_state(), before)
    assert np.isfinite(first.numpy()).all()
