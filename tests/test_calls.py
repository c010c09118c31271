"""A call that does not fit is an error that says what to write; a call that fits is untouched."""

import importlib
import inspect
import pickle

import pytest
import torch

import botorch_costly as bc
from botorch_costly.calls import advised, check_takes
from botorch_costly.errors import InvalidArgumentError, InvalidCallError
from botorch_costly.other_names import ARGUMENTS, CLASSES, METHODS, names_here
from botorch_costly.records import Decision, Observation
from tests.test_first_use import imports_for_type_checkers

ROOMS = ("bandits", "integrations", "integrations.loggers")
MADE_BY_OTHERS = (Decision, Observation, tuple)  # records that calls return
ABSTRACT = {"QueryRule", "Strategy", "Logger", "LogEntry"}


def public_calls():
    """The classes and functions that a program calls itself, by name."""
    calls = {name: getattr(bc, name) for name in imports_for_type_checkers(bc)}
    for room in ROOMS:
        module = importlib.import_module(f"botorch_costly.{room}")
        calls |= {name: getattr(module, name) for name in module.__all__}
    made = {n for n, c in calls.items() if isinstance(c, type) and issubclass(c, MADE_BY_OTHERS)}
    inner = {"ArmPrior", "BanditPlayer", "BanditPolicy", "simulate_arms"}  # of simulations
    return {name: calls[name] for name in sorted(calls.keys() - ABSTRACT - made - inner)}


CALLS = public_calls()
SPACE = bc.SearchSpace({"lr": bc.Real(0.0, 1.0)})


def parameters_of(call):
    function = call.__init__ if isinstance(call, type) else call
    return inspect.signature(function).parameters


@pytest.mark.parametrize("name", CALLS)
def test_every_public_call_says_which_arguments_it_takes(name):
    with pytest.raises(InvalidCallError) as caught:
        CALLS[name](nonsense=1)
    assert caught.value.name == name
    said, parameters = str(caught.value), parameters_of(CALLS[name])
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    assert "no nonsense=" in said or "Expected no argument" in said or takes_all
    assert all(parameter in said for parameter in parameters if parameter != "self")


@pytest.mark.parametrize("name", CALLS)
def test_signatures_documentation_and_pickles_are_as_they_were(name):
    call = CALLS[name]
    assert pickle.loads(pickle.dumps(call)) is call
    assert call.__doc__
    assert {*parameters_of(call)} & {"args", "kwargs"} == set()


# -- what is said ----------------------------------------------------------------------------------


@advised
def run(space, horizon, *, seed=0, metric="loss"):
    """Run.

    Args:
        space: Search space (of anything), such as ``{"x": ..}``. More.
        horizon: Rounds in [1, 9]; several lines
            of text.
        seed: Seed, in (0, 1]. More.

    Returns:
        The arguments.
    """
    if metric == "fault":
        raise TypeError("of the function itself")
    return space, horizon, seed, metric


SAID = {
    "a word for an argument": (
        lambda: run({}, n_trials=3),
        "run: Expected horizon= (rounds in [1, 9]) in place of n_trials=, of the arguments "
        "(space, horizon, *, seed=.., metric=..); Received {'n_trials': 3}.",
    ),
    "a misspelled name": (
        lambda: run({}, 3, sed=1),
        "seed= (seed, in (0, 1]) in place of sed=, of the arguments",
    ),
    "a missing argument": (lambda: run({}), "Expected horizon= (rounds in [1, 9]), of the"),
    "all missing": (
        lambda: run(),
        "Expected space= (search space), horizon= (rounds in [1, 9]), of the",
    ),
    "an argument too many": (
        lambda: run({}, 3, 5),
        "Expected each after horizon by its name, such as seed=.., of the arguments",
    ),
    "an argument twice": (lambda: run({}, 3, horizon=3), "horizon once, by its place or its name"),
    "a word for a given argument": (lambda: run({}, 3, rounds=3), "no rounds= beside horizon"),
    "an unknown word": (lambda: run({}, 3, verbose=True), "no verbose=, of the arguments"),
    "an argument of a group": (
        lambda: bc.OnlineTuner(None, max_queries=3),
        "limits=Limits(max_queries=..) in place of max_queries=",
    ),
    "an argument of a kind of group": (
        lambda: bc.OnlineTuner(None, price=3),
        "query=PricedQuery(price=..) in place of price=",
    ),
    "a direction that is not chosen": (
        lambda: bc.BanditTuner(None, maximize=False),
        "no maximize= (larger values count as better)",
    ),
    "a scale by its place": (
        lambda: bc.Real(1e-5, 1e-1, True),
        "Real: Expected each after high by its name, such as log=..",
    ),
    "options one by one": (
        lambda: bc.Choice("a", "b"),
        "none after options= (a list or tuple of plain values)",
    ),
    "parameters by name": (lambda: bc.SearchSpace(lr=bc.Real(0.0, 1.0)), '{"lr": Real('),
    "a loss without its round": (
        lambda: bc.GainReward()(0.5),
        "GainReward(..): Expected round= (the decision, or the round, later than that of",
    ),
    "a loss before the step": (
        lambda: bc.Validation().due(torch.tensor(0.5), 3),
        "Validation.due: Expected each after step by its name, such as train_loss=..",
    ),
    "no step": (lambda: bc.Validation().due(), "step= (number of the step, at least 0)"),
    "no horizon": (lambda: bc.tune(print, print, None, n_trials=9), "horizon= (rounds of comp"),
    "rounds after the parts": (
        lambda: bc.Session(None, torch.nn.Linear(1, 1), horizon=3),
        "horizon once, by its place or its name",
    ),
    "a field of a record": (
        lambda: bc.TwinTuner(SPACE, 9).tell(None, 0.5, reason="best"),
        "TwinTuner.tell: Expected no reason=, of the arguments (decision, metric, *",
    ),
    "an argument where there is none": (
        lambda: bc.TwinTuner(SPACE, 9).ask(3),
        "TwinTuner.ask: Expected no argument; Received (3,)",
    ),
}


@pytest.mark.parametrize("fault", SAID)
def test_a_call_that_does_not_fit_says_what_to_write(fault):
    call, said = SAID[fault]
    with pytest.raises(InvalidCallError) as caught:
        call()
    assert said in str(caught.value)


def test_a_call_that_fits_is_untouched():
    assert run({}, 3, seed=1) == ({}, 3, 1, "loss")
    with pytest.raises(TypeError, match="of the function itself") as caught:
        run({}, 3, metric="fault")
    assert type(caught.value) is TypeError


@pytest.mark.parametrize(
    "call",
    [
        lambda: bc.OnlineTuner.ask(),
        lambda: bc.OnlineTuner.load("run.pt"),
        lambda: bc.TransferOptimizer.tell({"lr": 0.1}, 0.5),
        lambda: bc.Session.finish(),
        lambda: bc.Validation.due(3),
        lambda: bc.GainReward.read([0.5], 3),
    ],
)
def test_a_method_of_the_class_itself_asks_for_an_object(call):
    with pytest.raises(InvalidCallError, match=r"an object before the dot.*not the class itself"):
        call()


def test_best_of_a_validation_is_no_method():
    validation = bc.Validation()
    validation.due(0)
    validation.tell(0.5)
    with pytest.raises(InvalidCallError, match=r"validation\.best without brackets"):
        validation.best()


# -- functions of the caller's ---------------------------------------------------------------------


def save():
    return {}


def restore(state):
    return None


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (restore, save, "save: Expected a function that is called as save()"),
        (save, save, "restore: Expected a function that is called as restore(saved)"),
        (torch.nn.Linear(1, 1).load_state_dict, restore, "save: Expected a function"),
        (3, restore, "save: Expected a function"),
        (save, None, "restore: Expected a function"),
    ],
)
def test_a_guard_says_how_its_functions_are_called(first, second, said):
    with pytest.raises(InvalidArgumentError) as caught:
        bc.GuardedReward(bc.GainReward(), first, second)
    assert said in str(caught.value)


def test_builtin_functions_may_take_anything():
    weights = {"w": 1.0}
    bc.GuardedReward(bc.GainReward(), weights.copy, weights.update)
    check_takes("name", dict.update, "function", name=1, function=2)


@pytest.mark.parametrize(
    ("train", "validate", "said"),
    [
        (
            lambda: 1.0,
            lambda lr: None,
            "train_round: Expected a function .* train_round\\(lr=..\\)",
        ),
        (lambda config: None, lambda: 1.0, "train_round: Expected a function"),
        (lambda lr: None, lambda network: 1.0, "validate: Expected a function .* validate\\(\\)"),
        (lambda **config: None, 0.5, "validate: Expected a function"),
    ],
    ids=["swapped", "config", "network", "value"],
)
def test_a_training_says_how_its_functions_are_called(train, validate, said):
    network = torch.nn.Linear(1, 1)
    with pytest.raises(InvalidArgumentError, match=said):
        bc.tune(train, validate, SPACE, 3, network)


# -- the words of others ---------------------------------------------------------------------------


def test_each_name_is_one_of_the_package():
    """Kind: a name is changed, and words of others still stand for the earlier one."""
    methods = [getattr(call, name, None) for call in CALLS.values() for name in ("tell", "due")]
    called = [*CALLS.values(), *filter(None, methods), bc.GainReward.__call__]
    arguments = {name for call in called for name in parameters_of(call)}
    members = {name for call in (*CALLS.values(), bc.CurveDecision) for name in dir(call)}
    assert ARGUMENTS.keys() <= arguments
    assert METHODS.keys() <= {*members, *bc.SubsetDecision.__dataclass_fields__}
    assert CLASSES.keys() <= CALLS.keys()


def test_names_that_no_word_stands_for_are_none():
    assert names_here("nonsense", ["space", "horizon"], ARGUMENTS) == []


@pytest.mark.parametrize(("word", "name"), [("Float", "Real"), ("OnlinTuner", "OnlineTuner")])
def test_a_class_of_another_library_is_called_something_else_here(word, name):
    with pytest.raises(AttributeError, match=f"no attribute {word!r}; it is called {name}"):
        getattr(bc, word)
