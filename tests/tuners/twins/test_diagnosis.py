"""What a run of twins says about itself is what it did."""

import math
import random
import re

import pytest

import botorch_costly as bc
from botorch_costly.tuners.twins.diagnosis import TwinDiagnosis
from botorch_costly.tuners.twins.told import Passed, Told, passed_by
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


@pytest.mark.parametrize("slope", [0.1, 0.3, 2.0])
def test_what_exploring_costs_is_what_as_many_further_rounds_would_gain(slope):
    tuner, run = bc.TwinTuner(RATE, 200, start={"lr": GOOD / 30}), Run(slope=slope)
    play(tuner, run)
    found = tuner.diagnose()
    assert found.given_back > 0
    gain = alone({"lr": GOOD}, 200, slope=slope).level
    gain -= alone({"lr": GOOD}, 200 - found.given_back, slope=slope).level
    assert 0.5 * gain < found.cost < 1.5 * gain
    assert f"cost {1 - math.exp(-found.cost):.1%} of the loss at the end" in tuner.summary()


def test_rounds_that_teach_nothing_cost_nothing():
    tuner = bc.TwinTuner(RATE, 200, start={"lr": GOOD / 30})
    play(tuner, Run(), metric=lambda run: 0.1 + math.exp(-20 * run.level))
    found = tuner.diagnose()
    assert (found.binds, found.given_back > 0, round(found.cost, 3)) == (False, True, 0.0)


def test_without_a_change_the_distance_to_the_start_is_said_once():
    text = diagnosed(changes=0, gained=-0.05)
    assert "rounds were given back; the configuration changed 0 times, and the loss" in text


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
        (lambda run: 0.01 * len(run.played), "metric='accuracy', and a gain is neither"),
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


def diagnosed(**changed):
    """A diagnosis of a run in the middle of which trials were given back."""
    numbers = {"rounds": 200, "horizon": 300, "queries": 30, "told": 30, "failed": 0, "slope": 0.5}
    numbers |= {"given_back": 20, "cost": 0.05, "gained": 0.3, "changes": 1, "by_hand": False}
    return str(TwinDiagnosis(**(numbers | {"constant": False, "worsened": -1.0} | changed)))


def test_what_exploring_costs_is_said_as_a_share_of_the_loss():
    assert "the end would be 4.9% lower" in diagnosed()  # 1 - exp(-0.05)
    assert "changed once, and the loss should be 25.9% lower than with the start." in diagnosed()
    assert "changed 3 times" in diagnosed(changes=3)
    assert "35.0% higher than with the start." in diagnosed(gained=-0.3)  # exp(0.3) - 1


@pytest.mark.parametrize(
    ("gained", "most", "said"),
    [
        (0.2, 1.6, "18.1% to 79.8% lower"),
        (-0.2, 1.6, "22.1% higher to 79.8% lower"),
        (-0.3, -0.2, "35.0% to 22.1% higher"),
        (0.2, math.inf, "18.1% to 100.0% lower"),
        (-900.0, 1.6, "over 1000% higher to 79.8% lower"),
    ],
)
def test_a_lead_over_a_start_of_few_rounds_is_a_range(gained, most, said):
    text = diagnosed(gained=gained, most=most, compared=3)
    assert f"the loss should be {said} than with the start" in text
    assert "the second if it had learnt nothing after its 3 rounds" in text
    assert "its 1 round)" in diagnosed(gained=gained, most=most, compared=1)


def test_a_lead_is_no_range_where_it_cannot_be_told_or_nothing_was_given_back():
    assert "than with the start" not in diagnosed(gained=math.nan, most=1.0, compared=3)
    assert "than with the start" not in diagnosed(given_back=0, most=1.0, compared=3)


@pytest.mark.parametrize("slower", [30, 300])
def test_the_lead_over_a_much_slower_start_is_within_its_range(slower):
    """More than a tenfold speed cannot be told from few rounds: only the range holds the lead."""
    start = {"lr": GOOD / slower}
    tuner, run = bc.TwinTuner(RATE, 200, start=start), Run()
    play(tuner, run)
    found, lead = tuner.diagnose(), run.level - alone(start, 200).level
    assert found.gained < 0.75 * lead
    assert found.gained < lead < found.most
    assert found.compared < 10


def test_a_run_that_never_left_its_start_is_not_ahead_of_it_by_noise():
    """An early level that noise has raised does not make the run faster than the start, which it is."""
    tuner, run = bc.TwinTuner(RATE, 200, start={"lr": GOOD}), Run()
    play(
        tuner, run, metric=lambda run: math.exp(-run.level) * (0.8 if run.progress == 104 else 1.0)
    )
    found = tuner.diagnose()
    assert found.changes == 0
    assert found.gained == found.most < 0
    assert found.paid is False


@pytest.mark.parametrize(
    ("changed", "says"),
    [({}, True), ({"untried": {}}, False), ({"given_back": 0}, True), ({"rounds": 100}, False)],
)
def test_hyperparameters_that_were_never_tried_are_named(changed, says):
    text = diagnosed(**({"untried": {"dropout": "binds", "weight_decay": "binds"}} | changed))
    assert ("Never tried: dropout, weight_decay." in text) == says


def test_a_hyperparameter_with_one_value_throughout_was_never_tried():
    space = bc.SearchSpace({"lr": bc.Scheduled(1e-5, 1.0), "dropout": bc.Real(0.0, 0.6)})
    tuner = bc.TwinTuner(space, 100, start={"lr": 1e-4, "dropout": 0.1})
    assert tuner.diagnose().untried == {}
    play(tuner, Run())
    assert tuner.diagnose().untried == {"dropout": "binds"}


def test_with_accuracies_the_words_are_those_of_errors():
    passed = Passed(59, 0.931, 0.902)
    text = diagnosed(metric="accuracy", untried={"dropout": "binds"}, most=1.0, slope=0.2)
    texts = [text, diagnosed(metric="accuracy", worsened=0.6, gained=-0.1, slope=0.0)]
    texts += [diagnosed(metric="accuracy", worsened=0.6, passed=passed)]
    for text in texts:
        assert "loss" not in re.sub("metric='loss'|[Aa] loss or an error rate", "", text)
    assert texts[0].count("the error") == 4
    assert "The accuracy is lower than it was at first" in texts[1]
    assert "The accuracy was highest in round 59 (0.931) and is 0.902 now" in texts[2]
    assert "or the metric is no accuracy" in texts[2]


@pytest.mark.parametrize(
    ("queries", "told", "rounds", "said"),
    [
        (0, 0, 0, "Too early to say: 0 queries told, and 3 are the fewest."),
        (1, 1, 3, "Too early to say: 1 query told, and 3 are the fewest."),
        (2, 2, 4, "and was trained with its start: 2 queries told, and 3 are the fewest."),
        (9, 1, 4, "Nothing can be compared: 1 query of 9 told, and 3 are the fewest."),
    ],
)
def test_few_queries_are_early_or_too_few_in_all(queries, told, rounds, said):
    assert said in diagnosed(queries=queries, told=told, rounds=rounds, horizon=4)


def test_a_run_that_was_short_says_so_at_its_end():
    tuner = bc.TwinTuner(RATE, 3, start={"lr": GOOD})
    play(tuner, Run())
    assert str(tuner.diagnose()).startswith("The run was too short to compare settings")


def overfits(run):
    """A loss that falls for forty rounds of a state, and rises then."""
    return 1 + 0.02 * abs(len(run.played) - 40)


def test_a_run_that_has_passed_its_best_metric_says_so():
    tuner = bc.TwinTuner(RATE, 100, start={"lr": GOOD})
    play(tuner, Run(), metric=overfits)
    best = min(tuner.observations, key=lambda outcome: outcome.reward)
    passed = tuner.diagnose().passed
    assert passed == (best.round, best.reward, tuner.observations[-1].reward)
    said = (
        f"The loss was lowest in round {best.round} ({best.reward:.4g}) and is {passed.now:.4g} now"
    )
    assert said in str(tuner.diagnose())


def course(levels, metric=None):
    numbers = [math.exp(-level) for level in levels] if metric is None else metric
    return [Told(5 * i, *each) for i, each in enumerate(zip(numbers, levels, strict=True))]


def test_only_a_clear_loss_of_what_was_reached_counts():
    falls = [0.0, 0.3, 0.5, 0.6, 0.65, 0.66, 0.665]
    assert passed_by(course(falls)) is None
    assert passed_by(course([*falls, 0.1])) is None  # a single one
    assert passed_by(course([*falls, 0.55, 0.54, 0.53])) is None  # slightly
    assert passed_by(course([*falls, 0.4, 0.35, 0.3])).round == 30
    assert passed_by(course([0.5, 0.4, 0.3, 0.2])) is None  # too few
    draws = random.Random(0)
    noisy = [[draws.gauss(0, 0.2) for _ in range(60)] for _ in range(50)]
    assert not any(passed_by(course(levels)) for levels in noisy)


def test_few_errors_are_few_by_chance():
    wrong = (60, 58, 57, 56, 55, 54, 53, 74, 75, 76)
    for examples, many in ((601, False), (15_013, True)):
        rates = [(k * (examples // 601) + k % 7 * many) / examples for k in wrong]
        found = passed_by(course([-math.log(rate) for rate in rates], rates))
        assert (found is not None) == many


def test_error_rates_are_told_from_losses_in_the_diagnosis():
    tuner = bc.TwinTuner(RATE, 100, start={"lr": GOOD})
    play(tuner, Run(), metric=lambda run: round(500 * run.loss() / 2) / 500)
    assert "shares of 500 examples, and count as error rates" in str(tuner.diagnose())
    for kind, digits in (("loss", 17), ("loss", 3), ("accuracy", 17)):
        tuner = bc.TwinTuner(RATE, 100, start={"lr": GOOD}, metric=kind)
        play(tuner, Run(), metric=lambda run, digits=digits: round(run.loss() / 2, digits))
        assert tuner.diagnose().examples is None


def test_the_history_names_the_metric_so():
    tuner = bc.TwinTuner(RATE, 30, start={"lr": GOOD})
    session = play(tuner, Run())
    told = [row for row in session.history if row["reward"] is not None]
    assert [row["metric"] for row in told] == [row["reward"] for row in told]
    assert {row["metric"] for row in session.history if row not in told} <= {None}
    before = [{k: v for k, v in row.items() if k != "metric"} for row in tuner.history]
    assert bc.task_from_history(tuner.history) == bc.task_from_history(before)  # an older file


@pytest.mark.parametrize(("kind", "best"), [("loss", min), ("accuracy", max)])
def test_a_summary_has_the_first_the_best_and_the_latest_metric(kind, best):
    tuner = bc.TwinTuner(RATE, 100, start={"lr": GOOD}, metric=kind)
    assert f"{kind}: " not in tuner.summary()
    play(tuner, Run(), metric=lambda run: overfits(run) / 4)
    told = {outcome.reward: outcome.round for outcome in reversed(tuner.observations)}
    first, last, found = tuner.observations[0].reward, tuner.observations[-1].reward, best(told)
    said = f"{first:.4g} at first, {found:.4g} at best (round {told[found]}), {last:.4g} at last"
    assert f"{kind}: {said}" in tuner.summary()


def test_metrics_of_trials_that_were_given_back_do_not_count(monkeypatch):
    tuner, judged = bc.TwinTuner(RATE, 200, start={"lr": GOOD}), []
    play(tuner, Run())
    module = "botorch_costly.tuners.twins.tuner.passed_by"
    monkeypatch.setattr(module, lambda run: judged.extend(told.metric for told in run))
    tuner.diagnose()
    assert 0 < len(judged) < len(tuner.observations)
    assert judged == sorted(judged, reverse=True)  # this run learns in each round
