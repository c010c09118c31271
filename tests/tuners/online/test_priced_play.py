"""The best query and the best play of a cube, against all points of a fine lattice."""

import math

import pytest
import torch

from botorch_costly.acquisition import TimeVaryingKG
from botorch_costly.ask_tell.search import Search, search_of
from botorch_costly.models import StreamingGP
from botorch_costly.numerics.knowledge_gradient import knowledge_gradient
from botorch_costly.numerics.promise import promise_with_gradient
from botorch_costly.numerics.stationary import Stationary, covariance
from botorch_costly.query import Outlook
from botorch_costly.query.weighing import LINES
from botorch_costly.space import Real, SearchSpace
from botorch_costly.tuners.online import priced_play
from botorch_costly.tuners.online.priced_play import _seen, best_among, best_play, best_query
from tests.cases import quick

DOUBLE = {"dtype": torch.float64, "device": torch.device("cpu")}
SQUARE = SearchSpace({"x": Real(0.0, 1.0), "y": Real(0.0, 1.0)})
LATTICE, FINE = (
    torch.cartesian_prod(*[torch.linspace(0, 1, n, dtype=torch.float64)] * 2) for n in (12, 25)
)
NOW, PRICE = 20, 0.2


def belief_after(queries, seed):
    """A belief about waves, some queries old."""
    generator = torch.Generator().manual_seed(seed)
    one = torch.ones((), dtype=torch.float64)
    belief = StreamingGP(Stationary("matern52", 0.35 * one.reshape(1), one), 0.02, 0.01)
    for now in torch.randperm(NOW, generator=generator)[:queries].sort().values.tolist():
        x = torch.rand(2, generator=generator).double()
        reward = float((7 * x + seed).sin().sum() / 1.4)
        belief.observe(torch.cat([x, one.new_tensor([now])]), reward)
    return belief


def outlook(effective_horizon, lookahead_weight=0.0):
    return Outlook(
        torch.tensor(effective_horizon).double(), torch.tensor(PRICE).double(), lookahead_weight
    )


def value_of(belief, points, others, effective_horizon):
    """Return means and exact values of queries, over points of a fine lattice and others."""
    terms = torch.cat([FINE, others]), NOW, effective_horizon, belief.noise
    with torch.no_grad():
        mean, gain = TimeVaryingKG(belief, *terms).mean_and_gain(points)
    return mean, mean + effective_horizon * gain


@pytest.mark.parametrize("effective_horizon", quick([3.0, 40.0], 40.0))
@pytest.mark.parametrize("queries", quick([1, 4, 15], 4))
def test_no_point_of_a_fine_lattice_is_much_better(effective_horizon, queries):
    shortfalls = []
    for seed in range(4):
        belief, search = belief_after(queries, seed), search_of(SQUARE, Search(4, 0.2), DOUBLE)
        best = best_query(belief, search, NOW, outlook(effective_horizon))
        points = torch.stack([best.query_at, best.play])
        rows = torch.cat([LATTICE, points])
        mean, value = value_of(belief, rows, points, effective_horizon)
        assert best.mean >= mean.max() - 1e-6  # and it lies between the points of the lattice
        torch.testing.assert_close(best.mean, mean[-1], rtol=0, atol=1e-9)
        play = best_play(belief, search, NOW)
        assert value_of(belief, play[None], points, 0.0)[0] >= mean.max() - 1e-9
        shortfalls.append(float((value.max() - value[-2]) / (value.max() - mean.max())))
        # Its own gain is over fewer lines, some of which lie between the points of the lattice.
        claimed = best.prospect.mean + effective_horizon * best.prospect.gain
        assert claimed <= value[-2] + 0.005 * effective_horizon
        assert claimed >= value[-2] - 0.3 * (value[-2] - best.mean) - 0.005 * effective_horizon
    assert max(shortfalls) < 0.2
    assert sum(shortfalls) / len(shortfalls) < 0.05


def test_rounding_errors_are_not_worth_a_query():
    """A single-precision covariance has an error that a small deviation would turn into a gain."""
    one, effective_horizon, noise = torch.ones((), dtype=torch.float64), 300.0, 1e-8
    line = SearchSpace({"x": Real(0.0, 1.0)})
    points = torch.linspace(0, 1, 201, dtype=torch.float64).unsqueeze(-1)
    for seed in (1, 9, 10):
        generator = torch.Generator().manual_seed(seed)
        belief = StreamingGP(Stationary("rbf", 0.15 * one.reshape(1), one), 0.0, noise)
        for now in range(12):
            x = torch.rand((), generator=generator).double()
            belief.observe(torch.stack([x, one * now]), math.sin(7 * float(x) + 0.9 * seed))
        best = best_query(belief, search_of(line, Search(), DOUBLE), 12, outlook(effective_horizon))
        rows = torch.cat([points, best.query_at[None]])
        mean, cov, _ = belief.snapshot(12).joint(rows)
        gain = knowledge_gradient(mean, cov, cov.diagonal(), noise)
        value = mean + effective_horizon * gain
        assert value.max() - value[-1] < 0.5


def test_the_play_has_the_posterior_of_the_belief():
    belief, search = belief_after(9, 0), search_of(SQUARE, Search(4, 0.2), DOUBLE)
    best = best_query(belief, search, NOW, outlook(9.0, 0.5))
    mean, variance = belief.in_round(best.play[None], NOW)
    torch.testing.assert_close(best.mean, mean[0], rtol=0, atol=1e-9)
    torch.testing.assert_close(best.variance, variance[0], rtol=0, atol=1e-9)
    assert best.mean >= best.prospect.mean


def test_the_lookahead_is_weighed_by_the_lookahead_weight():
    """Of the values that the rule hears the sum is the largest."""
    for seed in range(4):
        belief, heights = belief_after(6, seed), {}
        for lookahead_weight in (0.0, 0.5, 1.0):
            search = search_of(
                SQUARE, Search(4, 0.2), DOUBLE
            )  # another search starts where it ended
            p = best_query(belief, search, NOW, outlook(9.0, lookahead_weight)).prospect
            heights[lookahead_weight] = float(p.mean + 9.0 * p.gain), float(p.lookahead)
        near, far = heights[0.0], heights[1.0]
        assert near[1] == 0
        assert near[0] >= heights[0.5][0] - 1e-6
        assert near[0] >= far[0] - 1e-6
        assert math.isfinite(far[1])
        half = heights[0.5]
        assert half[0] + 0.5 * half[1] >= far[0] + 0.5 * far[1] - 1e-3


def test_of_many_observations_recent_good_ones_are_candidates():
    one = torch.ones((), dtype=torch.float64)
    belief = StreamingGP(Stationary("matern52", 0.35 * one.reshape(1), one), 0.05, 0.01)
    for now in range(200):
        x = one.new_tensor([now / 200, 0.5, now])
        belief.observe(x, float(now % 10 == 0))
    seen = set((200 * _seen(belief, 200)[:, 0]).round().int().tolist())
    assert len(seen) == 128
    assert {190, 180, 170, 160} <= seen
    assert len({190, 191}) == 2
    assert 199 not in seen  # a bad one, and recent


def test_a_lookahead_is_computed_for_three_points_on_two_hills(monkeypatch):
    """The peaks of mean and value, and the best candidate on another hill."""
    considered = []

    def watched(belief, picks, lines, now, outlook):
        considered.append((picks, lines))
        return best_among(belief, picks, lines, now, outlook)

    monkeypatch.setattr(priced_play, "best_among", watched)
    belief, search = belief_after(6, 1), search_of(SQUARE, Search(4, 0.2), DOUBLE)
    best_query(belief, search, NOW, outlook(20.0, 0.5))
    picks, lines = considered[0]
    assert len(picks) == 3
    assert len(lines) == LINES[1]
    prior = covariance(belief.kernel, picks[1:2], picks) / belief.kernel.outputscale
    assert prior[0, 2] <= 0.8


def test_the_gradient_of_a_promise_near_certainty_is_that_of_its_value():
    """The deviation of an observation is at its lower bound there."""
    one = torch.ones((), dtype=torch.float64)
    belief = StreamingGP(Stationary("rbf", 0.4 * one.reshape(1), one), 0.0, 1e-9)
    belief.observe(torch.tensor([0.5, 0.0]).double(), 0.0)
    snapshot = belief.snapshot(1)
    form, X = snapshot.form, torch.tensor([[0.492], [0.495], [0.504], [0.509]]).double()
    lines = snapshot.project(torch.linspace(0, 1, 5).double().unsqueeze(-1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("botorch_costly.numerics.knowledge_gradient._ROUNDING", 1e-3 / 2.2e-16)
        promise = promise_with_gradient(form, lines, 1.0, 1e-9, one.reshape(1))
        low, high = (promise(X + step)[0] for step in (-1e-6, 1e-6))
        gradient = promise(X)[1].squeeze(-1)
    assert gradient.abs().min() > 0.1
    torch.testing.assert_close(gradient, (high - low) / 2e-6, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("family", ["matern12", "matern52", "rbf"])
def test_a_promise_has_the_value_and_the_gradient_of_the_acquisition_function(family):
    generator, one = torch.Generator().manual_seed(0), torch.ones((), dtype=torch.float64)
    belief = StreamingGP(Stationary(family, 0.4 * one.reshape(1), 1.3 * one), 0.05, 0.02)
    for now in range(12):
        x = torch.rand(2, generator=generator).double()
        belief.observe(
            torch.cat([x, one.new_tensor([now])]), float(torch.randn((), generator=generator))
        )
    lines, X = (torch.rand(n, 2, generator=generator).double() for n in (7, 9))
    snapshot, horizons = belief.snapshot(14), one.new_tensor([[0.0], [20.0]])
    terms = snapshot.form, snapshot.project(lines), snapshot.retained, belief.noise, horizons
    values, gradients = promise_with_gradient(*terms)(X.expand(2, -1, -1))
    for horizon, value, gradient in zip((0.0, 20.0), values, gradients, strict=True):
        kg = TimeVaryingKG(belief, lines, 14, horizon, belief.noise, rough=True)
        x = X.clone().requires_grad_(True)
        expected = kg(x.unsqueeze(-2))
        (slope,) = torch.autograd.grad(expected.sum(), x)
        torch.testing.assert_close(value, expected.detach(), rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(gradient, slope, rtol=1e-7, atol=1e-7)
    assert gradients[1].abs().max() > 1
