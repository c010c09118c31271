"""Every optimizer has a summary, and a diagnosis that says what its values show, or why nothing."""

import pytest
import torch

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
