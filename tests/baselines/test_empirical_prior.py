"""The prior estimated from earlier tasks: against loops, and against the prior that generated them."""

import numpy as np
import pytest
import torch
from botorch.acquisition import LogExpectedImprovement, UpperConfidenceBound

from botorch_costly.baselines import EmpiricalPriorGP
from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from tests.oracles import transfer as oracle

DOUBLE = {"dtype": torch.float64}
LIST = torch.arange(5.0, **DOUBLE).unsqueeze(-1)


def drawn(tasks, m=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    smooth = torch.randn(tasks, 3, generator=generator, **DOUBLE) @ torch.ones(3, m, **DOUBLE)
    return smooth + torch.randn(tasks, m, generator=generator, **DOUBLE)


def after(values, rows, y, **options):
    X = torch.tensor(rows, **DOUBLE).reshape(-1, 1)
    return EmpiricalPriorGP(values, X, torch.tensor(y, **DOUBLE).reshape(-1, 1), **options)


def moments(model, X=LIST):
    posterior = model.posterior(X)
    return posterior.mean.squeeze(-1), posterior.covariance_matrix


@pytest.mark.parametrize("rows", [[], [3], [0, 4], [2, 1, 3, 0]])
def test_estimates_are_those_of_the_paper(rows):
    values, y = drawn(7), [0.3, -1.0, 2.0, 0.5][: len(rows)]
    mean, cov = moments(after(values, rows, y))
    expected = oracle.empirical_posterior(values.tolist(), rows, y)
    torch.testing.assert_close(mean, torch.as_tensor(expected[0]))
    torch.testing.assert_close(cov, torch.as_tensor(expected[1]), atol=1e-9, rtol=1e-7)


def test_without_observations_they_are_numpys():
    mean, cov = moments(after(drawn(7), [], []))
    torch.testing.assert_close(mean, torch.as_tensor(drawn(7).numpy().mean(0)))
    torch.testing.assert_close(cov, torch.as_tensor(np.cov(drawn(7).numpy(), rowvar=False)))


def test_estimates_are_unbiased():
    rng = np.random.default_rng(0)
    prior = 0.3 + np.exp(-0.5 * np.subtract.outer(np.arange(5), np.arange(5)) ** 2 / 4)
    rows, y = [1, 3], np.array([0.5, -0.2])
    truth, cov = oracle.conditioned(np.zeros(5), prior[np.ix_(*[[1, 3, 0, 2, 4]] * 2)], 0.0, y)
    means, covs = [], []
    for _ in range(1000):
        values = torch.as_tensor(rng.multivariate_normal(np.zeros(5), prior, 8))
        actual = moments(after(values, rows, y.tolist()), LIST[[1, 3, 0, 2, 4]])
        means.append(actual[0].numpy())
        covs.append(actual[1].numpy())
    for draws, expected in ((np.stack(means), truth), (np.stack(covs), cov)):
        error = draws.std(0) / 1000**0.5
        assert (np.abs(draws.mean(0) - expected) < 4.5 * error + 1e-9).all()


def test_what_all_tasks_have_in_common_is_known_at_once():
    draws = torch.Generator().manual_seed(1)
    level, slope = torch.randn(2, 9, 1, generator=draws, **DOUBLE)
    values = level + slope * LIST.squeeze(-1)
    truth = 3 - 2 * LIST.squeeze(-1)
    mean, cov = moments(after(values, [0, 4], [3.0, -5.0]))
    torch.testing.assert_close(mean, truth)
    torch.testing.assert_close(cov, torch.zeros_like(cov), atol=1e-9, rtol=0)
    # More observations than tasks differ in: what is singular determines nothing.
    mean, cov = moments(after(values, [0, 4, 2, 2, 1], [3.0, -5.0, -1.0, -1.0, 1.0]))
    torch.testing.assert_close(mean, truth)
    torch.testing.assert_close(cov, torch.zeros_like(cov), atol=1e-9, rtol=0)


def test_observations_that_leave_no_task_are_refused():
    values = drawn(6)
    assert after(values, [0, 1, 2, 3], [1.0] * 4).most == 4
    with pytest.raises(InvalidArgumentError, match="at most 4 observations for 6 tasks"):
        after(values, [0, 1, 2, 3, 4], [1.0] * 5)
    model = after(values, [0, 1, 2], [1.0] * 3)
    column = torch.ones(2, 1, **DOUBLE)
    with pytest.raises(InvalidArgumentError, match="at most 4"):
        model.condition_on_observations(4 * column, column)


def test_noise_is_in_addition():
    values = drawn(7)
    noisy = moments(after(values, [3], [2.0], noise=0.5))
    cov = np.cov(values.numpy(), rowvar=False)
    expected = oracle.conditioned(
        *(values.numpy().mean(0)[[3, 0, 1]], cov[np.ix_([3, 0, 1], [3, 0, 1])]), 0.5, [2.0]
    )
    torch.testing.assert_close(noisy[0][[3, 0, 1]], torch.as_tensor(expected[0]))
    actual = noisy[1][[3, 0, 1]][:, [3, 0, 1]]
    torch.testing.assert_close(actual, torch.as_tensor(6 / 5 * expected[1]))


def test_conditioning_is_beginning_with_all():
    values, y = drawn(7), [0.3, -1.0, 2.0]
    conditioned = after(values, [3], y[:1]).condition_on_observations(
        LIST[[0, 2]], torch.tensor(y[1:], **DOUBLE).unsqueeze(-1)
    )
    torch.testing.assert_close(moments(conditioned), moments(after(values, [3, 0, 2], y)))


@pytest.mark.parametrize("acquisition", ["LogEI", "UCB"])
def test_acquisition_functions_of_botorch_take_it(acquisition):
    model = after(drawn(7), [3], [2.0])
    function = (
        LogExpectedImprovement(model, 2.0)
        if acquisition == "LogEI"
        else UpperConfidenceBound(model, 4)
    )
    values = function(LIST.unsqueeze(-2))
    assert values.shape == (5,)
    assert values.isfinite().all()


def test_what_does_not_fit_is_refused():
    for values in (drawn(1), drawn(7)[0]):
        with pytest.raises(InvalidShapeError, match="values"):
            after(values, [], [])
    with pytest.raises(InvalidArgumentError, match="finite"):
        after(drawn(7) / 0, [], [])
    with pytest.raises(InvalidShapeError, match="train_X"):
        after(drawn(7), [1, 2], [1.0])
    for number in (-1, 5):
        with pytest.raises(InvalidArgumentError, match="numbers of 5 configurations"):
            after(drawn(7), [number], [1.0])
        with pytest.raises(InvalidArgumentError, match="numbers of 5 configurations"):
            after(drawn(7), [], []).posterior(torch.tensor([[float(number)]], **DOUBLE))
    with pytest.raises(InvalidArgumentError, match="noise"):
        after(drawn(7), [], [], noise=-1.0)
