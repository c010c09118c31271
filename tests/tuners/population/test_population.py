"""Members of a population: whose weights, which configurations, which queries."""

import copy
import math

import pytest
import torch

import botorch_costly as bc
from botorch_costly import errors
from botorch_costly.acquisition import at_round
from botorch_costly.tuners.population.belief import PopulationBelief
from botorch_costly.tuners.population.selection import ranked, replacements
from botorch_costly.tuners.population.strategy import Lineage
from tests.cases import quick
from tests.oracles import population as oracle
from tests.tuners.online.states import same

SPACE = bc.SearchSpace({"x": bc.Real(0.0, 1.0), "y": bc.Real(0.0, 1.0)})
START = {"x": 0.9, "y": 0.9}


def tuner(horizon=12, **options):
    return bc.PopulationTuner(SPACE, horizon, **{"start": START, **options})


def rate(config, best=0.3):
    """By which the log of a loss falls in a round."""
    return 0.2 - 0.3 * ((config["x"] - best) ** 2 + (config["y"] - best) ** 2)


def played(tuner, rounds, rate=rate, noise=0.0):
    """Play rounds; return the log losses of all members, and what each round was."""
    logs = [0.0] * tuner.members
    generator = torch.Generator().manual_seed(0)
    for _ in range(rounds):
        asked = tuner.ask()
        logs = [logs[origin] for origin in asked.origins]
        logs = [log - rate(config) for log, config in zip(logs, asked.configs, strict=True)]
        seen = [log + noise * torch.randn((), generator=generator).item() for log in logs]
        tuner.tell(
            asked, [math.exp(x) if q else None for x, q in zip(seen, asked.queries, strict=True)]
        )
    return logs


def test_a_population_finds_what_trains_fastest_and_its_leader_plays_it():
    for seed in range(3):
        one = tuner(24, seed=seed)
        logs = played(one, 24, noise=0.01)
        assert min(logs) < -3.6  # the start alone reaches 24 * 0.016 below 0, the best 4.8
        assert logs[one.best_member()] == pytest.approx(min(logs), abs=0.05)
        found = one.best()
        assert abs(found["x"] - 0.3) < 0.25
        assert abs(found["y"] - 0.3) < 0.25


def test_the_start_leads_as_long_as_nothing_is_better():
    one = tuner(10, start={"x": 0.3, "y": 0.3})
    played(one, 10)
    leaders = [dict(d.config) for d in one.decisions]
    assert leaders[:5] == [{"x": 0.3, "y": 0.3}] * 5
    # Then perhaps a neighbour that is as good.
    assert all(abs(c["x"] - 0.3) < 0.1 and abs(c["y"] - 0.3) < 0.1 for c in leaders)


def test_without_a_start_the_middle_begins():
    assert dict(bc.PopulationTuner(SPACE).ask().configs[0]) == {"x": 0.5, "y": 0.5}


def test_the_levels_of_rounds_do_not_count():
    """However much rounds give to all members, decisions stay; only rounding may differ."""
    ours, theirs = tuner(), tuner()
    played(ours, 8)
    season = iter(range(10**6))
    played(theirs, 8, rate=lambda c: rate(c) + 0.1 * (1 + next(season) // 4 % 3))
    for one, other in zip(ours.decisions, theirs.decisions, strict=True):
        assert one.origins == other.origins
        for a, b in zip(one.configs, other.configs, strict=True):
            assert torch.allclose(SPACE.encode(a), SPACE.encode(b), atol=0.02)


# -- the belief ------------------------------------------------------------------------------------


def taught(rounds=4, members=3, seed=3):
    belief = PopulationBelief(SPACE, seed=0)
    generator = torch.Generator().manual_seed(seed)
    for now in range(rounds):
        points = SPACE.sample(members, generator)
        belief.learn(now, points, (-(points - 0.4).square().sum(-1) + now).tolist())
    return belief, generator


@pytest.mark.parametrize("full", quick([False, True], True))
def test_choices_are_those_of_the_paper(full):
    """A model at its largest number of rows drops none for what other members play."""
    belief, generator = taught()
    if full:
        belief.model.maximum_rows = belief.model.num_rows
    model, grid = belief.model, SPACE.sample(100, generator)
    pending = SPACE.sample(2, generator)
    rows = zip(model.inputs, model.targets.tolist(), strict=True)
    observations = [(row[:-1], float(row[-1]), target) for row, target in rows]
    lengthscale, noise = float(model.kernel.lengthscale), model.noise
    said = (observations, list(pending), grid, 4, lengthscale, noise, model.forgetting)
    bound = oracle.bound(*said, beta=1.0)
    point = belief.choose(4, pending)
    here = oracle.bound(*said[:2], point.unsqueeze(0), *said[3:], beta=1.0)
    assert float(here) >= float(bound.max()) - 1e-6
    assert belief.model.num_rows == len(observations)


def test_several_choices_keep_away_from_each_other():
    belief, playing = PopulationBelief(SPACE), torch.full((1, 2), 0.5, dtype=torch.float64)
    for _ in range(3):
        playing = torch.cat([playing, belief.choose(4, playing).unsqueeze(0)])
    assert torch.pdist(playing).min() > 0.4


@pytest.mark.parametrize("seed", range(6))
def test_the_incumbent_is_surely_better_than_the_start(seed):
    belief, generator = taught(seed=seed)
    model, start = belief.model, SPACE.sample(1, generator)[0]
    rows = zip(model.inputs, model.targets.tolist(), strict=True)
    observations = [(row[:-1], float(row[-1]), target) for row, target in rows]
    hyperparameters = float(model.kernel.lengthscale), model.noise, model.forgetting
    points = [point for point, _, _ in observations]
    expected = oracle.incumbent(observations, points, start, 4, *hyperparameters)
    found = belief.incumbent(4, start)
    assert torch.equal(found, start if expected is None else expected)


def test_rewards_are_gains_over_what_the_round_gave_to_all():
    belief, generator = taught()
    points = SPACE.sample(3, generator)
    mean, _ = belief.model.mean_and_variance(at_round(points, torch.tensor(4.0)))
    belief.learn(4, points, [5.0, 5.5, 7.0])
    expected = oracle.rewards_of_round([5.0, 5.5, 7.0], mean.tolist())
    assert belief.model.rewards[-3:].tolist() == pytest.approx(expected)


def test_one_member_alone_teaches_nothing():
    belief, generator = taught()
    before = copy.deepcopy(belief.state_dict())
    belief.learn(4, SPACE.sample(1, generator), [3.0])
    assert same(belief.state_dict(), before)


@pytest.mark.parametrize("seed", range(5))
def test_gains_are_those_of_the_weights_that_a_member_went_on_from(seed):
    generator = torch.Generator().manual_seed(seed)
    one = tuner(10, query=bc.BernoulliQuery(0.6), seed=seed)
    for _ in range(10):
        asked = one.ask()
        losses = torch.rand(4, generator=generator).tolist()
        one.tell(asked, [x + 0.1 if q else None for x, q in zip(losses, asked.queries)])  # noqa: B905
    rounds = [
        (d.configs, d.origins, [None if m is None else -math.log(m) for m in o.metrics])
        for d, o in zip(one.decisions, one.observations, strict=True)
    ]
    lineage = Lineage(one._ledger, lambda loss: -math.log(loss), lambda *_: 0.0)
    readings = [lineage.reading(t, m) for t in range(10) for m in range(4)]
    gains = [None if reading is None else reading[0] for reading in readings]
    assert gains == [oracle.gain(rounds, t, m) for t in range(10) for m in range(4)]
    assert sum(gain is None for gain in gains) < 36
    assert any(None in one.metrics for one in one.observations)


# -- selection -------------------------------------------------------------------------------------


def test_the_worst_quarter_goes_on_from_the_best():
    levels = dict(enumerate([0.1, 0.9, 0.3, 0.8, 0.5, 0.2, 0.7, 0.6]))
    assert ranked(levels) == [1, 3, 6, 7, 4, 2, 5, 0]
    assert replacements(levels) == {0: 1, 5: 3}
    assert replacements({0: 1.0, 1: 2.0}) == {0: 1}
    assert replacements({0: 1.0}) == {}
    assert replacements({}) == {}


def test_members_that_failed_go_on_from_living_ones():
    nan = math.nan
    assert replacements({0: nan, 1: nan, 2: 1.0, 3: nan}) == {0: 2, 1: 2, 3: 2}
    assert replacements(dict.fromkeys(range(4), nan)) == {}
    one = tuner()
    one.tell(one.ask(), [math.nan, 0.5, math.inf, 0.4])
    after = one.ask()
    assert after.origins == (3, 3, 3, 3)
    assert after.configs[3] in one.decisions[0].configs
    assert one.observations[0].reward == 0.4


def test_what_diverges_is_not_tried_again_beside_what_does_not():
    one = tuner(20)

    def ruined(config):
        return -math.inf if config["x"] > 0.6 else rate(config)

    logs = [0.0] * 4
    for _ in range(20):
        asked = one.ask()
        logs = [logs[o] - ruined(c) for o, c in zip(asked.origins, asked.configs, strict=True)]
        one.tell(asked, [math.exp(log) for log in logs])
    late = [c["x"] > 0.6 for d in one.decisions[10:] for c in d.configs]
    assert sum(late) <= 2
    assert min(logs) < -2


def test_when_every_member_failed_all_play_the_start():
    one = tuner()
    told = one.tell(one.ask(), [math.nan] * 4)
    assert told.failed
    assert one.best_member() is None
    after = one.ask()
    assert after.origins == (0, 1, 2, 3)
    assert [dict(c) for c in after.configs] == [START] * 4
    assert "every member has failed" in after.reason
    one.tell(after, [1.0, 0.9, 0.8, 0.7])
    assert one.best_member() == 3


def test_a_population_of_two_works():
    assert min(played(tuner(20, members=2), 20)) < -2.0


# -- queries ---------------------------------------------------------------------------------------


class Rounds(list):
    queries = 0


def test_members_that_play_one_configuration_are_no_rivals():
    queries = tuner(30, query=bc.ConfidenceQuery(0.9))._strategy._queries
    points = torch.full((4, 2), 0.5, dtype=torch.float64)
    assert queries(Rounds(range(5)), list(points)) == [False] * 4
    points[3] = 0.9  # an unknown configuration may be better
    assert queries(Rounds(range(5)), list(points)) == [True] * 4
    assert queries(Rounds(range(29)), list(points)) == [True] * 4  # the last round


def test_a_rule_queries_some_members_and_all_in_the_last_round():
    one = tuner(16, query=bc.ConfidenceQuery(0.6))
    played(one, 16)
    asked = [sum(d.queries) for d in one.decisions]
    assert asked[0] == asked[-1] == 4
    assert 4 < sum(asked) < 64
    for before, after in zip(one.decisions[:-1], one.decisions[1:], strict=True):
        for member, queried in enumerate(before.queries):
            if not queried:  # it goes on with what it had
                assert after.origins[member] == member
                assert after.configs[member] == before.configs[member]


def test_rules_that_weigh_or_have_a_budget_are_refused():
    for rule in (bc.PricedQuery(price=0.1), bc.PricedQuery(budget=5)):
        with pytest.raises(errors.InvalidArgumentError, match="query: Expected a rule that comp"):
            tuner(query=rule)


def test_a_round_that_was_not_told_goes_on_as_it_was():
    one = tuner()
    first, second = one.ask(), one.ask()
    assert second.configs == first.configs
    assert second.origins == (0, 1, 2, 3)


# -- bad input -------------------------------------------------------------------------------------


def test_metrics_are_those_of_all_members():
    one = tuner()
    with pytest.raises(errors.InvalidShapeError, match="None for each member without a query"):
        one.tell(one.ask(), [0.5])  # of the queried member alone


@pytest.mark.parametrize(
    ("metrics", "error"),
    [
        ([1.0, 2.0], errors.InvalidShapeError),
        ("abcd", errors.InvalidShapeError),
        (1.0, errors.InvalidShapeError),
        ([1.0, 2.0, 3.0, "much"], errors.InvalidArgumentError),
        ([1.0, 2.0, 3.0, -1.0], errors.InvalidArgumentError),
    ],
)
def test_bad_metrics_are_refused_and_change_nothing(metrics, error):
    one = tuner()
    asked = one.ask()
    before = copy.deepcopy(one.state_dict())
    with pytest.raises(error, match=r"Expected .*; Received "):
        one.tell(asked, metrics)
    assert same(one.state_dict(), before)
    one.tell(asked, [1.0] * 4)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"members": 1}, errors.InvalidArgumentError),
        ({"horizon": 0}, errors.InvalidArgumentError),
        ({"metric": "error"}, errors.InvalidArgumentError),
        ({"query": 0.9}, errors.InvalidArgumentError),
        ({"start": {"x": 2.0, "y": 0.1}}, errors.InvalidConfigError),
    ],
)
def test_bad_options_are_refused(options, error):
    with pytest.raises(error, match=r"Expected .*; Received "):
        tuner(**options)


def test_bad_spaces_and_records_are_refused():
    with pytest.raises(errors.InvalidSpaceError):
        bc.PopulationTuner(bc.SearchSpace({"lr": bc.Scheduled(1e-3, 1e-1)}))
    with pytest.raises(errors.InvalidArgumentError, match="one of each for every member"):
        bc.PopulationDecision(0, START, query=True, reason="", configs=(START,), origins=(0, 1))
    with pytest.raises(errors.InvalidArgumentError, match="members below 1"):
        bc.PopulationDecision(
            0, START, query=True, reason="", configs=(START,), origins=(1,), queries=(True,)
        )
    for kind in (bc.PopulationDecision, bc.PopulationObservation):
        with pytest.raises(errors.StateMismatchError):
            kind.from_dict({"round": 0})


def test_another_decision_of_that_round_is_unknown():
    one, other = tuner(), tuner(seed=1)
    one.ask()
    with pytest.raises(errors.UnknownDecisionError):
        one.tell(other.ask(), [1.0] * 4)


def test_accuracies_are_to_be_large():
    one = tuner(metric="accuracy")
    told = one.tell(one.ask(), [0.5, 0.9, 0.7, 0.6])
    assert told.reward == 0.9
    assert one.best_member() == 1
    assert one.ask().origins == (1, 1, 2, 3)


def test_a_loss_of_0_is_the_best_and_no_failure():
    """The kind: a legal extreme of a metric is taken for a failure."""
    space = bc.SearchSpace({"lr": bc.Real(1e-4, 1e-1, log=True)})
    tuner = bc.PopulationTuner(space, horizon=4, members=4)
    tuner.tell(tuner.ask(), [0.5, 0.4, 0.3, 0.2])
    tuner.tell(tuner.ask(), [0.5, 0.4, 0.0, 0.3])
    assert tuner.best_member() == 2
    assert 2 in tuner.ask().origins
    alone = bc.PopulationTuner(space, horizon=3, members=2)
    alone.tell(alone.ask(), [0.0, 0.0])
    assert "failed" not in alone.ask().reason
    assert alone.best_member() is not None
    first = bc.PopulationTuner(space, horizon=3, members=2)
    first.tell(first.ask(), [0.3, 0.0])
    assert first.best_member() == 1


def test_a_loss_of_0_counts_as_the_smallest_so_far_in_gains():
    """A smaller stand-in would make each loss above 0 after it a divergence."""
    zero, least = tuner(members=2), tuner(members=2)
    for metrics in ([0.4, 0.2], [0.4, 0.0], [0.3, 0.2], [5e-324, 0.3], [0.2, 0.0]):
        zero.tell(zero.ask(), metrics)
        smallest = 5e-324 if metrics[0] == 0.2 else 0.2
        least.tell(least.ask(), [metric or smallest for metric in metrics])
        assert zero.decisions == least.decisions
    assert same(zero.state_dict()["belief"], least.state_dict()["belief"])


def test_before_a_loss_above_0_nothing_is_learnt():
    one = tuner(members=2)
    for metrics in ([0.0, 0.0], [0.0, math.nan]):
        one.tell(one.ask(), metrics)
    assert one.best_member() == 0
    with pytest.raises(errors.InvalidArgumentError, match="metric: Expected"):
        one.tell(one.ask(), [0.4, -0.1])
