"""What the pages of adapters leave to the reader: a module, a trainer, data."""

import math
import warnings

import pytest

from tests.integrations.digits import DEFAULT, SPACE


def names_of(page):
    """Names for the code of a page; skip the page if it is about a library that is missing."""
    makers = {
        "ax": of_ax,
        "distributed": of_distributed,
        "lightning": of_lightning,
        "optuna": of_optuna,
        "ray": of_ray,
        "trackers": of_trackers,
        "transformers": of_transformers,
    }
    named = page.stem in makers and page.parent.name == "integrations"
    return makers[page.stem]() if named else {}


def of_ax():
    pytest.importorskip("ax", reason="needs the extra botorch_costly[ax]")
    from tests.integrations import ax_program as program

    program.quiet()
    warnings.simplefilter("ignore")  # Ax's own, of pandas; pytest undoes this after the test
    return {
        **vars(program),
        "client": program.client(),
        "drifting": program.drifting(None),
        "on_parts": program.client((program.RATE, program.ROWS)),
        "earlier": program.earlier(),
        "objective": lambda **parameters: program.loss(parameters),
    }


def of_distributed():
    """A page on several processes, run in one: ``torch`` warns that there is no group of them."""
    warnings.filterwarnings("ignore", message="torch.distributed is")  # until the end of the test
    return {"loader": range(20), "train_step": lambda batch: 1 / (1 + batch)}


def of_lightning():
    pytest.importorskip("lightning.pytorch", reason="needs the extra botorch_costly[lightning]")
    from functools import partial

    from tests.integrations.lightning_program import Digits, Trainer, loaders

    warnings.simplefilter(
        "ignore"
    )  # Lightning's own, of PyTorch; pytest undoes this after the test
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    train, val = loaders()
    return {
        "Trainer": partial(Trainer, accelerator="cpu", enable_model_summary=False, **quiet),
        "model": Digits(),
        "train_loader": train,
        "val_loader": val,
        "space": SPACE,
        "default": DEFAULT,
    }


def of_optuna():
    optuna = pytest.importorskip("optuna", reason="needs the extra botorch_costly[optuna]")
    from tests.integrations import optuna_program as program

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    saved = {}
    return {
        "optuna": optuna,
        "objective": program.objective,
        "earlier_study": program.earlier(),
        "new_network": dict,
        "load": lambda name: saved[name],
        "save": lambda network, name: saved.update({name: network}),
        "train_one_epoch": lambda lr, epoch: abs(math.log10(lr) + 2) + 1 / (1 + epoch),
        "validation_loss": lambda lr, share: abs(math.log10(lr) + 2) + 0.1 / share,
    }


def of_ray():
    pytest.importorskip("ray.tune", reason="needs the extra botorch_costly[ray]")
    from tests.integrations import ray_program as program

    program.start()
    return {
        "tune": program.tune,
        "space": program.SPACE,
        "earlier": program.EARLIER,
        "train": program.trainable(),
        "member": program.member(4),
        "member_space": program.MEMBERS,
    }


def of_trackers():
    """What a page on experiment trackers needs, which write to the folder they run in."""
    for library in ("tensorboard", "mlflow", "wandb"):
        pytest.importorskip(library, reason=f"needs {library}")
    return {}


def of_transformers():
    pytest.importorskip("transformers", reason="needs the extra botorch_costly[transformers]")
    from transformers import Trainer, TrainingArguments

    from tests.integrations import transformers_program as program

    arguments = TrainingArguments(
        "out", max_steps=24, report_to=[], use_cpu=True, disable_tqdm=True
    )
    return {
        "Trainer": Trainer,
        "arguments": arguments,
        "model": program.network(),
        "train": program.data("train"),
        "val": program.data("val"),
        "space": program.SPACE,
        "default": program.START,
    }
