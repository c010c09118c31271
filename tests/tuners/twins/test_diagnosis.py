"""What a run of twins says about itself is what it did."""

import math

import pytest

import botorch_costly as bc
from tests.tuners.twins.running import GOOD, RATE, Run, play


def test_before_a_few_queries_nothing_is_said():
    tuner = bc.TwinTuner(RATE, 100, start={"lr": GOOD})
    found = tuner.diagnose()
    assert (found.binds, found.paid) == (None, None)
    assert str(found).startswith("Too early to say")


def test_a_good_start_has_not_paid_for_its_trials():
    tuner = bc.TwinTuner(RATE, 100, start={"lr": GOOD})
    play(tuner, Run())
    found = tuner.diagnose()
    assert (found.paid, found.binds, found.changes) == (False, True, 0)
    assert found.given_back == tuner.given_back > 0
    assert found.gained == 0
    assert str(found).startswith("Exploring has not paid so far: it found nothing better")
    assert "Compute binds" in str(found)


def test_a_slow_start_has_paid_and_its_gain_is_that_of_the_trials():
    tuner, run = bc.TwinTuner(RATE, 200, start={"lr": GOOD / 30}), Run()
    play(tuner, run)
    found = tuner.diagnose()
    assert found.paid
    assert found.changes == 1
    assert found.gained > 0.3  # the level of the rate that was found, less that of the start
    assert str(found).startswith("Exploring has paid")


def test_a_run_that_has_converged_is_not_bound_by_compute():
    tuner, run = bc.TwinTuner(RATE, 200, start={"lr": GOOD}), Run()
    play(tuner, run, metric=lambda run: 0.1 + math.exp(-5 * run.level))
    found = tuner.diagnose()
    assert found.binds is False
    assert "Compute hardly binds" in str(found)


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        (lambda run: 0.5, "all metrics told so far are the same"),
        (lambda run: math.nan, "Most queries fail"),
        (lambda run: 0.01 * len(run.played), "metric='accuracy', and no gain"),
    ],
    ids=["constant", "diverging", "a metric that grows"],
)
def test_misuse_is_named(metric, said):
    tuner = bc.TwinTuner(RATE, 100, start={"lr": GOOD})
    play(tuner, Run(), metric=metric)
    assert said in str(tuner.diagnose())


def test_queries_that_are_never_told_are_named():
    tuner, run = bc.TwinTuner(RATE, 100, start={"lr": GOOD}), Run()
    for decision in bc.Session.of(tuner, run):
        run.train(decision.config)
    assert "were never told" in str(tuner.diagnose())
