"""What every optimizer that is asked and told must be."""

import contextlib
import copy
import json
import math
import pickle
from typing import get_args

import pytest
import torch

from botorch_costly import errors
from botorch_costly.ask_tell import load, save
from botorch_costly.ask_tell.protocol import Tells, check_asked
from botorch_costly.ask_tell.state import DESCRIPTION
from botorch_costly.space import SearchSpace
from tests.cases import quick
from tests.laws.optimizer_runs import MOST, after, saved_run, step, through_a_file
from tests.machines.abuse import functions_of, interrupted
from tests.registry.optimizers import BY_DEFAULT, OPTIMIZERS
from tests.tuners.online.states import leaves, same


@pytest.fixture(params=quick(OPTIMIZERS, *BY_DEFAULT))
def case(request):
    return OPTIMIZERS[request.param]


def test_the_seed_alone_decides(case):
    before = torch.get_rng_state()
    optimizer, expected = case.make(0), saved_run(case)[0][:MOST]
    assert [step(case, optimizer) for _ in expected] == expected
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_default_dtype() == torch.float32


def test_a_run_goes_on_from_a_state_saved_at_any_point(case):
    """Without a round, with little to go by, in the middle for as long as a run, and near its end."""
    whole, states, _ = saved_run(case)
    for stop, rounds in ((0, 2), (1, 3), (7, MOST), (13, 1)):
        second, expected = case.make(0), whole[stop : stop + rounds]
        assert len(expected) == rounds
        second.load_state_dict(through_a_file(states[stop]))
        assert [step(case, second) for _ in expected] == expected


def test_a_resumed_run_reads_as_the_one_that_went_on(case):
    run = copy.deepcopy(saved_run(case)[2])
    for is_pending in (False, True):
        if is_pending:
            run.ask()
        resumed = case.make(0)
        resumed.load_state_dict(through_a_file(run.state_dict()))
        config = run.decisions[0].config
        for _ in range(2):  # reading changes no reading either
            assert run.best() == resumed.best()
            ours, theirs = run.predict([config]), resumed.predict([config])
            assert (ours is None) == (theirs is None)
            for value, other in zip(ours or (), theirs or (), strict=True):
                assert torch.equal(value, other)


def test_a_state_is_of_tensors_and_plain_values_and_does_not_change(case):
    optimizer = after(case, 9)
    state = optimizer.state_dict()
    before = copy.deepcopy(state)
    for leaf in leaves(state):
        assert isinstance(leaf, torch.Tensor | str | int | float | None)
    step(case, optimizer)
    assert same(state, before)


def test_a_damaged_state_is_refused_and_nothing_changes(case):
    optimizer = after(case, 9)
    before = copy.deepcopy(optimizer.state_dict())
    for part in before:
        for damage in ([], {"nothing": 1}, "text", 0.5):
            with pytest.raises(errors.StateMismatchError):
                optimizer.load_state_dict({**before, part: damage})
            assert same(optimizer.state_dict(), before)
        with pytest.raises(errors.StateMismatchError):
            optimizer.load_state_dict({k: v for k, v in before.items() if k != part})
    for none in (None, {}, [1], "text", {"header": {}}):
        with pytest.raises(errors.StateMismatchError):
            optimizer.load_state_dict(none)
    assert same(optimizer.state_dict(), before)


def test_a_state_of_another_option_is_refused_by_its_name(case):
    state, optimizer = saved_run(case)[1][3], case.make(0)
    known = {"kind", "version", "parameters", *DESCRIPTION}
    options = [name for name in state["header"] if name not in known]
    assert len(options) >= 2
    for option in options:
        other = {**state, "header": {**state["header"], option: "another"}}
        with pytest.raises(errors.StateMismatchError, match=f"option {option}: Expected"):
            optimizer.load_state_dict(other)


def test_a_state_says_what_is_told_and_recorded_and_states_without_that_load(case):
    optimizer, state = after(case, 3), saved_run(case)[1][3]
    header = state["header"]
    assert header["tells"] == optimizer.tells
    assert optimizer.tells in get_args(Tells)
    assert SearchSpace.from_dict(json.loads(header["definition"])) == optimizer.space
    assert all(type(one) is optimizer.records[0] for one in optimizer.decisions)
    assert all(type(one) is optimizer.records[1] for one in optimizer.observations)
    assert header["records"] == " ".join(record.__name__ for record in optimizer.records)
    older = {name: said for name, said in header.items() if name not in DESCRIPTION}
    second = case.make(0)
    second.load_state_dict({**state, "header": older})
    assert step(case, second) == step(case, optimizer)


CALLS = {
    "ask": lambda case, optimizer, suggestion: optimizer.ask(),
    "tell": lambda case, optimizer, suggestion: case.tell(optimizer, suggestion, 0.3),
}


@pytest.mark.parametrize("call", CALLS)
def test_an_interrupt_at_the_end_of_a_call_has_done_all_or_nothing(case, call):
    """The kind: what is believed has taken in a round that the ledger does not have."""
    optimizer = after(case, 3)
    suggestion = optimizer.ask()
    before = copy.deepcopy(optimizer.state_dict())
    whole = copy.deepcopy(optimizer)
    entered = functions_of(lambda: CALLS[call](case, whole, suggestion))
    for number in range(max(1, entered - 5), entered + 1):
        other, done = copy.deepcopy(optimizer), None
        with interrupted(number):
            done = CALLS[call](case, other, suggestion)
        state = other.state_dict()
        assert same(state, before) or (call == "tell" and same(state, whole.state_dict()))
        assert done is None


def test_suggestions_may_be_told_late_in_any_order_and_as_copies(case):
    optimizer = case.make(0)
    suggestions = [optimizer.ask() for _ in range(6)]
    for i in (4, 0, 5, 2):
        case.tell(optimizer, pickle.loads(pickle.dumps(suggestions[i])), 0.1 * i)
    told = [row for row in optimizer.history if row["reward"] is not None]
    assert [row["round"] for row in told] == [0, 2, 4, 5]


def refusals(case, optimizer, asked, told):
    later = saved_run(case)[0][8]
    return {
        "told twice": (errors.AlreadyToldError, told, 1.0),
        "never made": (errors.UnknownDecisionError, later, 1.0),
        "no suggestion": (errors.InvalidArgumentError, {"round": 0}, 1.0),
        "no number": (errors.InvalidArgumentError, asked, "much"),
        "a complex one": (errors.InvalidArgumentError, asked, 1j),
    }


@pytest.mark.parametrize(
    "what", ["told twice", "never made", "no suggestion", "no number", "a complex one"]
)
def test_what_cannot_be_told_changes_nothing(case, what):
    optimizer = case.make(0)
    told, asked = optimizer.ask(), optimizer.ask()
    case.tell(optimizer, told, 0.5)
    error, suggestion, value = refusals(case, optimizer, asked, told)[what]
    before = copy.deepcopy(optimizer.state_dict())
    with pytest.raises(error, match=r"Expected .*; Received "):
        case.tell(optimizer, suggestion, value)
    assert same(optimizer.state_dict(), before)
    case.tell(optimizer, asked, 0.5)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_failed_query_is_recorded_and_never_learnt_from(case, value):
    ours, theirs = case.make(0), case.make(0)
    for optimizer, told in ((ours, value), (theirs, None)):
        case.tell(optimizer, optimizer.ask(), told)
    row = ours.history[0]
    assert row["failed"]
    assert row["reward"] is None
    assert ours.ask().config == theirs.ask().config


def test_a_reader_keeps_what_was_read(case):
    """Neither asking nor telling changes what was handed out before."""
    optimizer = after(case, 9)
    history, decisions = optimizer.history, optimizer.decisions
    copies = copy.deepcopy(history), copy.deepcopy(decisions)
    step(case, optimizer)
    assert (history, decisions) == copies


def test_a_file_is_replaced_at_once_and_loads_into_parts_of_equal_options(
    case, tmp_path, monkeypatch
):
    path, optimizer = tmp_path / "deep" / "state.pt", after(case, 5)
    save(path, optimizer=optimizer)
    written = path.read_bytes()

    def killed(state, file):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(torch, "save", killed)
    with pytest.raises(KeyboardInterrupt):
        save(path, optimizer=optimizer)
    assert path.read_bytes() == written
    assert [p.name for p in path.parent.iterdir()] == ["state.pt"]
    other = case.make(0)
    load(path, optimizer=other)
    assert same(other.state_dict(), optimizer.state_dict())
    with pytest.raises(errors.StateMismatchError, match="states of"):
        load(path, tuner=other)
    path.write_bytes(b"half")
    with pytest.raises(errors.StateMismatchError, match="written by save"):
        load(path, optimizer=other)
    assert same(other.state_dict(), optimizer.state_dict())


def test_every_optimizer_has_the_same_face(case, tmp_path):
    optimizer = case.make(0)
    check_asked(optimizer)
    assert (optimizer.observations, optimizer.pending, optimizer.total_cost) == ((), (), 0.0)
    run = after(case, 9)
    assert isinstance(run.summary(), str)
    best = run.best()
    assert best is not None or not run.observations
    config = run.decisions[0].config if best is None else best
    run.space.encode(config)
    before = copy.deepcopy(run.state_dict())
    posterior = run.predict([config, config])
    assert same(run.state_dict(), before)
    assert (posterior is not None) == (run.predicts and bool(run.observations))
    if posterior is not None:
        mean, std = posterior
        assert mean.shape == std.shape == (2,)
        assert mean.isfinite().all()
        assert (std >= 0).all()
    costs = [getattr(one, "cost", None) or one.seconds or 0.0 for one in run.observations]
    assert run.total_cost == pytest.approx(sum(costs))
    run.save(tmp_path / "run.pt")
    optimizer.load(tmp_path / "run.pt", changed=["horizon"])
    assert same(optimizer.state_dict(), run.state_dict())
    assert optimizer.total_cost == run.total_cost


def test_earlier_names_work_and_warn(case):
    run = after(case, 9)
    with pytest.warns(FutureWarning, match="`best_seen` is called `best` now") as warned:
        assert run.best_seen() == run.best()
    assert warned[0].filename == __file__
    with pytest.warns(FutureWarning, match="total_cost"):
        assert run.paid == run.total_cost
    if run.predicts:
        with pytest.warns(FutureWarning, match="predict"):
            run.believed([run.best()])
    suggestion = run.ask()
    with pytest.warns(FutureWarning, match="cancel"), contextlib.suppress(errors.CostlyError):
        run.withdraw(suggestion)
    with pytest.warns(FutureWarning, match="enqueue"), contextlib.suppress(errors.CostlyError):
        run.adopt(suggestion.config)


def test_the_last_round_of_a_horizon_is_queried_by_those_that_say_so_and_is_the_last(case):
    """A loop that asks `if decision.query` alone hears of a network that diverged in the last round."""
    optimizer = after(case, 13)
    for _ in range(13, case.horizon - 1):
        step(case, optimizer)
    may_query = optimizer._strategy.may_query(optimizer._seen)
    last = optimizer.ask()
    assert last.round == case.horizon - 1
    assert last.query or not (optimizer.queries_last and may_query)
    for is_told in (False, True):
        if is_told and last.query:
            case.tell(optimizer, last, 0.5)
        before = copy.deepcopy(optimizer.state_dict())
        with pytest.raises(errors.HorizonExceededError, match=f"at most {case.horizon} "):
            optimizer.ask()
        assert same(optimizer.state_dict(), before)
