"""The ends of earlier trainings that were stopped early."""

import pytest
import torch
from scipy.stats import spearmanr

import botorch_costly as bc
from botorch_costly.tuners.earlier.extrapolation import ends_of
from tests.tuners.curves.playing import LENGTH, SPACE, made, play, reward
from tests.tuners.curves.test_earlier import configs_of, earlier

SHARES = (0.125, 0.25, 0.5, 1.0)


def crossing(until, number=40, seed=0):
    """Curves whose ends no early value alone tells: they rise by what the configuration decides.

    Args:
        until: Share of a training at which each stops, by its number.
    """
    x = torch.rand(number, 2, generator=torch.Generator().manual_seed(seed)).double()
    end, begin = torch.sin(5 * x[:, 0]), 0.3 * torch.cos(7 * x[:, 1])
    rows = [
        (x[i], begin[i] * (1 - s) + s * (2 + end[i]), s)
        for i in range(number)
        for s in SHARES
        if s <= until(i)
    ]
    points, values, shares = (list(column) for column in zip(*rows, strict=True))
    return torch.stack(points), torch.stack(values), torch.tensor(shares).double(), x, end


def ordered(found, x, end):
    """Return ends in the order in which they were found."""
    return torch.stack([end[(x == point).all(-1)][0] for point in found])


def test_ends_that_were_measured_keep_their_order():
    points, values, shares, x, end = crossing(lambda i: 1.0)
    found, ends = ends_of(points, values, shares)
    assert len(found) == 40
    assert spearmanr(ends, ordered(found, x, end)).statistic == pytest.approx(1.0)


def test_trainings_that_were_stopped_are_extrapolated():
    points, values, shares, x, end = crossing(lambda i: 1.0 if i % 4 == 0 else 0.25)
    found, ends = ends_of(points, values, shares)
    truth = ordered(found, x, end)
    latest = [float(values[(points == point).all(-1)][-1]) for point in found]
    assert spearmanr(ends, truth).statistic > 0.9
    assert spearmanr(latest, truth).statistic < 0.7


def test_the_order_of_the_observations_does_not_count():
    points, values, shares, *_ = crossing(lambda i: 1.0 if i % 2 else 0.5)
    order = torch.randperm(len(values), generator=torch.Generator().manual_seed(1))
    ours, theirs = (
        ends_of(points, values, shares),
        ends_of(*(v[order] for v in (points, values, shares))),
    )
    assert torch.equal(ours[0], theirs[0])
    torch.testing.assert_close(ours[1], theirs[1], rtol=1e-6, atol=1e-6)


def test_more_trainings_than_fit_into_one_model(monkeypatch):
    points, values, shares, *_ = crossing(lambda i: 1.0 if i % 4 == 0 else 0.25)
    whole = ends_of(points, values, shares)[1]
    monkeypatch.setattr("botorch_costly.tuners.earlier.extrapolation._CHUNK", 7)
    torch.testing.assert_close(ends_of(points, values, shares)[1], whole, rtol=0.05, atol=0.05)


def curves_of_a_study(number=30):
    """Curves of trainings of which two thirds stopped after a quarter."""
    rows = [
        (config, reward(config, k), k / LENGTH)
        for i, config in enumerate(configs_of(number, 3))
        for k in range(1, LENGTH + 1 if i % 3 == 0 else LENGTH // 4 + 1)
    ]
    configs, values, progress = zip(*rows, strict=True)
    return bc.Task(configs, values, progress=progress)


def test_a_search_begins_with_what_earlier_curves_promise():
    optimizer = made(tasks=[curves_of_a_study()])
    asked = play(optimizer, 3)
    assert max(reward(segment.config, LENGTH) for segment in asked) > -0.5


def test_curves_and_their_final_values_are_different_states():
    curves = curves_of_a_study()
    finals = bc.Task(curves.configs, curves.values)
    headers = [made(tasks=[task]).state_dict()["header"]["tasks"] for task in (curves, finals)]
    assert headers[0] != headers[1]


def test_a_study_without_a_finished_training_is_read():
    rows = [(config, reward(config, 4), 4 / LENGTH) for config in configs_of(12, 1)]
    configs, values, progress = zip(*rows, strict=True)
    X = torch.stack([SPACE.encode(config) for config in configs])
    means = earlier(bc.Task(configs, values, progress=progress)).means(X)
    assert spearmanr(means.flatten(), values).statistic > 0.8


def test_the_best_of_few_that_learn_are_distinguished():
    x = torch.rand(100, 1, generator=torch.Generator().manual_seed(0)).double()
    ends = torch.tensor([0.0] * 95 + [0.2, 0.4, 0.6, 0.8, 1.0]).double()
    points, values = torch.cat([x, x]), torch.cat([0 * ends, ends])
    shares = torch.cat([torch.full((100,), 0.5), torch.ones(100)]).double()
    found, numbers = ends_of(points, values, shares)
    assert spearmanr(numbers, ordered(found, x, ends)).statistic == pytest.approx(1.0)
