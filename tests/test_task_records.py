"""Earlier studies: plain and frozen, and encoded in a space that need not be theirs."""

import copy
import dataclasses
import json
import logging
import math
import pickle

import numpy as np
import pytest
import torch

from botorch_costly.errors import (
    InvalidArgumentError,
    InvalidConfigError,
    InvalidShapeError,
    InvalidSpaceError,
    StateMismatchError,
)
from botorch_costly.parameters import Choice, Integer, Real, Scheduled
from botorch_costly.space import SearchSpace
from botorch_costly.task_records import Task

BETAS = [(0.9, 0.999), (0.8, 0.99)]
SPACE = SearchSpace(
    {
        "lr": Scheduled(1e-4, 0.1),
        "drop": Real(0, 0.6),
        "layers": Integer(1, 4),
        "width": Integer(8, 512, log=True),
        "policy": Choice(["a", "b", "c"]),
        "betas": Choice(BETAS),
        "nesterov": Choice([True]),
    }
)
CONFIG = {
    "lr": 0.01,
    "drop": 0.3,
    "layers": 2,
    "width": 64,
    "policy": "b",
    "betas": (0.8, 0.99),
    "nesterov": True,
}
LINE = SearchSpace({"x": Real(0, 1)})


@pytest.fixture
def configs(generator):
    return [SPACE.decode(x) for x in SPACE.sample(30, generator)]


def encoded_of(space, configs, **options):
    values = [float(i) for i in range(len(configs))]
    return Task(configs, values).in_space(space, **options)


# -- the record ------------------------------------------------------------------------------------


TASKS = {
    "by name": Task([CONFIG, {"policy": "c"}], [0.5, math.nan], name="digits"),
    "rows": Task(torch.tensor([[0.1, 2.0], [0.2, 0.0]]), [1, None]),
    "named rows": Task(np.array([[0.1, 2], [0.2, 0]]), [1, -math.inf], names=["lr", "policy"]),
}
every_task = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)


@every_task
def test_a_task_survives_json_and_pickling_and_is_hashed(task):
    copies = [
        Task.from_dict(json.loads(json.dumps(task.to_dict(), allow_nan=False))),
        pickle.loads(pickle.dumps(task)),
        copy.deepcopy(task),
    ]
    for other in copies:
        assert other == task
        assert hash(other) == hash(task)
        assert other.to_dict() == task.to_dict()
    assert task.values[1] is None
    assert len(task) == 2


def test_tasks_differ_by_each_entry():
    base = {"configs": [[0.1, 2.0]], "values": [1.0], "name": "a", "names": ["lr", "policy"]}
    others = [{"configs": [[0.2, 2.0]]}, {"values": [2.0]}, {"name": "b"}, {"names": None}]
    for change in others:
        assert Task(**base) != Task(**{**base, **change})


@every_task
def test_a_task_cannot_be_changed(task):
    with pytest.raises(dataclasses.FrozenInstanceError):
        task.values = ()
    assert type(task.configs) is type(task.values) is tuple
    with pytest.raises(TypeError):
        task.configs[0][0] = 5.0


def test_a_task_keeps_nothing_of_what_it_was_made_of():
    configs, values, names = [dict(CONFIG)], [1.0], ["x"]
    rows = np.ones((1, 1))
    by_name, by_row = Task(configs, values), Task(rows, values, names=names)
    configs[0]["lr"], values[0], names[0], rows[0, 0] = 5.0, 5.0, "y", 5.0
    assert by_name.configs[0]["lr"] == 0.01
    assert by_name.values == by_row.values == (1.0,)
    assert (by_row.configs, by_row.names) == (((1.0,),), ("x",))


@pytest.mark.parametrize(
    "values",
    [
        [1, 2.5, None],
        (1.0, 2.5, math.inf),
        [np.int64(1), np.float32(2.5), np.float64("nan")],
        [torch.tensor(1), torch.tensor([2.5])[0], torch.tensor(math.nan)],
        np.array([1, 2.5, -np.inf]),
        np.array([[1], [2.5], [np.nan]], dtype=np.float32),
        torch.tensor([1, 2.5, math.nan], requires_grad=True),
        torch.tensor([[1], [2.5], [math.inf]]),
        [1, 2.5, 10**400],
    ],
    ids=repr,
)
def test_values_are_floats_or_none(values):
    task = Task([{"x": 0.1}] * 3, values)
    assert task.values == (1.0, 2.5, None)
    assert [type(value) for value in task.values] == [float, float, type(None)]


@pytest.mark.parametrize("value", ["0.5", True, np.True_, 1j, [1.0], {}], ids=repr)
def test_what_is_no_value(value):
    with pytest.raises(InvalidArgumentError, match=r"^values\[1\]: Expected a number, or None"):
        Task([{"x": 0.1}] * 2, [1.0, value])


@pytest.mark.parametrize(
    ("configs", "values", "names", "error", "said"),
    [
        ([{"x": 1}], [1.0, 2.0], None, InvalidShapeError, "values: Expected 1 numbers.*'2'"),
        ([{"x": 1}], 1.0, None, InvalidShapeError, "values: Expected a row of numbers"),
        ([{"x": 1}], np.ones((1, 2)), None, InvalidArgumentError, r"values\[0\]"),
        ([], [], None, InvalidShapeError, "configs: Expected at least one observation"),
        (np.ones((0, 2)), [], None, InvalidShapeError, "configs: Expected at least one obs"),
        (np.ones(2), [1.0] * 2, None, InvalidShapeError, r"configs: Expected .*n x d.*\(2,\)"),
        (np.ones((1, 2, 3)), [1.0], None, InvalidShapeError, "configs: Expected .*n x d"),
        ([[1.0, 2.0], [1.0]], [1.0] * 2, None, InvalidShapeError, "configs: Expected .*n x d"),
        ([{"x": 1}, [1.0]], [1.0] * 2, None, InvalidShapeError, "configs: Expected a list of m"),
        ("ab", [1.0] * 2, None, InvalidShapeError, "configs: Expected a list of mappings"),
        ({"x": 1}, [1.0], None, InvalidShapeError, "configs: Expected a list of mappings"),
        ([[0.1], [math.nan]], [1.0] * 2, None, InvalidShapeError, r"finite numbers.*\[1, 0\]"),
        (np.ones((1, 2)), [1.0], ["x"], InvalidShapeError, r"1 columns.*\['x'\]; Received '2'"),
        (np.ones((1, 2)), [1.0], ["x", "x"], InvalidArgumentError, "names: .* distinct strings"),
        (np.ones((1, 1)), [1.0], "x", InvalidArgumentError, "names: Expected a list"),
        ([{"x": 1}], [1.0], ["x"], InvalidArgumentError, "names: Expected None"),
        ([{"x": [1]}], [1.0], None, InvalidConfigError, "x: Expected a str"),
        ([{"x": math.nan}], [1.0], None, InvalidConfigError, "x: Expected a str"),
        ([{1: 1}], [1.0], None, InvalidConfigError, "config: Expected string names"),
    ],
)
def test_what_is_no_task(configs, values, names, error, said):
    with pytest.raises(error, match=said):
        Task(configs, values, names=names)
    with pytest.raises(InvalidArgumentError, match="name: Expected a string or None"):
        Task([{"x": 1}], [1.0], name=3)


@pytest.mark.parametrize(
    "entries",
    [
        None,
        {},
        {"configs": 3, "values": [1.0]},
        {"configs": [{"x": 1}], "values": ["1"]},
        {"configs": [{"x": 1}], "values": [1.0], "seed": 1},
    ],
)
def test_what_is_no_saved_task(entries):
    with pytest.raises(StateMismatchError, match=r"Expected the plain values of Task\.to_dict"):
        Task.from_dict(entries)


def test_the_text_of_a_task_is_short():
    mixed = [{"a": 1}, {"b": 2}] * 500
    assert repr(Task(mixed, [0.0] * 1000)) == "Task(1000 observations of 'a', 'b')"
    assert repr(TASKS["rows"]) == "Task(2 observations of 2 columns)"
    assert repr(TASKS["by name"]).startswith("Task('digits', 2 observations of 'lr', 'drop'")


# -- in the space of the study ---------------------------------------------------------------------


def test_points_are_those_of_the_space_in_order(configs):
    encoded = encoded_of(SPACE, configs)
    one_by_one = torch.stack([SPACE.encode(config) for config in configs])
    # A logarithm of a column may differ in its last bit from those of its entries.
    torch.testing.assert_close(encoded.points, one_by_one, rtol=0, atol=1e-15)
    assert encoded.points.dtype == encoded.values.dtype == torch.float64
    assert encoded.values.tolist() == list(range(len(configs)))
    assert encoded.kept == tuple(range(len(configs)))
    assert (encoded.left_out, encoded.outside, encoded.filled, encoded.ignored) == (0, {}, {}, ())


def test_rows_are_the_same_points_as_mappings(configs):
    options = {name: p.options for name, p in SPACE.parameters if isinstance(p, Choice)}
    rows = [
        [options[name].index(v) if name in options else float(v) for name, v in config.items()]
        for config in configs
    ]
    expected = encoded_of(SPACE, configs).points
    for given in (
        rows,
        tuple(map(tuple, rows)),
        np.array(rows),
        torch.tensor(rows, dtype=torch.float64),
    ):
        assert torch.equal(encoded_of(SPACE, given).points, expected)
    turned = np.array(rows)[:, ::-1]
    task = Task(turned, [0.0] * len(rows), names=SPACE.names[::-1])
    assert torch.equal(task.in_space(SPACE).points, expected)


def test_large_tasks_are_encoded_column_by_column(monkeypatch):
    calls = []
    original = Real.to_unit
    monkeypatch.setattr(Real, "to_unit", lambda *a: calls.append(1) or original(*a))
    grid = torch.linspace(0, 1, 10_000, dtype=torch.float64).unsqueeze(-1)
    encoded = encoded_of(LINE, grid)
    assert torch.equal(encoded.points, grid)
    assert len(calls) < 5


@pytest.mark.parametrize(
    "wrap",
    [np.float64, np.float32, torch.tensor, lambda v: torch.tensor(v).requires_grad_()],
    ids=["NumPy", "NumPy, single", "torch", "with a gradient"],
)
def test_scalars_of_numpy_and_torch_are_numbers(wrap):
    ends = [{**CONFIG, "lr": wrap(lr), "betas": tuple(map(wrap, BETAS[1]))} for lr in (1e-4, 0.1)]
    encoded = encoded_of(SPACE, ends)
    assert encoded.points[:, 0].tolist() == pytest.approx([0.0, 1.0], abs=1e-6)
    assert torch.equal(
        encoded.points[:, SPACE.columns["betas"]], torch.tensor([[0.0, 1.0]] * 2).double()
    )


def test_bounds_of_single_precision_are_bounds():
    space = SearchSpace({"x": Real(0.1, 0.3), "y": Real(0.7, 0.9)})
    assert float(np.float32(0.3)) > 0.3
    assert float(np.float32(0.7)) < 0.7
    encoded = encoded_of(space, np.array([[0.3, 0.7]], dtype=np.float32))
    assert encoded.points.tolist() == [[1.0, 0.0]]


# -- in another space ------------------------------------------------------------------------------


def test_what_the_space_lacks_is_ignored():
    encoded = encoded_of(LINE, [{"x": 0.25, "seed": 3}, {"host": None, "x": 0.5}])
    assert encoded.points.tolist() == [[0.25], [0.5]]
    assert encoded.ignored == ("seed", "host")
    rows = Task(np.array([[9.0, 0.25]]), [0.0], names=["seed", "x"]).in_space(LINE)
    assert rows.points.tolist() == [[0.25]]
    assert rows.ignored == ("seed",)


def test_what_the_study_lacks_is_in_the_middle():
    encoded = encoded_of(SPACE, [{"layers": 2}])
    config = SPACE.decode(encoded.points[0])
    assert config["lr"] == pytest.approx(10**-2.5)
    assert config["drop"] == pytest.approx(0.3)
    assert (config["policy"], config["betas"], config["layers"]) == ("a", BETAS[0], 2)
    middle = torch.tensor([(math.log(7.5) + math.log(512.5)) / 2]).exp().item()
    assert config["width"] == round(middle)
    torch.testing.assert_close(SPACE.round(encoded.points), encoded.points)
    assert encoded.filled == {n: 1 for n in SPACE.names if n != "layers"}
    assert encoded.left_out == 0


def test_what_the_study_lacks_may_be_given():
    fill = {name: value for name, value in CONFIG.items() if name != "layers"}
    encoded = encoded_of(SPACE, [{"layers": 2}, {"layers": 2, "policy": "c"}], fill=fill)
    assert torch.equal(encoded.points[0], SPACE.encode(CONFIG))
    assert SPACE.decode(encoded.points[1])["policy"] == "c"
    assert (encoded.filled["policy"], encoded.filled["lr"]) == (1, 2)
    for wrong in ({"momentum": 0.9}, {"lr": 9.0}, {"policy": "d"}, ["lr"]):
        with pytest.raises(InvalidConfigError):
            encoded_of(SPACE, [CONFIG], fill=wrong)


def test_filled_are_only_those_kept():
    task = Task([{"x": 0.1, "y": 0.1}, {"x": 5.0}, {"x": 0.2}, {"x": 0.3}], [1, 2, None, 4])
    space = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)})
    encoded = task.in_space(space)
    assert (encoded.kept, encoded.filled) == ((0, 3), {"y": 1})


OUTSIDE = {
    "lr": [0.2, 9e-5, 0.0, -1.0, "0.01", None, True, (0.01,), 10**400],
    "drop": [False, -1e-9, 0.61],
    "layers": [0, 5, 2.5, "2", True],
    "policy": ["d", 1, None, ("a",)],
    "betas": [(0.9, 0.9), (0.9,), 0.9],
    "nesterov": [False, None, 0],
}


@pytest.mark.parametrize(
    ("name", "value"), [(n, v) for n, vs in OUTSIDE.items() for v in vs], ids=repr
)
def test_what_is_outside_is_left_out_and_counted(name, value, caplog):
    task = Task([CONFIG, {**CONFIG, name: value}, CONFIG, CONFIG], [0, 1, 2, None])
    encoded = task.in_space(SPACE)
    assert encoded.kept == (0, 2)
    assert encoded.values.tolist() == [0.0, 2.0]
    assert torch.equal(encoded.points, SPACE.encode(CONFIG).expand(2, -1))
    assert (encoded.failed, encoded.outside, encoded.left_out) == (1, {name: 1}, 2)
    assert caplog.records == []  # half of them


def test_each_observation_is_left_out_for_one_reason():
    outside = {**CONFIG, "lr": 9.0, "policy": "d"}
    task = Task([outside, outside, CONFIG], [None, 1.0, 1.0])
    encoded = task.in_space(SPACE)
    assert (encoded.failed, encoded.outside) == (1, {"lr": 1})


def test_a_warning_if_most_are_left_out(caplog):
    caplog.set_level(logging.WARNING)
    task = Task([{"x": 0.5}, {"x": 2}, {"x": 3}, {"x": 4}, {"x": 1}], [1, 1, 1, None, 1], name="a")
    task.in_space(LINE)
    (record,) = caplog.records
    said = "Of task 'a' 3 observations of 5 are left out (1 failed, 2 by 'x'): is the space right?"
    assert record.getMessage() == said


def test_numbers_and_texts_of_files_are_known():
    space = SearchSpace(
        {
            "layers": Integer(1, 4),
            "flag": Choice([True, False, None]),
            "k": Choice(["1", "2"]),
            "beta": Choice([1.0, 2]),
            "both": Choice([1, "1"]),
        }
    )
    read = {"layers": 3.0, "flag": "False", "k": 2, "beta": 1, "both": "1"}
    exact = {"layers": 3, "flag": False, "k": "2", "beta": 1.0, "both": "1"}
    both = encoded_of(space, [read, {**read, "flag": "None", "both": 1}]).points
    assert torch.equal(both[0], space.encode(exact))
    assert space.decode(both[1]) == {**exact, "flag": None, "both": 1}


@pytest.mark.parametrize("number", [-1.0, 3.0, 0.5])
def test_a_number_of_no_option_is_outside(number):
    space = SearchSpace({"policy": Choice(["a", "b", "c"])})
    assert encoded_of(space, [[number], [2.0]]).kept == (1,)


def test_a_task_that_is_of_no_use_says_so():
    with pytest.raises(
        InvalidConfigError, match=r"^task 'old': Expected some .*\['x'\]; .*\['y'\]"
    ):
        Task([{"y": 1}], [1.0], name="old").in_space(LINE)
    with pytest.raises(
        InvalidConfigError, match=r"^task: Expected an observation .*1 failed, 1 by 'x'"
    ):
        Task([{"x": 2}, {"x": 0.5}], [1.0, math.nan]).in_space(LINE)
    with pytest.raises(InvalidShapeError, match=r"configs: .*\['x'\]; Received '2 columns'"):
        Task(np.ones((1, 2)), [1.0]).in_space(LINE)
    with pytest.raises(InvalidSpaceError, match="space: Expected a SearchSpace"):
        Task([{"x": 2}], [1.0]).in_space({"x": Real(0, 1)})


def test_a_space_of_a_single_configuration_has_no_columns():
    space = SearchSpace({"policy": Choice(["a"])})
    encoded = encoded_of(space, [{"policy": "a"}, {"policy": "b"}])
    assert encoded.points.shape == (1, 0)
    assert encoded.kept == (0,)
