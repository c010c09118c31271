"""The kind: no state is left to go on from, because all that were compared diverged at once.

An outage, such as a part of the data that is broken, makes each network diverge that is trained in it,
whatever its configuration.
"""

import math

import pytest
import torch

import botorch_costly as bc
from botorch_costly.tuners.twins.curve import Slope
from botorch_costly.tuners.twins.run_budget import RunBudget
from botorch_costly.tuners.twins.trials import Challenge, Side, Start
from tests.tuners.twins.running import RATE, Run, by_rate

MORE = bc.SearchSpace(
    {"lr": bc.Real(1e-5, 1.0, log=True), "arm": bc.Choice(["a", "b"]), "dropout": bc.Real(0.0, 0.6)}
)
# Space, start, horizon, and first round of an outage in which the search trains its rates for longer.
RUNS = {
    "a rate": (RATE, {"lr": 1e-3}, 200, 14),
    "several": (MORE, {"lr": 1e-2, "arm": "b", "dropout": 0.1}, 200, 7),
    "a short run": (MORE, {"lr": 1e-2, "arm": "b", "dropout": 0.1}, 60, 5),
}


def speed(config):
    return by_rate(config) * (1.5 if config.get("arm") == "b" else 1.0)


class Interrupted(Run):
    """A run with an outage: its weights are NaN after any round of it."""

    def __init__(self, outage):
        super().__init__(speed)
        self.outage, self.rounds = outage, 0

    def train(self, config):
        super().train(config)
        if self.rounds in self.outage:
            self.progress = math.nan
        self.rounds += 1


def played(name, length, rounds=None, *, first=None):
    space, start, horizon, usual = RUNS[name]
    first = usual if first is None else first
    run = Interrupted(range(first, first + length))
    session = bc.Session.of(bc.TwinTuner(space, horizon, start=start), run)
    for _ in range(horizon if rounds is None else rounds):
        decision = session.ask()
        run.train(decision.config)
        if decision.query:
            session.tell(decision, run.loss())
        assert len(session.tuner.kept) <= 3
    return session, run


@pytest.mark.parametrize("name", RUNS)
def test_a_search_whose_rates_all_diverge_goes_on_from_a_state_before(name):
    session, run = played(name, 6)
    horizon = session.tuner.horizon
    assert len(session.tuner.decisions) == horizon
    assert math.isfinite(run.progress)


@pytest.mark.parametrize("name", RUNS)
def test_a_run_that_diverged_where_nothing_was_measured_goes_back_before_it(name):
    """A search takes most queries of a short run: until the next one there are several stretches."""
    for first in range(6, 42, 3):
        _, run = played(name, 1, first=first)
        assert math.isfinite(run.progress)


@pytest.mark.parametrize("name", RUNS)
def test_a_run_that_ends_in_trials_that_diverge_hands_over_a_network_that_has_not(name):
    trials = 0
    for rounds in range(RUNS[name][-1] + 1, RUNS[name][-1] + 7):
        session, run = played(name, 12, rounds)
        if session.tuner.decisions[-1].reason.startswith("a trial"):
            trials += 1
            session.finish()
            assert math.isfinite(run.progress)
    assert trials > 2


@pytest.mark.parametrize("levels", [(-math.inf, -math.inf), (math.nan, math.nan)])
def test_where_both_diverge_that_went_on_the_present_one_stays_as_it_was(levels):
    budget, point = RunBudget(200, 0.3), torch.zeros(1).double()
    kept = []
    for _ in range(3):  # the common state, the present one, and that of the trial
        kept.append(budget.mark())
        budget._here = None
    present, trial = Side(point, 1.0, kept[1]), Side(point + 0.5, 1.2, kept[2])
    start = Start(kept[0], present, 3, Slope(0.1, 0.1), 5, 5)
    steps = Challenge(budget, start).confirm(trial)
    step = next(steps)
    assert step.restore == kept[2]
    assert steps.send(levels[0]).restore == kept[1]
    with pytest.raises(StopIteration) as ended:
        steps.send(levels[1])
    assert ended.value.value == present
    assert set(budget._states) == set(kept[:2])
    assert budget.given_back == 2 * start.rounds  # those of the trial and its own
