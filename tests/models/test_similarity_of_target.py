"""How much a target resembles earlier tasks: against a naive log posterior, and what it must say."""

import math

import pytest
import torch

from botorch_costly.models import Similarity, TransferGP, adapt_similarity
from botorch_costly.models.transfer import features, units_of
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


def moves(found, similarity):
    pairs = zip(numbers(found), numbers(similarity), strict=True)
    return [math.log(float(one) / float(two)) for one, two in pairs]


@pytest.mark.parametrize("target", [truth, other])
def test_no_similarity_nearby_is_more_probable(target, tasks, similarity, tkwargs):
    X = points(COUNT, 11, tkwargs)
    Y = target(X)
    found = adapt_similarity(similarity, tasks, X, Y.unsqueeze(-1))
    said = tasks.moments(X)
    like = [part.double().cpu() for part in (said.mean, said.std, X, Y)]
    learnt = Similarity(*(part.double().cpu() for part in similarity))

    def log_posterior(moved):
        return float(oracle.log_posterior_of_similarity(moved, learnt, *like, units_of(tasks)))

    best = moves(found, similarity)
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
    known = features(tasks, X)
    ours = adapt_similarity(similarity, tasks, X, Y, known)
    for one, two in zip(ours, adapt_similarity(similarity, tasks, X, Y), strict=True):
        torch.testing.assert_close(one, two)


HARD = {
    "one configuration again and again": lambda X: (X[:1].expand(len(X), -1), truth(X)),
    "values that are all alike": lambda X: (X, torch.full_like(X[:, 0], 3.0)),
    "huge values": lambda X: (X, 1e8 * truth(X)),
    "tiny values": lambda X: (X, 1e-8 * truth(X)),
}


@pytest.mark.parametrize("case", HARD)
def test_every_number_stays_finite(case, tasks, similarity, tkwargs):
    X, Y = HARD[case](points(40, 11, tkwargs))
    found = adapt_similarity(similarity, tasks, X, Y.unsqueeze(-1))
    assert all(bool(torch.isfinite(part).all()) and bool((part > 0).all()) for part in found)
    mean, std = TransferGP(tasks, found, X, Y.unsqueeze(-1)).moments(points(5, 12, tkwargs))
    assert bool(torch.isfinite(mean).all())
    assert bool((std > 0).all())
