"""What a tuner takes of the time of a trainer: ``python -m benchmarks trainers``.

A convolutional network learns digits in Lightning's ``Trainer``, so does a deep one with a parameter
group for each of its 50 tensors, and a small GPT-2 learns characters in the trainer of Transformers,
each with the callback of this package. Reported is the time within the callback, all of its hooks
together (decisions, the guard's copies, counting of steps), the time beside the decision, which is that
within ``ask`` and ``tell`` of the tuner, the share of the fit, and how long a round has to be for a share
of one per cent. Validation is not the tuner's time. All of it is time of one core, which is time on the
clock where the machine has no other work.

It needs the extras ``lightning`` and ``transformers``.
"""

import argparse
import inspect
import logging
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby, product, starmap
from statistics import median
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import botorch_costly as bc
from benchmarks.harness.command_line import seeds_of
from benchmarks.harness.record import Row
from benchmarks.harness.sweep import measured, sweep_parser
from benchmarks.suite.data import digits
from botorch_costly.integrations import RoundLength

_TRAINED = 1400  # pictures
_BATCH = 64
_LAYERS = 25  # of the deep network
_CONTEXT, _TEXTS = 64, 600  # characters of a text
_SPACE = {"weight_decay": bc.Real(0.0, 0.5), "dropout": bc.Real(0.0, 0.6)}
_START = {"weight_decay": 0.05, "dropout": 0.1}


class Fit(NamedTuple):
    """What a fit took."""

    seconds: float  # of all of it, on the clock
    processor: float  # seconds of the processor
    within_processor: float  # those of them within the hooks of the callback
    deciding: float  # those of these within the tuner's ask and tell
    queries: int  # that were told


class Clock:
    """Adds up the time of the processor within the hooks of a callback, and that of the decision.

    Not that of the clock: to read the processor's takes a call of the system, in which a busy machine
    lets others go first, so that the clock would count what measuring costs. What it takes to read the
    processor's is read before each hook, and subtracted.
    """

    def __init__(self, callback: Any, hooks: tuple[str, ...], tuner: Any) -> None:
        self._within = self._deciding = 0.0
        for name in hooks:
            setattr(callback, name, self._timed(getattr(callback, name), "_within"))
        for name in ("ask", "tell"):
            setattr(tuner, name, self._timed(getattr(tuner, name), "_deciding"))

    def _timed(self, call: Callable[..., Any], total: str) -> Callable[..., Any]:
        def timed(*given: Any, **named: Any) -> Any:
            before = time.process_time()
            began = time.process_time()
            try:
                return call(*given, **named)
            finally:
                taken = time.process_time() - began - (began - before)
                setattr(self, total, getattr(self, total) + taken)

        return timed

    def fit(self, run: Callable[[], Any], tuner: bc.OnlineTuner) -> Fit:
        """Run a fit to its end; return what it took."""
        began, processor = time.perf_counter(), time.process_time()
        run()
        seconds, of_processor = time.perf_counter() - began, time.process_time() - processor
        return Fit(seconds, of_processor, self._within, self._deciding, tuner.queries)


def convolutional() -> nn.Module:
    """Return a small convolutional network for digits."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(), nn.Linear(1024, 10),
    )  # fmt: skip


def deep() -> nn.Module:
    """Return a network of 25 layers for digits."""
    layers: list[nn.Module] = [nn.Flatten(), nn.Linear(64, 64)]
    for _ in range(_LAYERS - 2):
        layers += [nn.ReLU(), nn.Dropout(), nn.Linear(64, 64)]
    return nn.Sequential(*layers, nn.ReLU(), nn.Linear(64, 10))


def in_lightning(
    steps: int,
    rounds: int,
    seed: int,
    make: Callable[[], nn.Module] = convolutional,
    one_group: bool = True,
) -> Fit:
    """Fit a network to digits, in rounds of some steps, with one parameter group or one a tensor."""
    from lightning.pytorch import LightningModule, Trainer

    from botorch_costly.integrations.lightning import TunerCallback

    class Digits(LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.network = make()

        def training_step(self, batch: list[Tensor], index: int) -> Tensor:
            return nn.functional.cross_entropy(self.network(batch[0]), batch[1])

        def validation_step(self, batch: list[Tensor], index: int) -> None:
            self.log("val_loss", self.training_step(batch, index))

        def configure_optimizers(self) -> torch.optim.Optimizer:
            groups = [{"params": [tensor]} for tensor in self.parameters()]
            return torch.optim.AdamW(self.parameters() if one_group else groups, lr=1e-3)

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
            "on_train_epoch_start",
            "on_train_batch_start",
            "on_train_batch_end",
            "on_train_epoch_end",
            "on_validation_start",
            "on_validation_end",
            "on_exception",
        ),
        tuner,
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
        callback,
        ("on_train_begin", "on_step_begin", "on_step_end", "on_epoch_end", "on_evaluate"),
        tuner,
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


FITS: dict[str, Callable[[int, int, int], Fit]] = {
    "Lightning": in_lightning,
    "50 groups": partial(in_lightning, make=deep, one_group=False),
    "Transformers": in_transformers,
}


NAME = "trainers"
_SHARE = 0.01  # that is aimed at
_BESIDE = 2.0  # milliseconds a round beside the decision that are aimed at


class Task(NamedTuple):
    """A fit, and the key of its row."""

    trainer: str
    steps: int
    rounds: int
    seed: int


def measure(task: Task) -> Row:
    """Return what a fit took."""
    warnings.filterwarnings("ignore")  # the trainers' own, on small machines
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    fit = FITS[task.trainer](task.steps, task.rounds, task.seed)
    return {**task._asdict(), **fit._asdict()}


def beside(row: Row) -> float:
    """Return the seconds of a round within the hooks, without those of the decision."""
    return (row["within_processor"] - row["deciding"]) / row["rounds"]


def text(rows: Sequence[Row]) -> str:
    """Return one line for each trainer and length of a round, medians over seeds."""
    heads = ("round, s", "tuner, ms", "beside, ms", "share, %", "worst, %", "1 % from, s")
    lines = [
        f"{'trainer':<13}{'steps':>6}{'seeds':>6}{'queries':>9}"
        + "".join(f"{h:>13}" for h in heads)
    ]

    def kind(row: Row) -> tuple[str, int, int]:
        return row["trainer"], row["steps"], row["rounds"]

    for (trainer, steps, rounds), group in groupby(sorted(rows, key=kind), kind):
        fits = list(group)
        shares = [100 * fit["within_processor"] / fit["processor"] for fit in fits]
        within = median(fit["within_processor"] for fit in fits) / rounds
        numbers = (
            median(fit["processor"] for fit in fits) / rounds,
            1000 * within,
            1000 * median(map(beside, fits)),
            median(shares),
            max(shares),
            within / _SHARE,
        )
        queries = f"{median(fit['queries'] for fit in fits):g}/{rounds}"
        lines.append(
            f"{trainer:<13}{steps:>6}{len(fits):>6}{queries:>9}"
            + "".join(f"{number:>13.2f}" for number in numbers)
        )
    lines.append(
        "Medians over seeds, of one core: seconds of a round, milliseconds within the callback in a "
        "round, and of\nthese beside the tuner's ask and tell; its share of the fit, and how long a "
        "round has to be for one per\ncent. At most "
        f"{_BESIDE:g} ms beside the decision: {verdict(rows)}."
    )
    return "\n".join(lines)


def verdict(rows: Sequence[Row]) -> str:
    """Return in how many fits the aim for the time beside the decision was reached."""
    good = sum(1000 * beside(row) <= _BESIDE for row in rows)
    return f"in {good} of {len(rows)} fits"


def main(arguments: list[str]) -> None:
    """Measure, store the rows and print them."""
    about = "what a tuner takes of the time of a trainer"
    parser = sweep_parser(NAME, about, seeds=3, trainers=FITS)
    parser.add_argument("--steps", nargs="+", type=int, default=[25, 100], help="of a round")
    parser.add_argument("--rounds", type=int, default=24, help="of a fit")
    parser.set_defaults(processes=1)  # what is timed is not to wait for others
    options = parser.parse_args(arguments)
    lengths = product(options.trainers, options.steps, [options.rounds], seeds_of(options))
    print(text(measured(NAME, list(starmap(Task, lengths)), measure, options)))
