"""Local optima of an acquisition function: all of them, each once, at least as good as BoTorch's."""

import pytest
import torch
from botorch.acquisition import UpperConfidenceBound
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError, NumericalError
from botorch_costly.optim.far_rival import far_rival
from botorch_costly.optim.local_optima import ascend, distinct, local_optima
from botorch_costly.optim.suppression import Optima, suppress
from tests.cases import quick


def unit_box(d):
    return torch.tensor([[0.0] * d, [1.0] * d], dtype=torch.float64)


def peaks(centers, heights, width=0.1):
    """Bumps in the BoTorch convention: b x 1 x d -> b."""

    def acq_function(X):
        distance = (X - centers).square().sum(-1)
        return (heights * (-0.5 * distance / width**2).exp()).sum(-1)

    return acq_function


def ucb(d, seed, n=20):
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(n, d, generator=generator, device=generator.device, dtype=torch.float64)
    Y = torch.sin(5 * X).sum(-1, keepdim=True)
    Y = Y + 0.1 * torch.randn(
        n, 1, generator=generator, device=generator.device, dtype=torch.float64
    )
    model = SingleTaskGP(X, Y)
    model.covar_module.lengthscale = 0.3 * d**0.5
    model.likelihood.noise = 0.01
    return UpperConfidenceBound(model.eval(), beta=2.0)


CENTERS = torch.tensor([[0.2, 0.2], [0.8, 0.3], [0.4, 0.9]], dtype=torch.float64)
HEIGHTS = torch.tensor([1.0, 3.0, 2.0], dtype=torch.float64)


@pytest.mark.parametrize("starts", ["sobol", "uniform"])
def test_finds_every_peak_once_best_first(starts):
    optima = local_optima(peaks(CENTERS, HEIGHTS), unit_box(2), starts=starts)
    torch.testing.assert_close(optima.points, CENTERS[[1, 2, 0]], atol=1e-3, rtol=0)
    torch.testing.assert_close(optima.values, HEIGHTS[[1, 2, 0]], atol=1e-3, rtol=0)


def test_the_bandwidth_does_not_depend_on_the_unit():
    scale = torch.tensor([1e4, 1e-3], dtype=torch.float64)
    shift = torch.tensor([-7.0, 30.0], dtype=torch.float64)
    bounds = shift + scale * unit_box(2)
    inner = peaks(CENTERS, HEIGHTS)
    wide = local_optima(lambda X: inner((X - shift) / scale), bounds)
    optima = local_optima(inner, unit_box(2))
    torch.testing.assert_close((wide.points - shift) / scale, optima.points, atol=1e-5, rtol=0)
    torch.testing.assert_close(wide.values, optima.values)


def test_close_peaks_are_one_if_closer_than_the_bandwidth():
    centers = torch.tensor([[0.3, 0.5], [0.6, 0.5]], dtype=torch.float64)
    narrow = peaks(centers, torch.tensor([1.0, 2.0]), width=0.05)

    def acq_function(X):  # a slope everywhere: a start on flat ground would stay there
        return narrow(X) - 0.01 * (X - 0.5).square().sum((-1, -2))

    assert len(local_optima(acq_function, unit_box(2), bandwidth=0.1).values) == 2
    optima = local_optima(acq_function, unit_box(2), bandwidth=0.4)
    torch.testing.assert_close(optima.points, centers[1:], atol=1e-3, rtol=0)


@pytest.mark.parametrize(
    ("d", "seed"), quick([(1, 0), (2, 1), (2, 2), (4, 3), (8, 4)], (1, 0), (2, 1), (8, 4))
)
def test_at_least_as_good_as_botorch(d, seed):
    acq_function = ucb(d, seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        _, expected = optimize_acqf(acq_function, unit_box(d), q=1, num_restarts=50, raw_samples=50)
    optima = local_optima(acq_function, unit_box(d))
    assert optima.values[0] >= expected - 1e-6
    with torch.no_grad():
        torch.testing.assert_close(acq_function(optima.points.unsqueeze(-2)), optima.values)


def test_flat_ground_is_its_own_optimum():
    optima = local_optima(lambda X: 0 * X.sum((-1, -2)), unit_box(1), bandwidth=0.7)
    assert 1 <= len(optima.values) <= 2
    assert (optima.values == 0).all()


def test_warm_starts_are_starts_and_are_clamped():
    acq_function = peaks(CENTERS, HEIGHTS, width=0.02)
    warm = torch.tensor([[0.21, 0.19], [0.8, 0.31], [0.4, 7.0]], dtype=torch.float64)
    ascent = ascend(acq_function, unit_box(2), 0, warm_starts=warm)
    torch.testing.assert_close(ascent.starts, warm.clamp(max=1.0))
    optima = distinct(ascent, unit_box(2), 0.2)
    torch.testing.assert_close(optima.points[0], CENTERS[1], atol=1e-4, rtol=0)


def test_the_generator_decides_and_the_global_one_is_left_alone():
    state = torch.get_rng_state()
    acq_function = peaks(CENTERS, HEIGHTS)
    runs = [
        ascend(acq_function, unit_box(2), 8, generator=torch.Generator().manual_seed(seed))
        for seed in (1, 1, 2)
    ]
    assert torch.equal(runs[0].starts, runs[1].starts)
    assert torch.equal(runs[0].points, runs[1].points)
    assert not torch.equal(runs[0].starts, runs[2].starts)
    assert torch.equal(torch.get_rng_state(), state)


def test_points_without_a_finite_value_are_dropped():
    inner = peaks(CENTERS, HEIGHTS)

    def holed(X):
        return torch.where(X[..., 0, 0] > 0.6, torch.nan, inner(X))

    optima = local_optima(holed, unit_box(2))
    assert optima.values.isfinite().all()
    torch.testing.assert_close(optima.points[0], CENTERS[2], atol=1e-3, rtol=0)
    with pytest.raises(NumericalError, match="finite value"):
        local_optima(lambda X: X.sum((-1, -2)) * torch.nan, unit_box(2))


def test_a_cluster_is_represented_by_its_best_member():
    points = torch.tensor([[0.1], [0.15], [0.2], [0.9]], dtype=torch.float64)
    values = torch.tensor([1.0, -5.0, 2.0, 1.5], dtype=torch.float64)
    optima = suppress(points, values, 0.2)
    assert optima.points.squeeze(-1).tolist() == [0.2, 0.9]
    assert optima.values.tolist() == [2.0, 1.5]


def test_a_batch_of_clouds_is_a_loop(generator):
    points = torch.rand(
        3, 2, 15, 2, generator=generator, device=generator.device, dtype=torch.float64
    )
    values = torch.randn(
        3, 2, 15, generator=generator, device=generator.device, dtype=torch.float64
    )
    together = suppress(points, values, 0.35)
    for i in range(3):
        for j in range(2):
            alone = suppress(points[i, j], values[i, j], 0.35)
            m = len(alone.values)
            assert torch.equal(together.points[i, j, :m], alone.points)
            assert torch.equal(together.values[i, j, :m], alone.values)
            assert together.points[i, j, m:].isnan().all()
            assert (together.values[i, j, m:] == -torch.inf).all()


@pytest.mark.parametrize("d", [1, 2, 8])
def test_the_rival_of_a_lone_optimum_is_on_the_sphere_around_it(d):
    center = torch.full((d,), 0.45, dtype=torch.float64)

    def peak(X):
        return -(X - center).square().sum((-1, -2))

    optima = local_optima(peak, unit_box(d))
    assert len(optima.values) == 1
    rival = far_rival(peak, optima, unit_box(d), 0.2)
    distance = (rival.point - optima.points[0]).norm()
    assert 0.2 < distance < 0.2001
    assert rival.value == peak(rival.point[None])


def test_the_rival_is_the_best_far_point_there_is():
    # In one dimension the sphere is two points: the truth is a fine grid outside it.
    acq_function = ucb(1, seed=5)
    bounds = unit_box(1)
    optima = local_optima(acq_function, bounds)
    ascent = ascend(acq_function, bounds)
    candidates = torch.cat([ascent.starts, ascent.points])
    rival = far_rival(acq_function, optima, bounds, 0.3, candidates)
    grid = torch.linspace(0, 1, 20001, dtype=torch.float64)[:, None]
    grid = grid[(grid - optima.points[0]).abs().squeeze(-1) > 0.3]
    with torch.no_grad():
        assert rival.value >= acq_function(grid.unsqueeze(-2)).max() - 1e-4
    assert (rival.point - optima.points[0]).abs() > 0.3


def test_candidates_are_considered():
    def needle(X):
        return (X[..., 0, 0] == 0.87654).double()

    optima = Optima(torch.tensor([[0.1]], dtype=torch.float64), torch.ones(1).double())
    needle_at = torch.tensor([[0.87654], [0.1]], dtype=torch.float64)
    assert far_rival(needle, optima, unit_box(1), 0.2).value == 0
    assert far_rival(needle, optima, unit_box(1), 0.2, needle_at).value == 1


def test_a_box_within_the_bandwidth_holds_no_rival():
    corner = Optima(torch.zeros(1, 2, dtype=torch.float64), torch.zeros(1).double())
    acq_function = peaks(CENTERS, HEIGHTS)
    assert far_rival(acq_function, corner, unit_box(2), 1.5) is None
    rival = far_rival(acq_function, corner, unit_box(2), 1.41)
    torch.testing.assert_close(rival.point, torch.ones(2).double(), atol=0.01, rtol=0)


def test_bad_input_is_named():
    acq_function = peaks(CENTERS, HEIGHTS)
    with pytest.raises(InvalidShapeError, match="bounds"):
        local_optima(acq_function, torch.zeros(2))
    with pytest.raises(InvalidArgumentError, match="lower < upper"):
        local_optima(acq_function, torch.zeros(2, 2))
    with pytest.raises(InvalidArgumentError, match="starts"):
        local_optima(acq_function, unit_box(2), starts="latin")
    with pytest.raises(InvalidArgumentError, match="num_restarts"):
        local_optima(acq_function, unit_box(2), 0)
    with pytest.raises(InvalidShapeError, match="warm_starts"):
        local_optima(acq_function, unit_box(2), warm_starts=torch.zeros(2))
    with pytest.raises(InvalidShapeError, match="value_and_gradient"):
        local_optima(lambda X: X.sum(-1), unit_box(2))
    with pytest.raises(InvalidArgumentError, match="values"):
        suppress(torch.zeros(1, 2), torch.tensor([torch.nan]), 0.2)
