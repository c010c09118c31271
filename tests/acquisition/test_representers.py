"""Points that stand for where the optimum may be."""

import pytest
import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.models import SingleTaskGP
from botorch.posteriors import GPyTorchPosterior
from gpytorch.distributions import MultivariateNormal

from botorch_costly.acquisition import representers
from botorch_costly.acquisition.representers import MEASURES, _best_of_draws, log_improvement
from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from botorch_costly.models import HyperparameterEnsemble
from botorch_costly.numerics.ep import log_prob_min
from tests.cases import quick

pytestmark = pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.InputDataWarning")

NUMBERS = {"dtype": torch.float64}
BOUNDS = torch.tensor([[0.0] * 3, [1.0] * 3], **NUMBERS)


@pytest.fixture(scope="module")
def ensemble():
    generator = torch.Generator().manual_seed(4)
    X = torch.rand(12, 3, generator=generator, **NUMBERS)
    Y = torch.sin(4 * X[:, :1]) + (1 - X[:, -1:]) ** 2
    Y = (Y - Y.mean()) / Y.std()
    model = SingleTaskGP(X.expand(4, -1, -1), Y.expand(4, -1, -1), outcome_transform=None)
    lengths = torch.tensor([0.3, 0.5, 0.8, 1.2], **NUMBERS)
    model.covar_module.lengthscale = lengths[:, None, None].expand(4, 1, 3)
    return HyperparameterEnsemble(model.eval())


def draw(model, num, measure, **options):
    generator = torch.Generator().manual_seed(0)
    return representers(model, BOUNDS, num, 0.8, generator, measure=measure, **options)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("num", quick([1, 5, 50], 1, 5))
def test_points_are_inside_different_and_fixed_where_they_are_to_be(ensemble, measure, num):
    bounds = torch.tensor([[0.0, -2.0, 0.0], [1.0, 3.0, 1.0]], **NUMBERS)
    generator = torch.Generator().manual_seed(0)
    options = {"measure": measure, "fixed": {2: 1.0}}
    points = representers(ensemble, bounds, num, 0.8, generator, **options)
    assert points.shape == (num, 3)
    assert (points[:, 2] == 1).all()
    assert ((points >= bounds[0]) & (points <= bounds[1])).all()
    assert num == 1 or (points[:, 1] - 0.5).abs().max() > 0.5
    assert len(points.unique(dim=0)) >= 0.8 * num
    again = representers(ensemble, bounds, num, 0.8, generator.manual_seed(0), **options)
    assert torch.equal(points, again)


def test_models_of_several_outcomes_are_refused():
    X = torch.rand(6, 3, generator=torch.Generator().manual_seed(4), **NUMBERS)
    model = SingleTaskGP(X, X[:, :2], outcome_transform=None)
    with pytest.raises(InvalidShapeError, match="model: Expected one outcome; Received '2'"):
        draw(model, 5, "improvement")


@pytest.mark.parametrize("maximize", [True, False])
def test_the_logarithm_of_the_improvement_is_that_of_botorch(ensemble, maximize):
    X = torch.rand(40, 3, generator=torch.Generator().manual_seed(1), **NUMBERS)
    best = torch.tensor(0.4, **NUMBERS)
    for model in (ensemble, SingleTaskGP(X[:9], X[:9, :1], outcome_transform=None).eval()):
        ours = log_improvement(model, X, best, maximize=maximize)
        theirs = LogExpectedImprovement(model, best, maximize=maximize)(X.unsqueeze(-2))
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("measure", MEASURES)
def test_where_all_is_fixed_there_is_one_point(ensemble, measure):
    points = draw(ensemble, 3, measure, fixed={0: 0.1, 1: 0.2, 2: 0.3})
    torch.testing.assert_close(points, torch.tensor([[0.1, 0.2, 0.3]] * 3, **NUMBERS))


def test_they_are_drawn_in_proportion_to_the_improvement(ensemble):
    generator = torch.Generator().manual_seed(0)
    drawn = torch.cat(
        [representers(ensemble, BOUNDS, 51, 0.8, generator, fixed={2: 1.0}) for _ in range(6)]
    )
    assert len(drawn.unique(dim=0)) > 250
    grid = torch.cartesian_prod(*[torch.linspace(0.02, 0.98, 25, **NUMBERS)] * 2)
    at = torch.cat([grid, torch.ones(len(grid), 1, **NUMBERS)], -1).unsqueeze(-2)
    weight = LogExpectedImprovement(ensemble, best_f=0.8)(at).detach().softmax(0)
    for column in (0, 1):
        expected = (weight * grid[:, column]).sum()
        spread = (weight * (grid[:, column] - expected).square()).sum().sqrt()
        mean = drawn[:, column].mean()
        assert mean.item() == pytest.approx(expected.item(), abs=0.35 * spread.item())
    uniform = draw(ensemble, 400, "uniform", fixed={2: 1.0})
    assert uniform[:, :2].mean(0).sub(0.5).abs().max() < 0.06


class FixedPosterior(torch.nn.Module):
    """A model with the same posterior at all inputs."""

    def __init__(self, mean, sd):
        super().__init__()
        self.given = GPyTorchPosterior(MultivariateNormal(mean, torch.diag_embed(sd.square())))

    def posterior(self, X):
        return self.given


@pytest.mark.parametrize("maximize", quick([True, False], False))
def test_a_draw_is_best_as_often_as_the_probability_says(maximize):
    mean = torch.tensor([[0.0, 0.5, 1.0, 0.2], [0.3, 0.0, 0.0, 1.0]], **NUMBERS)
    sd = torch.tensor([[1.0, 0.5, 0.3, 1.5], [0.2, 1.0, 0.4, 0.1]], **NUMBERS)
    generator, rows = torch.Generator().manual_seed(0), torch.zeros(4, 1, **NUMBERS)
    model = FixedPosterior(mean, sd)
    counts = torch.zeros(4, **NUMBERS)
    for _ in range(2000):
        counts[_best_of_draws(model, rows, 1, generator, maximize=maximize)] += 1
    sign = -1 if maximize else 1
    each = log_prob_min(sign * mean, torch.diag_embed(sd.square())).exp()
    torch.testing.assert_close(counts / 2000, each.mean(0), atol=0.04, rtol=0)
    all_of_them = _best_of_draws(model, rows, 4, generator, maximize=maximize)
    assert sorted(all_of_them.tolist()) == [0, 1, 2, 3]


def test_draws_are_best_where_the_mean_is_high_and_certain():
    side = torch.linspace(0, 1, 11, **NUMBERS)
    X = torch.cartesian_prod(side, side)
    peak = torch.tensor([0.3, 0.6], **NUMBERS)
    Y = -(X - peak).square().sum(-1, keepdim=True)
    Y = (Y - Y.mean()) / Y.std()
    model = SingleTaskGP(X, Y, torch.full_like(Y, 1e-4), outcome_transform=None).eval()
    model.covar_module.lengthscale = 0.5
    generator = torch.Generator().manual_seed(0)
    points = representers(
        model, BOUNDS[:, :2], 20, float(model.train_targets.max()), generator, measure="draws"
    )
    assert float((points - peak).norm(dim=-1).median()) < 0.1


def test_what_makes_no_sense_is_refused(ensemble):
    generator = torch.Generator()
    with pytest.raises(InvalidShapeError, match="2 x d"):
        representers(ensemble, BOUNDS[0], 5, 0.0, generator)
    with pytest.raises(InvalidArgumentError, match="measure"):
        representers(ensemble, BOUNDS, 5, 0.0, generator, measure="entropy")
    with pytest.raises(InvalidArgumentError, match="num"):
        representers(ensemble, BOUNDS, 0, 0.0, generator)
