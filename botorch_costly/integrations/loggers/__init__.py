"""Logs of a run: one entry per round with the query, its reason and its cost.

``LoggedTuner`` wraps a tuner and sends the entries to loggers. A logger for another experiment tracker
is a class of a few lines derived from ``Logger``.
"""

from botorch_costly.integrations.loggers.csv_logger import CsvLogger
from botorch_costly.integrations.loggers.entry import LogEntry
from botorch_costly.integrations.loggers.logged_tuner import LoggedTuner
from botorch_costly.integrations.loggers.logger import Logger
from botorch_costly.integrations.loggers.mlflow import MlflowLogger
from botorch_costly.integrations.loggers.progress_bar import ProgressBar
from botorch_costly.integrations.loggers.tensorboard import TensorBoardLogger
from botorch_costly.integrations.loggers.wandb import WandbLogger

__all__ = [
    "CsvLogger",
    "LogEntry",
    "LoggedTuner",
    "Logger",
    "MlflowLogger",
    "ProgressBar",
    "TensorBoardLogger",
    "WandbLogger",
]
