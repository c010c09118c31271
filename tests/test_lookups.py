"""Missing attributes say what stands for them, and those that exist are as they were."""

import copy
import pickle
import types

import pytest

import botorch_costly as bc
from botorch_costly.errors import UnknownNameError
from botorch_costly.lookups import Advising
from botorch_costly.records import FrozenConfig

SPACE = bc.SearchSpace({"lr": bc.Real(0.0, 1.0)})


class Thing(Advising):
    summary = "words"

    @property
    def broken(self):
        return types.SimpleNamespace().missing


def test_an_error_within_a_property_is_its_own():
    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        Thing().broken  # noqa: B018


def test_private_names_are_no_business_of_a_reader():
    for thing in (Thing(), FrozenConfig({"lr": 0.1})):
        with pytest.raises(AttributeError, match="object has no attribute '_repr_html_'") as caught:
            thing._repr_html_  # noqa: B018
        assert type(caught.value) is AttributeError


@pytest.mark.parametrize(
    "made",
    [
        lambda: FrozenConfig({"lr": 0.1}),
        lambda: bc.Decision(0, {"lr": 0.1}, query=True, reason="first"),
        lambda: bc.OnlineTuner(SPACE, 9),
        bc.GainReward,
    ],
    ids=["config", "decision", "tuner", "reward"],
)
def test_copies_and_pickles_are_as_they_were(made):
    thing = made()
    assert type(copy.copy(thing)) is type(copy.deepcopy(thing)) is type(thing)
    assert type(pickle.loads(pickle.dumps(thing))) is type(thing)
    assert type(thing).__new__(type(thing)) is not None


def test_a_decision_without_its_fields_has_no_attributes_either():
    with pytest.raises(UnknownNameError):
        bc.Decision.__new__(bc.Decision).lr  # noqa: B018


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("total_cost", "the attribute tuner.total_cost"),
        ("best_config", "the attribute best"),
        ("save", r"the attribute state_dict, as in botorch_costly\.save"),
        ("restore_bets", "the attribute restore_best"),
        ("nonsense", "one of ask, best, "),
    ],
)
def test_a_session_names_what_its_tuner_has(name, said):
    session = bc.Session.of(bc.TwinTuner(SPACE, 9), Stateful())
    with pytest.raises(UnknownNameError, match=f"Session: Expected {said}"):
        getattr(session, name)


class Stateful:
    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        return None


@pytest.mark.parametrize(
    ("thing", "name", "said"),
    [
        (bc.Validation(), "best_value", "the attribute best"),
        (bc.Validation(), "should_validate", "the attribute due"),
        (
            bc.Validation(),
            "load",
            r"the attribute state_dict, as in botorch_costly\.load\(path, part=..\)",
        ),
        (bc.GainReward(), "levle", "the attribute level"),
        (bc.SubsetOptimizer(SPACE).ask(), "fraction", r"the attribute fidelities\['fraction'\]"),
        (bc.CurveOptimizer(SPACE, 9).ask(), "epochs", "the attribute iterations"),
    ],
    ids=["value", "due", "load", "reward", "fraction", "epochs"],
)
def test_others_name_what_stands_for_an_attribute(thing, name, said):
    with pytest.raises(UnknownNameError, match=f"Expected {said}; Received '{name}'"):
        getattr(thing, name)


def test_a_fidelity_is_no_hyperparameter():
    decision = bc.SubsetOptimizer(SPACE).ask()
    with pytest.raises(KeyError, match="a fidelity, or a length, is an attribute of the decision"):
        decision.config["fraction"]
