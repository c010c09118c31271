"""A logged tuner decides as the tuner itself, and each round reaches the loggers once."""

import logging
import math

import pytest
import torch

import botorch_costly as bc
from botorch_costly.errors import AlreadyToldError, InvalidArgumentError, StateMismatchError
from botorch_costly.integrations.distributed import SharedTuner
from botorch_costly.integrations.loggers import LogEntry, LoggedTuner, Logger
from tests.integrations.loggers.playing import (
    SPACE,
    Memory,
    cheap,
    logged,
    online,
    play,
    play_cheap,
    reward_of,
)


@pytest.fixture(scope="module")
def run():
    memory = Memory()
    with logged(memory) as tuner:
        play(tuner, 30, seconds=2.0)
    return tuner, memory.entries


def test_it_decides_as_the_tuner_itself(run):
    assert play(online(), 30, seconds=2.0).history == run[0].history


def test_each_round_is_logged_once_with_its_reason_and_outcome(run):
    tuner, entries = run
    assert [entry.round for entry in entries] == list(range(30))
    told = {one.round: one for one in tuner.observations}
    assert len(told) == 6
    for entry, decision in zip(entries, tuner.decisions, strict=True):
        assert entry.decision == decision
        assert entry.observation == told.get(entry.round)
    assert {entry.row()["reason"] for entry in entries if not entry.decision.query}


def test_what_was_spent_adds_up(run):
    _, entries = run
    paid = [sum(e.decision.query for e in entries[: i + 1]) for i in range(30)]
    assert [entry.queries for entry in entries] == paid
    assert [entry.seconds for entry in entries] == [2.0 * n for n in paid]
    assert {(entry.budget, entry.horizon) for entry in entries} == {(6, 30)}
    assert all(entry.milliseconds > 0 for entry in entries)


def test_exploring_costs_what_the_round_is_believed_to_earn_less_than_the_incumbent():
    memory, expected = Memory(), []
    tuner = logged(memory, query=bc.AlwaysQuery(), limits=bc.Limits())
    for _ in range(12):
        decision, best = tuner.ask(), tuner.tuner.best()
        if best is None:
            expected.append(None)
        else:
            mean, _ = tuner.tuner.predict([best, decision.config], decision.round)
            expected.append(max(float(mean[0] - mean[1]), 0.0))
        tuner.tell(decision, reward_of(decision))
    tuner.close()
    costs = [entry.exploration_cost for entry in memory.entries]
    assert costs[0] is expected[0] is None
    assert costs[1:] == pytest.approx(expected[1:])
    assert max(costs[1:]) > 0


@pytest.mark.parametrize("maximize", [True, False])
def test_a_shortfall_is_never_negative(maximize):
    memory = Memory()
    tuner = logged(memory, query=bc.AlwaysQuery(), limits=bc.Limits(), maximize=maximize)
    play(tuner, 12)
    tuner.close()
    costs = [entry.exploration_cost for entry in memory.entries[1:]]
    assert min(costs) >= 0
    assert max(costs) > 0


def test_of_twins_exploring_costs_what_came_to_their_account():
    space = bc.SearchSpace({"lr": bc.Real(1e-4, 1e-1, log=True)})
    memory = Memory()
    tuner = bc.TwinTuner(space, 24, start={"lr": 1e-2})
    with LoggedTuner(tuner, memory) as twins:
        for _ in range(24):
            decision = twins.ask()
            if decision.query:
                twins.tell(decision, 2.0 / (1 + decision.trained * decision.config["lr"]))
    costs = [entry.exploration_cost for entry in memory.entries]
    assert len(costs) == 24
    assert sum(costs) == pytest.approx(tuner.exploration_cost)


def test_a_late_reward_is_another_entry_of_its_round():
    memory = Memory()
    tuner = cheap(memory)
    decisions = [tuner.ask() for _ in range(3)]
    tuner.tell(decisions[1], math.nan)
    tuner.tell(decisions[2], 0.5)
    tuner.close()
    assert [(e.round, e.reward, e.failed) for e in memory.entries] == [
        (0, None, False),
        (1, None, False),
        (1, None, True),
        (2, 0.5, False),
    ]
    assert [entry.queries for entry in memory.entries] == [0, 0, 1, 2]
    assert memory.closed == 1


@pytest.mark.parametrize("end", ["flush", "close"])
@pytest.mark.parametrize("around", [lambda one: one, SharedTuner], ids=["plain", "shared"])
def test_the_last_round_reaches_the_loggers_of_all_tuners_within(around, end):
    """The kind: the last round, which no other one follows, lost on its way to a log."""
    inner, outer = Memory(), Memory()
    tuner = LoggedTuner(cheap(inner), outer)
    play_cheap(tuner, 4)
    getattr(around(tuner), end)()
    for memory in (inner, outer):
        assert [entry.round for entry in memory.entries] == [0, 1, 2, 3]
        assert memory.closed == (end == "close")
    play_cheap(tuner, 3).close()
    assert [entry.round for entry in outer.entries] == list(range(7))


def test_a_refused_call_logs_nothing():
    memory = Memory()
    tuner = logged(memory, query=bc.AlwaysQuery())
    decision = play(tuner, 3).decisions[0]
    sent = len(memory.entries)
    with pytest.raises(AlreadyToldError):
        tuner.tell(decision, 1.0)
    assert len(memory.entries) == sent


class Failing(Logger):
    def __init__(self):
        self.calls = 0

    def log(self, entry):
        self.calls += 1
        raise OSError("the disk is full")


def test_a_logger_that_raises_stops_neither_the_run_nor_the_others(caplog):
    failing, memory = Failing(), Memory()
    with caplog.at_level(logging.WARNING), cheap(failing, memory) as tuner:
        play_cheap(tuner, 10)
    assert failing.calls == len(memory.entries) == 10
    (record,) = [one for one in caplog.records if "could not log" in one.message]
    assert "the disk is full" in record.message


def test_a_belief_that_fails_leaves_the_decision(caplog):
    memory = Memory()
    tuner = logged(memory)
    play(tuner, 3)
    tuner.tuner.predict = None
    with caplog.at_level(logging.WARNING):
        play(tuner, 3)
    tuner.close()
    assert [entry.round for entry in memory.entries] == list(range(6))
    assert [entry.exploration_cost for entry in memory.entries[3:]] == [None] * 3
    assert len([one for one in caplog.records if "could not log" in one.message]) == 1


def test_an_interrupt_is_not_swallowed():
    class Interrupted(Logger):
        def log(self, entry):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play_cheap(cheap(Interrupted()), 2)


def test_a_state_loads_with_loggers_and_without_them():
    memory = Memory()
    plain, tuner = online(), logged(memory)
    play(tuner, 11)
    plain.load_state_dict(tuner.state_dict())
    resumed = logged(memory)
    resumed.load_state_dict(plain.state_dict())
    play(plain, 19)
    play(resumed, 19)
    assert plain.history == resumed.history
    for key, value in plain.state_dict()["ledger"].items():
        assert resumed.state_dict()["ledger"][key] == value


@pytest.mark.parametrize("rounds", range(1, 9))
def test_a_resumed_run_logs_what_an_uninterrupted_one_does(rounds):
    """Wherever the state is saved: rounds from ``begin`` on, in place of those logged before."""
    whole, first, second = Memory(), Memory(), Memory()
    with cheap(whole) as tuner:
        play_cheap(tuner, 12)
    killed = cheap(first)
    state = play_cheap(killed, rounds).state_dict()
    play_cheap(killed, 3)  # after the state was saved
    resumed = cheap(second)
    resumed.load_state_dict(state)
    play_cheap(resumed, 12 - rounds)
    resumed.close()
    (begun,) = second.begun
    entries = [entry for entry in first.entries if entry.round < begun] + second.entries

    def compared(entry):
        return {name: value for name, value in entry.row().items() if name != "tuner_ms"}

    assert list(map(compared, entries)) == list(map(compared, whole.entries))


@pytest.mark.parametrize("kept", [None, 4])
def test_a_resumed_run_counts_the_seconds_of_queries_that_are_not_kept_any_more(kept):
    options = {"limits": bc.Limits(keep_rounds=kept), "query": bc.AlwaysQuery()}
    memory = Memory()
    first, second = logged(**options), logged(memory, **options)
    second.load_state_dict(play(first, 10, seconds=2.0).state_dict())
    play(second, 3, seconds=2.0)
    second.close()
    assert [entry.seconds for entry in memory.entries] == [20.0, 22.0, 24.0, 26.0]
    plain = logged(Memory(), **options)  # a state that was saved without loggers does not say it
    plain.load_state_dict(first.tuner.state_dict())
    play(plain, 1, seconds=2.0).close()
    assert plain._loggers[0].entries[-1].seconds == (22.0 if kept is None else 10.0)


def test_an_entry_that_is_sent_after_a_resume_says_what_the_round_took():
    before, after = Memory(), Memory()
    first, second = logged(before, query=bc.AlwaysQuery()), logged(after, query=bc.AlwaysQuery())
    state = play(first, 5).state_dict()
    second.load_state_dict(state)
    for tuner in (first, second):
        tuner.close()
    (again,) = after.entries
    assert again == before.entries[-1]
    assert again.milliseconds > 0
    assert again.exploration_cost is not None


@pytest.mark.parametrize("log", [{"seconds": 1.0}, 3, {"seconds": 1.0, "running": None, "x": 0}])
def test_a_state_that_does_not_say_how_far_the_log_is_is_refused(log):
    tuner = play(logged(), 3)
    state = tuner.state_dict()
    with pytest.raises(StateMismatchError, match="log"):
        tuner.load_state_dict({**state, "log": log})
    assert tuner.state_dict()["ledger"] == state["ledger"]


def test_enqueued_rounds_are_logged_in_order_and_cancelled_ones_are_not(tmp_path):
    """Also by a run that is resumed between them."""
    memory, path = Memory(), tmp_path / "run.pt"
    tuner = logged(memory, query=bc.AlwaysQuery(), limits=bc.Limits())
    config = dict(tuner.ask().config)
    entered = tuner.enqueue(config)
    tuner.tell(entered, 1.0)
    tuner.cancel(tuner.ask())
    tuner.tell(tuner.enqueue(config), 2.0)
    bc.save(path, tuner=tuner)
    again = logged(Memory(), query=bc.AlwaysQuery(), limits=bc.Limits())
    bc.load(path, tuner=again)
    for run in (tuner, again):
        run.tell(run.ask(), 3.0)
        run.close()
    assert [entry.round for entry in memory.entries] == [0, 1, 3, 4]
    assert [entry.queries for entry in memory.entries] == [1, 2, 3, 4]
    assert tuner.history == again.history
    assert [one["round"] for one in tuner.history] == [0, 1, 3, 4]


def test_ranks_share_enqueued_and_cancelled_rounds():
    memory = Memory()
    shared = SharedTuner(logged(memory))
    config = shared.ask().config
    entered = shared.enqueue(config)
    shared.cancel(entered)
    shared.tell(shared.enqueue(config), 1.0)
    assert [decision.round for decision in shared.tuner.decisions] == [0, 2]
    with pytest.raises(bc.errors.InvalidConfigError):
        shared.enqueue({"nothing": 1})
    assert shared.ask().round == 3


def test_ranks_share_a_logged_tuner():
    memory = Memory()
    tuner = logged(memory)
    shared = SharedTuner(tuner)
    for _ in range(5):
        decision = shared.ask()
        if decision.query:
            shared.tell(decision, shared.mean(reward_of(decision)))
    tuner.close()
    assert [entry.round for entry in memory.entries] == list(range(5))


def test_tuners_without_a_belief_or_a_budget_are_logged_too():
    memory = Memory()
    tuner = bc.RandomTuner(SPACE, 4)
    with LoggedTuner(tuner, memory) as logging_tuner:
        play(logging_tuner, 4)
    assert {(e.budget, e.exploration_cost) for e in memory.entries} == {(None, None)}
    assert [e.queries for e in memory.entries] == [0, 0, 0, 1]  # the last round is queried


def test_numbers_are_finite_and_named():
    decision = bc.Decision(3, {"lr": 0.1, "policy": "a", "on": (1, 2)}, query=True, reason="rivals")
    seen = bc.Observation(3, decision.config, 0.25, seconds=1.5)
    entry = LogEntry(decision=decision, observation=seen, queries=2, milliseconds=math.inf)
    numbers = entry.numbers()
    assert numbers["reward"] == 0.25
    assert numbers["query_seconds"] == 1.5
    assert numbers["config/lr"] == 0.1
    assert "tuner_ms" not in numbers
    assert all(type(value) is float and math.isfinite(value) for value in numbers.values())
    assert entry.row()["config/on"] == "[1, 2]"


@pytest.mark.parametrize("loggers", [print, [Memory(), None], [Memory]])
def test_what_is_no_logger_is_refused(loggers):
    with pytest.raises((InvalidArgumentError, TypeError)):
        LoggedTuner(online(), loggers)
    with pytest.raises(InvalidArgumentError, match="tuner"):
        LoggedTuner(SPACE, [])


def test_validation_under_inference_mode_is_logged():
    memory = Memory()
    tuner = logged(memory, query=bc.AlwaysQuery())
    for _ in range(6):
        with torch.inference_mode():
            play(tuner, 1)
    assert len(memory.entries) == 5


def test_a_tuner_that_cannot_be_iterated_over_is_named():
    """Kind: what goes around a tuner hides its iteration; a session is iterated over in its own tests."""
    with pytest.raises(InvalidArgumentError, match="such as a Session"):
        iter(cheap())
