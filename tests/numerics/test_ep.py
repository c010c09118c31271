"""Probabilities that each of several Gaussian values is the smallest."""

import pytest
import torch
from botorch.utils.probability.mvnxpb import MVNXPB

from botorch_costly.errors import InvalidShapeError, NumericalError
from botorch_costly.numerics.ep import log_prob_min, minimum
from tests.cases import quick
from tests.oracles import ep as oracle

NUMBERS = {"dtype": torch.float64}


def matern(a, b, lengthscale):
    s = 5**0.5 * torch.cdist(a, b) / lengthscale
    return (1 + s + s.square() / 3) * torch.exp(-s)


def problem_of(kind, points, seed):
    """A mean and a covariance of one of four kinds, the last two nearly singular."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(points, 1 + seed % 2, generator=generator, **NUMBERS)
    if kind == "wishart":
        root = torch.randn(points, points + 2, generator=generator, **NUMBERS)
        mean = 0.5 * torch.randn(points, generator=generator, **NUMBERS)
        return mean, root @ root.T / points
    if kind == "prior":
        return torch.zeros(points, **NUMBERS), matern(X, X, 0.3)
    if kind == "smooth":
        return 0.5 * X[:, 0], torch.exp(-0.5 * (torch.cdist(X, X) / 0.8).square())
    inputs = torch.rand(6, X.shape[1], generator=generator, **NUMBERS)
    K = matern(inputs, inputs, 0.3) + 1e-3 * torch.eye(6, **NUMBERS)
    y = torch.linalg.cholesky(K) @ torch.randn(6, generator=generator, **NUMBERS)
    weights = torch.linalg.solve(K, matern(inputs, X, 0.3))
    return weights.T @ y, matern(X, X, 0.3) - weights.T @ matern(inputs, X, 0.3)


KINDS = ("wishart", "prior", "smooth", "posterior")


def variation(p, q):
    return 0.5 * (p - q).abs().sum(-1).item()


@pytest.mark.parametrize("points", quick([3, 6], 3))
def test_it_is_one_site_after_another(points):
    for seed in range(2):
        mean, cov = problem_of("wishart", points, seed)
        actual = log_prob_min(mean, cov, corrected=False)
        torch.testing.assert_close(actual, oracle.log_prob_min(mean, cov), rtol=0, atol=1e-6)


def test_of_two_values_it_is_the_closed_form():
    mean = torch.tensor([0.3, -0.4], **NUMBERS)
    cov = torch.tensor([[1.0, 0.6], [0.6, 2.0]], **NUMBERS)
    first = torch.special.ndtr((mean[1] - mean[0]) / (1.0 + 2.0 - 1.2) ** 0.5)
    actual = log_prob_min(mean, cov).exp()
    torch.testing.assert_close(actual, torch.stack([first, 1 - first]), atol=1e-7, rtol=0)


@pytest.mark.parametrize(
    ("points", "bound", "mean_bound"),
    quick([(5, 0.015, 0.006), (25, 0.02, 0.01)], (5, 0.015, 0.006)),
)
def test_probabilities_are_close_to_draws_and_the_correction_helps(points, bound, mean_bound):
    generator = torch.Generator().manual_seed(0)
    errors, plain = [], []
    for kind in KINDS:
        for seed in range(3):
            mean, cov = problem_of(kind, points, seed)
            truth = oracle.drawn_prob_min(mean, cov, 400_000, generator)
            errors.append(variation(log_prob_min(mean, cov).exp(), truth))
            plain.append(variation(log_prob_min(mean, cov, corrected=False).exp(), truth))
    assert max(errors) < bound
    assert sum(errors) / len(errors) < mean_bound
    assert sum(errors) < 0.7 * sum(plain)


def test_a_third_opinion_agrees():
    mean, cov = problem_of("wishart", 5, 1)
    theirs = torch.empty(5, **NUMBERS)
    for j in range(5):
        D = torch.eye(5, **NUMBERS)
        D[:, j] -= 1
        D = D[[i for i in range(5) if i != j]]
        bounds = torch.stack([-D @ mean, torch.full((4,), torch.inf, **NUMBERS)], -1)
        theirs[j] = MVNXPB(D @ cov @ D.T, bounds).solve().exp()
    assert variation(log_prob_min(mean, cov).exp(), theirs / theirs.sum()) < 0.02


@pytest.mark.parametrize("corrected", [True, False])
@pytest.mark.parametrize("kind", ["wishart", "posterior"])
def test_derivatives_are_finite_differences(kind, corrected):
    mean, cov = problem_of(kind, 6, 2)
    weight = torch.linspace(-1, 1, 6, **NUMBERS)

    def value(mean, cov):
        return (weight * log_prob_min(mean, cov, corrected=corrected).exp()).sum()

    mean, cov = mean.requires_grad_(), cov.requires_grad_()
    by_mean, by_cov = torch.autograd.grad(value(mean, cov), (mean, cov))
    generator = torch.Generator().manual_seed(1)
    for _ in range(4):
        to = torch.randn(6, generator=generator, **NUMBERS)
        step = 1e-4
        difference = value(mean + step * to, cov) - value(mean - step * to, cov)
        assert difference.item() / (2 * step) == pytest.approx(float(by_mean @ to), abs=1e-4)
        values, vectors = torch.linalg.eigh(cov.detach())
        root = vectors * values.clamp_min(0).sqrt()
        middle = torch.randn(6, 6, generator=generator, **NUMBERS)
        to = root @ (middle + middle.T) @ root.T  # so that no change is large beside the covariance
        difference = value(mean, cov + step * to) - value(mean, cov - step * to)
        assert difference.item() / (2 * step) == pytest.approx(float((by_cov * to).sum()), abs=1e-4)


def test_gradcheck_of_both_arguments():
    generator = torch.Generator().manual_seed(3)
    mean = torch.randn(2, 4, generator=generator, **NUMBERS).requires_grad_()
    root = torch.randn(2, 4, 4, generator=generator, **NUMBERS).requires_grad_()
    for corrected in (True, False):
        assert torch.autograd.gradcheck(
            lambda mean, root, corrected=corrected: log_prob_min(
                mean, root @ root.mT, corrected=corrected
            ),
            (mean, root),
            eps=1e-4,
            atol=1e-4,
            rtol=1e-3,
        )


def test_a_common_component_changes_nothing(generator):
    mean, cov = problem_of("wishart", 7, 0)
    actual = log_prob_min(mean, cov)
    shared = log_prob_min(mean + 3.0, cov + 2.0)
    torch.testing.assert_close(shared, actual, rtol=0, atol=1e-5)
    scaled = log_prob_min(1e4 * mean, 1e8 * cov)
    torch.testing.assert_close(scaled, actual, rtol=0, atol=1e-5)
    order = torch.randperm(7)
    torch.testing.assert_close(
        log_prob_min(mean[order], cov[order][:, order]), actual[order], rtol=0, atol=1e-5
    )


def test_a_batch_is_a_loop():
    problems = [problem_of(kind, 6, seed) for kind in KINDS for seed in range(2)]
    means = torch.stack([mean for mean, _ in problems]).reshape(4, 2, 6)
    covs = torch.stack([cov for _, cov in problems]).reshape(4, 2, 6, 6)
    actual = log_prob_min(means, covs)
    least = minimum(means, covs)
    torch.testing.assert_close(least.log_prob, actual)
    for at, (mean, cov) in enumerate(problems):
        alone = log_prob_min(mean, cov)
        torch.testing.assert_close(actual.reshape(8, 6)[at], alone, rtol=0, atol=1e-4)
    broadcast = log_prob_min(means, covs[0, 0])
    torch.testing.assert_close(
        broadcast[1, 1], log_prob_min(means[1, 1], covs[0, 0]), atol=1e-4, rtol=0
    )


def test_moments_given_the_smallest_match_draws():
    """Of what was drawn, those draws are kept in which a point is the smallest."""
    mean, cov = problem_of("wishart", 6, 5)  # of the last value too, which is not compared
    least = minimum(mean[:5], cov[:5, :5])
    c, alone = cov[:5, 5], cov[5, 5]
    generator = torch.Generator().manual_seed(0)
    root = torch.linalg.cholesky(cov)
    draws = torch.randn(400_000, 6, generator=generator, **NUMBERS) @ root.T + mean
    smallest = draws[:, :5].argmin(-1)
    for j in range(5):
        kept = draws[smallest == j, 5]
        expected = (mean[5] + c @ least.pull[j]).item()
        assert expected == pytest.approx(kept.mean().item(), abs=0.03)
        variance = (alone - c @ least.loss[j] @ c).item()
        assert variance == pytest.approx(kept.var().item(), rel=0.05)


@pytest.mark.parametrize("corrected", [True, False])
def test_no_number_is_ever_nan(corrected):
    generator = torch.Generator().manual_seed(0)
    k = 500
    root = torch.randn(k, 5, 5, generator=generator, **NUMBERS)
    rank = torch.randint(0, 6, (k, 1, 1), generator=generator)
    root = root * (torch.arange(5) < rank)
    cov = root @ root.mT * 10 ** (12 * torch.rand(k, 1, 1, generator=generator, **NUMBERS) - 6)
    cov[::4, 1], cov[::4, :, 1] = cov[::4, 0], cov[::4, :, 0]  # not even symmetric
    mean = torch.randn(k, 5, generator=generator, **NUMBERS)
    mean = mean * 10 ** (12 * torch.rand(k, 1, generator=generator, **NUMBERS) - 6)
    mean, cov = mean.requires_grad_(), cov.requires_grad_()
    actual = log_prob_min(mean, cov, corrected=corrected)
    assert actual.isfinite().all()
    torch.testing.assert_close(actual.logsumexp(-1), torch.zeros(k, **NUMBERS), atol=1e-9, rtol=0)
    actual.exp().square().sum().backward()
    assert mean.grad.isfinite().all()
    assert cov.grad.isfinite().all()


def test_duplicates_share_and_without_variance_the_mean_decides():
    mean, cov = torch.tensor([0.0, 0.0, 1.0], **NUMBERS), torch.eye(3, **NUMBERS)
    cov[0, 1] = cov[1, 0] = 1.0
    p = log_prob_min(mean, cov).exp()
    assert p[0].item() == pytest.approx(p[1].item(), abs=1e-6)
    assert p[0].item() == pytest.approx(0.5 * 0.7602, abs=0.03)
    certain = log_prob_min(mean[1:], torch.zeros(2, 2, **NUMBERS)).exp()
    torch.testing.assert_close(certain, torch.tensor([1.0, 0.0], **NUMBERS))
    equal = log_prob_min(torch.zeros(4, **NUMBERS), torch.zeros(4, 4, **NUMBERS)).exp()
    torch.testing.assert_close(equal, torch.full((4,), 0.25, **NUMBERS))
    alone = log_prob_min(torch.zeros(2, 1, **NUMBERS), torch.ones(2, 1, 1, **NUMBERS))
    assert torch.equal(alone, torch.zeros(2, 1, **NUMBERS))


def test_dtype_and_device_are_kept(tkwargs):
    mean, cov = torch.tensor([0.0, 1.0], **tkwargs), torch.eye(2, **tkwargs)
    actual = log_prob_min(mean, cov)
    assert actual.dtype == tkwargs["dtype"]
    assert actual.device.type == tkwargs["device"].type
    assert actual.exp()[0].item() == pytest.approx(0.7602, abs=1e-4)


@pytest.mark.parametrize("function", [log_prob_min, minimum])
def test_invalid_arguments_are_refused(function):
    mean, cov = torch.zeros(3), torch.eye(3)
    for shape in ((mean, torch.eye(4)), (mean, torch.zeros(3)), (torch.tensor(0.0), cov)):
        with pytest.raises(InvalidShapeError, match="Expected a mean"):
            function(*shape)
    with pytest.raises(NumericalError, match="finite"):
        function(mean * torch.nan, cov)
    with pytest.raises(NumericalError, match="finite"):
        function(mean, cov / 0)
