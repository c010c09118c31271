"""Every optimizer has a summary, and a diagnosis that says what its values show, or why nothing."""

import pytest
import torch

import botorch_costly as bc
from botorch_costly.ask_tell.diagnosis import SearchDiagnosis
from tests.cases import quick
from tests.laws.optimizer_runs import after, saved_run
from tests.registry.optimizers import BY_DEFAULT, OPTIMIZERS

# Reasons of optimizers whose values are not compared.
_UNTOLD = {"FixedTuner": "no model", "RandomTuner": "no model", "PopulationTuner": "levels"}


def same(ours, theirs):
    if isinstance(ours, dict):
        return ours.keys() == theirs.keys() and all(same(ours[k], theirs[k]) for k in ours)
    if isinstance(ours, torch.Tensor):
        return torch.equal(ours, theirs)
    return ours == theirs or ours is theirs or repr(ours) == repr(theirs)


@pytest.fixture(params=quick(OPTIMIZERS, *BY_DEFAULT))
def name(request):
    return request.param


def test_each_has_a_summary_and_a_diagnosis_from_its_first_moment_on(name):
    optimizer = OPTIMIZERS[name].make(0)
    assert optimizer.summary().strip()
    assert str(optimizer.diagnose()).strip()


def test_a_diagnosis_says_something_or_why_not_and_changes_nothing(name):
    case = OPTIMIZERS[name]
    optimizer = after(case, 13)
    before = optimizer.state_dict()
    diagnosis = optimizer.diagnose()
    assert optimizer.summary().strip()
    assert same(optimizer.state_dict(), before)
    assert optimizer.ask() == saved_run(case)[0][13]
    said = str(diagnosis)
    reason = next((why for kind, why in _UNTOLD.items() if name.startswith(kind)), None)
    assert reason is None or reason in said
    if isinstance(diagnosis, SearchDiagnosis) and not reason:
        early = diagnosis.values < 10
        assert ("Too early" in said) == early
        assert (
            early or diagnosis.rivals is None or 1 <= diagnosis.rivals <= diagnosis.configurations
        )


@pytest.mark.parametrize("maximize", [True, False])
def test_the_value_at_the_highest_fidelity_is_said_as_it_was_told(maximize):
    """Kind: a value that is not the one that was told, or does not say at which fidelity it was."""
    space = bc.SearchSpace({"lr": bc.Real(1e-4, 1e-1, log=True)})
    sampling = bc.Sampling(draws=2, first_steps=8, steps=8, points=5, candidates=20)
    search = bc.SubsetOptimizer(space, maximize=maximize, sampling=sampling)
    ask = search.ask()
    search.tell(ask, 0.75, cost=1.0)
    assert f", value 0.75 at fraction={ask.fidelities['fraction']:.3g}" in search.summary()
    for value, words in ((0.25, "value 0.25 at fraction=1"), (0.5, "mean of 2 values 0.375 at")):
        search.tell(search.enqueue(ask.config, {"fraction": 1.0}), value, cost=9.0)
        assert f", {words}" in search.summary()


@pytest.mark.parametrize("sign", [1, -1])
def test_the_latest_value_of_a_training_is_said_as_it_was_told(sign):
    search = bc.CurveOptimizer(bc.SearchSpace({"lr": bc.Real(0.0, 1.0)}), 8, maximize=sign > 0)
    segment = search.ask()
    search.tell(segment, [0.5 + 0.01 * sign * i for i in range(segment.iterations)])
    latest = 0.5 + 0.01 * sign * (segment.iterations - 1)
    assert f"best {latest:.6g} after {segment.until} of 8 iterations" in search.summary()
