"""Evaluations of a Trainer of Transformers that end after the batches that decide."""

from typing import Any

from botorch_costly.errors import check
from botorch_costly.integrations.transformers_trainer import replaced
from botorch_costly.integrations.validation.in_trainer import TrainerValidation


class PartialEvaluation:
    """The evaluation loop of a trainer, on as many batches as a reading needs.

    The trainer's own loop runs, over its own loader with another order. It ends where the order ends, as
    at the end of the data, so that nothing in it is cut short.

    Args:
        trainer: A ``Trainer``.
        run: The validation of its run, with the option ``examples``.
    """

    def __init__(self, trainer: Any, run: TrainerValidation) -> None:
        self._trainer, self._run = trainer, run
        self._loop: Any = None  # of the trainer, while it is replaced

    def install(self) -> None:
        """Replace the evaluation loop of the trainer until ``remove``.

        Raises:
            InvalidArgumentError: If there are metrics of the whole set, several sets, or another loop.
        """
        self.remove()  # an error may have ended an earlier training
        trainer, purpose = self._trainer, "for Validation(examples=..)"
        expected = f"None, {purpose}: metrics are of the whole set"
        metrics = trainer.compute_metrics
        check(metrics is None, "compute_metrics", expected, metrics)
        expected = f"eval_loss, {purpose}"
        monitor = self._run.monitor
        check(monitor == "eval_loss", "monitor", expected, monitor)
        is_one = not isinstance(trainer.eval_dataset, dict)
        check(is_one, "eval_dataset", f"one data set, {purpose}", "several")
        is_older = bool(getattr(trainer.args, "use_legacy_prediction_loop", False))
        check(not is_older, "use_legacy_prediction_loop", f"False, {purpose}", is_older)
        self._loop, trainer.evaluation_loop = trainer.evaluation_loop, self._evaluate

    def remove(self) -> None:
        """Give the trainer its evaluation loop back."""
        if self._loop is not None:
            del self._trainer.evaluation_loop
            self._loop = None

    def _evaluate(self, dataloader: Any, *arguments: Any, **options: Any) -> Any:
        """Evaluate as the trainer does; a reading that is due, on part of the batches."""
        reader, predict = self._run.reader, self._trainer.prediction_step
        if reader is None or not self._run.is_due:
            return self._loop(dataloader, *arguments, **options)

        def predicted(*given: Any, **named: Any) -> tuple[Any, Any, Any]:
            if reader.is_complete:  # workers have loaded this batch ahead
                return None, None, None
            loss, *others = predict(*given, **named)
            reader.add(loss)
            return loss, *others

        reader.use(dataloader, has_means=True)
        reader.begin()
        try:
            with replaced(self._trainer, "prediction_step", predicted):
                output = self._loop(dataloader, *arguments, **options)
        finally:
            reader.release()
        output.metrics[self._run.monitor] = reader.result()
        return output._replace(num_samples=reader.examples)
