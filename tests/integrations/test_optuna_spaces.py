"""Search spaces that differ from those of the earlier studies."""

import pytest

from botorch_costly.errors import InvalidArgumentError

optuna = pytest.importorskip("optuna", reason="needs the extra botorch_costly[optuna]")
from optuna.distributions import (  # noqa: E402
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from botorch_costly.integrations.optuna import TransferSampler  # noqa: E402
from botorch_costly.integrations.optuna.distributions import Distributions  # noqa: E402
from botorch_costly.space import _warn_of_scale as scale_warnings  # noqa: E402
from botorch_costly.task_records import Task  # noqa: E402
from tests.cases import quick  # noqa: E402


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.ERROR)


SPACE = {
    "x": FloatDistribution(0.0, 1.0),
    "c": CategoricalDistribution(["a", "b"]),
    "n": IntDistribution(1, 8),
}
CHANGES = {
    "an option more": {"c": CategoricalDistribution(["a", "b", "z"])},
    "an option less": {"c": CategoricalDistribution(["b"])},
    "options in another order": {"c": CategoricalDistribution(["b", "a"])},
    "options renamed": {"c": CategoricalDistribution(["A", "B"])},
    "wider": {"x": FloatDistribution(-1.0, 3.0)},
    "narrower": {"x": FloatDistribution(0.4, 0.6)},
    "apart": {"x": FloatDistribution(5.0, 6.0)},
    "on a logarithmic scale": {"x": FloatDistribution(1e-3, 1.0, log=True)},
    "with steps": {"x": FloatDistribution(0.0, 1.0, step=0.25)},
    "an integer": {"x": IntDistribution(0, 1)},
    "a number": {"n": FloatDistribution(0.5, 8.0)},
    "categorical": {"n": CategoricalDistribution([1, 2, "many"])},
    "a parameter more": {"new": FloatDistribution(0.0, 1.0)},
    "a parameter less": {"x": None},
    "all others": {"x": None, "c": None, "n": None, "new": FloatDistribution(0.0, 1.0)},
}


def suggested(trial, name, distribution):
    return trial._suggest(name, distribution)


def completed(space, count, direction="minimize"):
    """A study over a space with values that were not paid for."""
    study = optuna.create_study(direction=direction, sampler=optuna.samplers.RandomSampler(seed=1))
    study.optimize(
        lambda t: float(t.number + len([suggested(t, *d) for d in space.items()])), count
    )
    return study


@pytest.mark.parametrize("direction", quick(["minimize", "maximize"], "minimize"))
@pytest.mark.parametrize("change", CHANGES)
def test_a_search_space_that_differs_from_the_earlier_one_loses_no_trial(change, direction):
    """The kind: what differs between the present space and that of the past ends or fails paid trials."""
    present = {n: d for n, d in {**SPACE, **CHANGES[change]}.items() if d is not None}
    study = optuna.create_study(
        direction=direction, sampler=TransferSampler([completed(SPACE, 8)], seed=2)
    )
    study.optimize(lambda t: float(len([suggested(t, *d) for d in present.items()])), 4)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * 4
    for trial in study.trials:
        assert all(
            present[n]._contains(d.to_internal_repr(trial.params[n])) for n, d in present.items()
        )


def test_conditional_parameters_and_studies_that_share_nothing(caplog):
    """The past knows a parameter only sometimes; another study knows only what nobody asks for."""

    def objective(trial):
        if trial.suggest_categorical("c", ["a", "b", "z"]) == "a":
            return trial.suggest_float("x", 0, 1)
        return float(trial.suggest_int("n", 1, 9))

    past = [completed({"c": SPACE["c"]}, 3), completed({"other": SPACE["x"]}, 3)]
    study = optuna.create_study(sampler=TransferSampler(past))
    study.optimize(objective, 6)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * 6
    alone = optuna.create_study(sampler=TransferSampler(past[1:]))
    alone.optimize(objective, 3)
    assert len(alone.trials) == 3
    said = [r for r in caplog.records if "Earlier studies do not fit" in r.getMessage()]
    assert len(said) == 1


@pytest.mark.parametrize("worst", [float("inf"), -float("inf")])
def test_a_study_without_a_finite_value_is_left_out_beside_others_and_said_alone(worst, caplog):
    """The kind: one earlier study that cannot be used takes the others with it."""
    infinite, one = optuna.create_study(), completed(SPACE, 1).trials[0]
    infinite.add_trial(
        optuna.trial.create_trial(params=one.params, distributions=one.distributions, value=worst)
    )
    good = completed(SPACE, 3)
    played = []
    for past in ([good, infinite], [good], [infinite]):
        study = optuna.create_study(sampler=TransferSampler(past))
        study.optimize(lambda t: suggested(t, "x", SPACE["x"]), 2)
        played.append([one.params for one in study.trials])
    assert played[0] == played[1]
    assert len(played[2]) == 2
    assert "Earlier studies do not fit" in caplog.text


def test_values_of_the_past_are_of_the_options_of_the_present():
    reordered = Distributions({**SPACE, "c": CategoricalDistribution(["b", "new", "a"])})
    assert reordered.part({"c": "a", "x": 0.5}) == {"c": 2, "x": 0.5}
    assert reordered.part({"c": "gone", "x": 0.5}) is None
    assert reordered.part({"other": 1}) == {}


@pytest.mark.parametrize("states", [[], ["PRUNED"], ["FAIL", "PRUNED"]])
def test_an_earlier_study_without_a_completed_trial_is_refused_at_once(states):
    study = optuna.create_study()
    for state in states:
        study.add_trial(optuna.trial.create_trial(state=optuna.trial.TrialState[state]))
    with pytest.raises(InvalidArgumentError, match="study: Expected a completed trial"):
        TransferSampler([study])


def test_distributions_that_no_earlier_trial_fits_are_refused_before_a_trial_is_paid_for():
    sampler = TransferSampler(
        [completed(SPACE, 3)], distributions={"y": FloatDistribution(0.0, 1.0)}
    )
    study = optuna.create_study(sampler=sampler)

    def objective(trial):
        trial.suggest_float("y", 0, 1)
        pytest.fail("paid for")

    with pytest.raises(InvalidArgumentError, match="studies: Expected a completed trial"):
        study.optimize(objective, 1)


RATE = FloatDistribution(1e-5, 1e-1)
LOG_RATE = FloatDistribution(1e-5, 1e-1, log=True)


def messages_after(earlier, new, caplog, trials=3):
    """The warnings of a study after an earlier one, with these distributions."""
    scale_warnings.cache_clear()
    past = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    total = lambda trial: sum(trial.params.values())  # noqa: E731
    for _ in range(6):
        trial = past.ask(earlier)
        past.tell(trial, total(trial))
    study = optuna.create_study(sampler=TransferSampler([past], seed=0))
    for _ in range(trials):
        trial = study.ask()
        for name, distribution in new.items():
            trial._suggest(name, distribution)
        study.tell(trial, total(trial))
    return caplog.messages


def test_the_scale_of_an_earlier_study_is_not_the_users_to_change(caplog):
    found = messages_after({"lr": RATE}, {"lr": LOG_RATE}, caplog)
    assert not any("linear scale" in message for message in found)


def test_the_scale_of_the_study_itself_is(caplog):
    found = messages_after({"lr": LOG_RATE}, {"lr": RATE}, caplog)
    assert sum("linear scale" in message for message in found) == 1


def test_a_parameter_that_was_renamed_between_studies_earns_one_warning(caplog):
    both = IntDistribution(1, 5)
    found = messages_after({"step_size_then": RATE, "n": both}, {"lr": LOG_RATE, "n": both}, caplog)
    (message,) = [message for message in found if "has been renamed" in message]
    assert "lacks lr," in message
    assert "has step_size_then," in message


def test_an_earlier_study_of_several_data_sets_earns_one_warning(caplog):
    rows = [(0.01 * (k + 1), k % 2) for k in range(8)]
    configs = [{"lr": lr, "openml/dataset_id": number} for lr, number in rows]
    mixed = Task(configs, [lr for lr, _ in rows])
    study = optuna.create_study(sampler=TransferSampler([mixed], distributions={"lr": LOG_RATE}))
    for _ in range(2):
        trial = study.ask()
        study.tell(trial, trial.suggest_float("lr", 1e-5, 1e-1, log=True))
    (message,) = [message for message in caplog.messages if "count as one study" in message]
    assert "several values of openml/dataset_id (0, 1)" in message
