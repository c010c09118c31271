"""Estimates of Hessians from differences of gradients."""

import pytest
import torch

from botorch_costly.optim import difference_hessians
from botorch_costly.optim.difference_hessians import (
    descend,
    descend_by_pairs,
    hessian_estimates,
)

BOX = torch.tensor([[-1.0, 0.0], [3.0, 1.0]], dtype=torch.float64)


def quadratic(hessian):
    hessian = torch.tensor(hessian, dtype=torch.float64)
    return lambda x: (0.5 * (x @ hessian * x).sum(-1), x @ hessian)


@pytest.mark.parametrize("at", [[-1.0, 0.0], [3.0, 1.0], [0.4, 0.2]])
def test_a_positive_hessian_is_found_from_within_the_box(at):
    asked = []

    def bowl(x):
        asked.append(x)
        return quadratic([[2.0, 0.5], [0.5, 1.0]])(x)

    estimate = hessian_estimates(bowl, torch.tensor([at, [1.0, 0.5]], dtype=torch.float64), BOX)
    expected = torch.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=torch.float64)
    torch.testing.assert_close(estimate, expected.expand(2, 2, 2), atol=1e-6, rtol=0)
    assert len(asked) == 1
    assert bool(((asked[0] >= BOX[0]) & (asked[0] <= BOX[1])).all())


def test_negative_curvature_counts_as_positive():
    estimate = hessian_estimates(
        quadratic([[-3.0, 0.0], [0.0, 1.0]]), torch.ones(1, 2).double() / 2, BOX
    )
    torch.testing.assert_close(
        estimate[0], torch.diag(torch.tensor([3.0, 1.0])).double(), atol=1e-6, rtol=0
    )


@pytest.mark.parametrize("slope", [0.0, torch.nan])
def test_what_has_no_curvature_has_a_positive_guess(slope):
    estimate = hessian_estimates(
        lambda x: (x.sum(-1), slope * x), torch.ones(1, 2).double() / 2, BOX
    )
    assert bool((torch.linalg.eigvalsh(estimate) > 0).all())


def waves(x):
    """Return a function with many minima, and its gradient."""
    value = (3 * x[:, 0]).sin() + (4 * x[:, 1]).cos() + 0.1 * x.square().sum(-1)
    slope = torch.stack([3 * (3 * x[:, 0]).cos(), -4 * (4 * x[:, 1]).sin()], -1) + 0.2 * x
    return value, slope


@pytest.mark.parametrize("steps", [0, 1, 6])
@pytest.mark.parametrize("search", [descend, descend_by_pairs])
def test_the_best_search_ends_at_a_minimum_of_the_box(steps, search, monkeypatch):
    monkeypatch.setattr(difference_hessians, "_NEWTON_STEPS", steps)  # quasi-Newton steps take over
    start = torch.tensor([[-0.9, 0.1], [1.0, 0.9], [2.9, 0.5]], dtype=torch.float64)
    end = search(waves, start, BOX, gradient_tolerance=1e-6)
    value, slope = waves(end)
    assert bool((value <= waves(start)[0]).all())
    best = value.argmin()
    pushed = end[best] - (end[best] - slope[best]).clamp(*BOX)
    assert float(pushed.abs().max()) < 1e-4
