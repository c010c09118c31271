"""Configurations as a user gives them, in plain values of the parameters."""

import io
import json

import numpy as np
import pytest
import torch

from botorch_costly.errors import InvalidConfigError, InvalidSpaceError
from botorch_costly.space import Choice, Integer, Real, SearchSpace

BETAS = [(0.9, 0.999), (0.8, 0.99)]
SPACE = SearchSpace(
    {
        "lr": Real(1e-3, 0.1, log=True),
        "layers": Integer(1, 4),
        "betas": Choice(BETAS),
        "drop": Choice([0.1, 0.3]),
        "nesterov": Choice([True, False]),
    }
)
PLAIN = {"lr": 0.05, "layers": 2, "betas": (0.9, 0.999), "drop": 0.3, "nesterov": True}


def tensor(value, **options):
    double = isinstance(value, float)
    return torch.tensor(value, dtype=torch.float64 if double else None, **options if double else {})


SCALARS = {
    "NumPy": lambda x: np.array(x)[()],
    "NumPy, 0-d": np.array,
    "torch": tensor,
    "with a gradient": lambda x: tensor(x, requires_grad=True),
}


def types(config):
    return {name: type(value) for name, value in config.items()}


@pytest.mark.parametrize("scalar", SCALARS.values(), ids=SCALARS)
def test_scalars_of_any_library_become_plain(scalar):
    given = {name: scalar(value) for name, value in PLAIN.items() if name != "betas"}
    given["betas"] = (scalar(0.9), 0.999)
    canonical = SPACE.canonical(given)
    assert canonical == PLAIN
    assert types(canonical) == types(PLAIN)
    assert list(canonical) == list(SPACE.names)
    assert json.dumps(canonical)
    torch.testing.assert_close(SPACE.encode(given), SPACE.encode(PLAIN))


def test_plain_configurations_stay_as_they_are():
    assert SPACE.canonical(PLAIN) == PLAIN
    assert types(SPACE.canonical(PLAIN)) == types(PLAIN)


def test_integers_given_for_real_parameters_become_floats():
    space = SearchSpace({"x": Real(0, 10)})
    value = space.canonical({"x": 3})["x"]
    assert (type(value), value) == (float, 3.0)


@pytest.mark.parametrize("single", [np.float32, lambda x: torch.tensor(x, dtype=torch.float32)])
def test_bounds_and_options_are_met_in_single_precision(single):
    """Rounded to single precision 0.1 is above 0.1, and 0.001 is above 0.001."""
    given = {**PLAIN, "lr": single(0.1), "drop": single(0.1), "betas": (single(0.8), single(0.99))}
    canonical = SPACE.canonical(given)
    assert canonical == {**PLAIN, "lr": 0.1, "drop": 0.1, "betas": (0.8, 0.99)}
    assert SPACE.canonical({**PLAIN, "lr": single(1e-3)})["lr"] == 1e-3
    with pytest.raises(InvalidConfigError, match=r"lr: Expected a number in \[0.001, 0.1\]"):
        SPACE.canonical({**PLAIN, "lr": single(0.1001)})
    with pytest.raises(InvalidConfigError, match="lr: Expected a number in"):
        SPACE.canonical({**PLAIN, "lr": 0.10000000149})  # in double precision no bound


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layers": 3.0}, r"layers: Expected an integer; Received 3\.0"),
        ({"layers": np.float64(3)}, "layers: Expected an integer; Received"),
        ({"layers": torch.tensor(3.0)}, "layers: Expected an integer; Received"),
        ({"layers": np.True_}, "layers: Expected an integer; Received"),
        ({"layers": np.int64(5)}, r"layers: Expected an integer in \[1, 4\]; Received"),
        ({"lr": np.array([0.05])}, "lr: Expected a number; Received"),
        ({"lr": 1j}, "lr: Expected a number; Received"),
        ({"lr": torch.tensor(float("nan"))}, "lr: Expected a number in"),
        ({"nesterov": 1}, "nesterov: Expected one of"),
        ({"nesterov": np.int64(1)}, "nesterov: Expected one of"),
        ({"drop": np.float32(0.2)}, "drop: Expected one of"),
        ({"betas": [0.9, 0.999]}, "betas: Expected one of .*, a tuple in place of a list; Rec"),
        ({"betas": (0.9,)}, "betas: Expected one of"),
        ({"betas": (0.9, 0.998)}, "betas: Expected one of"),
    ],
)
def test_messages_speak_of_types_or_of_ranges(change, message):
    with pytest.raises(InvalidConfigError, match=message):
        SPACE.canonical({**PLAIN, **change})


def test_options_may_be_tuples():
    back = SearchSpace.from_dict(json.loads(json.dumps(SPACE.to_dict())))
    assert back == SPACE
    assert back.fingerprint() == SPACE.fingerprint()
    assert dict(back.parameters)["betas"].options == tuple(BETAS)
    assert SPACE.decode(SPACE.encode(PLAIN))["betas"] == (0.9, 0.999)
    assert hash(SPACE) == hash(back)


def test_options_in_tuples_match_with_their_types():
    space = SearchSpace({"a": Choice([(1, (2.0, None)), ()])})
    assert space.canonical({"a": (1, (2.0, None))}) == {"a": (1, (2.0, None))}
    assert space.canonical({"a": ()}) == {"a": ()}
    for other in ((1.0, (2.0, None)), (True, (2.0, None)), (1, (2, None)), (1, (2.0,)), (1,)):
        with pytest.raises(InvalidConfigError):
            space.check({"a": other})
    with pytest.raises(InvalidSpaceError, match="distinct"):
        Choice([(1,), (1.0,)])


@pytest.mark.parametrize("option", [[1], (1, [2]), (float("nan"),), ({},), torch.Size([1])])
def test_options_that_are_not_plain_are_named(option):
    with pytest.raises(InvalidSpaceError, match=r"Choice: Expected .*a tuple in place of a list"):
        Choice([option, "a"])


def test_tuples_are_saved_and_loaded_as_weights_alone():
    file = io.BytesIO()
    torch.save(PLAIN, file)
    file.seek(0)
    assert torch.load(file, weights_only=True) == PLAIN


def test_bounds_may_be_scalars():
    assert Real(np.float64(0.5), torch.tensor(2)) == Real(0.5, 2.0)
    bounds = Integer(np.int64(1), torch.tensor(3))
    assert bounds == Integer(1, 3)
    assert (type(bounds.low), type(bounds.high)) == (int, int)


def test_the_scale_is_named():
    with pytest.raises(TypeError):
        Real(0.1, 1.0, True)
    with pytest.raises(TypeError):
        Integer(1, 4, True)
