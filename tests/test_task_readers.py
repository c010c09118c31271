"""Studies of other packages, tables and histories, read as tasks."""

import json
import logging
import math
from types import SimpleNamespace as Fake

import pytest

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError, InvalidConfigError

LINE = bc.SearchSpace({"x": bc.Real(0, 1)})
QUICK = bc.Sampling(draws=4, first_steps=30, steps=8, points=12, candidates=60)
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
    ("study", "options", "said"),
    [
        (optuna_study(trial(0.1, 1.0), directions=["MINIMIZE"] * 2), {}, "study: .*one objective"),
        (optuna_study(trial(0.1, 1.0, "PRUNED")), {}, "study: .*completed trial; .*none of 1"),
        (optuna_study(), {}, "study: Expected a completed trial"),
        ([trial(0.1, 1.0)], {}, r"study: Expected an optuna\.Study"),
        (optuna_study(trial(0.1, 1.0)), {"maximize": "minimize"}, "maximize: Expected a bool"),
    ],
)
def test_what_is_no_study_of_optuna(study, options, said):
    with pytest.raises(InvalidArgumentError, match=said):
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
    assert task == bc.Task([t.params for t in done], [-t.value for t in done], name="real")
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
    for one, options in says:
        assert bc.task_from_ax(one, "loss", maximize=maximize, **options) == expected


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
    ("given", "metric", "options", "said"),
    [
        (experiment(), "accuracy", {}, r"metric: .*of \['loss', 'size'\]; Received 'accuracy'"),
        (experiment(), "size", {}, "lower_is_better: .*does not say it of 'size'"),
        (experiment(), "loss", {"lower_is_better": 1}, "lower_is_better: Expected a bool"),
        (experiment(), "loss", {"maximize": None}, "maximize: Expected a bool"),
        (experiment(trials={}), "loss", {}, "experiment: Expected a completed trial with data"),
        (data(MEANS), "loss", {}, "experiment: Expected an Experiment of Ax"),
    ],
)
def test_what_is_no_experiment_of_ax(given, metric, options, said):
    with pytest.raises(InvalidArgumentError, match=said):
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


# -- tables ----------------------------------------------------------------------------------------

TABLE = """data, C,kernel,accuracy,note
iris,1,rbf,0.9,
wine,1e1,"a, b",0.8,late
iris, 0.5 ,"2",nan,
"""


@pytest.fixture
def table(tmp_path):
    def written(text, encoding="utf-8"):
        path = tmp_path / "svm.csv"
        path.write_text(text, encoding=encoding)
        return path

    return written


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_table_is_read_as_a_task_for_each_study(table, encoding, caplog):
    path = table(TABLE, encoding)
    iris, wine = bc.tasks_from_csv(path, "accuracy", task="data", names=["kernel", "C"])
    configs = [{"kernel": "rbf", "C": 1}, {"kernel": 2, "C": 0.5}]
    assert iris == bc.Task(configs, [0.9, None], name="iris")
    assert wine == bc.Task([{"kernel": "a, b", "C": 10.0}], [0.8], name="wine")
    assert [type(config["C"]) for config in iris.configs] == [int, float]
    assert caplog.records == []


def test_a_table_without_a_column_of_studies_is_one(table, caplog):
    caplog.set_level(logging.WARNING)
    path = table(TABLE)
    (whole,) = bc.tasks_from_csv(str(path), "accuracy")
    config = {"data": "wine", "C": 10.0, "kernel": "a, b", "note": "late"}
    assert whole == bc.Task([config], [0.8], name="svm")
    (record,) = caplog.records
    left_out = f"2 of 3 rows of {path} have an empty cell and are left out: 2 in 'note'"
    assert record.getMessage().startswith(left_out)


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("3", 3),
        ("-3", -3),
        ("3.0", 3.0),
        ("1e-3", 0.001),
        ("True", "True"),
        ("nan", "nan"),
        ("inf", "inf"),
        ("1_000", "1_000"),
        ("1e999", "1e999"),
        (" a b ", "a b"),
    ],
)
def test_cells_are_numbers_or_texts(table, cell, value):
    (task,) = bc.tasks_from_csv(table(f"x,y\n{cell},1\n"), "y")
    assert task.configs[0] == {"x": value}
    assert type(task.configs[0]["x"]) is type(value)


def test_rows_that_end_early_have_empty_cells(table, caplog):
    (task,) = bc.tasks_from_csv(table("y,x\n1,2\n3\n\n,4\n"), "y")
    assert task.values == (1.0,)
    assert "2 of 3 rows" in caplog.text  # an empty line is no row


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("x,y\n1,2\n", {"task": "study"}, r"column: Expected one of \['x', 'y'\]; .*'study'"),
        ("x,z\n1,2\n", {}, "column: .*Received 'y'"),
        ("x,y\n1,2\n", {"names": ["w"]}, "column: .*Received 'w'"),
        ("x,y\n1,2\n", {"names": "x"}, "names: Expected a list"),
        ("x,y\n1,2\n", {"names": []}, "names: Expected a column"),
        ("y\n2\n", {}, "names: Expected a column"),
        ("x,y\n1,2\n", {"task": "y"}, "columns: Expected one use"),
        ("x,y\n1,2\n", {"names": ["x", "y"]}, "columns: Expected one use"),
        ("x,x,y\n1,1,2\n", {}, "path: Expected distinct names"),
        ("x,y\n1,2\n3,4,5\n", {}, r"line 3: Expected 2 cells; Received \['5'\]"),
        ("x,y\n1,2\n3,bad\n", {}, "line 3, y: Expected a number .*; Received 'bad'"),
        ("x,y\n1,\n", {}, "path: Expected a row without an empty cell; .*1 rows"),
        ("x,y\n", {}, "path: Expected a row"),
        ("", {}, "path: Expected a file whose first row .*'an empty file'"),
    ],
)
def test_what_is_no_table(table, text, options, said):
    with pytest.raises(InvalidArgumentError, match=said):
        bc.tasks_from_csv(table(text), "y", **options)
    with pytest.raises(FileNotFoundError):
        bc.tasks_from_csv("nowhere.csv", "y")


VERSIONS = bc.SearchSpace({"v": bc.Choice(["3.1", "3.9", "3.10"]), "x": bc.Real(0, 1)})


def test_a_number_does_not_stand_for_an_option_that_is_written_otherwise(table):
    """The kind: a cell is read as something else than its text says, and a row goes to another option."""
    path = table("v,x,y\n3.1,0.10,1\n3.10,1e-1,2\n3.9,.5,3\n3.90,0.5,4\n")
    (task,) = bc.tasks_from_csv(path, "y")
    assert task == bc.Task([dict(c) for c in task.configs], [1, 2, 3, 4], name="svm")
    for form in (task, bc.Task.from_dict(json.loads(json.dumps(task.to_dict())))):
        encoded = form.in_space(VERSIONS)
        versions = [VERSIONS.decode(point)["v"] for point in encoded.points]
        assert list(zip(versions, encoded.values.tolist(), strict=True)) == [
            ("3.1", 1.0),
            ("3.10", 2.0),
            ("3.9", 3.0),
        ]
        assert encoded.points[:, -1].tolist() == [0.1, 0.1, 0.5]
        assert encoded.outside == {"v": 1}  # 3.90 is no option


@pytest.mark.parametrize(
    ("cell", "options", "option"),
    [
        ("007", ["7", "007"], "007"),
        ("7", ["7", "007"], "7"),
        ("1e-3", ["0.001", "1e-3"], "1e-3"),
        ("1.0", ["1", "1.0"], "1.0"),
        ("+1", [1, 2], 1),
        ("3.10", [3.1, 3.9], 3.1),
        ("-0.0", [0.0, 1.0], 0.0),
        ("True", [False, True], True),
        ("TRUE", [False, True], True),
        ("false", [True, False], False),
        ("true", [True, "true"], "true"),
        ("None", ["a", None], None),
        ('"64,64"', ["64,64", "64"], "64,64"),
        ("1_000", ["1000", "1_000"], "1_000"),
        ("9" * 310, ["a", "9" * 310], "9" * 310),
        ("1e999", ["inf", "1e999"], "1e999"),
        ("NA", ["NA", "a"], "NA"),
    ],
)
def test_a_cell_is_the_option_that_it_is_written_as(table, cell, options, option):
    space = bc.SearchSpace({"x": bc.Choice(options)})
    (task,) = bc.tasks_from_csv(table(f"x,y\n{cell},1\n"), "y")
    assert space.decode(task.in_space(space).points[0])["x"] is option or option == cell.strip('"')
    assert space.decode(task.in_space(space).points[0])["x"] == option


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("x;y\n1;2\n", "utf-8"),
        ("x\ty\n1\t2\n", "utf-8"),
        ("x;y;\n1;2;\n", "utf-8-sig"),
        ("x,y\n1,2\n", "utf-16"),
        ("x\ty\r\n1\t2\r\n", "utf-16"),
        ("x,y,\n1,2,\n", "utf-8"),
        ("x,y\n1,2,,\n", "utf-8"),
        (",x,y\n0,1,2\n", "utf-8"),  # the index of a data frame
        ("x,y\r1,2\r", "utf-8"),
        ('"x","y"\n\n"1"," 2 "\n   \n', "utf-8"),
    ],
)
def test_files_as_programs_write_them(table, text, encoding, caplog):
    path = table("")
    path.write_bytes(text.encode(encoding))
    assert bc.tasks_from_csv(path, "y") == [bc.Task([{"x": 1}], [2.0], name="svm")]
    assert caplog.records == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"x;y\n1;0,9\n", "svm.csv, line 2, y: Expected a number written as 1234.5 .*'0,9'"),
        (b'x,y\n1,"1,234"\n', "line 2, y: Expected a number .*'1,234'"),
        (b"x,y\n1,95%\n", "line 2, y: Expected a number .*'95%'"),
        (b"x,y\n1,1_000\n", "line 2, y: Expected a number .*'1_000'"),
        (b"x,y\n1,N/A\n", "line 2, y: Expected a number .* nan where .*'N/A'"),
        (b"x,y,note\n1,2,\n3,4,\n", "path: Expected a row .*2 in 'note'; names chooses"),
        (b"x,y\n1,2\n\xe9,3\n", "path: Expected text in UTF-8.* 0xe9 in line 3"),
        ("x,y\n1,2\n".encode("utf-16-le"), "path: Expected text in UTF-8.*null bytes"),
        (b'x,y\n"1,2\n3,4\n', "line 2: Expected cells whose quotation marks are closed"),
        (b'x,y\n"a"b,2\n', "line 2: Expected cells whose quotation marks are closed"),
        (b"x,y\n" + b"a" * 140_000 + b",2\n", "line 2: Expected cells .* of at most 131072"),
        (b"\xef\xbb\xbf\n \n", "path: Expected a file whose first row"),
        (b"x\ty\n1\t2\t3\n", r"line 2: Expected 2 cells; Received \['3'\]"),
    ],
)
def test_a_file_that_cannot_be_read_says_where_and_what_is_expected(table, content, said):
    path = table("")
    path.write_bytes(content)
    with pytest.raises(InvalidArgumentError, match=said):
        bc.tasks_from_csv(path, "y")


@pytest.mark.parametrize("cell", ["0,1", "10%", "1.234,5", "NA", "one"])
def test_texts_that_are_no_numbers_are_named(table, cell):
    (task,) = bc.tasks_from_csv(table(f"x;y\n{cell};1\n"), "y")
    with pytest.raises(InvalidConfigError, match=f"1 by 'x', such as '{cell}'"):
        task.in_space(LINE)


@pytest.mark.parametrize("number", ["3", "3.0", "3e0", "+3", "03", "30e-1"])
def test_a_whole_number_is_an_integer_however_it_is_written(table, number):
    (task,) = bc.tasks_from_csv(table(f"x,y\n{number},1\n"), "y")
    assert task.in_space(bc.SearchSpace({"x": bc.Integer(1, 5)})).points.tolist() == [[0.5]]


def test_values_beyond_all_numbers_failed(table):
    (task,) = bc.tasks_from_csv(table(f"x,y\n1,{'9' * 310}\n2,-1e999\n3,-0\n"), "y")
    assert task.values == (None, None, 0.0)


@pytest.mark.parametrize("path", [3, None, ["a.csv"]])
def test_what_is_no_path(path):
    with pytest.raises(InvalidArgumentError, match="path: Expected the path of a file"):
        bc.tasks_from_csv(path, "y")


@pytest.mark.parametrize("texts", [[], [1], [{"x": 1}], "a", [{"x": "a"}] * 2])
def test_what_are_no_texts_of_a_task(texts):
    with pytest.raises((InvalidArgumentError, InvalidConfigError)):
        bc.Task([{"x": 1}], [1.0], texts=texts)


# -- histories -------------------------------------------------------------------------------------


def both_forms(history):
    """A history as it is, and as JSON has it."""
    return history, json.loads(json.dumps(history))


def online_history():
    betas = [(0.9, 0.999), (0.8, 0.99)]
    space = bc.SearchSpace({"x": bc.Real(0, 1), "betas": bc.Choice(betas)})
    tuner = bc.OnlineTuner(space, horizon=14, query=bc.BernoulliQuery(0.5), seed=1)
    for i in range(14):
        decision = tuner.ask()
        if decision.query:
            tuner.tell(decision, float(i) if tuner.observations else math.nan)
    return tuner.history


def test_a_history_has_an_observation_for_each_query():
    queried = [row for row in online_history() if row["query"]]
    assert 3 < len(queried) < 14
    assert queried[0]["failed"]
    for history in both_forms(online_history()):
        task = bc.task_from_history(history, name="past")
        assert task == bc.Task(
            [{"x": r["config"]["x"], "betas": tuple(r["config"]["betas"])} for r in queried],
            [r["reward"] for r in queried],
            name="past",
        )


def test_windows_of_a_history_are_tasks():
    row = {"config": {"x": 0.5}, "failed": False}
    history = [
        {**row, "round": r, "reward": None if r in (1, 6, 7) else float(r)} for r in range(11)
    ]
    history[6]["failed"] = True  # rounds 6 and 7 hold no value
    found = [(t.name, t.values) for t in bc.tasks_from_history(history[::-1], window=2)]
    assert found == [
        ("rounds 0 to 1", (0.0,)),
        ("rounds 2 to 3", (2.0, 3.0)),
        ("rounds 4 to 5", (4.0, 5.0)),
        ("rounds 8 to 9", (8.0, 9.0)),
        ("rounds 10 to 11", (10.0,)),
    ]
    late = bc.tasks_from_history(history, window=9, where=lambda row: row["round"] > 4)
    assert [task.values for task in late] == [(5.0, None, 8.0), (9.0, 10.0)]


def test_a_history_of_a_real_tuner_in_windows_is_the_whole():
    history = online_history()
    windows = bc.tasks_from_history(history, window=5)
    told = [row for row in history if row["reward"] is not None]
    assert [v for task in windows for v in task.values if v is not None] == [
        r["reward"] for r in told
    ]
    assert 1 < len(windows) <= 3


def test_a_training_is_one_observation():
    trained = bc.CurveOptimizer(LINE, 9, seed=1)
    ends, begun = {}, {}
    for number in range(14):
        stretch = trained.ask()
        at = range(stretch.since + 1, stretch.until + 1)
        curve = [stretch.training + i / 100 for i in at]
        if number == 2:
            curve = [None] * len(curve)
        if number == 3:
            curve[-1] = math.nan
        trained.tell(stretch, curve)
        begun.setdefault(stretch.training, dict(stretch.config))
        ends[stretch.training] = None if number == 3 else curve[-1] or ends.get(stretch.training)
    trained.ask()  # under way
    assert len(ends) < 14
    assert sum(value is None for value in ends.values()) >= 1
    for history in both_forms(trained.history):
        task = bc.task_from_history(history)
        assert task == bc.Task(list(begun.values()), list(ends.values()))
    longest = max(row["until"] for row in trained.history[:-1])
    alike = bc.task_from_history(trained.history, where=lambda row: row["until"] == longest)
    assert 0 < len(alike) < len(ends)
    assert [v % 1 for v in alike.values] == pytest.approx([longest / 100] * len(alike))


def stretch(round, training, reward, broken=False):
    parts = {"round": round, "training": training, "reward": reward, "broken": broken}
    return {**parts, "config": {"x": training / 10}, "failed": reward is None}


def members(metrics):
    return {**ROW, "reward": 1.0, "configs": [{"x": 0.1}, {"x": 0.2}], "metrics": metrics}


def test_a_training_has_its_last_reward_unless_it_diverged():
    history = [
        stretch(0, 0, 1.0),
        stretch(1, 1, 2.0),
        stretch(2, 0, 3.0),
        stretch(3, 0, None),  # nothing was measured
        stretch(4, 1, 4.0, broken=True),
        stretch(5, 5, None),
        stretch(6, 5, 5.0),
    ]
    task = bc.task_from_history(history)
    assert task == bc.Task([{"x": 0.0}, {"x": 0.1}, {"x": 0.5}], [3.0, None, 5.0])
    windows = bc.tasks_from_history(history, window=5)
    assert [one.values for one in windows] == [(3.0, None), (5.0,)]


def test_a_history_of_subsets_is_of_equal_fidelities():
    optimizer = bc.SubsetOptimizer(LINE, sampling=QUICK, seed=1)
    for number in range(4):
        decision = optimizer.ask()
        optimizer.tell(decision, math.nan if number == 3 else float(number))
    history = optimizer.history
    with pytest.raises(InvalidArgumentError, match=r"history: Expected equal fidelities .* where"):
        bc.task_from_history(history)
    chosen = history[1]["fidelities"]
    for form in both_forms(history):
        assert bc.task_from_history(form[3:]).values == (None,)
        task = bc.task_from_history(form, where=lambda row: row["fidelities"] == chosen)
        assert task == bc.Task([history[1]["config"]], [1.0])
    assert bc.task_from_history(history, where=lambda row: True).values == (0.0, 1.0, 2.0, None)


def test_a_history_of_twins_has_configurations_before_schedules():
    space = bc.SearchSpace({"lr": bc.Scheduled(1e-3, 1e-1, base="cosine")})
    tuner = bc.TwinTuner(space, 40, start={"lr": 1e-3})
    for i in range(40):
        decision = tuner.ask()
        if decision.query:
            tuner.tell(decision, 1 / (2 + i))
    queried = [row for row in tuner.history if row["query"]]
    assert min(row["config"]["lr"] for row in queried) < 1e-3  # outside the space
    for history in both_forms(tuner.history):
        task = bc.task_from_history(history)
        assert task == bc.Task([r["peak"] for r in queried], [r["reward"] for r in queried])
    assert task.in_space(space).left_out == 0


ROW = {"round": 0, "config": {"x": 0.5}, "reward": None, "failed": False}


@pytest.mark.parametrize(
    ("history", "options", "said"),
    [
        ([], {}, "history: Expected a row with an outcome; Received 'none in 0 rows'"),
        ([ROW], {}, "history: Expected a row with an outcome"),
        ([{**ROW, "reward": 1.0}], {"where": lambda row: False}, "outcome that where chooses"),
        ([{"x": 1}], {}, "history: Expected the rows of an optimizer's history"),
        ([3], {}, "history: Expected the rows"),
        (ROW, {}, "history: Expected the rows"),
    ],
)
def test_what_is_no_history(history, options, said):
    with pytest.raises(InvalidArgumentError, match=said):
        bc.task_from_history(history, **options)
    with pytest.raises(InvalidArgumentError, match=said):
        bc.tasks_from_history(history, window=2, **options)


@pytest.mark.parametrize("window", [0, 1.5, None, "2"])
def test_what_is_no_window(window):
    with pytest.raises(InvalidArgumentError, match="window: Expected an integer >= 1"):
        bc.tasks_from_history([{**ROW, "reward": 1.0}], window=window)


def test_a_history_out_of_a_data_frame_has_nan_for_what_is_missing():
    """The kind: a container of another program turns None into NaN, whole numbers into floats."""
    history = [
        {"round": 0.0, "config": {"x": 0.5}, "reward": 1.0, "failed": False},
        {"round": 1.0, "config": {"x": 0.6}, "reward": math.nan, "failed": False},
        {"round": 2.0, "config": {"x": 0.7}, "reward": math.nan, "failed": True},
    ]
    assert bc.task_from_history(history).values == (1.0, None)
    curves = [{**stretch(0, 0, 3.0), "reward": 3.0}, {**stretch(1, 0, math.nan), "failed": True}]
    assert bc.task_from_history(curves).values == (3.0,)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{**ROW, "round": "0", "reward": 1.0}], "round 0: Expected a number of a round"),
        ([{**ROW, "round": None, "reward": 1.0}], "Expected a number of a round"),
        ([{**ROW, "reward": "0.8"}], "round 0: Expected a number or None as the reward"),
        ([{**ROW, "config": None, "reward": 1.0}], "round 0: Expected a configuration"),
        ([{**ROW, "config": "x=1", "reward": 1.0}], "round 0: Expected a configuration"),
        ([{**ROW, "training": 0, "reward": 1.0}], "round 0: Expected the entry broken"),
        ([{**ROW, "reward": 1.0}, stretch(1, 0, 1.0)], "history: Expected rows of one optimizer"),
        ([members(None)], "round 0: Expected as many metrics as there are configs"),
        ([members([1.0])], "round 0: Expected as many metrics as there are configs"),
        ([members([1.0, "0.5"])], "Expected a number, None or 'failed' as a metric"),
        ([{**members([1.0, 2.0]), "configs": [{"x": 0.1}, 3]}], "Expected a configuration, values"),
        (
            [stretch(0, 0, 1.0), {**stretch(0, 0, 2.0), "config": {"x": 0.9}}],
            "history: Expected one configuration of training 0",
        ),
    ],
)
def test_rows_that_are_none_of_a_history_are_named(rows, said):
    with pytest.raises(InvalidArgumentError, match=said):
        bc.task_from_history(rows)


def test_fidelities_of_any_kind_are_compared():
    row = {**ROW, "reward": 1.0}
    rows = [{**row, "fidelities": {"a": [1]}}, {**row, "fidelities": {"a": [2]}}]
    assert len(bc.task_from_history(rows[:1])) == 1
    with pytest.raises(InvalidArgumentError, match="history: Expected equal fidelities"):
        bc.task_from_history(rows)
