"""A search that begins where earlier studies ended, and is not harmed by them for long."""

import itertools
import logging
import math

import pytest
import torch

import botorch_costly as bc
from botorch_costly import errors
from botorch_costly.models.similarity import adapt_similarity, learn_similarity
from botorch_costly.plain import config_text
from tests.cases import quick

SPACE = bc.SearchSpace({"x": bc.Real(0.0, 1.0), "y": bc.Real(0.0, 1.0)})
ROBUST = {
    "evidence": bc.ByEvidence(),
    "gaps": bc.ByGaps(),
    "own units": bc.ByGaps(own_units=True),
    "largest": bc.ByGaps(largest=True),
    "draws": bc.ByGaps(thompson=True, paths=8),
}


@pytest.fixture(params=quick(ROBUST, "evidence", "gaps", "draws"))
def robust(request):
    return ROBUST[request.param]


def value(config, at=0.3):
    return 1 - (config["x"] - at) ** 2 - (config["y"] - 0.6) ** 2


def study(at=0.3, n=20, seed=0, sign=1.0):
    points = SPACE.sample(n, torch.Generator().manual_seed(seed))
    configs = [SPACE.decode(point) for point in points]
    return bc.Task(configs, [sign * value(config, at) for config in configs])


def played(evaluations, tasks, evaluate=value, **options):
    optimizer = bc.TransferOptimizer(SPACE, tasks, **options)
    for _ in range(evaluations):
        asked = optimizer.ask()
        optimizer.tell(asked, evaluate(asked.config))
    return optimizer


def best(optimizer):
    return max(one.reward for one in optimizer.observations)


def test_similar_tasks_lead_to_the_optimum_at_once(robust):
    tasks = [study(0.3 + away, seed=k) for k, away in enumerate((-0.05, 0.0, 0.05))]
    assert best(played(4, tasks, robust=robust)) > 0.97


def test_misleading_tasks_lose_their_share_or_are_turned_round_and_the_optimum_is_found(robust):
    tasks = [study(seed=k, sign=-1.0) for k in range(3)]
    optimizer = played(18, tasks, robust=robust)
    if isinstance(robust, bc.ByEvidence):  # tasks that all say the opposite foretell much
        assert sum(optimizer.weights) < 0
    else:
        assert optimizer.share < 0.2
    assert best(optimizer) > 0.8  # the worst of all is .15, which is where they lead


def test_nothing_is_asked_for_again_and_again_where_it_is_no_better():
    optimizer = played(20, [study(seed=k, sign=-1.0) for k in range(3)])
    assert best(optimizer) > 0.97
    assert sum(one.reward < 0.2 for one in optimizer.observations) <= 8


@pytest.mark.parametrize("places", [(0.0,), pytest.param((0.9, 0.2), marks=pytest.mark.slow)])
def test_where_nothing_is_believed_better_a_search_looks_where_least_is_known(places):
    """The kind of fault: one acquisition after another has its largest value beside what was told."""
    tasks = [study(at, seed=seed) for seed, at in enumerate(places, 1)]
    optimizer = bc.TransferOptimizer(SPACE, tasks)
    for _ in range(16):
        asked = optimizer.ask()
        away = math.hypot(*asked.config.values())
        optimizer.tell(asked, 1.0 - away + 2.0 * (away > 1.1))  # a lesser hill at the origin
    assert best_told(optimizer) > 1.2


@pytest.mark.parametrize("robust", [ROBUST["evidence"], ROBUST["gaps"]])
def test_evaluations_under_way_are_apart(robust):
    optimizer = bc.TransferOptimizer(SPACE, [study(), study(0.8, seed=1)], robust=robust)
    points = torch.stack([SPACE.encode(optimizer.ask().config) for _ in range(6)])
    assert torch.pdist(points).min() > 0.04


FLAT = {
    "one row": bc.Task([{"x": 0.3, "y": 0.5}], [1.0]),
    "equal values": bc.Task([{"x": k / 5, "y": k / 5} for k in range(6)], [1.0] * 6),
}


@pytest.mark.parametrize("case", FLAT)
def test_a_study_that_says_nothing_does_not_lead_along_the_edges(case):
    optimizer = played(10, [FLAT[case]])
    points = torch.stack([SPACE.encode(one.config) for one in optimizer.observations])
    near = torch.cdist(points, points) < 0.01
    assert int(near.sum(-1).max()) <= 3  # itself, and two that refine


def test_the_similarity_is_adapted_to_the_values_told():
    tasks = [study(0.3 + away, seed=k) for k, away in enumerate((-0.02, 0.0, 0.02))]
    optimizer = played(6, tasks)
    sharing = optimizer._strategy.weighting
    told = sharing.learn(optimizer._strategy._data(optimizer._seen)).data
    points, values = told.points, told.values.unsqueeze(-1)
    expected = adapt_similarity(learn_similarity(optimizer.tasks), optimizer.tasks, points, values)
    for ours, theirs in zip(sharing._adapted, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0.1, atol=1e-3)
        # A search ends when a step is short, so that it depends on its start.


def test_tasks_that_foretell_the_values_keep_their_share_by_evidence():
    tasks = [study(0.3 + away, seed=k) for k, away in enumerate((-0.02, 0.0, 0.02))]
    optimizer = played(6, tasks)
    assert optimizer.share > 0.5 * bc.ByEvidence().decay ** 6


def test_the_share_never_grows(robust):
    optimizer = bc.TransferOptimizer(SPACE, [study(), study(0.8, seed=1)], robust=robust)
    shares = []
    for _ in range(8):
        asked = optimizer.ask()
        shares.append(optimizer.share)
        optimizer.tell(asked, value(asked.config))
    assert shares[0] == 1.0
    assert shares == sorted(shares, reverse=True)


@pytest.mark.parametrize("name", ["gaps", "evidence"])
def test_the_similar_task_has_the_larger_weight_and_the_smaller_gap(name):
    # Of two tasks one is the other turned round.
    tasks = [study(seed=1), study(seed=2, sign=-1.0)]
    optimizer = played(10, tasks, robust=ROBUST[name])
    assert optimizer.weights[0] > optimizer.weights[1]
    assert optimizer.gaps[0] < optimizer.gaps[1]


def test_losses_are_minimized():
    configs = [{"x": k / 9, "y": 0.6} for k in range(10)]
    task = bc.Task(configs, [-value(config) for config in configs])
    optimizer = bc.TransferOptimizer(SPACE, [task], maximize=False)
    for _ in range(6):
        asked = optimizer.ask()
        optimizer.tell(asked, -value(asked.config))
    assert -min(one.reward for one in optimizer.observations) > 0.97
    assert value(optimizer.best()) == pytest.approx(best_of(optimizer))


def best_told(optimizer):
    return max(one.reward for one in optimizer.observations)


def best_of(optimizer):
    return max(value(one.config) for one in optimizer.observations)


def test_candidates_are_asked_once_each_and_then_no_more(robust):
    configs = [{"x": x / 2, "y": y / 2} for x in range(3) for y in range(2)]
    optimizer = bc.TransferOptimizer(SPACE, [study()], candidates=configs, robust=robust)
    asked = []
    for number in range(6):
        decision = optimizer.ask()
        asked.append(dict(decision.config))
        if number % 2:  # some are still under way
            optimizer.tell(decision, value(decision.config))
    assert sorted(asked, key=str) == sorted(configs, key=str)
    with pytest.raises(errors.HorizonExceededError, match="6"):
        optimizer.ask()


def test_evaluations_under_way_are_not_asked_for_again(robust):
    optimizer = played(2, [study()], robust=robust)
    batch = [optimizer.ask() for _ in range(4)]
    assert len({tuple(decision.config.values()) for decision in batch}) == 4
    for decision in reversed(batch):
        optimizer.tell(decision, value(decision.config))
    assert len(optimizer.observations) == 6


@pytest.mark.parametrize("bad", quick([math.nan, math.inf, -math.inf], math.nan, -math.inf))
def test_a_failure_counts_as_the_worst_and_is_told(bad, robust, caplog):
    optimizer = bc.TransferOptimizer(SPACE, [study()], robust=robust)
    with caplog.at_level(logging.WARNING):
        optimizer.tell(optimizer.ask(), bad)
    assert "failed" in caplog.text
    assert optimizer.best() is None
    for number in range(6):
        asked = optimizer.ask()
        optimizer.tell(asked, bad if number == 2 else value(asked.config))
    assert best_of(optimizer) > 0.9
    assert optimizer.failed_queries == 2


@pytest.mark.parametrize("candidates", [None, [{"x": k / 4, "y": 0.5} for k in range(5)]])
def test_a_configuration_that_fails_first_is_not_asked_for_again(robust, candidates):
    optimizer = bc.TransferOptimizer(SPACE, [study()], candidates=candidates, robust=robust)
    for _ in range(3):
        optimizer.tell(optimizer.ask(), math.nan)
    configs = [tuple(decision.config.values()) for decision in optimizer.decisions]
    assert min(math.dist(*pair) for pair in itertools.combinations(configs, 2)) > 9e-4


def test_a_warm_start_is_the_portfolio_and_then_the_search_goes_on(robust):
    configs = [{"x": x / 10, "y": 0.5} for x in range(11)]
    tasks = [
        bc.Task(configs, [math.exp(-(((x / 10 - best) / 0.2) ** 2)) for x in range(11)])
        for best in (0.2, 0.8)
    ]
    optimizer = bc.TransferOptimizer(SPACE, tasks, candidates=configs, robust=robust, warm_start=2)
    first = [optimizer.ask() for _ in range(2)]
    assert {decision.config["x"] for decision in first} == {0.2, 0.8}  # best of a task each
    assert all("portfolio" in decision.reason for decision in first)
    for decision in first:
        optimizer.tell(decision, 1.0 - decision.config["x"])
    assert "portfolio" not in optimizer.ask().reason


@pytest.mark.parametrize("taken_back", quick([[0], [2], [0, 1], [0, 2]], [0, 2]))
def test_what_is_taken_back_in_a_warm_start_is_asked_for_again(taken_back):
    tasks = [study(0.2), study(0.5, seed=1), study(0.9, seed=2)]
    optimizer = bc.TransferOptimizer(SPACE, tasks, warm_start=4)
    portfolio = [dict(optimizer.ask().config) for _ in range(4)]
    optimizer = bc.TransferOptimizer(SPACE, tasks, warm_start=4)
    asked = [optimizer.ask() for _ in range(3)]
    for number in taken_back:
        optimizer.cancel(asked[number])
    for number in {0, 1, 2} - set(taken_back):
        optimizer.tell(asked[number], value(asked[number].config))
    for _ in range(1 + len(taken_back)):
        optimizer.tell(decision := optimizer.ask(), value(decision.config))
        assert "portfolio" in decision.reason
    ran = [dict(one.config) for one in optimizer.observations]
    assert sorted(map(str, ran)) == sorted(map(str, portfolio))
    assert "portfolio" not in optimizer.ask().reason


def test_what_runs_otherwise_in_a_warm_start_is_not_asked_for_again():
    tasks = [study(0.2), study(0.5, seed=1), study(0.9, seed=2)]
    optimizer = bc.TransferOptimizer(SPACE, tasks, warm_start=3)
    portfolio = [dict(optimizer.ask().config) for _ in range(3)]
    optimizer = bc.TransferOptimizer(SPACE, tasks, warm_start=3)
    asked = []
    for _ in range(3):
        decision = optimizer.ask()
        asked.append(dict(decision.config))
        optimizer.cancel(decision)
        optimizer.enqueue({"x": 0.001 * len(asked), "y": 1.0})
    assert asked == portfolio
    assert "portfolio" not in optimizer.ask().reason


@pytest.mark.parametrize("wrong", [-1, 1.5, "three"])
def test_a_warm_start_is_a_count(wrong):
    with pytest.raises(errors.InvalidArgumentError, match="warm_start"):
        bc.TransferOptimizer(SPACE, [study()], warm_start=wrong)


@pytest.mark.parametrize("huge", quick([1e12, -1e12, 1.7e308, -1.7e308], -1.7e308))
def test_a_huge_value_is_no_failure(huge, robust):
    optimizer = played(3, [study()], robust=robust)
    optimizer.tell(optimizer.ask(), huge)
    goes_on(optimizer)


def goes_on(optimizer):
    for _ in range(3):
        asked = optimizer.ask()
        assert all(math.isfinite(number) for number in asked.config.values())
        optimizer.tell(asked, value(asked.config))
    assert all(math.isfinite(number) for number in (optimizer.share, *optimizer.weights))


@pytest.mark.parametrize("size", quick([1e300, 1e-300, -1e300], -1e300))
def test_studies_of_huge_and_tiny_values_are_no_failure(size, robust):
    tasks = [study(seed=seed) for seed in range(2)]
    scaled = [bc.Task(one.configs, [size * value for value in one.values]) for one in tasks]
    optimizer = bc.TransferOptimizer(SPACE, scaled, robust=robust)
    goes_on(optimizer)
    optimizer.tell(optimizer.ask(), size)
    goes_on(optimizer)


def test_constant_values_are_no_failure(robust):
    flat = bc.Task([{"x": k / 5, "y": 0.5} for k in range(6)], [1.0] * 6)
    optimizer = bc.TransferOptimizer(SPACE, [flat, study()], robust=robust)
    for _ in range(6):
        optimizer.tell(optimizer.ask(), 1.0)
    assert len({tuple(d.config.values()) for d in optimizer.decisions}) == 6


def test_one_task_with_one_observation_is_enough(robust):
    task = bc.Task([{"x": 0.3, "y": 0.6}], [1.0])
    optimizer = played(5, [task], robust=robust)
    assert len({tuple(one.config.values()) for one in optimizer.decisions}) == 5
    assert math.isfinite(optimizer.share)


def test_a_task_that_comes_twice_counts_as_it_is(robust):
    assert best(played(4, [study(), study(), study()], robust=robust)) > 0.97


def test_parameters_that_a_study_lacks_are_filled_in():
    task = bc.Task(
        [{"x": k / 9, "seed": 3} for k in range(10)], [-abs(k / 9 - 0.3) for k in range(10)]
    )
    optimizer = bc.TransferOptimizer(SPACE, [task], fill={"y": 0.6})
    first = optimizer.ask().config
    assert first["x"] == pytest.approx(0.3, abs=0.15)


def test_another_study_is_another_state():
    optimizer = played(3, [study()])
    other = bc.TransferOptimizer(SPACE, [study(seed=7)])
    with pytest.raises(errors.StateMismatchError, match="tasks"):
        other.load_state_dict(optimizer.state_dict())


def test_the_share_goes_on_after_a_state(robust):
    optimizer = played(5, [study(), study(0.8, seed=1)], robust=robust)
    again = bc.TransferOptimizer(SPACE, [study(), study(0.8, seed=1)], robust=robust)
    again.load_state_dict(optimizer.state_dict())
    assert again.share == optimizer.share
    assert again.weights == optimizer.weights
    assert again.gaps == optimizer.gaps


def test_a_summary_says_what_the_tasks_have():
    optimizer = played(3, [study()])
    text = optimizer.summary()
    assert "1 earlier tasks with a share of" in text
    best = next(o for o in optimizer.observations if dict(o.config) == optimizer.best())
    assert f"best: {config_text(best.config)}, value {best.reward:.6g}\n" in text


BAD = {
    "no task": {"tasks": []},
    "no tasks": {"tasks": [1, 2]},
    "robust": {"robust": "evidence"},
    "kernel": {"kernel": "cubic"},
    "no candidates": {"candidates": []},
    "twice": {"candidates": [{"x": 0.1, "y": 0.1}, {"x": 0.1, "y": 0.1}]},
    "horizon": {"horizon": 0},
    "maximize": {"maximize": 1},
    "seed": {"seed": -1},
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_meant_is_refused(case):
    options = {"tasks": [study()], **BAD[case]}
    with pytest.raises(errors.InvalidArgumentError, match="Expected"):
        bc.TransferOptimizer(SPACE, options.pop("tasks"), **options)


@pytest.mark.parametrize(
    "bad", [{"decay": 1.2}, {"tau": -1.0}, {"beta": math.nan}, {"log_odds": math.inf}]
)
def test_options_by_evidence_check_themselves(bad):
    with pytest.raises(errors.InvalidArgumentError, match=next(iter(bad))):
        bc.ByEvidence(**bad)


@pytest.mark.parametrize(
    "bad", [{"rate": -1.0}, {"power": math.inf}, {"paths": 0}, {"largest": 1}, {"decay": -0.1}]
)
def test_options_by_gaps_check_themselves(bad):
    with pytest.raises(errors.InvalidArgumentError, match=next(iter(bad))):
        bc.ByGaps(**bad)


def test_a_task_of_another_space_is_refused():
    with pytest.raises(errors.InvalidConfigError):
        bc.TransferOptimizer(SPACE, [bc.Task([{"depth": 3}], [1.0])])


def test_an_adopted_evaluation_is_learnt_from_like_one_that_was_asked_for():
    space = bc.SearchSpace({"x": bc.Real(0.0, 1.0)})
    task = bc.Task([{"x": k / 10} for k in range(11)], [-abs(k / 10 - 0.4) for k in range(11)])
    asked, adopting = (bc.TransferOptimizer(space, [task]) for _ in range(2))
    first = asked.ask()
    adopted = adopting.enqueue(first.config)
    asked.tell(first, 0.3)
    adopting.tell(adopted, 0.3)
    assert adopting.ask().config == asked.ask().config
