"""Configuration and length chosen together, and the figures of the paper."""

import math

import pytest
import torch

from benchmarks.curves import lengths, ours, published
from benchmarks.curves.lengths import LENGTHS, all_pairs, value_of
from benchmarks.curves.play import SHARES, Ask, play, point_at
from benchmarks.curves.tabular import FOUND
from botorch_costly import Compression, CurveOptimizer
from tests.benchmarks.test_curves import logged, rising
from tests.cases import quick


@pytest.mark.parametrize("name", quick(LENGTHS, "length"))
def test_pairs_of_configuration_and_length_are_trained_from_scratch_and_once(name):
    problem = rising(n=12, longest=32)
    asked, points = logged(LENGTHS[name], problem, budget=12.0)
    pairs = [(ask.config, ask.until) for ask in asked]
    assert len(set(pairs)) == len(pairs)
    assert all(ask.anew for ask in asked)
    assert min(ask.until for ask in asked) >= 12  # three eighths of 32
    assert points[-1].regret < 0.1 * (problem.best - problem.worst)


@pytest.mark.parametrize("name", quick(LENGTHS, "length, freeze-thaw"))
def test_the_pair_with_the_largest_improvement_per_cost_is_next(name, monkeypatch):
    """A twin without BoTorch's acquisition function, model and cost: dense algebra, pair by pair."""
    beliefs = []
    promise = lengths._Belief.promise

    def watched(belief, pairs, rows, values, costs):
        found = promise(belief, pairs, rows, values, costs)
        state = {key: value.clone() for key, value in belief._hyperparameters.items()}
        beliefs.append((state, pairs, [*rows], [*values], [*costs], found))
        return found

    monkeypatch.setattr(lengths._Belief, "promise", watched)
    logged(LENGTHS[name], rising(n=8, longest=32), budget=6.0)
    ahead = 0  # decisions where a pair that is not among the data has the largest mean
    for state, pairs, rows, values, costs, found in beliefs:
        mean, variance = moments(state, pairs, rows, values, "freeze" in name)
        ahead += bool(mean.max() > mean[rows].max() + 1e-3)
        z = (mean - mean[rows].max()) / variance.sqrt()
        normal = torch.distributions.Normal(0.0, 1.0)
        gain = variance.sqrt() * (normal.log_prob(z).exp() + z * normal.cdf(z))
        cost = lengths.LinearCost(pairs[rows], pairs.new_tensor(costs)[:, None])(pairs).squeeze(-1)
        clear = gain > 1e-8
        assert clear.sum() >= 5
        assert torch.allclose(found[clear], (gain.log() - cost.log())[clear], atol=1e-3)
    assert ahead


def moments(state, pairs, rows, values, decays):
    """Mean and variance of each pair under the latest fit, by dense algebra."""
    covariance, constant = covariance_of(state, decays), state["mean_module.raw_constant"]
    y = torch.tensor(values, dtype=torch.float64)
    y = (y - y.mean()) / y.std()
    noise = state["likelihood.noise_covar.raw_noise"]  # BoTorch's constraint has no transform
    K = covariance(pairs[rows], pairs[rows]) + noise * torch.eye(len(rows))
    across = covariance(pairs, pairs[rows])
    mean = constant + across @ torch.linalg.solve(K, y - constant)
    prior = torch.stack([covariance(p[None], p[None]).squeeze() for p in pairs])
    return mean, prior - (across * torch.linalg.solve(K, across.T).T).sum(-1)


def softplus(value):
    return torch.nn.functional.softplus(value)


def covariance_of(values, decays):
    start = "covar_module.base_kernel.kernels."
    scale = softplus(values["covar_module.raw_outputscale"])
    space = values[f"{start}0.raw_lengthscale"]

    def over_time(s, t):
        if decays:
            raw = (values[f"{start}1.raw_{name}"].squeeze() for name in ("alpha", "beta"))
            alpha, beta = map(torch.exp, raw)
            return (beta / (s[:, None] + t[None] + beta)) ** alpha
        gaps = (s[:, None] - t[None]) / values[f"{start}1.raw_lengthscale"].squeeze()
        return torch.exp(-gaps.square() / 2)

    def covariance(A, B):
        gaps = (A[:, None, :-1] - B[None, :, :-1]) / space
        return scale * torch.exp(-gaps.square().sum(-1) / 2) * over_time(A[:, -1], B[:, -1])

    return covariance


def test_pairs_are_all_configurations_with_all_shares_from_three_eighths_on():
    inputs = torch.tensor([[0.1, 0.2], [0.3, 0.4]], dtype=torch.float64)
    pairs = all_pairs(inputs)
    assert pairs[:, -1].tolist() == [step / SHARES for step in range(6, 17)] * 2
    assert torch.equal(pairs[:, :-1], inputs.repeat_interleave(11, 0))


def test_the_value_of_a_curve_is_the_mean_of_its_last_tenth():
    assert value_of(torch.arange(20.0), -1.0) == 18.5
    assert value_of(torch.arange(3.0), -1.0) == 2.0
    assert value_of(torch.empty(0), -1.0) == -1.0


def test_as_in_the_paper_a_training_has_at_least_three_eighths_and_costs_a_hundred(monkeypatch):
    told = []
    tell = CurveOptimizer.tell

    def watched(optimizer, segment, curve, **more):
        told.append((segment.until, more["cost"]))
        return tell(optimizer, segment, curve, **more)

    monkeypatch.setattr(CurveOptimizer, "tell", watched)
    policy = ours.from_share(3 / 8, compression=Compression(), resumes=False)
    logged(policy, rising(longest=32), budget=4.0)
    assert min(until for until, _ in told) == 12
    assert all(cost == pytest.approx(100 * until / 32) for until, cost in told)


def test_what_was_found_has_the_best_latest_reward():
    problem = rising(n=5)
    order = [3, 0, 4, 1]

    def policy(problem, seed, budget):
        for config in order:
            yield Ask(config, 27)

    points = play(problem, policy, 0, 10.0)
    for count in range(1, 5):
        best = max(order[:count], key=lambda config: float(problem.ends[config]))
        assert point_at(points, count).found == best
    assert point_at(points, 0.5).found is None


def test_without_noise_whole_curves_are_badly_conditioned_and_the_mean_goes_astray():
    *axes, _, _, _ = published.means().axes
    titles = [ax.get_title() for ax in axes]
    conditions = [int(title.partition("ln cond ")[2].split(",")[0]) for title in titles]
    lows = [float(title.partition("mean ")[2].split(" to ")[0]) for title in titles]
    assert conditions[0] <= conditions[1] < 20 < 25 < conditions[2]
    assert lows[2] < -10 < min(lows[:2])


def test_rewards_of_what_was_found_are_averaged_over_shared_seeds():
    problem = rising(n=4)
    rows = [
        {"table": "made up", "policy": policy, "seed": seed, FOUND: found}
        for policy, found_by_seed in {
            "scores": [0, 1, 2],
            "scores, log": [3, 0],
            "scores, average": [1, 1, 1],
        }.items()
        for seed, found in enumerate(found_by_seed)
    ]
    rows.append({"table": "made up", "policy": "scores, log", "seed": 2})  # an older row
    (ax, *_) = published.found(rows, {"made up": problem}, published.COMPRESSIONS).axes
    assert ax.get_title() == "made up (2 seeds)"
    line = torch.tensor(ax.lines[0].get_ydata())
    assert torch.allclose(line, problem.rewards[[0, 1]].mean(0))


def test_a_training_that_is_going_on_is_not_left(monkeypatch):
    problem = rising(n=6)

    def policy(problem, seed, budget):
        yield Ask(0, 27)
        yield Ask(1, 5)
        yield Ask(2, 9)

    monkeypatch.setitem(published.POLICIES, "by hand", policy)
    assert published.stops(problem, "by hand") == {0: 27, 1: 5}
    labels = [line.get_label() for line in published.left(problem, "by hand").axes[0].lines]
    assert "left (1)" in labels
    assert "trained to the end (1)" in labels


def test_curves_of_actor_critic_are_those_with_the_best_peaks():
    rows = [
        {"program": program, "number": number, "curve": [math.sin(number), 0.0]}
        for program in ("reacher", "pendulum, published")
        for number in range(8)
    ]
    axes = published.actor_critic(rows).axes
    assert axes[0].get_title() == "training 2"  # the largest sine
    assert axes[6].lines[0].get_xdata().tolist() == [15, 30]
