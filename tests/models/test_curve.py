"""A GP of the scores of learning curves."""

import copy
import math
import pickle

import pytest
import torch
from botorch.acquisition import qKnowledgeGradient
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.sampling import SobolQMCNormalSampler
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.mlls import ExactMarginalLogLikelihood

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from botorch_costly.models import CurveGP, fit_curves
from botorch_costly.models.curve import LEAST_LENGTHSCALE, z_scores
from botorch_costly.numerics import augmentation
from botorch_costly.numerics.compression import sigmoid_weights
from botorch_costly.transforms import CurveCompression
from tests.cases import quick
from tests.oracles import augmentation as oracle

LONGEST = 20


def data(generator, c=12, d=2, longest=LONGEST):
    """Curves that rise to values of different sizes; every third is short, and one has gaps."""
    configs = torch.rand(c, d, generator=generator, dtype=torch.float64)
    at = torch.arange(1, longest + 1, dtype=torch.float64) / longest
    ends = torch.sin(4 * configs[:, :1]) + configs[:, 1:2]
    curves = ends * at.sqrt() + 0.01 * torch.randn(c, longest, generator=generator).double()
    curves[::3, longest // 2 :] = torch.nan
    curves[1, 4:8] = torch.nan
    return configs, curves


@pytest.fixture
def model(generator):
    return CurveGP(*data(generator))


def loss_of(model):
    model.train()
    loss = model.compute_custom_loss(ExactMarginalLogLikelihood(model.likelihood, model))
    model.eval()
    return len(model.marks) * loss


def naive_scores(model):
    """The scores of eq. 4, number by number."""
    m, g = model.compression.midpoint.item(), model.compression.growth.item()
    scores = []
    for curve, until in model.marks.tolist():
        weights, total, observed_weight, whole = [], 0.0, 0.0, 0.0
        for u in range(1, until + 1):
            s = -6 + 12 * (u - 1) / (LONGEST - 1)
            weights.append(1 / (1 + math.exp(-g * (s - m))))
            reward, whole = float(model.curves[curve, u - 1]), whole + weights[-1]
            if not math.isnan(reward):
                total, observed_weight = total + weights[-1] * reward, observed_weight + weights[-1]
        scores.append(whole * total / observed_weight)
    return scores


def test_targets_are_the_standardized_sums_of_the_paper(model):
    model.compression.midpoint, model.compression.growth = 1.5, 2.0
    naive = torch.tensor(naive_scores(model)).double()
    torch.testing.assert_close(model.scores().detach(), naive)
    expected = (naive - naive.mean()) / naive.std(correction=0)
    torch.testing.assert_close(model.targets().detach(), expected)


def test_each_curve_is_seen_at_its_last_reward(model):
    assert model.marks[:3].tolist() == [[0, 10], [1, 20], [2, 20]]
    assert model.train_inputs[0][0, -1] == 0.5
    assert len(model.marks) == 12


def test_what_is_believed_follows_the_compression(model):
    """Scores stored before midpoint or growth changed would be wrong."""
    where = model.train_inputs[0][:4]
    before = model.posterior(where).mean
    model.compression.midpoint = 5.0
    after = model.posterior(where).mean
    fresh = CurveGP(
        model.configs, model.curves, compression=model.compression, covar_module=model.covar_module
    )
    assert float((before - after).detach().abs().max()) > 0.01
    torch.testing.assert_close(after, fresh.posterior(where).mean)


def test_the_loss_has_the_slopes_of_finite_differences(model):
    model.compression.midpoint, model.compression.growth = 0.7, 1.3
    for name in ("compression.raw_midpoint", "compression.raw_growth"):
        parameter = dict(model.named_parameters())[name]
        (slope,) = torch.autograd.grad(loss_of(model), parameter)
        values = []
        for step in (1e-4, -1e-4):
            with torch.no_grad():
                parameter += step
                values.append(loss_of(model).item())
                parameter -= step
        assert float(slope) == pytest.approx((values[0] - values[1]) / 2e-4, rel=1e-5, abs=1e-7)


def test_both_fits_maximize_one_objective(model, generator):
    ours, theirs = copy.deepcopy(model), copy.deepcopy(model)
    before = -loss_of(model).item()
    report = fit_curves(ours, restarts=6, generator=generator)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(theirs.likelihood, theirs))
    assert report.before == pytest.approx(before, abs=1e-6)
    assert report.after == pytest.approx(-loss_of(ours).item(), abs=1e-3)
    assert report.after >= -loss_of(theirs).item() - 0.05
    alone = copy.deepcopy(model)
    assert fit_curves(alone, restarts=0).after >= before


def test_a_fit_never_makes_it_worse(model, generator):
    best = fit_curves(model, restarts=6, generator=generator).after
    again = fit_curves(model, restarts=0)
    assert again.after >= best - 1e-6
    third = fit_curves(model, restarts=2, generator=generator, max_iter=1)
    assert third.after >= again.after - 1e-9


def planted(seed, c=60, longest=60):
    """Curves of a signal in noise that is large where the weight of the plan is small.

    Of all weighted means that with these weights is the clearest.
    """
    generator = torch.Generator().manual_seed(seed)
    draws = torch.rand(2, 1, generator=generator, dtype=torch.float64)
    midpoint, growth = -4 + 8 * draws[0], 0.7 + 1.3 * draws[1]
    X = torch.rand(c, 1, generator=generator, dtype=torch.float64)
    weights = sigmoid_weights(longest, midpoint, growth)
    noise = torch.randn(c, longest, generator=generator, dtype=torch.float64)
    return CurveGP(X, torch.sin(5 * X) + noise / weights.sqrt()), midpoint, growth, generator


@pytest.mark.slow
def test_a_fit_recovers_what_was_planted():
    """Of 20 seeds, root mean square: the midpoint to 0.8 of its range of 12, the growth to 1.9 times."""
    off, ratio = [], []
    for seed in range(20):
        model, midpoint, growth, generator = planted(seed)
        fit_curves(model, restarts=6, generator=generator)
        off.append((model.compression.midpoint - midpoint).item())
        ratio.append((model.compression.growth / growth).log().item())
    assert math.sqrt(sum(x * x for x in off) / len(off)) < 1.0
    assert math.sqrt(sum(x * x for x in ratio) / len(ratio)) < math.log(2.0)


def test_late_signals_are_found_late(generator):
    configs, _ = data(generator, c=40)
    signal = torch.sin(4 * configs[:, :1]).expand(-1, LONGEST).clone()
    signal[:, :10] = torch.randn(40, 10, generator=generator)
    model = CurveGP(configs, signal)
    fit_curves(model, restarts=6, generator=generator)
    weights = model.compression.weights.detach().flatten()
    assert float(weights[:9].sum() / weights.sum()) < 0.05


@pytest.mark.parametrize("weighting", ["log", "average", "last"])
def test_given_weights_are_not_learnt(generator, weighting):
    compression = CurveCompression(LONGEST, weighting).double()
    model = CurveGP(*data(generator), compression=compression)
    before = model.scores().detach()
    report = fit_curves(model, restarts=2, generator=generator)
    assert report.after > report.before
    torch.testing.assert_close(model.scores().detach(), before)


FEW = [(None, 4), ([7], 15), ([11, 1, 5, 2], 9)]  # curves that get points, and how many


@pytest.mark.parametrize(
    ("curves", "most", "largest"),
    quick(
        [(*few, largest) for few in FEW for largest in (8.0, 16.0, 20.0)],
        (*FEW[0], 8.0),
        (*FEW[1], 20.0),
        (*FEW[2], 16.0),
    ),
)
def test_points_are_added_where_least_is_known(model, curves, most, largest):
    fuller = model.augmented(curves, most, largest)
    slow = oracle.augmented(model, most, largest, curves)
    assert fuller.marks.tolist() == slow
    turns = list(range(12)) if curves is None else curves
    assert {curve for curve, _ in slow[12:]} <= set(turns)
    if largest == 20.0:
        assert len(slow) == 12 + most * len(turns)
    rewards = fuller.curves[fuller.marks[:, 0], fuller.marks[:, 1] - 1]
    assert not bool(rewards.isnan().any())


@pytest.mark.parametrize("largest", [2.0, 5.0, 10.0, 15.0])
def test_the_condition_number_stays_within_its_bound(model, largest):
    fuller = model.augmented(largest_log_condition=largest)
    one_more = model.augmented(most=1, largest_log_condition=math.inf)
    before, after, refused = (
        oracle.log_condition(gp.covar_module(gp.train_inputs[0]).to_dense().detach())
        for gp in (model, fuller, one_more)
    )
    if len(fuller.marks) > len(model.marks):
        assert before <= after <= largest
    else:
        assert refused > largest


@pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.InputDataWarning")
def test_single_precision_chooses_the_same_points(generator):
    configs, curves = (part.float() for part in data(generator, c=30))
    single = CurveGP(configs, curves).augmented(range(20), most=9)
    double = CurveGP(configs.double(), curves.double()).augmented(range(20), most=9)
    assert single.marks.tolist() == double.marks.tolist()
    assert 30 < len(single.marks) < 30 + 9 * 20


def counts_of_a_run(generator, noise, monkeypatch, c=60):
    """Return how many points join the data with each new curve, as in a search."""
    monkeypatch.setattr(augmentation, "FIXED_NOISE", noise)
    configs, curves = data(generator, c=c)
    marks, added = torch.empty(0, 2, dtype=torch.long), []
    for many in range(1, c + 1):
        end = LONGEST // 2 if (many - 1) % 3 == 0 else LONGEST
        marks = torch.cat([marks, torch.tensor([[many - 1, end]])])
        model = CurveGP(configs[:many], curves[:many], marks).augmented([many - 1])
        added.append(len(model.marks) - len(marks))
        marks = model.marks
    return added


def test_points_are_added_until_the_data_are_at_the_bound(generator, monkeypatch):
    """They neither stop at once, as without a noise, nor go on for ever."""
    added = counts_of_a_run(generator, augmentation.FIXED_NOISE, monkeypatch)
    assert added[:6] == [9, 15, 15] * 2
    assert sum(added[6:12]) > sum(added[12:18]) >= sum(added[-6:]) == 0
    assert 2 * sum(counts_of_a_run(generator, 1e-10, monkeypatch)) < 1.5 * sum(added)


def test_an_augmented_model_shares_nothing(model, generator):
    before = copy.deepcopy(model.state_dict())
    fit_curves(model.augmented(most=3), restarts=0)
    for name, value in model.state_dict().items():
        torch.testing.assert_close(value, before[name], equal_nan=True)


@pytest.mark.parametrize("value", [0.0, 0.1, -1e9])
def test_equal_curves_have_equal_targets(generator, value):
    configs, curves = data(generator)
    model = CurveGP(configs, torch.full_like(curves, value))
    assert torch.equal(model.targets().detach(), torch.zeros(12, dtype=torch.float64))
    assert math.isfinite(fit_curves(model, restarts=2, generator=generator).after)
    assert bool(model.posterior(model.train_inputs[0]).mean.isfinite().all())


def test_targets_do_not_depend_on_the_unit_of_rewards(generator):
    configs, curves = data(generator)
    ours = CurveGP(configs, curves).targets()
    torch.testing.assert_close(CurveGP(configs, 1e6 * curves).targets(), ours)
    scores = torch.tensor([1.0, 2.0, 4.0])
    torch.testing.assert_close(z_scores(1e-8 * scores), z_scores(scores))


@pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.InputDataWarning")
def test_it_keeps_the_precision_of_its_data_and_can_be_pickled(generator):
    configs, curves = data(generator)
    model = CurveGP(configs.float(), curves.float())
    fit_curves(model, restarts=1, generator=generator)
    again = pickle.loads(pickle.dumps(model))
    where = again.train_inputs[0]
    assert where.dtype == again.posterior(where).mean.dtype == torch.float32
    torch.testing.assert_close(again.posterior(where).mean, model.posterior(where).mean)


REFUSED = {
    "one curve": (lambda x, y: (x, y[0]), InvalidShapeError),
    "fewer configurations": (lambda x, y: (x[1:], y), InvalidShapeError),
    "no reward": (lambda x, y: (x, torch.full_like(y, math.nan)), InvalidArgumentError),
    "an infinite reward": (lambda x, y: (x, y.nan_to_num(math.inf)), InvalidArgumentError),
    "no configuration": (lambda x, y: (x * math.nan, y), InvalidArgumentError),
    "a mark of no curve": (lambda x, y: (x, y, torch.tensor([[12, 1]])), InvalidArgumentError),
    "a mark too late": (lambda x, y: (x, y, torch.tensor([[0, 21]])), InvalidArgumentError),
    "a mark too early": (lambda x, y: (x, y, torch.tensor([[0, 0]])), InvalidArgumentError),
    "half marks": (lambda x, y: (x, y, torch.tensor([[0.0, 1.0]])), InvalidShapeError),
    "another length": (
        lambda x, y: (x, y, None, CurveCompression(LONGEST + 1)),
        InvalidArgumentError,
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_data_is_refused(generator, what):
    change, error = REFUSED[what]
    with pytest.raises(error, match=r"Expected .*; Received "):
        CurveGP(*change(*data(generator)))


def test_a_mark_before_the_first_reward_is_refused(generator):
    configs, curves = data(generator)
    curves[0, :3] = torch.nan
    with pytest.raises(InvalidArgumentError, match="from the first reward"):
        CurveGP(configs, curves, torch.tensor([[0, 3]]))
    CurveGP(configs, curves, torch.tensor([[0, 4]]))


def test_other_kernels_are_fitted_by_botorch_alone(generator):
    # Below, GPyTorch's squared distances are those of rounding.
    kernel = MaternKernel(ard_num_dims=3, lengthscale_constraint=GreaterThan(LEAST_LENGTHSCALE))
    model = CurveGP(*data(generator), covar_module=ScaleKernel(kernel))
    with pytest.raises(InvalidArgumentError, match="a scaled RBF kernel"):
        fit_curves(model, restarts=0)
    with pytest.raises(InvalidArgumentError, match=r"a torch\.Generator"):
        fit_curves(CurveGP(*data(generator)))
    before = loss_of(model).item()
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    assert loss_of(model).item() < before


def test_a_model_of_curves_can_be_conditioned_and_fantasized():
    """The kind: a promise of BoTorch's models breaks where further observations are conditioned on."""
    generator = torch.Generator().manual_seed(4)
    configs = torch.rand(5, 2, generator=generator, dtype=torch.float64)
    model = CurveGP(configs, configs[:, :1] * torch.arange(1.0, 8.0, dtype=torch.float64))
    X = torch.rand(2, 3, generator=generator, dtype=torch.float64)
    before = model.posterior(X)
    conditioned = model.condition_on_observations(
        X, torch.tensor([[2.0], [-2.0]], dtype=torch.float64)
    )
    naive = SingleTaskGP(
        torch.cat([model.train_inputs[0], X]),
        torch.cat([model.train_targets, torch.tensor([2.0, -2.0]).double()])[:, None],
        likelihood=model.likelihood,
        covar_module=model.covar_module,
        mean_module=model.mean_module,
        outcome_transform=None,
    )
    torch.testing.assert_close(conditioned.posterior(X).mean, naive.posterior(X).mean)
    assert torch.equal(model.posterior(X).mean, before.mean)
    assert len(conditioned.train().eval().train_targets) == 7
    sampler = SobolQMCNormalSampler(torch.Size([4]), seed=1)
    assert model.fantasize(X, sampler).posterior(X).mean.shape == (4, 2, 1)
    knowledge = qKnowledgeGradient(model, num_fantasies=2)
    assert knowledge(torch.rand(1, 3, 3, generator=generator, dtype=torch.float64)).isfinite().all()
