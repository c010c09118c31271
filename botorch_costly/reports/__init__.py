"""Reports of saved runs, made without the tuner and the training loop.

``saved_runs`` reads a file that ``botorch_costly.save`` wrote. The other functions return a run as text,
a table, a picture, an HTML page, or an interactive page. The command ``botorch-costly`` does the same
from a shell.
"""

from botorch_costly.reports.html import html_of
from botorch_costly.reports.picture import interactive_of, picture_of, raster_of
from botorch_costly.reports.saved_run import SavedRun, saved_runs
from botorch_costly.reports.text import csv_of, rows_of, text_of, text_of_schedule

__all__ = [
    "SavedRun",
    "csv_of",
    "html_of",
    "interactive_of",
    "picture_of",
    "raster_of",
    "rows_of",
    "saved_runs",
    "text_of",
    "text_of_schedule",
]
