"""The cached factor in long, irregular runs."""

import copy
import io
import math
import pickle

import pytest
import torch
from gpytorch.kernels import MaternKernel, PeriodicKernel, ScaleKernel
from gpytorch.means import ConstantMean

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from botorch_costly.models import StreamingGP, TimeVaryingGP
from botorch_costly.numerics.stationary import Stationary
from tests.cases import quick

NOISE = 0.1
EXACT = {"rtol": 1e-8, "atol": 1e-8}


def kernel(lengthscale=0.3, **tkwargs):
    tkwargs = {"dtype": torch.float64, **tkwargs}
    return Stationary("matern32", torch.tensor([lengthscale], **tkwargs), torch.ones((), **tkwargs))


def belief(forgetting=0.1, **kwargs):
    return StreamingGP(kernel(), forgetting, NOISE, **kwargs)


def observations(n, seed=0, jumble=0.0):
    """Rows [x1, x2, round] and rewards; some arrive late if ``jumble`` is positive."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(n, 2, generator=generator, dtype=torch.float64)
    t = torch.rand(n, generator=generator, dtype=torch.float64).mul(2).cumsum(0).floor()
    order = torch.arange(n) + jumble * torch.rand(n, generator=generator)
    y = (6 * x[:, 0]).sin() + 0.3 * torch.randn(n, generator=generator, dtype=torch.float64)
    return torch.cat([x, t[:, None]], -1)[order.argsort()], y[order.argsort()]


def feed(model, X, Y):
    for x, y in zip(X, Y.tolist(), strict=True):
        model.observe(x, y)
    return model


def questions(now, shape=(25,)):
    x = torch.rand(*shape, 2, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    return torch.cat([x, torch.full((*shape, 1), float(now), dtype=torch.float64)], -1)


def assert_same_belief(gp, other, X, **tolerance):
    for a, b in zip(gp.mean_and_covariance(X), other.mean_and_covariance(X), strict=True):
        torch.testing.assert_close(a, b, **tolerance)


def snapshot(model):
    return copy.deepcopy(model.get_extra_state())


def assert_same_state(model, before):
    after = snapshot(model)
    for a, b in zip(after.pop("factor"), before.pop("factor"), strict=True):
        assert torch.equal(a, b)
    for name, value in after.items():
        same = torch.equal(value, before[name]) if torch.is_tensor(value) else value == before[name]
        assert same, name


@pytest.mark.parametrize("jumble", quick([0.0, 30.0], 30.0))
def test_a_thousand_observations_are_the_rows_that_are_left(jumble):
    X, Y = observations(1000, jumble=jumble)
    model = feed(belief(0.1, tolerance=1e-4), X, Y)
    now = X[:, -1].max()
    assert model.window == pytest.approx(math.log(1e-4) / math.log(0.9))
    left = now - X[:, -1] <= model.window
    assert 50 < model.num_rows == left.sum() < 150
    assert torch.equal(model.inputs, X[left])
    assert torch.equal(model.rewards, Y[left])
    anew = copy.deepcopy(model)
    anew.refactorize()
    assert_same_belief(model, anew, questions(now + 2), **EXACT)
    factors = (gp.get_extra_state()["factor"] for gp in (model, anew))
    for a, b in zip(*factors, strict=True):
        torch.testing.assert_close(a, b, **EXACT)


@pytest.mark.parametrize("tolerance", quick([1e-3, 1e-6, 1e-9], 1e-3))
def test_what_is_dropped_hardly_mattered(tolerance):
    """Dropping raises no variance by more than a share tolerance / (noise * forgetting).

    By duality the dropped rows add an information J about the function at the time the window
    begins, with trace(K J) <= sum of (1 - forgetting)^age / noise <= 1 / (noise * forgetting) for
    one row a round, and the belief forgets differences at that time by a factor ``tolerance`` in the
    variance and its square root in the mean.
    """
    forgetting = 0.1
    X, Y = observations(400)
    X[:, -1] = torch.arange(400)
    window = feed(belief(forgetting, tolerance=tolerance), X, Y)
    whole = feed(belief(forgetting, tolerance=1e-300), X, Y)
    assert window.num_rows < 400 == whole.num_rows
    (mean, cov), (exact_mean, exact_cov) = (
        model.mean_and_covariance(questions(400)) for model in (window, whole)
    )
    share = tolerance / (NOISE * forgetting)
    variance, exact_variance = cov.diagonal(), exact_cov.diagonal()
    assert (variance >= exact_variance - 1e-12).all()
    assert (variance <= exact_variance * (1 + share) + 1e-12).all()
    spread = exact_variance.sqrt() * Y.abs().max()
    assert ((mean - exact_mean).abs() <= math.sqrt(share) * spread + 1e-12).all()


def test_no_more_rows_than_allowed():
    X, Y = observations(120)
    model = feed(belief(0.0, maximum_rows=40), X, Y)
    assert torch.equal(model.inputs, X[-40:])
    assert model.window == math.inf
    recent = feed(belief(0.0), X[-40:], Y[-40:])
    assert_same_belief(model, recent, questions(200), **EXACT)


def test_late_rounds_are_placed_where_they_belong():
    X, Y = observations(60)
    order = torch.randperm(60, generator=torch.Generator().manual_seed(3))
    tidy, untidy = feed(belief(0.02), X, Y), feed(belief(0.02), X[order], Y[order])
    assert_same_belief(tidy, untidy, questions(70), **EXACT)
    rows = tidy.num_rows
    tidy.observe(torch.tensor([0.5, 0.5, -10_000.0]).double(), 1.0)  # too late to matter
    assert tidy.num_rows == rows
    assert_same_belief(tidy, untidy, questions(70), **EXACT)


def test_full_forgetting_keeps_the_present_round_alone():
    model = belief(1.0)
    for t, y in [(0.0, 1.0), (1.0, 2.0), (1.0, 3.0)]:
        model.observe(torch.tensor([0.5, t]).double(), y)
    assert model.rewards.tolist() == [2.0, 3.0]
    mean, variance = model.mean_and_variance(torch.tensor([[0.5, 1.0], [0.5, 2.0]]).double())
    assert mean.tolist() == pytest.approx([5 / (2 + NOISE), 0.0])
    assert variance.tolist() == pytest.approx([NOISE / (2 + NOISE), 1.0])


def test_rescaling_is_observing_scaled_rewards():
    X, Y = observations(60)
    X = torch.cat([X, X[:3]])  # twice the same question
    Y = torch.cat([Y, Y[:3] + 0.1])
    model = feed(belief(0.03), X, 40 + 7 * Y)
    model.rescale(40.0, 7.0)
    plain = feed(belief(0.03), X, Y)
    asked = questions(65)
    mean, cov = plain.mean_and_covariance(asked)
    torch.testing.assert_close(model.mean_and_covariance(asked)[0], 40 + 7 * mean)
    torch.testing.assert_close(model.mean_and_covariance(asked)[1], 49 * cov)
    noisy = model.posterior(asked, observation_noise=True).variance.squeeze(-1)
    torch.testing.assert_close(noisy, 49 * (cov.diagonal() + NOISE))
    model.rescale(0.0, 1.0)
    assert_same_belief(model, feed(belief(0.03), X, 40 + 7 * Y), asked)


def test_targets_are_what_the_belief_is_conditioned_on():
    X, Y = observations(60)
    X[:, -1] += 0.5
    model = feed(belief(0.03), X, 40 + 7 * Y)
    model.rescale(40.0, 7.0, Y.clamp(-0.5, 0.5))
    clipped = feed(belief(0.03), X, Y.clamp(-0.5, 0.5))
    asked = questions(65)
    other = model.with_hyperparameters_of(belief(0.03))
    for gp in (model, other):
        mean, _ = gp.mean_and_covariance(asked)
        torch.testing.assert_close(mean, 40 + 7 * clipped.mean_and_covariance(asked)[0])
    assert_same_belief(model.in_prior_units(), clipped, asked)
    model.rescale(0.0, 1.0)  # the rewards themselves were kept
    assert_same_belief(model, feed(belief(0.03), X, 40 + 7 * Y), asked)


def test_what_cannot_be_rescaled_to_is_named():
    model = feed(belief(0.03), *observations(5))
    asked = questions(6)
    before = model.mean_and_covariance(asked)
    for error, options in [
        (InvalidArgumentError, {"center": math.nan, "scale": 1.0}),
        (InvalidArgumentError, {"center": 0.0, "scale": 0.0}),
        (InvalidShapeError, {"center": 0.0, "scale": 1.0, "targets": torch.zeros(4)}),
        (
            InvalidArgumentError,
            {"center": 0.0, "scale": 1.0, "targets": torch.full((5,), math.nan)},
        ),
    ]:
        with pytest.raises(error, match="Expected"):
            model.rescale(**options)
    torch.testing.assert_close(model.mean_and_covariance(asked), before, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("x", "reward", "error"),
    [
        ([0.1, 0.2, 70.0], math.nan, InvalidArgumentError),
        ([0.1, 0.2, 70.0], math.inf, InvalidArgumentError),
        ([0.1, math.nan, 70.0], 1.0, InvalidArgumentError),
        ([0.1, 0.2, math.inf], 1.0, InvalidArgumentError),
        ([0.1, 70.0], 1.0, InvalidShapeError),
        ([0.1, 0.2, 0.3, 70.0], 1.0, InvalidShapeError),
        ([[0.1, 0.2, 70.0]], 1.0, InvalidShapeError),
        (70.0, 1.0, InvalidShapeError),
        ([70.0], 1.0, InvalidShapeError),
    ],
)
def test_bad_observations_are_named_and_leave_the_belief_as_it_was(x, reward, error):
    model = feed(belief(), *observations(20))
    before = snapshot(model)
    with pytest.raises(error, match=r"Expected .*; Received"):
        model.observe(torch.tensor(x, dtype=torch.float64), reward)
    assert_same_state(model, before)


@pytest.mark.parametrize(
    "changed",
    [
        {"forgetting": 1.1},
        {"noise": 0.0},
        {"noise": -1.0},
        {"tolerance": 0.0},
        {"maximum_rows": 0},
        {"kernel": kernel()._replace(family="cosine")},
    ],
)
def test_bad_construction_is_named(changed):
    with pytest.raises(InvalidArgumentError, match=rf"{next(iter(changed))}: Expected"):
        StreamingGP(**{"kernel": kernel(), "forgetting": 0.1, "noise": NOISE, **changed})


@pytest.mark.parametrize("number", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_thousands_of_identical_observations(number):
    model = belief(0.0, maximum_rows=8)
    x = torch.tensor([0.5, 0.5, 3.0], dtype=torch.float64)
    for n in range(number):
        model.observe(x, 1.0 + n % 2)
    mean, variance = model.mean_and_variance(x)
    assert mean.item() == pytest.approx(8 * 1.5 / (8 + NOISE), rel=1e-8)
    assert variance.item() == pytest.approx(NOISE / (8 + NOISE), rel=1e-8)


def test_no_variance_is_rounded_below_zero():
    smooth = kernel(2.0, dtype=torch.float32)._replace(family="rbf")
    model = StreamingGP(smooth, 0.0, 1e-6)
    rows = torch.linspace(0, 1, 60)[:, None] * torch.tensor([1.0, 0.0])
    for x in rows:
        model.observe(x, 1.0)
    _, variance = model.mean_and_variance(rows + 1e-3)
    assert (variance > 0).all()


def through_a_file(model):
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    other = StreamingGP(kernel(0.9), 0.5, 1.0)  # hyperparameters come with the state
    other.load_state_dict(torch.load(file, weights_only=True))
    return other


@pytest.mark.parametrize(
    "duplicate", [through_a_file, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))]
)
def test_a_copy_continues_bit_by_bit(duplicate):
    model = belief(0.1, tolerance=1e-3, maximum_rows=55)
    model.rescale(3.0, 2.0)
    X, Y = observations(150)
    feed(model, X[:100], Y[:100])
    other = duplicate(model)
    for gp in (model, other):
        feed(gp, X[100:], Y[100:])
    assert_same_state(other, snapshot(model))
    asked = questions(160)
    assert torch.equal(model.posterior(asked).mean, other.posterior(asked).mean)


def test_no_history_is_the_prior():
    model = belief()
    model.rescale(3.0, 2.0)
    model.refactorize()
    asked = questions(5)
    mean, cov = model.mean_and_covariance(asked)
    assert (mean == 3).all()
    joint = model.posterior(asked)
    torch.testing.assert_close(joint.mean, torch.full_like(joint.mean, 3.0))
    torch.testing.assert_close(cov.diagonal(), torch.full_like(mean, 4.0))
    single = model.posterior(asked[:, None])
    assert single.mean.shape == (25, 1, 1)
    assert (single.variance == 4).all()
    # One far observation, long forgotten, is the prior too.
    model.observe(torch.tensor([0.5, 0.5, -400.0]).double(), 50.0)
    torch.testing.assert_close(model.mean_and_covariance(asked)[1], cov)


@pytest.mark.parametrize("rows", [0, 30])
@pytest.mark.parametrize("shape", [(1,), (4,), (3, 1), (3, 4), (2, 3, 4)])
def test_posteriors_of_batches_of_questions(shape, rows):
    model = feed(belief(), *observations(30))  # the round of each question is after the last row
    model = model if rows else belief()
    asked = questions(40, shape)
    for noise in (False, True, torch.rand(*shape, 1).double()):
        posterior = model.posterior(asked, observation_noise=noise)
        assert posterior.mean.shape == (*shape, 1) == posterior.variance.shape
        assert posterior.rsample(torch.Size([2])).shape == (2, *shape, 1)
        flat = model.posterior(asked.reshape(-1, 1, 3)).variance.reshape(*shape, 1)
        added = 0 if noise is False else NOISE if noise is True else noise
        torch.testing.assert_close(posterior.variance, flat + added)


def test_the_joint_posterior_of_a_batch_is_a_loop():
    model = feed(belief(), *observations(30))
    asked = questions(40, (2, 3, 4))
    _, cov = model.mean_and_covariance(asked)
    for i in range(2):
        for j in range(3):
            torch.testing.assert_close(cov[i, j], model.mean_and_covariance(asked[i, j])[1])


def test_gradients_of_mean_and_variance_are_finite_differences():
    model = feed(belief(), *observations(15))
    asked = questions(16, (3,)).requires_grad_()
    assert torch.autograd.gradcheck(model.mean_and_variance, (asked,))


def test_other_hyperparameters_same_data():
    X, Y = observations(40)
    for rows in (0, 40):
        model = feed(belief(0.02), X[:rows], Y[:rows])
        model.rescale(3.0, 2.0)
        other = StreamingGP(kernel(0.8), 0.01, 0.3)
        feed(other, X[:5], -Y[:5])  # its own data are given up
        other = model.with_hyperparameters_of(other)
        expected = feed(StreamingGP(kernel(0.8), 0.01, 0.3), X[:rows], Y[:rows])
        expected.rescale(3.0, 2.0)
        assert_same_belief(other, expected, questions(50), **EXACT)
        other.observe(X[0], 1.0)
        assert other.num_rows == rows + 1


def test_single_precision_stays_single_and_close():
    X, Y = observations(200)
    single = StreamingGP(kernel(dtype=torch.float32), 0.1, NOISE, tolerance=1e-4)
    feed(single, X.float(), Y.float())
    double = feed(belief(0.1, tolerance=1e-4), X, Y)
    asked = questions(X[-1, -1].item() + 1)
    posterior = single.posterior(asked.float(), observation_noise=True)
    assert posterior.mean.dtype == posterior.variance.dtype == torch.float32
    expected = double.posterior(asked, observation_noise=True)
    torch.testing.assert_close(posterior.mean.double(), expected.mean, rtol=0, atol=1e-3)
    torch.testing.assert_close(posterior.variance.double(), expected.variance, rtol=0, atol=1e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mean_module": ConstantMean()}, "a zero mean"),
        ({"space_kernel": ScaleKernel(PeriodicKernel())}, r"a \(scaled\) Matérn or RBF kernel"),
        ({"space_kernel": MaternKernel(active_dims=(1,))}, "all 2 configuration columns"),
    ],
)
def test_a_model_that_cannot_be_streamed_is_named(options, message):
    X, Y = observations(8)
    model = TimeVaryingGP(X, Y[:, None], **options)
    with pytest.raises(InvalidArgumentError, match=message):
        StreamingGP.from_model(model)
