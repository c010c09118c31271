"""Nothing public escapes the laws."""

import inspect

import torch
from botorch.acquisition import AcquisitionFunction
from gpytorch.kernels import Kernel

from botorch_costly import acquisition, bandits, baselines, kernels, query
from tests.registry.acquisitions import ACQUISITIONS
from tests.registry.kernels import KERNELS
from tests.registry.optimizers import BANDITS
from tests.registry.query_rules import QUERY_RULES


def public(module, base):
    members = (getattr(module, name) for name in module.__all__)
    return {m.__name__ for m in members if inspect.isclass(m) and issubclass(m, base)}


def test_every_acquisition_function_is_registered():
    functions = public(acquisition, AcquisitionFunction) | public(baselines, AcquisitionFunction)
    assert functions <= set(ACQUISITIONS)


def test_every_query_rule_is_registered():
    registered = {type(case.rule).__name__ for case in QUERY_RULES.values()}
    assert public(query, query.QueryRule) - {"QueryRule"} <= registered


def test_every_kernel_is_registered():
    made = {type(case.make(torch.Size())).__name__ for case in KERNELS.values()}
    assert public(kernels, Kernel) <= made


def test_every_bandit_strategy_is_registered():
    registered = {type(strategy).__name__ for strategy, _ in BANDITS.values()}
    assert public(bandits, bandits.Strategy) - {"Strategy"} <= registered
