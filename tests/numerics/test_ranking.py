"""Ranking losses and the weights they give."""

import numpy as np
import pytest
import torch

from botorch_costly.numerics import ranking
from tests.oracles import transfer as oracle


def normal(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def test_losses_count_pairs():
    y, f = normal(6), normal(4, 3, 6, seed=1).round(decimals=1)
    y[2] = y[4]  # a tie is ranked wrong by whatever tells the two apart
    expected = [[oracle.ranking_loss(row, y) for row in block] for block in f.tolist()]
    assert ranking.ranking_loss(f, y).tolist() == expected


def test_many_draws_are_counted_in_parts(monkeypatch):
    y, f = normal(6), normal(5, 7, 6, seed=1)
    whole = ranking.ranking_loss(f, y)
    monkeypatch.setattr(ranking, "_AT_ONCE", 100)
    assert torch.equal(ranking.ranking_loss(f, y), whole)


def test_losses_without_an_observation():
    y, f = normal(5), normal(4, 5, 5, seed=1)
    expected = [oracle.left_out_loss(block, y) for block in f.tolist()]
    assert ranking.left_out_loss(f, y).tolist() == expected


def test_an_observation_is_left_out_in_closed_form():
    half = normal(6, 6)
    cov, mean, y, noise = half @ half.mT, normal(6, seed=2), normal(6, seed=3), 0.3
    left = ranking.leave_one_out(ranking.Prior(mean, cov, cov + noise * torch.eye(6).double()), y)
    for j in range(6):
        expected = oracle.left_out_posterior(mean.numpy(), cov.numpy(), noise, y.numpy(), j)
        full = left.root @ left.root + torch.outer(left.loss[j], left.loss[j])
        np.testing.assert_allclose(left.mean[j], expected[0], atol=1e-9)
        np.testing.assert_allclose(full, expected[1], atol=1e-9)


def test_draws_have_their_moments():
    half = normal(2, 4, 4)
    mean, cov = normal(2, 4, seed=1), half @ half.mT
    samples = ranking.draw(mean, cov, normal(2, 40_000, 4, seed=2))
    torch.testing.assert_close(samples.mean(1), mean, atol=0.1, rtol=0)
    for i in range(2):
        torch.testing.assert_close(samples[i].mT.cov(), cov[i], atol=0.3, rtol=0.05)


def test_draws_left_out_have_their_moments():
    left = ranking.LeftOut(
        normal(3, 3), ranking.symmetric_root(torch.eye(3).double()), normal(3, 3)
    )
    samples = ranking.draw_left_out(left, normal(40_000, 3, 4, seed=2))
    for j in range(3):
        expected = torch.eye(3).double() + torch.outer(left.loss[j], left.loss[j])
        torch.testing.assert_close(samples[:, j].mean(0), left.mean[j], atol=0.1, rtol=0)
        torch.testing.assert_close(samples[:, j].mT.cov(), expected, atol=0.2, rtol=0.05)


def test_the_root_of_a_singular_covariance():
    ones = torch.ones(3, 3, dtype=torch.float64)
    root = ranking.symmetric_root(ones)
    torch.testing.assert_close(root @ root, ones)


def test_weights_share_ties_and_exclude_diluting_tasks():
    generator = torch.Generator().manual_seed(4)
    losses = torch.randint(4, 9, (5, 200), generator=generator)
    losses[3] += 4
    own = torch.randint(4, 11, (200,), generator=generator)
    weights = ranking.ensemble_weights(losses, own)
    assert weights.tolist() == pytest.approx(oracle.ensemble_weights(losses.tolist(), own.tolist()))
    assert weights[3] == 0
    order = torch.tensor([4, 2, 0, 3, 1])
    torch.testing.assert_close(ranking.ensemble_weights(losses[order], own)[:-1], weights[order])


def test_a_task_that_is_the_best_now_and_then_dilutes_all_the_same():
    own = torch.full((100,), 5)
    lucky = torch.where(torch.arange(100) < 40, 0, 9)
    assert ranking.ensemble_weights(lucky[None], own).tolist() == [0, 1]
    steady = torch.full((1, 100), 5)
    assert ranking.ensemble_weights(steady, own).tolist() == [0.5, 0.5]


def test_rare_bad_draws_of_the_target_admit_nothing():
    own = torch.where(torch.arange(100) < 4, 100, 5)
    assert ranking.ensemble_weights(torch.full((1, 100), 6), own).tolist() == [0, 1]


def test_discordance_is_between_0_and_1():
    y = normal(7)
    assert ranking.discordance(torch.stack([3 * y, -y]), y).tolist() == [0, 1]
    assert ranking.discordance(torch.zeros(2, 1), torch.zeros(1)).tolist() == [0, 0]
    f = normal(3, 7, seed=1)
    expected = [oracle.ranking_loss(row, y.tolist()) / 42 for row in f.tolist()]
    assert ranking.discordance(f, y).tolist() == pytest.approx(expected)
