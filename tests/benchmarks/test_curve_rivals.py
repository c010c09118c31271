"""Rivals that choose one step of one training after another."""

import math

import pytest
import torch

from benchmarks.curves import dyhpo, quick_tune
from benchmarks.curves.earlier_curves import Learnt, study_of, units
from benchmarks.curves.play import SHARES, play
from botorch_costly.problems import CurveProblem
from tests.oracles import next_step

_CONFIGS = 6


def crossing(seed=0, n=_CONFIGS):
    """Trainings of 16 iterations whose curves cross, with unequal costs."""
    generator = torch.Generator().manual_seed(seed)
    ends, rates, costs = torch.rand(3, n, 1, generator=generator, dtype=torch.float64)
    at = torch.arange(1.0, SHARES + 1, dtype=torch.float64) / SHARES
    rewards = ends * (1 - torch.exp(-4 * (0.2 + rates) * at))
    inputs = torch.cat([ends, rates], -1)
    return CurveProblem(inputs, rewards, (0.5 + costs) * at, [SHARES] * n)


def moments_at(config, step):
    """Any belief: means that differ by configuration and step, and wide enough to matter."""
    return 0.5 + 0.3 * math.sin(3.0 * config + 1.7 * step), 0.05 + 0.02 * (config % 3)


def believed(choice, steps):
    pairs = [moments_at(config, step) for config, step in zip(choice, steps, strict=True)]
    return tuple(torch.tensor(part, dtype=torch.float64) for part in zip(*pairs, strict=True))


class FakeModel:
    """A belief in the place of both rivals' models."""

    def __init__(self, *about):
        pass

    def predict(self, X):
        ends = torch.linspace(0, 1, len(X), dtype=torch.float64).unsqueeze(-1)
        return ends.expand(-1, SHARES), torch.zeros(len(X), dtype=torch.float64)

    def moments(self, *about):
        return believed(*about[-2:])


def moves(policy, problem, count):
    """Yield the curves before each ask, the steps paid by training, and what was asked."""
    curves, steps = [[] for _ in range(len(problem))], policy(problem, 0, math.inf)
    ask = next(steps)
    for _ in range(count):
        yield [list(curve) for curve in curves], ask.config
        before = len(curves[ask.config])
        assert ask.until == before + 1
        segment = problem.advance(ask.config, before, ask.until)
        curves[ask.config] = segment.curve.tolist()
        ask = steps.send(segment)


def test_dyhpo_goes_on_where_the_next_step_improves_most(monkeypatch):
    monkeypatch.setattr(dyhpo, "_NextSteps", FakeModel)
    for before, chosen in moves(dyhpo.dyhpo, crossing(), 30):
        if sum(map(bool, before)) >= 3:
            promises = next_step.promises(before, moments_at)
            assert promises[chosen] == pytest.approx(max(promises), rel=1e-3)


def test_quick_tune_divides_by_the_costs_of_a_step(monkeypatch):
    monkeypatch.setattr(quick_tune, "Learnt", FakeModel)
    problem, log_mean = crossing(), []
    for before, chosen in moves(quick_tune.quick_tune([]), problem, 30):
        begun = [config for config, curve in enumerate(before) if curve]
        if not begun:
            assert chosen == _CONFIGS - 1  # the best end that is predicted
            continue
        own = (problem.costs / SHARES).tolist()
        log_mean = sum(math.log(own[config]) for config in begun) / len(begun)
        costs = [own[c] if c in begun else math.exp(log_mean) for c in range(_CONFIGS)]
        promises = next_step.promises(before, moments_at, costs)
        assert promises[chosen] == pytest.approx(max(promises), rel=1e-3)


def test_the_model_sees_the_two_rewards_before_a_step():
    problem = crossing()
    table = problem.rewards.clone()
    table[0, 3:], table[1] = math.nan, math.nan
    seen = table[~table.isnan()]
    rows = dyhpo.step_inputs(problem.inputs, table)
    for config in range(_CONFIGS):
        for step in range(SHARES):
            lags = [float(table[config, step - lag]) if step >= lag else math.nan for lag in (1, 2)]
            wanted = [
                0.0 if math.isnan(v) else (v - seen.min()) / (seen.max() - seen.min()) for v in lags
            ]
            row = rows[config, step].tolist()
            assert row[:3] == [*problem.inputs[config].tolist(), (step + 1) / SHARES]
            assert row[3:] == pytest.approx([float(value) for value in wanted])


def covariance_of(n, generator):
    root = torch.randn(n, n, generator=generator, dtype=torch.float64)
    return root @ root.T + 0.1 * torch.eye(n, dtype=torch.float64)


def test_scale_and_shift_have_the_highest_likelihood():
    generator = torch.Generator().manual_seed(0)
    for n in (2, 5, 9):
        covariance = covariance_of(n, generator)
        values, mean = torch.randn(2, n, generator=generator, dtype=torch.float64)
        scale, shift = units(values, mean, torch.linalg.cholesky(covariance))
        parts = values.numpy(), mean.numpy(), covariance.numpy()
        best = next_step.restricted_log_likelihood(scale, *parts)
        others = [scale * math.exp(0.02 * step) for step in range(-200, 201)]
        assert best >= max(next_step.restricted_log_likelihood(s, *parts) for s in others) - 1e-9
        residual = scale * values + shift - mean
        assert float(torch.linalg.solve(covariance, residual).sum()) == pytest.approx(0, abs=1e-8)


def test_equal_values_leave_the_scale_alone():
    factor = torch.eye(3, dtype=torch.float64)
    values, mean = (
        torch.full((3,), 0.3, dtype=torch.float64),
        torch.tensor([0.0, 1.0, 2.0]).double(),
    )
    assert units(values, mean, factor) == (1.0, pytest.approx(0.7))


@pytest.fixture(scope="module")
def learnt():
    studies = [study_of(crossing(seed, 20), torch.arange(20)) for seed in (1, 2, 3)]
    return Learnt(studies)


def test_earlier_curves_foretell_curves_of_the_same_kind(learnt):
    problem = crossing(4, 40)
    mean, costs = learnt.predict(problem.inputs)
    assert torch.corrcoef(torch.stack([mean[:, -1], problem.ends]))[0, 1] > 0.9
    assert torch.corrcoef(torch.stack([mean[:, 2], problem.rewards[:, 2]]))[0, 1] > 0.9
    assert costs.shape == (40,)


def test_a_broken_training_of_an_earlier_study_is_its_worst():
    problem = crossing()
    rewards, elapsed = problem.rewards.clone(), problem.elapsed.clone()
    rewards[1, 4:], elapsed[1, 4:] = math.nan, math.nan
    broken = CurveProblem(problem.inputs, rewards, elapsed, problem.lengths)
    study = study_of(broken, torch.arange(_CONFIGS))
    assert study.curves[1, :4].tolist() == rewards[1, :4].tolist()
    assert (study.curves[1, 4:] == study.curves.min()).all()
    assert study.costs[1] == elapsed[1, 3]


def test_a_search_is_understood_in_its_own_units(learnt):
    problem = crossing(4, 40)
    mean, _ = learnt.predict(problem.inputs)
    rewards = 1000 + 50 * problem.rewards
    table = torch.full_like(rewards, math.nan)
    table[:8, :5] = rewards[:8, :5]
    choice = list(range(8, 40))
    steps = [SHARES - 1] * len(choice)
    believed_mean, sd = learnt.moments(problem.inputs, mean, table, choice, steps)
    error = (believed_mean - rewards[8:, -1]).abs()
    assert error.median() < 0.2 * rewards[:, -1].std()
    assert (error < 4 * sd + 1).double().mean() > 0.8


def test_what_was_seen_is_believed(learnt):
    problem = crossing(4, 40)
    mean, _ = learnt.predict(problem.inputs)
    table = torch.full_like(problem.rewards, math.nan)
    table[:8, :5] = problem.rewards[:8, :5]
    believed_mean, sd = learnt.moments(problem.inputs, mean, table, [0, 1, 2], [3, 3, 3])
    assert torch.allclose(believed_mean, problem.rewards[:3, 3], atol=0.05)
    far = learnt.moments(problem.inputs, mean, table, [0, 1, 2], [15, 15, 15])[1]
    assert (sd < far).all()


@pytest.mark.slow
def test_rivals_end_with_the_best_when_they_may_train_all():
    problem = crossing(n=3)
    studies = [study_of(crossing(9, 12), torch.arange(12))]
    for policy in (dyhpo.dyhpo, quick_tune.quick_tune(studies)):
        assert play(problem, policy, 0, 4.0)[-1].regret == pytest.approx(0, abs=1e-12)
