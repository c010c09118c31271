"""A log for Weights & Biases; its extra is ``botorch_costly[wandb]``."""

from typing import Any

from botorch_costly.calls import advised
from botorch_costly.errors import check
from botorch_costly.integrations.extras import require
from botorch_costly.integrations.loggers.entry import LogEntry
from botorch_costly.integrations.loggers.logger import Logger


@advised
class WandbLogger(Logger):
    """Logs the numbers of each round, and its reasons and choices as text, over the round of the tuner.

    A number that is unknown, NaN or infinite is left out; ``failed`` is 1 where a query gave none. A
    rewound run logs its rounds again: W&B keeps both entries, and shows the last one in its summary. The
    run is neither begun nor finished here.

    Args:
        run: The run, as of ``wandb.init(...)``; the active one when the first entry comes, if omitted.
        prefix: Prefix of all names, so that they form a section of their own.

    Raises:
        MissingExtraError: If wandb is missing, or older than 0.17.
    """

    def __init__(self, run: Any = None, *, prefix: str = "tuning") -> None:
        require("wandb", "0.17", "wandb")
        self.run, self.prefix = run, prefix
        self._defined = False

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "run": None, "_defined": False}  # a run belongs to its process

    def log(self, entry: LogEntry) -> None:
        """Log the numbers and texts of a round.

        Raises:
            InvalidArgumentError: If no run was given, and none is active.
        """
        run, step = self._begun(), f"{self.prefix}/round"
        texts = {name: value for name, value in entry.row().items() if isinstance(value, str)}
        shown = {**entry.numbers(), **texts}
        run.log({step: entry.round, **{f"{self.prefix}/{n}": value for n, value in shown.items()}})

    def _begun(self) -> Any:
        """Return the run, to which the axis of the rounds is known: a reward may be told late."""
        if self.run is None:
            import wandb

            self.run = wandb.run
        expected = "a run that is active, from wandb.init(), or given as WandbLogger(run)"
        check(self.run is not None, "run", expected, None)
        if not self._defined:
            self.run.define_metric(f"{self.prefix}/round", hidden=True)
            self.run.define_metric(f"{self.prefix}/*", step_metric=f"{self.prefix}/round")
            self._defined = True
        return self.run
