"""Priced queries in the batched run, against a loop over rounds and points."""

import math
from dataclasses import dataclass, field

import pytest
import torch

from botorch_costly.errors import InvalidBudgetError
from botorch_costly.models import DriftingGrid
from botorch_costly.numerics.knowledge_gradient import knowledge_gradient, slopes
from botorch_costly.numerics.lookahead import lookahead_value
from botorch_costly.numerics.stationary import Stationary
from botorch_costly.problems import DriftingFunction
from botorch_costly.query import ConfidenceQuery, Outlook, PricedQuery
from botorch_costly.simulation import GridPolicy, draw, grid_prospect, play, prospect, run as of_run
from tests.cases import quick, slow
from tests.oracles import ce_gp_ucb, dense_gp, knowledge_gradient as oracle

TRIALS, HORIZON, POINTS, FORGETTING = 3, 30, 17, 0.1


@dataclass(frozen=True)
class Watched(PricedQuery):
    """A priced query that records the progress it receives and its verdicts."""

    heard: list = field(default_factory=list, compare=False)
    verdicts: list = field(default_factory=list, compare=False)

    def __call__(self, comparison, progress, generator):
        query_values = progress.query_values.clone()  # which are kept in place
        self.heard.append(progress._replace(query_values=query_values))
        self.verdicts.append(super().__call__(comparison, progress, generator))
        return self.verdicts[-1]


@pytest.fixture(scope="module")
def setting():
    generator = torch.Generator().manual_seed(5)
    points = torch.rand(POINTS, 1, generator=generator, dtype=torch.float64).sort(0).values
    unit = torch.ones((), dtype=torch.float64)
    truth = DriftingFunction(points, Stationary("matern32", 0.2 * unit, unit), FORGETTING, 0.01)
    return truth, draw(truth, range(TRIALS), HORIZON, seed=38)


def run_of(setting, rule, **options):
    truth, draws = setting
    return play(truth, [GridPolicy("", rule, **options)], draws).of(0)


def everywhere(mean, cov, noise, effective_horizon):
    """Each point is weighed."""
    return range(POINTS)


def at_the_peaks(mean, cov, noise, effective_horizon):
    """The two highest local maxima of the approximate value of a query."""
    gains = (
        oracle.rough_knowledge_gradient(mean, cov, i, noise, oracle.ROUGH) for i in range(POINTS)
    )
    promises = [m + effective_horizon * gain for m, gain in zip(mean, gains, strict=True)]
    return sorted(ce_gp_ucb.local_maxima(promises), key=lambda i: -promises[i])[:2]


def by_hand(setting, trial, opening, price, lookahead_weight, weighed):
    """Choices and queries of one trial; nothing of it is superseded."""
    truth, (paths, noise, _, _) = setting
    prior = dense_gp.matern(truth.points, truth.points, 0.2, nu=1.5)
    queries, history = [], []
    for t in range(HORIZON):
        belief = ce_gp_ucb.belief(prior, FORGETTING, truth.noise, queries, t)
        mean, cov = (moment.tolist() for moment in belief)
        effective_horizon = oracle.effective_horizon(HORIZON - t - 1, FORGETTING, supersession=0.0)
        best = max(range(POINTS), key=lambda i: mean[i])
        at, query = opening, True
        if queries:
            promises = oracle.promises(mean, cov, truth.noise, effective_horizon)
            lookaheads = dict.fromkeys(weighed(mean, cov, truth.noise, effective_horizon), 0.0)
            for i in lookaheads if lookahead_weight else []:
                ages = (truth.noise, math.sqrt(1 - FORGETTING), effective_horizon, price)
                lookaheads[i] = oracle.lookahead(mean, cov, prior.tolist(), i, *ages)
            at = max(lookaheads, key=lambda i: promises[i] + lookahead_weight * lookaheads[i])
            earns = promises[at] + lookahead_weight * lookaheads[at]
            query = earns > mean[best] + price
        choice = at if query else best
        value = float(paths[trial, t, choice])
        if query:
            queries.append((t, choice, value + float(noise[trial, t])))
        history.append((choice, query, float(paths[trial, t].max()) - value))
    return zip(*history, strict=True)


@pytest.mark.parametrize(
    ("lookahead_weight", "weighed"),
    [(0.0, everywhere), slow((0.5, everywhere)), (1.0, at_the_peaks)],
)
def test_a_priced_simulation_is_the_loop_over_rounds(
    setting, monkeypatch, lookahead_weight, weighed
):
    """With as many lines as points."""
    if weighed is everywhere:
        every = torch.arange(POINTS)
        monkeypatch.setattr(prospect, "_peaks", lambda values: every.expand(values.shape))
    run = run_of(
        setting, PricedQuery(price=0.3, supersession=0.0, lookahead_weight=lookahead_weight)
    )
    opening = setting[1].opening
    for i in range(2):
        choice, query, regret = by_hand(setting, i, int(opening[i]), 0.3, lookahead_weight, weighed)
        assert run.query[i].tolist() == list(query)
        assert run.choice[i].tolist() == list(choice)
        expected = torch.tensor(regret, dtype=torch.float64)
        torch.testing.assert_close(run.regret[i], expected, rtol=0, atol=1e-12)
        assert 3 < sum(query) < 27


def test_the_rule_hears_how_far_each_trial_has_come(setting):
    rule = Watched(price=0.3)
    run = run_of(setting, rule)
    share = oracle.information_share(setting[0].prior_cov.tolist())
    for t, heard in enumerate(rule.heard):
        assert (heard.round, heard.horizon, heard.forgetting) == (t + 1, HORIZON, FORGETTING)
        assert torch.equal(heard.queries, run.query[:, :t].sum(-1))
        assert heard.information_share == pytest.approx(share)
    assert len(rule.heard) == HORIZON


def test_the_rule_hears_what_queries_were_worth_lately(setting, monkeypatch):
    monkeypatch.setattr(of_run, "RECENT", 7)
    rule = Watched(budget=12)
    run_of(setting, rule)
    for t, heard in enumerate(rule.heard):
        past = list(zip(rule.verdicts, rule.heard, strict=True))[:t][-7:]
        lately = [verdict.value / rule.effective_horizon(then) for verdict, then in past]
        for i in range(TRIALS):
            values = heard.query_values[i][~heard.query_values[i].isnan()]
            assert values.tolist() == [
                float(query_values[i]) for query_values in lately
            ]  # the oldest first


def test_the_rule_hears_what_is_still_remembered(setting):
    rule = Watched(price=0.3)
    run = run_of(setting, rule)
    for t, heard in enumerate(rule.heard):
        past = (row[:t].nonzero().squeeze(-1).tolist() for row in run.query)
        expected = [oracle.effective_queries(rounds, t, FORGETTING) for rounds in past]
        assert heard.effective_queries.tolist() == pytest.approx(expected)


@pytest.fixture(scope="module")
def fine_belief():
    """Two trials on 200 points, after a dozen queries."""
    n, trials = 200, 2
    truth = DriftingFunction.on_unit_interval(n, forgetting=0.05)
    generator = torch.Generator().manual_seed(0)
    belief = DriftingGrid(truth.prior_cov, 0.05, truth.noise, torch.Size([trials]))
    paths = truth.paths(12, trials, generator)
    for t in range(12):
        index = torch.randint(n, (trials,), generator=generator)
        belief.observe(index, paths[:, t].gather(-1, index[:, None])[:, 0])
        belief.wait()
    return belief


def prospect_of(belief, **outlook):
    return grid_prospect(belief, Outlook(**outlook), 0.05)


def exact_gain(belief):
    """The knowledge gradient of all points over all points."""
    everyone = torch.arange(belief.num_points)
    cov = belief.covariance_on_sublattice(everyone.expand(len(belief.mean), -1), 1).double()
    return knowledge_gradient(belief.mean, cov, belief.variance, belief.noise), cov


@pytest.mark.slow
@pytest.mark.parametrize("effective_horizon", [1.0, 20.0])
def test_few_candidates_and_lines_find_the_knowledge_gradient_of_all_points(
    fine_belief, effective_horizon
):
    mean = fine_belief.mean
    picked, prospect = prospect_of(fine_belief, effective_horizon=effective_horizon)
    exact, _ = exact_gain(fine_belief)
    at = picked.unsqueeze(-1)
    torch.testing.assert_close(prospect.mean, mean.gather(-1, at)[:, 0], rtol=0, atol=0)
    gain = exact.gather(-1, at)[:, 0]
    # Several tolerances, and points that lie between two of the lines.
    torch.testing.assert_close(prospect.gain, gain, rtol=0, atol=0.01)
    value = mean + effective_horizon * exact
    assert (value.gather(-1, at)[:, 0] >= value.amax(-1) - 0.01 * effective_horizon).all()
    assert (value.amax(-1) > value.mean(-1) + 0.1).all()
    assert (prospect.lookahead == 0).all()  # which does not count
    # Each trial may have an effective horizon of its own.
    own, _ = prospect_of(
        fine_belief, effective_horizon=torch.full((len(mean),), effective_horizon).double()
    )
    assert torch.equal(own, picked)


@pytest.mark.parametrize("price", quick([0.0, 1.0], 1.0))
def test_few_points_find_the_lookahead_of_all_points(fine_belief, price):
    mean, effective_horizon = fine_belief.mean, 20.0
    picked, prospect = prospect_of(
        fine_belief, effective_horizon=effective_horizon, price=price, lookahead_weight=0.5
    )
    gain, cov = exact_gain(fine_belief)
    some = torch.cat([picked.unsqueeze(-1), torch.arange(5, 200, 10).expand(2, -1)], -1)
    cov_with = cov.gather(-2, some.unsqueeze(-1).expand(-1, -1, 200))
    slope = slopes(cov_with, fine_belief.variance.gather(-1, some), fine_belief.noise)
    terms = (torch.full((2,), value).double() for value in (effective_horizon, price))
    prior, keep = fine_belief.prior_cov, math.sqrt(0.95)
    lookahead = lookahead_value(mean, cov, prior, slope, fine_belief.noise, keep, *terms)
    # Points that lie between two of the points where the next query may be.
    torch.testing.assert_close(
        prospect.lookahead, lookahead[:, 0], rtol=0, atol=0.01 * effective_horizon
    )
    promise = (mean + effective_horizon * gain).gather(-1, some) + 0.5 * lookahead
    assert (promise[:, 0] >= promise.amax(-1) - 0.01 * effective_horizon).all()
    assert (promise.amax(-1) > promise.mean(-1) + 0.5).all()
    assert (lookahead[:, 0].abs() > 0.2).all()


@pytest.mark.parametrize("noise", [1e-4, 1e-8, 1e-12])
@pytest.mark.parametrize("lookahead_weight", [0.0, 0.5])
def test_where_nothing_is_left_to_learn_nothing_is_gained(noise, lookahead_weight):
    """Covariances are rounding errors there, and the standard deviation of an observation is small."""
    x = torch.linspace(0, 1, 100, dtype=torch.float64)
    kernel = (-0.5 * ((x[:, None] - x) / 0.4).square()).exp()
    belief = DriftingGrid(kernel, 0.0, noise, torch.Size([2]))
    values = (7 * x).sin()
    for place in (*range(0, 100, 10), 99, 20, 22, 21, 24):
        belief.observe(torch.full((2,), place), values[place].expand(2))
    outlook = Outlook(300.0, 0.0, lookahead_weight)
    picked, outcome = grid_prospect(belief, outlook, 0.0)
    assert ((picked - values.argmax()).abs() <= 1).all()
    assert (outcome.gain < 1e-6).all()
    assert (outcome.lookahead.abs() < 0.01).all()


@pytest.mark.parametrize("queries", [6, 15])
def test_a_budget_is_kept_by_every_trial(queries):
    truth = DriftingFunction.on_unit_interval(40, forgetting=0.05)
    draws = draw(truth, range(8), 60, seed=2)
    run = run_of((truth, draws), PricedQuery(budget=queries))
    assert (run.query.sum(-1) == queries).all()


def test_unqueried_rounds_may_play_the_mean(setting):
    """The queries, and so the belief, stay as they were."""
    published = run_of(setting, ConfidenceQuery(0.8))
    ours = run_of(setting, ConfidenceQuery(0.8), unqueried_play="mean")
    assert torch.equal(ours.query, published.query)
    assert torch.equal(ours.choice[ours.query], published.choice[ours.query])
    assert torch.equal(ours.regret[ours.query], published.regret[ours.query])
    assert torch.equal(ours.mean, published.mean)
    unqueried = ~ours.query
    assert (ours.choice[unqueried] != published.choice[unqueried]).any()
    paths = setting[1].paths
    value = paths.gather(-1, ours.choice.unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(ours.regret, paths.amax(-1) - value)
    assert (ours.regret >= 0).all()
    # The last round without a query plays the maximizer of the mean of that round.
    last = unqueried[:, -1]
    assert last.any()
    assert torch.equal(ours.choice[last, -1], ours.mean[last].argmax(-1))


def test_rules_with_an_outlook_choose_their_plays_themselves(setting):
    runs = [
        run_of(setting, PricedQuery(price=0.3), unqueried_play=b) for b in ("acquisition", "mean")
    ]
    assert torch.equal(runs[0].choice, runs[1].choice)


def test_a_run_too_short_for_the_budget_is_named(setting):
    with pytest.raises(InvalidBudgetError, match="budget: Expected at most 30 rounds; Received 31"):
        run_of(setting, PricedQuery(budget=31))
