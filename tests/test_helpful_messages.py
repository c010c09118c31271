"""What to do is said where a mistake is noticed, and the line that a warning names is the user's."""

import logging
import math
import re
import warnings

import pytest
import torch
from torch import nn

import botorch_costly as bc
from botorch_costly import errors, task_encoding
from botorch_costly.integrations import apply
from botorch_costly.rewards import GainReward, GuardedReward

SPACE = bc.SearchSpace({"lr": bc.Real(1e-5, 1e-1, log=True), "dropout": bc.Real(0.0, 0.6)})
MULTIPLIERS = bc.SearchSpace({"lr": bc.Real(0.1, 10, log=True)})
WIDTHS = bc.SearchSpace({"width": bc.Integer(8, 64)})


def failing(space, caplog, *, until=8):
    """The warnings of a run whose queries fail up to a round."""
    tuner = bc.OnlineTuner(space, 12, query=bc.AlwaysQuery())
    for _ in range(12):
        decision = tuner.ask()
        tuner.tell(decision, math.nan if decision.round < until else 0.1)
    return [m for m in caplog.messages if "failed: no finite reward" in m]


@pytest.mark.parametrize(
    ("space", "advice"),
    [
        (SPACE, "or lower start and upper bound: it played lr "),
        (MULTIPLIERS, "(a multiplier is applied by rates='multipliers')"),
        (WIDTHS, "Check the data, the loss function and the ranges of the space."),
    ],
)
def test_queries_that_fail_say_what_to_look_at(space, advice, caplog):
    found = failing(space, caplog)
    assert found
    assert advice in found[0]
    assert any("multiplier" in message for message in found) == (space is MULTIPLIERS)


def test_a_single_failure_among_others_is_no_reason_for_advice(caplog):
    tuner = bc.OnlineTuner(SPACE, 12, query=bc.AlwaysQuery())
    for number in range(12):
        tuner.tell(tuner.ask(), math.nan if number == 6 else 0.1)
    (message,) = [m for m in caplog.messages if "failed: no finite reward" in m]
    assert message.endswith("(failed queries so far: 1).")


@pytest.mark.parametrize(
    "made",
    [
        GainReward,
        lambda: GuardedReward(GainReward(), dict, lambda state: None),
    ],
)
def test_a_reward_of_an_earlier_run_asks_for_a_new_one(made):
    reward = made()
    reward(1.0, 39)
    with pytest.raises(errors.InvalidArgumentError, match="a new run needs a new reward"):
        reward(1.0, 1)


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda: bc.OnlineTuner(SPACE, 2),
        lambda: bc.TwinTuner(SPACE, 2),
        lambda: bc.PopulationTuner(SPACE, 2, members=2),
    ],
)
def test_a_spent_horizon_says_how_to_go_on(optimizer):
    tuner = optimizer()
    tuner.ask()
    tuner.ask()
    with pytest.raises(errors.HorizonExceededError, match=r"those before loading.*changed="):
        tuner.ask()


@pytest.mark.parametrize(
    "made",
    [
        lambda clock: bc.Validation(0.03, clock=clock),
        lambda clock: bc.OnlineTuner(SPACE, 9, clock=clock),
        lambda clock: bc.OnlineTuner(SPACE, 9, overhead=0.1, clock=clock),
        lambda clock: bc.TwinTuner(SPACE, 9, clock=clock),
        lambda clock: bc.PopulationTuner(SPACE, 9, clock=clock),
    ],
)
def test_a_clock_has_to_be_a_function(made):
    with pytest.raises(errors.InvalidArgumentError, match="clock: Expected a function"):
        made(17.5)


@pytest.mark.parametrize("modules", [None, 3])
def test_a_network_to_apply_to_has_to_be_one(modules):
    optimizer = torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=0.1)
    with pytest.raises(errors.InvalidArgumentError, match="modules: Expected a network"):
        apply({"lr": 0.01}, optimizer, modules)
    assert optimizer.param_groups[0]["lr"] == 0.1


@pytest.mark.parametrize(
    "read",
    [
        bc.task_from_history,
        lambda history: bc.task_from_history(history, fidelities=True),
        lambda history: bc.tasks_from_history(history, window=2),
    ],
)
@pytest.mark.parametrize("wrong", ["search", "text", "row"])
def test_a_history_is_asked_for(read, wrong):
    history = {"search": bc.OnlineTuner(SPACE, 9), "text": "history.json", "row": {"round": 0}}
    with pytest.raises(errors.InvalidArgumentError, match=r"optimizer\.history"):
        read(history[wrong])


def test_a_budget_that_cannot_be_spent_is_reported_where_the_tuner_is_made():
    with pytest.warns(UserWarning, match="cannot be spent") as caught:
        bc.OnlineTuner(SPACE, 100, query=bc.PricedQuery(budget=80))
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize(
    ("make", "right"),
    [
        (lambda: bc.PricedQuery(30), "PricedQuery(budget=30)"),
        (lambda: bc.ConfidenceQuery(0.05), "ConfidenceQuery(0.95)"),
    ],
    ids=["price", "confidence"],
)
def test_a_number_that_means_another_argument_is_reported_where_it_is_written(make, right):
    with pytest.warns(UserWarning, match=re.escape(right)) as caught:
        rule = make()
    (warning,) = caught
    assert warning.filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the rule is copied for a run
        bc.OnlineTuner(SPACE, 60, query=rule, rewards=bc.RewardScale()).ask()


def test_prices_and_confidences_that_may_be_meant_earn_none():
    for price in (0, 1, 2, 30.0, 0.02, math.inf):
        bc.PricedQuery(price)
    bc.PricedQuery(budget=30)
    for kappa in (1e-9, 0.3, 0.5, 0.95):
        bc.ConfidenceQuery(kappa)


@pytest.mark.parametrize("name", ["level", "false_stop"])
def test_a_confidence_in_place_of_a_probability_of_an_error_is_refused(name):
    with pytest.raises(errors.InvalidArgumentError, match=f"{name}.*a probability of an error"):
        bc.Validation(0.03, steps=99, **{name: 0.98})


class TestMultipliers:
    """Learning rates that are applied as multipliers of the scheduler's earn one warning."""

    def heard(self, values):
        optimizer = torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=0.1)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for value in values:
                apply({"lr": value}, optimizer, rates="multipliers")
        return [warning for warning in caught if "look like learning rates" in str(warning.message)]

    def test_rates_earn_one(self):
        (warning,) = self.heard([0.01, 0.01, 0.003, 0.02, 1e-4, 0.1, 0.03, 0.05, 0.02])
        assert warning.filename == __file__

    @pytest.mark.parametrize(
        "values",
        [
            [1.0, 0.1, 0.05, 0.02, 0.01, 0.03],
            [0.09, 0.08, 0.06, 0.03, 0.01, 0.001],  # the end of a schedule
            [0.01] * 9,  # a fixed one
            [0.3, 0.2, 0.5, 0.15, 0.4],
        ],
    )
    def test_others_earn_none(self, values):
        assert self.heard(values) == []


def study(names, count=4):
    return bc.Task([dict.fromkeys(names, 0.01 + i / 100) for i in range(count)], [*range(count)])


def renamed(caplog, names, **options):
    with caplog.at_level(logging.WARNING):
        bc.TransferOptimizer(SPACE, [study(names), study(names)], **options)
    return [message for message in caplog.messages if "has been renamed" in message]


def test_a_renamed_parameter_earns_one_warning(caplog):
    (message,) = renamed(caplog, ["rate_of_old", "dropout"])
    assert "lacks lr," in message
    assert "has rate_of_old," in message


@pytest.mark.parametrize(
    ("names", "options"),
    [
        (["lr", "dropout"], {}),
        (["lr", "dropout", "momentum"], {}),  # which the space does not tune
        (["dropout"], {}),  # a parameter that is new
        (["rate_of_another", "dropout"], {"fill": {"lr": 0.01}}),
    ],
)
def test_names_that_were_added_removed_or_filled_in_earn_none(names, options, caplog):
    assert renamed(caplog, names, **options) == []


def by_epoch(caplog, name="epoch", *, repeats=5, final=False, **fields):
    """Begin a search after a study with a value for each epoch of four trainings."""
    task_encoding._say_iterations.cache_clear()
    rows = [(k, epoch) for k in range(4) for epoch in range(1, repeats + 1)]
    configs = [{"lr": 0.01 * (k + 1), name: 9 if final else epoch} for k, epoch in rows]
    values = [0.9 - 0.1 * k - 0.5 / epoch for k, epoch in rows]
    for _ in range(2):
        bc.CurveOptimizer(SPACE, repeats, tasks=[bc.Task(configs, values, **fields)])
    return [message for message in caplog.messages if "counts as a final value" in message]


@pytest.mark.parametrize("name", ["epoch", "_step", "Iteration"])
def test_a_study_with_a_row_for_each_epoch_earns_one_warning(name, caplog):
    (message,) = by_epoch(caplog, name)
    assert (
        f"The 20 values of an earlier study are of 4 configurations and differ by {name},"
        in message
    )


@pytest.mark.parametrize(
    "options",
    [
        {"name": "seed"},
        {"final": True},  # values of several seeds after nine epochs
        {"repeats": 2},
        {"repeats": 4, "progress": [0.25, 0.5, 0.75, 1.0] * 4},
    ],
)
def test_studies_of_final_values_and_of_curves_earn_none(options, caplog):
    assert by_epoch(caplog, **options) == []


def mixed(caplog, name="dataset", *, names=("iris", "wine"), rows=4, space=SPACE):
    """Begin searches after a task whose rows are of several studies, by a column of the given name."""
    task_encoding._say_studies.cache_clear()
    pairs = [(k, study) for k in range(rows) for study in names]
    configs = [{"lr": 0.01 * (k + 1), "dropout": 0.1, name: study} for k, study in pairs]
    task = bc.Task(configs, [0.9 - 0.1 * k for k, _ in pairs])
    bc.TransferOptimizer(space, [task])
    bc.CurveOptimizer(space, 5, tasks=[task])
    return [message for message in caplog.messages if "count as one study" in message]


@pytest.mark.parametrize(
    ("name", "names"),
    [("dataset", ("iris", "wine")), ("data/Task_ID", (3, 12)), ("config.task", "abc")],
)
def test_rows_of_several_studies_in_one_earn_one_warning(name, names, caplog):
    (message,) = mixed(caplog, name, names=names)
    assert f"several values of {name} ({', '.join(map(str, names))})" in message
    assert f"tasks_from_csv(.., task={name!r})" in message


@pytest.mark.parametrize(
    "options",
    [
        {"names": ("iris",)},
        {"name": "optimizer"},  # a setting that is not tuned
        {"name": "seed", "names": (1, 2)},
        {"name": "data", "names": (0.25, 1.0)},  # a share of it
        {"name": "data", "names": (True, False)},  # a switch
        {"rows": 2},  # such as names of runs
        {
            "space": bc.SearchSpace(
                {**dict(SPACE.parameters), "dataset": bc.Choice(["iris", "wine"])}
            )
        },
    ],
)
def test_rows_of_one_study_earn_none(options, caplog):
    assert mixed(caplog, **options) == []


def test_a_file_that_is_read_without_its_column_of_studies_earns_the_warning(tmp_path, caplog):
    task_encoding._say_studies.cache_clear()
    lines = [f"{name},{0.01 * k},0.{k}" for name in ("iris", "wine") for k in range(1, 5)]
    path = tmp_path / "runs.csv"
    path.write_text("\n".join(["dataset,lr,accuracy", *lines]))
    bc.TransferOptimizer(SPACE, bc.tasks_from_csv(path, "accuracy", task="dataset"))
    assert "count as one study" not in caplog.text
    bc.TransferOptimizer(SPACE, bc.tasks_from_csv(path, "accuracy"))
    assert "several values of dataset (iris, wine)" in caplog.text
