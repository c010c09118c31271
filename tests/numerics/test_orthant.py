"""Orthants: tilted distributions, the response of the posterior to its sites, and fitted sites."""

import pytest
import torch

from botorch_costly.numerics import ep
from botorch_costly.numerics.ep import log_prob_min, minimum
from botorch_costly.numerics.orthant import Orthants, Sites, matching, posterior_of
from botorch_costly.numerics.orthant_correction import Solution
from botorch_costly.numerics.orthant_response import response_of, standardized, tilted_of
from botorch_costly.numerics.orthant_sites import fitted_sites

NUMBERS = {"dtype": torch.float64}


def orthants_of(problems=3, n=6, seed=0, width=1e-3):
    generator = torch.Generator().manual_seed(seed)
    factor = torch.randn(problems, n, n + 1, generator=generator, **NUMBERS) / n**0.5
    mean = 0.5 * torch.randn(problems, n, generator=generator, **NUMBERS)
    return Orthants(factor, mean, torch.full((problems, n), width, **NUMBERS))


def squeezed(problems=40, n=12, seed=0):
    """Orthants of the points of smooth functions: neighbours squeeze a point in between."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(problems, n, 1, generator=generator, **NUMBERS)
    covs = torch.exp(-0.5 * (torch.cdist(X, X) / 0.4).square())
    return 0.02 * torch.randn(problems, n, generator=generator, **NUMBERS), covs


@pytest.mark.parametrize("z", [-60.0, -8.0, -1.0, 0.0, 2.0, 5.0])
@pytest.mark.parametrize("width", [1e-9, 0.3])
def test_tilted_cumulants_are_those_of_the_density(z, width):
    """Of a normal times a normal's distribution function, beside sums over a fine grid."""
    c = torch.tensor(0.7, **NUMBERS)
    mean = z * (c + width).sqrt()
    none = torch.zeros(1, 1, **NUMBERS)
    wide = torch.full((1, 1), width, **NUMBERS)
    tilted = tilted_of(Sites(none, none), mean.reshape(1, 1), c.reshape(1, 1), wide)
    middle, sd = tilted.mean.item(), tilted.variance.sqrt().item()
    low = max(middle - 30 * sd, 0.0) if width < 1e-6 else middle - 30 * sd  # the step is at 0
    v = torch.linspace(low, middle + 40 * sd, 400_001, **NUMBERS)
    log_weight = -0.5 * (v - mean).square() / c + torch.special.log_ndtr(v / width**0.5)
    p = log_weight.softmax(0)
    expected = p @ v
    variance = p @ (v - expected).square()
    third, fourth, fifth = (p @ ((v - expected) / variance.sqrt()) ** k for k in (3, 4, 5))
    loose = 1e-2 if z < -30 else 3e-4  # the grid, and the exponential limit
    assert tilted.mean.item() == pytest.approx(expected.item(), rel=loose)
    assert tilted.variance.item() == pytest.approx(variance.item(), rel=2 * loose)
    assert tilted.k3.item() == pytest.approx(third.item(), abs=2 * loose)
    assert tilted.k4.item() == pytest.approx(fourth.item() - 3, abs=8 * loose)
    if z > -30:  # beyond, most digits of the fifth are lost
        assert tilted.k5.item() == pytest.approx((fifth - 10 * third).item(), abs=40 * loose)
    assert (tilted.k3 * tilted.ratio).item() == pytest.approx(tilted.k4.item(), abs=1e-12)


def test_the_response_solves_the_system_of_twice_the_size():
    orthants = orthants_of()
    sites = fitted_sites(orthants)
    posterior = standardized(orthants, sites, posterior_of(orthants, sites))
    n = orthants.mean.shape[-1]
    K = torch.zeros(3, 2 * n, 2 * n, **NUMBERS)
    K[:, :n, :n], K[:, n:, n:] = posterior.R, 2 * posterior.R.square()
    k3, k4 = posterior.tilted.k3, posterior.tilted.k4
    W = torch.zeros(3, 2 * n, 2 * n, **NUMBERS)
    for b in range(3):
        for i in range(n):
            S = torch.tensor([[1.0, k3[b, i]], [k3[b, i], 2 + k4[b, i]]], **NUMBERS)
            block = torch.linalg.inv(S) - torch.diag(torch.tensor([1.0, 0.5], **NUMBERS))
            W[b][[i, i, n + i, n + i], [i, n + i, i, n + i]] = block.flatten()
    right = torch.randn(3, 2 * n, generator=torch.Generator().manual_seed(1), **NUMBERS)
    dense = torch.linalg.solve(torch.eye(2 * n, **NUMBERS) + W @ K, right)
    s, twice, moved = response_of(posterior).solve(right[:, :n], right[:, n:])
    torch.testing.assert_close(torch.cat([s, 0.5 * twice], -1), dense, rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(moved, (K @ dense.unsqueeze(-1)).squeeze(-1)[:, :n])


def error_of(orthants, sites):
    """How far sites are from those that match, relative to their size."""
    belief = posterior_of(orthants, sites)
    after = matching(sites, belief.mean, belief.variance, orthants.width)
    errors = [(a - b).abs() / (1 + b.abs()) for a, b in zip(after, sites, strict=True)]
    return torch.cat(errors, -1).amax(-1)


def test_sites_match_after_few_factorizations(monkeypatch):
    """Also where neighbours squeeze a value and its site's precision grows a thousandfold."""
    means, covs = squeezed()
    orthants = ep._posed(means, covs).orthants
    swept = []

    def counted(orthants, sites):
        swept.append(len(sites.tau))
        return posterior_of(orthants, sites)

    monkeypatch.setattr("botorch_costly.numerics.orthant_sites.posterior_of", counted)
    sites = fitted_sites(orthants)
    assert error_of(orthants, sites).max() < 0.05
    assert error_of(orthants, sites).median() < 1e-3
    assert sites.tau.max() > 1e3
    assert sum(swept) < 13 * len(orthants.mean)
    assert len(swept) < 60


def test_errors_of_sites_hardly_change_probabilities(monkeypatch):
    means, covs = squeezed()
    rough = log_prob_min(means, covs).exp()
    monkeypatch.setattr("botorch_costly.numerics.orthant_sites._NEAR", 1e-6)
    monkeypatch.setattr("botorch_costly.numerics.orthant_sites._ROUGH", 0.02)
    exact = log_prob_min(means, covs).exp()
    variation = 0.5 * (rough - exact).abs().sum(-1)
    assert variation.mean() < 2e-4
    assert variation.max() < 2e-3


def test_which_of_several_lines_is_lowest():
    """``f_i = m_i + a_i g``: components are opposite or equal, and many contradict each other."""
    generator = torch.Generator().manual_seed(2)
    slope = torch.randn(200, 6, generator=generator, **NUMBERS)
    near = 0.5 * 10 ** (-2 * torch.rand(200, 1, generator=generator, **NUMBERS))
    mean = near * torch.randn(200, 6, generator=generator, **NUMBERS)
    g = torch.special.ndtri((torch.arange(8000, **NUMBERS) + 0.5) / 8000)
    lowest = (mean.unsqueeze(-1) + slope.unsqueeze(-1) * g).argmin(-2)
    exact = torch.nn.functional.one_hot(lowest, 6).double().mean(-2)
    actual = log_prob_min(mean, slope.unsqueeze(-1) * slope.unsqueeze(-2)).exp()
    variation = 0.5 * (actual - exact).abs().sum(-1)
    assert variation.mean() < 0.012
    assert variation.max() < 0.06
    assert (actual * (exact == 0)).max() < 4e-4  # a line that is nowhere the lowest


def test_contradictions_by_thousands_of_deviations_have_no_probability():
    """Problems of any scale and rank: without a ceiling, one in eight has a wrong smallest value."""
    generator = torch.Generator().manual_seed(0)
    root = torch.randn(400, 5, 5, generator=generator, **NUMBERS)
    rank = torch.randint(0, 6, (400, 1, 1), generator=generator)
    root = root * (torch.arange(5) < rank)
    root = root * 10 ** (6 * torch.rand(400, 1, 1, generator=generator, **NUMBERS) - 3)
    mean = torch.randn(400, 5, generator=generator, **NUMBERS)
    mean = mean * 10 ** (12 * torch.rand(400, 1, generator=generator, **NUMBERS) - 6)
    draws = root @ torch.randn(400, 5, 3000, generator=generator, **NUMBERS)
    smallest = (draws + mean.unsqueeze(-1)).argmin(-2)
    truth = torch.nn.functional.one_hot(smallest, 5).double().mean(-2)
    variation = 0.5 * (log_prob_min(mean, root @ root.mT).exp() - truth).abs().sum(-1)
    assert variation.max() < 0.1
    assert variation.mean() < 0.02


def test_derivatives_in_chunks_are_those_at_once(monkeypatch):
    means, covs = squeezed(problems=5, n=6)
    weight = torch.linspace(-1, 1, 30, **NUMBERS).reshape(5, 6)

    def derivatives():
        leaves = means.clone().requires_grad_(), covs.clone().requires_grad_()
        total = (weight * log_prob_min(*leaves).exp()).sum()
        once = torch.autograd.grad(total, leaves, retain_graph=True)
        again = torch.autograd.grad(total, leaves)
        for first, second in zip(once, again, strict=True):
            assert torch.equal(first, second)
        return once

    together = derivatives()
    monkeypatch.setitem(ep._AT_ONCE, "cpu", 2 * 6**3)
    for first, second in zip(together, derivatives(), strict=True):
        torch.testing.assert_close(first, second, rtol=1e-6, atol=1e-8)


def test_pull_and_loss_are_those_of_the_differences():
    means, covs = squeezed(problems=1, n=5)
    least = minimum(means, covs)
    problem = ep._posed(means, covs)
    solution = Solution(problem.orthants, fitted_sites(problem.orthants))
    for j in range(5):
        D = torch.eye(5, **NUMBERS)
        D[:, j] -= 1
        D = D * problem.scale[j].unsqueeze(-1)
        torch.testing.assert_close(least.pull[0, j], D.T @ solution.pull[j])
        torch.testing.assert_close(least.loss[0, j], D.T @ solution.loss[j] @ D)


def test_certain_components_change_nothing():
    """A component without variance, far on the positive side, is that of a point and itself."""
    orthants = orthants_of(problems=1)
    alone = Solution(orthants, fitted_sites(orthants))
    grown = Orthants(
        torch.cat([orthants.factor, torch.zeros_like(orthants.factor[:, :1])], -2),
        torch.cat([orthants.mean, torch.full((1, 1), 40.0, **NUMBERS)], -1),
        torch.cat([orthants.width, torch.ones(1, 1, **NUMBERS)], -1),
    )
    beside = Solution(grown, fitted_sites(grown))
    expected, actual = alone.log_probability(), beside.log_probability()
    assert actual.item() == pytest.approx(expected.item(), abs=1e-9)
    first, second = alone.derivatives(), beside.derivatives()
    torch.testing.assert_close(second.shift[:, :-1], first.shift, rtol=1e-8, atol=1e-10)
    assert second.unit[0, -1].item() == 0.0
