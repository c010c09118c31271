"""Offset and scale that are not known: against a mixture of normals, and shifts of it."""

import pytest
import torch

from botorch_costly.numerics.units import Units, most_probable
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
