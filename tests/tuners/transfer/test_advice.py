"""Advice as an earlier study: what is evaluated first, its units, and hostile advice."""

import math

import pytest
import torch

import botorch_costly as bc
from botorch_costly.numerics.robust import normal_scores
from botorch_costly.tuners.transfer.advice import advice_in_units, cautious
from tests.cases import quick, slow
from tests.tuners.transfer.test_optimizer import SPACE, best, played, study, value

TKWARGS = {"dtype": torch.float64}
GOOD, HOSTILE = {"x": 0.32, "y": 0.58}, {"x": 0.98, "y": 0.02}
GRID = [{"x": i / 8, "y": j / 8} for i in range(9) for j in range(9)]


def configs_of(optimizer):
    return [dict(decision.config) for decision in optimizer.decisions]


def test_the_first_complete_proposal_is_evaluated_first():
    vague, adviser = bc.Task.advice([{"x": 0.9}]), bc.Task.advice([GOOD, HOSTILE])
    first, second = (bc.TransferOptimizer(SPACE, [vague, adviser]).ask() for _ in range(2))
    assert first.config == pytest.approx(GOOD)
    assert first.reason == second.reason == "proposed"


def test_of_a_list_the_nearest_configuration_is_evaluated_first():
    asked = bc.TransferOptimizer(SPACE, [bc.Task.advice([GOOD])], candidates=GRID).ask()
    assert dict(asked.config) == {"x": 3 / 8, "y": 5 / 8}


@pytest.mark.parametrize("options", [{}, slow({"candidates": GRID})])
def test_random_evaluations_follow_a_proposal_that_no_study_supports(options):
    runs = [
        played(5, [bc.Task.advice([HOSTILE])], seed=seed, **options).decisions
        for seed in (1, 1, *range(2, 12))
    ]
    for decisions in runs:
        drawn = [decision.reason.startswith("drawn at random") for decision in decisions]
        assert drawn == [False, True, True, False, False]
        assert len({tuple(decision.config.values()) for decision in decisions}) == 5
    assert runs[0] == runs[1]
    points = torch.tensor([list(d.config.values()) for run in runs[1:] for d in run[1:3]])
    # Twenty-two uniform values in each column.
    assert bool((points.amin(0) < 0.3).all() & (points.amax(0) > 0.7).all())
    beside = played(3, [study(0.3, seed=0), bc.Task.advice([HOSTILE])], **options).decisions
    assert not any("random" in decision.reason for decision in beside)


def test_an_evaluation_of_the_user_takes_no_proposal_away():
    optimizer = bc.TransferOptimizer(SPACE, [bc.Task.advice([GOOD])])
    optimizer.tell(optimizer.enqueue({"x": 0.9, "y": 0.9}), 0.5)
    assert optimizer.ask().reason == "proposed"
    assert optimizer.ask().reason.startswith("drawn at random")


def test_a_portfolio_comes_before_random_evaluations():
    optimizer = bc.TransferOptimizer(SPACE, [bc.Task.advice([GOOD])], warm_start=1)
    reasons = [optimizer.ask().reason.split()[0] for _ in range(5)]
    assert reasons[:4] == ["proposed", "of", "drawn", "drawn"]
    assert reasons[4] != "drawn"


def test_a_proposal_of_some_parameters_leads_to_its_values_of_these():
    asked = bc.TransferOptimizer(SPACE, [bc.Task.advice([{"x": 0.9}])]).ask()
    assert asked.reason != "proposed"
    assert asked.config["x"] == pytest.approx(0.9, abs=0.1)


@pytest.mark.parametrize("sign", quick([1.0, -1.0], -1.0))
def test_neither_units_nor_direction_of_the_values_matter(sign):
    def rescaled(config):
        return sign * 1024.0 * value(config)

    advice = [bc.Task.advice([HOSTILE])]
    expected = played(6, advice, candidates=GRID)
    other = played(6, advice, rescaled, candidates=GRID, maximize=sign > 0)
    assert configs_of(other) == configs_of(expected)


def test_predictions_are_in_the_units_of_the_values():
    def high(config):
        return 5000.0 + 100.0 * value(config)

    optimizer = played(8, [bc.Task.advice([GOOD])], high, candidates=GRID)
    mean, std = optimizer.predict([decision.config for decision in optimizer.decisions[:4]])
    expected = [high(decision.config) for decision in optimizer.decisions[:4]]
    assert mean.tolist() == pytest.approx(expected, abs=20.0)
    assert 0 < float(std.max()) < 100


def test_good_advice_is_used_at_once_and_hostile_advice_is_survived():
    assert best(played(2, [bc.Task.advice([GOOD])])) > 0.99
    assert best(played(15, [bc.Task.advice([HOSTILE])])) > 0.95
    assert (
        best(played(15, [bc.Task.advice([{"x": 0.9 + k / 50, "y": 0.0}]) for k in range(5)])) > 0.95
    )


def test_hostile_advice_beside_studies_costs_one_evaluation():
    studies = [study(0.3 + away, seed=k) for k, away in enumerate((-0.05, 0.0, 0.05))]
    assert best(played(5, [*studies, bc.Task.advice([HOSTILE])])) > 0.97


def test_a_search_with_advice_continues_from_its_state():
    whole = played(7, [bc.Task.advice([GOOD])], seed=3)
    half = played(4, [bc.Task.advice([GOOD])], seed=3)
    again = bc.TransferOptimizer(SPACE, [bc.Task.advice([GOOD])], seed=3)
    again.load_state_dict(half.state_dict())
    for _ in range(3):
        asked = again.ask()
        again.tell(asked, value(asked.config))
    assert configs_of(again) == configs_of(whole)


def test_advice_has_the_mean_units_of_the_other_studies():
    advice = torch.tensor([0.0, -0.1, -0.5, -0.7], **TKWARGS)
    studies = [
        torch.tensor([1.0, 3.0], **TKWARGS),
        torch.tensor([10.0, 18.0, 10.0, 18.0], **TKWARGS),
    ]
    scores = normal_scores(advice)
    expected = (2 + 14) / 2 + math.sqrt(1 * 4) * scores
    torch.testing.assert_close(advice_in_units(advice, studies), expected)
    torch.testing.assert_close(advice_in_units(advice, []), scores)
    constant = [torch.tensor([5.0, 5.0], **TKWARGS)]
    torch.testing.assert_close(advice_in_units(advice, constant), 5 + scores)


def test_advice_alone_has_a_small_share_from_the_beginning():
    assert cautious(bc.ByEvidence()).log_odds < 0
    assert cautious(bc.ByEvidence(log_odds=-9.0)) == bc.ByEvidence(log_odds=-9.0)
    assert cautious(bc.ByGaps()) == bc.ByGaps()
    assert played(3, [bc.Task.advice([GOOD])], candidates=GRID).share < 0.1
