"""The similarity of a target to earlier tasks: against a naive log posterior, and its properties."""

import math

import pytest
import torch

from botorch_costly.models import (
    Similarity,
    TransferGP,
    adapt_similarity,
    similarity_of_target as of_target,
)
from botorch_costly.models.transfer import features, units_of
from tests.cases import quick
from tests.models.alike_tasks import alike_tasks, believed_similarity, points, truth
from tests.oracles import tasks as oracle

COUNT = 25


@pytest.fixture
def tasks(tkwargs):
    return alike_tasks(tkwargs)


@pytest.fixture
def similarity(tkwargs):
    return believed_similarity(tkwargs)


def other(X):
    """Return values of a target that no task says anything of."""
    return (9 * X[:, 0]).cos() * (8 * X[:, 1]).sin()


def numbers(similarity):
    return [*similarity[:4], *similarity.lengthscale]


def moves(adapted, similarity):
    pairs = zip(numbers(adapted), numbers(similarity), strict=True)
    return [math.log(float(first) / float(two)) for first, two in pairs]


@pytest.mark.parametrize("target", quick([truth, other], other))
def test_no_similarity_nearby_is_more_probable(target, tasks, similarity, tkwargs):
    X = points(COUNT, 11, tkwargs)
    Y = target(X)
    adapted = adapt_similarity(similarity, tasks, X, Y.unsqueeze(-1))
    task_moments = tasks.moments(X)
    like = [tensor.double().cpu() for tensor in (task_moments.mean, task_moments.std, X, Y)]
    learnt = Similarity(*(tensor.double().cpu() for tensor in similarity))

    def log_posterior(moved):
        return float(oracle.log_posterior_of_similarity(moved, learnt, *like, units_of(tasks)))

    best = moves(adapted, similarity)
    reached = log_posterior(best)
    assert reached > log_posterior([0.0] * 6) + 0.1
    for name in range(6):
        for away in (-0.3, 0.3):
            near = [move + away * (name == k) for k, move in enumerate(best)]
            assert log_posterior(near) < reached + 0.02


def test_values_unlike_those_of_the_tasks_are_the_target_s_own(tasks, similarity, tkwargs):
    X = points(COUNT, 11, tkwargs)
    like, unlike = (
        adapt_similarity(similarity, tasks, X, target(X).unsqueeze(-1)) for target in (truth, other)
    )
    assert float(unlike.own) > 3 * float(like.own)
    assert float(unlike.level) < float(like.level)


@pytest.mark.parametrize("count", [0, 1])
def test_a_single_value_says_nothing(count, tasks, similarity, tkwargs):
    X = points(count, 11, tkwargs)
    assert adapt_similarity(similarity, tasks, X, truth(X).unsqueeze(-1)) is similarity


def test_what_the_tasks_say_may_be_at_hand(tasks, similarity, tkwargs):
    X = points(6, 11, tkwargs)
    Y = truth(X).unsqueeze(-1)
    task_features = features(tasks, X)
    ours = adapt_similarity(similarity, tasks, X, Y, task_features)
    for first, two in zip(ours, adapt_similarity(similarity, tasks, X, Y), strict=True):
        torch.testing.assert_close(first, two)


HARD = {
    "one configuration again and again": lambda X: (X[:1].expand(len(X), -1), truth(X)),
    "values that are all alike": lambda X: (X, torch.full_like(X[:, 0], 3.0)),
    "huge values": lambda X: (X, 1e8 * truth(X)),
    "tiny values": lambda X: (X, 1e-8 * truth(X)),
}


@pytest.mark.parametrize("case", HARD)
def test_every_number_stays_finite(case, tasks, similarity, tkwargs):
    X, Y = HARD[case](points(40, 11, tkwargs))
    adapted = adapt_similarity(similarity, tasks, X, Y.unsqueeze(-1))
    assert all(
        bool(torch.isfinite(tensor).all()) and bool((tensor > 0).all()) for tensor in adapted
    )
    mean, std = TransferGP(tasks, adapted, X, Y.unsqueeze(-1)).moments(points(5, 12, tkwargs))
    assert bool(torch.isfinite(mean).all())
    assert bool((std > 0).all())


def written_out(moved, learnt, tasks, X, Y):
    """Return the naive log evidence of a similarity at a distance from the learnt one."""
    task_moments = tasks.moments(X)
    like = [tensor.double().cpu() for tensor in (task_moments.mean, task_moments.std, X, Y)]
    whole = oracle.log_posterior_of_similarity(moved, learnt, *like, units_of(tasks))
    return whole + sum(by**2 for by in moved) / 2


def test_the_evidence_has_the_slopes_of_finite_differences(tasks, similarity, tkwargs):
    X = points(7, 11, tkwargs)
    Y = truth(X) + 0.3 * other(X)
    target = of_target.target_of(X, Y, features(tasks, X), tasks.kernel, units_of(tasks))
    learnt = Similarity(*(tensor.double().cpu() for tensor in similarity))
    theta = torch.tensor([math.log(float(first)) for first in numbers(learnt)], dtype=torch.float64)
    value, gradient = of_target.log_evidence(target, theta.to(X.device))
    close = 1e-5 if tkwargs["dtype"] == torch.float64 else 1e-3
    assert float(value) == pytest.approx(written_out([0.0] * 6, learnt, tasks, X, Y), abs=close)
    for name in range(6):
        up, down = (
            written_out([away * (name == k) for k in range(6)], learnt, tasks, X, Y)
            for away in (1e-3, -1e-3)
        )
        assert float(gradient[name]) == pytest.approx((up - down) / 2e-3, abs=10 * close)


def test_information_is_what_values_are_expected_to_say(tasks, similarity, tkwargs):
    X = points(5, 11, tkwargs)
    seen = X, truth(X), features(tasks, X), tasks.kernel, units_of(tasks)
    target = of_target.target_of(*seen)
    theta = (
        torch.tensor([math.log(float(first)) for first in numbers(similarity)])
        .double()
        .to(X.device)
    )
    adapted, step = of_target.with_information(target, theta)[2], 1e-5
    _, cov, _ = of_target._expected(target, theta)
    slopes = []
    for name in range(6):
        away = torch.zeros_like(theta)
        away[name] = step
        up, down = (of_target._expected(target, theta + by) for by in (away, -away))
        slopes.append(((up.mean - down.mean) / (2 * step), (up.cov - down.cov) / (2 * step)))
    inverse = torch.linalg.inv(cov)
    for a, (mean_a, cov_a) in enumerate(slopes):
        for b, (mean_b, cov_b) in enumerate(slopes):
            naive = 0.5 * (inverse @ cov_a @ inverse @ cov_b).trace() + mean_a @ inverse @ mean_b
            assert float(adapted[a, b]) == pytest.approx(float(naive), abs=1e-4)


def test_where_a_search_begins_changes_little(tasks, similarity, tkwargs):
    X = points(COUNT, 11, tkwargs)
    Y = truth(X) + 0.3 * other(X)
    adapted = adapt_similarity(similarity, tasks, X, Y.unsqueeze(-1))
    start = adapt_similarity(similarity, tasks, X[:6], Y[:6].unsqueeze(-1))
    again = adapt_similarity(similarity, tasks, X, Y.unsqueeze(-1), start=start)
    learnt = Similarity(*(tensor.double().cpu() for tensor in similarity))
    reached, theirs = (
        written_out(moves(first, similarity), learnt, tasks, X, Y)
        - sum(by**2 for by in moves(first, similarity)) / 2
        for first in (again, adapted)
    )
    assert reached == pytest.approx(theirs, abs=0.02)
