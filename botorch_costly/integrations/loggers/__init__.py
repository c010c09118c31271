"""Logs of a run, round by round: what was queried and what was not, why, and what it cost.

``LoggedTuner`` wraps a tuner and sends an entry a round to loggers. Each of them is a few lines around
``Logger``, so that any experiment tracker fits.
"""

from botorch_costly.integrations.loggers.csv_logger import CsvLogger
from botorch_costly.integrations.loggers.entry import LogEntry
from botorch_costly.integrations.loggers.logged_tuner import LoggedTuner
from botorch_costly.integrations.loggers.logger import Logger
from botorch_costly.integrations.loggers.progress_bar import ProgressBar
from botorch_costly.integrations.loggers.tensorboard import TensorBoardLogger

__all__ = ["CsvLogger", "LogEntry", "LoggedTuner", "Logger", "ProgressBar", "TensorBoardLogger"]
