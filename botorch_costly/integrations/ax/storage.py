"""Registration of models, acquisition functions and nodes of this package in Ax's JSON storage."""

from botorch_costly.acquisition import (
    PBGI,
    LogEIPerCost,
    TimeVaryingEI,
    TimeVaryingLogEI,
    TimeVaryingPI,
    TimeVaryingUCB,
)
from botorch_costly.integrations.ax.acquisition import AnalyticAcquisition
from botorch_costly.integrations.ax.node import TransferNode
from botorch_costly.integrations.ax.subset_node import SubsetNode
from botorch_costly.integrations.extras import require
from botorch_costly.models import SubsetGP, TimeVaryingGP

ACQUISITION_FUNCTIONS = (
    PBGI,
    LogEIPerCost,
    TimeVaryingEI,
    TimeVaryingLogEI,
    TimeVaryingPI,
    TimeVaryingUCB,
)
MODELS = (SubsetGP, TimeVaryingGP)


def register() -> None:
    """Make Ax's JSON storage save and load models, acquisition functions and nodes of this package.

    Call it in each process that saves or loads; a second call does no harm. Make a storage configuration
    with its own registry after the call.

    Raises:
        MissingExtraError: If Ax is missing, or older than 1.3.1.
    """
    require("ax-platform", "1.3.1", "ax")
    from ax.storage import botorch_modular_registry as classes
    from ax.storage.json_store.registry import CORE_DECODER_REGISTRY, CORE_ENCODER_REGISTRY

    for function in ACQUISITION_FUNCTIONS:
        classes.register_acquisition_function(function)
    for model in MODELS:
        classes.register_model(model)
    classes.register_acquisition(AnalyticAcquisition)
    for node in (SubsetNode, TransferNode):
        CORE_ENCODER_REGISTRY[node] = node.to_dict
        CORE_DECODER_REGISTRY[node.__name__] = node.from_dict
