"""Unknown offset and scale against a mixture of normals, and shifts of it."""

import pytest
import torch

from botorch_costly.numerics.units import Units, evidence_and_slopes, most_probable
from tests.oracles import tasks as oracle

UNITS = Units(offset=2.0, offset_std=0.7, log_scale=0.4, log_scale_std=0.5)


@pytest.fixture
def problem():
    draws = torch.Generator().manual_seed(5)
    root = torch.randn(4, 4, generator=draws, dtype=torch.float64)
    values = 2 + torch.randn(4, generator=draws, dtype=torch.float64)
    mean = torch.randn(4, generator=draws, dtype=torch.float64)
    return values, mean, root @ root.mT + 0.5 * torch.eye(4, dtype=torch.float64)


def test_evidence_is_that_of_the_mixture_over_scales(problem):
    ours = most_probable(*problem, UNITS)
    assert float(ours.log_evidence) == pytest.approx(oracle.evidence_of_units(*problem, UNITS))


def test_values_and_offset_may_shift_together(problem):
    values, mean, cov = problem
    ours = most_probable(values, mean, cov, UNITS)
    moved = most_probable(values + 30, mean, cov, UNITS._replace(offset=32.0))
    torch.testing.assert_close(moved.log_evidence, ours.log_evidence)
    torch.testing.assert_close(moved.residual, ours.residual)


def test_a_wider_spread_of_values_has_a_larger_scale(problem):
    _, mean, cov = problem
    wide = Units(0.0, 1.0, 0.0, 2.0)
    scales = [
        float(most_probable(factor * mean, mean, 0.01 * cov, wide).scale) for factor in (0.1, 1, 9)
    ]
    assert scales[0] < scales[1] < scales[2]
    assert scales[1] == pytest.approx(1.0)


def test_slopes_are_finite_differences_of_the_mixture(problem):
    values, mean, cov = problem
    value, by_mean, by_cov = evidence_and_slopes(*problem, UNITS)
    assert float(value) == pytest.approx(oracle.evidence_of_units(*problem, UNITS))
    step = 1e-5

    def difference(mean_away, cov_away):
        up = oracle.evidence_of_units(values, mean + mean_away, cov + cov_away, UNITS)
        down = oracle.evidence_of_units(values, mean - mean_away, cov - cov_away, UNITS)
        return (up - down) / (2 * step)

    eye = step * torch.eye(4, dtype=torch.float64)
    for i in range(4):
        assert float(by_mean[i]) == pytest.approx(difference(eye[i], 0 * cov), abs=1e-6)
        for j in range(i + 1):
            both = torch.outer(eye[i], eye[j]) / step
            both = both if i == j else both + both.mT  # a covariance stays symmetric
            slope = float((by_cov * both).sum()) / step
            assert slope == pytest.approx(difference(0 * mean, both), abs=1e-6)


def test_a_singular_covariance_has_no_evidence_and_no_slopes(problem):
    values, mean, cov = problem
    value, by_mean, by_cov = evidence_and_slopes(values, mean, -cov, UNITS)
    assert value == -torch.inf
    assert not by_mean.any()
    assert not by_cov.any()


def test_without_values_all_is_as_beforehand(problem):
    nothing = problem[0][:0]
    told = most_probable(nothing, nothing, problem[2][:0, :0], UNITS)
    assert float(told.log_evidence) == pytest.approx(0.0, abs=1e-12)
    assert float(told.scale.log()) == pytest.approx(UNITS.log_scale)


def test_an_offset_of_any_size_is_no_error():
    values = torch.tensor([1e9, 0.0, 1e-9], dtype=torch.float64)
    for offset_std in (1e-9, 1e9, 1e20):
        ours = most_probable(
            values,
            torch.zeros_like(values),
            1e-6 * torch.eye(3).double(),
            Units(0.0, offset_std, 0.0, 12.0),
        )
        assert bool(ours.log_evidence.isfinite())
        assert bool(ours.root.isfinite().all())
