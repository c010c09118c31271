"""Optuna's studies with ``CurvePruner``: when it is asked, and what weighs for and against a trial."""

import copy
import math
import pickle

import pytest

from botorch_costly.errors import InvalidArgumentError, InvalidCallError

optuna = pytest.importorskip("optuna", reason="needs the extra botorch_costly[optuna]")
from optuna.distributions import CategoricalDistribution, FloatDistribution  # noqa: E402
from optuna.trial import TrialState, create_trial  # noqa: E402

from botorch_costly.integrations.optuna import CurvePruner, CurveSampler  # noqa: E402
from botorch_costly.tuners.curves.rest_value import RestValue  # noqa: E402

EPOCHS = 16
X = {"x": FloatDistribution(0.0, 1.0)}


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def curve_of(x, epochs=EPOCHS):
    """A curve whose end is best at 0.7."""
    return [(1 - (x - 0.7) ** 2) * (1 - math.exp(-5 * (k + 1) / EPOCHS)) for k in range(epochs)]


def told(x, *, state=TrialState.COMPLETE, epochs=EPOCHS, sign=1.0, paid=1.0):
    """A trial with its curve, which costs 1 an iteration."""
    values = [sign * value for value in curve_of(x, epochs)]
    return create_trial(
        state=state,
        value=values[-1] if state == TrialState.COMPLETE else None,
        params={"x": x},
        distributions=X,
        intermediate_values=dict(enumerate(values)),
        user_attrs={"paid": paid * epochs},
    )


def study_of(*xs, direction="maximize", **options):
    study = optuna.create_study(
        direction=direction, pruner=CurvePruner(EPOCHS, cost="paid", **options)
    )
    sign = 1.0 if direction == "maximize" else -1.0
    study.add_trials([told(x, sign=sign) for x in xs])
    return study


def running(study, x, values, paid=1.0):
    """The trial that runs with these reports, one an iteration."""
    study.enqueue_trial({"x": x})
    trial = study.ask()
    trial.suggest_float("x", 0.0, 1.0)
    for step, value in enumerate(values):
        trial.set_user_attr("paid", paid * (step + 1))
        trial.report(value, step)
    return trial


SOME = (0.1, 0.2, 0.3, 0.35, 0.15)


def test_a_bad_trial_is_pruned_and_a_good_one_goes_on():
    assert running(study_of(*SOME), 0.05, curve_of(0.05, 4)).should_prune()
    assert not running(study_of(*SOME), 0.69, curve_of(0.69, 4)).should_prune()


def test_losses_are_pruned_as_their_negatives_are():
    for x in (0.05, 0.3, 0.6, 0.7, 0.95):
        up = running(study_of(*SOME), x, curve_of(x, 4))
        down = running(study_of(*SOME, direction="minimize"), x, [-v for v in curve_of(x, 4)])
        assert up.should_prune() == down.should_prune()


def test_the_dearer_the_rest_the_sooner_it_is_pruned():
    ratios = []
    for paid in (0.1, 1.0, 10.0):
        study = study_of(*SOME)
        study.add_trials(
            [told(x, paid=paid if x > 0.5 else 1.0) for x in (0.55, 0.6, 0.8, 0.2, 0.4)]
        )
        ratios.append(ratio_of(running(study, 0.75, curve_of(0.75, 4), paid)))
    assert ratios[0] > ratios[1] > ratios[2]


def ratio_of(trial):
    """What the pruner compares with the logarithm of its ratio."""
    found = []

    class Spy(RestValue):
        def log_ratio(self, *args):
            found.append(super().log_ratio(*args))
            return found[-1]

    module = "botorch_costly.integrations.optuna.pruner.RestValue"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, Spy)
        trial.should_prune()
    (ratio,) = found
    return ratio


def test_ratio_is_the_line_between_both():
    trial = running(study_of(*SOME), 0.6, curve_of(0.6, 4))
    line = math.exp(ratio_of(trial))
    for factor, expected in ((0.9, False), (1.1, True)):
        trial.study.pruner = CurvePruner(EPOCHS, cost="paid", ratio=factor * line)
        assert trial.should_prune() is expected


def test_it_is_asked_at_shares_of_a_training_alone(monkeypatch):
    asked = []
    monkeypatch.setattr(
        CurvePruner, "_promises_less", lambda self, *args: asked.append(self) or False
    )
    study = study_of(*SOME)
    trial, at = running(study, 0.05, []), []
    for step, value in enumerate(curve_of(0.05)):
        trial.report(value, step)
        trial.should_prune()
        at.append(len(asked))
    assert [step + 1 for step in range(EPOCHS) if at[step] > (at[step - 1] if step else 0)] == [
        1,
        2,
        4,
        8,
        12,
    ]
    late = running(study, 0.05, [])
    late.report(0.1, 6)  # reports may leave out iterations: two shares have gone by
    before = len(asked)
    late.should_prune()
    assert len(asked) == before + 1


def test_the_first_trials_end_and_the_best_one_always():
    few = running(study_of(*SOME[:2]), 0.05, curve_of(0.05, 4))
    assert not few.should_prune()
    ahead = running(study_of(*SOME, ratio=1e9), 0.7, [2.0])
    assert not ahead.should_prune()
    assert running(study_of(*SOME, ratio=1e9), 0.7, [0.2]).should_prune()


def test_nan_is_pruned_at_once_and_a_trial_without_reports_is_not():
    study = study_of()
    assert running(study, 0.5, [0.1, math.nan]).should_prune()
    assert not running(study, 0.5, []).should_prune()


def test_other_trials_may_have_failed_diverged_be_pruned_or_lack_costs():
    study = study_of(*SOME)
    study.add_trials([
        told(0.2, state=TrialState.PRUNED, epochs=3),
        told(0.25, state=TrialState.FAIL, epochs=2),
        create_trial(state=TrialState.FAIL, params={"x": 0.01}, distributions=X),
        create_trial(state=TrialState.COMPLETE, value=0.6, params={"x": 0.4}, distributions=X),
        create_trial(
            state=TrialState.PRUNED, params={"x": 0.02}, distributions=X,
            intermediate_values={0: 0.1, 1: math.nan},
        ),
    ])  # fmt: skip
    assert running(study, 0.05, curve_of(0.05, 4)).should_prune()


def test_without_a_parameter_that_all_trials_share_nothing_is_pruned():
    study = optuna.create_study(direction="maximize", pruner=CurvePruner(EPOCHS))
    kinds = {"kind": CategoricalDistribution(["a", "b"])}
    study.add_trials([told(x) for x in SOME])
    study.add_trial(create_trial(value=0.1, params={"kind": "a"}, distributions=kinds))
    assert not running(study, 0.05, curve_of(0.05, 4)).should_prune()


def test_the_length_may_be_a_parameter_and_steps_may_count_from_1():
    pruner = CurvePruner("epochs", first_step=1)
    study = optuna.create_study(direction="maximize", pruner=pruner)

    def objective(trial):
        x, epochs = trial.suggest_float("x", 0, 1), trial.suggest_int("epochs", 4, EPOCHS)
        for step, value in enumerate(curve_of(x, epochs), 1):
            trial.report(value, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return value

    study.sampler = optuna.samplers.RandomSampler(seed=0)
    study.optimize(objective, n_trials=15)
    counts = [len(trial.intermediate_values) for trial in study.trials]
    assert any(n < t.params["epochs"] for n, t in zip(counts, study.trials, strict=True))
    assert counts[:3] == [trial.params["epochs"] for trial in study.trials[:3]]


def test_it_is_copied_and_pickled_without_its_memory_and_decides_alike():
    study = study_of(*SOME)
    trial = running(study, 0.05, curve_of(0.05, 4))
    expected = trial.should_prune()
    for other in (copy.deepcopy(study.pruner), pickle.loads(pickle.dumps(study.pruner))):
        study.pruner = other
        assert trial.should_prune() == expected


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"iterations": 0}, "iterations"),
        ({"iterations": 2.5}, "iterations"),
        ({"iterations": 5, "ratio": 0.0}, "ratio"),
        ({"iterations": 5, "startup": 1}, "startup"),
        ({"iterations": 5, "first_step": -1}, "first_step"),
        ({"iterations": 5, "cost": ""}, "cost"),
    ],
)
def test_bad_arguments_are_named(options, named):
    with pytest.raises(InvalidArgumentError, match=named):
        CurvePruner(**options)


def test_several_objectives_are_refused():
    study = optuna.create_study(directions=["maximize", "minimize"])
    with pytest.raises(InvalidArgumentError, match="one objective"):
        CurvePruner(5).prune(study, told(0.5))


def beyond(caplog):
    return [r.message for r in caplog.records if "beyond the" in r.message]


@pytest.mark.parametrize(("first_step", "last"), [(0, EPOCHS), (0, 10 * EPOCHS), (3, EPOCHS + 3)])
def test_a_step_beyond_the_iterations_is_named_once(first_step, last, caplog):
    study = study_of(first_step=first_step)
    for x in SOME:
        trial = running(study, x, [])
        for step in (last, last + 1):
            trial.report(0.5, step)
            trial.should_prune()
    study.pruner = pickle.loads(pickle.dumps(study.pruner))
    trial.should_prune()
    (message,) = beyond(caplog)
    assert f"step {last}, which is iteration {last + 1 - first_step}," in message
    assert f"the {EPOCHS} iterations" in message


@pytest.mark.parametrize("first_step", [0, 1])
def test_the_last_step_is_not_beyond(first_step, caplog):
    study = study_of(*SOME, first_step=first_step)
    trial = running(study, 0.69, [])
    for step, value in enumerate(curve_of(0.69), first_step):
        trial.report(value, step)
        trial.should_prune()
    assert not beyond(caplog)


def test_each_trial_has_its_own_length(caplog):
    study = optuna.create_study(pruner=CurvePruner("epochs"))
    for epochs in (4, 20):
        trial = study.ask()
        trial.suggest_int("epochs", epochs, epochs + 1)
        trial.report(0.5, epochs - 1)
        trial.should_prune()
    assert not beyond(caplog)


def test_a_class_in_place_of_a_pruner_says_so():
    trial = optuna.create_study(pruner=CurvePruner).ask()
    trial.report(0.5, 0)
    with pytest.raises(
        InvalidCallError, match=r"prune: Expected an object .* not the class itself"
    ):
        trial.should_prune()


def ended(steps_of, count=5, iterations=100):
    """Play trials that report at some steps, and complete."""
    study = optuna.create_study(pruner=CurvePruner(iterations))
    for number in range(count):
        trial = study.ask()
        trial.suggest_float("x", 0.0, 1.0)
        for step in steps_of(number):
            trial.report(1.0 / (1 + step), step)
            trial.should_prune()
        study.tell(trial, 0.1 + number)


def too_few(caplog):
    return [r.message for r in caplog.records if "Complete trials end at" in r.message]


@pytest.mark.parametrize("every", [2, 10, 100])
def test_reports_that_are_counted_in_place_of_iterations_are_named_once(every, caplog):
    ended(lambda number: range(100 // every))
    (message,) = too_few(caplog)
    assert f"iteration {100 // every} of the 100" in message


@pytest.mark.parametrize(
    "steps_of",
    [
        lambda number: range(100),
        lambda number: range(9, 100, 10),  # the iteration of each report
        lambda number: range(9, 96, 10),
        lambda number: range(10 + 20 * number),  # ended by a rule of their own
        lambda number: range(45 + 5 * number),
        lambda number: [],
    ],
)
def test_trials_that_report_their_iterations_or_end_early_are_not(steps_of, caplog):
    ended(steps_of)
    assert not too_few(caplog)


def metrics(report, value, *, samples, count=12):
    """Play trials that report one number of an end, and return another."""
    options = {"sampler": CurveSampler("epochs")} if samples else {"pruner": CurvePruner(3)}
    study = optuna.create_study(direction="maximize", **options)

    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        for step in range(trial.suggest_int("epochs", 1, 3) if samples else 3):
            trial.report(report(x), step)
            trial.should_prune()
        return value(x)

    study.optimize(objective, n_trials=count)


def opposite(caplog):
    return sum("fall where their last reports rise" in text for text in caplog.messages)


@pytest.mark.parametrize("samples", [True, False])
def test_reports_of_another_direction_are_named_once(samples, caplog):
    metrics(lambda x: (x - 0.4) ** 2, lambda x: 1 - (x - 0.4) ** 2, samples=samples)
    assert opposite(caplog) == 1


@pytest.mark.parametrize("samples", [True, False])
@pytest.mark.parametrize("value", [lambda x: x, lambda x: x**3 + 0.1, lambda x: 0.5])
def test_reports_of_the_metric_and_of_one_that_agrees_are_not(value, samples, caplog):
    metrics(lambda x: x, value, samples=samples)
    assert not opposite(caplog)
