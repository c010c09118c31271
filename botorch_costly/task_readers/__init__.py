"""Readers of earlier studies: Optuna, Ax, W&B, MLflow, tables, histories of this package's optimizers."""

from botorch_costly.task_readers.histories import task_from_history, tasks_from_history
from botorch_costly.task_readers.studies import task_from_ax, task_from_optuna
from botorch_costly.task_readers.tables import tasks_from_csv
from botorch_costly.task_readers.trackers import tasks_from_mlflow, tasks_from_wandb

__all__ = [
    "task_from_ax",
    "task_from_history",
    "task_from_optuna",
    "tasks_from_csv",
    "tasks_from_history",
    "tasks_from_mlflow",
    "tasks_from_wandb",
]
