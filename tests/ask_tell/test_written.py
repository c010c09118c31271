"""Kind: a file is written without a word, and cannot be read again."""

import collections
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from torch import nn

import botorch_costly as bc
from botorch_costly import errors
from botorch_costly.integrations.loggers import LoggedTuner

SPACE = bc.SearchSpace({"lr": bc.Real(1e-4, 1e-1, log=True)})
ARMS = bc.SearchSpace({"lr": bc.Choice([1e-3, 1e-2])})


class Part:
    """A part whose state is what it is given."""

    def __init__(self, value):
        self.value = value

    def state_dict(self):
        return {"inner": [self.value]}

    def load_state_dict(self, state):
        self.value = state["inner"][0]


PAIR = collections.namedtuple("PAIR", "a b")
UNREADABLE = {
    "array": np.ones(2),
    "object": object(),
    "function": lambda: 1,
    "frozenset": frozenset({1}),
    "defaultdict": collections.defaultdict(list, a=[torch.ones(1)]),
    "named tuple": PAIR(1, 2),
    "key": {np.int64(1): 2},
    "date": np.datetime64("2020-01-01"),
}


@pytest.mark.parametrize("value", UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read_is_refused_and_the_file_is_kept(value, tmp_path):
    path = tmp_path / "run.pt"
    bc.save(path, network=nn.Linear(1, 1))
    before = path.read_bytes()
    for target in (path, tmp_path / "new" / "run.pt"):
        with pytest.raises(errors.InvalidArgumentError, match=r"^part\['inner'\]\[0\]"):
            bc.save(target, network=nn.Linear(1, 1), part=Part(value))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


READABLE = {
    "counter": collections.Counter("aab"),
    "ordered": collections.OrderedDict(a=torch.ones(1)),
    "set": {1, 2},
    "kinds": (torch.float32, torch.Size([1]), torch.device("cpu")),
    "numbers": [1, 1.5, True, None, 1j, b"a"],
}


@pytest.mark.parametrize("value", READABLE.values(), ids=READABLE)
def test_what_can_be_read_comes_back_as_it_was(value, tmp_path):
    bc.save(tmp_path / "run.pt", part=Part(value))
    other = Part(None)
    bc.load(tmp_path / "run.pt", part=other)
    assert other.value == value
    assert type(other.value) is type(value)


@pytest.mark.parametrize("value", [np.float64(0.1), np.float32(0.5), np.int64(3), np.bool_(True)])
def test_numbers_of_numpy_are_those_of_python(value, tmp_path):
    part, other = Part(value), Part(None)
    bc.save(tmp_path / "run.pt", part=part)
    bc.load(tmp_path / "run.pt", part=other)
    assert other.value == value
    assert type(other.value) is type(value.item())
    assert part.value is value  # the part keeps its own


def test_an_optimizer_with_a_rate_of_numpy_goes_on(tmp_path):
    network = nn.Linear(2, 1)
    optimizer = torch.optim.Adam(network.parameters(), lr=np.logspace(-3, -1, 3)[1])
    bc.save(tmp_path / "run.pt", network=network, optimizer=optimizer)
    bc.load(tmp_path / "run.pt", network=network, optimizer=optimizer)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.01)


def test_the_versions_that_a_network_notes_are_kept(tmp_path):
    network = nn.BatchNorm1d(2)
    bc.save(tmp_path / "run.pt", network=network)
    read = torch.load(tmp_path / "run.pt", weights_only=True)["network"]
    assert read._metadata == network.state_dict()._metadata


def test_tensors_are_not_copied(tmp_path):
    """Networks that share a tensor share it in the file."""
    tensor = torch.ones(100_000)
    bc.save(tmp_path / "run.pt", one=Part(tensor), two=Part(tensor))
    assert (tmp_path / "run.pt").stat().st_size < 1.5 * 4 * len(tensor)


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(errors.InvalidArgumentError, match="path: Expected a file, and no folder"):
        bc.save(tmp_path, network=nn.Linear(1, 1))


@pytest.mark.parametrize("name", ["path", "self", "file"])
def test_a_part_may_have_any_name(name, tmp_path):
    network, other = nn.Linear(1, 1), nn.Linear(1, 1)
    bc.save(tmp_path / "run.pt", **{name: network})
    bc.load(tmp_path / "run.pt", **{name: other})
    assert torch.equal(network.weight, other.weight)


def test_a_name_that_could_not_be_loaded_is_refused(tmp_path):
    with pytest.raises(errors.InvalidArgumentError, match="changed"):
        bc.save(tmp_path / "run.pt", changed=nn.Linear(1, 1))


def test_a_file_with_names_of_all_kinds_is_refused_by_name(tmp_path):
    torch.save({1: {}, "a": {}}, tmp_path / "run.pt")
    with pytest.raises(errors.StateMismatchError, match=r"states of .*network"):
        bc.load(tmp_path / "run.pt", network=nn.Linear(1, 1))


@pytest.mark.parametrize("works", [True, False])
def test_a_load_in_inference_mode_can_be_trained_on(works, tmp_path):
    """Kind: training goes on with inference tensors, and dies in its next step."""
    network = nn.Linear(2, 1)
    optimizer = torch.optim.Adam(network.parameters())
    network(torch.ones(2)).sum().backward()
    optimizer.step()
    bc.save(tmp_path / "run.pt", network=network, optimizer=optimizer, other=nn.Linear(3, 1))
    parts = {"network": network, "optimizer": optimizer}
    parts |= {} if works else {"other": nn.Linear(4, 1)}
    with (
        torch.inference_mode(),
        nullcontext() if works else pytest.raises(ValueError, match="other"),
    ):
        bc.load(tmp_path / "run.pt", **parts)
    optimizer.step()


@pytest.mark.parametrize("horizon", [4, 5, 6])
@pytest.mark.parametrize("logged", [False, True])
@pytest.mark.parametrize("kind", ["fixed", "random", "online", "bandit", "twin", "population"])
def test_a_horizon_behind_what_was_played_is_refused(kind, horizon, logged, tmp_path):
    """Kind: a run is loaded with no round left, and plays none, without a word."""

    def make(horizon):
        made = {
            "fixed": lambda: bc.FixedTuner(SPACE, {"lr": 1e-2}, horizon=horizon),
            "random": lambda: bc.RandomTuner(SPACE, horizon),
            "online": lambda: bc.OnlineTuner(SPACE, horizon, query=bc.AlwaysQuery()),
            "bandit": lambda: bc.BanditTuner(ARMS, horizon),
            "twin": lambda: bc.TwinTuner(SPACE, horizon),
            "population": lambda: bc.PopulationTuner(SPACE, horizon, members=2),
        }[kind]()
        return LoggedTuner(made, []) if logged else made

    tuner = make(20)
    for _ in range(5):
        tuner.ask()
    bc.save(tmp_path / "run.pt", tuner=tuner)
    other = make(horizon)
    if horizon < 5:
        with pytest.raises(errors.StateMismatchError, match="at least 5 rounds") as raised:
            bc.load(tmp_path / "run.pt", tuner=other, changed=["horizon"])
        assert "Received 4." in str(raised.value)
        assert not other.decisions
        assert other.ask().round == 0
    else:
        bc.load(tmp_path / "run.pt", tuner=other, changed=["horizon"])
        assert len(other.decisions) == 5
