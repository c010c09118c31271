"""Nothing public escapes the laws."""

import inspect

import torch
from botorch.acquisition import AcquisitionFunction
from gpytorch.kernels import Kernel

from botorch_costly import acquisition, kernels, query
from tests.registry import ACQUISITIONS, KERNELS, QUERY_RULES


def public(module, base):
    members = (getattr(module, name) for name in module.__all__)
    return {m.__name__ for m in members if inspect.isclass(m) and issubclass(m, base)}


def test_every_acquisition_function_is_registered():
    assert public(acquisition, AcquisitionFunction) <= set(ACQUISITIONS)


def test_every_query_rule_is_registered():
    registered = {type(case.rule).__name__ for case in QUERY_RULES.values()}
    assert public(query, query.QueryRule) - {"QueryRule"} <= registered


def test_every_kernel_is_registered():
    made = {type(case.make(torch.Size())).__name__ for case in KERNELS.values()}
    assert public(kernels, Kernel) <= made
