"""A parameter says what it is, by a declared role or by its name, however it is spelled."""

import json
import warnings
from functools import cache

import pytest

import botorch_costly as bc
from botorch_costly.errors import InvalidSpaceError, StateMismatchError
from botorch_costly.roles import role_by_name
from tests.cases import slow

RATES = """lr learning_rate eta base_lr peak_lr max_lr init_lr lr0 optimizer.lr lr_head head/lr lr_mult
lr_scale learningRate LearningRate learning-rate LR adamLR lr_1 group_0.lr log_lr step_size
encoder_learning_rate lrs lr_embedding learning_rate_init eta0 matrix_lr"""
MOMENTA = "momentum beta1 beta2 beta_1 adam_beta1 optimizer.beta2 adamBeta2 sgd_momentum"
DECAYS = "weight_decay wd l2 adam.weight_decay weightDecay"
OTHERS = """dropout dropout_rate lr_decay lr_warmup warmup_lr_steps lr_gamma
min_lr_ratio scheduler.lr eps temperature label_smoothing batch_size lr_scheduler_power"""
UNKNOWN = "x alpha rate mix color clr filter already theta_max"


@pytest.mark.parametrize("name", RATES.split())
def test_learning_rates_have_many_names(name):
    assert role_by_name(name) == "learning_rate"


@pytest.mark.parametrize("name", MOMENTA.split())
def test_momenta_have_many_names(name):
    assert role_by_name(name) == "momentum"


@pytest.mark.parametrize("name", DECAYS.split())
def test_weight_decays_have_many_names(name):
    assert role_by_name(name) == "weight_decay"


@pytest.mark.parametrize("name", OTHERS.split())
def test_what_is_about_a_rate_is_none(name):
    assert role_by_name(name) == "other"


@pytest.mark.parametrize("name", UNKNOWN.split())
def test_other_names_say_nothing(name):
    assert role_by_name(name) is None


def test_a_declared_role_counts_whatever_the_name():
    space = bc.SearchSpace(
        {
            "speed": bc.Real(1e-4, 1.0, log=True, role="learning_rate"),
            "lr": bc.Real(1e-4, 1.0, log=True, role="other"),
            "inertia": bc.Real(0.0, 1.0, role="momentum"),
            "x": bc.Real(0.0, 1.0),
            "kind": bc.Choice(["lr", "momentum"]),
        }
    )
    assert space.rates == ("speed",)
    assert space.with_role("momentum") == ("inertia",)
    assert space.with_role(None) == ("x",)
    read = bc.SearchSpace.from_dict(json.loads(json.dumps(space.to_dict())))
    assert read == space
    assert "role='learning_rate'" in repr(space)


def test_a_space_without_declared_roles_is_written_as_before():
    space = bc.SearchSpace({"lr": bc.Real(1e-4, 1.0, log=True), "rate": bc.Scheduled(1e-4, 1.0)})
    assert "role" not in json.dumps(space.to_dict()) + repr(space)


@pytest.mark.parametrize("wrong", ["lr", 3, True, ["learning_rate"], ""])
def test_an_unknown_role_is_refused(wrong):
    with pytest.raises(InvalidSpaceError, match="Real role: Expected one of"):
        bc.Real(0.0, 1.0, role=wrong)
    with pytest.raises(InvalidSpaceError, match="Scheduled role: Expected"):
        bc.Scheduled(1e-4, 1.0, role=wrong)


def test_a_scheduled_parameter_is_a_learning_rate():
    with pytest.raises(InvalidSpaceError, match="Scheduled role: Expected 'learning_rate'"):
        bc.Scheduled(1e-4, 1.0, role="momentum")
    assert bc.SearchSpace({"x": bc.Scheduled(1e-4, 1.0, role="learning_rate")}).rates == ("x",)


def online(name, start=0.01, **options):
    space = bc.SearchSpace(
        {name: bc.Real(1e-5, 1.0, log=True, **options), "mix": bc.Real(0.0, 1.0)}
    )
    return bc.OnlineTuner(space, 40, start={name: start, "mix": 0.1}, seed=3)


@cache
def decisions(name, **options):
    tuner, played = online(name, **options), []
    for round in range(40):
        decision = tuner.ask()
        if decision.query:
            tuner.tell(decision, -((decision.config["mix"] - 0.5) ** 2) - 0.001 * round)
        played.append((*decision.config.values(), decision.query))
    return played


@pytest.mark.parametrize(
    ("name", "options"),
    [
        slow(("peak_lr", {})),
        slow(("lr_mult", {})),
        ("optimizer.lr", {}),
        ("speed", {"role": "learning_rate"}),
    ],
)
def test_online_decisions_do_not_hang_on_how_a_rate_is_spelled(name, options):
    assert decisions(name, **options) == decisions("lr")


def test_where_no_rate_is_known_what_may_be_one_stays_near_the_start():
    """The kind: a learning rate of an unknown name is set to a hundred times that of the start."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rates = [rate for rate, *_ in decisions("speed")]
        free = [rate for rate, *_ in decisions("speed", role="other")]
    assert rates == [rate for rate, *_ in decisions("lr")]
    assert max(rates) <= 0.1
    assert max(free) > 0.1


def test_what_lasts_is_rates_decays_and_momenta():
    log = bc.Real(1e-4, 1.0, log=True)
    plain = bc.Real(0.0, 0.5)
    space = bc.SearchSpace(
        {"beta1": plain, "lr": log, "wd": log, "x": log, "dropout": plain, "n": bc.Integer(1, 2)}
    )
    assert space.lasting == ("beta1", "lr", "wd")  # x may be a rate, but a rate is known
    assert bc.SearchSpace({"x": log, "y": plain}).lasting == ("x",)
    assert bc.SearchSpace({"x": bc.Real(1e-4, 1.0, log=True, role="other")}).lasting == ()
    assert bc.SearchSpace({"speed": bc.Real(0.0, 1.0, role="learning_rate")}).lasting == ("speed",)


def test_twins_treat_rates_and_momenta_alike_however_they_are_spelled():
    def played(rate, momentum, **options):
        space = bc.SearchSpace(
            {
                rate: bc.Real(1e-4, 1.0, log=True),
                momentum: bc.Real(0.0, 0.99),
                "mix": bc.Real(0.0, 1.0),
            }
        )
        start = {rate: 0.01, momentum: 0.9, "mix": 0.5}
        tuner, seen = bc.TwinTuner(space, 80, start=start), []
        for _ in range(80):
            decision = tuner.ask()
            if decision.query:
                tuner.tell(decision, 1.0 + abs(decision.config["mix"] - 0.2))
            seen.append(tuple(decision.config.values()))
        return seen

    assert played("optimizer.lr", "sgd_momentum") == played("lr", "momentum")


def test_a_state_of_another_role_is_refused():
    state = online("speed", role="other").state_dict()
    with pytest.raises(StateMismatchError, match="space"):
        online("speed", role="learning_rate").load_state_dict(state)
