"""The fitted model of growing curves."""

import pytest
import torch

from botorch_costly.models.growth import (
    GrowthModel,
    early_correlation,
    fit_growth,
    prior_of_growth,
)
from botorch_costly.numerics.growth import (
    POWERS,
    Marks,
    covariance,
    log_evidence,
    pairs_of,
    scales_of,
)
from tests.numerics.test_growth import THETA, as_rows, marks_and_values
from tests.oracles import growth as oracle


@pytest.fixture(params=[0, 3])
def seen(request, generator):
    marks, y = marks_and_values(generator, tasks=request.param)
    return marks, y, GrowthModel.conditioned(marks, y, torch.tensor(THETA, dtype=torch.float64))


def one(point, share, model):
    """Return a configuration and share, whose tasks' means are 0.4."""
    x = torch.tensor([point], dtype=torch.float64)
    return Marks(x, x.new_tensor([share]), torch.full_like(model.marks.tasks[:1], 0.4))


def test_predictions_are_those_of_the_text(seen):
    marks, y, model = seen
    asked = Marks(marks.x[1:4] + 0.01, torch.tensor([1.0, 0.5, 0.1]).double(), marks.tasks[:3])
    rows, hypotheses = as_rows(marks), oracle.hypotheses_of(as_rows(marks))
    mean, variance = model.mean_and_variance(asked)
    for i, row in enumerate(as_rows(asked)):
        for j, hypothesis in enumerate(hypotheses):
            expected = oracle.posterior(rows, y.tolist(), row, hypothesis, THETA)
            assert (float(mean[j, i]), float(variance[j, i])) == pytest.approx(expected, abs=1e-6)
    shares = oracle.shares(rows, y.tolist(), THETA)
    assert model.log_shares.exp().tolist() == pytest.approx(list(shares), abs=1e-8)


def test_chances_are_those_of_a_mixture_of_normals(seen, generator):
    _, _, model = seen
    asked = one([0.3, 0.6], 0.5, model)
    mean, variance = (m.squeeze(-1) for m in model.mean_and_variance(asked))
    noise = torch.tensor(2 * THETA[-1]).exp()
    powers = torch.multinomial(
        model.log_shares.exp(), 200_000, replacement=True, generator=generator
    )
    z = torch.randn(200_000, generator=generator).double()
    drawn = mean[powers] + (variance + noise)[powers].sqrt() * z
    for value in (-0.5, 0.0, 0.8):
        found, drawn_share = (
            float(model.chance(asked, value)),
            float((drawn > value).double().mean()),
        )
        assert found == pytest.approx(drawn_share, abs=0.006)  # five standard errors


def test_values_at_their_means_change_no_mean_and_no_share(seen):
    _, _, model = seen
    added, asked = one([0.2, 0.9], 0.25, model), one([0.25, 0.95], 1.0, model)
    more, means = model.with_means(added)
    (mean, variance), (after, less) = (m.mean_and_variance(asked) for m in (model, more))
    torch.testing.assert_close(mean, after, rtol=1e-6, atol=1e-8)
    assert bool((less < variance).all())
    assert torch.equal(more.log_shares, model.log_shares)
    torch.testing.assert_close(means, model.mean_and_variance(added)[0])


def test_the_early_signal_is_the_correlation_of_draws(generator):
    """Values at 0.3 and at the end of configurations far apart, drawn from the prior of one power."""
    theta = torch.tensor(THETA, dtype=torch.float64)
    theta[-1] = -1.0
    for power in range(len(POWERS)):
        log_shares = torch.full((len(POWERS),), -torch.inf).double()
        log_shares[power] = 0.0
        x = torch.zeros(2, 2).double()
        marks = Marks(x, torch.tensor([0.3, 1.0]).double(), x[:, :0])
        scales = scales_of(theta)
        both = covariance(pairs_of(marks, marks), scales)[power]
        both = both - marks.share[:, None] ** POWERS[power] * marks.share ** POWERS[power]  # m
        both[0, 0] += scales.noise
        draws = (
            torch.randn(100_000, 2, generator=generator).double() @ torch.linalg.cholesky(both).mT
        )
        found = early_correlation(theta, log_shares, 0.3)
        assert found == pytest.approx(float(torch.corrcoef(draws.mT)[0, 1]), abs=0.016)


def curves(power, generator, begin=0.0):
    """Twenty curves whose values at a quarter and at the end are related by a power."""
    x = torch.rand(20, 1, generator=generator).double()
    ends = 1 + torch.sin(6 * x.squeeze(-1))
    rows = [(x, torch.full((20,), s).double(), begin + s**power * ends) for s in (0.25, 1.0)]
    x, share, y = (torch.cat(columns) for columns in zip(*rows, strict=True))
    return Marks(x, share, x[:, :0]), y + 0.02 * torch.randn(40, generator=generator).double()


def task_like(x):
    """The ends of ``curves``, standardized."""
    return 1.4 * torch.sin(6 * x)


@pytest.mark.parametrize(("sign", "strength"), [(1.0, 0.3), (-1.0, 0.3), (0.0, 0.0)])
def test_the_strength_of_a_task_is_found(sign, strength, generator):
    """Few values: a task that is alike, the contrary, or has nothing to do with them."""
    marks, y = curves(1.0, generator)
    noise = torch.randn(len(y) // 2, 1, generator=generator).double().repeat(2, 1)
    tasks = sign * task_like(marks.x) if sign else noise
    marks, y = Marks(*(column[::2] for column in marks._replace(tasks=tasks))), y[::2]
    theta = fit_growth(marks, y, prior_of_growth(1, marks.x).mean)
    model = GrowthModel.conditioned(marks, y, theta)
    of_strengths = model.log_shares.exp().reshape(len(POWERS), -1).sum(0)
    if strength:
        assert float(of_strengths[0]) < 0.1
    else:
        assert float(of_strengths[2]) < 0.34  # no more than before
    asked = torch.linspace(0.1, 0.9, 7).double().unsqueeze(-1)
    ends = Marks(asked, torch.ones(7).double(), sign * task_like(asked) if sign else 0 * asked)
    mean = model.log_shares.exp() @ model.mean_and_variance(ends)[0]
    truth = 1 + torch.sin(6 * asked.squeeze(-1))
    assert float((mean - truth).abs().max()) < 0.5


@pytest.mark.parametrize("power", [0.0, 1.0, 3.0])
def test_the_power_of_the_growth_is_found(power, generator):
    marks, y = curves(power, generator)
    start = prior_of_growth(1, marks.x).mean
    theta = fit_growth(marks, y, start)
    prior = prior_of_growth(1, marks.x)
    before, after = (
        log_evidence(pairs_of(marks, marks), y, t)[0] + prior(t)[0] for t in (start, theta)
    )
    assert float(after) > float(before) + 1
    model = GrowthModel.conditioned(marks, y, theta)
    assert POWERS[int(model.log_shares.argmax())] == power


def test_a_fit_that_cannot_be_computed_changes_nothing():
    x = torch.zeros(1, 1).double()
    marks, y = Marks(x, torch.ones(1).double(), x[:, :0]), torch.tensor([torch.nan])
    start = prior_of_growth(1, marks.x).mean
    assert torch.equal(fit_growth(marks, y.double(), start), start)
