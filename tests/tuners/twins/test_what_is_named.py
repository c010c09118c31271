"""Runs whose parts are not all that belongs together, and rounds that are told before they are trained.

The kinds: an optimizer goes back without the network that it trains; a run is loaded without its network;
what is told is of the round before. Each earns one warning, and programs that are right earn none.
"""

import copy

import pytest
import torch
from torch import nn

import botorch_costly as bc
from botorch_costly.rewards import GainReward, GuardedReward
from botorch_costly.rewards.fingerprint import are_others, fingerprint_of

SPACE = bc.SearchSpace({"lr": bc.Scheduled(1e-4, 1e-1)})
ALONE, EARLY, UNLOADED = (
    "what it trains is not",
    "told before they were trained",
    "have other parameters",
)


def network(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1))


def trained(model, optimizer, steps=6):
    for _ in range(steps):
        optimizer.zero_grad()
        loss = (model(torch.rand(8, 2)) - 1).square().mean()
        loss.backward()
        optimizer.step()
    return loss.item()


def session_of(*parts):
    return bc.Session(SPACE, 100, *parts, queries=1.0, start={"lr": 1e-2})


def played(session, train, rounds=10, *, early=False):
    """Train rounds of a session, told before the training or after it."""
    metric = 1.0
    for _ in range(rounds):
        decision = session.ask()
        metric = metric if early else train()
        if decision.query:
            session.tell(decision, metric)
        metric = train() if early else metric


def guarded(guard, train):
    space = bc.SearchSpace({"lr": bc.Real(1e-4, 1e-1, log=True)})
    tuner = bc.OnlineTuner(space, 10, query=bc.AlwaysQuery())
    for _ in range(10):
        decision = tuner.ask()
        tuner.tell(decision, guard(train(), decision))


def about(caplog, part):
    return sum(part in text for text in caplog.messages)


def one_alone():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    return (optimizer,), lambda: trained(model, optimizer)


def one_of_another():
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    return (network(), optimizer), lambda: trained(model, optimizer)


@pytest.mark.parametrize("make", [one_alone, one_of_another])
@pytest.mark.parametrize("around", ["session", "guard"])
def test_an_optimizer_without_its_network_is_named_once(make, around, caplog):
    parts, train = make()
    if around == "session":
        played(session_of(*parts), train)
    else:
        guarded(GuardedReward.of(GainReward(), *parts), train)
    assert about(caplog, ALONE) == 1


def test_an_optimizer_of_an_earlier_network_is_named_once(caplog):
    """The cell that makes the network was run again, and that of the optimizer was not."""
    optimizer, model = torch.optim.Adam(network().parameters(), lr=1e-2), network()

    def train():
        (model(torch.rand(8, 2)) - 1).square().mean().backward()
        optimizer.step()
        return 1.0

    played(session_of(model, optimizer), train)
    assert about(caplog, ALONE) == 1


class Held:
    """A tensor with a state of its own, as users write parts."""

    def __init__(self):
        self.tensor = torch.zeros(2, requires_grad=True)

    def state_dict(self):
        return {"tensor": self.tensor.detach().clone()}

    def load_state_dict(self, state):
        with torch.no_grad():
            self.tensor.copy_(state["tensor"])


def test_parts_that_belong_together_earn_no_warning(caplog):
    first, second = network(0), network(1)
    both = [torch.optim.Adam(model.parameters(), lr=1e-2) for model in (first, second)]
    played(
        session_of(first, second, *both),
        lambda: max(trained(*pair) for pair in zip((first, second), both, strict=True)),
    )
    held, further = Held(), nn.Parameter(torch.zeros(1))
    own = torch.optim.SGD([held.tensor], lr=1e-2)

    def step():
        own.zero_grad()
        (held.tensor - 1).square().sum().backward()
        own.step()
        return (held.tensor - 1).square().sum().item()

    played(session_of(held, own), step)
    model = network()
    mixed = torch.optim.Adam([*model.parameters(), further], lr=1e-2)
    played(session_of(model, mixed), lambda: trained(model, mixed))
    assert about(caplog, ALONE) == 0
    assert about(caplog, EARLY) == 0


@pytest.mark.parametrize("early", [True, False])
def test_rounds_that_are_told_before_they_are_trained_are_named_once(early, caplog):
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    played(session_of(model, optimizer), lambda: trained(model, optimizer), early=early)
    assert about(caplog, EARLY) == early


@pytest.mark.parametrize("whole", [True, False])
def test_a_run_that_is_loaded_without_its_network_is_named_once(whole, tmp_path, caplog):
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    session = session_of(model, optimizer)
    played(session, lambda: trained(model, optimizer))
    named = {"network": model, "optimizer": optimizer} if whole else {}
    bc.save(tmp_path / "run.pt", session=session, **named)
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    session = session_of(model, optimizer)
    named = {"network": model, "optimizer": optimizer} if whole else {}
    bc.load(tmp_path / "run.pt", session=session, **named)
    played(session, lambda: trained(model, optimizer), rounds=3)
    assert about(caplog, UNLOADED) == (not whole)


def test_a_state_without_a_fingerprint_is_loaded_as_ever(caplog):
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    session = session_of(model, optimizer)
    played(session, lambda: trained(model, optimizer))
    state = {name: part for name, part in session.state_dict().items() if name != "fingerprint"}
    other = session_of(model, optimizer)
    other.load_state_dict(copy.deepcopy(state))
    other.ask()
    assert about(caplog, UNLOADED) == 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_precisions_have_the_same_fingerprint(dtype):
    model = network()
    before = fingerprint_of([model])
    assert not are_others(before, fingerprint_of([model.to(dtype)]))
    assert are_others(before, fingerprint_of([network(1).to(dtype)]))


def test_what_cannot_be_summed_has_no_fingerprint():
    assert fingerprint_of([torch.optim.SGD(network().parameters(), lr=0.1)]) is None
    assert fingerprint_of([nn.LazyLinear(3)]) is None
    assert fingerprint_of([nn.Linear(2, 2, device="meta")]) is None
    assert not are_others(None, fingerprint_of([network()]))
    assert not are_others(fingerprint_of([network()]), fingerprint_of([nn.Linear(2, 1)]))


def test_complex_and_empty_parameters_are_summed():
    module = nn.ParameterList([torch.ones(2, dtype=torch.complex64), torch.empty(0)])
    assert fingerprint_of([module]).tolist() == [[2.0, 2.0], [0.0, 0.0]]


class Shard(nn.Parameter):
    """A parameter of another kind, as a library makes them for what it has spread over processes."""


def test_an_optimizer_of_shards_earns_no_warning(caplog):
    """The network may hold views of them."""
    model, shard = network(), Shard(torch.zeros(2))
    optimizer = torch.optim.SGD([shard], lr=1e-2)

    def step():
        optimizer.zero_grad()
        (shard - 1).square().sum().backward()
        optimizer.step()
        return (shard - 1).square().sum().item()

    played(session_of(model, optimizer), step)
    assert about(caplog, ALONE) == 0
