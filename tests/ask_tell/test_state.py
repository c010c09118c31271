"""Kind: a rollback that holds what it rolls back. After a failed load every part is as it was, and the
error says which part refused, whatever that part raised."""

import pytest
import torch
from torch import nn

import botorch_costly as bc
from botorch_costly import errors
from botorch_costly.ask_tell import unchanged_on_error
from botorch_costly.integrations.distributed import SharedTuner
from botorch_costly.integrations.loggers import LoggedTuner
from botorch_costly.states import copied

SPACE = bc.SearchSpace({"lr": bc.Real(1e-4, 1e-1, log=True)})


def trained(seed=0):
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [1, 5])
    average = torch.optim.swa_utils.AveragedModel(network)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** (seed + 1))
    tuner = bc.RandomTuner(SPACE, seed=0)
    for _ in range(2 + seed):
        tuner.ask()
        network(torch.rand(8, 2)).square().mean().backward()
        optimizer.step()
        scheduler.step()
        average.update_parameters(network)
    parts = {"network": network, "optimizer": optimizer, "scheduler": scheduler}
    return {**parts, "average": average, "scaler": scaler, "tuner": tuner}


def leaves(value):
    if isinstance(value, dict):
        return [leaf for key in value for leaf in (key, *leaves(value[key]))]
    if isinstance(value, list | tuple):
        return [leaf for part in value for leaf in leaves(part)]
    return [value.tolist() if isinstance(value, torch.Tensor) else value]


def states(parts):
    return leaves(copied({name: part.state_dict() for name, part in parts.items()}))


class Refusing:
    """A part that takes half of a state, and raises."""

    def __init__(self, error):
        self.error, self.taken = error, torch.zeros(2)

    def state_dict(self):
        return {"taken": self.taken}

    def load_state_dict(self, state):
        self.taken.copy_(state["taken"])
        if state["taken"].any():
            raise self.error


@pytest.mark.parametrize(
    "error", [KeyError("missing"), RuntimeError("size"), OSError("gone"), KeyboardInterrupt()]
)
def test_after_a_failed_load_every_part_is_as_it_was(error, tmp_path):
    last = Refusing(error)
    last.taken.fill_(1.0)
    bc.save(tmp_path / "run.pt", **trained(1), last=last)
    last.taken.zero_()
    parts = {**trained(0), "last": last}
    before = states(parts)
    with pytest.raises((errors.StateMismatchError, KeyboardInterrupt)) as raised:
        bc.load(tmp_path / "run.pt", **parts)
    if not isinstance(error, KeyboardInterrupt):
        assert str(raised.value).startswith("last: Expected a state that this Refusing takes")
        assert raised.value.__cause__ is error
    assert states(parts) == before


@pytest.mark.parametrize("broken", ["network", "optimizer", "average", "scaler", "tuner"])
def test_the_part_that_refuses_is_named(broken, tmp_path):
    wrong = trained(1)
    others = {
        "network": nn.Linear(1, 1),
        "average": nn.Linear(1, 1),
        "optimizer": torch.optim.AdamW([nn.Parameter(torch.ones(1))]),
        "scaler": torch.amp.GradScaler("cpu", enabled=False),
        "tuner": bc.RandomTuner(SPACE, seed=1),
    }
    bc.save(tmp_path / "run.pt", **{**wrong, broken: others[broken]})
    parts = trained(0)
    before = states(parts)
    with pytest.raises(errors.StateMismatchError, match=f"^{broken}: ") as raised:
        bc.load(tmp_path / "run.pt", **parts)
    assert len(str(raised.value)) < 1500
    assert states(parts) == before


def test_parts_that_share_their_weights_are_as_they_were(tmp_path):
    class Half(nn.Linear):
        def load_state_dict(self, state, **options):
            super().load_state_dict(state, **options)
            if not state["weight"].any():
                raise ValueError("half of it")

    network = Half(2, 1)
    other = Half(2, 1)
    nn.init.zeros_(other.weight)
    both = nn.Sequential(network)
    bc.save(tmp_path / "run.pt", both=nn.Sequential(other), network=other)
    before = states({"both": both})
    with pytest.raises(errors.StateMismatchError, match="network"):
        bc.load(tmp_path / "run.pt", both=both, network=network)
    assert states({"both": both}) == before


def test_a_part_that_refuses_its_own_state_does_not_keep_the_others_from_theirs():
    class Never(Refusing):
        def load_state_dict(self, state):
            raise ValueError("never")

    layer, before = nn.Linear(1, 1), None
    before = layer.weight.item()

    def fail():
        with unchanged_on_error(Never(None), layer), torch.no_grad():
            layer.weight.add_(1.0)
            raise KeyError("first")

    with pytest.raises(errors.RestoreError, match=r"Never \(ValueError: never\)") as raised:
        fail()
    assert isinstance(raised.value.__cause__, KeyError)
    assert layer.weight.item() == before


def test_changed_options_reach_the_parts_that_have_them(tmp_path):
    short = bc.OnlineTuner(SPACE, 4, query=bc.AlwaysQuery())
    [short.ask() for _ in range(4)]
    bc.save(tmp_path / "run.pt", tuner=short, network=nn.Linear(1, 1))
    longer, network = bc.OnlineTuner(SPACE, 6, query=bc.AlwaysQuery()), nn.Linear(1, 1)
    with pytest.raises(errors.StateMismatchError, match="tuner: state: option horizon"):
        bc.load(tmp_path / "run.pt", tuner=longer, network=network)
    for names in (["horizont"], "horizon", None, [3]):
        with pytest.raises(errors.InvalidArgumentError, match="changed"):
            bc.load(tmp_path / "run.pt", tuner=longer, network=network, changed=names)
    with pytest.raises(errors.InvalidArgumentError, match="changed"):
        bc.load(tmp_path / "run.pt", network=network, changed=["horizon"])
    bc.load(tmp_path / "run.pt", tuner=longer, network=network, changed=["horizon"])
    assert longer.ask().round == 4


ARMS = bc.SearchSpace({"arm": bc.Choice(["a", "b"])})
EXTENDED = {
    "bandit": lambda n: bc.BanditTuner(ARMS, n, query=bc.MixedQuery(1, 2, horizon=n)),
    "population": lambda n: bc.PopulationTuner(SPACE, n, members=2),
    "fixed": lambda n: bc.FixedTuner(SPACE, {"lr": 1e-3}, horizon=n),
    "random": lambda n: bc.RandomTuner(SPACE, n),
    "online": lambda n: bc.OnlineTuner(SPACE, n, query=bc.AlwaysQuery()),
    "twins": lambda n: bc.TwinTuner(SPACE, n),
    "session": lambda n: bc.Session.of(bc.TwinTuner(SPACE, n), torch.nn.Linear(1, 1)),
    "curves": lambda n: bc.CurveOptimizer(SPACE, 9, horizon=n),
    "subsets": lambda n: bc.SubsetOptimizer(SPACE, horizon=n),
    "transfer": lambda n: bc.TransferOptimizer(
        SPACE, [bc.Task([{"lr": 10.0**-k} for k in (1, 2, 3)], [0.1, 0.4, 0.2])], horizon=n
    ),
    "logged": lambda n: LoggedTuner(bc.RandomTuner(SPACE, n), []),
    "shared": lambda n: SharedTuner(bc.RandomTuner(SPACE, n)),
}


@pytest.mark.parametrize("make", EXTENDED.values(), ids=EXTENDED)
def test_a_run_is_extended_by_its_file(make, tmp_path):
    """Kind: to train for longer was possible with one tuner and one way of loading only."""
    short, longer = make(5), make(8)
    for _ in range(5):
        short.ask()
    bc.save(tmp_path / "run.pt", tuner=short)
    extra = ["query"] if isinstance(short, bc.BanditTuner) else []
    with pytest.raises(errors.InvalidArgumentError, match="changed: Expected names among"):
        longer.load_state_dict(short.state_dict(), changed=["kind"])
    with pytest.raises(errors.StateMismatchError, match=r"option (query\.)?horizon"):
        bc.load(tmp_path / "run.pt", tuner=longer)
    bc.load(tmp_path / "run.pt", tuner=longer, changed=["horizon", *extra])
    assert [longer.ask().id for _ in range(3)] == [5, 6, 7]
    with pytest.raises(errors.HorizonExceededError):
        longer.ask()
