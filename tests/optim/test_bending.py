"""Guesses at Hessians from differences of gradients."""

import pytest
import torch

from botorch_costly.optim.bending import bent

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

    found = bent(bowl, torch.tensor([at, [1.0, 0.5]], dtype=torch.float64), BOX)
    expected = torch.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=torch.float64)
    torch.testing.assert_close(found, expected.expand(2, 2, 2), atol=1e-6, rtol=0)
    assert len(asked) == 1
    assert bool(((asked[0] >= BOX[0]) & (asked[0] <= BOX[1])).all())


def test_negative_curvature_counts_as_positive():
    found = bent(quadratic([[-3.0, 0.0], [0.0, 1.0]]), torch.ones(1, 2).double() / 2, BOX)
    torch.testing.assert_close(
        found[0], torch.diag(torch.tensor([3.0, 1.0])).double(), atol=1e-6, rtol=0
    )


@pytest.mark.parametrize("slope", [0.0, torch.nan])
def test_what_has_no_curvature_has_a_positive_guess(slope):
    found = bent(lambda x: (x.sum(-1), slope * x), torch.ones(1, 2).double() / 2, BOX)
    assert bool((torch.linalg.eigvalsh(found) > 0).all())
