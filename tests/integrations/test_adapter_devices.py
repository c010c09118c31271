"""Samplers and nodes compute where and in what they are told to, as the optimizers that they ask.

With ``-p tests.far --device far`` the device is one that refuses tensors of the CPU.
"""

import pytest
import torch

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError
from botorch_costly.tuners import Sampling
from tests.cases import quick

QUICK = Sampling(draws=2, first_steps=8, steps=8, points=4, candidates=12, first=2)


def quadratic(trial):
    x, share = trial.suggest_float("x", 0, 1), trial.suggest_float("fraction", 0.1, 1)
    trial.suggest_int("epochs", 1, 4)
    trial.report(-((x - 0.3) ** 2), trial.params["epochs"] - 1)
    return -((x - 0.3) ** 2) / share


def earlier(optuna):
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=1))
    study.optimize(quadratic, n_trials=4)
    return study


@pytest.fixture
def samplers():
    """Return samplers of a study, each with what it is told beside dtype and device."""
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    from botorch_costly.integrations.optuna import CurveSampler, SubsetSampler, TransferSampler

    return optuna, {
        "transfer": lambda **more: TransferSampler([earlier(optuna)], **more),
        "subsets": lambda **more: SubsetSampler("fraction", sampling=QUICK, **more),
        "curves": lambda **more: CurveSampler("epochs", **more),
    }


@pytest.mark.parametrize("name", quick(["transfer", "subsets", "curves"], "transfer", "curves"))
@pytest.mark.parametrize("dtype", quick([torch.float64, torch.float32], torch.float32))
def test_a_sampler_computes_as_it_is_told(name, dtype, samplers, tkwargs):
    optuna, made = samplers
    sampler = made[name](dtype=dtype, device=tkwargs["device"])
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(quadratic, n_trials=5)
    assert len(study.trials) == 5
    spaces = optuna.search_space.intersection_search_space(study.get_trials(deepcopy=False))
    optimizer = sampler._begin(spaces, seed=0, maximize=True)._trials.optimizer
    assert optimizer._domain.tkwargs["dtype"] == dtype
    assert optimizer._domain.tkwargs["device"].type == tkwargs["device"].type


@pytest.mark.parametrize("name", ["transfer", "subsets", "curves"])
@pytest.mark.parametrize("bad", [{"dtype": torch.int64}, {"device": "nowhere"}])
def test_a_sampler_refuses_what_nothing_is_computed_in(name, bad, samplers):
    with pytest.raises(InvalidArgumentError, match="Expected"):
        samplers[1][name](**bad)


NODES = {
    "TransferNode": ([bc.Task([{"x": 0.1}, {"x": 0.9}], [1.0, 2.0])],),
    "SubsetNode": ("fraction",),
}


@pytest.mark.parametrize("name", NODES)
def test_a_node_computes_as_it_is_told_also_after_a_file(name, tkwargs):
    pytest.importorskip("ax")
    from botorch_costly.integrations import ax

    kind = getattr(ax, name)
    node = kind(*NODES[name], dtype=torch.float32, device=tkwargs["device"])
    for one in (node, kind.from_dict(**without_type(node.to_dict()))):
        assert one._tkwargs["dtype"] == torch.float32
        assert one._tkwargs["device"].type == tkwargs["device"].type
    old = {key: part for key, part in without_type(node.to_dict()).items() if key != "dtype"}
    assert kind.from_dict(**old)._tkwargs["dtype"] == torch.float64
    with pytest.raises(InvalidArgumentError, match="Expected"):
        kind(*NODES[name], device="nowhere")


def without_type(arguments):
    return {key: part for key, part in arguments.items() if key != "__type"}
