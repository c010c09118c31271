"""Places of a Trainer of Transformers that callbacks share."""

import contextlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from botorch_costly.errors import check
from botorch_costly.integrations.applying import unwrapped
from botorch_costly.integrations.rewindable import Rewindable
from botorch_costly.integrations.rounds import RoundLength
from botorch_costly.states import Stateful

_logger = logging.getLogger(__name__)


def saving_folder(args: Any, state: Any) -> Path:
    """Return the folder of the checkpoint of the present step."""
    return Path(args.output_dir) / f"checkpoint-{state.global_step}"


def loading_folder(args: Any, state: Any, resume_from: str | os.PathLike[str] | None) -> Path:
    """Return the folder that the trainer resumes from, one of its ``output_dir`` if it is not named."""
    return saving_folder(args, state) if resume_from is None else Path(resume_from)


def batches_of(loader: Any) -> int | None:
    """Return the number of batches of an epoch; None for data without a length."""
    try:
        return len(loader)
    except TypeError:
        return None


def optimizer_and_scaler(optimizer: Any) -> tuple[Any, tuple[Stateful, ...]]:
    """Return the optimizer that a trainer has wrapped, and its gradient scaler, if there is one."""
    scaler = getattr(optimizer, "scaler", None)
    return unwrapped(optimizer), () if scaler is None else (scaler,)


def check_decides_alone(state: Any, callback: Any) -> None:
    """Raise if another callback decides when the trainer of a state evaluates.

    A trainer has a new state in each training, and shows it to all callbacks.

    Raises:
        InvalidArgumentError: If there is one.
    """
    deciding = [*getattr(state, "deciding", []), callback]
    kinds = [type(one).__name__ for one in deciding]
    check(len(kinds) == 1, "callbacks", "one that decides when to evaluate", kinds)
    state.deciding = deciding


def saves_each_round(length: RoundLength, args: Any, state: Any) -> bool:
    """Return whether the trainer saves a checkpoint at the end of each round."""
    if length.steps is None:
        return length.epochs is not None and args.save_strategy == "epoch"
    return args.save_strategy == "steps" and length.steps % max(int(state.save_steps), 1) == 0


def warn_of_best_model(args: Any, state: Any, *, saves: bool, instead: str = "") -> None:
    """Warn that the best model may not be loaded at the end, if the trainer has no checkpoint of it.

    Args:
        args: Arguments of the trainer.
        state: State of the trainer.
        saves: Whether a checkpoint is saved at each step that is evaluated, if it is the best one.
        instead: What else makes it so, beside the trainer's own argument.
    """
    is_meant = args.load_best_model_at_end and state.is_world_process_zero
    if is_meant and not saves and args.save_strategy != "best":
        _logger.warning(
            "load_best_model_at_end loads the checkpoint of the best evaluation, but the trainer "
            "evaluates at steps at which it does not save, and may load none: set "
            "save_strategy='best' (Transformers 4.47 or newer)%s.",
            instead,
        )


class TrainingData:
    """Makes the training data of a trainer rewindable, which resumes within an epoch by itself.

    Args:
        trainer: The trainer, whose ``get_train_dataloader`` is replaced.
    """

    def __init__(self, trainer: Any) -> None:
        self._trainer, self._get = trainer, trainer.get_train_dataloader
        self._skips: bool | None = None  # what the arguments say, while they say something else
        trainer.get_train_dataloader = self.get

    def get(self) -> Rewindable:
        """Return the loader of the trainer, which then skips no batches on its own when it resumes."""
        loader = self._get()
        if self._skips is None:
            self._skips = self._trainer.args.ignore_data_skip
            self._trainer.args.ignore_data_skip = True
        return loader if isinstance(loader, Rewindable) else Rewindable(loader)

    def begin(self) -> None:
        """Restore the arguments of the trainer, which has decided about skipping."""
        if self._skips is not None:
            self._trainer.args.ignore_data_skip, self._skips = self._skips, None


@contextlib.contextmanager
def replaced(holder: Any, name: str, value: Any) -> Iterator[None]:
    """Set an attribute of an object within a block."""
    earlier = vars(holder).get(name)
    setattr(holder, name, value)
    try:
        yield
    finally:
        delattr(holder, name)
        if earlier is not None:
            setattr(holder, name, earlier)
