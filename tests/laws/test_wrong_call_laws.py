"""What a newcomer writes by mistake, in every optimizer: each error says what to write."""

import copy
import re

import pytest
import torch

import botorch_costly as bc
from botorch_costly.errors import (
    InvalidCallError,
    StateMismatchError,
    UnknownNameError,
    UnknownParameterError,
)
from tests.cases import quick
from tests.registry.optimizers import OPTIMIZERS
from tests.tuners.online.states import same

CLASSES = list({name.split()[0]: name for name in reversed(OPTIMIZERS)}.values())
OUTCOMES = {"gain": "reward", "metric": "metric", "value": "value", "curve": "curve"}
WORDS = ("loss", "score", "accuracy", "objective", "result")


@pytest.fixture(params=quick(OPTIMIZERS, *CLASSES))
def optimizer(request):
    return OPTIMIZERS[request.param].make(0)


def outcome_of(optimizer):
    return "metrics" if hasattr(optimizer, "members") else OUTCOMES[optimizer.tells]


@pytest.mark.parametrize("word", WORDS)
def test_an_outcome_by_another_word_is_named(optimizer, word):
    suggestion = optimizer.ask()
    before = copy.deepcopy(optimizer.state_dict())
    said = rf"Expected {outcome_of(optimizer)}= \([^=]*\) in place of {word}=, of the arguments"
    with pytest.raises(InvalidCallError, match=said):
        optimizer.tell(suggestion, **{word: 0.5})
    assert same(optimizer.state_dict(), before)


def test_an_outcome_that_is_missing_is_named(optimizer):
    with pytest.raises(InvalidCallError, match=rf"tell: Expected {outcome_of(optimizer)}= \("):
        optimizer.tell(optimizer.ask())


def test_words_of_others_for_an_argument_are_named(optimizer):
    kind = type(optimizer)
    words = {
        "n_trials": r"horizon= \(",
        "timeout": r"seconds= \(",
        "direction": r"(maximize|metric)= \(|no direction= \(larger values count as better\)",
    }
    words |= {} if kind is bc.FixedTuner else {"random_state": r"seed= \("}
    for word, said in words.items():
        with pytest.raises(InvalidCallError, match=f"{kind.__name__}: Expected.* ({said}).*{word}"):
            kind(**{word: 3})


def test_a_hyperparameter_is_found_in_the_configuration(optimizer):
    suggestion = optimizer.ask()
    for name in suggestion.config:
        said = re.escape(f"config[{name!r}]")
        for call, error in (
            (lambda name=name: getattr(suggestion, name), UnknownNameError),
            (lambda name=name: suggestion[name], InvalidCallError),
            (lambda name=name: getattr(suggestion.config, name), UnknownNameError),
        ):
            with pytest.raises(error, match=said):
                call()
    with pytest.raises(UnknownParameterError, match=re.escape(str([*suggestion.config]))):
        suggestion.config["nonsense"]
    with pytest.raises(UnknownNameError, match="Expected the attribute config; Received 'params'"):
        suggestion.params  # noqa: B018


def test_a_suggestion_and_an_optimizer_are_no_containers(optimizer):
    for thing, said in (
        (optimizer.ask(), "decision.config"),
        (optimizer, "decision = optimizer.ask"),
    ):
        with pytest.raises(InvalidCallError, match=said):
            list(thing)
        assert not hasattr(thing, "__iter__")
        assert not hasattr(thing, "__len__")


METHODS = {"suggest": "ask", "observe": "tell", "best_params": "best", "results": "history"}
METHODS |= {"done": "is_over", "summery": "summary"}


@pytest.mark.parametrize("word", METHODS)
def test_words_of_others_for_a_method_are_named(optimizer, word):
    with pytest.raises(UnknownNameError, match=f"Expected the attribute {METHODS[word]}; "):
        getattr(optimizer, word)
    assert not hasattr(optimizer, word)


def test_a_method_that_nothing_stands_for_lists_those_that_there_are(optimizer):
    with pytest.raises(
        UnknownNameError, match=r"one of .*ask, .*best, .*tell.*'nonsense'"
    ) as caught:
        optimizer.nonsense  # noqa: B018
    assert "best_seen" not in str(caught.value)  # an earlier name


def test_files_that_were_written_in_another_way_say_how_to_read_them(optimizer, tmp_path):
    whole, alone, pickled = (tmp_path / name for name in ("whole.pt", "alone.pt", "pickled.pt"))
    optimizer.ask()
    bc.save(whole, tuner=optimizer)
    torch.save(optimizer.state_dict(), alone)
    torch.save(optimizer, pickled)
    before = copy.deepcopy(optimizer.state_dict())
    with pytest.raises(StateMismatchError, match=r"files of save are read by load.*\['tuner'\]"):
        optimizer.load_state_dict(torch.load(whole))
    for load in (optimizer.load, lambda path: bc.load(path, tuner=optimizer)):
        with pytest.raises(
            StateMismatchError, match=r"a state that torch\.load reads is for load_state_dict"
        ):
            load(alone)
        with pytest.raises(StateMismatchError, match="and no whole objects"):
            load(pickled)
    assert same(optimizer.state_dict(), before)
    with pytest.raises(bc.errors.InvalidArgumentError, match="objects made with the saved options"):
        bc.load(whole)
