"""Three models and the oracle have the same posterior, to 1e-8."""

import pytest
import torch

from botorch_costly.errors import InvalidArgumentError
from botorch_costly.models import DriftingGrid, StreamingGP, TimeVaryingGP
from botorch_costly.numerics.stationary import Stationary
from tests.oracles import dense_gp

NOISE, LENGTHSCALE, OUTPUTSCALE = 0.05, 0.3, 1.7
NOW = 31.0
EXACT = {"rtol": 1e-8, "atol": 1e-8}


@pytest.fixture(params=[0.0, 0.01, 0.3, 1.0], ids=lambda f: f"forgetting={f}")
def story(request):
    """Queries at points of a grid at uneven rounds, and the oracle's posterior."""
    generator = torch.Generator().manual_seed(3)
    grid = torch.rand(15, 2, generator=generator, dtype=torch.float64)
    times = torch.randperm(30, generator=generator)[:12].sort().values.double()
    index = torch.randint(15, (12,), generator=generator)
    y = torch.randn(12, generator=generator, dtype=torch.float64)
    prior = dense_gp.matern(grid, grid, LENGTHSCALE, OUTPUTSCALE)
    mean, cov, log_prob = dense_gp.posterior(
        prior[index][:, index], times.tolist(), y, NOISE, prior[:, index], prior, NOW, request.param
    )
    return {
        "grid": grid, "times": times, "index": index, "y": y, "prior": prior,
        "mean": mean, "cov": cov, "log_prob": log_prob, "forgetting": request.param,
    }  # fmt: skip


def with_round(x, t):
    return torch.cat([x, torch.as_tensor(t).to(x).expand(len(x)).unsqueeze(-1)], -1)


def time_varying_gp(story):
    X = with_round(story["grid"][story["index"]], story["times"])
    y = story["y"].unsqueeze(-1)
    model = TimeVaryingGP(
        X, y, torch.full_like(y, NOISE), forgetting=story["forgetting"], outcome_transform=None
    ).double()
    model.time_kernel.forgetting = story["forgetting"]
    model.space_kernel.outputscale = torch.tensor(OUTPUTSCALE, dtype=torch.float64)
    model.space_kernel.base_kernel.lengthscale = torch.tensor(
        [LENGTHSCALE] * 2, dtype=torch.float64
    )
    return model


def test_time_varying_gp_is_the_oracle(story):
    posterior = time_varying_gp(story).posterior(with_round(story["grid"], NOW))
    torch.testing.assert_close(posterior.mean.squeeze(-1), story["mean"], **EXACT)
    torch.testing.assert_close(posterior.covariance_matrix, story["cov"], **EXACT)


def test_conditioning_is_fitting_anew(story):
    whole = time_varying_gp(story)
    half = {**story, "times": story["times"][:6], "index": story["index"][:6], "y": story["y"][:6]}
    model = time_varying_gp(half)
    X = with_round(story["grid"], NOW)
    model.posterior(X)  # conditioning needs a cached belief
    new = with_round(story["grid"][story["index"][6:]], story["times"][6:])
    y = story["y"][6:, None]
    model = model.condition_on_observations(new, y, noise=torch.full_like(y, NOISE))
    torch.testing.assert_close(model.posterior(X).mean, whole.posterior(X).mean, **EXACT)


def test_drifting_grid_is_the_oracle(story):
    belief = DriftingGrid(story["prior"], story["forgetting"], NOISE)
    log_prob, now = 0.0, story["times"][0].item()
    for t, i, y in zip(story["times"].tolist(), story["index"], story["y"], strict=True):
        belief.wait(t - now)
        log_prob, now = log_prob + belief.observe(i, y), t
    belief.wait(NOW - now)
    torch.testing.assert_close(belief.mean, story["mean"], **EXACT)
    torch.testing.assert_close(belief.variance, story["cov"].diagonal(), **EXACT)
    column = belief.covariance(torch.tensor(4))
    torch.testing.assert_close(column, story["cov"][:, 4], **EXACT)
    torch.testing.assert_close(log_prob, story["log_prob"], **EXACT)
    joint = belief.posterior(torch.tensor([[2.0], [9.0]]))
    picks = torch.tensor([2, 9])
    torch.testing.assert_close(joint.covariance_matrix, story["cov"][picks][:, picks], **EXACT)


@pytest.mark.parametrize("order", ["in order", "late"])
def test_streaming_gp_is_the_oracle(story, order):
    belief = streaming_gp(story)
    queries = range(12) if order == "in order" else [3, 0, 11, 7, 1, 2, 10, 9, 4, 8, 6, 5]
    for i in queries:
        x = with_round(story["grid"][story["index"][i]][None], story["times"][i])[0]
        belief.observe(x, story["y"][i].item())
    X = with_round(story["grid"], NOW)
    mean, cov = belief.mean_and_covariance(X)
    torch.testing.assert_close(mean, story["mean"], **EXACT)
    torch.testing.assert_close(cov, story["cov"], **EXACT)
    single = belief.posterior(X.unsqueeze(-2))
    torch.testing.assert_close(single.mean.flatten(), story["mean"], **EXACT)
    torch.testing.assert_close(single.variance.flatten(), story["cov"].diagonal(), **EXACT)


def streaming_gp(story, **kwargs):
    lengthscale = torch.tensor([LENGTHSCALE], dtype=torch.float64)
    kernel = Stationary("matern52", lengthscale, torch.tensor(OUTPUTSCALE, dtype=torch.float64))
    # A tolerance this small keeps every row at every forgetting but 1.
    return StreamingGP(kernel, story["forgetting"], NOISE, tolerance=1e-12, **kwargs)


def test_streaming_gp_takes_over_a_fitted_model(story):
    X = with_round(story["grid"][story["index"]], story["times"])
    fitted = TimeVaryingGP(X, 30 + 2 * story["y"][:, None], forgetting=story["forgetting"])
    fitted.space_kernel.outputscale = torch.tensor(0.7, dtype=torch.float64)
    fitted.likelihood.noise = torch.tensor([0.2], dtype=torch.float64)
    belief = StreamingGP.from_model(fitted.double(), tolerance=1e-12)
    for x, y in zip(X, story["y"].tolist(), strict=True):
        belief.observe(x, 30 + 2 * y)
    ours = belief.posterior(with_round(story["grid"], NOW))
    theirs = fitted.posterior(with_round(story["grid"], NOW))
    torch.testing.assert_close(ours.mean, theirs.mean, **EXACT)
    torch.testing.assert_close(ours.covariance_matrix, theirs.covariance_matrix, **EXACT)


def test_a_model_without_one_noise_level_cannot_be_streamed(story):
    with pytest.raises(InvalidArgumentError, match="one noise variance for all observations"):
        StreamingGP.from_model(time_varying_gp(story))
