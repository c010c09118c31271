"""The belief of ``SubsetOptimizer`` from cold, and when it is worked out anew."""

import pytest
import torch

import botorch_costly as bc
from botorch_costly.models.ensemble import sample_hyperparameters
from botorch_costly.tuners.subsets.belief import SubsetBelief, TemperedData, log_shares
from tests.cases import quick

SPACE = bc.SearchSpace({"x": bc.Real(0.0, 1.0), "arm": bc.Choice(["a", "b"])})
SIZES = bc.SearchSpace({"layers": bc.Real(1, 12), "tokens": bc.Real(1e6, 1e9, log=True)})
QUICK = bc.Sampling(draws=4, first_steps=8, steps=8)


def made(sampling=QUICK, seed=0):
    return SubsetBelief(SPACE, SIZES, sampling, torch.Generator().manual_seed(seed))


def data(n, dtype=torch.float64):
    generator = torch.Generator().manual_seed(3)
    points = torch.rand(n, SPACE.dim + 2, generator=generator, dtype=torch.float64)
    rewards = -(points[:, 0] - 0.4).square() + 0.2 * points[:, -1]
    return TemperedData(points.to(dtype), rewards, points[:, -1] + 1)


def learnt(belief, n):
    told = data(n)
    return belief.learn(told, told.points[:0])


def test_shares_of_a_target_are_those_of_the_decoded_fidelities():
    encoded = torch.tensor([[0.0, 0.0], [0.3, 0.6], [1.0, 1.0]], dtype=torch.float64)
    for row, shares in zip(encoded, log_shares(SIZES)(encoded).exp().tolist(), strict=True):
        fidelities = SIZES.decode(row)
        assert shares == pytest.approx([fidelities["layers"] / 12, fidelities["tokens"] / 1e9])


def test_walkers_move_when_the_evaluations_have_grown_by_a_twentieth():
    belief = made()
    learnt(belief, 40)
    before = belief.state_dict()["walkers"]["raw"].clone()
    for n in (40, 41):
        learnt(belief, n)
        assert torch.equal(belief.state_dict()["walkers"]["raw"], before)
    learnt(belief, 42)
    assert not torch.equal(belief.state_dict()["walkers"]["raw"], before)


def test_an_older_state_goes_on_and_a_newer_one_to_the_bit():
    belief, ours, older = made(), made(seed=1), made(seed=1)
    learnt(belief, 12)
    state = belief.state_dict()
    ours.load_state_dict(state)
    older.load_state_dict({"walkers": state["walkers"]})
    told = data(12)
    expected = belief.at_target(learnt(belief, 12).model, told.points[:, : SPACE.dim])
    actual = ours.at_target(learnt(ours, 12).model, told.points[:, : SPACE.dim])
    assert torch.equal(actual, expected)
    assert learnt(older, 12).model.batch_shape == (4,)


def test_many_evaluations_are_thinned_to_the_highest_fidelities_and_some_of_all_others():
    points = data(300).points
    rows = made()._informative(points, 100)
    assert len(rows.unique()) == 100
    shares = points[:, -2:].sum(-1)
    assert set(shares.topk(50).indices.tolist()) <= set(rows.tolist())
    low = shares[rows] < shares.median()
    assert 20 < low.sum() < 40  # of the 50 others, 150 of 250


def test_the_draws_chosen_predict_as_all_walkers_do():
    """The naive twin asks each walker alone, and takes the mean of the error over random choices."""
    told = data(15)
    belief = made(bc.Sampling(draws=6))
    configs = told.points[:, : SPACE.dim]
    model = learnt(belief, 15).model

    def predicted(raw):
        ensemble = belief._ensemble(told.points, targets, raw)
        return torch.stack(
            [belief.at_target(ensemble, configs), belief.std_at_target(ensemble, configs)]
        )

    targets = (told.rewards - told.rewards.mean()) / told.rewards.std(correction=0)
    raw = belief.state_dict()["walkers"]["raw"]
    every = predicted(raw)
    chosen = torch.stack([belief.at_target(model, configs), belief.std_at_target(model, configs)])
    generator = torch.Generator().manual_seed(0)
    random = [predicted(raw[torch.randperm(len(raw), generator=generator)[:6]]) for _ in range(20)]
    typical = torch.stack([(one - every).square().mean() for one in random]).median()
    assert (chosen - every).square().mean() < 0.7 * typical


@pytest.mark.parametrize("dtype", quick([torch.float64, torch.float32], torch.float32))
def test_a_draw_without_a_cholesky_factor_is_left_out(dtype):
    told, belief = data(8, dtype), made()
    belief.learn(told, told.points[:0])
    raw = belief.state_dict()["walkers"]["raw"].to(dtype)[:3].clone()
    raw[1] = torch.nan
    assert belief._ensemble(told.points, told.rewards.to(dtype), raw).batch_shape == (2,)


@pytest.mark.slow
def test_a_belief_from_cold_is_that_of_long_chains():
    """The kind: walkers that start close together are far from the posterior after their first steps."""
    told = data(16)
    targets = (told.rewards - told.rewards.mean()) / told.rewards.std(correction=0)
    belief = made(bc.Sampling())
    configs = told.points[:, : SPACE.dim]
    model = learnt(belief, 16).model
    generator = torch.Generator().manual_seed(5)
    long = sample_hyperparameters(
        lambda batch: belief._gp(told.points, targets, batch), generator, walkers=80, steps=1_500
    )
    ensemble = belief._ensemble(told.points, targets, long.walkers.raw)
    std = belief.std_at_target(ensemble, configs)
    error = (belief.at_target(model, configs) - belief.at_target(ensemble, configs)) / std
    assert error.abs().median() < 0.3
    assert (belief.std_at_target(model, configs) / std - 1).abs().median() < 0.4
