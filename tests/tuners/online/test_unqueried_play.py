"""Priced queries in the tuner: what is played, and what the rule hears of the run."""

import math
from dataclasses import dataclass, field

import pytest
import torch

import botorch_costly as bc
from botorch_costly.acquisition import TimeVaryingKG, TimeVaryingUCB
from botorch_costly.errors import InvalidBudgetError
from botorch_costly.tuners.online import decider, priced_play
from tests import cases
from tests.oracles import dense_gp, knowledge_gradient as oracle
from tests.tuners.online.playing import (
    ARMS,
    FORGETTING,
    LATTICE,
    SPACES,
    make,
    play,
    priced,
    reward_of,
)

FEW = bc.SearchSpace({"depth": bc.Integer(1, 4), "width": bc.Integer(1, 3)})
FINITE = {
    "lattice": (LATTICE, 0.5 * math.sqrt(2)),
    "arms": (ARMS, None),
    "few": (FEW, 0.5 * math.sqrt(2)),
}


@dataclass(frozen=True)
class Watched(bc.PricedQuery):
    """Keeps what it is told about the run, and what it says to that."""

    heard: list = field(default_factory=list, compare=False)
    said: list = field(default_factory=list, compare=False)

    def __call__(self, comparison, progress, generator):
        self.heard.append(progress)
        self.said.append(super().__call__(comparison, progress, generator))
        return self.said[-1]


def prior_of(space, lengthscale):
    """Covariance of the configurations of a finite space before anything is seen."""
    points = torch.stack([space.encode(c) for c in space.configurations()])
    if lengthscale is None:
        return torch.eye(len(points)).to(points)
    return dense_gp.matern(points, points, lengthscale)


def information_share(space, lengthscale):
    """Share that a query tells of what tells the configurations of a finite space apart."""
    return oracle.information_share(prior_of(space, lengthscale).tolist())


# -- what is played -------------------------------------------------------------------------------


def promises_of(belief, points, prior, now, effective_horizon, price, lookahead_weight):
    """Means and what a query at each point promises."""
    rows = torch.cat([points, torch.full((len(points), 1), float(now)).double()], -1)
    mean, cov = (x.tolist() for x in belief.mean_and_covariance(rows))
    promises = oracle.promises(mean, cov, belief.noise, effective_horizon)
    if not lookahead_weight or not belief.num_rows:
        return mean, promises
    terms = (belief.noise, math.sqrt(1 - FORGETTING), effective_horizon, price)
    return mean, [
        promise + lookahead_weight * oracle.lookahead(mean, cov, prior.tolist(), i, *terms)
        for i, promise in enumerate(promises)
    ]


@pytest.mark.parametrize(
    ("name", "price", "lookahead_weight"),
    [
        ("lattice", 0.005, 0.0),
        ("arms", 0.005, 0.0),
        ("arms", 0.005, 0.5),
        ("arms", 0.02, 1.0),
        ("few", 0.02, 0.3),
        cases.slow(("few", 0.005, 0.6)),
    ],
)
def test_on_a_finite_space_every_decision_is_the_oracles(name, price, lookahead_weight):
    space, lengthscale = FINITE[name]
    query = Watched(price=price, supersession=0.4, lookahead_weight=lookahead_weight)
    tuner, share = (
        priced(space, query=query, initial_rounds=0),
        information_share(space, lengthscale),
    )
    configs = [dict(c) for c in space.configurations()]
    points, prior = torch.stack([space.encode(c) for c in configs]), prior_of(space, lengthscale)
    queries = []
    for now in range(40):
        belief, scale = tuner.belief.in_prior_units(), tuner.belief.scale
        live = oracle.effective_queries(queries, now, FORGETTING)
        effective_horizon = oracle.effective_horizon(
            60 - now - 1, FORGETTING, live, share, supersession=0.4
        )
        terms = (effective_horizon, price / scale, lookahead_weight)
        mean, promises = promises_of(belief, points, prior, now, *terms)
        decision = tuner.ask()
        earns = max(promises) - max(mean)
        assert decision.query == (not queries or earns > price / scale)
        if queries:  # before that anything may be played
            assert float(query.said[-1].value) == pytest.approx(scale * earns, abs=1e-9)
            assert float(query.said[-1].price) == pytest.approx(price)
        played = configs.index(dict(decision.config))
        if decision.query:
            if queries:
                assert promises[played] == pytest.approx(max(promises), abs=1e-9)
            tuner.tell(decision, reward_of(decision.config, now))
            queries.append(now)
        else:
            assert mean[played] == pytest.approx(max(mean), abs=1e-12)
        assert ("nothing is known yet" in decision.reason) == (now == 0)
    assert 5 < len(queries) < 35


@pytest.mark.parametrize("name", cases.quick(["cube", "mixed"], "mixed"))
def test_on_a_cube_nothing_sampled_promises_more(name, monkeypatch):
    space, weighed = SPACES[name], []

    def watched(belief, picks, lines, now, outlook):
        terms = torch.cat([lines, picks]), now, outlook.effective_horizon, belief.noise
        weighed.append(TimeVaryingKG(belief, *terms))
        return best_among(belief, picks, lines, now, outlook)

    best_among = priced_play.best_among
    monkeypatch.setattr(priced_play, "best_among", watched)
    query = bc.PricedQuery(price=0.01, supersession=0.4, lookahead_weight=0.0)
    tuner, queries = priced(space, query=query, forgetting=0.2, initial_rounds=4), []
    play(tuner, 4)
    everywhere = space.round(space.sample(1000, torch.Generator().manual_seed(0)))
    for now in range(4, 16):
        belief = tuner.belief.in_prior_units()
        decision = tuner.ask()
        space.check(decision.config)
        value = weighed[-1] if decision.query else TimeVaryingUCB(belief, 0.0, now)
        with torch.no_grad():
            values = value(torch.cat([space.encode(decision.config)[None], everywhere])[:, None])
        # A few steps from the best starts are not quite the maximum.
        assert values[0] >= values.max() - 0.05 * values.std()
        queries.append(decision.query)
        if decision.query:
            tuner.tell(decision, reward_of(decision.config, now))
    assert len(weighed) == 12
    assert 2 <= sum(queries) <= 10


def test_it_chooses_what_to_play_whatever_the_other_options_say():
    runs = [play(priced(ARMS, unqueried_play=play_), 30) for play_ in ("acquisition", "mean")]
    assert runs[0] == runs[1]


def test_nothing_promises_a_higher_mean_than_the_best_play():
    """Where a query costs next to nothing, a rounding error must not be what it earns."""
    leads = []

    class Comparing(bc.PricedQuery):
        def __call__(self, comparison, progress, generator):
            leads.append(float(comparison.prospect.mean - comparison.mean))
            return super().__call__(comparison, progress, generator)

    play(priced(ARMS, query=Comparing(price=0.0), initial_rounds=0), 40)
    assert max(leads) <= 0


def test_an_infinite_price_queries_once():
    tuner = priced(LATTICE, math.inf, initial_rounds=0)
    assert [d.query for d in play(tuner, 20)] == [True] + [False] * 19
    assert len({d.config for d in tuner.decisions[1:]}) == 1  # the best by one reward


def test_an_unqueried_round_has_nothing_to_explore_for():
    start = {"depth": 2, "width": 3}
    options = {"start": start, "initial_rounds": 1, "rewards": bc.RewardScale(0.0, 1.0)}
    cautious = priced(LATTICE, math.inf, beta=9.0, **options)
    daring = make(LATTICE, query=bc.BernoulliQuery(0.0), beta=9.0, **options)
    for tuner in (cautious, daring):
        tuner.tell(tuner.ask(), 1.0)
    assert [dict(cautious.ask().config) for _ in range(5)] == [start] * 5
    assert dict(daring.ask().config) != start


def test_a_round_that_the_limit_keeps_from_a_query_plays_the_best():
    start = {"arm": "middle"}
    options = {"start": start, "initial_rounds": 1, "rewards": bc.RewardScale(0.0, 1.0)}
    free, limited = (priced(ARMS, 0.0, max_queries=n, **options) for n in (None, 1))
    explored = play(free, 2, lambda config, round: 1.0)[1]
    unqueried = play(limited, 2, lambda config, round: 1.0)[1]
    assert explored.query
    assert explored.config != start
    assert (unqueried.query, dict(unqueried.config)) == (False, start)
    assert unqueried.reason == "the budget of 1 queries is spent"


# -- what the rule hears --------------------------------------------------------------------------


@pytest.mark.parametrize("maximize", [True, False])
def test_the_rule_hears_how_far_the_run_has_come(maximize):
    query = Watched(price_seconds=3.0, round_seconds=60.0)
    tuner = priced(LATTICE, query=query, initial_rounds=0, maximize=maximize)
    play(tuner, 15)
    seen, share = tuner.observations, information_share(*FINITE["lattice"])
    for now, heard in enumerate(query.heard):
        past = [o for o in seen if o.round < now]
        weights = [(1 - FORGETTING) ** (now - o.round) for o in past]
        assert (heard.round, heard.queries, heard.horizon) == (now + 1, len(past), 60)
        assert heard.forgetting == FORGETTING
        assert heard.effective_queries == pytest.approx(sum(weights))
        assert heard.information_share == pytest.approx(share)
        if past:
            earned = sum(w * o.reward for w, o in zip(weights, past, strict=True)) / sum(weights)
            assert heard.reward_rate == pytest.approx(earned if maximize else -earned)
    assert query.heard[0].reward_rate is None
    tuner.ask()
    assert query.heard[-1].scale == tuner.belief.scale != 1


def test_the_rule_hears_what_queries_were_worth_lately(monkeypatch):
    monkeypatch.setattr(decider, "RECENT", 12)
    query = Watched(budget=30)
    play(priced(ARMS, query=query, initial_rounds=3), 25)
    query_values = [
        float(verdict.value / then.scale / query.effective_horizon(then))
        for verdict, then in zip(query.said, query.heard, strict=True)
    ]
    for asked, heard in enumerate(query.heard):
        known = [w for w in heard.query_values.tolist() if not math.isnan(w)]
        assert sorted(known) == pytest.approx(sorted(query_values[:asked][-12:]))
    assert len(set(query_values)) > 12


def test_the_rule_hears_what_was_learnt():
    query = Watched(price=0.0)
    options = {"refit_every": 10, "refit_seconds": 60.0, "learn_forgetting": True}
    tuner = priced(LATTICE, query=query, initial_rounds=0, **options)
    play(tuner, 25, lambda config, round: reward_of(config, round) + round % 3)
    heard = query.heard[-1]
    assert heard.forgetting == tuner.belief.forgetting != FORGETTING
    points = torch.stack([LATTICE.encode(c) for c in LATTICE.configurations()])
    lengthscale = tuner.belief.kernel.lengthscale
    assert lengthscale.shape == (2,)
    share = oracle.information_share(dense_gp.matern(points, points, lengthscale).tolist())
    assert heard.information_share == pytest.approx(share)
    assert heard.information_share != pytest.approx(query.heard[0].information_share)


@pytest.mark.parametrize(("queries", "design"), cases.quick([(6, 1), (4, 0), (60, 4)], (6, 1)))
def test_an_initial_design_leaves_most_of_a_budget(queries, design):
    rule = bc.PricedQuery(budget=queries)
    tuner = bc.OnlineTuner.as_published(LATTICE, horizon=200, query=rule)
    play(tuner, 200)
    reasons = [d.reason for d in tuner.decisions]
    assert sum("initial design" in reason for reason in reasons) == design
    assert tuner.queries == queries


def test_an_initial_design_beyond_the_budget_is_refused():
    with pytest.raises(InvalidBudgetError, match="design rounds: Expected at most the budget, 6"):
        bc.OnlineTuner(
            ARMS, horizon=200, query=bc.PricedQuery(budget=6), design=bc.Design(rounds=7)
        )
