"""The log evidence against loops, finite differences, GPyTorch and its own batches."""

import math

import pytest
import torch
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.mlls import ExactMarginalLogLikelihood

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from botorch_costly.models import TimeVaryingGP
from botorch_costly.models.fitting import priors_and_bounds
from botorch_costly.models.time_varying import default_space_kernel
from botorch_costly.numerics.evidence import average_information, log_evidence, prepare
from botorch_costly.numerics.hyperprior import log_prior
from botorch_costly.numerics.radial import SCALED, SMOOTHNESS
from tests.oracles import evidence as oracle

LEARNT = [True, False]
RATE = 0.03


def rows_of(n, dim, seed=0, batch=()):
    """Draw configurations, queries now and then, and rewards; one configuration comes twice."""
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.rand(*batch, n, dim + 1, generator=generator, dtype=torch.float64)
    inputs[..., -1] = (40 * inputs[..., -1]).floor()
    inputs[..., 1, :-1] = inputs[..., 0, :-1]
    return inputs, torch.randn(*batch, n, generator=generator, dtype=torch.float64)


def theta_of(dim, learnt, shape=(), seed=1):
    generator = torch.Generator().manual_seed(seed)
    theta = 0.4 * torch.randn(*shape, dim + 3, generator=generator, dtype=torch.float64)
    theta += torch.tensor([math.log(0.4)] * dim + [0.3, math.log(0.1), math.log(0.03)])
    return theta if learnt else theta[..., :-1]


def rows_and_theta(n, dim, learnt, seed=0):
    inputs, y = rows_of(n, dim, seed)
    rate = None if learnt else torch.tensor(RATE, dtype=torch.float64)
    return inputs, y, prepare(inputs, y, rate), theta_of(dim, learnt, seed=seed + 1)


def words(theta, dim):
    """Return theta as plain lengthscales, variance, noise and rate."""
    values = theta.exp()
    rate = -math.expm1(-values[-1]) if len(theta) > dim + 2 else RATE
    return values[:dim], values[dim].item(), values[dim + 1].item(), rate


# -- value and gradient ---------------------------------------------------------------------------


@pytest.mark.parametrize("family", SCALED)
@pytest.mark.parametrize("learnt", LEARNT)
def test_it_is_the_dense_formula(family, learnt):
    for dim in (1, 3):
        inputs, y, rows, theta = rows_and_theta(9, dim, learnt)
        expected = oracle.log_evidence(family, inputs, y, *words(theta, dim))
        value, _ = log_evidence(family, rows, theta)
        assert value.item() == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("family", SCALED)
@pytest.mark.parametrize("learnt", LEARNT)
def test_its_gradient_is_its_finite_difference(family, learnt):
    for dim in (1, 4):
        _, _, rows, theta = rows_and_theta(25, dim, learnt)
        _, gradient = log_evidence(family, rows, theta)
        expected = oracle.differences(lambda at: log_evidence(family, rows, at)[0], theta, 1e-4)  # noqa: B023
        torch.testing.assert_close(gradient, expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("family", SMOOTHNESS)
@pytest.mark.parametrize("dim", [1, 4])
@pytest.mark.parametrize("learnt", LEARNT)
def test_with_the_priors_it_is_gpytorchs_objective(family, dim, learnt):
    """Value and gradient of n times the marginal log likelihood, through its raw parameters.

    GPyTorch has distances of 1e-8 to 1e-7, the root of rounding, where they are 0, which the kink of
    Matérn-1/2 lets through: so its comparison is coarser, and has not the configuration that comes twice.
    """
    inputs, y, _, theta = rows_and_theta(40, dim, learnt)
    inputs, y = inputs[1:], y[1:]
    rows = prepare(inputs, y, None if learnt else torch.tensor(RATE, dtype=torch.float64))
    lengthscale, outputscale, noise, rate = words(theta, dim)
    space = default_space_kernel(dim, torch.Size())
    space.base_kernel.nu = SMOOTHNESS[family]
    model = TimeVaryingGP(
        inputs,
        y.unsqueeze(-1),
        forgetting=None if learnt else rate,
        space_kernel=space,
        likelihood=GaussianLikelihood(),
        outcome_transform=None,
    ).to(inputs)
    space.base_kernel.lengthscale, space.outputscale = lengthscale, theta[dim].exp()
    model.likelihood.noise, model.time_kernel.forgetting = theta[dim + 1].exp(), rate
    mll = ExactMarginalLogLikelihood(model.likelihood, model)
    expected = len(y) * mll(model(*model.train_inputs), model.train_targets)
    expected.backward()

    value, gradient = log_evidence(family, rows, theta)
    prior = log_prior(priors_and_bounds(dim)[0], theta, dim)
    close = 1e-5 if family == "matern12" else 1e-8
    torch.testing.assert_close(value + prior.value, expected.detach(), rtol=close, atol=0)

    raws = [space.base_kernel.raw_lengthscale, space.raw_outputscale]
    raws.append(model.likelihood.noise_covar.raw_noise)
    values = [lengthscale, outputscale, noise]
    slopes = [torch.sigmoid(raw.detach()).flatten() for raw in raws]  # of the softplus
    if learnt:  # d rate / d raw = rate (1 - rate), d log lam / d rate = 1 / (lam (1 - rate))
        raws.append(model.time_kernel.raw_forgetting)
        values.append(theta[-1].exp().item())
        slopes.append(torch.full((1,), rate, dtype=torch.float64))
    chain = torch.cat([slope / value for slope, value in zip(slopes, values, strict=True)])
    theirs = torch.cat([raw.grad.flatten() for raw in raws])
    ours = (gradient + prior.gradient) * chain
    torch.testing.assert_close(ours, theirs, rtol=close, atol=close * theirs.abs().max().item())


def test_gradients_survive_near_and_equal_points():
    """And inputs far from the origin, from which the differences of squares would not recover."""
    for family in SCALED:
        inputs, y = rows_of(20, 2)
        inputs[2, :2] = inputs[3, :2] + 1e-12
        theta = theta_of(2, True)
        _, gradient = log_evidence(family, prepare(inputs, y), theta)
        moved = inputs + torch.tensor([1e3, -1e3, 0.0], dtype=torch.float64)
        _, far = log_evidence(family, prepare(moved, y), theta)
        torch.testing.assert_close(far, gradient, rtol=1e-8, atol=1e-7)


# -- the average information ----------------------------------------------------------------------


@pytest.mark.parametrize("family", SCALED)
@pytest.mark.parametrize("learnt", LEARNT)
def test_average_information_is_its_definition(family, learnt):
    dim = 2
    inputs, y, rows, theta = rows_and_theta(8, dim, learnt)
    value, gradient, information = average_information(family, rows, theta)

    def noisy(at):
        return torch.stack(
            [
                oracle.noisy_covariance(family, inputs, *words(row, dim))
                for row in at.reshape(-1, len(theta))
            ]
        ).squeeze(0)

    derivatives = oracle.differences(noisy, theta, 1e-3).movedim(-1, 0)
    expected = oracle.average_information(derivatives, noisy(theta), y)
    torch.testing.assert_close(information, expected, rtol=1e-8, atol=1e-8)
    same = log_evidence(family, rows, theta)
    assert torch.equal(value, same[0])
    assert torch.equal(gradient, same[1])


def test_average_information_is_in_expectation_the_curvature():
    """Over rewards drawn from the model itself, of which the evidence is that of the truth."""
    inputs, _ = rows_of(30, 2)
    theta = theta_of(2, True)
    noisy = oracle.noisy_covariance("matern52", inputs, *words(theta, 2))
    generator = torch.Generator().manual_seed(5)
    normal = torch.randn(1000, 30, generator=generator, dtype=torch.float64)
    y = normal @ torch.linalg.cholesky(noisy).mT
    rows = prepare(inputs.expand(1000, -1, -1), y)
    average = average_information("matern52", rows, theta)[2].mean(0)

    def slopes(at):
        return log_evidence("matern52", rows, at)[1].mean(0)

    curvature = -oracle.differences(slopes, theta, 1e-3)
    scale = curvature.diagonal().sqrt()
    torch.testing.assert_close(average / scale / scale[:, None], curvature / scale / scale[:, None],
                               rtol=0, atol=0.03)  # fmt: skip


# -- batches, failures, errors --------------------------------------------------------------------


@pytest.mark.parametrize("learnt", LEARNT)
@pytest.mark.parametrize("evaluate", [log_evidence, average_information])
def test_a_batch_of_trials_and_restarts_is_a_loop(learnt, evaluate):
    inputs, y = rows_of(12, 2, batch=(3, 1))
    rates = None if learnt else torch.tensor([[0.0], [0.1], [1.0]], dtype=torch.float64)
    theta = theta_of(2, learnt, (3, 4))
    together = evaluate("matern32", prepare(inputs, y, rates), theta)
    for i in range(3):
        rows = prepare(inputs[i, 0], y[i, 0], None if learnt else rates[i, 0])
        for j in range(4):
            for block, alone in zip(together, evaluate("matern32", rows, theta[i, j]), strict=True):
                torch.testing.assert_close(block[i, j], alone, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("entry", [-1e3, 1e3, torch.nan, torch.inf, -torch.inf])
def test_a_failed_problem_does_not_affect_the_batch(entry):
    """No noise at all where two rows are one, and numbers that overflow, vanish or are none."""
    inputs, y = rows_of(12, 2)
    inputs[1] = inputs[0]
    rows, good = prepare(inputs, y), theta_of(2, True)
    for column in range(5):
        bad = good.clone()
        bad[column] = entry
        value, gradient, information = average_information(
            "matern52", rows, torch.stack([bad, good])
        )
        alone = average_information("matern52", rows, good)
        assert value[0] == -torch.inf or bool(value[0].isfinite())
        assert bool(gradient.isfinite().all())
        assert not bool(value[0].isfinite()) or bool(information[0].isfinite().all())
        for block, expected in zip((value, gradient, information), alone, strict=True):
            torch.testing.assert_close(block[1], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("family", SCALED)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("log_noise", [-torch.inf, -1e3, -40.0])
def test_matrices_within_rounding_of_singular_are_singular(family, seed, log_noise):
    """Two rows are one, and the noise at most a rounding error: some processors would factorize it."""
    inputs, y = rows_of(12, 2, seed=seed)
    inputs[1] = inputs[0]
    theta = theta_of(2, True)
    theta[3] = log_noise
    value, gradient = log_evidence(family, prepare(inputs, y), theta)
    assert value == -torch.inf
    assert bool((gradient == 0).all())


@pytest.mark.parametrize("family", SCALED)
def test_a_little_noise_is_enough(family):
    inputs, y = rows_of(12, 2)
    inputs[1] = inputs[0]
    theta = theta_of(2, True)
    theta[3] = math.log(1e-10)
    value, gradient = log_evidence(family, prepare(inputs, y), theta)
    assert bool(value.isfinite())
    assert bool((gradient != 0).any())


def test_one_row_is_enough():
    inputs, y = rows_of(2, 1)
    rows, theta = prepare(inputs[:1], y[:1]), theta_of(1, True)
    expected = oracle.log_evidence("rbf", inputs[:1], y[:1], *words(theta, 1))
    assert log_evidence("rbf", rows, theta)[0].item() == pytest.approx(expected, rel=1e-12)


def test_nothing_is_recorded_for_autograd():
    _, _, rows, theta = rows_and_theta(6, 1, True)
    value, gradient = log_evidence("rbf", rows, theta.requires_grad_())
    assert not value.requires_grad
    assert not gradient.requires_grad


X, Y = rows_of(5, 2)


@pytest.mark.parametrize(
    ("arguments", "error", "name"),
    [
        ((X.float(), Y), InvalidShapeError, "inputs: Expected a float64 tensor"),
        ((X, Y.float()), InvalidShapeError, "y: Expected a float64 tensor"),
        ((X, Y, torch.tensor(0.1)), InvalidShapeError, "forgetting: Expected a float64 tensor"),
        ((X[:, :1], Y), InvalidShapeError, "inputs: Expected n >= 1 rows"),
        ((X[:0], Y[:0]), InvalidShapeError, "inputs: Expected n >= 1 rows"),
        ((X[0], Y), InvalidShapeError, "inputs: Expected n >= 1 rows"),
        ((X, Y[:4]), InvalidShapeError, "y: Expected shape"),
        ((X * torch.nan, Y), InvalidArgumentError, "inputs: Expected finite"),
        ((X, Y / 0), InvalidArgumentError, "y: Expected finite"),
        ((X, Y, torch.tensor(1.1).double()), InvalidArgumentError, "forgetting: Expected rates"),
        ((X, Y, torch.zeros(2).double()), InvalidShapeError, "forgetting: Expected shape"),
    ],
)
def test_bad_rows_are_named(arguments, error, name):
    with pytest.raises(error, match=name):
        prepare(*arguments)


def test_bad_unknowns_are_named():
    rows, theta = prepare(X, Y), theta_of(2, True)
    with pytest.raises(InvalidShapeError, match="theta: Expected 5 entries"):
        log_evidence("rbf", rows, theta[:-1])
    with pytest.raises(InvalidShapeError, match="theta: Expected a float64 tensor"):
        log_evidence("rbf", rows, theta.float())
    with pytest.raises(InvalidArgumentError, match=r"family: Expected one of .*Received 'arms'"):
        log_evidence("arms", rows, theta)
