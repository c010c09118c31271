"""Studies of Optuna and experiments of Ax as earlier tasks."""

import math
from datetime import timedelta
from types import SimpleNamespace as Fake

import pytest

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError, InvalidConfigError

both_directions = pytest.mark.parametrize("maximize", [True, False])


def named(name):
    return Fake(name=name)


# -- Optuna ----------------------------------------------------------------------------------------


def trial(x, value, state="COMPLETE"):
    return Fake(state=named(state), params={"x": x}, value=value)


def optuna_study(*trials, directions=("MINIMIZE",)):
    return Fake(study_name="digits", directions=[named(d) for d in directions], trials=trials)


@both_directions
@pytest.mark.parametrize("direction", ["MINIMIZE", "MAXIMIZE"])
def test_a_study_of_optuna_has_the_direction_of_the_coming_optimizer(direction, maximize):
    study = optuna_study(
        trial(0.1, 1.0),
        trial(0.2, 0.5, "PRUNED"),
        trial(0.3, None, "FAIL"),
        trial(0.4, None, "RUNNING"),
        trial([0.5, "a"], math.inf),
        trial(0.6, 3),
        directions=[direction],
    )
    sign = 1.0 if (direction == "MAXIMIZE") == maximize else -1.0
    task = bc.task_from_optuna(study, maximize=maximize)
    configs = [{"x": 0.1}, {"x": (0.5, "a")}, {"x": 0.6}]
    assert task == bc.Task(configs, [sign * 1.0, None, sign * 3.0], name="digits")
    assert bc.task_from_optuna(study, name="mine").name == "mine"


@pytest.mark.parametrize(
    ("study", "options", "message"),
    [
        (optuna_study(trial(0.1, 1.0), directions=["MINIMIZE"] * 2), {}, "study: .*one objective"),
        (optuna_study(trial(0.1, 1.0, "PRUNED")), {}, "study: .*completed trial; .*none of 1"),
        (optuna_study(), {}, "study: Expected a completed trial"),
        ([trial(0.1, 1.0)], {}, r"study: Expected an optuna\.Study"),
        (optuna_study(trial(0.1, 1.0)), {"maximize": "minimize"}, "maximize: Expected a bool"),
    ],
)
def test_what_is_no_study_of_optuna(study, options, message):
    with pytest.raises(InvalidArgumentError, match=message):
        bc.task_from_optuna(study, **options)
    with pytest.raises(InvalidConfigError, match="x: Expected a str"):
        bc.task_from_optuna(optuna_study(trial(object(), 1.0)))


def test_a_real_study_of_optuna():
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)

    def objective(trial):
        policy = trial.suggest_categorical("policy", ["a", None])
        if trial.number == 2:
            raise optuna.TrialPruned
        drop = trial.suggest_float("drop", 0, 0.5) if policy == "a" else 0.0
        return trial.suggest_float("lr", 1e-4, 1e-1, log=True) + drop

    study = optuna.create_study(study_name="real", sampler=optuna.samplers.RandomSampler(seed=1))
    study.optimize(objective, n_trials=8)
    task = bc.task_from_optuna(study)
    done = [trial for trial in study.trials if trial.number != 2]
    seconds = [t.duration.total_seconds() for t in done]
    configs, values = [t.params for t in done], [-t.value for t in done]
    assert task == bc.Task(configs, values, name="real", costs=seconds)
    space = {"lr": bc.Real(1e-4, 1e-1, log=True), "policy": bc.Choice(["a", None])}
    encoded = task.in_space(bc.SearchSpace({**space, "drop": bc.Real(0, 0.5)}))
    assert len(encoded.points) == 7
    assert encoded.filled == {"drop": sum("drop" not in t.params for t in done)}
    with pytest.raises(InvalidArgumentError, match="one objective"):
        bc.task_from_optuna(optuna.create_study(directions=["minimize", "maximize"]))


# -- Ax --------------------------------------------------------------------------------------------

MEANS = [(0, "0_0", "loss", 0.5), (0, "0_0", "size", 3.0), (1, "1_0", "loss", 0.25)]


MEANS += [(2, "2_0", "loss", 9.0), (3, "0_0", "loss", math.nan), (9, "9_0", "loss", 9.0)]


STATUS = ["COMPLETED", "COMPLETED", "ABANDONED", "COMPLETED", "RUNNING"]


def data(rows):
    columns = ("trial_index", "arm_name", "metric_name", "mean")
    return Fake(df={column: [row[i] for row in rows] for i, column in enumerate(columns)})


def experiment(objectives=("loss",), minimize=True, lower=None, **others):
    objective = Fake(metric_names=list(objectives), minimize=minimize)
    parts = {
        "name": "digits",
        "trials": {i: Fake(status=named(status)) for i, status in enumerate(STATUS)},
        "arms_by_name": {f"{i}_0": Fake(parameters={"x": i / 10}) for i in range(5)},
        "metrics": {"loss": Fake(lower_is_better=lower), "size": Fake(lower_is_better=None)},
        "optimization_config": Fake(objective=objective),
        "lookup_data": lambda: data(MEANS),
    }
    return Fake(**{**parts, **others})


@both_directions
@pytest.mark.parametrize("lower", [True, False])
def test_an_experiment_of_ax_has_the_direction_of_the_coming_optimizer(lower, maximize):
    sign = -1.0 if lower == maximize else 1.0
    values = [sign * 0.5, sign * 0.25, None]
    expected = bc.Task([{"x": 0.0}, {"x": 0.1}, {"x": 0.0}], values, name="digits")
    says = [
        (experiment(minimize=lower, lower=not lower), {}),
        (experiment(["loss", "size"], minimize=not lower, lower=lower), {}),
        (experiment(optimization_config=None, lower=lower), {}),
        (experiment(minimize=not lower, lower=not lower), {"lower_is_better": lower}),
    ]
    for experiment_, options in says:
        assert bc.task_from_ax(experiment_, "loss", maximize=maximize, **options) == expected


def test_clients_of_ax_hold_an_experiment():
    ours = experiment()
    expected = bc.task_from_ax(ours, "loss", name="mine")
    assert expected.name == "mine"
    for client in (Fake(experiment=ours), Fake(_experiment=ours)):
        assert bc.task_from_ax(client, "loss", name="mine") == expected


def test_data_that_ax_has_not_read_yet_are_fetched():
    stored = experiment(fetch_data=lambda: pytest.fail("fetched without need"))
    remote = experiment(lookup_data=lambda: data(MEANS[1:2]), fetch_data=lambda: data(MEANS))
    assert bc.task_from_ax(remote, "loss") == bc.task_from_ax(stored, "loss")


@pytest.mark.parametrize(
    ("given", "metric", "options", "message"),
    [
        (experiment(), "accuracy", {}, r"metric: .*of \['loss', 'size'\]; Received 'accuracy'"),
        (experiment(), "size", {}, "lower_is_better: .*does not define it for 'size'"),
        (experiment(), "loss", {"lower_is_better": 1}, "lower_is_better: Expected a bool"),
        (experiment(), "loss", {"maximize": None}, "maximize: Expected a bool"),
        (experiment(trials={}), "loss", {}, "experiment: Expected a completed trial with data"),
        (data(MEANS), "loss", {}, "experiment: Expected an Experiment of Ax"),
    ],
)
def test_what_is_no_experiment_of_ax(given, metric, options, message):
    with pytest.raises(InvalidArgumentError, match=message):
        bc.task_from_ax(given, metric, **options)


@pytest.mark.filterwarnings("ignore")
def test_a_real_experiment_of_ax():
    ax = pytest.importorskip("ax")
    client = ax.Client()
    lr = ax.RangeParameterConfig(name="lr", parameter_type="float", bounds=(1e-4, 1e-1))
    client.configure_experiment(name="real", parameters=[lr])
    client.configure_optimization(objective="-loss")
    for loss in (0.5, 0.25, None):
        index = client.attach_trial({"lr": 0.01 if loss is None else loss / 10})
        if loss is None:
            client.mark_trial_failed(index)
        else:
            client.complete_trial(index, {"loss": loss})
    expected = bc.Task([{"lr": 0.05}, {"lr": 0.025}], [-0.5, -0.25], name="real")
    assert bc.task_from_ax(client, "loss") == expected
    assert bc.task_from_ax(client._experiment, "loss") == expected


def curve(x, *values, state="COMPLETE", first=0):
    steps = dict(enumerate(values, first))
    return Fake(state=named(state), params={"x": x}, value=values[-1], intermediate_values=steps)


def test_curves_of_optuna_are_read_with_their_progress():
    study = optuna_study(
        curve(0.1, 1.0, 0.5, 0.25, 0.2),
        curve(0.2, 2.0, 1.0, state="PRUNED"),
        curve(0.3, 3.0, state="FAIL"),
    )
    task = bc.task_from_optuna(study, iterations=4)
    assert [config["x"] for config in task.configs] == [0.1] * 4 + [0.2] * 2
    assert task.values == (-1.0, -0.5, -0.25, -0.2, -2.0, -1.0)
    assert task.progress == (0.25, 0.5, 0.75, 1.0, 0.25, 0.5)
    later = optuna_study(curve(0.1, 1.0, 0.5, first=1))
    assert bc.task_from_optuna(later, iterations=2, first_step=1).progress == (0.5, 1.0)


def test_seconds_of_optuna_are_costs():
    """A report costs its share of the seconds of its trial, pruned or not; 0 seconds are unknown."""
    first, second = curve(0.1, 1.0, 0.5, 0.25, 0.2), curve(0.2, 2.0, 1.0, state="PRUNED")
    first.duration, second.duration = timedelta(seconds=8), timedelta(seconds=3)
    task = bc.task_from_optuna(optuna_study(first, second), iterations=4)
    assert task.costs == (2.0, 4.0, 6.0, 8.0, 1.5, 3.0)
    third, fourth = curve(0.3, 1.0), curve(0.4, 1.0)
    third.duration, fourth.duration = timedelta(0), None
    fifth = curve(0.5, 1.0)
    fifth.duration = timedelta(minutes=-50)  # the clock was set back
    assert bc.task_from_optuna(optuna_study(fifth)).costs is None
    assert bc.task_from_optuna(optuna_study(first, third, fourth)).costs == (8.0, None, None)


@pytest.mark.parametrize(
    ("trials", "options", "message"),
    [
        ([curve(0.1, 1.0, 0.5)], {"iterations": 1}, "study: Expected values of iterations 1 to 1,"),
        ([curve(0.1, 1.0)], {"iterations": 0}, "iterations"),
        ([curve(0.1, 1.0)], {"iterations": "epochs"}, "iterations: Expected the name"),
        (
            [curve(0.1, 1.0)],
            {"iterations": 4, "first_step": 1},
            "study: .*; Received 'iteration 0'",
        ),
        ([curve(0.1, 1.0)], {"iterations": 4, "first_step": "a"}, "first_step"),
        ([], {"iterations": 4}, "study: Expected a value of a curve"),
    ],
)
def test_what_are_no_curves_of_optuna(trials, options, message):
    with pytest.raises(InvalidArgumentError, match=message):
        bc.task_from_optuna(optuna_study(*trials), **options)


def test_a_report_before_the_first_iteration_is_refused_by_name():
    trial = curve(0.1, 1.0)
    trial.duration = timedelta(seconds=1)
    with pytest.raises(InvalidArgumentError, match="Received 'iteration 0'"):
        bc.task_from_optuna(optuna_study(trial), iterations=4, first_step=1)


def test_a_completed_trial_without_reports_has_its_value_at_the_end():
    silent = Fake(state=named("COMPLETE"), params={"x": 0.5}, value=3.0, intermediate_values={})
    task = bc.task_from_optuna(optuna_study(curve(0.1, 1.0), silent), iterations=4)
    assert task.values == (-1.0, -3.0)
    assert task.progress == (0.25, 1.0)
