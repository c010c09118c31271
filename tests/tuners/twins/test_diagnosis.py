"""What a run of twins says about itself is what it did."""

import math

import pytest

import botorch_costly as bc
from botorch_costly.records import TwinDecision
from botorch_costly.tuners.twins.diagnosis import Lineages, TwinDiagnosis, gained_by, lineages
from tests.tuners.twins.running import GOOD, RATE, Run, alone, play


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
    assert found.gained < 0
    assert str(found).startswith("Exploring has not paid so far: it found nothing better")
    assert "Compute binds" in str(found)


def test_a_slow_start_has_paid_and_its_gain_is_the_lead_over_the_start():
    tuner, run = bc.TwinTuner(RATE, 200, start={"lr": GOOD / 30}), Run()
    play(tuner, run)
    found = tuner.diagnose()
    assert found.paid
    assert found.changes == 1
    lead = run.level - alone({"lr": GOOD / 30}, 200).level
    assert 0.5 * lead < found.gained < lead  # early levels are not a line in log-time
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


@pytest.mark.parametrize("share", [0.5, 0.9, 1.0])
@pytest.mark.parametrize(("start", "paid"), [(GOOD / 30, True), (GOOD, False)])
def test_the_verdict_is_right_on_the_way_late_and_after_the_loop(start, paid, share):
    tuner, run = bc.TwinTuner(RATE, 200, start={"lr": start}), Run(noise=0.003)
    rounds = round(share * 200)
    session = play(tuner, run, rounds=rounds)
    session.finish()  # from a trial to the incumbent
    found, untuned = session.diagnose(), alone({"lr": start}, rounds)
    assert (run.level > untuned.level) == paid
    assert found.paid is paid
    assert str(found).startswith("Exploring has paid:") == paid


def test_a_lead_that_the_start_has_made_up_for_does_not_count():
    tuner, run = bc.TwinTuner(RATE, 400, start={"lr": GOOD / 3}), Run()
    play(tuner, run, metric=lambda run: 0.1 + math.exp(-8 * run.level))
    found = tuner.diagnose()
    assert found.changes > 0  # there was a lead
    assert abs(found.gained) < 0.01
    assert found.paid is False


def decided(round, lr, **moves):
    return TwinDecision(round, {"lr": lr}, query=True, reason="a test", **moves)


def test_levels_belong_to_the_states_that_they_were_measured_in():
    decisions = [
        decided(0, 0.1),
        decided(1, 0.1, keep=1),  # after one round
        decided(2, 0.2, keep=2, restore=1),
        decided(3, 0.2),
        decided(4, 0.1, restore=2),  # the start goes on
        decided(5, 0.1, keep=3),
    ]
    levels = dict(enumerate([0.0, 1.0, 2.0, math.nan, 1.5, -math.inf]))
    found = lineages(decisions, levels, None)
    assert found.start == [(1, 0.0), (2, 1.0), (3, 1.5), (4, -math.inf)]
    assert found.run == [(1, 0.0), (2, 1.0), (3, 1.5)]
    assert lineages(decisions, levels, 3).run == [(1, 0.0), (2, 1.0), (3, 1.5)]
    other = lineages([*decisions[:4]], levels, None)
    assert other.run == [(1, 0.0), (2, 2.0)]
    assert other.start == [(1, 0.0), (2, 1.0)]


def test_a_run_is_ahead_of_a_slower_start_by_the_rounds_that_it_would_need():
    run = [(n, 0.3 * math.log(n)) for n in (1, 2, 4, 8, 16, 32, 64)]
    start = [(3, 0.3 * math.log(1.5)), (6, 0.3 * math.log(3))]
    faster = 0.3 * math.log(2)
    assert gained_by(Lineages(start, run), 64, 0) == pytest.approx(faster, rel=1e-12)
    assert gained_by(Lineages(start, run), 128, 64) == pytest.approx(0.0, abs=1e-12)
    assert gained_by(Lineages(run[:3], run), 128, 64) == pytest.approx(-faster, rel=1e-12)
    failed = gained_by(Lineages([(3, -math.inf)], run), 64, 0)
    assert failed == pytest.approx(0.3 * math.log(10), rel=1e-12)  # more cannot be told
    never = gained_by(Lineages([(6, 9.0)], run), 64, 0)
    assert gained_by(Lineages([], run), 64, 0) == never == 0.0
    level = [*run[:3], (8, 0.9), (16, 0.9), (64, 0.9)]
    assert math.isnan(gained_by(Lineages(start, level), 64, 0))  # the start may have come as far


def diagnosed(**changed):
    """A diagnosis of a run in the middle of which trials were given back."""
    numbers = {"rounds": 200, "horizon": 300, "queries": 30, "told": 30, "failed": 0, "slope": 0.5}
    numbers |= {"given_back": 20, "cost": 0.05, "gained": 0.3, "changes": 1, "by_hand": False}
    return str(TwinDiagnosis(**(numbers | {"constant": False, "worsened": -1.0} | changed)))


def test_what_exploring_costs_is_said_as_a_share_of_the_loss():
    assert "the end would be 4.9% lower" in diagnosed()  # 1 - exp(-0.05)
    assert "changed once, and the loss should be 25.9% lower than with the start" in diagnosed()
    assert "changed 3 times" in diagnosed(changes=3)
    assert "25.9% higher than with the start" in diagnosed(gained=-0.3)


@pytest.mark.parametrize(
    ("changed", "says"),
    [({}, True), ({"untried": ()}, False), ({"given_back": 0}, False), ({"rounds": 100}, False)],
)
def test_hyperparameters_that_were_never_tried_are_named(changed, says):
    text = diagnosed(**({"untried": ("dropout", "weight_decay")} | changed))
    assert ("Never tried: dropout, weight_decay." in text) == says


def test_a_hyperparameter_with_one_value_throughout_was_never_tried():
    space = bc.SearchSpace({"lr": bc.Scheduled(1e-5, 1.0), "dropout": bc.Real(0.0, 0.6)})
    tuner = bc.TwinTuner(space, 100, start={"lr": 1e-4, "dropout": 0.1})
    assert tuner.diagnose().untried == ()
    play(tuner, Run())
    assert tuner.diagnose().untried == ("dropout",)
