"""The maximum of a function among candidates, and among the ends of a local search."""

import pytest
import torch

from botorch_costly.optim import maximize

TOPS = torch.tensor([[0.2, 0.3], [0.9, 0.6]], dtype=torch.float64)


def hill(X):
    return -(X.squeeze(-2) - TOPS[0]).square().sum(-1)


def points(*rows):
    return torch.tensor(rows, dtype=torch.float64)


def test_without_a_search_the_best_candidate_is_returned():
    best = maximize(hill, points([0.2, 0.9], [0.2, 0.4], [1.0, 1.0]))
    assert best.point.tolist() == [0.2, 0.4]
    assert best.value == pytest.approx(-0.01)


def test_a_search_reaches_the_maximum_in_each_batch_entry():
    def hills(X):
        return -(X.squeeze(-2) - TOPS.unsqueeze(-2)).square().sum(-1)

    starts = points([0.4, 0.4], [0.5, 0.1]).expand(2, 2, 2)
    best = maximize(hills, starts, max_iter=20)
    torch.testing.assert_close(best.point, TOPS, atol=1e-5, rtol=0)
    assert best.value.shape == (2,)


def test_only_the_best_candidates_are_starts():
    starts = []
    candidates = points([0.2, 0.9], [0.2, 0.4], [1.0, 1.0])
    maximize(hill, candidates, num_starts=2, minimize=lambda X: starts.append(X) or X)
    assert torch.equal(starts[0], candidates[[1, 0]])


def test_an_end_that_rounding_spoils_is_not_returned():
    """The slope leads along a ridge to another integer, whose nearest configuration is off the ridge."""

    def ridge(X):
        x, y = X.squeeze(-2).unbind(-1)
        return 2 * x - 10 * (y - 0.1 - 4 * (x - 0.25)).square()

    start = points([0.25, 0.1])
    round_x = torch.tensor([True, False])
    rounded = maximize(
        ridge,
        start,
        max_iter=4,
        round_points=lambda X: torch.where(round_x, 0.25 + 0.5 * (X > 0.5), X),
    )
    assert rounded.value >= ridge(start.unsqueeze(-2))


def test_a_column_that_rounding_fixes_is_fixed():
    def at_the_target(X):
        return torch.cat([X[..., :1], torch.ones_like(X[..., 1:])], -1)

    best = maximize(hill, points([0.7, 1.0]), max_iter=9, round_points=at_the_target)
    torch.testing.assert_close(best.point, points([0.2, 1.0])[0], atol=1e-5, rtol=0)


def test_excluded_points_are_starts_but_no_maximum():
    start = points([0.2, 0.31])
    best = maximize(hill, start, max_iter=9, excluded=lambda X: (start == X).all(-1))
    torch.testing.assert_close(best.point, TOPS[0], atol=1e-5, rtol=0)
    assert maximize(hill, start, excluded=lambda X: X[:, 0] < 1).value == -torch.inf


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_a_value_that_is_not_finite_is_no_maximum(bad):
    def broken(X):
        return torch.where(X.squeeze(-2)[..., 0] > 0.5, bad, hill(X))

    best = maximize(broken, points([0.9, 0.6], [0.4, 0.4]), num_starts=1, max_iter=9)
    assert best.value > -1e-9


def test_a_search_never_ends_below_its_starts():
    def cliff(X):  # the slope leads over it
        x = X.squeeze(-2)[..., 0]
        return torch.where(x > 0.5, x - 10, torch.where(x > 0.45, torch.nan, x))

    assert 0.44 <= maximize(cliff, points([0.3, 0.0], [0.44, 0.0]), max_iter=4).point[0] <= 0.45
