"""Covariances that rounding has left singular, and that a user's data can bring about.

The kind of fault: torch's own error from a factorization, for points told many times or side by side.
"""

import pytest
import torch

from botorch_costly.errors import NumericalError
from botorch_costly.models import LogLinearCost, TaskEnsemble
from botorch_costly.numerics.cholesky import sure_root
from botorch_costly.numerics.radial import FAMILIES
from botorch_costly.numerics.stationary import Stationary
from botorch_costly.problems import DriftingFunction

LINE = torch.linspace(0, 1, 200).unsqueeze(-1)


def test_a_positive_definite_matrix_has_its_own_factor():
    cov = torch.eye(3, dtype=torch.float64) + 0.5
    assert torch.equal(sure_root(cov), torch.linalg.cholesky(cov))


def test_of_a_batch_only_the_singular_ones_are_raised():
    good, bad = torch.eye(4) + 0.5, torch.ones(4, 4) - 1e-7 * torch.eye(4)
    root = sure_root(torch.stack([good, bad]).expand(2, 2, 4, 4))
    assert torch.equal(root[1, 0], torch.linalg.cholesky(good))
    torch.testing.assert_close(root[0, 1] @ root[0, 1].mT, bad, rtol=1e-3, atol=1e-3)


def test_what_is_not_finite_is_refused_by_name():
    with pytest.raises(NumericalError, match="cov: Expected a positive definite matrix"):
        sure_root(torch.full((2, 2), torch.nan))


@pytest.mark.parametrize("kernel", ["matern52", "rbf"])
def test_a_study_in_single_precision_may_tell_few_points_many_times(kernel):
    points = LINE[[0, 90, 199]].repeat(60, 1)
    tasks = TaskEnsemble([points], [points.squeeze(-1)], kernel=kernel).fit()
    assert tasks.moments(LINE).mean.isfinite().all()


@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "arms"])
@pytest.mark.parametrize("lengthscale", [0.2, 100.0])
def test_a_drifting_function_in_single_precision_may_have_points_side_by_side(family, lengthscale):
    kernel = Stationary(family, torch.tensor([lengthscale]), torch.tensor(1.0))
    truth = DriftingFunction(LINE, kernel, forgetting=0.1, noise=0.1)
    assert truth.paths(2, 1, torch.Generator().manual_seed(0)).isfinite().all()


def test_costs_of_large_inputs_that_say_the_same():
    rows = 1e8 * LINE.repeat(1, 3)
    cost = LogLinearCost(rows, 1 + LINE)
    assert cost(rows).isfinite().all()
