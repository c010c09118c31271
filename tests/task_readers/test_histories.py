"""Histories of our own optimizers as earlier tasks."""

import json
import math

import pytest

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError

LINE = bc.SearchSpace({"x": bc.Real(0, 1)})

QUICK = bc.Sampling(draws=4, first_steps=30, steps=8, points=12, candidates=60)


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
    tasks = [(t.name, t.values) for t in bc.tasks_from_history(history[::-1], window=2)]
    assert tasks == [
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
    observed = [row for row in history if row["reward"] is not None]
    assert [v for task in windows for v in task.values if v is not None] == [
        r["reward"] for r in observed
    ]
    assert 1 < len(windows) <= 3


def test_a_training_is_one_observation():
    trained = bc.CurveOptimizer(LINE, 9, seed=1)
    ends, begun = {}, {}
    for number in range(14):
        segment = trained.ask()
        at = range(segment.since + 1, segment.until + 1)
        curve = [segment.training + i / 100 for i in at]
        if number == 2:
            curve = [None] * len(curve)
        if number == 3:
            curve[-1] = math.nan
        trained.tell(segment, curve)
        begun.setdefault(segment.training, dict(segment.config))
        ends[segment.training] = None if number == 3 else curve[-1] or ends.get(segment.training)
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


def segment(round, training, reward, broken=False):
    parts = {"round": round, "training": training, "reward": reward, "broken": broken}
    return {**parts, "config": {"x": training / 10}, "failed": reward is None}


def members(metrics):
    return {**ROW, "reward": 1.0, "configs": [{"x": 0.1}, {"x": 0.2}], "metrics": metrics}


def test_a_training_has_its_last_reward_unless_it_diverged():
    history = [
        segment(0, 0, 1.0),
        segment(1, 1, 2.0),
        segment(2, 0, 3.0),
        segment(3, 0, None),  # nothing was measured
        segment(4, 1, 4.0, broken=True),
        segment(5, 5, None),
        segment(6, 5, 5.0),
    ]
    task = bc.task_from_history(history)
    assert task == bc.Task([{"x": 0.0}, {"x": 0.1}, {"x": 0.5}], [3.0, None, 5.0])
    windows = bc.tasks_from_history(history, window=5)
    assert [task.values for task in windows] == [(3.0, None), (5.0,)]


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


def test_a_history_of_subsets_is_read_with_its_fidelities_and_costs():
    optimizer = bc.SubsetOptimizer(LINE, sampling=QUICK, seed=1)
    for number in range(4):
        decision = optimizer.ask()
        optimizer.tell(decision, math.nan if number == 3 else float(number), cost=number + 1.0)
    optimizer.ask()
    history = optimizer.history
    for form in both_forms(history):
        task = bc.task_from_history(form, fidelities=True, name="parts")
        rows = [{**row["config"], **row["fidelities"]} for row in history[:4]]
        costs = [1.0, 2.0, 3.0, 4.0]
        assert task == bc.Task(rows, [0.0, 1.0, 2.0, None], name="parts", costs=costs)
    later = bc.SubsetOptimizer(LINE, tasks=[task], sampling=QUICK, seed=2)
    assert 0 <= later.ask().config["x"] <= 1
    with pytest.raises(InvalidArgumentError, match="history: Expected rows of a SubsetOptimizer"):
        bc.task_from_history(online_history(), fidelities=True)
    with pytest.raises(InvalidArgumentError, match="history: Expected rows of a SubsetOptimizer"):
        bc.task_from_history([{**history[0], "fidelities": None}], fidelities=True)
    with pytest.raises(InvalidArgumentError, match="iterations: Expected none"):
        bc.task_from_history(history, fidelities=True, iterations=3)
    for rows in ([], history[4:]):
        with pytest.raises(InvalidArgumentError, match="Expected a row with an outcome; Received"):
            bc.task_from_history(rows, fidelities=True)


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
    ("history", "options", "message"),
    [
        ([], {}, "history: Expected a row with an outcome; Received 'none in 0 rows'"),
        ([ROW], {}, "history: Expected a row with an outcome"),
        ([{**ROW, "reward": 1.0}], {"where": lambda row: False}, "outcome that where chooses"),
        ([{"x": 1}], {}, "history: Expected the rows of an optimizer: "),
        ([3], {}, "history: Expected the rows"),
        (ROW, {}, "history: Expected the rows"),
    ],
)
def test_what_is_no_history(history, options, message):
    with pytest.raises(InvalidArgumentError, match=message):
        bc.task_from_history(history, **options)
    with pytest.raises(InvalidArgumentError, match=message):
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
    curves = [{**segment(0, 0, 3.0), "reward": 3.0}, {**segment(1, 0, math.nan), "failed": True}]
    assert bc.task_from_history(curves).values == (3.0,)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{**ROW, "round": "0", "reward": 1.0}], "round 0: Expected a number of a round"),
        ([{**ROW, "round": None, "reward": 1.0}], "Expected a number of a round"),
        ([{**ROW, "reward": "0.8"}], "round 0: Expected a number or None as the reward"),
        ([{**ROW, "config": None, "reward": 1.0}], "round 0: Expected a configuration"),
        ([{**ROW, "config": "x=1", "reward": 1.0}], "round 0: Expected a configuration"),
        ([{**ROW, "training": 0, "reward": 1.0}], "round 0: Expected the entry broken"),
        ([{**ROW, "reward": 1.0}, segment(1, 0, 1.0)], "history: Expected rows of one optimizer"),
        ([members(None)], "round 0: Expected as many metrics as there are configs"),
        ([members([1.0])], "round 0: Expected as many metrics as there are configs"),
        ([members([1.0, "0.5"])], "Expected a number, None or 'failed' as a metric"),
        ([{**members([1.0, 2.0]), "configs": [{"x": 0.1}, 3]}], "Expected a configuration, values"),
        (
            [segment(0, 0, 1.0), {**segment(0, 0, 2.0), "config": {"x": 0.9}}],
            "history: Expected one configuration of training 0",
        ),
    ],
)
def test_rows_that_are_none_of_a_history_are_named(rows, message):
    with pytest.raises(InvalidArgumentError, match=message):
        bc.task_from_history(rows)


def test_fidelities_of_any_kind_are_compared():
    row = {**ROW, "reward": 1.0}
    rows = [{**row, "fidelities": {"a": [1]}}, {**row, "fidelities": {"a": [2]}}]
    assert len(bc.task_from_history(rows[:1])) == 1
    with pytest.raises(InvalidArgumentError, match="history: Expected equal fidelities"):
        bc.task_from_history(rows)


def test_curves_of_a_search_are_read_with_their_progress():
    search = bc.CurveOptimizer(LINE, 8, seed=1)
    first = search.ask()
    search.tell(first, [0.1 * k for k in range(1, first.until + 1)])
    search.tell(search.enqueue(first.config, 4, training=first.training), [0.3, None, 0.5])
    search.tell(search.enqueue({"x": 0.5}, 2), [0.2, math.nan])
    search.tell(search.enqueue({"x": 0.25}, 8), None)
    task = bc.task_from_history(search.history, iterations=8)
    read = [
        (c["x"], v, s) for c, v, s in zip(task.configs, task.values, task.progress, strict=True)
    ]
    x = first.config["x"]
    assert read == [(x, 0.1, 1 / 8), (x, 0.3, 2 / 8), (x, 0.5, 4 / 8), (0.5, None, 1 / 8)]
    named = bc.task_from_history(search.history, iterations=8, name="last month")
    assert named.name == "last month"


def test_only_a_search_over_curves_has_curves():
    with pytest.raises(InvalidArgumentError, match="history: Expected rows of a CurveOptimizer"):
        bc.task_from_history(online_history(), iterations=8)
