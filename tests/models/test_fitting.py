"""Batched fits: as good as BoTorch's, bit for bit where unchanged, skipped if the gain is small."""

import math
import time
import warnings

import pytest
import torch
from botorch import fit_gpytorch_mll
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.mlls import ExactMarginalLogLikelihood

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from botorch_costly.models import TimeVaryingGP, fitting
from botorch_costly.models.fitting import Hyperparameters, fit, priors_and_bounds
from botorch_costly.models.time_varying import default_space_kernel
from botorch_costly.numerics.radial import FAMILIES, SMOOTHNESS
from tests.cases import quick, slow
from tests.counting import least_successes
from tests.oracles import evidence as oracle


def double(*values):
    return torch.tensor(values, dtype=torch.float64)


def drifting(n, dim, seed=0, family="matern52"):
    """Draw rows of a truth whose hyperparameters are drawn too, one query a round."""
    draws = torch.Generator().manual_seed(seed)
    inputs = torch.rand(n, dim + 1, generator=draws, dtype=torch.float64)
    inputs[:, -1] = torch.arange(n)
    unit = torch.rand(dim + 2, generator=draws, dtype=torch.float64)
    lengthscale = 0.1 * 20 ** unit[:dim] * math.sqrt(dim)
    noise, rate = (0.01 * 50 ** unit[dim]).item(), (0.001 * 50 ** unit[-1]).item()
    noisy = oracle.noisy_covariance(family, inputs, lengthscale, 1.0, noise, rate)
    normal = torch.randn(n, generator=draws, dtype=torch.float64)
    return inputs, torch.linalg.cholesky(noisy) @ normal


def snapshot_of(dim, batch=(), noise=0.1, forgetting=0.01):
    lengthscale = torch.full((*batch, dim), 0.35 * math.sqrt(dim), dtype=torch.float64)
    rest = (torch.full(batch, v, dtype=torch.float64) for v in (1.0, noise, forgetting))
    return Hyperparameters(lengthscale, *rest)


def objective(family, inputs, targets, fitted, learnt):
    """Return the log evidence and log priors of unbatched hyperparameters, by the twin."""
    lengthscale, outputscale, noise, rate = fitted
    words = lengthscale, outputscale.item(), noise.item(), rate.item()
    prior = oracle.log_prior(lengthscale.tolist(), words[1], words[3] if learnt else None)
    return oracle.log_evidence(family, inputs, targets, *words) + prior


def fit_by_botorch(inputs, targets, current, learnt, family="matern52"):
    """Fit the model of the same prior from the same values, and return the result."""
    dim = inputs.shape[-1] - 1
    space = default_space_kernel(dim, torch.Size())
    space.base_kernel.nu = SMOOTHNESS[family]
    model = TimeVaryingGP(
        inputs,
        targets.unsqueeze(-1),
        forgetting=None if learnt else current.forgetting.item(),
        space_kernel=space,
        likelihood=GaussianLikelihood(),
        outcome_transform=None,
    ).to(inputs)
    space.base_kernel.lengthscale, space.outputscale = current.lengthscale, current.outputscale
    model.likelihood.noise, model.time_kernel.forgetting = current.noise, current.forgetting
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model), max_attempts=1)
    parts = space.base_kernel.lengthscale, space.outputscale, model.likelihood.noise
    parts = (*parts, model.time_kernel.forgetting)
    return Hyperparameters(parts[0].detach().flatten(), *(p.detach().squeeze() for p in parts[1:]))


# -- what is found --------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("learnt", [True, False])
def test_the_report_is_of_what_is_returned(family, learnt):
    inputs, targets = drifting(20, 2)
    fitted, report = fit(family, inputs, targets, snapshot_of(2), learn_forgetting=learnt)
    for value, at in ((report.before, snapshot_of(2)), (report.after, fitted)):
        expected = objective(family, inputs, targets, at, learnt)
        assert value.item() == pytest.approx(expected, rel=1e-6)  # priors are in float32
    assert report.after > report.before + 0.1
    assert bool(report.converged)
    assert not bool(report.skipped)
    assert 0 < report.iterations < 60
    assert 0 < report.seconds < 60


@pytest.mark.parametrize(
    ("learnt", "n", "dim"),
    [(True, 15, 1), (False, 25, 3), slow((False, 15, 1)), slow((True, 25, 3))],
)
def test_it_is_as_probable_as_what_botorch_finds(learnt, n, dim):
    for seed in range(3):
        inputs, targets = drifting(n, dim, seed)
        current = snapshot_of(dim)
        theirs = fit_by_botorch(inputs, targets, current, learnt)
        ours, _ = fit("matern52", inputs, targets, current, learn_forgetting=learnt)
        reached = (objective("matern52", inputs, targets, at, learnt) for at in (ours, theirs))
        assert next(reached) >= next(reached) - 1e-3


def test_no_neighbour_is_more_probable():
    """The maximum, within its tolerance: a tenth of a log unit to either side is worse."""
    inputs, targets = drifting(25, 2)
    fitted, report = fit("matern32", inputs, targets, snapshot_of(2), learn_forgetting=True)
    least = priors_and_bounds(2)[1]
    for field, value in zip(fitted._fields, fitted, strict=True):
        for entry in range(value.numel()):
            for factor in (0.9, 1.1):
                moved = value.clone()
                moved.view(-1)[entry] *= factor
                if field == "noise" and moved < least.noise:
                    continue
                beside = fitted._replace(**{field: moved})
                worse = objective("matern32", inputs, targets, beside, True)
                assert worse < report.after.item() + 1e-4


def test_bounds_hold_and_bind():
    """Rewards without noise, jumping from row to row: both ask for less than is allowed."""
    inputs = torch.stack([torch.linspace(0, 1, 40), torch.zeros(40)], -1).double()
    targets = torch.sin(5 * inputs[:, 0])
    least = priors_and_bounds(1)[1]
    smooth, _ = fit("rbf", inputs, targets, snapshot_of(1), max_iter=200)
    assert smooth.noise.item() == pytest.approx(least.noise, rel=1e-9)
    outside = Hyperparameters(double(1e-3), double(1.0)[0], double(1e-9)[0], double(0.01)[0])
    fitted, report = fit("rbf", inputs, targets, outside)
    assert not bool(report.skipped)
    assert fitted.lengthscale >= least.lengthscale * (1 - 1e-12)
    assert fitted.noise >= least.noise * (1 - 1e-12)
    moved, _ = fit("rbf", inputs, targets, outside, max_iter=0)
    assert moved.lengthscale.item() == pytest.approx(least.lengthscale, rel=1e-12)
    below = smooth._replace(noise=smooth.noise / 1.1)
    fitted, report = fit("rbf", inputs, targets, below)
    assert not bool(report.skipped)  # nothing is to be gained, but it is not allowed
    assert fitted.noise >= least.noise * (1 - 1e-12)
    again, second = fit("rbf", inputs, targets, smooth)
    assert bool(second.skipped)  # on a bound as well
    assert torch.equal(again.noise, smooth.noise)


@pytest.mark.parametrize("rate", [0.0, 1e-6, 0.3, 1.0])
def test_a_given_rate_is_kept_to_the_last_digit(rate):
    inputs, targets = drifting(15, 1)
    fitted, _ = fit("matern52", inputs, targets, snapshot_of(1, forgetting=rate))
    assert fitted.forgetting.item() == rate
    assert fitted.lengthscale.item() != snapshot_of(1).lengthscale.item()


# -- batches and restarts -------------------------------------------------------------------------


@pytest.mark.parametrize("learnt", [True, False])
def test_a_batch_of_trials_is_a_loop(learnt):
    rows = [drifting(15, 2, seed) for seed in range(6)]
    inputs = torch.stack([x for x, _ in rows]).unflatten(0, (2, 3))
    targets = torch.stack([y for _, y in rows]).unflatten(0, (2, 3))
    together, report = fit(
        "matern52", inputs, targets, snapshot_of(2, (2, 3)), learn_forgetting=learnt
    )
    assert together.lengthscale.shape == (2, 3, 2)
    assert together.noise.shape == report.after.shape == report.skipped.shape == (2, 3)
    for i in range(2):
        for j in range(3):
            alone, single = fit(
                "matern52", inputs[i, j], targets[i, j], snapshot_of(2), learn_forgetting=learnt
            )
            for tensor, expected in zip(together, alone, strict=True):
                torch.testing.assert_close(tensor[i, j], expected, rtol=1e-5, atol=1e-7)
            assert report.iterations[i, j] == single.iterations
            torch.testing.assert_close(report.after[i, j], single.after)


def test_a_trial_that_promises_too_little_is_skipped_among_others():
    rows = [drifting(15, 1, seed) for seed in (0, 1)]
    inputs, targets = (torch.stack(tensor) for tensor in zip(*rows, strict=True))
    done, _ = fit("matern52", inputs[0], targets[0], snapshot_of(1))
    both = Hyperparameters(*(torch.stack(p) for p in zip(done, snapshot_of(1), strict=True)))
    fitted, report = fit("matern52", inputs, targets, both)
    assert report.skipped.tolist() == [True, False]
    assert report.iterations[0] == 0 < report.iterations[1]
    for tensor, kept in zip(fitted, done, strict=True):
        assert torch.equal(tensor[0], kept)


def test_restarts_find_better_ends_and_nothing_worse():
    """Of two explanations, signal and noise, a search stays with the one it begins with."""
    generator, gains = torch.Generator().manual_seed(3), []
    current = snapshot_of(2, noise=1e-3)._replace(lengthscale=double(0.05, 0.05))
    for seed in range(4):
        inputs, targets = drifting(15, 2, seed)
        (_, lone), (_, many) = (
            fit("matern52", inputs, targets, current, restarts=n, generator=generator)
            for n in (0, 8)
        )
        gains.append((many.after - lone.after).item())
    assert min(gains) > -1e-3
    assert max(gains) > 1


def test_restarts_are_drawn_by_the_generator_alone():
    inputs, targets = drifting(15, 2)
    state = torch.random.get_rng_state()
    ends = [
        fit("rbf", inputs, targets, snapshot_of(2), restarts=3, learn_forgetting=True,
            generator=torch.Generator().manual_seed(seed))[0]
        for seed in (1, 1)
    ]  # fmt: skip
    assert torch.equal(state, torch.random.get_rng_state())
    assert all(torch.equal(a, b) for a, b in zip(*ends, strict=True))


# -- when it is not worth it, or not in time ------------------------------------------------------


@pytest.mark.parametrize("learnt", quick([True, False], False))
@pytest.mark.parametrize("tolerance", quick([1e-3, 0.1], 0.1))
def test_skipping_costs_less_than_the_stated_bound(learnt, tolerance, monkeypatch):
    """After a few more queries, at values fitted before them: a search to the end tells."""
    rows = [drifting(31, 2, seed) for seed in range(40)]
    inputs, targets = (torch.stack(tensor) for tensor in zip(*rows, strict=True))
    options = {"learn_forgetting": learnt, "tolerance": 0.0}
    before, _ = fit("matern52", inputs[:, :-1], targets[:, :-1], snapshot_of(2, (40,)), **options)
    shaken = torch.randn(40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for shake in (0.0, 0.003, 0.01, 0.03):  # and from nearby, where there is nothing to be gained
        near = before if shake == 0 else _shaken(before, shake * shaken, learnt)
        seen = slice(None) if shake == 0 else slice(30)
        x, y = inputs[:, seen], targets[:, seen]
        _, report = fit("matern52", x, y, near, learn_forgetting=learnt, tolerance=tolerance)
        with monkeypatch.context() as patch:
            patch.setattr(fitting, "_SLOPE", 1e-5)
            _, end = fit("matern52", x, y, near, **options)
        possible = end.after - end.before
        assert (possible[report.skipped] < tolerance).all()
        if 0 < shake <= 0.01 and tolerance == 0.1:
            assert report.skipped.sum() >= least_successes(40, 0.95)
        assert not report.skipped[possible > tolerance].any()


def _shaken(fitted, factor, learnt):
    lengthscale, outputscale, noise, rate = fitted
    return Hyperparameters(
        lengthscale * factor.exp().unsqueeze(-1),
        outputscale * (-factor).exp(),
        noise * factor.abs().exp(),
        rate * factor.exp() if learnt else rate,
    )


def test_what_is_skipped_keeps_every_digit():
    inputs, targets = (tensor.expand(20, *tensor.shape) for tensor in drifting(15, 1))
    done, _ = fit("matern52", inputs, targets, snapshot_of(1, (20,)), learn_forgetting=True)
    near = _shaken(done, torch.linspace(0, 1e-3, 20).double(), True)
    fitted, report = fit("matern52", inputs, targets, near, learn_forgetting=True)
    assert bool(report.skipped.all())
    assert torch.equal(report.before, report.after)
    assert all(torch.equal(tensor, kept) for tensor, kept in zip(fitted, near, strict=True))


def test_after_a_few_more_queries_a_few_evaluations_are_enough():
    """Because the search begins with the curvature where it begins."""
    spent = []
    for seed in range(8):
        inputs, targets = drifting(60, 2, seed)
        before, _ = fit("matern52", inputs[:-5], targets[:-5], snapshot_of(2))
        spent.append(fit("matern52", inputs, targets, before)[1].iterations.item())
    assert sum(spent) / 8 < 5


def test_no_tolerance_skips_nothing():
    inputs, targets = drifting(15, 1)
    done, _ = fit("matern52", inputs, targets, snapshot_of(1))
    assert bool(fit("matern52", inputs, targets, done)[1].skipped)
    assert not bool(fit("matern52", inputs, targets, done, tolerance=0.0)[1].skipped)


def test_the_deadline_returns_the_best_so_far():
    inputs, targets = drifting(60, 4)
    whole, hurried = (
        fit("matern52", inputs, targets, snapshot_of(4), seconds=seconds)[1]
        for seconds in (math.inf, 1e-9)
    )
    assert hurried.iterations == 1  # it is asked after an evaluation
    assert not bool(hurried.converged)
    assert hurried.before <= hurried.after < whole.after - 0.1


def test_iterations_are_bounded():
    inputs, targets = drifting(30, 4)
    _, report = fit("matern52", inputs, targets, snapshot_of(4), max_iter=3)
    assert report.iterations == 3
    assert not bool(report.converged)
    fitted, report = fit("matern52", inputs, targets, snapshot_of(4), max_iter=0)
    assert report.after == report.before
    torch.testing.assert_close(fitted, snapshot_of(4))


# -- failures and errors --------------------------------------------------------------------------


def test_a_trial_that_cannot_be_factorized_poisons_no_other():
    """A variance that absorbs the noise by rounding is reported, and another start may succeed."""
    inputs, targets = (torch.stack([tensor] * 2) for tensor in drifting(15, 1))
    inputs[:, 1] = inputs[:, 0]
    current = snapshot_of(1, (2,), noise=1e-4)._replace(outputscale=double(1e16, 1.0))
    fitted, report = fit("matern52", inputs, targets, current)
    assert report.before.isfinite().tolist() == report.after.isfinite().tolist() == [False, True]
    assert report.converged.tolist() == [False, True]
    assert not bool(report.skipped.any())
    torch.testing.assert_close(fitted.outputscale[0], current.outputscale[0])
    alone, _ = fit("matern52", inputs[1], targets[1], snapshot_of(1, noise=1e-4))
    torch.testing.assert_close(fitted.lengthscale[1], alone.lengthscale, rtol=1e-5, atol=0)
    generator = torch.Generator().manual_seed(0)
    _, saved = fit("matern52", inputs, targets, current, restarts=2, generator=generator)
    assert bool(saved.after.isfinite().all())


def test_single_precision_is_fitted_in_double():
    inputs, targets = drifting(15, 2)
    inputs, targets = inputs.float(), targets.float()
    single = Hyperparameters(*(tensor.float() for tensor in snapshot_of(2)))
    current = Hyperparameters(*(tensor.double() for tensor in single))
    fitted, _ = fit("matern52", inputs, targets, single)
    expected, _ = fit("matern52", inputs.double(), targets.double(), current)
    assert all(tensor.dtype == torch.float64 for tensor in fitted)
    assert all(torch.equal(a, b) for a, b in zip(fitted, expected, strict=True))


def test_one_lengthscale_begins_for_all_columns():
    inputs, targets = drifting(15, 3)
    lone = snapshot_of(3)._replace(lengthscale=snapshot_of(3).lengthscale[:1])
    fitted, _ = fit("matern52", inputs, targets, lone)
    assert fitted.lengthscale.shape == (3,)
    assert torch.equal(fitted.lengthscale, fit("matern52", inputs, targets, snapshot_of(3))[0][0])


X, Y = drifting(5, 2)
GOOD = snapshot_of(2)


@pytest.mark.parametrize(
    ("change", "options", "error", "name"),
    [
        ({"noise": double(0.0)[0]}, {}, InvalidArgumentError, "current.noise: Expected finite"),
        ({"outputscale": double(math.inf)[0]}, {}, InvalidArgumentError, "current.outputscale"),
        ({"lengthscale": double(0.1, -0.1)}, {}, InvalidArgumentError, "current.lengthscale"),
        ({"lengthscale": double(1, 1, 1)}, {}, InvalidShapeError, "current.lengthscale"),
        ({"noise": double(0.1)}, {}, InvalidShapeError, "current.noise: Expected shape"),
        ({"forgetting": double(1.5)[0]}, {}, InvalidArgumentError, "current.forgetting"),
        ({"forgetting": double(math.nan)[0]}, {}, InvalidArgumentError, "current.forgetting"),
        ({}, {"tolerance": -1.0}, InvalidArgumentError, "tolerance"),
        ({}, {"seconds": 0.0}, InvalidArgumentError, "seconds: Expected a number > 0"),
        ({}, {"restarts": -1}, InvalidArgumentError, "restarts"),
        ({}, {"restarts": 2}, InvalidArgumentError, r"generator: Expected a torch.Generator"),
        ({}, {"max_iter": 1.5}, InvalidArgumentError, "max_iter"),
    ],
)
def test_bad_values_are_named(change, options, error, name):
    with pytest.raises(error, match=name):
        fit("matern52", X, Y, GOOD._replace(**change), **options)


def test_bad_rows_are_named():
    with pytest.raises(InvalidShapeError, match="targets: Expected shape"):
        fit("matern52", X, Y[:-1], GOOD)
    with pytest.raises(InvalidShapeError, match="inputs: Expected"):
        fit("matern52", X[0], Y[0], GOOD)
    with pytest.raises(InvalidArgumentError, match="finite"):
        fit("matern52", X, Y * math.nan, GOOD)
    with pytest.raises(InvalidArgumentError, match="family"):
        fit("arms", X, Y, GOOD)


def test_the_clock_is_asked_between_evaluations(monkeypatch):
    """Whatever else the machine does: so many evaluations as the clock allows, and one more."""
    inputs, targets = drifting(30, 4)
    ticks = iter(range(1000))
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(ticks)))
    _, report = fit("matern52", inputs, targets, snapshot_of(4), seconds=3.5)
    assert report.iterations == 4
