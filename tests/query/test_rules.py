"""Every query rule against its one-trial twin, its quotas, and its corner cases."""

import math
import re
from statistics import NormalDist

import pytest
import torch

from botorch_costly.errors import InvalidArgumentError, InvalidBudgetError
from botorch_costly.query import (
    AlwaysQuery,
    BernoulliQuery,
    Cause,
    Comparison,
    ConfidenceBoundQuery,
    ConfidenceQuery,
    MixedQuery,
    Progress,
    Verdict,
    confidence,
    kappa_of_bounds,
)
from tests.oracles import query_rules as oracle
from tests.strategies import comparisons, duel

START = Progress(1)
QUERIES = {Cause.ALWAYS, Cause.CHANCE, Cause.UNSURE, Cause.DUE, Cause.OVERLAP}
QUERIES |= {Cause.FIRST, Cause.PAYS}


@pytest.fixture(params=[1, 4], ids=lambda m: f"rivals={m}")
def batch(request, generator):
    return comparisons((200,), request.param, generator)


def queries_of(rule, comparison, generator, progress=START):
    return rule(comparison, progress, generator).query.tolist()


# -- twins --------------------------------------------------------------------------------------


@pytest.mark.parametrize("joint", [False, True])
def test_confidence_is_its_twin(batch, joint):
    expected = [oracle.confidence(trial, joint) for trial in oracle.trials(batch)]
    assert confidence(batch, joint=joint).tolist() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kappa", [0.3, 0.7, 0.95])
@pytest.mark.parametrize("joint", [False, True])
def test_confidence_query_is_its_twin(batch, generator, kappa, joint):
    expected = [oracle.by_confidence(trial, kappa, joint) for trial in oracle.trials(batch)]
    assert len(set(expected)) == 2
    assert queries_of(ConfidenceQuery(kappa, joint=joint), batch, generator) == expected


def test_confidence_bound_query_is_its_twin(generator):
    batch = comparisons((200,), 4, generator, spread=4.0)
    expected = [oracle.by_bounds(trial) for trial in oracle.trials(batch)]
    assert 0 < sum(expected) < 200
    assert queries_of(ConfidenceBoundQuery(), batch, generator) == expected


@pytest.mark.parametrize(("lower", "upper"), [(0, 50), (10, 30), (20, 20), (0, 0), (50, 50)])
def test_mixed_query_is_algorithm_1(batch, lower, upper):
    horizon, kappa = 50, 0.7
    coins = torch.rand(2, 200, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    rule = MixedQuery(lower, upper, horizon, ConfidenceQuery(kappa))
    expected = [
        oracle.by_algorithm_1(trial, kappa, lower, upper, horizon, first, second)
        for trial, first, second in zip(oracle.trials(batch), *coins.tolist(), strict=True)
    ]
    assert queries_of(rule, batch, torch.Generator().manual_seed(5)) == expected


def test_the_joint_confidence_is_the_frequency_in_joint_samples(generator):
    size = 100_000
    root = torch.randn(6, 2, 2, generator=generator, dtype=torch.float64)
    mean = torch.randn(6, 2, generator=generator, dtype=torch.float64)
    cov = root @ root.mT
    noise = torch.randn(6, 2, size, generator=generator, dtype=torch.float64)
    samples = mean.unsqueeze(-1) + root @ noise
    frequency = (samples[:, 0] > samples[:, 1]).double().mean(-1)
    comparison = Comparison(
        mean[:, 0], cov[:, 0, 0], mean[:, 1:], cov[:, 1:, 1], cov[:, 0, 1:],
        torch.ones(6, 1, dtype=torch.bool), torch.ones(6, dtype=torch.float64),
    )  # fmt: skip
    sigma = (frequency * (1 - frequency) / size).sqrt() + 1 / size
    assert ((confidence(comparison, joint=True) - frequency).abs() < 4 * sigma).all()
    assert ((confidence(comparison) - frequency).abs() > 4 * sigma).any()


def test_a_tie_with_the_threshold_does_not_query(generator):
    even = duel(1.0, 1.0, 1.0, 1.0)
    assert not ConfidenceQuery(0.5)(even, START, generator).query
    touching = duel(2.0, 1.0, 0.0, 1.0, beta=1.0)  # lcb = ucb = 1
    assert not ConfidenceBoundQuery()(touching, START, generator).query


# -- corner cases -------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [ConfidenceQuery(0.99), ConfidenceBoundQuery()])
@pytest.mark.parametrize("rivals", [0, 3])
def test_the_literal_rules_never_query_at_a_lone_optimum(rule, rivals, generator):
    # The paper's trap: the caller of these rules has to name a rival for a lone optimum.
    alone = comparisons((5,), rivals, generator)
    alone = alone._replace(exists=torch.zeros_like(alone.exists))
    verdict = rule(alone, START, generator)
    assert not verdict.query.any()
    assert (verdict.confidence == 1).all()
    skipped = Cause.APART if isinstance(rule, ConfidenceBoundQuery) else Cause.SURE
    assert (verdict.cause == skipped).all()


def test_an_absent_rival_may_hold_anything(generator):
    comparison = comparisons((50,), 3, generator, absent=0.5)
    garbage = torch.where(comparison.exists, comparison.rival_mean, torch.nan)
    spoiled = comparison._replace(
        rival_mean=garbage, rival_variance=comparison.rival_variance + (garbage - garbage)
    )
    for rule in (ConfidenceQuery(), ConfidenceQuery(joint=True), ConfidenceBoundQuery()):
        for ours, clean in zip(
            rule(spoiled, START, generator), rule(comparison, START, generator), strict=True
        ):
            torch.testing.assert_close(ours, clean)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("joint", [False, True])
def test_certain_values_are_compared_without_nan(dtype, joint, generator):
    zero = torch.zeros(3, 1, dtype=dtype)
    lead = torch.tensor([-1.0, 0.0, 1.0], dtype=dtype)
    there = torch.ones(3, 1, dtype=torch.bool)
    comparison = Comparison(lead, zero[:, 0], zero, zero, zero, there, torch.ones(3, dtype=dtype))
    assert confidence(comparison, joint=joint).tolist() == [0.0, 0.5, 1.0]
    assert queries_of(ConfidenceQuery(0.9, joint=joint), comparison, generator) == [
        True,
        True,
        False,
    ]
    assert queries_of(ConfidenceBoundQuery(), comparison, generator) == [True, False, False]


@pytest.mark.parametrize("rounding", [-4e-16, -1e-16, 0.0])
@pytest.mark.parametrize("lead", [-1e-10, 1e-10])
def test_rounding_errors_do_not_decide_between_twins(rounding, lead):
    # Two points as good as one: the variance of their difference is lost to rounding.
    twins = duel(lead, 1.0, 0.0, 1.0, covariance=1.0 - rounding / 2)
    assert confidence(twins, joint=True).item() == pytest.approx(0.5, abs=0.01)


def test_joint_needs_covariances(generator):
    with pytest.raises(InvalidArgumentError, match="rival_covariance: Expected a tensor"):
        ConfidenceQuery(joint=True)(duel(0.0, 1.0, 0.0, 1.0), START, generator)


def test_always_queries(generator):
    verdict = AlwaysQuery()(comparisons((4,), 0, generator), START, generator)
    assert verdict.query.all()
    assert verdict.confidence.isnan().all()


@pytest.mark.parametrize("rate", [0.0, 0.07, 0.5, 1.0])
def test_bernoulli_queries_at_its_rate(rate, generator):
    n = 20_000
    verdict = BernoulliQuery(rate)(comparisons((n,), 0, generator), START, generator)
    sigma = math.sqrt(rate * (1 - rate) / n)
    assert abs(verdict.query.double().mean().item() - rate) <= 4 * sigma
    assert verdict.confidence.isnan().all()


def test_only_rules_that_compare_ask_for_rivals():
    assert ConfidenceQuery().needs_rivals
    assert ConfidenceBoundQuery().needs_rivals
    assert not AlwaysQuery().needs_rivals
    assert not BernoulliQuery(0.1).needs_rivals
    assert MixedQuery(1, 2, 3).needs_rivals
    assert not MixedQuery(1, 2, 3, AlwaysQuery()).needs_rivals


# -- quotas -------------------------------------------------------------------------------------

HORIZON = 40


def campaign(rule, story, generator, trials=2000, rounds=HORIZON):
    """Return the queries of each trial; every verdict on the way has to give a fitting cause."""
    unsure, sure = duel(0.0, 1.0, 0.0, 1.0), duel(9.0, 1.0, 0.0, 1.0)
    queries = torch.zeros(trials, dtype=torch.long)
    for t in range(1, rounds + 1):
        one = {"unsure": unsure, "sure": sure, "both": (sure, unsure)[t % 2]}[story]
        everyone = [None if x is None else x.expand(trials, *x.shape) for x in one]
        verdict = rule(Comparison(*everyone), Progress(t, queries), generator)
        querying = torch.isin(verdict.cause, torch.tensor([int(c) for c in QUERIES]))
        assert torch.equal(verdict.query, querying)
        queries += verdict.query
    return queries


@pytest.mark.parametrize("story", ["unsure", "sure", "both"])
@pytest.mark.parametrize(("lower", "upper"), [(0, 12), (4, 12), (12, 12), (0, 40), (40, 40)])
def test_quotas_hold_in_expectation(story, lower, upper, generator):
    queries = campaign(MixedQuery(lower, upper, HORIZON), story, generator).double()
    coin, thinned = lower / HORIZON, (upper - lower) / HORIZON
    asked = {"unsure": 1.0, "sure": 0.0, "both": 0.5}[story] * HORIZON
    expected = HORIZON * coin + asked * (1 - coin) * thinned
    sigma = math.sqrt(HORIZON * 0.25 / len(queries))
    assert abs(queries.mean().item() - expected) <= 4 * sigma
    assert lower - 4 * sigma <= queries.mean().item() <= upper + 4 * sigma


@pytest.mark.parametrize("story", ["unsure", "sure", "both"])
@pytest.mark.parametrize(("lower", "upper"), [(0, 0), (0, 7), (5, 9), (9, 9), (3, 40), (40, 40)])
def test_hard_quotas_hold_in_every_run(story, lower, upper, generator):
    rule = MixedQuery(lower, upper, HORIZON, hard=True)
    queries = campaign(rule, story, generator, trials=300)
    assert queries.min() >= lower
    assert queries.max() <= upper
    if story == "unsure":
        assert (queries == upper).all()  # not thinned


def test_beyond_the_horizon_only_unmet_quotas_are_due(generator):
    rule = MixedQuery(1, 4, 10, ConfidenceQuery(), hard=True)
    sure = duel(9.0, 1.0, 0.0, 1.0)
    queries = torch.tensor([rule(sure, Progress(99, 2), generator).query for _ in range(300)])
    assert 0 < queries.sum() < 100  # the coin of rate 1/10 alone
    assert rule(sure, Progress(99, 0), generator).query
    assert not rule(sure, Progress(99, 4), generator).query


def test_each_hard_decision_gives_its_cause(generator):
    sure, unsure = duel(9.0, 1.0, 0.0, 1.0), duel(0.0, 1.0, 0.0, 1.0)
    rule = MixedQuery(0, 2, 10, hard=True)
    assert rule(unsure, Progress(1, 0), generator).cause == Cause.UNSURE
    assert rule(unsure, Progress(5, 2), generator).cause == Cause.SPENT
    assert rule(sure, Progress(5, 2), generator).cause == Cause.SURE
    due = MixedQuery(9, 10, 10, BernoulliQuery(0.0), hard=True)
    causes = {Cause(int(due(sure, Progress(10, 8), generator).cause)) for _ in range(50)}
    assert causes == {Cause.DUE, Cause.CHANCE}
    early = {Cause(int(due(sure, Progress(9, 8), generator).cause)) for _ in range(50)}
    assert early == {Cause.NO_CHANCE, Cause.CHANCE}  # one query is due, two rounds are left
    soft = MixedQuery(0, 1, 10**6)
    assert soft(unsure, START, generator).cause == Cause.NO_CHANCE


# -- words --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (Cause.ALWAYS, "^full feedback$"),
        (Cause.CHANCE, "^drawn for a query"),
        (Cause.NO_CHANCE, "^not drawn for a query"),
        (Cause.UNSURE, r"may be better \(confidence 0\.62\)"),
        (Cause.SURE, r"no rival is likely to be better \(confidence 0\.62\)"),
        (Cause.SPENT, "quota of queries is spent"),
        (Cause.DUE, "every round left is needed to spend the quota"),
        (Cause.OVERLAP, "^the confidence bounds of a rival overlap"),
        (Cause.APART, "^no rival's confidence bounds overlap"),
        (Cause.FIRST, "^nothing is known yet"),
        (Cause.PAYS, "^a query is worth its price"),
        (Cause.DOES_NOT_PAY, "^a query is not worth its price"),
    ],
)
def test_every_cause_has_words(cause, words):
    verdict = Verdict(torch.tensor(cause in QUERIES), torch.tensor(0.621), torch.tensor(int(cause)))
    assert re.search(words, AlwaysQuery().explain(verdict))


def test_every_cause_is_explained_above():
    assert len(Cause) == 12


# -- arguments ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kappa", [0, 1, -0.1, 1.5, float("nan"), "0.9", None, True])
def test_a_threshold_outside_its_range_is_named(kappa):
    with pytest.raises(
        InvalidArgumentError, match=r"kappa: Expected a number in \(0, 1\); Received"
    ):
        ConfidenceQuery(kappa)


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan"), "1", None])
def test_a_rate_outside_its_range_is_named(rate):
    with pytest.raises(
        InvalidArgumentError, match=r"rate: Expected a number in \[0, 1\]; Received"
    ):
        BernoulliQuery(rate)


@pytest.mark.parametrize("quotas", [(3, 2, 10), (1, 11, 10), (11, 12, 10)])
def test_quotas_out_of_order_are_named(quotas):
    expected = r"Expected 0 <= lower <= upper <= horizon; Received \(\d+, \d+, \d+\)"
    with pytest.raises(InvalidBudgetError, match=expected):
        MixedQuery(*quotas)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1, 2, 3), "lower: Expected an integer >= 0; Received -1"),
        ((1, 2.5, 3), "upper: Expected an integer >= 0; Received 2.5"),
        ((0, 0, 0), "horizon: Expected an integer >= 1; Received 0"),
        ((1, 2, 3, 0.9), "rule: Expected a QueryRule; Received 0.9"),
    ],
)
def test_other_bad_arguments_of_the_mixed_rule_are_named(arguments, message):
    with pytest.raises(InvalidArgumentError, match=message):
        MixedQuery(*arguments)


# -- the threshold that leaves no regret (appendix D) -------------------------------------------


@pytest.mark.parametrize("beta", [0.0, 0.1, 1.0, 4.0])
def test_kappa_of_bounds_is_its_formula(beta):
    phi = NormalDist().cdf
    assert kappa_of_bounds(beta) == pytest.approx(phi(math.sqrt(2 * beta)), abs=1e-14)
    printed = kappa_of_bounds(beta, as_printed=True)
    assert printed == pytest.approx(phi(math.sqrt(2) * beta), abs=1e-14)
    assert (printed == kappa_of_bounds(beta)) == (beta in (0.0, 1.0))


@pytest.mark.parametrize("kappa", [0.5, 0.8, 0.99])
def test_the_regret_left_is_bounded(kappa, generator):
    """Eq. (58)."""
    batch = comparisons((2000,), 2, generator, absent=0.0, spread=3.0)
    skipped = ~ConfidenceQuery(kappa)(batch, START, generator).query
    gap, _ = bounds_of(batch)
    assert skipped.sum() > 100
    assert (gap <= regret_left(batch, kappa) + 1e-12)[skipped].all()


def test_below_one_half_the_bound_does_not_hold(generator):
    # Step (55) divides a negative quantile among the two deviations the wrong way round.
    comparison = duel(-1.4, 1.0, 0.0, 0.0)
    with pytest.warns(UserWarning, match="hardly ever"):
        rule = ConfidenceQuery(0.05)
    assert not rule(comparison, START, generator).query
    assert bounds_of(comparison)[0].item() > regret_left(comparison, 0.05).item()


@pytest.mark.parametrize("beta", [0.05, 0.4, 1.0, 3.0])
def test_at_that_kappa_no_query_means_no_overlap(beta, generator):
    batch = comparisons((5000,), 2, generator, absent=0.2, spread=3.0)
    batch = batch._replace(beta=torch.full_like(batch.beta, beta))
    rule = ConfidenceQuery(kappa_of_bounds(beta))
    skipped = ~rule(batch, START, generator).query
    gap, _ = bounds_of(batch)
    assert skipped.sum() > 100
    assert (gap[skipped][batch.exists[skipped]] <= 1e-12).all()
    assert not (skipped & ConfidenceBoundQuery()(batch, START, generator).query).any()


def bounds_of(comparison):
    """Return ``ucb(x) - lcb(x_t)`` and ``s(x_t) + s(x)`` for each rival."""
    own, theirs = comparison.variance.sqrt().unsqueeze(-1), comparison.rival_variance.sqrt()
    lead = comparison.mean.unsqueeze(-1) - comparison.rival_mean
    return comparison.beta.sqrt().unsqueeze(-1) * (own + theirs) - lead, own + theirs


def regret_left(comparison, kappa):
    slack = comparison.beta.sqrt() - NormalDist().inv_cdf(kappa) / math.sqrt(2)
    return slack.unsqueeze(-1) * bounds_of(comparison)[1]


def test_the_printed_kappa_leaves_regret(generator):
    # beta = 1/4: skips at a lead of 0.6, yet the bounds overlap up to a lead of 1.
    comparison = duel(0.6, 1.0, 0.0, 1.0, beta=0.25)
    assert not ConfidenceQuery(kappa_of_bounds(0.25, as_printed=True))(
        comparison, START, generator
    ).query
    assert ConfidenceBoundQuery()(comparison, START, generator).query
    assert ConfidenceQuery(kappa_of_bounds(0.25))(comparison, START, generator).query


def test_beyond_double_precision_no_kappa_is_left():
    assert kappa_of_bounds(34.0) < 1
    assert kappa_of_bounds(44.0) == 1
    with pytest.raises(InvalidArgumentError, match="kappa"):
        ConfidenceQuery(kappa_of_bounds(44.0))


@pytest.mark.parametrize("beta", [-1.0, float("nan"), float("inf"), "1"])
def test_a_bad_beta_is_named(beta):
    with pytest.raises(InvalidArgumentError, match="beta: Expected a finite number >= 0"):
        kappa_of_bounds(beta)
