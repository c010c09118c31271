"""Where a query is worth most: which lookaheads are computed, which of equals counts, and the lines."""

import math

import pytest
import torch

from botorch_costly.numerics.knowledge_gradient import knowledge_gradient
from botorch_costly.query import Outlook
from botorch_costly.query.weighing import (
    LINES,
    SPREAD,
    TIE,
    Candidates,
    best_values,
    lines_among,
    rough_values,
    spread_bonus,
    weigh,
)
from tests.oracles import knowledge_gradient as oracle

NOISE, KEEP, PRICE = 0.05, 0.95, 0.2
DOUBLE = torch.float64


def belief(batch, n, generator):
    """Candidates that are all lines."""
    root = torch.randn(*batch, n, n, generator=generator, dtype=DOUBLE) / n**0.5
    mean = torch.randn(*batch, n, generator=generator, dtype=DOUBLE)
    return candidates_of(mean, root @ root.mT, torch.eye(n, dtype=DOUBLE) + 0.3)


def candidates_of(mean, cov, prior_cov, lines=None, noise=NOISE):
    if lines is None:
        lines = torch.arange(mean.shape[-1]).expand(mean.shape)
    rows = cov.take_along_dim(lines.unsqueeze(-1), -2)
    prior = prior_cov[lines.unsqueeze(-1), lines.unsqueeze(-2)]
    return Candidates(mean, cov.diagonal(dim1=-2, dim2=-1), lines, rows, prior, noise, KEEP)


@pytest.mark.parametrize("picks", [[2], [0, 3, 6], range(7)])
@pytest.mark.parametrize("lookahead_weight", [0.0, 0.5, 1.0])
def test_it_is_its_loop_over_trials_and_points(picks, lookahead_weight, generator):
    given = belief((5,), 7, generator)
    horizons = torch.tensor([0.0, 1.0, 3.0, 9.0, 40.0], dtype=DOUBLE)
    outlook = Outlook(horizons, PRICE, lookahead_weight)
    weighed = weigh(given, outlook, torch.tensor([list(picks)]).expand(5, -1))
    assert weighed.pick.shape == (5,)
    for i, horizon in enumerate(horizons.tolist()):
        mean, cov = given.mean[i].tolist(), given.cov[i].tolist()
        terms = {}
        for j in picks:
            gain = oracle.knowledge_gradient(mean, cov, j, NOISE)
            lookahead = 0.0
            if lookahead_weight:
                prior = given.prior_cov[i].tolist()
                lookahead = oracle.lookahead(mean, cov, prior, j, NOISE, KEEP, horizon, PRICE)
            terms[j] = mean[j], gain, lookahead
        pick = max(
            terms,
            key=lambda j: terms[j][0] + horizon * terms[j][1] + lookahead_weight * terms[j][2],
        )
        assert weighed.pick[i] == pick
        numbers = [float(term[i]) for term in weighed.prospect]
        assert numbers == pytest.approx(list(terms[pick]), rel=1e-10, abs=1e-10)


def test_a_repeated_pick_changes_nothing(generator):
    given, outlook = belief((4,), 6, generator), Outlook(9.0, PRICE, 0.5)
    once = weigh(given, outlook, torch.tensor([[1, 4]]).expand(4, -1))
    twice = weigh(given, outlook, torch.tensor([[1, 1, 4, 4]]).expand(4, -1))
    assert torch.equal(once.pick, twice.pick)
    for one, two in zip(once.prospect, twice.prospect, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-12, atol=1e-12)


def test_the_result_can_be_used_with_autograd(generator):
    weighed = weigh(belief((), 4, generator), Outlook(9.0, PRICE, 0.5), torch.arange(4))
    factor = torch.ones((), dtype=DOUBLE, requires_grad=True)
    (factor * weighed.prospect.gain).backward()
    assert factor.grad == weighed.prospect.gain
    assert not any(term.is_inference() for term in (weighed.pick, *weighed.prospect))


def test_of_values_that_rounding_tells_apart_the_first_counts():
    """A query at a point says everything about it, and nothing about the others."""
    for gap, pick in [(0.0, 1), (0.1, 1), (-0.1, 1), (9.0, 3)]:
        deviation = torch.tensor([0.5, 1.0, 0.5, 1.0 + gap * TIE / 0.4], dtype=DOUBLE)
        cov = deviation.square().diag()
        given = candidates_of(torch.zeros(4, dtype=DOUBLE), cov, cov, noise=1e-12)
        assert weigh(given, Outlook(9.0), torch.arange(4)).pick == pick


def test_a_lookahead_that_does_not_count_is_not_computed(generator, monkeypatch):
    def never(*args):
        raise AssertionError

    monkeypatch.setattr("botorch_costly.query.weighing.lookahead_value", never)
    given = belief((), 3, generator)
    assert weigh(given, Outlook(2.0, PRICE, 0.0), torch.arange(3)).prospect.lookahead == 0


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, 1e300])
def test_whatever_the_numbers_are_a_point_is_picked(number, generator):
    given = belief((), 4, generator)
    for name in ("mean", "variance", "cov"):
        term = getattr(given, name).clone()
        term[..., 2] = number
        for weight in (0.0, 0.5):
            outlook = Outlook(5.0, PRICE, weight)
            pick = weigh(given._replace(**{name: term}), outlook, torch.arange(4)).pick
            assert 0 <= int(pick) < 4


def test_what_is_weighed_is_not_changed(generator):
    given = belief((3,), 5, generator)
    before = [term.clone() for term in given[:5]]
    rough_values(given, Outlook(5.0))
    weigh(given, Outlook(5.0, PRICE, 0.5), torch.arange(5).expand(3, -1))
    for term, kept in zip(given[:5], before, strict=True):
        assert torch.equal(term, kept)


def test_approximate_values_are_never_above_and_rarely_much_below(generator):
    given = belief((40,), 12, generator)
    horizon = 10.0
    gain = knowledge_gradient(given.mean, given.cov, given.variance, NOISE)
    exact, ours = given.mean + horizon * gain, rough_values(given, Outlook(horizon))
    assert (ours <= exact + 1e-9).all()
    shortfall = (exact - ours) / (horizon * gain).clamp_min(0.1)
    assert shortfall.mean() < 0.12
    assert shortfall.max() < 0.6


@pytest.mark.parametrize("noise", [1e-2, 1e-6, 1e-10])
def test_single_precision_is_enough_for_lookaheads(noise):
    """After a query at a point its variance is a difference of nearly equal numbers."""
    x = torch.linspace(0, 1, 24, dtype=DOUBLE)
    cov = (-0.5 * ((x[:, None] - x) / 0.3).square()).exp()
    exact = candidates_of((5 * x).sin(), 0.8 * cov, cov, noise=noise)
    single = exact._replace(prior_cov=cov.float(), keep=1.0)
    outlook, exact = Outlook(300.0, PRICE, 0.5), exact._replace(keep=1.0)
    for place in range(24):
        pick = torch.tensor([place])
        ours, expected = (weigh(term, outlook, pick).prospect for term in (single, exact))
        torch.testing.assert_close(ours, expected, rtol=0, atol=1e-3)


def test_a_candidate_counts_that_is_no_line():
    """Its own mean may become the largest one."""
    mean, cov = torch.zeros(3, dtype=DOUBLE), torch.eye(3, dtype=DOUBLE)
    given = candidates_of(mean, cov, cov, torch.tensor([0]), noise=1e-9)
    weighed = weigh(given, Outlook(1.0), torch.tensor([2]))
    assert weighed.prospect.gain == pytest.approx(1 / math.sqrt(2 * math.pi), abs=1e-6)
    values = rough_values(given, Outlook(1.0))
    assert values[1] == pytest.approx(values[2])
    assert values[2] > 0.35


@pytest.mark.parametrize("dim", [1, 2, 3, 8])
def test_lines_are_spread_and_likely(dim, generator):
    order = torch.randperm(400, generator=generator)
    mean = torch.randn(5, 400, generator=generator, dtype=DOUBLE)
    lines = lines_among(mean, torch.ones_like(mean), spread_bonus(order, dim), dim)
    assert lines.shape == (5, LINES[min(dim, 3) - 1])
    for row, chosen in zip(mean, lines.tolist(), strict=True):
        assert len(set(chosen)) == len(chosen)
        assert int(row.argmax()) in chosen
        places = order[chosen]
        assert (places < SPREAD).sum() == SPREAD
        allowed = {1: 64, 2: 128}.get(dim, 400)
        others = [c for c in chosen if order[c] >= SPREAD and c != int(row.argmax())]
        assert (order[others] < allowed).all()
        rest = row.masked_fill((order < SPREAD) | (order >= allowed), -math.inf)
        assert set(others) <= set(rest.topk(len(others) + 1).indices.tolist())


def test_the_best_values_are_in_order(generator):
    values = torch.randn(3, 30, generator=generator)
    best = best_values(values)
    assert (best.diff() > 0).all()
    assert torch.equal(values.gather(-1, best).sort(-1).values, values.sort(-1).values[:, -12:])
