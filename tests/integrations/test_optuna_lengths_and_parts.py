"""Optuna's studies whose trials are as long, or of as much data, as their sampler says."""

import datetime
import itertools
import logging.handlers
import threading

import pytest

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError

optuna = pytest.importorskip("optuna", reason="needs the extra botorch_costly[optuna]")
from optuna.distributions import (  # noqa: E402
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from botorch_costly.integrations.offline.translation import translated  # noqa: E402
from botorch_costly.integrations.optuna import CurveSampler, SubsetSampler  # noqa: E402
from botorch_costly.integrations.optuna.distributions import Distributions, next_step  # noqa: E402
from botorch_costly.integrations.optuna.outcomes import CLAIM, Outcomes  # noqa: E402
from tests.integrations import optuna_program as program  # noqa: E402
from tests.integrations.optuna_program import optimizer_of  # noqa: E402

KINDS = pytest.mark.parametrize("kind", ["curves", "subsets"])
NUMBERS = itertools.count()
SPACE = bc.SearchSpace({"lr": bc.Real(1e-4, 1e-1, log=True), "layers": bc.Integer(1, 5)})


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def played(kind, trials, sampler=None, **options):
    made, objective = program.KINDS[kind]
    study = optuna.create_study(sampler=made() if sampler is None else sampler, **options)
    study.optimize(objective, n_trials=trials)
    return study


def by_hand(kind, trials):
    """Parameters and costs of a plain optimizer that is asked and told in turn: the naive twin."""
    asked = []
    if kind == "curves":
        optimizer = bc.CurveOptimizer(SPACE, 9, resumes=False, maximize=False)
    else:
        rows = bc.SearchSpace({"rows": bc.Real(100, 10_000, log=True)})
        optimizer = bc.SubsetOptimizer(SPACE, rows, maximize=False, sampling=program.ROUGH)
    for trial in trials:
        decision = optimizer.ask()
        if kind == "curves":
            asked.append({**decision.config, "epochs": decision.until})
            optimizer.tell(decision, list(trial.intermediate_values.values()), cost=1.0)
        else:
            rows = next_step(program.OF_SUBSETS["rows"], decision.fidelities["rows"])
            optimizer.cancel(decision)
            decision = optimizer.enqueue(decision.config, {"rows": rows})
            asked.append({**decision.config, "rows": rows})
            optimizer.tell(decision, trial.value, cost=0.1 * rows)
    return asked


@KINDS
def test_a_study_is_a_plain_optimizer(kind, monkeypatch):
    monkeypatch.setattr(Outcomes, "_seconds", lambda self, trial: 1.0)
    study = played(kind, 9)
    assert [trial.params for trial in study.trials] == by_hand(kind, study.trials)


@KINDS
def test_the_first_trial_is_the_least_and_later_ones_are_sampled_together(kind):
    sampler = CurveSampler() if kind == "curves" else SubsetSampler("rows", cost="joules")
    study = played(kind, 3, sampler)
    name, distribution = list(getattr(program, f"OF_{kind.upper()}").items())[-1]
    assert study.trials[0].params[name] == distribution.low
    assert CLAIM not in study.trials[0].system_attrs
    assert set(study.trials[2].system_attrs[CLAIM]["setting"]) == {"lr", "layers", name}


@KINDS
def test_two_processes_see_each_other_in_one_file(kind, tmp_path):
    made, objective = program.KINDS[kind]
    studies = [
        optuna.create_study(
            study_name="both",
            storage=program.storage(tmp_path),
            sampler=made(),
            load_if_exists=True,
        )
        for _ in range(2)
    ]
    for _ in range(3):
        trials = [study.ask() for study in studies]
        values = [objective(trial) for trial in trials]
        for study, trial, value in zip(studies, trials, values, strict=True):
            study.tell(trial, value)
    params = [tuple(sorted(trial.params.items())) for trial in studies[0].trials]
    assert len(set(params)) == 6
    ours, theirs = (
        sorted((tuple(sorted(dict(o.config).items())), o.reward) for o in optimizer.observations)
        for optimizer in map(optimizer_of, studies)
    )
    assert ours == theirs
    assert len(ours) == 6


def test_pruned_and_failed_trainings_are_shorter_and_broken_ones():
    def objective(trial):
        value = program.objective_of_curves(trial)
        if trial.number in (3, 4):
            raise optuna.TrialPruned if trial.number == 3 else ZeroDivisionError
        return value

    study = optuna.create_study(sampler=program.curves())
    study.enqueue_trial({"lr": 0.01, "layers": 3, "epochs": 4})
    study.optimize(objective, n_trials=4)
    study.enqueue_trial({"lr": 0.0123, "layers": 2, "epochs": 2})  # a new training
    study.optimize(objective, n_trials=2, catch=ZeroDivisionError)
    told = optimizer_of(study).observations
    assert [one.broken for one in told] == [False] * 4 + [True, False]
    for one, trial in zip(told, study.trials, strict=True):
        assert list(one.curve) == list(trial.intermediate_values.values())
    assert study.sampler.best_params(study) in [
        {name: trial.params[name] for name in ("lr", "layers")} for trial in study.trials
    ]


def test_what_is_best_for_the_whole_is_not_the_best_value_of_any_part():
    """On little data one layer is best, and values are best of all."""

    def objective(trial):
        layers, share = trial.suggest_int("layers", 1, 5), trial.suggest_float("share", 0.1, 1)
        return abs(layers - (4 if share > 0.3 else 1)) + share

    sampler = SubsetSampler("share", sampling=program.ROUGH)
    study = optuna.create_study(sampler=sampler)
    for layers in (1, 2, 4, 5):
        for share in (0.1, 0.5, 1.0):
            study.enqueue_trial({"layers": layers, "share": share})
    study.optimize(objective, n_trials=12)
    assert study.best_params["layers"] == 1
    assert sampler.best_params(study) == {"layers": 4}


def ended(**fields):
    """A trial of Optuna that ran for ten seconds, two of them to decide on it."""
    begun = datetime.datetime(2026, 1, 1)
    given = {"params": {}, "distributions": {}, "value": 0.5, **fields}
    trial = optuna.trial.create_trial(system_attrs={CLAIM: {"seconds": 2.0}}, **given)
    trial.datetime_start, trial.datetime_complete = begun, begun + datetime.timedelta(seconds=10)
    trial.number = next(NUMBERS)
    return trial


def test_costs_are_seconds_without_deciding_or_what_the_trial_says(caplog):
    assert Outcomes().of(ended()).cost == 8.0
    quick = ended()
    quick.datetime_complete = quick.datetime_start + datetime.timedelta(seconds=1)
    assert Outcomes().of(quick).cost == 1e-3
    outcomes = Outcomes(cost="joules")
    assert outcomes.of(ended()).cost == 1.0
    assert [outcomes.of(ended(user_attrs={"joules": j})).cost for j in (3, 5.0, 70)] == [3, 5, 70]
    assert outcomes.of(ended(user_attrs={"joules": -1.0})).cost == 5.0
    assert len(caplog.messages) == 1
    assert "trial.set_user_attr('joules', ..)" in caplog.messages[0]


def test_a_cost_that_no_float_holds_is_not_known(caplog):
    """The kind: a number that a user stored stops a study when it is made a float."""
    outcomes = Outcomes(cost="joules")
    assert outcomes.of(ended(user_attrs={"joules": 3})).cost == 3.0
    for said in (10**400, 10**5000, "5", True, [1.0]):
        assert outcomes.of(ended(user_attrs={"joules": said})).cost == 3.0
    assert len(caplog.messages) == 1


def test_a_trial_that_was_added_and_not_run_has_no_cost_of_its_own(caplog):
    study, outcomes = optuna.create_study(), Outcomes()
    study.add_trial(optuna.trial.create_trial(value=0.5))
    assert outcomes.of(ended()).cost == 8.0
    assert outcomes.of(study.trials[0]).cost == 8.0
    assert len(caplog.messages) == 1
    assert Outcomes(priced=False).of(study.trials[0]).cost is None
    assert len(caplog.messages) == 1


def test_waiting_for_other_threads_is_no_cost_of_a_trial():
    study = played("curves", 1)
    with study.sampler._lock:  # as another thread has it that decides
        thread = threading.Thread(target=study.optimize, args=(program.objective_of_curves, 1))
        thread.start()
        thread.join(0.3)
    thread.join()
    assert study.trials[1].system_attrs[CLAIM]["seconds"] >= 0.3
    ran = study.trials[1].duration.total_seconds()
    assert Outcomes().of(study.trials[1]).cost < ran - 0.29


def test_deciding_that_all_has_been_tried_is_no_cost(caplog):
    space = {"layers": IntDistribution(1, 2), "epochs": IntDistribution(1, 2)}
    study = optuna.create_study(sampler=CurveSampler("epochs", distributions=space))
    study.optimize(lambda trial: sum(trial._suggest(*one) for one in space.items()), n_trials=6)
    assert [said for said in caplog.messages if said.startswith("All has been tried")]
    at_random = [t for t in study.trials if not t.system_attrs[CLAIM]["setting"]]
    assert at_random
    assert all(trial.system_attrs[CLAIM]["seconds"] > 0 for trial in at_random)


def test_steps_that_are_no_iterations_are_left_out_and_warned_of(caplog):
    space = {"epochs": IntDistribution(1, 9)}
    trial = ended(
        params={"epochs": 2}, distributions=space, intermediate_values={0: 0.1, 1: 0.2, 2: 0.3}
    )
    assert Outcomes(iterations="epochs").of(trial).curve == {1: 0.1, 2: 0.2}
    assert "first_step=" in caplog.messages[0]
    assert Outcomes(iterations="epochs", first_step=1).of(trial).curve == {1: 0.2, 2: 0.3}
    assert Outcomes().of(trial).curve == {}


@pytest.mark.parametrize(
    ("distribution", "number", "value"),
    [
        (IntDistribution(100, 10_000), 317.2, 318),
        (IntDistribution(100, 950, step=50), 101.0, 150),
        (IntDistribution(100, 950, step=50), 949.0, 950),
        (FloatDistribution(0.1, 0.9, step=0.2), 0.3, 0.3),
        (FloatDistribution(0.1, 1.0), 1.0 + 1e-12, 1.0),
    ],
)
def test_the_next_step(distribution, number, value):
    found = next_step(distribution, number)
    assert found == pytest.approx(value)
    assert distribution._contains(found)
    assert isinstance(found, int) == isinstance(distribution, IntDistribution)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"distributions": program.DISTRIBUTIONS},
            "iterations: .*suggest_int .*'layers', 'lr'.*'epochs'",
        ),
        ({"distributions": {"epochs": FloatDistribution(1, 9)}}, "epochs: .*suggest_int"),
        ({"distributions": {"epochs": IntDistribution(0, 9)}}, "epochs: .*from 1 on"),
        ({"distributions": {"epochs": IntDistribution(9, 9)}}, "epochs: .*several values"),
        ({"iterations": 9}, "iterations: Expected the name"),
        ({"first_step": -1}, "first_step"),
        ({"cost": 3.0}, "cost: Expected the name of a user attribute"),
        ({"compression": "sigmoid"}, "compression"),
        ({"seed": -1}, "seed"),
    ],
)
def test_what_a_sampler_of_curves_refuses(options, said):
    with pytest.raises(InvalidArgumentError, match=said):
        CurveSampler(**options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"distributions": program.DISTRIBUTIONS}, "fidelities: .*suggest_float or suggest_int"),
        ({"distributions": {"fraction": FloatDistribution(0, 1)}}, "fraction: .*above 0"),
        ({"distributions": {"fraction": CategoricalDistribution([1, 2])}}, "fraction: .*above 0"),
        ({"fidelities": []}, "fidelities"),
        ({"fidelities": ["rows", "rows"]}, "fidelities: .*distinct"),
        ({"overhead": -1.0}, "overhead"),
        ({"sampling": 3}, "sampling"),
    ],
)
def test_what_a_sampler_of_subsets_refuses(options, said):
    with pytest.raises(InvalidArgumentError, match=said):
        SubsetSampler(**options)


def test_a_study_that_does_not_match_is_named():
    study = optuna.create_study(sampler=CurveSampler("steps"))
    study.optimize(program.objective, n_trials=1)
    with pytest.raises(InvalidArgumentError, match=r"iterations: .*\['layers', 'lr'\].*'steps'"):
        study.optimize(program.objective, n_trials=1)
    for sampler in (SubsetSampler("share"), CurveSampler("share")):
        with pytest.raises(InvalidArgumentError, match=r"\['layers', 'lr'\].*'share'"):
            sampler.best_params(study)
    study = optuna.create_study(sampler=SubsetSampler("lr"))
    with pytest.raises(InvalidArgumentError, match=r"lr: .*above 0"):
        study.ask().suggest_categorical("lr", ["low", "high"])
    two = optuna.create_study(directions=["minimize"] * 2, sampler=program.curves())
    with pytest.raises(InvalidArgumentError, match="one objective"):
        two.ask().suggest_int("epochs", 1, 9)


def tried(name, low, high):
    def objective(trial):
        rate = trial.suggest_float("lr", 0.0, 1.0)
        if name == "epochs":
            return rate * trial.suggest_int(name, low, high)
        return rate * trial.suggest_float(name, low, high, log=True)

    return objective


@pytest.mark.parametrize(
    ("make", "first", "second", "of_second"),
    [
        (CurveSampler, ("epochs", 1, 9), ("epochs", 1, 27), IntDistribution(1, 27)),
        (
            SubsetSampler,
            ("fraction", 0.1, 1.0),
            ("fraction", 0.01, 1.0),
            FloatDistribution(0.01, 1.0, log=True),
        ),
    ],
)
def test_a_study_goes_on_in_another_range_that_is_named_or_says_how(make, first, second, of_second):
    study = optuna.create_study(sampler=make(first[0]), direction="maximize")
    study.optimize(tried(*first), n_trials=2)
    with pytest.raises(InvalidArgumentError, match=r"in one range, or else .* in distributions="):
        study.optimize(tried(*second), n_trials=2)
    named = {"lr": FloatDistribution(0.0, 1.0), first[0]: of_second}
    study.sampler = make(first[0], distributions=named)
    study.optimize(tried(*second), n_trials=1)
    assert study.trials[-1].value is not None


def test_a_study_on_parts_begins_after_earlier_studies():
    """The first trials are of their portfolio: the best of the earlier study is at a rate of 0.01."""
    study = program.earlier(away=0.0, trials=30)
    tasks = [bc.task_from_optuna(study)]
    sampler = SubsetSampler(
        "rows", distributions=program.OF_SUBSETS, tasks=tasks, sampling=program.ROUGH
    )
    trials = played("subsets", 3, sampler).trials
    rates = sorted(abs(trial.params["lr"] / 0.01) for trial in trials)
    assert 0.2 < rates[0] < 5
    assert all(trial.params["rows"] < 10_000 for trial in trials)
    assert all(0.01 < rate < 100 for rate in rates)


def test_earlier_studies_may_have_the_parts_too():
    parts = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    parts.optimize(program.objective_of_subsets, n_trials=15)
    tasks = [bc.task_from_optuna(parts)]
    options = {"distributions": program.OF_SUBSETS, "sampling": program.ROUGH}
    told = SubsetSampler("rows", tasks=tasks, **options)
    study = played("subsets", 2, told)
    assert len(study.trials) == 2
    other = SubsetSampler("rows", tasks=[bc.Task([{"momentum": 0.9}], [1.0])], **options)
    with pytest.raises(InvalidArgumentError, match="tasks: Expected a completed trial"):
        played("subsets", 1, other)
    with pytest.raises(InvalidArgumentError, match="tasks"):
        SubsetSampler("rows", tasks=tasks[0], **options)


def test_a_proposal_stays_one_in_a_study():
    proposed = bc.Task.advice([{"lr": 0.013, "layers": 2}])
    options = {"distributions": program.OF_SUBSETS, "sampling": program.ROUGH}
    study = played("subsets", 1, SubsetSampler("rows", tasks=[proposed], **options))
    assert study.trials[0].params["lr"] == pytest.approx(0.013)
    translation = Distributions(program.DISTRIBUTIONS)
    assert translated("tasks", [proposed], translation, -1) == [proposed]


def test_costs_and_progress_of_a_study_come_along():
    """A trial outside of the space takes its own away, and no other's."""
    configs = [{"lr": 0.01, "layers": 2}, {"lr": 1e9, "layers": 2}, {"lr": 0.02, "layers": 3}]
    study = bc.Task(configs, [1.0, 2.0, 3.0], progress=[0.5, 1.0, 1.0], costs=[3.0, 4.0, None])
    (fitting,) = translated("tasks", [study], Distributions(program.DISTRIBUTIONS))
    assert (fitting.values, fitting.progress, fitting.costs) == (
        (1.0, 3.0),
        (0.5, 1.0),
        (3.0, None),
    )


@pytest.mark.parametrize("verbosity", [optuna.logging.INFO, optuna.logging.WARNING])
def test_optunas_log_says_whose_best_trial_it_names(verbosity):
    optuna.logging.set_verbosity(verbosity)
    written = logging.handlers.BufferingHandler(100)
    logging.getLogger("optuna").addHandler(written)
    try:
        study = played("subsets", 3)
        study.optimize(program.KINDS["subsets"][1], n_trials=1)
    finally:
        logging.getLogger("optuna").removeHandler(written)
    lines = [record.getMessage() for record in written.buffer]
    reminders = [i for i, line in enumerate(lines) if "sampler.best_params(study)" in line]
    if verbosity == optuna.logging.WARNING:
        assert reminders == []
        return
    (first,) = reminders
    assert "Best is trial 0" in lines[first + 1]
