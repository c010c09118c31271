"""Metrics of members told with variances: those of gains, the belief, states and errors."""

import math

import pytest
import torch

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from botorch_costly.tuners.population.strategy import Lineage
from tests.tuners.population.test_population import tuner


def test_variances_become_those_of_gains_by_walking_back():
    """Of the level of now and of the last measurement, over the squared rounds since."""
    told = tuner(members=3)
    shown = [([1.0, 0.9, 0.8], [0.01, 0.02, 0.03]), ([0.9, None, 0.7], [0.03, None, 0.04])]
    for metrics, variances in shown:
        told.tell(told.ask(), metrics, variances=variances)
    lineage = Lineage(told._ledger, lambda m: -math.log(m), lambda m, v: v / m**2)
    for member in range(3):
        decision, metric = told.decisions[1], shown[1][0][member]
        reading = lineage.reading(1, member)
        origin = decision.origins[member]
        if metric is None:
            assert reading is None
            continue
        before, spread = shown[0][0][origin], shown[0][1][origin]
        assert reading[0] == pytest.approx(math.log(before / metric))
        expected = shown[1][1][member] / metric**2 + spread / before**2
        assert reading[1] == pytest.approx(expected)


def test_uncertain_metrics_move_the_belief_less():
    """And a huge variance moves it hardly at all; one of 0 is none, bit for bit."""
    shifts = []
    for spread in (None, 0.0, 1e-4, 1e-2, 1e9):
        told = tuner(members=3)
        variances = None if spread is None else [spread] * 3
        for metrics in ([1.0, 0.9, 0.8], [0.95, 0.8, 0.7]):
            told.tell(told.ask(), metrics, variances=variances)
        model = told._strategy._belief.model
        mean, _ = model.in_prior_units().mean_and_variance(model.inputs)
        shifts.append(float(mean.abs().sum()))
    assert shifts[0] == shifts[1] > shifts[2] > shifts[3] > shifts[4]
    assert shifts[4] < 1e-6


def test_a_run_with_variances_continues_from_its_state():
    whole, first, second = (tuner(members=3) for _ in range(3))

    def play(one, rounds):
        for _ in range(rounds):
            decision = one.ask()
            metrics = [1 / (1 + decision.round) + 0.01 * m for m in range(3)]
            one.tell(decision, metrics, variances=[1e-4, None, torch.tensor(1e-5)])

    play(whole, 6)
    play(first, 3)
    second.load_state_dict(first.state_dict())
    play(second, 3)
    assert second.decisions == whole.decisions
    assert second.observations[5].variances == (1e-4, 0.0, torch.tensor(1e-5).item())
    assert second.history[5]["variances"] == list(second.observations[5].variances)


@pytest.mark.parametrize(
    ("variances", "error"),
    [
        ([0.1], InvalidShapeError),
        (0.1, InvalidShapeError),
        ([0.1, -1.0], InvalidArgumentError),
        ([0.1, math.nan], InvalidArgumentError),
        ([0.1, 1e308], InvalidArgumentError),
        ([0.1, "much"], InvalidArgumentError),
    ],
)
def test_bad_variances_are_named_and_change_nothing(variances, error):
    told = tuner(members=2)
    decision = told.ask()
    with pytest.raises(error, match=r"variances: Expected .*; Received"):
        told.tell(decision, [1.0, 0.9], variances=variances)
    assert told.observations == ()
    told.tell(decision, [1.0, 0.9])
