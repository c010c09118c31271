"""Settings that may be evaluated: listed or free, with fidelities or without."""

import pytest
import torch

import botorch_costly as bc
from botorch_costly import errors
from botorch_costly.ask_tell import Domain, Optimizer, Proposal, Strategy

SPACE = bc.SearchSpace({"x": bc.Real(0.0, 1.0), "arm": bc.Choice(["a", "b"])})
PARTS = bc.SearchSpace({"fraction": bc.Real(0.1, 1.0)})
LIST = [{"x": 0.25, "arm": "a"}, {"x": 0.5, "arm": "b"}]


class Next(Strategy):
    """Evaluates the first listed setting that is new."""

    def __init__(self, seed=0):
        self.seed = seed

    def suggest(self, seen):
        listed = seen.domain.listed
        config, fidelities = seen.domain.decode(listed[seen.are_new(listed)][0])
        details = {"fidelities": fidelities} if fidelities else {}
        return Proposal(config, "the next", details=details)


def test_candidates_are_configurations_or_pairs():
    plain, pairs = Domain(SPACE, candidates=LIST), Domain(SPACE, candidates=[(c, {}) for c in LIST])
    assert torch.equal(plain.listed, pairs.listed)
    assert plain.decode(plain.listed[1]) == (LIST[1], {})
    full = Domain(SPACE, PARTS, candidates=[(c, {"fraction": 1}) for c in LIST])
    assert full.decode(full.listed[0]) == (LIST[0], {"fraction": 1.0})
    assert full.config_at(full.listed[0][: SPACE.dim]) == LIST[0]
    assert full.share({"fraction": 0.5}) == 0.5


@pytest.mark.parametrize(
    ("candidates", "error", "message"),
    [
        ([], errors.InvalidArgumentError, "at least one"),
        (["x"], errors.InvalidArgumentError, "x as number 0"),
        ([LIST[0], (LIST[1],)], errors.InvalidArgumentError, "number 1"),
        ([LIST[0], LIST[0]], errors.InvalidArgumentError, "each candidate once"),
        ([{"x": 2.0, "arm": "a"}], errors.InvalidConfigError, "x"),
    ],
)
def test_a_bad_list_is_refused(candidates, error, message):
    with pytest.raises(error, match=message):
        Domain(SPACE, candidates=candidates)


def test_each_candidate_is_evaluated_once_also_while_others_are_pending():
    optimizer = Optimizer(Domain(SPACE, candidates=LIST), Next())
    first, second = optimizer.ask(), optimizer.ask()
    assert [dict(first.config), dict(second.config)] == LIST
    optimizer.tell(first, 1.0)
    optimizer.cancel(second)
    assert dict(optimizer.ask().config) == LIST[1]


OTHERS = {
    "candidates": lambda: Optimizer(Domain(SPACE, candidates=LIST[:1]), Next()),
    "fidelities": lambda: Optimizer(
        Domain(SPACE, PARTS, candidates=[(c, {"fraction": 1.0}) for c in LIST]), Next()
    ),
    "strategy": lambda: Optimizer(Domain(SPACE, candidates=LIST), type("Other", (Next,), {})()),
    "maximize": lambda: Optimizer(Domain(SPACE, candidates=LIST), Next(), maximize=False),
    "rate": lambda: Optimizer(Domain(SPACE, candidates=LIST), Next(), options={"rate": 2}),
}


@pytest.mark.parametrize("option", OTHERS)
def test_a_state_of_another_domain_or_strategy_is_refused(option):
    given = {"options": {"rate": 1}} if option == "rate" else {}
    optimizer = Optimizer(Domain(SPACE, candidates=LIST), Next(), **given)
    optimizer.tell(optimizer.ask(), 1.0)
    state = optimizer.state_dict()
    with pytest.raises(errors.StateMismatchError, match=f"option (candidates|{option})"):
        OTHERS[option]().load_state_dict(state)
    again = Optimizer(Domain(SPACE, candidates=LIST), Next(), **given)
    again.load_state_dict(state)
    assert again.ask() == optimizer.ask()
