"""Landscapes have the law they claim, and their maxima are those of a brute search."""

import pytest
import torch

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from botorch_costly.optim import ascend
from botorch_costly.problems import DriftingHartmann, DriftingPath, DriftingSample
from tests.cases import quick
from tests.oracles import dense_gp

MAKERS = {
    "sample": lambda dim: DriftingSample(dim, 0.25, 0.05, num_features=200),
    "matern12": lambda dim: DriftingSample(dim, 0.5, 0.05, "matern12", 100),
    "hartmann": lambda dim: DriftingHartmann(dim, 0.05),
}
BOTH = pytest.mark.parametrize("name", ["sample", "hartmann"])


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def cube(n, dim, seed=0):
    return torch.rand(n, dim, generator=seeded(seed), dtype=torch.float64)


FAMILIES = [("matern12", 0.5), ("matern32", 1.5), ("matern52", 2.5), ("rbf", None)]


@pytest.mark.parametrize(("family", "nu"), quick(FAMILIES, FAMILIES[-1]))
def test_samples_have_the_product_covariance(family, nu):
    """Over 3,000 paths: the kernel in space, times (1 - forgetting)^(lag / 2)."""
    x, generator, lags = cube(5, 3), seeded(1), (0, 1, 4)
    truth = DriftingSample(3, 0.6, 0.3, family, num_features=20)
    paths = (truth.path(5, generator) for _ in range(3000))
    values = torch.stack([torch.stack([p.value(t, x) for t in lags]) for p in paths])
    expected = dense_gp.matern(x, x, 0.6, nu=nu)
    for i, lag in enumerate(lags):
        # One standard error is about 1.4 / sqrt(3000) = 0.026.
        covariance = values[:, 0].mT @ values[:, i] / len(values)
        assert (covariance - expected * 0.7 ** (lag / 2)).abs().max() < 0.09
        now = values[:, i].mT @ values[:, i] / len(values)
        assert (now - expected).abs().max() < 0.09


def test_one_path_with_many_features_has_nearly_the_prior_variance():
    """At far points its values are a normal sample, and in every round anew."""
    truth = DriftingSample(2, 0.02, 1.0, num_features=1000)
    path = truth.path(20, seeded())
    values = torch.stack([path.value(t, cube(400, 2)) for t in range(20)])
    assert values.mean().item() == pytest.approx(0, abs=0.05)
    assert values.var().item() == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("dim", [2, 6])
def test_hartmann_is_standard_over_the_cube(dim):
    path = DriftingHartmann(dim, 0.02).path(40, seeded(3))
    values = torch.stack([path.value(t, cube(2000, dim)) for t in range(40)])
    assert values.mean().item() == pytest.approx(0, abs=0.05)
    assert values.std().item() == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize(("forgetting", "wandering"), [(0.05, 0.0), (0.0, 0.05)])
def test_heights_and_centers_drift_each_at_its_rate(forgetting, wandering):
    """Of a lone bump the maximum is its height and the maximizer its centre."""
    path = DriftingHartmann(2, forgetting, wandering, num_bumps=1).path(12, seeded(1))
    centers = torch.stack([path.maximizer(t) for t in range(12)])
    heights = torch.tensor([path.maximum(t) for t in range(12)])
    steps = (centers.diff(dim=0).abs().amax(-1), heights.diff().abs())
    still, moves = steps if forgetting else steps[::-1]
    assert still.max() < 1e-4
    assert (moves > 1e-3).all()
    assert moves.max() < 1.0


@BOTH
def test_without_forgetting_nothing_moves(name):
    truth = DriftingSample(2, 0.3, 0.0) if name == "sample" else DriftingHartmann(2, 0.0)
    path = truth.path(3, seeded())
    assert torch.equal(path.value(0, cube(9, 2)), path.value(2, cube(9, 2)))


@pytest.mark.parametrize("name", MAKERS)
def test_the_maximum_is_that_of_a_fine_lattice(name):
    path = MAKERS[name](2).path(4, seeded(5))
    side = torch.linspace(0, 1, 151, dtype=torch.float64)
    lattice = torch.cartesian_prod(side, side)
    for t in range(4):
        highest = path.value(t, lattice).max().item()
        assert path.maximum(t) >= highest - 1e-9
        if name != "matern12":  # which is rough between the points
            assert path.maximum(t) <= highest + 0.01
        at = path.value(t, path.maximizer(t).unsqueeze(0)).item()
        assert at == pytest.approx(path.maximum(t), abs=1e-12)
        assert ((path.maximizer(t) >= 0) & (path.maximizer(t) <= 1)).all()


@pytest.mark.parametrize(
    "seed", quick([6, 14, 25], 25)
)  # where a round without a history would be misjudged
def test_in_eight_dimensions_many_more_ascents_find_nothing_higher(seed):
    path = DriftingSample(8, 0.7, 0.05, num_features=100).path(3, seeded(seed))
    bounds = torch.tensor([[0.0], [1.0]], dtype=torch.float64).expand(2, 8)
    for t in (0, 2):
        many = ascend(
            lambda X, t=t: path.value(t, X.squeeze(-2)), bounds, 400, generator=seeded(seed)
        )
        assert path.maximum(t) > many.values.max() - 1e-6


class Needle(DriftingPath):
    """A hill that becomes a needle and walks: soon no scan will see anything of it."""

    def __init__(self):
        super().__init__(dim=6, horizon=8)

    def _value(self, t, X):
        center = 0.3 + 0.003 * t
        return torch.exp(-(10 * 4**t) * (X - center).square().sum(-1))


def test_an_optimum_once_found_is_followed():
    path = Needle()
    assert path.value(7, cube(2000, 6)).max() < 1e-6
    for t in range(8):
        assert path.maximum(t) == pytest.approx(1, abs=1e-6)


@BOTH
def test_paths_are_reproducible_and_maxima_do_not_depend_on_who_asks_when(name):
    before = torch.random.get_rng_state()
    first, second = (MAKERS[name](3).path(4, seeded(1)) for _ in range(2))
    other = MAKERS[name](3).path(4, seeded(2))
    assert torch.equal(first.value(2, cube(7, 3)), second.value(2, cube(7, 3)))
    assert not torch.equal(first.value(2, cube(7, 3)), other.value(2, cube(7, 3)))
    forward = [first.maximum(t) for t in range(4)]
    assert [second.maximum(t) for t in (3, 2, 1, 0)] == forward[::-1]
    assert torch.equal(before, torch.random.get_rng_state())


@BOTH
def test_values_are_differentiable_and_double(name):
    path = MAKERS[name](2).path(1, seeded())
    x = cube(5, 2).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: path.value(0, x), x)
    assert path.value(0, torch.rand(5, 2, generator=seeded())).dtype == torch.float64


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: DriftingSample(0, 0.2, 0.1), "dim"),
        (lambda: DriftingSample(2, 0.0, 0.1), "lengthscale"),
        (lambda: DriftingSample(2, 0.2, 1.1), "forgetting"),
        (lambda: DriftingSample(2, 0.2, 0.1, "arms"), "family"),
        (lambda: DriftingSample(2, 0.2, 0.1, num_features=7), "num_features"),
        (lambda: DriftingHartmann(2, -0.1), "forgetting"),
        (lambda: DriftingHartmann(2, 0.1, 1.1), "wandering"),
        (lambda: DriftingHartmann(2, num_bumps=0), "num_bumps"),
        (lambda: DriftingHartmann(2).path(0, seeded()), "horizon"),
        (lambda: DriftingSample(2, 0.2, 0.1).path(3, seeded()).value(3, cube(2, 2)), "t"),
        (lambda: DriftingSample(2, 0.2, 0.1).path(3, seeded()).maximum(-1), "t"),
    ],
)
def test_what_is_out_of_range_is_named(make, name):
    with pytest.raises(InvalidArgumentError, match=f"^{name}: Expected"):
        make()


def test_points_of_another_dimension_are_named():
    with pytest.raises(InvalidShapeError, match=r"X: Expected shape \(m, 2\)"):
        DriftingHartmann(2).path(1, seeded()).value(0, cube(4, 3))
