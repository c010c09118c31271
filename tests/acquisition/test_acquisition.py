"""Acquisition functions of a drifting reward against BoTorch's own, and against plain formulas."""

import math
import warnings

import pytest
import torch
from botorch.acquisition.analytic import (
    ExpectedImprovement,
    LogExpectedImprovement,
    ProbabilityOfImprovement,
    UpperConfidenceBound,
)
from botorch.acquisition.input_constructors import get_acqf_input_constructor
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.exceptions.warnings import NumericsWarning
from botorch.generation import gen
from botorch.optim import optimize_acqf
from botorch.posteriors.fully_bayesian import GaussianMixturePosterior
from botorch.utils.datasets import SupervisedDataset

from botorch_costly.acquisition import (
    TimeVaryingEI,
    TimeVaryingLogEI,
    TimeVaryingPI,
    TimeVaryingUCB,
    at_round,
    best_mean,
)
from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from botorch_costly.models import TimeVaryingGP
from tests.acquisition.beliefs import BOUNDS, NOW, data, dense, streaming
from tests.oracles import acquisition as oracle

BETA = 1.7
IMPROVEMENTS = {
    TimeVaryingEI: (ExpectedImprovement, oracle.ei),
    TimeVaryingLogEI: (LogExpectedImprovement, oracle.log_ei),
    TimeVaryingPI: (ProbabilityOfImprovement, oracle.pi),
}
EXACT = {"rtol": 1e-12, "atol": 1e-12}


class Ensemble(TimeVaryingGP):
    """Its batch members are equally likely hyperparameters, as BoTorch marks them."""

    _is_ensemble = True

    def posterior(self, X, *args, **kwargs):
        posterior = super().posterior(X.unsqueeze(-3), *args, **kwargs)
        return GaussianMixturePosterior(distribution=posterior.distribution)


def theirs(cls, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericsWarning)  # "use LogEI instead"
        return cls(*args, **kwargs)


def with_round(X, now=NOW):
    return torch.cat([X, torch.full_like(X[..., :1], now)], -1)


def beliefs(model, points):
    posterior = model.posterior(with_round(points))
    return list(
        zip(posterior.mean.flatten().tolist(), posterior.variance.flatten().tolist(), strict=True)
    )


# -- values -------------------------------------------------------------------------------------


@pytest.mark.parametrize("maximize", [True, False])
def test_ucb_is_botorchs_in_that_round(model, points, maximize):
    ours = TimeVaryingUCB(model, BETA, NOW, maximize=maximize)(points)
    beta = torch.tensor(BETA, dtype=torch.float64)
    expected = UpperConfidenceBound(model, beta, maximize=maximize)(with_round(points))
    torch.testing.assert_close(ours, expected, **EXACT)


@pytest.mark.parametrize("maximize", [True, False])
@pytest.mark.parametrize("cls", IMPROVEMENTS)
def test_improvement_is_botorchs_in_that_round(model, points, cls, maximize):
    best = torch.tensor(50.6, dtype=torch.float64)
    ours = cls(model, best, NOW, maximize=maximize)(points)
    expected = theirs(IMPROVEMENTS[cls][0], model, best, maximize=maximize)(with_round(points))
    torch.testing.assert_close(ours, expected, **EXACT)


@pytest.mark.parametrize("beta", [0, 0.8, 2, 3.7])
def test_ucb_is_its_formula_in_full_precision(model, points, beta):
    expected = [oracle.ucb(*belief, beta) for belief in beliefs(model, points)]
    assert TimeVaryingUCB(model, beta, NOW)(points).tolist() == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("cls", IMPROVEMENTS)
def test_improvement_is_its_formula_in_full_precision(model, points, cls):
    # 50.3 is no number of single precision, to which BoTorch would round it.
    expected = [IMPROVEMENTS[cls][1](*belief, 50.3) for belief in beliefs(model, points)]
    assert cls(model, 50.3, NOW)(points).tolist() == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("now", [3, 11.0, torch.tensor([400.0])])
def test_the_round_decides(model, points, now):
    value = TimeVaryingUCB(model, BETA, now)(points)
    beta = torch.tensor(BETA, dtype=torch.float64)
    expected = UpperConfidenceBound(model, beta)(with_round(points, float(now)))
    torch.testing.assert_close(value, expected, **EXACT)
    if float(now) != NOW:
        assert (value - TimeVaryingUCB(model, BETA, NOW)(points)).abs().max() > 0.01


def test_the_round_is_the_last_column(points):
    joined = at_round(points, torch.tensor(3))
    assert joined.shape == (7, 1, 3)
    assert torch.equal(joined[..., :2], points)
    assert (joined[..., 2] == 3).all()
    assert joined.dtype == points.dtype


@pytest.mark.parametrize("cls", IMPROVEMENTS)
def test_a_transform_reaches_the_posterior(model, points, cls):
    flip = ScalarizedPosteriorTransform(torch.tensor([-1.0], dtype=torch.float64))
    ours = cls(model, -50.3, NOW, posterior_transform=flip)(points)
    torch.testing.assert_close(ours, cls(model, 50.3, NOW, maximize=False)(points), **EXACT)


# -- best mean ----------------------------------------------------------------------------------


@pytest.mark.parametrize("maximize", [True, False])
def test_best_mean_is_a_loop_over_configurations(model, maximize):
    X, _ = data()
    means = [model.posterior(with_round(x[None, :2])).mean.item() for x in X]
    best = best_mean(model, X[:, :2], NOW, maximize=maximize)
    assert best.dim() == 0
    assert best.item() == pytest.approx((max if maximize else min)(means), rel=1e-12)
    assert not best.requires_grad


def test_best_mean_of_no_configuration_is_named(model):
    with pytest.raises(InvalidShapeError, match=r"X: Expected at least one .*; Received \(0, 2\)"):
        best_mean(model, torch.zeros(0, 2, dtype=torch.float64), NOW)


# -- batches of models and ensembles ------------------------------------------------------------


def test_each_member_of_a_batched_model_has_its_own_values(points):
    X, Y = data(batch=(3,))
    together = dense(batch=(3,))
    thresholds = best_mean(together, X[0, :, :2], NOW)
    assert thresholds.shape == (3, 1)
    for i in range(3):
        single = TimeVaryingGP(X[i], Y[i], forgetting=0.05)
        single.space_kernel.base_kernel.lengthscale = 0.4
        single.likelihood.noise = torch.tensor([0.1], dtype=torch.float64)
        best = best_mean(single, X[0, :, :2], NOW)
        torch.testing.assert_close(thresholds[i, 0], best)
        ours = TimeVaryingUCB(together, BETA, NOW)(points.unsqueeze(1))[:, i]
        torch.testing.assert_close(ours, TimeVaryingUCB(single, BETA, NOW)(points))
        for cls in IMPROVEMENTS:
            ours = cls(together, thresholds, NOW)(points.unsqueeze(1))[:, i]
            torch.testing.assert_close(ours, cls(single, best, NOW)(points), rtol=1e-6, atol=1e-9)


def test_an_ensemble_is_averaged(points):
    X, _ = data()
    members, ensemble = dense(batch=(3,)), dense(batch=(3,), kind=Ensemble)
    best = best_mean(ensemble, X[:, :2], NOW)
    torch.testing.assert_close(best, best_mean(members, X[:, :2], NOW))
    apart = points.unsqueeze(1)
    expected = TimeVaryingUCB(members, BETA, NOW)(apart).mean(-1)
    torch.testing.assert_close(TimeVaryingUCB(ensemble, BETA, NOW)(points), expected)
    for cls in (TimeVaryingEI, TimeVaryingPI):
        expected = cls(members, best, NOW)(apart).mean(-1)
        torch.testing.assert_close(cls(ensemble, best, NOW)(points), expected)
    expected = TimeVaryingEI(members, best, NOW)(apart).mean(-1).log()
    torch.testing.assert_close(TimeVaryingLogEI(ensemble, best, NOW)(points), expected)


# -- inside BoTorch -----------------------------------------------------------------------------


def test_optimize_acqf_takes_the_batched_path_from_given_starts(model, monkeypatch):
    starts = torch.rand(20, 1, 2, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    calls, batched = [], gen.fmin_l_bfgs_b_batched

    def spy(*args, **kwargs):
        calls.append(kwargs["x0"].shape)
        return batched(*args, **kwargs)

    monkeypatch.setattr(gen, "fmin_l_bfgs_b_batched", spy)
    acquisition = TimeVaryingUCB(model, BETA, NOW)
    optima, values = optimize_acqf(
        acquisition,
        BOUNDS,
        q=1,
        num_restarts=20,
        batch_initial_conditions=starts,
        return_best_only=False,
    )
    assert calls == [(20, 2)]
    assert optima.shape == (20, 1, 2)
    with torch.no_grad():
        torch.testing.assert_close(acquisition(optima), values)
        assert (values >= acquisition(starts) - 1e-9).all()


@pytest.mark.parametrize("cls", [TimeVaryingUCB, TimeVaryingLogEI])
def test_optimize_acqf_finds_the_best_of_a_grid(model, cls):
    acquisition = cls(model, 2.0 if cls is TimeVaryingUCB else 50.5, NOW)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        best, value = optimize_acqf(acquisition, BOUNDS, q=1, num_restarts=8, raw_samples=64)
    ticks = torch.linspace(0, 1, 60, dtype=torch.float64)
    with torch.no_grad():
        on_grid = acquisition(torch.cartesian_prod(ticks, ticks).unsqueeze(-2)).max()
    assert best.shape == (1, 2)
    assert value >= on_grid - 1e-6


def dataset(batch=()):
    X, Y = data(batch=batch)
    return SupervisedDataset(X, Y, feature_names=["a", "b", "round"], outcome_names=["reward"])


def build(cls, **kwargs):
    return cls(**get_acqf_input_constructor(cls)(training_data=dataset(), **kwargs))


def test_the_input_constructor_of_ucb(model, points):
    ours = build(TimeVaryingUCB, model=model, now=NOW, beta=BETA, maximize=False)
    expected = TimeVaryingUCB(model, BETA, NOW, maximize=False)
    torch.testing.assert_close(ours(points), expected(points), **EXACT)
    assert build(TimeVaryingUCB, model=model, now=NOW).beta == 1


@pytest.mark.parametrize("cls", IMPROVEMENTS)
@pytest.mark.parametrize("maximize", [True, False])
def test_the_input_constructor_of_improvements(model, points, cls, maximize):
    X, _ = data()
    ours = build(cls, model=model, now=NOW, maximize=maximize)
    expected = cls(
        model, best_mean(model, X[:, :2], NOW, maximize=maximize), NOW, maximize=maximize
    )
    torch.testing.assert_close(ours(points), expected(points), **EXACT)
    given = build(cls, model=model, now=NOW, best_f=50.25)
    torch.testing.assert_close(given(points), cls(model, 50.25, NOW)(points), **EXACT)


def test_the_default_threshold_is_in_the_units_of_the_transform(model):
    flip = ScalarizedPosteriorTransform(torch.tensor([-1.0], dtype=torch.float64))
    ours = build(TimeVaryingEI, model=model, now=NOW, posterior_transform=flip)
    worst = best_mean(model, data()[0][:, :2], NOW, maximize=False)
    torch.testing.assert_close(ours.best_f, -worst)


def test_the_data_may_be_listed_by_outcome(model):
    constructor = get_acqf_input_constructor(TimeVaryingEI)
    listed = constructor(model=model, training_data={"reward": dataset()}, now=NOW)
    assert listed["best_f"] == build(TimeVaryingEI, model=model, now=NOW).best_f


# -- arguments ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "now",
    [math.nan, math.inf, torch.tensor([1.0, 2.0]), torch.zeros(0), None, "soon"],
    ids=repr,
)
@pytest.mark.parametrize("cls", [TimeVaryingUCB, *IMPROVEMENTS])
def test_a_bad_round_is_named(model, cls, now):
    with pytest.raises(InvalidArgumentError, match=r"now: Expected .*; Received"):
        cls(model, 1.0, now)


@pytest.mark.parametrize(
    "beta", [-1e-9, math.nan, math.inf, torch.tensor([1.0, -1.0]), None, "1"], ids=repr
)
def test_a_bad_beta_is_named(model, beta):
    with pytest.raises(InvalidArgumentError, match=r"beta: Expected .*numbers.*; Received"):
        TimeVaryingUCB(model, beta, NOW)


@pytest.mark.parametrize("cls", IMPROVEMENTS)
def test_a_threshold_that_is_no_number_is_named(model, cls):
    with pytest.raises(InvalidArgumentError, match="best_f: Expected numbers; Received None"):
        cls(model, None, NOW)


@pytest.mark.parametrize("cls", [TimeVaryingUCB, *IMPROVEMENTS])
def test_the_round_cannot_be_left_out(model, cls):
    with pytest.raises(TypeError, match="now"):
        cls(model, 1.0)
    with pytest.raises(TypeError, match="now"):
        build(cls, model=model)


def closed_form(now=NOW):
    return TimeVaryingUCB(streaming(), BETA, now)


def test_configurations_with_other_columns_are_named_by_the_closed_form_too():
    acquisition = closed_form()
    for columns in (1, 3):
        X = torch.rand(5, 1, columns, dtype=torch.float64)
        with pytest.raises(InvalidShapeError, match="X"):
            acquisition(X)
        with pytest.raises(InvalidShapeError, match="X"):
            acquisition.with_gradient(X.squeeze(-2))
        with pytest.raises(InvalidShapeError, match="X"):
            acquisition.model.in_round(X, NOW)


def test_a_loaded_or_changed_round_is_the_round_of_values_and_gradients(points):
    acquisition, later = closed_form(), closed_form(NOW + 30)
    expected = later(points)
    acquisition.load_state_dict(later.state_dict())
    torch.testing.assert_close(acquisition(points), expected)
    torch.testing.assert_close(acquisition(points.clone().requires_grad_()).detach(), expected)
    other = closed_form()
    other.now = torch.tensor(NOW + 30, dtype=torch.float64)
    torch.testing.assert_close(other(points), expected)


def test_shapes_do_not_depend_on_gradients_being_asked_for(points):
    acquisition = closed_form()
    for X in (points, points[:2].unsqueeze(0), points[0]):
        assert acquisition(X).shape == acquisition(X.clone().requires_grad_()).shape


def test_fixed_points_have_the_values_of_others(points):
    acquisition = closed_form()
    torch.testing.assert_close(acquisition.at_fixed_points(points), acquisition(points))
    slope = points.clone().requires_grad_()
    acquisition.at_fixed_points(slope)
    acquisition(slope).sum().backward()
    assert slope.grad.abs().max() > 0
    with torch.inference_mode():
        made_there = points.clone()
    torch.testing.assert_close(acquisition(made_there), acquisition(points))
    torch.testing.assert_close(acquisition.at_fixed_points(made_there), acquisition(points))


def test_single_precision_questions_are_answered_in_that_of_the_belief(points):
    acquisition = closed_form()
    torch.testing.assert_close(
        acquisition(points.float()), acquisition(points), rtol=1e-5, atol=1e-5
    )
