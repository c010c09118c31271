"""A log for MLflow; its extra is ``botorch_costly[mlflow]``."""

import re

from botorch_costly.calls import advised
from botorch_costly.integrations.extras import require
from botorch_costly.integrations.loggers.entry import LogEntry
from botorch_costly.integrations.loggers.logger import Logger

_REFUSED = re.compile(r"[^\w\-./ ]", re.ASCII)  # what no name of a metric may have, in any version


@advised
class MlflowLogger(Logger):
    """Logs the numbers of each round as metrics, whose step is the round.

    A number that is unknown, NaN or infinite is left out; ``failed`` is 1 where a query gave none. MLflow
    has no texts by step: reasons and choices stay with other loggers. Signs that no name of a metric may
    have are replaced by ``_``. A rewound run logs its rounds again: MLflow keeps both values of a step.
    The run is not ended here.

    Args:
        run_id: Number of the run; the active one if omitted, or a new one if none is.
        prefix: Prefix of all names, so that they form a section of their own.

    Raises:
        MissingExtraError: If mlflow-skinny, which is a part of mlflow, is missing, or older than 2.16.
    """

    def __init__(self, run_id: str | None = None, *, prefix: str = "tuning") -> None:
        require("mlflow-skinny", "2.16", "mlflow")
        self.run_id, self.prefix = run_id, prefix

    def log(self, entry: LogEntry) -> None:
        """Log the numbers of a round."""
        import mlflow

        named = {f"{self.prefix}/{name}": value for name, value in entry.numbers().items()}
        metrics = {_REFUSED.sub("_", name): value for name, value in named.items()}
        mlflow.log_metrics(metrics, step=entry.round, run_id=self.run_id)
