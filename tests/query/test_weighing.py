"""Where a query promises most: which lookaheads are worked out, and which of equals counts."""

import pytest
import torch

from botorch_costly.query import Outlook, weighing
from botorch_costly.query.weighing import TIE, NextQuery, weigh
from tests.oracles import knowledge_gradient as oracle

NOISE, KEEP, PRICE = 0.05, 0.95, 0.2


def belief(batch, n, generator):
    """Means, covariances and knowledge gradients of some points, and their prior."""
    root = torch.randn(*batch, n, n, generator=generator, dtype=torch.float64) / n**0.5
    cov = root @ root.mT
    mean = torch.randn(*batch, n, generator=generator, dtype=torch.float64)
    gain = torch.rand(*batch, n, generator=generator, dtype=torch.float64)
    return mean, cov, gain, torch.eye(n, dtype=torch.float64) + 0.3


def next_query_of(mean, cov, prior):
    """The next query may be at each of the points."""

    def next_query(places):
        index = places.unsqueeze(-1).expand(*places.shape, cov.shape[-1])
        variance = cov.diagonal(dim1=-2, dim2=-1).gather(-1, places)
        return NextQuery(mean, cov, prior, cov.gather(-2, index), variance, NOISE, KEEP)

    return next_query


@pytest.mark.parametrize("foreseen", [1, 3, 12])
@pytest.mark.parametrize("lookahead_weight", [0.0, 0.5, 1.0])
def test_it_is_its_loop_over_trials_and_points(foreseen, lookahead_weight, monkeypatch, generator):
    monkeypatch.setattr(weighing, "FORESEEN", foreseen)
    mean, cov, gain, prior = belief((5,), 7, generator)
    effective_horizon = torch.tensor([0.0, 1.0, 3.0, 9.0, 40.0], dtype=torch.float64)
    outlook = Outlook(effective_horizon, PRICE, lookahead_weight)
    found = weigh(mean, gain, outlook, next_query_of(mean, cov, prior))
    assert found.pick.shape == (5,)
    for i, horizon in enumerate(effective_horizon.tolist()):
        promises = [
            m + horizon * g for m, g in zip(mean[i].tolist(), gain[i].tolist(), strict=True)
        ]
        best = sorted(range(7), key=lambda j: -promises[j])[:foreseen]
        lookahead = dict.fromkeys(best if lookahead_weight else range(7), 0.0)
        for j in best if lookahead_weight else []:
            terms = (mean[i].tolist(), cov[i].tolist(), prior.tolist(), j)
            lookahead[j] = oracle.lookahead(*terms, NOISE, KEEP, horizon, PRICE)
        pick = max(lookahead, key=lambda j: promises[j] + lookahead_weight * lookahead[j])
        assert found.pick[i] == pick
        numbers = [float(part[i]) for part in found.prospect]
        expected = [float(mean[i, pick]), float(gain[i, pick]), lookahead[pick]]
        assert numbers == pytest.approx(expected, rel=1e-10, abs=1e-10)


def test_of_promises_that_rounding_tells_apart_the_first_counts():
    mean, none = torch.zeros(4, dtype=torch.float64), Outlook(9.0)
    for gap, pick in [(0.0, 1), (0.1, 1), (-0.1, 1), (5.0, 3)]:
        gain = torch.tensor([0.1, 0.5, 0.2, 0.5 + gap * TIE], dtype=torch.float64)
        assert weigh(mean, gain, none, lambda places: None).pick == pick


def test_a_lookahead_that_does_not_count_is_not_worked_out():
    def never(places):
        raise AssertionError

    found = weigh(torch.zeros(3), torch.ones(3), Outlook(2.0, PRICE, 0.0), never)
    assert found.prospect.lookahead == 0


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf"), 1e300])
def test_whatever_the_numbers_are_a_point_is_picked(number, generator):
    mean, cov, gain, prior = belief((), 4, generator)
    for terms in ((mean.clone(), gain), (mean, gain.clone())):
        terms[0][2] = number
        for weight in (0.0, 0.5):
            found = weigh(*terms, Outlook(5.0, PRICE, weight), next_query_of(mean, cov, prior))
            assert 0 <= int(found.pick) < 4


def test_what_is_weighed_is_not_changed(generator):
    mean, cov, gain, prior = belief((3,), 5, generator)
    before = [part.clone() for part in (mean, cov, gain, prior)]
    weigh(mean, gain, Outlook(5.0, PRICE, 0.5), next_query_of(mean, cov, prior))
    for part, kept in zip((mean, cov, gain, prior), before, strict=True):
        assert torch.equal(part, kept)


def test_both_that_weigh_queries_have_one_set_of_constants():
    from botorch_costly.simulation import prospect
    from botorch_costly.tuners.online import priced_play

    for name in ("TOLERANCE", "NEXT_POINTS"):
        one = {getattr(module, name) for module in (weighing, prospect, priced_play)}
        assert len(one) == 1
