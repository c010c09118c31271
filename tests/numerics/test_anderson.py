"""Fixed points of a batch of maps."""

import torch

from botorch_costly.numerics.anderson import fixed_points

NUMBERS = {"dtype": torch.float64}
FREE = torch.tensor([[-torch.inf], [torch.inf]], **NUMBERS).expand(2, 6)


def linear_maps(problems, largest, seed=0):
    generator = torch.Generator().manual_seed(seed)
    A = torch.randn(problems, 6, 6, generator=generator, **NUMBERS)
    A = A * largest / torch.linalg.eigvals(A).abs().amax(-1)[:, None, None]
    b = torch.randn(problems, 6, generator=generator, **NUMBERS)
    return A, b


def test_linear_maps_are_solved_in_few_steps_even_where_plain_steps_diverge():
    for largest in (0.9, 0.99):
        A, b = linear_maps(40, largest)

        def image(numbers, x, A=A, b=b):
            return torch.einsum("bij,bj->bi", A[numbers], x) + b[numbers]

        actual = fixed_points(image, torch.zeros_like(b), bounds=FREE, tolerance=1e-9)
        exact = torch.linalg.solve(torch.eye(6, **NUMBERS) - A, b)
        torch.testing.assert_close(actual.point, exact, atol=1e-5, rtol=1e-5)
        assert actual.residual.max() <= 1e-9


def test_each_problem_ends_by_itself():
    """A map that is never done does not keep the others from their fixed points."""
    seen = []

    def image(numbers, x):
        seen.append(numbers.tolist())
        to_and_fro = x + (1 + x.abs()) * (-1) ** len(seen)
        return torch.where(numbers[:, None] == 1, to_and_fro, 0.5 * x + 1)

    start = torch.zeros(4, 6, **NUMBERS)
    actual = fixed_points(image, start, bounds=FREE, tolerance=1e-8, steps=60)
    torch.testing.assert_close(actual.point[[0, 2, 3]], torch.full((3, 6), 2.0, **NUMBERS))
    assert seen[-1] == [1]
    assert actual.steps == 60
    assert actual.residual[1] > 1e-8


def test_a_map_that_fails_leaves_the_best_that_was_seen():
    def image(numbers, x):
        return torch.where(x > 0.5, torch.nan, 0.5 * x + 1)

    actual = fixed_points(image, torch.zeros(2, 6, **NUMBERS), bounds=FREE, tolerance=1e-8)
    assert actual.point.isfinite().all()


def test_no_point_leaves_the_bounds():
    points = []

    def image(numbers, x):
        points.append(x)
        return torch.cat([(0.1 - x[:, :3]).clamp_min(0), (3 * x[:, 3:] - 1).clamp(-1, 2)], -1)

    bounds = torch.tensor([[0.0] * 3 + [-1.0] * 3, [torch.inf] * 3 + [2.0] * 3], **NUMBERS)
    actual = fixed_points(image, torch.ones(1, 6, **NUMBERS), bounds=bounds, tolerance=1e-10)
    torch.testing.assert_close(actual.point[0, :3], torch.full((3,), 0.05, **NUMBERS))
    seen = torch.cat([*points, actual.point])
    assert (seen >= bounds[0]).all()
    assert (seen <= bounds[1]).all()


def test_the_device_is_asked_every_few_steps():
    A, b = linear_maps(3, 0.9)
    counts = []

    def image(numbers, x):
        counts.append(len(numbers))
        return torch.einsum("bij,bj->bi", A[numbers], x) + b[numbers]

    start = torch.zeros_like(b)
    start[0] = torch.linalg.solve(
        torch.eye(6, **NUMBERS) - A[0], b[0]
    )  # done from the first step on
    actual = fixed_points(image, start, bounds=FREE, tolerance=1e-9, first=5, every=3)
    assert counts[:5] == [3] * 5
    assert counts[5:8] == [2] * 3
    assert (actual.steps - 5) % 3 == 0
    assert actual.residual.max() <= 1e-9
