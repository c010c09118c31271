"""Each adapter can be imported without its library, and says what to install."""

import inspect
import re
from importlib import import_module

import pytest

import botorch_costly as bc
from botorch_costly.errors import MissingExtraError
from botorch_costly.integrations import extras
from botorch_costly.plotting import interactive, style
from tests.lowest import lowest, requirements
from tests.test_packaging import required

SPACE = bc.SearchSpace({"lr": bc.Real(1e-3, 1.0, log=True)})
TASK = bc.Task([{"lr": 0.1}, {"lr": 0.2}], [1.0, 2.0])


def tuner():
    return bc.OnlineTuner(SPACE, 5)


# Of each name that an adapter makes public: its extra, and what is given to it.
ADAPTERS = {
    "lightning.TunerCallback": ("lightning", lambda: (tuner(), "val_loss")),
    "transformers.TunerCallback": ("transformers", lambda: (tuner(),)),
    "validation.lightning.ValidationCallback": ("lightning", lambda: (bc.Validation(), "val_loss")),
    "validation.transformers.ValidationCallback": ("transformers", lambda: (bc.Validation(),)),
    "optuna.TransferSampler": ("optuna", lambda: ([TASK],)),
    "optuna.CurveSampler": ("optuna", lambda: ("epochs",)),
    "optuna.SubsetSampler": ("optuna", lambda: (["share"],)),
    "optuna.CurvePruner": ("optuna", lambda: (27,)),
    "ax.TransferNode": ("ax", lambda: ([TASK],)),
    "ax.SubsetNode": ("ax", tuple),
    "ax.AnalyticAcquisition": ("ax", tuple),
    "ax.register": ("ax", tuple),
    "ray.OfflineSearcher": ("ray", lambda: (bc.TransferOptimizer(SPACE, [TASK]),)),
    "ray.PopulationScheduler": ("ray", lambda: (SPACE,)),
    "loggers.TensorBoardLogger": ("tensorboard", lambda: ("runs",)),
    "loggers.WandbLogger": ("wandb", tuple),
    "loggers.MlflowLogger": ("mlflow", tuple),
}


def needed(extra):
    """The library that adapters of an extra ask for, and its smallest version."""
    (found,) = {(library, minimum) for library, minimum, its in required() if its == extra}
    return found


def installs(extra):
    """What installs the libraries of an extra, each in the smallest version or a newer one."""
    everywhere = requirements(())
    return " ".join(repr(one) for one in requirements((extra,)) if one not in everywhere)


def test_the_messages_of_pictures_say_what_installs_their_libraries():
    for extra, module in (("plot", style), ("plotly", interactive)):
        assert f"pip install {installs(extra)}" in inspect.getsource(module)


def test_each_adapter_that_needs_a_library_is_here():
    assert {extra for extra, _ in ADAPTERS.values()} == {extra for _, _, extra in required()}
    for module in {name.rpartition(".")[0] for name in ADAPTERS} - {"loggers"}:
        found = import_module(f"botorch_costly.integrations.{module}")
        names = getattr(found, "__all__", ["TunerCallback"])
        # A function takes what the library made, or is here all the same.
        made = [name for name in names if isinstance(getattr(found, name), type)]
        assert {f"{module}.{name}" for name in made} <= ADAPTERS.keys()


@pytest.mark.parametrize("installed", [None, "0.0.9", "0.1.dev3"])
@pytest.mark.parametrize("name", ADAPTERS)
def test_what_to_install_is_named_where_a_library_is_missing_or_old(name, installed, monkeypatch):
    def version(package):
        if installed is None:
            raise extras.PackageNotFoundError(package)
        return installed

    extra, given = ADAPTERS[name]
    module, _, made = name.rpartition(".")
    make = getattr(import_module(f"botorch_costly.integrations.{module}"), made)
    arguments = given()
    monkeypatch.setattr(extras, "version", version)
    with pytest.raises(MissingExtraError) as caught:
        make(*arguments)
    library, minimum = needed(extra)
    assert lowest((extra,))[library] == minimum
    assert str(caught.value) == (
        f"{library}: Expected version {minimum} or newer: pip install {installs(extra)};"
        f" Received {installed or 'not installed'!r}."
    )


@pytest.mark.parametrize("name", ADAPTERS)
def test_a_library_that_is_not_there_is_missed_in_earnest(name):
    """The same, where nothing is made up: in an environment without the library."""
    extra, given = ADAPTERS[name]
    library, _ = needed(extra)
    try:
        extras.version(library)
    except extras.PackageNotFoundError:
        module, _, made = name.rpartition(".")
        make = getattr(import_module(f"botorch_costly.integrations.{module}"), made)
        arguments = given()
        with pytest.raises(MissingExtraError, match=re.escape(installs(extra))):
            make(*arguments)
    else:
        pytest.skip(f"{library} is installed")
