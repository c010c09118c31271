"""Records: frozen, plain, picklable."""

import copy
import dataclasses
import json
import math
import pickle

import numpy as np
import pytest
import torch

from botorch_costly.errors import InvalidArgumentError, InvalidConfigError, StateMismatchError
from botorch_costly.records import Decision, FrozenConfig, Observation, TwinDecision

CONFIG = {"lr": 0.1, "layers": 2, "policy": "light", "flag": True, "seed": None}
PEAK = {**CONFIG, "lr": 0.2, "policy": ("light", 2)}
TWIN = {"peak": PEAK, "trained": 2, "keep": 1, "restore": 0, "drop": (3, 4)}


@pytest.fixture(params=["decision", "twin", "observation", "failed"])
def record(request):
    return {
        "decision": Decision(3, CONFIG, query=True, reason="rivals", confidence=0.7),
        "twin": TwinDecision(3, CONFIG, query=True, reason="a trial", **TWIN),
        "observation": Observation(3, CONFIG, reward=-0.5, seconds=1.5),
        "failed": Observation(4, CONFIG, failed=True),
    }[request.param]


def test_configurations_call_functions():
    decision = Decision(0, CONFIG, query=False, reason="")
    assert (lambda **config: config)(**decision.config) == CONFIG
    assert decision.config == CONFIG


def test_configurations_are_read_only():
    source = dict(CONFIG)
    config = Decision(0, source, query=False, reason="").config
    source["lr"] = 5.0
    assert config["lr"] == 0.1
    with pytest.raises(TypeError):
        config["lr"] = 1.0
    with pytest.raises(TypeError):
        del config["lr"]
    with pytest.raises(AttributeError, match="read-only"):
        config.values_ = {}
    assert config == CONFIG


def assign_union(config):
    config |= {"lr": 1.0}


@pytest.mark.parametrize(
    "change",
    [
        assign_union,
        lambda config: config.update(lr=1.0),
        lambda config: config.pop("lr"),
        lambda config: config.popitem(),
        lambda config: config.clear(),
        lambda config: config.setdefault("new", 1.0),
        lambda config: config.setdefault("lr"),
    ],
)
def test_no_method_changes_a_configuration(change):
    config = FrozenConfig(CONFIG)
    with pytest.raises(TypeError, match=r"read-only; dict\(config\) is a copy to change"):
        change(config)
    assert config == CONFIG
    assert hash(config) == hash(FrozenConfig(CONFIG))


def test_configurations_are_dicts_to_a_reader():
    config = FrozenConfig(CONFIG)
    assert json.loads(json.dumps(config)) == CONFIG
    assert isinstance(config, dict)
    for changed in (config.copy(), dict(config), config | {}, {} | config, {**config}):
        assert type(changed) is dict
        changed["lr"] = 1.0
    assert config == CONFIG
    assert dict(config, lr=0.2) == config | {"lr": 0.2} == {**CONFIG, "lr": 0.2}


def test_scalars_become_python_numbers():
    given = {"a": np.float32(0.5), "b": np.int64(3), "c": torch.tensor(True), "d": (np.float64(1),)}
    config = FrozenConfig(given)
    assert config == {"a": 0.5, "b": 3, "c": True, "d": (1.0,)}
    assert [type(value) for value in config.values()] == [float, int, bool, tuple]
    assert type(config["d"][0]) is float


def test_tuples_survive_json():
    config = {"betas": (0.9, 0.999), "nested": ((1, None), "a")}
    decision = Decision(0, config, query=True, reason="")
    values = json.loads(json.dumps(decision.to_dict()))
    assert values == decision.to_dict()
    back = Decision.from_dict(values)
    assert back == decision
    assert hash(back) == hash(decision)
    assert back.config["nested"] == ((1, None), "a")
    with pytest.raises(InvalidConfigError, match=r"betas: Expected .*a tuple in place of a list"):
        FrozenConfig({"betas": [0.9, 0.999]})


def test_whether_to_query_is_named():
    with pytest.raises(TypeError):
        Decision(0, CONFIG, True, "")
    with pytest.raises(TypeError):
        Observation(0, CONFIG, None, True)


def test_rounds_are_python_integers():
    decision = Decision(np.int64(3), CONFIG, query=True, reason="", interval=2.0)
    assert (type(decision.round), type(decision.interval)) == (int, int)
    assert json.loads(json.dumps(decision.to_dict()))["round"] == 3
    assert type(Observation(3.0, CONFIG).round) is int


def test_configurations_compare_and_hash_whatever_the_order():
    a, b = FrozenConfig({"x": 1, "y": 2}), FrozenConfig({"y": 2, "x": 1})
    assert a == b
    assert hash(a) == hash(b)
    assert a != FrozenConfig({"x": 1, "y": 3})
    assert repr(a) == "FrozenConfig({'x': 1, 'y': 2})"


def test_records_are_frozen(record):
    with pytest.raises(dataclasses.FrozenInstanceError):
        record.round = 4


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda r: pickle.loads(pickle.dumps(r))]
)
def test_records_copy_and_pickle(record, copied):
    assert copied(record) == record
    assert hash(copied(record)) == hash(record)
    assert isinstance(copied(record).config, FrozenConfig)


def test_records_survive_json(record):
    values = json.loads(json.dumps(record.to_dict(), allow_nan=False))
    assert values == record.to_dict()
    assert type(record).from_dict(values) == record


def test_records_work_with_dataclass_functions(record):
    assert dataclasses.asdict(record)["config"] == CONFIG
    assert dataclasses.replace(record, round=9).round == 9


@pytest.mark.parametrize(
    "change", [{"round": -1}, {"extra": 1}, {"config": {"lr": {}}}, {"config": 3}]
)
def test_foreign_states_are_named(record, change):
    with pytest.raises(StateMismatchError, match=type(record).__name__):
        type(record).from_dict({**record.to_dict(), **change})
    with pytest.raises(StateMismatchError):
        type(record).from_dict({"round": 1})
    with pytest.raises(StateMismatchError):
        type(record).from_dict(None)


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        (Decision, {"round": 1.5}),
        (Decision, {"query": 1}),
        (Decision, {"reason": None}),
        (Decision, {"confidence": 1.1}),
        (Decision, {"confidence": math.nan}),
        (TwinDecision, {"query": 1}),
        (TwinDecision, {"trained": -1}),
        (TwinDecision, {"trained": 0.5}),
        (TwinDecision, {"keep": -1}),
        (TwinDecision, {"keep": True}),
        (TwinDecision, {"restore": 1.5}),
        (TwinDecision, {"restore": "0"}),
        (TwinDecision, {"drop": (1, -1)}),
        (TwinDecision, {"drop": (None,)}),
        (TwinDecision, {"drop": 3}),
        (Observation, {"round": True}),
        (Observation, {"reward": math.nan}),
        (Observation, {"reward": math.inf}),
        (Observation, {"reward": True}),
        (Observation, {"reward": "1"}),
        (Observation, {"reward": 1.0, "failed": True}),
        (Observation, {"failed": 0}),
        (Observation, {"seconds": -1.0}),
    ],
)
def test_impossible_fields_are_named(kind, change):
    fields = {"round": 0, "config": CONFIG}
    if issubclass(kind, Decision):
        fields |= {"query": True, "reason": ""}
    kind(**fields)
    with pytest.raises(InvalidArgumentError, match=r"Expected .*; Received "):
        kind(**{**fields, **change})


@pytest.mark.parametrize("config", [{"a": [1]}, {"a": math.nan}, {1: 2}, [("a", 1)], None])
def test_configurations_hold_plain_values_alone(config):
    with pytest.raises(InvalidConfigError):
        Decision(0, config, query=True, reason="")


def test_twin_decisions_tell_what_is_done_with_states():
    twin = TwinDecision(3, CONFIG, query=True, reason="", **TWIN)
    assert (twin.trained, twin.keep, twin.restore, twin.drop) == (2, 1, 0, (3, 4))
    assert twin.peak == PEAK
    assert isinstance(twin.peak, FrozenConfig)
    read = TwinDecision.from_dict(json.loads(json.dumps(twin.to_dict())))
    assert read.peak["policy"] == ("light", 2)
    assert type(read.drop) is tuple
    for name, other in {
        "peak": CONFIG,
        "trained": 1,
        "keep": 0,
        "restore": None,
        "drop": (),
    }.items():
        assert dataclasses.replace(twin, **{name: other}) != twin
    counted = TwinDecision(3, CONFIG, query=True, reason="", keep=np.int64(1), restore=0.0)
    assert (type(counted.keep), type(counted.restore)) == (int, int)
    plain = TwinDecision(3, CONFIG, query=True, reason="")
    assert plain.peak == CONFIG
    assert plain != Decision(3, CONFIG, query=True, reason="")
    with pytest.raises(InvalidConfigError):
        TwinDecision(3, CONFIG, query=True, reason="", peak={"lr": [1]})


@pytest.mark.parametrize("change", [{"peak": 3}, {"peak": {"lr": {}}}, {"keep": -1}, {"drop": 3}])
def test_foreign_states_of_twin_decisions_are_named(change):
    values = TwinDecision(3, CONFIG, query=True, reason="", **TWIN).to_dict()
    with pytest.raises(StateMismatchError, match="TwinDecision"):
        TwinDecision.from_dict({**values, **change})
    with pytest.raises(StateMismatchError, match="TwinDecision"):
        TwinDecision.from_dict({name: values[name] for name in values if name != "peak"})
