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


@pytest.fixture
def seen(generator):
    marks, y = marks_and_values(generator)
    return marks, y, GrowthModel.conditioned(marks, y, torch.tensor(THETA, dtype=torch.float64))


def test_predictions_are_those_of_the_text(seen):
    marks, y, model = seen
    rows, asked = as_rows(marks), Marks(marks.x[1:4] + 0.01, torch.tensor([1.0, 0.5, 0.1]).double())
    mean, variance = model.mean_and_variance(asked)
    for i, row in enumerate(as_rows(asked)):
        for j, power in enumerate(POWERS):
            expected = oracle.posterior(rows, y.tolist(), row, power, THETA)
            assert (float(mean[j, i]), float(variance[j, i])) == pytest.approx(expected, abs=1e-6)
    shares = oracle.shares(rows, y.tolist(), THETA)
    assert model.log_shares.exp().tolist() == pytest.approx(list(shares), abs=1e-8)


def test_chances_are_those_of_a_mixture_of_normals(seen, generator):
    _, _, model = seen
    asked = Marks(torch.tensor([[0.3, 0.6]]).double(), torch.tensor([0.5]).double())
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
    added = Marks(torch.tensor([[0.2, 0.9]]).double(), torch.tensor([0.25]).double())
    asked = Marks(added.x + 0.05, torch.ones(1).double())
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
        marks = Marks(x, torch.tensor([0.3, 1.0]).double())
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
    return Marks(x, share), y + 0.02 * torch.randn(40, generator=generator).double()


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
    marks, y = Marks(torch.zeros(1, 1).double(), torch.ones(1).double()), torch.tensor([torch.nan])
    start = prior_of_growth(1, marks.x).mean
    assert torch.equal(fit_growth(marks, y.double(), start), start)
