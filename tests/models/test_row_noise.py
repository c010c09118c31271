"""Rewards with variances of their own: all models and fits are the dense twin, row by row."""

import copy
import io
import math

import pytest
import torch

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError, NumericalError
from botorch_costly.models import StreamingGP, TimeVaryingGP, streaming
from botorch_costly.models.fitting import Hyperparameters, fit
from botorch_costly.numerics.evidence import average_information, log_evidence, prepare
from botorch_costly.numerics.stationary import Stationary
from tests.oracles import dense_gp, evidence as oracle

NOISE, LENGTHSCALE, OUTPUTSCALE, NOW = 0.05, 0.3, 1.7, 31.0
CENTER, SCALE = 30.0, 2.0
EXACT = {"rtol": 1e-8, "atol": 1e-8}


@pytest.fixture(params=[0.0, 0.01, 0.3], ids=lambda rate: f"forgetting={rate}")
def rate(request):
    return request.param


def rows(n=14, seed=3):
    """Rows [x1, x2, round], targets, and variances in prior units, a third of which are 0."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(n, 3, generator=generator, dtype=torch.float64)
    X[:, -1] = torch.randperm(30, generator=generator)[:n].double()
    y = torch.randn(n, generator=generator, dtype=torch.float64)
    variances = torch.rand(n, generator=generator, dtype=torch.float64).mul(2).exp() - 1
    variances[::3] = 0.0
    return X, y, variances


def asked(n=9):
    X = torch.rand(n, 3, generator=torch.Generator().manual_seed(8), dtype=torch.float64)
    X[:, -1] = NOW
    return X


def twin(X, y, noises, rate, points):
    """The oracle's posterior in prior units."""
    sides = [(X, X), (points, X), (points, points)]
    covs = [dense_gp.matern(a[:, :-1], b[:, :-1], LENGTHSCALE, OUTPUTSCALE) for a, b in sides]
    mean, cov, _ = dense_gp.posterior(
        covs[0], X[:, -1].tolist(), y, noises.tolist(), *covs[1:], NOW, rate
    )
    return mean, cov


def belief(rate, **options):
    lengthscale = torch.tensor([LENGTHSCALE], dtype=torch.float64)
    kernel = Stationary("matern52", lengthscale, torch.tensor(OUTPUTSCALE, dtype=torch.float64))
    return StreamingGP(kernel, rate, NOISE, **{"tolerance": 1e-12, **options})


def told(model, X, rewards, variances):
    for x, reward, variance in zip(X, rewards.tolist(), variances.tolist(), strict=True):
        model.observe(x, reward, variance)
    return model


def assert_is(model, expected, center=0.0, scale=1.0):
    mean, cov = model.mean_and_covariance(asked())
    torch.testing.assert_close(mean, center + scale * expected[0], **EXACT)
    torch.testing.assert_close(cov, scale**2 * expected[1], **EXACT)


# -- the posterior --------------------------------------------------------------------------------


def test_the_streaming_posterior_is_the_dense_twin(rate):
    X, y, variances = rows()
    model = belief(rate)
    model.rescale(CENTER, SCALE)
    told(model, X, CENTER + SCALE * y, SCALE**2 * variances)
    expected = twin(X, y, NOISE + variances, rate, asked())
    assert_is(model, expected, CENTER, SCALE)
    torch.testing.assert_close(model.extra_noise, variances)
    mean, variance = model.in_round(asked()[:, :-1], NOW)  # the closed form
    torch.testing.assert_close(mean, CENTER + SCALE * expected[0], **EXACT)
    torch.testing.assert_close(variance, SCALE**2 * expected[1].diagonal(), **EXACT)


def test_the_batch_posterior_is_the_dense_twin(rate):
    X, y, variances = rows()
    model = TimeVaryingGP(
        X, y[:, None], (NOISE + variances)[:, None], forgetting=rate, outcome_transform=None
    ).double()
    model.time_kernel.forgetting = rate
    model.space_kernel.outputscale = torch.tensor(OUTPUTSCALE, dtype=torch.float64)
    model.space_kernel.base_kernel.lengthscale = torch.full((2,), LENGTHSCALE, dtype=torch.float64)
    mean, cov = twin(X, y, NOISE + variances, rate, asked())
    posterior = model.posterior(asked())
    torch.testing.assert_close(posterior.mean.squeeze(-1), mean, **EXACT)
    torch.testing.assert_close(posterior.covariance_matrix, cov, **EXACT)


@pytest.mark.parametrize("scale", [0.1, 1.0, 7.0])
def test_another_scale_is_another_noise_of_the_rows(rate, scale):
    """The variances are in units of the reward: on a larger scale they are smaller noise."""
    X, y, variances = rows()
    model = told(belief(rate), X, y, variances)
    model.rescale(1.0, scale)
    expected = twin(X, (y - 1) / scale, NOISE + variances / scale**2, rate, asked())
    assert_is(model, expected, 1.0, scale)
    view = model.in_prior_units()
    assert_is(view, expected)
    view = view.condition_on_observations(asked()[:1], torch.ones(1, 1).double())
    model.observe(asked()[0], 1.0 + scale)
    assert_is(model, view.mean_and_covariance(asked()), 1.0, scale)


def test_slopes_of_the_targets_convert_the_variances(rate):
    X, y, variances = rows()
    model = told(belief(rate), X, 9 * y, variances)
    slopes = torch.linspace(0.1, 2.0, len(y), dtype=torch.float64)
    model.rescale(0.0, 1.0, y.tanh(), slopes)
    expected = twin(X, y.tanh(), NOISE + variances * slopes**2, rate, asked())
    assert_is(model, expected)
    other = belief(rate)
    other.noise = 0.3
    other = model.with_hyperparameters_of(other)
    assert_is(other, twin(X, y.tanh(), 0.3 + variances * slopes**2, rate, asked()))


def test_rows_leave_with_their_variances(rate):
    X, y, variances = rows(20)
    X[:, -1] = torch.arange(20)
    model = told(belief(rate, maximum_rows=8), X, y, variances)
    assert torch.equal(model.variances, variances[-8:])
    torch.testing.assert_close(model.extra_noise, variances[-8:])
    assert_is(model, twin(X[-8:], y[-8:], NOISE + variances[-8:], rate, asked()))
    model.rescale(0.5, 3.0)
    expected = twin(X[-8:], (y[-8:] - 0.5) / 3, NOISE + variances[-8:] / 9, rate, asked())
    assert_is(model, expected, 0.5, 3.0)


def test_a_factor_that_fails_is_rebuilt_row_by_row(monkeypatch):
    X, y, variances = rows()
    model = told(belief(0.01), X, y, variances)
    expected = copy.deepcopy(model)
    expected.rescale(0.0, 2.0)

    def fail(*_):
        raise NumericalError("matrix", "a positive definite matrix", "none")

    monkeypatch.setattr(streaming, "factorize", fail)
    model.rescale(0.0, 2.0)
    assert_is(model, expected.in_prior_units().mean_and_covariance(asked()), 0.0, 2.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("variance", [1e8, 1e300])
def test_a_huge_variance_is_no_observation(dtype, variance):
    X, y, _ = rows()
    kernel = Stationary("matern52", torch.tensor([0.3], dtype=dtype), torch.ones((), dtype=dtype))
    plain, more = StreamingGP(kernel, 0.01, NOISE), StreamingGP(kernel, 0.01, NOISE)
    for model in (plain, more):
        told(model, X.to(dtype), y, torch.zeros(len(y)))
    more.observe(asked()[0].to(dtype), 3.0, variance)
    before, after = (model.mean_and_covariance(asked().to(dtype)) for model in (plain, more))
    for a, b in zip(before, after, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-5 if dtype == torch.float32 else 1e-7)


def test_no_variance_changes_no_bit(rate):
    X, y, _ = rows()
    plain, zero = belief(rate), belief(rate)
    for x, reward in zip(X, y.tolist(), strict=True):
        plain.observe(x, reward)
        zero.observe(x, reward, 0.0)
        for model in (plain, zero):
            model.rescale(float(model.rewards.mean()), 1.5)
    assert all(map(torch.equal, plain.factor, zero.factor))


# -- states and errors ----------------------------------------------------------------------------


def test_a_state_continues_bit_by_bit():
    X, y, variances = rows()
    model = told(belief(0.1), X[:9], y[:9], variances[:9])
    model.rescale(0.2, 1.3)
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    other = belief(0.5)
    other.load_state_dict(torch.load(file, weights_only=True))
    for one in (model, other):
        told(one, X[9:], y[9:], variances[9:])
        one.rescale(0.1, 0.7)
    assert all(map(torch.equal, model.factor, other.factor))
    assert torch.equal(model.variances, other.variances)


def test_a_state_of_an_earlier_version_has_no_variances():
    X, y, _ = rows()
    model = told(belief(0.1), X, y, torch.zeros(len(y)))
    state = model.get_extra_state()
    del state["variances"], state["extra"]
    other = belief(0.5)
    other.set_extra_state(state)
    for one in (model, other):
        one.observe(X[0], 1.0, 0.5)
    assert all(map(torch.equal, model.factor, other.factor))
    assert other.variances.tolist() == [0.0] * len(y) + [0.5]


@pytest.mark.parametrize("variance", [-1.0, math.nan, math.inf, "much", True])
def test_a_bad_variance_is_named_and_changes_nothing(variance):
    X, y, variances = rows()
    model = told(belief(0.1), X, y, variances)
    before = model.factor
    with pytest.raises(InvalidArgumentError, match=r"variance: Expected .*; Received"):
        model.observe(X[0], 1.0, variance)
    assert model.factor is before


def test_bad_slopes_are_named_and_change_nothing():
    X, y, variances = rows()
    model = told(belief(0.1), X, y, variances)
    before = model.factor
    for slopes, error in [
        (torch.ones(3), InvalidShapeError),
        (torch.full((14,), math.nan), InvalidArgumentError),
        (torch.full((14,), math.inf), InvalidArgumentError),
    ]:
        with pytest.raises(error, match=r"slopes: Expected .*; Received"):
            model.rescale(0.0, 2.0, y, slopes)
    assert model.factor is before
    assert model.scale == 1.0


# -- fits -----------------------------------------------------------------------------------------


def words(theta):
    values = theta.exp()
    rate = -math.expm1(-values[-1]) if len(theta) == 5 else 0.02
    return values[:2], values[2].item(), values[3].item(), rate


@pytest.mark.parametrize("learnt", [True, False])
def test_the_evidence_is_the_dense_formula_with_its_derivatives(learnt):
    X, y, variances = rows()
    known = None if learnt else torch.tensor(0.02, dtype=torch.float64)
    problem = prepare(X, y, known, variances)
    theta = torch.tensor([0.4, 0.7, 1.3, 0.1, 0.03], dtype=torch.float64).log()
    theta = theta if learnt else theta[:-1]
    value, gradient, information = average_information("matern52", problem, theta)
    expected = oracle.log_evidence("matern52", X, y, *words(theta), variances)
    assert value.item() == pytest.approx(expected, rel=1e-11)
    slopes = oracle.differences(lambda at: log_evidence("matern52", problem, at)[0], theta, 1e-4)
    torch.testing.assert_close(gradient, slopes, rtol=1e-7, atol=1e-7)

    def noisy(at):
        return torch.stack(
            [
                oracle.noisy_covariance("matern52", X, *words(row), variances)
                for row in at.reshape(-1, len(theta))
            ]
        ).squeeze(0)

    derivatives = oracle.differences(noisy, theta, 1e-3).movedim(-1, 0)
    torch.testing.assert_close(
        information, oracle.average_information(derivatives, noisy(theta), y), rtol=1e-8, atol=1e-8
    )


@pytest.mark.parametrize("huge", [1e6, 1e12])
def test_a_row_of_huge_variance_moves_no_fit(huge):
    """Also where its variance is larger than the others by more than a double can tell apart."""
    X, y, _ = rows(25)
    variances = torch.zeros(25, dtype=torch.float64)
    variances[7] = huge
    theta = torch.tensor([0.4, 0.7, 1.3, 0.1, 0.03], dtype=torch.float64).log()
    others = torch.arange(25) != 7
    _, gradient = log_evidence("matern52", prepare(X, y, None, variances), theta)
    _, without = log_evidence("matern52", prepare(X[others], y[others]), theta)
    torch.testing.assert_close(gradient, without, rtol=1e-4, atol=1e-4)


def start(batch=()):
    lengthscale = torch.full((*batch, 2), 0.5, dtype=torch.float64)
    return Hyperparameters(
        lengthscale, *(torch.full(batch, v, dtype=torch.float64) for v in (1.0, 0.1, 0.01))
    )


def test_a_fit_knows_the_variances_of_its_rows():
    """Noise that is known is not learnt: half of the rows are disturbed, and are said to be."""
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(80, 3, generator=generator, dtype=torch.float64)
    X[:, -1] = torch.arange(80)
    cov = oracle.noisy_covariance("matern52", X, torch.full((2,), 0.5), 1.0, 0.02, 0.01)
    y = torch.linalg.cholesky(cov) @ torch.randn(80, generator=generator, dtype=torch.float64)
    variances = torch.zeros(80, dtype=torch.float64)
    variances[::2] = 1.0
    y = y + variances.sqrt() * torch.randn(80, generator=generator, dtype=torch.float64)
    knowing, report = fit("matern52", X, y, start(), variances=variances, tolerance=0.0)
    unknowing, other = fit("matern52", X, y, start(), tolerance=0.0)
    assert knowing.noise < 0.1 < 0.2 < unknowing.noise
    assert report.after > other.after + 3
    both = torch.stack([variances, torch.zeros_like(variances)])
    together, _ = fit(
        "matern52", X.expand(2, -1, -1), y.expand(2, -1), start((2,)), variances=both, tolerance=0.0
    )
    expected = torch.stack([knowing.noise, unknowing.noise])
    torch.testing.assert_close(together.noise, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("variances", "error"),
    [
        (torch.zeros(3), InvalidShapeError),
        (torch.full((14,), -1.0), InvalidArgumentError),
        (torch.full((14,), math.nan), InvalidArgumentError),
    ],
)
def test_bad_variances_of_a_fit_are_named(variances, error):
    X, y, _ = rows()
    with pytest.raises(error, match=r"variances: Expected .*; Received"):
        fit("matern52", X, y, start(), variances=variances)
