"""Settings of torch around a call decide nothing, and those of a call end with it.

The kind of fault: a setting of the user's reaches into a call of an optimizer, or one of ours out of it.
"""

import io
import math
import threading
from contextlib import ExitStack, contextmanager

import pytest
import torch

from botorch_costly.ask_tell import surroundings
from botorch_costly.ask_tell.surroundings import LARGE, one_thread, undisturbed
from botorch_costly.models import SubsetGP
from tests.cases import quick
from tests.registry.optimizers import BY_DEFAULT, OPTIMIZERS

ROUNDS = 4


@contextmanager
def default_dtype(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextmanager
def deterministic():
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


SETTINGS = {
    "inference": torch.inference_mode,
    "no gradients": torch.no_grad,
    "double": lambda: default_dtype(torch.float64),
    "half": lambda: default_dtype(torch.bfloat16),
    "another device": lambda: torch.device("meta"),
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "anomalies": lambda: torch.autograd.set_detect_anomaly(True),
    "deterministic": deterministic,
}
TOGETHER = [
    ["inference", "double", "another device", "deterministic"],
    ["no gradients", "half", "autocast", "anomalies"],
]


@contextmanager
def within(names):
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(SETTINGS[name]())
        yield


def run(make, tell, names):
    """Make, ask, tell, save, load and read within settings, but for each third call."""
    with within(names):
        optimizer = make(3)
    said = []
    for number in range(ROUNDS):
        with within(names if number % 3 != 2 else []):
            decision = optimizer.ask()
            said.append(decision)
        with within(names if number % 4 != 3 else []):
            if decision.query:
                tell(optimizer, decision, math.sin(1.7 * number))
        if number == ROUNDS // 2:
            with within(names):
                file = io.BytesIO()
                torch.save(optimizer.state_dict(), file)
                file.seek(0)
                with torch.device("cpu"):
                    state = torch.load(file, weights_only=True)
                optimizer = make(3)
                optimizer.load_state_dict(state)
    with within(names):
        said += [optimizer.best(), optimizer.summary()]
    return [*map(repr, said), repr(optimizer.history)]


@pytest.mark.parametrize("name", quick(OPTIMIZERS, *BY_DEFAULT))
def test_settings_around_a_call_decide_nothing(name):
    make, tell, _ = OPTIMIZERS[name]
    alone = run(make, tell, [])
    for names in TOGETHER:
        assert run(make, tell, names) == alone, names


def log_priors(names):
    """Of a model of parts of the data, as an optimizer makes it within settings."""
    X = torch.rand(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    with within(names), undisturbed():
        model = SubsetGP(X, X[:, :1], level=True, moving=[0])
        return [
            (name, prior.log_prob(closure(module)).sum().item())
            for name, module, prior, closure, _ in model.named_priors()
        ]


def test_priors_are_the_same_in_any_default_dtype():
    assert log_priors(["double"]) == log_priors([])


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_each_setting_alone_decides_nothing(name, setting):
    make, tell, _ = OPTIMIZERS[name]
    assert run(make, tell, [setting]) == run(make, tell, [])


@undisturbed()
def check_undisturbed_and_raise():
    assert torch.is_grad_enabled()
    assert not torch.is_inference_mode_enabled()
    assert not torch.is_autocast_enabled("cpu")
    assert torch.zeros(1).device.type == "cpu"
    assert torch.zeros(1).dtype == torch.tensor(1.0).dtype == torch.float32
    assert (torch.tensor([1]) / 3).dtype == torch.float32
    assert torch.tensor(1).dtype == torch.full((1,), 2).dtype == torch.int64
    assert torch.zeros(1, dtype=torch.float64).dtype == torch.float64
    raise KeyError


def test_settings_are_given_back():
    with within([*TOGETHER[0], "autocast", "anomalies"]):
        with pytest.raises(KeyError):
            check_undisturbed_and_raise()
        assert torch.is_inference_mode_enabled()
        assert torch.is_autocast_enabled("cpu")
        assert torch.is_anomaly_enabled()
        assert torch.get_default_dtype() == torch.float64
        assert torch.zeros(1).device.type == "meta"


# -- threads ---------------------------------------------------------------------------------------


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def in_a_new_thread(call):
    said = []
    thread = threading.Thread(target=lambda: said.append(call()))
    thread.start()
    thread.join()
    return said[0]


@pytest.mark.parametrize("name", quick(OPTIMIZERS, *BY_DEFAULT))
def test_an_optimizer_computes_with_one_thread_and_gives_the_setting_back(
    name, two_threads, monkeypatch
):
    make, tell, _ = OPTIMIZERS[name]
    optimizer, seen = make(0), []
    ask = optimizer._ledger.suggest

    def suggest(decision, **options):
        seen.append((torch.get_num_threads(), in_a_new_thread(torch.get_num_threads)))
        ask(decision, **options)

    monkeypatch.setattr(optimizer._ledger, "suggest", suggest)
    tell(optimizer, optimizer.ask(), 0.5)
    assert seen == [(1, 2)]  # a thread that begins meanwhile has its own
    assert torch.get_num_threads() == 2
    monkeypatch.setattr(optimizer._ledger, "suggest", lambda decision, **options: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        optimizer.ask()
    assert torch.get_num_threads() == 2


def test_large_matrices_keep_all_threads(two_threads):
    with one_thread(LARGE):
        assert torch.get_num_threads() == 2
    with one_thread(LARGE - 1):
        assert torch.get_num_threads() == 1


def test_calls_of_several_threads_leave_each_its_setting(two_threads):
    # A thread that is new to torch while another lowers the setting would take over that one.
    begun, inside, leave = threading.Barrier(3), threading.Barrier(4), threading.Event()

    def call():
        before = torch.get_num_threads()
        begun.wait(20)
        with one_thread():
            during = torch.get_num_threads()
            inside.wait(20)
            leave.wait(20)
        return before, during, torch.get_num_threads()

    said = []
    threads = [threading.Thread(target=lambda: said.append(call())) for _ in range(3)]
    for thread in threads:
        thread.start()
    inside.wait(20)
    assert in_a_new_thread(torch.get_num_threads) == 2
    leave.set()
    for thread in threads:
        thread.join()
    assert said == [(2, 1, 2)] * 3
    assert torch.get_num_threads() == in_a_new_thread(torch.get_num_threads) == 2


def test_one_thread_stays_one(monkeypatch):
    monkeypatch.setattr(surroundings.torch, "get_num_threads", lambda: 1)
    monkeypatch.setattr(surroundings.torch, "set_num_threads", lambda number: 1 / 0)
    with one_thread():
        pass
