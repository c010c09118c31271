"""The synthetic truth has the law it claims."""

import pytest
import torch

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from botorch_costly.numerics.stationary import Stationary
from botorch_costly.problems import DriftingFunction


def truth(forgetting, n=20):
    return DriftingFunction.on_unit_interval(n, forgetting=forgetting)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("forgetting", [0.05, 0.5])
def test_paths_have_the_product_covariance(forgetting):
    """Over 4,000 runs: the prior's covariance in space, times (1 - forgetting)^(lag / 2)."""
    problem = truth(forgetting)
    paths = problem.paths(horizon=6, trials=4000, generator=seeded())
    for lag in (0, 1, 5):
        covariance = paths[:, 0].mT @ paths[:, lag] / len(paths)
        expected = problem.prior_cov * (1 - forgetting) ** (lag / 2)
        # One standard error is about 1.4 / sqrt(4000) = 0.022.
        assert (covariance - expected).abs().max() < 0.09


def test_the_limits_stand_still_and_start_anew():
    still = truth(0.0).paths(4, 3, seeded())
    assert torch.equal(still[:, 0], still[:, 3])
    anew = truth(1.0).paths(2, 4000, seeded())
    assert (anew[:, 0].mT @ anew[:, 1] / 4000).abs().max() < 0.09


def test_paths_are_reproducible_and_leave_the_global_generator_alone():
    before = torch.random.get_rng_state()
    problem = truth(0.1)
    assert torch.equal(problem.paths(5, 2, seeded(1)), problem.paths(5, 2, seeded(1)))
    assert not torch.equal(problem.paths(5, 2, seeded(1)), problem.paths(5, 2, seeded(2)))
    assert torch.equal(before, torch.random.get_rng_state())


def test_observations_have_the_noise_claimed():
    seen = truth(0.1).observe(torch.zeros(20000).double(), seeded())
    assert seen.var().item() == pytest.approx(0.01, rel=0.05)


@pytest.mark.parametrize(
    ("options", "name"),
    [({"forgetting": -0.1}, "forgetting"), ({"noise": -1.0}, "noise"), ({"noise": 0.0}, "noise")],
)
def test_a_number_outside_its_range_is_named(options, name):
    with pytest.raises(InvalidArgumentError, match=f"{name}: Expected"):
        DriftingFunction.on_unit_interval(10, **options)


def test_points_that_are_no_matrix_are_named():
    kernel = Stationary("rbf", torch.ones(1), torch.ones(()))
    with pytest.raises(InvalidShapeError, match=r"points: Expected shape \(n, d\)"):
        DriftingFunction(torch.rand(5), kernel, 0.1, 0.1)
    with pytest.raises(InvalidArgumentError, match="trials: Expected an integer >= 1"):
        truth(0.1).paths(3, 0, seeded())
