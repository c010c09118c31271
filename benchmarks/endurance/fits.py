"""The two fits of ``python -m benchmarks trainers``: real trainers with the callback of this package."""

import argparse
import inspect
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import botorch_costly as bc
from benchmarks.suite.data import digits
from botorch_costly.integrations import RoundLength

_TRAINED = 1400  # pictures
_BATCH = 64
_CONTEXT, _TEXTS = 64, 600  # characters of a text
_SPACE = {"weight_decay": bc.Real(0.0, 0.5), "dropout": bc.Real(0.0, 0.6)}
_START = {"weight_decay": 0.05, "dropout": 0.1}


class Fit(NamedTuple):
    """What a fit took."""

    seconds: float  # of all of it, on the clock
    processor: float  # seconds of the processor
    within_processor: float  # those of them within the hooks of the callback
    queries: int  # that were told


class Clock:
    """Adds up the time of the processor within the hooks of a callback.

    Not that of the clock: to read the processor's takes a call of the system, in which a busy machine
    lets others go first, so that the clock would count what measuring costs.
    """

    def __init__(self, callback: Any, hooks: tuple[str, ...]) -> None:
        self._within = 0.0
        for name in hooks:
            setattr(callback, name, self._timed(getattr(callback, name)))

    def _timed(self, hook: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*given: Any, **named: Any) -> Any:
            began = time.process_time()
            try:
                return hook(*given, **named)
            finally:
                self._within += time.process_time() - began

        return timed

    def fit(self, run: Callable[[], Any], tuner: bc.OnlineTuner) -> Fit:
        """Run a fit to its end; return what it took."""
        began, processor = time.perf_counter(), time.process_time()
        run()
        seconds, of_processor = time.perf_counter() - began, time.process_time() - processor
        return Fit(seconds, of_processor, self._within, tuner.queries)


def in_lightning(steps: int, rounds: int, seed: int) -> Fit:
    """Fit a convolutional network to digits, in rounds of some steps."""
    from lightning.pytorch import LightningModule, Trainer

    from botorch_costly.integrations.lightning import TunerCallback

    class Digits(LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.network = nn.Sequential(
                nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1),
                nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(), nn.Linear(1024, 10),
            )  # fmt: skip

        def training_step(self, batch: list[Tensor], index: int) -> Tensor:
            return nn.functional.cross_entropy(self.network(batch[0]), batch[1])

        def validation_step(self, batch: list[Tensor], index: int) -> None:
            self.log("val_loss", self.training_step(batch, index))

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.AdamW(self.parameters(), lr=1e-3)

    torch.manual_seed(seed)
    data = TensorDataset(*digits())
    train, rest = range(_TRAINED), range(_TRAINED, len(data))
    tuner = _tuner({"lr": bc.Real(1e-5, 1e-1, log=True)}, 1e-3, rounds, seed)
    callback = TunerCallback(tuner, "val_loss", length=RoundLength(steps=steps))
    clock = Clock(
        callback,
        (
            "setup",
            "on_train_start",
            "on_train_batch_start",
            "on_train_batch_end",
            "on_validation_end",
            "on_exception",
        ),
    )
    quiet = {"enable_progress_bar": False, "enable_model_summary": False, "logger": False}
    trainer = Trainer(
        max_steps=steps * rounds, callbacks=[callback], accelerator="cpu", enable_checkpointing=False,
        **quiet,
    )  # fmt: skip
    loaders = (
        DataLoader(torch.utils.data.Subset(data, train), _BATCH, shuffle=True),
        DataLoader(torch.utils.data.Subset(data, rest), len(rest)),
    )
    return clock.fit(lambda: trainer.fit(Digits(), *loaders), tuner)


def in_transformers(steps: int, rounds: int, seed: int) -> Fit:
    """Fit a GPT-2 of two layers to the characters of a module, in rounds of some steps."""
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    from botorch_costly.integrations.transformers import TunerCallback

    codes = [min(ord(letter), 127) for letter in inspect.getsource(argparse)]
    texts = [codes[i : i + _CONTEXT] for i in range(0, len(codes) - _CONTEXT, _CONTEXT)]
    data = [{"input_ids": text, "labels": text} for text in texts]
    torch.manual_seed(seed)
    sizes = {"n_positions": _CONTEXT, "n_embd": 64, "n_layer": 2, "n_head": 4}
    model = GPT2LMHeadModel(GPT2Config(vocab_size=128, **sizes))
    tuner = _tuner({"lr": bc.Real(0.1, 10.0, log=True)}, 1.0, rounds, seed)
    callback = TunerCallback(tuner, length=RoundLength(steps=steps))
    clock = Clock(
        callback, ("on_train_begin", "on_step_begin", "on_step_end", "on_epoch_end", "on_evaluate")
    )
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, max_steps=steps * rounds, per_device_train_batch_size=16, learning_rate=1e-3,
            save_strategy="no", logging_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True,
            seed=seed,
        )  # fmt: skip
        trainer = Trainer(
            model, arguments, train_dataset=data[:_TEXTS], eval_dataset=data[_TEXTS : _TEXTS + 200],
            callbacks=[callback],
        )  # fmt: skip
        return clock.fit(trainer.train, tuner)


def _tuner(rate: dict[str, bc.Real], start: float, rounds: int, seed: int) -> bc.OnlineTuner:
    space = bc.SearchSpace({**rate, **_SPACE})
    return bc.OnlineTuner(space, rounds, start={"lr": start, **_START}, seed=seed)


FITS = {"Lightning": in_lightning, "Transformers": in_transformers}
